//! AVX2 and FMA: codes and weights as 16-bit numbers, because products of bytes would saturate.
#![expect(unsafe_code, reason = "vector loads and calls of AVX2 functions")]

use std::arch::x86_64::*;
use std::hint::black_box;

use std::ops::Range;

use super::{instructions, vectors, vectors256};
use crate::error::Error;
use crate::format::{CHANNELS, Dense, Lanes, Model, Pair, STEPS};
use crate::forward::{self, Batch, Instructions, Panel, Place, finish};
use crate::scratch::{Floats, Form, Forms, Scratch};

/// Channels of a row whose sums lie in two registers.
const EIGHT: usize = CHANNELS / 2;

/// Exists only where AVX2 and FMA do: `detect` alone makes one.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

pub(crate) fn detect() -> Option<&'static Avx2> {
    static KERNEL: Avx2 = Avx2(());
    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(&KERNEL)
}

vectors!([] Avx2, vectors256, vectors256::Vector, i16, low_words);

// With two registers a row, two of weights, one of codes and one of products, 14 of the 16.
instructions!(
    Avx2, "avx2", "avx2,fma", i16, words,
    attend::<1, 1>, rows::<1 | 2 | 3 | 4 | 5>
);

#[target_feature(enable = "avx2,fma")]
fn rows<const HEIGHT: usize>(
    cpu: Avx2,
    panel: Panel<'_, i16>,
    dense: Dense<'_>,
    mut output: Place<'_>,
) {
    for pair in 0..dense.scales.len() {
        let mut lanes = [[[0; CHANNELS]; HEIGHT]; 2];
        for eight in 0..4 {
            let sums = add_products::<HEIGHT>(panel, dense.pair(pair), eight);
            for (sums, lanes) in sums.iter().zip(&mut lanes[eight / 2]) {
                store(*sums, &mut lanes.as_chunks_mut().0[eight % 2]);
            }
        }
        finish(cpu, &lanes, panel, dense, pair, &mut output);
    }
}

/// The sums of eight channels of each row; a product of a code and a weight fits 16 bits and two
/// of them 32.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_products<const HEIGHT: usize>(
    panel: Panel<'_, i16>,
    weights: &[[Pair; STEPS]],
    eight: usize,
) -> [__m256i; HEIGHT] {
    // Unrolled, the sums no longer fit the registers, which takes 15 % of the time.
    let steps = black_box(STEPS);
    let mut sums = [[_mm256_setzero_si256(); 2]; HEIGHT];
    for (part, weights) in weights.iter().enumerate() {
        let rows = panel.part::<HEIGHT>(part);
        for (step, pair) in weights.iter().take(steps).enumerate() {
            let quarters = &pair.as_flattened().as_chunks::<16>().0[2 * eight..];
            let (first, second) = (load(&quarters[0]), load(&quarters[1]));
            for (sums, row) in sums.iter_mut().zip(rows) {
                let codes = _mm256_set1_epi64x(bytemuck::cast(row[step]));
                sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(codes, first));
                sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(codes, second));
            }
        }
    }
    let mut channels = [_mm256_setzero_si256(); HEIGHT];
    for (channels, [first, second]) in channels.iter_mut().zip(sums) {
        let pairs = _mm256_hadd_epi32(first, second);
        *channels = _mm256_permute4x64_epi64::<0b11_01_10_00>(pairs);
    }
    channels
}

/// Four inputs of four channels.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn load(weights: &[i8; 16]) -> __m256i {
    // SAFETY: the reference covers the 16 bytes, and the load needs no alignment.
    let bytes = unsafe { _mm_loadu_si128(weights.as_ptr().cast()) };
    _mm256_cvtepi8_epi16(bytes)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store(sums: __m256i, lanes: &mut [i32; EIGHT]) {
    // SAFETY: the reference covers the eight lanes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
}
