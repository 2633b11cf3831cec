//! Plain Rust: the reference for the other kernels, and the kernel of CPUs without any of them.

use super::Kernel;
use crate::error::Error;
use crate::format::{Block, CHANNELS, Dense, INPUTS, Model};
use crate::forward::{self, Batch, Instructions, Panel, finish};
use crate::scratch::{Forms, HeadScratch, Rounded, Scratch};

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

impl Instructions for Portable {
    type Code = u8;
    const ROWS: usize = 1;

    fn form(forms: &mut Forms) -> &mut Rounded<u8> {
        &mut forms.bytes
    }

    fn multiply(self, panel: Panel<'_, u8>, dense: Dense<'_>, pair: usize, output: &mut [f32]) {
        let [row] = panel.rows(dense.inputs);
        let weights = dense.pair(pair);
        for half in 0..2 {
            let sums = sums(row, weights.iter().map(|pair| &pair[half]));
            finish(&sums, panel.ranges[0], dense, 2 * pair + half, output);
        }
    }

    fn attend(self, rows: &[f32], size: usize, scratch: &mut HeadScratch, output: &mut [f32]) {
        forward::attend::<1>(rows, size, scratch, output);
    }
}

fn sums<'a>(row: &[[u8; INPUTS]], blocks: impl Iterator<Item = &'a Block>) -> [i32; CHANNELS] {
    let mut sums = [0; CHANNELS];
    for (codes, block) in row.iter().zip(blocks) {
        for (sum, weights) in sums.iter_mut().zip(block.as_chunks::<INPUTS>().0) {
            for (code, weight) in codes.iter().zip(weights) {
                *sum += i32::from(*code) * i32::from(*weight);
            }
        }
    }
    sums
}
