//! The functions that `SQLite` locks files with.

use mnemic_core::system::file_locks;
use pyo3::prelude::*;

use crate::errors::system_error;

#[doc = stub!("lock_calls")]
#[pyfunction]
pub(crate) fn lock_calls() -> Vec<(&'static str, usize)> {
    file_locks::calls().map_or_else(Vec::new, Vec::from)
}

// One system call in a fifth of the time of `os.stat`; it is called with every read and commit.
#[doc = stub!("file_id")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn file_id(path: &str) -> Option<(u64, u64)> {
    file_locks::file_id(path)
}

#[doc = stub!("allocate")]
#[pyfunction]
#[pyo3(signature = (descriptor, length, /))]
pub(crate) fn allocate(py: Python<'_>, descriptor: i32, length: i64) -> PyResult<()> {
    let done = py.detach(|| file_locks::allocate(descriptor, length));
    done.map_err(|error| system_error(error, None))
}
