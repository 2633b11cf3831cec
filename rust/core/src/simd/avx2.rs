//! AVX2 with FMA: eight rows at a time, a cache line of codes a step.
#![expect(unsafe_code, reason = "vector loads, prefetches and calls of AVX2 functions")]

use std::arch::x86_64::*;

use super::{CHUNK, CodedRows, Depth, Kernel, Limit, Lines, eight_from, eight_of};
use crate::quant::{self, LINE_COMPONENTS, Plane, QueryCodes, RowBound};

/// Rows summed side by side: eight accumulators leave registers for the query and the products.
const ROWS: usize = 8;
const WIDTH: usize = 32;
const LINE: usize = 64;
/// How far ahead codes are fetched; measured in `docs/kernel.md`.
const PREFETCH_BYTES: usize = 2048;

/// How many rows ahead listed rows are fetched: enough to hide memory, few enough to stay in L1.
const ROWS_AHEAD: usize = 16;

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

#[target_feature(enable = "avx2,fma")]
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

#[target_feature(enable = "avx2,fma")]
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
#[target_feature(enable = "avx2,fma")]
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

/// What bounds eight rows, one row a lane.
pub(super) struct Bounds {
    pub(super) scale: __m256,
    coarse_residual: __m256,
    residual: __m256,
    pub(super) norm: __m256,
}

impl Bounds {
    #[inline]
    pub(super) fn residual(&self, depth: Depth) -> __m256 {
        match depth {
            Depth::Coarse => self.coarse_residual,
            Depth::Full => self.residual,
        }
    }
}

/// Read and transpose the bounds of eight rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn bounds_of(rows: &CodedRows<'_>, picked: [usize; ROWS]) -> Bounds {
    let [a, b, c, d, e, f, g, h] = picked;
    let ae = _mm256_set_m128(load_bound(&rows.bounds[e]), load_bound(&rows.bounds[a]));
    let bf = _mm256_set_m128(load_bound(&rows.bounds[f]), load_bound(&rows.bounds[b]));
    let cg = _mm256_set_m128(load_bound(&rows.bounds[g]), load_bound(&rows.bounds[c]));
    let dh = _mm256_set_m128(load_bound(&rows.bounds[h]), load_bound(&rows.bounds[d]));
    let front = _mm256_castps_pd(_mm256_unpacklo_ps(ae, bf));
    let front_next = _mm256_castps_pd(_mm256_unpacklo_ps(cg, dh));
    let back = _mm256_castps_pd(_mm256_unpackhi_ps(ae, bf));
    let back_next = _mm256_castps_pd(_mm256_unpackhi_ps(cg, dh));
    Bounds {
        scale: _mm256_castpd_ps(_mm256_unpacklo_pd(front, front_next)),
        coarse_residual: _mm256_castpd_ps(_mm256_unpackhi_pd(front, front_next)),
        residual: _mm256_castpd_ps(_mm256_unpacklo_pd(back, back_next)),
        norm: _mm256_castpd_ps(_mm256_unpackhi_pd(back, back_next)),
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_bound(bound: &RowBound) -> __m128 {
    // SAFETY: a `RowBound` is four floats in C layout, and the load needs no alignment.
    unsafe { _mm_loadu_ps(std::ptr::from_ref(bound).cast()) }
}

/// Which of eight upper bounds are not below the threshold.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn bits_reaching(bounds: &Bounds, sums: __m256i, limit: &Limit<'_>) -> u64 {
    let twice = _mm256_add_epi32(sums, sums);
    let sums = _mm256_sub_epi32(twice, _mm256_set1_epi32(limit.middle));
    let middle = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(limit.factor));
    let error = _mm256_mul_ps(bounds.norm, _mm256_set1_ps(limit.plane.error));
    let slack = _mm256_fmadd_ps(bounds.residual(limit.depth), _mm256_set1_ps(limit.norm), error);
    let upper = _mm256_fmadd_ps(bounds.scale, middle, slack);
    // Not-less-than, unordered: a bound that overflowed to NaN must keep its row.
    let keep = _mm256_cmp_ps::<_CMP_NLT_UQ>(upper, _mm256_set1_ps(limit.threshold));
    u64::from(_mm256_movemask_ps(keep).cast_unsigned())
}

/// The sums of nibbles times their plane, of eight rows. With `AHEAD` the nibbles
/// that follow are fetched.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn nibble_sums<const AHEAD: bool>(lines: [Lines<'_>; ROWS], plane: &Plane) -> __m256i {
    let [a, b, c, d, e, f, g, h] = lines;
    // Zipped iterators, because indexing eight slices would check each of them at every step.
    let lines = a.zip(b).zip(c.zip(d)).zip(e.zip(f).zip(g.zip(h)));
    let mut sums = [_mm256_setzero_si256(); ROWS];
    for (parts, (((a, b), (c, d)), ((e, f), (g, h)))) in
        plane.values.as_chunks().0.iter().zip(lines)
    {
        let parts = load_parts(parts);
        for (sum, line) in sums.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            if AHEAD {
                prefetch(line.as_ptr().wrapping_add(PREFETCH_BYTES));
            }
            *sum = _mm256_add_epi32(*sum, line_sum(line, parts));
        }
    }
    add_across(sums)
}

