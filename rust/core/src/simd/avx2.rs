//! AVX2 and FMA: eight rows at a time, 32 bytes of codes a step.
#![expect(unsafe_code, reason = "vector loads, prefetches and calls of AVX2 functions")]
#![expect(clippy::inline_always, reason = "as in `blocked`")]

use std::arch::x86_64::*;

use super::blocked::{self, Ahead, Instructions, OfBlock};
use super::{Kernel, Limit, Rows, Uppers};
use crate::collections::append_buffer::Line;
use crate::quantization::coded_rows::{BLOCK_ROWS, CodedRows, SideBySide, SketchBlock};
use crate::quantization::scalar::{self, LINE_COMPONENTS, Plane, QueryCodes, RowBound, RowBounds};

/// Exists only where AVX2 and FMA do: `detect` alone makes one.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

pub(crate) fn detect() -> Option<&'static dyn Kernel> {
    static KERNEL: Avx2 = Avx2(());
    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(&KERNEL as _)
}

impl Kernel for Avx2 {
    fn name(&self) -> &'static str {
        "avx2"
    }

    fn dot(&self, row: &[f32], query: &[f64]) -> f64 {
        // SAFETY: an `Avx2` is only reachable through `detect`, which found AVX2 and FMA.
        let [product] = unsafe { dots([row], query) };
        product
    }

    fn four_dots(&self, rows: [&[f32]; 4], query: &[f64]) -> [f64; 4] {
        // SAFETY: as in `dot`.
        unsafe { dots(rows, query) }
    }

    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds {
        // SAFETY: as in `dot`.
        unsafe { encode(row, bytes, nibbles) }
    }

    fn query_codes(&self, query: &[f32], power: f64) -> QueryCodes {
        // SAFETY: as in `dot`.
        unsafe { query_codes(query, power) }
    }

    fn signed_bytes(&self, values: &[f32], power: f64, most: f64) -> Plane {
        // SAFETY: as in `dot`.
        unsafe { signed_bytes(values, power, most) }
    }

    fn code_sum(&self, bytes: &[Line], query: &QueryCodes) -> i64 {
        // SAFETY: as in `dot`.
        unsafe { code_sum(bytes, query) }
    }

    fn bound(&self, codes: &CodedRows, rows: Rows<'_>, limit: &Limit<'_>, uppers: &mut Uppers<'_>) {
        // SAFETY: as in `dot`.
        unsafe { bound(codes, rows, limit, uppers) }
    }

    fn at_least(&self, uppers: &[f32], threshold: f32, reaching: &mut [u64]) {
        // SAFETY: as in `dot`.
        unsafe { all_at_least(uppers, threshold, reaching) }
    }

    fn prefetch(&self, lines: &[Line]) {
        for line in lines {
            Instructions::prefetch(*self, line);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn bound(codes: &CodedRows, rows: Rows<'_>, limit: &Limit<'_>, uppers: &mut Uppers<'_>) {
    blocked::bound(Avx2(()), codes, rows, limit, uppers);
}

#[target_feature(enable = "avx2,fma")]
fn all_at_least(uppers: &[f32], threshold: f32, reaching: &mut [u64]) {
    blocked::at_least(Avx2(()), uppers, threshold, reaching);
}

impl Instructions for Avx2 {
    /// The first eight rows, and the others.
    type Totals = [__m256i; 2];

    #[inline(always)]
    fn nibbles(self, rows: SideBySide<'_, BLOCK_ROWS>, plane: &[i8], ahead: Ahead) -> [__m256i; 2] {
        let behind = ahead.map(|ahead| ahead.wrapping_add(8 * rows.lines()));
        let [front, back] = rows.halves();
        [(front, ahead), (back, behind)].map(|(rows, ahead)| {
            if let Some(ahead) = ahead {
                // SAFETY: an `Avx2` exists only where `detect` found AVX2 and FMA; so in all that follow.
                unsafe { nibbles::<true>(rows, plane, ahead) }
            } else {
                // SAFETY: as in `nibbles`.
                unsafe { nibbles::<false>(rows, plane, std::ptr::null()) }
            }
        })
    }

    #[inline(always)]
    fn bytes(self, rows: SideBySide<'_, BLOCK_ROWS>, plane: &[i8], ahead: Ahead) -> [__m256i; 2] {
        let behind = ahead.map(|ahead| ahead.wrapping_add(8 * rows.lines()));
        let [front, back] = rows.halves();
        [(front, ahead), (back, behind)].map(|(rows, ahead)| {
            if let Some(ahead) = ahead {
                // SAFETY: as in `nibbles`.
                unsafe { bytes::<true>(rows, plane, ahead) }
            } else {
                // SAFETY: as in `nibbles`.
                unsafe { bytes::<false>(rows, plane, std::ptr::null()) }
            }
        })
    }

    #[inline(always)]
    fn sketches(self, block: &SketchBlock, plane: &[i8]) -> [__m256i; 2] {
        // SAFETY: as in `nibbles`.
        unsafe { sketches(block, plane) }
    }

    #[inline(always)]
    fn reaching(
        self,
        totals: [__m256i; 2],
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
        prefetch(line);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn nibbles<const AHEAD: bool>(
    rows: SideBySide<'_, 8>,
    plane: &[i8],
    mut ahead: *const Line,
) -> __m256i {
    let mut sums = [_mm256_setzero_si256(); 8];
    for (lines, parts) in rows.zip(plane.as_chunks().0) {
        let parts = nibble_parts(parts);
        for (sum, line) in sums.iter_mut().zip(lines) {
            if AHEAD {
                prefetch(ahead);
                ahead = ahead.wrapping_add(1);
            }
            *sum = add_nibbles(*sum, line, parts);
        }
    }
    totals(sums)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn bytes<const AHEAD: bool>(
    rows: SideBySide<'_, 8>,
    plane: &[i8],
    mut ahead: *const Line,
) -> __m256i {
    let mut sums = [_mm256_setzero_si256(); 8];
    for (lines, parts) in rows.zip(plane.as_chunks().0) {
        let parts = byte_parts(parts);
        for (sum, line) in sums.iter_mut().zip(lines) {
            if AHEAD {
                prefetch(ahead);
                ahead = ahead.wrapping_add(1);
            }
            *sum = add_bytes(*sum, line, parts);
        }
    }
    totals(sums)
}

#[inline(always)]
pub(super) fn prefetch(line: *const Line) {
    // SAFETY: a prefetch is a hint and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

/// A lane is a row, so that nothing is added across lanes. Eight products of pairs of nibbles are
/// at most 8·2·15·127, below 2¹⁵.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn sketches(block: &SketchBlock, plane: &[i8]) -> [__m256i; 2] {
    let words = plane.as_chunks::<4>().0;
    let (firsts, seconds) = words.split_at(BLOCK_ROWS);
    let low = _mm256_set1_epi8(15);
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_si256(); 2];
    let fours = firsts.as_chunks::<4>().0.iter().zip(seconds.as_chunks::<4>().0);
    for (lines, (firsts, seconds)) in block.as_chunks::<4>().0.iter().zip(fours) {
        let mut pairs = [_mm256_setzero_si256(); 2];
        for (line, (first, second)) in lines.iter().zip(firsts.iter().zip(seconds)) {
            let (first, second) = (repeated(*first), repeated(*second));
            for (pairs, half) in pairs.iter_mut().zip(halves_u8(line)) {
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(half), low);
                let lows = _mm256_maddubs_epi16(_mm256_and_si256(half, low), first);
                let both = _mm256_add_epi16(lows, _mm256_maddubs_epi16(high, second));
                *pairs = _mm256_add_epi16(*pairs, both);
            }
        }
        for (sum, pairs) in sums.iter_mut().zip(pairs) {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
        }
    }
    sums
}

/// Four components of a plane, for each of eight rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn repeated(parts: [i8; 4]) -> __m256i {
    _mm256_set1_epi32(bytemuck::cast::<_, i32>(parts))
}

/// The upper bounds of 16 rows, and which of them are not below the threshold.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn reaching(
    totals: [__m256i; 2],
    bounds: &OfBlock<RowBound>,
    limit: &Limit<'_>,
    priors: Option<&OfBlock<f32>>,
    uppers: &mut OfBlock<f32>,
) -> u16 {
    let halves = uppers.as_chunks_mut().0.iter_mut().zip(bounds.as_chunks().0).zip(totals);
    for (half, ((uppers, bounds), totals)) in halves.enumerate() {
        let priors = priors.map(|priors| &priors.as_chunks().0[half]);
        store_f32x8(uppers, uppers_of(totals, bounds, limit, priors));
    }
    at_least(uppers, limit.threshold)
}

/// The bounds of eight rows, one row a lane.
struct Bounds {
    scale: __m256,
    residual: __m256,
    norm: __m256,
    tail: __m256,
}

/// Read and transpose the bounds of eight rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn transposed(bounds: &[RowBound; 8]) -> Bounds {
    let [first, second] = bytemuck::cast_ref::<_, [[u8; 32]; 2]>(bounds);
    let first = _mm256_castsi256_ps(load_u8x32(first));
    let second = _mm256_castsi256_ps(load_u8x32(second));
    // Rows 0, 1, 4, 5 and 2, 3, 6, 7: their scales with residuals, their norms with tails.
    let front = _mm256_shuffle_ps::<0b10_00_10_00>(first, second);
    let back = _mm256_shuffle_ps::<0b11_01_11_01>(first, second);
    let front = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(front));
    let back = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(back));
    Bounds {
        scale: lower_half(front),
        residual: upper_half(front),
        norm: lower_half(back),
        tail: upper_half(back),
    }
}

