//! Keyword scores beside a naive twin without terms, blocks or snapshots.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proptest::prelude::*;

use super::fuzzy::has_digit;
use super::postings::GROUP_DOCIDS;
use super::*;
use crate::text::accents::without_accents;
use crate::text::tokenizer::QueryToken;
use crate::text::{Language, tokens};

const NONE: u32 = u32::MAX;

/// Weights of a word in the next turn, and in the one after.
const FIRST: f32 = 0.8;
const SECOND: f32 = 0.5;

/// BM25 and its variants, written as defined.
struct Twin<'memories> {
    analysis: Analysis,
    options: Options,
    memories: &'memories [Option<Vec<String>>],
}

/// A memory and the turns before it, each with the weight of its words.
type Turns<'memories> = [(f64, &'memories [String])];

impl Twin<'_> {
    fn live(&self) -> impl Iterator<Item = &Vec<String>> {
        self.memories.iter().flatten()
    }

    fn documents(&self) -> f64 {
        self.live().count() as f64
    }

    fn frequency(&self, token: &str) -> f64 {
        self.live().filter(|memory| memory.iter().any(|other| other == token)).count() as f64
    }

    fn idf(&self, frequency: f64) -> f64 {
        (1.0 + (self.documents() - frequency + 0.5) / (frequency + 0.5)).ln()
    }

    fn share(&self, times: usize, length: usize) -> f64 {
        let average = self.live().map(Vec::len).sum::<usize>() as f64 / self.documents();
        let k1 = f64::from(self.options.k1);
        let b = self.options.b.map_or_else(|| self.b_by_repetition(), f64::from);
        let relative = if average == 0.0 { 0.0 } else { length as f64 / average };
        let norm = k1 * (1.0 - b + b * relative);
        if times == 0 { 0.0 } else { times as f64 / (times as f64 + norm) }
    }

    fn b_by_repetition(&self) -> f64 {
        let is_repeated = |memory: &Vec<String>, at: usize| memory[..at].contains(&memory[at]);
        let repeated = |memory| (0..Vec::len(memory)).filter(|at| is_repeated(memory, *at)).count();
        let (repeated, tokens) = self
            .live()
            .fold((0, 0), |(sum, tokens), memory| (sum + repeated(memory), tokens + memory.len()));
        (0.3 + repeated as f64 / tokens.max(1) as f64).min(1.0)
    }

    fn carried_share(&self, token: &str, turns: &Turns<'_>) -> f64 {
        let share = |(counts, text): &(f64, &[String])| {
            let times = text.iter().filter(|other| *other == token).count();
            counts * self.share(times, text.len())
        };
        turns.iter().map(share).fold(0.0, f64::max)
    }

    /// The weight of each query word, before its idf.
    fn weights(&self, query: &[QueryToken]) -> Vec<f64> {
        let alone = query.iter().all(|word| word.is_stop_word);
        let stop_word_weight = if alone { 1.0 } else { f64::from(self.options.stop_words) };
        let weights = query.iter().map(|word| {
            let is_light = word.is_stop_word || self.is_unknown_pair(&word.token);
            if is_light { stop_word_weight } else { 1.0 }
        });
        let shares = self.shares(query).into_iter();
        weights.zip(shares).map(|(weight, share)| weight * share).collect()
    }

    /// The share of each query word beside the words that are parts of it, and those that it is of.
    fn shares(&self, query: &[QueryToken]) -> Vec<f64> {
        let mut shares = vec![1.0; query.len()];
        for (at, word) in query.iter().enumerate() {
            match (word.parts, self.frequency(&word.token) > 0.0) {
                (0, _) => {}
                (_, false) => shares[at] = 0.0,
                (parts, true) => shares[at..=at + parts].fill(0.5),
            }
        }
        shares
    }

    fn is_unknown_pair(&self, token: &str) -> bool {
        let is_pair = token.chars().all(|one| ('\u{3041}'..='鿿').contains(&one));
        is_pair && self.frequency(token) == 0.0
    }

    fn max(&self, query: &[QueryToken]) -> f64 {
        let idfs = query.iter().map(|word| self.idf(self.frequency(&word.token)));
        idfs.zip(self.weights(query)).map(|(idf, weight)| idf * weight).sum()
    }

    /// The searched words, each with its weight.
    fn wanted(&self, query: &[QueryToken]) -> Vec<Option<(String, f64)>> {
        let wanted = |(QueryToken { token, is_stop_word, .. }, weight): (&QueryToken, f64)| {
            if weight == 0.0 {
                return None;
            }
            if self.frequency(token) > 0.0 {
                return Some((token.clone(), weight * self.idf(self.frequency(token))));
            }
            if *is_stop_word || self.options.fuzziness == 0.0 {
                return None;
            }
            let least = if token.chars().count() < 4 { 1.0 } else { self.options.fuzziness };
            let (likeness, term) = self.nearest(token)?;
            let weight = likeness * self.idf(self.frequency(&term));
            (likeness as f32 >= least).then_some((term, weight))
        };
        query.iter().zip(self.weights(query)).map(wanted).collect()
    }

    fn nearest(&self, token: &str) -> Option<(f64, String)> {
        let live: BTreeSet<&String> = self.live().flatten().collect();
        let likeness = |term: &String| {
            let (token, term) = (without_accents(token), without_accents(term));
            let (one, other) = (ngrams::<2>(&token), ngrams::<2>(&term));
            let common = one.intersection(&other).count();
            let dice = 2.0 * common as f64 / (one.len() + other.len()) as f64;
            let begins = one.len() > 4 && term.starts_with(&*token);
            if begins { f64::midpoint(dice, 1.0) } else { dice }
        };
        let live = live.into_iter().filter(|term| !has_digit(token) && !has_digit(term));
        let ordered = live.map(|term| (likeness(term), term.clone()));
        ordered.reduce(|best, next| if next.0 > best.0 { next } else { best })
    }

    /// Words, n-grams and pairs of the passages of texts; pairs are the memory's own.
    fn scores(&self, query: &[QueryToken], turns: &Turns<'_>) -> [f64; 3] {
        let mut passages = turns.to_vec();
        for (_, text) in &mut passages {
            *text = self.passage(query, text);
        }
        self.scores_of_passages(query, &passages)
    }

    /// The text, or the first of the windows whose words score more than those of it, or else n-grams.
    fn passage<'text>(&self, query: &[QueryToken], text: &'text [String]) -> &'text [String] {
        let tokens: usize = self.live().map(Vec::len).sum();
        let width = query::passage_width(tokens as u64, self.live().count() as u64);
        if text.len() <= passage::LONG {
            return text;
        }
        let value = |part: &[String]| {
            let [words, ngrams, _] = self.scores_of_passages(query, &[(1.0, part)]);
            [words, ngrams].map(|score| (score * 1e6).round())
        };
        let better = |best, next| if value(next) > value(best) { next } else { best };
        text.windows(width).fold(text, better)
    }

    fn scores_of_passages(&self, query: &[QueryToken], turns: &Turns<'_>) -> [f64; 3] {
        let wanted = self.wanted(query);
        let words = wanted.iter().flatten();
        let words = words.map(|(token, weight)| weight * self.carried_share(token, turns)).sum();
        let distinct: HashSet<&String> = turns.iter().flat_map(|(_, text)| *text).collect();
        let (weights, own_weights) = self.ngram_weights(query);
        let weight = |token: &str| match own_weights.get(token) {
            Some(weight) => *weight,
            None if has_digit(token) => 0.0,
            None => ngrams::<4>(token).iter().filter_map(|ngram| weights.get(ngram)).sum::<f64>(),
        };
        let ngrams =
            distinct.iter().map(|token| weight(token) * self.carried_share(token, turns)).sum();
        let own = turns[0].1;
        let bigrams = wanted.windows(2).map(|pair| {
            let [Some((first, one)), Some((second, other))] = pair else { return 0.0 };
            let is_pair = |both: &&[String]| both[0] == *first && both[1] == *second;
            let times = own.windows(2).filter(is_pair).count();
            f64::midpoint(*one, *other) * self.share(times, own.len())
        });
        [words, ngrams, bigrams.sum()]
    }

    /// The weights of n-grams, and of words with a digit, which share theirs with no other word.
    fn ngram_weights(&self, query: &[QueryToken]) -> (HashMap<String, f64>, HashMap<String, f64>) {
        let alone = query.iter().all(|word| word.is_stop_word);
        let without_stop_words = query.iter().filter(|word| alone || !word.is_stop_word);
        let (numbers, words): (Vec<&QueryToken>, Vec<&QueryToken>) =
            without_stop_words.partition(|word| has_digit(&word.token));
        let mut own_weights: HashMap<String, f64> = HashMap::new();
        for QueryToken { token, .. } in numbers {
            let weight = self.idf(self.frequency(token)) * ngrams::<4>(token).len() as f64;
            own_weights.insert(token.clone(), weight);
        }
        let vocabulary: HashSet<&String> =
            self.live().flatten().filter(|term| !has_digit(term)).collect();
        let mut weights = HashMap::new();
        for ngram in words.iter().flat_map(|word| ngrams::<4>(&word.token)) {
            let holders = vocabulary.iter().filter(|term| ngrams::<4>(term).contains(&ngram));
            let sum: f64 = holders.map(|term| self.frequency(term)).sum();
            weights.insert(ngram, self.idf(sum.min(self.documents())));
        }
        (weights, own_weights)
    }
}

