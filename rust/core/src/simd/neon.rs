//! NEON: eight rows at a time, 16 bytes of codes a step; products go through the dot product
//! instruction where the CPU has it, and through widening products where not.
//!
//! Every build for this architecture has NEON, so plain code needs no function of its own to be
//! compiled for it. `sdot` and `prfm` are assembly because their intrinsics are not stable.
#![expect(unsafe_code, reason = "vector loads, assembly and calls of NEON functions")]
#![expect(clippy::inline_always, reason = "as in `blocked`")]

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use super::blocked::{self, Ahead, Instructions, OfBlock};
use super::{Kernel, Limit, Rows, Uppers};
use crate::collections::append_buffer::Line;
use crate::quantization::coded_rows::{BLOCK_ROWS, CodedRows, SideBySide, SketchBlock};
use crate::quantization::scalar::{LINE_COMPONENTS, QueryCodes, RowBound};

/// Exists only where NEON does, and with `DOT` only where dotprod does: `detect` and `detect_dot`
/// alone make one.
#[derive(Clone, Copy)]
pub(crate) struct Neon<const DOT: bool>(());

pub(crate) fn detect() -> Option<&'static dyn Kernel> {
    static KERNEL: Neon<false> = Neon(());
    is_aarch64_feature_detected!("neon").then_some(&KERNEL as _)
}

pub(crate) fn detect_dot() -> Option<&'static dyn Kernel> {
    static KERNEL: Neon<true> = Neon(());
    let found = is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("dotprod");
    found.then_some(&KERNEL as _)
}

impl<const DOT: bool> Kernel for Neon<DOT> {
    fn name(&self) -> &'static str {
        if DOT { "neondot" } else { "neon" }
    }

    fn dot(&self, row: &[f32], query: &[f64]) -> f64 {
        // SAFETY: a `Neon` is only reachable through `detect` or `detect_dot`, which found NEON.
        unsafe { dot(row, query) }
    }

    fn code_sum(&self, bytes: &[Line], query: &QueryCodes) -> i64 {
        // SAFETY: as in `dot`.
        unsafe { code_sum(*self, bytes, query) }
    }

    fn bound(&self, codes: &CodedRows, rows: Rows<'_>, limit: &Limit<'_>, uppers: &mut Uppers<'_>) {
        blocked::bound(*self, codes, rows, limit, uppers);
    }

    fn at_least(&self, uppers: &[f32], threshold: f32, reaching: &mut [u64]) {
        blocked::at_least(*self, uppers, threshold, reaching);
    }

    fn prefetch(&self, lines: &[Line]) {
        for line in lines {
            Instructions::prefetch(*self, line);
        }
    }
}

/// Sums of the first eight rows, and of the others.
type Totals = [[int32x4_t; 2]; 2];

impl<const DOT: bool> Instructions for Neon<DOT> {
    type Totals = Totals;

    #[inline(always)]
    fn nibbles(self, rows: SideBySide<'_, BLOCK_ROWS>, plane: &[i8], ahead: Ahead) -> Totals {
        prefetch_all(self, &rows, ahead);
        // SAFETY: a `Neon` exists only where NEON was found; so in all that follow.
        rows.halves().map(|half| unsafe { nibbles(self, half, plane) })
    }

    #[inline(always)]
    fn bytes(self, rows: SideBySide<'_, BLOCK_ROWS>, plane: &[i8], ahead: Ahead) -> Totals {
        prefetch_all(self, &rows, ahead);
        // SAFETY: as in `nibbles`.
        rows.halves().map(|half| unsafe { bytes(self, half, plane) })
    }

    #[inline(always)]
    fn sketches(self, block: &SketchBlock, plane: &[i8]) -> Totals {
        if DOT {
            // SAFETY: as in `nibbles`.
            unsafe { sketches_dot(self, block, plane) }
        } else {
            // SAFETY: as in `nibbles`.
            unsafe { sketches(block, plane) }
        }
    }

