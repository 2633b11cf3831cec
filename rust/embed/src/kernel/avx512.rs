//! AVX-512 with VNNI: a register is 16 channels of a row, and a step is four inputs.
#![expect(unsafe_code, reason = "vector loads and calls of AVX-512 functions")]

use std::arch::x86_64::*;

use std::ops::Range;

use super::{instructions, vectors, vectors512};
use crate::error::Error;
use crate::floats::Sums;
use crate::format::{Block, CHANNELS, Dense, Lanes, Model, Pair, STEPS};
use crate::forward::{self, Batch, Instructions, Panel, Place, finish};
use crate::scratch::{Floats, Form, Forms, Scratch};

/// Number of steps from the weights that are read to those that are prefetched.
const STEPS_AHEAD: usize = 64;

/// Exists only where AVX-512 F, BW, VL, VNNI and FMA do: `detect` alone makes one.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Vnni(());

pub(crate) fn detect() -> Option<&'static Avx512Vnni> {
    static KERNEL: Avx512Vnni = Avx512Vnni(());
    let found = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma");
    found.then_some(&KERNEL)
}

vectors!([] Avx512Vnni, vectors512, __m512, u8, low_bytes);

// With two registers a row, two of weights and one of codes, 27 of the 32; 14 rows are no
// faster.
instructions!(
    Avx512Vnni, "avx512vnni", "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma", u8, bytes,
    attend::<4, 2>, rows::<1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12>
);

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn rows<const HEIGHT: usize>(
    cpu: Avx512Vnni,
    panel: Panel<'_, u8>,
    dense: Dense<'_>,
    mut output: Place<'_>,
) {
    for pair in 0..dense.scales.len() {
        let sums = add_products::<HEIGHT>(panel, dense.pair(pair));
        let mut lanes = [[[0; CHANNELS]; HEIGHT]; 2];
        for (half, lanes) in lanes.iter_mut().enumerate() {
            for (sums, lanes) in sums.iter().zip(lanes) {
                store(sums[half], lanes);
            }
        }
        finish(cpu, &lanes, panel, dense, pair, &mut output);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_products<const HEIGHT: usize>(
    panel: Panel<'_, u8>,
    weights: &[[Pair; STEPS]],
) -> [[__m512i; 2]; HEIGHT] {
    let mut sums = [[_mm512_setzero_si512(); 2]; HEIGHT];
    for (part, weights) in weights.iter().enumerate() {
        let rows = panel.part::<HEIGHT>(part);
        for (step, pair) in weights.iter().enumerate() {
            prefetch(pair);
            let (first, second) = (load(&pair[0]), load(&pair[1]));
            for (sums, row) in sums.iter_mut().zip(rows) {
                let codes = _mm512_set1_epi32(i32::from_le_bytes(row[step]));
                sums[0] = _mm512_dpbusd_epi32(sums[0], codes, first);
                sums[1] = _mm512_dpbusd_epi32(sums[1], codes, second);
            }
        }
    }
    sums
}

/// Fetch the weights of a later step.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn prefetch(pair: &Pair) {
    let later = std::ptr::from_ref(pair).wrapping_add(STEPS_AHEAD);
    for line in 0..2 {
        _mm_prefetch::<_MM_HINT_T0>(later.cast::<Block>().wrapping_add(line).cast());
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(block: &Block) -> __m512i {
    // SAFETY: the reference covers the 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(sums: __m512i, lanes: &mut Sums) {
    // SAFETY: the reference covers the 16 lanes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sums) };
}
