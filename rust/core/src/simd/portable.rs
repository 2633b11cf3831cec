//! Plain Rust: the reference for the other kernels, and the kernel of CPUs without any of them.

use super::{CodedRows, Kernel, LANES, Limit, Rows, Uppers, add_lanes};
use crate::collections::append_buffer::Line;
use crate::quantization::coded_rows::Packing;
use crate::quantization::kernel::TILE_ROWS;
use crate::quantization::scalar::{LINE_COMPONENTS, Plane, QueryCodes};

pub(crate) struct Portable;

impl Kernel for Portable {
    fn name(&self) -> &'static str {
        "portable"
    }

    fn dot(&self, row: &[f32], query: &[f64]) -> f64 {
        let mut lanes = [0.0; LANES];
        for (values, parts) in row.as_chunks::<LANES>().0.iter().zip(query.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                lanes[lane] += f64::from(values[lane]) * parts[lane];
            }
        }
        add_lanes(lanes)
    }

    fn code_sum(&self, bytes: &[Line], query: &QueryCodes) -> i64 {
        query.code_sum(byte_sum(bytes, &query.high.values), byte_sum(bytes, &query.low.values))
    }

    fn bound(&self, codes: &CodedRows, rows: Rows<'_>, limit: &Limit<'_>, uppers: &mut Uppers<'_>) {
        uppers.reaching.fill(0);
        for position in rows.positions() {
            let upper = upper_of(codes, rows.row(position) as usize, limit);
            uppers.values[position] = upper;
            let reaches = u64::from(upper >= limit.threshold);
            uppers.reaching[position / TILE_ROWS] |= reaches << (position % TILE_ROWS);
        }
    }

    fn at_least(&self, uppers: &[f32], threshold: f32, reaching: &mut [u64]) {
        for (word, uppers) in reaching.iter_mut().zip(uppers.chunks(TILE_ROWS)) {
            let reaches = |(at, upper): (usize, &f32)| u64::from(*upper >= threshold) << at;
            *word = uppers.iter().enumerate().map(reaches).sum();
        }
    }

    fn prefetch(&self, _lines: &[Line]) {}
}

/// A bound that overflows to NaN is infinite, so that it keeps its row.
fn upper_of(rows: &CodedRows, row: usize, limit: &Limit<'_>) -> f32 {
    let (bound, plane) = (rows.bounds()[row], limit.plane);
    let centred = 2 * sum_of(rows, row, plane) - limit.middle;
    let slack = bound.residual.value() * plane.norm
        + bound.tail.value() * plane.tail
        + bound.norm.value() * plane.error;
    let prior = limit.prior.map_or(0.0, |prior| prior.values[row] * prior.factor);
    let upper = bound.scale.value() * (centred as f32 * limit.factor) + slack + prior;
    if upper.is_nan() { f32::INFINITY } else { upper }
}

fn sum_of(rows: &CodedRows, row: usize, plane: &Plane) -> i32 {
    match rows.packing {
        Packing::Sketches => nibble_sum(std::iter::once(&rows.sketch(row)), &plane.values),
        Packing::Nibbles => nibble_sum(rows.lines_of(row), &plane.values),
        Packing::Bytes => byte_sum(rows.row(row), &plane.values),
    }
}

/// The sum of stored nibbles times a plane.
fn nibble_sum<'a>(lines: impl Iterator<Item = &'a Line>, plane: &[i8]) -> i32 {
    let mut sum = 0;
    for (line, parts) in lines.zip(plane.as_chunks::<LINE_COMPONENTS>().0) {
        for at in 0..64 {
            sum += i32::from(line.0[at] & 15) * i32::from(parts[at]);
            sum += i32::from(line.0[at] >> 4) * i32::from(parts[at + 64]);
        }
    }
    sum
}

fn byte_sum(lines: &[Line], plane: &[i8]) -> i32 {
    let products = |(line, parts): (&Line, &[i8; 64])| {
        line.0
            .iter()
            .zip(parts)
            .map(|(code, part)| i32::from(*code) * i32::from(*part))
            .sum::<i32>()
    };
    lines.iter().zip(plane.as_chunks().0).map(products).sum()
}
