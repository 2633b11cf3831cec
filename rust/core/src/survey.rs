//! A scan: every row in play is bounded by its shortest codes, then rows go on, best first.
//!
//! Taking the most promising rows of all first gives a threshold that is nearly final before any
//! other row is looked at again: taken in the order of the scan, more than twice as many rows go
//! on (`docs/kernel.md`).

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cascade::{Cascade, Here};
use crate::probe::{Probe, Stage};
use crate::segment::{SegmentView, set_bits};
use crate::selection::SegmentRows;
use crate::simd::{CHUNK, EIGHT, EightLimits, Kernel, Limit, Uppers, row_of_bit};

/// Segments with fewer than one selected row in this many are read row by row.
const SPARSE_SHARE: usize = 6;

/// Places of a segment that are read by turns: memory answers several streams faster than one.
const STREAMS: usize = 4;

/// Rows that are taken first: twice as many as are wanted, and at least so many.
const LEAST_PROMISING: usize = 32;

/// In place of the bound of a row that has been taken: it reaches no threshold, not even minus
/// infinity.
const DONE: f32 = f32::NAN;

/// From this many probes on, bounding one row for eight of them at once pays.
const LEAST_MANY: usize = 4;

/// Where more than one row in this many goes on from a stage, the next one reads the whole segment
/// in order instead of the rows one by one.
const fn most_going_on(stage: Stage) -> usize {
    match stage {
        Stage::Sketch => 8,
        Stage::Nibbles => 3,
        Stage::Bytes => usize::MAX,
    }
}

/// The scan of some segments for some answers.
pub(crate) struct Survey<'a> {
    kernel: &'a dyn Kernel,
    answers: Vec<Answer<'a>>,
    pieces: Vec<Piece<'a>>,
    /// Whether the scan is long enough for nibbles and sketches.
    is_long: bool,
    /// Bounds that each answer has room for so far.
    bounds: usize,
}

/// One answer: its cascade, and the bounds of all rows by their first stage.
struct Answer<'a> {
    cascade: Cascade<'a>,
    uppers: Vec<f32>,
    promising: Promising,
}

/// A segment's rows in play.
struct Piece<'a> {
    here: Here<'a>,
    stage: Stage,
    /// Where its bounds begin.
    first: usize,
    rows: Rows,
    count: usize,
}

impl Piece<'_> {
    fn ends_after(&self, place: usize) -> bool {
        place < self.first + self.rows.bounds()
    }
}

enum Rows {
    /// Bounds are in the order of the rows; one mask for every 64 of them.
    InOrder(Vec<u64>),
    /// Bounds are in the order of this list.
    Listed(Vec<u32>),
}

impl Rows {
    fn bounds(&self) -> usize {
        match self {
            Self::InOrder(words) => words.len() * CHUNK,
            Self::Listed(rows) => rows.len().next_multiple_of(EIGHT),
        }
    }

    /// The row of a bound, where it is in play.
    fn row(&self, position: u32) -> Option<u32> {
        match self {
            Self::InOrder(words) => {
                let word = words[position as usize / CHUNK];
                (word >> (position as usize % CHUNK) & 1 == 1).then_some(position)
            }
            Self::Listed(rows) => rows.get(position as usize).copied(),
        }
    }
}

/// The rows with the largest bounds so far.
struct Promising {
    wanted: usize,
    /// A bound in the upper half, as a number of the same order, and its place in the lower.
    heap: BinaryHeap<Reverse<u64>>,
    /// What a row's bound must reach to be among them.
    floor: f32,
}

impl Promising {
    fn of(k: usize) -> Self {
        let wanted = LEAST_PROMISING.max(2 * k);
        let heap = BinaryHeap::with_capacity(wanted.min(4096));
        Self { wanted, heap, floor: f32::NEG_INFINITY }
    }

