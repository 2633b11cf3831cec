//! The encoder's way from tokens to vectors, for every instruction set.
//!
//! Texts lie one behind the other without padding: all products with weights see one matrix of
//! tokens, and attention stays within a text. BERT as in Devlin et al. 2018 (arXiv 1810.04805);
//! mean pooling and unit length as in Reimers and Gurevych 2019 (arXiv 1908.10084).
#![expect(clippy::inline_always, reason = "as in `floats`")]

use std::ops::Range;

use bytemuck::Zeroable;

use crate::error::Error;
use crate::floats::{self, CodeRange, LANES, Lanes};
use crate::format::{CHANNELS, Dense, HEAD, INPUTS, Layer, Model, Norm, PAIR, Words};
use crate::scratch::{Forms, HeadScratch, Rounded, Scratch, grow};

/// The most rows of a batch that are widened together.
const INNER_ROWS: usize = 48;

/// What belongs to a head of a token.
pub(crate) type OfHead = [f32; HEAD];

/// Texts of one run.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) texts: &'a [&'a [u32]],
    /// Of all texts.
    pub(crate) tokens: usize,
}

/// The operations of one instruction set. A value exists only on CPUs with the instructions.
pub(crate) trait Instructions: Copy {
    /// How it reads the code of an activation.
    type Code: Copy + Zeroable + From<u8>;
    /// The most rows whose products it adds up together.
    const ROWS: usize;

    /// Its form of rounded rows.
    fn form(forms: &mut Forms) -> &mut Rounded<Self::Code>;

    /// Multiply a panel by the channels of a pair of blocks: add up the products of codes and weights and
    /// [`finish`] them. `output` begins with the panel's first row.
    fn multiply(
        self,
        panel: Panel<'_, Self::Code>,
        dense: Dense<'_>,
        pair: usize,
        output: &mut [f32],
    );

    /// [`attend`] with as many sums as there are registers for.
    fn attend(self, rows: &[f32], size: usize, scratch: &mut HeadScratch, output: &mut [f32]);
}

/// Rows that are multiplied together.
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a, C> {
    pub(crate) codes: &'a [C],
    pub(crate) ranges: &'a [CodeRange],
}

impl<'a, C> Panel<'a, C> {
    /// Each row's codes, four inputs a step.
    #[inline(always)]
    pub(crate) fn rows<const HEIGHT: usize>(self, inputs: usize) -> [&'a [[C; INPUTS]]; HEIGHT] {
        let mut rows = [&[] as &[[C; INPUTS]]; HEIGHT];
        for (row, codes) in rows.iter_mut().zip(self.codes.chunks_exact(inputs)) {
            *row = codes.as_chunks().0;
        }
        rows
    }
}

/// Turn the sums of 16 channels of a row into floats.
#[inline(always)]
pub(crate) fn finish(
    sums: &[i32; CHANNELS],
    range: CodeRange,
    dense: Dense<'_>,
    block: usize,
    output: &mut [f32],
) {
    let (scales, totals, bias) = (&dense.scales[block], &dense.sums[block], &dense.bias[block]);
    let place = &mut output[block * CHANNELS..];
    let place: &mut Lanes = place.first_chunk_mut().expect("a row has a place for each channel");
    for lane in 0..CHANNELS {
        let base = range.low.mul_add(totals[lane], bias[lane]);
        place[lane] = (sums[lane] as f32 * range.step).mul_add(scales[lane], base);
    }
}

/// Embed the texts of a batch: one row of `vectors` each.
#[inline(always)]
pub(crate) fn run<I: Instructions>(
    cpu: I,
    model: &Model,
    batch: Batch<'_>,
    scratch: &mut Scratch,
    vectors: &mut [f32],
    is_over: &dyn Fn() -> bool,
) -> Result<(), Error> {
    embed(model.words(), batch, &mut scratch.hidden);
    for number in 0..model.sizes.layers {
        if is_over() {
            return Err(Error::Interrupted);
        }
        let layer = model.layer(number);
        attention(cpu, layer, batch, scratch);
        feed_forward(cpu, layer, batch.tokens, scratch);
    }
    pool(batch, &scratch.hidden, vectors);
    Ok(())
}

#[inline(always)]
fn embed(words: Words<'_>, batch: Batch<'_>, hidden: &mut [f32]) {
    let size = words.norm.gain.len();
    let mut rows = hidden.chunks_exact_mut(size);
    for text in batch.texts {
        let places = words.positions.chunks_exact(size);
        for ((token, place), row) in text.iter().zip(places).zip(&mut rows) {
            let token = *token as usize;
            let (codes, scale) = (&words.table[token * size..][..size], words.scales[token]);
            for ((value, code), place) in row.iter_mut().zip(codes).zip(place) {
                *value = f32::from(*code).mul_add(scale, *place);
            }
            floats::normalise(row, words.norm);
        }
    }
}

