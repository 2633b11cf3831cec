//! Work on rows of floats, in lanes of 16 whatever the registers' width.
//!
//! Every step is one IEEE operation and every sum has one order, so all kernels round alike. The
//! bodies are inlined into functions that are compiled for the instructions of a kernel; products
//! are fused with additions, which only CPUs without such an instruction do in software.
#![expect(clippy::inline_always, reason = "a call would leave the instruction set it is made for")]

use bytemuck::Zeroable;

use crate::format::{CHANNELS, CodePart, Lanes, Norm, PAIR, Part};

pub(crate) const LANES: usize = CHANNELS;

/// Of the products of 16 channels.
pub(crate) type Sums = [i32; LANES];

/// What BERT adds to a variance.
const EPSILON: f32 = 1e-12;

/// Added to a number below 2²², it leaves the nearest integer in the low bits.
const ROUNDING: f32 = 12_582_912.0;

/// Steps from the least number of a row to the largest; there is a code more, because both are
/// rounded.
const RANGE_STEPS: f32 = 254.0;

/// Below, x·Φ(x) is 0 up to 1.5·10⁻⁶.
const NORMAL_END: f32 = -5.0;

/// The polynomial whose eighth power times x differs least from x·Φ(x), by 1.4·10⁻⁶ at most.
const NORMAL_ROOT: [f32; 6] =
    [1.909_425e-4, 1.939_63e-3, 1.108_129_5e-3, -3.172_166e-2, 9.149_097e-2, 9.170_034_5e-1];

/// A step smaller than this is taken as none.
const NARROWEST: f32 = 1e-32;

/// What an activation's code stands for: `low + code · step`.
#[derive(Clone, Copy, Zeroable)]
pub(crate) struct CodeRange {
    pub(crate) low: f32,
    pub(crate) step: f32,
}

impl CodeRange {
    /// A range around 0, of which a code stands for 0 itself: many numbers are 0 or nearly so
    /// behind GELU, and would all err alike.
    #[inline(always)]
    fn new(low: f32, high: f32) -> Self {
        let step = (high - low) / RANGE_STEPS;
        let zero = low.mul_add(-factor(step), ROUNDING) - ROUNDING;
        Self { low: -zero * step, step }
    }
}

/// Codes a unit.
#[inline(always)]
fn factor(step: f32) -> f32 {
    if step > NARROWEST { 1.0 / step } else { 0.0 }
}

/// Operations on 16 floats in registers. A value exists only on CPUs with the instructions.
pub(crate) trait Vectors: Copy {
    type Vector: Copy;
    /// How products read the code of an activation.
    type Code: Copy + Zeroable;

    fn load(self, lanes: &Lanes) -> Self::Vector;
    fn store(self, vector: Self::Vector, lanes: &mut Lanes);
    fn splat(self, number: f32) -> Self::Vector;
    fn add(self, one: Self::Vector, other: Self::Vector) -> Self::Vector;
    fn multiply(self, one: Self::Vector, other: Self::Vector) -> Self::Vector;
    /// `one · other + more`, rounded once.
    fn multiply_add(
        self,
        one: Self::Vector,
        other: Self::Vector,
        more: Self::Vector,
    ) -> Self::Vector;
    fn least(self, one: Self::Vector, other: Self::Vector) -> Self::Vector;
    fn largest(self, one: Self::Vector, other: Self::Vector) -> Self::Vector;
    /// Lanes of both in turns: of their front halves and of their back halves.
    fn interleaved(self, one: Self::Vector, other: Self::Vector) -> [Self::Vector; 2];
    /// −|x|.
    fn minus_size(self, vector: Self::Vector) -> Self::Vector;
    /// The nearest floats.
    fn floats(self, integers: &Sums) -> Self::Vector;
    /// The low byte of each float's bits.
    fn low_bytes(self, vector: Self::Vector) -> [Self::Code; LANES];
}

/// Sums over a row that give its mean and variance.
#[derive(Clone, Copy)]
struct Moments<V> {
    sums: [V; 2],
    squares: [V; 2],
}

impl<V: Copy> Moments<V> {
    #[inline(always)]
    fn none<I: Vectors<Vector = V>>(cpu: I) -> Self {
        Self { sums: [cpu.splat(0.0); 2], squares: [cpu.splat(0.0); 2] }
    }

    #[inline(always)]
    fn include<I: Vectors<Vector = V>>(&mut self, cpu: I, half: usize, values: V) {
        self.sums[half] = cpu.add(self.sums[half], values);
        self.squares[half] = cpu.multiply_add(values, values, self.squares[half]);
    }
}

/// The least and the largest numbers of a row, lane by lane.
#[derive(Clone, Copy)]
struct Extent<V> {
    lows: [V; 2],
    highs: [V; 2],
}

