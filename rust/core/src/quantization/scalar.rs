//! The 8-bit and 4-bit codes of a row, the integer planes of a query, and certified bounds.
//!
//! A row `x` is cut into 256 equal steps of its range and kept as the step's number, a byte `u`,
//! so that `x ≈ scale·(u − 127.5)`. For long scans it is kept again in 16 steps, a nibble `h`, so
//! that `x ≈ scale·16·(h − 7.5)` with a scale of their own: over the same range, or narrower where
//! cutting off the ends leaves less. Sixteen levels without a zero leave 14 % less squared error
//! than fifteen with one.
//!
//! With each approximation `x̂` goes its residual norm `ρ ≥ ‖x − x̂‖`, and for both of them
//! `ν ≥ ‖x̂‖`. A query `q` is approximated by a signed byte a component, in steps that suit the
//! nibbles; and for the bytes by `q̂ = step·(128·high + low)` with `high` and `low` in −64..=64, or
//! by `step·128·high` alone. Each goes with the norm `ε` of what it leaves out. From
//! `q·x − q̂·x̂ = q·(x − x̂) + (q − q̂)·x̂` and Cauchy–Schwarz,
//!
//! `|q·x − q̂·x̂| ≤ ‖q‖·ρ + ε·ν`.
//!
//! `docs/project/lab/kernel.md` derives the rounding slack that is folded into `‖q‖` and `ε`.
#![expect(clippy::inline_always, reason = "kernels compile it for their instructions")]

use bytemuck::{Pod, Zeroable};

use crate::Error;
use crate::collections::append_buffer::Line;

/// Float64 sums go over this many lanes and then through a fixed tree, in every kernel.
pub(crate) const LANES: usize = 8;

/// Twice the middle of 16 and of 256 steps: sums of nibbles and bytes are doubled to stay whole.
pub(crate) const NIBBLE_MIDDLE: i32 = 15;
pub(crate) const BYTE_MIDDLE: i32 = 255;

/// Steps from the middle of a row's range to its end.
const HALF_STEPS: f32 = 128.0;

/// Components whose nibbles share a cache line: 64 in the low halves of its bytes, 64 in the
/// high halves.
pub(crate) const LINE_COMPONENTS: usize = 2 * size_of::<Line>();

/// Largest dimension: 2·255·64·32,768 < 2³¹, so that every doubled sum of products fits 32 bits.
pub const MAX_DIM: usize = 32_768;

/// Check a dimension.
pub(crate) fn check_dim(found: usize) -> Result<(), Error> {
    if (1..=MAX_DIM).contains(&found) {
        return Ok(());
    }
    Err(Error::DimensionOutOfRange { found, max: MAX_DIM })
}

/// Check that vectors have `dim` components each, one after the other, and all of them are finite.
pub(crate) fn check_vectors(what: &'static str, dim: usize, vectors: &[f32]) -> Result<(), Error> {
    if !vectors.len().is_multiple_of(dim) {
        return Err(Error::DimensionMismatch { what, found: vectors.len(), wanted: dim });
    }
    // Without a short cut, so that the comparison runs in vector registers.
    let finite = |row: &[f32]| row.iter().fold(true, |all, value| all & value.is_finite());
    match vectors.chunks_exact(dim.max(1)).position(|row| !finite(row)) {
        Some(row) => Err(Error::NonFinite { what, row }),
        None => Ok(()),
    }
}

/// The same, and that there is one for each id.
pub(crate) fn check_rows(ids: &[i64], dim: usize, vectors: &[f32]) -> Result<(), Error> {
    check_vectors("vectors", dim, vectors)?;
    let found = vectors.len().checked_div(dim).unwrap_or(0);
    if found != ids.len() {
        return Err(Error::CountMismatch { ids: ids.len(), what: "vectors", found });
    }
    Ok(())
}

