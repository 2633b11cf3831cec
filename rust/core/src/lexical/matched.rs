//! The words of a query that a memory has: the reasons behind its keyword match.

use super::Lexical;
use super::bm25::Turn;
use super::fuzzy::has_digit;
use super::ngrams::{Ngram, each_ngram};
use super::query::{Building, Options, Query};
use super::statistics::Collection;
use crate::deadline::NEVER;
use crate::text::tokenizer::tokens_in;

/// A word of a query with the term that stands for it.
struct QueryWord {
    token: String,
    /// In the languages of the memories.
    terms: Vec<u32>,
    weight: f32,
}

/// The words of a query, the weightiest first.
pub struct QueryWords {
    words: Vec<QueryWord>,
    /// The tokens whose n-grams count.
    tokens: Vec<String>,
}

/// A word of a query that a memory has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedWord {
    /// The token of the query.
    pub token: String,
    /// The token of the memory: the same, or a similar one.
    pub term: String,
    /// How many turns before the memory it stands: 0 is in the memory itself.
    pub turn: u8,
}

impl Lexical {
    /// The words of a text with the terms that [`query`](Self::query) searches for.
    pub fn query_words(&self, text: &str, collection: Collection, options: &Options) -> QueryWords {
        let tokens = tokens_in(text, &self.languages_of(collection));
        let (statistics, terms) =
            (self.statistics_of(collection), self.statistics.frequencies.len());
        let mut words: Vec<QueryWord> = Vec::new();
        self.vocabulary.read(|known| {
            let mut building = Building::new(statistics, terms, known, options);
            for (word, token) in building.words(&tokens, &NEVER).into_iter().zip(&tokens) {
                let is_new = || words.iter().all(|known| known.token != token.token);
                if let Some(word) = word.filter(|_| options.fields.words && is_new()) {
                    let (token, terms) = (token.token.clone(), word.terms().collect());
                    words.push(QueryWord { token, terms, weight: word.weight });
                }
            }
        });
        words.sort_by(|one, other| other.weight.total_cmp(&one.weight));
        let tokens = tokens.into_iter().map(|token| token.token);
        QueryWords { words, tokens: tokens.collect() }
    }

    /// The words of a query that a memory has, or else an earlier turn: the turns in their order, the
    /// memory first, None for one that does not count. After them come the terms that only share n-grams with the query; of an earlier
    /// turn only for words that no other term stands for.
    pub fn matched_words(
        &self,
        query: &Query,
        words: &QueryWords,
        turns: impl IntoIterator<Item = Option<Turn>>,
    ) -> Vec<MatchedWord> {
        let terms_of = |turn: Option<Turn>| turn.map_or(&[][..], |turn| self.terms(turn.docid));
        let turns: Vec<&[u32]> = turns.into_iter().map(terms_of).collect();
        let mut matched = Vec::new();
        self.vocabulary.read(|known| {
            for word in &words.words {
                let held =
                    |terms: &&[u32]| word.terms.iter().copied().find(|term| terms.contains(term));
                let found = turns.iter().enumerate();
                let mut found = found.filter_map(|(turn, terms)| Some((turn, held(terms)?)));
                if let Some((turn, term)) = found.next() {
                    let (token, term) = (word.token.clone(), known.text(term).to_owned());
                    matched.push(MatchedWord { token, term, turn: turn as u8 });
                }
            }
            let is_similar = |term: u32| query.term_weights[query.code(term) as usize].ngram > 0.0;
            for (turn, terms) in turns.iter().enumerate() {
                for term in terms.iter().filter(|term| is_similar(**term)) {
                    let term = known.text(*term);
                    let Some(token) = words.similar(term) else { continue };
                    let is_known =
                        |word: &MatchedWord| word.term == term || turn > 0 && word.token == token;
                    if !matched.iter().any(is_known) {
                        let (token, term) = (token.to_owned(), term.to_owned());
                        matched.push(MatchedWord { token, term, turn: turn as u8 });
                    }
                }
            }
        });
        matched
    }
}

impl QueryWords {
    /// The first token that shares an n-gram with a term.
    fn similar(&self, term: &str) -> Option<&str> {
        if has_digit(term) {
            return self.tokens.iter().map(String::as_str).find(|token| *token == term);
        }
        let ngrams = ngrams_of(term);
        let shares = |token: &&String| ngrams_of(token).iter().any(|one| ngrams.contains(one));
        self.tokens.iter().find(shares).map(String::as_str)
    }
}

fn ngrams_of(term: &str) -> Vec<Ngram> {
    let mut ngrams = Vec::new();
    each_ngram(term, |ngram: Ngram| ngrams.push(ngram));
    ngrams
}
