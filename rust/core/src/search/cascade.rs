//! The cascade of bounds of one answer: rows pass from stage to stage until few are left to score.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::bits::set_bits;
use crate::deadline::{Deadline, SOME_ROWS};
use crate::quantization::kernel::{EIGHT, Kernel, Limit, Prior, TILE_ROWS, Tile, Uppers};
use crate::quantization::scalar::rounded_down;
use crate::search::prepared_query::{PreparedQuery, Stage};
use crate::search::prior::PriorRows;
use crate::search::top_k::{Hit, KthLargest, TopK};
use crate::storage::segment::SegmentView;
use crate::storage::snapshot_store::VectorRows;

/// From this many queries on, bounding one row for eight of them at once pays.
pub(crate) const MIN_MANY: usize = 3;

/// Rows of a list that are fetched before the first of them is bounded.
const FIRST_FETCHED: usize = 16;

/// If more than one row in this many passes a stage, the next one reads blocks of rows in order
/// instead of single rows.
const fn max_going_on(stage: Stage) -> usize {
    match stage {
        Stage::Sketch => 8,
        Stage::Nibbles => 3,
        Stage::Bytes => usize::MAX,
    }
}

/// Float32 rows fetched ahead of the one being scored.
const SCORE_AHEAD: usize = 3;

/// Covers the rounding of thresholds and priors in float32, several times over.
const PRIOR_SLACK: f64 = 1e-6;

/// With smaller weights the units of the bounds would leave the range of float64.
const MIN_WEIGHT: f64 = 1e-30;

/// With smaller units priors would lose digits in float32, whose smallest normal number is 1.2e-38.
const MIN_UNITS: f64 = 1e-30;

/// Where a prior in the units of the bounds would pass this, bounds are not used.
const MAX_PRIOR: f64 = 1e30;

/// Space for the bounds of a tile's rows for eight queries.
pub(crate) const NO_UPPERS: [Uppers; EIGHT] = [[0.0; TILE_ROWS]; EIGHT];

/// How inner products become scores: `weight·product + prior`, in float64.
#[derive(Clone, Copy)]
pub(crate) struct Formula<'a> {
    pub(crate) weight: f64,
    pub(crate) prior: Option<&'a PriorRows>,
}

impl<'a> Formula<'a> {
    /// Rounding is monotone, so bounds of the product are bounds of the score.
    fn score(&self, product: f64, prior: Option<&[f32]>, row: usize) -> f64 {
        let weighted = self.weight * product;
        // Adding zero turns minus zero into zero, with which it ties.
        prior.map_or(weighted, |values| weighted + f64::from(values[row])) + 0.0
    }

    pub(crate) fn priors(&self, position: usize) -> Option<&'a [f32]> {
        self.prior.map(|prior| prior.segment(position))
    }

    /// Whether bounds in float32 can carry this formula for a query.
    pub(crate) fn is_boundable(&self, prepared: &PreparedQuery) -> bool {
        let carries = |prior: &PriorRows| {
            let units = self.units(prepared);
            units > MIN_UNITS && f64::from(prior.max).max(1.0) * units < MAX_PRIOR
        };
        self.weight >= MIN_WEIGHT && self.prior.is_none_or(carries)
    }

    /// The limit at `stage` of scores of at least `threshold`.
    pub(crate) fn limit<'b>(
        &self,
        prepared: &'b PreparedQuery,
        stage: Stage,
        scanned: &ScannedSegment<'b>,
        threshold: f64,
    ) -> Limit<'b> {
        self.signed_limit(prepared, stage, scanned, threshold, 1.0)
    }

    /// The limit at `stage` of scores of at most `threshold`; `prepared` is the negated query.
    pub(crate) fn negated_limit<'b>(
        &self,
        prepared: &'b PreparedQuery,
        stage: Stage,
        scanned: &ScannedSegment<'b>,
        threshold: f64,
    ) -> Limit<'b> {
        self.signed_limit(prepared, stage, scanned, -threshold, -1.0)
    }

    fn signed_limit<'b>(
        &self,
        prepared: &'b PreparedQuery,
        stage: Stage,
        scanned: &ScannedSegment<'b>,
        threshold: f64,
        sign: f64,
    ) -> Limit<'b> {
        let units = self.units(prepared);
        let mut scaled = threshold * units;
        let prior = scanned.priors.map(|values| {
            let max = self.prior.map_or(0.0, |prior| f64::from(prior.max));
            if threshold.is_finite() {
                scaled -= PRIOR_SLACK * (threshold.abs() + max) * units;
            }
            Prior { values, factor: (sign * units) as f32 }
        });
        let rows = stage.rows(scanned.view);
        Limit::new(rows.packing, prepared.plane(stage), rounded_down(scaled), prior)
    }

    /// Scores times this are in the units of the query's bounds.
    fn units(&self, prepared: &PreparedQuery) -> f64 {
        prepared.codes().power / self.weight
    }
}