fn ngrams<const LENGTH: usize>(token: &str) -> HashSet<String> {
    let bounded: Vec<char> = format!("|{token}|").chars().collect();
    bounded.windows(LENGTH.min(bounded.len())).map(|ngram| ngram.iter().collect()).collect()
}

fn assert_near(found: f32, wanted: f64, what: &str) {
    assert!(
        (f64::from(found) - wanted).abs() <= 1e-5 * wanted.max(1.0),
        "{what}: {found} {wanted}"
    );
}

fn scored(lexical: &Lexical, query: &Query, docids: &[u32], next: Option<&[u32]>) -> Scores {
    let mut scores = Scores::default();
    let carried = next.map(|next| Carried { next, first: FIRST, second: SECOND });
    lexical.scores(query, docids, carried.as_ref(), &mut scores);
    scores
}

/// The bits of one memory's scores.
fn bits_at(scores: &Scores, place: usize) -> [u32; 3] {
    [&scores.words, &scores.ngrams, &scores.bigrams].map(|field| field[place].to_bits())
}

fn bits(scores: &Scores) -> Vec<[u32; 3]> {
    (0..scores.words.len()).map(|place| bits_at(scores, place)).collect()
}

fn filled(texts: &[&str]) -> Lexical {
    let mut lexical = Lexical::new(Analysis::default());
    for text in texts {
        let analysed = lexical.analyse(text);
        lexical.push(&analysed, 0);
    }
    lexical
}

