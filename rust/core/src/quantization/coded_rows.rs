//! Rows of codes: one approximation of a segment's rows, and what bounds them beside it.
//!
//! A row's bytes lie side by side, since long scans read them alone. Nibbles are scanned in blocks
//! of 16 rows and also read alone: line `n` of a block's rows is followed by their line `n + 1`, so
//! that a scan reads memory in order. Sketches are scanned alone, and lie transposed: line `n` of a
//! block has bytes `4·n` to `4·n + 3` of each of its 16 rows, so that no sum goes across lanes
//! (`docs/project/lab/kernel.md`).
#![expect(unsafe_code, reason = "readers share filled rows while the writer adds others")]
#![expect(clippy::inline_always, reason = "kernels compile it for their instructions")]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::collections::append_buffer::{AppendBuffer, Appender, Line, RegionParts, Slots};
use crate::quantization::scalar::RowBound;

/// Maps of fewer components are scanned by their bytes: where those are in the cache, reading
/// half of them saves nothing.
pub(crate) const LONG_COMPONENTS: usize = 2_000_000;

/// Rows bounded side by side.
pub(crate) const BLOCK_ROWS: usize = 16;

/// Bytes of each row in a line of a transposed block.
const WORD: usize = size_of::<Line>() / BLOCK_ROWS;

/// A block of sketches.
pub(crate) type SketchBlock = [Line; BLOCK_ROWS];

/// What the codes of a row are, and how they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Nibbles of 128 directions, a line a row, in transposed blocks.
    Sketches,
    /// As `scalar::encode` packs them, 128 components a line, in interleaved blocks.
    Nibbles,
    /// A byte a component, 64 a line, row after row.
    Bytes,
}

/// One approximation of a segment's rows.
pub(crate) struct CodedRows {
    pub(crate) packing: Packing,
    /// Lines of a row.
    lines: usize,
    codes: Codes,
    bounds: Arc<AppendBuffer<RowBound>>,
}

enum Codes {
    /// Sketches, in whole blocks, or bytes.
    InOrder(Arc<AppendBuffer<Line>>),
    Nibbles(Arc<InterleavedRows>),
}

/// The one writer of `CodedRows`.
pub(crate) struct CodedRowsAppender {
    codes: CodesAppender,
    bounds: Appender<RowBound>,
}

enum CodesAppender {
    Sketches {
        codes: Appender<Line>,
        /// The block that is not full yet, and the rows in it.
        block: Box<SketchBlock>,
        rows: usize,
    },
    Nibbles(InterleavedAppender),
    Bytes(Appender<Line>),
}

/// Blocks of 16 rows, line by line.
struct InterleavedRows {
    slots: Slots<Line>,
    /// Lines of a row.
    lines: usize,
    filled: AtomicUsize,
}

// SAFETY: lines of rows below `filled` are never written again, and lines of the other rows are
// touched only by the single `InterleavedAppender`, which cannot be cloned.
unsafe impl Sync for InterleavedRows {}

/// The writer's side; exactly one exists for each `InterleavedRows`.
struct InterleavedAppender(Arc<InterleavedRows>);

impl InterleavedRows {
    fn new(slots: Slots<Line>, lines: usize, filled: usize) -> Arc<Self> {
        Arc::new(Self { slots, lines, filled: AtomicUsize::new(filled) })
    }

    #[inline(always)]
    fn first_slot(&self, row: usize) -> usize {
        row / BLOCK_ROWS * BLOCK_ROWS * self.lines + row % BLOCK_ROWS
    }

    /// The first line of a filled row; the others follow 16 lines apart.
    #[inline(always)]
    fn start(&self, row: usize) -> *const Line {
        assert!(row < self.filled.load(Ordering::Acquire), "a row that is not there");
        self.slots[self.first_slot(row)..].as_ptr().cast()
    }
}

impl InterleavedAppender {
    fn append(&mut self, row: &[Line]) {
        let rows = &*self.0;
        assert_eq!(row.len(), rows.lines, "lines of a row");
        let filled = rows.filled.load(Ordering::Relaxed);
        let first = rows.first_slot(filled);
        for (at, line) in row.iter().enumerate() {
            let slot: *mut Line =
                UnsafeCell::raw_get(&raw const rows.slots[first + at * BLOCK_ROWS]).cast();
            // SAFETY: the slot belongs to a row above `filled`, so no reader sees it, and `&mut
            // self` of the only appender excludes another writer.
            unsafe { slot.write(*line) };
        }
        rows.filled.store(filled + 1, Ordering::Release);
    }
}

