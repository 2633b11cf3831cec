//! One check for every kernel, against naive sums, at lengths around every vector width.

use super::*;
use crate::quant::{RowBound, code_stride, encode, rounded_down, row_stride};

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

const DIMS: [usize; 22] = [
    1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 384, 1000, 1536, 4096,
];

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
            assert_eq!(
                found.to_bits(),
                wanted.to_bits(),
                "{} at dim {dim}",
                kernel.name()
            );
        }
    }
}

#[test]
fn plane_sums_are_exact_in_every_kernel() {
    let mut numbers = Numbers(2);
    for dim in DIMS {
        let query = QueryCodes::new(&numbers.vector(dim));
        let mut codes = vec![0; code_stride(dim)];
        encode(&numbers.padded(dim), &mut codes);
        check_plane_sums(&codes, &query);
    }
}

#[test]
fn plane_sums_do_not_saturate_at_the_extremes() {
    for dim in [64, 4096, 65_536] {
        let query = QueryCodes::new(&vec![1.0; dim]);
        assert!(query.high.iter().all(|part| *part == 64));
        check_plane_sums(&vec![255; dim], &query);
        check_plane_sums(&vec![255; dim], &QueryCodes::new(&vec![-1.0; dim]));
        check_plane_sums(&vec![1; dim], &query);
    }
}

fn check_plane_sums(codes: &[u8], query: &QueryCodes) {
    let sum = |plane: &[i8]| -> i64 {
        codes
            .iter()
            .zip(plane)
            .map(|(code, part)| i64::from(*code) * i64::from(*part))
            .sum()
    };
    for kernel in supported() {
        let (high, low) = kernel.plane_sums(codes, query);
        let found = (i64::from(high), i64::from(low));
        assert_eq!(
            found,
            (sum(&query.high), sum(&query.low)),
            "{}",
            kernel.name()
        );
    }
}

struct Rows {
    dim: usize,
    vectors: Vec<Vec<f32>>,
    codes: Vec<u8>,
    scale: Vec<f32>,
    residual: Vec<f32>,
    norm: Vec<f32>,
}

impl Rows {
    fn new(dim: usize, vectors: Vec<Vec<f32>>) -> Self {
        let mut rows = Self {
            dim,
            vectors,
            codes: Vec::new(),
            scale: Vec::new(),
            residual: Vec::new(),
            norm: Vec::new(),
        };
        for vector in &rows.vectors {
            let mut codes = vec![0; code_stride(dim)];
            let RowBound {
                scale,
                residual,
                norm,
            } = encode(vector, &mut codes);
            rows.codes.extend(codes);
            rows.scale.push(scale);
            rows.residual.push(residual);
            rows.norm.push(norm);
        }
        rows
    }

    fn coded(&self) -> CodedRows<'_> {
        CodedRows {
            codes: &self.codes,
            stride: code_stride(self.dim),
            scale: &self.scale,
            residual: &self.residual,
            norm: &self.norm,
        }
    }

    fn scores(&self, query: &[f32], power: f64) -> Vec<f64> {
        let score = |row: &Vec<f32>| {
            row.iter()
                .zip(query)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum::<f64>()
                * power
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
    let below = rounded_down(threshold);
    for (first, count) in [
        (0, 64),
        (0, 1),
        (3, 7),
        (3, 8),
        (3, 9),
        (6, 63),
        (6, 64),
        (69, 1),
    ] {
        let mask = kernel.reaching(&rows.coded(), first, count, query, below);
        let wanted: Vec<usize> = (0..count)
            .filter(|at| scores[first + at] >= threshold)
            .collect();
        assert!(
            wanted.iter().all(|at| mask >> at & 1 == 1),
            "{} {first} {count}",
            kernel.name()
        );
        assert_eq!(
            mask & !(u64::MAX >> (64 - count)),
            0,
            "bits beyond the rows asked for"
        );
        let listed: Vec<u32> = (0..count)
            .map(|at| ((first + at) * 11 % 70) as u32)
            .collect();
        let mask = kernel.reaching_listed(&rows.coded(), &listed, &[5, 69, 0], query, below);
        let wanted = listed
            .iter()
            .enumerate()
            .filter(|(_, row)| scores[**row as usize] >= threshold);
        assert!(
            wanted.map(|(at, _)| at).all(|at| mask >> at & 1 == 1),
            "{}",
            kernel.name()
        );
    }
}

#[test]
fn bounds_rule_out_nearly_everything_that_is_far_below() {
    let mut numbers = Numbers(4);
    let rows = Rows::new(384, (0..64).map(|_| numbers.padded(384)).collect());
    let query = rows.vectors[7][..384].to_vec();
    let codes = QueryCodes::new(&query);
    let own = rows.scores(&query, codes.power)[7];
    for kernel in supported() {
        let mask = kernel.reaching(&rows.coded(), 0, 64, &codes, rounded_down(own));
        assert_eq!(mask, 1 << 7, "{}", kernel.name());
    }
}

#[test]
fn a_bound_that_overflows_keeps_its_row() {
    let rows = Rows::new(64, vec![vec![f32::MAX; 64]; 9]);
    let codes = QueryCodes::new(&[1.0; 64]);
    for kernel in supported() {
        assert_eq!(
            kernel.reaching(&rows.coded(), 0, 9, &codes, f32::MAX),
            0x1ff
        );
        assert_eq!(
            kernel.reaching_listed(&rows.coded(), &[8, 0], &[], &codes, f32::MAX),
            3
        );
    }
}

#[test]
fn an_unknown_kernel_is_refused_by_name() {
    let message = choose(Some("sse9"))
        .err()
        .expect("there is no such kernel")
        .to_string();
    assert!(
        message.contains("sse9") && message.contains("portable"),
        "{message}"
    );
    assert_eq!(
        choose(Some("portable")).expect("always there").name(),
        "portable"
    );
    assert!(choose(None).is_ok() && choose(Some("")).is_ok());
}

#[test]
fn a_kernel_this_cpu_lacks_is_refused_with_what_it_has() {
    let names: Vec<&str> = supported().iter().map(|kernel| kernel.name()).collect();
    for lacking in KNOWN.iter().filter(|name| !names.contains(name)) {
        let message = choose(Some(lacking))
            .err()
            .expect("not supported")
            .to_string();
        assert!(
            message.contains(lacking) && message.contains("portable"),
            "{message}"
        );
    }
}
