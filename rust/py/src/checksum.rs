//! Checksums of stored rows, made and checked for many rows in one call.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::num::Wrapping;
use std::sync::LazyLock;

use mnemic_core::checksum::{self, MASK, Value, VectorCheck, VectorSums};
use mnemic_core::system::memory_budget::try_with_capacity;
use mnemic_core::system::write_ahead_log;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors::{InvalidArgumentError, raised};
use crate::records::COLUMNS;

/// Further columns that a row's sum covers, after those of a record, with their numbers.
const MORE_COLUMNS: [(&str, Option<u32>); 3] =
    [("fingerprint", Some(28)), ("idempotency_key", Some(29)), ("key_fingerprint", Some(30))];

/// The columns of a row but for its number, with their numbers in its sum. Accesses have none.
fn summed() -> impl Iterator<Item = (&'static str, Option<u32>)> {
    COLUMNS.iter().map(|column| (column.name, column.sum)).chain(MORE_COLUMNS)
}

/// Names of the columns that the sums of rows are made from, in their order.
pub(crate) fn columns() -> impl Iterator<Item = &'static str> {
    summed().map(|(name, _)| name)
}

/// Number, sum of columns, of vectors and of links, status and time of deletion of a row.
type Placed = (i64, Option<u64>, Option<u64>, Option<u64>, i64, Option<i64>);

#[doc = stub!("row_sums")]
#[pyfunction]
#[pyo3(signature = (rows, /))]
pub(crate) fn row_sums(rows: &Bound<'_, PyList>) -> PyResult<Vec<u64>> {
    let mut hasher = RowHasher::new(&PLACES);
    rows.iter().map(|row| hasher.sum(row.cast::<PyTuple>()?, 0)).collect()
}

#[doc = stub!("column_sum")]
#[pyfunction]
#[pyo3(signature = (column, value, /))]
pub(crate) fn column_sum(column: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(hashed(number_of(column)?, value)? & MASK)
}

/// The number of a column in the sum of its row.
fn number_of(column: &str) -> PyResult<u32> {
    summed()
        .find_map(|(name, number)| number.filter(|_| name == column))
        .ok_or_else(|| InvalidArgumentError::new_err(format!("no sum covers a column {column:?}")))
}

#[doc = stub!("VectorSums")]
#[pyclass(name = "VectorSums", module = "mnemic._core")]
pub(crate) struct PyVectorSums(VectorSums);

#[pymethods]
impl PyVectorSums {
    #[new]
    #[pyo3(signature = (sums = vec![], /), text_signature = "(sums=(), /)")]
    fn new(sums: Vec<(i64, u64)>) -> PyResult<Self> {
        let mut of_rows = VectorSums::default();
        of_rows.reserve(sums.len()).map_err(raised)?;
        for (row, sum) in sums {
            of_rows.insert(row, sum);
        }
        Ok(Self(of_rows))
    }

    #[doc = stub!("VectorSums.rows")]
    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }
}

/// The place of the first row with a wrong sum, how many rows have sums, the sum of their places,
/// and that of each row's links where it has any.
type Checked<'py> = (Option<usize>, u64, u64, Bound<'py, PyDict>);

#[doc = stub!("check_rows")]
#[pyfunction]
#[pyo3(signature = (rows, vectors, /))]
pub(crate) fn check_rows<'py>(
    rows: &Bound<'py, PyList>,
    vectors: &mut PyVectorSums,
) -> PyResult<Checked<'py>> {
    let places = &*PLACES;
    let mut hasher = RowHasher::new(places);
    let (mut wrong, mut count, mut total) = (None, 0, 0_u64);
    let of_links = PyDict::new(rows.py());
    vectors.0.reserve(rows.len()).map_err(raised)?;
    for (at, row) in rows.iter().enumerate() {
        let row = row.cast::<PyTuple>()?;
        let sum_at = |place| row.get_borrowed_item(place)?.extract::<Option<u64>>();
        let Some(stored) = sum_at(places.row_sum)? else { continue };
        if wrong.is_none() && hasher.sum(row, 1)? != stored {
            wrong = Some(at);
        }
        let number = row.get_borrowed_item(0)?;
        let of_vectors = sum_at(places.row_sum + 1)?;
        let links = sum_at(places.row_sum + 2)?;
        if let Some(links) = links {
            of_links.set_item(number, links)?;
        }
        let number = number.extract()?;
        vectors.0.insert(number, of_vectors.unwrap_or_default());
        count += 1;
        let status = row.get_borrowed_item(places.status)?.extract()?;
        let forgotten_at = row.get_borrowed_item(places.forgotten_at)?.extract()?;
        let place = (number, Some(stored), of_vectors, links, status, forgotten_at);
        total = total.wrapping_add(placed(place));
    }
    Ok((wrong, count, total & MASK, of_links))
}

