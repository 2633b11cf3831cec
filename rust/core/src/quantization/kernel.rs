//! The contract of a kernel: bounds and products over many rows, computed by one set of CPU
//! instructions. The kernels themselves stand in `simd/`.

use super::row_blocks::{CodedRows, Packing, RowLines};
use super::scalar::{BYTE_MIDDLE, NIBBLE_MIDDLE, Plane, QueryCodes, RowBounds};
use crate::collections::append_buffer::Line;

/// Rows are bounded in tiles of this many, the bits of one mask.
pub(crate) const TILE_ROWS: usize = 64;

/// Rows bounded side by side, and queries bounded against one row side by side.
pub(crate) const EIGHT: usize = 8;

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
    /// One value for each row of the segment.
    pub(crate) values: &'a [f32],
    pub(crate) factor: f32,
}

impl<'a> Limit<'a> {
    pub(crate) fn threshold(&self) -> f32 {
        self.threshold
    }

    /// The same with at least this threshold.
    pub(crate) fn raised_to(self, threshold: f32) -> Self {
        Self { threshold: self.threshold.max(threshold), ..self }
    }

    pub(crate) fn new(
        packing: Packing,
        plane: &'a Plane,
        threshold: f32,
        prior: Option<Prior<'a>>,
    ) -> Self {
        let (middle, half_step) = match packing {
            Packing::Nibbles => (NIBBLE_MIDDLE, 8.0),
            Packing::Bytes => (BYTE_MIDDLE, 0.5),
        };
        let (middle, factor) = (middle * plane.sum, half_step * plane.step);
        Self { plane, threshold, middle, factor, prior }
    }
}

/// Upper bounds of up to 64 rows, never NaN: a bound that overflows is infinite.
pub(crate) type Uppers = [f32; TILE_ROWS];

/// Rows `TILE_ROWS·number` and following, of which some are wanted.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    pub(crate) number: usize,
    /// A bit for each row.
    pub(crate) wanted: u64,
}

impl Tile {
    /// The eight rows of one of its blocks that are wanted.
    pub(crate) fn wanted_of(self, block: usize) -> u64 {
        self.wanted >> (block * EIGHT) & 0xff
    }

    /// The first row of one of its blocks.
    pub(crate) fn start_of(self, block: usize) -> usize {
        self.number * TILE_ROWS + block * EIGHT
    }
}

/// The inner loops. Every kernel computes the same float64 sums and integer sums to the bit, and
/// bounds with the same guarantee.
pub(crate) trait Kernel: Sync {
    fn name(&self) -> &'static str;

    /// Inner product in float64: products are exact, element `i` goes to lane `i % 8`, lanes are
    /// added as `((0+4)+(2+6)) + ((1+5)+(3+7))`. Both slices have the same multiple of 8 elements.
    fn dot(&self, row: &[f32], query: &[f64]) -> f64;

    /// As [`Kernel::dot`] for each of some rows, one after the other, of the query's length.
    fn dots(&self, rows: &[f32], query: &[f64], products: &mut [f64]) {
        for (product, row) in products.iter_mut().zip(rows.chunks_exact(query.len())) {
            *product = self.dot(row, query);
        }
    }

    /// [`super::scalar::encode`], compiled for this kernel's instructions.
    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds;

    /// [`QueryCodes::new`], compiled for this kernel's instructions.
    fn query_codes(&self, query: &[f32], power: f64) -> QueryCodes;

    /// [`Plane::signed_bytes`], compiled for this kernel's instructions.
    fn signed_bytes(&self, values: &[f32], power: f64) -> Plane;

    /// The sum of a row's bytes with both their planes, see [`QueryCodes::code_sum`].
    fn code_sum(&self, bytes: RowLines<'_>, query: &QueryCodes) -> i64;

    /// Write upper bounds of scores, in the units of the limit: `uppers[r]` for row `r` of the
    /// tile, where it or one of its block of eight is wanted. Bit `r` of the result is set for a
    /// wanted row unless it certainly stays below the limit. Wanted rows are filled.
    fn bound(&self, rows: &CodedRows, tile: Tile, limit: &Limit<'_>, uppers: &mut Uppers) -> u64;

    /// As [`Kernel::bound`], for the first [`TILE_ROWS`] rows of a list of row numbers; those that
    /// follow are fetched into the cache meanwhile.
    fn bound_listed(
        &self,
        rows: &CodedRows,
        listed: &[u32],
        limit: &Limit<'_>,
        uppers: &mut Uppers,
    ) -> u64;

    /// As [`Kernel::bound`] for one to eight limits in one pass over the rows.
    fn bound_many(
        &self,
        rows: &CodedRows,
        tile: Tile,
        limits: &[Limit<'_>],
        uppers: &mut [Uppers; EIGHT],
    ) -> [u64; EIGHT];

    /// Append the positions in `uppers`, a multiple of eight of them, of those that are not below
    /// `threshold`.
    fn positions_reaching(&self, uppers: &[f32], threshold: f32, positions: &mut Vec<u32>);

    /// Start fetching lines that will be read soon.
    fn prefetch(&self, lines: &[Line]);

    /// Start fetching a row that will be bounded soon.
    fn prefetch_row(&self, rows: &CodedRows, row: usize);
}
