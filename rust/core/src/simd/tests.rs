//! One check for every kernel, against naive sums, at lengths around every vector width.

use super::*;
use crate::quant::{MAX_DIM, byte_stride, encode, nibble_stride, rounded_down, row_stride};

/// Deterministic numbers in −1..1, some of them large or tiny (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn vector(&mut self, dim: usize) -> Vec<f32> {
        let value = |bits: u64| (bits >> 40) as f32 / 8_388_608.0 - 1.0;
        (0..dim).map(|_| value(self.bits())).collect()
    }

    fn padded(&mut self, dim: usize) -> Vec<f32> {
        let mut row = self.vector(dim);
        row.resize(row_stride(dim), 0.0);
        row
    }
}

const DIMS: [usize; 22] =
    [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 384, 1000, 1536, 4096];

fn exact_in_lanes(row: &[f32], query: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for (at, (value, part)) in row.iter().zip(query).enumerate() {
        lanes[at % LANES] += f64::from(*value) * part;
    }
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6]))
        + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

#[test]
fn dot_products_are_the_same_bits_in_every_kernel() {
    let mut numbers = Numbers(1);
    for dim in DIMS {
        let row = numbers.padded(dim);
        let query: Vec<f64> = numbers.padded(dim).into_iter().map(f64::from).collect();
        for kernel in supported() {
            let found = kernel.dot(&row, &query);
            let wanted = exact_in_lanes(&row, &query);
            assert_eq!(found.to_bits(), wanted.to_bits(), "{} at dim {dim}", kernel.name());
        }
    }
}

#[test]
fn code_sums_are_exact_in_every_kernel() {
    let mut numbers = Numbers(2);
    for dim in DIMS {
        let query = QueryCodes::new(&numbers.vector(dim));
        let bytes: Vec<u8> = (0..byte_stride(dim)).map(|_| numbers.bits() as u8).collect();
        check_code_sums(&bytes, &query);
    }
}

#[test]
fn code_sums_do_not_saturate_at_the_extremes() {
    for dim in [128, 4096, MAX_DIM] {
        for value in [1.0, -1.0] {
            let query = QueryCodes::new(&vec![value; dim]);
            assert!(query.high.values.iter().all(|part| part.abs() >= 63));
            for byte in [0xff, 0x80, 0x00] {
                check_code_sums(&vec![byte; dim], &query);
            }
        }
    }
}

fn check_code_sums(bytes: &[u8], query: &QueryCodes) {
    let term = |(at, byte): (usize, &u8)| {
        let part = 128 * i64::from(query.high.values[at]) + i64::from(query.low.values[at]);
        (2 * i64::from(*byte) - 255) * part
    };
    let wanted: i64 = bytes.iter().enumerate().map(term).sum();
    for kernel in supported() {
        assert_eq!(kernel.code_sum(bytes, query), wanted, "{}", kernel.name());
    }
}

#[test]
fn encoding_gives_the_same_codes_in_every_kernel() {
    let mut numbers = Numbers(5);
    for dim in DIMS {
        let row = numbers.vector(dim);
        let stride = nibble_stride(dim);
        let encoded = supported().into_iter().map(|kernel| {
            let (mut bytes, mut nibbles) = (vec![0; 2 * stride], vec![0; stride]);
            let bound = kernel.encode(&row, &mut bytes, &mut nibbles);
            (bytes, nibbles, bound.scale)
        });
        let all: Vec<_> = encoded.collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "dim {dim}");
    }
}

struct Rows {
    dim: usize,
    vectors: Vec<Vec<f32>>,
    nibbles: Vec<u8>,
    bytes: Vec<u8>,
    bounds: Vec<RowBound>,
}

impl Rows {
    fn new(dim: usize, vectors: Vec<Vec<f32>>) -> Self {
        let (mut all_nibbles, mut all_bytes, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
        let stride = nibble_stride(dim);
        for vector in &vectors {
            let (mut bytes, mut nibbles) = (vec![0; 2 * stride], vec![0; stride]);
            bounds.push(encode(&vector[..dim], &mut bytes, &mut nibbles));
            all_bytes.extend(&bytes[..byte_stride(dim)]);
            all_nibbles.extend(nibbles);
        }
        Self { dim, vectors, nibbles: all_nibbles, bytes: all_bytes, bounds }
    }

    fn coded(&self) -> CodedRows<'_> {
        CodedRows {
            nibbles: &self.nibbles,
            nibble_stride: nibble_stride(self.dim),
            bytes: &self.bytes,
            byte_stride: byte_stride(self.dim),
            bounds: &self.bounds,
        }
    }

