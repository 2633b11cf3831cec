//! NEON: eight rows at a time, 16 bytes of codes a step; products go through the dot product
//! instruction where the CPU has it, and through widening products where not.
//!
//! Every build for this architecture has NEON, so plain code needs no function of its own to be
//! compiled for it. `sdot` and `prfm` are assembly because their intrinsics are not stable.
#![expect(unsafe_code, reason = "vector loads, assembly and calls of NEON functions")]
#![expect(clippy::inline_always, reason = "as in `eights`")]

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use super::blocked::{self, Instructions};
use super::{EIGHT, Kernel, Limit, Tile, Uppers};
use crate::collections::append_buffer::Line;
use crate::quantization::row_blocks::{CodedRows, RowLines};
use crate::quantization::scalar::{self, LINE_COMPONENTS, Plane, QueryCodes, RowBound, RowBounds};

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

    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds {
        scalar::encode(row, bytes, nibbles)
    }

    fn query_codes(&self, query: &[f32], power: f64) -> QueryCodes {
        QueryCodes::new(query, power)
    }

    fn signed_bytes(&self, values: &[f32], power: f64) -> Plane {
        Plane::signed_bytes(values, power)
    }

    fn code_sum(&self, bytes: RowLines<'_>, query: &QueryCodes) -> i64 {
        if DOT {
            // SAFETY: a `Neon` with `DOT` is only reachable through `detect_dot`, which found
            // NEON and dotprod.
            unsafe { code_sum_dot(bytes, query) }
        } else {
            code_sum(*self, bytes, query)
        }
    }

    fn bound(&self, rows: &CodedRows, tile: Tile, limit: &Limit<'_>, uppers: &mut Uppers) -> u64 {
        if DOT {
            // SAFETY: as in `code_sum`.
            unsafe { bound_dot(rows, tile, limit, uppers) }
        } else {
            blocked::bound(*self, rows, tile, limit, uppers)
        }
    }

    fn bound_listed(
        &self,
        rows: &CodedRows,
        listed: &[u32],
        limit: &Limit<'_>,
        uppers: &mut Uppers,
    ) -> u64 {
        if DOT {
            // SAFETY: as in `code_sum`.
            unsafe { bound_listed_dot(rows, listed, limit, uppers) }
        } else {
            blocked::bound_listed(*self, rows, listed, limit, uppers)
        }
    }

    fn bound_many(
        &self,
        rows: &CodedRows,
        tile: Tile,
        limits: &[Limit<'_>],
        uppers: &mut [Uppers; EIGHT],
    ) -> [u64; EIGHT] {
        if DOT {
            // SAFETY: as in `code_sum`.
            unsafe { bound_many_dot(rows, tile, limits, uppers) }
        } else {
            blocked::bound_many(*self, rows, tile, limits, uppers)
        }
    }

    fn positions_reaching(&self, uppers: &[f32], threshold: f32, positions: &mut Vec<u32>) {
        blocked::positions_reaching(*self, uppers, threshold, positions);
    }

    fn prefetch(&self, lines: &[Line]) {
        for line in lines {
            Instructions::prefetch(*self, line);
        }
    }

    fn prefetch_row(&self, rows: &CodedRows, row: usize) {
        blocked::prefetch_row(*self, rows, row);
    }
}

#[target_feature(enable = "neon,dotprod")]
fn code_sum_dot(bytes: RowLines<'_>, query: &QueryCodes) -> i64 {
    code_sum(Neon::<true>(()), bytes, query)
}

#[target_feature(enable = "neon,dotprod")]
fn bound_dot(rows: &CodedRows, tile: Tile, limit: &Limit<'_>, uppers: &mut Uppers) -> u64 {
    blocked::bound(Neon::<true>(()), rows, tile, limit, uppers)
}

#[target_feature(enable = "neon,dotprod")]
fn bound_listed_dot(
    rows: &CodedRows,
    listed: &[u32],
    limit: &Limit<'_>,
    uppers: &mut Uppers,
) -> u64 {
    blocked::bound_listed(Neon::<true>(()), rows, listed, limit, uppers)
}

