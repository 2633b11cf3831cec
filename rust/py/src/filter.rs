//! Filters: the expression tree of `mnemic.model.filter` to the core's.
//!
//! Parsing has checked the tree; everything else is a `TypeError` here.

use std::cmp::Ordering;

use mnemic_core::filter::{Field, Filter, Operand, Order, Test};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::errors::InvalidArgumentError;

/// Levels of an expression tree. Filters that parsing lets through have 16, of three levels at most
/// each.
const MAX_DEPTH: usize = 64;

/// Levels of a value: metadata has as many.
const MAX_VALUE_DEPTH: usize = 64;

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

pub(crate) fn field(field: &Bound<'_, PyAny>) -> PyResult<Field> {
    let py = field.py();
    let name = field.getattr(intern!(py, "name"))?;
    let name = name.cast::<PyString>()?;
    let name = name.to_str()?;
    if name == "metadata" {
        let path = field.getattr(intern!(py, "path"))?;
        return path_of(&path).map(Field::Metadata);
    }
    Field::named(name).ok_or_else(|| unknown("field", name))
}

/// Keys that lead into the metadata, at least one.
fn path_of(path: &Bound<'_, PyAny>) -> PyResult<Box<[Box<str>]>> {
    let keys = path.cast::<PyTuple>()?;
    if keys.is_empty() {
        return Err(PyTypeError::new_err("a path into the metadata has no key"));
    }
    keys.iter().map(|key| Ok(key.cast::<PyString>()?.to_str()?.into())).collect()
}

fn test(op: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<Test> {
    let ordered = |order| operand(value).map(|than| Test::Ordered(order, than));
    match op.to_str()? {
        "exists" => Ok(Test::Exists(value.extract()?)),
        "eq" => operand(value).map(Test::Equal),
        "ne" => operand(value).map(Test::NotEqual),
        "gt" => ordered(Order::Above),
        "gte" => ordered(Order::AtLeast),
        "lt" => ordered(Order::Below),
        "lte" => ordered(Order::AtMost),
        "in" => operands(value).map(Test::In),
        "nin" => operands(value).map(Test::NotIn),
        "contains" => operand(value).map(Test::Contains),
        "prefix" => Ok(Test::Prefix(value.cast::<PyString>()?.to_str()?.into())),
        "any" => operands(value).map(Test::Any),
        "all" => operands(value).map(Test::All),
        other => Err(unknown("operator", other)),
    }
}

fn operands(values: &Bound<'_, PyAny>) -> PyResult<Vec<Operand>> {
    values.cast::<PyTuple>()?.iter().map(|value| operand(&value)).collect()
}

fn operand(value: &Bound<'_, PyAny>) -> PyResult<Operand> {
    operand_at(value, 1)
}

fn operand_at(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Operand> {
    if let Ok(items) = value.cast::<PyTuple>() {
        let depth = deeper(depth)?;
        let items = items.iter().map(|item| operand_at(&item, depth));
        return items.collect::<PyResult<_>>().map(Operand::List);
    }
    if let Some(scalar) = scalar(value)? {
        return Ok(scalar);
    }
    let kind = value.get_type().name()?;
    if kind == "JsonObject" {
        return object(value, deeper(depth)?).map(Operand::Object);
    }
    Err(unknown("value of type", kind.to_str()?))
}

fn deeper(depth: usize) -> PyResult<usize> {
    if depth > MAX_VALUE_DEPTH {
        let message = format!("a value of a filter is more than {MAX_VALUE_DEPTH} levels deep");
        return Err(InvalidArgumentError::new_err(message));
    }
    Ok(depth + 1)
}

/// The entries of a `mnemic.model.filter.JsonObject`.
fn object(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Vec<(Box<str>, Operand)>> {
    let items = value.getattr(intern!(value.py(), "items"))?;
    let entries = items.cast::<PyTuple>()?.iter().map(|entry| {
        let (key, value): (Bound<'_, PyString>, Bound<'_, PyAny>) = entry.extract()?;
        Ok((key.to_str()?.into(), operand_at(&value, depth)?))
    });
    entries.collect()
}

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<Operand>> {
    let py = value.py();
    if value.is_none() {
        return Ok(Some(Operand::Null));
    }
    let scalar = if let Ok(text) = value.cast::<PyString>() {
        Operand::Text(text.to_str()?.into())
    } else if value.is_instance_of::<PyBool>() {
        Operand::Bool(value.extract()?) // before the integers, of which it is one
    } else if value.is_instance_of::<PyInt>() {
        int(value)?
    } else if value.is_instance_of::<PyFloat>() {
        Operand::Float(value.extract()?)
    } else if value.is_instance(uuid(py)?)? {
        Operand::Id(value.getattr(intern!(py, "bytes"))?.extract()?)
    } else if value.is_instance(datetime(py)?)? {
        Operand::Moment(moment(value)?)
    } else {
        return Ok(None);
    };
    Ok(Some(scalar))
}

/// An int of any size.
fn int(value: &Bound<'_, PyAny>) -> PyResult<Operand> {
    if let Ok(whole) = value.extract() {
        return Ok(Operand::Int(whole));
    }
    let nearest = match value.extract::<f64>() {
        Ok(float) => float,
        Err(_) if value.gt(0)? => f64::INFINITY, // beyond every float
        Err(_) => f64::NEG_INFINITY,
    };
    Ok(match value.compare(nearest)? {
        Ordering::Equal => Operand::Float(nearest),
        Ordering::Less => Operand::After(nearest.next_down()),
        Ordering::Greater => Operand::After(nearest),
    })
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
