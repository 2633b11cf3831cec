//! AVX-512 with VNNI: eight rows at a time, a cache line of codes a step.
//!
//! Without VNNI the AVX2 kernel is used: its byte products would be no faster in wider registers.
#![expect(unsafe_code, reason = "vector loads, prefetches and calls of AVX-512 functions")]

use std::arch::x86_64::*;

use super::avx2::{Bounds, add_across, bounds_of};
use super::{CHUNK, CodedRows, Depth, Kernel, Limit, Lines, eight_from, eight_of};
use crate::quant::{self, LINE_COMPONENTS, Plane, QueryCodes, RowBound};

/// Rows summed side by side.
const ROWS: usize = 8;
const WIDTH: usize = 64;
const PREFETCH_BYTES: usize = 4096;

/// How many rows ahead listed rows are fetched: enough to hide memory, few enough to stay in L1.
const ROWS_AHEAD: usize = 16;

/// Exists only where AVX-512 F, BW, VL and VNNI do: `detect` alone makes one.
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
        // SAFETY: an `Avx512Vnni` is only reachable through `detect`, which found the features.
        unsafe { dot(row, query) }
    }

    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBound {
        // SAFETY: as in `dot`.
        unsafe { encode(row, bytes, nibbles) }
    }

    fn query_codes(&self, query: &[f32]) -> QueryCodes {
        // SAFETY: as in `dot`.
        unsafe { query_codes(query) }
    }

    fn code_sum(&self, bytes: &[u8], query: &QueryCodes) -> i64 {
        // SAFETY: as in `dot`.
        unsafe { code_sum(bytes, query) }
    }

    fn reaching(&self, rows: &CodedRows<'_>, first: usize, count: usize, limit: &Limit<'_>) -> u64 {
        // SAFETY: as in `dot`.
        unsafe { reaching(rows, first, count, limit) }
    }

    fn reaching_listed(
        &self,
        rows: &CodedRows<'_>,
        listed: &[u32],
        ahead: &[u32],
        limit: &Limit<'_>,
    ) -> u64 {
        // SAFETY: as in `dot`.
        unsafe { reaching_listed(rows, listed, ahead, limit) }
    }

    fn prefetch(&self, bytes: &[u8]) {
        prefetch_lines(bytes);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn reaching(rows: &CodedRows<'_>, first: usize, count: usize, limit: &Limit<'_>) -> u64 {
    assert!(count <= CHUNK);
    let mut mask = 0;
    let whole = count - count % ROWS;
    for from in (0..whole).step_by(ROWS) {
        let start = first + from;
        let lines = rows.run_lines(limit.depth, start);
        let sums = match limit.depth {
            Depth::Coarse => nibble_sums::<true>(lines, limit.plane),
            Depth::Full => byte_sums::<true>(lines, limit.plane),
        };
        let bounds = bounds_of(rows, eight_from(start, ROWS));
        mask |= bits_reaching(&bounds, sums, limit) << from;
    }
    if whole < count {
        let picked = eight_from(first + whole, count - whole);
        mask |= picked_reaching(rows, picked, count - whole, limit) << whole;
    }
    mask
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn reaching_listed(rows: &CodedRows<'_>, listed: &[u32], ahead: &[u32], limit: &Limit<'_>) -> u64 {
    assert!(listed.len() <= CHUNK);
    let mut mask = 0;
    for (part, here) in listed.chunks(ROWS).enumerate() {
        for at in part * ROWS + ROWS_AHEAD..(part + 1) * ROWS + ROWS_AHEAD {
            if let Some(row) = listed.get(at).or_else(|| ahead.get(at - listed.len())) {
                prefetch_coded(rows, *row as usize, limit.depth);
            }
        }
        mask |= picked_reaching(rows, eight_of(here), here.len(), limit) << (part * ROWS);
    }
    mask
}

/// The bits of the first `count` of eight rows named by number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn picked_reaching(
    rows: &CodedRows<'_>,
    picked: [usize; ROWS],
    count: usize,
    limit: &Limit<'_>,
) -> u64 {
    let lines = rows.picked_lines(limit.depth, picked);
    let sums = match limit.depth {
        Depth::Coarse => nibble_sums::<false>(lines, limit.plane),
        Depth::Full => byte_sums::<false>(lines, limit.plane),
    };
    bits_reaching(&bounds_of(rows, picked), sums, limit) & (u64::MAX >> (CHUNK - count))
}

/// Which of eight upper bounds are not below the threshold.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn bits_reaching(bounds: &Bounds, sums: __m256i, limit: &Limit<'_>) -> u64 {
    let twice = _mm256_add_epi32(sums, sums);
    let sums = _mm256_sub_epi32(twice, _mm256_set1_epi32(limit.middle));
    let middle = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(limit.factor));
    let error = _mm256_mul_ps(bounds.norm, _mm256_set1_ps(limit.plane.error));
    let slack = _mm256_fmadd_ps(bounds.residual(limit.depth), _mm256_set1_ps(limit.norm), error);
    let upper = _mm256_fmadd_ps(bounds.scale, middle, slack);
    // Not-less-than, unordered: a bound that overflowed to NaN must keep its row.
    u64::from(_mm256_cmp_ps_mask::<_CMP_NLT_UQ>(upper, _mm256_set1_ps(limit.threshold)))
}