impl<V: Copy> Extent<V> {
    #[inline(always)]
    fn none<I: Vectors<Vector = V>>(cpu: I) -> Self {
        Self { lows: [cpu.splat(f32::INFINITY); 2], highs: [cpu.splat(f32::NEG_INFINITY); 2] }
    }

    #[inline(always)]
    fn include<I: Vectors<Vector = V>>(&mut self, cpu: I, half: usize, values: V) {
        self.lows[half] = cpu.least(values, self.lows[half]);
        self.highs[half] = cpu.largest(values, self.highs[half]);
    }

    #[inline(always)]
    fn range<I: Vectors<Vector = V>>(self, cpu: I) -> CodeRange {
        let low = folded(lanes(cpu, cpu.least(self.lows[0], self.lows[1])), less);
        let high = folded(lanes(cpu, cpu.largest(self.highs[0], self.highs[1])), more);
        CodeRange::new(less(low, 0.0), more(high, 0.0))
    }
}

/// The range of a row.
#[inline(always)]
pub(crate) fn range<'a, I: Vectors>(cpu: I, row: impl Iterator<Item = &'a Part>) -> CodeRange {
    let mut extent = Extent::none(cpu);
    for part in row {
        for (half, values) in part.iter().enumerate() {
            extent.include(cpu, half, cpu.load(values));
        }
    }
    extent.range(cpu)
}

/// Makes mean and variance of a row 0 and 1: `value · factor + shift`.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    factor: f32,
    shift: f32,
}

impl Unit {
    pub(crate) const NONE: Self = Self { factor: 1.0, shift: 0.0 };

    #[inline(always)]
    fn new<I: Vectors>(cpu: I, moments: Moments<I::Vector>, count: usize) -> Self {
        let mean = total(cpu, moments.sums) / count as f32;
        let variance = mean.mul_add(-mean, total(cpu, moments.squares) / count as f32);
        let factor = 1.0 / (more(variance, 0.0) + EPSILON).sqrt();
        Self { factor, shift: -mean * factor }
    }
}

/// The floats that the codes of a row stand for, each part with its scale.
#[inline(always)]
pub(crate) fn widen<'a, I: Vectors>(
    cpu: I,
    codes: impl Iterator<Item = ([i8; PAIR], f32)>,
    row: impl Iterator<Item = &'a mut Part>,
) {
    for ((codes, scale), part) in codes.zip(row) {
        for (codes, place) in codes.as_chunks::<LANES>().0.iter().zip(part) {
            let codes = cpu.floats(&codes.map(i32::from));
            cpu.store(cpu.multiply(codes, cpu.splat(scale)), place);
        }
    }
}

/// Add other parts to the parts of a row.
#[inline(always)]
pub(crate) fn add<'a, I: Vectors>(
    cpu: I,
    row: impl Iterator<Item = &'a mut Part>,
    others: impl Iterator<Item = &'a Part>,
) -> Unit {
    let (mut moments, mut count) = (Moments::none(cpu), 0);
    for (part, other) in row.zip(others) {
        for half in 0..2 {
            let values = cpu.add(cpu.load(&part[half]), cpu.load(&other[half]));
            moments.include(cpu, half, values);
            cpu.store(values, &mut part[half]);
        }
        count += 2 * LANES;
    }
    Unit::new(cpu, moments, count)
}

/// Make mean and variance of a row 0 and 1, then multiply by the gain and add the offset.
#[inline(always)]
pub(crate) fn normalise<'a, I: Vectors>(
    cpu: I,
    row: impl Iterator<Item = &'a mut Part>,
    unit: Unit,
    norm: Norm<'_>,
) -> CodeRange {
    let (factor, shift) = (cpu.splat(unit.factor), cpu.splat(unit.shift));
    let mut extent = Extent::none(cpu);
    for ((part, gain), offset) in row.zip(norm.gain).zip(norm.offset) {
        for half in 0..2 {
            let unit = cpu.multiply_add(cpu.load(&part[half]), factor, shift);
            let values = cpu.multiply_add(unit, cpu.load(&gain[half]), cpu.load(&offset[half]));
            extent.include(cpu, half, values);
            cpu.store(values, &mut part[half]);
        }
    }
    extent.range(cpu)
}

/// The sum of rows, made unit length; zeros stay.
#[inline(always)]
pub(crate) fn pool<'a, I: Vectors>(
    cpu: I,
    parts: impl Iterator<Item = &'a [Part]>,
    vector: &mut [f32],
) {
    let mut moments = Moments::none(cpu);
    for (rows, places) in parts.zip(vector.as_chunks_mut::<PAIR>().0) {
        for (half, place) in places.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut sum = cpu.splat(0.0);
            for row in rows {
                sum = cpu.add(sum, cpu.load(&row[half]));
            }
            moments.include(cpu, half, sum);
            *place = *lanes(cpu, sum);
        }
    }
    let length = total(cpu, moments.squares).sqrt();
    if length > 0.0 {
        for value in vector {
            *value *= 1.0 / length;
        }
    }
}

