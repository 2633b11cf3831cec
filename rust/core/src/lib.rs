//! Exact vector search and text work over many memories. Plain slices in, plain values out.

mod bits;
pub mod checksum;
mod collections;
pub mod columns;
pub mod deadline;
mod error;
pub mod filter;
mod ids;
pub mod lexical;
pub mod memory;
mod memory_fields;
mod memory_index;
mod quantization;
pub mod rank;
mod search;
mod simd;
mod storage;
pub mod system;
pub mod text;
mod vector_map;

pub use error::Error;
pub use memory_index::{
    Answer, Batch, Evidence, Hit as MemoryHit, IndexSnapshot, Linked, LinkedHit, MemoryIndex,
    NeighbourHit, Request, RowSelection, RowSet, VectorsPage,
};
pub use quantization::scalar::MAX_DIM;
pub use rank::components::Components;
pub use rank::cosine_scale::CosineScale;
pub use rank::evidence::EvidenceFloor;
pub use rank::scoring_config::{AdaptiveShare, KeywordFields, ScoringConfig, Session, Weights};
pub use rank::signals::{Recency, Salience, SalienceParts};
pub use rank::why::Why;
pub use search::prior::Prior;
pub use search::selection::Selection;
pub use search::top_k::Hit;
pub use vector_map::{Metric, Search, VectorMap};

/// Name of the kernel this process scans with.
///
/// # Errors
///
/// When `MNEMIC_KERNEL` names no kernel, or one that this CPU cannot run.
pub fn kernel_name() -> Result<&'static str, Error> {
    simd::kernel().map(quantization::kernel::Kernel::name)
}
