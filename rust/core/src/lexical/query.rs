//! A query against one state: its words, n-grams and pairs with their weights.

use std::collections::BTreeMap;

use super::Lexical;
use super::fuzzy::has_digit;
use super::ngrams::{Ngram, each_ngram};
use super::statistics::{Collection, CollectionStatistics};
use super::sum::Sum;
use super::vocabulary::Known;
use crate::deadline::{Deadline, NEVER};
use crate::text::tokenizer::{QueryToken, tokens_in};
use crate::text::words::begins_unspaced;

/// How slowly repeats of a word stop counting, unless options say otherwise.
const K1: f32 = 0.9;

/// How far longer memories count less, unless options say otherwise: little, because most memories
/// are short turns.
const B: f32 = 0.4;

/// Which fields to score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// The query's words.
    pub words: bool,
    /// Terms that share character n-grams with the query's words.
    pub ngrams: bool,
    /// Neighbouring words of the query that are neighbours in the memory too.
    pub bigrams: bool,
}

/// How to score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Which fields.
    pub fields: Fields,
    /// How slowly repeats of a word stop counting; 0 counts presence alone.
    pub k1: f32,
    /// How far longer memories count less, from 0 (not) to 1; None by how much memories repeat
    /// themselves.
    pub b: Option<f32>,
    /// How much a stop word weighs beside other words; alone they weigh 1. In a script without
    /// spaces, a pair that no memory has weighs as little: it may be the seam of two words.
    pub stop_words: f32,
    /// Words and n-grams in more than this share of the memories, and in more than a hundred, are
    /// passed over; 1 keeps them all. Where no other word would be left, all words stay.
    pub max_df: f32,
    /// Smallest Dice coefficient of character bigrams, ends included, at which the most similar
    /// known word replaces a word that no memory has. 0 is never. Stop words are not replaced, words
    /// of less than four characters by the same word with other accents alone.
    pub fuzziness: f32,
}

/// Terms in so few memories are never too common.
const FEW_DOCUMENTS: u64 = 100;

/// Words of fewer characters are like too many others.
const MIN_FUZZY_CHARACTERS: usize = 4;

impl Default for Options {
    /// All fields, k1 and b of BM25 as there, every word like every other and for itself.
    fn default() -> Self {
        let fields = Fields { words: true, ngrams: true, bigrams: true };
        Self { fields, k1: K1, b: Some(B), stop_words: 1.0, max_df: 1.0, fuzziness: 0.0 }
    }
}

/// The weight of a term.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TermWeight {
    pub(super) word: f32,
    pub(super) ngram: f32,
}

/// A pair of neighbouring query words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bigram {
    /// Codes of the two words.
    pub(super) words: [u32; 2],
    pub(super) weight: f32,
}

/// A query prepared for one state of [`Lexical`].
pub struct Query {
    pub(super) fields: Fields,
    /// Code of each term: 0 for terms without weight, from 1 on for the query's distinct words in
    /// order, then for terms that only share n-grams.
    codes: Vec<u32>,
    /// By code; the first is no term.
    pub(super) term_weights: Vec<TermWeight>,
    /// The terms that are words, in order of their codes.
    pub(super) terms: Vec<u32>,
    /// In order of their words.
    pub(super) bigrams: Vec<Bigram>,
    pub(super) saturation: Saturation,
    /// The words of a passage.
    pub(super) width: usize,
    max_scores: MaxScores,
    /// The part of the largest words' score that is of pairs of a script without spaces.
    unspaced: f32,
}

/// The non-essential terms: words of small weights, which a first pass over all memories may skip.
#[derive(Debug, Clone, Copy)]
pub struct NonEssential {
    /// Words of a smaller weight are non-essential.
    pub(super) below: f32,
    /// Largest sum of their scores.
    pub(super) max: Sum,
}

impl NonEssential {
    /// No non-essential term.
    pub const NONE: Self = Self { below: 0.0, max: Sum::ZERO };

    /// Whether there is a non-essential term.
    pub fn is_any(&self) -> bool {
        self.below > 0.0
    }
}