#[doc = stub!("placed_sums")]
#[pyfunction]
#[pyo3(signature = (rows, /))]
pub(crate) fn placed_sums(rows: Vec<Placed>) -> (u64, u64) {
    let summed = || rows.iter().filter(|(_, of_columns, ..)| of_columns.is_some());
    let total = summed().fold(0_u64, |total, row| total.wrapping_add(placed(*row)));
    (summed().count() as u64, total & MASK)
}

/// Rows with sums, and the total of their sums, that an agent gains.
type Gain = (i64, u64);

/// The new sums of a row, and its number.
type Written = (u64, Option<u64>, Option<u64>, i64);

#[doc = stub!("changed_sums")]
#[pyfunction]
#[pyo3(signature = (rows, links, vectors, /))]
pub(crate) fn changed_sums(
    rows: &Bound<'_, PyList>,
    links: &Bound<'_, PyList>,
    vectors: HashMap<i64, Option<u64>>,
) -> PyResult<(Vec<Written>, HashMap<String, Gain>)> {
    let (changed, links) = (changed_rows(rows)?, link_changes(links)?);
    let mut written = try_with_capacity(changed.len()).map_err(raised)?;
    let mut of_agents: HashMap<String, Gain> = HashMap::new();
    for (row, ChangedRow { agent, before, columns, state }) in changed {
        let (_, Some(of_columns), mut of_vectors, mut of_links, ..) = before else { continue };
        let of_agent = of_agents.entry(agent).or_default();
        *of_agent = (of_agent.0 - 1, of_agent.1.wrapping_sub(placed(before)) & MASK);
        let Some((status, forgotten_at)) = state else { continue };
        let of_columns = added(of_columns, columns);
        if let Some(new) = vectors.get(&row) {
            of_vectors = *new;
        }
        if let Some(change) = links.get(&row) {
            of_links = Some(added(of_links.unwrap_or_default(), *change));
        }
        written.push((of_columns, of_vectors, of_links, row));
        let after = (row, Some(of_columns), of_vectors, of_links, status, forgotten_at);
        *of_agent = (of_agent.0 + 1, added(of_agent.1, placed(after)));
    }
    Ok((written, of_agents))
}

/// A row before its first change, what the sum of its columns gains, and its status and time of
/// deletion after the last change; none if it was deleted.
struct ChangedRow {
    agent: String,
    before: Placed,
    columns: u64,
    state: Option<(i64, Option<i64>)>,
}

fn changed_rows(changes: &Bound<'_, PyList>) -> PyResult<BTreeMap<i64, ChangedRow>> {
    let mut rows: BTreeMap<i64, ChangedRow> = BTreeMap::new();
    for change in changes.iter() {
        let change = change.cast::<PyTuple>()?;
        let number = item(change, 0)?;
        let row = match rows.entry(number) {
            Entry::Occupied(row) => row.into_mut(),
            Entry::Vacant(row) => row.insert(row_before(number, change)?),
        };
        let status: Option<i64> = item(change, 7)?;
        let forgotten_at = item(change, 8)?;
        row.state = status.map(|status| (status, forgotten_at));
        row.columns = row.columns.wrapping_add(column_change(change)?);
    }
    Ok(rows)
}

fn row_before(number: i64, change: &Bound<'_, PyTuple>) -> PyResult<ChangedRow> {
    let of_columns = item(change, 1)?;
    let (of_vectors, of_links) = (item(change, 2)?, item(change, 3)?);
    let (status, forgotten_at) = (item(change, 4)?, item(change, 5)?);
    let before = (number, of_columns, of_vectors, of_links, status, forgotten_at);
    Ok(ChangedRow { agent: item(change, 6)?, before, columns: 0, state: None })
}

fn column_change(change: &Bound<'_, PyTuple>) -> PyResult<u64> {
    let column = change.get_borrowed_item(9)?;
    if column.is_none() {
        return Ok(0);
    }
    let number = number_of(column.cast::<PyString>()?.to_str()?)?;
    let (old, new) = (change.get_borrowed_item(10)?, change.get_borrowed_item(11)?);
    Ok(hashed(number, &new)?.wrapping_sub(hashed(number, &old)?))
}

