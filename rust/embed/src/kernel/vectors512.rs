//! Operations on 16 floats in a register of AVX-512.
#![expect(unsafe_code, reason = "vector loads and stores")]

use std::arch::x86_64::*;

use crate::floats::Sums;
use crate::format::Lanes;

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(lanes: &Lanes) -> __m512 {
    // SAFETY: the reference covers the 16 lanes, and the load needs no alignment.
    unsafe { _mm512_loadu_ps(lanes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(vector: __m512, lanes: &mut Lanes) {
    // SAFETY: the reference covers the 16 lanes, and the store needs no alignment.
    unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), vector) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn splat(number: f32) -> __m512 {
    _mm512_set1_ps(number)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add(one: __m512, other: __m512) -> __m512 {
    _mm512_add_ps(one, other)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn multiply(one: __m512, other: __m512) -> __m512 {
    _mm512_mul_ps(one, other)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn multiply_add(one: __m512, other: __m512, more: __m512) -> __m512 {
    _mm512_fmadd_ps(one, other, more)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn least(one: __m512, other: __m512) -> __m512 {
    _mm512_min_ps(one, other)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn largest(one: __m512, other: __m512) -> __m512 {
    _mm512_max_ps(one, other)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn minus_size(vector: __m512) -> __m512 {
    let sign = _mm512_castps_si512(_mm512_set1_ps(-0.0));
    _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(vector), sign))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn floats(sums: &Sums) -> __m512 {
    // SAFETY: the reference covers the 16 lanes, and the load needs no alignment.
    let sums = unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) };
    _mm512_cvtepi32_ps(sums)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn low_bytes(vector: __m512) -> [u8; 16] {
    let mut bytes = [0; 16];
    let low = _mm512_cvtepi32_epi8(_mm512_castps_si512(vector));
    // SAFETY: the array has the 16 bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), low) };
    bytes
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn interleaved(one: __m512, other: __m512) -> [__m512; 2] {
    let front = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    let back = _mm512_add_epi32(front, _mm512_set1_epi32(8));
    [_mm512_permutex2var_ps(one, front, other), _mm512_permutex2var_ps(one, back, other)]
}
