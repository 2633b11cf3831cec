//! Operations on 16 floats in four registers of NEON.
#![expect(unsafe_code, reason = "vector loads and stores")]

use std::arch::aarch64::*;

use crate::floats::Sums;
use crate::format::Lanes;

pub(super) type Vector = [float32x4_t; 4];

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load(lanes: &Lanes) -> Vector {
    // SAFETY: the reference covers the 16 lanes.
    let float32x4x4_t(a, b, c, d) = unsafe { vld1q_f32_x4(lanes.as_ptr()) };
    [a, b, c, d]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store(vector: Vector, lanes: &mut Lanes) {
    let [a, b, c, d] = vector;
    // SAFETY: the reference covers the 16 lanes.
    unsafe { vst1q_f32_x4(lanes.as_mut_ptr(), float32x4x4_t(a, b, c, d)) };
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn splat(number: f32) -> Vector {
    [vdupq_n_f32(number); 4]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn add(mut one: Vector, other: Vector) -> Vector {
    for four in 0..4 {
        one[four] = vaddq_f32(one[four], other[four]);
    }
    one
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn multiply(mut one: Vector, other: Vector) -> Vector {
    for four in 0..4 {
        one[four] = vmulq_f32(one[four], other[four]);
    }
    one
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn multiply_add(one: Vector, other: Vector, mut more: Vector) -> Vector {
    for four in 0..4 {
        more[four] = vfmaq_f32(more[four], one[four], other[four]);
    }
    more
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn least(mut one: Vector, other: Vector) -> Vector {
    for four in 0..4 {
        one[four] = vminq_f32(one[four], other[four]);
    }
    one
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn largest(mut one: Vector, other: Vector) -> Vector {
    for four in 0..4 {
        one[four] = vmaxq_f32(one[four], other[four]);
    }
    one
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn minus_size(vector: Vector) -> Vector {
    vector.map(|four| vnegq_f32(vabsq_f32(four)))
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn interleaved(one: Vector, other: Vector) -> [Vector; 2] {
    let mut both = [one, other];
    for half in 0..2 {
        for four in 0..2 {
            let (one, other) = (one[2 * half + four], other[2 * half + four]);
            both[half][2 * four] = vzip1q_f32(one, other);
            both[half][2 * four + 1] = vzip2q_f32(one, other);
        }
    }
    both
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn floats(sums: &Sums) -> Vector {
    // SAFETY: the reference covers the 16 lanes.
    let int32x4x4_t(a, b, c, d) = unsafe { vld1q_s32_x4(sums.as_ptr()) };
    [vcvtq_f32_s32(a), vcvtq_f32_s32(b), vcvtq_f32_s32(c), vcvtq_f32_s32(d)]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn low_bytes(vector: Vector) -> [u8; 16] {
    let [a, b, c, d] = vector.map(|four| vmovn_u32(vreinterpretq_u32_f32(four)));
    let front = vmovn_u16(vcombine_u16(a, b));
    let back = vmovn_u16(vcombine_u16(c, d));
    let (mut bytes, low) = ([0; 16], vcombine_u8(front, back));
    // SAFETY: the array has the 16 bytes.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), low) };
    bytes
}
