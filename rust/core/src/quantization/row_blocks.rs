//! Rows of cache lines, eight rows side by side: line `n` of row `8·b + r` is line `8·n + r` of
//! block `b`. Eight rows are bounded together, so a scan reads memory in order, as prefetchers
//! expect (`docs/lab/kernel.md`).
//!
//! As in `append_buffer`, one writer fills rows that readers do not see yet.
#![expect(unsafe_code, reason = "readers share the filled rows while the writer adds others")]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::collections::append_buffer::{AppendBuffer, Appender, Line, RegionParts, Slots};
use crate::quantization::scalar::RowBound;

/// Maps of fewer components are scanned by their bytes: where those are in the cache, reading
/// half of them saves nothing.
pub(crate) const LONG_COMPONENTS: usize = 2_000_000;

/// Rows in a block.
pub(crate) const BLOCK_ROWS: usize = 8;

/// The readers' side.
pub(crate) struct RowBlocks {
    slots: Slots<Line>,
    lines: usize,
    order: Order,
    filled: AtomicUsize,
}

/// Where the lines of a row are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Eight rows side by side, for scans.
    Interleaved,
    /// One after the other, for rows that are read alone.
    RowByRow,
}

// SAFETY: lines of rows below `filled` are never written again, and lines of the other rows are
// touched only by the single `RowAppender`, which cannot be cloned.
unsafe impl Sync for RowBlocks {}

/// The writer's side; exactly one exists for each `RowBlocks`.
pub(crate) struct RowAppender {
    blocks: Arc<RowBlocks>,
}

impl RowBlocks {
    /// Reserve `rows` rows of `lines` lines each.
    pub(crate) fn new(
        parts: &mut RegionParts,
        rows: usize,
        lines: usize,
        order: Order,
    ) -> (Arc<Self>, RowAppender) {
        let slots = parts.slots(Self::lines_for(rows, lines));
        let blocks = Arc::new(Self { slots, lines, order, filled: AtomicUsize::new(0) });
        (Arc::clone(&blocks), RowAppender { blocks })
    }

    /// Rows that a mapped file holds, all filled.
    fn full(parts: &mut RegionParts, rows: usize, lines: usize, order: Order) -> Arc<Self> {
        let slots: Slots<Line> = parts.slots(Self::lines_for(rows, lines));
        let filled = AtomicUsize::new(if slots.are_initialised() { rows } else { 0 });
        Arc::new(Self { slots, lines, order, filled })
    }

    fn lines_for(rows: usize, lines: usize) -> usize {
        rows.next_multiple_of(BLOCK_ROWS) * lines
    }

    /// The lines of block `number`, where its rows are interleaved and all filled.
    #[inline]
    pub(crate) fn block(&self, number: usize) -> Option<&[Line]> {
        let lines = BLOCK_ROWS * self.lines;
        let filled = self.filled.load(Ordering::Acquire);
        if self.order == Order::RowByRow || (number + 1) * BLOCK_ROWS > filled {
            return None;
        }
        let start: *const Line =
            UnsafeCell::raw_get(self.slots[number * lines..][..lines].as_ptr()).cast();
        // SAFETY: `lines` slots from `start` on are in bounds, all belong to rows below `filled`,
        // which were written before the release store that published them and never change.
        Some(unsafe { std::slice::from_raw_parts(start, lines) })
    }

    /// The lines of one filled row, in order.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> RowLines<'_> {
        assert!(row < self.filled.load(Ordering::Acquire), "a row that is not there");
        let first = self.first_slot(row);
        let next = self.slots[first..].as_ptr().cast();
        RowLines { next, left: self.lines, step: self.step(), rows: PhantomData }
    }

    /// Where the lines of a row are, filled or not, to fetch them.
    #[inline]
    pub(crate) fn addresses(&self, row: usize) -> impl Iterator<Item = *const Line> {
        let first: *const Line = self.slots.as_ptr().cast();
        let start = first.wrapping_add(self.first_slot(row));
        let step = self.step();
        (0..self.lines).map(move |line| start.wrapping_add(line * step))
    }

    /// The lines of eight filled rows side by side.
    #[inline]
    pub(crate) fn eight(&self, rows: [usize; BLOCK_ROWS]) -> EightRows<'_> {
        let filled = self.filled.load(Ordering::Acquire);
        assert!(rows.iter().all(|row| *row < filled), "a row that is not there");
        let start = |row| self.slots[self.first_slot(row)..].as_ptr().cast();
        let [a, b, c, d, e, f, g, h] = rows;
        EightRows {
            starts: [
                start(a),
                start(b),
                start(c),
                start(d),
                start(e),
                start(f),
                start(g),
                start(h),
            ],
            at: 0,
            end: self.lines * self.step(),
            step: self.step(),
            rows: PhantomData,
        }
    }

    /// Lines from one of a row's lines to the next.
    #[inline]
    fn step(&self) -> usize {
        match self.order {
            Order::Interleaved => BLOCK_ROWS,
            Order::RowByRow => 1,
        }
    }

    #[inline]
    fn first_slot(&self, row: usize) -> usize {
        match self.order {
            Order::Interleaved => row / BLOCK_ROWS * BLOCK_ROWS * self.lines + row % BLOCK_ROWS,
            Order::RowByRow => row * self.lines,
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

/// The lines of one row.
#[derive(Clone)]
pub(crate) struct RowLines<'a> {
    next: *const Line,
    left: usize,
    step: usize,
    rows: PhantomData<&'a RowBlocks>,
}

impl<'a> Iterator for RowLines<'a> {
    type Item = &'a Line;

    #[inline]
    fn next(&mut self) -> Option<&'a Line> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: `RowBlocks::row` checked that the row is filled, so this line was written before
        // it was published and never changes; `left` keeps the pointer inside the row's block.
        let line = unsafe { &*self.next };
        self.next = self.next.wrapping_add(self.step);
        Some(line)
    }
}

