//! The keyword match of every candidate: bounded at once, exact where it matters.

use std::cell::{OnceCell, RefCell};

use rustc_hash::FxHashMap;

use crate::Error;
use crate::deadline::{Deadline, MANY_ROWS};
use crate::lexical::{
    Carried, Collection, Fields, Lexical, MatchedWord, NonEssential, Options, Query, QueryWords,
    Scores, Scoring, Turn,
};
use crate::rank::candidates::{CandidateSet, NONE};
use crate::rank::scoring_config::KeywordFields;

/// A first pass skips the terms of the smallest weights, up to this share of the weight of all: the
/// stop words, whose lists are the longest by far. With .05 to .1, the first pass was enough for
/// six of ten queries over 100,000 memories, with .2 for three: bounds were too loose.
const NON_ESSENTIAL_SHARE: f32 = 0.08;

/// If one memory in so many may be scored, all are completed at once: reading the lists takes the
/// time of so many single memories.
const FEW_SHARE: usize = 100;

/// A first pass pays with this many candidates for each that is always scored.
const MANY_FOR_ONE: usize = 512;

/// Options of the first pass over keywords.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstPass {
    /// Terms of the smallest weights are skipped up to this share of the weight of all.
    pub(crate) non_essential_share: f32,
    /// Matches of up to so many memories are computed one by one.
    pub(crate) few: usize,
}

impl FirstPass {
    /// No term is skipped.
    pub(crate) const WHOLE: Self = Self { non_essential_share: 0.0, few: 0 };

    /// The options for a number of candidates, of which some are always scored.
    pub(crate) fn at(candidates: usize, scored: usize) -> Self {
        if candidates < scored.saturating_mul(MANY_FOR_ONE) {
            return Self::WHOLE;
        }
        Self { non_essential_share: NON_ESSENTIAL_SHARE, few: candidates / FEW_SHARE }
    }
}

/// Keyword matches from 0 to 1, by ordinal.
pub(crate) struct Keywords<'a> {
    candidates: &'a CandidateSet<'a>,
    lexical: &'a Lexical,
    collection: Collection,
    fields: &'a KeywordFields,
    text: Box<str>,
    query: Query,
    /// The next turns of the candidates; empty if nothing is carried over.
    next: Vec<u32>,
    /// The terms that the first pass skipped, and up to how many memories are computed one by one.
    non_essential: NonEssential,
    few: usize,
    scores: RefCell<Scores>,
    uppers: Vec<f32>,
    /// The exact matches of all memories, once they are computed.
    all: OnceCell<Vec<f32>>,
    some: RefCell<FxHashMap<u32, f32>>,
    /// The words of the text, for reasons.
    words: OnceCell<QueryWords>,
}