/// Largest possible scores, by field.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MaxScores {
    /// Σ idf over the query's words, unknown ones included.
    pub words: f32,
    /// Σ idf over the query's n-grams. Several words of a memory may share an n-gram, so a score
    /// may exceed it.
    pub ngrams: f32,
    /// Σ of the weights of pairs.
    pub bigrams: f32,
}

impl Query {
    /// The divisors that bring scores between 0 and 1.
    pub fn max_scores(&self) -> MaxScores {
        self.max_scores
    }

    /// The share of its words' weight that pairs of characters have, in scripts without spaces.
    pub fn unspaced_share(&self) -> f32 {
        if self.unspaced > 0.0 { self.unspaced / self.max_scores.words } else { 0.0 }
    }

    /// The words of the smallest weights, up to `share` of the sum of all weights; none if other
    /// fields are requested, which need every word.
    pub fn non_essential(&self, share: f32) -> NonEssential {
        if !self.fields.words || self.fields.ngrams || self.fields.bigrams {
            return NonEssential::NONE;
        }
        let mut weights: Vec<f32> =
            self.term_weights[1..].iter().map(|term_weight| term_weight.word).collect();
        weights.sort_unstable_by(f32::total_cmp);
        let mut sum = Sum::default();
        for weight in &weights {
            sum.add(*weight);
            if sum.value() > share * self.max_scores.words {
                return self.non_essential_below(*weight);
            }
        }
        NonEssential::NONE
    }

    fn non_essential_below(&self, below: f32) -> NonEssential {
        let words = self.term_weights[1..].iter().map(|term_weight| term_weight.word);
        let non_essential: Vec<f32> = words.filter(|weight| *weight < below).collect();
        if non_essential.is_empty() {
            return NonEssential::NONE;
        }
        let mut max = Sum::default();
        for weight in non_essential {
            max.add(weight); // a share is never above 1
        }
        NonEssential { below, max }
    }

    /// The code of a term; 0 has no weight.
    pub(super) fn code(&self, term: u32) -> u32 {
        self.codes.get(term as usize).copied().unwrap_or(0)
    }

    /// The position of a bigram, if the query has it.
    pub(super) fn pair(&self, words: [u32; 2]) -> Option<u32> {
        self.bigrams.binary_search_by_key(&words, |pair| pair.words).ok().map(|place| place as u32)
    }
}

/// tf / (tf + k1·(1 − b + b·length/average)), the part of BM25 that depends on the memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saturation {
    fixed: f32,
    per_token: f32,
}

impl Saturation {
    /// The tf that saturates to a half, for a memory of so many tokens.
    pub(super) fn norm(self, tokens: u32) -> f32 {
        self.fixed + self.per_token * tokens as f32
    }
}

/// Words of a passage, at least and at most; between them half as many as memories have on average, so
/// that its length counts no more than theirs.
const PASSAGE_WIDTHS: [u64; 2] = if cfg!(test) { [2, 4] } else { [32, 128] };

/// The words of a passage among memories of so many tokens.
pub(super) fn passage_width(tokens: u64, documents: u64) -> usize {
    (tokens / (2 * documents.max(1))).clamp(PASSAGE_WIDTHS[0], PASSAGE_WIDTHS[1]) as usize
}

/// tf / (tf + norm)
pub(super) fn share(times: u32, norm: f32) -> f32 {
    let times = times as f32;
    times / (times + norm)
}

