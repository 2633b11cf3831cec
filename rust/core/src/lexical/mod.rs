//! Keyword scoring: BM25 over words, over character n-grams and over adjacent pairs of words.
//!
//! [`Lexical`] is a part of a snapshot: copies are cheap and never change under a reader. Only the
//! vocabulary is shared, and it only grows. Statistics are whole numbers over the live memories of
//! a user, so that scores depend neither on removed memories nor on other users' words.

mod bm25;
mod feedback;
mod forward_index;
mod fuzzy;
mod matched;
mod ngrams;
mod postings;
mod query;
mod statistics;
mod sum;
mod vocabulary;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use bm25::{Carried, Scores, Turn};
pub use feedback::Weighed;
use forward_index::{BLOCK_DOCIDS, Block};
pub use matched::{MatchedWord, QueryWords};
use postings::{GROUP_BLOCKS, GROUP_DOCIDS, Postings};
pub use query::{Fields, MaxScores, NonEssential, Options, Query};
pub use statistics::Collection;
use statistics::{CollectionStatistics, Nothing, Statistics, UserStatistics};
pub use vocabulary::Analysed;
use vocabulary::{Known, Vocabulary};

use crate::Error;
use crate::collections::cow_vec::{BlockVec, CowVec};
use crate::text::{Analysis, fold, query_tokens};

/// The tokens of all memories by docid, with their statistics.
///
/// # Examples
/// ```
/// use mnemic_core::lexical::{Collection, Lexical, Options, Scores};
/// use mnemic_core::text::Analysis;
///
/// let mut lexical = Lexical::new(Analysis::default());
/// for text in ["Ann feeds two cats", "The harbour froze in May"] {
///     let analysed = lexical.analyse(text);
///     lexical.push(&analysed, 0);
/// }
/// let query = lexical.query("Where do the cats eat?", Collection::All, &Options::default());
/// let mut scores = Scores::default();
/// lexical.scores(&query, &[0, 1], None, &mut scores);
/// assert!(scores.words[0] > scores.words[1]);
/// ```
#[derive(Clone)]
pub struct Lexical {
    vocabulary: Arc<Vocabulary>,
    blocks: CowVec<Block>,
    /// By group of blocks, while enough of its docids are live.
    postings: Arc<Vec<Option<Arc<Postings>>>>,
    docids: usize,
    /// Of all live memories.
    statistics: Statistics<BlockVec<u32>>,
    /// Of the live memories of each user.
    users: UserStatistics,
}

impl Lexical {
    /// A state without memories, and a vocabulary of its own.
    pub fn new(analysis: Analysis) -> Self {
        Self {
            vocabulary: Arc::new(Vocabulary::new(analysis)),
            blocks: CowVec::default(),
            postings: Arc::default(),
            docids: 0,
            statistics: Statistics::default(),
            users: UserStatistics::default(),
        }
    }

    /// Cut a text into tokens and add new terms to the vocabulary, for [`push`](Self::push).
    ///
    /// Nothing of this state changes, so it needs no writer's lock: several threads may do it at
    /// once. The result fits this state and all its copies, earlier and later ones.
    pub fn analyse(&self, text: &str) -> Analysed {
        self.vocabulary.analyse(text)
    }

    /// [`analyse`](Self::analyse) with a check of the memory that it needs.
    ///
    /// # Errors
    ///
    /// When that cannot be had; nothing is learnt then.
    pub fn try_analyse(&self, text: &str) -> Result<Analysed, Error> {
        self.vocabulary.try_analyse(text)
    }

    /// Bytes that a change may take which appends memories of so many tokens, up to so many of them
    /// new terms, and takes others out of these blocks: copies of blocks, tables that grow, and the
    /// postings of groups that become full.
    pub(crate) fn bytes_of_change(
        &self,
        blocks: &BTreeSet<usize>,
        added: usize,
        tokens: usize,
        new_terms: usize,
    ) -> usize {
        let bytes = |at: usize| self.blocks.get(at).map_or(0, |block| 2 * block.bytes());
        let last = self.blocks.len().saturating_sub(1);
        let copies = blocks.iter().filter(|at| **at != last).chain([&last]).map(|at| bytes(*at));
        let new = tokens.saturating_mul(2 * size_of::<u32>());
        let group = self.blocks.len().saturating_sub(GROUP_BLOCKS)..self.blocks.len();
        let closes_group = self.docids % GROUP_DOCIDS + added >= GROUP_DOCIDS;
        let held: usize = if closes_group { group.map(bytes).sum::<usize>() } else { 0 };
        let postings = if closes_group { held.saturating_add(new).saturating_mul(2) } else { 0 };
        copies
            .fold(0, usize::saturating_add)
            .saturating_add(new)
            .saturating_add(postings)
            .saturating_add(self.vocabulary.bytes_of_growth(new_terms))
    }

    /// The block of a docid.
    pub(crate) fn block_of(docid: u32) -> usize {
        docid as usize / BLOCK_DOCIDS
    }

