//! Snapshots of rows: segments, the one writer, maintenance in the background.

pub(crate) mod compaction;
pub(crate) mod id_cache;
pub(crate) mod maintenance;
pub(crate) mod segment;
pub(crate) mod snapshot_store;