impl CodedRows {
    /// Bytes of a region for `rows` rows of `lines` lines: codes, and bounds.
    pub(crate) fn sizes(packing: Packing, rows: usize, lines: usize) -> [usize; 2] {
        let size = Self::capacity(packing, rows, lines) * size_of::<Line>();
        [size, rows * size_of::<RowBound>()]
    }

    fn capacity(packing: Packing, rows: usize, lines: usize) -> usize {
        match packing {
            Packing::Sketches | Packing::Nibbles => rows.next_multiple_of(BLOCK_ROWS) * lines,
            Packing::Bytes => rows * lines,
        }
    }

    /// Reserve `rows` rows of `lines` lines each; sketches have one.
    pub(crate) fn new(
        parts: &mut RegionParts,
        packing: Packing,
        rows: usize,
        lines: usize,
    ) -> (Self, CodedRowsAppender) {
        let slots = parts.slots(Self::capacity(packing, rows, lines));
        let (codes, appender) = if packing == Packing::Nibbles {
            let rows = InterleavedRows::new(slots, lines, 0);
            let appender = InterleavedAppender(Arc::clone(&rows));
            (Codes::Nibbles(rows), CodesAppender::Nibbles(appender))
        } else {
            let (codes, appender) = AppendBuffer::new(slots);
            (Codes::InOrder(codes), CodesAppender::in_order(packing, appender))
        };
        let (bounds, bound_appender) = AppendBuffer::new(parts.slots(rows));
        let appender = CodedRowsAppender { codes: appender, bounds: bound_appender };
        (Self { packing, lines, codes, bounds }, appender)
    }

    /// The codes that a mapped file holds of `rows` rows, laid out as [`new`](Self::new) does.
    pub(crate) fn full(
        parts: &mut RegionParts,
        packing: Packing,
        rows: usize,
        lines: usize,
    ) -> Self {
        let slots = parts.slots(Self::capacity(packing, rows, lines));
        let codes = if packing == Packing::Nibbles {
            let filled = if slots.are_initialised() { rows } else { 0 };
            Codes::Nibbles(InterleavedRows::new(slots, lines, filled))
        } else {
            Codes::InOrder(AppendBuffer::full(slots))
        };
        Self { packing, lines, codes, bounds: AppendBuffer::full(parts.slots(rows)) }
    }

    /// The bounds of the rows that are there.
    #[inline]
    pub(crate) fn bounds(&self) -> &[RowBound] {
        self.bounds.filled()
    }