fn words(lexical: &Lexical, query: &str) -> Vec<f32> {
    let docids: Vec<u32> = (0..lexical.docids() as u32).collect();
    let query = lexical.query(query, Collection::All, &Options::default());
    scored(lexical, &query, &docids, None).words
}

/// Words that repeat and share n-grams, some in other scripts.
fn any_text() -> impl Strategy<Value = String> {
    const WORDS: [&str; 35] = [
        "the",
        "a",
        "harbour",
        "harbours",
        "harvest",
        "carve",
        "carving",
        "cat",
        "Cats",
        "cat's",
        "bright",
        "brighten",
        "of",
        "winter",
        "wintering",
        "aaaaaaa",
        "猫が好き",
        "図書館です",
        "我的図書",
        "ё",
        "2024",
        "2025",
        "cafe",
        "café",
        "zoë",
        "zoe",
        "harbourmaster",
        "snake_case",
        "snake",
        "FooBar",
        "foobar",
        "회의에서",
        "회의",
        "5kg",
        "!",
    ];
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..14).prop_map(|words| words.join(" "))
}

#[derive(Debug, Clone)]
enum Change {
    Push(String),
    Remove(prop::sample::Index),
    Vacant,
}

fn any_changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        6 => any_text().prop_map(Change::Push),
        2 => any::<prop::sample::Index>().prop_map(Change::Remove),
        1 => Just(Change::Vacant),
    ];
    prop::collection::vec(change, 1..40)
}

/// A state after changes, and its expected content.
fn changed(analysis: Analysis, changes: &[Change]) -> (Lexical, Vec<Option<String>>) {
    let mut lexical = Lexical::new(analysis);
    let mut memories: Vec<Option<String>> = Vec::new();
    for change in changes {
        match change {
            Change::Push(text) => {
                let analysed = lexical.analyse(text);
                assert_eq!(lexical.push(&analysed, 0) as usize, memories.len());
                memories.push(Some(text.clone()));
            }
            Change::Vacant => {
                assert_eq!(lexical.push_vacant() as usize, memories.len());
                memories.push(None);
            }
            Change::Remove(index) if !memories.is_empty() => {
                let docid = index.index(memories.len());
                let removed = memories[docid].take().is_some();
                assert_eq!(lexical.remove(docid as u32, 0), removed);
            }
            Change::Remove(_) => assert!(!lexical.remove(0, 0)),
        }
    }
    (lexical, memories)
}

/// Memories of four users, some of them removed again.
#[derive(Debug, Clone)]
struct OfUser {
    user: u32,
    text: String,
    is_removed: bool,
}

fn any_of_users() -> impl Strategy<Value = Vec<OfUser>> {
    let memory = (0_u32..4, any_text(), prop::bool::weighted(0.2))
        .prop_map(|(user, text, is_removed)| OfUser { user, text, is_removed });
    prop::collection::vec(memory, 1..60)
}

/// The state of some memories, and the docids of those of `user` that are left.
fn of_users<'a>(
    memories: impl Iterator<Item = &'a OfUser>,
    analysis: Analysis,
    user: u32,
) -> (Lexical, Vec<u32>) {
    let mut lexical = Lexical::new(analysis);
    let mut docids = Vec::new();
    for memory in memories {
        let analysed = lexical.analyse(&memory.text);
        let docid = lexical.push(&analysed, memory.user);
        if memory.is_removed {
            assert!(lexical.remove(docid, memory.user));
        } else if memory.user == user {
            docids.push(docid);
        }
    }
    (lexical, docids)
}

fn rebuilt(analysis: Analysis, memories: &[Option<String>]) -> Lexical {
    let mut lexical = Lexical::new(analysis);
    for memory in memories {
        match memory {
            Some(text) => {
                let analysed = lexical.analyse(text);
                lexical.push(&analysed, 0)
            }
            None => lexical.push_vacant(),
        };
    }
    lexical
}

fn any_options() -> impl Strategy<Value = Options> {
    let stop_word_weight = prop::sample::select(vec![0.0_f32, 0.25, 1.0]);
    let fuzziness = prop::sample::select(vec![0.0_f32, 0.4, 0.5]);
    let b = prop::option::of(0.0_f32..=1.0);
    (0.0_f32..2.0, b, stop_word_weight, fuzziness).prop_map(|(k1, b, stop_words, fuzziness)| {
        Options { k1, b, stop_words, fuzziness, ..Options::default() }
    })
}

fn any_analysis() -> impl Strategy<Value = Analysis> {
    let languages = vec![None, Some(Language::English), Some(Language::German)];
    prop::sample::select(languages).prop_map(|language| Analysis { language })
}

