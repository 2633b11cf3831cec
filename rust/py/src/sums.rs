//! Checksums of stored rows, made and checked for many rows in one call.

use std::collections::HashMap;

use mnemic_core::sums::{self, MASK, Value};
use mnemic_core::write_ahead_log;
use numpy::{PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors::InvalidArgumentError;
use crate::memory_index::RECORD_COLUMNS;

/// Further columns that a row's sum covers, in their order after those of a record.
const MORE_COLUMNS: [&str; 3] = ["fingerprint", "idempotency_key", "key_fingerprint"];

/// Columns that change whenever a memory is read.
const ACCESSES: [&str; 2] = ["last_accessed_at", "access_count"];

/// The columns that a row's sum covers, a row's number not among them.
pub(crate) fn columns() -> impl Iterator<Item = &'static str> {
    RECORD_COLUMNS.into_iter().skip(1).chain(MORE_COLUMNS)
}

/// Number, sum of columns, of vectors and of links, status and time of deletion of a row.
type Placed = (i64, Option<u64>, Option<u64>, Option<u64>, i64, Option<i64>);

#[pyfunction]
#[pyo3(signature = (rows, /))]
pub(crate) fn row_sums(rows: &Bound<'_, PyList>) -> PyResult<Vec<u64>> {
    let skipped = skipped();
    rows.iter().map(|row| row_sum(row.cast::<PyTuple>()?, 0, &skipped)).collect()
}

#[pyfunction]
#[pyo3(signature = (column, value, /))]
pub(crate) fn column_sum(column: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let Some(number) = columns().position(|known| known == column) else {
        return Err(InvalidArgumentError::new_err(format!("no sum covers a column {column:?}")));
    };
    Ok(hashed(number, value)? & MASK)
}

/// The place of the first row with a wrong sum, how many rows have sums, the sum of their places,
/// the sum of each row's vectors, and that of its links where it has any.
type Checked<'py> = (Option<usize>, u64, u64, Bound<'py, PyDict>, Bound<'py, PyDict>);

#[pyfunction]
#[pyo3(signature = (rows, /))]
pub(crate) fn check_rows<'py>(rows: &Bound<'py, PyList>) -> PyResult<Checked<'py>> {
    let (skipped, covered) = (skipped(), columns().count());
    let [status, forgotten_at] = ["status", "forgotten_at"].map(place_of);
    let (mut wrong, mut count, mut total) = (None, 0, 0_u64);
    let (of_vectors, of_links) = (PyDict::new(rows.py()), PyDict::new(rows.py()));
    for (at, row) in rows.iter().enumerate() {
        let row = row.cast::<PyTuple>()?;
        let sum_at =
            |place: usize| row.get_borrowed_item(1 + covered + place)?.extract::<Option<u64>>();
        let Some(stored) = sum_at(0)? else { continue };
        if wrong.is_none() && row_sum(row, 1, &skipped)? != stored {
            wrong = Some(at);
        }
        let number = row.get_borrowed_item(0)?;
        let (vectors, links) = (sum_at(1)?, sum_at(2)?);
        of_vectors.set_item(number, vectors.unwrap_or_default())?;
        if let Some(links) = links {
            of_links.set_item(number, links)?;
        }
        count += 1;
        let status = row.get_borrowed_item(status)?.extract()?;
        let forgotten_at = row.get_borrowed_item(forgotten_at)?.extract()?;
        let place = (number.extract()?, Some(stored), vectors, links, status, forgotten_at);
        total = total.wrapping_add(placed(place));
    }
    Ok((wrong, count, total & MASK, of_vectors, of_links))
}

/// How many rows have sums, and the sum of their places.
#[pyfunction]
#[pyo3(signature = (rows, /))]
#[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
pub(crate) fn placed_sums(rows: Vec<Placed>) -> (u64, u64) {
    let summed = || rows.iter().filter(|(_, of_columns, ..)| of_columns.is_some());
    let total = summed().fold(0_u64, |total, row| total.wrapping_add(placed(*row)));
    (summed().count() as u64, total & MASK)
}

/// The sum of each row's vectors, given as bytes or float32 arrays.
#[pyfunction]
#[pyo3(signature = (model, rows, /))]
#[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
pub(crate) fn vector_sums(model: &str, rows: Vec<Vec<Bound<'_, PyAny>>>) -> PyResult<Vec<u64>> {
    let sum = |parts: &Vec<Bound<'_, PyAny>>| {
        let hashes = parts.iter().enumerate().map(|(part, given)| vector(model, part, given));
        hashes.sum::<PyResult<Wrapping>>().map(|sum| sum.0 & MASK)
    };
    rows.iter().map(sum).collect()
}

