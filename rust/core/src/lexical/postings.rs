//! Where each term of a group of full blocks occurs.

use serde::{Deserialize, Serialize};

use crate::collections::plain;

use super::forward_index::{BLOCK_DOCIDS, Block};

/// Blocks that share postings.
pub(super) const GROUP_BLOCKS: usize = 4;

/// Docids that share postings: few enough that sums over all of them stay in the first cache.
pub(super) const GROUP_DOCIDS: usize = GROUP_BLOCKS * BLOCK_DOCIDS;

/// Bits of an entry that hold the frequency; the others hold the docid.
const TIMES_BITS: u32 = u16::BITS - GROUP_DOCIDS.ilog2();

/// This frequency or more; the text has the exact number.
const MANY: u16 = (1 << TIMES_BITS) - 1;

/// This many terms or more; the text has the exact number.
const LONG: u16 = u16::MAX;

/// Docid of a group and how often the term is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) docid: u16,
    pub(super) times: u32,
}

/// The terms of a group when it became full; memories removed later stay in it.
#[derive(Serialize, Deserialize)]
pub(super) struct Postings {
    /// All terms of the group, ascending.
    #[serde(with = "plain")]
    pub(super) terms: Vec<u32>,
    /// Where the entries of each term begin, and at last where they end.
    #[serde(with = "plain")]
    starts: Vec<u32>,
    #[serde(with = "plain")]
    entries: Vec<u16>,
    /// Number of terms of each docid, which is faster to read here than in the blocks.
    #[serde(with = "plain")]
    lengths: Box<[u16]>,
}

impl Postings {
    /// Collect the terms of a group.
    pub(super) fn of(blocks: &[impl AsRef<Block>]) -> Self {
        let occurrences = sorted_occurrences(blocks);
        let (terms, starts, entries) = (Vec::new(), Vec::new(), Vec::new());
        let length = |docid| u16::try_from(terms_at(blocks, docid).len()).unwrap_or(LONG);
        let lengths = (0..GROUP_DOCIDS as u16).map(length).collect();
        let mut postings = Self { terms, starts, entries, lengths };
        for alike in occurrences.chunk_by(|one, other| one == other) {
            let (term, docid) = alike[0];
            if postings.terms.last() != Some(&term) {
                postings.terms.push(term);
                postings.starts.push(postings.entries.len() as u32);
            }
            let times = alike.len().min(usize::from(MANY)) as u16;
            postings.entries.push(docid << TIMES_BITS | times);
        }
        postings.starts.push(postings.entries.len() as u32);
        postings.terms.shrink_to_fit();
        postings.starts.shrink_to_fit();
        postings.entries.shrink_to_fit();
        postings
    }

    /// Whether lists and terms fit together; there are so many distinct terms.
    pub(super) fn is_sound(&self, terms: usize) -> bool {
        self.lengths.len() == GROUP_DOCIDS
            && self.starts.len() == self.terms.len() + 1
            && self.starts.is_sorted()
            && self.starts.last().is_some_and(|end| *end as usize == self.entries.len())
            && self.terms.is_sorted()
            && self.terms.last().is_none_or(|last| (*last as usize) < terms)
    }

    /// The place of a term among all.
    pub(super) fn find(&self, term: u32) -> Option<usize> {
        self.terms.binary_search(&term).ok()
    }

    /// In how many docids the term at a place among the terms occurs.
    pub(super) fn len(&self, place: usize) -> usize {
        (self.starts[place + 1] - self.starts[place]) as usize
    }

    /// Number of terms of a docid, if none were removed from it since.
    pub(super) fn length(&self, docid: u16, blocks: &[impl AsRef<Block>]) -> u32 {
        match self.lengths[usize::from(docid)] {
            LONG => terms_at(blocks, docid).len() as u32,
            length => u32::from(length),
        }
    }

    /// Whether any docid has more terms.
    pub(super) fn has_longer(&self, terms: usize) -> bool {
        // Without branches, so that the compiler turns it into vector instructions.
        let longest = self.lengths.iter().fold(0, |longest, length| longest.max(*length));
        usize::from(longest) > terms
    }

    /// Where the term at a place among the terms occurs, by docid.
    pub(super) fn list<'a>(
        &'a self,
        place: usize,
        blocks: &'a [impl AsRef<Block>],
    ) -> impl Iterator<Item = Posting> + 'a {
        let range = self.starts[place] as usize..self.starts[place + 1] as usize;
        self.entries[range].iter().map(move |&entry| {
            let (docid, times) = (entry >> TIMES_BITS, entry & MANY);
            let times = match times {
                MANY => count(blocks, docid, self.terms[place]),
                times => u32::from(times),
            };
            Posting { docid, times }
        })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + (self.terms.capacity() + self.starts.capacity()) * size_of::<u32>()
            + (self.entries.capacity() + self.lengths.len()) * size_of::<u16>()
    }
}

fn sorted_occurrences(blocks: &[impl AsRef<Block>]) -> Vec<(u32, u16)> {
    let mut occurrences = Vec::new();
    for docid in 0..GROUP_DOCIDS as u16 {
        occurrences.extend(terms_at(blocks, docid).iter().map(|&term| (term, docid)));
    }
    occurrences.sort_unstable();
    occurrences
}

/// The terms of a docid of a group, in text order.
pub(super) fn terms_at(blocks: &[impl AsRef<Block>], docid: u16) -> &[u32] {
    let docid = usize::from(docid);
    blocks[docid / BLOCK_DOCIDS].as_ref().terms(docid % BLOCK_DOCIDS)
}

#[cold]
fn count(blocks: &[impl AsRef<Block>], docid: u16, term: u32) -> u32 {
    terms_at(blocks, docid).iter().filter(|&&other| other == term).count() as u32
}
