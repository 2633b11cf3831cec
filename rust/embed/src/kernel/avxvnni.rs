//! AVX2 with VNNI, as processors without AVX-512 have it: a register is eight channels of a row.
#![expect(unsafe_code, reason = "vector loads and calls of AVX2 functions")]

use std::arch::x86_64::*;

use std::ops::Range;

use super::{instructions, vectors, vectors256};
use crate::error::Error;
use crate::format::{Block, CHANNELS, Dense, Lanes, Model, Pair, STEPS};
use crate::forward::{self, Batch, Instructions, Panel, Place, finish};
use crate::scratch::{Floats, Form, Forms, Scratch};

/// Channels of a row whose sums lie in a register.
const EIGHT: usize = CHANNELS / 2;

/// Exists only where AVX2, FMA and AVX-VNNI do: `detect` alone makes one.
#[derive(Clone, Copy)]
pub(crate) struct AvxVnni(());

pub(crate) fn detect() -> Option<&'static AvxVnni> {
    static KERNEL: AvxVnni = AvxVnni(());
    let found = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("avxvnni");
    found.then_some(&KERNEL)
}

vectors!([] AvxVnni, vectors256, vectors256::Vector, u8, low_bytes);

// With two registers a row, two of weights and one of codes, 15 of the 16.
instructions!(
    AvxVnni, "avxvnni", "avx2,fma,avxvnni", u8, bytes,
    attend::<1, 1>, rows::<1 | 2 | 3 | 4 | 5 | 6>
);

#[target_feature(enable = "avx2,fma,avxvnni")]
fn rows<const HEIGHT: usize>(
    cpu: AvxVnni,
    panel: Panel<'_, u8>,
    dense: Dense<'_>,
    mut output: Place<'_>,
) {
    for pair in 0..dense.scales.len() {
        let mut lanes = [[[0; CHANNELS]; HEIGHT]; 2];
        for (half, lanes) in lanes.iter_mut().enumerate() {
            let sums = add_products::<HEIGHT>(panel, dense.pair(pair), half);
            for (sums, lanes) in sums.iter().zip(lanes) {
                let [front, back] = bytemuck::cast_mut(lanes);
                store(sums[0], front);
                store(sums[1], back);
            }
        }
        finish(cpu, &lanes, panel, dense, pair, &mut output);
    }
}

/// The sums of two times eight channels of each row.
#[inline]
#[target_feature(enable = "avx2,fma,avxvnni")]
fn add_products<const HEIGHT: usize>(
    panel: Panel<'_, u8>,
    weights: &[[Pair; STEPS]],
    half: usize,
) -> [[__m256i; 2]; HEIGHT] {
    let mut sums = [[_mm256_setzero_si256(); 2]; HEIGHT];
    for (part, weights) in weights.iter().enumerate() {
        let rows = panel.part::<HEIGHT>(part);
        for (step, pair) in weights.iter().enumerate() {
            let (first, second) = load(&pair[half]);
            for (sums, row) in sums.iter_mut().zip(rows) {
                let codes = _mm256_set1_epi32(i32::from_le_bytes(row[step]));
                sums[0] = _mm256_dpbusd_avx_epi32(sums[0], codes, first);
                sums[1] = _mm256_dpbusd_avx_epi32(sums[1], codes, second);
            }
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx2,fma,avxvnni")]
fn load(block: &Block) -> (__m256i, __m256i) {
    let [first, second] = bytemuck::cast_ref::<Block, [[i8; 32]; 2]>(block);
    // SAFETY: the reference covers the 32 bytes, and the load needs no alignment.
    let first = unsafe { _mm256_loadu_si256(first.as_ptr().cast()) };
    // SAFETY: as for the first.
    let second = unsafe { _mm256_loadu_si256(second.as_ptr().cast()) };
    (first, second)
}

#[inline]
#[target_feature(enable = "avx2,fma,avxvnni")]
fn store(sums: __m256i, lanes: &mut [i32; EIGHT]) {
    // SAFETY: the reference covers the eight lanes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
}
