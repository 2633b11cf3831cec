//! Texts that repeat earlier ones, as Python passes them.

use mnemic_core::system::memory_budget::of_folding;
use mnemic_core::text::duplicates as core_duplicates;
use pyo3::prelude::*;

use crate::errors::{raised, require_memory};
use crate::text::{collect, detached, total_length};

/// For each byte of a text: its trigrams in a list, in a table and in the lists of their texts.
const BYTES_PER_TRIGRAM: usize = 64;

#[doc = stub!("duplicates")]
#[pyfunction]
#[pyo3(signature = (texts, /, near=None))]
pub(crate) fn duplicates(texts: &Bound<'_, PyAny>, near: Option<f64>) -> PyResult<Vec<usize>> {
    let py = texts.py();
    let texts = collect(texts)?;
    let length = total_length(&texts);
    let longest = texts.iter().map(|text| of_folding(text)).max().unwrap_or(0);
    let per_byte = if near.is_some() { BYTES_PER_TRIGRAM } else { 2 };
    require_memory(longest.saturating_add(length.saturating_mul(per_byte)))?;
    detached(py, length, || core_duplicates(&texts, near)).map_err(raised)
}
