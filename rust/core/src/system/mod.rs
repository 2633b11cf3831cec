//! Operating system and files: memory budget, file locks, the write-ahead log of the store.

pub(crate) mod data_file;
pub mod file_locks;
pub mod mapped_file;
pub mod memory_budget;
pub mod new_file;
pub mod write_ahead_log;