/// The mean over the tokens of each text, made unit length.
#[inline(always)]
fn pool(batch: Batch<'_>, hidden: &[f32], vectors: &mut [f32]) {
    let size = vectors.len() / batch.texts.len();
    let mut rows = hidden.chunks_exact(size);
    for (text, vector) in batch.texts.iter().zip(vectors.chunks_exact_mut(size)) {
        vector.fill(0.0);
        for row in rows.by_ref().take(text.len()) {
            floats::add(vector, row);
        }
        floats::make_unit(vector);
    }
}

#[inline(always)]
fn attention<I: Instructions>(cpu: I, layer: Layer<'_>, batch: Batch<'_>, scratch: &mut Scratch) {
    let Scratch { hidden, wide, narrow, head, forms } = scratch;
    let rounded = I::form(forms);
    let (parts, size) = (layer.attention.outputs(), layer.mixing.inputs);
    round(hidden, batch.tokens, layer.attention.inputs, rounded);
    multiply(cpu, rounded, layer.attention, wide);
    let mut first = 0;
    for text in batch.texts {
        let rows = &wide[first * parts..][..text.len() * parts];
        cpu.attend(rows, size, head, &mut narrow[first * size..][..text.len() * size]);
        first += text.len();
    }
    round(narrow, batch.tokens, size, rounded);
    multiply(cpu, rounded, layer.mixing, narrow);
    add_and_normalise(hidden, narrow, batch.tokens, layer.attention_norm);
}

/// A few rows go through both matrices before the next, so that the inner rows stay in the cache.
#[inline(always)]
fn feed_forward<I: Instructions>(cpu: I, layer: Layer<'_>, tokens: usize, scratch: &mut Scratch) {
    let Scratch { hidden, wide, narrow, forms, .. } = scratch;
    let rounded = I::form(forms);
    let (size, inner) = (layer.widening.inputs, layer.narrowing.inputs);
    for rows in panels(tokens, INNER_ROWS) {
        let (hidden, count) = (&mut hidden[rows.start * size..rows.end * size], rows.len());
        round(hidden, count, size, rounded);
        multiply(cpu, rounded, layer.widening, wide);
        floats::gelu(&mut wide[..count * inner]);
        round(wide, count, inner, rounded);
        multiply(cpu, rounded, layer.narrowing, narrow);
        add_and_normalise(hidden, narrow, count, layer.norm);
    }
}

#[inline(always)]
fn add_and_normalise(hidden: &mut [f32], more: &[f32], tokens: usize, norm: Norm<'_>) {
    let size = norm.gain.len();
    let rows = hidden.chunks_exact_mut(size).zip(more.chunks_exact(size));
    for (row, more) in rows.take(tokens) {
        floats::add(row, more);
        floats::normalise(row, norm);
    }
}

/// How rows are cut into panels of nearly one height.
#[inline(always)]
fn panels(rows: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = rows.div_ceil(most);
    (0..count).map(move |at| at * rows / count..(at + 1) * rows / count)
}

/// Round the first rows.
#[inline(always)]
fn round<C: Copy + Zeroable + From<u8>>(
    rows: &[f32],
    tokens: usize,
    inputs: usize,
    rounded: &mut Rounded<C>,
) {
    grow(&mut rounded.codes, tokens * inputs);
    rounded.ranges.clear();
    let rows = rows.chunks_exact(inputs).zip(rounded.codes.chunks_exact_mut(inputs));
    for (row, codes) in rows.take(tokens) {
        rounded.ranges.push(floats::round(row, codes));
    }
}

/// Multiply the rounded rows by a matrix. A pair of blocks meets all rows before the next, so
/// that its weights come from memory once.
#[inline(always)]
fn multiply<I: Instructions>(
    cpu: I,
    rounded: &Rounded<I::Code>,
    dense: Dense<'_>,
    output: &mut [f32],
) {
    let outputs = dense.outputs();
    for pair in 0..outputs / PAIR {
        for rows in panels(rounded.ranges.len(), I::ROWS) {
            let codes = &rounded.codes[rows.start * dense.inputs..rows.end * dense.inputs];
            let output = &mut output[rows.start * outputs..rows.end * outputs];
            let panel = Panel { codes, ranges: &rounded.ranges[rows] };
            cpu.multiply(panel, dense, pair, output);
        }
    }
}