    /// The lines of one row of bytes.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[Line] {
        &self.in_order()[row * self.lines..][..self.lines]
    }

    fn in_order(&self) -> &[Line] {
        match &self.codes {
            Codes::InOrder(codes) => codes.filled(),
            Codes::Nibbles(_) => unreachable!("nibbles are interleaved"),
        }
    }

    /// The lines of one row of nibbles or bytes.
    #[inline]
    pub(crate) fn lines_of(&self, row: usize) -> impl Iterator<Item = &Line> {
        self.side_by_side(&[row]).map(|[line]| line)
    }

    /// The sketch of one row.
    pub(crate) fn sketch(&self, row: usize) -> Line {
        let mut sketch = Line([0; 64]);
        let words = sketch.0.as_chunks_mut::<WORD>().0.iter_mut();
        for (word, line) in words.zip(self.sketches(row / BLOCK_ROWS)) {
            *word = line.0.as_chunks::<WORD>().0[row % BLOCK_ROWS];
        }
        sketch
    }

    /// A transposed block; rows beyond the last have zeros.
    #[inline]
    pub(crate) fn sketches(&self, block: usize) -> &SketchBlock {
        self.in_order()[block * BLOCK_ROWS..].first_chunk().expect("blocks are whole")
    }

    /// The lines of some filled rows of nibbles or bytes.
    #[inline(always)]
    pub(crate) fn side_by_side<const ROWS: usize>(
        &self,
        rows: &[usize; ROWS],
    ) -> SideBySide<'_, ROWS> {
        let mut starts = [std::ptr::null(); ROWS];
        for (start, row) in starts.iter_mut().zip(rows) {
            *start = match &self.codes {
                Codes::InOrder(_) => self.row(*row).as_ptr(),
                Codes::Nibbles(codes) => codes.start(*row),
            };
        }
        SideBySide { starts, left: self.lines, step: self.step(), rows: PhantomData }
    }

    /// The lines of the 16 filled rows from `start` on, of nibbles or bytes, and where they begin.
    #[inline(always)]
    pub(crate) fn of_block(&self, start: usize) -> (SideBySide<'_, BLOCK_ROWS>, *const Line) {
        let [first, _] = self.side_by_side(&[start, start + BLOCK_ROWS - 1]).starts;
        let to_next = if self.step() == 1 { self.lines } else { 1 };
        let mut starts = [first; BLOCK_ROWS];
        for (row, start) in starts.iter_mut().enumerate() {
            *start = start.wrapping_add(row * to_next);
        }
        let (left, step) = (self.lines, self.step());
        (SideBySide { starts, left, step, rows: PhantomData }, first)
    }

    /// Lines from one of a row's lines to the next.
    #[inline(always)]
    fn step(&self) -> usize {
        if self.packing == Packing::Nibbles { BLOCK_ROWS } else { 1 }
    }

    /// Lines from the first of a block that are read at once to the last.
    #[inline(always)]
    pub(crate) fn window(&self) -> usize {
        if self.packing == Packing::Bytes { BLOCK_ROWS * self.lines } else { BLOCK_ROWS }
    }

    fn capacity_of_codes(&self) -> usize {
        match &self.codes {
            Codes::InOrder(codes) => codes.capacity(),
            Codes::Nibbles(codes) => codes.slots.len(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.capacity_of_codes() * size_of::<Line>()
            + self.bounds.capacity() * size_of::<RowBound>()
    }
}

/// The lines of some rows, one line of each of them at a time.
pub(crate) struct SideBySide<'a, const ROWS: usize> {
    starts: [*const Line; ROWS],
    left: usize,
    /// Lines from one of a row's lines to the next.
    step: usize,
    rows: PhantomData<&'a CodedRows>,
}

impl<'a> SideBySide<'a, BLOCK_ROWS> {
    /// Lines of each row.
    #[inline(always)]
    pub(crate) fn lines(&self) -> usize {
        self.left
    }

    /// The first eight rows, and the other eight.
    #[inline(always)]
    pub(crate) fn halves(self) -> [SideBySide<'a, 8>; 2] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.starts;
        let (left, step) = (self.left, self.step);
        let half = |starts| SideBySide { starts, left, step, rows: PhantomData };
        [half([a, b, c, d, e, f, g, h]), half([i, j, k, l, m, n, o, p])]
    }
}

impl<'a, const ROWS: usize> Iterator for SideBySide<'a, ROWS> {
    type Item = [&'a Line; ROWS];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut lines = [&const { Line([0; 64]) }; ROWS];
        for (line, start) in lines.iter_mut().zip(&mut self.starts) {
            // SAFETY: `CodedRows` found each row filled, as many lines of it as `left` began with
            // lie so many steps apart from its start, and filled lines are never written again.
            *line = unsafe { &**start };
            *start = start.wrapping_add(self.step);
        }
        Some(lines)
    }
}

impl CodesAppender {
    fn in_order(packing: Packing, codes: Appender<Line>) -> Self {
        if packing == Packing::Bytes {
            return Self::Bytes(codes);
        }
        Self::Sketches { codes, block: Box::new([Line([0; 64]); BLOCK_ROWS]), rows: 0 }
    }

    fn append(&mut self, row: &[Line]) {
        match self {
            Self::Nibbles(codes) => codes.append(row),
            Self::Bytes(codes) => codes.append(row),
            Self::Sketches { block, rows, .. } => {
                for (line, word) in block.iter_mut().zip(row[0].0.as_chunks().0) {
                    line.0.as_chunks_mut::<WORD>().0[*rows] = *word;
                }
                *rows += 1;
                if *rows == BLOCK_ROWS {
                    self.close_block();
                }
            }
        }
    }

    /// Append a block of sketches, with zeros in place of rows that are not there.
    fn close_block(&mut self) {
        if let Self::Sketches { codes, block, rows } = self {
            codes.append(&**block);
            **block = [Line([0; 64]); BLOCK_ROWS];
            *rows = 0;
        }
    }
}

