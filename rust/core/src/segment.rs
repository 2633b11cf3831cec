//! Fixed-capacity rows: float32 vectors, their codes and bounds, and their ids.
//!
//! One writer appends; readers hold views, each with the length and the dead rows it was
//! published with.

use std::sync::Arc;

use crate::append_buffer::{AppendBuffer, Appender, Filling, Line};
use crate::quant::{RowBound, byte_stride, nibble_stride, row_stride};
use crate::simd::{CHUNK, CodedRows, Kernel};

/// Most rows in one segment. Small enough that compacting one never holds a writer for long.
pub(crate) const SEGMENT_ROWS: usize = 8192;

pub(crate) struct Segment {
    row_stride: usize,
    nibble_stride: usize,
    byte_stride: usize,
    vectors: Arc<AppendBuffer<Line>>,
    nibbles: Arc<AppendBuffer<Line>>,
    bytes: Arc<AppendBuffer<Line>>,
    bounds: Arc<AppendBuffer<RowBound>>,
    ids: Arc<AppendBuffer<i64>>,
}

impl Segment {
    /// The padded float32 row.
    pub(crate) fn vector(&self, row: usize) -> &[f32] {
        let all: &[f32] = bytemuck::cast_slice(self.vectors.filled());
        &all[row * self.row_stride..(row + 1) * self.row_stride]
    }

    pub(crate) fn coded(&self) -> CodedRows<'_> {
        CodedRows {
            nibbles: bytemuck::cast_slice(self.nibbles.filled()),
            nibble_stride: self.nibble_stride,
            bytes: bytemuck::cast_slice(self.bytes.filled()),
            byte_stride: self.byte_stride,
            bounds: self.bounds.filled(),
        }
    }

    pub(crate) fn ids(&self) -> &[i64] {
        self.ids.filled()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.ids.capacity()
    }

    pub(crate) fn bytes(&self) -> usize {
        let bound = size_of::<RowBound>() + size_of::<i64>();
        self.capacity()
            * (self.row_stride * size_of::<f32>() + self.nibble_stride + self.byte_stride + bound)
    }
}

/// The one writer of a segment.
pub(crate) struct SegmentWriter {
    kernel: &'static dyn Kernel,
    segment: Arc<Segment>,
    vectors: Appender<Line>,
    nibbles: Appender<Line>,
    bytes: Appender<Line>,
    bounds: Appender<RowBound>,
    ids: Appender<i64>,
    dim: usize,
    row: Box<[Line]>,
    nibble_row: Box<[Line]>,
    byte_row: Box<[Line]>,
    len: usize,
}

