//! AVX-512 with VNNI: eight rows at a time, 64 code bytes a step, both query planes at once.
//!
//! Without VNNI the AVX2 kernel is used: its byte products would be no faster in wider registers.
#![expect(
    unsafe_code,
    reason = "vector loads, prefetches and calls of AVX-512 functions"
)]

use std::arch::x86_64::*;

use super::avx2::add_across;
use super::{CHUNK, CodedRows, Kernel, Lines, eight_from, eight_of, values_from, values_of};
use crate::quant::{self, QueryCodes, RowBound};

/// Rows summed side by side: two planes for each take sixteen of the thirty-two registers.
const ROWS: usize = 8;
const WIDTH: usize = 64;
const PREFETCH_BYTES: usize = 4096;

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

    fn encode(&self, row: &[f32], codes: &mut [u8]) -> RowBound {
        // SAFETY: as in `dot`.
        unsafe { encode(row, codes) }
    }

    fn query_codes(&self, query: &[f32]) -> QueryCodes {
        // SAFETY: as in `dot`.
        unsafe { query_codes(query) }
    }

    fn plane_sums(&self, codes: &[u8], query: &QueryCodes) -> (i32, i32) {
        // SAFETY: as in `dot`.
        unsafe { plane_sums(codes, query) }
    }

    fn reaching(
        &self,
        rows: &CodedRows<'_>,
        first: usize,
        count: usize,
        query: &QueryCodes,
        threshold: f32,
    ) -> u64 {
        // SAFETY: as in `dot`.
        unsafe { reaching(rows, first, count, query, threshold) }
    }

    fn reaching_listed(
        &self,
        rows: &CodedRows<'_>,
        listed: &[u32],
        ahead: &[u32],
        query: &QueryCodes,
        threshold: f32,
    ) -> u64 {
        // SAFETY: as in `dot`.
        unsafe { reaching_listed(rows, listed, ahead, query, threshold) }
    }

    fn prefetch(&self, row: &[f32]) {
        for line in row.chunks(WIDTH / size_of::<f32>()) {
            prefetch(line.as_ptr().cast());
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn reaching(
    rows: &CodedRows<'_>,
    first: usize,
    count: usize,
    query: &QueryCodes,
    threshold: f32,
) -> u64 {
    assert!(count <= CHUNK);
    let mut mask = 0;
    let whole = count - count % ROWS;
    for from in (0..whole).step_by(ROWS) {
        let sums = both_sums::<true>(rows.run_lines(first + from), query);
        let bounds = Bounds {
            scale: load_f32x8(values_from(rows.scale, first + from)),
            residual: load_f32x8(values_from(rows.residual, first + from)),
            norm: load_f32x8(values_from(rows.norm, first + from)),
        };
        mask |= bits_reaching(&bounds, sums, query, threshold) << from;
    }
    if whole < count {
        let picked = eight_from(first + whole, count - whole);
        mask |= picked_reaching(rows, picked, count - whole, query, threshold) << whole;
    }
    mask
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn reaching_listed(
    rows: &CodedRows<'_>,
    listed: &[u32],
    ahead: &[u32],
    query: &QueryCodes,
    threshold: f32,
) -> u64 {
    assert!(listed.len() <= CHUNK);
    let mut mask = 0;
    let mut ahead = ahead.chunks(ROWS);
    for (part, here) in listed.chunks(ROWS).enumerate() {
        for row in ahead.next().unwrap_or_default() {
            prefetch_coded(rows, *row as usize);
        }
        let bits = picked_reaching(rows, eight_of(here), here.len(), query, threshold);
        mask |= bits << (part * ROWS);
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
    query: &QueryCodes,
    threshold: f32,
) -> u64 {
    let sums = both_sums::<false>(rows.picked_lines(picked), query);
    let bounds = Bounds {
        scale: load_f32x8(&values_of(rows.scale, picked)),
        residual: load_f32x8(&values_of(rows.residual, picked)),
        norm: load_f32x8(&values_of(rows.norm, picked)),
    };
    bits_reaching(&bounds, sums, query, threshold) & (u64::MAX >> (CHUNK - count))
}

/// What bounds eight rows.
struct Bounds {
    scale: __m256,
    residual: __m256,
    norm: __m256,
}

/// Which of eight upper bounds, from both planes, are not below the threshold.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn bits_reaching(
    bounds: &Bounds,
    [high, low]: [__m256i; 2],
    query: &QueryCodes,
    threshold: f32,
) -> u64 {
    let high = _mm256_sub_epi32(high, _mm256_set1_epi32(query.high_offset));
    let low = _mm256_sub_epi32(low, _mm256_set1_epi32(query.low_offset));
    let coarse = _mm256_cvtepi32_ps(high);
    let sums = _mm256_fmadd_ps(coarse, _mm256_set1_ps(128.0), _mm256_cvtepi32_ps(low));
    let middle = _mm256_mul_ps(sums, _mm256_set1_ps(query.step));
    let error = _mm256_mul_ps(bounds.norm, _mm256_set1_ps(query.fine_error));
    let slack = _mm256_fmadd_ps(bounds.residual, _mm256_set1_ps(query.norm), error);
    let upper = _mm256_fmadd_ps(bounds.scale, middle, slack);
    // Not-less-than, unordered: a bound that overflowed to NaN must keep its row.
    u64::from(_mm256_cmp_ps_mask::<_CMP_NLT_UQ>(
        upper,
        _mm256_set1_ps(threshold),
    ))
}

/// The sums of both planes of eight rows. With `AHEAD` the codes that follow are fetched.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn both_sums<const AHEAD: bool>(lines: [Lines<'_>; ROWS], query: &QueryCodes) -> [__m256i; 2] {
    let [a, b, c, d, e, f, g, h] = lines;
    // Zipped iterators, because indexing eight slices would check each of them at every step.
    let lines = a.zip(b).zip(c.zip(d)).zip(e.zip(f).zip(g.zip(h)));
    let planes = query
        .high
        .as_chunks::<WIDTH>()
        .0
        .iter()
        .zip(query.low.as_chunks::<WIDTH>().0);
    let mut high_sums = [_mm512_setzero_si512(); ROWS];
    let mut low_sums = [_mm512_setzero_si512(); ROWS];
    for ((high, low), (((a, b), (c, d)), ((e, f), (g, h)))) in planes.zip(lines) {
        let (high, low) = (load_i8x64(high), load_i8x64(low));
        let sums = high_sums.iter_mut().zip(&mut low_sums);
        for ((high_sum, low_sum), line) in sums.zip([a, b, c, d, e, f, g, h]) {
            if AHEAD {
                prefetch(line.as_ptr().wrapping_add(PREFETCH_BYTES));
            }
            let codes = load_u8x64(line);
            *high_sum = _mm512_dpbusd_epi32(*high_sum, codes, high);
            *low_sum = _mm512_dpbusd_epi32(*low_sum, codes, low);
        }
    }
    [add_folded(&high_sums), add_folded(&low_sums)]
}

/// Lane `i` of the result is the sum of `sums[i]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn add_folded(sums: &[__m512i; ROWS]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = *sums;
    add_across([
        fold(a),
        fold(b),
        fold(c),
        fold(d),
        fold(e),
        fold(f),
        fold(g),
        fold(h),
    ])
}

/// Add the upper half to the lower.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn fold(sum: __m512i) -> __m256i {
    _mm256_add_epi32(
        _mm512_castsi512_si256(sum),
        _mm512_extracti64x4_epi64::<1>(sum),
    )
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn encode(row: &[f32], codes: &mut [u8]) -> RowBound {
    quant::encode(row, codes)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn query_codes(query: &[f32]) -> QueryCodes {
    QueryCodes::new(query)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn plane_sums(codes: &[u8], query: &QueryCodes) -> (i32, i32) {
    let mut high = _mm512_setzero_si512();
    let mut low = _mm512_setzero_si512();
    let planes = query
        .high
        .as_chunks::<WIDTH>()
        .0
        .iter()
        .zip(query.low.as_chunks::<WIDTH>().0);
    for (codes, (high_part, low_part)) in codes.as_chunks::<WIDTH>().0.iter().zip(planes) {
        let codes = load_u8x64(codes);
        high = _mm512_dpbusd_epi32(high, codes, load_i8x64(high_part));
        low = _mm512_dpbusd_epi32(low, codes, load_i8x64(low_part));
    }
    (_mm512_reduce_add_epi32(high), _mm512_reduce_add_epi32(low))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
fn dot(row: &[f32], query: &[f64]) -> f64 {
    let mut lanes = _mm512_setzero_pd();
    for (values, parts) in row.as_chunks::<8>().0.iter().zip(query.as_chunks::<8>().0) {
        // Products of two float32 are exact in float64, so fusing changes nothing.
        lanes = _mm512_fmadd_pd(
            _mm512_cvtps_pd(load_f32x8(values)),
            load_f64x8(parts),
            lanes,
        );
    }
    let four = _mm256_add_pd(
        _mm512_castpd512_pd256(lanes),
        _mm512_extractf64x4_pd::<1>(lanes),
    );
    let two = _mm_add_pd(
        _mm256_castpd256_pd128(four),
        _mm256_extractf128_pd::<1>(four),
    );
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}

fn prefetch_coded(rows: &CodedRows<'_>, row: usize) {
    for line in rows.row(row).chunks(WIDTH) {
        prefetch(line.as_ptr());
    }
    for values in [rows.scale, rows.residual, rows.norm] {
        prefetch(values[row..].as_ptr().cast());
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
