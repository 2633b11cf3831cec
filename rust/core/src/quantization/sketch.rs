//! Sketches: projections of rows on the few directions in which they differ most.
//!
//! A basis `P` has orthonormal rows that span nearly the directions of the largest second moments
//! of a sample (block power iteration). A row's sketch is `y = P·x` in four bits a direction, half
//! a byte for each of 128 instead of 384, and `τ ≥ ‖x − Pᵀy‖`, the length of the rest. With the
//! same of the query, `g` and `t`, `|q·x − g·y| ≤ t·τ` plus rounding:
//! `docs/project/lab/kernel.md` has the proof.

use crate::collections::append_buffer::{Filling, Line, RegionParts};
use crate::quantization::coded_rows::{CodedRows, CodedRowsAppender, Packing};
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::{
    LINE_COMPONENTS, NIBBLE_PLANE_MAX, Plane, RowBound, norm, row_stride,
};

/// Directions of a sketch: as many as fill one cache line with nibbles.
const DIRECTIONS: usize = LINE_COMPONENTS;

/// Rows with fewer components have no shorter sketch worth reading.
const MIN_DIM: usize = 2 * DIRECTIONS;

/// Rows that a basis is learned from.
const SAMPLE_ROWS: usize = 2048;

/// Rounds of block power iteration: more find no directions that matter.
const ROUNDS: usize = 3;

/// Fresh directions tried for one that the others already span.
const ATTEMPTS: usize = 4;

/// Squared length that must be left of a unit vector for it to count as a direction of its own.
const MIN_LEFT: f64 = 1e-12;

/// A basis is used where the directions it leaves out have at most this share of the squared
/// length; above, bounds rule out too little (`docs/project/lab/kernel.md`).
const MAX_LEFT_OUT: f64 = 0.35;

/// `‖I − P·Pᵀ‖` of a basis that is used is at most this.
const MAX_DEFECT: f64 = 1e-6;

/// Covers `3·MOST_DEFECT` and the rounding of `y` and `g` to float32, relative to `‖q‖·‖x‖`.
const RELATIVE_ERROR: f64 = 5e-6;

/// Covers the same in `τ²`, relative to the squared length.
const TAIL_ERROR: f64 = 4e-6;

/// Rows of other lengths go on to the next stage: their projections may leave float32's range.
const BOUNDABLE: std::ops::Range<f64> = 1e-30..1e30;

/// Directions as float32 rows, padded like stored ones.
pub(crate) struct Basis {
    dim: usize,
    pub(crate) directions: Box<[f32]>,
    /// Rows there were when it was learned.
    pub(crate) learned_from: usize,
}

/// The sketches of a segment's rows.
pub(crate) struct Sketch {
    pub(crate) codes: CodedRows,
}

impl Basis {
    /// Whether rows of this many components have sketches worth reading.
    pub(crate) const fn suits(dim: usize) -> bool {
        dim >= MIN_DIM
    }

