//! The cascade of bounds of one answer: rows pass from stage to stage until few are left to score.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::bits::rows_of;
use crate::deadline::{Deadline, SOME_ROWS};
use crate::quantization::kernel::{Kernel, Limit, Rows, TILE_ROWS, Uppers};
use crate::search::formula::{Formula, ScannedSegment, Side};
use crate::search::prepared_query::{PreparedQuery, Stage};
use crate::search::top_k::{Hit, TopK};
use crate::storage::snapshot_store::VectorRows;

/// If more than one row in this many passes a stage, the next one reads blocks of rows in order
/// instead of single rows.
const fn max_going_on(stage: Stage) -> usize {
    match stage {
        Stage::Sketch => 4,
        Stage::Nibbles => 3,
        Stage::Bytes => usize::MAX,
    }
}

/// Rows scored at once, while as many others are fetched.
const AT_ONCE: usize = 4;

/// A row of a segment.
pub(crate) type Place<'a> = (ScannedSegment<'a>, u32);

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

/// A row and its upper bound, in the units of the query.
#[derive(Clone, Copy)]
pub(crate) struct BoundedRow {
    pub(crate) upper: f32,
    pub(crate) row: u32,
}

/// A row that may be among the best.
#[derive(Clone, Copy)]
struct Candidate {
    upper: f32,
    segment: u32,
    row: u32,
}

/// The result of a scan of some segments.
pub(crate) struct ScanResult {
    threshold: f64,
    candidates: Vec<Candidate>,
    hits: Vec<Hit>,
}

/// Buffers of [`Uppers`].
type Bounds = (Vec<f32>, Vec<u64>);

/// The rows that may be an answer to some queries, of which the best counts.
pub(crate) struct Cascade<'a> {
    kernel: &'a dyn Kernel,
    pub(crate) prepared_queries: &'a [PreparedQuery],
    formula: Formula<'a>,
    side: Side,
    /// The k-th best score so far, or the smallest that is wanted.
    threshold: f64,
    shared: Option<&'a SharedThreshold>,
    candidates: Vec<Candidate>,
    scorer: Scorer<'a>,
    /// Buffers: of some rows, and of one query of several.
    bounds: Bounds,
    of_one: Bounds,
}

impl<'a> Cascade<'a> {
    pub(crate) fn new(scorer: Scorer<'a>, shared: Option<&'a SharedThreshold>) -> Self {
        Self {
            kernel: scorer.kernel,
            prepared_queries: scorer.prepared_queries,
            formula: scorer.formula,
            side: Side::Above,
            threshold: scorer.min_score,
            shared,
            candidates: Vec::new(),
            scorer,
            bounds: Bounds::default(),
            of_one: Bounds::default(),
        }
    }

    /// The cascade of rows that may score less than the threshold; its query is negated.
    pub(crate) fn below(scorer: Scorer<'a>) -> Self {
        Self { side: Side::Below, ..Self::new(scorer, None) }
    }

    fn limit<'b>(&self, prepared: &'b PreparedQuery, scanned: &ScannedSegment<'b>) -> Limit<'b>
    where
        'a: 'b,
    {
        self.formula.limit(prepared, scanned, self.side, self.threshold)
    }

    /// The smallest upper bound of a row that may be among the best.
    pub(crate) fn min_upper(&self) -> f32 {
        self.formula.min_upper(&self.prepared_queries[0], self.side, self.threshold)
    }

