//! A fixed-capacity buffer that one writer fills while any number of readers use the filled part.
//!
//! This file and `coded_rows` hold the unsafe code outside `simd`: appending in place saves a write
//! from copying the map, and safe Rust has no slice that grows while it is shared.
#![expect(unsafe_code, reason = "readers share the filled part while the writer extends it")]

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};
use memmap2::Mmap;

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
    /// In one go, over zeros: all bytes are going to be written to a file.
    OverZeros,
}

/// Memory that several buffers share, so that together they span whole huge pages.
pub(crate) struct Region {
    start: NonNull<u8>,
    size: usize,
    memory: Memory,
}

/// Where a region is.
enum Memory {
    Allocated(Layout),
    Zeroed(Layout),
    Mapped(#[expect(dead_code, reason = "it is held, not read")] Arc<Mmap>),
}

// SAFETY: a region is plain memory; the buffers decide which thread touches which part.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Size of a huge page; regions of at least this size request them.
const HUGE: usize = 2 << 20;

impl Region {
    /// Take `bytes` of memory. They are not even zeroed: a large region would make the row that
    /// opens it wait for milliseconds.
    fn new(bytes: usize, filling: Filling) -> Self {
        let align = if bytes >= HUGE { HUGE } else { size_of::<Line>() };
        let layout = Layout::from_size_align(bytes.max(1), align).expect("a size that fits memory");
        let start = match filling {
            // SAFETY: the layout's size is at least 1.
            Filling::OverZeros => unsafe { std::alloc::alloc_zeroed(layout) },
            // SAFETY: as above.
            Filling::AtOnce | Filling::RowByRow => unsafe { std::alloc::alloc(layout) },
        };
        let Some(start) = NonNull::new(start) else { std::alloc::handle_alloc_error(layout) };
        if filling == Filling::AtOnce {
            prefer_huge_pages(start, bytes / HUGE * HUGE);
        }
        let memory = match filling {
            Filling::OverZeros => Memory::Zeroed(layout),
            Filling::AtOnce | Filling::RowByRow => Memory::Allocated(layout),
        };
        Self { start, size: layout.size(), memory }
    }

    /// A part of a mapped file, for buffers that are full; `None` where the file has no such part,
    /// or it does not begin with a cache line.
    pub(crate) fn mapped(file: &Arc<Mmap>, first: usize, size: usize) -> Option<Self> {
        let bytes = file.get(first..first.checked_add(size)?)?;
        let start = NonNull::from(bytes).cast::<u8>();
        let is_aligned = start.cast::<Line>().is_aligned();
        is_aligned.then(|| Self { start, size, memory: Memory::Mapped(Arc::clone(file)) })
    }

