//! Exact top-k over a snapshot: certified bounds rule rows out, float64 scores decide.
//!
//! A long scan reads 4 bits a component. Rows whose upper bound reaches the k-th best lower bound so
//! far wait a moment for their bytes, are bounded again, and raise that lower bound; a short scan
//! starts with the bytes. The few rows that remain at the end are scored from their float32 values.

use crate::index::{Snapshot, VectorRows};
use crate::quant::{QueryCodes, rounded_down, row_stride};
use crate::segment::{SegmentView, set_bits};
use crate::selection::{SegmentRows, SelectedRows};
use crate::simd::{CHUNK, CodedRows, Depth, Kernel, Limit};
use crate::top_k::{Hit, KthLargest, TopK};

/// Up to this many rows scoring all of them beats bounding them first (`docs/kernel.md`).
const SCORE_ALL_ROWS: usize = 48;

/// Where k takes more than this share of the rows, bounds rule out too little to pay.
const SCORE_ALL_SHARE: usize = 4;

/// Segments with fewer than one selected row in this many are read row by row.
const SPARSE_SHARE: usize = 6;

/// Scans of fewer components start with the bytes: where those are in the cache, reading half of
/// them saves nothing.
const COARSE_COMPONENTS: usize = 2_000_000;

/// Rows that wait for their bytes; enough to hide the fetch, few enough to raise the
/// threshold early.
const PENDING_ROWS: usize = 16;

/// Rows scanned at a time until there is a threshold, which every one of them would reach.
const FIRST_ROWS: usize = 16;

/// Runs bounded by their bytes at once after one in which the nibbles ruled out too little.
const UNHELPFUL_RUNS: usize = 3;

/// Nibbles rule out too little where more than one row in this many reaches the threshold.
const UNHELPFUL_SHARE: usize = 3;

/// Float32 rows fetched ahead of the one being scored.
const SCORE_AHEAD: usize = 3;

/// What to look for.
pub(crate) struct Wanted<'a> {
    pub(crate) query: &'a [f32],
    pub(crate) k: usize,
    pub(crate) min_score: f64,
}

/// The best rows, best first; ties go to the smaller id.
pub(crate) fn search(
    kernel: &dyn Kernel,
    snapshot: &Snapshot,
    allowed: Option<&SelectedRows>,
    wanted: &Wanted<'_>,
) -> Vec<Hit> {
    let vectors = &snapshot.vectors;
    let rows = allowed.map_or(vectors.places.len(), SelectedRows::count);
    let k = wanted.k.min(rows);
    if k == 0 {
        return Vec::new();
    }
    let scorer = Scorer::new(kernel, wanted, k);
    if rows <= SCORE_ALL_ROWS || k >= rows / SCORE_ALL_SHARE {
        return score_all(scorer, vectors, allowed);
    }
    let codes = kernel.query_codes(wanted.query);
    let mut cascade = Cascade::new(kernel, vectors, &codes, k, wanted.min_score);
    cascade.is_long = rows * wanted.query.len() >= COARSE_COMPONENTS;
    for (position, view) in vectors.segments.iter().enumerate() {
        cascade.scan(position, view, allowed.map(|rows| rows.segment(position)));
    }
    cascade.finish(scorer)
}

/// Scores rows in float64 and keeps the best.
struct Scorer<'a> {
    kernel: &'a dyn Kernel,
    query: Box<[f64]>,
    min_score: f64,
    best: TopK,
}

impl<'a> Scorer<'a> {
    fn new(kernel: &'a dyn Kernel, wanted: &Wanted<'_>, k: usize) -> Self {
        let mut query = vec![0.0; row_stride(wanted.query.len())];
        query.iter_mut().zip(wanted.query).for_each(|(wide, value)| *wide = f64::from(*value));
        Self { kernel, query: query.into(), min_score: wanted.min_score, best: TopK::new(k) }
    }

    fn offer(&mut self, view: &SegmentView, row: usize) {
        let score = self.kernel.dot(view.segment.vector(row), &self.query);
        if score >= self.min_score {
            self.best.offer(Hit { score, id: view.segment.ids()[row] });
        }
    }
}