    /// Learn a basis from a sample of padded rows, `rows` in all; `None` where it would not pay.
    pub(crate) fn learn<'a>(
        kernel: &dyn Kernel,
        dim: usize,
        segments: impl Iterator<Item = impl Iterator<Item = &'a [f32]>>,
        rows: usize,
    ) -> Option<Self> {
        let sample = sample_of(segments, rows);
        let padded = |number| {
            let mut direction = scattered_direction(number, dim);
            direction.resize(row_stride(dim), 0.0);
            direction
        };
        let mut directions: Vec<_> = (0..DIRECTIONS).map(padded).collect();
        for _ in 0..ROUNDS {
            directions = next_directions(kernel, &sample, &directions);
            orthonormalise(&mut directions, dim);
        }
        let basis = Self { dim, directions: mixed(directions), learned_from: rows };
        (basis.defect(kernel) <= MAX_DEFECT && basis.left_out(kernel, &sample) <= MAX_LEFT_OUT)
            .then_some(basis)
    }

    /// A basis that was learned before; `None` where its directions do not fit the dimension.
    pub(crate) fn from_parts(
        dim: usize,
        directions: Box<[f32]>,
        learned_from: usize,
    ) -> Option<Self> {
        let fits = directions.len() == DIRECTIONS * row_stride(dim);
        fits.then_some(Self { dim, directions, learned_from })
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.directions.chunks_exact(row_stride(self.dim))
    }

    /// `P·vector`, rounded to float32 once.
    fn project(&self, kernel: &dyn Kernel, wide: &[f64], power: f64) -> [f32; DIRECTIONS] {
        let mut products = [0.0; DIRECTIONS];
        let stride = row_stride(self.dim);
        let fours = self.directions.chunks_exact(4 * stride);
        for (products, rows) in products.as_chunks_mut().0.iter_mut().zip(fours) {
            let row = |at: usize| &rows[at * stride..][..stride];
            *products = kernel.four_dots([row(0), row(1), row(2), row(3)], wide);
        }
        products.map(|product| (product * power) as f32)
    }

    /// A query's plane for sketches.
    pub(crate) fn plane(
        &self,
        kernel: &dyn Kernel,
        query: &[f32],
        wide: &[f64],
        power: f64,
    ) -> Plane {
        let length = norm(query) * power;
        let projection = self.project(kernel, wide, power);
        let tail = tail_of(length, &projection);
        kernel.signed_bytes(&projection, 1.0, NIBBLE_PLANE_MAX).of_part(
            length,
            tail,
            RELATIVE_ERROR,
        )
    }

    /// Frobenius norm of `I − P·Pᵀ`, plus its rounding.
    fn defect(&self, kernel: &dyn Kernel) -> f64 {
        let mut squares = 0.0;
        for (at, direction) in self.rows().enumerate() {
            let wide = widened(direction);
            for (other, second) in self.rows().enumerate() {
                let wanted = f64::from(u8::from(at == other));
                squares += (kernel.dot(second, &wide) - wanted).powi(2);
            }
        }
        squares.sqrt() + 1e-9
    }

    /// The share of the sample's squared length that its sketches leave out.
    fn left_out(&self, kernel: &dyn Kernel, sample: &[&[f32]]) -> f64 {
        let (mut left, mut all) = (0.0, 0.0);
        for row in sample {
            let length = norm(row);
            left += tail_of(length, &self.project(kernel, &widened(row), 1.0)).powi(2);
            all += length.powi(2);
        }
        if all > 0.0 && all.is_finite() { left / all } else { 1.0 }
    }
}

impl Sketch {
    /// Sketch every padded row of segments that no longer grow.
    pub(crate) fn of<'a, Rows: ExactSizeIterator<Item = &'a [f32]>>(
        kernel: &dyn Kernel,
        basis: &Basis,
        segments: Vec<Rows>,
    ) -> Vec<Self> {
        let sizes: Vec<usize> = segments.iter().flat_map(|rows| Self::sizes(rows.len())).collect();
        let mut parts = RegionParts::of(&sizes, Filling::AtOnce);
        let sketched = segments.into_iter().map(|rows| {
            let mut writer = Self::writer(&mut parts, rows.len());
            for row in rows {
                writer.append(kernel, basis, row);
            }
            writer.finish()
        });
        sketched.collect()
    }

    /// Bytes of the parts of the sketches of so many rows.
    pub(crate) fn sizes(rows: usize) -> [usize; 2] {
        CodedRows::sizes(Packing::Sketches, rows, 1)
    }

    /// Begin the sketches of so many rows.
    pub(crate) fn writer(parts: &mut RegionParts, rows: usize) -> SketchWriter {
        let (codes, appender) = CodedRows::new(parts, Packing::Sketches, rows, 1);
        SketchWriter { sketch: Self { codes }, appender }
    }

    /// The sketches of so many rows in a mapped file.
    pub(crate) fn mapped(parts: &mut RegionParts, rows: usize) -> Self {
        Self { codes: CodedRows::full(parts, Packing::Sketches, rows, 1) }
    }
}

/// The one writer of the sketches of a segment.
pub(crate) struct SketchWriter {
    sketch: Sketch,
    appender: CodedRowsAppender,
}

impl SketchWriter {
    /// Append the sketch of a padded row.
    pub(crate) fn append(&mut self, kernel: &dyn Kernel, basis: &Basis, row: &[f32]) {
        let length = norm(row);
        let mut line = Line([0; 64]);
        if !BOUNDABLE.contains(&length) {
            self.appender.append(&[line], RowBound::UNBOUNDED);
            return;
        }
        let projection = basis.project(kernel, &widened(row), 1.0);
        let mut bytes = [0; DIRECTIONS];
        let bounds = kernel.encode(&projection, &mut bytes, &mut line.0);
        let bound = bounds.nibbles.of_part(length, tail_of(length, &projection));
        self.appender.append(&[line], bound);
    }

    /// Append the sketch that a row has in the same basis.
    pub(crate) fn append_from(&mut self, other: &Sketch, row: usize) {
        self.appender.append(&[other.codes.sketch(row)], other.codes.bounds()[row]);
    }

    /// The sketches, once all are there.
    pub(crate) fn finish(self) -> Sketch {
        self.appender.finish();
        self.sketch
    }
}

