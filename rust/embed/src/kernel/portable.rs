//! Plain Rust: the reference for the other kernels, and the kernel of CPUs without any of them.

use std::ops::Range;

use super::Kernel;
use crate::error::Error;
use crate::floats::{LANES, Sums, Vectors, less, more};
use crate::format::{CHANNELS, Dense, INPUTS, Lanes, Model, Pair, STEPS};
use crate::forward::{self, Batch, Instructions, Panel, Place, finish};
use crate::scratch::{Floats, Form, Forms, Scratch};

#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Kernel for Portable {
    fn name(&self) -> &'static str {
        "portable"
    }

    fn run(
        &self,
        model: &Model,
        batch: Batch<'_>,
        scratch: &mut Scratch,
        vectors: &mut [f32],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        forward::run(*self, model, batch, scratch, vectors, is_over)
    }
}

type Array = [f32; LANES];

impl Vectors for Portable {
    type Vector = Array;
    type Code = u8;

    fn load(self, lanes: &Lanes) -> Array {
        lanes.0
    }

    fn store(self, vector: Array, lanes: &mut Lanes) {
        lanes.0 = vector;
    }

    fn splat(self, number: f32) -> Array {
        [number; LANES]
    }

    fn add(self, one: Array, other: Array) -> Array {
        std::array::from_fn(|lane| one[lane] + other[lane])
    }

    fn multiply(self, one: Array, other: Array) -> Array {
        std::array::from_fn(|lane| one[lane] * other[lane])
    }

    fn multiply_add(self, one: Array, other: Array, more: Array) -> Array {
        std::array::from_fn(|lane| one[lane].mul_add(other[lane], more[lane]))
    }

    fn least(self, one: Array, other: Array) -> Array {
        std::array::from_fn(|lane| less(one[lane], other[lane]))
    }

    fn largest(self, one: Array, other: Array) -> Array {
        std::array::from_fn(|lane| more(one[lane], other[lane]))
    }

    fn interleaved(self, one: Array, other: Array) -> [Array; 2] {
        let mut both = [[0.0; LANES]; 2];
        let pairs = both.as_flattened_mut().as_chunks_mut().0.iter_mut();
        for (pair, values) in pairs.zip(one.into_iter().zip(other)) {
            *pair = values.into();
        }
        both
    }

    fn minus_size(self, vector: Array) -> Array {
        vector.map(|value| -value.abs())
    }

    fn floats(self, sums: &Sums) -> Array {
        sums.map(|sum| sum as f32)
    }

    fn low_bytes(self, vector: Array) -> [u8; LANES] {
        vector.map(|value| value.to_bits() as u8)
    }
}

impl Instructions for Portable {
    const ROWS: usize = 1;

    fn form(forms: &mut Forms) -> &mut Form<u8> {
        &mut forms.bytes
    }

    fn multiply_panel(self, panel: Panel<'_, u8>, dense: Dense<'_>, mut output: Place<'_>) {
        for pair in 0..dense.scales.len() {
            let sums = [0, 1].map(|half| [sums(panel, dense.pair(pair), half)]);
            finish(self, &sums, panel, dense, pair, &mut output);
        }
    }

    fn attend(
        self,
        text: Range<usize>,
        wide: &Floats,
        scores: &mut Vec<Lanes>,
        output: &mut Floats,
    ) {
        forward::attend::<_, 1, 1>(self, text, wide, scores, output);
    }
}

fn sums(panel: Panel<'_, u8>, weights: &[[Pair; STEPS]], half: usize) -> Sums {
    let mut sums = [0; CHANNELS];
    for (part, weights) in weights.iter().enumerate() {
        let [row] = panel.part(part);
        for (codes, pair) in row.iter().zip(weights) {
            for (sum, weights) in sums.iter_mut().zip(pair[half].as_chunks::<INPUTS>().0) {
                for (code, weight) in codes.iter().zip(weights) {
                    *sum += i32::from(*code) * i32::from(*weight);
                }
            }
        }
    }
    sums
}
