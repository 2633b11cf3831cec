//! Fixed-capacity rows: float32 vectors, their codes and bounds, and their ids.
//!
//! One writer appends; readers hold views, each with the length and the deleted rows it was
//! published with.

use std::sync::Arc;

use crate::bits::positions;
use crate::collections::append_buffer::{AppendBuffer, Appender, Filling, Line, RegionParts};
use crate::quantization::coded_rows::{CodedRows, CodedRowsAppender, Packing};
use crate::quantization::kernel::{Kernel, TILE_ROWS};
use crate::quantization::scalar::{byte_stride, nibble_stride, row_stride};
use crate::quantization::sketch::Sketch;
use crate::storage::row_checks::RowChecks;

/// Most rows in one segment. Small enough that compacting one never holds a writer for long.
pub(crate) const SEGMENT_ROWS: usize = 8192;

pub(crate) struct Segment {
    row_stride: usize,
    vectors: Arc<AppendBuffer<Line>>,
    pub(crate) nibbles: CodedRows,
    pub(crate) bytes: CodedRows,
    ids: Arc<AppendBuffer<i64>>,
    /// Of a segment in a mapped file.
    checks: Option<RowChecks>,
}

/// Bytes of the parts of a segment, in their order: the codes and bounds that a scan reads first,
/// where huge pages are whole, then ids and vectors.
pub(crate) struct SegmentLayout {
    row_lines: usize,
    nibble_lines: usize,
    byte_lines: usize,
    rows: usize,
}

impl SegmentLayout {
    pub(crate) fn new(dim: usize, rows: usize) -> Self {
        let lines = |bytes: usize| bytes / size_of::<Line>();
        Self {
            row_lines: lines(row_stride(dim) * size_of::<f32>()),
            nibble_lines: lines(nibble_stride(dim)),
            byte_lines: lines(byte_stride(dim)),
            rows,
        }
    }

    pub(crate) fn sizes(&self) -> Vec<usize> {
        let rows = self.rows;
        let vectors = rows * self.row_lines * size_of::<Line>();
        let parts = [
            &CodedRows::sizes(Packing::Nibbles, rows, self.nibble_lines)[..],
            &CodedRows::sizes(Packing::Bytes, rows, self.byte_lines),
            &[rows * size_of::<i64>(), vectors],
        ];
        parts.concat().into_iter().map(|size| size.next_multiple_of(size_of::<Line>())).collect()
    }

    /// Where ids and vectors begin, and where the segment ends.
    pub(crate) fn places(&self) -> [usize; 3] {
        let sizes = self.sizes();
        let of_codes: usize = sizes[..4].iter().sum();
        [of_codes, of_codes + sizes[4], of_codes + sizes[4] + sizes[5]]
    }
}

impl Segment {
    /// A segment in a mapped file, of which nothing but the ids is read yet.
    pub(crate) fn mapped(
        parts: &mut RegionParts,
        dim: usize,
        rows: usize,
        checks: RowChecks,
    ) -> Self {
        let layout = SegmentLayout::new(dim, rows);
        let nibbles = CodedRows::full(parts, Packing::Nibbles, rows, layout.nibble_lines);
        let bytes = CodedRows::full(parts, Packing::Bytes, rows, layout.byte_lines);
        let ids = AppendBuffer::full(parts.slots(rows));
        let vectors = AppendBuffer::full(parts.slots(rows * layout.row_lines));
        let row_stride = row_stride(dim);
        Self { row_stride, vectors, nibbles, bytes, ids, checks: Some(checks) }
    }

    /// Whether the codes are as they were written, which is found out once.
    pub(crate) fn has_sound_codes(&self) -> bool {
        self.checks.as_ref().is_none_or(RowChecks::are_codes_sound)
    }

    /// Whether a row that was read was not as it had been written.
    pub(crate) fn is_damaged(&self) -> bool {
        self.checks.as_ref().is_some_and(RowChecks::is_damaged)
    }

