//! Exact vector search and text work over many memories. Plain slices in, plain values out.

pub mod text;