/// The floats whose upper halves are the lower halves of these lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn lower_half(pairs: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(pairs))
}

/// The floats whose upper halves are the upper halves of these lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn upper_half(pairs: __m256i) -> __m256 {
    let mask = _mm256_set1_epi32(0xffff_0000_u32.cast_signed());
    _mm256_castsi256_ps(_mm256_and_si256(pairs, mask))
}

/// The upper bounds of eight rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn uppers_of(
    totals: __m256i,
    bounds: &[RowBound; 8],
    limit: &Limit<'_>,
    priors: Option<&[f32; 8]>,
) -> __m256 {
    let bounds = transposed(bounds);
    let twice = _mm256_add_epi32(totals, totals);
    let centred = _mm256_sub_epi32(twice, _mm256_set1_epi32(limit.middle));
    let middle = _mm256_mul_ps(_mm256_cvtepi32_ps(centred), _mm256_set1_ps(limit.factor));
    let slack = _mm256_mul_ps(bounds.norm, _mm256_set1_ps(limit.plane.error));
    let slack = _mm256_fmadd_ps(bounds.tail, _mm256_set1_ps(limit.plane.tail), slack);
    let slack = _mm256_fmadd_ps(bounds.residual, _mm256_set1_ps(limit.plane.norm), slack);
    let mut upper = _mm256_fmadd_ps(bounds.scale, middle, slack);
    if let (Some(values), Some(prior)) = (priors, limit.prior) {
        upper = _mm256_fmadd_ps(load_f32x8(values), _mm256_set1_ps(prior.factor), upper);
    }
    without_nan(upper)
}

