//! Maintenance beside the writers: compaction, and sketches of segments that no longer grow.
//! Searches are exact with or without.
//!
//! The work runs in a thread of its own, started on demand, so that a fork never inherits the
//! handle of a missing thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::MutexGuard;

use crate::quantization::coded_rows::LONG_COMPONENTS;
use crate::quantization::sketch::{Basis, Sketch};
use crate::storage::compaction::Compaction;
use crate::storage::segment::SegmentView;
use crate::storage::snapshot_store::{SnapshotStore, StoreState, VectorRows, Writer};
use crate::system::memory_budget::{CALL, headroom};

/// A basis is learned again when the number of rows has grown by this factor.
const RELEARNING_GROWTH: usize = 4;

/// Releases maintenance, also after a panic.
struct MaintenanceGuard<'a>(&'a StoreState);

impl Drop for MaintenanceGuard<'_> {
    fn drop(&mut self) {
        self.0.maintained_by.store(0, Ordering::Release);
    }
}

impl SnapshotStore {
    /// Do the maintenance that a change made due, or start a thread for it.
    pub(crate) fn maintain(&self, writer: MutexGuard<'_, Writer>) {
        let compaction = self.shared.compact_inline(&writer);
        let tail = writer.tail_number();
        drop(writer);
        let is_due = compaction == Compaction::TooLarge || self.shared.is_sketch_due(tail);
        if is_due && self.shared.acquire_maintenance() {
            maintain_in_background(&self.shared);
        }
    }

    /// Do all due maintenance in this thread; wait for a running thread first.
    pub(crate) fn flush(&self) {
        while !self.shared.acquire_maintenance() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.maintain();
    }
}

fn maintain_in_background(shared: &Arc<StoreState>) {
    let worker = Arc::clone(shared);
    let work = move || worker.maintain();
    let started = std::thread::Builder::new().name("mnemic-maintain".to_owned()).spawn(work);
    if started.is_err() {
        // Without a thread the next change tries again, and compaction bounds its wait.
        shared.maintained_by.store(0, Ordering::Release);
    }
}

impl StoreState {
    /// Acquire maintenance, unless another thread of this process has it.
    fn acquire_maintenance(&self) -> bool {
        let own = std::process::id();
        let acquire = |by| (by != own).then_some(own);
        self.maintained_by.fetch_update(Ordering::AcqRel, Ordering::Acquire, acquire).is_ok()
    }

    /// Do all due maintenance, then release it.
    fn maintain(&self) {
        let _guard = MaintenanceGuard(self);
        while self.compact_once() || self.sketch_once() {}
    }

    fn is_sketch_due(&self, tail: Option<u32>) -> bool {
        let vectors = &self.snapshot().vectors;
        self.is_basis_due(vectors)
            || vectors.basis.is_some() && unsketched(vectors, tail).next().is_some()
    }

    fn is_basis_due(&self, vectors: &VectorRows) -> bool {
        let rows = vectors.places.len();
        let tried = self.rows_without_basis.load(Ordering::Relaxed);
        let known = vectors.basis.as_ref().map_or(tried, |basis| basis.learned_from);
        Basis::suits(self.dim)
            && rows * self.dim >= LONG_COMPONENTS
            && rows >= known.saturating_mul(RELEARNING_GROWTH)
    }

    /// Learn a basis or sketch segments, if either is due; the caller does not hold the writer's
    /// lock.
    fn sketch_once(&self) -> bool {
        let tail = self.writer.lock().tail_number();
        let snapshot = self.snapshot();
        let vectors = &snapshot.vectors;
        // A sketch of a row takes 64 bytes, a basis some matrices of the dimension.
        let bytes = vectors.places.len() * 128 + self.dim * self.dim * 64;
        if headroom(bytes + CALL * 4).is_err() {
            return false; // answers are the same without; the next change tries again
        }
        if self.is_basis_due(vectors) {
            return self.learn(vectors, tail);
        }
        let Some(basis) = &vectors.basis else { return false };
        let views: Vec<&SegmentView> = unsketched(vectors, tail).collect();
        if views.is_empty() {
            return false;
        }
        self.install_sketches(basis, self.sketched(basis, &views), false);
        true
    }