/// Round a row to codes of 0 to 255 over its own range.
#[inline(always)]
pub(crate) fn round<'a, I: Vectors<Code: 'a>>(
    cpu: I,
    row: impl Iterator<Item = &'a Part>,
    range: CodeRange,
    codes: impl Iterator<Item = &'a mut CodePart<I::Code>>,
) {
    let factor = factor(range.step);
    let (factors, zero) = (cpu.splat(factor), cpu.splat(range.low.mul_add(-factor, ROUNDING)));
    for (codes, part) in codes.zip(row) {
        let halves = codes.as_flattened_mut().as_chunks_mut::<LANES>().0;
        for half in 0..2 {
            halves[half] = cpu.low_bytes(cpu.multiply_add(cpu.load(&part[half]), factors, zero));
        }
    }
}

/// One instruction, where `f32::min` takes three to treat NaN.
#[inline(always)]
pub(crate) fn less(one: f32, other: f32) -> f32 {
    if one < other { one } else { other }
}

#[inline(always)]
pub(crate) fn more(one: f32, other: f32) -> f32 {
    if one > other { one } else { other }
}

/// Replace each x by x·Φ(x), Φ being the normal distribution.
#[inline(always)]
pub(crate) fn gelu<'a, I: Vectors>(cpu: I, row: impl Iterator<Item = &'a mut Part>) -> CodeRange {
    let mut extent = Extent::none(cpu);
    for part in row {
        for (half, place) in part.iter_mut().enumerate() {
            let x = cpu.load(place);
            let below = cpu.largest(cpu.minus_size(x), cpu.splat(NORMAL_END));
            let positive = cpu.largest(x, cpu.splat(0.0));
            let values = cpu.multiply_add(below, normal(cpu, below), positive);
            extent.include(cpu, half, values);
            cpu.store(values, place);
        }
    }
    extent.range(cpu)
}

/// Φ of numbers from `NORMAL_END` to 0: its eighth root is a smooth function.
#[inline(always)]
fn normal<I: Vectors>(cpu: I, x: I::Vector) -> I::Vector {
    let mut root = cpu.splat(NORMAL_ROOT[0]);
    for factor in &NORMAL_ROOT[1..] {
        root = cpu.multiply_add(root, x, cpu.splat(*factor));
    }
    let square = cpu.multiply(root, root);
    let fourth = cpu.multiply(square, square);
    cpu.multiply(fourth, fourth)
}

/// Replace scores by their exponentials, relative to the largest of the lane; returns the sums.
#[inline(always)]
pub(crate) fn exponentials(scores: &mut [Lanes]) -> Lanes {
    let mut highs = Lanes([f32::NEG_INFINITY; LANES]);
    for scores in scores.iter() {
        for lane in 0..LANES {
            highs[lane] = more(scores[lane], highs[lane]);
        }
    }
    let mut sums = Lanes::ZERO;
    for scores in scores {
        for lane in 0..LANES {
            scores[lane] = exp(scores[lane] - highs[lane]);
            sums[lane] += scores[lane];
        }
    }
    sums
}

/// eˣ for x ≤ 0 as 2ⁿ·eʳ, r within ±ln 2 / 2, where the polynomial errs by 8·10⁻⁸.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = more(x, -87.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUNDING);
    let power = shifted - ROUNDING;
    let rest = power.mul_add(-std::f32::consts::LN_2, x);
    let fraction = (8.297_655e-3f32)
        .mul_add(rest, 4.191_538_3e-2)
        .mul_add(rest, 1.666_757_5e-1)
        .mul_add(rest, 4.999_889_4e-1)
        .mul_add(rest, 9.999_997e-1)
        .mul_add(rest, 1.000_000_1);
    f32::from_bits(fraction.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// Turn 16 rows of 16 lanes into columns.
#[inline(always)]
pub(crate) fn transposed<I: Vectors>(cpu: I, mut rows: [I::Vector; LANES]) -> [I::Vector; LANES] {
    for _ in 0..LANES.ilog2() {
        let old = rows;
        for row in 0..LANES / 2 {
            [rows[2 * row], rows[2 * row + 1]] = cpu.interleaved(old[row], old[row + LANES / 2]);
        }
    }
    rows
}

#[inline(always)]
fn total<I: Vectors>(cpu: I, halves: [I::Vector; 2]) -> f32 {
    folded(lanes(cpu, cpu.add(halves[0], halves[1])), std::ops::Add::add)
}

#[inline(always)]
fn lanes<I: Vectors>(cpu: I, vector: I::Vector) -> Lanes {
    let mut lanes = Lanes::ZERO;
    cpu.store(vector, &mut lanes);
    lanes
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
