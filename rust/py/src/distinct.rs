//! Distinct values of a field, as Python has them.

use mnemic_core::columns::DistinctValues;
use mnemic_core::filter::Operand;
use mnemic_core::system::memory_budget::try_with_capacity;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::raised;
use crate::filter;
use crate::matching::for_each_batch;

/// Values and the numbers of their memories.
type Page<'py> = Vec<(Bound<'py, PyAny>, usize)>;

#[doc = stub!("distinct_values")]
#[pyfunction]
#[pyo3(signature = (filter, batches, field, prefix, offset, limit, /))]
pub(crate) fn distinct_values<'py>(
    filter: &Bound<'py, PyAny>,
    batches: &Bound<'py, PyAny>,
    field: &Bound<'py, PyAny>,
    prefix: Option<&str>,
    offset: usize,
    limit: usize,
) -> PyResult<Page<'py>> {
    let (py, filter) = (filter.py(), filter::read(filter)?);
    let mut values = DistinctValues::new(filter::field(field)?, prefix);
    for records in batches.try_iter()? {
        for_each_batch(records?.cast::<PyList>()?, |batch| {
            py.detach(|| values.add(&filter, batch)).map_err(raised)
        })?;
    }
    page_of(py, &values, offset, limit)
}

pub(crate) fn page_of<'py>(
    py: Python<'py>,
    values: &DistinctValues,
    offset: usize,
    limit: usize,
) -> PyResult<Page<'py>> {
    let found = values.page(offset, limit);
    let mut page = try_with_capacity(found.len()).map_err(raised)?;
    for (value, count) in &found {
        page.push((json(py, value)?, *count));
    }
    Ok(page)
}

/// A JSON value as Python has it.
fn json<'py>(py: Python<'py>, value: &Operand) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Operand::Bool(value) => Ok(value.into_pyobject(py)?.to_owned().into_any()),
        Operand::Int(whole) => Ok(whole.into_pyobject(py)?.into_any()),
        Operand::Float(float) | Operand::After(float) => Ok(float.into_pyobject(py)?.into_any()),
        Operand::Text(text) => Ok((**text).into_pyobject(py)?.into_any()),
        Operand::List(items) => {
            let items = items.iter().map(|item| json(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Operand::Object(entries) => {
            let object = PyDict::new(py);
            for (key, value) in entries {
                object.set_item(&**key, json(py, value)?)?;
            }
            Ok(object.into_any())
        }
        // No JSON value is an id or a moment.
        Operand::Null | Operand::Id(_) | Operand::Moment(_) => Ok(py.None().into_bound(py)),
    }
}
