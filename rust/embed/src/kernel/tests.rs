//! Products of every kernel beside naive sums, at every height of a panel.

use super::*;
use crate::floats::CodeRange;
use crate::format::{CHANNELS, CodePart, Dense, INPUTS, Lanes, PAIR, Pair, Part, STEPS};
use crate::forward::{Instructions, Panel, Place};
use crate::model_file::Numbers;

/// Numbers of inputs of one part, of a few, and those of small models.
const INPUT_COUNTS: [usize; 5] = [32, 64, 96, 384, 1536];

/// A matrix whose scales are 1, so that a product is its sum.
struct Matrix {
    inputs: usize,
    ones: Vec<Part>,
    zeros: Vec<Part>,
    weights: Vec<Pair>,
}

impl Matrix {
    fn new(inputs: usize, outputs: usize, mut weight: impl FnMut() -> i8) -> Self {
        let mut pairs = vec![[[0; CHANNELS * INPUTS]; 2]; outputs / PAIR * inputs / INPUTS];
        pairs.as_flattened_mut().as_flattened_mut().fill_with(&mut weight);
        Self {
            inputs,
            ones: vec![[Lanes([1.0; CHANNELS]); 2]; outputs / PAIR],
            zeros: vec![[Lanes::ZERO; 2]; outputs / PAIR],
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

    /// The sum of a row of codes for an output channel of a pair.
    fn sum(&self, codes: &[u8], pair: usize, channel: usize) -> i64 {
        let pair = self.dense().pair(pair).as_flattened();
        let (half, lane) = (channel / CHANNELS, channel % CHANNELS);
        let product = |(at, code): (usize, &u8)| {
            let weight = pair[at / INPUTS][half][lane * INPUTS + at % INPUTS];
            i64::from(*code) * i64::from(weight)
        };
        codes.iter().enumerate().map(product).sum()
    }
}

/// Rows part by part, as kernels read them.
fn laid_out<C: Copy + From<u8>>(rows: &[Vec<u8>]) -> Vec<CodePart<C>> {
    let parts = 0..rows[0].len() / PAIR;
    let part = |part: usize| {
        rows.iter().map(move |row| {
            let code = |step: usize, input: usize| row[part * PAIR + step * INPUTS + input];
            std::array::from_fn(|step| std::array::from_fn(|input| C::from(code(step, input))))
        })
    };
    parts.flat_map(part).collect::<Vec<[[C; INPUTS]; STEPS]>>()
}

fn check<I: Instructions<Code: From<u8>>>(cpu: I, name: &str, matrix: &Matrix, rows: &[Vec<u8>]) {
    let (codes, height) = (laid_out(rows), rows.len());
    let ranges = vec![CodeRange { low: 0.0, step: 1.0 }; height];
    let panel = Panel { codes: &codes, distance: height, ranges: &ranges };
    let mut found = vec![[Lanes([f32::NAN; CHANNELS]); 2]; height * matrix.ones.len()];
    let place = Place { parts: &mut found, distance: height };
    cpu.multiply_panel(panel, matrix.dense(), place);
    for (pair, found) in found.chunks(height).enumerate() {
        for (codes, found) in rows.iter().zip(found) {
            for (channel, found) in found.iter().flat_map(|lanes| lanes.0).enumerate() {
                let wanted = matrix.sum(codes, pair, channel) as f32;
                let (found, wanted) = (found.to_bits(), wanted.to_bits());
                assert_eq!(found, wanted, "{name}, {height} rows, {} inputs", matrix.inputs);
            }
        }
    }
}

fn check_heights<I: Instructions<Code: From<u8>>>(cpu: I, name: &str) {
    let mut numbers = Numbers(3);
    for inputs in INPUT_COUNTS {
        let matrix = Matrix::new(inputs, 2 * PAIR, || numbers.bits() as i8);
        for height in 1..=I::ROWS {
            let mut row = || (0..inputs).map(|_| numbers.bits() as u8).collect();
            let rows: Vec<Vec<u8>> = (0..height).map(|_| row()).collect();
            check(cpu, name, &matrix, &rows);
        }
    }
}

/// Where sums of bytes in 16 bits would saturate.
fn check_largest<I: Instructions<Code: From<u8>>>(cpu: I, name: &str) {
    for weight in [i8::MIN, -127, 127] {
        for inputs in INPUT_COUNTS {
            let matrix = Matrix::new(inputs, PAIR, || weight);
            check(cpu, name, &matrix, &vec![vec![u8::MAX; inputs]; I::ROWS]);
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
