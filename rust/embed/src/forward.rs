//! The encoder's way from tokens to vectors, for every instruction set.
//!
//! Texts lie one behind the other without padding: all products with weights see one matrix of
//! tokens, and attention stays within a text. BERT as in Devlin et al. 2018 (arXiv 1810.04805);
//! mean pooling and unit length as in Reimers and Gurevych 2019 (arXiv 1908.10084).
#![expect(clippy::inline_always, reason = "as in `floats`")]

use std::ops::Range;

use crate::error::Error;
use crate::floats::{self, CodeRange, LANES, Sums, Unit, Vectors};
use crate::format::{CodePart, Dense, HEAD, Lanes, Layer, Model, Norm, PAIR, Part, Table, Words};
use crate::scratch::{Floats, Form, Forms, Rounded, Scratch, grow};

/// The most rows of a batch that are widened together.
const INNER_ROWS: usize = 48;

/// Rows that take a step together, so that none waits for the sums of the one before.
const GROUP: usize = 8;

/// Texts of one run.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) texts: &'a [&'a [u32]],
    /// Of all texts.
    pub(crate) tokens: usize,
}

/// The operations of one instruction set. A value exists only on CPUs with the instructions.
pub(crate) trait Instructions: Vectors {
    /// The most rows whose products it adds up together.
    const ROWS: usize;

    /// Its form of rounded rows.
    fn form(forms: &mut Forms) -> &mut Form<Self::Code>;

    /// Multiply a panel by a matrix: add up the products of codes and weights and [`finish`] them.
    fn multiply_panel(self, panel: Panel<'_, Self::Code>, dense: Dense<'_>, output: Place<'_>);

    /// [`attend`] with as many sums as there are registers for.
    fn attend(
        self,
        text: Range<usize>,
        wide: &Floats,
        scores: &mut Vec<Lanes>,
        output: &mut Floats,
    );
}

/// Rows that are multiplied together.
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a, C> {
    /// From the first part of the first row on.
    pub(crate) codes: &'a [CodePart<C>],
    /// From a part of a row to its next.
    pub(crate) distance: usize,
    pub(crate) ranges: &'a [CodeRange],
}

impl<'a, C> Panel<'a, C> {
    /// A part of each row.
    #[inline(always)]
    pub(crate) fn part<const HEIGHT: usize>(self, part: usize) -> &'a [CodePart<C>; HEIGHT] {
        let codes = self.codes[part * self.distance..].first_chunk();
        codes.expect("each row has all parts")
    }
}

/// Where the parts of a panel's rows go.
pub(crate) struct Place<'a> {
    /// From the first part of the first row on.
    pub(crate) parts: &'a mut [Part],
    /// From a part of a row to its next.
    pub(crate) distance: usize,
}

impl Place<'_> {
    /// A part of each row.
    #[inline(always)]
    fn part<const HEIGHT: usize>(&mut self, part: usize) -> &mut [Part; HEIGHT] {
        let parts = self.parts[part * self.distance..].first_chunk_mut();
        parts.expect("each row has a place for all parts")
    }
}