/// Largest magnitude in the plane of nibbles, and in that of bytes, where 255·64·2 stays below 2¹⁵,
/// so that AVX2's 16-bit pair sums (`vpmaddubsw`) never saturate.
pub(crate) const NIBBLE_PLANE_MAX: f64 = 127.0;
pub(crate) const BYTE_PLANE_MAX: f64 = 64.0;

/// Largest two-plane code, so that high planes end at ±64.
const BYTE_PLANES_MAX: f64 = 8128.0;

/// Relative slack that covers the rounding of bounds computed in f32 (at most five roundings of
/// 2⁻²⁴ each) and of the float64 score itself, several times over.
const SLACK: f64 = 2e-6;

/// Residual norms are never smaller, so that products in f32 stay normal numbers and the relative
/// slack above covers them.
const MIN_RESIDUAL: f32 = 7.523_164e-37; // 2⁻¹²⁰

/// Adding 1.5·2²³ (or 1.5·2⁵² in float64) leaves the nearest whole number in the last bits.
const ROUNDER_F32: f32 = 12_582_912.0;
const ROUNDER_F64: f64 = 6_755_399_441_055_744.0;

/// Scales below this are not used: the row's codes are all zero and its residual is its norm.
const MIN_SCALE: f32 = 1e-33;

/// The 16 equal steps with the smallest squared error for normal components, in standard deviations
/// (J. Max, Quantizing for minimum distortion, 1960, table II).
const NORMAL_STEP: f32 = 0.335;

/// The upper half of a float32 (bfloat16), rounded up: an eighth of a row's cache line holds all
/// that its bounds need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Upper(u16);

impl Upper {
    /// The smallest number of this kind that is not below `value`, which is at least 0.
    #[inline]
    fn at_least(value: f32) -> Self {
        Self((value.to_bits().saturating_add(0xffff) >> 16) as u16)
    }

    #[inline]
    pub(crate) fn value(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

/// The numbers that bound one row beside one of its approximations `x̂`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RowBound {
    pub(crate) scale: Upper,
    /// `ρ ≥ ‖x − x̂‖`.
    pub(crate) residual: Upper,
    /// `ν ≥ ‖x̂‖`.
    pub(crate) norm: Upper,
    /// Length of the part outside the approximated space; 0 if that is the whole space.
    pub(crate) tail: Upper,
}

impl RowBound {
    /// Rules nothing out.
    pub(crate) const UNBOUNDED: Self =
        Self { scale: Upper(0), residual: Upper(0x7f80), norm: Upper(0), tail: Upper(0) };

    /// Its bound is the middle alone.
    #[cfg(test)]
    pub(crate) const fn of_scale_one() -> Self {
        Self { scale: Upper(0x3f80), residual: Upper(0), norm: Upper(0), tail: Upper(0) }
    }

    fn new(scale: Upper, residual: f64, norm: f64) -> Self {
        let residual = Upper::at_least(rounded_up(residual).max(MIN_RESIDUAL));
        Self { scale, residual, norm: Upper::at_least(rounded_up(norm)), tail: Upper(0) }
    }

    /// The same for a row of which only a part of length `√(norm² − tail²)` is approximated.
    pub(crate) fn of_part(self, norm: f64, tail: f64) -> Self {
        let norm = Upper::at_least(rounded_up(norm).max(self.norm.value()));
        Self { norm, tail: Upper::at_least(rounded_up(tail)), ..self }
    }
}

/// The bounds of a row's high nibbles alone and of its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowBounds {
    pub(crate) nibbles: RowBound,
    pub(crate) bytes: RowBound,
}

/// Number of bytes of one row's nibbles: whole cache lines.
pub(crate) const fn nibble_stride(dim: usize) -> usize {
    dim.next_multiple_of(LINE_COMPONENTS) / 2
}

/// Number of bytes of one row's byte codes: whole cache lines.
pub(crate) const fn byte_stride(dim: usize) -> usize {
    dim.next_multiple_of(size_of::<Line>())
}

