//! `SnapshotStore`: one writer at a time prepares the next snapshot beside the published one and
//! swaps it in; readers keep the snapshot that they began with.
//!
//! A snapshot holds vectors and the state of all memories.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::Error;
use crate::collections::append_buffer::Filling;
use crate::collections::id_map::IdMap;
use crate::memory::state::MemoryState;
use crate::quantization::kernel::Kernel;
use crate::quantization::sketch::Basis;
use crate::storage::segment::{SEGMENT_ROWS, Segment, SegmentView, SegmentWriter, are_damaged};

/// Smallest capacity of a segment that grows row by row.
const MIN_CAPACITY: usize = 16;

/// From this many rows in one call on, a segment gets no capacity beyond them.
const BULK_ROWS: usize = 256;

/// Such a segment has capacity for this share of all rows, which bounds unused memory.
const GROWTH_SHARE: usize = 16;

/// The place of a row: the segment's number in its snapshot, and the row inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u32);

impl Place {
    /// `number` stays far below 2¹⁹: growing segments hold a sixteenth of all rows.
    pub(crate) fn new(number: u32, row: usize) -> Self {
        Self(number * SEGMENT_ROWS as u32 + row as u32)
    }

    pub(crate) fn number(self) -> u32 {
        self.0 / SEGMENT_ROWS as u32
    }

    pub(crate) fn row(self) -> usize {
        self.0 as usize % SEGMENT_ROWS
    }
}

/// Everything a reader sees, never changed once published.
pub(crate) struct Snapshot {
    /// Unique over all indexes of the process.
    pub(crate) revision: u64,
    pub(crate) vectors: VectorRows,
    /// Attributes and keywords of the memories of the vectors; empty in a vector map.
    pub(crate) memories: Arc<MemoryState>,
}

/// The next state of the memories, with the removed and added vectors.
pub(crate) struct Change {
    pub(crate) memories: MemoryState,
    pub(crate) removed: Vec<i64>,
    /// Ids of new vectors.
    pub(crate) added: Vec<i64>,
}

/// When to do the maintenance that a change made due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maintenance {
    /// With the change.
    Now,
    /// With a later one: more changes follow before the next search.
    Later,
}

/// The vectors of a snapshot, and the place of each id's row.
#[derive(Clone, Default)]
pub(crate) struct VectorRows {
    /// In the order of their numbers.
    pub(crate) segments: Vec<SegmentView>,
    pub(crate) places: IdMap<Place>,
    /// Of the segments' sketches.
    pub(crate) basis: Option<Arc<Basis>>,
}

impl VectorRows {
    pub(crate) fn position(&self, number: u32) -> Option<usize> {
        self.segments.binary_search_by_key(&number, |view| view.number).ok()
    }

    /// Add a segment under the smallest free number; returns it.
    pub(crate) fn add(&mut self, segment: &Arc<Segment>, len: usize) -> u32 {
        let used = self.segments.iter().zip(0..);
        let number = used.take_while(|(view, number)| view.number == *number).count();
        let view = SegmentView::new(number as u32, Arc::clone(segment), len);
        self.segments.insert(number, view);
        number as u32
    }

    /// The padded float32 row of an id.
    pub(crate) fn vector(&self, id: i64) -> Option<&[f32]> {
        let place = self.places.get(id)?;
        let view = &self.segments[self.position(place.number())?];
        Some(view.segment.vector(place.row()))
    }

    /// Point `ids` at consecutive rows; returns the places they had before.
    fn point(&mut self, ids: &[i64], number: u32, first: usize) -> Vec<Place> {
        let mut replaced = Vec::new();
        for (at, id) in ids.iter().enumerate() {
            replaced.extend(self.places.insert(*id, Place::new(number, first + at)));
        }
        replaced
    }

    /// Mark rows as deleted, and drop segments without live rows and without a writer.
    fn mark_deleted(&mut self, mut places: Vec<Place>, tail: Option<u32>) {
        places.sort_unstable();
        for rows in places.chunk_by(|one, next| one.number() == next.number()) {
            if let Some(position) = self.position(rows[0].number()) {
                self.segments[position].mark_deleted(rows.iter().map(|place| place.row()));
            }
        }
        self.segments.retain(|view| view.live_count() > 0 || Some(view.number) == tail);
    }

    /// Check what a search reads of every row, where that lies in a file and was not read before.
    ///
    /// # Errors
    ///
    /// When a part of the file is damaged.
    pub(crate) fn check_codes(&self) -> Result<(), Error> {
        let are_sound = self.segments.iter().all(|view| view.segment.has_sound_codes());
        Error::unless(are_sound, "codes of vectors in it are damaged")
    }

