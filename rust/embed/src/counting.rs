//! An allocator that counts what each thread asks of it, for tests.
#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of allocations of this thread until now.
pub(crate) fn allocations() -> usize {
    COUNT.get()
}

/// Bytes that were allocated for this thread until now, freed ones too.
pub(crate) fn allocated_bytes() -> usize {
    BYTES.get()
}

// SAFETY: all work is the system allocator's; the counters are numbers that allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        BYTES.set(BYTES.get() + layout.size());
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` came from the system allocator with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}