/// Number of floats of one stored row: whole cache lines.
pub(crate) const fn row_stride(dim: usize) -> usize {
    dim.next_multiple_of(size_of::<Line>() / size_of::<f32>())
}

/// Write the codes of `row` and return its bounds. `bytes` has capacity for twice the nibbles' length.
///
/// Inlined, so that each kernel compiles it for its own instructions.
#[inline(always)]
pub(crate) fn encode(row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBounds {
    let max = row.iter().fold(0.0_f32, |max, value| max.max(value.abs()));
    let scale = Upper::at_least(max / HALF_STEPS);
    if scale.value() < MIN_SCALE {
        bytes.fill(0);
        nibbles.fill(0);
        let bound = RowBound::new(Upper(0), norm(row), 0.0);
        return RowBounds { nibbles: bound, bytes: bound };
    }
    let narrow = Upper::at_least(NORMAL_STEP * deviation(row) / 16.0);
    let is_narrow = narrow.value() < scale.value()
        && left_by_nibbles(row, narrow) < left_by_nibbles(row, scale);
    let nibble_scale = if is_narrow { narrow } else { scale };
    for (code, value) in bytes.iter_mut().zip(row) {
        *code = nibble(*value, inverse(nibble_scale)).to_bits() as u8 & 15;
    }
    pack(bytes, nibbles);
    let nibbles = measure(row, bytes, nibble_scale, |code| 16 * (2 * code - NIBBLE_MIDDLE));
    let inverse = 1.0 / scale.value();
    for (code, value) in bytes.iter_mut().zip(row) {
        let step = (value * inverse + 127.5).clamp(0.0, 255.0);
        // The sum's last bits are the nearest whole number.
        *code = (step + ROUNDER_F32).to_bits() as u8;
    }
    RowBounds { nibbles, bytes: measure(row, bytes, scale, |code| 2 * code - BYTE_MIDDLE) }
}

/// Steps of nibbles in one unit.
#[inline]
fn inverse(scale: Upper) -> f32 {
    1.0 / (16.0 * scale.value())
}

/// A component's nibble, in the last bits of the result.
#[inline]
fn nibble(value: f32, inverse: f32) -> f32 {
    (value * inverse + 7.5).clamp(0.0, 15.0) + ROUNDER_F32
}

/// The root of the mean square, about.
#[inline]
fn deviation(row: &[f32]) -> f32 {
    (sum_in_lanes(row, |value| value * value) / row.len() as f32).sqrt()
}

/// The squared error of nibbles with this scale, about.
#[inline]
fn left_by_nibbles(row: &[f32], scale: Upper) -> f32 {
    let (inverse, step) = (inverse(scale), 16.0 * scale.value());
    sum_in_lanes(row, |value| {
        let left = value - step * (nibble(value, inverse) - ROUNDER_F32 - 7.5);
        left * left
    })
}

/// The same sum whatever the instructions it is compiled for.
#[inline]
fn sum_in_lanes(row: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (whole, rest) = row.as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for values in whole {
        for lane in 0..LANES {
            lanes[lane] += term(values[lane]);
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        lanes[lane] += term(*value);
    }
    lanes.iter().sum()
}

/// Pack nibbles: component `128·n + i` goes to byte `64·n + i % 64`, the first 64 of each line to
/// the low half, the others to the high half.
#[inline]
fn pack(codes: &[u8], nibbles: &mut [u8]) {
    let lines = codes.as_chunks::<LINE_COMPONENTS>().0.iter();
    for (codes, nibbles) in lines.zip(nibbles.as_chunks_mut::<64>().0) {
        for at in 0..64 {
            nibbles[at] = codes[at] & 15 | codes[at + 64] << 4;
        }
    }
}

/// The bound of a row with these codes, which stand for so many half steps from the middle;
/// `MAX_DIM · 255² < 2³¹` keeps the sum of squares in range.
#[inline]
fn measure(row: &[f32], codes: &[u8], scale: Upper, twice: impl Fn(i32) -> i32) -> RowBound {
    let half = f64::from(scale.value()) / 2.0;
    let mut residual = [0.0_f64; LANES];
    let mut squares = [0_i32; LANES];
    let mut add = |lane: usize, value: f32, code: u8| {
        let twice = twice(i32::from(code));
        let left = f64::from(value) - half * f64::from(twice);
        residual[lane] += left * left;
        squares[lane] += twice * twice;
    };
    let (values, rest) = row.as_chunks::<LANES>();
    for (values, codes) in values.iter().zip(codes.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            add(lane, values[lane], codes[lane]);
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        add(lane, *value, codes[row.len() - rest.len() + lane]);
    }
    let length = half * f64::from(squares.iter().sum::<i32>()).sqrt();
    RowBound::new(scale, residual.iter().sum::<f64>().sqrt(), length)
}

/// Euclidean length in float64, which no float32 vector overflows.
#[inline]
pub(crate) fn norm(values: &[f32]) -> f64 {
    let (whole, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0_f64; LANES];
    for values in whole {
        for lane in 0..LANES {
            lanes[lane] += f64::from(values[lane]).powi(2);
        }
    }
    let rest: f64 = rest.iter().map(|value| f64::from(*value).powi(2)).sum();
    (lanes.iter().sum::<f64>() + rest).sqrt()
}

/// A row or query whose length is 1 to within float32 rounding is kept as it is, so that storing a
/// result of `get` changes nothing.
const UNIT_TOLERANCE: f64 = 1.0 / (1 << 22) as f64;

/// Scale to unit length; the zero vector stays zero.
pub(crate) fn normalise(vector: &mut [f32]) {
    let length = norm(vector);
    if length > 0.0 && (length - 1.0).abs() > UNIT_TOLERANCE {
        for value in vector {
            *value = (f64::from(*value) / length) as f32;
        }
    }
}

/// An f32 not below `length`, with its float64 rounding.
pub(crate) fn rounded_up(length: f64) -> f32 {
    let raised = length * (1.0 + 1e-11);
    let nearest = raised as f32;
    if f64::from(nearest) < raised { nearest.next_up() } else { nearest }
}

/// An f32 strictly below `threshold`, for comparisons that must not prune too much.
pub(crate) fn rounded_down(threshold: f64) -> f32 {
    (threshold as f32).next_down()
}

/// A query for the bytes: planes of small integers. It is scaled by a power of two, as a rule to a
/// length in [0.5, 1).
pub(crate) struct QueryCodes {
    /// The coarse plane and the fine one, of the same length.
    pub(crate) high: Plane,
    pub(crate) low: Plane,
    /// `ε` with slack of both planes together.
    both_error: f64,
    /// Scores are multiplied by this power of two to be compared with the bounds.
    pub(crate) power: f64,
}

/// One plane of a query: `q̂ = step·values`.
pub(crate) struct Plane {
    /// Padded with zeros to whole lines of codes.
    pub(crate) values: Box<[i8]>,
    pub(crate) step: f32,
    pub(crate) sum: i32,
    /// `ε` with slack of this plane alone.
    pub(crate) error: f32,
    /// `‖q‖`, or the length of the part that is approximated, with slack.
    pub(crate) norm: f32,
    /// With slack, the length of the rest; 0 without a rest.
    pub(crate) tail: f32,
}

impl Plane {
    fn zero(dim: usize, step: f64, length: f64) -> Self {
        let values = vec![0; 2 * nibble_stride(dim)].into();
        Self { values, step: step as f32, sum: 0, error: 0.0, norm: with_slack(length), tail: 0.0 }
    }

    /// A whole number for each component of `values·power`, of magnitude `most` at most.
    ///
    /// Inlined, so that each kernel compiles it for its own instructions.
    #[inline(always)]
    pub(crate) fn signed_bytes(values: &[f32], power: f64, most: f64) -> Self {
        let length = norm(values) * power;
        let mut plane = Self::zero(values.len(), max_of(values, power) / most, length);
        let inverse = inverse_of(plane.step, power);
        let mut left = [0.0_f64; LANES];
        let step = f64::from(plane.step);
        let mut add = |lane: usize, value: f32, code: &mut i8| {
            *code = nearest(f64::from(value) * inverse) as i8;
            left[lane] += (f64::from(value) * power - step * f64::from(*code)).powi(2);
        };
        let (whole, rest) = values.as_chunks::<LANES>();
        for (values, codes) in whole.iter().zip(plane.values.as_chunks_mut::<LANES>().0) {
            for lane in 0..LANES {
                add(lane, values[lane], &mut codes[lane]);
            }
        }
        for (lane, value) in rest.iter().enumerate() {
            add(lane, *value, &mut plane.values[values.len() - rest.len() + lane]);
        }
        plane.close(left, length);
        plane
    }

    /// The same for codes of a part of a query: the length of the unscaled query, and the length of
    /// the rest.
    pub(crate) fn of_part(self, norm: f64, tail: f64, relative_error: f64) -> Self {
        let error = rounded_up(f64::from(self.error) + norm * relative_error);
        Self { error, tail: with_slack(tail), ..self }
    }

    fn close(&mut self, left: [f64; LANES], length: f64) {
        self.sum = self.values.iter().map(|value| i32::from(*value)).sum();
        self.error = error_with_slack(left, length);
    }
}

fn with_slack(length: f64) -> f32 {
    rounded_up(length * (1.0 + SLACK))
}

fn error_with_slack(left: [f64; LANES], length: f64) -> f32 {
    let error = left.iter().sum::<f64>().sqrt();
    rounded_up(error + SLACK * (length + error))
}

#[inline]
fn max_of(values: &[f32], power: f64) -> f64 {
    f64::from(values.iter().fold(0.0_f32, |max, value| max.max(value.abs()))) * power
}

fn inverse_of(step: f32, power: f64) -> f64 {
    if step > 0.0 { power / f64::from(step) } else { 0.0 }
}

#[inline]
fn nearest(scaled: f64) -> i32 {
    (scaled + ROUNDER_F64).to_bits() as i32
}

impl QueryCodes {
    /// Inlined, so that each kernel compiles it for its own instructions.
    #[inline(always)]
    pub(crate) fn new(query: &[f32], power: f64) -> Self {
        let length = norm(query) * power;
        let step = max_of(query, power) / BYTE_PLANES_MAX;
        let mut codes = Self {
            high: Plane::zero(query.len(), 128.0 * f64::from(step as f32), length),
            low: Plane::zero(query.len(), step, length),
            both_error: 0.0,
            power,
        };
        codes.fill(query, length);
        codes
    }

    #[inline(always)]
    fn fill(&mut self, query: &[f32], length: f64) {
        let power = self.power;
        let inverse = inverse_of(self.low.step, power);
        let steps = [self.high.step, self.low.step].map(f64::from);
        let mut left = [[0.0_f64; LANES]; 2];
        let mut add = |lane: usize, value: f32, high: &mut i8, low: &mut i8| {
            let whole = nearest(f64::from(value) * inverse);
            let coarse = (whole + 64) >> 7;
            *high = coarse as i8;
            *low = (whole - 128 * coarse) as i8;
            let without_high = f64::from(value) * power - steps[0] * f64::from(*high);
            left[0][lane] += without_high * without_high;
            left[1][lane] += (without_high - steps[1] * f64::from(*low)).powi(2);
        };
        let (high, low) = (&mut self.high.values, &mut self.low.values);
        let (values, rest) = query.as_chunks::<LANES>();
        let planes = high.as_chunks_mut::<LANES>().0.iter_mut().zip(low.as_chunks_mut::<LANES>().0);
        for (values, (high, low)) in values.iter().zip(planes) {
            for lane in 0..LANES {
                add(lane, values[lane], &mut high[lane], &mut low[lane]);
            }
        }
        let whole = query.len() - rest.len();
        for (lane, value) in rest.iter().enumerate() {
            add(lane, *value, &mut high[whole + lane], &mut low[whole + lane]);
        }
        self.both_error = f64::from(error_with_slack(left[1], length));
        self.high.close(left[0], length);
        self.low.close(left[1], length);
    }

    /// Bounds below and above the float64 score times `power`, from the row's code sum. If they
    /// overflow, the row stays a candidate: minus and plus infinity, never NaN.
    pub(crate) fn range(&self, row: RowBound, sum: i64) -> (f64, f64) {
        let [scale, residual, norm] =
            [row.scale, row.residual, row.norm].map(|upper| f64::from(upper.value()));
        let middle = scale * f64::from(self.low.step) * (sum as f64 / 2.0);
        let slack = residual * f64::from(self.high.norm) + norm * self.both_error;
        if slack.is_finite() {
            (middle - slack, middle + slack)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        }
    }

    /// `Σ(2·u − 255)·(128·high + low)` from the sums of bytes with each plane.
    pub(crate) fn code_sum(&self, with_high: i32, with_low: i32) -> i64 {
        let centred = |sum: i32, plane: &Plane| {
            2 * i64::from(sum) - i64::from(BYTE_MIDDLE) * i64::from(plane.sum)
        };
        128 * centred(with_high, &self.high) + centred(with_low, &self.low)
    }
}

/// The power of two that brings `length` into [0.5, 1); 1 for the zero vector.
pub(crate) fn power_of_two_for(length: f64) -> f64 {
    if length == 0.0 {
        return 1.0;
    }
    // `length` is between 2⁻¹⁴⁹ and 2¹³⁶, a normal float64, so its exponent field is exact.
    let exponent = ((length.to_bits() >> 52) & 0x7ff) as i32 - 1022;
    2.0_f64.powi(-exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extreme() -> impl Strategy<Value = f32> {
        prop_oneof![
            -1.0_f32..1.0,
            Just(0.0),
            Just(1e30),
            Just(-1e30),
            Just(f32::MAX),
            Just(1e-42),
            Just(-1.0e-45),
            Just(127.0),
            (-40_i32..38).prop_map(|power| 10.0_f32.powi(power)),
        ]
    }

    fn score(row: &[f32], query: &[f32]) -> f64 {
        row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    /// Doubled codes: of the nibbles, unpacked, and of the bytes.
    fn encoded(row: &[f32]) -> (RowBounds, Vec<(i64, i64)>) {
        let stride = nibble_stride(row.len());
        let (mut bytes, mut nibbles) = (vec![0; 2 * stride], vec![0; stride]);
        let bounds = encode(row, &mut bytes, &mut nibbles);
        let code = |at: usize| {
            let packed = nibbles[at / 128 * 64 + at % 64];
            let nibble = i64::from(if at % 128 < 64 { packed & 15 } else { packed >> 4 });
            (16 * (2 * nibble - 15), 2 * i64::from(bytes[at]) - 255)
        };
        (bounds, (0..2 * stride).map(code).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_score_lies_inside_its_bounds(
            pairs in prop::collection::vec((extreme(), extreme()), 1..200)
        ) {
            let (row, query): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let (bounds, codes) = encoded(&row);
            let planes = QueryCodes::new(&query, power_of_two_for(norm(&query)));
            let (high, low) = (&planes.high.values, &planes.low.values);
            let part = |at: usize| 128 * i64::from(high[at]) + i64::from(low[at]);
            let sum = (0..row.len()).map(|at| codes[at].1 * part(at)).sum();
            let (min, max) = planes.range(bounds.bytes, sum);
            let exact = score(&row, &query) * planes.power;
            prop_assert!((min..=max).contains(&exact), "{min} {exact} {max}");
            let within = |plane: &Plane, twice: &dyn Fn(usize) -> i64, bound: RowBound| {
                let sum: i64 = (0..row.len()).map(|at| twice(at) * i64::from(plane.values[at])).sum();
                let [scale, residual, norm] =
                    [bound.scale, bound.residual, bound.norm].map(|upper| f64::from(upper.value()));
                let middle = scale * f64::from(plane.step) * (sum as f64 / 2.0);
                let slack = residual * f64::from(plane.norm) + norm * f64::from(plane.error);
                !slack.is_finite() || (exact - middle).abs() <= slack
            };
            let plane = Plane::signed_bytes(&query, planes.power, NIBBLE_PLANE_MAX);
            prop_assert!(within(&plane, &|at| codes[at].0, bounds.nibbles));
            prop_assert!(within(&planes.high, &|at| codes[at].1, bounds.bytes));
        }

        #[test]
        fn residual_norms_cover_what_the_codes_leave_out(
            row in prop::collection::vec(-1.0_f32..1.0, 1..200)
        ) {
            let (bounds, codes) = encoded(&row);
            let left = |bound: RowBound, whole: fn(&(i64, i64)) -> i64| {
                let scale = f64::from(bound.scale.value());
                let squares = row.iter().zip(&codes).map(|(value, code)| {
                    (f64::from(*value) - scale / 2.0 * whole(code) as f64).powi(2)
                });
                squares.sum::<f64>().sqrt()
            };
            let [nibbles, bytes] =
                [bounds.nibbles, bounds.bytes].map(|bound| f64::from(bound.residual.value()));
            prop_assert!(left(bounds.bytes, |code| code.1) <= bytes);
            prop_assert!(left(bounds.nibbles, |code| code.0) <= nibbles);
            let largest = row.iter().fold(0.0_f32, |max, value| max.max(value.abs()));
            let half_steps = f64::from(largest) / 128.0 * (row.len() as f64).sqrt();
            // Rounding to eight bits raises the step and then the residual by 2⁻⁷ at most.
            prop_assert!(bytes <= 0.51 * half_steps + 1e-30);
            prop_assert!(nibbles <= 8.14 * half_steps + 1e-30);
        }

        #[test]
        fn upper_halves_are_not_below_and_not_far_above(value in 0.0_f32..1e30) {
            let upper = Upper::at_least(value).value();
            prop_assert!(upper >= value && upper <= value * 1.007_813);
        }
    }

    #[test]
    fn codes_reach_both_ends_of_the_range() {
        let (bounds, codes) = encoded(&[1.0, -1.0, 0.253]);
        assert_eq!(codes[..3], [(240, 255), (-240, -255), (80, 65)]);
        assert_eq!(bounds.bytes.scale.value().to_bits(), (1.0_f32 / 128.0).to_bits());
    }

    #[test]
    fn the_zero_row_and_the_zero_query_have_bounds_around_zero() {
        let (bounds, _) = encoded(&[0.0; 3]);
        let (min, max) = QueryCodes::new(&[0.0; 3], 1.0).range(bounds.bytes, 0);
        assert!(min <= 0.0 && (0.0..1e-30).contains(&max));
    }

    #[test]
    fn query_planes_reach_their_ends_and_no_further() {
        let planes = QueryCodes::new(&[1.0, -1.0, 0.25], 0.5);
        let plane = Plane::signed_bytes(&[1.0, -1.0, 0.25], planes.power, NIBBLE_PLANE_MAX);
        assert_eq!((plane.values[..3].to_vec(), plane.sum), (vec![127, -127, 32], 32));
        assert_eq!(planes.high.values[..3], [64, -63, 16]);
        assert_eq!(planes.low.values[..3], [-64, -64, -16]);
        assert_eq!((planes.high.sum, planes.low.sum), (17, -144));
    }

    #[test]
    fn thresholds_round_down_even_at_zero() {
        assert!(rounded_down(-0.0) < 0.0);
        assert!(f64::from(rounded_down(0.1)) < 0.1);
    }
}
