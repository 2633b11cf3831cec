//! Keyword scores beside a naive twin that knows nothing of terms, blocks or snapshots.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::block::BLOCK_SLOTS;
use super::*;
use crate::text::{Language, query_tokens, tokens};

const NONE: u32 = u32::MAX;

/// BM25 and its kin, written down as the definitions say.
struct Twin<'memories> {
    analysis: Analysis,
    options: Options,
    memories: &'memories [Option<Vec<String>>],
}

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
        let (k1, b) = (f64::from(self.options.k1), f64::from(self.options.b));
        let relative = if average == 0.0 { 0.0 } else { length as f64 / average };
        let norm = k1 * (1.0 - b + b * relative);
        if times == 0 { 0.0 } else { times as f64 / (times as f64 + norm) }
    }

    fn most(&self, query: &[String]) -> f64 {
        query.iter().map(|token| self.idf(self.frequency(token))).sum()
    }

    /// Words, grams and pairs of texts scored as one.
    fn scores(&self, query: &[String], texts: &[&[String]]) -> [f64; 3] {
        let together: Vec<&String> = texts.iter().copied().flatten().collect();
        let times = |token: &str| together.iter().filter(|other| *other == &token).count();
        let words = query.iter().map(|token| {
            self.idf(self.frequency(token)) * self.share(times(token), together.len())
        });
        let distinct: HashSet<&str> = together.iter().map(|token| token.as_str()).collect();
        let weights = self.gram_weights(query);
        let weight = |token: &str| {
            grams(token).iter().filter_map(|gram| weights.get(gram)).sum::<f64>()
        };
        let grams = distinct
            .iter()
            .map(|token| weight(token) * self.share(times(token), together.len()));
        let pairs = query.windows(2).map(|pair| {
            let of_text = |text: &&[String]| text.windows(2).filter(|other| *other == pair).count();
            let times = texts.iter().map(of_text).sum();
            let idf = |token: &str| self.idf(self.frequency(token));
            (idf(&pair[0]) + idf(&pair[1])) / 2.0 * self.share(times, together.len())
        });
        [words.sum(), grams.sum(), pairs.sum()]
    }

    fn gram_weights(&self, query: &[String]) -> HashMap<String, f64> {
        let vocabulary: HashSet<&String> = self.live().flatten().collect();
        let mut weights = HashMap::new();
        for gram in query.iter().flat_map(|token| grams(token)) {
            let holders = vocabulary.iter().filter(|term| grams(term).contains(&gram));
            let sum: f64 = holders.map(|term| self.frequency(term)).sum();
            let frequency = sum.min(self.documents());
            if frequency <= f64::from(self.options.gram_share) * self.documents() {
                weights.insert(gram, self.idf(frequency));
            }
        }
        weights
    }
}

fn grams(token: &str) -> HashSet<String> {
    let bounded: Vec<char> = format!("|{token}|").chars().collect();
    bounded.windows(4.min(bounded.len())).map(|gram| gram.iter().collect()).collect()
}

fn assert_near(found: f32, wanted: f64, what: &str) {
    assert!((f64::from(found) - wanted).abs() <= 1e-5 * wanted.max(1.0), "{what}: {found} {wanted}");
}

fn scored(lexical: &Lexical, query: &Query, slots: &[u32], previous: Option<&[u32]>) -> Scores {
    let mut scores = Scores::default();
    lexical.scores(query, slots, previous, &mut scores);
    scores
}

fn bits(scores: &Scores) -> Vec<u32> {
    let fields = |of: &FieldScores| [of.words.clone(), of.grams.clone(), of.pairs.clone()].concat();
    [fields(&scores.own), fields(&scores.window)].concat().into_iter().map(f32::to_bits).collect()
}

fn filled(texts: &[&str]) -> Lexical {
    let mut lexical = Lexical::new(Analysis::default());
    for text in texts {
        let analysed = lexical.analyse(text);
        lexical.push(&analysed);
    }
    lexical
}

fn words(lexical: &Lexical, query: &str) -> Vec<f32> {
    let slots: Vec<u32> = (0..lexical.slots() as u32).collect();
    let query = lexical.query(query, &Options::default());
    scored(lexical, &query, &slots, None).own.words
}

