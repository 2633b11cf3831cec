//! Kernels: one file for each instruction set, and the choice among them by CPU.
//!
//! A kernel value exists only on CPUs with its instructions, so calling it is sound.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avxvnni;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::format::Model;
use crate::forward::Batch;
use crate::scratch::Scratch;

/// Runs a model with one instruction set.
pub(crate) trait Kernel: Sync {
    fn name(&self) -> &'static str;

    /// Embed the texts of a batch; all their tokens are in the vocabulary.
    fn run(
        &self,
        model: &Model,
        batch: Batch<'_>,
        scratch: &mut Scratch,
        vectors: &mut [f32],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error>;
}

/// All kernels this CPU can run, the fastest first.
pub(crate) fn supported() -> Vec<&'static dyn Kernel> {
    let mut kernels: Vec<&'static dyn Kernel> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        kernels.extend(avx512::detect().map(|kernel| kernel as &dyn Kernel));
        kernels.extend(avxvnni::detect().map(|kernel| kernel as &dyn Kernel));
        kernels.extend(avx2::detect().map(|kernel| kernel as &dyn Kernel));
    }
    #[cfg(target_arch = "aarch64")]
    {
        kernels.extend(neon::detect_dot().map(|kernel| kernel as &dyn Kernel));
        kernels.extend(neon::detect().map(|kernel| kernel as &dyn Kernel));
    }
    kernels.push(&portable::Portable);
    kernels
}

/// The kernel that a name asks for, else the fastest.
///
/// The names are those of the search's kernels, so that one setting chooses both; the search has
/// none for AVX-VNNI.
pub(crate) fn choose(name: Option<&str>) -> Result<&'static dyn Kernel, Error> {
    let supported = supported();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(supported[0]);
    };
    if let Some(kernel) = supported.iter().find(|kernel| kernel.name() == name) {
        return Ok(*kernel);
    }
    let names: Vec<&str> = supported.iter().map(|kernel| kernel.name()).collect();
    Err(Error::UnsupportedKernel { found: name.to_owned(), supported: names.join(", ") })
}
