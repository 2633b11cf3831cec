//! The stored form of keywords without removed memories.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::forward_index::{BLOCK_DOCIDS, Block};
use super::languages::MemoryLanguages;
use super::postings::{GROUP_DOCIDS, Postings};
use super::statistics::{Statistics, UserStatistics};
use super::vocabulary::Vocabulary;
use super::{Known, Lexical};
use crate::Error;
use crate::collections::cow_vec::{BlockVec, CowVec};
use crate::text::Analyser;

/// What other parts of [`Lexical`] follow from.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredLexical {
    vocabulary: Arc<Vocabulary>,
    blocks: CowVec<Block>,
    postings: Arc<Vec<Option<Arc<Postings>>>>,
    statistics: Statistics<BlockVec<u32>>,
    users: UserStatistics,
    languages: BlockVec<u8>,
}

impl Lexical {
    pub(crate) fn stored(&self) -> StoredLexical {
        StoredLexical {
            vocabulary: Arc::clone(&self.vocabulary),
            blocks: self.blocks.clone(),
            postings: Arc::clone(&self.postings),
            statistics: self.statistics.clone(),
            users: self.users.clone(),
            languages: self.languages.of_docid.clone(),
        }
    }

    /// The memories of these users, by docid.
    pub(crate) fn restored(
        stored: StoredLexical,
        analyser: Analyser,
        users: &[u32],
    ) -> Result<Self, Error> {
        let StoredLexical { vocabulary, mut blocks, postings, statistics, users: of_users, .. } =
            stored;
        let shared = Error::SnapshotInvalid("a vocabulary of two states");
        let vocabulary = Arc::into_inner(vocabulary).ok_or(shared)?;
        let vocabulary = Arc::new(vocabulary.restored(analyser)?);
        let terms = vocabulary.read(Known::len);
        check_blocks(&blocks, users.len(), terms)?;
        check_postings(&postings, users.len(), terms)?;
        check_statistics(&statistics, &blocks, terms)?;
        let are_sound = of_users.are_of(users.iter().copied(), terms);
        Error::unless(are_sound, "word statistics of other users")?;
        let languages = languages_of(&stored.languages, analyser, users)?;
        let docids = users.len();
        if docids.is_multiple_of(GROUP_DOCIDS) {
            blocks.settle();
        }
        Ok(Self { vocabulary, blocks, postings, docids, statistics, users: of_users, languages })
    }
}

fn check_blocks(blocks: &CowVec<Block>, docids: usize, terms: usize) -> Result<(), Error> {
    let firsts = (0..docids).step_by(BLOCK_DOCIDS);
    let are_full = firsts
        .zip(blocks.iter())
        .all(|(first, block)| block.is_full(BLOCK_DOCIDS.min(docids - first), terms));
    let are_all = blocks.len() == docids.div_ceil(BLOCK_DOCIDS);
    Error::unless(are_full && are_all, "words that do not fit the memories")
}

fn check_postings(
    postings: &[Option<Arc<Postings>>],
    docids: usize,
    terms: usize,
) -> Result<(), Error> {
    let is_sound = |of_group: &Option<Arc<Postings>>| {
        of_group.as_ref().is_some_and(|of_group| of_group.is_sound(terms))
    };
    let are_all = postings.len() == docids / GROUP_DOCIDS;
    Error::unless(are_all && postings.iter().all(is_sound), "postings that do not fit the words")
}

fn check_statistics(
    statistics: &Statistics<BlockVec<u32>>,
    blocks: &CowVec<Block>,
    terms: usize,
) -> Result<(), Error> {
    let documents: usize = blocks.iter().map(|block| block.live()).sum();
    let tokens: usize = blocks.iter().map(|block| block.terms.len()).sum();
    let are_equal = (statistics.documents, statistics.tokens) == (documents as u64, tokens as u64);
    let are_sound = are_equal && statistics.frequencies.len() <= terms;
    Error::unless(are_sound, "word statistics of other memories")
}

fn languages_of(
    codes: &BlockVec<u8>,
    analyser: Analyser,
    users: &[u32],
) -> Result<MemoryLanguages, Error> {
    let detected = if analyser == Analyser::Detecting { users.len() } else { 0 };
    Error::unless(codes.len() == detected, "languages of other memories")?;
    let codes: Vec<u8> = (0..codes.len()).filter_map(|at| codes.get(at).copied()).collect();
    Ok(MemoryLanguages::of(&codes, |docid| users[docid as usize]))
}