/// The segment at hand.
#[derive(Clone, Copy)]
pub(crate) struct ScannedSegment<'a> {
    pub(crate) position: usize,
    pub(crate) view: &'a SegmentView,
    pub(crate) priors: Option<&'a [f32]>,
}

/// The highest threshold of several scans of the same rows.
pub(crate) struct SharedThreshold(AtomicU64);

impl Default for SharedThreshold {
    fn default() -> Self {
        Self(AtomicU64::new(f64::NEG_INFINITY.to_bits()))
    }
}

impl SharedThreshold {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn raise(&self, value: f64) {
        let higher = |bits: u64| (f64::from_bits(bits) < value).then_some(value.to_bits());
        // A failure means that it is as high already.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, higher);
    }
}

/// A row that may be among the best.
#[derive(Clone, Copy)]
struct Candidate {
    upper: f64,
    segment: u32,
    row: u32,
}

/// The result of a scan of some segments.
pub(crate) struct ScanResult {
    threshold: f64,
    candidates: Vec<Candidate>,
}

/// The rows that may be an answer to some queries, of which the best counts.
pub(crate) struct Cascade<'a> {
    kernel: &'a dyn Kernel,
    pub(crate) prepared_queries: &'a [PreparedQuery],
    formula: Formula<'a>,
    /// The k-th largest lower bound: k rows certainly score at least this.
    floor: KthLargest,
    pub(crate) threshold: f64,
    shared: Option<&'a SharedThreshold>,
    candidates: Vec<Candidate>,
}

impl<'a> Cascade<'a> {
    pub(crate) fn new(
        kernel: &'a dyn Kernel,
        prepared_queries: &'a [PreparedQuery],
        formula: Formula<'a>,
        k: usize,
        min_score: f64,
        shared: Option<&'a SharedThreshold>,
    ) -> Self {
        Self {
            kernel,
            prepared_queries,
            formula,
            floor: KthLargest::new(k),
            threshold: min_score,
            shared,
            candidates: Vec::with_capacity(256),
        }
    }

