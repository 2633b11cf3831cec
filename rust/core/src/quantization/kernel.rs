//! The contract of a kernel: bounds and products over many rows, computed by one set of CPU
//! instructions. The kernels themselves stand in `simd/`.

use std::ops::Range;

use super::coded_rows::{BLOCK_ROWS, CodedRows, Packing};
use super::scalar::{BYTE_MIDDLE, NIBBLE_MIDDLE, Plane, QueryCodes, RowBounds, encode};
use crate::bits::set_bits;
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

/// Rows of a segment, in the order of their bounds.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// One mask for every 64 rows from the first on, which is a multiple of so many.
    InOrder {
        first: usize,
        wanted: &'a [u64],
    },
    Listed(&'a [u32]),
}

impl Rows<'_> {
    /// Number of bounds, those between the wanted rows included.
    pub(crate) fn bounds(self) -> usize {
        match self {
            Self::InOrder { wanted, .. } => wanted.len() * TILE_ROWS,
            Self::Listed(rows) => rows.len().next_multiple_of(BLOCK_ROWS),
        }
    }

    /// The row of a bound.
    pub(crate) fn row(self, position: usize) -> u32 {
        match self {
            Self::InOrder { first, .. } => (first + position) as u32,
            Self::Listed(rows) => rows[position],
        }
    }

    /// Which of 64 bounds from `64·tile` on are of wanted rows.
    pub(crate) fn wanted(self, tile: usize) -> u64 {
        match self {
            Self::InOrder { wanted, .. } => wanted[tile],
            Self::Listed(rows) => match rows.len() - tile * TILE_ROWS {
                left @ ..TILE_ROWS => (1 << left) - 1,
                _ => u64::MAX,
            },
        }
    }

    /// The positions of the wanted rows' bounds.
    pub(crate) fn positions(self) -> impl Iterator<Item = usize> {
        let tiles = 0..self.bounds().div_ceil(TILE_ROWS);
        tiles.flat_map(move |tile| {
            set_bits(self.wanted(tile)).map(move |bit| tile * TILE_ROWS + bit)
        })
    }

    /// Those of some tiles.
    pub(crate) fn tiles(self, tiles: Range<usize>) -> Self {
        match self {
            Self::InOrder { first, wanted } => {
                Self::InOrder { first: first + tiles.start * TILE_ROWS, wanted: &wanted[tiles] }
            }
            Self::Listed(rows) => {
                let end = rows.len().min(tiles.end * TILE_ROWS);
                Self::Listed(&rows[tiles.start * TILE_ROWS..end])
            }
        }
    }
}

/// Upper bounds of some rows, and as bits, which of them reach a limit.
pub(crate) struct Uppers<'a> {
    /// One for each of [`Rows::bounds`].
    pub(crate) values: &'a mut [f32],
    /// A word for every 64 of these; bits beyond a list are not set.
    pub(crate) reaching: &'a mut [u64],
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

    /// [`encode`], compiled for this kernel's instructions.
    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds {
        encode(row, bytes, nibbles)
    }

    /// [`QueryCodes::new`], compiled for this kernel's instructions.
    fn query_codes(&self, query: &[f32], power: f64) -> QueryCodes {
        QueryCodes::new(query, power)
    }

    /// [`Plane::signed_bytes`], compiled for this kernel's instructions.
    fn signed_bytes(&self, values: &[f32], power: f64, most: f64) -> Plane {
        Plane::signed_bytes(values, power, most)
    }

    /// The sum of a row's bytes with both their planes, see [`QueryCodes::code_sum`].
    fn code_sum(&self, bytes: &[Line], query: &QueryCodes) -> i64;

    /// Write upper bounds of scores, in the units of the limit, and which wanted rows are not certainly
    /// below the limit. Wanted rows are there, and a list is of no sketches; of rows in order others of
    /// their blocks may get bounds too. Listed rows that follow are fetched into the cache meanwhile.
    fn bound(&self, codes: &CodedRows, rows: Rows<'_>, limit: &Limit<'_>, uppers: &mut Uppers<'_>);

    /// Which of whole blocks of bounds are not below `threshold`, as bits; NaN is.
    fn at_least(&self, uppers: &[f32], threshold: f32, reaching: &mut [u64]);

    /// Start fetching lines that will be read soon.
    fn prefetch(&self, lines: &[Line]);
}
