//! Redaction of texts.

use mnemic_core::text::{PatternSource, RedactionCheck, Redactor, known_patterns};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;

use crate::errors::{InvalidArgumentError, raised, require_memory};
use crate::text::{collect, detached, utf8};

/// Bytes of a text and of the places of its matches, for each byte of the text.
const BYTES_PER_BYTE: usize = 2;

/// Name, regular expression and check of a pattern.
type Source = (String, Option<String>, Option<String>);

#[doc = stub!("redaction_names")]
#[pyfunction]
pub(crate) fn redaction_names() -> (Vec<&'static str>, Vec<&'static str>) {
    (known_patterns().collect(), RedactionCheck::names().collect())
}

#[doc = stub!("Redactor")]
#[pyclass(frozen, name = "Redactor", module = "mnemic._core")]
pub(crate) struct PyRedactor(Redactor);

#[pymethods]
impl PyRedactor {
    #[new]
    #[pyo3(signature = (patterns, replacement, /))]
    fn new(patterns: Vec<Source>, replacement: &Bound<'_, PyString>) -> PyResult<Self> {
        let replacement = utf8(replacement.clone(), || "replacement".to_owned())?;
        let sources: Vec<_> = patterns.into_iter().map(source).collect::<PyResult<_>>()?;
        Redactor::new(&sources, &replacement).map(Self).map_err(raised)
    }

    #[doc = stub!("Redactor.redact")]
    #[pyo3(signature = (text, /))]
    fn redact<'py>(&self, text: &Bound<'py, PyString>) -> PyResult<(Bound<'py, PyString>, usize)> {
        let py = text.py();
        let backed = utf8(text.clone(), || "text".to_owned())?;
        Ok(match self.redacted(py, &backed)? {
            (Some(redacted), count) => (PyString::new(py, &redacted), count),
            (None, _) => (text.clone(), 0),
        })
    }

    #[doc = stub!("Redactor.redact_batch")]
    #[pyo3(signature = (texts, /))]
    fn redact_batch<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(Bound<'py, PyString>, usize)>> {
        let py = texts.py();
        let redact = |text: PyBackedStr| {
            let (redacted, count) = self.redacted(py, &text)?;
            Ok((PyString::new(py, redacted.as_deref().unwrap_or(&text)), count))
        };
        collect(texts)?.into_iter().map(redact).collect()
    }
}

impl PyRedactor {
    /// The redacted text, None without a match, and the number of replacements.
    fn redacted(&self, py: Python<'_>, text: &str) -> PyResult<(Option<String>, usize)> {
        require_memory(text.len().saturating_mul(BYTES_PER_BYTE))?;
        let places = detached(py, text.len(), || self.0.matches(text)).map_err(raised)?;
        if places.is_empty() {
            return Ok((None, 0));
        }
        require_memory(self.0.redacted_len(text, &places).saturating_mul(BYTES_PER_BYTE))?;
        let redacted = detached(py, text.len(), || self.0.redacted(text, &places));
        Ok((Some(redacted), places.len()))
    }
}

fn source((name, regex, check): Source) -> PyResult<PatternSource> {
    let check = check.map(|check| RedactionCheck::named(&check).ok_or_else(|| unknown(&check)));
    Ok(PatternSource { name, regex, check: check.transpose()? })
}

fn unknown(check: &str) -> PyErr {
    let names: Vec<&str> = RedactionCheck::names().collect();
    let names = names.join(", ");
    InvalidArgumentError::new_err(format!("there is no check {check:?}; the checks are {names}"))
}
