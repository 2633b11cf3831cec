//! Upper estimates of the memory that calls need.

use std::collections::BTreeSet;

use crate::Error;
use crate::columns::Record;
use crate::lexical::Lexical;
use crate::system::memory_budget::{CALL, headroom};

use super::MemoryIndex;
use super::request::Batch;

impl MemoryIndex {
    /// Check that the memory is available that a change may need: copies of changed blocks, the
    /// records' texts, words, vectors and links. Long texts are checked one by one.
    pub(super) fn check_memory(&self, batch: &Batch<'_>) -> Result<(), Error> {
        let Batch { removed, records, embedded, linked, links, .. } = *batch;
        let memories = &self.store.snapshot().memories;
        let rows = removed.iter().copied().chain(records.iter().map(|record| record.row));
        let docids = rows.filter_map(|row| memories.columns.docid_of(row));
        let blocks: BTreeSet<usize> = docids.map(Lexical::block_of).collect();
        let held: usize = records.iter().map(Record::text_bytes).sum();
        let words: usize = records.iter().map(|record| record.content.len().min(SHORT)).sum();
        let tokens: usize = records.iter().map(|record| record.content.len()).sum::<usize>() / 2;
        let new_terms = words / BYTES_PER_NEW_TERM;
        let bytes = [
            CALL,
            blocks.len().saturating_add(2).saturating_mul(BYTES_PER_BLOCK),
            memories.lexical.bytes_of_change(&blocks, records.len(), tokens, new_terms),
            self.store.bytes_of_change(embedded.len(), removed.len().saturating_add(records.len())),
            held.saturating_mul(2),
            records.len().saturating_mul(BYTES_PER_RECORD),
            words.saturating_mul(BYTES_PER_SHORT_BYTE),
            links.len().saturating_add(linked.len()).saturating_mul(BYTES_PER_LINK),
        ];
        headroom(bytes.into_iter().fold(0, usize::saturating_add))
    }

    /// Largest memory of a call that ranks for so many hits, by a text of so many bytes: scores and
    /// sets of all memories, weights of all terms, words of the text.
    pub fn bytes_of_reading(&self, hits: usize, text: usize) -> usize {
        let terms = self.store.snapshot().memories.lexical.vocabulary_size();
        let docids = self.docids();
        CALL.saturating_add(docids.saturating_mul(BYTES_PER_RANKED))
            .saturating_add(terms.saturating_mul(BYTES_PER_WEIGHED_TERM))
            .saturating_add(hits.min(docids).saturating_mul(BYTES_PER_HIT))
            .saturating_add(text.saturating_mul(BYTES_PER_SHORT_BYTE))
    }
}

/// Texts up to this length are checked together with the rest of a change.
pub(super) const SHORT: usize = 4096;

/// Bytes, at most, for each byte of a short text: its words, and new terms with their n-grams.
const BYTES_PER_SHORT_BYTE: usize = 192;

/// A new term has at least two bytes and a space, but for the few of one byte.
const BYTES_PER_NEW_TERM: usize = 3;

/// Bytes for each record, beside its texts.
const BYTES_PER_RECORD: usize = 2048;

/// Bytes for each link, in both directions.
const BYTES_PER_LINK: usize = 512;

/// Bytes of a block of all columns.
pub(super) const BYTES_PER_BLOCK: usize = 160 << 10;

/// Bytes for each memory that may be ranked: similarities, matches, scores, and sets of docids.
const BYTES_PER_RANKED: usize = 96;

/// Bytes for each term of the vocabulary: its code, and fuzzy matches.
const BYTES_PER_WEIGHED_TERM: usize = 8;

/// Bytes for each hit with its components.
const BYTES_PER_HIT: usize = 1024;