    /// Number of distinct terms ever seen.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.vocabulary.read(Known::len)
    }

    /// Append a user's memory and return its docid, the number of docids before.
    ///
    /// Walls are small whole numbers: room is taken for all up to the greatest.
    pub fn push(&mut self, analysed: &Analysed, user: u32) -> u32 {
        let (terms, distinct) = (analysed.terms(), analysed.distinct_terms());
        self.statistics.add(terms.len(), distinct);
        self.users.add(user, terms.len(), distinct);
        self.place(|block| block.push(terms))
    }

    /// Append a vacant docid, and return it.
    pub fn push_vacant(&mut self) -> u32 {
        self.place(Block::push_vacant)
    }

    /// Remove a memory from its docid and from the statistics; false if there is none. `user` is
    /// the one it was pushed with.
    pub fn remove(&mut self, docid: u32, user: u32) -> bool {
        let Some((block, place)) = self.find_mut(docid) else { return false };
        let Some(terms) = block.remove(place) else { return false };
        self.drop_postings_of_few(docid as usize / GROUP_DOCIDS);
        let distinct = distinct(&terms);
        self.statistics.remove(terms.len(), &distinct);
        self.users.remove(user, terms.len(), &distinct);
        true
    }

    /// Number of docids, vacant ones too.
    pub fn docids(&self) -> usize {
        self.docids
    }

    /// Number of memories.
    pub fn documents(&self) -> u64 {
        self.statistics.documents()
    }

    /// Bytes of memory, the vocabulary's share estimated. Copies share most of them.
    pub fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.bytes()).sum();
        let postings: usize = self.postings.iter().flatten().map(|one| one.bytes()).sum();
        blocks
            + postings
            + self.postings.capacity() * size_of::<Option<Arc<Postings>>>()
            + self.blocks.bytes()
            + self.statistics.frequencies.bytes()
            + self.users.bytes()
            + self.vocabulary.bytes()
    }

    fn place(&mut self, push: impl FnOnce(&mut Block)) -> u32 {
        if self.docids.is_multiple_of(BLOCK_DOCIDS) {
            self.blocks.push(Block::default());
        }
        let last = self.blocks.get_mut(self.docids / BLOCK_DOCIDS);
        let last = last.expect("a block with room was just made sure of");
        push(Arc::make_mut(last));
        self.docids += 1;
        if self.docids.is_multiple_of(GROUP_DOCIDS) {
            self.close_group();
        }
        u32::try_from(self.docids - 1).expect("fewer than 2^32 slots")
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

    /// Postings are read only if a quarter of a group are candidates; with fewer live memories they
    /// are dropped.
    fn drop_postings_of_few(&mut self, group: usize) {
        if self.postings.get(group).is_none_or(Option::is_none) {
            return;
        }
        let blocks = &self.blocks.settled()[group * GROUP_BLOCKS..][..GROUP_BLOCKS];
        let live: usize = blocks.iter().map(|block| block.live()).sum();
        if live * bm25::DENSE < GROUP_DOCIDS {
            Arc::make_mut(&mut self.postings)[group] = None;
        }
    }

    fn find_mut(&mut self, docid: u32) -> Option<(&mut Block, usize)> {
        let (block, place) = (docid as usize / BLOCK_DOCIDS, docid as usize % BLOCK_DOCIDS);
        let is_live = self.blocks.get(block)?.is_live(place);
        is_live.then_some((Arc::make_mut(self.blocks.get_mut(block)?), place))
    }

    /// How texts become tokens.
    pub(crate) fn analysis(&self) -> Analysis {
        self.vocabulary.analysis
    }

    /// Whether a word is one of the language's stop words.
    pub(crate) fn is_stop_word(&self, word: &str) -> bool {
        let language = self.vocabulary.analysis.language;
        language.is_some_and(|language| language.is_stop_word(&fold(word)))
    }

    /// Whether a live memory of a collection has a word, in any of its forms.
    pub(crate) fn has_word(&self, word: &str, collection: Collection) -> bool {
        let statistics = self.statistics_of(collection);
        let tokens = query_tokens(word, &self.vocabulary.analysis);
        let is_held = |token: &str| {
            let id = self.vocabulary.read(|known| known.id(token));
            id.is_some_and(|term| statistics.frequency(term) > 0)
        };
        tokens.iter().any(|(token, _)| is_held(token))
    }

    /// The mean number of tokens of the memories of a collection; 0 without any.
    pub(crate) fn mean_length(&self, collection: Collection) -> f64 {
        let statistics = self.statistics_of(collection);
        statistics.tokens() as f64 / statistics.documents().max(1) as f64
    }

    /// The statistics of a collection.
    fn statistics_of(&self, collection: Collection) -> &dyn CollectionStatistics {
        match collection {
            Collection::All => &self.statistics,
            Collection::User(user) => match self.users.get(user) {
                Some(statistics) => statistics,
                None => &Nothing,
            },
        }
    }
}

/// The terms without repeats, in order of their ids.
fn distinct(terms: &[u32]) -> Vec<u32> {
    let mut distinct = terms.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}
