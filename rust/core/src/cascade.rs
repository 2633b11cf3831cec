//! One answer in the making: rows go from stage to stage of bounds until few are left to score.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::VectorRows;
use crate::prior::PriorRows;
use crate::probe::{Probe, Stage};
use crate::quant::rounded_down;
use crate::segment::{SegmentView, set_bits};
use crate::simd::{CHUNK, Kernel, Limit, Prior};
use crate::top_k::{Hit, KthLargest, TopK};

/// Rows that wait for their next stage; enough to hide the fetch, few enough to raise the
/// threshold early.
const PENDING_ROWS: usize = 16;

/// Float32 rows fetched ahead of the one being scored.
const SCORE_AHEAD: usize = 3;

/// Covers the rounding of thresholds and priors in float32, several times over.
const PRIOR_SLACK: f64 = 1e-6;

/// With smaller weights the units of the bounds would leave the range of float64.
const LEAST_WEIGHT: f64 = 1e-30;

/// Where a prior in the units of the bounds would pass this, bounds are not used.
const MOST_PRIOR: f64 = 1e30;

/// How inner products become scores: `weight·product + prior`, in float64.
#[derive(Clone, Copy)]
pub(crate) struct Formula<'a> {
    pub(crate) weight: f64,
    pub(crate) prior: Option<&'a PriorRows>,
}

impl<'a> Formula<'a> {
    /// Rounding keeps order, so bounds of the product give bounds of the score.
    fn score(&self, product: f64, prior: Option<&[f32]>, row: usize) -> f64 {
        let weighted = self.weight * product;
        // Adding zero turns minus zero into zero, with which it ties.
        prior.map_or(weighted, |values| weighted + f64::from(values[row])) + 0.0
    }

    pub(crate) fn priors(&self, position: usize) -> Option<&'a [f32]> {
        self.prior.map(|prior| prior.segment(position))
    }

    /// Whether bounds in float32 can carry this formula for a query.
    pub(crate) fn is_boundable(&self, probe: &Probe) -> bool {
        let most = self.prior.map_or(0.0, |prior| f64::from(prior.most));
        self.weight >= LEAST_WEIGHT
            && (self.prior.is_none() || most.max(1.0) * self.units(probe) < MOST_PRIOR)
    }

    /// What the bounds of a score of at least `threshold` reach at `stage`.
    pub(crate) fn limit<'b>(
        &self,
        probe: &'b Probe,
        stage: Stage,
        here: &Here<'b>,
        threshold: f64,
    ) -> Limit<'b> {
        self.signed_limit(probe, stage, here, threshold, 1.0)
    }

    /// What the bounds of a score of at most `threshold` reach at `stage`, where `probe` is the
    /// negated query.
    pub(crate) fn negated_limit<'b>(
        &self,
        probe: &'b Probe,
        stage: Stage,
        here: &Here<'b>,
        threshold: f64,
    ) -> Limit<'b> {
        self.signed_limit(probe, stage, here, -threshold, -1.0)
    }

    fn signed_limit<'b>(
        &self,
        probe: &'b Probe,
        stage: Stage,
        here: &Here<'b>,
        threshold: f64,
        sign: f64,
    ) -> Limit<'b> {
        let units = self.units(probe);
        let mut scaled = threshold * units;
        let prior = here.priors.map(|values| {
            let most = self.prior.map_or(0.0, |prior| f64::from(prior.most));
            if threshold.is_finite() {
                scaled -= PRIOR_SLACK * (threshold.abs() + most) * units;
            }
            Prior { values, factor: (sign * units) as f32 }
        });
        let rows = stage.rows(here.view);
        Limit::new(rows.packing, probe.plane(stage), rounded_down(scaled), prior)
    }

    /// Scores times this are in the units of the probe's bounds.
    fn units(&self, probe: &Probe) -> f64 {
        probe.codes().power / self.weight
    }
}

/// The segment at hand.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
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

/// What a scan of some of the segments has found.
pub(crate) struct Findings {
    threshold: f64,
    candidates: Vec<Candidate>,
}

