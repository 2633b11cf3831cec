//! A fixed-capacity buffer that one writer fills while any number of readers use what is filled.
//!
//! This and `row_blocks` are the places outside `simd` with unsafe code: appending in place is what keeps a
//! write from copying the map, and safe Rust has no slice that grows while it is shared.
#![expect(unsafe_code, reason = "readers share the filled part while the writer extends it")]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};

/// One cache line, so that rows start where vector loads are fastest.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; 64]);

/// How a buffer will be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filling {
    /// In one go; huge pages make reading it cheaper.
    AtOnce,
    /// Row by row; a huge page would make the row that first touches it wait for milliseconds.
    RowByRow,
}

/// The readers' side: only the filled part can be seen.
pub(crate) struct AppendBuffer<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    filled: AtomicUsize,
}

// SAFETY: slots below `filled` are never written again, and slots from `filled` on are touched
// only by the single `Appender`, which cannot be cloned.
unsafe impl<T: Send + Sync> Sync for AppendBuffer<T> {}

/// The writer's side; exactly one exists for each buffer.
pub(crate) struct Appender<T> {
    buffer: Arc<AppendBuffer<T>>,
}

/// Make slots for `count` values. Their memory is not even zeroed: a large buffer would make the
/// row that opens it wait for milliseconds.
pub(crate) fn uninitialised<T>(
    count: usize,
    filling: Filling,
) -> Box<[UnsafeCell<MaybeUninit<T>>]> {
    let empty: Box<[MaybeUninit<T>]> = Box::new_uninit_slice(count);
    if filling == Filling::AtOnce {
        prefer_huge_pages(empty.as_ptr().cast(), size_of_val(&*empty));
    }
    let raw = Box::into_raw(empty) as *mut [UnsafeCell<MaybeUninit<T>>];
    // SAFETY: `UnsafeCell` does not change a layout, and `raw` came from `Box::into_raw`.
    unsafe { Box::from_raw(raw) }
}

impl<T: Pod> AppendBuffer<T> {
    /// Make an empty buffer.
    pub(crate) fn with_capacity(capacity: usize, filling: Filling) -> (Arc<Self>, Appender<T>) {
        let slots = uninitialised(capacity, filling);
        let buffer = Arc::new(Self { slots, filled: AtomicUsize::new(0) });
        (Arc::clone(&buffer), Appender { buffer })
    }

    /// The filled part.
    pub(crate) fn filled(&self) -> &[T] {
        let filled = self.filled.load(Ordering::Acquire);
        let start: *const T = UnsafeCell::raw_get(self.slots.as_ptr()).cast();
        // SAFETY: `filled` never exceeds the capacity, the slots below it were written before the
        // release store that published them, and nobody writes them again.
        unsafe { std::slice::from_raw_parts(start, filled) }
    }

    /// Number of slots.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }
}

/// Ask for huge pages where whole ones fit: fewer translations to look up in long and in random
/// reads. Refusal changes nothing but speed.
#[cfg(target_os = "linux")]
fn prefer_huge_pages(start: *const u8, length: usize) {
    const HUGE: usize = 2 << 20;
    let before = start.align_offset(HUGE);
    let whole = length.saturating_sub(before) / HUGE * HUGE;
    if whole > 0 {
        let inside = start.wrapping_add(before).cast_mut().cast();
        // SAFETY: the range is inside one allocation, and this advice changes no content.
        unsafe { libc::madvise(inside, whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages(_start: *const u8, _length: usize) {}

impl<T: Pod> Appender<T> {
    /// Append `values`; panics when they do not fit, which callers rule out by capacity.
    pub(crate) fn append(&mut self, values: &[T]) {
        let filled = self.buffer.filled.load(Ordering::Relaxed);
        let slots = &self.buffer.slots[filled..filled + values.len()];
        let target: *mut T = UnsafeCell::raw_get(slots.as_ptr()).cast();
        // SAFETY: `slots` is in bounds and above `filled`, so no reader looks at it, and
        // `&mut self` of the only appender means nobody else writes it.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), target, values.len()) };
        self.buffer.filled.store(filled + values.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_what_was_appended_and_nothing_else() {
        let (buffer, mut appender) = AppendBuffer::<u32>::with_capacity(5, Filling::RowByRow);
        assert!(buffer.filled().is_empty());
        appender.append(&[1, 2]);
        let early = buffer.filled();
        appender.append(&[3, 4, 5]);
        assert_eq!(early, [1, 2]);
        assert_eq!(buffer.filled(), [1, 2, 3, 4, 5]);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn more_than_the_capacity_is_refused() {
        let (_buffer, mut appender) = AppendBuffer::<u32>::with_capacity(1, Filling::RowByRow);
        appender.append(&[1, 2]);
    }

    #[test]
    fn readers_run_beside_the_writer_and_see_a_prefix() {
        let (buffer, mut appender) = AppendBuffer::<u64>::with_capacity(20_000, Filling::RowByRow);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for value in 0..20_000 {
                    appender.append(&[value]);
                }
            });
            scope.spawn(|| {
                while buffer.filled().len() < 20_000 {
                    let seen = buffer.filled();
                    assert!(seen.iter().enumerate().all(|(at, value)| at as u64 == *value));
                }
            });
        });
    }
}
