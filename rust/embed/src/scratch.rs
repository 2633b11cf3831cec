//! Buffers that a thread keeps, so that a call allocates nothing once they are large enough.

use std::cell::RefCell;

use bytemuck::Zeroable;

use crate::floats::{CodeRange, Lanes};
use crate::format::Sizes;
use crate::forward::OfHead;

/// Rows of activations as codes, and what the codes of each row stand for.
#[derive(Default)]
pub(crate) struct Rounded<C> {
    pub(crate) codes: Vec<C>,
    pub(crate) ranges: Vec<CodeRange>,
}

/// One for every form in which kernels read codes; a process uses one of them.
#[derive(Default)]
pub(crate) struct Forms {
    pub(crate) bytes: Rounded<u8>,
    #[cfg(target_arch = "x86_64")]
    pub(crate) words: Rounded<i16>,
}

/// Buffers of attention.
#[derive(Default)]
pub(crate) struct HeadScratch {
    /// Of one head, four tokens together.
    pub(crate) keys: Vec<[OfHead; 4]>,
    pub(crate) values: Vec<OfHead>,
    /// Of 16 queries, for each key.
    pub(crate) scores: Vec<[Lanes; 4]>,
}

/// Buffers for the tokens of one batch; they may be longer than it needs.
#[derive(Default)]
pub(crate) struct Scratch {
    /// What each token is, layer by layer.
    pub(crate) hidden: Vec<f32>,
    pub(crate) wide: Vec<f32>,
    pub(crate) narrow: Vec<f32>,
    pub(crate) head: HeadScratch,
    pub(crate) forms: Forms,
}

impl Scratch {
    /// Make room for so many tokens, the longest text having `longest`.
    pub(crate) fn fit(&mut self, sizes: Sizes, tokens: usize, longest: usize) {
        grow(&mut self.hidden, tokens * sizes.hidden);
        grow(&mut self.wide, tokens * sizes.inner.max(sizes.attention()));
        grow(&mut self.narrow, tokens * sizes.hidden);
        // A kernel takes four or eight keys together.
        grow(&mut self.head.keys, longest.div_ceil(8) * 2);
        grow(&mut self.head.values, longest);
        grow(&mut self.head.scores, longest.div_ceil(8) * 2);
    }
}

/// Make a buffer at least so long.
pub(crate) fn grow<T: Zeroable + Clone>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, T::zeroed());
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Call with the buffers of this thread.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(work)
}