/// Turn the sums of the channels of a pair of blocks into floats, row by row.
#[inline(always)]
pub(crate) fn finish<I: Instructions, const HEIGHT: usize>(
    cpu: I,
    sums: &[[Sums; HEIGHT]; 2],
    panel: Panel<'_, I::Code>,
    dense: Dense<'_>,
    pair: usize,
    output: &mut Place<'_>,
) {
    let ranges: &[CodeRange; HEIGHT] = panel.ranges.first_chunk().expect("each row has a range");
    let output = output.part::<HEIGHT>(pair);
    let (scales, totals, bias) = (&dense.scales[pair], &dense.sums[pair], &dense.bias[pair]);
    for half in 0..2 {
        let (scales, totals) = (cpu.load(&scales[half]), cpu.load(&totals[half]));
        let bias = cpu.load(&bias[half]);
        for row in 0..HEIGHT {
            let (low, step) = (cpu.splat(ranges[row].low), cpu.splat(ranges[row].step));
            let sum = cpu.multiply(cpu.floats(&sums[half][row]), step);
            let base = cpu.multiply_add(low, totals, bias);
            cpu.store(cpu.multiply_add(sum, scales, base), &mut output[row][half]);
        }
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
    scratch.hidden.fit(batch.tokens, model.sizes.hidden);
    I::form(&mut scratch.forms).rows.fit(batch.tokens, model.sizes.hidden);
    embed(cpu, model.words(), batch, scratch);
    for number in 0..model.sizes.layers {
        if is_over() {
            return Err(Error::Interrupted);
        }
        let layer = model.layer(number);
        attention(cpu, layer, batch, scratch);
        feed_forward(cpu, layer, batch.tokens, scratch);
    }
    pool(cpu, batch, &scratch.hidden, vectors);
    if let Some(projection) = model.projection() {
        project(cpu, projection, batch.texts.len(), scratch, vectors);
    }
    Ok(())
}

#[inline(always)]
fn embed<I: Instructions>(cpu: I, words: Words<'_>, batch: Batch<'_>, scratch: &mut Scratch) {
    let Scratch { hidden, narrow, forms, .. } = scratch;
    let size = words.norm.gain.len();
    let mut first = 0;
    for text in batch.texts {
        narrow.fit(text.len(), size * PAIR);
        for (at, token) in text.iter().enumerate() {
            let token = *token as usize;
            let row = hidden.row_mut(first + at);
            match words.table {
                Table::Bytes(codes, scales) => {
                    let codes = codes[token * size..][..size].iter().copied();
                    floats::widen(cpu, codes.zip(std::iter::repeat(scales[token])), row);
                }
                Table::Nibbles(codes, scales) => {
                    let (codes, scales) = (&codes[token * size..], &scales[token * size..]);
                    let codes = codes[..size].iter().map(from_nibbles);
                    floats::widen(cpu, codes.zip(scales.iter().copied()), row);
                }
            }
            for (place, part) in narrow.row_mut(at).zip(&words.positions[at * size..]) {
                *place = *part;
            }
        }
        let rows = first..first + text.len();
        add_and_normalise(cpu, hidden, rows, narrow, words.norm, &mut I::form(forms).rows);
        first += text.len();
    }
}

/// Codes of 4 bits as those of 8.
#[inline(always)]
fn from_nibbles(nibbles: &[u8; PAIR / 2]) -> [i8; PAIR] {
    std::array::from_fn(|at| {
        let byte = nibbles[at % (PAIR / 2)];
        (if at < PAIR / 2 { byte & 15 } else { byte >> 4 }) as i8 - 8
    })
}

/// The mean over the tokens of each text, made unit length.
#[inline(always)]
fn pool<I: Instructions>(cpu: I, batch: Batch<'_>, hidden: &Floats, vectors: &mut [f32]) {
    let size = vectors.len() / batch.texts.len();
    let mut first = 0;
    for (text, vector) in batch.texts.iter().zip(vectors.chunks_exact_mut(size)) {
        let parts = (0..size / PAIR).map(|part| &hidden.part(part)[first..][..text.len()]);
        floats::pool(cpu, parts, vector);
        first += text.len();
    }
}

/// Multiply the vectors by a matrix, and make them unit length again.
#[inline(always)]
fn project<I: Instructions>(
    cpu: I,
    projection: Dense<'_>,
    texts: usize,
    scratch: &mut Scratch,
    vectors: &mut [f32],
) {
    let Scratch { hidden, narrow, forms, .. } = scratch;
    let rows = &mut I::form(forms).rows;
    let size = vectors.len() / texts;
    hidden.fit(texts, size);
    rows.fit(texts, size);
    for (text, vector) in vectors.chunks_exact(size).enumerate() {
        for (place, part) in hidden.row_mut(text).zip(vector.as_chunks::<PAIR>().0) {
            *place = bytemuck::cast(*part);
        }
        rows.ranges[text] = floats::range(cpu, hidden.row(text));
    }
    round(cpu, hidden, 0..texts, rows);
    multiply(cpu, rows, 0..texts, projection, narrow);
    for (text, vector) in vectors.chunks_exact_mut(size).enumerate() {
        floats::pool(cpu, narrow.row(text).map(std::slice::from_ref), vector);
    }
}

#[inline(always)]
fn attention<I: Instructions>(cpu: I, layer: Layer<'_>, batch: Batch<'_>, scratch: &mut Scratch) {
    let Scratch { hidden, wide, narrow, scores, forms } = scratch;
    let Form { rows, inner } = I::form(forms);
    let (tokens, size) = (batch.tokens, layer.mixing.inputs);
    multiply(cpu, rows, 0..tokens, layer.attention, wide);
    narrow.fit(tokens, size);
    let mut first = 0;
    for text in batch.texts {
        cpu.attend(first..first + text.len(), wide, scores, narrow);
        first += text.len();
    }
    inner.fit(tokens, size);
    for rows in panels(tokens, GROUP) {
        for row in rows.clone() {
            inner.ranges[row] = floats::range(cpu, narrow.row(row));
        }
        round(cpu, narrow, rows, inner);
    }
    multiply(cpu, inner, 0..tokens, layer.mixing, narrow);
    add_and_normalise(cpu, hidden, 0..tokens, narrow, layer.attention_norm, rows);
}

/// A few rows go through both matrices before the next, so that the inner rows stay in the cache.
#[inline(always)]
fn feed_forward<I: Instructions>(cpu: I, layer: Layer<'_>, tokens: usize, scratch: &mut Scratch) {
    let Scratch { hidden, wide, narrow, forms, .. } = scratch;
    let Form { rows, inner } = I::form(forms);
    for some in panels(tokens, INNER_ROWS) {
        multiply(cpu, rows, some.clone(), layer.widening, wide);
        inner.fit(some.len(), layer.narrowing.inputs);
        for rows in panels(some.len(), GROUP) {
            for row in rows.clone() {
                inner.ranges[row] = floats::gelu(cpu, wide.row_mut(row));
            }
            round(cpu, wide, rows, inner);
        }
        multiply(cpu, inner, 0..some.len(), layer.narrowing, narrow);
        add_and_normalise(cpu, hidden, some, narrow, layer.norm, rows);
    }
}

/// Add to some of the rows, normalise and round them.
#[inline(always)]
fn add_and_normalise<I: Vectors>(
    cpu: I,
    hidden: &mut Floats,
    some: Range<usize>,
    more: &Floats,
    norm: Norm<'_>,
    rounded: &mut Rounded<I::Code>,
) {
    for rows in panels(some.len(), GROUP) {
        let mut units = [Unit::NONE; GROUP];
        let (first, rows) = (rows.start, some.start + rows.start..some.start + rows.end);
        for (at, unit) in units[..rows.len()].iter_mut().enumerate() {
            *unit = floats::add(cpu, hidden.row_mut(rows.start + at), more.row(first + at));
        }
        for (row, unit) in rows.clone().zip(units) {
            rounded.ranges[row] = floats::normalise(cpu, hidden.row_mut(row), unit, norm);
        }
        round(cpu, hidden, rows, rounded);
    }
}

/// Round some rows to their ranges.
#[inline(always)]
fn round<I: Vectors>(cpu: I, rows: &Floats, some: Range<usize>, rounded: &mut Rounded<I::Code>) {
    for row in some {
        floats::round(cpu, rows.row(row), rounded.ranges[row], rounded.codes.row_mut(row));
    }
}

/// How rows are cut into panels of nearly one height.
#[inline(always)]
fn panels(rows: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = rows.div_ceil(most).max(1);
    let (height, higher) = (rows / count, rows % count);
    let start = move |at: usize| at * height + at.min(higher);
    (0..count).map(move |at| start(at)..start(at + 1))
}

/// Multiply some rounded rows by a matrix. A panel's codes stay in the first level of the cache,
/// and the weights of a small model's matrix in the second.
#[inline(always)]
fn multiply<I: Instructions>(
    cpu: I,
    rounded: &Rounded<I::Code>,
    some: Range<usize>,
    dense: Dense<'_>,
    output: &mut Floats,
) {
    output.fit(some.len(), dense.scales.len() * PAIR);
    let (codes, distance) = (rounded.codes.part(0), rounded.codes.distance());
    for rows in panels(some.len(), I::ROWS) {
        let first = some.start + rows.start;
        let ranges = &rounded.ranges[first..][..rows.len()];
        let panel = Panel { codes: &codes[first..], distance, ranges };
        let place = Place { distance: output.distance(), parts: output.parts_from(rows.start) };
        cpu.multiply_panel(panel, dense, place);
    }
}

/// Mix the values of a text's tokens by what their keys say to each query, head by head.
///
/// A row of `wide` holds the query, the key and the value of a token. Sixteen queries lie side by
/// side, so that nothing is added or compared across lanes. `FOURS` of keys are scored together and
/// `HALVES` of four outputs mixed, as many as a kernel has registers for.
#[inline(always)]
pub(crate) fn attend<I: Vectors, const FOURS: usize, const HALVES: usize>(
    cpu: I,
    text: Range<usize>,
    wide: &Floats,
    scores: &mut Vec<Lanes>,
    output: &mut Floats,
) {
    let (tokens, heads) = (text.len(), output.width());
    // Keys are taken by the four.
    let padded = tokens.next_multiple_of(4);
    grow(scores, padded);
    for head in 0..heads {
        let queries = &wide.part(head)[text.clone()];
        let keys = &wide.part(heads + head)[text.start..][..padded];
        let values = &wide.part(2 * heads + head)[text.clone()];
        let output = &mut output.part_mut(head)[text.clone()];
        for (queries, output) in queries.chunks(LANES).zip(output.chunks_mut(LANES)) {
            let queries = turned(cpu, queries);
            let scores = &mut scores[..padded];
            for fours in panels(padded / 4, FOURS) {
                let some = 4 * fours.start..4 * fours.end;
                let (keys, scores) = (&keys[some.clone()], &mut scores[some]);
                match fours.len() {
                    1 => score::<I, 4>(cpu, &queries, keys, scores),
                    2 => score::<I, 8>(cpu, &queries, keys, scores),
                    3 => score::<I, 12>(cpu, &queries, keys, scores),
                    _ => score::<I, 16>(cpu, &queries, keys, scores),
                }
            }
            let scores = &mut scores[..tokens];
            let factors = Lanes(floats::exponentials(scores).map(|sum| 1.0 / sum));
            let fours = output.chunks_mut(4).zip(factors.as_chunks::<4>().0);
            for (four, (output, factors)) in fours.enumerate() {
                for first in (0..2).step_by(HALVES) {
                    let mixed = mix::<I, HALVES>(cpu, values, scores, four, first);
                    for ((place, mixed), factor) in output.iter_mut().zip(mixed).zip(factors) {
                        for (half, values) in mixed.into_iter().enumerate() {
                            let values = cpu.multiply(values, cpu.splat(*factor));
                            cpu.store(values, &mut place[first + half]);
                        }
                    }
                }
            }
        }
    }
}

/// A component of 16 queries side by side; those that are missing are 0.
#[inline(always)]
fn turned<I: Vectors>(cpu: I, queries: &[Part]) -> [Lanes; HEAD] {
    let mut turned = [Lanes::ZERO; HEAD];
    for (half, turned) in turned.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let mut rows = [cpu.splat(0.0); LANES];
        for (row, query) in rows.iter_mut().zip(queries) {
            *row = cpu.load(&query[half]);
        }
        let columns = floats::transposed(cpu, rows);
        for at in 0..LANES {
            cpu.store(columns[at], &mut turned[at]);
        }
    }
    turned
}