/// ln(1 + (N − df + ½) / (df + ½)), the "lucene" form.
pub(super) fn idf(documents: u64, frequency: u64) -> f32 {
    let (documents, frequency) = (documents as f64, frequency as f64);
    (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln() as f32
}

impl Lexical {
    /// How rare the words of a text that a collection has are in it, stop words included: the mean of
    /// their idf, as a share of that of a word of one memory; 1 if there is nothing to compare.
    pub(crate) fn word_rarity(&self, text: &str, collection: Collection) -> f64 {
        let tokens = tokens_in(text, &self.languages_of(collection));
        let statistics = self.statistics_of(collection);
        let options = Options::default();
        let rarities: Vec<f64> = self.vocabulary.read(|known| {
            let words = Building::new(statistics, 0, known, &options);
            let frequencies = tokens.iter().map(|token| words.found(token).frequency);
            let known = frequencies.filter(|frequency| *frequency > 0);
            known.map(|frequency| f64::from(words.idf(frequency))).collect()
        });
        if rarities.is_empty() {
            return 1.0;
        }
        let sum: f64 = rarities.iter().sum();
        sum / rarities.len() as f64 / f64::from(idf(statistics.documents, 1))
    }

    /// Prepare a query for this state; scores with other states are meaningless.
    ///
    /// Words weigh by the statistics of `collection`; words outside it are unknown.
    pub fn query(&self, text: &str, collection: Collection, options: &Options) -> Query {
        self.query_until(text, collection, options, &NEVER)
    }

    /// Prepare a query as [`query`](Self::query) does; with the first words alone if the deadline
    /// passes.
    pub fn query_until(
        &self,
        text: &str,
        collection: Collection,
        options: &Options,
        deadline: &Deadline,
    ) -> Query {
        let tokens = tokens_in(text, &self.languages_of(collection));
        let statistics = self.statistics_of(collection);
        let terms = self.statistics.frequencies.len();
        self.vocabulary
            .read(|known| Building::new(statistics, terms, known, options).build(&tokens, deadline))
    }
}

/// b by how much memories repeat themselves: this much where no token recurs, and the share of
/// tokens that do.
///
/// A long text repeats its words (verbosity) or has more of them (scope), and only verbosity calls
/// for normalisation (Robertson and Zaragoza 2009; Na, Kang, Lee 2008). Of short turns one token in
/// eight recurs, of an assistant's answers and of abstracts nearly half.
const B_WITHOUT_REPETITION: f64 = 0.3;

fn b_by_repetition(statistics: &CollectionStatistics) -> f64 {
    let (tokens, postings) = (statistics.tokens, statistics.postings);
    let repeated = (tokens - postings) as f64 / tokens.max(1) as f64;
    (B_WITHOUT_REPETITION + repeated).min(1.0)
}

fn saturation(statistics: &CollectionStatistics, options: &Options) -> Saturation {
    let k1 = f64::from(options.k1);
    let b = options.b.map_or_else(|| b_by_repetition(statistics), f64::from);
    let per_average = match statistics.tokens {
        0 => 0.0,
        tokens => statistics.documents as f64 / tokens as f64,
    };
    Saturation { fixed: (k1 * (1.0 - b)) as f32, per_token: (k1 * b * per_average) as f32 }
}

/// The terms of a query word that memories have.
#[derive(Default)]
struct Found {
    first: Option<u32>,
    /// In other languages.
    others: Vec<u32>,
    /// Memories that have the word: each is in one language, so counts add up.
    frequency: u64,
}

/// A query word of which the state has memories.
pub(super) struct Word {
    pub(super) term: u32,
    /// The word in other languages of the memories.
    others: Vec<u32>,
    pub(super) weight: f32,
}

impl Word {
    pub(super) fn terms(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.term).chain(self.others.iter().copied())
    }
}

pub(super) struct Building<'state> {
    statistics: &'state CollectionStatistics,
    known: &'state Known,
    options: &'state Options,
    query: Query,
}

impl<'state> Building<'state> {
    /// Of a state that counts so many terms.
    pub(super) fn new(
        statistics: &'state CollectionStatistics,
        terms: usize,
        known: &'state Known,
        options: &'state Options,
    ) -> Self {
        let query = Query {
            fields: options.fields,
            codes: vec![0; terms],
            term_weights: vec![TermWeight::default()],
            terms: Vec::new(),
            bigrams: Vec::new(),
            saturation: saturation(statistics, options),
            width: passage_width(statistics.tokens, statistics.documents),
            max_scores: MaxScores::default(),
            unspaced: 0.0,
        };
        Self { statistics, known, options, query }
    }

    fn build(mut self, tokens: &[QueryToken], deadline: &Deadline) -> Query {
        let words = self.words(tokens, deadline);
        let terms =
            words.iter().flatten().flat_map(|word| word.terms().map(move |term| (term, word)));
        for (term, word) in terms {
            let code = self.code(term) as usize;
            if code > self.query.terms.len() {
                self.query.terms.push(term);
            }
            self.query.term_weights[code].word += word.weight;
        }
        if self.options.fields.bigrams {
            self.add_bigrams(&words);
        }
        if self.options.fields.ngrams {
            self.add_ngrams(&without_stop_words(tokens), deadline);
        }
        self.query
    }

