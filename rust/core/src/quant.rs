//! The int8 copy of a row, the integer planes of a query, and certified bounds between them.
//!
//! A row `x` is kept beside `x̂ = scale·c` with `c` in −127..=127, its residual norm
//! `ρ ≥ ‖x − x̂‖` and `ν ≥ ‖x̂‖`. A query `q` is approximated by `q̂ = step·(128·high + low)`,
//! and more coarsely by `step·128·high`, each with the norm `ε` of what it leaves out. From
//! `q·x − q̂·x̂ = q·(x − x̂) + (q − q̂)·x̂` and Cauchy–Schwarz,
//!
//! `|q·x − q̂·x̂| ≤ ‖q‖·ρ + ε·ν`.
//!
//! `docs/kernel.md` derives the rounding slack that is folded into `‖q‖` and `ε`.

use crate::append_buffer::Line;
use crate::simd::LANES;

/// Codes are stored as `code + 128`, because AVX2 and VNNI multiply unsigned by signed bytes.
pub(crate) const CODE_ZERO: u8 = 128;

/// Largest magnitude of a query plane: 255·64·2 stays below 2¹⁵, so that AVX2's 16-bit pair sums
/// (`vpmaddubsw`) never saturate.
const PLANE_MOST: i32 = 64;

/// Largest magnitude of a two-plane query code, `128·63.5`, so that high planes end at ±64.
const CODE_MOST: f64 = 8128.0;

/// Largest dimension: 255·64·65,536 < 2³¹, so that sums of a plane fit 32 bits.
pub const MAX_DIM: usize = 65_536;

/// Relative slack that covers the rounding of bounds computed in f32 (at most five roundings of
/// 2⁻²⁴ each) and of the float64 score itself, several times over.
const SLACK: f64 = 2e-6;

/// Residual norms are never smaller, so that products in f32 stay normal numbers and the relative
/// slack above covers them.
const LEAST_RESIDUAL: f32 = 7.523_164e-37; // 2⁻¹²⁰

/// Adding 1.5·2²³ (or 1.5·2⁵² in float64) leaves the nearest whole number in the last bits.
const ROUNDER_F32: f32 = 12_582_912.0;
const ROUNDER_F64: f64 = 6_755_399_441_055_744.0;

/// Scales below this are not used: the row's codes are all zero and its residual is its norm.
const LEAST_SCALE: f32 = 1e-33;

/// What the bounds of one row need beside its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowBound {
    pub(crate) scale: f32,
    pub(crate) residual: f32,
    pub(crate) norm: f32,
}

/// Number of bytes that the codes of one row take: whole cache lines.
pub(crate) const fn code_stride(dim: usize) -> usize {
    dim.next_multiple_of(size_of::<Line>())
}

/// Number of floats that one stored row takes: whole cache lines.
pub(crate) const fn row_stride(dim: usize) -> usize {
    dim.next_multiple_of(size_of::<Line>() / size_of::<f32>())
}

/// Write the codes of `row`, padded to [`row_stride`], and return its bound.
///
/// Inlined, so that each kernel compiles it for its own instructions.
#[inline]
pub(crate) fn encode(row: &[f32], codes: &mut [u8]) -> RowBound {
    let most = row
        .iter()
        .fold(0.0_f32, |most, value| most.max(value.abs()));
    let scale = most / 127.0;
    codes.fill(CODE_ZERO);
    if scale < LEAST_SCALE {
        return RowBound {
            scale: 0.0,
            residual: residual_of(norm(row)),
            norm: 0.0,
        };
    }
    let inverse = 1.0 / scale;
    for (code, value) in codes.iter_mut().zip(row) {
        // The sum's last bits are the nearest whole number, offset by 1.5·2²³ itself.
        let whole = (value * inverse + ROUNDER_F32)
            .to_bits()
            .wrapping_sub(ROUNDER_F32.to_bits());
        *code = whole as u8 ^ CODE_ZERO;
    }
    let (residual, squares) = measure(row, codes, f64::from(scale));
    let length = f64::from(scale) * f64::from(squares).sqrt();
    RowBound {
        scale,
        residual: residual_of(residual),
        norm: rounded_up(length),
    }
}

