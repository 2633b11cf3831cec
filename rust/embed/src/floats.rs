//! Work on rows of floats, in lanes of 16 whatever the registers' width.
//!
//! Every step is one IEEE operation and every sum has one order, so all kernels round alike. The
//! bodies are inlined into functions that are compiled for the instructions of a kernel; products
//! are fused with additions, which only CPUs without such an instruction do in software.
#![expect(clippy::inline_always, reason = "a call would leave the instruction set it is made for")]

use crate::format::{CHANNELS, Norm};

pub(crate) const LANES: usize = CHANNELS;
pub(crate) type Lanes = [f32; LANES];

/// What BERT adds to a variance.
const EPSILON: f32 = 1e-12;

/// Added to a number below 2²², it leaves the nearest integer in the low bits.
const ROUNDING: f32 = 12_582_912.0;

/// The largest code of an activation.
const MAX_CODE: f32 = 255.0;

/// A range narrower than this is taken as a single number.
const NARROWEST: f32 = 1e-30;

/// What an activation's code stands for: `low + code · step`.
#[derive(Clone, Copy, Default)]
pub(crate) struct CodeRange {
    pub(crate) low: f32,
    pub(crate) step: f32,
}

/// Make mean and variance of a row 0 and 1, then multiply by the gain and add the offset.
#[inline(always)]
pub(crate) fn normalise(row: &mut [f32], norm: Norm<'_>) {
    let count = row.len() as f32;
    let mut sums = [0.0; LANES];
    for values in row.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            sums[lane] += values[lane];
        }
    }
    let mean = total(sums) / count;
    let mut squares = [0.0; LANES];
    for values in row.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            let centred = values[lane] - mean;
            squares[lane] = centred.mul_add(centred, squares[lane]);
        }
    }
    let factor = 1.0 / (total(squares) / count + EPSILON).sqrt();
    for ((value, gain), offset) in row.iter_mut().zip(norm.gain).zip(norm.offset) {
        *value = ((*value - mean) * factor).mul_add(*gain, *offset);
    }
}

/// Make the length of a row 1; the row of zeros stays.
#[inline(always)]
pub(crate) fn make_unit(row: &mut [f32]) {
    let mut squares = [0.0; LANES];
    for values in row.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            squares[lane] = values[lane].mul_add(values[lane], squares[lane]);
        }
    }
    let length = total(squares).sqrt();
    if length > 0.0 {
        scale(row, 1.0 / length);
    }
}

#[inline(always)]
pub(crate) fn scale(row: &mut [f32], factor: f32) {
    for value in row {
        *value *= factor;
    }
}

#[inline(always)]
pub(crate) fn add(row: &mut [f32], other: &[f32]) {
    for (value, more) in row.iter_mut().zip(other) {
        *value += more;
    }
}

/// Round a row to codes of 0 to 255 over its own range.
#[inline(always)]
pub(crate) fn round<C: From<u8>>(row: &[f32], codes: &mut [C]) -> CodeRange {
    let (low, high) = (least(row), largest(row));
    let width = high - low;
    let factor = if width > NARROWEST { MAX_CODE / width } else { 0.0 };
    for (code, value) in codes.iter_mut().zip(row) {
        *code = C::from((*value - low).mul_add(factor, ROUNDING).to_bits() as u8);
    }
    CodeRange { low, step: width / MAX_CODE }
}

/// In a loop of its own: the compiler makes shuffles of one for both, which takes 20 % of the time
/// of a whole text.
#[inline(always)]
fn least(row: &[f32]) -> f32 {
    let mut lows = [f32::INFINITY; LANES];
    for values in row.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            lows[lane] = less(values[lane], lows[lane]);
        }
    }
    folded(lows, less)
}

#[inline(always)]
fn largest(row: &[f32]) -> f32 {
    let mut highs = [f32::NEG_INFINITY; LANES];
    for values in row.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            highs[lane] = more(values[lane], highs[lane]);
        }
    }
    folded(highs, more)
}

/// One instruction, where `f32::min` takes three to treat NaN.
#[inline(always)]
fn less(one: f32, other: f32) -> f32 {
    if one < other { one } else { other }
}

#[inline(always)]
fn more(one: f32, other: f32) -> f32 {
    if one > other { one } else { other }
}

/// Replace each x by x·Φ(x), Φ being the normal distribution.
#[inline(always)]
pub(crate) fn gelu(row: &mut [f32]) {
    for value in row {
        *value *= 0.5f32.mul_add(erf(*value * std::f32::consts::FRAC_1_SQRT_2), 0.5);
    }
}

/// The rational approximation of Eigen (`generic_fast_erf_float`), good to 4 units of the last
/// place on −4 to 4; beyond, the error function is ±1 for a float.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = more(less(x, 4.0), -4.0);
    let square = x * x;
    let above = (-2.726_142_3e-10f32)
        .mul_add(square, 2.770_681_5e-8)
        .mul_add(square, -2.101_024e-6)
        .mul_add(square, -5.692_506_4e-5)
        .mul_add(square, -7.349_906_3e-4)
        .mul_add(square, -2.954_6e-3)
        .mul_add(square, -1.609_603_3e-2);
    let below = (-1.456_607_2e-5f32)
        .mul_add(square, -2.133_740_6e-4)
        .mul_add(square, -1.682_827e-3)
        .mul_add(square, -7.373_329_2e-3)
        .mul_add(square, -1.426_473_9e-2);
    x * above / below
}

/// Replace scores by their exponentials, relative to the largest of the lane; returns the sums.
#[inline(always)]
pub(crate) fn exponentials(scores: &mut [Lanes]) -> Lanes {
    let mut highs = [f32::NEG_INFINITY; LANES];
    for scores in scores.iter() {
        for lane in 0..LANES {
            highs[lane] = more(scores[lane], highs[lane]);
        }
    }
    let mut sums = [0.0; LANES];
    for scores in scores {
        for lane in 0..LANES {
            scores[lane] = exp(scores[lane] - highs[lane]);
            sums[lane] += scores[lane];
        }
    }
    sums
}

/// eˣ for x ≤ 0 as 2ⁿ·eʳ, r within ±ln 2 / 2, where the Taylor polynomial errs by 2·10⁻⁷.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = more(x, -87.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUNDING);
    let power = shifted - ROUNDING;
    let rest = power.mul_add(-std::f32::consts::LN_2, x);
    let fraction = (1.0f32 / 720.0)
        .mul_add(rest, 1.0 / 120.0)
        .mul_add(rest, 1.0 / 24.0)
        .mul_add(rest, 1.0 / 6.0)
        .mul_add(rest, 0.5)
        .mul_add(rest, 1.0)
        .mul_add(rest, 1.0);
    f32::from_bits(fraction.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// The sum of 16 lanes.
#[inline(always)]
fn total(lanes: Lanes) -> f32 {
    folded(lanes, std::ops::Add::add)
}

/// Combine 16 lanes in their one order, half with half.
#[inline(always)]
fn folded(lanes: Lanes, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let (mut eight, mut four, mut two) = ([0.0; 8], [0.0; 4], [0.0; 2]);
    for lane in 0..8 {
        eight[lane] = combine(lanes[lane], lanes[lane + 8]);
    }
    for lane in 0..4 {
        four[lane] = combine(eight[lane], eight[lane + 4]);
    }
    for lane in 0..2 {
        two[lane] = combine(four[lane], four[lane + 2]);
    }
    combine(two[0], two[1])
}
