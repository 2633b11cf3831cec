//! The contract of a kernel: bounds and products over many rows, computed by one set of CPU
//! instructions. The kernels themselves stand in `simd/`.

use super::coded_rows::{CodedRows, Packing};
use super::scalar::{BYTE_MIDDLE, NIBBLE_MIDDLE, Plane, QueryCodes, RowBounds};
use crate::collections::append_buffer::Line;

/// Rows whose wanted ones are the bits of one mask.
pub(crate) const TILE_ROWS: usize = 64;

/// The bound that a row must reach, by one approximation of it and one plane of the query.
#[derive(Clone, Copy)]
pub(crate) struct Limit<'a> {
    pub(crate) plane: &'a Plane,
    /// Scores times the query's power of two, for a weight of 1 and a prior of 0.
    pub(crate) threshold: f32,
    /// Twice the sum at the middle of a row's range.
    pub(crate) middle: i32,
    /// `q̂·x̂` is `scale·factor·(twice a sum − middle)`.
    pub(crate) factor: f32,
    pub(crate) prior: Option<Prior<'a>>,
}

/// A summand of each row's bound, in the units of the threshold.
#[derive(Clone, Copy)]
pub(crate) struct Prior<'a> {
    /// One value for each row of the segment, up to the end of the last block.
    pub(crate) values: &'a [f32],
    pub(crate) factor: f32,
}

impl<'a> Limit<'a> {
    pub(crate) fn new(
        packing: Packing,
        plane: &'a Plane,
        threshold: f32,
        prior: Option<Prior<'a>>,
    ) -> Self {
        let (middle, half_step) = match packing {
            Packing::Sketches | Packing::Nibbles => (NIBBLE_MIDDLE, 8.0),
            Packing::Bytes => (BYTE_MIDDLE, 0.5),
        };
        let (middle, factor) = (middle * plane.sum, half_step * plane.step);
        Self { plane, threshold, middle, factor, prior }
    }

    /// The same with at least this threshold.
    pub(crate) fn raised_to(self, threshold: f32) -> Self {
        Self { threshold: self.threshold.max(threshold), ..self }
    }
}

/// The inner loops. Every kernel computes the same float64 sums and integer sums to the bit, and
/// bounds with the same guarantee: a row that scores as much as the threshold is never below it,
/// and none is NaN, since a bound that overflows is infinite.
pub(crate) trait Kernel: Sync {
    fn name(&self) -> &'static str;

    /// Inner product in float64: products are exact, element `i` goes to lane `i % 8`, lanes are
    /// added as `((0+4)+(2+6)) + ((1+5)+(3+7))`. Both slices have the same multiple of 8 elements.
    fn dot(&self, row: &[f32], query: &[f64]) -> f64;

    /// As [`Kernel::dot`] for four rows at once: a single sum waits for each of its additions.
    fn four_dots(&self, rows: [&[f32]; 4], query: &[f64]) -> [f64; 4] {
        rows.map(|row| self.dot(row, query))
    }

    /// [`super::scalar::encode`], compiled for this kernel's instructions.
    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds;

    /// [`QueryCodes::new`], compiled for this kernel's instructions.
    fn query_codes(&self, query: &[f32], power: f64) -> QueryCodes;

    /// [`Plane::signed_bytes`], compiled for this kernel's instructions.
    fn signed_bytes(&self, values: &[f32], power: f64, most: f64) -> Plane;

    /// The sum of a row's bytes with both their planes, see [`QueryCodes::code_sum`].
    fn code_sum(&self, bytes: &[Line], query: &QueryCodes) -> i64;

    /// Write upper bounds of scores, in the units of the limit: `uppers[at]` for row `first + at`,
    /// where it or one of its block is wanted; and into `reaching`, as bits, which wanted rows are
    /// not certainly below the limit. `first` is a multiple of [`TILE_ROWS`], and there is a word of
    /// each for so many bounds. Wanted rows are there.
    fn bound(
        &self,
        rows: &CodedRows,
        first: usize,
        wanted: &[u64],
        limit: &Limit<'_>,
        uppers: &mut [f32],
        reaching: &mut [u64],
    );

    /// As [`Kernel::bound`] for a list of rows, which are no sketches; room is for whole blocks of
    /// bounds, and bits beyond the list are not set. Rows that follow are fetched into the cache
    /// meanwhile.
    fn bound_listed(
        &self,
        rows: &CodedRows,
        listed: &[u32],
        limit: &Limit<'_>,
        uppers: &mut [f32],
        reaching: &mut [u64],
    );

    /// Which of whole blocks of bounds are not below `threshold`, as bits; NaN is.
    fn at_least(&self, uppers: &[f32], threshold: f32, reaching: &mut [u64]);

    /// Start fetching lines that will be read soon.
    fn prefetch(&self, lines: &[Line]);
}
