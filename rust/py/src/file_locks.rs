//! The functions that SQLite locks files with.

use mnemic_core::file_locks;
use pyo3::prelude::*;

#[pyfunction]
pub(crate) fn lock_calls() -> Vec<(&'static str, usize)> {
    file_locks::calls().map_or_else(Vec::new, Vec::from)
}

#[pyfunction]
pub(crate) fn before_fork() {
    file_locks::before_fork();
}

#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    file_locks::after_fork_in_parent();
}

#[pyfunction]
pub(crate) fn after_fork_in_child() {
    file_locks::after_fork_in_child();
}