    /// The limit at `stage` of rows that are near enough to a query.
    pub(crate) fn limit<'b>(
        &self,
        prepared: &'b PreparedQuery,
        stage: Stage,
        scanned: &ScannedSegment<'b>,
    ) -> Limit<'b>
    where
        'a: 'b,
    {
        self.formula.limit(prepared, stage, scanned, self.threshold)
    }

    /// The smallest upper bound at `stage` of a row that may be among the best, for every query of
    /// an answer.
    pub(crate) fn min_upper(&self, stage: Stage, scanned: &ScannedSegment<'_>) -> f32 {
        self.limit(&self.prepared_queries[0], stage, scanned).threshold()
    }

    /// Bound the rows of a tile for each query; the largest bound counts. Bits are set for rows
    /// that reach the threshold and `floor`. `of_each` is a buffer for the bounds of each query.
    pub(crate) fn bound(
        &self,
        scanned: &ScannedSegment<'_>,
        stage: Stage,
        tile: Tile,
        floor: f32,
        uppers: &mut Uppers,
        of_each: &mut [Uppers; EIGHT],
    ) -> u64 {
        let rows = stage.rows(scanned.view);
        let limit = |prepared| self.limit(prepared, stage, scanned).raised_to(floor);
        if let [prepared] = self.prepared_queries {
            return self.kernel.bound(rows, tile, &limit(prepared), uppers);
        }
        uppers.fill(f32::NEG_INFINITY);
        self.prepared_queries.chunks(EIGHT).fold(0, |mask, prepared_queries| {
            let limits: [_; EIGHT] = std::array::from_fn(|at| {
                limit(&prepared_queries[at.min(prepared_queries.len() - 1)])
            });
            let limits = &limits[..prepared_queries.len()];
            let masks = if limits.len() < MIN_MANY {
                let alone = limits.iter().zip(of_each.iter_mut());
                alone.fold(0, |mask, (limit, uppers)| {
                    mask | self.kernel.bound(rows, tile, limit, uppers)
                })
            } else {
                let masks = self.kernel.bound_many(rows, tile, limits, of_each);
                masks.into_iter().fold(0, |all, mask| all | mask)
            };
            of_each[..limits.len()].iter().for_each(|next| raise(uppers, next));
            mask | masks
        })
    }

    /// As [`Cascade::bound`] for the first rows of a list.
    pub(crate) fn bound_listed(
        &self,
        scanned: &ScannedSegment<'_>,
        stage: Stage,
        listed: &[u32],
        floor: f32,
        uppers: &mut Uppers,
    ) -> u64 {
        uppers.fill(f32::NEG_INFINITY);
        self.prepared_queries.iter().fold(0, |mask, prepared| {
            let limit = self.limit(prepared, stage, scanned).raised_to(floor);
            let mut next = [f32::NEG_INFINITY; TILE_ROWS];
            let rows = stage.rows(scanned.view);
            let reaching = self.kernel.bound_listed(rows, listed, &limit, &mut next);
            raise(uppers, &next);
            mask | reaching
        })
    }

    /// Take rows that reach the threshold at `stage` on to the end, as far as they go on reaching it.
    pub(crate) fn take(&mut self, scanned: &ScannedSegment<'_>, stage: Stage, mut rows: Vec<u32>) {
        let mut at = stage;
        while let Some(next) = at.next() {
            self.adopt_threshold();
            let is_dense = rows.len().saturating_mul(max_going_on(at)) > scanned.view.len;
            rows = if is_dense {
                self.reaching_in_order(scanned, next, &rows)
            } else {
                self.reaching(scanned, next, &rows)
            };
            at = next;
        }
        for row in rows {
            self.consider(scanned, row);
        }
    }

    /// Which of the listed rows reach the threshold at a stage.
    fn reaching(&self, scanned: &ScannedSegment<'_>, stage: Stage, listed: &[u32]) -> Vec<u32> {
        for row in listed.iter().take(FIRST_FETCHED) {
            self.kernel.prefetch_row(stage.rows(scanned.view), *row as usize);
        }
        let mut reaching = Vec::new();
        for first in (0..listed.len()).step_by(TILE_ROWS) {
            let listed = &listed[first..];
            let mut uppers = [0.0; TILE_ROWS];
            let mask = self.bound_listed(scanned, stage, listed, f32::NEG_INFINITY, &mut uppers);
            reaching.extend(set_bits(mask).map(|bit| listed[bit]));
        }
        reaching
    }

    /// As [`Cascade::reaching`], reading whole blocks in their order.
    fn reaching_in_order(
        &self,
        scanned: &ScannedSegment<'_>,
        stage: Stage,
        rows: &[u32],
    ) -> Vec<u32> {
        let mut words = vec![0_u64; scanned.view.len.div_ceil(TILE_ROWS)];
        for row in rows {
            words[*row as usize / TILE_ROWS] |= 1 << (*row as usize % TILE_ROWS);
        }
        let mut reaching = Vec::new();
        let (mut uppers, mut of_each) = ([0.0; TILE_ROWS], NO_UPPERS);
        for tile in tiles_of(&words) {
            let floor = f32::NEG_INFINITY;
            let mask = self.bound(scanned, stage, tile, floor, &mut uppers, &mut of_each);
            reaching.extend(set_bits(mask).map(|bit| (tile.number * TILE_ROWS + bit) as u32));
        }
        reaching
    }

    /// Take over a higher threshold that another scan has found.
    pub(crate) fn adopt_threshold(&mut self) {
        if let Some(shared) = self.shared {
            self.threshold = self.threshold.max(shared.get());
        }
    }

    /// Bound a row by everything but its float32 values.
    fn consider(&mut self, scanned: &ScannedSegment<'_>, row: u32) {
        let (mut lower, mut upper) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for prepared in self.prepared_queries {
            let range = self.product_range(scanned, prepared, row as usize);
            lower = lower.max(range.0);
            upper = upper.max(range.1);
        }
        let score = |product| self.formula.score(product, scanned.priors, row as usize);
        let (lower, upper) = (score(lower), score(upper));
        if upper < self.threshold {
            return;
        }
        self.candidates.push(Candidate { upper, segment: scanned.position as u32, row });
        if let Some(floor) = self.floor.offer(lower) {
            self.raise(floor);
        }
    }

    fn product_range(
        &self,
        scanned: &ScannedSegment<'_>,
        prepared: &PreparedQuery,
        row: usize,
    ) -> (f64, f64) {
        let rows = &scanned.view.segment.bytes;
        let sum = self.kernel.code_sum(rows.row(row), prepared.codes());
        let (lower, upper) = prepared.codes().range(rows.bounds()[row], sum);
        (lower / prepared.codes().power, upper / prepared.codes().power)
    }

    fn raise(&mut self, floor: f64) {
        if floor > self.threshold {
            self.threshold = floor;
            if let Some(shared) = self.shared {
                shared.raise(floor);
            }
        }
    }

    /// The threshold for other scans of the same search.
    pub(crate) fn scan_result(self) -> ScanResult {
        ScanResult { threshold: self.threshold, candidates: self.candidates }
    }

    /// Merge the result of another scan of the same search.
    pub(crate) fn absorb(&mut self, other: ScanResult) {
        self.threshold = self.threshold.max(other.threshold);
        self.candidates.extend(other.candidates);
    }

    /// Score rows that may be among the best, by descending bound, until no other can be, or until
    /// the first of them are scored after the deadline.
    pub(crate) fn finish(
        mut self,
        vectors: &VectorRows,
        mut scorer: Scorer<'_>,
        deadline: &Deadline,
    ) -> Vec<Hit> {
        self.adopt_threshold();
        let threshold = self.threshold;
        self.candidates.retain(|candidate| candidate.upper >= threshold);
        self.candidates.sort_unstable_by(|one, other| other.upper.total_cmp(&one.upper));
        for (at, candidate) in self.candidates.iter().enumerate() {
            let is_late = at > 0 && at.is_multiple_of(SOME_ROWS) && deadline.is_past();
            if is_late || candidate.upper < scorer.best.floor() {
                break;
            }
            if let Some(next) = self.candidates.get(at + SCORE_AHEAD) {
                let segment = &vectors.segments[next.segment as usize].segment;
                self.kernel.prefetch(segment.vector_lines(next.row as usize));
            }
            let position = candidate.segment as usize;
            let priors = self.formula.priors(position);
            let view = &vectors.segments[position];
            scorer.offer(&ScannedSegment { position, view, priors }, candidate.row as usize);
        }
        scorer.best.into_sorted()
    }
}

