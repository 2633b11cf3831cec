//! AVX-512 with VNNI: sixteen rows at a time, a cache line of codes a step.
//!
//! Without VNNI the AVX2 kernel is used: its byte products would be no faster in wider registers.
#![expect(unsafe_code, reason = "vector loads, prefetches and calls of AVX-512 functions")]
#![expect(clippy::inline_always, reason = "as in `blocked`")]

use std::arch::x86_64::*;

use super::blocked::{self, Ahead, Instructions, OfBlock};
use super::{Kernel, Limit, Rows, Uppers, avx2};
use crate::collections::append_buffer::Line;
use crate::quantization::coded_rows::{BLOCK_ROWS, CodedRows, SideBySide, SketchBlock};
use crate::quantization::scalar::{self, LINE_COMPONENTS, Plane, QueryCodes, RowBound, RowBounds};

/// Exists only where AVX-512 F, BW, VL and VNNI do: `detect` alone makes one.
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

    fn dot(&self, row: &[f32], query: &[f64]) -> f64 {
        // SAFETY: an `Avx512Vnni` is only reachable through `detect`, which found AVX2 and FMA.
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

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn bound(codes: &CodedRows, rows: Rows<'_>, limit: &Limit<'_>, uppers: &mut Uppers<'_>) {
    blocked::bound(Avx512Vnni(()), codes, rows, limit, uppers);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn all_at_least(uppers: &[f32], threshold: f32, reaching: &mut [u64]) {
    blocked::at_least(Avx512Vnni(()), uppers, threshold, reaching);
}

impl Instructions for Avx512Vnni {
    type Totals = __m512i;

    #[inline(always)]
    fn nibbles(self, rows: SideBySide<'_, BLOCK_ROWS>, plane: &[i8], ahead: Ahead) -> __m512i {
        if let Some(ahead) = ahead {
            // SAFETY: an `Avx512Vnni` exists only where `detect` found the features; so below.
            unsafe { nibbles::<true>(rows, plane, ahead) }
        } else {
            // SAFETY: as in `nibbles`.
            unsafe { nibbles::<false>(rows, plane, std::ptr::null()) }
        }
    }

    #[inline(always)]
    fn bytes(self, rows: SideBySide<'_, BLOCK_ROWS>, plane: &[i8], ahead: Ahead) -> __m512i {
        if let Some(ahead) = ahead {
            // SAFETY: as in `nibbles`.
            unsafe { bytes::<true>(rows, plane, ahead) }
        } else {
            // SAFETY: as in `nibbles`.
            unsafe { bytes::<false>(rows, plane, std::ptr::null()) }
        }
    }

    #[inline(always)]
    fn sketches(self, block: &SketchBlock, plane: &[i8]) -> __m512i {
        // SAFETY: as in `nibbles`.
        unsafe { sketches(block, plane) }
    }

    #[inline(always)]
    fn reaching(
        self,
        totals: __m512i,
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
        let uppers = unsafe { load_f32x16(uppers) };
        // SAFETY: as in `nibbles`.
        unsafe { at_least(uppers, threshold) }
    }

    #[inline(always)]
    fn prefetch(self, line: *const Line) {
        avx2::prefetch(line);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn nibbles<const AHEAD: bool>(
    rows: SideBySide<'_, BLOCK_ROWS>,
    plane: &[i8],
    mut ahead: *const Line,
) -> __m512i {
    let mut sums = [_mm512_setzero_si512(); BLOCK_ROWS];
    for (lines, parts) in rows.zip(plane.as_chunks::<LINE_COMPONENTS>().0) {
        let [first, second] = bytemuck::cast_ref::<_, [[u8; 64]; 2]>(parts);
        let (first, second) = (load_u8x64(first), load_u8x64(second));
        for (sum, line) in sums.iter_mut().zip(lines) {
            if AHEAD {
                avx2::prefetch(ahead);
                ahead = ahead.wrapping_add(1);
            }
            let [low, high] = halves(load_u8x64(&line.0));
            *sum = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(*sum, low, first), high, second);
        }
    }
    totals(&sums)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn bytes<const AHEAD: bool>(
    rows: SideBySide<'_, BLOCK_ROWS>,
    plane: &[i8],
    mut ahead: *const Line,
) -> __m512i {
    let mut sums = [_mm512_setzero_si512(); BLOCK_ROWS];
    for (lines, parts) in rows.zip(plane.as_chunks::<64>().0) {
        let parts = load_u8x64(bytemuck::cast_ref(parts));
        for (sum, line) in sums.iter_mut().zip(lines) {
            if AHEAD {
                avx2::prefetch(ahead);
                ahead = ahead.wrapping_add(1);
            }
            *sum = _mm512_dpbusd_epi32(*sum, load_u8x64(&line.0), parts);
        }
    }
    totals(&sums)
}

/// The low and the high halves of all bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn halves(bytes: __m512i) -> [__m512i; 2] {
    let low = _mm512_set1_epi8(15);
    [_mm512_and_si512(bytes, low), _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), low)]
}

/// Lane `i` of the result is the total of `sums[i]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn totals(sums: &[__m512i; BLOCK_ROWS]) -> __m512i {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *sums;
    let [first, second] = [four_totals([a, b, c, d]), four_totals([e, f, g, h])];
    let [third, fourth] = [four_totals([i, j, k, l]), four_totals([m, n, o, p])];
    quarters_added(quarters_added(first, second), quarters_added(third, fourth))
}