/// The first row whose vectors do not have its sum, and how many rows with vectors have a sum.
/// A row's vectors stand together, in the order of its parts.
#[pyfunction]
#[pyo3(signature = (model, vectors, sums, /))]
#[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
pub(crate) fn check_vectors(
    model: &str,
    vectors: Vec<(i64, Bound<'_, PyBytes>)>,
    sums: &Bound<'_, PyDict>,
) -> PyResult<(Option<i64>, usize)> {
    let mut count = 0;
    for of_row in vectors.chunk_by(|one, other| one.0 == other.0) {
        let row = of_row[0].0;
        let Some(stored) = sums.get_item(row)? else { continue };
        let hashes = of_row.iter().enumerate();
        let hash = |(part, (_, bytes)): (usize, &(i64, Bound<'_, PyBytes>))| {
            sums::vector(model, part as u64, bytes.as_bytes())
        };
        let sum = hashes.map(hash).fold(0_u64, u64::wrapping_add) & MASK;
        if stored.extract::<u64>()? != sum {
            return Ok((Some(row), count));
        }
        count += 1;
    }
    Ok((None, count))
}

/// The first row, in no order, whose links do not have its sum; a link is given as both its rows,
/// type, strength and time.
#[pyfunction]
#[pyo3(signature = (links, sums, /))]
#[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
pub(crate) fn check_links(
    links: Vec<(i64, i64, i64, f64, i64)>,
    sums: HashMap<i64, u64>,
) -> Option<i64> {
    let mut found: HashMap<i64, u64> = HashMap::new();
    for (from, to, kind, strength, time) in links {
        let sum = found.entry(from).or_default();
        *sum = sum.wrapping_add(sums::link(to, kind, strength, time)) & MASK;
    }
    let of_row = |row: &i64| found.get(row).copied().unwrap_or_default();
    sums.iter().find(|(row, stored)| of_row(row) != **stored).map(|(row, _)| *row)
}

/// The sum of each link, given as target, type, strength and time.
#[pyfunction]
#[pyo3(signature = (links, /))]
pub(crate) fn link_sums(links: Vec<(i64, i64, f64, i64)>) -> Vec<u64> {
    let sum = |(to, kind, strength, time)| sums::link(to, kind, strength, time) & MASK;
    links.into_iter().map(sum).collect()
}

/// Which columns, by their numbers, no sum covers.
fn skipped() -> Vec<bool> {
    columns().map(|name| ACCESSES.contains(&name)).collect()
}

/// The place of a column in a record.
fn place_of(column: &str) -> usize {
    RECORD_COLUMNS.iter().position(|known| *known == column).unwrap_or_default()
}

fn row_sum(row: &Bound<'_, PyTuple>, first: usize, skipped: &[bool]) -> PyResult<u64> {
    let mut sum = 0_u64;
    for (number, _) in skipped.iter().enumerate().filter(|(_, is_skipped)| !**is_skipped) {
        let value = row.get_borrowed_item(first + number)?;
        sum = sum.wrapping_add(hashed(number, &value)?);
    }
    Ok(sum & MASK)
}

fn hashed(number: usize, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number = number as u32;
    if value.is_none() {
        return Ok(0);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(sums::column(number, Value::Text(&text.to_cow()?)));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(sums::column(number, Value::Blob(bytes.as_bytes())));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(sums::column(number, Value::Integer(value.extract()?)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(sums::column(number, Value::Real(value.extract()?)));
    }
    Err(PyTypeError::new_err("no value of a column"))
}

fn vector(model: &str, part: usize, given: &Bound<'_, PyAny>) -> PyResult<Wrapping> {
    let part = part as u64;
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok(Wrapping(sums::vector(model, part, bytes.as_bytes())));
    }
    let array = given.cast::<PyArray1<f32>>()?;
    if !array.is_contiguous() {
        return Err(InvalidArgumentError::new_err("a vector is not contiguous"));
    }
    Ok(Wrapping(sums::vector_of(model, part, &array.to_vec()?)))
}

fn placed((row, of_columns, of_vectors, of_links, status, forgotten_at): Placed) -> u64 {
    let sums = [of_columns, of_vectors, of_links].map(Option::unwrap_or_default);
    sums::place(row, sums, status, forgotten_at)
}

/// A sum that wraps around.
struct Wrapping(u64);

impl std::iter::Sum for Wrapping {
    fn sum<I: Iterator<Item = Self>>(hashes: I) -> Self {
        Self(hashes.fold(0, |sum, hash| sum.wrapping_add(hash.0)))
    }
}

/// The first frame of a write-ahead log that is not right, from 1, and how many commits are lost.
#[pyfunction]
#[pyo3(signature = (log, /))]
pub(crate) fn lost_in_log(py: Python<'_>, log: &[u8]) -> Option<(usize, usize)> {
    py.detach(|| write_ahead_log::lost(log)).map(|lost| (lost.frame, lost.commits))
}
