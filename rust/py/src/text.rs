//! Folding, fingerprints, dates and token estimates of texts.

use std::ops::Deref;

use mnemic_core::system::memory_budget::of_folding;
use mnemic_core::text::{
    Analyser, Analysis, Coverage, Language, date_ranges as core_date_ranges, detect, display_id,
    estimate_tokens as core_estimate_tokens, fingerprint as core_fingerprint, fingerprints,
    fold as core_fold, tokens as core_tokens,
};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::errors::{InvalidArgumentError, raised, require_memory};

/// A digest, and a reference to the digested text.
const BYTES_PER_TEXT: usize = 256;

/// From this many bytes on, the work takes longer than detaching from the interpreter.
const DETACH_BYTES: usize = 2048;

#[doc = stub!("Coverage")]
#[pyclass(frozen, name = "Coverage", module = "mnemic._core")]
pub(crate) struct PyCoverage(pub(crate) Coverage);

#[pymethods]
impl PyCoverage {
    #[new]
    #[pyo3(signature = (languages, /))]
    fn new(languages: Vec<String>) -> PyResult<Self> {
        Coverage::of(&languages).map(Self).map_err(raised)
    }

    #[doc = stub!("Coverage.max_share")]
    #[pyo3(signature = (text, /))]
    fn max_share(&self, text: Text) -> f64 {
        self.0.max_share(&text)
    }

    #[doc = stub!("Coverage.covers")]
    #[pyo3(signature = (text, /))]
    fn covers(&self, text: Text) -> bool {
        self.0.covers(&text)
    }
}

#[doc = stub!("fingerprint")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn fingerprint(py: Python<'_>, text: Text) -> PyResult<String> {
    require_memory(of_folding(&text))?;
    Ok(display_id(&detached(py, text.len(), || core_fingerprint(&text))))
}

#[doc = stub!("fingerprint_digests")]
#[pyfunction]
#[pyo3(signature = (texts, /))]
pub(crate) fn fingerprint_digests<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = texts.py();
    let texts = collect(texts)?;
    let longest = texts.iter().map(|text| of_folding(text)).max().unwrap_or(0);
    require_memory(longest.saturating_add(texts.len().saturating_mul(BYTES_PER_TEXT)))?;
    let digests = detached(py, total_length(&texts), || fingerprints(&texts));
    PyList::new(py, digests.iter().map(|digest| PyBytes::new(py, digest)))
}

#[doc = stub!("fold")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn fold(py: Python<'_>, text: Text) -> PyResult<String> {
    require_memory(of_folding(&text))?;
    Ok(detached(py, text.len(), || core_fold(&text)))
}

#[doc = stub!("detect_language")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn detect_language(text: Text) -> PyResult<Option<&'static str>> {
    require_memory(of_folding(&text))?;
    Ok(detect(&text).map(Language::code))
}

#[doc = stub!("tokens")]
#[pyfunction]
#[pyo3(signature = (text, /, language = "en"), text_signature = "(text, /, language='en')")]
pub(crate) fn tokens(text: Text, language: Option<&str>) -> PyResult<Vec<String>> {
    require_memory(of_folding(&text))?;
    let analysis = match analyser_of(language)? {
        Analyser::Fixed(analysis) => analysis,
        Analyser::Detecting => Analysis { language: detect(&text).or(Some(Language::English)) },
    };
    Ok(core_tokens(&text, &analysis))
}

/// The analyser of a code, or of words as they are written.
pub(crate) fn analyser_of(language: Option<&str>) -> PyResult<Analyser> {
    let plain = Analyser::Fixed(Analysis { language: None });
    language.map_or(Ok(plain), Analyser::of).map_err(raised)
}

#[doc = stub!("date_ranges")]
#[pyfunction]
#[pyo3(signature = (text, /, now, newest=None))]
pub(crate) fn date_ranges(text: Text, now: i64, newest: Option<i64>) -> Vec<(i64, i64)> {
    let ranges = core_date_ranges(&text, now, &|| newest);
    ranges.iter().map(|range| (range.start, range.end)).collect()
}

#[doc = stub!("estimate_tokens")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn estimate_tokens(py: Python<'_>, text: Text) -> usize {
    detached(py, text.len(), || core_estimate_tokens(&text))
}

/// Do work on so many bytes of text, with the interpreter detached if they are many.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    if bytes < DETACH_BYTES { work() } else { py.detach(work) }
}

/// The bytes of all texts.
pub(crate) fn total_length(texts: &[PyBackedStr]) -> usize {
    texts.iter().map(|text| text.len()).sum()
}

/// The texts of an iterable of str.
pub(crate) fn collect(texts: &Bound<'_, PyAny>) -> PyResult<Vec<PyBackedStr>> {
    if texts.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("texts must be an iterable of str, not one str"));
    }
    let item = |(index, text): (usize, PyResult<Bound<'_, PyAny>>)| {
        utf8(as_str(text?, index)?, || format!("texts[{index}]"))
    };
    texts.try_iter()?.enumerate().map(item).collect()
}

fn as_str(text: Bound<'_, PyAny>, index: usize) -> PyResult<Bound<'_, PyString>> {
    text.cast_into().map_err(|error| {
        let type_name = error.into_inner().get_type().name();
        type_name.map_or_else(
            |error| error,
            |name| PyTypeError::new_err(format!("texts[{index}] must be str, not {name}")),
        )
    })
}

/// The argument `text` of a function.
pub(crate) struct Text(PyBackedStr);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl FromPyObject<'_, '_> for Text {
    type Error = PyErr;

    fn extract(text: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        utf8(text.cast::<PyString>()?.to_owned(), || "text".to_owned()).map(Self)
    }
}

/// Borrow the UTF-8 of a Python string, which keeps it from then on.
pub(crate) fn utf8(
    text: Bound<'_, PyString>,
    name: impl FnOnce() -> String,
) -> PyResult<PyBackedStr> {
    let py = text.py();
    PyBackedStr::try_from(text).map_err(|error| lone_surrogate(py, error, name))
}

fn lone_surrogate(py: Python<'_>, error: PyErr, name: impl FnOnce() -> String) -> PyErr {
    let Ok(position) = error.value(py).getattr(intern!(py, "start")) else {
        return error;
    };
    let message = format!("{} has a lone surrogate at position {position}", name());
    let invalid = InvalidArgumentError::new_err(message);
    invalid.set_cause(py, Some(error));
    invalid
}