type Seed = Vec<(prop::sample::Index, u8)>;

/// The candidate docids, and the session of each.
fn any_seed() -> impl Strategy<Value = Seed> {
    prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4), 1..30)
}

/// Candidate docids, and for each the ordinal of its next turn; sessions are interleaved, and
/// docids of the first have none.
fn candidates(len: usize, seed: &Seed) -> (Vec<u32>, Vec<u32>) {
    let chosen: BTreeMap<u32, u8> =
        seed.iter().map(|(index, session)| (index.index(len) as u32, *session)).collect();
    let mut next = vec![NONE; chosen.len()];
    let mut last = [None; 4];
    for (place, session) in chosen.values().map(|session| usize::from(*session)).enumerate() {
        if session > 0
            && let Some(before) = last[session].replace(place)
        {
            next[before] = place as u32;
        }
    }
    (chosen.into_keys().collect(), next)
}

/// The places of a turn and of the two before it.
fn earlier(next: &[u32], place: usize) -> Vec<usize> {
    let before = |place: usize| next.iter().position(|next| *next == place as u32);
    std::iter::successors(Some(place), |place| before(*place)).take(3).collect()
}

proptest! {
    #[test]
    fn memories_of_other_users_change_no_bit_of_a_score_a_phrase_or_a_related_word(
        memories in any_of_users(), text in any_text(), options in any_options(),
        analysis in any_analysis(),
    ) {
        let (together, docids) = of_users(memories.iter(), analysis, 0);
        let own = memories.iter().filter(|memory| memory.user == 0);
        let (alone, own_docids) = of_users(own, analysis, 0);
        let user = Collection::User(0);
        let (query, own_query) =
            (together.query(&text, user, &options), alone.query(&text, Collection::All, &options));
        prop_assert_eq!(query.max_scores(), own_query.max_scores());
        let (found, wanted) = (
            scored(&together, &query, &docids, None),
            scored(&alone, &own_query, &own_docids, None),
        );
        for place in 0..docids.len() {
            prop_assert_eq!(bits_at(&found, place), bits_at(&wanted, place));
        }
        let phrases = |lexical: &Lexical, collection| lexical.key_phrases(&text, collection, 9);
        prop_assert_eq!(phrases(&together, user), phrases(&alone, Collection::All));
        let said = [("cats in the winter harbour".to_owned(), 1.0), (text.clone(), 0.5)];
        let related = |lexical: &Lexical, collection| lexical.related("ice", &said, collection, 9);
        prop_assert_eq!(related(&together, user), related(&alone, Collection::All));
    }

    #[test]
    fn every_score_is_what_the_naive_twin_computes(
        changes in any_changes(), text in any_text(), options in any_options(),
        analysis in any_analysis(), seed in any_seed(),
    ) {
        let (lexical, memories) = changed(analysis, &changes);
        let memories: Vec<Option<Vec<String>>> = memories
            .iter().map(|memory| memory.as_ref().map(|text| tokens(text, &analysis))).collect();
        prop_assume!(!memories.is_empty());
        let (docids, next) = candidates(memories.len(), &seed);
        let twin = Twin { analysis, options, memories: &memories };
        let languages = QueryLanguages { first: twin.analysis.language, others: Vec::new() };
        let words = tokens_in(&text, &languages);
        let query = lexical.query(&text, Collection::All, &options);
        assert_near(query.max_scores().words, twin.max(&words), "most");
        let text_of = |place: usize| memories[docids[place] as usize].as_deref().unwrap_or(&[]);
        let alone = scored(&lexical, &query, &docids, None);
        let carried = scored(&lexical, &query, &docids, Some(&next));
        for place in 0..docids.len() {
            let counts = [1.0, f64::from(FIRST), f64::from(SECOND)];
            let turns = earlier(&next, place).into_iter().map(text_of);
            let turns: Vec<(f64, &[String])> = counts.into_iter().zip(turns).collect();
            for (scores, turns) in [(&alone, &turns[..1]), (&carried, &turns[..])] {
                let wanted = twin.scores(&words, turns);
                assert_near(scores.words[place], wanted[0], "words");
                assert_near(scores.ngrams[place], wanted[1], "grams");
                assert_near(scores.bigrams[place], wanted[2], "pairs");
                let max = query.max_scores();
                prop_assert!(scores.words[place] <= max.words * (1.0 + f32::EPSILON));
                prop_assert!(scores.bigrams[place] <= max.bigrams * (1.0 + f32::EPSILON));
                prop_assert!(bits_at(scores, place).map(f32::from_bits).iter().all(|x| x.is_finite()));
            }
        }
    }

    #[test]
    fn what_is_gone_leaves_no_trace_in_any_bit(
        changes in any_changes(), text in any_text(), analysis in any_analysis(),
        options in any_options(), seed in any_seed(),
    ) {
        let (lexical, memories) = changed(analysis, &changes);
        let fresh = rebuilt(analysis, &memories);
        prop_assume!(!memories.is_empty());
        let (docids, next) = candidates(memories.len(), &seed);
        let scores = [&lexical, &fresh].map(|state| {
            let query = state.query(&text, Collection::All, &options);
            let max = query.max_scores();
            let max = [max.words, max.ngrams, max.bigrams].map(f32::to_bits);
            (max, bits(&scored(state, &query, &docids, Some(&next))))
        });
        prop_assert_eq!(&scores[0], &scores[1]);
        prop_assert_eq!(lexical.documents(), fresh.documents());
    }

    #[test]
    fn a_score_depends_on_earlier_turns_and_on_no_other_candidate(
        changes in any_changes(), text in any_text(), seed in any_seed(),
    ) {
        let (lexical, memories) = changed(Analysis::default(), &changes);
        prop_assume!(!memories.is_empty());
        let query = lexical.query(&text, Collection::All, &Options::default());
        let (docids, next) = candidates(memories.len(), &seed);
        let scores = scored(&lexical, &query, &docids, Some(&next));
        for place in 0..docids.len() {
            let (few, chain) = with_earlier(&docids, &next, place);
            let one = scored(&lexical, &query, &few, Some(&chain));
            prop_assert_eq!(bits_at(&one, few.len() - 1), bits_at(&scores, place));
        }
    }

    #[test]
    fn a_copy_scores_as_it_did_when_it_was_made(
        before in any_changes(), after in any_changes(), text in any_text(),
    ) {
        let (mut lexical, memories) = changed(Analysis::default(), &before);
        let copy = lexical.clone();
        let docids: Vec<u32> = (0..memories.len() as u32 + 20).collect();
        let scores_of = |state: &Lexical| {
            bits(&scored(state, &state.query(&text, Collection::All, &Options::default()), &docids, None))
        };
        let then = scores_of(&copy);
        for change in after {
            if let Change::Push(text) = change {
                let analysed = lexical.analyse(&text);
                lexical.push(&analysed, 0);
            }
        }
        (0..memories.len() as u32).for_each(|docid| { lexical.remove(docid, 0); });
        prop_assert_eq!(scores_of(&copy), then);
    }
}