impl<'a> Keywords<'a> {
    /// Match the words of a text, weighed by the statistics of a collection; `next` are the next
    /// turns of the candidates, or nothing.
    pub(crate) fn new(
        candidates: &'a CandidateSet<'a>,
        (lexical, collection): (&'a Lexical, Collection),
        fields: &'a KeywordFields,
        text: &str,
        next: Vec<u32>,
        first_pass: FirstPass,
    ) -> Result<Self, Error> {
        let deadline = candidates.deadline;
        let query = lexical.query_until(text, collection, &options(fields), deadline);
        deadline.check()?;
        let non_essential = non_essential(&query, fields, first_pass.non_essential_share);
        let mut keywords = Self {
            candidates,
            lexical,
            collection,
            fields,
            text: text.into(),
            query,
            next,
            non_essential,
            few: first_pass.few,
            scores: RefCell::new(Scores::until(deadline.clone())),
            uppers: Vec::new(),
            all: OnceCell::new(),
            some: RefCell::default(),
            words: OnceCell::new(),
        };
        let uppers = keywords.computed(Lexical::bounds);
        if non_essential.is_any() || deadline.has_passed() {
            keywords.uppers = uppers;
        } else {
            keywords.all = uppers.into();
        }
        Ok(keywords)
    }

    /// An upper bound of each match; of the words looked up before the deadline if that passed.
    pub(crate) fn uppers(&self) -> &[f32] {
        self.all.get().unwrap_or(&self.uppers)
    }

    /// Whether the upper bounds are not yet the matches themselves, and so many of these are faster
    /// to compute with all others than one by one.
    pub(crate) fn are_many_bounds(&self, looks: impl FnOnce() -> usize) -> bool {
        self.all.get().is_none() && looks() > self.few
    }

    /// Make the upper bounds the matches themselves, unless the deadline passes.
    pub(crate) fn complete(&self) {
        if self.all.get().is_none() && !self.deadline().has_passed() {
            let all = self.computed(Lexical::complete);
            if !self.deadline().has_passed() {
                self.all.get_or_init(|| all);
            }
        }
    }

    /// An upper bound of the best match, before it is raised to its power.
    pub(crate) fn best_upper(&self) -> f64 {
        let best = self.uppers().iter().copied().fold(0.0, f32::max);
        f64::from(best).powf(1.0 / f64::from(exponent(self.fields, &self.query)))
    }

    /// The best match, before it is raised to its power.
    pub(crate) fn best(&self) -> f64 {
        self.complete();
        self.best_upper()
    }

    /// Whether the query has a stop word.
    pub(crate) fn has_stop_words(&self) -> bool {
        self.lexical.has_stop_words(&self.text, self.collection)
    }

    /// Whether a memory of the collection has a word of the query.
    pub(crate) fn has_known_words(&self) -> bool {
        self.lexical.has_word(&self.text, self.collection)
    }

    /// The words of the query that a memory has, or one of the turns before whose words count for it.
    pub(crate) fn words_of(&self, at: u32) -> Vec<MatchedWord> {
        let options = options(self.fields);
        let words = self
            .words
            .get_or_init(|| self.lexical.query_words(&self.text, self.collection, &options));
        let turns = self.turns(at).into_iter();
        let turn = |(at, counts): (u32, f32)| {
            let docid = self.candidates.docids.get(at as usize).filter(|_| counts > 0.0)?;
            Some(Turn { docid: *docid, counts })
        };
        self.lexical.matched_words(&self.query, words, turns.map(turn))
    }

    fn deadline(&self) -> &'a Deadline {
        self.candidates.deadline
    }

    /// The match of one memory.
    pub(crate) fn of(&self, at: u32) -> f32 {
        match self.all.get() {
            Some(all) => all[at as usize],
            None => *self.some.borrow_mut().entry(at).or_insert_with(|| self.look_up(at)),
        }
    }

