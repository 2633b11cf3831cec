//! AVX2 and FMA: eight rows at a time, 32 bytes of codes a step.
#![expect(unsafe_code, reason = "vector loads, prefetches and calls of AVX2 functions")]
#![expect(clippy::inline_always, reason = "as in `eights`")]

use std::arch::x86_64::*;

use super::blocked::{self, Instructions};
use super::{EIGHT, Kernel, Limit, Tile, Uppers};
use crate::collections::append_buffer::Line;
use crate::quantization::row_blocks::{CodedRows, Packing, RowLines};
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
        unsafe { dot(row, query) }
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

#[target_feature(enable = "avx2,fma")]
fn bound(rows: &CodedRows, tile: Tile, limit: &Limit<'_>, uppers: &mut Uppers) -> u64 {
    blocked::bound(Avx2(()), rows, tile, limit, uppers)
}

#[target_feature(enable = "avx2,fma")]
fn bound_listed(rows: &CodedRows, listed: &[u32], limit: &Limit<'_>, uppers: &mut Uppers) -> u64 {
    blocked::bound_listed(Avx2(()), rows, listed, limit, uppers)
}

#[target_feature(enable = "avx2,fma")]
fn bound_many(
    rows: &CodedRows,
    tile: Tile,
    limits: &[Limit<'_>],
    uppers: &mut [Uppers; EIGHT],
) -> [u64; EIGHT] {
    blocked::bound_many(Avx2(()), rows, tile, limits, uppers)
}

#[target_feature(enable = "avx2,fma")]
fn positions_reaching(uppers: &[f32], threshold: f32, positions: &mut Vec<u32>) {
    blocked::positions_reaching(Avx2(()), uppers, threshold, positions);
}

impl Instructions for Avx2 {
    type Sum = __m256i;
    type NibbleParts = [__m256i; 4];
    type ByteParts = [__m256i; 2];
    type Sums = __m256i;
    type Bounds = Bounds;

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: an `Avx2` exists only where `detect` found AVX2 and FMA; so in all that follow.
        unsafe { zero() }
    }

    #[inline(always)]
    fn nibble_parts(self, parts: &[i8; LINE_COMPONENTS]) -> [__m256i; 4] {
        // SAFETY: as in `zero`.
        unsafe { nibble_parts(parts) }
    }

    #[inline(always)]
    fn byte_parts(self, parts: &[i8; 64]) -> [__m256i; 2] {
        // SAFETY: as in `zero`.
        unsafe { byte_parts(parts) }
    }

    #[inline(always)]
    fn add_nibbles(self, sum: __m256i, line: &Line, parts: [__m256i; 4]) -> __m256i {
        // SAFETY: as in `zero`.
        unsafe { add_nibbles(sum, line, parts) }
    }

    #[inline(always)]
    fn add_bytes(self, sum: __m256i, line: &Line, parts: [__m256i; 2]) -> __m256i {
        // SAFETY: as in `zero`.
        unsafe { add_bytes(sum, line, parts) }
    }

    #[inline(always)]
    fn totals(self, sums: [__m256i; EIGHT]) -> __m256i {
        // SAFETY: as in `zero`.
        unsafe { totals(sums) }
    }

    #[inline(always)]
    fn exchanged(self, totals: [__m256i; EIGHT]) -> [__m256i; EIGHT] {
        // SAFETY: as in `zero`.
        unsafe { exchanged(totals) }
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
    fn bounds(self, bounds: &[RowBound; EIGHT]) -> Bounds {
        // SAFETY: as in `zero`.
        unsafe { transposed(bounds) }
    }

    #[inline(always)]
    fn rows_reaching(
        self,
        totals: __m256i,
        bounds: &Bounds,
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
        unsafe { at_least(uppers, threshold) }
    }

    #[inline(always)]
    fn prefetch(self, line: *const Line) {
        // SAFETY: a prefetch is a hint and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn zero() -> __m256i {
    _mm256_setzero_si256()
}

/// The bounds of eight rows, one row a lane.
pub(super) struct Bounds {
    scale: __m256,
    residual: __m256,
    norm: __m256,
    tail: __m256,
}

/// Read and transpose the bounds of eight rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn transposed(bounds: &[RowBound; EIGHT]) -> Bounds {
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

/// The upper bounds of eight rows, and which of them are not below the threshold.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn rows_reaching(
    totals: __m256i,
    bounds: &Bounds,
    limit: &Limit<'_>,
    priors: Option<&[f32; EIGHT]>,
    uppers: &mut [f32; EIGHT],
) -> u64 {
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
    store_f32x8(uppers, without_nan(upper));
    at_least(uppers, limit.threshold)
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
pub(super) fn at_least(uppers: &[f32; EIGHT], threshold: f32) -> u64 {
    let keep = _mm256_cmp_ps::<_CMP_GE_OQ>(load_f32x8(uppers), _mm256_set1_ps(threshold));
    u64::from(_mm256_movemask_ps(keep).cast_unsigned())
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
    let [first, second] = parts.as_chunks::<32>().0 else { unreachable!("twice 32 are 64") };
    [load_i8x32(first), load_i8x32(second)]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn nibble_parts(parts: &[i8; LINE_COMPONENTS]) -> [__m256i; 4] {
    let [a, b, c, d] = parts.as_chunks::<32>().0 else { unreachable!("four times 32 are 128") };
    [load_i8x32(a), load_i8x32(b), load_i8x32(c), load_i8x32(d)]
}

/// Lane `i` of the result is the total of `sums[i]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn totals(sums: [__m256i; EIGHT]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = sums;
    let front = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let back = _mm256_hadd_epi32(_mm256_hadd_epi32(e, f), _mm256_hadd_epi32(g, h));
    let low = _mm256_permute2x128_si256::<0x20>(front, back);
    let high = _mm256_permute2x128_si256::<0x31>(front, back);
    _mm256_add_epi32(low, high)
}

/// An 8 × 8 matrix of sums with rows and columns exchanged.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn exchanged(rows: [__m256i; EIGHT]) -> [__m256i; EIGHT] {
    let [a, b, c, d, e, f, g, h] = rows;
    let [ab, cd] = [_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d)];
    let [ef, gh] = [_mm256_unpacklo_epi32(e, f), _mm256_unpacklo_epi32(g, h)];
    let [ab_high, cd_high] = [_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d)];
    let [ef_high, gh_high] = [_mm256_unpackhi_epi32(e, f), _mm256_unpackhi_epi32(g, h)];
    let fours = [
        [_mm256_unpacklo_epi64(ab, cd), _mm256_unpacklo_epi64(ef, gh)],
        [_mm256_unpackhi_epi64(ab, cd), _mm256_unpackhi_epi64(ef, gh)],
        [_mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpacklo_epi64(ef_high, gh_high)],
        [_mm256_unpackhi_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ef_high, gh_high)],
    ];
    let [first, second, third, fourth] = fours;
    [
        _mm256_permute2x128_si256::<0x20>(first[0], first[1]),
        _mm256_permute2x128_si256::<0x20>(second[0], second[1]),
        _mm256_permute2x128_si256::<0x20>(third[0], third[1]),
        _mm256_permute2x128_si256::<0x20>(fourth[0], fourth[1]),
        _mm256_permute2x128_si256::<0x31>(first[0], first[1]),
        _mm256_permute2x128_si256::<0x31>(second[0], second[1]),
        _mm256_permute2x128_si256::<0x31>(third[0], third[1]),
        _mm256_permute2x128_si256::<0x31>(fourth[0], fourth[1]),
    ]
}

