//! AVX2 with VNNI, as processors without AVX-512 have it: a register is eight channels of a row.
#![expect(unsafe_code, reason = "vector loads and calls of AVX2 functions")]

use std::arch::x86_64::*;

use super::Kernel;
use crate::error::Error;
use crate::format::{Block, CHANNELS, Dense, INPUTS, Model, Pair};
use crate::forward::{self, Batch, Instructions, Panel, finish};
use crate::scratch::{Forms, HeadScratch, Rounded, Scratch};

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

impl Kernel for AvxVnni {
    fn name(&self) -> &'static str {
        "avxvnni"
    }

    fn run(
        &self,
        model: &Model,
        batch: Batch<'_>,
        scratch: &mut Scratch,
        vectors: &mut [f32],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        // SAFETY: an `AvxVnni` is only reachable through `detect`, which found the features.
        unsafe { run(model, batch, scratch, vectors, is_over) }
    }
}

#[target_feature(enable = "avx2,fma,avxvnni")]
fn run(
    model: &Model,
    batch: Batch<'_>,
    scratch: &mut Scratch,
    vectors: &mut [f32],
    is_over: &dyn Fn() -> bool,
) -> Result<(), Error> {
    forward::run(AvxVnni(()), model, batch, scratch, vectors, is_over)
}

impl Instructions for AvxVnni {
    type Code = u8;
    /// With two registers a row, two of weights and one of codes, 15 of the 16.
    const ROWS: usize = 6;

    fn form(forms: &mut Forms) -> &mut Rounded<u8> {
        &mut forms.bytes
    }

    fn multiply(self, panel: Panel<'_, u8>, dense: Dense<'_>, pair: usize, output: &mut [f32]) {
        // SAFETY: as in `run`.
        unsafe { multiply(panel, dense, pair, output) }
    }

    fn attend(self, rows: &[f32], size: usize, scratch: &mut HeadScratch, output: &mut [f32]) {
        // SAFETY: as in `run`.
        unsafe { attend(rows, size, scratch, output) }
    }
}

#[target_feature(enable = "avx2,fma,avxvnni")]
fn attend(rows: &[f32], size: usize, scratch: &mut HeadScratch, output: &mut [f32]) {
    forward::attend::<1>(rows, size, scratch, output);
}

#[target_feature(enable = "avx2,fma,avxvnni")]
fn multiply(panel: Panel<'_, u8>, dense: Dense<'_>, pair: usize, output: &mut [f32]) {
    match panel.ranges.len() {
        1 => rows::<1>(panel, dense, pair, output),
        2 => rows::<2>(panel, dense, pair, output),
        3 => rows::<3>(panel, dense, pair, output),
        4 => rows::<4>(panel, dense, pair, output),
        5 => rows::<5>(panel, dense, pair, output),
        6 => rows::<6>(panel, dense, pair, output),
        _ => unreachable!("panels have 1 to `ROWS` rows"),
    }
}

#[target_feature(enable = "avx2,fma,avxvnni")]
fn rows<const HEIGHT: usize>(
    panel: Panel<'_, u8>,
    dense: Dense<'_>,
    pair: usize,
    output: &mut [f32],
) {
    let codes = panel.rows::<HEIGHT>(dense.inputs);
    for half in 0..2 {
        let sums = add_products(codes, dense.pair(pair), half);
        for (row, (sums, range)) in sums.iter().zip(panel.ranges).enumerate() {
            let output = &mut output[row * dense.outputs()..];
            let sums = bytemuck::cast([lanes(sums[0]), lanes(sums[1])]);
            finish(&sums, *range, dense, 2 * pair + half, output);
        }
    }
}

/// The sums of two times eight channels of each row.
#[inline]
#[target_feature(enable = "avx2,fma,avxvnni")]
fn add_products<const HEIGHT: usize>(
    mut rows: [&[[u8; INPUTS]]; HEIGHT],
    weights: &[Pair],
    half: usize,
) -> [[__m256i; 2]; HEIGHT] {
    for row in &mut rows {
        *row = &row[..weights.len()];
    }
    let mut sums = [[_mm256_setzero_si256(); 2]; HEIGHT];
    for (step, pair) in weights.iter().enumerate() {
        let (first, second) = load(&pair[half]);
        for (sums, row) in sums.iter_mut().zip(rows) {
            let codes = _mm256_set1_epi32(i32::from_le_bytes(row[step]));
            sums[0] = _mm256_dpbusd_avx_epi32(sums[0], codes, first);
            sums[1] = _mm256_dpbusd_avx_epi32(sums[1], codes, second);
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
fn lanes(sums: __m256i) -> [i32; EIGHT] {
    let mut lanes = [0; EIGHT];
    // SAFETY: the reference covers the eight lanes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
    lanes
}
