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
pub(crate) mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "aarch64")]
mod vectors128;
#[cfg(target_arch = "x86_64")]
mod vectors256;
#[cfg(target_arch = "x86_64")]
mod vectors512;

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

/// Implements [`crate::floats::Vectors`] by the functions of a module.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! vectors {
    ([$($generic:tt)*] $kernel:ty, $module:ident, $vector:ty, $code:ty, $low:ident) => {
        impl<$($generic)*> $crate::floats::Vectors for $kernel {
            type Vector = $vector;
            type Code = $code;

            $crate::kernel::vectors! { $module:
                load(lanes: &$crate::format::Lanes) -> $vector;
                splat(number: f32) -> $vector;
                add(one: $vector, other: $vector) -> $vector;
                multiply(one: $vector, other: $vector) -> $vector;
                multiply_add(one: $vector, other: $vector, more: $vector) -> $vector;
                least(one: $vector, other: $vector) -> $vector;
                largest(one: $vector, other: $vector) -> $vector;
                interleaved(one: $vector, other: $vector) -> [$vector; 2];
                minus_size(vector: $vector) -> $vector;
                floats(sums: &$crate::floats::Sums) -> $vector;
                store(vector: $vector, lanes: &mut $crate::format::Lanes) -> ();
            }

            #[inline(always)]
            fn low_bytes(self, vector: $vector) -> [$code; 16] {
                // SAFETY: a value exists only on CPUs with the instructions.
                unsafe { $module::$low(vector) }
            }
        }
    };
    ($module:ident: $($name:ident($($operand:ident: $type:ty),+) -> $result:ty;)+) => {$(
        #[inline(always)]
        fn $name(self, $($operand: $type),+) -> $result {
            // SAFETY: a value exists only on CPUs with the instructions.
            unsafe { $module::$name($($operand),+) }
        }
    )+};
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use vectors;

/// Implements [`Kernel`] and [`crate::forward::Instructions`] by functions that are compiled for CPU
/// features: the code of activations and the form with them, keys and values that are mixed
/// together, and the numbers of rows for which `rows` adds up products.
#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    (
        $kernel:ident, $name:literal, $features:literal, $code:ty, $form:ident,
        attend::<$fours:literal, $halves:literal>, rows::<$($height:literal)|+>
    ) => {
        impl $crate::kernel::Kernel for $kernel {
            fn name(&self) -> &'static str {
                $name
            }

            fn run(
                &self,
                model: &Model,
                batch: Batch<'_>,
                scratch: &mut Scratch,
                vectors: &mut [f32],
                is_over: &dyn Fn() -> bool,
            ) -> Result<(), Error> {
                // SAFETY: a value is only reachable through `detect`, which found the features.
                unsafe { run(model, batch, scratch, vectors, is_over) }
            }
        }

        #[target_feature(enable = $features)]
        fn run(
            model: &Model,
            batch: Batch<'_>,
            scratch: &mut Scratch,
            vectors: &mut [f32],
            is_over: &dyn Fn() -> bool,
        ) -> Result<(), Error> {
            forward::run($kernel(()), model, batch, scratch, vectors, is_over)
        }

        impl Instructions for $kernel {
            const ROWS: usize = [$($height),+].len();

            fn form(forms: &mut Forms) -> &mut Form<$code> {
                &mut forms.$form
            }

            fn multiply_panel(self, panel: Panel<'_, $code>, dense: Dense<'_>, output: Place<'_>) {
                // SAFETY: as in `run`.
                unsafe { multiply(self, panel, dense, output) }
            }

            fn attend(
                self,
                text: Range<usize>,
                wide: &Floats,
                scores: &mut Vec<Lanes>,
                output: &mut Floats,
            ) {
                // SAFETY: as in `run`.
                unsafe { attend(self, text, wide, scores, output) }
            }
        }

        #[target_feature(enable = $features)]
        fn attend(
            cpu: $kernel,
            text: Range<usize>,
            wide: &Floats,
            scores: &mut Vec<Lanes>,
            output: &mut Floats,
        ) {
            forward::attend::<_, $fours, $halves>(cpu, text, wide, scores, output);
        }

        #[target_feature(enable = $features)]
        fn multiply(cpu: $kernel, panel: Panel<'_, $code>, dense: Dense<'_>, output: Place<'_>) {
            match panel.ranges.len() {
                $($height => rows::<$height>(cpu, panel, dense, output),)+
                _ => unreachable!("panels have 1 to `ROWS` rows"),
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
use instructions;

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
