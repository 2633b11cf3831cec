//! Texts made harmless for a prompt, as Python passes them.

use mnemic_core::text::neutralise;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::require_memory;
use crate::text::{collect, detached, total_length};

/// Three copies: one without invisible characters, one rewritten, and capacity to grow.
const COPIES: usize = 8;

#[doc = stub!("neutralise_batch")]
#[pyfunction]
#[pyo3(signature = (texts, /))]
pub(crate) fn neutralise_batch<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = texts.py();
    let texts = collect(texts)?;
    let length = total_length(&texts);
    require_memory(length.saturating_mul(COPIES))?;
    let work = || texts.iter().map(|text| neutralise(text)).collect::<Vec<_>>();
    PyList::new(py, detached(py, length, work))
}
