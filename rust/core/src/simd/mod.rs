//! Kernels: one file for each instruction set, and the choice among them by CPU.
//!
//! A kernel value exists only on CPUs with its instructions, so calling it is sound.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod blocked;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::Error;
use crate::quantization::coded_rows::CodedRows;
use crate::quantization::kernel::{Kernel, Limit, Rows, Uppers};
use crate::quantization::scalar::LANES;

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
    #[cfg(target_arch = "aarch64")]
    {
        kernels.extend(neon::detect_dot());
        kernels.extend(neon::detect());
    }
    kernels.push(&portable::Portable);
    kernels
}

/// Every kernel's name, the fastest first.
const KNOWN: [&str; 5] = ["avx512vnni", "avx2", "neondot", "neon", "portable"];

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
