//! Keyword scoring: BM25 over words, over character n-grams and over adjacent pairs of words.
//!
//! [`Lexical`] is a part of a snapshot: copies are cheap and never change under a reader. Only the
//! vocabulary is shared, and it only grows. Statistics are whole numbers over the live memories, so
//! that scores do not depend on what was there before (C182).

mod block;
mod grams;
mod postings;
mod query;
mod related;
mod scores;
mod spelling;
mod sum;
mod vocabulary;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use block::{BLOCK_SLOTS, Block};
use postings::{GROUP_BLOCKS, GROUP_SLOTS, Postings};
pub use query::{Fields, Light, Most, Options, Query};
pub use related::Weighed;
pub use scores::{Carried, Scores, Turn};
pub use vocabulary::Analysed;
use vocabulary::Vocabulary;

use crate::chunks::{Chunks, Parts};
use crate::text::Analysis;

/// The tokens of all memories by slot, with their statistics.
///
/// # Examples
/// ```
/// use mnemic_core::lexical::{Lexical, Options, Scores};
/// use mnemic_core::text::Analysis;
///
/// let mut lexical = Lexical::new(Analysis::default());
/// for text in ["Ann feeds two cats", "The harbour froze in May"] {
///     let analysed = lexical.analyse(text);
///     lexical.push(&analysed);
/// }
/// let query = lexical.query("Where do the cats eat?", &Options::default());
/// let mut scores = Scores::default();
/// lexical.scores(&query, &[0, 1], None, &mut scores);
/// assert!(scores.words[0] > scores.words[1]);
/// ```
#[derive(Clone)]
pub struct Lexical {
    vocabulary: Arc<Vocabulary>,
    blocks: Parts<Block>,
    /// By group of blocks, as long as enough of its slots are live to be worth it.
    postings: Arc<Vec<Option<Arc<Postings>>>>,
    slots: usize,
    /// Live memories that hold a term, by term.
    frequencies: Chunks<u32>,
    documents: u64,
    tokens: u64,
}

impl Lexical {
    /// A state without memories, and a vocabulary of its own.
    pub fn new(analysis: Analysis) -> Self {
        Self {
            vocabulary: Arc::new(Vocabulary::new(analysis)),
            blocks: Parts::default(),
            postings: Arc::default(),
            slots: 0,
            frequencies: Chunks::default(),
            documents: 0,
            tokens: 0,
        }
    }

    /// Cut a text into tokens and learn those that are new; what [`push`](Self::push) wants.
    ///
    /// Nothing of this state changes, so it needs no writer's lock: several threads may do it at
    /// once. The result fits this state and all its copies, earlier and later ones.
    pub fn analyse(&self, text: &str) -> Analysed {
        self.vocabulary.analyse(text)
    }

    /// Append a memory and return its slot, the number of slots before.
    pub fn push(&mut self, analysed: &Analysed) -> u32 {
        let terms = analysed.terms();
        self.documents += 1;
        self.tokens += terms.len() as u64;
        for &term in analysed.distinct_terms() {
            while self.frequencies.len() <= term as usize {
                self.frequencies.push(0);
            }
            *self.frequency_of(term) += 1;
        }
        self.place(|block| block.push(terms))
    }

    /// Append a slot that no memory has, and return it.
    pub fn push_vacant(&mut self) -> u32 {
        self.place(Block::push_vacant)
    }

    /// Take the memory out of a slot and out of the statistics; false if there is none.
    pub fn remove(&mut self, slot: u32) -> bool {
        let Some((block, place)) = self.find_mut(slot) else { return false };
        let Some(terms) = block.remove(place) else { return false };
        self.drop_postings_of_few(slot as usize / GROUP_SLOTS);
        self.documents -= 1;
        self.tokens -= terms.len() as u64;
        for term in distinct(&terms) {
            *self.frequency_of(term) -= 1;
        }
        true
    }

    /// Number of slots, vacant ones too.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Number of memories.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Bytes of memory, the vocabulary's share estimated. Copies share most of them.
    pub fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.bytes()).sum();
        let postings: usize = self.postings.iter().flatten().map(|one| one.bytes()).sum();
        blocks
            + postings
            + self.postings.capacity() * size_of::<Option<Arc<Postings>>>()
            + self.blocks.bytes()
            + self.frequencies.bytes()
            + self.vocabulary.bytes()
    }

    fn place(&mut self, push: impl FnOnce(&mut Block)) -> u32 {
        if self.slots.is_multiple_of(BLOCK_SLOTS) {
            self.blocks.push(Block::default());
        }
        let last = self.blocks.get_mut(self.slots / BLOCK_SLOTS);
        let last = last.expect("a block with room was just made sure of");
        push(Arc::make_mut(last));
        self.slots += 1;
        if self.slots.is_multiple_of(GROUP_SLOTS) {
            self.close_group();
        }
        u32::try_from(self.slots - 1).expect("fewer than 2^32 slots")
    }

    /// Make postings for the last blocks, which are full now.
    fn close_group(&mut self) {
        self.blocks.settle();
        let first = self.blocks.len() - GROUP_BLOCKS;
        let group = &mut self.blocks.settled_mut()[first..];
        for block in &mut *group {
            Arc::make_mut(block).shrink();
        }
        let postings = Arc::new(Postings::of(group));
        Arc::make_mut(&mut self.postings).push(Some(postings));
        self.drop_postings_of_few(self.postings.len() - 1);
    }

    /// Postings serve only when a quarter of a group is in play; with fewer memories they go.
    fn drop_postings_of_few(&mut self, group: usize) {
        if self.postings.get(group).is_none_or(Option::is_none) {
            return;
        }
        let blocks = &self.blocks.settled()[group * GROUP_BLOCKS..][..GROUP_BLOCKS];
        let live: usize = blocks.iter().map(|block| block.live()).sum();
        if live * scores::DENSE < GROUP_SLOTS {
            Arc::make_mut(&mut self.postings)[group] = None;
        }
    }

    fn find_mut(&mut self, slot: u32) -> Option<(&mut Block, usize)> {
        let (block, place) = (slot as usize / BLOCK_SLOTS, slot as usize % BLOCK_SLOTS);
        let is_live = self.blocks.get(block)?.is_live(place);
        is_live.then_some((Arc::make_mut(self.blocks.get_mut(block)?), place))
    }

    fn frequency_of(&mut self, term: u32) -> &mut u32 {
        self.frequencies.get_mut(term as usize).expect("every term of a memory is counted")
    }

    /// Live memories that hold a term; none of a term this state does not count yet.
    fn frequency(&self, term: u32) -> u32 {
        self.frequencies.get(term as usize).copied().unwrap_or(0)
    }
}

/// The terms without repeats, in order of their ids.
fn distinct(terms: &[u32]) -> Vec<u32> {
    let mut distinct = terms.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}
