//! The core's errors as the Python classes of `mnemic.errors`.

use std::io;
use std::path::Path;

use mnemic_core::Error;
use mnemic_core::system::memory_budget::headroom;
use pyo3::exceptions::{PyException, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

pyo3::import_exception!(mnemic.errors, ArrayTypeError);
pyo3::import_exception!(mnemic.errors, CountMismatchError);
pyo3::import_exception!(mnemic.errors, DeadlineExceededError);
pyo3::import_exception!(mnemic.errors, DimensionMismatchError);
pyo3::import_exception!(mnemic.errors, DuplicateIdError);
pyo3::import_exception!(mnemic.errors, EmbeddingError);
pyo3::import_exception!(mnemic.errors, InvalidArgumentError);
pyo3::import_exception!(mnemic.errors, KernelUnavailableError);
pyo3::import_exception!(mnemic.errors, NonFiniteVectorError);
pyo3::import_exception!(mnemic.errors, OutOfMemoryError);
pyo3::import_exception!(mnemic.errors, RedactionBudgetError);
pyo3::import_exception!(mnemic.errors, UnknownIdError);
pyo3::import_exception!(mnemic.errors, VectorFileDamagedError);
pyo3::import_exception!(mnemic.errors, VectorFileError);

/// The Python exception for a core error.
pub(crate) fn raised(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::DimensionOutOfRange { .. }
        | Error::InvalidPattern { .. }
        | Error::InvalidTokenizer { .. }
        | Error::MissingToken { .. }
        | Error::ThresholdIsNan { .. }
        | Error::NoStemmer { .. }
        | Error::ScoreIsNan { .. }
        | Error::ShareOutOfRange { .. }
        | Error::UnknownLanguage { .. }
        | Error::WeightOutOfRange { .. } => InvalidArgumentError::new_err(message),
        Error::DimensionMismatch { .. } => DimensionMismatchError::new_err(message),
        Error::CountMismatch { .. } => CountMismatchError::new_err(message),
        Error::NonFinite { .. } => NonFiniteVectorError::new_err(message),
        Error::DuplicateId { .. } => DuplicateIdError::new_err(message),
        Error::UnknownId { .. } => UnknownIdError::new_err(message),
        Error::OutOfMemory { .. } => OutOfMemoryError::new_err(message),
        Error::RedactionBudget { .. } => RedactionBudgetError::new_err(message),
        Error::FileUnreadable { errno, .. } | Error::FileUnwritable { errno, .. } => {
            VectorFileError::new_err((message, errno))
        }
        Error::SnapshotInvalid { .. } => VectorFileDamagedError::new_err(message),
        Error::DeadlineExceeded => DeadlineExceededError::new_err(()),
        Error::UnknownKernel { .. } | Error::UnsupportedKernel { .. } => {
            KernelUnavailableError::new_err(message)
        }
    }
}

/// The `OSError` that Python raises for an error of the system, with its number, words and path. A
/// path that no system call can be given is a `ValueError`, as in Python.
pub(crate) fn system_error(error: io::Error, path: Option<&Path>) -> PyErr {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default().to_owned();
    match error.raw_os_error() {
        Some(number) if cfg!(unix) => {
            PyOSError::new_err((number, words, path.map(|path| path.as_os_str().to_owned())))
        }
        _ if error.kind() == io::ErrorKind::InvalidInput => PyValueError::new_err(words),
        _ => error.into(),
    }
}

/// Make sure that so many bytes can be had, before work that would end the process without them.
pub(crate) fn require_memory(bytes: usize) -> PyResult<()> {
    headroom(bytes).map_err(raised)
}

/// The cause of a failed conversion: an interruption or a lack of memory instead of the `TypeError`
/// that `PyO3` raises for every error of a field.
pub(crate) fn root(py: Python<'_>, error: PyErr) -> PyErr {
    let mut cause = error.cause(py);
    while let Some(found) = cause {
        if passes(py, &found) {
            return found;
        }
        cause = found.cause(py);
    }
    error
}

/// Whether an error is free of the converted value.
pub(crate) fn passes(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py)
}
