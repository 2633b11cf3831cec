//! NEON: a register is four channels of a row; products go through the dot product instruction
//! where the CPU has it, and through widening products where not.
//!
//! Every build for this architecture has NEON, so plain code needs no function of its own to be
//! compiled for it. `udot` is assembly because its intrinsic is not stable.
#![expect(unsafe_code, reason = "vector loads, assembly and calls of NEON functions")]

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use std::ops::Range;

use super::{Kernel, vectors, vectors128};
use crate::error::Error;
use crate::floats::Sums;
use crate::format::{CHANNELS, Dense, Lanes, Model, Pair, STEPS};
use crate::forward::{self, Batch, Instructions, Panel, Place, finish};
use crate::scratch::{Floats, Form, Forms, Scratch};

/// Registers of the sums of 16 channels.
const FOURS: usize = CHANNELS / 4;

/// Exists only where NEON does, and with `DOT` only where dotprod does: `detect` and `detect_dot`
/// alone make one.
#[derive(Clone, Copy)]
pub(crate) struct Neon<const DOT: bool>(());

pub(crate) fn detect() -> Option<&'static Neon<false>> {
    static KERNEL: Neon<false> = Neon(());
    is_aarch64_feature_detected!("neon").then_some(&KERNEL)
}

pub(crate) fn detect_dot() -> Option<&'static Neon<true>> {
    static KERNEL: Neon<true> = Neon(());
    let found = is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("dotprod");
    found.then_some(&KERNEL)
}

impl<const DOT: bool> Kernel for Neon<DOT> {
    fn name(&self) -> &'static str {
        if DOT { "neondot" } else { "neon" }
    }

    fn run(
        &self,
        model: &Model,
        batch: Batch<'_>,
        scratch: &mut Scratch,
        vectors: &mut [f32],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        forward::run(*self, model, batch, scratch, vectors, is_over)
    }
}

vectors!([const DOT: bool] Neon<DOT>, vectors128, vectors128::Vector, u8, low_bytes);

impl<const DOT: bool> Instructions for Neon<DOT> {
    /// With four registers a row, four of weights and one of codes, 21 of the 32; the widening
    /// products of a row alone take 16.
    const ROWS: usize = if DOT { 4 } else { 1 };

    fn form(forms: &mut Forms) -> &mut Form<u8> {
        &mut forms.bytes
    }

    fn multiply_panel(self, panel: Panel<'_, u8>, dense: Dense<'_>, output: Place<'_>) {
        match panel.ranges.len() {
            1 => rows::<DOT, 1>(self, panel, dense, output),
            2 => rows::<DOT, 2>(self, panel, dense, output),
            3 => rows::<DOT, 3>(self, panel, dense, output),
            4 => rows::<DOT, 4>(self, panel, dense, output),
            _ => unreachable!("panels have 1 to `ROWS` rows"),
        }
    }

    fn attend(
        self,
        text: Range<usize>,
        wide: &Floats,
        scores: &mut Vec<Lanes>,
        output: &mut Floats,
    ) {
        forward::attend::<_, 1, 1>(self, text, wide, scores, output);
    }
}

fn rows<const DOT: bool, const HEIGHT: usize>(
    cpu: Neon<DOT>,
    panel: Panel<'_, u8>,
    dense: Dense<'_>,
    mut output: Place<'_>,
) {
    for pair in 0..dense.scales.len() {
        let weights = dense.pair(pair);
        let lanes = [0, 1].map(|half| {
            if DOT {
                // SAFETY: a `Neon<true>` exists only where NEON and dotprod do.
                unsafe { dots::<HEIGHT>(panel, weights, half) }
            } else {
                // SAFETY: a `Neon` exists only where NEON does.
                unsafe { products::<HEIGHT>(panel, weights, half) }
            }
        });
        finish(cpu, &lanes, panel, dense, pair, &mut output);
    }
}

