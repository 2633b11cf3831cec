//! Snapshots of rows: segments, the one writer, maintenance in the background.

pub(crate) mod compaction;
pub(crate) mod id_cache;
pub(crate) mod maintenance;
pub(crate) mod row_checks;
pub(crate) mod segment;
pub(crate) mod snapshot_store;
pub(crate) mod vector_file;