/// The sums of nibbles times their plane, of eight rows. With `AHEAD` the nibbles
/// that follow are fetched.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn nibble_sums<const AHEAD: bool>(lines: [Lines<'_>; ROWS], plane: &Plane) -> __m256i {
    let [a, b, c, d, e, f, g, h] = lines;
    // Zipped iterators, because indexing eight slices would check each of them at every step.
    let lines = a.zip(b).zip(c.zip(d)).zip(e.zip(f).zip(g.zip(h)));
    let mut sums = [_mm512_setzero_si512(); ROWS];
    for (parts, (((a, b), (c, d)), ((e, f), (g, h)))) in
        plane.values.as_chunks().0.iter().zip(lines)
    {
        let parts = load_parts(parts);
        for (sum, line) in sums.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            if AHEAD {
                prefetch(line.as_ptr().wrapping_add(PREFETCH_BYTES));
            }
            *sum = add_line(*sum, line, parts);
        }
    }
    add_folded(&sums)
}

/// The sums of bytes times their plane, of eight rows. With `AHEAD` the bytes that follow are
/// fetched.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn byte_sums<const AHEAD: bool>(lines: [Lines<'_>; ROWS], plane: &Plane) -> __m256i {
    let [a, b, c, d, e, f, g, h] = lines;
    let lines = a.zip(b).zip(c.zip(d)).zip(e.zip(f).zip(g.zip(h)));
    let mut sums = [_mm512_setzero_si512(); ROWS];
    for (parts, (((a, b), (c, d)), ((e, f), (g, h)))) in
        plane.values.as_chunks().0.iter().zip(lines)
    {
        let parts = load_i8x64(parts);
        for (sum, line) in sums.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            if AHEAD {
                prefetch(line.as_ptr().wrapping_add(PREFETCH_BYTES));
            }
            *sum = _mm512_dpbusd_epi32(*sum, load_u8x64(line), parts);
        }
    }
    add_folded(&sums)
}

/// Add one line's nibbles times their parts of a plane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_line(sum: __m512i, line: &[u8; WIDTH], [first, second]: [__m512i; 2]) -> __m512i {
    let low = _mm512_set1_epi8(15);
    let line = load_u8x64(line);
    let high = _mm512_and_si512(_mm512_srli_epi16::<4>(line), low);
    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(line, low), first);
    _mm512_dpbusd_epi32(sum, high, second)
}

/// The parts of a plane that go with one line, 64 components each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn load_parts(parts: &[i8; LINE_COMPONENTS]) -> [__m512i; 2] {
    let [first, second] = parts.as_chunks::<WIDTH>().0 else { unreachable!("twice 64 are 128") };
    [load_i8x64(first), load_i8x64(second)]
}

/// Lane `i` of the result is the sum of `sums[i]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_folded(sums: &[__m512i; ROWS]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = *sums;
    add_across([fold(a), fold(b), fold(c), fold(d), fold(e), fold(f), fold(g), fold(h)])
}

/// Add the upper half to the lower.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn fold(sum: __m512i) -> __m256i {
    _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn encode(row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBound {
    quant::encode(row, bytes, nibbles)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn query_codes(query: &[f32]) -> QueryCodes {
    QueryCodes::new(query)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn code_sum(bytes: &[u8], query: &QueryCodes) -> i64 {
    let (high, low) = (query.high.values.as_chunks().0, query.low.values.as_chunks().0);
    let mut sums = [_mm512_setzero_si512(); 2];
    for (line, (high, low)) in bytes.as_chunks().0.iter().zip(high.iter().zip(low)) {
        let line = load_u8x64(line);
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
        // Products of two float32 are exact in float64, so fusing changes nothing.
        lanes = _mm512_fmadd_pd(_mm512_cvtps_pd(load_f32x8(values)), load_f64x8(parts), lanes);
    }
    let four = _mm256_add_pd(_mm512_castpd512_pd256(lanes), _mm512_extractf64x4_pd::<1>(lanes));
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}

fn prefetch_coded(rows: &CodedRows<'_>, row: usize, depth: Depth) {
    prefetch(std::ptr::from_ref(&rows.bounds[row]).cast());
    prefetch_lines(rows.row(depth, row));
}

fn prefetch_lines(bytes: &[u8]) {
    for line in bytes.chunks(WIDTH) {
        prefetch(line.as_ptr());
    }
}

#[inline]
fn prefetch(address: *const u8) {
    // SAFETY: a prefetch is a hint and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
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