/// A bound that overflowed to NaN becomes infinite and so keeps its row: `min` returns its second
/// operand where the first is NaN.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn without_nan(upper: __m256) -> __m256 {
    _mm256_min_ps(upper, _mm256_set1_ps(f32::INFINITY))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn at_least(uppers: &OfBlock<f32>, threshold: f32) -> u16 {
    let threshold = _mm256_set1_ps(threshold);
    let mut bits = 0_u32;
    for (half, uppers) in uppers.as_chunks().0.iter().enumerate() {
        let keep = _mm256_cmp_ps::<_CMP_GE_OQ>(load_f32x8(uppers), threshold);
        bits |= _mm256_movemask_ps(keep).cast_unsigned() << (8 * half);
    }
    bits as u16
}

/// Add one line's bytes times their parts of a plane. Pairs of products are at most 2·255·64 in
/// magnitude, below 2¹⁵.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_bytes(sum: __m256i, line: &Line, [first, second]: [__m256i; 2]) -> __m256i {
    let ones = _mm256_set1_epi16(1);
    let [front, back] = halves_u8(line);
    let front = _mm256_madd_epi16(_mm256_maddubs_epi16(front, first), ones);
    let back = _mm256_madd_epi16(_mm256_maddubs_epi16(back, second), ones);
    _mm256_add_epi32(sum, _mm256_add_epi32(front, back))
}

