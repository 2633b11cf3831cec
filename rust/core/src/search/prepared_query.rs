//! A query prepared for every stage of a scan.

use crate::quantization::coded_rows::CodedRows;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::{
    BYTE_PLANE_MAX, NIBBLE_PLANE_MAX, Plane, QueryCodes, norm, power_of_two_for, row_stride,
};
use crate::quantization::sketch::Basis;
use crate::storage::segment::SegmentView;

/// Queries of one answer are bounded in one unit; queries this much shorter than the longest would
/// approach the smallest floats.
const MIN_LENGTH: f64 = 1.0 / 16.0;

/// The approximations of a row, from the shortest to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Four bits for each of a few directions in which the rows differ most, where a segment has them.
    Sketch,
    /// Four bits a component.
    Nibbles,
    /// A byte a component.
    Bytes,
}

impl Stage {
    /// The next stage, with more bits of a row.
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::Sketch => Some(Self::Nibbles),
            Self::Nibbles => Some(Self::Bytes),
            Self::Bytes => None,
        }
    }

    /// The codes of a segment that this stage reads.
    pub(crate) fn rows(self, view: &SegmentView) -> &CodedRows {
        match self {
            Self::Sketch => &view.sketch.as_ref().expect("asked for only where there is one").codes,
            Self::Nibbles => &view.segment.nibbles,
            Self::Bytes => &view.segment.bytes,
        }
    }
}

/// A query prepared for a scan.
pub(crate) struct PreparedQuery {
    /// Padded, for float64 scores.
    pub(crate) query: Box<[f64]>,
    /// Scores times this are in the units of the bounds.
    pub(crate) power: f64,
    codes: Option<QueryCodes>,
    bytes: Option<Plane>,
    nibbles: Option<Plane>,
    sketch: Option<Plane>,
}

impl PreparedQuery {
    /// Prepare for float64 scores only.
    pub(crate) fn for_scores(query: &[f32]) -> Self {
        let query = padded(query);
        Self { query, power: 1.0, codes: None, bytes: None, nibbles: None, sketch: None }
    }

    /// Prepare for bytes only; longer scans add planes.
    pub(crate) fn new(kernel: &dyn Kernel, query: &[f32], power: f64) -> Self {
        let bytes = Some(kernel.signed_bytes(query, power, BYTE_PLANE_MAX));
        Self { power, bytes, ..Self::for_scores(query) }
    }

    /// Prepare for nibbles, and for sketches in `basis`.
    pub(crate) fn for_long_scan(
        kernel: &dyn Kernel,
        query: &[f32],
        power: f64,
        basis: Option<&Basis>,
    ) -> Self {
        let prepared = Self::new(kernel, query, power);
        let nibbles = Some(kernel.signed_bytes(query, power, NIBBLE_PLANE_MAX));
        let sketch = basis.map(|basis| basis.plane(kernel, query, &prepared.query, power));
        Self { nibbles, sketch, ..prepared }
    }

    /// The same, with the codes that bound single rows from both sides.
    pub(crate) fn with_codes(self, kernel: &dyn Kernel, query: &[f32]) -> Self {
        Self { codes: Some(kernel.query_codes(query, self.power)), ..self }
    }

    pub(crate) fn codes(&self) -> &QueryCodes {
        self.codes.as_ref().expect("a scan that bounds rows from both sides prepared for it")
    }

    pub(crate) fn plane(&self, stage: Stage) -> &Plane {
        let plane = match stage {
            Stage::Sketch => self.sketch.as_ref(),
            Stage::Nibbles => self.nibbles.as_ref(),
            Stage::Bytes => self.bytes.as_ref(),
        };
        plane.expect("a scan asks only for the planes it prepared")
    }
}

/// A query in float64, padded to whole cache lines of float32 rows.
fn padded(query: &[f32]) -> Box<[f64]> {
    let mut wide = vec![0.0; row_stride(query.len())];
    wide.iter_mut().zip(query).for_each(|(wide, value)| *wide = f64::from(*value));
    wide.into()
}

/// The power of two by which the queries of one answer are scaled; none where their lengths are
/// too far apart.
pub(crate) fn common_power(queries: &[&[f32]]) -> Option<f64> {
    let lengths: Vec<f64> = queries.iter().map(|query| norm(query)).collect();
    let power = power_of_two_for(lengths.iter().fold(0.0, |max, length| max.max(*length)));
    let is_near = |length: &f64| queries.len() == 1 || length * power >= MIN_LENGTH;
    lengths.iter().all(is_near).then_some(power)
}
