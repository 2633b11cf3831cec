//! Operations on 16 floats in two registers of AVX2.
#![expect(unsafe_code, reason = "vector loads and stores")]

use std::arch::x86_64::*;

use crate::floats::Sums;
use crate::format::Lanes;

pub(super) type Vector = [__m256; 2];

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load(lanes: &Lanes) -> Vector {
    let [front, back] = bytemuck::cast_ref::<Lanes, [[f32; 8]; 2]>(lanes);
    // SAFETY: the reference covers the eight lanes, and the load needs no alignment.
    let front = unsafe { _mm256_loadu_ps(front.as_ptr()) };
    // SAFETY: as for the first.
    let back = unsafe { _mm256_loadu_ps(back.as_ptr()) };
    [front, back]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store(vector: Vector, lanes: &mut Lanes) {
    let [front, back] = bytemuck::cast_mut::<Lanes, [[f32; 8]; 2]>(lanes);
    // SAFETY: the reference covers the eight lanes, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(front.as_mut_ptr(), vector[0]) };
    // SAFETY: as for the first.
    unsafe { _mm256_storeu_ps(back.as_mut_ptr(), vector[1]) };
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn splat(number: f32) -> Vector {
    [_mm256_set1_ps(number); 2]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn add(one: Vector, other: Vector) -> Vector {
    [_mm256_add_ps(one[0], other[0]), _mm256_add_ps(one[1], other[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn multiply(one: Vector, other: Vector) -> Vector {
    [_mm256_mul_ps(one[0], other[0]), _mm256_mul_ps(one[1], other[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn multiply_add(one: Vector, other: Vector, more: Vector) -> Vector {
    [_mm256_fmadd_ps(one[0], other[0], more[0]), _mm256_fmadd_ps(one[1], other[1], more[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn least(one: Vector, other: Vector) -> Vector {
    [_mm256_min_ps(one[0], other[0]), _mm256_min_ps(one[1], other[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn largest(one: Vector, other: Vector) -> Vector {
    [_mm256_max_ps(one[0], other[0]), _mm256_max_ps(one[1], other[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn minus_size(vector: Vector) -> Vector {
    let sign = _mm256_set1_ps(-0.0);
    [_mm256_or_ps(vector[0], sign), _mm256_or_ps(vector[1], sign)]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn floats(sums: &Sums) -> Vector {
    let [front, back] = bytemuck::cast_ref::<Sums, [[i32; 8]; 2]>(sums);
    // SAFETY: the reference covers the eight lanes, and the load needs no alignment.
    let front = unsafe { _mm256_loadu_si256(front.as_ptr().cast()) };
    // SAFETY: as for the first.
    let back = unsafe { _mm256_loadu_si256(back.as_ptr().cast()) };
    [_mm256_cvtepi32_ps(front), _mm256_cvtepi32_ps(back)]
}

/// As 16-bit numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn low_words(vector: Vector) -> [i16; 16] {
    let low = |half| _mm256_and_si256(_mm256_castps_si256(half), _mm256_set1_epi32(255));
    let mixed = _mm256_packus_epi32(low(vector[0]), low(vector[1]));
    let mut words = [0; 16];
    let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(mixed);
    // SAFETY: the array has the 32 bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), ordered) };
    words
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn low_bytes(vector: Vector) -> [u8; 16] {
    low_words(vector).map(|word| word.to_le_bytes()[0])
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn interleaved(one: Vector, other: Vector) -> [Vector; 2] {
    let mut both = [one, other];
    for half in 0..2 {
        let (low, high) = (
            _mm256_unpacklo_ps(one[half], other[half]),
            _mm256_unpackhi_ps(one[half], other[half]),
        );
        both[half] =
            [_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high)];
    }
    both
}
