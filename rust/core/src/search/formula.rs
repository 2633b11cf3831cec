//! How inner products become scores, and the limits that scores set to bounds.

use crate::quantization::coded_rows::CodedRows;
use crate::quantization::kernel::{Limit, Prior};
use crate::quantization::scalar::rounded_down;
use crate::search::prepared_query::{PreparedQuery, Stage};
use crate::search::prior::PriorRows;
use crate::storage::segment::SegmentView;

/// Covers the rounding of thresholds and priors in float32, several times over.
const PRIOR_SLACK: f64 = 1e-6;

/// With smaller weights the units of the bounds would leave the range of float64.
const MIN_WEIGHT: f64 = 1e-30;

/// With smaller units priors would lose digits in float32, whose smallest normal number is 1.2e-38.
const MIN_UNITS: f64 = 1e-30;

/// Where a prior in the units of the bounds would pass this, bounds are not used.
const MAX_PRIOR: f64 = 1e30;

/// How inner products become scores: `weight·product + prior`, in float64.
#[derive(Clone, Copy)]
pub(crate) struct Formula<'a> {
    pub(crate) weight: f64,
    pub(crate) prior: Option<&'a PriorRows>,
}

/// The segment at hand.
#[derive(Clone, Copy)]
pub(crate) struct ScannedSegment<'a> {
    pub(crate) position: usize,
    pub(crate) view: &'a SegmentView,
    pub(crate) priors: Option<&'a [f32]>,
    /// What is read of its rows.
    pub(crate) stage: Stage,
}

impl<'a> ScannedSegment<'a> {
    pub(crate) fn at(self, stage: Stage) -> Self {
        Self { stage, ..self }
    }

    pub(crate) fn codes(&self) -> &'a CodedRows {
        self.stage.rows(self.view)
    }
}

/// Whether upper bounds are of scores, or of scores turned around, by the negated query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Above,
    Below,
}

impl<'a> Formula<'a> {
    /// Rounding is monotone, so bounds of the product are bounds of the score.
    pub(crate) fn score(&self, product: f64, prior: Option<&[f32]>, row: usize) -> f64 {
        let weighted = self.weight * product;
        // Adding zero turns minus zero into zero, with which it ties.
        prior.map_or(weighted, |values| weighted + f64::from(values[row])) + 0.0
    }

    /// A segment of a search with these priors, of which bytes are read.
    pub(crate) fn scanned<'b>(&self, position: usize, view: &'b SegmentView) -> ScannedSegment<'b>
    where
        'a: 'b,
    {
        let priors = self.prior.map(|prior| prior.segment(position));
        ScannedSegment { position, view, priors, stage: Stage::Bytes }
    }

    /// Whether bounds in float32 can carry this formula for a query.
    pub(crate) fn is_boundable(&self, prepared: &PreparedQuery) -> bool {
        let carries = |prior: &PriorRows| {
            let units = self.units(prepared);
            units > MIN_UNITS && f64::from(prior.max).max(1.0) * units < MAX_PRIOR
        };
        self.weight >= MIN_WEIGHT && self.prior.is_none_or(carries)
    }

    /// The limit of scores of at least `threshold`, or below, of at most so much.
    pub(crate) fn limit<'b>(
        &self,
        prepared: &'b PreparedQuery,
        scanned: &ScannedSegment<'b>,
        side: Side,
        threshold: f64,
    ) -> Limit<'b> {
        let units = self.units(prepared);
        let sign = if side == Side::Above { 1.0 } else { -1.0 };
        let prior = |values| Prior { values, factor: (sign * units) as f32 };
        Limit::new(
            scanned.codes().packing,
            prepared.plane(scanned.stage),
            self.min_upper(prepared, side, threshold),
            scanned.priors.map(prior),
        )
    }

    /// The smallest bound of a row that may reach a threshold, at every stage.
    pub(crate) fn min_upper(&self, prepared: &PreparedQuery, side: Side, threshold: f64) -> f32 {
        let units = self.units(prepared);
        let sign = if side == Side::Above { 1.0 } else { -1.0 };
        let mut scaled = sign * threshold * units;
        if let Some(prior) = self.prior.filter(|_| threshold.is_finite()) {
            scaled -= PRIOR_SLACK * (threshold.abs() + f64::from(prior.max)) * units;
        }
        rounded_down(scaled)
    }

    /// Scores times this are in the units of the query's bounds.
    fn units(&self, prepared: &PreparedQuery) -> f64 {
        prepared.power / self.weight
    }
}