    fn scores(&self, query: &[f32], power: f64) -> Vec<f64> {
        let score = |row: &Vec<f32>| {
            row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() * power
        };
        self.vectors.iter().map(score).collect()
    }
}

#[test]
fn no_kernel_rules_out_a_row_that_reaches_the_threshold() {
    let mut numbers = Numbers(3);
    for dim in DIMS {
        let rows = Rows::new(dim, (0..70).map(|_| numbers.padded(dim)).collect());
        let query = numbers.vector(dim);
        let codes = QueryCodes::new(&query);
        let scores = rows.scores(&query, codes.power);
        for threshold in [scores[0], scores[1], scores[69], 0.0] {
            for kernel in supported() {
                check_reaching(kernel, &rows, &codes, &scores, threshold);
            }
        }
    }
}

fn check_reaching(
    kernel: &dyn Kernel,
    rows: &Rows,
    query: &QueryCodes,
    scores: &[f64],
    threshold: f64,
) {
    for depth in [Depth::Coarse, Depth::Full] {
        let limit = Limit::new(depth, query, rounded_down(threshold));
        for (first, count) in [(0, 64), (0, 1), (3, 7), (3, 8), (3, 9), (6, 63), (6, 64), (69, 1)] {
            let run = kernel.reaching(&rows.coded(), first, count, &limit);
            let consecutive: Vec<u32> = (first..first + count).map(|row| row as u32).collect();
            check_mask(kernel, run, &consecutive, scores, threshold);
            let listed: Vec<u32> = (0..count).map(|at| ((first + at) * 11 % 70) as u32).collect();
            let picked = kernel.reaching_listed(&rows.coded(), &listed, &[5, 69, 0], &limit);
            check_mask(kernel, picked, &listed, scores, threshold);
        }
    }
}

fn check_mask(kernel: &dyn Kernel, mask: u64, rows: &[u32], scores: &[f64], threshold: f64) {
    for (at, row) in rows.iter().enumerate() {
        let must_stay = scores[*row as usize] >= threshold;
        assert!(!must_stay || mask >> at & 1 == 1, "{} dropped row {row}", kernel.name());
    }
    assert_eq!(mask & !(u64::MAX >> (64 - rows.len())), 0, "bits beyond the rows asked for");
}

#[test]
fn bounds_rule_out_nearly_everything_that_is_far_below() {
    let mut numbers = Numbers(4);
    let rows = Rows::new(384, (0..64).map(|_| numbers.padded(384)).collect());
    let query = rows.vectors[7][..384].to_vec();
    let codes = QueryCodes::new(&query);
    let own = rows.scores(&query, codes.power)[7];
    for kernel in supported() {
        for depth in [Depth::Coarse, Depth::Full] {
            let limit = Limit::new(depth, &codes, rounded_down(own));
            assert_eq!(kernel.reaching(&rows.coded(), 0, 64, &limit), 1 << 7, "{}", kernel.name());
            let picked = kernel.reaching_listed(&rows.coded(), &[3, 7, 9], &[], &limit);
            assert_eq!(picked, 1 << 1, "{}", kernel.name());
        }
    }
}

#[test]
fn a_bound_that_overflows_keeps_its_row() {
    let dim = 4096;
    let rows = Rows::new(dim, vec![vec![f32::MAX; dim]; 9]);
    // Infinity for the first query; minus infinity plus infinity, so NaN, for the second.
    for query in [vec![1.0; dim], vec![-1.0; dim]] {
        let codes = QueryCodes::new(&query);
        for kernel in supported() {
            for depth in [Depth::Coarse, Depth::Full] {
                let limit = Limit::new(depth, &codes, f32::MAX);
                assert_eq!(kernel.reaching(&rows.coded(), 0, 9, &limit), 0x1ff);
                assert_eq!(kernel.reaching_listed(&rows.coded(), &[8, 0], &[], &limit), 3);
            }
        }
    }
}

#[test]
fn an_unknown_kernel_is_refused_by_name() {
    let message = choose(Some("sse9")).err().expect("there is no such kernel").to_string();
    assert!(message.contains("sse9") && message.contains("portable"), "{message}");
    assert_eq!(choose(Some("portable")).expect("always there").name(), "portable");
    assert!(choose(None).is_ok() && choose(Some("")).is_ok());
}

#[test]
fn a_kernel_this_cpu_lacks_is_refused_with_what_it_has() {
    let names: Vec<&str> = supported().iter().map(|kernel| kernel.name()).collect();
    for lacking in KNOWN.iter().filter(|name| !names.contains(name)) {
        let message = choose(Some(lacking)).err().expect("not supported").to_string();
        assert!(message.contains(lacking) && message.contains("portable"), "{message}");
    }
}