/// The products of each key and 16 queries.
#[inline(always)]
fn score<I: Vectors, const KEYS: usize>(
    cpu: I,
    queries: &[Lanes; HEAD],
    keys: &[Part],
    scores: &mut [Lanes],
) {
    let keys: &[Part; KEYS] = keys.first_chunk().expect("callers count the keys");
    let mut sums = [cpu.splat(0.0); KEYS];
    let keys: [&[f32; HEAD]; KEYS] = keys.each_ref().map(bytemuck::cast_ref);
    for (component, query) in queries.iter().enumerate() {
        let query = cpu.load(query);
        for (sum, key) in sums.iter_mut().zip(keys) {
            *sum = cpu.multiply_add(cpu.splat(key[component]), query, *sum);
        }
    }
    for (sum, place) in sums.into_iter().zip(scores) {
        cpu.store(sum, place);
    }
}

/// Halves of the sums of all values, each times its weight for one of four queries.
#[inline(always)]
fn mix<I: Vectors, const HALVES: usize>(
    cpu: I,
    values: &[Part],
    weights: &[Lanes],
    four: usize,
    first: usize,
) -> [[I::Vector; HALVES]; 4] {
    let mut sums = [[cpu.splat(0.0); HALVES]; 4];
    for (value, weights) in values.iter().zip(weights) {
        let weights = weights.as_chunks::<4>().0[four];
        for half in 0..HALVES {
            let value = cpu.load(&value[first + half]);
            for at in 0..4 {
                sums[at][half] = cpu.multiply_add(cpu.splat(weights[at]), value, sums[at][half]);
            }
        }
    }
    sums
}