impl CodedRowsAppender {
    /// Append one row; panics if it does not fit, which callers rule out.
    pub(crate) fn append(&mut self, row: &[Line], bound: RowBound) {
        self.codes.append(row);
        // Readers see a row once its bound is there.
        self.bounds.append(&[bound]);
    }

    /// Append the block of sketches that is not full.
    pub(crate) fn finish(mut self) {
        if let CodesAppender::Sketches { rows: 1.., .. } = &self.codes {
            self.codes.close_block();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::append_buffer::Filling;

    fn rows_of(packing: Packing, rows: usize, lines: usize) -> (CodedRows, CodedRowsAppender) {
        let sizes = CodedRows::sizes(packing, rows, lines);
        CodedRows::new(&mut RegionParts::of(&sizes, Filling::RowByRow), packing, rows, lines)
    }

    fn row_of(lines: usize, value: usize) -> Vec<Line> {
        let byte = |line: usize, at: usize| (value * 7 + line + at / 4) as u8;
        (0..lines).map(|line| Line(std::array::from_fn(|at| byte(line, at)))).collect()
    }

    #[test]
    fn rows_come_back_alone_and_side_by_side() {
        check_rows(Packing::Nibbles);
        check_rows(Packing::Bytes);
    }

    fn check_rows(packing: Packing) {
        let (rows, mut appender) = rows_of(packing, 21, 3);
        (0..21).for_each(|row| appender.append(&row_of(3, row), RowBound::UNBOUNDED));
        let picked = [20, 0, 7, 8, 13, 13, 2, 19, 1, 3, 4, 5, 6, 9, 10, 11];
        let steps: Vec<_> = rows.side_by_side(&picked).collect();
        let [front, back] = rows.side_by_side(&picked).halves().map(Iterator::collect::<Vec<_>>);
        assert_eq!([steps.len(), front.len(), back.len()], [3; 3]);
        for (at, row) in picked.iter().enumerate() {
            for (line, wanted) in row_of(3, *row).iter().enumerate() {
                let half = if at < 8 { front[line][at] } else { back[line][at - 8] };
                let alone = rows.lines_of(*row).nth(line).expect("three lines");
                let found = [alone, steps[line][at], half];
                assert!(found.iter().all(|line| line.0 == wanted.0), "row {row}");
            }
        }
        for (at, lines) in rows.of_block(0).0.enumerate() {
            for (row, line) in lines.into_iter().enumerate() {
                assert_eq!(line.0, row_of(3, row)[at].0, "row {row}");
            }
        }
    }

    #[test]
    fn readers_run_beside_the_writer_and_see_whole_rows() {
        let (rows, mut appender) = rows_of(Packing::Nibbles, 4000, 2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..4000).for_each(|row| appender.append(&row_of(2, row), RowBound::UNBOUNDED));
            });
            scope.spawn(|| {
                for row in 0..4000 {
                    while rows.bounds().len() <= row {
                        std::hint::spin_loop();
                    }
                    let found: Vec<_> = rows.lines_of(row).map(|line| line.0).collect();
                    let wanted: Vec<_> = row_of(2, row).iter().map(|line| line.0).collect();
                    assert_eq!(found, wanted);
                }
            });
        });
    }

    #[test]
    fn sketches_come_back_and_their_last_block_is_padded() {
        for count in [1, 15, 16, 17, 33] {
            let (rows, mut appender) = rows_of(Packing::Sketches, count, 1);
            (0..count).for_each(|row| appender.append(&row_of(1, row), RowBound::UNBOUNDED));
            appender.finish();
            for row in 0..count {
                assert_eq!(rows.sketch(row).0, row_of(1, row)[0].0, "row {row} of {count}");
            }
            let last = rows.sketches((count - 1) / BLOCK_ROWS);
            let used = (count - 1) % BLOCK_ROWS + 1;
            assert!(last.iter().all(|line| line.0[used * WORD..].iter().all(|byte| *byte == 0)));
        }
    }

    #[test]
    #[should_panic(expected = "not there")]
    fn a_row_above_the_filled_ones_is_refused() {
        let (rows, mut appender) = rows_of(Packing::Nibbles, 8, 1);
        appender.append(&row_of(1, 0), RowBound::UNBOUNDED);
        rows.lines_of(1).count();
    }
}
