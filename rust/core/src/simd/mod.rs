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
use crate::quant::{QueryCodes, RowBound};

/// Rows are looked at in chunks of this many, the bits of one mask.
pub(crate) const CHUNK: usize = 64;

/// Float64 sums go over this many lanes and then through a fixed tree, in every kernel.
pub(crate) const LANES: usize = 8;

/// The cache lines of one row's codes.
type Lines<'a> = std::slice::Iter<'a, [u8; 64]>;

/// Eight row numbers from a list, repeating the last where there are fewer.
#[inline]
fn eight_of(listed: &[u32]) -> [usize; 8] {
    std::array::from_fn(|at| listed[at.min(listed.len() - 1)] as usize)
}

/// Eight consecutive row numbers, repeating the last where fewer are wanted.
#[inline]
fn eight_from(first: usize, count: usize) -> [usize; 8] {
    std::array::from_fn(|at| first + at.min(count - 1))
}

/// The values of eight rows named by number.
#[inline]
fn values_of(values: &[f32], picked: [usize; 8]) -> [f32; 8] {
    picked.map(|row| values[row])
}

/// The values of eight consecutive rows.
#[inline]
fn values_from(values: &[f32], first: usize) -> &[f32; 8] {
    values[first..]
        .first_chunk()
        .expect("every coded row has its bound")
}

/// The int8 copy of a segment's rows.
#[derive(Clone, Copy)]
pub(crate) struct CodedRows<'a> {
    /// `stride` bytes a row.
    pub(crate) codes: &'a [u8],
    pub(crate) stride: usize,
    pub(crate) scale: &'a [f32],
    pub(crate) residual: &'a [f32],
    pub(crate) norm: &'a [f32],
}

impl<'a> CodedRows<'a> {
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        &self.codes[row * self.stride..(row + 1) * self.stride]
    }

    pub(crate) fn bound(&self, row: usize) -> RowBound {
        RowBound {
            scale: self.scale[row],
            residual: self.residual[row],
            norm: self.norm[row],
        }
    }

    /// The codes of eight rows, named by number, as cache lines.
    #[inline]
    fn picked_lines(&self, picked: [usize; 8]) -> [Lines<'a>; 8] {
        picked.map(|row| self.row(row).as_chunks().0.iter())
    }

    /// The codes of eight consecutive rows as cache lines.
    #[inline]
    fn run_lines(&self, first: usize) -> [Lines<'a>; 8] {
        let run = &self.codes[first * self.stride..(first + 8) * self.stride];
        std::array::from_fn(|row| run[row * self.stride..][..self.stride].as_chunks().0.iter())
    }
}

/// The inner loops. Every kernel gives the same float64 sums to the bit; bounds may differ in
/// tightness, never in what they promise.
pub(crate) trait Kernel: Sync {
    fn name(&self) -> &'static str;

    /// Inner product in float64: products are exact, element `i` goes to lane `i % 8`, lanes are
    /// added as `((0+4)+(2+6)) + ((1+5)+(3+7))`. Both slices have the same multiple of 8 elements.
    fn dot(&self, row: &[f32], query: &[f64]) -> f64;

    /// [`crate::quant::encode`], compiled for this kernel's instructions.
    fn encode(&self, row: &[f32], codes: &mut [u8]) -> RowBound;

    /// [`QueryCodes::new`], compiled for this kernel's instructions.
    fn query_codes(&self, query: &[f32]) -> QueryCodes;

    /// The sums of `codes · high` and `codes · low`.
    fn plane_sums(&self, codes: &[u8], query: &QueryCodes) -> (i32, i32);

    /// Bit `i` is set unless row `first + i` certainly scores below `threshold` (scores times
    /// `query.power`). `count` is at most [`CHUNK`].
    fn reaching(
        &self,
        rows: &CodedRows<'_>,
        first: usize,
        count: usize,
        query: &QueryCodes,
        threshold: f32,
    ) -> u64;

    /// As [`Kernel::reaching`], for at most [`CHUNK`] rows named by number; `ahead` is fetched
    /// into the cache meanwhile.
    fn reaching_listed(
        &self,
        rows: &CodedRows<'_>,
        listed: &[u32],
        ahead: &[u32],
        query: &QueryCodes,
        threshold: f32,
    ) -> u64;

    /// Start fetching a row that will be read soon.
    fn prefetch(&self, row: &[f32]);
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
    CHOSEN
        .get_or_init(|| choose(std::env::var("MNEMIC_KERNEL").ok().as_deref()))
        .clone()
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
        return Err(Error::UnsupportedKernel {
            found,
            supported: names.join(", "),
        });
    }
    Err(Error::UnknownKernel {
        found,
        known: KNOWN.join(", "),
    })
}