    /// Bound some rows for each query as [`Kernel::bound`] does; the largest bound counts. A row
    /// reaches the threshold and `floor`.
    pub(crate) fn bound(
        &mut self,
        scanned: &ScannedSegment<'_>,
        rows: Rows<'_>,
        floor: f32,
        mut uppers: Uppers<'_>,
    ) {
        let [first, others @ ..] = self.prepared_queries else { return };
        let codes = scanned.codes();
        let limit = self.limit(first, scanned).raised_to(floor);
        self.kernel.bound(codes, rows, &limit, &mut uppers);
        let (mut of_one, mut reaching_one) = std::mem::take(&mut self.of_one);
        let Uppers { values, reaching } = uppers;
        for other in others {
            of_one.resize(values.len(), 0.0);
            reaching_one.resize(reaching.len(), 0);
            let limit = self.limit(other, scanned).raised_to(floor);
            let mut uppers = Uppers { values: &mut of_one, reaching: &mut reaching_one };
            self.kernel.bound(codes, rows, &limit, &mut uppers);
            values.iter_mut().zip(&of_one).for_each(|(upper, other)| *upper = upper.max(*other));
            reaching.iter_mut().zip(&reaching_one).for_each(|(word, other)| *word |= other);
        }
        self.of_one = (of_one, reaching_one);
    }

    /// Which rows that reach the threshold at the stage at hand do so to the last one.
    pub(crate) fn passed(
        &mut self,
        scanned: &ScannedSegment<'_>,
        mut rows: Vec<BoundedRow>,
    ) -> Vec<BoundedRow> {
        let mut stage = scanned.stage;
        while let Some(next) = stage.next() {
            self.adopt_threshold();
            let is_dense = rows.len().saturating_mul(max_going_on(stage)) > scanned.view.len;
            rows = self.reaching(&scanned.at(next), &rows, is_dense);
            stage = next;
        }
        rows
    }

    /// Which rows reach the threshold at a stage; of many, whole blocks are read in their order.
    pub(crate) fn reaching(
        &mut self,
        scanned: &ScannedSegment<'_>,
        rows: &[BoundedRow],
        is_dense: bool,
    ) -> Vec<BoundedRow> {
        let rows = rows.iter().map(|bounded| bounded.row);
        if !is_dense {
            let listed: Vec<u32> = rows.collect();
            return self.all_reaching(scanned, Rows::Listed(&listed));
        }
        let mut wanted = vec![0_u64; scanned.view.len.div_ceil(TILE_ROWS)];
        for row in rows {
            wanted[row as usize / TILE_ROWS] |= 1 << (row as usize % TILE_ROWS);
        }
        self.all_reaching(scanned, Rows::InOrder { first: 0, wanted: &wanted })
    }

    /// Which rows reach the threshold at a stage, in the order they have here.
    pub(crate) fn all_reaching(
        &mut self,
        scanned: &ScannedSegment<'_>,
        rows: Rows<'_>,
    ) -> Vec<BoundedRow> {
        let (mut values, mut reaching) = std::mem::take(&mut self.bounds);
        values.resize(rows.bounds(), 0.0);
        reaching.resize(values.len().div_ceil(TILE_ROWS), 0);
        let uppers = Uppers { values: &mut values, reaching: &mut reaching };
        self.bound(scanned, rows, f32::NEG_INFINITY, uppers);
        let bounded =
            |at: u32| BoundedRow { upper: values[at as usize], row: rows.row(at as usize) };
        let found = rows_of(&reaching).map(bounded).collect();
        self.bounds = (values, reaching);
        found
    }

    /// Take rows that reach the threshold at the stage at hand on, and keep those that reach it to the
    /// end.
    pub(crate) fn take(&mut self, scanned: &ScannedSegment<'_>, rows: Vec<BoundedRow>) {
        let segment = scanned.position as u32;
        let candidate = |BoundedRow { upper, row }| Candidate { upper, segment, row };
        let passed = self.passed(scanned, rows);
        self.candidates.extend(passed.into_iter().map(candidate));
    }

