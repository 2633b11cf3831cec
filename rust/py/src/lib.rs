//! The extension module `mnemic._core`: every function converts, detaches, calls the core, converts.

mod text;

#[pyo3::pymodule(gil_used = false, name = "_core")]
mod core_module {
    #[pymodule_export]
    const FINGERPRINT_VERSION: u32 = mnemic_core::text::FINGERPRINT_VERSION;
    #[pymodule_export]
    use crate::text::{fingerprint, fingerprint_digests};
}