    /// The word to search for in place of each token; of the first ones if the deadline passes.
    pub(super) fn words(
        &mut self,
        tokens: &[QueryToken],
        deadline: &Deadline,
    ) -> Vec<Option<Word>> {
        let found: Vec<Found> = tokens.iter().map(|token| self.found(token)).collect();
        self.weights(tokens, &found)
            .into_iter()
            .zip(tokens.iter().zip(found))
            .take_while(|_| !deadline.is_past())
            .map(|(weight, (token, found))| self.word(token, found, weight))
            .collect()
    }

    /// The weight of each token: 0 if it is too common, unless all are.
    fn weights(&self, tokens: &[QueryToken], found: &[Found]) -> Vec<f32> {
        let stop_word_weight = if are_stop_words(tokens) { 1.0 } else { self.options.stop_words };
        let weight = |(token, found): (&QueryToken, &Found)| {
            // A pair that no memory has may be chance, the end of one word and the next one's start.
            let is_seam = found.frequency == 0 && begins_unspaced(&token.token);
            if token.is_stop_word || is_seam { stop_word_weight } else { 1.0 }
        };
        let mut all: Vec<f32> = tokens.iter().zip(found).map(weight).collect();
        share_with_parts(&mut all, tokens, found);
        let mut rare = all.clone();
        for (weight, found) in rare.iter_mut().zip(found) {
            if self.is_common(found.frequency) {
                *weight = 0.0;
            }
        }
        if rare.iter().any(|weight| *weight > 0.0) { rare } else { all }
    }

    /// The word to search for in place of a token, if any memory has one.
    ///
    /// In several languages the word is several terms of the same weight, that of their frequencies
    /// together (Pirkola, SIGIR 1998).
    fn word(&mut self, token: &QueryToken, found: Found, weight: f32) -> Option<Word> {
        if weight == 0.0 {
            return None;
        }
        let weight = weight * self.idf(found.frequency);
        self.query.max_scores.words += weight;
        self.query.unspaced += if begins_unspaced(&token.token) { weight } else { 0.0 };
        match found.first {
            Some(term) => Some(Word { term, others: found.others, weight }),
            None if token.is_stop_word => None,
            None => self.fuzziness(&token.token),
        }
    }

    /// The terms of a word in all its languages, looked up once.
    fn found(&self, token: &QueryToken) -> Found {
        let mut found = Found::default();
        for text in std::iter::once(&token.token).chain(&token.others) {
            let Some(term) = self.known.id(text) else { continue };
            let frequency = self.frequency(term);
            if frequency > 0 {
                found.frequency += frequency;
                match found.first {
                    None => found.first = Some(term),
                    Some(_) => found.others.push(term),
                }
            }
        }
        found.frequency = found.frequency.min(self.statistics.documents);
        found
    }

    /// The word most like one that no memory has.
    fn fuzziness(&self, token: &str) -> Option<Word> {
        let fuzziness = self.options.fuzziness;
        if fuzziness <= 0.0 {
            return None;
        }
        let is_short = token.chars().count() < MIN_FUZZY_CHARACTERS;
        let least = if is_short { 1.0 } else { fuzziness };
        let terms = &self.statistics.frequencies;
        let alike = self.known.fuzzy_index.nearest(token, least, |visit| terms.each_term(visit))?;
        let weight = alike.likeness * self.idf(self.frequency(alike.term));
        Some(Word { term: alike.term, others: Vec::new(), weight })
    }

    fn idf(&self, frequency: u64) -> f32 {
        idf(self.statistics.documents, frequency)
    }

    fn is_common(&self, frequency: u64) -> bool {
        let share = f64::from(self.options.max_df) * self.statistics.documents as f64;
        frequency > FEW_DOCUMENTS && frequency as f64 > share
    }

