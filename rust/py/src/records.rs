//! Records, links and accesses as Python passes them.

use mnemic_core::Error;
use mnemic_core::columns::{Access, Record};
use mnemic_core::memory::links::Link;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::{InvalidArgumentError, raised, require_memory};

/// A column of a memory's row.
pub(crate) struct RowColumn {
    pub(crate) name: &'static str,
    /// As in Python.
    pub(crate) kind: &'static str,
    /// Its number in the checksum of a row.
    pub(crate) sum: Option<u32>,
    /// Its name in filters.
    pub(crate) filter: Option<&'static str>,
}

macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// A value of a record, from Python's.
macro_rules! value {
    (uuid, $given:expr) => {
        $given.extract()?
    };
    (time, $given:expr) => {
        time_of($given.extract()?)?
    };
    (optional_time, $given:expr) => {
        $given.extract::<Option<i64>>()?.map(time_of).transpose()?
    };
    (whole, $given:expr) => {
        count_of($given.extract()?)?
    };
    (optional_whole, $given:expr) => {
        $given.extract()?
    };
    (type, $given:expr) => {
        $given.extract()?
    };
    (status, $given:expr) => {
        $given.extract()?
    };
    (fraction, $given:expr) => {
        importance_of($given.extract()?)?
    };
    (flag, $given:expr) => {
        $given.extract::<i64>()? != 0
    };
    (content, $given:expr) => {
        content_of($given)?
    };
    ($text:ident, $given:expr) => {
        text_of(&*$given)?
    };
}

macro_rules! row_columns {
    ($(
        $column:literal $about:literal $kind:ident $(sum $sum:literal)?
        $(attribute $attribute:ident)? $(access $access:ident)? $(record $other:ident)?
        $(filter $name:literal $variant:ident $(in $place:ident.$values:ident)?)?;
    )*) => {
        /// The columns of a memory's row, in the order of a record.
        pub(crate) const COLUMNS: &[RowColumn] = &[$(RowColumn {
            name: $column,
            kind: stringify!($kind),
            sum: optional!($($sum)?),
            filter: optional!($($name)?),
        }),*];

        /// A record from its number and the values of [`COLUMNS`].
        pub(crate) fn record_of(given: &Bound<'_, PyAny>) -> PyResult<Record> {
            let given = given.cast::<PyTuple>()?;
            check_length(given)?;
            let mut at = 0;
            let row = given.get_borrowed_item(at)?.extract()?;
            $(
                at += 1;
                $(let $attribute = value!($kind, given.get_borrowed_item(at)?);)?
                $(let $access = value!($kind, given.get_borrowed_item(at)?);)?
                $(let $other = value!($kind, given.get_borrowed_item(at)?);)?
            )*
            debug_assert_eq!(at, COLUMNS.len());
            Ok(Record { row, $($($attribute,)? $($access,)? $($other,)?)* })
        }
    };
}

mnemic_core::memory_fields!(row_columns);

fn check_length(given: &Bound<'_, PyTuple>) -> PyResult<()> {
    let (found, wanted) = (given.len(), 1 + COLUMNS.len());
    if found >= wanted {
        return Ok(());
    }
    Err(InvalidArgumentError::new_err(format!("a record has {wanted} values, found {found}")))
}

/// Row, last access and number of accesses.
pub(crate) type GivenAccess = (i64, Option<i64>, i64);

pub(crate) fn accesses_of(given: Vec<GivenAccess>) -> PyResult<Vec<Access>> {
    let access = |(row, last, count): GivenAccess| {
        let last = last.map(time_of).transpose()?;
        Ok(Access { row, last, count: count_of(count)? })
    };
    given.into_iter().map(access).collect()
}

pub(crate) fn link_of((from, to, kind, strength): (i64, i64, u8, f64)) -> PyResult<Link> {
    if (0.0..=1.0).contains(&strength) {
        return Ok(Link { from, to, kind, strength });
    }
    Err(PyValueError::new_err("a link whose strength is not from 0 to 1"))
}

pub(crate) fn records_of(given: &Bound<'_, PyList>) -> PyResult<Vec<Record>> {
    require_memory(given.len().saturating_mul(size_of::<Record>()))?;
    given.iter().map(|record| record_of(&record)).collect()
}

/// Copies a text that may be megabytes long.
pub(crate) fn text_of(given: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if given.is_none() {
        return Ok(None);
    }
    copied(given.cast::<PyString>()?.to_str()?).map(Some)
}

pub(crate) fn copied(text: &str) -> PyResult<String> {
    let mut copy = String::new();
    let bytes = text.len();
    copy.try_reserve_exact(bytes).map_err(|_| raised(Error::OutOfMemory { bytes }))?;
    copy.push_str(text);
    Ok(copy)
}

/// Checks the range of a stored importance.
pub(crate) fn importance_of(given: f64) -> PyResult<f64> {
    if (0.0..=1.0).contains(&given) {
        return Ok(given);
    }
    Err(PyValueError::new_err(format!("an importance of {given}")))
}

/// Microseconds since 1970 at which the years 1 and 10000 begin.
const TIMES: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_800_000_000;

pub(crate) fn time_of(given: i64) -> PyResult<i64> {
    if TIMES.contains(&given) {
        return Ok(given);
    }
    Err(PyValueError::new_err("a time outside the years 1 to 9999"))
}

/// As in `mnemic.model.validation`.
const MAX_CONTENT_BYTES: usize = 10 * 1024 * 1024;

/// The length is checked before the text is copied.
pub(crate) fn content_of(given: Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    let given = given.cast::<PyString>()?;
    let text = given.to_cow()?;
    if text.len() > MAX_CONTENT_BYTES {
        return Err(PyValueError::new_err("a content of more than 10 MB"));
    }
    copied(&text)
}

pub(crate) fn count_of(given: i64) -> PyResult<i64> {
    if given >= 0 {
        return Ok(given);
    }
    Err(PyValueError::new_err(format!("a count of {given}")))
}