#[target_feature(enable = "neon,dotprod")]
fn bound_many_dot(
    rows: &CodedRows,
    tile: Tile,
    limits: &[Limit<'_>],
    uppers: &mut [Uppers; EIGHT],
) -> [u64; EIGHT] {
    blocked::bound_many(Neon::<true>(()), rows, tile, limits, uppers)
}

/// 64 signed bytes.
type Bytes = [int8x16_t; 4];

/// A plane's part for one line of bytes.
///
/// Both kinds of product take signed bytes, and stored bytes `u` are not: `u·p` is
/// `(u − 128)·p + 128·p`, where `u − 128` is `u` with its highest bit flipped. The second part is
/// the same for every row and so is summed once for eight of them; it is at most 128·64·32,768 = 2²⁸.
#[derive(Clone, Copy)]
pub(crate) struct ByteParts {
    values: Bytes,
    /// The sum of `128·p`, in four partial sums.
    offset: int32x4_t,
}

impl<const DOT: bool> Instructions for Neon<DOT> {
    type Sum = int32x4_t;
    /// Those for the low halves of a line's bytes, and for the high halves.
    type NibbleParts = [Bytes; 2];
    type ByteParts = ByteParts;
    type Sums = [int32x4_t; 2];
    type Bounds = [Rows; 2];

    #[inline(always)]
    fn zero(self) -> int32x4_t {
        // SAFETY: a `Neon` exists only where NEON was found; so in all that follow.
        unsafe { zero() }
    }

    #[inline(always)]
    fn nibble_parts(self, parts: &[i8; LINE_COMPONENTS]) -> [Bytes; 2] {
        // SAFETY: as in `zero`.
        unsafe { nibble_parts(parts) }
    }

    #[inline(always)]
    fn byte_parts(self, parts: &[i8; 64]) -> ByteParts {
        // SAFETY: as in `zero`.
        unsafe { byte_parts(parts) }
    }

    #[inline(always)]
    fn add_nibbles(self, sum: int32x4_t, line: &Line, parts: [Bytes; 2]) -> int32x4_t {
        if DOT {
            // SAFETY: with `DOT` it exists only where `detect_dot` found dotprod too.
            unsafe { add_nibbles_dot(sum, line, parts) }
        } else {
            // SAFETY: as in `zero`.
            unsafe { add_nibbles(sum, line, parts) }
        }
    }

    #[inline(always)]
    fn add_bytes(self, sum: int32x4_t, line: &Line, parts: ByteParts) -> int32x4_t {
        // SAFETY: as in `zero`.
        let sum = unsafe { vaddq_s32(sum, parts.offset) };
        // SAFETY: as in `zero`.
        let line = unsafe { lowered(line) };
        add_lowered(self, sum, line, parts.values)
    }

    #[inline(always)]
    fn totals(self, sums: [int32x4_t; EIGHT]) -> [int32x4_t; 2] {
        // SAFETY: as in `zero`.
        unsafe { totals(sums) }
    }

    #[inline(always)]
    fn exchanged(self, totals: [[int32x4_t; 2]; EIGHT]) -> [[int32x4_t; 2]; EIGHT] {
        // SAFETY: as in `zero`.
        unsafe { exchanged(totals) }
    }

    #[inline(always)]
    fn bounds(self, bounds: &[RowBound; EIGHT]) -> [Rows; 2] {
        // SAFETY: as in `zero`.
        unsafe { transposed(bounds) }
    }

    #[inline(always)]
    fn rows_reaching(
        self,
        totals: [int32x4_t; 2],
        bounds: &[Rows; 2],
        limit: &Limit<'_>,
        priors: Option<&[f32; EIGHT]>,
        uppers: &mut [f32; EIGHT],
    ) -> u64 {
        // SAFETY: as in `zero`.
        unsafe { rows_reaching(totals, bounds, limit, priors, uppers) }
    }

    #[inline(always)]
    fn at_least(self, uppers: &[f32; EIGHT], threshold: f32) -> u64 {
        // SAFETY: as in `zero`.
        unsafe { eight_at_least(uppers, threshold) }
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

/// Add a line's bytes, lowered by 128, times their parts of a plane.
#[inline(always)]
fn add_lowered<const DOT: bool>(
    _found: Neon<DOT>,
    sum: int32x4_t,
    line: Bytes,
    parts: Bytes,
) -> int32x4_t {
    if DOT {
        // SAFETY: a `Neon` with `DOT` exists only where `detect_dot` found NEON and dotprod.
        unsafe { add_products(sum, line, parts) }
    } else {
        // SAFETY: a `Neon` exists only where NEON was found.
        unsafe { add_pairs(sum, line, parts) }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn zero() -> int32x4_t {
    vdupq_n_s32(0)
}

/// The terms of the bounds of four rows, or of one row four times over.
pub(super) struct Rows {
    scale: float32x4_t,
    residual: float32x4_t,
    norm: float32x4_t,
    tail: float32x4_t,
}

/// The terms of four limits, or of one limit four times over.
struct Limits {
    middle: int32x4_t,
    factor: float32x4_t,
    norm: float32x4_t,
    error: float32x4_t,
    tail: float32x4_t,
}

/// Four upper bounds.
#[inline]
#[target_feature(enable = "neon")]
fn upper_bounds(totals: int32x4_t, rows: &Rows, limits: &Limits) -> float32x4_t {
    let twice = vaddq_s32(totals, totals);
    let centred = vcvtq_f32_s32(vsubq_s32(twice, limits.middle));
    let middle = vmulq_f32(centred, limits.factor);
    let slack = vmulq_f32(rows.norm, limits.error);
    let slack = vfmaq_f32(slack, rows.tail, limits.tail);
    let slack = vfmaq_f32(slack, rows.residual, limits.norm);
    vfmaq_f32(slack, rows.scale, middle)
}

/// Which of eight numbers are at least their thresholds.
#[inline]
#[target_feature(enable = "neon")]
fn at_least(numbers: [float32x4_t; 2], thresholds: [float32x4_t; 2]) -> u64 {
    let front = vmovn_u32(vcgeq_f32(numbers[0], thresholds[0]));
    let back = vmovn_u32(vcgeq_f32(numbers[1], thresholds[1]));
    let bits = load_u16x8(&[1, 2, 4, 8, 16, 32, 64, 128]);
    u64::from(vaddvq_u16(vandq_u16(bits, vcombine_u16(front, back))))
}

#[inline]
#[target_feature(enable = "neon")]
fn eight_at_least(uppers: &[f32; EIGHT], threshold: f32) -> u64 {
    at_least(halves_f32(uppers), [vdupq_n_f32(threshold); 2])
}

/// Keep eight upper bounds. One that overflowed to NaN becomes infinite and so keeps its row:
/// `fminnm` returns the number where the other operand is NaN.
#[inline]
#[target_feature(enable = "neon")]
fn kept(upper: [float32x4_t; 2], uppers: &mut [f32; EIGHT]) -> [float32x4_t; 2] {
    let infinity = vdupq_n_f32(f32::INFINITY);
    let [front, back] = [vminnmq_f32(upper[0], infinity), vminnmq_f32(upper[1], infinity)];
    let [first, second] = uppers.as_chunks_mut::<4>().0 else { unreachable!("twice four") };
    store_f32x4(first, front);
    store_f32x4(second, back);
    [front, back]
}

#[inline]
#[target_feature(enable = "neon")]
fn rows_reaching(
    totals: [int32x4_t; 2],
    [front, back]: &[Rows; 2],
    limit: &Limit<'_>,
    priors: Option<&[f32; EIGHT]>,
    uppers: &mut [f32; EIGHT],
) -> u64 {
    let limits = Limits {
        middle: vdupq_n_s32(limit.middle),
        factor: vdupq_n_f32(limit.factor),
        norm: vdupq_n_f32(limit.plane.norm),
        error: vdupq_n_f32(limit.plane.error),
        tail: vdupq_n_f32(limit.plane.tail),
    };
    let mut upper =
        [upper_bounds(totals[0], front, &limits), upper_bounds(totals[1], back, &limits)];
    if let (Some(values), Some(prior)) = (priors, limit.prior) {
        let [first, second] = halves_f32(values);
        upper[0] = vfmaq_n_f32(upper[0], first, prior.factor);
        upper[1] = vfmaq_n_f32(upper[1], second, prior.factor);
    }
    at_least(kept(upper, uppers), [vdupq_n_f32(limit.threshold); 2])
}

/// Read and transpose the bounds of eight rows.
#[inline]
#[target_feature(enable = "neon")]
fn transposed(bounds: &[RowBound; EIGHT]) -> [Rows; 2] {
    let uint16x8x4_t(scale, residual, norm, tail) = load_four_u16x8(bytemuck::cast_ref(bounds));
    [
        Rows {
            scale: floats(vget_low_u16(scale)),
            residual: floats(vget_low_u16(residual)),
            norm: floats(vget_low_u16(norm)),
            tail: floats(vget_low_u16(tail)),
        },
        Rows {
            scale: floats(vget_high_u16(scale)),
            residual: floats(vget_high_u16(residual)),
            norm: floats(vget_high_u16(norm)),
            tail: floats(vget_high_u16(tail)),
        },
    ]
}

/// The floats that have these upper halves.
#[inline]
#[target_feature(enable = "neon")]
fn floats(upper: uint16x4_t) -> float32x4_t {
    vreinterpretq_f32_u32(vshlq_n_u32::<16>(vmovl_u16(upper)))
}

/// Add one line's nibbles times their parts of a plane.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_nibbles_dot(sum: int32x4_t, line: &Line, [first, second]: [Bytes; 2]) -> int32x4_t {
    let [low, high] = nibbles(line);
    add_products(add_products(sum, low, first), high, second)
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_products(sum: int32x4_t, [a, b, c, d]: Bytes, [e, f, g, h]: Bytes) -> int32x4_t {
    sdot(sdot(sdot(sdot(sum, a, e), b, f), c, g), d, h)
}

/// Add to each lane four products.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(mut sum: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
    // SAFETY: it reads and writes these registers alone, and the function is only called where
    // the CPU has dotprod.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {left:v}.16b, {right:v}.16b",
            sum = inout(vreg) sum,
            left = in(vreg) left,
            right = in(vreg) right,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

/// Add one line's nibbles times their parts of a plane: a lane gets 16 products of at most 15·127,
/// which stay below 2¹⁵.
#[inline]
#[target_feature(enable = "neon")]
fn add_nibbles(sum: int32x4_t, line: &Line, [first, second]: [Bytes; 2]) -> int32x4_t {
    let [low, high] = nibbles(line);
    let mut products = vdupq_n_s16(0);
    for (codes, parts) in low.into_iter().zip(first) {
        products = add_widened(products, codes, parts);
    }
    for (codes, parts) in high.into_iter().zip(second) {
        products = add_widened(products, codes, parts);
    }
    vpadalq_s16(sum, products)
}

/// Add one line's lowered bytes times their parts of a plane: pairs of products are at most
/// 2·128·64 in magnitude, below 2¹⁵; four of them could be 2¹⁵.
#[inline]
#[target_feature(enable = "neon")]
fn add_pairs(mut sum: int32x4_t, line: Bytes, parts: Bytes) -> int32x4_t {
    for (codes, parts) in line.into_iter().zip(parts) {
        sum = vpadalq_s16(sum, add_widened(vdupq_n_s16(0), codes, parts));
    }
    sum
}

/// Add to each lane two products.
#[inline]
#[target_feature(enable = "neon")]
fn add_widened(products: int16x8_t, codes: int8x16_t, parts: int8x16_t) -> int16x8_t {
    let products = vmlal_s8(products, vget_low_s8(codes), vget_low_s8(parts));
    vmlal_high_s8(products, codes, parts)
}

/// The low halves of a line's bytes, and the high halves.
#[inline]
#[target_feature(enable = "neon")]
fn nibbles(line: &Line) -> [Bytes; 2] {
    let [a, b, c, d] = quarters(line);
    [[low(a), low(b), low(c), low(d)], [high(a), high(b), high(c), high(d)]]
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

/// A line's bytes less 128, see [`ByteParts`].
#[inline]
#[target_feature(enable = "neon")]
fn lowered(line: &Line) -> Bytes {
    let highest = vdupq_n_u8(128);
    let [a, b, c, d] = quarters(line);
    [
        vreinterpretq_s8_u8(veorq_u8(a, highest)),
        vreinterpretq_s8_u8(veorq_u8(b, highest)),
        vreinterpretq_s8_u8(veorq_u8(c, highest)),
        vreinterpretq_s8_u8(veorq_u8(d, highest)),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn quarters(line: &Line) -> [uint8x16_t; 4] {
    let [a, b, c, d] = line.0.as_chunks::<16>().0 else { unreachable!("four times 16 are 64") };
    [load_u8x16(a), load_u8x16(b), load_u8x16(c), load_u8x16(d)]
}

/// Sums of eight values in −64..=64 fit the 16 bits they are added in.
#[inline]
#[target_feature(enable = "neon")]
fn byte_parts(parts: &[i8; 64]) -> ByteParts {
    let values = load_i8x64(parts);
    let [a, b, c, d] = values;
    let sums = vpadalq_s8(vpadalq_s8(vpadalq_s8(vpaddlq_s8(a), b), c), d);
    ByteParts { values, offset: vshlq_n_s32::<7>(vpaddlq_s16(sums)) }
}

#[inline]
#[target_feature(enable = "neon")]
fn nibble_parts(parts: &[i8; LINE_COMPONENTS]) -> [Bytes; 2] {
    let [first, second] = parts.as_chunks::<64>().0 else { unreachable!("twice 64 are 128") };
    [load_i8x64(first), load_i8x64(second)]
}

/// Lane `i` of the result is the total of `sums[i]`.
#[inline]
#[target_feature(enable = "neon")]
fn totals(sums: [int32x4_t; EIGHT]) -> [int32x4_t; 2] {
    let [a, b, c, d, e, f, g, h] = sums;
    let front = vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
    let back = vpaddq_s32(vpaddq_s32(e, f), vpaddq_s32(g, h));
    [front, back]
}

/// An 8 × 8 matrix of sums with rows and columns exchanged.
#[inline]
#[target_feature(enable = "neon")]
fn exchanged(rows: [[int32x4_t; 2]; EIGHT]) -> [[int32x4_t; 2]; EIGHT] {
    let [a, b, c, d, e, f, g, h] = rows;
    let corner = |half: usize, four: [[int32x4_t; 2]; 4]| {
        let [a, b, c, d] = [four[0][half], four[1][half], four[2][half], four[3][half]];
        four_exchanged([a, b, c, d])
    };
    let [first, second] = [corner(0, [a, b, c, d]), corner(1, [a, b, c, d])];
    let [third, fourth] = [corner(0, [e, f, g, h]), corner(1, [e, f, g, h])];
    let front = std::array::from_fn::<_, 4, _>(|at| [first[at], third[at]]);
    let back = std::array::from_fn::<_, 4, _>(|at| [second[at], fourth[at]]);
    [front[0], front[1], front[2], front[3], back[0], back[1], back[2], back[3]]
}

/// A 4 × 4 matrix with rows and columns exchanged.
#[inline]
#[target_feature(enable = "neon")]
fn four_exchanged([a, b, c, d]: [int32x4_t; 4]) -> [int32x4_t; 4] {
    let wide = vreinterpretq_s64_s32;
    let (ab, cd) = (vzip1q_s32(a, b), vzip1q_s32(c, d));
    let (ab_high, cd_high) = (vzip2q_s32(a, b), vzip2q_s32(c, d));
    [
        vreinterpretq_s32_s64(vzip1q_s64(wide(ab), wide(cd))),
        vreinterpretq_s32_s64(vzip2q_s64(wide(ab), wide(cd))),
        vreinterpretq_s32_s64(vzip1q_s64(wide(ab_high), wide(cd_high))),
        vreinterpretq_s32_s64(vzip2q_s64(wide(ab_high), wide(cd_high))),
    ]
}

/// [`Kernel::code_sum`]; the second part of [`ByteParts`] is 128 times a plane's sum.
#[inline(always)]
fn code_sum<const DOT: bool>(cpu: Neon<DOT>, bytes: RowLines<'_>, query: &QueryCodes) -> i64 {
    let (high, low) = (query.high.values.as_chunks().0, query.low.values.as_chunks().0);
    let mut sums = [cpu.zero(); 2];
    for (line, (high, low)) in bytes.zip(high.iter().zip(low)) {
        // SAFETY: a `Neon` exists only where NEON was found.
        let line = unsafe { lowered(line) };
        // SAFETY: as above.
        sums[0] = add_lowered(cpu, sums[0], line, unsafe { load_i8x64(high) });
        // SAFETY: as above.
        sums[1] = add_lowered(cpu, sums[1], line, unsafe { load_i8x64(low) });
    }
    // SAFETY: as above.
    let with_high = unsafe { vaddvq_s32(sums[0]) };
    // SAFETY: as above.
    let with_low = unsafe { vaddvq_s32(sums[1]) };
    query.code_sum(with_high + 128 * query.high.sum, with_low + 128 * query.low.sum)
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
fn load_i8x64(bytes: &[i8; 64]) -> Bytes {
    let [a, b, c, d] = bytes.as_chunks::<16>().0 else { unreachable!("four times 16 are 64") };
    [load_i8x16(a), load_i8x16(b), load_i8x16(c), load_i8x16(d)]
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

#[inline]
#[target_feature(enable = "neon")]
fn load_u16x8(values: &[u16; 8]) -> uint16x8_t {
    // SAFETY: the reference covers the eight numbers, and the load needs no more than their
    // alignment.
    unsafe { vld1q_u16(values.as_ptr()) }
}

/// Every fourth number from the first, the second, the third and the fourth on.
#[inline]
#[target_feature(enable = "neon")]
fn load_four_u16x8(values: &[u16; 32]) -> uint16x8x4_t {
    // SAFETY: the reference covers the 32 numbers, and the load needs no more than their alignment.
    unsafe { vld4q_u16(values.as_ptr()) }
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