    fn offer(&mut self, upper: f32, place: usize) {
        let bits = upper.to_bits();
        let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        let entry = Reverse(u64::from(ordered) << 32 | place as u64);
        if self.heap.len() < self.wanted {
            self.heap.push(entry);
        } else if let Some(mut least) = self.heap.peek_mut()
            && entry < *least
        {
            *least = entry;
        }
        if self.heap.len() == self.wanted
            && let Some(Reverse(least)) = self.heap.peek()
        {
            let ordered = (least >> 32) as u32;
            let bits = if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered };
            self.floor = f32::from_bits(bits);
        }
    }

    /// The places of these rows, in their order.
    fn take(&mut self) -> Vec<usize> {
        let heap = std::mem::take(&mut self.heap);
        let mut places: Vec<usize> =
            heap.into_iter().map(|Reverse(entry)| entry as u32 as usize).collect();
        places.sort_unstable();
        places
    }
}

thread_local! {
    /// Room for bounds that the last search of this thread left: fresh memory costs more to touch
    /// than the bounds cost to write.
    static ROOM: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Bounds whose room a thread keeps at most, in floats.
const MOST_ROOM: usize = 1 << 22;

fn take_room() -> Vec<f32> {
    ROOM.with_borrow_mut(Vec::pop).unwrap_or_default()
}

fn leave_room(room: Vec<f32>) {
    ROOM.with_borrow_mut(|rooms| {
        if rooms.iter().map(Vec::len).sum::<usize>() + room.len() <= MOST_ROOM {
            rooms.push(room);
        }
    });
}

impl<'a> Survey<'a> {
    pub(crate) fn new(
        kernel: &'a dyn Kernel,
        cascades: Vec<Cascade<'a>>,
        k: usize,
        is_long: bool,
    ) -> Self {
        let answer = |cascade| Answer { cascade, uppers: take_room(), promising: Promising::of(k) };
        let answers = cascades.into_iter().map(answer).collect();
        Self { kernel, answers, pieces: Vec::new(), is_long, bounds: 0 }
    }

    /// Bound a segment's rows in play by their shortest codes.
    pub(crate) fn look_over(&mut self, here: Here<'a>, allowed: Option<&SegmentRows>) {
        let count = allowed.map_or(here.view.live_count(), |rows| rows.count);
        if count == 0 {
            return;
        }
        let rows = match allowed {
            Some(rows) if rows.count * SPARSE_SHARE < here.view.len => {
                Rows::Listed(rows_in_play(here.view, allowed).map(|row| row as u32).collect())
            }
            _ => Rows::InOrder(words_in_play(here.view, allowed).collect()),
        };
        let stage = self.first_stage(here.view);
        let piece = Piece { here, stage, first: self.bounds, rows, count };
        self.bounds += piece.rows.bounds();
        for answer in &mut self.answers {
            // What an earlier search left there is never read: only rows in play are.
            if answer.uppers.len() < self.bounds {
                answer.uppers.resize(self.bounds, 0.0);
            }
        }
        match &piece.rows {
            Rows::InOrder(words) => self.look_over_blocks(&piece, words),
            Rows::Listed(rows) => {
                for answer in &mut self.answers {
                    answer.look_over_listed(self.kernel, &piece, rows);
                }
            }
        }
        self.pieces.push(piece);
    }

    fn first_stage(&self, view: &SegmentView) -> Stage {
        match (self.is_long, &view.sketch) {
            (true, Some(_)) => Stage::Sketch,
            (true, None) => Stage::Nibbles,
            (false, _) => Stage::Bytes,
        }
    }

    fn look_over_blocks(&mut self, piece: &Piece<'a>, words: &[u64]) {
        let is_alone = |answer: &Answer<'_>| answer.cascade.probes.len() == 1;
        let is_many = (LEAST_MANY..=EIGHT).contains(&self.answers.len())
            && self.answers.iter().all(is_alone)
            && piece.here.priors.is_none();
        for_each_run(words, |run| {
            if is_many {
                self.look_over_run_for_many(piece, run);
            } else {
                for answer in &mut self.answers {
                    answer.look_over_run(self.kernel, piece, run);
                }
            }
        });
    }

    fn look_over_run_for_many(&mut self, piece: &Piece<'a>, run: &Run) {
        let limit = |at: usize| {
            let answer = &self.answers[at];
            answer.limit(&answer.cascade.probes[0], piece.stage, &piece.here)
        };
        let limits = EightLimits::of(self.answers.len(), limit);
        let rows = piece.stage.rows(piece.here.view);
        let mut uppers = [[0.0; CHUNK]; EIGHT];
        let masks = self.kernel.bound_many(rows, run.blocks(), &limits, &mut uppers);
        for ((answer, uppers), mask) in self.answers.iter_mut().zip(&uppers).zip(masks) {
            answer.note(piece, run, uppers, mask & run.wanted);
        }
    }

    /// Take the rows on from stage to stage, the most promising ones first.
    pub(crate) fn resolve(mut self) -> Vec<Cascade<'a>> {
        let mut positions = Vec::new();
        let (kernel, pieces) = (self.kernel, &self.pieces);
        for answer in &mut self.answers {
            let promising = answer.take_promising(pieces);
            for piece in pieces {
                let from = promising.partition_point(|place| *place < piece.first);
                let to = promising.partition_point(|place| piece.ends_after(*place));
                answer.resolve(kernel, piece, &promising[from..to], &mut positions);
            }
        }
        let finish = |answer: Answer<'a>| {
            leave_room(answer.uppers);
            answer.cascade
        };
        self.answers.into_iter().map(finish).collect()
    }
}