/// A turn and the two before it alone, oldest first, and how they follow each other.
fn with_earlier(docids: &[u32], next: &[u32], place: usize) -> (Vec<u32>, Vec<u32>) {
    let few: Vec<u32> = earlier(next, place).into_iter().rev().map(|place| docids[place]).collect();
    let chain = (1..few.len() as u32).chain([NONE]).collect();
    (few, chain)
}

/// More memories than a group has docids, some of them gone, with `sessions` interleaved.
fn many(len: usize, sessions: u32) -> (Lexical, Vec<u32>, Vec<u32>) {
    let words = ["harbour", "harvest", "carve", "carving", "cat", "of", "winter", "wintry", "ice"];
    let word = |number: usize| words[(number * number / 7 + number / 3) % words.len()];
    let mut lexical = Lexical::new(Analysis::default());
    for row in 0..len {
        let repeats = if row % 97 == 0 { 60 } else { row % 13 };
        let mut text: Vec<&str> =
            (0..repeats).map(|place| word(row * 5 + place * row % 11)).collect();
        text.extend(std::iter::repeat_n("harbour", if row % 89 == 0 { 40 } else { 0 }));
        let analysed = lexical.analyse(&text.join(" "));
        lexical.push(&analysed, 0);
    }
    let mut docids: Vec<u32> = (0..len as u32).collect();
    docids.retain(|docid| docid % 17 != 3 || !lexical.remove(*docid, 0));
    let last = docids.len() as u32;
    // Now and then a session ends.
    let next = (0..last).map(|place| place + sessions);
    let next = next.map(|next| if next < last && next % 31 != 5 { next } else { NONE }).collect();
    (lexical, docids, next)
}

#[test]
fn a_group_scored_term_by_term_gives_the_bits_of_its_memories_scored_alone() {
    for (len, sessions) in
        [(2 * GROUP_DOCIDS + 100, 1), (GROUP_DOCIDS + 1, 7), (3 * GROUP_DOCIDS, 900)]
    {
        let (lexical, docids, next) = many(len, sessions);
        for text in ["harbour cats carved ice", "ice of winter ice winter harbour harbour", "wint"]
        {
            let query = lexical.query(
                text,
                Collection::All,
                &Options { fuzziness: 0.5, ..Options::default() },
            );
            let all = scored(&lexical, &query, &docids, Some(&next));
            assert!(all.ngrams.iter().any(|&score| score > 0.0));
            assert!(all.words.iter().any(|&score| score > 0.0));
            for place in 0..docids.len() {
                let (few, chain) = with_earlier(&docids, &next, place);
                let one = scored(&lexical, &query, &few, Some(&chain));
                assert_eq!(bits_at(&all, place), bits_at(&one, few.len() - 1));
            }
        }
    }
}

#[test]
fn a_group_of_which_some_are_candidates_has_the_bits_of_all_as_candidates() {
    let (lexical, docids, _) = many(2 * GROUP_DOCIDS, 1);
    let query = lexical.query("harbour cats carved ice", Collection::All, &Options::default());
    let all = scored(&lexical, &query, &docids, None);
    for step in [2, 3, 5, 50] {
        let few: Vec<u32> = docids.iter().copied().step_by(step).collect();
        let scores = scored(&lexical, &query, &few, None);
        for place in 0..few.len() {
            assert_eq!(bits_at(&scores, place), bits_at(&all, place * step));
        }
    }
}

