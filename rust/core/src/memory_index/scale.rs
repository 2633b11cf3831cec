//! The scale of an embedder's cosines, learned from a user's memories.

use crate::columns::{Ask, Scope, Users};
use crate::ids::vector_id;
use crate::quantization::scalar::norm;
use crate::rank::evidence::fewer;

use super::MemoryIndex;

/// Memories whose vectors are read: so many at least, and less than three times as many on average.
const SAMPLE: usize = 512;

/// Fewer memories may all be about one thing, and are then more like each other than any question.
const MIN_MEMORIES: f64 = 32.0;

/// Memories that are all alike are still found by a text of the same vector.
const MAX_COSINE: f64 = 1.0 - 1e-5;

/// How similar two memories are that have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CosineScale {
    /// The mean cosine of two memories.
    pub mean: f64,
    /// The cosine below which a text and a memory are most likely unrelated: the mean, and less
    /// among few memories.
    pub floor: f64,
}

impl MemoryIndex {
    /// The scale of the cosines of these users' memories; `None` with fewer than 32 vectors.
    ///
    /// It depends on nothing but the ids and the first vectors of the memories that are there: not
    /// on the order in which they came, nor on a filter.
    pub fn cosine_scale(&self, users: Users<'_>, now: i64) -> Option<CosineScale> {
        let snapshot = self.store.snapshot();
        let columns = &snapshot.memories.columns;
        let scope = Scope { user: users, project: None, session: None };
        let docids = columns.select(&Ask { scope, now, ..Ask::default() }).docids();
        // A power of two: with twice the memories half of the sample stays.
        let stride = 1_u64 << (docids.len() / SAMPLE).max(1).ilog2();
        let sampled = docids.iter().map(|docid| (columns.tie_of(*docid), *docid));
        let mut sampled: Vec<_> =
            sampled.filter(|(tie, _)| hash(tie.id).is_multiple_of(stride)).collect();
        // In one order, so that the sum is the same to the last bit.
        sampled.sort_unstable();
        let vectors = &snapshot.vectors;
        let (mut sum, mut count) = (vec![0.0; self.dim], 0.0);
        for (_, docid) in sampled {
            let Some(place) = vectors.places.get(vector_id(docid, 0)) else { continue };
            let Some(position) = vectors.position(place.number()) else { continue };
            let vector = vectors.segments[position].segment.vector(place.row());
            let length = norm(vector);
            if length > 0.0 {
                let parts = sum.iter_mut().zip(vector);
                parts.for_each(|(sum, part)| *sum += f64::from(*part) / length);
                count += 1.0;
            }
        }
        if count < MIN_MEMORIES {
            return None;
        }
        // The square of the sum holds each pair twice, and each vector with itself.
        let squared: f64 = sum.iter().map(|part: &f64| part * part).sum();
        let mean = ((squared - count) / (count * (count - 1.0))).min(MAX_COSINE);
        Some(CosineScale { mean, floor: mean - (1.0 - mean) * fewer(docids.len(), false) })
    }
}

/// FNV-1a of an id: which memories are sampled depends on nothing else.
fn hash(id: [u8; 16]) -> u64 {
    id.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
