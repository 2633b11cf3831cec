//! Short codes of rows with certified bounds: scalar codes, sketches, and the contract of the
//! kernels that compute over them.

pub(crate) mod coded_rows;
pub(crate) mod kernel;
pub(crate) mod scalar;
pub(crate) mod sketch;