    fn learn(&self, vectors: &VectorRows, tail: Option<u32>) -> bool {
        let rows = vectors.places.len();
        let segments = vectors.segments.iter().map(SegmentView::vectors);
        let learned = Basis::learn(self.kernel, self.dim, segments, rows);
        let Some(basis) = learned.map(Arc::new) else {
            // Sketches in an older basis stay: they still rule rows out.
            self.rows_without_basis.store(rows, Ordering::Relaxed);
            return false;
        };
        let views: Vec<&SegmentView> = complete(vectors, tail).collect();
        self.install_sketches(&basis, self.sketched(&basis, &views), true);
        true
    }

    fn sketched(
        &self,
        basis: &Arc<Basis>,
        views: &[&SegmentView],
    ) -> Vec<(SegmentView, Arc<Sketch>)> {
        let segments = views.iter().map(|view| view.vectors()).collect();
        let sketches = Sketch::of(self.kernel, basis, segments).into_iter().map(Arc::new);
        views.iter().map(|view| (*view).clone()).zip(sketches).collect()
    }

    /// Give segments that are still there their sketches; with a new basis all others lose theirs.
    fn install_sketches(
        &self,
        basis: &Arc<Basis>,
        sketches: Vec<(SegmentView, Arc<Sketch>)>,
        is_new: bool,
    ) {
        let _writer = self.writer.lock();
        let mut draft = self.snapshot().vectors.clone();
        let is_current = draft.basis.as_ref().is_some_and(|current| Arc::ptr_eq(current, basis));
        if !is_new && !is_current {
            return;
        }
        if is_new {
            draft.basis = Some(Arc::clone(basis));
            draft.segments.iter_mut().for_each(|view| view.sketch = None);
        }
        for (sketched, sketch) in sketches {
            if let Some(position) = draft.position(sketched.number)
                && Arc::ptr_eq(&draft.segments[position].segment, &sketched.segment)
            {
                draft.segments[position].sketch = Some(sketch);
            }
        }
        self.publish(draft);
    }
}

/// The segments that no longer grow.
fn complete(vectors: &VectorRows, tail: Option<u32>) -> impl Iterator<Item = &SegmentView> {
    let is_complete =
        move |view: &&SegmentView| Some(view.number) != tail || view.len == view.segment.capacity();
    vectors.segments.iter().filter(is_complete)
}

fn unsketched(vectors: &VectorRows, tail: Option<u32>) -> impl Iterator<Item = &SegmentView> {
    complete(vectors, tail).filter(|view| view.sketch.is_none())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::columns::Record;
    use crate::memory_index::{Batch, MemoryIndex};
    use crate::text::Analysis;

    const DIM: usize = 256;
    const ROWS: usize = LONG_COMPONENTS.div_ceil(DIM);

    /// Rows that differ in few directions, so that a basis pays.
    fn alike() -> Vec<f32> {
        let wave = |row: usize, at: usize| ((row * (at % 8 + 1)) as f32).sin() + 2.0;
        (0..ROWS * DIM).map(|place| wave(place / DIM, place % DIM)).collect()
    }

    #[test]
    fn what_loading_leaves_for_later_is_done_when_nothing_is_applied() {
        let index =
            MemoryIndex::new(Some(DIM), Analysis::default(), None).expect("a valid dimension");
        let rows: Vec<i64> = (0..ROWS as i64).collect();
        let record = |row: &i64| Record { row: *row, ..Record::default() };
        let records: Vec<Record> = rows.iter().map(record).collect();
        index.load(&Batch { records: &records, ..Batch::default() }).expect("valid");
        let (embedded, vectors) = (&rows, &alike());
        index.load(&Batch { embedded, vectors, ..Batch::default() }).expect("valid");
        let shared = index.shared();
        let has_basis = || shared.snapshot().vectors.basis.is_some();
        assert!(shared.is_sketch_due(None) && !has_basis());
        assert_eq!(shared.maintained_by.load(Ordering::Acquire), 0, "nobody is at work");
        index.apply(&Batch::default()).expect("valid");
        let begun = Instant::now();
        while shared.is_sketch_due(None) && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!shared.is_sketch_due(None) && has_basis());
    }
}