/// Words that repeat and share grams, some in other scripts.
fn any_text() -> impl Strategy<Value = String> {
    const WORDS: [&str; 20] = [
        "the", "a", "harbour", "harbours", "harvest", "carve", "carving", "cat", "Cats", "cat's",
        "bright", "brighten", "of", "winter", "wintering", "aaaaaaa", "猫が好き", "ё", "2024", "!",
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

/// A state after changes, and what it should hold.
fn changed(analysis: Analysis, changes: &[Change]) -> (Lexical, Vec<Option<String>>) {
    let mut lexical = Lexical::new(analysis);
    let mut memories: Vec<Option<String>> = Vec::new();
    for change in changes {
        match change {
            Change::Push(text) => {
                let analysed = lexical.analyse(text);
                assert_eq!(lexical.push(&analysed) as usize, memories.len());
                memories.push(Some(text.clone()));
            }
            Change::Vacant => {
                assert_eq!(lexical.push_vacant() as usize, memories.len());
                memories.push(None);
            }
            Change::Remove(index) if !memories.is_empty() => {
                let slot = index.index(memories.len());
                let removed = memories[slot].take().is_some();
                assert_eq!(lexical.remove(slot as u32), removed);
            }
            Change::Remove(_) => assert!(!lexical.remove(0)),
        }
    }
    (lexical, memories)
}

fn rebuilt(analysis: Analysis, memories: &[Option<String>]) -> Lexical {
    let mut lexical = Lexical::new(analysis);
    for memory in memories {
        match memory {
            Some(text) => {
                let analysed = lexical.analyse(text);
                lexical.push(&analysed)
            }
            None => lexical.push_vacant(),
        };
    }
    lexical
}

fn any_options() -> impl Strategy<Value = Options> {
    (0.0_f32..2.0, 0.0_f32..=1.0, prop::sample::select(vec![0.3_f32, 1.0])).prop_map(
        |(k1, b, gram_share)| Options { k1, b, gram_share, ..Options::default() },
    )
}

fn any_analysis() -> impl Strategy<Value = Analysis> {
    let languages = vec![None, Some(Language::English), Some(Language::German)];
    (prop::sample::select(languages), any::<bool>())
        .prop_map(|(language, stop_words)| Analysis { language, stop_words })
}

/// Slots in play, and for each the place of its previous turn.
fn in_play(len: usize, seed: &[prop::sample::Index]) -> (Vec<u32>, Vec<u32>) {
    let mut slots: Vec<u32> = seed.iter().map(|index| index.index(len) as u32).collect();
    slots.sort_unstable();
    slots.dedup();
    let previous = |place: usize| match seed[place].index(slots.len() + 1) {
        before if before < slots.len() => before as u32,
        _ => NONE,
    };
    let previous = (0..slots.len()).map(previous).collect();
    (slots, previous)
}

proptest! {
    #[test]
    fn every_score_is_what_the_naive_twin_computes(
        changes in any_changes(), text in any_text(), options in any_options(),
        analysis in any_analysis(), seed in prop::collection::vec(any::<prop::sample::Index>(), 1..30),
    ) {
        let (lexical, memories) = changed(analysis, &changes);
        let memories: Vec<Option<Vec<String>>> = memories
            .iter().map(|memory| memory.as_ref().map(|text| tokens(text, &analysis))).collect();
        prop_assume!(!memories.is_empty());
        let (slots, previous) = in_play(memories.len(), &seed);
        let twin = Twin { analysis, options, memories: &memories };
        let words = query_tokens(&text, &twin.analysis);
        let query = lexical.query(&text, &options);
        assert_near(query.most(), twin.most(&words), "most");
        let scores = scored(&lexical, &query, &slots, Some(&previous));
        let text_of = |place: u32| -> &[String] {
            slots.get(place as usize).and_then(|&slot| memories[slot as usize].as_deref()).unwrap_or(&[])
        };
        for place in 0..slots.len() {
            let own = twin.scores(&words, &[text_of(place as u32)]);
            let window = twin.scores(&words, &[text_of(previous[place]), text_of(place as u32)]);
            for (fields, wanted) in [(&scores.own, own), (&scores.window, window)] {
                assert_near(fields.words[place], wanted[0], "words");
                assert_near(fields.grams[place], wanted[1], "grams");
                assert_near(fields.pairs[place], wanted[2], "pairs");
            }
            prop_assert!(scores.own.words[place] <= query.most());
        }
    }

    #[test]
    fn what_is_gone_leaves_no_trace_in_any_bit(
        changes in any_changes(), text in any_text(), analysis in any_analysis(),
    ) {
        let (lexical, memories) = changed(analysis, &changes);
        let fresh = rebuilt(analysis, &memories);
        let slots: Vec<u32> = (0..memories.len() as u32).collect();
        let previous: Vec<u32> = slots.iter().map(|slot| slot.wrapping_sub(1)).collect();
        let scores = [&lexical, &fresh].map(|state| {
            let query = state.query(&text, &Options::default());
            (query.most().to_bits(), bits(&scored(state, &query, &slots, Some(&previous))))
        });
        prop_assert_eq!(&scores[0], &scores[1]);
        prop_assert_eq!(lexical.documents(), fresh.documents());
    }

    #[test]
    fn a_score_does_not_depend_on_what_else_is_in_play(
        changes in any_changes(), text in any_text(),
        seed in prop::collection::vec(any::<prop::sample::Index>(), 1..30),
    ) {
        let (lexical, memories) = changed(Analysis::default(), &changes);
        prop_assume!(!memories.is_empty());
        let query = lexical.query(&text, &Options::default());
        let (slots, previous) = in_play(memories.len(), &seed);
        let scores = scored(&lexical, &query, &slots, Some(&previous));
        for (place, &slot) in slots.iter().enumerate() {
            let alone = scored(&lexical, &query, &[slot], None);
            prop_assert_eq!(alone.own.words[0].to_bits(), scores.own.words[place].to_bits());
            prop_assert_eq!(alone.own.grams[0].to_bits(), scores.own.grams[place].to_bits());
            prop_assert_eq!(alone.own.pairs[0].to_bits(), scores.own.pairs[place].to_bits());
        }
    }

    #[test]
    fn a_copy_scores_as_it_did_when_it_was_made(
        before in any_changes(), after in any_changes(), text in any_text(),
    ) {
        let (mut lexical, memories) = changed(Analysis::default(), &before);
        let copy = lexical.clone();
        let slots: Vec<u32> = (0..memories.len() as u32 + 20).collect();
        let look = |state: &Lexical| {
            bits(&scored(state, &state.query(&text, &Options::default()), &slots, None))
        };
        let then = look(&copy);
        for change in after {
            if let Change::Push(text) = change {
                let analysed = lexical.analyse(&text);
                lexical.push(&analysed);
            }
        }
        (0..memories.len() as u32).for_each(|slot| { lexical.remove(slot); });
        prop_assert_eq!(look(&copy), then);
    }
}

#[test]
fn scores_are_those_of_the_reference_on_the_same_tokens() {
    // bm25s 0.2, method="lucene", k1=0.9, b=0.4, over tokens of these sentences split at spaces.
}
