//! The way of a scan through the segments: which rows, by which stage first, for which queries.

use crate::cascade::{Cascade, Here};
use crate::probe::{Probe, Stage};
use crate::segment::{SegmentView, set_bits};
use crate::selection::SegmentRows;
use crate::simd::{CHUNK, EIGHT, EightLimits, Kernel};

/// Segments with fewer than one selected row in this many are read row by row.
const SPARSE_SHARE: usize = 6;

/// Blocks scanned at a time until there is a threshold, which all of their rows would reach.
const FIRST_BLOCKS: usize = 2;

/// Places of a segment that are read by turns: memory answers several streams faster than one.
const STREAMS: usize = 4;

/// A stage that lets more than one row in this many through costs more than it saves.
const UNHELPFUL_SHARE: u32 = 6;

/// Rows bounded before a stage is judged, so that chance does not decide.
const VERDICT_ROWS: u32 = 256;

/// Runs for which such a stage is passed over at first, and at most.
const LEAST_SKIPPED: u32 = 2;
const MOST_SKIPPED: u32 = 64;

/// Leads the cascades of a search from segment to segment.
pub(crate) struct Walk<'a> {
    kernel: &'a dyn Kernel,
    cascades: Vec<Cascade<'a>>,
    /// Whether the scan is long enough for nibbles and sketches.
    is_long: bool,
    sketches: Helpfulness,
    nibbles: Helpfulness,
    listed: Vec<u32>,
}

/// Whether a stage has ruled out enough lately.
struct Helpfulness {
    /// Of the rows bounded since the last verdict, those that got through.
    reached: u32,
    bounded: u32,
    /// Runs for which the stage is still passed over.
    skipped: u32,
    /// Runs for which it will be, if it does not help.
    next: u32,
}

impl Helpfulness {
    const fn new() -> Self {
        Self { reached: 0, bounded: 0, skipped: 0, next: LEAST_SKIPPED }
    }

    /// Whether to look at the stage now.
    fn is_likely(&mut self) -> bool {
        let likely = self.skipped == 0;
        self.skipped = self.skipped.saturating_sub(1);
        likely
    }

    fn note(&mut self, reached: u32, bounded: u32) {
        self.reached += reached;
        self.bounded += bounded;
        if self.bounded < VERDICT_ROWS {
            return;
        }
        if self.reached * unhelpful() > self.bounded {
            self.skipped = self.next;
            self.next = (2 * self.next).min(MOST_SKIPPED);
        } else {
            self.next = LEAST_SKIPPED;
        }
        (self.reached, self.bounded) = (0, 0);
    }
}
fn unhelpful() -> u32 {
    static V: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *V.get_or_init(|| std::env::var("UH").ok().and_then(|v| v.parse().ok()).unwrap_or(3))
}

impl<'a> Walk<'a> {
    pub(crate) fn new(kernel: &'a dyn Kernel, cascades: Vec<Cascade<'a>>, is_long: bool) -> Self {
        let (sketches, nibbles) = (Helpfulness::new(), Helpfulness::new());
        Self { kernel, cascades, is_long, sketches, nibbles, listed: Vec::new() }
    }