impl SegmentWriter {
    pub(crate) fn new(
        kernel: &'static dyn Kernel,
        dim: usize,
        capacity: usize,
        filling: Filling,
    ) -> Self {
        let (row_stride, nibble_stride, byte_stride) =
            (row_stride(dim), nibble_stride(dim), byte_stride(dim));
        let lines = |bytes: usize| bytes / size_of::<Line>();
        let row_lines = lines(row_stride * size_of::<f32>());
        let (vectors, vectors_appender) =
            AppendBuffer::with_capacity(capacity * row_lines, filling);
        let (nibbles, nibbles_appender) =
            AppendBuffer::with_capacity(capacity * lines(nibble_stride), filling);
        let (bytes, bytes_appender) =
            AppendBuffer::with_capacity(capacity * lines(byte_stride), filling);
        let (bounds, bounds_appender) = AppendBuffer::with_capacity(capacity, filling);
        let (ids, ids_appender) = AppendBuffer::with_capacity(capacity, filling);
        let segment = Segment {
            row_stride,
            nibble_stride,
            byte_stride,
            vectors,
            nibbles,
            bytes,
            bounds,
            ids,
        };
        Self {
            kernel,
            segment: Arc::new(segment),
            vectors: vectors_appender,
            nibbles: nibbles_appender,
            bytes: bytes_appender,
            bounds: bounds_appender,
            ids: ids_appender,
            dim,
            row: bytemuck::allocation::zeroed_slice_box(row_lines),
            nibble_row: bytemuck::allocation::zeroed_slice_box(lines(nibble_stride)),
            // Nibbles are packed from pairs of lines of bytes.
            byte_row: bytemuck::allocation::zeroed_slice_box(lines(2 * nibble_stride)),
            len: 0,
        }
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn room(&self) -> usize {
        self.segment.capacity() - self.len
    }

    /// Append one row; `write` fills the first `dim` floats of a zeroed, padded row.
    pub(crate) fn append(&mut self, id: i64, write: impl FnOnce(&mut [f32])) {
        let row: &mut [f32] = bytemuck::cast_slice_mut(&mut self.row);
        write(row);
        let bound = self.kernel.encode(
            &row[..self.dim],
            bytemuck::cast_slice_mut(&mut self.byte_row),
            bytemuck::cast_slice_mut(&mut self.nibble_row),
        );
        let byte_lines = self.segment.byte_stride / size_of::<Line>();
        self.vectors.append(&self.row);
        self.nibbles.append(&self.nibble_row);
        self.bytes.append(&self.byte_row[..byte_lines]);
        self.append_bound(id, bound);
    }

    /// Append a row of another segment as it is.
    pub(crate) fn append_from(&mut self, other: &Segment, row: usize) {
        let coded = other.coded();
        self.vectors.append(bytemuck::cast_slice(other.vector(row)));
        self.nibbles.append(bytemuck::cast_slice(coded.nibble_row(row)));
        self.bytes.append(bytemuck::cast_slice(coded.byte_row(row)));
        let bound = coded.bounds[row];
        self.append_bound(other.ids()[row], bound);
    }

    fn append_bound(&mut self, id: i64, bound: RowBound) {
        self.bounds.append(&[bound]);
        self.ids.append(&[id]);
        self.len += 1;
    }
}

/// A segment as one snapshot sees it.
#[derive(Clone)]
pub(crate) struct SegmentView {
    /// Unique inside its snapshot; another segment may have it later.
    pub(crate) number: u32,
    pub(crate) segment: Arc<Segment>,
    pub(crate) len: usize,
    dead: Option<Arc<DeadRows>>,
}

#[derive(Clone)]
struct DeadRows {
    words: Box<[u64]>,
    count: usize,
}

impl SegmentView {
    pub(crate) fn new(number: u32, segment: Arc<Segment>, len: usize) -> Self {
        Self { number, segment, len, dead: None }
    }

    pub(crate) fn dead_count(&self) -> usize {
        self.dead.as_ref().map_or(0, |dead| dead.count)
    }

    pub(crate) fn live_count(&self) -> usize {
        self.len - self.dead_count()
    }

    /// The chunks of this view: number of rows, and a mask of the live ones.
    pub(crate) fn live_words(&self) -> impl Iterator<Item = (usize, u64)> {
        (0..self.len.div_ceil(CHUNK)).map(|word| {
            let count = CHUNK.min(self.len - word * CHUNK);
            let dead = self.dead.as_ref().map_or(0, |dead| dead.words[word]);
            (count, (u64::MAX >> (CHUNK - count)) & !dead)
        })
    }

    /// Mark rows dead in a copy of the bitmap; other views keep theirs.
    pub(crate) fn bury(&mut self, rows: impl IntoIterator<Item = usize>) {
        let words = self.segment.capacity().div_ceil(CHUNK);
        let dead = self
            .dead
            .get_or_insert_with(|| Arc::new(DeadRows { words: vec![0; words].into(), count: 0 }));
        let dead = Arc::make_mut(dead);
        for row in rows {
            let bit = 1 << (row % CHUNK);
            dead.count += usize::from(dead.words[row / CHUNK] & bit == 0);
            dead.words[row / CHUNK] |= bit;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.segment.bytes() + self.dead.as_ref().map_or(0, |dead| size_of_val(&*dead.words))
    }
}

/// The positions of the set bits of `word`, in order.
pub(crate) fn set_bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}