fn link_changes(changes: &Bound<'_, PyList>) -> PyResult<HashMap<i64, u64>> {
    let mut of_rows: HashMap<i64, u64> = HashMap::new();
    for change in changes.iter() {
        let link = change.cast::<PyTuple>()?;
        let sum = checksum::link(item(link, 2)?, item(link, 3)?, item(link, 4)?, item(link, 5)?);
        let is_new: bool = item::<i64>(link, 1)? > 0;
        let of_row = of_rows.entry(item(link, 0)?).or_default();
        *of_row = if is_new { of_row.wrapping_add(sum) } else { of_row.wrapping_sub(sum) };
    }
    Ok(of_rows)
}

fn item<T: for<'py> FromPyObjectOwned<'py>>(
    change: &Bound<'_, PyTuple>,
    place: usize,
) -> PyResult<T> {
    change.get_item(place)?.extract().map_err(Into::into)
}

fn added(sum: u64, change: u64) -> u64 {
    sum.wrapping_add(change) & MASK
}

#[doc = stub!("vector_sums")]
#[pyfunction]
#[pyo3(signature = (model, rows, /))]
pub(crate) fn vector_sums(model: &str, rows: Vec<Vec<Bound<'_, PyAny>>>) -> PyResult<Vec<u64>> {
    let sum = |chunks: &Vec<Bound<'_, PyAny>>| {
        let hashes = chunks.iter().enumerate().map(|(chunk, given)| vector(model, chunk, given));
        hashes.sum::<PyResult<Wrapping<u64>>>().map(|sum| sum.0 & MASK)
    };
    rows.iter().map(sum).collect()
}

// The first row whose vectors do not have its sum, and how many rows with vectors have a sum.
// A row's vectors stand together, in the order of its chunks.
#[doc = stub!("check_vectors")]
#[pyfunction]
#[pyo3(signature = (model, vectors, sums, /))]
pub(crate) fn check_vectors(
    model: &str,
    vectors: &Bound<'_, PyList>,
    sums: &mut PyVectorSums,
) -> PyResult<(Option<i64>, usize)> {
    let mut check = VectorCheck::new(model, &mut sums.0);
    for found in vectors.iter() {
        let found = found.cast::<PyTuple>()?;
        let row = found.get_borrowed_item(0)?.extract()?;
        let components = found.get_borrowed_item(1)?;
        check.push(row, components.cast::<PyBytes>()?.as_bytes());
    }
    Ok(check.finish())
}

/// The first row whose vectors do not have its sum, how many rows with vectors have a sum, and the
/// rows and components of all vectors, unless one has not `dim` components.
type ReadVectors<'py> =
    (Option<i64>, usize, Option<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<f32>>)>);

// [`check_vectors`] and a copy of the vectors: each is hashed while the processor's cache has it.
#[doc = stub!("read_vectors")]
#[pyfunction]
#[pyo3(signature = (model, dim, vectors, sums, /))]
pub(crate) fn read_vectors<'py>(
    model: &str,
    dim: usize,
    vectors: &Bound<'py, PyList>,
    sums: &mut PyVectorSums,
) -> PyResult<ReadVectors<'py>> {
    let mut rows = try_with_capacity(vectors.len()).map_err(raised)?;
    let mut values: Vec<f32> =
        try_with_capacity(vectors.len().saturating_mul(dim)).map_err(raised)?;
    let mut check = VectorCheck::new(model, &mut sums.0);
    let mut have_dim = true;
    for found in vectors.iter() {
        let found = found.cast::<PyTuple>()?;
        let row = found.get_borrowed_item(0)?.extract()?;
        let components = found.get_borrowed_item(1)?;
        let components = components.cast::<PyBytes>()?;
        check.push(row, components.as_bytes());
        rows.push(row);
        let (components, rest) = components.as_bytes().as_chunks::<4>();
        have_dim &= components.len() == dim && rest.is_empty();
        if have_dim {
            values.extend(components.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        }
    }
    let (wrong, count) = check.finish();
    if !have_dim {
        return Ok((wrong, count, None));
    }
    let shape = [rows.len(), dim];
    let rows = PyArray1::from_vec(vectors.py(), rows);
    let values = PyArray1::from_vec(vectors.py(), values).reshape(shape)?;
    Ok((wrong, count, Some((rows, values))))
}

