//! Filters: the expression tree of `mnemic.model.filter` to the core's.
//!
//! Parsing has checked the tree; everything else is a `TypeError` here.

use mnemic_core::filter::{Field, Filter, Order, Scalar, Test};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::errors::InvalidArgumentError;

/// Levels of an expression tree. Filters that parsing lets through have 16, of three levels at most
/// each.
const MAX_DEPTH: usize = 64;

/// Read an expression tree.
pub(crate) fn read(tree: &Bound<'_, PyAny>) -> PyResult<Filter> {
    read_at(tree, 1)
}

fn read_at(tree: &Bound<'_, PyAny>, depth: usize) -> PyResult<Filter> {
    if depth > MAX_DEPTH {
        let message = format!("a filter is more than {MAX_DEPTH} levels deep");
        return Err(InvalidArgumentError::new_err(message));
    }
    let py = tree.py();
    let name = tree.get_type().name()?;
    match name.to_str()? {
        "All" => Ok(Filter::All(parts(tree, depth)?)),
        "AnyOf" => Ok(Filter::AnyOf(parts(tree, depth)?)),
        "Not" => {
            let part = read_at(&tree.getattr(intern!(py, "part"))?, depth + 1)?;
            Ok(Filter::Not(Box::new(part)))
        }
        "Test" => {
            let field = field(&tree.getattr(intern!(py, "field"))?)?;
            let op = tree.getattr(intern!(py, "op"))?.getattr(intern!(py, "value"))?;
            let test = test(op.cast()?, &tree.getattr(intern!(py, "value"))?)?;
            Ok(Filter::Test(field, test))
        }
        other => Err(unknown("expression", other)),
    }
}

fn parts(tree: &Bound<'_, PyAny>, depth: usize) -> PyResult<Vec<Filter>> {
    let parts = tree.getattr(intern!(tree.py(), "parts"))?;
    parts.try_iter()?.map(|part| read_at(&part?, depth + 1)).collect()
}

fn field(field: &Bound<'_, PyAny>) -> PyResult<Field> {
    let py = field.py();
    let name = field.getattr(intern!(py, "name"))?;
    let name = name.cast::<PyString>()?;
    let name = name.to_str()?;
    if name == "metadata" {
        let path = field.getattr(intern!(py, "path"))?;
        let (key,): (Bound<'_, PyString>,) = path.extract()?;
        return Ok(Field::Metadata(key.to_str()?.into()));
    }
    Field::named(name).ok_or_else(|| unknown("field", name))
}

fn test(op: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<Test> {
    let ordered = |order| scalar(value).map(|than| Test::Ordered(order, than));
    match op.to_str()? {
        "exists" => Ok(Test::Exists(value.extract()?)),
        "eq" => scalar(value).map(Test::Equal),
        "ne" => scalar(value).map(Test::NotEqual),
        "gt" => ordered(Order::Above),
        "gte" => ordered(Order::AtLeast),
        "lt" => ordered(Order::Below),
        "lte" => ordered(Order::AtMost),
        "in" => scalars(value).map(Test::In),
        "nin" => scalars(value).map(Test::NotIn),
        "contains" => scalar(value).map(Test::Contains),
        "any" => scalars(value).map(Test::Any),
        "all" => scalars(value).map(Test::All),
        other => Err(unknown("operator", other)),
    }
}

fn scalars(values: &Bound<'_, PyAny>) -> PyResult<Vec<Scalar>> {
    values.cast::<PyTuple>()?.iter().map(|value| scalar(&value)).collect()
}

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let py = value.py();
    if value.is_none() {
        Ok(Scalar::Null)
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(Scalar::Text(text.to_str()?.into()))
    } else if value.is_instance_of::<PyBool>() {
        value.extract().map(Scalar::Bool) // before the integers, of which it is one
    } else if value.is_instance_of::<PyInt>() {
        value.extract().map(Scalar::Int)
    } else if value.is_instance_of::<PyFloat>() {
        value.extract().map(Scalar::Float)
    } else if value.is_instance(uuid(py)?)? {
        value.getattr(intern!(py, "bytes"))?.extract().map(Scalar::Id)
    } else if value.is_instance(datetime(py)?)? {
        moment(value).map(Scalar::Moment)
    } else {
        Err(unknown("value of type", value.get_type().name()?.to_str()?))
    }
}

/// Microseconds since 1970 of an aware datetime, exactly.
fn moment(time: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = time.py();
    let since = time.sub(epoch(py)?)?;
    let part = |name| since.getattr(name)?.extract::<i64>();
    let days = part(intern!(py, "days"))?;
    let seconds = part(intern!(py, "seconds"))?;
    let microseconds = part(intern!(py, "microseconds"))?;
    // At most 10,000 years of 366 days, which is far from where an i64 ends.
    Ok((days * 86_400 + seconds) * 1_000_000 + microseconds)
}

fn uuid(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    UUID.import(py, "uuid", "UUID")
}

fn datetime(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    DATETIME.import(py, "datetime", "datetime")
}

fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = EPOCH.get_or_try_init(py, || {
        let utc = py.import("datetime")?.getattr("UTC")?;
        datetime(py)?.call1((1970, 1, 1, 0, 0, 0, 0, utc)).map(Bound::unbind)
    })?;
    Ok(made.bind(py))
}

fn unknown(what: &str, found: &str) -> PyErr {
    PyTypeError::new_err(format!("a filter has no {what} {found:?}"))
}