/// The sums of bytes times their plane, of eight rows. With `AHEAD` the bytes that follow are
/// fetched.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn byte_sums<const AHEAD: bool>(lines: [Lines<'_>; ROWS], plane: &Plane) -> __m256i {
    let [a, b, c, d, e, f, g, h] = lines;
    let lines = a.zip(b).zip(c.zip(d)).zip(e.zip(f).zip(g.zip(h)));
    let mut sums = [_mm256_setzero_si256(); ROWS];
    for (parts, (((a, b), (c, d)), ((e, f), (g, h)))) in
        plane.values.as_chunks().0.iter().zip(lines)
    {
        let parts = halves_i8(parts);
        for (sum, line) in sums.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            if AHEAD {
                prefetch(line.as_ptr().wrapping_add(PREFETCH_BYTES));
            }
            *sum = add_bytes(*sum, line, parts);
        }
    }
    add_across(sums)
}

/// Add one line's bytes times their parts of a plane. Pairs of products are at most 2·255·64 in
/// magnitude, below 2¹⁵.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_bytes(sum: __m256i, line: &[u8; LINE], [first, second]: [__m256i; 2]) -> __m256i {
    let ones = _mm256_set1_epi16(1);
    let [front, back] = line.as_chunks::<WIDTH>().0 else { unreachable!("twice 32 are 64") };
    let front = _mm256_madd_epi16(_mm256_maddubs_epi16(load_u8x32(front), first), ones);
    let back = _mm256_madd_epi16(_mm256_maddubs_epi16(load_u8x32(back), second), ones);
    _mm256_add_epi32(sum, _mm256_add_epi32(front, back))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn halves_i8(parts: &[i8; LINE]) -> [__m256i; 2] {
    let [first, second] = parts.as_chunks::<WIDTH>().0 else { unreachable!("twice 32 are 64") };
    [load_i8x32(first), load_i8x32(second)]
}

/// The sum of one line's nibbles times their parts of a plane, in eight lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn line_sum(line: &[u8; LINE], parts: [__m256i; 4]) -> __m256i {
    _mm256_madd_epi16(line_pairs(line, parts), _mm256_set1_epi16(1))
}

/// One line's nibbles times their parts of a plane, summed in sixteen lanes: pairs of products
/// are at most 2·15·128, four of them stay below 2¹⁵.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn line_pairs(line: &[u8; LINE], [a, b, c, d]: [__m256i; 4]) -> __m256i {
    let [first, second] = line.as_chunks::<WIDTH>().0 else { unreachable!("twice 32 are 64") };
    let (first, second) = (load_u8x32(first), load_u8x32(second));
    let low = _mm256_set1_epi8(15);
    let first_high = _mm256_and_si256(_mm256_srli_epi16::<4>(first), low);
    let second_high = _mm256_and_si256(_mm256_srli_epi16::<4>(second), low);
    let lows = _mm256_add_epi16(
        _mm256_maddubs_epi16(_mm256_and_si256(first, low), a),
        _mm256_maddubs_epi16(_mm256_and_si256(second, low), b),
    );
    let highs =
        _mm256_add_epi16(_mm256_maddubs_epi16(first_high, c), _mm256_maddubs_epi16(second_high, d));
    _mm256_add_epi16(lows, highs)
}

/// The parts of a plane that go with one line, 32 components each.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_parts(parts: &[i8; LINE_COMPONENTS]) -> [__m256i; 4] {
    let [a, b, c, d] = parts.as_chunks::<WIDTH>().0 else { unreachable!("four times 32 are 128") };
    [load_i8x32(a), load_i8x32(b), load_i8x32(c), load_i8x32(d)]
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
fn encode(row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBound {
    quant::encode(row, bytes, nibbles)
}

#[target_feature(enable = "avx2,fma")]
fn query_codes(query: &[f32]) -> QueryCodes {
    QueryCodes::new(query)
}

#[target_feature(enable = "avx2,fma")]
fn code_sum(bytes: &[u8], query: &QueryCodes) -> i64 {
    let (high, low) = (query.high.values.as_chunks().0, query.low.values.as_chunks().0);
    let mut sums = [_mm256_setzero_si256(); 2];
    for (line, (high, low)) in bytes.as_chunks().0.iter().zip(high.iter().zip(low)) {
        sums[0] = add_bytes(sums[0], line, halves_i8(high));
        sums[1] = add_bytes(sums[1], line, halves_i8(low));
    }
    let pairs = _mm256_hadd_epi32(sums[0], sums[1]);
    let four = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
    let both = _mm_hadd_epi32(four, four);
    query.code_sum(_mm_extract_epi32::<0>(both), _mm_extract_epi32::<1>(both))
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
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
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

fn prefetch_coded(rows: &CodedRows<'_>, row: usize, depth: Depth) {
    prefetch(std::ptr::from_ref(&rows.bounds[row]).cast());
    prefetch_lines(rows.row(depth, row));
}

fn prefetch_lines(bytes: &[u8]) {
    for line in bytes.chunks(LINE) {
        prefetch(line.as_ptr());
    }
}

#[inline]
fn prefetch(address: *const u8) {
    // SAFETY: a prefetch is a hint and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
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