/// Half of a line of each of eight rows: eight times four bytes of all rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn transposed_half(lines: &[Line; EIGHT], half: usize) -> [__m256i; EIGHT] {
    let mut rows = [_mm256_setzero_si256(); EIGHT];
    for (row, line) in rows.iter_mut().zip(lines) {
        *row = load_u8x32(&line.0.as_chunks().0[half]);
    }
    exchanged(rows)
}

/// The low halves of all bytes, and the high halves.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn nibbles(bytes: [__m256i; EIGHT]) -> [[__m256i; EIGHT]; 2] {
    let low = _mm256_set1_epi8(15);
    let (mut lows, mut highs) = (bytes, bytes);
    for at in 0..EIGHT {
        lows[at] = _mm256_and_si256(bytes[at], low);
        highs[at] = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes[at]), low);
    }
    [lows, highs]
}

/// Four components of a plane, for each of eight rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn repeated(parts: [i8; 4]) -> __m256i {
    _mm256_set1_epi32(i32::from_ne_bytes(parts.map(i8::cast_unsigned)))
}

/// Add the totals of eight rows with each plane.
///
/// Four components of all rows share a register, so that no sum goes across lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_by_plane(totals: &mut [__m256i; EIGHT], packing: Packing, block: &[Line], planes: &[&[i8]]) {
    for (at, lines) in block.as_chunks().0.iter().enumerate() {
        for half in 0..2 {
            let fours = transposed_half(lines, half);
            match packing {
                Packing::Nibbles => {
                    let [low, high] = nibbles(fours);
                    let first = at * LINE_COMPONENTS + half * 32;
                    for (total, plane) in totals.iter_mut().zip(planes) {
                        let lows = nibble_products(&low, &plane[first..]);
                        let highs = nibble_products(&high, &plane[first + 64..]);
                        *total = _mm256_add_epi32(*total, _mm256_add_epi32(lows, highs));
                    }
                }
                Packing::Bytes => {
                    let first = at * 64 + half * 32;
                    for (total, plane) in totals.iter_mut().zip(planes) {
                        *total = add_byte_products(*total, &fours, &plane[first..]);
                    }
                }
            }
        }
    }
}

/// The sums of eight times four nibbles of eight rows times components of a plane: pairs of
/// products are at most 2·15·127, eight of them stay below 2¹⁵.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn nibble_products(fours: &[__m256i; EIGHT], parts: &[i8]) -> __m256i {
    let parts: &[[i8; 4]; EIGHT] = parts.as_chunks().0.first_chunk().expect("32 components");
    let mut pairs = _mm256_setzero_si256();
    for (four, parts) in fours.iter().zip(parts) {
        pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(*four, repeated(*parts)));
    }
    _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
}

/// Add eight times four bytes of eight rows times components of a plane; see [`add_bytes`].
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_byte_products(sum: __m256i, fours: &[__m256i; EIGHT], parts: &[i8]) -> __m256i {
    let parts: &[[i8; 4]; EIGHT] = parts.as_chunks().0.first_chunk().expect("32 components");
    let ones = _mm256_set1_epi16(1);
    let mut sum = sum;
    for (four, parts) in fours.iter().zip(parts) {
        let pairs = _mm256_maddubs_epi16(*four, repeated(*parts));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
    sum
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
fn signed_bytes(values: &[f32], power: f64) -> Plane {
    Plane::signed_bytes(values, power)
}

#[target_feature(enable = "avx2,fma")]
fn code_sum(bytes: RowLines<'_>, query: &QueryCodes) -> i64 {
    let (high, low) = (query.high.values.as_chunks().0, query.low.values.as_chunks().0);
    let mut sums = [_mm256_setzero_si256(); 2];
    for (line, (high, low)) in bytes.zip(high.iter().zip(low)) {
        sums[0] = add_bytes(sums[0], line, byte_parts(high));
        sums[1] = add_bytes(sums[1], line, byte_parts(low));
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
