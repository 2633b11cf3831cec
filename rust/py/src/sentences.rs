//! Sentences and Markdown blocks of texts, and texts cut to some sentences, tokens or characters.

use std::borrow::Cow;
use std::ops::Range;

use mnemic_core::text::{
    Block, clip, markdown_blocks as core_markdown_blocks, passage as core_passage,
    sentences as core_sentences, truncate as core_truncate,
    truncate_to_tokens as core_truncate_to_tokens,
};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::errors::{InvalidArgumentError, require_memory};
use crate::text::{Text, collect, detached, total_length, utf8};

/// A tuple of two ints, and its place in a list.
const BYTES_PER_SENTENCE: usize = 128;

/// What a parser of Markdown keeps for each byte: 72 where every line is a heading.
const BYTES_PER_MARK: usize = 128;

#[doc = stub!("sentences")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn sentences(py: Python<'_>, text: Text) -> PyResult<Vec<(usize, usize)>> {
    let places = detached(py, text.len(), || places_in_characters(&text));
    require_memory(places.len().saturating_mul(BYTES_PER_SENTENCE))?;
    Ok(places)
}

fn places_in_characters(text: &str) -> Vec<(usize, usize)> {
    if text.is_ascii() {
        return core_sentences(text).map(|Range { start, end }| (start, end)).collect();
    }
    let (mut at, mut characters) = (0, 0);
    let mut characters_up_to = |place: usize| {
        characters += text[at..place].chars().count();
        at = place;
        characters
    };
    core_sentences(text)
        .map(|place| (characters_up_to(place.start), characters_up_to(place.end)))
        .collect()
}

#[doc = stub!("passage")]
#[pyfunction]
#[pyo3(signature = (text, query, max_tokens, near=None, /))]
pub(crate) fn passage(
    py: Python<'_>,
    text: Text,
    query: Bound<'_, PyString>,
    max_tokens: i64,
    near: Option<(usize, usize)>,
) -> PyResult<(usize, usize, Vec<String>)> {
    let max_tokens = at_least("max_tokens", max_tokens, 1)?;
    let query = utf8(query, || "query".to_owned())?;
    let found = || {
        let byte = |place| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
        let near = near.map_or(0..text.len(), |(start, end)| byte(start)..byte(end));
        let found = core_passage(&text, &query, max_tokens, near);
        let start = text[..found.span.start].chars().count();
        (start, start + text[found.span].chars().count(), found.words)
    };
    Ok(detached(py, text.len(), found))
}

#[doc = stub!("markdown_blocks")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn markdown_blocks(py: Python<'_>, text: Text) -> PyResult<Vec<(usize, u8, String)>> {
    require_memory(text.len().saturating_mul(BYTES_PER_MARK))?;
    Ok(py.detach(|| blocks_in_characters(&text)))
}

fn blocks_in_characters(text: &str) -> Vec<(usize, u8, String)> {
    let (mut at, mut characters) = (0, 0);
    core_markdown_blocks(text)
        .into_iter()
        .map(|Block { start, level, title }| {
            characters += text[at..start].chars().count();
            at = start;
            (characters, level, title)
        })
        .collect()
}

#[doc = stub!("clip_sentences")]
#[pyfunction]
#[pyo3(signature = (text, max_sentences, /))]
pub(crate) fn clip_sentences(
    text: Bound<'_, PyString>,
    max_sentences: i64,
) -> PyResult<Bound<'_, PyString>> {
    let max_sentences = at_least("max_sentences", max_sentences, 1)?;
    shortened(text, |text| clip(text, max_sentences))
}

#[doc = stub!("clip_sentences_batch")]
#[pyfunction]
#[pyo3(signature = (texts, max_sentences, /))]
pub(crate) fn clip_sentences_batch<'py>(
    texts: &Bound<'py, PyAny>,
    max_sentences: i64,
) -> PyResult<Bound<'py, PyList>> {
    let py = texts.py();
    let max_sentences = at_least("max_sentences", max_sentences, 1)?;
    let texts = collect(texts)?;
    let clipped = || texts.iter().map(|text| owned(clip(text, max_sentences))).collect();
    let clipped: Vec<Option<String>> = detached(py, total_length(&texts), clipped);
    let items = texts.iter().zip(clipped).map(|(text, clipped)| match clipped {
        Some(clipped) => PyString::new(py, &clipped).into_any(),
        None => text.as_py_str().bind(py).clone().into_any(),
    });
    PyList::new(py, items.collect::<Vec<_>>())
}

#[doc = stub!("truncate_to_tokens")]
#[pyfunction]
#[pyo3(signature = (text, max_tokens, /))]
pub(crate) fn truncate_to_tokens(
    text: Bound<'_, PyString>,
    max_tokens: i64,
) -> PyResult<Bound<'_, PyString>> {
    let max_tokens = at_least("max_tokens", max_tokens, 0)?;
    shortened(text, |text| core_truncate_to_tokens(text, max_tokens))
}

#[doc = stub!("truncate")]
#[pyfunction]
#[pyo3(signature = (text, max_characters, /))]
pub(crate) fn truncate(
    text: Bound<'_, PyString>,
    max_characters: i64,
) -> PyResult<Bound<'_, PyString>> {
    let max_characters = at_least("max_characters", max_characters, 0)?;
    shortened(text, |text| core_truncate(text, max_characters))
}

fn at_least(name: &str, number: i64, minimum: usize) -> PyResult<usize> {
    usize::try_from(number).ok().filter(|number| *number >= minimum).ok_or_else(|| {
        InvalidArgumentError::new_err(format!("{name} must be at least {minimum}, got {number}"))
    })
}

/// The result of a function of a text: the same object if the text stays as it is.
fn shortened<'py>(
    text: Bound<'py, PyString>,
    shorten: impl for<'t> Fn(&'t str) -> Cow<'t, str> + Send + Sync,
) -> PyResult<Bound<'py, PyString>> {
    let py = text.py();
    let borrowed = utf8(text.clone(), || "text".to_owned())?;
    let shorter = detached(py, borrowed.len(), || owned(shorten(&borrowed)));
    Ok(shorter.map_or(text, |shorter| PyString::new(py, &shorter)))
}

fn owned(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}
