//! Plain Rust: the reference for the other kernels, and the kernel of CPUs without any of them.

use super::Kernel;
use crate::error::Error;
use crate::format::{Block, CHANNELS, Dense, INPUTS, Model};
use crate::forward::{self, Batch, Instructions, Panel, finish};
use crate::scratch::{Codes, Forms, Rounded, Scratch};

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
    const ROWS: usize = 4;

    fn form(forms: &mut Forms) -> &mut Rounded<u8> {
        &mut forms.bytes
    }

    fn multiply(self, panel: Panel<'_, u8>, dense: Dense<'_>, group: usize, output: &mut [f32]) {
        let height = panel.ranges.len();
        for (at, range) in panel.ranges.iter().enumerate() {
            let output = &mut output[at * dense.outputs()..];
            for block in dense.blocks(group) {
                let columns = panel.codes.iter().skip(at).step_by(height);
                finish(&sums(columns, dense.of_block(block)), *range, dense, block, output);
            }
        }
    }
}

fn sums<'a>(columns: impl Iterator<Item = &'a Codes<u8>>, weights: &[Block]) -> [i32; CHANNELS] {
    let mut sums = [0; CHANNELS];
    for (codes, block) in columns.zip(weights) {
        for (sum, weights) in sums.iter_mut().zip(block.as_chunks::<INPUTS>().0) {
            for (code, weight) in codes.iter().zip(weights) {
                *sum += i32::from(*code) * i32::from(*weight);
            }
        }
    }
    sums
}
