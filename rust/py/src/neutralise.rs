//! Texts made harmless for a prompt, as Python passes them.

use std::borrow::Cow;

use mnemic_core::text::neutralise as core_neutralise;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::errors::require_memory;
use crate::text::{DETACH_BYTES, collect, utf8};

/// Three copies: one without invisible characters, one rewritten, and capacity to grow.
const COPIES: usize = 8;

#[doc = stub!("neutralise")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn neutralise<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
    let py = text.py();
    let given = utf8(text.clone(), || "text".to_owned())?;
    require_memory(given.len().saturating_mul(COPIES))?;
    let work = || core_neutralise(&given);
    Ok(match if given.len() < DETACH_BYTES { work() } else { py.detach(work) } {
        Cow::Borrowed(_) => text.clone(),
        Cow::Owned(line) => PyString::new(py, &line),
    })
}

#[doc = stub!("neutralise_batch")]
#[pyfunction]
#[pyo3(signature = (texts, /))]
pub(crate) fn neutralise_batch<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = texts.py();
    let texts = collect(texts)?;
    let length = texts.iter().map(|text| text.len()).sum::<usize>();
    require_memory(length.saturating_mul(COPIES))?;
    let work = || texts.iter().map(|text| core_neutralise(text)).collect::<Vec<_>>();
    let lines = if length < DETACH_BYTES { work() } else { py.detach(work) };
    PyList::new(py, lines)
}