/// The rows that may be the answer to some probes, of which the best counts.
pub(crate) struct Cascade<'a> {
    kernel: &'a dyn Kernel,
    pub(crate) probes: &'a [Probe],
    formula: Formula<'a>,
    /// The k-th largest lower bound: k rows certainly score at least this.
    floor: KthLargest,
    pub(crate) threshold: f64,
    shared: Option<&'a SharedThreshold>,
    candidates: Vec<Candidate>,
    /// Rows of the segment at hand that wait for their nibbles, and for their bytes.
    pending: [Vec<u32>; 2],
}

impl<'a> Cascade<'a> {
    pub(crate) fn new(
        kernel: &'a dyn Kernel,
        probes: &'a [Probe],
        formula: Formula<'a>,
        k: usize,
        min_score: f64,
        shared: Option<&'a SharedThreshold>,
    ) -> Self {
        let pending = || Vec::with_capacity(PENDING_ROWS + CHUNK);
        Self {
            kernel,
            probes,
            formula,
            floor: KthLargest::new(k),
            threshold: min_score,
            shared,
            candidates: Vec::with_capacity(256),
            pending: [pending(), pending()],
        }
    }

    /// What a row must reach at `stage` to be as near to a probe as it has to be.
    pub(crate) fn limit<'b>(&self, probe: &'b Probe, stage: Stage, here: &Here<'b>) -> Limit<'b>
    where
        'a: 'b,
    {
        self.formula.limit(probe, stage, here, self.threshold)
    }

    /// The least upper bound at `stage` of a row that may be among the best, the same for every
    /// probe of an answer.
    pub(crate) fn least_upper(&self, stage: Stage, here: &Here<'_>) -> f32 {
        self.limit(&self.probes[0], stage, here).threshold()
    }

    /// Take a row one step further than `stage`.
    pub(crate) fn keep(&mut self, here: &Here<'_>, stage: Stage, row: u32) {
        match stage {
            Stage::Sketch => self.wait(here, Stage::Nibbles, row),
            Stage::Nibbles => self.wait(here, Stage::Bytes, row),
            Stage::Bytes => self.consider(here, row),
        }
    }

    fn wait(&mut self, here: &Here<'_>, stage: Stage, row: u32) {
        self.kernel.prefetch_row(stage.rows(here.view), row as usize);
        self.pending[usize::from(stage == Stage::Bytes)].push(row);
    }

    /// Bound the rows that wait, where there are many.
    pub(crate) fn settle_full(&mut self, here: &Here<'_>) {
        self.settle(here, PENDING_ROWS);
    }

    /// Bound the rows that wait, once there are `enough` of them at a stage; call with 1 at the
    /// end of a segment.
    pub(crate) fn settle(&mut self, here: &Here<'_>, enough: usize) {
        for (at, stage) in [Stage::Nibbles, Stage::Bytes].into_iter().enumerate() {
            if self.pending[at].len() < enough {
                continue;
            }
            let mut waiting = std::mem::take(&mut self.pending[at]);
            for listed in waiting.chunks(CHUNK) {
                let mask = self.reaching(here, stage, listed);
                for bit in set_bits(mask) {
                    self.keep(here, stage, listed[bit]);
                }
            }
            waiting.clear();
            self.pending[at] = waiting;
        }
    }

    /// Which of the listed rows may be near enough to one of the probes.
    fn reaching(&mut self, here: &Here<'_>, stage: Stage, listed: &[u32]) -> u64 {
        self.look_at_others();
        let mut uppers = [0.0; CHUNK];
        self.probes.iter().fold(0, |mask, probe| {
            let limit = self.limit(probe, stage, here);
            let rows = stage.rows(here.view);
            mask | self.kernel.bound_listed(rows, listed, &limit, &mut uppers)
        })
    }

    /// Take over a higher threshold that another scan has found.
    pub(crate) fn look_at_others(&mut self) {
        if let Some(shared) = self.shared {
            self.threshold = self.threshold.max(shared.get());
        }
    }