/// In every quarter, the totals of this quarter of four sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn four_totals([a, b, c, d]: [__m512i; 4]) -> __m512i {
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
}

/// Each first and second quarter, and third and fourth, of two registers added.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn quarters_added(one: __m512i, other: __m512i) -> __m512i {
    _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b10_00_10_00>(one, other),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(one, other),
    )
}

/// A lane is a row, so that nothing is added across lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn sketches(block: &SketchBlock, plane: &[i8]) -> __m512i {
    // Of a known length, and operands are broadcast from memory.
    let words: &[[i8; 4]; 2 * BLOCK_ROWS] =
        plane.as_chunks().0.first_chunk().expect("a plane of 128 directions");
    let mut sums = [_mm512_setzero_si512(); 4];
    for pair in 0..BLOCK_ROWS / 2 {
        let (one, other) = (2 * pair, 2 * pair + 1);
        let [low, high] = halves(load_u8x64(&block[one].0));
        sums[0] = _mm512_dpbusd_epi32(sums[0], low, repeated(words[one]));
        sums[1] = _mm512_dpbusd_epi32(sums[1], high, repeated(words[BLOCK_ROWS + one]));
        let [low, high] = halves(load_u8x64(&block[other].0));
        sums[2] = _mm512_dpbusd_epi32(sums[2], low, repeated(words[other]));
        sums[3] = _mm512_dpbusd_epi32(sums[3], high, repeated(words[BLOCK_ROWS + other]));
    }
    let [a, b, c, d] = sums;
    _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d))
}

/// Four components, for each of 16 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn repeated(word: [i8; 4]) -> __m512i {
    _mm512_set1_epi32(bytemuck::cast(word))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn reaching(
    totals: __m512i,
    bounds: &OfBlock<RowBound>,
    limit: &Limit<'_>,
    priors: Option<&OfBlock<f32>>,
    uppers: &mut OfBlock<f32>,
) -> u16 {
    let [first, second] = bytemuck::cast_ref::<_, [[u8; 64]; 2]>(bounds);
    let (first, second) = (load_u8x64(first), load_u8x64(second));
    let evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    let odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    // Every row's scale and residual, its norm and tail.
    let front = _mm512_permutex2var_epi32(first, evens, second);
    let back = _mm512_permutex2var_epi32(first, odds, second);
    let centred =
        _mm512_sub_epi32(_mm512_add_epi32(totals, totals), _mm512_set1_epi32(limit.middle));
    let middle = _mm512_mul_ps(_mm512_cvtepi32_ps(centred), _mm512_set1_ps(limit.factor));
    let slack = _mm512_mul_ps(lower_half(back), _mm512_set1_ps(limit.plane.error));
    let slack = _mm512_fmadd_ps(upper_half(back), _mm512_set1_ps(limit.plane.tail), slack);
    let slack = _mm512_fmadd_ps(upper_half(front), _mm512_set1_ps(limit.plane.norm), slack);
    let mut upper = _mm512_fmadd_ps(lower_half(front), middle, slack);
    if let (Some(values), Some(prior)) = (priors, limit.prior) {
        upper = _mm512_fmadd_ps(load_f32x16(values), _mm512_set1_ps(prior.factor), upper);
    }
    // `min` returns its second operand where the first is NaN, so such a bound becomes infinite.
    let upper = _mm512_min_ps(upper, _mm512_set1_ps(f32::INFINITY));
    store_f32x16(uppers, upper);
    at_least(upper, limit.threshold)
}

