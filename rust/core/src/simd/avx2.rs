//! AVX2 with FMA: eight rows at a time, 32 code bytes a step.
#![expect(
    unsafe_code,
    reason = "vector loads, prefetches and calls of AVX2 functions"
)]

use std::arch::x86_64::*;

use super::{CHUNK, CodedRows, Kernel, Lines, eight_from, eight_of, values_from, values_of};
use crate::quant::{self, QueryCodes, RowBound};

/// Rows summed side by side: eight accumulators leave registers for the query and the products.
const ROWS: usize = 8;
const WIDTH: usize = 32;
const LINE: usize = 64;
/// How far ahead codes are fetched; measured in `docs/kernel.md`.
const PREFETCH_BYTES: usize = 4096;

/// Exists only where AVX2 and FMA do: `detect` alone makes one.
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
        for line in row.chunks(LINE / size_of::<f32>()) {
            prefetch(line.as_ptr().cast());
        }
    }
}

#[target_feature(enable = "avx2,fma")]
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
        let sums = high_sums::<true>(rows.run_lines(first + from), query);
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

#[target_feature(enable = "avx2,fma")]
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
#[target_feature(enable = "avx2,fma")]
fn picked_reaching(
    rows: &CodedRows<'_>,
    picked: [usize; ROWS],
    count: usize,
    query: &QueryCodes,
    threshold: f32,
) -> u64 {
    let sums = high_sums::<false>(rows.picked_lines(picked), query);
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

/// Which of eight upper bounds are not below the threshold.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn bits_reaching(bounds: &Bounds, sums: __m256i, query: &QueryCodes, threshold: f32) -> u64 {
    let sums = _mm256_sub_epi32(sums, _mm256_set1_epi32(query.high_offset));
    let middle = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(query.step * 128.0));
    let error = _mm256_mul_ps(bounds.norm, _mm256_set1_ps(query.coarse_error));
    let slack = _mm256_fmadd_ps(bounds.residual, _mm256_set1_ps(query.norm), error);
    let upper = _mm256_fmadd_ps(bounds.scale, middle, slack);
    // Not-less-than, unordered: a bound that overflowed to NaN must keep its row.
    let keep = _mm256_cmp_ps::<_CMP_NLT_UQ>(upper, _mm256_set1_ps(threshold));
    u64::from(_mm256_movemask_ps(keep).cast_unsigned())
}

/// The sums of `codes · high` of eight rows. With `AHEAD` the codes that follow are fetched.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn high_sums<const AHEAD: bool>(lines: [Lines<'_>; ROWS], query: &QueryCodes) -> __m256i {
    let [a, b, c, d, e, f, g, h] = lines;
    // Zipped iterators, because indexing eight slices would check each of them at every step.
    let lines = a.zip(b).zip(c.zip(d)).zip(e.zip(f).zip(g.zip(h)));
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_si256(); ROWS];
    for (part, (((a, b), (c, d)), ((e, f), (g, h)))) in query.high.as_chunks().0.iter().zip(lines) {
        let parts: [__m256i; 2] = halves_i8(part);
        for (sum, line) in sums.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            if AHEAD {
                prefetch(line.as_ptr().wrapping_add(PREFETCH_BYTES));
            }
            for (codes, part) in halves_u8(line).into_iter().zip(parts) {
                let pairs = _mm256_maddubs_epi16(codes, part);
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
            }
        }
    }
    add_across(sums)
}

/// Lane `i` of the result is the sum of `sums[i]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn add_across(sums: [__m256i; ROWS]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = sums;
    let front = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let back = _mm256_hadd_epi32(_mm256_hadd_epi32(e, f), _mm256_hadd_epi32(g, h));
    let low = _mm256_permute2x128_si256::<0x20>(front, back);
    let high = _mm256_permute2x128_si256::<0x31>(front, back);
    _mm256_add_epi32(low, high)
}

#[target_feature(enable = "avx2,fma")]
fn encode(row: &[f32], codes: &mut [u8]) -> RowBound {
    quant::encode(row, codes)
}

#[target_feature(enable = "avx2,fma")]
fn query_codes(query: &[f32]) -> QueryCodes {
    QueryCodes::new(query)
}

#[target_feature(enable = "avx2,fma")]
fn plane_sums(codes: &[u8], query: &QueryCodes) -> (i32, i32) {
    let ones = _mm256_set1_epi16(1);
    let mut high = _mm256_setzero_si256();
    let mut low = _mm256_setzero_si256();
    let planes = query
        .high
        .as_chunks::<WIDTH>()
        .0
        .iter()
        .zip(query.low.as_chunks::<WIDTH>().0);
    for (codes, (high_part, low_part)) in codes.as_chunks::<WIDTH>().0.iter().zip(planes) {
        let codes = load_u8x32(codes);
        let pairs = _mm256_maddubs_epi16(codes, load_i8x32(high_part));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(pairs, ones));
        let pairs = _mm256_maddubs_epi16(codes, load_i8x32(low_part));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(pairs, ones));
    }
    let zero = _mm256_setzero_si256();
    let both = add_across([high, low, zero, zero, zero, zero, zero, zero]);
    (
        _mm256_extract_epi32::<0>(both),
        _mm256_extract_epi32::<1>(both),
    )
}

#[target_feature(enable = "avx2,fma")]
fn dot(row: &[f32], query: &[f64]) -> f64 {
    let mut front = _mm256_setzero_pd();
    let mut back = _mm256_setzero_pd();
    for (values, parts) in row.as_chunks::<8>().0.iter().zip(query.as_chunks::<8>().0) {
        let [left, right] = halves(values);
        let [first, second] = parts.as_chunks::<4>().0 else {
            unreachable!("eight are twice four")
        };
        // Products of two float32 are exact in float64, so fusing changes nothing.
        front = _mm256_fmadd_pd(left, load_f64x4(first), front);
        back = _mm256_fmadd_pd(right, load_f64x4(second), back);
    }
    let four = _mm256_add_pd(front, back);
    let two = _mm_add_pd(
        _mm256_castpd256_pd128(four),
        _mm256_extractf128_pd::<1>(four),
    );
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
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

fn prefetch_coded(rows: &CodedRows<'_>, row: usize) {
    for line in rows.row(row).chunks(LINE) {
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
#[target_feature(enable = "avx2,fma")]
fn halves_u8(line: &[u8; LINE]) -> [__m256i; 2] {
    let [first, second] = line.as_chunks::<WIDTH>().0 else {
        unreachable!("twice 32 are 64")
    };
    [load_u8x32(first), load_u8x32(second)]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn halves_i8(line: &[i8; LINE]) -> [__m256i; 2] {
    let [first, second] = line.as_chunks::<WIDTH>().0 else {
        unreachable!("twice 32 are 64")
    };
    [load_i8x32(first), load_i8x32(second)]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_u8x32(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_i8x32(bytes: &[i8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_f32x8(values: &[f32; 8]) -> __m256 {
    // SAFETY: the reference covers the eight floats, and the load needs no alignment.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_f64x4(values: &[f64; 4]) -> __m256d {
    // SAFETY: the reference covers the four floats, and the load needs no alignment.
    unsafe { _mm256_loadu_pd(values.as_ptr()) }
}