/// The lines of eight rows, a step of all of them at a time.
pub(crate) struct EightRows<'a> {
    starts: [*const Line; BLOCK_ROWS],
    /// Lines from `starts` to the next step, and to the end.
    at: usize,
    end: usize,
    step: usize,
    rows: PhantomData<&'a RowBlocks>,
}

impl<'a> Iterator for EightRows<'a> {
    type Item = [&'a Line; BLOCK_ROWS];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.end {
            return None;
        }
        let [a, b, c, d, e, f, g, h] = self.starts;
        // SAFETY: `RowBlocks::eight` checked that the eight rows are filled, so their lines were
        // written before they were published and never change; `end` is the span of a row.
        let line = |start: *const Line| unsafe { &*start.wrapping_add(self.at) };
        let lines = [line(a), line(b), line(c), line(d), line(e), line(f), line(g), line(h)];
        self.at += self.step;
        Some(lines)
    }
}

impl RowAppender {
    /// Append one row; panics if its length is wrong or the buffer is full, which callers rule out.
    pub(crate) fn append(&mut self, row: &[Line]) {
        let blocks = &*self.blocks;
        assert_eq!(row.len(), blocks.lines);
        let filled = blocks.filled.load(Ordering::Relaxed);
        let first = blocks.first_slot(filled);
        for (at, line) in row.iter().enumerate() {
            let slot: *mut Line =
                UnsafeCell::raw_get(&raw const blocks.slots[first + at * blocks.step()]).cast();
            // SAFETY: the slot belongs to a row above `filled`, so no reader sees it, and `&mut
            // self` of the only appender excludes another writer.
            unsafe { slot.write(*line) };
        }
        blocks.filled.store(filled + 1, Ordering::Release);
    }
}

/// How codes are packed into lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// As `quant::encode` packs them, 128 components a line.
    Nibbles,
    /// A byte a component, 64 a line.
    Bytes,
}

/// One approximation of a segment's rows: codes and their bounds.
pub(crate) struct CodedRows {
    pub(crate) packing: Packing,
    blocks: Arc<RowBlocks>,
    bounds: Arc<AppendBuffer<RowBound>>,
}

/// The one writer of `CodedRows`.
pub(crate) struct CodedRowsAppender {
    rows: RowAppender,
    bounds: Appender<RowBound>,
}

impl CodedRows {
    /// Bytes of a region for `rows` rows of `lines` lines: codes, and bounds.
    pub(crate) fn sizes(rows: usize, lines: usize) -> [usize; 2] {
        [RowBlocks::lines_for(rows, lines) * size_of::<Line>(), rows * size_of::<RowBound>()]
    }

    /// Reserve `rows` rows of `lines` lines each.
    pub(crate) fn new(
        parts: &mut RegionParts,
        packing: Packing,
        rows: usize,
        lines: usize,
    ) -> (Self, CodedRowsAppender) {
        let order = Self::order(packing, rows, lines);
        let (blocks, row_appender) = RowBlocks::new(parts, rows, lines, order);
        let (bounds, bound_appender) = AppendBuffer::new(parts.slots(rows));
        let appender = CodedRowsAppender { rows: row_appender, bounds: bound_appender };
        (Self { packing, blocks, bounds }, appender)
    }

    /// The codes that a mapped file holds of `rows` rows, laid out as [`new`](Self::new) does.
    pub(crate) fn full(
        parts: &mut RegionParts,
        packing: Packing,
        rows: usize,
        lines: usize,
    ) -> Self {
        let order = Self::order(packing, rows, lines);
        let blocks = RowBlocks::full(parts, rows, lines, order);
        Self { packing, blocks, bounds: AppendBuffer::full(parts.slots(rows)) }
    }

    fn order(packing: Packing, rows: usize, lines: usize) -> Order {
        // The bytes of large segments are read row by row, after their nibbles.
        let is_scanned =
            packing == Packing::Nibbles || rows * lines * size_of::<Line>() <= LONG_COMPONENTS;
        if is_scanned { Order::Interleaved } else { Order::RowByRow }
    }

    /// As [`RowBlocks::block`].
    #[inline]
    pub(crate) fn block(&self, number: usize) -> Option<&[Line]> {
        self.blocks.block(number)
    }

