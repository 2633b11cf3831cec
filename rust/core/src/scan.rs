//! Exact top-k over a snapshot: certified int8 bounds rule rows out, float64 scores decide.
//!
//! Rows whose upper bound reaches the k-th best lower bound so far are bounded again by both
//! query planes, and the few that remain at the end are scored from their float32 rows.

use crate::index::{Snapshot, VectorRows};
use crate::quant::{QueryCodes, rounded_down, row_stride};
use crate::segment::{SegmentView, set_bits};
use crate::selection::{SegmentRows, SelectedRows};
use crate::simd::{CHUNK, CodedRows, Kernel};
use crate::top_k::{Hit, KthLargest, TopK};

/// Up to this many rows scoring all of them beats bounding them first (`docs/kernel.md`).
const SCORE_ALL_ROWS: usize = 48;

/// Where k takes more than this share of the rows, bounds rule out too little to pay.
const SCORE_ALL_SHARE: usize = 4;

/// Segments with fewer than one selected row in this many are read row by row.
const SPARSE_SHARE: usize = 6;

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
        query
            .iter_mut()
            .zip(wanted.query)
            .for_each(|(wide, value)| *wide = f64::from(*value));
        Self {
            kernel,
            query: query.into(),
            min_score: wanted.min_score,
            best: TopK::new(k),
        }
    }

    fn offer(&mut self, view: &SegmentView, row: usize) {
        let score = self.kernel.dot(view.segment.vector(row), &self.query);
        if score >= self.min_score {
            self.best.offer(Hit {
                score,
                id: view.segment.ids()[row],
            });
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
            if word == 0 {
                continue;
            }
            let first = at * CHUNK;
            let threshold = rounded_down(self.threshold);
            let mask = self
                .kernel
                .reaching(&coded, first, count, self.query, threshold);
            for bit in set_bits(mask & word) {
                self.consider(position, &coded, first + bit);
            }
        }
    }

    fn scan_listed(&mut self, position: usize, view: &SegmentView, allowed: &SegmentRows) {
        let coded = view.segment.coded();
        let mut listed = std::mem::take(&mut self.listed);
        listed.clear();
        listed.extend(rows_in_play(view, Some(allowed)).map(|row| row as u32));
        let mut rest = listed.as_slice();
        while !rest.is_empty() {
            let (here, ahead) = rest.split_at(CHUNK.min(rest.len()));
            let threshold = rounded_down(self.threshold);
            let mask = self
                .kernel
                .reaching_listed(&coded, here, ahead, self.query, threshold);
            for bit in set_bits(mask) {
                self.consider(position, &coded, here[bit] as usize);
            }
            rest = ahead;
        }
        self.listed = listed;
    }

    /// Bound a row by both planes; it stays if it may still be among the best.
    fn consider(&mut self, position: usize, coded: &CodedRows<'_>, row: usize) {
        let (high, low) = self.kernel.plane_sums(coded.row(row), self.query);
        let bound = coded.bound(row);
        let (lower, upper) = self.query.range(bound, high, low);
        if upper < self.threshold {
            return;
        }
        self.candidates.push(Candidate {
            upper,
            segment: position as u32,
            row: row as u32,
        });
        if let Some(floor) = self.floor.offer(lower) {
            self.threshold = self.threshold.max(floor);
        }
    }

    /// Score what may be among the best, the most promising first, until nothing else can be.
    fn finish(mut self, mut scorer: Scorer<'_>) -> Vec<Hit> {
        let threshold = self.threshold;
        self.candidates
            .retain(|candidate| candidate.upper >= threshold);
        self.candidates
            .sort_unstable_by(|one, other| other.upper.total_cmp(&one.upper));
        for (at, candidate) in self.candidates.iter().enumerate() {
            if candidate.upper < scorer.best.floor() * self.query.power {
                break;
            }
            if let Some(next) = self.candidates.get(at + SCORE_AHEAD) {
                let segment = &self.vectors.segments[next.segment as usize].segment;
                self.kernel.prefetch(segment.vector(next.row as usize));
            }
            let view = &self.vectors.segments[candidate.segment as usize];
            scorer.offer(view, candidate.row as usize);
        }
        scorer.best.into_sorted()
    }
}