/// The masks of rows in play, chunk by chunk: number of rows, live and allowed ones.
fn words_in_play(
    view: &SegmentView,
    allowed: Option<&SegmentRows>,
) -> impl Iterator<Item = (usize, u64)> {
    view.live_words()
        .enumerate()
        .map(move |(at, (count, live))| (count, allowed.map_or(live, |rows| live & rows.words[at])))
}

fn rows_in_play(view: &SegmentView, allowed: Option<&SegmentRows>) -> impl Iterator<Item = usize> {
    words_in_play(view, allowed)
        .enumerate()
        .flat_map(|(at, (_, word))| set_bits(word).map(move |bit| at * CHUNK + bit))
}

fn score_all(
    mut scorer: Scorer<'_>,
    vectors: &VectorRows,
    allowed: Option<&SelectedRows>,
) -> Vec<Hit> {
    for (position, view) in vectors.segments.iter().enumerate() {
        let allowed = allowed.map(|rows| rows.segment(position));
        if allowed.is_some_and(|rows| rows.count == 0) {
            continue;
        }
        for row in rows_in_play(view, allowed) {
            scorer.offer(view, row);
        }
    }
    scorer.best.into_sorted()
}

/// A row that may be among the best.
struct Candidate {
    upper: f64,
    segment: u32,
    row: u32,
}

/// The state of one bounded scan. Bounds are compared in the query's own power of two.
struct Cascade<'a> {
    kernel: &'a dyn Kernel,
    vectors: &'a VectorRows,
    query: &'a QueryCodes,
    /// The k-th largest lower bound: k rows certainly score at least this.
    floor: KthLargest,
    threshold: f64,
    candidates: Vec<Candidate>,
    /// Whether the scan is long enough for nibbles.
    is_long: bool,
    /// Runs for which nibbles are not looked at.
    unhelpful_runs: usize,
    /// Rows of the segment at hand that reach the threshold by their nibbles.
    pending: Vec<u32>,
    listed: Vec<u32>,
}

impl<'a> Cascade<'a> {
    fn new(
        kernel: &'a dyn Kernel,
        vectors: &'a VectorRows,
        query: &'a QueryCodes,
        k: usize,
        min_score: f64,
    ) -> Self {
        Self {
            kernel,
            vectors,
            query,
            floor: KthLargest::new(k),
            threshold: (min_score * query.power).next_down(),
            candidates: Vec::with_capacity(256),
            is_long: false,
            unhelpful_runs: 0,
            pending: Vec::with_capacity(PENDING_ROWS + CHUNK),
            listed: Vec::new(),
        }
    }

    fn scan(&mut self, position: usize, view: &SegmentView, allowed: Option<&SegmentRows>) {
        match allowed {
            Some(rows) if rows.count == 0 => {}
            Some(rows) if rows.count * SPARSE_SHARE < view.len => {
                self.scan_listed(position, view, rows);
            }
            _ => self.scan_run(position, view, allowed),
        }
    }

    fn scan_run(&mut self, position: usize, view: &SegmentView, allowed: Option<&SegmentRows>) {
        let coded = view.segment.coded();
        for (at, (count, word)) in words_in_play(view, allowed).enumerate() {
            let step = self.rows_at_once();
            for from in (0..count).step_by(step) {
                let here = step.min(count - from);
                let wanted = (word >> from) & (u64::MAX >> (CHUNK - here));
                if wanted != 0 {
                    self.scan_rows(position, &coded, at * CHUNK + from, here, wanted);
                }
            }
        }
        self.bound_pending(position, &coded, 1);
    }

    /// Bound the `wanted` ones of a run of rows by their nibbles; or by their bytes, in short scans and
    /// for a while after nibbles ruled out too little.
    fn scan_rows(
        &mut self,
        position: usize,
        coded: &CodedRows<'_>,
        first: usize,
        count: usize,
        wanted: u64,
    ) {
        let depth = self.next_depth();
        let mask = self.kernel.reaching(coded, first, count, &self.limit(depth));
        self.note_helpfulness(depth, mask, count);
        for bit in set_bits(mask & wanted) {
            self.keep(position, coded, (first + bit) as u32, depth);
        }
        self.bound_pending(position, coded, PENDING_ROWS);
    }

    fn next_depth(&mut self) -> Depth {
        if self.is_long && self.unhelpful_runs == 0 {
            return Depth::Coarse;
        }
        self.unhelpful_runs = self.unhelpful_runs.saturating_sub(1);
        Depth::Full
    }