    /// The codes of one row.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> RowLines<'_> {
        self.blocks.row(row)
    }

    /// As [`RowBlocks::addresses`].
    #[inline]
    pub(crate) fn addresses(&self, row: usize) -> impl Iterator<Item = *const Line> {
        self.blocks.addresses(row)
    }

    /// As [`RowBlocks::eight`].
    #[inline]
    pub(crate) fn eight(&self, rows: [usize; BLOCK_ROWS]) -> EightRows<'_> {
        self.blocks.eight(rows)
    }

    #[inline]
    pub(crate) fn bounds(&self) -> &[RowBound] {
        self.bounds.filled()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.bytes() + self.bounds.capacity() * size_of::<RowBound>()
    }
}

impl CodedRowsAppender {
    pub(crate) fn append(&mut self, row: &[Line], bound: RowBound) {
        self.rows.append(row);
        self.bounds.append(&[bound]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::append_buffer::Filling;
    use crate::quantization::kernel::{Limit, TILE_ROWS, Tile};
    use crate::quantization::scalar::Plane;
    use crate::simd::kernel;

    fn rows_of(rows: usize, lines: usize, order: Order) -> (Arc<RowBlocks>, RowAppender) {
        let bytes = RowBlocks::lines_for(rows, lines) * size_of::<Line>();
        let mut parts = RegionParts::of(&[bytes], Filling::RowByRow);
        RowBlocks::new(&mut parts, rows, lines, order)
    }

    fn row_of(lines: usize, value: usize) -> Vec<Line> {
        (0..lines).map(|at| Line([(value * 7 + at) as u8; 64])).collect()
    }

    fn read(blocks: &RowBlocks, row: usize) -> Vec<u8> {
        blocks.row(row).map(|line| line.0[63]).collect()
    }

    #[test]
    fn rows_come_back_and_blocks_are_there_once_they_are_full() {
        let (blocks, mut appender) = rows_of(19, 3, Order::Interleaved);
        for row in 0..19 {
            assert!(blocks.block(row / BLOCK_ROWS).is_none());
            appender.append(&row_of(3, row));
            assert_eq!(read(&blocks, row), [row * 7, row * 7 + 1, row * 7 + 2].map(|v| v as u8));
        }
        let block = blocks.block(1).expect("rows 8 to 15 are filled");
        assert_eq!(block[8 + 5].0[0], 13 * 7 + 1);
        assert!(blocks.block(2).is_none());
        assert_eq!(blocks.bytes(), 24 * 3 * 64);
    }

    #[test]
    fn eight_rows_side_by_side_are_the_rows_alone() {
        for order in [Order::Interleaved, Order::RowByRow] {
            let (blocks, mut appender) = rows_of(21, 3, order);
            (0..21).for_each(|row| appender.append(&row_of(3, row)));
            let picked = [20, 0, 7, 8, 13, 13, 2, 19];
            let steps: Vec<_> = blocks.eight(picked).collect();
            assert_eq!(steps.len(), 3);
            for (at, row) in picked.iter().enumerate() {
                let lines: Vec<u8> = steps.iter().map(|step| step[at].0[63]).collect();
                assert_eq!(lines, read(&blocks, *row));
            }
        }
    }

    #[test]
    fn a_row_whose_bound_is_not_there_yet_holds_up_no_reader() {
        let mut parts = RegionParts::of(&CodedRows::sizes(8, 1), Filling::RowByRow);
        let (coded, mut appender) = CodedRows::new(&mut parts, Packing::Nibbles, 8, 1);
        (0..7).for_each(|row| appender.append(&row_of(1, row), RowBound::UNBOUNDED));
        appender.rows.append(&row_of(1, 7));
        let plane = Plane::signed_bytes(&[1.0; 128], 1.0);
        let limit = Limit::new(Packing::Nibbles, &plane, 0.0, None);
        let (tile, kernel) = (Tile { number: 0, wanted: 0x7f }, kernel().expect("a kernel"));
        assert_eq!(kernel.bound(&coded, tile, &limit, &mut [0.0; TILE_ROWS]), 0x7f);
        let masks = kernel.bound_many(&coded, tile, &[limit; 8], &mut [[0.0; TILE_ROWS]; 8]);
        assert_eq!(masks, [0x7f; 8]);
    }

    #[test]
    #[should_panic(expected = "not there")]
    fn a_row_above_the_filled_ones_is_refused() {
        let (blocks, mut appender) = rows_of(8, 1, Order::RowByRow);
        appender.append(&row_of(1, 0));
        blocks.row(1).count();
    }

    #[test]
    fn readers_run_beside_the_writer_and_see_whole_rows() {
        let (blocks, mut appender) = rows_of(4000, 2, Order::Interleaved);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..4000).for_each(|row| appender.append(&row_of(2, row))));
            scope.spawn(|| {
                for row in 0..4000 {
                    while blocks.filled.load(Ordering::Acquire) <= row {
                        std::hint::spin_loop();
                    }
                    assert_eq!(read(&blocks, row), [(row * 7) as u8, (row * 7 + 1) as u8]);
                }
            });
        });
    }
}