    /// Bound a row by everything but its float32 values.
    fn consider(&mut self, here: &Here<'_>, row: u32) {
        let (mut lower, mut upper) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for probe in self.probes {
            let range = self.product_range(here, probe, row as usize);
            lower = lower.max(range.0);
            upper = upper.max(range.1);
        }
        let score = |product| self.formula.score(product, here.priors, row as usize);
        let (lower, upper) = (score(lower), score(upper));
        if upper < self.threshold {
            return;
        }
        self.candidates.push(Candidate { upper, segment: here.position as u32, row });
        if let Some(floor) = self.floor.offer(lower) {
            self.raise(floor);
        }
    }

    fn product_range(&self, here: &Here<'_>, probe: &Probe, row: usize) -> (f64, f64) {
        let rows = &here.view.segment.bytes;
        let sum = self.kernel.code_sum(rows.row(row), probe.codes());
        let (lower, upper) = probe.codes().range(rows.bounds()[row], sum);
        (lower / probe.codes().power, upper / probe.codes().power)
    }

    fn raise(&mut self, floor: f64) {
        if floor > self.threshold {
            self.threshold = floor;
            if let Some(shared) = self.shared {
                shared.raise(floor);
            }
        }
    }

    /// What other scans need to know of this one.
    pub(crate) fn findings(self) -> Findings {
        Findings { threshold: self.threshold, candidates: self.candidates }
    }

    /// Take over what another scan of the same search has found.
    pub(crate) fn absorb(&mut self, other: Findings) {
        self.threshold = self.threshold.max(other.threshold);
        self.candidates.extend(other.candidates);
    }

    /// Score what may be among the best, the most promising first, until nothing else can be.
    pub(crate) fn finish(mut self, vectors: &VectorRows, mut scorer: Scorer<'_>) -> Vec<Hit> {
        self.look_at_others();
        let threshold = self.threshold;
        self.candidates.retain(|candidate| candidate.upper >= threshold);
        self.candidates.sort_unstable_by(|one, other| other.upper.total_cmp(&one.upper));
        for (at, candidate) in self.candidates.iter().enumerate() {
            if candidate.upper < scorer.best.floor() {
                break;
            }
            if let Some(next) = self.candidates.get(at + SCORE_AHEAD) {
                let segment = &vectors.segments[next.segment as usize].segment;
                self.kernel.prefetch(segment.vector_lines(next.row as usize));
            }
            let position = candidate.segment as usize;
            let priors = self.formula.priors(position);
            let view = &vectors.segments[position];
            scorer.offer(&Here { position, view, priors }, candidate.row as usize);
        }
        scorer.best.into_sorted()
    }
}

/// Scores rows in float64 and keeps the best.
pub(crate) struct Scorer<'a> {
    kernel: &'a dyn Kernel,
    probes: &'a [Probe],
    formula: Formula<'a>,
    min_score: f64,
    best: TopK,
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(
        kernel: &'a dyn Kernel,
        probes: &'a [Probe],
        formula: Formula<'a>,
        k: usize,
        min_score: f64,
    ) -> Self {
        Self { kernel, probes, formula, min_score, best: TopK::new(k) }
    }

    pub(crate) fn offer(&mut self, here: &Here<'_>, row: usize) {
        let score = self.score(here, row);
        if score >= self.min_score {
            self.best.offer(Hit { score, id: here.view.segment.ids()[row] });
        }
    }

    /// The score of the nearest of the queries.
    pub(crate) fn score(&self, here: &Here<'_>, row: usize) -> f64 {
        let vector = here.view.segment.vector(row);
        let products = self.probes.iter().map(|probe| self.kernel.dot(vector, &probe.query));
        let product = products.fold(f64::NEG_INFINITY, f64::max);
        self.formula.score(product, here.priors, row)
    }

    pub(crate) fn into_sorted(self) -> Vec<Hit> {
        self.best.into_sorted()
    }
}
