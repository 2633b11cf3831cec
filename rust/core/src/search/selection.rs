//! A set of ids that a search may answer with, resolved to rows once for each state of a map.

use std::sync::Arc;

use crate::Error;
use crate::bits::{rows_of, set_bits};
use crate::deadline::Deadline;
use crate::ids::{docid_of, vector_id};
use crate::quantization::kernel::TILE_ROWS;
use crate::search::docid_set::DocidSet;
use crate::storage::id_cache::IdCache;
use crate::storage::segment::SegmentView;
use crate::storage::snapshot_store::{Snapshot, VectorRows};

/// Ids that a search is limited to. Ids that the searched map does not hold match nothing.
///
/// Reusing a selection saves looking its ids up again until the map changes.
pub struct Selection {
    ids: Box<[i64]>,
    cache: IdCache<SelectedRows>,
}

/// The selected rows of one snapshot: a mask for each segment that has any.
pub(crate) struct SelectedRows {
    segments: Vec<SegmentRows>,
}

#[derive(Clone, Default)]
pub(crate) struct SegmentRows {
    pub(crate) words: Box<[u64]>,
    /// The rows one by one, where they are few.
    pub(crate) listed: Option<Box<[u32]>>,
    pub(crate) count: usize,
}

impl SegmentRows {
    /// The same, with a list of the rows where they are few of so many.
    fn with_list(self, len: usize) -> Self {
        let is_sparse = self.count * SPARSE_SHARE < len;
        let listed = is_sparse.then(|| rows_of(&self.words).collect());
        Self { listed, ..self }
    }
}

/// Segments with fewer than one selected row in this many are read row by row.
pub(crate) const SPARSE_SHARE: usize = 6;

/// If fewer than one row in this many is selected, rows are looked up by id; otherwise a pass over
/// all rows is faster.
pub(crate) const FEW_SHARE: usize = 64;

impl Selection {
    /// Select ids, in any order; repeats count once.
    pub fn new(ids: &[i64]) -> Self {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        Self { ids: ids.into(), cache: IdCache::default() }
    }

    /// The selected ids, ascending, each once.
    pub fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// The rows these ids have in `snapshot`, from the last call where nothing has changed.
    pub(crate) fn rows_in(&self, snapshot: &Snapshot) -> Arc<SelectedRows> {
        self.cache.in_snapshot(snapshot, |vectors| SelectedRows {
            segments: resolve(self.ids.iter().copied(), vectors),
        })
    }
}

impl SelectedRows {
    /// The rows of the vectors of these docids, of so many chunks each at most; `None` if these are
    /// all rows.
    pub(crate) fn of_docids(
        vectors: &VectorRows,
        chunks: u32,
        candidates: &DocidSet,
        deadline: &Deadline,
    ) -> Result<Option<Self>, Error> {
        if candidates.is_everything {
            return Ok(None);
        }
        if candidates.len() * FEW_SHARE < vectors.places.len() {
            return Ok(Some(Self::of_few(vectors, chunks, candidates.iter())));
        }
        let of_view = |view: &SegmentView| {
            deadline.check()?;
            let ids = view.segment.ids();
            let selected = |(word, live): (usize, u64)| {
                let is_candidate =
                    |bit: &usize| candidates.contains(docid_of(ids[word * TILE_ROWS + bit]));
                set_bits(live).filter(is_candidate).fold(0, |word, bit| word | 1 << bit)
            };
            let words: Box<[u64]> = view.live_words().enumerate().map(selected).collect();
            let count = words.iter().map(|word| word.count_ones() as usize).sum();
            Ok(SegmentRows { words, listed: None, count }.with_list(view.len))
        };
        let segments: Result<_, Error> = vectors.segments.iter().map(of_view).collect();
        Ok(Some(Self { segments: segments? }))
    }

    /// The same of few docids, each of which is looked up.
    pub(crate) fn of_few(
        vectors: &VectorRows,
        chunks: u32,
        docids: impl Iterator<Item = u32>,
    ) -> Self {
        let of_docid = |docid| (0..chunks).map(move |chunk| vector_id(docid, chunk));
        Self { segments: resolve(docids.flat_map(of_docid), vectors) }
    }

    pub(crate) fn segment(&self, position: usize) -> &SegmentRows {
        &self.segments[position]
    }

    pub(crate) fn count(&self) -> usize {
        self.segments.iter().map(|rows| rows.count).sum()
    }
}

fn resolve(ids: impl Iterator<Item = i64>, vectors: &VectorRows) -> Vec<SegmentRows> {
    let mut segments = vec![SegmentRows::default(); vectors.segments.len()];
    for place in ids.filter_map(|id| vectors.places.get(id)) {
        let Some(position) = vectors.position(place.number()) else {
            continue;
        };
        let rows = &mut segments[position];
        if rows.words.is_empty() {
            rows.words = vec![0; vectors.segments[position].len.div_ceil(TILE_ROWS)].into();
        }
        rows.words[place.row() / TILE_ROWS] |= 1 << (place.row() % TILE_ROWS);
        rows.count += 1;
    }
    let lens = vectors.segments.iter().map(|view| view.len);
    segments.into_iter().zip(lens).map(|(rows, len)| rows.with_list(len)).collect()
}
