//! AVX-512 with VNNI: a register is 16 channels of a row, and a step is four inputs.
#![expect(unsafe_code, reason = "vector loads and calls of AVX-512 functions")]

use std::arch::x86_64::*;

use super::Kernel;
use crate::error::Error;
use crate::format::{Block, Dense, Model};
use crate::forward::{self, Batch, Instructions, Panel, finish};
use crate::scratch::{Codes, Forms, Rounded, Scratch};

/// Exists only where AVX-512 F, BW, VL, VNNI and FMA do: `detect` alone makes one.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Vnni(());

pub(crate) fn detect() -> Option<&'static dyn Kernel> {
    static KERNEL: Avx512Vnni = Avx512Vnni(());
    let found = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma");
    found.then_some(&KERNEL as _)
}

impl Kernel for Avx512Vnni {
    fn name(&self) -> &'static str {
        "avx512vnni"
    }

    fn run(
        &self,
        model: &Model,
        batch: Batch<'_>,
        scratch: &mut Scratch,
        vectors: &mut [f32],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        // SAFETY: an `Avx512Vnni` is only reachable through `detect`, which found the features.
        unsafe { run(model, batch, scratch, vectors, is_over) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn run(
    model: &Model,
    batch: Batch<'_>,
    scratch: &mut Scratch,
    vectors: &mut [f32],
    is_over: &dyn Fn() -> bool,
) -> Result<(), Error> {
    forward::run(Avx512Vnni(()), model, batch, scratch, vectors, is_over)
}

impl Instructions for Avx512Vnni {
    type Code = u8;
    /// With two registers a row, two of weights and one of codes, 31 of the 32.
    const ROWS: usize = 14;

    fn form(forms: &mut Forms) -> &mut Rounded<u8> {
        &mut forms.bytes
    }

    fn multiply(self, panel: Panel<'_, u8>, dense: Dense<'_>, group: usize, output: &mut [f32]) {
        // SAFETY: as in `run`.
        unsafe { multiply(panel, dense, group, output) }
    }
}

/// Few rows take all channels of a group together, so that sums need not wait for each other.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn multiply(panel: Panel<'_, u8>, dense: Dense<'_>, group: usize, output: &mut [f32]) {
    match panel.ranges.len() {
        1 => rows::<1, 4>(panel, dense, group, output),
        2 => rows::<2, 4>(panel, dense, group, output),
        3 => rows::<3, 4>(panel, dense, group, output),
        4 => rows::<4, 4>(panel, dense, group, output),
        5 => rows::<5, 4>(panel, dense, group, output),
        6 => rows::<6, 4>(panel, dense, group, output),
        7 => rows::<7, 2>(panel, dense, group, output),
        8 => rows::<8, 2>(panel, dense, group, output),
        9 => rows::<9, 2>(panel, dense, group, output),
        10 => rows::<10, 2>(panel, dense, group, output),
        11 => rows::<11, 2>(panel, dense, group, output),
        12 => rows::<12, 2>(panel, dense, group, output),
        13 => rows::<13, 2>(panel, dense, group, output),
        14 => rows::<14, 2>(panel, dense, group, output),
        _ => unreachable!("panels have 1 to `ROWS` rows"),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn rows<const HEIGHT: usize, const BLOCKS: usize>(
    panel: Panel<'_, u8>,
    dense: Dense<'_>,
    group: usize,
    output: &mut [f32],
) {
    let columns = panel.codes.as_chunks::<HEIGHT>().0;
    for first in dense.blocks(group).step_by(BLOCKS) {
        let mut weights = [&[] as &[Block]; BLOCKS];
        for (at, weights) in weights.iter_mut().enumerate() {
            *weights = &dense.of_block(first + at)[..columns.len()];
        }
        let sums = add_products(columns, weights);
        for (row, (sums, range)) in sums.iter().zip(panel.ranges).enumerate() {
            let output = &mut output[row * dense.outputs()..];
            for (at, sums) in sums.iter().enumerate() {
                finish(&lanes(*sums), *range, dense, first + at, output);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_products<const HEIGHT: usize, const BLOCKS: usize>(
    columns: &[[Codes<u8>; HEIGHT]],
    weights: [&[Block]; BLOCKS],
) -> [[__m512i; BLOCKS]; HEIGHT] {
    let mut sums = [[_mm512_setzero_si512(); BLOCKS]; HEIGHT];
    for (step, column) in columns.iter().enumerate() {
        let mut blocks = [_mm512_setzero_si512(); BLOCKS];
        for (block, weights) in blocks.iter_mut().zip(weights) {
            *block = load(&weights[step]);
        }
        for (sums, codes) in sums.iter_mut().zip(column) {
            let codes = _mm512_set1_epi32(i32::from_le_bytes(*codes));
            for (sum, block) in sums.iter_mut().zip(blocks) {
                *sum = _mm512_dpbusd_epi32(*sum, codes, block);
            }
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(block: &Block) -> __m512i {
    // SAFETY: the reference covers the 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lanes(sums: __m512i) -> [i32; 16] {
    let mut lanes = [0; 16];
    // SAFETY: the reference covers the 16 lanes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sums) };
    lanes
}