#[doc = stub!("check_links")]
#[pyfunction]
#[pyo3(signature = (links, sums, /))]
pub(crate) fn check_links(
    links: Vec<(i64, i64, i64, f64, i64)>,
    sums: HashMap<i64, u64>,
) -> Option<i64> {
    let mut found: HashMap<i64, u64> = HashMap::new();
    for (from, to, kind, strength, time) in links {
        let sum = found.entry(from).or_default();
        *sum = sum.wrapping_add(checksum::link(to, kind, strength, time)) & MASK;
    }
    let of_row = |row: &i64| found.get(row).copied().unwrap_or_default();
    sums.iter().find(|(row, stored)| of_row(row) != **stored).map(|(row, _)| *row)
}

#[doc = stub!("link_sums")]
#[pyfunction]
#[pyo3(signature = (links, /))]
pub(crate) fn link_sums(links: Vec<(i64, i64, f64, i64)>) -> Vec<u64> {
    let sum = |(to, kind, strength, time)| checksum::link(to, kind, strength, time) & MASK;
    links.into_iter().map(sum).collect()
}

/// Where the columns of a row stand that sums are made of.
struct Places {
    /// Place and number of each column that a row's sum covers.
    covered: Vec<(usize, u32)>,
    /// In a row that begins with its number, as the next two.
    status: usize,
    forgotten_at: usize,
    /// The sum of the columns; those of vectors and of links follow it.
    row_sum: usize,
}

static PLACES: LazyLock<Places> = LazyLock::new(|| {
    let place_of = |column: &str| columns().position(|known| known == column).unwrap_or_default();
    let covered = |(place, (_, number)): (usize, (_, Option<u32>))| Some((place, number?));
    Places {
        covered: summed().enumerate().filter_map(covered).collect(),
        status: 1 + place_of("status"),
        forgotten_at: 1 + place_of("forgotten_at"),
        row_sum: 1 + columns().count(),
    }
});

/// Sums rows of one list, which keeps their values alive.
struct RowHasher<'places> {
    places: &'places Places,
    /// The address of each column's last value, and its hash: small numbers are one object each, and
    /// most columns hold the same in row after row.
    last: Vec<(usize, u64)>,
}

impl<'places> RowHasher<'places> {
    fn new(places: &'places Places) -> Self {
        Self { places, last: vec![(0, 0); places.row_sum] }
    }

    fn sum(&mut self, row: &Bound<'_, PyTuple>, first: usize) -> PyResult<u64> {
        let mut sum = 0_u64;
        for (place, number) in &self.places.covered {
            let value = row.get_borrowed_item(first + place)?;
            let (address, hash) = &mut self.last[*place];
            if *address != value.as_ptr() as usize {
                *hash = hashed(*number, &value)?;
                *address = value.as_ptr() as usize;
            }
            sum = sum.wrapping_add(*hash);
        }
        Ok(sum & MASK)
    }
}

fn hashed(number: u32, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if value.is_none() {
        return Ok(0);
    }
    // Exact types first, as SQLite returns them: comparing pointers is cheaper than reading flags.
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(checksum::column(number, Value::Text(text.to_str()?)));
    }
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(checksum::column(number, Value::Integer(value.extract()?)));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(checksum::column(number, Value::Blob(bytes.as_bytes())));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(checksum::column(number, Value::Text(text.to_str()?)));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(checksum::column(number, Value::Integer(value.extract()?)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(checksum::column(number, Value::Real(value.extract()?)));
    }
    Err(PyTypeError::new_err("no value of a column"))
}

fn vector(model: &str, chunk: usize, given: &Bound<'_, PyAny>) -> PyResult<Wrapping<u64>> {
    let chunk = chunk as u64;
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok(Wrapping(checksum::vector(model, chunk, bytes.as_bytes())));
    }
    let array = given.cast::<PyArray1<f32>>()?;
    if !array.is_contiguous() {
        return Err(InvalidArgumentError::new_err("a vector is not contiguous"));
    }
    Ok(Wrapping(checksum::vector_of(model, chunk, &array.to_vec()?)))
}

fn placed((row, of_columns, of_vectors, of_links, status, forgotten_at): Placed) -> u64 {
    let sums = [of_columns, of_vectors, of_links].map(Option::unwrap_or_default);
    checksum::place(row, sums, status, forgotten_at)
}

#[doc = stub!("lost_in_log")]
#[pyfunction]
#[pyo3(signature = (log, /))]
pub(crate) fn lost_in_log(py: Python<'_>, log: &[u8]) -> Option<(usize, usize)> {
    py.detach(|| write_ahead_log::lost(log)).map(|lost| (lost.frame, lost.commits))
}
