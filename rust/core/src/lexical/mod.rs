//! Keyword scoring: BM25 over words, over character n-grams and over adjacent pairs of words.
//!
//! [`Lexical`] is a part of a snapshot: copies are cheap and never change under a reader. Only the
//! vocabulary is shared, and it only grows. Statistics are whole numbers over the live memories of
//! a user, so that scores depend neither on removed memories nor on other users' words.

mod bm25;
mod compaction;
mod feedback;
mod forward_index;
mod fuzzy;
mod holders;
mod languages;
mod matched;
mod ngrams;
mod passage;
mod postings;
mod query;
mod statistics;
mod stored;
mod sum;
mod vocabulary;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use bm25::{Carried, Scores, Scoring, Turn};
pub use feedback::Weighed;
use forward_index::{BLOCK_DOCIDS, Block};
use languages::{MemoryLanguages, UserLanguages};
pub use matched::{MatchedWord, QueryWords};
use postings::{GROUP_BLOCKS, GROUP_DOCIDS, Postings};
pub use query::{Fields, MaxScores, NonEssential, Options, Query};
pub use statistics::Collection;
use statistics::{CollectionStatistics, NOTHING, Statistics, UserStatistics};
pub(crate) use stored::StoredLexical;
pub use vocabulary::Analysed;
use vocabulary::{Known, Vocabulary};

use crate::Error;
use crate::collections::cow_vec::{BlockVec, CowVec};
use crate::text::tokenizer::{LanguageWords, QueryLanguages, tokens_in};
use crate::text::{Analyser, Analysis, fold};

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
    languages: MemoryLanguages,
}

impl Lexical {
    /// A state without memories, and a vocabulary of its own.
    pub fn new(analyser: impl Into<Analyser>) -> Self {
        Self {
            vocabulary: Arc::new(Vocabulary::new(analyser.into())),
            blocks: CowVec::default(),
            postings: Arc::default(),
            docids: 0,
            statistics: Statistics::default(),
            users: UserStatistics::default(),
            languages: MemoryLanguages::default(),
        }
    }

    /// Cut a text into tokens and add new terms to the vocabulary, for [`push`](Self::push).
    ///
    /// Nothing of this state changes, so it needs no writer's lock: several threads may do it at
    /// once. The result fits this state and all its copies, earlier and later ones. Where languages
    /// are detected it is that of a user without memories.
    pub fn analyse(&self, text: &str) -> Analysed {
        self.vocabulary.analyse(text, UserLanguages::default())
    }

    /// [`analyse`](Self::analyse) for a memory of a collection, with a check of the memory that a
    /// long text needs.
    ///
    /// # Errors
    ///
    /// When that cannot be had; nothing is learnt then.
    pub(crate) fn try_analyse(
        &self,
        text: &str,
        collection: Collection,
        is_long: bool,
    ) -> Result<Analysed, Error> {
        let languages = match collection {
            Collection::User(user) => self.languages.applied(user),
            Collection::All => UserLanguages::default(),
        };
        if is_long {
            return self.vocabulary.try_analyse(text, languages);
        }
        Ok(self.vocabulary.analyse(text, languages))
    }