    /// Score some rows at once, which raises the threshold.
    pub(crate) fn score(&mut self, places: &[Place<'_>]) {
        self.scorer.offer(places);
        self.raise(self.scorer.best.floor());
    }

    /// Take over a higher threshold that another scan has found.
    pub(crate) fn adopt_threshold(&mut self) {
        if let Some(shared) = self.shared {
            self.threshold = self.threshold.max(shared.get());
        }
    }

    fn raise(&mut self, floor: f64) {
        if floor > self.threshold {
            self.threshold = floor;
            if let Some(shared) = self.shared {
                shared.raise(floor);
            }
        }
    }

    /// What other scans of the same search need of this one.
    pub(crate) fn scan_result(self) -> ScanResult {
        let hits = self.scorer.into_sorted();
        ScanResult { threshold: self.threshold, candidates: self.candidates, hits }
    }

    /// Merge the result of another scan of the same search.
    pub(crate) fn absorb(&mut self, other: ScanResult) {
        self.threshold = self.threshold.max(other.threshold);
        self.candidates.extend(other.candidates);
        other.hits.into_iter().for_each(|hit| self.scorer.best.offer(hit));
    }

    /// Score rows that may be among the best, by descending bound, until no other can be, or until
    /// the first of them are scored after the deadline.
    pub(crate) fn finish(mut self, vectors: &VectorRows, deadline: &Deadline) -> Vec<Hit> {
        self.adopt_threshold();
        self.raise(self.scorer.best.floor());
        let min = self.min_upper();
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.retain(|candidate| candidate.upper >= min);
        candidates.sort_unstable_by(|one, other| other.upper.total_cmp(&one.upper));
        let place = |candidate: &Candidate| {
            let position = candidate.segment as usize;
            (self.formula.scanned(position, &vectors.segments[position]), candidate.row)
        };
        let places: Vec<Place<'_>> = candidates.iter().map(place).collect();
        for first in (0..places.len()).step_by(AT_ONCE) {
            let is_late = first > 0 && first.is_multiple_of(SOME_ROWS) && deadline.is_past();
            if is_late || candidates[first].upper < self.min_upper() {
                break;
            }
            let (some, others) = places[first..].split_at(AT_ONCE.min(places.len() - first));
            self.scorer.prefetch(others);
            self.scorer.offer(some);
            self.raise(self.scorer.best.floor());
        }
        self.scorer.into_sorted()
    }
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

    pub(crate) fn offer(&mut self, places: &[Place<'_>]) {
        for ((scanned, row), score) in places.iter().zip(self.scores(places)) {
            if score >= self.min_score {
                self.best.offer(Hit { score, id: scanned.view.segment.ids()[*row as usize] });
            }
        }
    }

    /// The scores of some rows.
    pub(crate) fn scores(&self, places: &[Place<'_>]) -> Vec<f64> {
        let mut scores = Vec::with_capacity(places.len());
        self.prefetch(places);
        for (number, some) in places.chunks(AT_ONCE).enumerate() {
            self.prefetch(places.get((number + 1) * AT_ONCE..).unwrap_or(&[]));
            if let Ok(four) = some.try_into() {
                scores.extend(self.scored::<AT_ONCE>(four));
            } else {
                scores.extend(some.iter().flat_map(|place| self.scored([*place])));
            }
        }
        scores
    }

    /// The scores by the nearest of the queries.
    fn scored<const ROWS: usize>(&self, places: [Place<'_>; ROWS]) -> [f64; ROWS] {
        let vectors = places.map(|(scanned, row)| scanned.view.segment.vector(row as usize));
        let mut scores = [f64::NEG_INFINITY; ROWS];
        for prepared in self.prepared_queries {
            let mut products = [0.0; ROWS];
            if let Ok(four) = vectors.as_slice().try_into() {
                products.copy_from_slice(&self.kernel.four_dots(four, &prepared.query));
            } else {
                products = vectors.map(|vector| self.kernel.dot(vector, &prepared.query));
            }
            scores.iter_mut().zip(products).for_each(|(most, product)| *most = most.max(product));
        }
        for (score, (scanned, row)) in scores.iter_mut().zip(places) {
            *score = self.formula.score(*score, scanned.priors, row as usize);
        }
        scores
    }

    /// Start fetching the first of some rows.
    fn prefetch(&self, places: &[Place<'_>]) {
        for (scanned, row) in places.iter().take(AT_ONCE) {
            self.kernel.prefetch(scanned.view.segment.vector_lines(*row as usize));
        }
    }

    pub(crate) fn into_sorted(self) -> Vec<Hit> {
        self.best.into_sorted()
    }
}
