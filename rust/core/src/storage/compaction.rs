//! Compaction: segments with more than a quarter of deleted rows are copied without them.
//!
//! The writer makes small copies itself, the maintenance thread larger ones.

use std::sync::Arc;

use crate::collections::append_buffer::Filling;
use crate::storage::segment::{SEGMENT_ROWS, SegmentView, SegmentWriter, are_damaged};
use crate::storage::snapshot_store::{Place, StoreState, VectorRows, Writer};
use crate::system::memory_budget::{CALL, headroom};

/// Copies up to this size cost the writer about a millisecond and are made at once.
const INLINE_BYTES: usize = 2 << 20;

/// Complete segments with less than this share of the rows are merged along.
const SMALL_SHARE: usize = 32;

/// Whether compaction is done or not due, or is too long for a writer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Compaction {
    Done,
    TooLarge,
}

impl StoreState {
    /// Do the compaction that the last change made due, unless it would delay the writer.
    pub(crate) fn compact_inline(&self, writer: &Writer) -> Compaction {
        let current = self.snapshot();
        let victims = due(&current.vectors, writer.tail_number());
        let Some(first) = victims.first() else { return Compaction::Done };
        let rows: usize = victims.iter().map(SegmentView::live_count).sum();
        let row_bytes = first.segment.size() / first.segment.capacity();
        // Where deleted rows outnumber live ones the copying thread has fallen behind, or was lost
        // in a fork; the writer then does the work itself rather than wait.
        let behind = current.vectors.deleted_count() > current.vectors.places.len();
        if rows * row_bytes > INLINE_BYTES && !behind {
            return Compaction::TooLarge;
        }
        if !self.has_memory_for(&victims) {
            return Compaction::Done; // without it answers are the same; the next change tries again
        }
        let copy = self.copy_of(&victims);
        self.install(&victims, &copy);
        Compaction::Done
    }

    /// Compact once, if anything is due; the caller does not hold the writer's lock.
    pub(crate) fn compact_once(&self) -> bool {
        let tail = self.writer.lock().tail_number();
        let victims = due(&self.snapshot().vectors, tail);
        if victims.is_empty() || !self.has_memory_for(&victims) {
            return false;
        }
        let copy = self.copy_of(&victims);
        let _writer = self.writer.lock();
        self.install(&victims, &copy);
        !are_damaged(&victims)
    }

    fn has_memory_for(&self, victims: &[SegmentView]) -> bool {
        let rows: usize = victims.iter().map(SegmentView::live_count).sum();
        headroom(rows * (self.row_bytes() + size_of::<[u64; 8]>()) + CALL * 4).is_ok()
    }

    /// One new segment with the live rows of `victims`, in their order.
    fn copy_of(&self, victims: &[SegmentView]) -> SegmentWriter {
        let rows = victims.iter().map(SegmentView::live_count).sum();
        let mut copy = SegmentWriter::new(self.kernel, self.dim, rows, Filling::AtOnce);
        // What is copied of unsound ones is never installed.
        for victim in victims.iter().filter(|victim| victim.segment.has_sound_codes()) {
            for place in live_places(victim) {
                copy.append_from(&victim.segment, place.row());
            }
        }
        copy
    }

    /// Swap `victims` for their copy, unless one of them has gone meanwhile. The caller holds the
    /// writer's lock.
    fn install(&self, victims: &[SegmentView], copy: &SegmentWriter) {
        if are_damaged(victims) {
            return; // the copy holds zeros, and the damage would not be known any more
        }
        let mut draft = self.snapshot().vectors.clone();
        if !victims.iter().all(|victim| still_there(&draft, victim)) {
            return;
        }
        let number = draft.add(&copy.segment, copy.len);
        let mut died = Vec::new();
        let old_places = victims.iter().flat_map(live_places);
        for (row, (old, id)) in old_places.zip(copy.segment.ids()).enumerate() {
            if draft.places.get(*id) == Some(old) {
                draft.places.insert(*id, Place::new(number, row));
            } else {
                died.push(row);
            }
        }
        if let Some(position) = draft.position(number).filter(|_| !died.is_empty()) {
            draft.segments[position].mark_deleted(died);
        }
        draft.segments.retain(|view| victims.iter().all(|victim| victim.number != view.number));
        self.publish(draft);
    }
}

/// Whether the segment is still part of the rows; its number alone may belong to another by now.
fn still_there(vectors: &VectorRows, victim: &SegmentView) -> bool {
    let found = vectors.position(victim.number).map(|position| &vectors.segments[position]);
    found.is_some_and(|view| Arc::ptr_eq(&view.segment, &victim.segment))
}

/// The complete segments to copy now: those with more than a quarter of deleted rows, and small
/// ones, as far as one new segment has capacity for their rows.
fn due(vectors: &VectorRows, tail: Option<u32>) -> Vec<SegmentView> {
    let complete = || vectors.segments.iter().filter(|view| Some(view.number) != tail);
    let decayed = |view: &&SegmentView| view.deleted_count() * 4 > view.len;
    if !complete().any(|view| decayed(&view)) {
        return Vec::new();
    }
    let small = vectors.places.len() / SMALL_SHARE;
    let mut vacant = SEGMENT_ROWS;
    let mut victims = Vec::new();
    let rest = complete().filter(|view| !decayed(view) && view.live_count() < small);
    for view in complete().filter(decayed).chain(rest) {
        if view.live_count() <= vacant {
            vacant -= view.live_count();
            victims.push(view.clone());
        }
    }
    victims
}

/// Places and nothing else of the rows that a view calls live.
fn live_places(view: &SegmentView) -> impl Iterator<Item = Place> {
    view.live_rows().map(|row| Place::new(view.number, row))
}