/// An upper bound of the length that a projection leaves out of a vector of this length.
fn tail_of(length: f64, projection: &[f32]) -> f64 {
    let left = length.powi(2) - norm(projection).powi(2);
    (left.max(0.0) + TAIL_ERROR * length.powi(2)).sqrt()
}

fn widened(row: &[f32]) -> Vec<f64> {
    row.iter().map(|value| f64::from(*value)).collect()
}

/// Rows at even distances over all segments.
fn sample_of<'a>(
    segments: impl Iterator<Item = impl Iterator<Item = &'a [f32]>>,
    rows: usize,
) -> Vec<&'a [f32]> {
    let step = rows.div_ceil(SAMPLE_ROWS).max(1);
    segments.flat_map(|rows| rows.step_by(step)).collect()
}

/// Deterministic directions that have a part in every other one.
fn scattered_direction(number: usize, dim: usize) -> Vec<f64> {
    let sign = |at: usize| {
        let bits = (number * dim + at + 1) as u64;
        // The upper bits of a product with an odd constant are as good as random here.
        if bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 1 == 0 { 1.0 } else { -1.0 }
    };
    (0..dim).map(sign).collect()
}

/// One round of block power iteration: each direction through the sample's second moments.
fn next_directions(
    kernel: &dyn Kernel,
    sample: &[&[f32]],
    directions: &[Vec<f64>],
) -> Vec<Vec<f64>> {
    let mut next = vec![vec![0.0; directions[0].len()]; directions.len()];
    for row in sample {
        for (sum, direction) in next.iter_mut().zip(directions) {
            let share = kernel.dot(row, direction);
            sum.iter_mut().zip(*row).for_each(|(sum, value)| *sum += share * f64::from(*value));
        }
    }
    next
}

/// Modified Gram–Schmidt, twice over. A direction that the ones before it leave nothing of, as in
/// samples of few dimensions, makes way for a fresh one.
fn orthonormalise(directions: &mut [Vec<f64>], dim: usize) {
    for at in 0..directions.len() {
        let (before, rest) = directions.split_at_mut(at);
        let direction = &mut rest[0];
        let mut attempt = 0;
        while !reduce(direction, before) && attempt < ATTEMPTS {
            attempt += 1;
            direction.fill(0.0);
            let fresh = scattered_direction(at + attempt * DIRECTIONS, dim);
            direction[..dim].copy_from_slice(&fresh);
        }
    }
}

/// Make one direction a unit vector at right angles to others; false where too little is left.
fn reduce(direction: &mut [f64], others: &[Vec<f64>]) -> bool {
    for _ in 0..2 {
        if !scale_to_unit(direction) {
            return false;
        }
        for other in others {
            let share = dot(direction, other);
            direction.iter_mut().zip(other).for_each(|(value, other)| *value -= share * other);
        }
        if dot(direction, direction) < MIN_LEFT {
            return false;
        }
    }
    scale_to_unit(direction)
}

