//! Checksums of a segment in a mapped file, compared when its bytes are first read.
//!
//! Whatever fails is remembered: a search that met damage gives no answer.

use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use memmap2::Mmap;
use xxhash_rust::xxh3::xxh3_64;

use crate::collections::append_buffer::Line;
use crate::system::data_file::have_sum;

/// Rows whose vectors share a checksum.
pub(crate) const CHECKED_ROWS: usize = 64;

/// States of a block of vectors.
const UNREAD: u8 = 0;
const SOUND: u8 = 1;
const DAMAGED: u8 = 2;

pub(crate) struct RowChecks {
    file: Arc<Mmap>,
    codes: Range<usize>,
    code_sum: u64,
    are_codes_sound: OnceLock<bool>,
    vectors: Range<usize>,
    row_bytes: usize,
    vector_sums: Box<[u64]>,
    blocks: Box<[AtomicU8]>,
    is_damaged: AtomicBool,
    /// A vector in place of damaged ones, so that no search meets wild numbers.
    zeros: Box<[Line]>,
}

impl RowChecks {
    /// The checks of codes and vectors at these places of a file, which has them.
    pub(crate) fn new(
        file: Arc<Mmap>,
        codes: Range<usize>,
        code_sum: u64,
        vectors: Range<usize>,
        row_bytes: usize,
        vector_sums: Box<[u64]>,
    ) -> Self {
        let blocks = vector_sums.iter().map(|_| AtomicU8::new(UNREAD)).collect();
        Self {
            file,
            codes,
            code_sum,
            are_codes_sound: OnceLock::new(),
            vectors,
            row_bytes,
            vector_sums,
            blocks,
            is_damaged: AtomicBool::new(false),
            zeros: bytemuck::allocation::zeroed_slice_box(row_bytes / size_of::<Line>()),
        }
    }

    pub(crate) fn are_codes_sound(&self) -> bool {
        *self.are_codes_sound.get_or_init(|| {
            let is_sound = have_sum(&self.file[self.codes.clone()], self.code_sum);
            self.is_damaged.fetch_or(!is_sound, Ordering::AcqRel);
            is_sound
        })
    }

    #[inline]
    pub(crate) fn is_vector_sound(&self, row: usize) -> bool {
        match self.blocks[row / CHECKED_ROWS].load(Ordering::Acquire) {
            SOUND => true,
            UNREAD => self.read(row / CHECKED_ROWS),
            _ => false,
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    pub(crate) fn zeros(&self) -> &[f32] {
        bytemuck::cast_slice(&self.zeros)
    }

    #[cold]
    fn read(&self, block: usize) -> bool {
        let bytes = &self.file[self.vectors.clone()];
        let first = block * CHECKED_ROWS * self.row_bytes;
        let end = bytes.len().min(first + CHECKED_ROWS * self.row_bytes);
        let is_sound = have_sum(&bytes[first..end], self.vector_sums[block]);
        self.is_damaged.fetch_or(!is_sound, Ordering::AcqRel);
        self.blocks[block].store(if is_sound { SOUND } else { DAMAGED }, Ordering::Release);
        is_sound
    }
}

/// The checksums of the blocks of vectors of a segment.
pub(crate) fn vector_sums(vectors: &[u8], row_bytes: usize) -> Box<[u64]> {
    vectors.chunks(CHECKED_ROWS * row_bytes).map(xxh3_64).collect()
}

/// Whether the blocks of vectors of a segment have these checksums.
pub(crate) fn have_sums(vectors: &[u8], row_bytes: usize, sums: &[u64]) -> bool {
    let blocks = vectors.chunks(CHECKED_ROWS * row_bytes);
    blocks.len() == sums.len() && blocks.zip(sums).all(|(block, sum)| have_sum(block, *sum))
}