/// The floats whose upper halves are the lower halves of these lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn lower_half(pairs: __m512i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs))
}

/// The floats whose upper halves are the upper halves of these lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn upper_half(pairs: __m512i) -> __m512 {
    let mask = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
    _mm512_castsi512_ps(_mm512_and_si512(pairs, mask))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn at_least(uppers: __m512, threshold: f32) -> u16 {
    _mm512_cmp_ps_mask::<_CMP_GE_OQ>(uppers, _mm512_set1_ps(threshold))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn encode(row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds {
    scalar::encode(row, bytes, nibbles)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn query_codes(query: &[f32], power: f64) -> QueryCodes {
    QueryCodes::new(query, power)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn signed_bytes(values: &[f32], power: f64, most: f64) -> Plane {
    Plane::signed_bytes(values, power, most)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn code_sum(bytes: &[Line], query: &QueryCodes) -> i64 {
    let (high, low) = (query.high.values.as_chunks().0, query.low.values.as_chunks().0);
    let mut sums = [_mm512_setzero_si512(); 2];
    for (line, (high, low)) in bytes.iter().zip(high.iter().zip(low)) {
        let line = load_u8x64(&line.0);
        sums[0] =
            _mm512_dpbusd_epi32(sums[0], line, load_u8x64(bytemuck::cast_ref::<[i8; 64], _>(high)));
        sums[1] =
            _mm512_dpbusd_epi32(sums[1], line, load_u8x64(bytemuck::cast_ref::<[i8; 64], _>(low)));
    }
    let [high, low] = sums;
    query.code_sum(_mm512_reduce_add_epi32(high), _mm512_reduce_add_epi32(low))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn dots<const ROWS: usize>(rows: [&[f32]; ROWS], query: &[f64]) -> [f64; ROWS] {
    let rows = rows.map(|row| row.as_chunks::<8>().0);
    let mut sums = [_mm512_setzero_pd(); ROWS];
    for (at, parts) in query.as_chunks::<8>().0.iter().enumerate() {
        let parts = load_f64x8(parts);
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = add_products(*sum, &row[at], parts);
        }
    }
    let mut products = [0.0; ROWS];
    for (product, sum) in products.iter_mut().zip(sums) {
        *product = added(sum);
    }
    products
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_products(lanes: __m512d, values: &[f32; 8], parts: __m512d) -> __m512d {
    // Products of two float32 are exact in float64, so fusing changes nothing.
    _mm512_fmadd_pd(_mm512_cvtps_pd(avx2::load_f32x8(values)), parts, lanes)
}

/// The sum of eight lanes in their fixed order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn added(lanes: __m512d) -> f64 {
    let four = _mm256_add_pd(_mm512_castpd512_pd256(lanes), _mm512_extractf64x4_pd::<1>(lanes));
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_u8x64(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_f64x8(values: &[f64; 8]) -> __m512d {
    // SAFETY: the reference covers the eight floats, and the load needs no alignment.
    unsafe { _mm512_loadu_pd(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_f32x16(values: &[f32; 16]) -> __m512 {
    // SAFETY: the reference covers the 16 floats, and the load needs no alignment.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_f32x16(values: &mut [f32; 16], all: __m512) {
    // SAFETY: the reference covers the 16 floats, and the store needs no alignment.
    unsafe { _mm512_storeu_ps(values.as_mut_ptr(), all) };
}
