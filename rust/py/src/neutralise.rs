//! Texts made harmless for a prompt, as Python passes them.

use std::borrow::Cow;

use mnemic_core::text::neutralise as core_neutralise;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::errors::require_memory;
use crate::text::{collect, detached, total_length, utf8};

/// Three copies: one without invisible characters, one rewritten, and capacity to grow.
const COPIES: usize = 8;

#[doc = stub!("neutralise")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn neutralise<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
    let py = text.py();
    let given = utf8(text.clone(), || "text".to_owned())?;
    require_memory(given.len().saturating_mul(COPIES))?;
    Ok(match detached(py, given.len(), || core_neutralise(&given)) {
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
    let length = total_length(&texts);
    require_memory(length.saturating_mul(COPIES))?;
    let work = || texts.iter().map(|text| core_neutralise(text)).collect::<Vec<_>>();
    PyList::new(py, detached(py, length, work))
}