/// Mix the values of a text's tokens by what their keys say to each query, head by head.
///
/// A row of `rows` holds the query, the key and the value of a token. Sixteen queries lie side by
/// side, so that nothing is added or compared across lanes. `WIDE` is the number of sums in lanes
/// that a kernel has registers for, four times.
#[inline(always)]
pub(crate) fn attend<const WIDE: usize>(
    rows: &[f32],
    size: usize,
    scratch: &mut HeadScratch,
    output: &mut [f32],
) {
    let tokens = output.len() / size;
    let HeadScratch { keys, values, scores } = scratch;
    let keys = &mut keys[..tokens.div_ceil(4 * WIDE) * WIDE];
    let (values, scores) = (&mut values[..tokens], &mut scores[..keys.len()]);
    for head in (0..size).step_by(HEAD) {
        lay_out(&rows[size + head..], 3 * size, keys.as_flattened_mut());
        lay_out(&rows[2 * size + head..], 3 * size, values);
        let queries = rows.chunks(LANES * 3 * size);
        for (rows, output) in queries.zip(output.chunks_mut(LANES * size)) {
            score::<WIDE>(&queries_of(rows, 3 * size, head), keys, scores);
            let scores = &mut scores.as_flattened_mut()[..tokens];
            let factors = floats::exponentials(scores).map(|sum| 1.0 / sum);
            let fours = output.chunks_mut(4 * size).zip(factors.as_chunks::<4>().0);
            for (four, (output, factors)) in fours.enumerate() {
                let mixed = mix::<WIDE>(values, scores, four);
                for ((row, mixed), factor) in output.chunks_mut(size).zip(&mixed).zip(factors) {
                    let place = &mut row[head..head + HEAD];
                    place.copy_from_slice(mixed.as_flattened());
                    floats::scale(place, *factor);
                }
            }
        }
    }
}

/// The part of a row that belongs to the head it begins with.
#[inline(always)]
fn of_head(row: &[f32]) -> &OfHead {
    row.first_chunk().expect("a head lies within a row")
}

/// Copy the parts that belong to the head with which the rows begin.
#[inline(always)]
fn lay_out(rows: &[f32], row_size: usize, places: &mut [OfHead]) {
    for (place, row) in places.iter_mut().zip(rows.chunks(row_size)) {
        *place = *of_head(row);
    }
}

/// A component of 16 queries side by side; those that are missing are 0.
#[inline(always)]
fn queries_of(rows: &[f32], row_size: usize, head: usize) -> [Lanes; HEAD] {
    let mut queries = [[0.0; LANES]; HEAD];
    for (at, row) in rows.chunks_exact(row_size).enumerate().take(LANES) {
        for (lanes, component) in queries.iter_mut().zip(of_head(&row[head..])) {
            lanes[at] = *component;
        }
    }
    queries
}

/// The products of each key and 16 queries.
#[inline(always)]
fn score<const WIDE: usize>(
    queries: &[Lanes; HEAD],
    keys: &[[OfHead; 4]],
    scores: &mut [[Lanes; 4]],
) {
    let keys = keys.as_chunks::<WIDE>().0.iter();
    for (scores, keys) in scores.as_chunks_mut::<WIDE>().0.iter_mut().zip(keys) {
        let mut sums = [[[0.0; LANES]; 4]; WIDE];
        for component in 0..HEAD {
            let query = &queries[component];
            for wide in 0..WIDE {
                for at in 0..4 {
                    let key = keys[wide][at][component];
                    for lane in 0..LANES {
                        sums[wide][at][lane] = key.mul_add(query[lane], sums[wide][at][lane]);
                    }
                }
            }
        }
        *scores = sums;
    }
}

/// The sums of all values, each times its weight for one of four queries.
#[inline(always)]
fn mix<const WIDE: usize>(
    values: &[OfHead],
    weights: &[Lanes],
    four: usize,
) -> [[Lanes; HEAD / LANES]; 4] {
    let mut mixed = [[[0.0; LANES]; HEAD / LANES]; 4];
    for first in (0..HEAD / LANES).step_by(WIDE) {
        let sums = mix_part::<WIDE>(values, weights, four, first);
        for (mixed, sums) in mixed.iter_mut().zip(&sums) {
            mixed[first..first + WIDE].copy_from_slice(sums);
        }
    }
    mixed
}

#[inline(always)]
fn mix_part<const WIDE: usize>(
    values: &[OfHead],
    weights: &[Lanes],
    four: usize,
    first: usize,
) -> [[Lanes; WIDE]; 4] {
    let mut sums = [[[0.0; LANES]; WIDE]; 4];
    for (value, weights) in values.iter().zip(weights) {
        let (value, weights) = (value.as_chunks::<LANES>().0, weights.as_chunks::<4>().0[four]);
        for at in 0..4 {
            for wide in 0..WIDE {
                let value = &value[first + wide];
                for lane in 0..LANES {
                    sums[at][wide][lane] = weights[at].mul_add(value[lane], sums[at][wide][lane]);
                }
            }
        }
    }
    sums
}
