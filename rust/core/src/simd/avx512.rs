//! AVX-512 with VNNI: eight rows at a time, a cache line of codes a step.
//!
//! Without VNNI the AVX2 kernel is used: its byte products would be no faster in wider registers.
#![expect(unsafe_code, reason = "vector loads, prefetches and calls of AVX-512 functions")]
#![expect(clippy::inline_always, reason = "as in `eights`")]

use std::arch::x86_64::*;

use super::blocked::{self, Instructions};
use super::{EIGHT, Kernel, Limit, Tile, Uppers, avx2};
use crate::collections::append_buffer::Line;
use crate::quantization::row_blocks::{CodedRows, Packing, RowLines};
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
        unsafe { dot(row, query) }
    }

    fn dots(&self, rows: &[f32], query: &[f64], products: &mut [f64]) {
        // SAFETY: as in `dot`.
        unsafe { dots(rows, query, products) }
    }

    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds {
        // SAFETY: as in `dot`.
        unsafe { encode(row, bytes, nibbles) }
    }

    fn query_codes(&self, query: &[f32], power: f64) -> QueryCodes {
        // SAFETY: as in `dot`.
        unsafe { query_codes(query, power) }
    }

    fn signed_bytes(&self, values: &[f32], power: f64) -> Plane {
        // SAFETY: as in `dot`.
        unsafe { signed_bytes(values, power) }
    }

    fn code_sum(&self, bytes: RowLines<'_>, query: &QueryCodes) -> i64 {
        // SAFETY: as in `dot`.
        unsafe { code_sum(bytes, query) }
    }

    fn bound(&self, rows: &CodedRows, tile: Tile, limit: &Limit<'_>, uppers: &mut Uppers) -> u64 {
        // SAFETY: as in `dot`.
        unsafe { bound(rows, tile, limit, uppers) }
    }

    fn bound_listed(
        &self,
        rows: &CodedRows,
        listed: &[u32],
        limit: &Limit<'_>,
        uppers: &mut Uppers,
    ) -> u64 {
        // SAFETY: as in `dot`.
        unsafe { bound_listed(rows, listed, limit, uppers) }
    }

    fn bound_many(
        &self,
        rows: &CodedRows,
        tile: Tile,
        limits: &[Limit<'_>],
        uppers: &mut [Uppers; EIGHT],
    ) -> [u64; EIGHT] {
        // SAFETY: as in `dot`.
        unsafe { bound_many(rows, tile, limits, uppers) }
    }

    fn positions_reaching(&self, uppers: &[f32], threshold: f32, positions: &mut Vec<u32>) {
        // SAFETY: as in `dot`.
        unsafe { positions_reaching(uppers, threshold, positions) }
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

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn bound(rows: &CodedRows, tile: Tile, limit: &Limit<'_>, uppers: &mut Uppers) -> u64 {
    blocked::bound(Avx512Vnni(()), rows, tile, limit, uppers)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn bound_listed(rows: &CodedRows, listed: &[u32], limit: &Limit<'_>, uppers: &mut Uppers) -> u64 {
    blocked::bound_listed(Avx512Vnni(()), rows, listed, limit, uppers)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn bound_many(
    rows: &CodedRows,
    tile: Tile,
    limits: &[Limit<'_>],
    uppers: &mut [Uppers; EIGHT],
) -> [u64; EIGHT] {
    blocked::bound_many(Avx512Vnni(()), rows, tile, limits, uppers)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn positions_reaching(uppers: &[f32], threshold: f32, positions: &mut Vec<u32>) {
    blocked::positions_reaching(Avx512Vnni(()), uppers, threshold, positions);
}

impl Instructions for Avx512Vnni {
    type Sum = __m512i;
    type NibbleParts = [__m512i; 2];
    type ByteParts = __m512i;
    type Sums = __m256i;
    type Bounds = avx2::Bounds;

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: an `Avx512Vnni` exists only where `detect` found the features; so below.
        unsafe { zero() }
    }

    #[inline(always)]
    fn nibble_parts(self, parts: &[i8; LINE_COMPONENTS]) -> [__m512i; 2] {
        // SAFETY: as in `zero`.
        unsafe { nibble_parts(parts) }
    }

    #[inline(always)]
    fn byte_parts(self, parts: &[i8; 64]) -> __m512i {
        // SAFETY: as in `zero`.
        unsafe { byte_parts(parts) }
    }

    #[inline(always)]
    fn add_nibbles(self, sum: __m512i, line: &Line, parts: [__m512i; 2]) -> __m512i {
        // SAFETY: as in `zero`.
        unsafe { add_nibbles(sum, line, parts) }
    }

    #[inline(always)]
    fn add_bytes(self, sum: __m512i, line: &Line, parts: __m512i) -> __m512i {
        // SAFETY: as in `zero`.
        unsafe { add_bytes(sum, line, parts) }
    }

    #[inline(always)]
    fn totals(self, sums: [__m512i; EIGHT]) -> __m256i {
        // SAFETY: as in `zero`.
        unsafe { totals(&sums) }
    }

    #[inline(always)]
    fn exchanged(self, totals: [__m256i; EIGHT]) -> [__m256i; EIGHT] {
        // SAFETY: as in `zero`.
        unsafe { avx2::exchanged(totals) }
    }

    #[inline(always)]
    fn add_by_plane(
        self,
        totals: &mut [__m256i; EIGHT],
        packing: Packing,
        block: &[Line],
        planes: &[&[i8]],
    ) -> bool {
        // SAFETY: as in `zero`.
        unsafe { add_by_plane(totals, packing, block, planes) };
        true
    }

    #[inline(always)]
    fn bounds(self, bounds: &[RowBound; EIGHT]) -> avx2::Bounds {
        // SAFETY: as in `zero`.
        unsafe { avx2::transposed(bounds) }
    }

    #[inline(always)]
    fn rows_reaching(
        self,
        totals: __m256i,
        bounds: &avx2::Bounds,
        limit: &Limit<'_>,
        priors: Option<&[f32; EIGHT]>,
        uppers: &mut [f32; EIGHT],
    ) -> u64 {
        // SAFETY: as in `zero`.
        unsafe { avx2::rows_reaching(totals, bounds, limit, priors, uppers) }
    }

    #[inline(always)]
    fn at_least(self, uppers: &[f32; EIGHT], threshold: f32) -> u64 {
        // SAFETY: as in `zero`.
        unsafe { avx2::at_least(uppers, threshold) }
    }

    #[inline(always)]
    fn prefetch(self, line: *const Line) {
        // SAFETY: a prefetch is a hint and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn zero() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_nibbles(sum: __m512i, line: &Line, [first, second]: [__m512i; 2]) -> __m512i {
    let low = _mm512_set1_epi8(15);
    let line = load_u8x64(&line.0);
    let high = _mm512_and_si512(_mm512_srli_epi16::<4>(line), low);
    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(line, low), first);
    _mm512_dpbusd_epi32(sum, high, second)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_bytes(sum: __m512i, line: &Line, parts: __m512i) -> __m512i {
    _mm512_dpbusd_epi32(sum, load_u8x64(&line.0), parts)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn nibble_parts(parts: &[i8; LINE_COMPONENTS]) -> [__m512i; 2] {
    let [first, second] = parts.as_chunks::<64>().0 else { unreachable!("twice 64 are 128") };
    [load_i8x64(first), load_i8x64(second)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn byte_parts(parts: &[i8; 64]) -> __m512i {
    load_i8x64(parts)
}

/// Lane `i` of the result is the total of `sums[i]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn totals(sums: &[__m512i; EIGHT]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = *sums;
    avx2::totals([fold(a), fold(b), fold(c), fold(d), fold(e), fold(f), fold(g), fold(h)])
}

/// Add the upper half to the lower.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn fold(sum: __m512i) -> __m256i {
    _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum))
}

/// Add the totals of eight rows with each plane.
///
/// Four components of all rows share a register, so that no sum goes across lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_by_plane(totals: &mut [__m256i; EIGHT], packing: Packing, block: &[Line], planes: &[&[i8]]) {
    for (at, lines) in block.as_chunks().0.iter().enumerate() {
        for half in 0..2 {
            let fours = avx2::transposed_half(lines, half);
            match packing {
                Packing::Nibbles => {
                    let [low, high] = avx2::nibbles(fours);
                    let first = at * LINE_COMPONENTS + half * 32;
                    for (total, plane) in totals.iter_mut().zip(planes) {
                        let lows = add_fours(*total, &low, &plane[first..]);
                        let highs = add_fours(_mm256_setzero_si256(), &high, &plane[first + 64..]);
                        *total = _mm256_add_epi32(lows, highs);
                    }
                }
                Packing::Bytes => {
                    let first = at * 64 + half * 32;
                    for (total, plane) in totals.iter_mut().zip(planes) {
                        *total = add_fours(*total, &fours, &plane[first..]);
                    }
                }
            }
        }
    }
}

/// Add eight times four components of eight rows times those of a plane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_fours(sum: __m256i, fours: &[__m256i; EIGHT], parts: &[i8]) -> __m256i {
    let parts: &[[i8; 4]; EIGHT] = parts.as_chunks().0.first_chunk().expect("32 components");
    let mut sum = sum;
    for (four, parts) in fours.iter().zip(parts) {
        sum = _mm256_dpbusd_epi32(sum, *four, avx2::repeated(*parts));
    }
    sum
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
fn signed_bytes(values: &[f32], power: f64) -> Plane {
    Plane::signed_bytes(values, power)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn code_sum(bytes: RowLines<'_>, query: &QueryCodes) -> i64 {
    let (high, low) = (query.high.values.as_chunks().0, query.low.values.as_chunks().0);
    let mut sums = [_mm512_setzero_si512(); 2];
    for (line, (high, low)) in bytes.zip(high.iter().zip(low)) {
        let line = load_u8x64(&line.0);
        sums[0] = _mm512_dpbusd_epi32(sums[0], line, load_i8x64(high));
        sums[1] = _mm512_dpbusd_epi32(sums[1], line, load_i8x64(low));
    }
    let [high, low] = sums;
    query.code_sum(_mm512_reduce_add_epi32(high), _mm512_reduce_add_epi32(low))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn dot(row: &[f32], query: &[f64]) -> f64 {
    let mut lanes = _mm512_setzero_pd();
    for (values, parts) in row.as_chunks::<8>().0.iter().zip(query.as_chunks::<8>().0) {
        lanes = add_products(lanes, values, load_f64x8(parts));
    }
    added(lanes)
}

/// Four rows at once: a single sum would wait for each of its additions.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn dots(rows: &[f32], query: &[f64], products: &mut [f64]) {
    let fours = rows.chunks_exact(4 * query.len());
    let rest = fours.remainder();
    let (by_four, others) = products.as_chunks_mut::<4>();
    for (products, rows) in by_four.iter_mut().zip(fours) {
        let (front, back) = rows.split_at(2 * query.len());
        let ((first, second), (third, fourth)) =
            (front.split_at(query.len()), back.split_at(query.len()));
        *products = four_dots([first, second, third, fourth], query);
    }
    for (product, row) in others.iter_mut().zip(rest.chunks_exact(query.len())) {
        *product = dot(row, query);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn four_dots(rows: [&[f32]; 4], query: &[f64]) -> [f64; 4] {
    let [first, second, third, fourth] = rows.map(|row| row.as_chunks::<8>().0);
    let mut lanes = [_mm512_setzero_pd(); 4];
    for (at, parts) in query.as_chunks::<8>().0.iter().enumerate() {
        let parts = load_f64x8(parts);
        lanes[0] = add_products(lanes[0], &first[at], parts);
        lanes[1] = add_products(lanes[1], &second[at], parts);
        lanes[2] = add_products(lanes[2], &third[at], parts);
        lanes[3] = add_products(lanes[3], &fourth[at], parts);
    }
    [added(lanes[0]), added(lanes[1]), added(lanes[2]), added(lanes[3])]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_products(lanes: __m512d, values: &[f32; 8], parts: __m512d) -> __m512d {
    // Products of two float32 are exact in float64, so fusing changes nothing.
    _mm512_fmadd_pd(_mm512_cvtps_pd(load_f32x8(values)), parts, lanes)
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
fn load_i8x64(bytes: &[i8; 64]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_f32x8(values: &[f32; 8]) -> __m256 {
    // SAFETY: the reference covers the eight floats, and the load needs no alignment.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_f64x8(values: &[f64; 8]) -> __m512d {
    // SAFETY: the reference covers the eight floats, and the load needs no alignment.
    unsafe { _mm512_loadu_pd(values.as_ptr()) }
}