impl<'a> Answer<'a> {
    /// What a row's bound must reach to be among the most promising; its bits decide nothing else.
    fn limit<'b>(&self, probe: &'b Probe, stage: Stage, here: &Here<'b>) -> Limit<'b>
    where
        'a: 'b,
    {
        self.cascade.limit(probe, stage, here).raised_to(self.promising.floor)
    }

    fn look_over_run(&mut self, kernel: &dyn Kernel, piece: &Piece<'a>, run: &Run) {
        let mut uppers = [0.0; CHUNK];
        let bound = |limit: &Limit<'_>, uppers: &mut Uppers| {
            kernel.bound(piece.stage.rows(piece.here.view), run.blocks(), limit, uppers)
        };
        let mask = self.bound_by_all(piece, piece.stage, bound, &mut uppers);
        self.note(piece, run, &uppers, mask & run.wanted);
    }

    /// Bound rows for each probe; the largest bound counts.
    fn bound_by_all(
        &self,
        piece: &Piece<'a>,
        stage: Stage,
        bound: impl Fn(&Limit<'_>, &mut Uppers) -> u64,
        uppers: &mut Uppers,
    ) -> u64 {
        let limit = |probe| self.limit(probe, stage, &piece.here);
        let (first, others) = self.cascade.probes.split_first().expect("an answer has a probe");
        let mut mask = bound(&limit(first), uppers);
        for probe in others {
            let mut next = [0.0; CHUNK];
            mask |= bound(&limit(probe), &mut next);
            uppers.iter_mut().zip(next).for_each(|(upper, next)| *upper = upper.max(next));
        }
        mask
    }

    /// Keep the bounds of a run, and its most promising rows.
    fn note(&mut self, piece: &Piece<'a>, run: &Run, uppers: &Uppers, mask: u64) {
        self.store(piece, run, uppers);
        for bit in set_bits(mask) {
            let place = piece.first + row_of_bit(run.blocks(), bit) as usize;
            self.promising.offer(uppers[bit], place);
        }
    }

    fn store(&mut self, piece: &Piece<'a>, run: &Run, uppers: &Uppers) {
        for (block, eight) in run.blocks().iter().zip(uppers.as_chunks::<EIGHT>().0) {
            let first = piece.first + *block as usize * EIGHT;
            self.uppers[first..first + EIGHT].copy_from_slice(eight);
        }
    }

    fn look_over_listed(&mut self, kernel: &dyn Kernel, piece: &Piece<'a>, rows: &[u32]) {
        for (at, listed) in rows.chunks(CHUNK).enumerate() {
            let position = at * CHUNK;
            let ahead = &rows[position + listed.len()..];
            let mut uppers = [0.0; CHUNK];
            let bound = |limit: &Limit<'_>, uppers: &mut Uppers| {
                let rows = piece.stage.rows(piece.here.view);
                kernel.bound_listed(rows, listed, ahead, limit, uppers)
            };
            let mask = self.bound_by_all(piece, piece.stage, bound, &mut uppers);
            let first = piece.first + position;
            self.uppers[first..first + listed.len()].copy_from_slice(&uppers[..listed.len()]);
            for bit in set_bits(mask) {
                self.promising.offer(uppers[bit], first + bit);
            }
        }
    }

    /// Take the most promising rows on to the end; returns their places.
    fn take_promising(&mut self, pieces: &[Piece<'a>]) -> Vec<usize> {
        let places = self.promising.take();
        let mut rest = places.as_slice();
        for piece in pieces {
            let (of_piece, others) =
                rest.split_at(rest.partition_point(|at| piece.ends_after(*at)));
            for place in of_piece {
                if let Some(row) = piece.rows.row((place - piece.first) as u32) {
                    self.cascade.keep(&piece.here, piece.stage, row);
                }
            }
            self.cascade.settle(&piece.here, 1);
            rest = others;
        }
        places
    }

    /// Take on the rows of a piece that may still be among the best; `done` ones have been.
    fn resolve(
        &mut self,
        kernel: &dyn Kernel,
        piece: &Piece<'a>,
        done: &[usize],
        positions: &mut Vec<u32>,
    ) {
        let mut stage = piece.stage;
        loop {
            self.cascade.look_at_others();
            let least = self.cascade.least_upper(stage, &piece.here);
            let uppers = &mut self.uppers[piece.first..][..piece.rows.bounds()];
            for place in done {
                uppers[place - piece.first] = DONE;
            }
            positions.clear();
            kernel.positions_reaching(uppers, least, positions);
            let Some(next) = stage.next() else { break };
            let Rows::InOrder(words) = &piece.rows else { break };
            if positions.len().saturating_mul(most_going_on(stage)) <= piece.count {
                break;
            }
            self.bound_again(kernel, piece, words, next);
            stage = next;
        }
        self.take(piece, stage, positions);
    }

    /// Bound all rows of a piece once more, by longer codes.
    fn bound_again(&mut self, kernel: &dyn Kernel, piece: &Piece<'a>, words: &[u64], stage: Stage) {
        let rows = stage.rows(piece.here.view);
        for_each_run(words, |run| {
            let mut uppers = [0.0; CHUNK];
            let bound = |limit: &Limit<'_>, uppers: &mut Uppers| {
                kernel.bound(rows, run.blocks(), limit, uppers)
            };
            self.bound_by_all(piece, stage, bound, &mut uppers);
            self.store(piece, run, &uppers);
        });
    }

    fn take(&mut self, piece: &Piece<'a>, stage: Stage, positions: &[u32]) {
        for positions in positions.chunks(EIGHT) {
            let least = self.cascade.least_upper(stage, &piece.here);
            for position in positions {
                if let Some(row) = piece.rows.row(*position)
                    && self.uppers[piece.first + *position as usize] >= least
                {
                    self.cascade.keep(&piece.here, stage, row);
                }
            }
            self.cascade.settle_full(&piece.here);
        }
        self.cascade.settle(&piece.here, 1);
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

/// Call `take` for runs of the blocks that have rows in play.
fn for_each_run(words: &[u64], mut take: impl FnMut(&Run)) {
    let mut run = Run::default();
    for block in in_streams(words.len() * EIGHT) {
        let wanted = words[block / EIGHT] >> (block % EIGHT * EIGHT) & 0xff;
        if wanted == 0 {
            continue;
        }
        run.push(block as u32, wanted);
        if run.count == EIGHT {
            take(&run);
            run = Run::default();
        }
    }
    if run.count > 0 {
        take(&run);
    }
}

/// The numbers below `count`, from [`STREAMS`] places by turns.
fn in_streams(count: usize) -> impl Iterator<Item = usize> {
    let each = count / STREAMS;
    let streamed = (0..each).flat_map(move |at| (0..STREAMS).map(move |stream| stream * each + at));
    streamed.chain(each * STREAMS..count)
}

/// The masks of rows in play, one for every 64 rows.
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