/// Take the larger of two bounds, row by row.
fn raise(uppers: &mut Uppers, others: &Uppers) {
    uppers.iter_mut().zip(others).for_each(|(upper, other)| *upper = upper.max(*other));
}

/// The tiles in which rows are wanted, by masks of all of them.
pub(crate) fn tiles_of(words: &[u64]) -> impl Iterator<Item = Tile> {
    let chunks = words.iter().enumerate().map(|(number, wanted)| Tile { number, wanted: *wanted });
    chunks.filter(|tile| tile.wanted != 0)
}

/// Scores rows in float64 and keeps the best.
pub(crate) struct Scorer<'a> {
    kernel: &'a dyn Kernel,
    prepared_queries: &'a [PreparedQuery],
    formula: Formula<'a>,
    min_score: f64,
    best: TopK,
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(
        kernel: &'a dyn Kernel,
        prepared_queries: &'a [PreparedQuery],
        formula: Formula<'a>,
        k: usize,
        min_score: f64,
    ) -> Self {
        Self { kernel, prepared_queries, formula, min_score, best: TopK::new(k) }
    }

    pub(crate) fn offer(&mut self, scanned: &ScannedSegment<'_>, row: usize) {
        let score = self.score(scanned, row);
        if score >= self.min_score {
            self.best.offer(Hit { score, id: scanned.view.segment.ids()[row] });
        }
    }

    /// The score of the nearest of the queries.
    pub(crate) fn score(&self, scanned: &ScannedSegment<'_>, row: usize) -> f64 {
        let vector = scanned.view.segment.vector(row);
        let products =
            self.prepared_queries.iter().map(|prepared| self.kernel.dot(vector, &prepared.query));
        let product = products.fold(f64::NEG_INFINITY, f64::max);
        self.formula.score(product, scanned.priors, row)
    }

    pub(crate) fn into_sorted(self) -> Vec<Hit> {
        self.best.into_sorted()
    }
}
