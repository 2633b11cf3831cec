//! Plain Rust: the reference for the other kernels, and what runs where none of them can.

use super::{CodedRows, Depth, Kernel, LANES, Limit, add_lanes};
use crate::quant::{LINE_COMPONENTS, QueryCodes, RowBound, encode};

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

    fn encode(&self, row: &[f32], bytes: &mut [u8], nibbles: &mut [u8]) -> RowBound {
        encode(row, bytes, nibbles)
    }

    fn query_codes(&self, query: &[f32]) -> QueryCodes {
        QueryCodes::new(query)
    }

    fn code_sum(&self, bytes: &[u8], query: &QueryCodes) -> i64 {
        query.code_sum(byte_sum(bytes, &query.high.values), byte_sum(bytes, &query.low.values))
    }

    fn reaching(&self, rows: &CodedRows<'_>, first: usize, count: usize, limit: &Limit<'_>) -> u64 {
        mask((first..first + count).map(|row| may_reach(rows, row, limit)))
    }

    fn reaching_listed(
        &self,
        rows: &CodedRows<'_>,
        listed: &[u32],
        _ahead: &[u32],
        limit: &Limit<'_>,
    ) -> u64 {
        mask(listed.iter().map(|row| may_reach(rows, *row as usize, limit)))
    }

    fn prefetch(&self, _bytes: &[u8]) {}
}

fn mask(bits: impl Iterator<Item = bool>) -> u64 {
    bits.enumerate().fold(0, |mask, (at, bit)| mask | u64::from(bit) << at)
}

fn may_reach(rows: &CodedRows<'_>, row: usize, limit: &Limit<'_>) -> bool {
    let sum = match limit.depth {
        Depth::Coarse => nibble_sum(rows.nibble_row(row), &limit.plane.values),
        Depth::Full => byte_sum(rows.byte_row(row), &limit.plane.values),
    };
    let bound = &rows.bounds[row];
    let residual = match limit.depth {
        Depth::Coarse => bound.coarse_residual,
        Depth::Full => bound.residual,
    };
    let slack = residual * limit.norm + bound.norm * limit.plane.error;
    let upper = bound.scale * ((2 * sum - limit.middle) as f32 * limit.factor) + slack;
    // A bound that overflowed to NaN must keep its row.
    upper >= limit.threshold || upper.is_nan()
}

/// The sum of stored nibbles times a plane.
fn nibble_sum(nibbles: &[u8], plane: &[i8]) -> i32 {
    let lines = nibbles.as_chunks::<64>().0.iter().zip(plane.as_chunks::<LINE_COMPONENTS>().0);
    let mut sum = 0;
    for (line, parts) in lines {
        for at in 0..64 {
            sum += i32::from(line[at] & 15) * i32::from(parts[at]);
            sum += i32::from(line[at] >> 4) * i32::from(parts[at + 64]);
        }
    }
    sum
}

fn byte_sum(bytes: &[u8], plane: &[i8]) -> i32 {
    bytes.iter().zip(plane).map(|(code, part)| i32::from(*code) * i32::from(*part)).sum()
}