/// The residual norm and the sum of squared codes, which `MAX_DIM · 127² < 2³¹` keeps in range.
#[inline]
fn measure(row: &[f32], codes: &[u8], scale: f64) -> (f64, i32) {
    let mut residual = [0.0_f64; LANES];
    let mut squares = [0_i32; LANES];
    for (values, codes) in row
        .as_chunks::<LANES>()
        .0
        .iter()
        .zip(codes.as_chunks::<LANES>().0)
    {
        for lane in 0..LANES {
            let whole = i32::from(codes[lane]) - i32::from(CODE_ZERO);
            let left = f64::from(values[lane]) - scale * f64::from(whole);
            residual[lane] += left * left;
            squares[lane] += whole * whole;
        }
    }
    (residual.iter().sum::<f64>().sqrt(), squares.iter().sum())
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

fn residual_of(length: f64) -> f32 {
    rounded_up(length).max(LEAST_RESIDUAL)
}

/// An f32 not below `length`, whose own float64 rounding is covered too.
fn rounded_up(length: f64) -> f32 {
    let raised = length * (1.0 + 1e-11);
    let nearest = raised as f32;
    if f64::from(nearest) < raised {
        nearest.next_up()
    } else {
        nearest
    }
}

/// An f32 strictly below `threshold`, for comparisons that must not prune too much.
pub(crate) fn rounded_down(threshold: f64) -> f32 {
    (threshold as f32).next_down()
}

/// A query as two planes of small integers, scaled by a power of two to a length in [0.5, 1).
pub(crate) struct QueryCodes {
    /// The coarse plane, then the fine one; `code_stride(dim)` bytes each, padded with zeros.
    pub(crate) high: Box<[i8]>,
    pub(crate) low: Box<[i8]>,
    /// What the codes' offset of 128 adds to each plane's sum.
    pub(crate) high_offset: i32,
    pub(crate) low_offset: i32,
    /// `q̂ = step·(128·high + low)`.
    pub(crate) step: f32,
    /// `‖q‖` with slack.
    pub(crate) norm: f32,
    /// `ε` with slack, without and with the fine plane.
    pub(crate) coarse_error: f32,
    pub(crate) fine_error: f32,
    /// Scores are multiplied by this power of two to be compared with the bounds.
    pub(crate) power: f64,
}

impl QueryCodes {
    /// Inlined, so that each kernel compiles it for its own instructions.
    #[inline]
    pub(crate) fn new(query: &[f32]) -> Self {
        let length = norm(query);
        let power = power_of_two_for(length);
        let most = query
            .iter()
            .fold(0.0_f64, |most, value| most.max(f64::from(value.abs())));
        let step = f64::from((most * power / CODE_MOST) as f32);
        let inverse = if step > 0.0 { power / step } else { 0.0 };
        let stride = code_stride(query.len());
        let mut codes = Self {
            high: vec![0; stride].into(),
            low: vec![0; stride].into(),
            high_offset: 0,
            low_offset: 0,
            step: step as f32,
            norm: 0.0,
            coarse_error: 0.0,
            fine_error: 0.0,
            power,
        };
        codes.fill(query, inverse);
        codes.measure(query, step, length * power);
        codes
    }

    #[inline]
    fn fill(&mut self, query: &[f32], inverse: f64) {
        let (mut high_sum, mut low_sum) = (0_i32, 0_i32);
        for ((value, high), low) in query.iter().zip(&mut self.high).zip(&mut self.low) {
            let whole = (f64::from(*value) * inverse + ROUNDER_F64).to_bits() as i32;
            let coarse = (whole + PLANE_MOST) >> 7;
            let fine = whole - 128 * coarse;
            high_sum += coarse;
            low_sum += fine;
            *high = coarse as i8;
            *low = fine as i8;
        }
        self.high_offset = i32::from(CODE_ZERO) * high_sum;
        self.low_offset = i32::from(CODE_ZERO) * low_sum;
    }

    #[inline]
    fn measure(&mut self, query: &[f32], step: f64, length: f64) {
        let mut coarse = [0.0_f64; LANES];
        let mut fine = [0.0_f64; LANES];
        let power = self.power;
        let mut add = |lane: usize, value: f32, high: i8, low: i8| {
            let left = f64::from(value) * power - step * 128.0 * f64::from(high);
            coarse[lane] += left * left;
            fine[lane] += (left - step * f64::from(low)).powi(2);
        };
        let (values, rest) = query.as_chunks::<LANES>();
        let planes = self
            .high
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(self.low.as_chunks::<LANES>().0);
        for (values, (high, low)) in values.iter().zip(planes) {
            for lane in 0..LANES {
                add(lane, values[lane], high[lane], low[lane]);
            }
        }
        let whole = query.len() - rest.len();
        for (lane, value) in rest.iter().enumerate() {
            add(
                lane,
                *value,
                self.high[whole + lane],
                self.low[whole + lane],
            );
        }
        let with_slack = |squares: [f64; LANES]| {
            let error = squares.iter().sum::<f64>().sqrt();
            rounded_up(error + SLACK * (length + error))
        };
        self.norm = rounded_up(length * (1.0 + SLACK));
        self.coarse_error = with_slack(coarse);
        self.fine_error = with_slack(fine);
    }

    /// Bounds below and above the float64 score times `power`, from both planes' sums. Where they
    /// overflow the row stays in play: minus and plus infinity, never NaN.
    pub(crate) fn range(&self, row: RowBound, high: i32, low: i32) -> (f64, f64) {
        let high = f64::from(high - self.high_offset);
        let low = f64::from(low - self.low_offset);
        let middle = f64::from(row.scale) * f64::from(self.step) * (128.0 * high + low);
        let slack = f64::from(row.residual) * f64::from(self.norm)
            + f64::from(row.norm) * f64::from(self.fine_error);
        if slack.is_finite() {
            (middle - slack, middle + slack)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        }
    }
}

/// The power of two that brings `length` into [0.5, 1); 1 for the zero vector.
fn power_of_two_for(length: f64) -> f64 {
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
        row.iter()
            .zip(query)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    }

    fn sums(codes: &[u8], query: &QueryCodes) -> (i32, i32) {
        let sum = |plane: &[i8]| {
            codes
                .iter()
                .zip(plane)
                .map(|(code, part)| i32::from(*code) * i32::from(*part))
                .sum()
        };
        (sum(&query.high), sum(&query.low))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_score_lies_inside_its_bounds(
            pairs in prop::collection::vec((extreme(), extreme()), 1..90)
        ) {
            let (mut row, query): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            row.resize(row_stride(query.len()), 0.0);
            let mut codes = vec![0; code_stride(query.len())];
            let bound = encode(&row, &mut codes);
            let planes = QueryCodes::new(&query);
            let (high, low) = sums(&codes, &planes);
            let (least, most) = planes.range(bound, high, low);
            let exact = score(&row, &query) * planes.power;
            prop_assert!((least..=most).contains(&exact), "{least} {exact} {most}");
        }

        #[test]
        fn query_planes_stay_where_sixteen_bit_pairs_cannot_saturate(
            query in prop::collection::vec(extreme(), 1..90)
        ) {
            let planes = QueryCodes::new(&query);
            prop_assert!(planes.high.iter().chain(&planes.low).all(|part| part.abs() <= 64));
        }
    }

    #[test]
    fn the_zero_row_and_the_zero_query_have_bounds_around_zero() {
        let mut codes = vec![0; 64];
        let bound = encode(&[0.0; 16], &mut codes);
        let planes = QueryCodes::new(&[0.0; 3]);
        let (high, low) = sums(&codes, &planes);
        let (least, most) = planes.range(bound, high, low);
        assert!(least <= 0.0 && (0.0..1e-30).contains(&most));
    }

    #[test]
    fn thresholds_round_down_even_at_zero() {
        assert!(rounded_down(-0.0) < 0.0);
        assert!(f64::from(rounded_down(0.1)) < 0.1);
    }
}