    /// The padded float32 row; zeros in place of a damaged one.
    pub(crate) fn vector(&self, row: usize) -> &[f32] {
        let all: &[f32] = bytemuck::cast_slice(self.vectors.filled());
        match &self.checks {
            Some(checks) if !checks.is_vector_sound(row) => checks.zeros(),
            _ => &all[row * self.row_stride..(row + 1) * self.row_stride],
        }
    }

    /// The cache lines of [`Segment::vector`].
    pub(crate) fn vector_lines(&self, row: usize) -> &[Line] {
        let lines = self.row_stride * size_of::<f32>() / size_of::<Line>();
        &self.vectors.filled()[row * lines..][..lines]
    }

    pub(crate) fn ids(&self) -> &[i64] {
        self.ids.filled()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.ids.capacity()
    }

    /// Bytes of memory.
    pub(crate) fn size(&self) -> usize {
        let row = self.row_stride * size_of::<f32>() + size_of::<i64>();
        self.capacity() * row + self.nibbles.bytes() + self.bytes.bytes()
    }
}

/// The one writer of a segment.
pub(crate) struct SegmentWriter {
    kernel: &'static dyn Kernel,
    pub(crate) segment: Arc<Segment>,
    vectors: Appender<Line>,
    nibbles: CodedRowsAppender,
    bytes: CodedRowsAppender,
    ids: Appender<i64>,
    dim: usize,
    row: Box<[Line]>,
    nibble_row: Box<[Line]>,
    byte_row: Box<[Line]>,
    byte_lines: usize,
    pub(crate) len: usize,
}

impl SegmentWriter {
    pub(crate) fn new(
        kernel: &'static dyn Kernel,
        dim: usize,
        capacity: usize,
        filling: Filling,
    ) -> Self {
        let sizes = SegmentLayout::new(dim, capacity).sizes();
        Self::within(kernel, dim, capacity, &mut RegionParts::of(&sizes, filling))
    }

    /// A writer over parts of these sizes.
    pub(crate) fn within(
        kernel: &'static dyn Kernel,
        dim: usize,
        capacity: usize,
        parts: &mut RegionParts,
    ) -> Self {
        let SegmentLayout { row_lines, nibble_lines, byte_lines, .. } =
            SegmentLayout::new(dim, capacity);
        let (nibbles, nibbles_appender) =
            CodedRows::new(parts, Packing::Nibbles, capacity, nibble_lines);
        let (bytes, bytes_appender) = CodedRows::new(parts, Packing::Bytes, capacity, byte_lines);
        let (ids, ids_appender) = AppendBuffer::new(parts.slots(capacity));
        let (vectors, vectors_appender) = AppendBuffer::new(parts.slots(capacity * row_lines));
        Self {
            kernel,
            segment: Arc::new(Segment {
                row_stride: row_stride(dim),
                vectors,
                nibbles,
                bytes,
                ids,
                checks: None,
            }),
            vectors: vectors_appender,
            nibbles: nibbles_appender,
            bytes: bytes_appender,
            ids: ids_appender,
            dim,
            row: bytemuck::allocation::zeroed_slice_box(row_lines),
            nibble_row: bytemuck::allocation::zeroed_slice_box(nibble_lines),
            // Nibbles are packed from pairs of lines of bytes.
            byte_row: bytemuck::allocation::zeroed_slice_box(2 * nibble_lines),
            byte_lines,
            len: 0,
        }
    }

    pub(crate) fn vacant(&self) -> usize {
        self.segment.capacity() - self.len
    }

    /// Append one row; `write` fills the first `dim` floats of a zeroed, padded row.
    pub(crate) fn append(&mut self, id: i64, write: impl FnOnce(&mut [f32])) {
        let row: &mut [f32] = bytemuck::cast_slice_mut(&mut self.row);
        write(row);
        let bounds = self.kernel.encode(
            &row[..self.dim],
            bytemuck::cast_slice_mut(&mut self.byte_row),
            bytemuck::cast_slice_mut(&mut self.nibble_row),
        );
        self.vectors.append(&self.row);
        self.nibbles.append(&self.nibble_row, bounds.nibbles);
        self.bytes.append(&self.byte_row[..self.byte_lines], bounds.bytes);
        self.append_id(id);
    }