/// Add one line's nibbles times their parts of a plane: pairs of products are at most 2·15·127,
/// four of them stay below 2¹⁵.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_nibbles(sum: __m256i, line: &Line, [a, b, c, d]: [__m256i; 4]) -> __m256i {
    let [first, second] = halves_u8(line);
    let low = _mm256_set1_epi8(15);
    let first_high = _mm256_and_si256(_mm256_srli_epi16::<4>(first), low);
    let second_high = _mm256_and_si256(_mm256_srli_epi16::<4>(second), low);
    let lows = _mm256_add_epi16(
        _mm256_maddubs_epi16(_mm256_and_si256(first, low), a),
        _mm256_maddubs_epi16(_mm256_and_si256(second, low), b),
    );
    let highs =
        _mm256_add_epi16(_mm256_maddubs_epi16(first_high, c), _mm256_maddubs_epi16(second_high, d));
    let pairs = _mm256_add_epi16(lows, highs);
    _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn halves_u8(line: &Line) -> [__m256i; 2] {
    let [first, second] = line.0.as_chunks::<32>().0 else { unreachable!("twice 32 are 64") };
    [load_u8x32(first), load_u8x32(second)]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn byte_parts(parts: &[i8; 64]) -> [__m256i; 2] {
    let [first, second] = bytemuck::cast_ref::<_, [[u8; 32]; 2]>(parts);
    [load_u8x32(first), load_u8x32(second)]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn nibble_parts(parts: &[i8; LINE_COMPONENTS]) -> [__m256i; 4] {
    let [a, b, c, d] = bytemuck::cast_ref::<_, [[u8; 32]; 4]>(parts);
    [load_u8x32(a), load_u8x32(b), load_u8x32(c), load_u8x32(d)]
}

/// Lane `i` of the result is the total of `sums[i]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn totals(sums: [__m256i; 8]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = sums;
    let front = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let back = _mm256_hadd_epi32(_mm256_hadd_epi32(e, f), _mm256_hadd_epi32(g, h));
    let low = _mm256_permute2x128_si256::<0x20>(front, back);
    let high = _mm256_permute2x128_si256::<0x31>(front, back);
    _mm256_add_epi32(low, high)
}

#[target_feature(enable = "avx2,fma")]
fn encode(row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds {
    scalar::encode(row, bytes, nibbles)
}

#[target_feature(enable = "avx2,fma")]
fn query_codes(query: &[f32], power: f64) -> QueryCodes {
    QueryCodes::new(query, power)
}

#[target_feature(enable = "avx2,fma")]
fn signed_bytes(values: &[f32], power: f64, most: f64) -> Plane {
    Plane::signed_bytes(values, power, most)
}

#[target_feature(enable = "avx2,fma")]
fn code_sum(bytes: &[Line], query: &QueryCodes) -> i64 {
    let (high, low) = (query.high.values.as_chunks().0, query.low.values.as_chunks().0);
    let mut sums = [_mm256_setzero_si256(); 2];
    for (line, (high, low)) in bytes.iter().zip(high.iter().zip(low)) {
        sums[0] = add_bytes(sums[0], line, byte_parts(high));
        sums[1] = add_bytes(sums[1], line, byte_parts(low));
    }
    let pairs = _mm256_hadd_epi32(sums[0], sums[1]);
    let four = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
    let both = _mm_hadd_epi32(four, four);
    query.code_sum(_mm_extract_epi32::<0>(both), _mm_extract_epi32::<1>(both))
}

#[target_feature(enable = "avx2,fma")]
fn dots<const ROWS: usize>(rows: [&[f32]; ROWS], query: &[f64]) -> [f64; ROWS] {
    let rows = rows.map(|row| row.as_chunks::<8>().0);
    let mut sums = [[_mm256_setzero_pd(); 2]; ROWS];
    for (at, parts) in query.as_chunks::<8>().0.iter().enumerate() {
        let [first, second] = parts.as_chunks::<4>().0 else {
            unreachable!("eight are twice four")
        };
        let (first, second) = (load_f64x4(first), load_f64x4(second));
        for ([front, back], row) in sums.iter_mut().zip(rows) {
            let [left, right] = halves(&row[at]);
            // Products of two float32 are exact in float64, so fusing changes nothing.
            *front = _mm256_fmadd_pd(left, first, *front);
            *back = _mm256_fmadd_pd(right, second, *back);
        }
    }
    let mut products = [0.0; ROWS];
    for (product, [front, back]) in products.iter_mut().zip(sums) {
        let four = _mm256_add_pd(front, back);
        let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
        *product = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
    }
    products
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn halves(values: &[f32; 8]) -> [__m256d; 2] {
    let eight = load_f32x8(values);
    [
        _mm256_cvtps_pd(_mm256_castps256_ps128(eight)),
        _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(eight)),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_u8x32(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_f32x8(values: &[f32; 8]) -> __m256 {
    // SAFETY: the reference covers the eight floats, and the load needs no alignment.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store_f32x8(values: &mut [f32; 8], eight: __m256) {
    // SAFETY: the reference covers the eight floats, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(values.as_mut_ptr(), eight) };
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_f64x4(values: &[f64; 4]) -> __m256d {
    // SAFETY: the reference covers the four floats, and the load needs no alignment.
    unsafe { _mm256_loadu_pd(values.as_ptr()) }
}