    fn computed(&self, score: impl Fn(&Lexical, &Scoring<'_>, &mut Scores)) -> Vec<f32> {
        let (first, second) = self.counts();
        let carried = Carried { next: &self.next, first, second };
        let scoring = Scoring {
            query: &self.query,
            docids: &self.candidates.docids,
            carried: self.carries().then_some(&carried),
            non_essential: self.non_essential,
        };
        let scores = &mut *self.scores.borrow_mut();
        score(self.lexical, &scoring, scores);
        self.matches([&scores.words, &scores.ngrams, &scores.bigrams], self.candidates.docids.len())
    }

    /// Weights of a word in the next turn, and in the one after.
    fn counts(&self) -> (f32, f32) {
        (self.fields.previous as f32, self.fields.second as f32)
    }

    fn carries(&self) -> bool {
        let (first, second) = self.counts();
        first + second > 0.0 && !self.next.is_empty()
    }

    /// The match of one memory from its text and those of the turns before.
    fn look_up(&self, at: u32) -> f32 {
        let turns = self.turns(at);
        if self.fields.char_ngrams + self.fields.bigrams > 0.0 {
            return self.look_up_all_fields(&turns);
        }
        let turn = |(at, counts): (u32, f32)| {
            self.candidates.docids.get(at as usize).map(|docid| Turn { docid: *docid, counts })
        };
        let score = self.lexical.score_of(&self.query, turns.into_iter().filter_map(turn));
        self.matches([&[score], &[], &[]], 1)[0]
    }

    /// A memory and the two turns before it, as far as they count, with the weights of their words.
    fn turns(&self, at: u32) -> [(u32, f32); 3] {
        if !self.carries() {
            return [(at, 1.0), (NONE, 0.0), (NONE, 0.0)];
        }
        let (first, second) = self.counts();
        let before = self.candidates.previous(at);
        [(at, 1.0), (before, first), (self.candidates.previous(before), second)]
    }

    /// As [`look_up`](Self::look_up) with n-grams and bigrams, after the deadline.
    fn look_up_all_fields(&self, turns: &[(u32, f32); 3]) -> f32 {
        let mut ordinals: Vec<u32> =
            turns.iter().map(|(at, _)| *at).filter(|at| *at != NONE).collect();
        let in_order = ordinals.clone();
        ordinals.sort_unstable();
        let place = |at: u32| ordinals.iter().position(|one| *one == at);
        let mut next = vec![NONE; ordinals.len()];
        for (after, before) in in_order.iter().zip(in_order.iter().skip(1)) {
            if let (Some(after), Some(before)) = (place(*after), place(*before)) {
                next[before] = after as u32;
            }
        }
        let (first, second) = self.counts();
        let carried = Carried { next: &next, first, second };
        let docids: Vec<u32> =
            ordinals.iter().map(|at| self.candidates.docids[*at as usize]).collect();
        let mut scores = Scores::default();
        let carried = self.carries().then_some(&carried);
        self.lexical.scores(&self.query, &docids, carried, &mut scores);
        let own = place(in_order[0]).unwrap_or_default();
        let one = |scores: &Vec<f32>| scores.get(own).map_or(vec![], |score| vec![*score]);
        self.matches([&one(&scores.words), &one(&scores.ngrams), &one(&scores.bigrams)], 1)[0]
    }

    /// The mean of fields by their shares, each divided by its largest value, raised to the
    /// exponent.
    fn matches(&self, scores: [&[f32]; 3], len: usize) -> Vec<f32> {
        let (fields, max) = (self.fields, self.query.max_scores());
        let shares = [fields.words as f32, fields.char_ngrams as f32, fields.bigrams as f32];
        let total: f32 = shares.iter().sum();
        let mut matches = vec![0.0; len];
        for (number, chunk) in matches.chunks_mut(MANY_ROWS).enumerate() {
            if number > 0 && self.deadline().is_past() {
                break;
            }
            for ((share, scores), max) in
                shares.into_iter().zip(scores).zip([max.words, max.ngrams, max.bigrams])
            {
                if share > 0.0 && max > 0.0 {
                    let scores = scores.iter().skip(number * MANY_ROWS);
                    for (sum, score) in chunk.iter_mut().zip(scores) {
                        *sum += share / total * (score / max).min(1.0);
                    }
                }
            }
            raise(chunk, exponent(fields, &self.query));
        }
        matches
    }
}

/// Terms that a first pass may skip. The match must grow with the score for that; roots and
/// products are rounded so that they do, any other power may not be.
fn non_essential(query: &Query, fields: &KeywordFields, share: f32) -> NonEssential {
    if is_monotone(exponent(fields, query)) {
        query.non_essential(share)
    } else {
        NonEssential::NONE
    }
}

fn options(fields: &KeywordFields) -> Options {
    Options {
        fields: Fields {
            words: fields.words > 0.0,
            ngrams: fields.char_ngrams > 0.0,
            bigrams: fields.bigrams > 0.0,
        },
        stop_words: fields.stop_words as f32,
        max_df: fields.max_df as f32,
        fuzziness: fields.fuzziness as f32,
        k1: fields.k1 as f32,
        b: fields.b.map(|b| b as f32),
    }
}

/// The power for a query: between those for words and for pairs of characters, by their weights.
fn exponent(fields: &KeywordFields, query: &Query) -> f32 {
    let Some(unspaced) = fields.unspaced_exponent else { return fields.exponent as f32 };
    let share = f64::from(query.unspaced_share());
    ((1.0 - share) * fields.exponent + share * unspaced) as f32
}

/// Raise to a power; that of the presets by a square root, which every machine rounds alike.
#[expect(clippy::float_cmp, reason = "only exactly these powers have a shorter way")]
fn raise(matches: &mut [f32], exponent: f32) {
    if exponent == 1.5 {
        for sum in matches {
            *sum *= sum.sqrt();
        }
    } else if exponent != 1.0 {
        for sum in matches {
            *sum = sum.powf(exponent);
        }
    }
}

#[expect(clippy::float_cmp, reason = "only exactly these powers have a shorter way")]
fn is_monotone(exponent: f32) -> bool {
    exponent == 1.5 || exponent == 1.0
}