    /// Append a row of another segment as it is.
    pub(crate) fn append_from(&mut self, other: &Segment, row: usize) {
        self.append_renamed(other, row, other.ids()[row]);
    }

    /// Append a row of another segment under another id.
    pub(crate) fn append_renamed(&mut self, other: &Segment, row: usize, id: i64) {
        self.vectors.append(bytemuck::cast_slice(other.vector(row)));
        let nibbles = other.nibbles.lines_of(row);
        self.nibble_row.iter_mut().zip(nibbles).for_each(|(to, from)| *to = *from);
        self.nibbles.append(&self.nibble_row, other.nibbles.bounds()[row]);
        self.bytes.append(other.bytes.row(row), other.bytes.bounds()[row]);
        self.append_id(id);
    }

    fn append_id(&mut self, id: i64) {
        self.ids.append(&[id]);
        self.len += 1;
    }
}

/// Whether a row of these segments was read that was not as it had been written.
pub(crate) fn are_damaged(segments: &[SegmentView]) -> bool {
    segments.iter().any(|view| view.segment.is_damaged())
}

/// A segment as one snapshot sees it.
#[derive(Clone)]
pub(crate) struct SegmentView {
    /// Unique inside its snapshot; another segment may have it later.
    pub(crate) number: u32,
    pub(crate) segment: Arc<Segment>,
    pub(crate) len: usize,
    /// Made in the background once the segment no longer grows.
    pub(crate) sketch: Option<Arc<Sketch>>,
    deleted: Option<Arc<DeletedRows>>,
}

#[derive(Clone)]
struct DeletedRows {
    words: Box<[u64]>,
    count: usize,
}

impl SegmentView {
    pub(crate) fn new(number: u32, segment: Arc<Segment>, len: usize) -> Self {
        Self { number, segment, len, sketch: None, deleted: None }
    }

    pub(crate) fn deleted_count(&self) -> usize {
        self.deleted.as_ref().map_or(0, |deleted| deleted.count)
    }

    pub(crate) fn live_count(&self) -> usize {
        self.len - self.deleted_count()
    }

    /// The padded float32 rows, deleted ones too.
    pub(crate) fn vectors(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        (0..self.len).map(|row| self.segment.vector(row))
    }

    /// A mask of the live rows of each tile of this view.
    pub(crate) fn live_words(&self) -> impl Iterator<Item = u64> {
        (0..self.len.div_ceil(TILE_ROWS)).map(|word| {
            let count = TILE_ROWS.min(self.len - word * TILE_ROWS);
            let deleted = self.deleted.as_ref().map_or(0, |deleted| deleted.words[word]);
            (u64::MAX >> (TILE_ROWS - count)) & !deleted
        })
    }

    /// The live rows, in order.
    pub(crate) fn live_rows(&self) -> impl Iterator<Item = usize> {
        positions(self.live_words())
    }

    /// Mark rows deleted in a copy of the bitmap; other views keep theirs.
    pub(crate) fn mark_deleted(&mut self, rows: impl IntoIterator<Item = usize>) {
        let words = self.segment.capacity().div_ceil(TILE_ROWS);
        let deleted = self.deleted.get_or_insert_with(|| {
            Arc::new(DeletedRows { words: vec![0; words].into(), count: 0 })
        });
        let deleted = Arc::make_mut(deleted);
        for row in rows {
            let bit = 1 << (row % TILE_ROWS);
            deleted.count += usize::from(deleted.words[row / TILE_ROWS] & bit == 0);
            deleted.words[row / TILE_ROWS] |= bit;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let sketch = self.sketch.as_ref().map_or(0, |sketch| sketch.codes.bytes());
        let deleted = self.deleted.as_ref().map_or(0, |deleted| size_of_val(&*deleted.words));
        self.segment.size() + sketch + deleted
    }
}