    /// The code of a term, a new one if it has none.
    fn code(&mut self, term: u32) -> u32 {
        let code = &mut self.query.codes[term as usize];
        if *code == 0 {
            *code = self.query.term_weights.len() as u32;
            self.query.term_weights.push(TermWeight::default());
        }
        *code
    }

    fn add_bigrams(&mut self, words: &[Option<Word>]) {
        let mut weights: BTreeMap<[u32; 2], f32> = BTreeMap::new();
        let mut once: BTreeMap<[u32; 2], f32> = BTreeMap::new(); // of the first languages alone
        for pair in words.windows(2) {
            let [Some(first), Some(second)] = pair else { continue };
            let weight = f32::midpoint(first.weight, second.weight);
            *once.entry([self.code(first.term), self.code(second.term)]).or_default() += weight;
            for (one, other) in
                first.terms().flat_map(|one| second.terms().map(move |other| (one, other)))
            {
                *weights.entry([self.code(one), self.code(other)]).or_default() += weight;
            }
        }
        self.query.max_scores.bigrams = once.values().sum();
        self.query.bigrams =
            weights.into_iter().map(|(words, weight)| Bigram { words, weight }).collect();
    }

    /// Give every live term that shares an n-gram with a query word the idf of each such n-gram; a
    /// word with a digit shares them with no other.
    fn add_ngrams(&mut self, tokens: &[&str], deadline: &Deadline) {
        let (mut numbers, tokens): (Vec<&str>, Vec<&str>) =
            tokens.iter().partition(|token| has_digit(token));
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            self.add_own_ngrams(number);
        }
        let documents = self.statistics.documents;
        let mut live: Vec<u32> = Vec::new();
        for ngram in distinct_ngrams(&tokens) {
            if deadline.is_past() {
                return;
            }
            live.clear();
            let mut sum = 0;
            for &term in self.known.holders(&ngram) {
                let frequency = self.frequency(term);
                sum += frequency;
                live.extend((frequency > 0).then_some(term));
            }
            let frequency = sum.min(documents);
            if self.is_common(frequency) {
                continue;
            }
            let idf = self.idf(frequency);
            self.query.max_scores.ngrams += idf;
            for &term in &live {
                let code = self.code(term);
                self.query.term_weights[code as usize].ngram += idf;
            }
        }
    }

    fn add_own_ngrams(&mut self, token: &str) {
        let term = self.known.id(token);
        let frequency = term.map_or(0, |term| self.frequency(term));
        if self.is_common(frequency) {
            return;
        }
        let idf = self.idf(frequency) * distinct_ngrams(&[token]).len() as f32;
        self.query.max_scores.ngrams += idf;
        if let Some(term) = term.filter(|_| frequency > 0) {
            let code = self.code(term);
            self.query.term_weights[code as usize].ngram += idf;
        }
    }

    fn frequency(&self, term: u32) -> u64 {
        u64::from(self.statistics.frequencies.get(term))
    }
}

/// Give a word that memories have half of its weight and its parts the other half; one that no memory
/// has is sought by its parts alone.
fn share_with_parts(weights: &mut [f32], tokens: &[QueryToken], found: &[Found]) {
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.parts > 0) {
        let is_known = found[at].frequency > 0;
        let parts = at + 1..(at + 1 + token.parts).min(weights.len());
        weights[at] *= if is_known { 0.5 } else { 0.0 };
        if is_known {
            weights[parts].iter_mut().for_each(|weight| *weight *= 0.5);
        }
    }
}

fn are_stop_words(tokens: &[QueryToken]) -> bool {
    tokens.iter().all(|token| token.is_stop_word)
}

/// The tokens without stop words, unless there are no others.
fn without_stop_words(tokens: &[QueryToken]) -> Vec<&str> {
    let with_stop_words = are_stop_words(tokens);
    let kept = tokens.iter().filter(|token| with_stop_words || !token.is_stop_word);
    kept.map(|token| token.token.as_str()).collect()
}

fn distinct_ngrams(tokens: &[&str]) -> Vec<Ngram> {
    let mut ngrams: Vec<Ngram> = Vec::new();
    for token in tokens {
        each_ngram(token, |ngram| ngrams.push(ngram));
    }
    ngrams.sort_unstable();
    ngrams.dedup();
    ngrams
}