    /// All bytes of a region of zeros, once its buffers are gone.
    pub(crate) fn bytes(&self) -> &[u8] {
        assert!(matches!(self.memory, Memory::Zeroed(_)), "bytes that were never written");
        // SAFETY: the allocation was zeroed, so all `size` bytes have values; whoever has the
        // region itself, outside an `Arc`, has taken it back from all buffers, which alone write.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Memory::Allocated(layout) | Memory::Zeroed(layout) = self.memory {
            // SAFETY: `start` came from the allocator with this layout, and buffers hold the region.
            unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// Hands out the parts of a region, one after the other.
pub(crate) struct RegionParts {
    region: Arc<Region>,
    next: usize,
}

impl RegionParts {
    /// Take a region for parts of these sizes.
    pub(crate) fn of(sizes: &[usize], filling: Filling) -> Self {
        let bytes = sizes.iter().map(|size| size.next_multiple_of(size_of::<Line>())).sum();
        Self::within(Region::new(bytes, filling))
    }

    /// The parts of this region.
    pub(crate) fn within(region: Region) -> Self {
        Self { region: Arc::new(region), next: 0 }
    }

    /// The region, if all buffers in it are gone.
    pub(crate) fn into_region(self) -> Option<Region> {
        Arc::into_inner(self.region)
    }

    /// The next part: capacity for `count` values.
    pub(crate) fn slots<T>(&mut self, count: usize) -> Slots<T> {
        const { assert!(align_of::<T>() <= size_of::<Line>()) };
        let size = (count * size_of::<T>()).next_multiple_of(size_of::<Line>());
        let first = self.next;
        self.next += size;
        assert!(self.next <= self.region.size, "a part beyond its region");
        // SAFETY: `first` is inside the region's allocation, which the assertion checked.
        let start = unsafe { self.region.start.add(first) };
        Slots { start: start.cast(), count, region: Arc::clone(&self.region) }
    }
}

/// Room for values that are written one by one while others are read.
pub(crate) struct Slots<T> {
    start: NonNull<UnsafeCell<MaybeUninit<T>>>,
    count: usize,
    /// Keeps the memory.
    region: Arc<Region>,
}

impl<T: Pod> Slots<T> {
    /// Whether all slots have values that nobody writes, as those in a mapped file.
    pub(crate) fn are_initialised(&self) -> bool {
        matches!(self.region.memory, Memory::Mapped(_))
    }
}

// SAFETY: slots are as good as an array of them in a box, which could be sent with its values.
unsafe impl<T: Send> Send for Slots<T> {}

impl<T> Deref for Slots<T> {
    type Target = [UnsafeCell<MaybeUninit<T>>];

    #[inline]
    fn deref(&self) -> &Self::Target {
        // SAFETY: `RegionParts::slots` gave these slots out once, they are aligned and in bounds,
        // the region lives as long as `self`, and they need no initial value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

/// The readers' side: only the filled part can be seen.
pub(crate) struct AppendBuffer<T> {
    slots: Slots<T>,
    filled: AtomicUsize,
}

// SAFETY: slots below `filled` are never written again, and slots from `filled` on are touched
// only by the single `Appender`, which cannot be cloned.
unsafe impl<T: Send + Sync> Sync for AppendBuffer<T> {}

/// The writer's side; exactly one exists for each buffer.
pub(crate) struct Appender<T> {
    buffer: Arc<AppendBuffer<T>>,
}

impl<T: Pod> AppendBuffer<T> {
    /// Make an empty buffer.
    pub(crate) fn new(slots: Slots<T>) -> (Arc<Self>, Appender<T>) {
        let buffer = Arc::new(Self { slots, filled: AtomicUsize::new(0) });
        (Arc::clone(&buffer), Appender { buffer })
    }

    /// A full buffer over slots that have values already, as those of a mapped file.
    pub(crate) fn full(slots: Slots<T>) -> Arc<Self> {
        let filled = AtomicUsize::new(if slots.are_initialised() { slots.len() } else { 0 });
        Arc::new(Self { slots, filled })
    }

    /// The filled part.
    pub(crate) fn filled(&self) -> &[T] {
        let filled = self.filled.load(Ordering::Acquire);
        let start: *const T = UnsafeCell::raw_get(self.slots.as_ptr()).cast();
        // SAFETY: `filled` never exceeds the capacity, the slots below it were written before the
        // release store that published them, and none is written again.
        unsafe { std::slice::from_raw_parts(start, filled) }
    }

    /// Number of slots.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }
}

/// Request huge pages, which save address translations in long and in random reads. A refusal costs
/// speed alone.
#[cfg(target_os = "linux")]
fn prefer_huge_pages(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the range is inside one allocation, and this advice changes no content.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages(_start: NonNull<u8>, _bytes: usize) {}

impl<T: Pod> Appender<T> {
    /// Append `values`; panics when they do not fit, which callers rule out by capacity.
    pub(crate) fn append(&mut self, values: &[T]) {
        let filled = self.buffer.filled.load(Ordering::Relaxed);
        let slots = &self.buffer.slots[filled..filled + values.len()];
        let target: *mut T = UnsafeCell::raw_get(slots.as_ptr()).cast();
        // SAFETY: `slots` is in bounds and above `filled`, so no reader sees it, and `&mut self` of
        // the only appender excludes another writer.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), target, values.len()) };
        self.buffer.filled.store(filled + values.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_of<T: Pod>(count: usize) -> (Arc<AppendBuffer<T>>, Appender<T>) {
        let mut parts = RegionParts::of(&[count * size_of::<T>()], Filling::RowByRow);
        AppendBuffer::new(parts.slots(count))
    }

    #[test]
    fn parts_of_a_region_are_aligned_and_apart() {
        for filling in [Filling::AtOnce, Filling::RowByRow] {
            let mut parts = RegionParts::of(&[100, 3 << 20, 8], filling);
            let (first, second) = (parts.slots::<u8>(100), parts.slots::<Line>(49_152));
            let third = parts.slots::<i64>(1);
            let place = |start: *const u8| start as usize;
            assert_eq!(place(second.as_ptr().cast()) - place(first.as_ptr().cast()), 128);
            assert_eq!(place(third.as_ptr().cast()) - place(second.as_ptr().cast()), 3 << 20);
            assert_eq!(place(first.as_ptr().cast()) % HUGE, 0);
        }
    }

    #[test]
    #[should_panic(expected = "beyond its region")]
    fn a_part_beyond_the_region_is_refused() {
        let mut parts = RegionParts::of(&[64], Filling::RowByRow);
        parts.slots::<Line>(2);
    }

    #[test]
    fn a_reader_sees_what_was_appended_and_nothing_else() {
        let (buffer, mut appender) = buffer_of::<u32>(5);
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
        let (_buffer, mut appender) = buffer_of::<u32>(1);
        appender.append(&[1, 2]);
    }

    #[test]
    fn readers_run_beside_the_writer_and_see_a_prefix() {
        let (buffer, mut appender) = buffer_of::<u64>(20_000);
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
