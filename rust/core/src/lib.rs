//! Exact vector search and text work over many memories. Plain slices in, plain values out.

mod append_buffer;
mod cascade;
mod chunks;
pub mod columns;
mod compaction;
mod count;
mod error;
pub mod file_locks;
pub mod filter;
pub mod graph;
pub mod headroom;
mod id_map;
mod index;
mod keywords;
pub mod lexical;
mod memories;
mod memory_index;
pub mod order;
mod play;
mod prior;
mod probe;
mod quant;
mod rank;
mod ranking;
mod relevance;
mod resolved;
mod row_blocks;
mod scan;
mod sealing;
mod segment;
mod selection;
mod sessions;
mod simd;
mod similarity;
mod sketch;
mod slots;
mod speakers;
pub mod sums;
mod survey;
pub mod text;
mod top_k;
mod vector_map;
mod worths;
pub mod write_ahead_log;

pub use error::Error;
pub use memory_index::{Answer, Hit as MemoryHit, Linked, LinkedHit, Links, MemoryIndex, Request};
pub use prior::Prior;
pub use quant::MAX_DIM;
pub use rank::Components;
pub use ranking::{KeywordFields, Ranking, Session, Weights};
pub use relevance::{Recency, Salience, SalienceParts};
pub use selection::Selection;
pub use top_k::Hit;
pub use vector_map::{Metric, Search, VectorMap};

/// Name of the kernel this process scans with.
///
/// # Errors
///
/// When `MNEMIC_KERNEL` names no kernel, or one that this CPU cannot run.
pub fn kernel_name() -> Result<&'static str, Error> {
    simd::kernel().map(simd::Kernel::name)
}