/// The sums of 16 channels of each row; only where the CPU has dotprod.
///
/// `udot` takes two unsigned operands, so 128 is added to each weight, and 128 times the sum of
/// the codes is subtracted at the end.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn dots<const HEIGHT: usize>(
    panel: Panel<'_, u8>,
    weights: &[[Pair; STEPS]],
    half: usize,
) -> [Sums; HEIGHT] {
    let mut sums = [[vdupq_n_u32(0); FOURS]; HEIGHT];
    let mut added = [0u32; HEIGHT];
    for (part, weights) in weights.iter().enumerate() {
        let rows = panel.part::<HEIGHT>(part);
        for (step, pair) in weights.iter().enumerate() {
            let mut weights = [vdupq_n_u8(0); FOURS];
            for (weights, part) in weights.iter_mut().zip(pair[half].as_chunks().0) {
                *weights = veorq_u8(vreinterpretq_u8_s8(load(part)), vdupq_n_u8(128));
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                let codes = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(row[step])));
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    // SAFETY: callers have found dotprod.
                    *sum = unsafe { udot(*sum, weights, codes) };
                }
            }
        }
        for (added, row) in added.iter_mut().zip(rows) {
            *added += row.as_flattened().iter().map(|code| u32::from(*code)).sum::<u32>();
        }
    }
    let mut channels = [[0; CHANNELS]; HEIGHT];
    for ((channels, sums), added) in channels.iter_mut().zip(sums).zip(added) {
        let added = vdupq_n_u32(added.wrapping_mul(128));
        for (place, sum) in channels.as_chunks_mut().0.iter_mut().zip(sums) {
            store(place, vreinterpretq_s32_u32(vsubq_u32(sum, added)));
        }
    }
    channels
}

/// Add to each lane four products; only where the CPU has dotprod. The extension is named here, so
/// that it is inlined into functions that do not name it.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn udot(mut sum: uint32x4_t, weights: uint8x16_t, codes: uint8x16_t) -> uint32x4_t {
    // SAFETY: it reads and writes these registers alone, and callers have found dotprod.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "udot {sum:v}.4s, {weights:v}.16b, {codes:v}.16b",
            sum = inout(vreg) sum,
            weights = in(vreg) weights,
            codes = in(vreg) codes,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

/// The sums of 16 channels of each row by products of 16-bit numbers, a register a channel.
#[inline]
#[target_feature(enable = "neon")]
fn products<const HEIGHT: usize>(
    panel: Panel<'_, u8>,
    weights: &[[Pair; STEPS]],
    half: usize,
) -> [Sums; HEIGHT] {
    let mut channels = [[0; CHANNELS]; HEIGHT];
    for (row, channels) in channels.iter_mut().enumerate() {
        let mut sums = [vdupq_n_s32(0); CHANNELS];
        for (part, weights) in weights.iter().enumerate() {
            let row = &panel.part::<HEIGHT>(part)[row];
            for (codes, pair) in row.iter().zip(weights) {
                let codes = vcreate_u8(u64::from(u32::from_le_bytes(*codes)));
                let codes = vget_low_s16(vreinterpretq_s16_u16(vmovl_u8(codes)));
                let parts = pair[half].as_chunks::<16>().0.iter();
                for (sums, part) in sums.as_chunks_mut::<4>().0.iter_mut().zip(parts) {
                    let part = load(part);
                    let (front, back) = (vmovl_s8(vget_low_s8(part)), vmovl_high_s8(part));
                    sums[0] = vmlal_s16(sums[0], vget_low_s16(front), codes);
                    sums[1] = vmlal_s16(sums[1], vget_high_s16(front), codes);
                    sums[2] = vmlal_s16(sums[2], vget_low_s16(back), codes);
                    sums[3] = vmlal_s16(sums[3], vget_high_s16(back), codes);
                }
            }
        }
        let places = channels.as_chunks_mut().0.iter_mut();
        for (place, [a, b, c, d]) in places.zip(sums.as_chunks().0) {
            store(place, vpaddq_s32(vpaddq_s32(*a, *b), vpaddq_s32(*c, *d)));
        }
    }
    channels
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[i8; 16]) -> int8x16_t {
    // SAFETY: the reference covers the 16 bytes.
    unsafe { vld1q_s8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(place: &mut [i32; 4], sums: int32x4_t) {
    // SAFETY: the reference covers the four lanes.
    unsafe { vst1q_s32(place.as_mut_ptr(), sums) };
}
