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
use crate::quant::QueryCodes;

/// Rows are looked at in chunks of this many, the bits of one mask.
pub(crate) const CHUNK: usize = 64;

/// Float64 sums go over this many lanes and then through a fixed tree, in every kernel.
pub(crate) const LANES: usize = 8;

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
}

/// The inner loops. Every kernel gives the same float64 sums to the bit; bounds may differ in
/// tightness, never in what they promise.
pub(crate) trait Kernel: Sync {
    fn name(&self) -> &'static str;

    /// Inner product in float64: products are exact, element `i` goes to lane `i % 8`, lanes are
    /// added as `((0+4)+(2+6)) + ((1+5)+(3+7))`. Both slices have the same multiple of 8 elements.
    fn dot(&self, row: &[f32], query: &[f64]) -> f64;

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
