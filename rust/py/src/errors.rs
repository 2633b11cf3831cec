//! The core's errors as the Python classes of `mnemic.errors`.

use mnemic_core::Error;
use pyo3::PyErr;

pyo3::import_exception!(mnemic.errors, ArrayTypeError);
pyo3::import_exception!(mnemic.errors, CountMismatchError);
pyo3::import_exception!(mnemic.errors, DimensionMismatchError);
pyo3::import_exception!(mnemic.errors, DuplicateIdError);
pyo3::import_exception!(mnemic.errors, InvalidArgumentError);
pyo3::import_exception!(mnemic.errors, KernelUnavailableError);
pyo3::import_exception!(mnemic.errors, NonFiniteVectorError);
pyo3::import_exception!(mnemic.errors, UnknownIdError);

/// The Python exception for a core error.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands the error over")]
pub(crate) fn raised(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::DimensionOutOfRange { .. }
        | Error::ThresholdIsNan { .. }
        | Error::WeightOutOfRange { .. } => InvalidArgumentError::new_err(message),
        Error::DimensionMismatch { .. } => DimensionMismatchError::new_err(message),
        Error::CountMismatch { .. } => CountMismatchError::new_err(message),
        Error::NonFinite { .. } => NonFiniteVectorError::new_err(message),
        Error::DuplicateId { .. } => DuplicateIdError::new_err(message),
        Error::UnknownId { .. } => UnknownIdError::new_err(message),
        Error::UnknownKernel { .. } | Error::UnsupportedKernel { .. } => {
            KernelUnavailableError::new_err(message)
        }
    }
}