#[test]
fn each_field_has_the_same_bits_whether_or_not_others_are_asked_for() {
    let (lexical, docids, next) = many(GROUP_DOCIDS + 300, 1);
    let text = "ice of winter, harbour cats";
    let scores_of = |words, ngrams, bigrams| {
        let options = Options { fields: Fields { words, ngrams, bigrams }, ..Options::default() };
        scored(&lexical, &lexical.query(text, Collection::All, &options), &docids, Some(&next))
    };
    let all = scores_of(true, true, true);
    assert_eq!(scores_of(true, false, false).words, all.words);
    assert_eq!(scores_of(false, true, false).ngrams, all.ngrams);
    assert_eq!(scores_of(false, false, true).bigrams, all.bigrams);
    assert_eq!(scores_of(true, false, true).bigrams, all.bigrams);
    assert!(scores_of(false, false, true).words.is_empty());
    assert!(scores_of(true, false, false).ngrams.is_empty());
    assert!(all.bigrams.iter().any(|&score| score > 0.0));
}

#[test]
fn buffers_used_before_change_no_bit() {
    let (lexical, docids, next) = many(GROUP_DOCIDS + 300, 2);
    let carried = Carried { next: &next, first: FIRST, second: SECOND };
    let texts = ["ice of winter, harbour cats", "carving", "", "wintry harvest"];
    let mut scores = Scores::default();
    for (text, step) in texts.into_iter().cycle().zip([1, 7, 1, 2, 1, 1, 400, 3]) {
        let query = lexical.query(text, Collection::All, &Options::default());
        let some: Vec<u32> = docids.iter().copied().step_by(step).collect();
        let carried = (step == 1).then_some(&carried);
        lexical.scores(&query, &some, carried, &mut scores);
        let fresh = scored(&lexical, &query, &some, carried.map(|carried| carried.next));
        assert_eq!(bits(&scores), bits(&fresh), "{text}");
        assert_eq!(scores.words.len(), some.len());
    }
}

#[test]
fn vacant_and_unknown_docids_score_nothing_in_a_full_group_too() {
    let (mut lexical, _, _) = many(GROUP_DOCIDS, 1);
    let docids: Vec<u32> = (0..GROUP_DOCIDS as u32 + 9).collect();
    lexical.remove(700, 0);
    let query = lexical.query("harbour ice winter carve", Collection::All, &Options::default());
    let scores = scored(&lexical, &query, &docids, None);
    for vacant in [3, 700, GROUP_DOCIDS + 8] {
        assert!(bits_at(&scores, vacant) == [0; 3]);
    }
}

#[test]
fn a_group_with_few_memories_left_gives_its_postings_back() {
    let (mut lexical, docids, _) = many(GROUP_DOCIDS, 1);
    assert!(lexical.postings[0].is_some());
    docids[..docids.len() - 9].iter().for_each(|&docid| assert!(lexical.remove(docid, 0)));
    assert!(lexical.postings[0].is_none());
    let query = lexical.query("harbour ice winter carve", Collection::All, &Options::default());
    let scores = scored(&lexical, &query, &docids, None);
    let first = scores.words.iter().position(|&score| score > 0.0);
    assert_eq!(first.expect("of nine, some have a word") / 9, docids.len() / 9 - 1);
}

#[test]
fn scores_are_those_of_the_reference_on_the_same_tokens() {
    // bm25s 0.3.16, method="lucene", k1=0.9, b=0.4, on these texts and queries split at spaces.
    let texts = [
        "the ferry to the island leaves at nine",
        "nine herons stood by the river",
        "the river froze and the ferry stayed in the harbour",
        "bread butter and salt",
        "she baked bread on the island bread with seeds",
        "",
        "a quiet harbour at night",
        "harbour",
    ];
    let wanted = [
        (
            "the ferry in the harbour",
            [1.518_492, 0.713_9, 2.805_821, 0.0, 0.646_957, 0.0, 0.503_744, 0.587_726],
        ),
        ("bread bread island", [0.617_075, 0.0, 0.0, 1.417_035, 2.228_101, 0.0, 0.0, 0.0]),
        ("nine zebras at night", [1.234_151, 0.659_643, 0.0, 0.0, 0.0, 0.0, 1.638_871, 0.0]),
        ("snow", [0.0; 8]),
    ];
    let memories: Vec<_> = texts.iter().map(|&text| Some(text.to_owned())).collect();
    let lexical = rebuilt(Analysis { language: None }, &memories);
    for (query, wanted) in wanted {
        for (found, wanted) in words(&lexical, query).into_iter().zip(wanted) {
            assert_near(found, wanted, query);
        }
    }
}

/// A state with so many memories of each text.
fn repeated(texts: &[(&str, usize)]) -> Lexical {
    let each = texts.iter().flat_map(|&(text, times)| std::iter::repeat_n(text, times));
    filled(&each.collect::<Vec<_>>())
}

fn max(lexical: &Lexical, query: &str, options: Options) -> f32 {
    lexical.query(query, Collection::All, &options).max_scores().words
}

