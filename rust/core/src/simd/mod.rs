//! What is computed over many rows, and on what CPU: one trait, one file for each instruction set.
//!
//! A kernel value exists only where its instructions do, which is what makes calling it sound.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::Error;
use crate::quant::{BYTE_MIDDLE, NIBBLE_MIDDLE, Plane, QueryCodes, RowBound};

/// Rows are looked at in chunks of this many, the bits of one mask.
pub(crate) const CHUNK: usize = 64;

/// Float64 sums go over this many lanes and then through a fixed tree, in every kernel.
pub(crate) const LANES: usize = 8;

/// The cache lines of one row's codes.
type Lines<'a> = std::slice::Iter<'a, [u8; 64]>;

/// The codes of a segment's rows.
#[derive(Clone, Copy)]
pub(crate) struct CodedRows<'a> {
    /// Laid out as `quant` packs them, `nibble_stride` bytes a row.
    pub(crate) nibbles: &'a [u8],
    pub(crate) nibble_stride: usize,
    pub(crate) bytes: &'a [u8],
    pub(crate) byte_stride: usize,
    pub(crate) bounds: &'a [RowBound],
}

impl<'a> CodedRows<'a> {
    pub(crate) fn nibble_row(&self, row: usize) -> &'a [u8] {
        &self.nibbles[row * self.nibble_stride..(row + 1) * self.nibble_stride]
    }

    pub(crate) fn byte_row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.byte_stride..(row + 1) * self.byte_stride]
    }

    /// The codes of one row that `depth` looks at.
    #[inline]
    fn row(&self, depth: Depth, row: usize) -> &'a [u8] {
        match depth {
            Depth::Coarse => self.nibble_row(row),
            Depth::Full => self.byte_row(row),
        }
    }

    /// The codes of eight rows, named by number.
    #[inline]
    fn picked_lines(&self, depth: Depth, picked: [usize; 8]) -> [Lines<'a>; 8] {
        eight(|at| self.row(depth, picked[at]).as_chunks().0.iter())
    }

    /// The codes of eight consecutive rows.
    #[inline]
    fn run_lines(&self, depth: Depth, first: usize) -> [Lines<'a>; 8] {
        let (codes, stride) = match depth {
            Depth::Coarse => (self.nibbles, self.nibble_stride),
            Depth::Full => (self.bytes, self.byte_stride),
        };
        let run = &codes[first * stride..(first + 8) * stride];
        eight(|row| run[row * stride..][..stride].as_chunks().0.iter())
    }
}

/// Eight values, written out because array closures are not inlined into vector functions.
#[inline]
fn eight<T>(of: impl Fn(usize) -> T) -> [T; 8] {
    [of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)]
}

/// How much of a row's codes is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// High nibbles, with the plane for them.
    Coarse,
    /// Bytes, with their high plane.
    Full,
}

/// What a row must reach, by the codes that `depth` looks at.
pub(crate) struct Limit<'a> {
    depth: Depth,
    plane: &'a Plane,
    /// `‖q‖` with slack.
    norm: f32,
    /// Scores times the query's power of two.
    threshold: f32,
    /// What twice a sum is at the middle of a row's range.
    middle: i32,
    /// `q̂·x̂` is `scale·factor·(twice a sum − middle)`.
    factor: f32,
}

impl<'a> Limit<'a> {
    pub(crate) fn new(depth: Depth, query: &'a QueryCodes, threshold: f32) -> Self {
        let (plane, middle, half_step) = match depth {
            Depth::Coarse => (&query.nibble_plane, NIBBLE_MIDDLE, 8.0),
            Depth::Full => (&query.high, BYTE_MIDDLE, 0.5),
        };
        let (middle, factor) = (middle * plane.sum, half_step * plane.step);
        Self { depth, plane, norm: query.norm, threshold, middle, factor }
    }
}

/// Eight row numbers from a list, repeating the last where there are fewer.
#[inline]
fn eight_of(listed: &[u32]) -> [usize; 8] {
    eight(|at| listed[at.min(listed.len() - 1)] as usize)
}

/// Eight consecutive row numbers, repeating the last where fewer are wanted.
#[inline]
fn eight_from(first: usize, count: usize) -> [usize; 8] {
    eight(|at| first + at.min(count - 1))
}

/// The inner loops. Every kernel gives the same float64 sums and integer sums to the bit, and
/// bounds that promise the same.
pub(crate) trait Kernel: Sync {
    fn name(&self) -> &'static str;

    /// Inner product in float64: products are exact, element `i` goes to lane `i % 8`, lanes are
    /// added as `((0+4)+(2+6)) + ((1+5)+(3+7))`. Both slices have the same multiple of 8 elements.
    fn dot(&self, row: &[f32], query: &[f64]) -> f64;

    /// [`crate::quant::encode`], compiled for this kernel's instructions.
    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBound;

    /// [`QueryCodes::new`], compiled for this kernel's instructions.
    fn query_codes(&self, query: &[f32]) -> QueryCodes;

    /// The sum of a row's bytes with both their planes, see [`QueryCodes::code_sum`].
    fn code_sum(&self, bytes: &[u8], query: &QueryCodes) -> i64;

    /// Bit `i` is set unless row `first + i` certainly stays below the limit. `count` is at most
    /// [`CHUNK`].
    fn reaching(&self, rows: &CodedRows<'_>, first: usize, count: usize, limit: &Limit<'_>) -> u64;

    /// As [`Kernel::reaching`], for at most [`CHUNK`] rows named by number; the codes of `ahead`
    /// are fetched into the cache meanwhile.
    fn reaching_listed(
        &self,
        rows: &CodedRows<'_>,
        listed: &[u32],
        ahead: &[u32],
        limit: &Limit<'_>,
    ) -> u64;

    /// Start fetching bytes that will be read soon.
    fn prefetch(&self, bytes: &[u8]);
}

/// Add eight lanes in the one fixed order.
fn add_lanes(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// All kernels this CPU can run, the fastest first.
fn supported() -> Vec<&'static dyn Kernel> {
    let mut kernels: Vec<&'static dyn Kernel> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        kernels.extend(avx512::detect());
        kernels.extend(avx2::detect());
    }
    kernels.push(&portable::Portable);
    kernels
}

/// Every kernel's name, the fastest first.
const KNOWN: [&str; 3] = ["avx512vnni", "avx2", "portable"];

/// The kernel of this process: the one `MNEMIC_KERNEL` names, else the fastest.
pub(crate) fn kernel() -> Result<&'static dyn Kernel, Error> {
    static CHOSEN: OnceLock<Result<&'static dyn Kernel, Error>> = OnceLock::new();
    CHOSEN.get_or_init(|| choose(std::env::var("MNEMIC_KERNEL").ok().as_deref())).clone()
}

fn choose(name: Option<&str>) -> Result<&'static dyn Kernel, Error> {
    let supported = supported();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(supported[0]);
    };
    if let Some(kernel) = supported.iter().find(|kernel| kernel.name() == name) {
        return Ok(*kernel);
    }
    let found = name.to_owned();
    if KNOWN.contains(&name) {
        let names: Vec<&str> = supported.iter().map(|kernel| kernel.name()).collect();
        return Err(Error::UnsupportedKernel { found, supported: names.join(", ") });
    }
    Err(Error::UnknownKernel { found, known: KNOWN.join(", ") })
}
