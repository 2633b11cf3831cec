//! `matches`: a filter over records that are in no index.

use mnemic_core::columns::{self, Record};
use mnemic_core::system::memory_budget::try_with_capacity;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::raised;
use crate::filter;
use crate::records::record_of;

/// Records, and bytes of their texts, that are copied before they are tested.
const MAX_RECORDS: usize = 512;
const MAX_BYTES: usize = 4 << 20;

#[doc = stub!("matches")]
#[pyfunction]
#[pyo3(signature = (filter, records, /))]
pub(crate) fn matches(
    filter: &Bound<'_, PyAny>,
    records: &Bound<'_, PyList>,
) -> PyResult<Vec<bool>> {
    let (py, filter) = (records.py(), filter::read(filter)?);
    let mut passed = try_with_capacity(records.len()).map_err(raised)?;
    for_each_batch(records, |batch| {
        passed.extend(py.detach(|| columns::matches(&filter, batch)).map_err(raised)?);
        Ok(())
    })?;
    Ok(passed)
}

/// Copy some records at a time.
pub(crate) fn for_each_batch(
    records: &Bound<'_, PyList>,
    mut visit: impl FnMut(&[Record]) -> PyResult<()>,
) -> PyResult<()> {
    let (mut batch, mut bytes) = (Vec::new(), 0_usize);
    for record in records {
        let record = record_of(&record)?;
        bytes = bytes.saturating_add(record.text_bytes());
        batch.push(record);
        if batch.len() == MAX_RECORDS || bytes >= MAX_BYTES {
            visit(&batch)?;
            batch.clear();
            bytes = 0;
        }
    }
    visit(&batch)
}
