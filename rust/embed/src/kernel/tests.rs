//! Products of every kernel beside naive sums, at every height of a panel.

use super::*;
use crate::floats::CodeRange;
use crate::format::{CHANNELS, Dense, INPUTS, PAIR, Pair};
use crate::forward::{Instructions, Panel};
use crate::model_file::Numbers;

/// Numbers of inputs around a cache line, and those of small models.
const INPUT_COUNTS: [usize; 7] = [4, 8, 60, 64, 68, 384, 1536];

/// A matrix whose scales are 1, so that a product is its sum.
struct Matrix {
    inputs: usize,
    ones: Vec<[f32; CHANNELS]>,
    zeros: Vec<[f32; CHANNELS]>,
    weights: Vec<Pair>,
}

impl Matrix {
    fn new(inputs: usize, outputs: usize, mut weight: impl FnMut() -> i8) -> Self {
        let blocks = outputs / CHANNELS;
        let mut pairs = vec![[[0; CHANNELS * INPUTS]; 2]; outputs / PAIR * inputs / INPUTS];
        pairs.as_flattened_mut().as_flattened_mut().fill_with(&mut weight);
        Self {
            inputs,
            ones: vec![[1.0; CHANNELS]; blocks],
            zeros: vec![[0.0; CHANNELS]; blocks],
            weights: pairs,
        }
    }

    fn dense(&self) -> Dense<'_> {
        Dense {
            inputs: self.inputs,
            scales: &self.ones,
            sums: &self.zeros,
            bias: &self.zeros,
            weights: &self.weights,
        }
    }

    /// The sum of a row of codes for one output channel.
    fn sum(&self, codes: &[u8], output: usize) -> i64 {
        let pair = self.dense().pair(output / PAIR);
        let (half, lane) = (output % PAIR / CHANNELS, output % CHANNELS);
        let product = |(at, code): (usize, &u8)| {
            let weight = pair[at / INPUTS][half][lane * INPUTS + at % INPUTS];
            i64::from(*code) * i64::from(weight)
        };
        codes.iter().enumerate().map(product).sum()
    }
}

fn check<I: Instructions>(cpu: I, name: &str, matrix: &Matrix, codes: &[u8]) {
    let outputs = matrix.dense().outputs();
    let height = codes.len() / matrix.inputs;
    let read: Vec<I::Code> = codes.iter().map(|code| I::Code::from(*code)).collect();
    let ranges = vec![CodeRange { low: 0.0, step: 1.0 }; height];
    let panel = Panel { codes: &read, ranges: &ranges };
    let mut found = vec![f32::NAN; height * outputs];
    for pair in 0..outputs / PAIR {
        cpu.multiply(panel, matrix.dense(), pair, &mut found);
    }
    for (row, codes) in found.chunks(outputs).zip(codes.chunks(matrix.inputs)) {
        for (output, found) in row.iter().enumerate() {
            let wanted = matrix.sum(codes, output) as f32;
            let (found, wanted) = (found.to_bits(), wanted.to_bits());
            assert_eq!(found, wanted, "{name}, {height} rows, {} inputs", matrix.inputs);
        }
    }
}

fn check_heights<I: Instructions>(cpu: I, name: &str) {
    let mut numbers = Numbers(3);
    for inputs in INPUT_COUNTS {
        let matrix = Matrix::new(inputs, 2 * PAIR, || numbers.bits() as i8);
        for height in 1..=I::ROWS {
            let codes: Vec<u8> = (0..height * inputs).map(|_| numbers.bits() as u8).collect();
            check(cpu, name, &matrix, &codes);
        }
    }
}

/// Where sums of bytes in 16 bits would saturate.
fn check_largest<I: Instructions>(cpu: I, name: &str) {
    for weight in [i8::MIN, -127, 127] {
        for inputs in INPUT_COUNTS {
            let matrix = Matrix::new(inputs, PAIR, || weight);
            check(cpu, name, &matrix, &vec![u8::MAX; I::ROWS * inputs]);
        }
    }
}

#[test]
fn products_are_exact_in_every_kernel() {
    check_heights(portable::Portable, "portable");
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(cpu) = avx2::detect() {
            check_heights(*cpu, cpu.name());
        }
        if let Some(cpu) = avxvnni::detect() {
            check_heights(*cpu, cpu.name());
        }
        if let Some(cpu) = avx512::detect() {
            check_heights(*cpu, cpu.name());
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        if let Some(cpu) = neon::detect() {
            check_heights(*cpu, cpu.name());
        }
        if let Some(cpu) = neon::detect_dot() {
            check_heights(*cpu, cpu.name());
        }
    }
}

#[test]
fn the_largest_products_do_not_saturate() {
    check_largest(portable::Portable, "portable");
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(cpu) = avx2::detect() {
            check_largest(*cpu, cpu.name());
        }
        if let Some(cpu) = avxvnni::detect() {
            check_largest(*cpu, cpu.name());
        }
        if let Some(cpu) = avx512::detect() {
            check_largest(*cpu, cpu.name());
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        if let Some(cpu) = neon::detect() {
            check_largest(*cpu, cpu.name());
        }
        if let Some(cpu) = neon::detect_dot() {
            check_largest(*cpu, cpu.name());
        }
    }
}

#[test]
fn a_kernel_is_chosen_by_name() {
    for kernel in supported() {
        assert_eq!(choose(Some(kernel.name())).map(Kernel::name), Ok(kernel.name()));
    }
    assert_eq!(choose(None).map(Kernel::name), Ok(supported()[0].name()));
    assert_eq!(choose(Some("")).map(Kernel::name), Ok(supported()[0].name()));
    let unknown = choose(Some("abacus")).map(Kernel::name);
    assert!(matches!(unknown, Err(Error::UnsupportedKernel { found, .. }) if found == "abacus"));
}