    /// Check that all that was read of the rows so far was as it had been written.
    ///
    /// # Errors
    ///
    /// When it was not: no answer of these rows can be trusted.
    pub(crate) fn check_read(&self) -> Result<(), Error> {
        Error::unless(!are_damaged(&self.segments), "vectors in it are damaged")
    }

    pub(crate) fn deleted_count(&self) -> usize {
        self.segments.iter().map(SegmentView::deleted_count).sum()
    }

    fn bytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(SegmentView::bytes).sum();
        segments + self.places.bytes()
    }
}

/// State of the writer: the growing segment, and its number.
pub(crate) struct Writer {
    tail: Option<(u32, SegmentWriter)>,
}

impl Writer {
    pub(crate) fn tail_number(&self) -> Option<u32> {
        self.tail.as_ref().map(|(number, _)| *number)
    }
}

/// State shared by readers, writers and the maintenance thread.
pub(crate) struct StoreState {
    pub(crate) kernel: &'static dyn Kernel,
    pub(crate) dim: usize,
    published: RwLock<Arc<Snapshot>>,
    pub(crate) writer: Mutex<Writer>,
    /// The process whose thread does maintenance, or 0: after a fork the parent's thread does not
    /// exist.
    pub(crate) maintained_by: AtomicU32,
    /// Number of rows when learning a basis last failed to pay.
    pub(crate) rows_without_basis: AtomicUsize,
}

/// Rows in memory, changed by whole calls.
pub(crate) struct SnapshotStore {
    pub(crate) shared: Arc<StoreState>,
}

impl SnapshotStore {
    pub(crate) fn new(kernel: &'static dyn Kernel, dim: usize, memories: MemoryState) -> Self {
        Self::of(kernel, dim, VectorRows::default(), memories)
    }

    /// A store that begins with these rows.
    pub(crate) fn of(
        kernel: &'static dyn Kernel,
        dim: usize,
        rows: VectorRows,
        memories: MemoryState,
    ) -> Self {
        let shared = StoreState {
            kernel,
            dim,
            published: RwLock::new(Arc::new(snapshot_of(rows, Arc::new(memories)))),
            writer: Mutex::new(Writer { tail: None }),
            maintained_by: AtomicU32::new(0),
            rows_without_basis: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.snapshot()
    }

    /// Insert or overwrite; `write(i, row)` fills the first `dim` floats of row `i`.
    pub(crate) fn upsert(&self, ids: &[i64], write: impl FnMut(usize, &mut [f32])) {
        let mut writer = self.shared.writer.lock();
        let mut draft = self.snapshot().vectors.clone();
        let replaced = self.shared.append(&mut writer, &mut draft, ids, write);
        draft.mark_deleted(replaced, writer.tail_number());
        self.shared.publish(draft);
        self.maintain(writer);
    }

    /// Replace the whole content in one swap.
    pub(crate) fn replace(&self, ids: &[i64], write: impl FnMut(usize, &mut [f32])) {
        let mut writer = self.shared.writer.lock();
        let mut draft = VectorRows::default();
        writer.tail = None;
        self.shared.rows_without_basis.store(0, Ordering::Relaxed);
        self.shared.append(&mut writer, &mut draft, ids, write);
        self.shared.publish(draft);
        self.maintain(writer);
    }

    /// Remove ids; returns how many were there.
    pub(crate) fn remove(&self, ids: &[i64]) -> usize {
        let writer = self.shared.writer.lock();
        let mut draft = self.snapshot().vectors.clone();
        let removed: Vec<Place> = ids.iter().filter_map(|id| draft.places.remove(*id)).collect();
        let count = removed.len();
        if count > 0 {
            draft.mark_deleted(removed, writer.tail_number());
            self.shared.publish(draft);
            self.maintain(writer);
        }
        count
    }

    /// Change memories and vectors together. `decide` sees the state that is changed and may refuse;
    /// `write(i, row)` fills the vector of the i-th id that it adds.
    pub(crate) fn change<E>(
        &self,
        decide: impl FnOnce(&Snapshot) -> Result<Change, E>,
        write: impl FnMut(usize, &mut [f32]),
        maintenance: Maintenance,
    ) -> Result<(), E> {
        let mut writer = self.shared.writer.lock();
        let snapshot = self.snapshot();
        let Change { memories, removed, added } = decide(&snapshot)?;
        let mut draft = snapshot.vectors.clone();
        let mut deleted: Vec<Place> =
            removed.iter().filter_map(|id| draft.places.remove(*id)).collect();
        deleted.extend(self.shared.append(&mut writer, &mut draft, &added, write));
        draft.mark_deleted(deleted, writer.tail_number());
        self.shared.publish_with(draft, Arc::new(memories));
        if maintenance == Maintenance::Now {
            self.maintain(writer);
        }
        Ok(())
    }

    /// Change memories whose vectors stay.
    pub(crate) fn change_memories(&self, change: impl FnOnce(&mut MemoryState)) {
        let _writer = self.shared.writer.lock();
        let snapshot = self.snapshot();
        let mut memories = MemoryState::clone(&snapshot.memories);
        change(&mut memories);
        self.shared.publish_with(snapshot.vectors.clone(), Arc::new(memories));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.snapshot().vectors.bytes()
    }

    /// Largest memory of a change that adds and removes so many vectors.
    pub(crate) fn bytes_of_change(&self, added: usize, removed: usize) -> usize {
        let vectors = &self.snapshot().vectors;
        let changed = added.saturating_add(removed);
        let growth = (vectors.places.len() / GROWTH_SHARE).clamp(MIN_CAPACITY, SEGMENT_ROWS);
        let rows = added.max(growth).saturating_mul(self.shared.row_bytes());
        let ids = changed.saturating_mul(BYTES_PER_CHANGED_ID);
        let views = vectors.segments.len() * BYTES_PER_VIEW;
        rows.saturating_add(ids).saturating_add(views).saturating_add(ALIGNMENT)
    }
}

/// A copied block of the id map holds 1,024 ids; neighbouring ids share it.
const BYTES_PER_CHANGED_ID: usize = 64;

/// A view, its deleted rows, and the places of its ids.
const BYTES_PER_VIEW: usize = 4096;

/// Regions begin where huge pages do.
const ALIGNMENT: usize = 4 << 20;

impl StoreState {
    /// Bytes of a row: floats, two coarse copies and an id, each padded.
    pub(crate) fn row_bytes(&self) -> usize {
        self.dim * 6 + 512
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published.read())
    }