    /// An analysed text as a memory of a user: in its own language if that is one of the user's, else
    /// in that of most of the user's memories.
    pub(crate) fn resolved<'a>(
        &self,
        analysed: &'a Analysed,
        text: &str,
        user: u32,
    ) -> Cow<'a, Analysed> {
        let Some(found) = analysed.language else { return Cow::Borrowed(analysed) };
        let applied = self.languages.applied(user);
        if applied.of(found.detected) == found.analysed {
            return Cow::Borrowed(analysed);
        }
        Cow::Owned(self.vocabulary.analyse(text, applied))
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
    /// Tenants are small whole numbers: memory is taken for all up to the greatest.
    pub fn push(&mut self, analysed: &Analysed, user: u32) -> u32 {
        self.languages.push(analysed.language, user);
        self.push_terms(analysed, user)
    }

    /// [`push`](Self::push) where the language is counted already.
    fn push_terms(&mut self, analysed: &Analysed, user: u32) -> u32 {
        let (terms, distinct) = (&analysed.terms, &analysed.distinct);
        self.statistics.add(terms.len(), distinct);
        self.users.add(user, terms.len(), distinct);
        self.place(|block| block.push(terms))
    }

    /// Append a vacant docid, and return it.
    pub fn push_vacant(&mut self) -> u32 {
        self.languages.push_vacant();
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
        self.languages.remove(docid, user);
        true
    }

    /// Analyse memories again whose users have other languages now; `text_of` gives a docid's user and
    /// text.
    pub(crate) fn settle_languages<'a>(&mut self, text_of: impl Fn(u32) -> Option<(u32, &'a str)>) {
        let renewed = self.languages.renew();
        if renewed.is_empty() {
            return;
        }
        let mut groups = BTreeSet::new();
        for docid in 0..self.docids as u32 {
            let Some((user, text)) = text_of(docid) else { continue };
            let detected = self.languages.detected(docid);
            let at = renewed.binary_search_by_key(&user, |one| one.user);
            if at.is_ok_and(|at| renewed[at].changed(detected).is_some()) {
                let analysed = self.vocabulary.analyse(text, self.languages.applied(user));
                self.replace(docid, user, &analysed);
                groups.insert(docid as usize / GROUP_DOCIDS);
            }
        }
        for group in groups {
            self.renew_postings(group);
        }
    }

    /// Replace the terms of a memory, in place.
    fn replace(&mut self, docid: u32, user: u32, analysed: &Analysed) {
        let Some((block, place)) = self.find_mut(docid) else { return };
        let Some(old) = block.remove(place) else { return };
        let (terms, distinct_terms) = (&analysed.terms, &analysed.distinct);
        block.restore(place, terms);
        let old_distinct = distinct(&old);
        self.statistics.remove(old.len(), &old_distinct);
        self.statistics.add(terms.len(), distinct_terms);
        self.users.remove(user, old.len(), &old_distinct);
        self.users.add(user, terms.len(), distinct_terms);
    }

    /// Make the postings of a group again, if it has any.
    fn renew_postings(&mut self, group: usize) {
        if self.postings.get(group).is_none_or(Option::is_none) {
            return;
        }
        let blocks = &self.blocks.settled()[group * GROUP_BLOCKS..][..GROUP_BLOCKS];
        let postings = Arc::new(Postings::of(blocks));
        Arc::make_mut(&mut self.postings)[group] = Some(postings);
    }

    /// Number of docids, vacant ones too.
    pub fn docids(&self) -> usize {
        self.docids
    }

    /// Number of memories.
    pub fn documents(&self) -> u64 {
        self.statistics.documents
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
            + self.languages.bytes()
            + self.vocabulary.bytes()
    }

    fn place(&mut self, push: impl FnOnce(&mut Block)) -> u32 {
        if self.docids.is_multiple_of(BLOCK_DOCIDS) {
            self.blocks.push(Block::default());
        }
        let last = self.blocks.get_mut(self.docids / BLOCK_DOCIDS);
        let last = last.expect("a block with capacity was just made sure of");
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
    pub(crate) fn analyser(&self) -> Analyser {
        self.vocabulary.analyser
    }

    /// Whether a word is a stop word in a language of a collection.
    pub(crate) fn is_stop_word(&self, word: &str, collection: Collection) -> bool {
        let QueryLanguages { first, others } = self.languages_of(collection);
        let folded = fold(word);
        first.into_iter().chain(others).any(|language| language.is_stop_word(&folded))
    }

    /// The languages of a collection's memories, the most frequent first.
    fn languages_of(&self, collection: Collection) -> QueryLanguages {
        match self.vocabulary.analyser {
            Analyser::Fixed(Analysis { language }) => {
                QueryLanguages { first: language, others: Vec::new() }
            }
            Analyser::Detecting => {
                let mut languages = self.languages.present(collection).into_iter();
                QueryLanguages { first: languages.next(), others: languages.collect() }
            }
        }
    }

    /// Whether a query has a stop word.
    pub(crate) fn has_stop_words(&self, text: &str, collection: Collection) -> bool {
        let tokens = tokens_in(text, &self.languages_of(collection));
        tokens.iter().any(|token| token.is_stop_word)
    }

    /// How the words of a text that is no query are stemmed.
    fn analysis_of(&self, text: &str, collection: Collection) -> Analysis {
        let languages = self.languages_of(collection);
        let several = !languages.others.is_empty();
        let found = several.then(|| LanguageWords::of(text, &languages).languages.first);
        Analysis { language: found.unwrap_or(languages.first) }
    }

    /// Whether a live memory of a collection has a word, in any of its forms.
    pub(crate) fn has_word(&self, word: &str, collection: Collection) -> bool {
        let statistics = self.statistics_of(collection);
        let tokens = tokens_in(word, &self.languages_of(collection));
        let is_held = |token: &String| {
            let id = self.vocabulary.read(|known| known.id(token));
            id.is_some_and(|term| statistics.frequencies.get(term) > 0)
        };
        tokens.iter().any(|word| is_held(&word.token) || word.others.iter().any(is_held))
    }

    /// The mean number of tokens of the memories of a collection; 0 without any.
    pub(crate) fn mean_length(&self, collection: Collection) -> f64 {
        let statistics = self.statistics_of(collection);
        statistics.tokens as f64 / statistics.documents.max(1) as f64
    }

    /// The statistics of a collection.
    fn statistics_of(&self, collection: Collection) -> &CollectionStatistics {
        match collection {
            Collection::All => &self.statistics,
            Collection::User(user) => match self.users.get(user) {
                Some(statistics) => statistics,
                None => &NOTHING,
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