#[test]
fn stop_words_weigh_less_beside_other_words_and_fully_alone() {
    let lexical = repeated(&[("the cat", 3), ("a dog", 5), ("to be or not", 1)]);
    let stop_word_weight = Options { stop_words: 0.25, ..Options::default() };
    let full = |query| max(&lexical, query, Options::default());
    assert_near(
        max(&lexical, "the cat", stop_word_weight),
        f64::from(0.25 * full("the") + full("cat")),
        "",
    );
    assert_near(
        max(&lexical, "to be or not", stop_word_weight),
        f64::from(full("to be or not")),
        "alone",
    );
    let none = Options { stop_words: 0.0, ..Options::default() };
    assert_near(max(&lexical, "the cat", none), f64::from(full("cat")), "left out");
    let found = scored(&lexical, &lexical.query("the dog", Collection::All, &none), &[0, 3], None);
    assert!(found.words[0].to_bits() == 0 && found.words[1] > 0.0);
}

#[test]
fn common_words_are_left_out_beside_others_only() {
    let share = Options { max_df: 0.2, ..Options::default() };
    let lexical = repeated(&[("harbour", 101), ("winter", 100), ("ice", 250), ("ferry", 1)]);
    let of = |query| max(&lexical, query, share);
    let full = |query| max(&lexical, query, Options::default());
    assert_near(of("harbour ferry"), f64::from(full("ferry")), "more than a fifth, more than 100");
    assert_near(of("winter ferry"), f64::from(full("winter ferry")), "not in more than 100");
    assert_near(of("harbour ice"), f64::from(full("harbour ice")), "all are common");
    assert_near(of("harbour zeppelin"), f64::from(full("zeppelin")), "an unknown word is left");
    let few = repeated(&[("harbour", 90), ("ferry", 1)]);
    let both = max(&few, "harbour ferry", share);
    assert_near(both, f64::from(max(&few, "harbour ferry", Options::default())), "few memories");
}

#[test]
fn an_unknown_word_counts_as_the_known_one_most_like_it() {
    let mut lexical = filled(&["a harbour at night", "the harvest", "harbours"]);
    let fuzziness = Options { fuzziness: 0.5, ..Options::default() };
    let scores_of = |lexical: &Lexical, text: &str, options: Options| {
        scored(lexical, &lexical.query(text, Collection::All, &options), &[0, 1, 2], None).words
    };
    let (typo, right) =
        (scores_of(&lexical, "harbuor", fuzziness), scores_of(&lexical, "harbour", fuzziness));
    // |h ha ar rb bo ou ur r| and |h ha ar rb bu uo or r|: five of eight.
    for (typo, right) in typo.iter().zip(&right) {
        assert_near(*typo, f64::from(right * 0.625), "dice");
    }
    let unknown = max(&lexical, "harbuor", Options::default());
    assert_near(
        max(&lexical, "harbuor", fuzziness),
        f64::from(unknown),
        "the divisor knows no nearness",
    );
    assert_eq!(scores_of(&lexical, "harbuor", Options::default()), [0.0; 3], "off");
    assert_eq!(
        scores_of(&lexical, "harbuor", Options { fuzziness: 0.7, ..fuzziness }),
        [0.0; 3],
        "too unlike"
    );
    assert_eq!(scores_of(&lexical, "nig", fuzziness), [0.0; 3], "too short");
    assert_eq!(scores_of(&lexical, "they", fuzziness), [0.0; 3], "a stop word");
    lexical.remove(0, 0);
    lexical.remove(2, 0);
    let now = scores_of(&lexical, "harbuor", Options { fuzziness: 0.3, ..fuzziness });
    assert!(now[1] > 0.0 && now[0].to_bits() == 0, "what is gone is not known");
}

#[test]
fn without_memories_and_for_empty_queries_all_is_nothing() {
    let empty = filled(&[]);
    assert_eq!(words(&empty, "anything"), Vec::<f32>::new());
    let lexical = filled(&["", "?!…", "🍕", "pizza"]);
    assert_eq!(words(&lexical, "pizza 🍕")[..3], [0.0; 3]);
    assert!(words(&lexical, "pizza")[3] > 0.0);
    for text in ["", " ?! ", "🍕", "…", "\0", "'"] {
        let all = Options { fuzziness: 0.5, max_df: 0.2, stop_words: 0.25, ..Options::default() };
        for options in [Options::default(), all] {
            let query = lexical.query(text, Collection::All, &options);
            assert_eq!(query.max_scores(), MaxScores::default(), "{text:?}");
            assert_eq!(bits(&scored(&lexical, &query, &[0, 1, 2, 3], None)), [[0; 3]; 4]);
        }
    }
}

#[test]
fn all_is_finite_where_nothing_has_a_length_and_saturation_is_off() {
    let lexical = filled(&["", "?!"]);
    let off = Options { k1: 0.0, b: Some(0.0), ..Options::default() };
    for (lexical, documents) in [(&lexical, 2), (&filled(&[]), 0), (&filled(&["ice"]), 1)] {
        let by_repetition = Options { b: None, ..Options::default() };
        for options in [off, by_repetition, Options::default()] {
            let query = lexical.query("ice ice winter", Collection::All, &options);
            let max = query.max_scores();
            assert!([max.words, max.ngrams, max.bigrams].iter().all(|max| max.is_finite()));
            let docids: Vec<u32> = (0..documents).collect();
            let scores = scored(lexical, &query, &docids, None);
            assert!(scores.words.iter().chain(&scores.ngrams).all(|score| score.is_finite()));
        }
    }
}