    /// Publish other vectors of the same memories; the caller holds the writer's lock.
    pub(crate) fn publish(&self, vectors: VectorRows) {
        self.publish_with(vectors, Arc::clone(&self.snapshot().memories));
    }

    fn publish_with(&self, vectors: VectorRows, memories: Arc<MemoryState>) {
        let next = Arc::new(snapshot_of(vectors, memories));
        let previous = std::mem::replace(&mut *self.published.write(), next);
        // Freed here, after the lock, unless a reader holds it.
        drop(previous);
    }

    /// Append rows to the tail and to new segments; returns the places they replace.
    fn append(
        &self,
        writer: &mut Writer,
        draft: &mut VectorRows,
        ids: &[i64],
        mut write: impl FnMut(usize, &mut [f32]),
    ) -> Vec<Place> {
        let mut replaced = Vec::new();
        let mut done = 0;
        while done < ids.len() {
            let (number, tail) = self.tail_with_capacity(writer, draft, ids.len() - done);
            let first = tail.len;
            let here = &ids[done..][..tail.vacant().min(ids.len() - done)];
            for (at, id) in here.iter().enumerate() {
                tail.append(*id, |row| write(done + at, row));
            }
            let len = tail.len;
            if let Some(position) = draft.position(number) {
                draft.segments[position].len = len;
            }
            replaced.extend(draft.point(here, number, first));
            done += here.len();
        }
        replaced
    }

    /// The tail, or a new one where it is full: for all the rows of a call that brings many, else
    /// with capacity to grow.
    fn tail_with_capacity<'a>(
        &self,
        writer: &'a mut Writer,
        draft: &mut VectorRows,
        wanted: usize,
    ) -> (u32, &'a mut SegmentWriter) {
        if writer.tail.as_ref().is_none_or(|(_, tail)| tail.vacant() == 0) {
            let growth = (draft.places.len() / GROWTH_SHARE).max(MIN_CAPACITY);
            let (capacity, filling) = if wanted >= BULK_ROWS {
                (wanted, Filling::AtOnce)
            } else {
                (growth.max(wanted), Filling::RowByRow)
            };
            let capacity = capacity.min(SEGMENT_ROWS);
            let tail = SegmentWriter::new(self.kernel, self.dim, capacity, filling);
            let number = draft.add(&tail.segment, 0);
            writer.tail = Some((number, tail));
        }
        let (number, tail) = writer.tail.as_mut().expect("a tail was just made sure of");
        (*number, tail)
    }
}

fn snapshot_of(vectors: VectorRows, memories: Arc<MemoryState>) -> Snapshot {
    static REVISION: AtomicU64 = AtomicU64::new(0);
    Snapshot { revision: REVISION.fetch_add(1, Ordering::Relaxed), vectors, memories }
}
