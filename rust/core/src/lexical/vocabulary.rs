//! All terms ever seen, by number and by the grams they are made of. It only grows.

use std::collections::HashMap;

use parking_lot::RwLock;

use super::distinct;
use super::grams::{Gram, each_gram};
use super::spelling::{Alike, Spelling};
use crate::text::Analysis;
use crate::text::words::each_token;

/// A text as numbers of terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysed {
    terms: Vec<u32>,
    distinct: Vec<u32>,
}

impl Analysed {
    fn new(terms: Vec<u32>) -> Self {
        Self { distinct: distinct(&terms), terms }
    }

    /// The terms in text order.
    pub(super) fn terms(&self) -> &[u32] {
        &self.terms
    }

    /// Each term once.
    pub(super) fn distinct_terms(&self) -> &[u32] {
        &self.distinct
    }
}

/// Terms and their numbers, shared by all snapshots; the lock is never held while memories are
/// scored.
pub(super) struct Vocabulary {
    pub(super) analysis: Analysis,
    known: RwLock<Known>,
}

#[derive(Default)]
pub(super) struct Known {
    ids: HashMap<Box<str>, u32>,
    /// The terms that hold a gram, in order of their numbers.
    holders: HashMap<Gram, Vec<u32>>,
    spelling: Spelling,
}

impl Vocabulary {
    pub(super) fn new(analysis: Analysis) -> Self {
        Self { analysis, known: RwLock::default() }
    }

    /// Cut a text into terms and number those that are new.
    pub(super) fn analyse(&self, text: &str) -> Analysed {
        let mut tokens = Tokens::default();
        each_token(text, self.analysis, |_, token| tokens.push(token));
        Analysed::new(self.known_ids(&tokens).unwrap_or_else(|| self.learnt_ids(&tokens)))
    }

    /// Call `read` with what is known now.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Known) -> T) -> T {
        read(&self.known.read())
    }

    fn known_ids(&self, tokens: &Tokens) -> Option<Vec<u32>> {
        let known = self.known.read();
        tokens.iter().map(|token| known.id(token)).collect()
    }

    fn learnt_ids(&self, tokens: &Tokens) -> Vec<u32> {
        let mut known = self.known.write();
        tokens.iter().map(|token| known.learn(token)).collect()
    }

    /// Estimated bytes: maps hold an eighth of their places free and a byte for each.
    pub(super) fn bytes(&self) -> usize {
        let known = self.known.read();
        let texts: usize = known.ids.keys().map(|term| term.len().next_multiple_of(16)).sum();
        let lists: usize = known.holders.values().map(|list| list.capacity() * 4).sum();
        let term = size_of::<(Box<str>, u32)>() + 1;
        let gram = size_of::<(Gram, Vec<u32>)>() + 1;
        texts
            + lists
            + known.ids.capacity() * term * 8 / 7
            + known.holders.capacity() * gram * 8 / 7
            + known.spelling.bytes()
    }
}

impl Known {
    /// The number of a term, if it was ever seen.
    pub(super) fn id(&self, term: &str) -> Option<u32> {
        self.ids.get(term).copied()
    }

    /// The terms that hold a gram.
    pub(super) fn holders(&self, gram: &Gram) -> &[u32] {
        self.holders.get(gram).map_or(&[], Vec::as_slice)
    }

    /// The term, among those that `is_meant`, that is spelled most like `text`; see
    /// [`Spelling::nearest`].
    pub(super) fn nearest(
        &self,
        text: &str,
        least: f32,
        is_meant: impl Fn(u32) -> bool,
    ) -> Option<Alike> {
        self.spelling.nearest(text, least, is_meant)
    }

    fn learn(&mut self, term: &str) -> u32 {
        if let Some(id) = self.id(term) {
            return id;
        }
        let id = u32::try_from(self.ids.len()).expect("fewer than 2^32 terms");
        self.ids.insert(term.into(), id);
        each_gram(term, |gram: Gram| self.holders.entry(gram).or_default().push(id));
        self.spelling.learn(term);
        id
    }
}

/// Tokens of one text in one buffer.
#[derive(Default)]
struct Tokens {
    text: String,
    ends: Vec<usize>,
}

impl Tokens {
    fn push(&mut self, token: &str) {
        self.text.push_str(token);
        self.ends.push(self.text.len());
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }
}
