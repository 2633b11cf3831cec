//! Forward index: tokens of consecutive docids, one after another.

use serde::{Deserialize, Serialize};

use crate::collections::plain;

/// Docids of a block. The first change after a snapshot copies the last block, about 25 KB of
/// twelve-word memories.
pub(super) const BLOCK_DOCIDS: usize = 512;

/// Up to [`BLOCK_DOCIDS`] docids.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Block {
    #[serde(with = "plain")]
    pub(super) terms: Vec<u32>,
    /// The end of each docid's terms, which is the start of the next docid's.
    #[serde(with = "plain")]
    ends: Vec<u32>,
    /// The live docids, 64 a word.
    pub(super) live: [u64; BLOCK_DOCIDS / 64],
}

impl Block {
    pub(super) fn push(&mut self, terms: &[u32]) {
        let place = self.ends.len();
        self.live[place / 64] |= 1 << (place % 64);
        self.terms.extend_from_slice(terms);
        self.push_end();
    }

    pub(super) fn push_vacant(&mut self) {
        self.push_end();
    }

    fn push_end(&mut self) {
        self.ends.push(u32::try_from(self.terms.len()).expect("512 texts of under 2^23 words"));
    }

    /// Remove and return the terms of a docid, unless it is vacant.
    pub(super) fn remove(&mut self, place: usize) -> Option<Vec<u32>> {
        if !self.is_live(place) {
            return None;
        }
        let (start, end) = self.range(place);
        let terms: Vec<u32> = self.terms.drain(start..end).collect();
        self.live[place / 64] &= !(1 << (place % 64));
        self.ends[place..].iter_mut().for_each(|end| *end -= terms.len() as u32);
        Some(terms)
    }

    /// Set the terms of a docid whose terms were removed.
    pub(super) fn restore(&mut self, place: usize, terms: &[u32]) {
        let (start, _) = self.range(place);
        self.terms.splice(start..start, terms.iter().copied());
        self.live[place / 64] |= 1 << (place % 64);
        self.ends[place..].iter_mut().for_each(|end| *end += terms.len() as u32);
    }

    /// Whether the first docids have a memory, so many, of so many distinct terms at most.
    pub(super) fn is_full(&self, docids: usize, terms: usize) -> bool {
        let ends = self.ends.iter().map(|end| *end as usize);
        self.ends.len() == docids
            && (0..docids).all(|place| self.is_live(place))
            && self.live() == docids
            && ends.is_sorted_by(|one, other| one <= other)
            && self.ends.last().map_or(0, |end| *end as usize) == self.terms.len()
            && self.terms.iter().all(|term| (*term as usize) < terms)
    }

    /// Number of memories.
    pub(super) fn live(&self) -> usize {
        self.live.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Release the memory reserved for future docids.
    pub(super) fn shrink(&mut self) {
        self.terms.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    pub(super) fn is_live(&self, place: usize) -> bool {
        self.live[place / 64] >> (place % 64) & 1 == 1
    }

    /// The terms of a docid in text order; none if it is vacant.
    pub(super) fn terms(&self, place: usize) -> &[u32] {
        if place >= self.ends.len() {
            return &[];
        }
        let (start, end) = self.range(place);
        &self.terms[start..end]
    }

    /// Numbers of terms by docid; 0 for a vacant one.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        let others = self.ends.windows(2).map(|both| both[1] - both[0]);
        self.ends.first().copied().into_iter().chain(others).map(|length| length as usize)
    }

    fn range(&self, place: usize) -> (usize, usize) {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        (start as usize, self.ends[place] as usize)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + (self.terms.capacity() + self.ends.capacity()) * size_of::<u32>()
    }
}
