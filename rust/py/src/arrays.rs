//! From whatever Python calls an array to plain vectors, with the shape checked.

use mnemic_core::system::memory_budget::try_with_capacity;
use numpy::ndarray::Dimension;
use numpy::{
    PyArray, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::{
    ArrayTypeError, DimensionMismatchError, InvalidArgumentError, passes, raised, require_memory,
};

/// Vectors copied out of Python, row after row.
pub(crate) struct Vectors {
    pub(crate) values: Vec<f32>,
    /// Whether the argument had two axes.
    pub(crate) is_batch: bool,
}

/// Copy vectors of `dim` components: shape (dim,) or (m, dim), any float or integer dtype.
pub(crate) fn vectors(
    argument: &Bound<'_, PyAny>,
    dim: usize,
    what: &'static str,
) -> PyResult<Vectors> {
    if let Ok(array) = argument.cast_exact::<PyArray1<f32>>()
        && array.len() == dim
        && array.is_contiguous()
    {
        return Ok(Vectors { values: copied_from(array)?, is_batch: false });
    }
    let array = as_array(argument, what)?;
    let kind = array.dtype().kind();
    if !matches!(kind, b'f' | b'i' | b'u') {
        let dtype = array.dtype();
        let message = format!("{what} must be numbers, found an array of dtype {dtype}");
        return Err(ArrayTypeError::new_err(message));
    }
    let is_batch = check_shape(array.shape(), dim, what)?;
    let values = if kind == b'f' && array.dtype().itemsize() <= 4 {
        copied(&array, "float32")?
    } else {
        narrowed(&copied(&array, "float64")?)?
    };
    Ok(Vectors { values, is_batch })
}

/// The length of the last of two axes.
pub(crate) fn last_axis(argument: &Bound<'_, PyAny>) -> PyResult<i64> {
    let array = as_array(argument, "vectors")?;
    match array.shape() {
        [_, dim] => Ok(*dim as i64),
        shape => {
            let message = format!("vectors must have two axes, found shape {shape:?}");
            Err(ArrayTypeError::new_err(message))
        }
    }
}

/// Copy numbers: a flat sequence of any float or integer dtype.
pub(crate) fn numbers(argument: &Bound<'_, PyAny>, what: &'static str) -> PyResult<Vec<f32>> {
    let array = as_array(argument, what)?;
    if array.ndim() != 1 || !matches!(array.dtype().kind(), b'f' | b'i' | b'u') {
        let (axes, dtype) = (array.ndim(), array.dtype());
        let message =
            format!("{what} must be numbers in one axis, found {axes} axes of dtype {dtype}");
        return Err(ArrayTypeError::new_err(message));
    }
    narrowed(&copied(&array, "float64")?)
}

fn narrowed(wide: &[f64]) -> PyResult<Vec<f32>> {
    let mut narrow = try_with_capacity(wide.len()).map_err(raised)?;
    narrow.extend(wide.iter().map(|value| *value as f32));
    Ok(narrow)
}

fn check_shape(shape: &[usize], dim: usize, what: &'static str) -> PyResult<bool> {
    match shape {
        [0] => Ok(true),
        [components] if *components == dim => Ok(false),
        [_, components] if *components == dim => Ok(true),
        [components] | [_, components] => {
            let message = format!(
                "found {components} components in the {what}; this map holds vectors of {dim}"
            );
            Err(DimensionMismatchError::new_err(message))
        }
        _ => {
            let message = format!(
                "{what} must have shape ({dim},) or (n, {dim}), found {} axes",
                shape.len()
            );
            Err(ArrayTypeError::new_err(message))
        }
    }
}

/// Copy ids: a whole number or a flat sequence of them, within int64.
pub(crate) fn ids(argument: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if argument.cast::<PyList>().is_ok_and(PyListMethods::is_empty) {
        return Ok(Vec::new()); // before asking for arrays, which loads numpy
    }
    if let Ok(array) = argument.cast_exact::<PyArray1<i64>>()
        && array.is_contiguous()
    {
        return copied_from(array);
    }
    let array = as_array(argument, "ids")?;
    if array.shape() == [0] {
        return Ok(Vec::new());
    }
    if array.ndim() > 1 {
        let message = format!("ids must have one axis, found {}", array.ndim());
        return Err(ArrayTypeError::new_err(message));
    }
    match array.dtype().kind() {
        b'i' => copied(&array, "int64"),
        b'u' => copied::<u64>(&array, "uint64")?.into_iter().map(signed).collect(),
        _ => {
            let dtype = array.dtype();
            let message = format!("ids must be whole numbers within int64, found dtype {dtype}");
            Err(ArrayTypeError::new_err(message))
        }
    }
}

fn signed(id: u64) -> PyResult<i64> {
    i64::try_from(id)
        .map_err(|_| InvalidArgumentError::new_err(format!("id {id} does not fit int64")))
}

fn as_array<'py>(
    argument: &Bound<'py, PyAny>,
    what: &'static str,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = argument.cast::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    let numpy = argument.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (argument,)).map_err(|cause| {
        if passes(argument.py(), &cause) {
            return cause;
        }
        let error = ArrayTypeError::new_err(format!("{what} cannot be read as an array: {cause}"));
        error.set_cause(argument.py(), Some(cause));
        error
    })?;
    Ok(array.cast_into::<PyUntypedArray>()?)
}

/// The elements in C order, converted to `dtype`.
fn copied<T: numpy::Element + Copy>(
    array: &Bound<'_, PyUntypedArray>,
    dtype: &str,
) -> PyResult<Vec<T>> {
    let options = PyDict::new(array.py());
    options.set_item("order", "C")?;
    options.set_item("copy", false)?;
    let converted = array.call_method("astype", (dtype,), Some(&options))?;
    copied_from(converted.cast::<PyArrayDyn<T>>()?)
}

/// The elements of a contiguous array, copied after a check of the memory.
fn copied_from<T: numpy::Element + Copy, D: Dimension>(
    array: &Bound<'_, PyArray<T, D>>,
) -> PyResult<Vec<T>> {
    require_memory(array.len().saturating_mul(size_of::<T>()))?;
    Ok(array.to_vec()?)
}
