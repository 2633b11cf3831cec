//! Records, links and accesses as Python passes them.

use mnemic_core::Error;
use mnemic_core::columns::{Access, Record};
use mnemic_core::memory::links::Link;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::{InvalidArgumentError, raised, room};

/// Names of the values of a record, in their order.
pub(crate) const RECORD_COLUMNS: [&str; 29] = [
    "row",
    "agent_id",
    "id",
    "created_at",
    "updated_at",
    "content",
    "user_id",
    "project_id",
    "session_id",
    "memory_type",
    "status",
    "importance",
    "last_accessed_at",
    "access_count",
    "forgotten_at",
    "expires_at",
    "role",
    "speaker",
    "message_id",
    "position",
    "category",
    "scope",
    "version",
    "supersedes",
    "is_sensitive",
    "is_encrypted",
    "type_name",
    "tags",
    "metadata",
];

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
    room(given.len().saturating_mul(size_of::<Record>()))?;
    given.iter().map(|record| record_of(&record)).collect()
}

/// A record from its values in the order of [`RECORD_COLUMNS`].
pub(crate) fn record_of(given: &Bound<'_, PyAny>) -> PyResult<Record> {
    let given = given.cast::<PyTuple>()?;
    if given.len() < RECORD_COLUMNS.len() {
        let (found, wanted) = (given.len(), RECORD_COLUMNS.len());
        let message = format!("a record has {wanted} values, found {found}");
        return Err(InvalidArgumentError::new_err(message));
    }
    let at = |at: usize| given.get_borrowed_item(at);
    let text = |place: usize| text_of(&*at(place)?);
    let moment = |place: usize| at(place)?.extract::<Option<i64>>();
    let time = |place: usize| moment(place)?.map(time_of).transpose();
    Ok(Record {
        row: at(0)?.extract()?,
        id: at(2)?.extract()?,
        created_at: time_of(at(3)?.extract()?)?,
        updated_at: time_of(at(4)?.extract()?)?,
        content: content_of(at(5)?)?,
        user: text(6)?,
        project: text(7)?,
        session: text(8)?,
        kind: at(9)?.extract()?,
        status: at(10)?.extract()?,
        importance: importance_of(at(11)?.extract()?)?,
        last_accessed_at: time(12)?,
        access_count: count_of(at(13)?.extract()?)?,
        expires_at: time(15)?,
        role: text(16)?,
        speaker: text(17)?,
        position: moment(19)?,
        category: text(20)?,
        scope: text(21)?,
        version: at(22)?.extract()?,
        sensitive: at(24)?.extract::<i64>()? != 0,
        tags: text(27)?,
        metadata: text(28)?,
    })
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
    Err(PyValueError::new_err(format!("an access count of {given}")))
}
