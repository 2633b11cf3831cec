//! Buffers that a thread keeps, so that a call allocates nothing once they are large enough.
#![expect(clippy::inline_always, reason = "as in `floats`")]

use std::cell::RefCell;

use bytemuck::Zeroable;

use crate::floats::CodeRange;
use crate::format::{CodePart, Lanes, PAIR, Part, Sizes};

/// Parts behind the last, which attention reads where it takes the last keys by the four.
const BEHIND: usize = 3;

/// Rows laid out part by part: the first 32 channels of all rows, then the next 32 of all.
///
/// So a product finds the codes of its rows at fixed distances, and attention what belongs to a
/// head in one place.
pub(crate) struct Rows<T> {
    /// May be longer than the rows.
    parts: Vec<T>,
    count: usize,
    /// From a part of a row to its next; odd, lest all parts of a row fall into the same few lines
    /// of the cache.
    distance: usize,
    width: usize,
}

/// Floats of a row.
pub(crate) type Floats = Rows<Part>;

/// A vector that grows has twice the length, and its old place beside it meanwhile.
const GROWTH: usize = 3;

/// Rows of activations as codes, and what the codes of each row stand for.
pub(crate) struct Rounded<C> {
    pub(crate) codes: Rows<CodePart<C>>,
    pub(crate) ranges: Vec<CodeRange>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), count: 0, distance: 1, width: 0 }
    }
}

impl<T: Zeroable + Clone> Rows<T> {
    /// Make room for so many rows; what they hold is undefined.
    pub(crate) fn fit(&mut self, count: usize, channels: usize) {
        (self.count, self.distance, self.width) = (count, count | 1, channels / PAIR);
        grow(&mut self.parts, self.distance * self.width + BEHIND);
    }

    pub(crate) fn distance(&self) -> usize {
        self.distance
    }

    /// Parts of a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// A part of each row, and at least [`BEHIND`] others.
    #[inline(always)]
    pub(crate) fn part(&self, part: usize) -> &[T] {
        &self.parts[part * self.distance..]
    }

    /// A part of each row.
    #[inline(always)]
    pub(crate) fn part_mut(&mut self, part: usize) -> &mut [T] {
        &mut self.parts[part * self.distance..][..self.count]
    }

    /// All parts from the first of a row on.
    #[inline(always)]
    pub(crate) fn parts_from(&mut self, row: usize) -> &mut [T] {
        &mut self.parts[row..]
    }

    /// The parts of a row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = &T> {
        self.parts[row..self.width * self.distance].iter().step_by(self.distance)
    }

    /// The parts of a row.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, row: usize) -> impl Iterator<Item = &mut T> {
        self.parts[row..self.width * self.distance].iter_mut().step_by(self.distance)
    }
}

impl<C> Default for Rounded<C> {
    fn default() -> Self {
        Self { codes: Rows::default(), ranges: Vec::new() }
    }
}

impl<C: Zeroable + Clone> Rounded<C> {
    /// Make room for so many rows.
    pub(crate) fn fit(&mut self, count: usize, channels: usize) {
        self.codes.fit(count, channels);
        grow(&mut self.ranges, count);
    }
}

/// What is rounded in one of the forms in which kernels read codes.
#[derive(Default)]
pub(crate) struct Form<C> {
    /// What each token is.
    pub(crate) rows: Rounded<C>,
    /// What is on its way between two matrices.
    pub(crate) inner: Rounded<C>,
}

/// A process uses one of them.
#[derive(Default)]
pub(crate) struct Forms {
    pub(crate) bytes: Form<u8>,
    #[cfg(target_arch = "x86_64")]
    pub(crate) words: Form<i16>,
}

/// Buffers for the tokens of one batch.
#[derive(Default)]
pub(crate) struct Scratch {
    /// What each token is, layer by layer.
    pub(crate) hidden: Floats,
    pub(crate) wide: Floats,
    pub(crate) narrow: Floats,
    /// Of 16 queries, for each key.
    pub(crate) scores: Vec<Lanes>,
    pub(crate) forms: Forms,
}

impl Scratch {
    /// Bytes of the buffers for so many tokens, with the copies that are made where they grow.
    pub(crate) fn bytes(sizes: Sizes, tokens: usize) -> usize {
        let wide = sizes.inner.max(sizes.attention());
        let of_floats = size_of::<f32>() * (2 * sizes.hidden + wide);
        let of_codes = size_of::<i16>() * (sizes.hidden + wide) + 2 * size_of::<CodeRange>();
        // Tokens are padded, and a few lie behind the last.
        GROWTH * (tokens + 8) * (of_floats + of_codes + size_of::<Lanes>())
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