#[test]
fn readers_see_whole_states_while_a_writer_goes_on() {
    let texts = ["harbour ice", "winter harbour", "carved ice in winter"];
    let published = parking_lot::RwLock::new(filled(&texts));
    let docids: Vec<u32> = (0..4_000).collect();
    let fresh = |text: &str| {
        let state = published.read().clone();
        let query = state.query(text, Collection::All, &Options::default());
        let scores = [(); 2].map(|()| bits(&scored(&state, &query, &docids, None)));
        assert_eq!(scores[0], scores[1]);
        let times = scores[0].iter().filter(|fields| fields[0] != 0).count();
        assert!(times >= state.documents() as usize, "every memory has something of the query");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut next = published.read().clone();
            for number in 0..3_000 {
                let analysed = next.analyse(&format!("{} new{number}", texts[number % 3]));
                next.push(&analysed, 0);
                next.remove(number as u32 / 2, 0);
                *published.write() = next.clone();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| (0..60).for_each(|_| fresh("harbour winter carved ice")));
        }
    });
}

#[test]
fn a_first_pass_bounds_each_score_and_completing_it_gives_its_bits() {
    let (lexical, docids, next) = many(2 * GROUP_DOCIDS + 100, 7);
    let options = Options {
        fields: Fields { words: true, ngrams: false, bigrams: false },
        stop_words: 0.25,
        fuzziness: 0.5,
        ..Options::default()
    };
    let query = lexical.query("cats of winter carved harbour ice ice", Collection::All, &options);
    let carried = Carried { next: &next, first: FIRST, second: SECOND };
    let words = |scores: &Scores| scores.words.iter().map(|score| score.to_bits()).collect();
    for (step, is_carried) in [(1, true), (1, false), (3, false)] {
        let docids: Vec<u32> = docids.iter().copied().step_by(step).collect();
        let carried = is_carried.then_some(&carried);
        let mut exact = Scores::default();
        lexical.scores(&query, &docids, carried, &mut exact);
        let exact_bits: Vec<u32> = words(&exact);
        for share in [0.2, 0.4, 0.6] {
            let non_essential = query.non_essential(share);
            assert!(non_essential.is_any());
            let mut scores = Scores::default();
            let scoring = Scoring { query: &query, docids: &docids, carried, non_essential };
            lexical.bounds(&scoring, &mut scores);
            assert!(scores.words.iter().zip(&exact.words).all(|(bound, score)| bound >= score));
            assert_ne!(words(&scores), exact_bits);
            lexical.complete(&scoring, &mut scores);
            assert_eq!(words(&scores), exact_bits);
        }
        for (place, exact_bits) in exact_bits.into_iter().enumerate() {
            let turns = if is_carried { earlier(&next, place) } else { vec![place] };
            let turns = turns.into_iter().zip([1.0, FIRST, SECOND]);
            let turns = turns.map(|(place, counts)| Turn { docid: docids[place], counts });
            let score = lexical.score_of(&query, turns);
            assert_eq!(score.to_bits(), exact_bits);
        }
    }
}

#[test]
fn a_text_too_long_for_its_length_to_be_kept_beside_postings_scores_as_alone() {
    let mut lexical = Lexical::new(Analysis::default());
    let long = "ice ".repeat(70_000) + "harbour";
    for row in 0..GROUP_DOCIDS {
        let text = if row == 5 { &long } else { "harbour of ice" };
        let analysed = lexical.analyse(text);
        lexical.push(&analysed, 0);
    }
    let query = lexical.query("ice harbour", Collection::All, &Options::default());
    let docids: Vec<u32> = (0..GROUP_DOCIDS as u32).collect();
    let all = scored(&lexical, &query, &docids, None);
    assert_eq!(bits_at(&all, 5), bits_at(&scored(&lexical, &query, &[5], None), 0));
}

#[test]
fn lengths_are_those_of_whole_blocks_and_of_some_docids() {
    let mut lexical = Lexical::new(Analysis::default());
    let words = |docid: u32| docid as usize % 7;
    for docid in 0..1500 {
        let analysed = lexical.analyse(&"ice ".repeat(words(docid)));
        lexical.push(&analysed, 0);
    }
    lexical.remove(600, 0);
    let lengths = |docids: &[u32]| {
        let mut lengths = Vec::new();
        lexical.each_length(docids, |length| lengths.push(length));
        lengths
    };
    let expected = |docid: &u32| if *docid == 600 { 0 } else { words(*docid) };
    for step in [1, 3, 700] {
        let docids: Vec<u32> = (0..1500).step_by(step).collect();
        assert_eq!(lengths(&docids), docids.iter().map(expected).collect::<Vec<_>>());
    }
    assert_eq!(lengths(&[9000]), [0]);
}
