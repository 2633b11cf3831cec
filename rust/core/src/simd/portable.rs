//! Plain Rust: the reference for the other kernels, and what runs where none of them can.

use super::{CodedRows, Kernel, LANES, add_lanes};
use crate::quant::{QueryCodes, RowBound, encode};

pub(crate) struct Portable;

impl Kernel for Portable {
    fn name(&self) -> &'static str {
        "portable"
    }

    fn dot(&self, row: &[f32], query: &[f64]) -> f64 {
        let mut lanes = [0.0; LANES];
        for (values, parts) in row
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(query.as_chunks::<LANES>().0)
        {
            for lane in 0..LANES {
                lanes[lane] += f64::from(values[lane]) * parts[lane];
            }
        }
        add_lanes(lanes)
    }

    fn encode(&self, row: &[f32], codes: &mut [u8]) -> RowBound {
        encode(row, codes)
    }

    fn query_codes(&self, query: &[f32]) -> QueryCodes {
        QueryCodes::new(query)
    }

    fn plane_sums(&self, codes: &[u8], query: &QueryCodes) -> (i32, i32) {
        (plane_sum(codes, &query.high), plane_sum(codes, &query.low))
    }

    fn reaching(
        &self,
        rows: &CodedRows<'_>,
        first: usize,
        count: usize,
        query: &QueryCodes,
        threshold: f32,
    ) -> u64 {
        mask((first..first + count).map(|row| may_reach(rows, row, query, threshold)))
    }

    fn reaching_listed(
        &self,
        rows: &CodedRows<'_>,
        listed: &[u32],
        _ahead: &[u32],
        query: &QueryCodes,
        threshold: f32,
    ) -> u64 {
        mask(
            listed
                .iter()
                .map(|row| may_reach(rows, *row as usize, query, threshold)),
        )
    }

    fn prefetch(&self, _row: &[f32]) {}
}

fn mask(bits: impl Iterator<Item = bool>) -> u64 {
    bits.enumerate()
        .fold(0, |mask, (at, bit)| mask | u64::from(bit) << at)
}

fn may_reach(rows: &CodedRows<'_>, row: usize, query: &QueryCodes, threshold: f32) -> bool {
    let high = plane_sum(rows.row(row), &query.high);
    let bound = rows.bound(row);
    let upper = coarse_upper(bound, high, query);
    // A bound that overflowed to NaN must keep its row.
    upper >= threshold || upper.is_nan()
}

fn coarse_upper(row: RowBound, high: i32, query: &QueryCodes) -> f32 {
    let middle = row.scale * ((high - query.high_offset) as f32 * (query.step * 128.0));
    middle + (row.residual * query.norm + row.norm * query.coarse_error)
}

fn plane_sum(codes: &[u8], plane: &[i8]) -> i32 {
    codes
        .iter()
        .zip(plane)
        .map(|(code, part)| i32::from(*code) * i32::from(*part))
        .sum()
}
