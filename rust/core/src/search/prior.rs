//! Priors: scores of rows before a query.

use std::sync::Arc;

use crate::Error;
use crate::quantization::coded_rows::BLOCK_ROWS;
use crate::storage::id_cache::IdCache;
use crate::storage::snapshot_store::{Snapshot, VectorRows};
use crate::system::memory_budget::headroom;

/// A number for each of some ids, added to their scores; other ids have 0.
///
/// Reusing a prior saves looking its ids up again until the map changes.
pub struct Prior {
    /// Ascending by id, each once.
    entries: Box<[(i64, f32)]>,
    cache: IdCache<PriorRows>,
}

/// The priors of one snapshot's rows.
pub(crate) struct PriorRows {
    segments: Vec<Box<[f32]>>,
    /// The largest magnitude.
    pub(crate) max: f32,
}

impl Prior {
    /// Give `ids` their `values`.
    ///
    /// # Errors
    ///
    /// When the counts differ, an id is given twice, a value is NaN or infinite, or they do not fit memory.
    pub fn new(ids: &[i64], values: &[f32]) -> Result<Self, Error> {
        if ids.len() != values.len() {
            let (ids, found) = (ids.len(), values.len());
            return Err(Error::CountMismatch { ids, what: "values", found });
        }
        if let Some(row) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::NonFinite { what: "prior", row });
        }
        headroom(2 * size_of::<(i64, f32)>() * ids.len())?;
        let mut entries: Vec<_> = ids.iter().copied().zip(values.iter().copied()).collect();
        entries.sort_unstable_by_key(|(id, _)| *id);
        match entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(Error::DuplicateId { id: pair[0].0 }),
            None => Ok(Self { entries: entries.into(), cache: IdCache::default() }),
        }
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn rows_in(&self, snapshot: &Snapshot) -> Arc<PriorRows> {
        self.cache.in_snapshot(snapshot, |vectors| resolve(&self.entries, vectors))
    }
}

impl PriorRows {
    /// One value for each row that the segment at `position` has capacity for.
    pub(crate) fn segment(&self, position: usize) -> &[f32] {
        &self.segments[position]
    }
}

fn resolve(entries: &[(i64, f32)], vectors: &VectorRows) -> PriorRows {
    // Rows are bounded a block at a time, so rows that a writer adds meanwhile are bounded too.
    let empty = |rows: usize| vec![0.0; rows.next_multiple_of(BLOCK_ROWS)].into();
    let capacities = vectors.segments.iter().map(|view| view.segment.capacity());
    let mut segments: Vec<Box<[f32]>> = capacities.map(empty).collect();
    let mut max = 0.0_f32;
    for (id, value) in entries {
        let Some(place) = vectors.places.get(*id) else { continue };
        if let Some(position) = vectors.position(place.number()) {
            segments[position][place.row()] = *value;
            max = max.max(value.abs());
        }
    }
    PriorRows { segments, max }
}