    fn note_helpfulness(&mut self, depth: Depth, mask: u64, count: usize) {
        if depth == Depth::Coarse && mask.count_ones() as usize * UNHELPFUL_SHARE > count {
            self.unhelpful_runs = UNHELPFUL_RUNS;
        }
    }

    /// Take a row one step further than `depth`.
    fn keep(&mut self, position: usize, coded: &CodedRows<'_>, row: u32, depth: Depth) {
        match depth {
            Depth::Coarse => {
                self.kernel.prefetch(coded.byte_row(row as usize));
                self.pending.push(row);
            }
            Depth::Full => self.consider(position, coded, row),
        }
    }

    fn limit(&self, depth: Depth) -> Limit<'a> {
        Limit::new(depth, self.query, rounded_down(self.threshold))
    }

    fn scan_listed(&mut self, position: usize, view: &SegmentView, allowed: &SegmentRows) {
        let coded = view.segment.coded();
        let mut listed = std::mem::take(&mut self.listed);
        listed.clear();
        listed.extend(rows_in_play(view, Some(allowed)).map(|row| row as u32));
        let mut rest = listed.as_slice();
        while !rest.is_empty() {
            let (here, ahead) = rest.split_at(self.rows_at_once().min(rest.len()));
            self.bound_listed(position, &coded, here, ahead);
            rest = ahead;
        }
        self.bound_pending(position, &coded, 1);
        self.listed = listed;
    }

    /// As [`Cascade::scan_rows`], for rows named by number.
    fn bound_listed(
        &mut self,
        position: usize,
        coded: &CodedRows<'_>,
        listed: &[u32],
        ahead: &[u32],
    ) {
        let depth = self.next_depth();
        let mask = self.kernel.reaching_listed(coded, listed, ahead, &self.limit(depth));
        self.note_helpfulness(depth, mask, listed.len());
        for bit in set_bits(mask) {
            self.keep(position, coded, listed[bit], depth);
        }
        self.bound_pending(position, coded, PENDING_ROWS);
    }

    fn rows_at_once(&self) -> usize {
        if self.threshold == f64::NEG_INFINITY { FIRST_ROWS } else { CHUNK }
    }

    /// Bound the pending rows by their bytes, once there are `enough` of them. A row stays if
    /// it may still be among the best.
    fn bound_pending(&mut self, position: usize, coded: &CodedRows<'_>, enough: usize) {
        if self.pending.len() < enough {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        for listed in pending.chunks(CHUNK) {
            let limit = self.limit(Depth::Full);
            let mask = self.kernel.reaching_listed(coded, listed, &[], &limit);
            for bit in set_bits(mask) {
                self.consider(position, coded, listed[bit]);
            }
        }
        self.pending = pending;
        self.pending.clear();
    }

    /// Bound a row by everything but its float32 values.
    fn consider(&mut self, position: usize, coded: &CodedRows<'_>, row: u32) {
        let sum = self.kernel.code_sum(coded.byte_row(row as usize), self.query);
        let (lower, upper) = self.query.range(coded.bounds[row as usize], sum);
        if upper < self.threshold {
            return;
        }
        self.candidates.push(Candidate { upper, segment: position as u32, row });
        if let Some(floor) = self.floor.offer(lower) {
            self.threshold = self.threshold.max(floor);
        }
    }

    /// Score what may be among the best, the most promising first, until nothing else can be.
    fn finish(mut self, mut scorer: Scorer<'_>) -> Vec<Hit> {
        let threshold = self.threshold;
        self.candidates.retain(|candidate| candidate.upper >= threshold);
        self.candidates.sort_unstable_by(|one, other| other.upper.total_cmp(&one.upper));
        for (at, candidate) in self.candidates.iter().enumerate() {
            if candidate.upper < scorer.best.floor() * self.query.power {
                break;
            }
            if let Some(next) = self.candidates.get(at + SCORE_AHEAD) {
                let segment = &self.vectors.segments[next.segment as usize].segment;
                self.kernel.prefetch(bytemuck::cast_slice(segment.vector(next.row as usize)));
            }
            let view = &self.vectors.segments[candidate.segment as usize];
            scorer.offer(view, candidate.row as usize);
        }
        scorer.best.into_sorted()
    }
}
