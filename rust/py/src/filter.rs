//! Placeholder until merged.
use mnemic_core::filter::Filter;
use pyo3::prelude::*;
pub(crate) fn read(_tree: &Bound<'_, PyAny>) -> PyResult<Filter> {
    Ok(Filter::All(Vec::new()))
}