    pub(crate) fn into_cascades(self) -> Vec<Cascade<'a>> {
        self.cascades
    }

    pub(crate) fn segment(&mut self, here: &Here<'_>, allowed: Option<&SegmentRows>) {
        match allowed {
            Some(rows) if rows.count == 0 => return,
            Some(rows) if rows.count * SPARSE_SHARE < here.view.len => self.listed(here, rows),
            _ => self.runs(here, allowed),
        }
        for cascade in &mut self.cascades {
            cascade.settle(here, 1);
        }
    }

    fn runs(&mut self, here: &Here<'_>, allowed: Option<&SegmentRows>) {
        let words: Vec<u64> = words_in_play(here.view, allowed).collect();
        let mut run = Run::default();
        for block in in_streams(here.view.len.div_ceil(EIGHT)) {
            let wanted = words[block / EIGHT] >> (block % EIGHT * EIGHT) & 0xff;
            if wanted == 0 {
                continue;
            }
            run.push(block as u32, wanted);
            if run.count == self.blocks_at_once() {
                self.run(here, &run);
                run = Run::default();
            }
        }
        if run.count > 0 {
            self.run(here, &run);
        }
    }

    /// Bound the wanted rows of some blocks.
    fn run(&mut self, here: &Here<'_>, run: &Run) {
        let stage = self.first_stage(here.view);
        let rows = stage.rows(here.view);
        let reached = if let [cascade] = &mut *self.cascades
            && let [probe] = cascade.probes
        {
            cascade.look_at_others();
            let limit = cascade.limit(probe, stage, here);
            let mask = self.kernel.reaching(rows, run.blocks(), &limit) & run.wanted;
            cascade.take(here, stage, run.blocks(), mask);
            mask.count_ones()
        } else {
            self.run_of_many(here, stage, run)
        };
        let answers = self.cascades.len() as u32;
        self.note(stage, reached, answers * run.wanted.count_ones());
    }

    fn run_of_many(&mut self, here: &Here<'_>, stage: Stage, run: &Run) -> u32 {
        let rows = stage.rows(here.view);
        let mut masks = vec![0_u64; self.cascades.len()];
        let pairs: Vec<(usize, &Probe)> = self
            .cascades
            .iter()
            .enumerate()
            .flat_map(|(at, cascade)| cascade.probes.iter().map(move |probe| (at, probe)))
            .collect();
        for pairs in pairs.chunks(EIGHT) {
            let limits: Vec<_> = pairs
                .iter()
                .map(|(at, probe)| self.cascades[*at].limit(probe, stage, here))
                .collect();
            let found = if here.priors.is_some() {
                let mut found = [0; EIGHT];
                for (mask, limit) in found.iter_mut().zip(&limits) {
                    *mask = self.kernel.reaching(rows, run.blocks(), limit);
                }
                found
            } else {
                self.kernel.reaching_many(rows, run.blocks(), &EightLimits::new(&limits))
            };
            for ((at, _), mask) in pairs.iter().zip(found) {
                masks[*at] |= mask & run.wanted;
            }
        }
        let mut reached = 0;
        for (cascade, mask) in self.cascades.iter_mut().zip(masks) {
            cascade.look_at_others();
            cascade.take(here, stage, run.blocks(), mask);
            reached += mask.count_ones();
        }
        reached
    }

    fn first_stage(&mut self, view: &SegmentView) -> Stage {
        if !self.is_long || self.has_no_threshold() {
            return Stage::Bytes;
        }
        if view.sketch.is_some() && self.sketches.is_likely() {
            return Stage::Sketch;
        }
        if self.nibbles.is_likely() { Stage::Nibbles } else { Stage::Bytes }
    }

    fn has_no_threshold(&self) -> bool {
        self.cascades.iter().any(|cascade| cascade.threshold == f64::NEG_INFINITY)
    }

    fn note(&mut self, stage: Stage, reached: u32, bounded: u32) {
        match stage {
            Stage::Sketch => self.sketches.note(reached, bounded),
            Stage::Nibbles => self.nibbles.note(reached, bounded),
            Stage::Bytes => {}
        }
    }

    fn blocks_at_once(&self) -> usize {
        if self.has_no_threshold() { FIRST_BLOCKS } else { EIGHT }
    }

    fn listed(&mut self, here: &Here<'_>, allowed: &SegmentRows) {
        let mut listed = std::mem::take(&mut self.listed);
        listed.clear();
        listed.extend(rows_in_play(here.view, Some(allowed)).map(|row| row as u32));
        let mut rest = listed.as_slice();
        while !rest.is_empty() {
            let at_once = EIGHT * self.blocks_at_once();
            let (near, ahead) = rest.split_at(at_once.min(rest.len()));
            self.bound_listed(here, near, ahead);
            rest = ahead;
        }
        self.listed = listed;
    }

    /// As [`Walk::run`], for rows named by number.
    fn bound_listed(&mut self, here: &Here<'_>, listed: &[u32], ahead: &[u32]) {
        let stage = self.first_stage(here.view);
        let mut reached = 0;
        for cascade in &mut self.cascades {
            let mask = cascade.reaching_listed(here, stage, listed, ahead);
            cascade.take_listed(here, stage, listed, mask);
            reached += mask.count_ones();
        }
        let bounded = (self.cascades.len() * listed.len()) as u32;
        self.note(stage, reached, bounded);
    }
}

/// Up to eight blocks of eight rows, and which of the rows are wanted.
#[derive(Default)]
struct Run {
    numbers: [u32; EIGHT],
    count: usize,
    wanted: u64,
}

impl Run {
    fn push(&mut self, block: u32, wanted: u64) {
        self.numbers[self.count] = block;
        self.wanted |= wanted << (self.count * EIGHT);
        self.count += 1;
    }

    fn blocks(&self) -> &[u32] {
        &self.numbers[..self.count]
    }
}

/// The numbers below `count`, from [`STREAMS`] places by turns.
fn in_streams(count: usize) -> impl Iterator<Item = usize> {
    let each = count / STREAMS;
    let streamed = (0..each).flat_map(move |at| (0..STREAMS).map(move |stream| stream * each + at));
    streamed.chain(each * STREAMS..count)
}

/// The masks of rows in play, chunk by chunk.
pub(crate) fn words_in_play(
    view: &SegmentView,
    allowed: Option<&SegmentRows>,
) -> impl Iterator<Item = u64> {
    view.live_words()
        .enumerate()
        .map(move |(at, (_, live))| allowed.map_or(live, |rows| live & rows.words[at]))
}

pub(crate) fn rows_in_play(
    view: &SegmentView,
    allowed: Option<&SegmentRows>,
) -> impl Iterator<Item = usize> {
    words_in_play(view, allowed)
        .enumerate()
        .flat_map(|(at, word)| set_bits(word).map(move |bit| at * CHUNK + bit))
}
