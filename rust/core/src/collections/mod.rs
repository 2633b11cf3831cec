//! Containers that snapshots share: append-only buffers, copy-on-write vectors, maps by id.

pub(crate) mod append_buffer;
pub(crate) mod cow_vec;
pub(crate) mod id_map;
pub(crate) mod plain;