fn scale_to_unit(direction: &mut [f64]) -> bool {
    let length = dot(direction, direction).sqrt();
    for value in direction.iter_mut() {
        *value /= length;
    }
    length.is_normal()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// The same space with its directions mixed by a Walsh–Hadamard transform: a row's components
/// become alike in size, as four bits need.
fn mixed(mut directions: Vec<Vec<f64>>) -> Box<[f32]> {
    let count = directions.len();
    let mut step = 1;
    while step < count {
        for first in (0..count).filter(|at| at & step == 0) {
            let (front, back) = directions.split_at_mut(first + step);
            for (one, other) in front[first].iter_mut().zip(&mut back[0]) {
                (*one, *other) = (*one + *other, *one - *other);
            }
        }
        step *= 2;
    }
    let scale = (count as f64).sqrt();
    directions.iter().flatten().map(|value| (value / scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantization::scalar::power_of_two_for;
    use crate::simd;
    use proptest::prelude::*;

    /// Deterministic numbers in −1..1.
    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / 8_388_608.0 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// Rows in a space of `inner` directions, and some noise.
    fn low_rows(dim: usize, inner: usize, rows: usize, noise: f32) -> Vec<Vec<f32>> {
        let directions: Vec<_> = (0..inner).map(|at| numbers(1000 + at as u64, dim)).collect();
        let row = |at: usize| {
            let mut row = numbers(at as u64, dim);
            for value in &mut row {
                *value *= noise;
            }
            for (share, direction) in numbers(7 * at as u64, inner).iter().zip(&directions) {
                row.iter_mut().zip(direction).for_each(|(value, part)| *value += share * part);
            }
            row
        };
        (0..rows).map(row).collect()
    }

    /// Rows as segments store them.
    fn padded(dim: usize, rows: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let pad = |row: &Vec<f32>| {
            let mut row = row.clone();
            row.resize(row_stride(dim), 0.0);
            row
        };
        rows.iter().map(pad).collect()
    }

    fn learned(dim: usize, rows: &[Vec<f32>]) -> Option<Basis> {
        let kernel = simd::kernel().expect("a kernel");
        let rows = padded(dim, rows);
        let segment = rows.iter().map(Vec::as_slice);
        Basis::learn(kernel, dim, std::iter::once(segment), rows.len())
    }

    fn check(basis: &Basis, rows: &[Vec<f32>], query: &[f32]) -> Result<(), TestCaseError> {
        let kernel = simd::kernel().expect("a kernel");
        let stored = padded(basis.dim, rows);
        let segment = stored.iter().map(Vec::as_slice);
        let sketch = Sketch::of(kernel, basis, vec![segment]).remove(0);
        let power = power_of_two_for(norm(query));
        let mut wide: Vec<f64> = widened(query);
        wide.resize(row_stride(basis.dim), 0.0);
        let plane = basis.plane(kernel, query, &wide, power);
        for (at, (row, bound)) in rows.iter().zip(sketch.codes.bounds()).enumerate() {
            let line = sketch.codes.sketch(at);
            let [scale, residual, norm, tail] =
                [bound.scale, bound.residual, bound.norm, bound.tail]
                    .map(|upper| f64::from(upper.value()));
            let code = |at: usize| {
                let byte = line.0[at % 64];
                f64::from(if at < 64 { byte & 15 } else { byte >> 4 }) - 7.5
            };
            let sum: f64 = (0..128).map(|at| code(at) * f64::from(plane.values[at])).sum();
            let middle = scale * 16.0 * f64::from(plane.step) * sum;
            let slack = residual * f64::from(plane.norm)
                + norm * f64::from(plane.error)
                + tail * f64::from(plane.tail);
            let exact: f64 =
                row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let off = (exact * power - middle).abs();
            prop_assert!(!slack.is_finite() || off <= slack, "row {at}: {off} beyond {slack}");
        }
        Ok(())
    }

    fn scaled(row: &[f32], by: f32) -> Vec<f32> {
        row.iter().map(|value| value * by).collect()
    }

    #[test]
    fn scores_lie_inside_the_bounds_of_sketches() {
        for dim in [256, 300, 385] {
            let rows = low_rows(dim, 40, 300, 0.05);
            let basis = learned(dim, &rows).expect("few directions matter");
            let far = |seed| numbers(seed, dim);
            let mut odd = vec![vec![0.0; dim], vec![f32::MAX; dim], vec![1e-42; dim], far(3)];
            odd.extend([1e-31, 1e-20, 1e20, 1e31].map(|by| scaled(&far(5), by)));
            odd.extend((0..40).map(|at| rows[at].clone()));
            let mut axis = vec![0.0; dim];
            axis[dim - 1] = 1.0;
            for query in [rows[7].clone(), far(9), axis, scaled(&rows[8], 1e-40), vec![0.0; dim]] {
                check(&basis, &odd, &query).expect("inside the bounds");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn bounds_hold_for_any_rows_in_a_basis_of_others(
            seed in 1_u64..10_000, power in -32_i32..32, noise in 0.0_f32..2.0
        ) {
            let dim = 260;
            let basis = learned(dim, &low_rows(dim, 20, 200, 0.02))
                .expect("few directions matter");
            let mut rows: Vec<_> = (0..20).map(|at| numbers(seed + at, dim)).collect();
            rows.extend(low_rows(dim, 20, 20, noise));
            let factor = 10.0_f32.powi(power);
            let rows: Vec<_> = rows.iter().map(|row| scaled(row, factor)).collect();
            check(&basis, &rows, &rows[3])?;
            check(&basis, &rows, &numbers(seed, dim))?;
        }
    }

    #[test]
    fn a_basis_is_learned_where_few_directions_matter() {
        let dim = 300;
        let few = learned(dim, &low_rows(dim, 3, 200, 0.0)).expect("three matter");
        let kernel = simd::kernel().expect("a kernel");
        assert!(few.defect(kernel) < MAX_DEFECT, "{}", few.defect(kernel));
        let rows = padded(dim, &low_rows(dim, 3, 200, 0.0));
        let stored: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        assert!(few.left_out(kernel, &stored) < 1e-5);
        assert!(learned(dim, &vec![vec![1.0; dim]; 50]).is_some());
        let uniform: Vec<_> = (0..2000).map(|at| numbers(at, 384)).collect();
        assert!(learned(384, &uniform).is_none(), "all directions matter alike");
        assert!(learned(dim, &vec![vec![0.0; dim]; 50]).is_none());
    }
}
