//! `MemoryIndex`: the owner of the rows. One writer at a time prepares the next state beside the
//! published one and swaps it in; readers hold the state they took.
//!
//! Vectors are its only part so far; columns, keywords and links join the same snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use imbl::OrdMap;
use parking_lot::{Mutex, RwLock};

use crate::segment::{SEGMENT_ROWS, SegmentView, SegmentWriter};
use crate::simd::Kernel;

/// Smallest capacity of a segment that grows row by row.
const LEAST_CAPACITY: usize = 16;

/// Such a segment has room for this share of the rows there are, which bounds unused memory.
const GROWTH_SHARE: usize = 16;

/// Estimated bytes of one id in the ordered map: key and place, in nodes about 3/4 full.
const PLACE_BYTES: usize = 22;

/// Where a row is: the segment's serial number and the row inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

impl Place {
    pub(crate) fn new(serial: u64, row: usize) -> Self {
        Self(serial * SEGMENT_ROWS as u64 + row as u64)
    }

    pub(crate) fn serial(self) -> u64 {
        self.0 / SEGMENT_ROWS as u64
    }

    pub(crate) fn row(self) -> usize {
        (self.0 % SEGMENT_ROWS as u64) as usize
    }
}

/// Everything a reader sees, never changed once published.
pub(crate) struct Snapshot {
    /// Unique over all indexes of the process.
    pub(crate) revision: u64,
    pub(crate) vectors: VectorRows,
}

/// The vectors of a snapshot, and where each id's row is.
#[derive(Clone, Default)]
pub(crate) struct VectorRows {
    /// In the order of their serial numbers.
    pub(crate) segments: Vec<SegmentView>,
    pub(crate) places: OrdMap<i64, Place>,
}

impl VectorRows {
    pub(crate) fn position(&self, serial: u64) -> Option<usize> {
        self.segments
            .binary_search_by_key(&serial, |view| view.serial)
            .ok()
    }

    /// The padded float32 row of an id.
    pub(crate) fn vector(&self, id: i64) -> Option<&[f32]> {
        let place = self.places.get(&id)?;
        let view = &self.segments[self.position(place.serial())?];
        Some(view.segment.vector(place.row()))
    }

    /// Point `ids` at consecutive rows; returns the places they had before.
    fn point(&mut self, ids: &[i64], serial: u64, first: usize) -> Vec<Place> {
        let places = ids.iter().enumerate();
        places
            .filter_map(|(at, id)| self.places.insert(*id, Place::new(serial, first + at)))
            .collect()
    }

    /// Mark rows dead, and drop segments that have no live row and no writer.
    fn bury(&mut self, mut places: Vec<Place>, tail: Option<u64>) {
        places.sort_unstable();
        for rows in places.chunk_by(|one, next| one.serial() == next.serial()) {
            if let Some(position) = self.position(rows[0].serial()) {
                self.segments[position].bury(rows.iter().map(|place| place.row()));
            }
        }
        self.segments
            .retain(|view| view.live_count() > 0 || Some(view.serial) == tail);
    }

    pub(crate) fn dead_count(&self) -> usize {
        self.segments.iter().map(SegmentView::dead_count).sum()
    }

    fn bytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(SegmentView::bytes).sum();
        segments + self.places.len() * PLACE_BYTES
    }
}

/// What only the writer needs.
pub(crate) struct Writer {
    tail: Option<(u64, SegmentWriter)>,
    next_serial: u64,
}

impl Writer {
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial
    }

    pub(crate) fn tail_serial(&self) -> Option<u64> {
        self.tail.as_ref().map(|(serial, _)| *serial)
    }
}

/// What readers, writers and the compacting thread share.
pub(crate) struct Shared {
    pub(crate) kernel: &'static dyn Kernel,
    pub(crate) dim: usize,
    published: RwLock<Arc<Snapshot>>,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) compacting: AtomicBool,
}

/// Rows in memory, changed by whole calls.
pub(crate) struct MemoryIndex {
    pub(crate) shared: Arc<Shared>,
}

