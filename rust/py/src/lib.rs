//! The extension module `mnemic._core`: every function converts, detaches, calls the core, converts.

#[pyo3::pymodule(gil_used = false, name = "_core")]
mod core_module {}