    #[inline(always)]
    fn reaching(
        self,
        totals: Totals,
        bounds: &OfBlock<RowBound>,
        limit: &Limit<'_>,
        priors: Option<&OfBlock<f32>>,
        uppers: &mut OfBlock<f32>,
    ) -> u16 {
        // SAFETY: as in `nibbles`.
        unsafe { reaching(totals, bounds, limit, priors, uppers) }
    }

    #[inline(always)]
    fn at_least(self, uppers: &OfBlock<f32>, threshold: f32) -> u16 {
        // SAFETY: as in `nibbles`.
        unsafe { at_least(uppers, threshold) }
    }

    #[inline(always)]
    fn prefetch(self, line: *const Line) {
        // SAFETY: a prefetch is a hint and never faults, whatever the address.
        unsafe {
            asm!(
                "prfm pldl1keep, [{line}]",
                line = in(reg) line.addr(),
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

/// Prefetch as many lines as those of some rows.
#[inline(always)]
fn prefetch_all<const DOT: bool>(cpu: Neon<DOT>, rows: &SideBySide<'_, BLOCK_ROWS>, ahead: Ahead) {
    if let Some(ahead) = ahead {
        for line in 0..BLOCK_ROWS * rows.lines() {
            Instructions::prefetch(cpu, ahead.wrapping_add(line));
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn nibbles<const DOT: bool>(
    cpu: Neon<DOT>,
    rows: SideBySide<'_, 8>,
    plane: &[i8],
) -> [int32x4_t; 2] {
    let mut sums = [vdupq_n_s32(0); 8];
    for (lines, parts) in rows.zip(plane.as_chunks::<LINE_COMPONENTS>().0) {
        let (firsts, seconds) = parts.as_chunks().0.split_at(4);
        for (at, (first, second)) in firsts.iter().zip(seconds).enumerate() {
            let parts = [load_i8x16(first), load_i8x16(second)];
            for (sum, line) in sums.iter_mut().zip(lines) {
                let codes = quarter(line, at);
                *sum = add(cpu, *sum, [low(codes), high(codes)], parts);
            }
        }
    }
    totals(sums)
}

/// Both kinds of product take signed bytes, and stored bytes `u` are not: `u·p` is
/// `(u − 128)·p + 128·p`, where the second part is the same for every row.
#[inline]
#[target_feature(enable = "neon")]
fn bytes<const DOT: bool>(cpu: Neon<DOT>, rows: SideBySide<'_, 8>, plane: &[i8]) -> [int32x4_t; 2] {
    let mut sums = [vdupq_n_s32(0); 8];
    let mut parts_sum = vdupq_n_s32(0);
    for (lines, parts) in rows.zip(plane.as_chunks::<64>().0) {
        for (at, parts) in parts.as_chunks().0.iter().enumerate() {
            let parts = load_i8x16(parts);
            parts_sum = vpadalq_s16(parts_sum, vpaddlq_s8(parts));
            for (sum, line) in sums.iter_mut().zip(lines) {
                *sum = add(cpu, *sum, [lowered(quarter(line, at))], [parts]);
            }
        }
    }
    let [front, back] = totals(sums);
    let offset = vdupq_n_s32(128 * vaddvq_s32(parts_sum));
    [vaddq_s32(front, offset), vaddq_s32(back, offset)]
}

/// A quarter of a line is of four rows. Each is a lane, so that nothing is added across lanes.
#[inline]
#[target_feature(enable = "neon")]
fn sketches_dot<const DOT: bool>(cpu: Neon<DOT>, block: &SketchBlock, plane: &[i8]) -> Totals {
    let (firsts, seconds) = plane.as_chunks::<4>().0.split_at(BLOCK_ROWS);
    let mut sums = [[vdupq_n_s32(0); 2]; 2];
    for (line, (first, second)) in block.iter().zip(firsts.iter().zip(seconds)) {
        let parts = [repeated(*first), repeated(*second)];
        for (at, sum) in sums.as_flattened_mut().iter_mut().enumerate() {
            let codes = quarter(line, at);
            *sum = add(cpu, *sum, [low(codes), high(codes)], parts);
        }
    }
    sums
}

/// As [`sketches_dot`] without dotprod: the front two and the back two of four rows have sums of
/// their own. Two products of each of eight lines are at most 16·15·127, below 2¹⁵.
#[inline]
#[target_feature(enable = "neon")]
fn sketches(block: &SketchBlock, plane: &[i8]) -> Totals {
    let (firsts, seconds) = plane.as_chunks::<4>().0.split_at(BLOCK_ROWS);
    let mut sums = [[vdupq_n_s32(0); 2]; 4];
    let eights = firsts.as_chunks::<8>().0.iter().zip(seconds.as_chunks::<8>().0);
    for (lines, (firsts, seconds)) in block.as_chunks::<8>().0.iter().zip(eights) {
        let mut products = [[vdupq_n_s16(0); 2]; 4];
        for (line, (first, second)) in lines.iter().zip(firsts.iter().zip(seconds)) {
            let (first, second) = (repeated(*first), repeated(*second));
            for (at, products) in products.iter_mut().enumerate() {
                let codes = quarter(line, at);
                *products = add_halves(*products, low(codes), first);
                *products = add_halves(*products, high(codes), second);
            }
        }
        for (sums, [front, back]) in sums.iter_mut().zip(products) {
            *sums = [vpadalq_s16(sums[0], front), vpadalq_s16(sums[1], back)];
        }
    }
    let [[a, b], [c, d], [e, f], [g, h]] = sums;
    [[vpaddq_s32(a, b), vpaddq_s32(c, d)], [vpaddq_s32(e, f), vpaddq_s32(g, h)]]
}

/// Four components of a plane, for each of four rows.
#[inline]
#[target_feature(enable = "neon")]
fn repeated(parts: [i8; 4]) -> int8x16_t {
    vreinterpretq_s8_s32(vdupq_n_s32(bytemuck::cast(parts)))
}

/// The upper bounds of 16 rows, and which of them are not below the threshold.
#[inline]
#[target_feature(enable = "neon")]
fn reaching(
    totals: Totals,
    bounds: &OfBlock<RowBound>,
    limit: &Limit<'_>,
    priors: Option<&OfBlock<f32>>,
    uppers: &mut OfBlock<f32>,
) -> u16 {
    let quarters = uppers.as_chunks_mut().0.iter_mut().zip(bounds.as_chunks().0);
    for (quarter, ((uppers, bounds), totals)) in quarters.zip(totals.as_flattened()).enumerate() {
        let priors = priors.map(|priors| &priors.as_chunks().0[quarter]);
        store_f32x4(uppers, uppers_of(*totals, bounds, limit, priors));
    }
    at_least(uppers, limit.threshold)
}

/// The upper bounds of four rows.
#[inline]
#[target_feature(enable = "neon")]
fn uppers_of(
    totals: int32x4_t,
    bounds: &[RowBound; 4],
    limit: &Limit<'_>,
    priors: Option<&[f32; 4]>,
) -> float32x4_t {
    let uint16x4x4_t(scale, residual, norm, tail) = load_four_u16x4(bytemuck::cast_ref(bounds));
    let twice = vaddq_s32(totals, totals);
    let centred = vcvtq_f32_s32(vsubq_s32(twice, vdupq_n_s32(limit.middle)));
    let middle = vmulq_n_f32(centred, limit.factor);
    let slack = vmulq_n_f32(floats(norm), limit.plane.error);
    let slack = vfmaq_n_f32(slack, floats(tail), limit.plane.tail);
    let slack = vfmaq_n_f32(slack, floats(residual), limit.plane.norm);
    let mut upper = vfmaq_f32(slack, floats(scale), middle);
    if let (Some(values), Some(prior)) = (priors, limit.prior) {
        upper = vfmaq_n_f32(upper, load_f32x4(values), prior.factor);
    }
    without_nan(upper)
}

/// The floats that have these upper halves.
#[inline]
#[target_feature(enable = "neon")]
fn floats(upper: uint16x4_t) -> float32x4_t {
    vreinterpretq_f32_u32(vshll_n_u16::<16>(upper))
}

/// A bound that overflowed to NaN becomes infinite and so keeps its row: `fminnm` returns the
/// number where the other operand is NaN.
#[inline]
#[target_feature(enable = "neon")]
fn without_nan(upper: float32x4_t) -> float32x4_t {
    vminnmq_f32(upper, vdupq_n_f32(f32::INFINITY))
}

#[inline]
#[target_feature(enable = "neon")]
fn at_least(uppers: &OfBlock<f32>, threshold: f32) -> u16 {
    let threshold = vdupq_n_f32(threshold);
    let mut places = load_u32x4(&[1, 2, 4, 8]);
    let mut bits = vdupq_n_u32(0);
    for uppers in uppers.as_chunks().0 {
        let keep = vcgeq_f32(load_f32x4(uppers), threshold);
        bits = vorrq_u32(bits, vandq_u32(keep, places));
        places = vshlq_n_u32::<4>(places);
    }
    vaddvq_u32(bits) as u16
}

/// Add to each lane four products of every register. Without dotprod they are added in 16 bits
/// first, which holds four of nibbles, at most 4·15·127, and two of lowered bytes, at most 2·128·64.
#[inline]
#[target_feature(enable = "neon")]
fn add<const DOT: bool, const N: usize>(
    _cpu: Neon<DOT>,
    mut sum: int32x4_t,
    codes: [int8x16_t; N],
    parts: [int8x16_t; N],
) -> int32x4_t {
    let mut pairs = vdupq_n_s16(0);
    for (codes, parts) in codes.into_iter().zip(parts) {
        if DOT {
            // SAFETY: a `Neon` with `DOT` exists only where `detect_dot` found dotprod.
            sum = unsafe { sdot(sum, codes, parts) };
        } else {
            pairs = vmlal_s8(pairs, vget_low_s8(codes), vget_low_s8(parts));
            pairs = vmlal_high_s8(pairs, codes, parts);
        }
    }
    if DOT { sum } else { vpadalq_s16(sum, pairs) }
}

/// Add to each lane four products; only where the CPU has dotprod. The extension is named here, so
/// that it is inlined into functions that do not name it.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn sdot(mut sum: int32x4_t, codes: int8x16_t, parts: int8x16_t) -> int32x4_t {
    // SAFETY: it reads and writes these registers alone, and callers have found dotprod.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "sdot {sum:v}.4s, {codes:v}.16b, {parts:v}.16b",
            sum = inout(vreg) sum,
            codes = in(vreg) codes,
            parts = in(vreg) parts,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

/// Add to each lane one product, of the first and of the last eight codes.
#[inline]
#[target_feature(enable = "neon")]
fn add_halves([front, back]: [int16x8_t; 2], codes: int8x16_t, parts: int8x16_t) -> [int16x8_t; 2] {
    let front = vmlal_s8(front, vget_low_s8(codes), vget_low_s8(parts));
    [front, vmlal_high_s8(back, codes, parts)]
}

#[inline]
#[target_feature(enable = "neon")]
fn low(bytes: uint8x16_t) -> int8x16_t {
    vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)))
}

#[inline]
#[target_feature(enable = "neon")]
fn high(bytes: uint8x16_t) -> int8x16_t {
    vreinterpretq_s8_u8(vshrq_n_u8::<4>(bytes))
}

/// Bytes less 128: their highest bits are flipped.
#[inline]
#[target_feature(enable = "neon")]
fn lowered(bytes: uint8x16_t) -> int8x16_t {
    vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(128)))
}

#[inline]
#[target_feature(enable = "neon")]
fn quarter(line: &Line, at: usize) -> uint8x16_t {
    load_u8x16(&line.0.as_chunks().0[at])
}

/// Lane `i` of the result is the total of `sums[i]`.
#[inline]
#[target_feature(enable = "neon")]
fn totals(sums: [int32x4_t; 8]) -> [int32x4_t; 2] {
    let [a, b, c, d, e, f, g, h] = sums;
    let front = vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
    let back = vpaddq_s32(vpaddq_s32(e, f), vpaddq_s32(g, h));
    [front, back]
}

#[target_feature(enable = "neon")]
fn code_sum<const DOT: bool>(cpu: Neon<DOT>, bytes: &[Line], query: &QueryCodes) -> i64 {
    let (high, low) = (query.high.values.as_chunks().0, query.low.values.as_chunks().0);
    let mut sums = [vdupq_n_s32(0); 2];
    let quarters = bytemuck::cast_slice::<_, [u8; 16]>(bytes);
    for (codes, (high, low)) in quarters.iter().zip(high.iter().zip(low)) {
        let codes = [lowered(load_u8x16(codes))];
        sums[0] = add(cpu, sums[0], codes, [load_i8x16(high)]);
        sums[1] = add(cpu, sums[1], codes, [load_i8x16(low)]);
    }
    let with_high = vaddvq_s32(sums[0]) + 128 * query.high.sum;
    query.code_sum(with_high, vaddvq_s32(sums[1]) + 128 * query.low.sum)
}

#[target_feature(enable = "neon")]
fn dot(row: &[f32], query: &[f64]) -> f64 {
    let mut lanes = [vdupq_n_f64(0.0); 4];
    for (values, parts) in row.as_chunks::<8>().0.iter().zip(query.as_chunks::<8>().0) {
        let [a, b, c, d] = parts.as_chunks::<2>().0 else {
            unreachable!("eight are four times two")
        };
        let [front, back] = halves_f32(values);
        // Products of two float32 are exact in float64, so fusing changes nothing.
        lanes[0] = vfmaq_f64(lanes[0], vcvt_f64_f32(vget_low_f32(front)), load_f64x2(a));
        lanes[1] = vfmaq_f64(lanes[1], vcvt_high_f64_f32(front), load_f64x2(b));
        lanes[2] = vfmaq_f64(lanes[2], vcvt_f64_f32(vget_low_f32(back)), load_f64x2(c));
        lanes[3] = vfmaq_f64(lanes[3], vcvt_high_f64_f32(back), load_f64x2(d));
    }
    let front = vaddq_f64(lanes[0], lanes[2]);
    let back = vaddq_f64(lanes[1], lanes[3]);
    vaddvq_f64(vaddq_f64(front, back))
}

#[inline]
#[target_feature(enable = "neon")]
fn halves_f32(values: &[f32; 8]) -> [float32x4_t; 2] {
    let [first, second] = values.as_chunks::<4>().0 else { unreachable!("eight are twice four") };
    [load_f32x4(first), load_f32x4(second)]
}

#[inline]
#[target_feature(enable = "neon")]
fn load_u8x16(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference covers the 16 bytes, and the load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_i8x16(bytes: &[i8; 16]) -> int8x16_t {
    // SAFETY: the reference covers the 16 bytes, and the load needs no alignment.
    unsafe { vld1q_s8(bytes.as_ptr()) }
}

/// Every fourth number from the first, the second, the third and the fourth on.
#[inline]
#[target_feature(enable = "neon")]
fn load_four_u16x4(values: &[u16; 16]) -> uint16x4x4_t {
    // SAFETY: the reference covers the 16 numbers, and the load needs no more than their alignment.
    unsafe { vld4_u16(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_u32x4(values: &[u32; 4]) -> uint32x4_t {
    // SAFETY: the reference covers the four numbers, and the load needs no more than their
    // alignment.
    unsafe { vld1q_u32(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_f32x4(values: &[f32; 4]) -> float32x4_t {
    // SAFETY: the reference covers the four floats, and the load needs no more than their
    // alignment.
    unsafe { vld1q_f32(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store_f32x4(values: &mut [f32; 4], four: float32x4_t) {
    // SAFETY: the reference covers the four floats, and the store needs no more than their
    // alignment.
    unsafe { vst1q_f32(values.as_mut_ptr(), four) };
}

#[inline]
#[target_feature(enable = "neon")]
fn load_f64x2(values: &[f64; 2]) -> float64x2_t {
    // SAFETY: the reference covers the two floats, and the load needs no more than their
    // alignment.
    unsafe { vld1q_f64(values.as_ptr()) }
}