impl MemoryIndex {
    pub(crate) fn new(kernel: &'static dyn Kernel, dim: usize) -> Self {
        let shared = Shared {
            kernel,
            dim,
            published: RwLock::new(Arc::new(snapshot_of(VectorRows::default()))),
            writer: Mutex::new(Writer {
                tail: None,
                next_serial: 0,
            }),
            compacting: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.snapshot()
    }

    /// Insert or overwrite; `write(i, row)` fills the first `dim` floats of row `i`.
    pub(crate) fn upsert(&self, ids: &[i64], write: impl FnMut(usize, &mut [f32])) {
        let mut writer = self.shared.writer.lock();
        let mut draft = self.snapshot().vectors.clone();
        let replaced = self.shared.append(&mut writer, &mut draft, ids, write);
        draft.bury(replaced, writer.tail_serial());
        self.shared.publish(draft);
        self.compact_where_due(writer);
    }

    /// Replace the whole content in one swap.
    pub(crate) fn replace(&self, ids: &[i64], write: impl FnMut(usize, &mut [f32])) {
        let mut writer = self.shared.writer.lock();
        let mut draft = VectorRows::default();
        writer.tail = None;
        self.shared.append(&mut writer, &mut draft, ids, write);
        self.shared.publish(draft);
    }

    /// Remove ids; returns how many were there.
    pub(crate) fn remove(&self, ids: &[i64]) -> usize {
        let writer = self.shared.writer.lock();
        let mut draft = self.snapshot().vectors.clone();
        let removed: Vec<Place> = ids
            .iter()
            .filter_map(|id| draft.places.remove(id))
            .collect();
        let count = removed.len();
        if count > 0 {
            draft.bury(removed, writer.tail_serial());
            self.shared.publish(draft);
            self.compact_where_due(writer);
        }
        count
    }

    pub(crate) fn bytes(&self) -> usize {
        self.snapshot().vectors.bytes()
    }
}

impl Shared {
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published.read())
    }

    pub(crate) fn publish(&self, vectors: VectorRows) {
        let next = Arc::new(snapshot_of(vectors));
        let previous = std::mem::replace(&mut *self.published.write(), next);
        // Freed here, after the lock, where no reader holds it any more.
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
            let (serial, tail) = self.tail_with_room(writer, draft, ids.len() - done);
            let first = tail.len();
            let here = &ids[done..][..tail.room().min(ids.len() - done)];
            for (at, id) in here.iter().enumerate() {
                tail.append(*id, |row| write(done + at, row));
            }
            let len = tail.len();
            if let Some(position) = draft.position(serial) {
                draft.segments[position].len = len;
            }
            replaced.extend(draft.point(here, serial, first));
            done += here.len();
        }
        replaced
    }

    /// The tail, or a new one where it is full; a new one takes `wanted` rows if it may.
    fn tail_with_room<'a>(
        &self,
        writer: &'a mut Writer,
        draft: &mut VectorRows,
        wanted: usize,
    ) -> (u64, &'a mut SegmentWriter) {
        if writer
            .tail
            .as_ref()
            .is_none_or(|(_, tail)| tail.room() == 0)
        {
            let grown = (draft.places.len() / GROWTH_SHARE)
                .max(LEAST_CAPACITY)
                .max(wanted);
            let tail = SegmentWriter::new(self.kernel, self.dim, grown.min(SEGMENT_ROWS));
            let serial = writer.next_serial();
            draft
                .segments
                .push(SegmentView::new(serial, Arc::clone(tail.segment()), 0));
            writer.tail = Some((serial, tail));
        }
        let (serial, tail) = writer.tail.as_mut().expect("a tail was just made sure of");
        (*serial, tail)
    }
}

fn snapshot_of(vectors: VectorRows) -> Snapshot {
    static REVISION: AtomicU64 = AtomicU64::new(0);
    Snapshot {
        revision: REVISION.fetch_add(1, Ordering::Relaxed),
        vectors,
    }
}
