//! Keyword scores beside a naive twin that knows nothing of terms, blocks or snapshots.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::postings::GROUP_SLOTS;
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
        let weight =
            |token: &str| grams(token).iter().filter_map(|gram| weights.get(gram)).sum::<f64>();
        let grams =
            distinct.iter().map(|token| weight(token) * self.share(times(token), together.len()));
        let pairs = query.windows(2).map(|pair| {
            let of_text = |text: &&[String]| text.windows(2).filter(|other| *other == pair).count();
            let times = texts.iter().map(of_text).sum();
            let idf = |token: &str| self.idf(self.frequency(token));
            f64::midpoint(idf(&pair[0]), idf(&pair[1])) * self.share(times, together.len())
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
    assert!(
        (f64::from(found) - wanted).abs() <= 1e-5 * wanted.max(1.0),
        "{what}: {found} {wanted}"
    );
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
        "ё",
        "2024",
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
    (0.0_f32..2.0, 0.0_f32..=1.0, prop::sample::select(vec![0.3_f32, 1.0]))
        .prop_map(|(k1, b, gram_share)| Options { k1, b, gram_share, ..Options::default() })
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
        for (place, &before) in previous.iter().enumerate() {
            let own = twin.scores(&words, &[text_of(place as u32)]);
            let window = twin.scores(&words, &[text_of(before), text_of(place as u32)]);
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

/// More memories than a group has slots, some of them gone, with sessions of `stride` interleaved.
fn many(len: usize, stride: u32) -> (Lexical, Vec<u32>, Vec<u32>) {
    let words = ["harbour", "harvest", "carve", "carving", "cat", "of", "winter", "wintry", "ice"];
    let word = |number: usize| words[(number * number / 7 + number / 3) % words.len()];
    let mut lexical = Lexical::new(Analysis::default());
    for row in 0..len {
        let repeats = if row % 97 == 0 { 60 } else { row % 13 };
        let mut text: Vec<&str> =
            (0..repeats).map(|place| word(row * 5 + place * row % 11)).collect();
        text.extend(std::iter::repeat_n("harbour", if row % 89 == 0 { 40 } else { 0 }));
        let analysed = lexical.analyse(&text.join(" "));
        lexical.push(&analysed);
    }
    let mut slots: Vec<u32> = (0..len as u32).collect();
    slots.retain(|slot| slot % 17 != 3 || !lexical.remove(*slot));
    // A turn whose previous one has two, now and then.
    let previous =
        (0..slots.len() as u32)
            .map(|place| {
                if place % 31 == 5 { place - 2 } else { place.checked_sub(stride).unwrap_or(NONE) }
            })
            .collect();
    (lexical, slots, previous)
}

#[test]
fn a_group_scored_term_by_term_gives_the_bits_of_its_memories_looked_at_alone() {
    for (len, stride) in [(2 * GROUP_SLOTS + 100, 1), (GROUP_SLOTS + 1, 7), (3 * GROUP_SLOTS, 900)]
    {
        let (lexical, slots, previous) = many(len, stride);
        for text in ["harbour cats carved ice", "ice of winter ice winter harbour harbour", "wint"]
        {
            let query = lexical.query(text, &Options::default());
            let all = scored(&lexical, &query, &slots, Some(&previous));
            assert!(all.window.grams.iter().any(|&score| score > 0.0));
            for (place, &slot) in slots.iter().enumerate() {
                let before = slots.get(previous[place] as usize).copied();
                let mut alone: Vec<u32> = before.into_iter().chain([slot]).collect();
                alone.dedup();
                let links: Vec<u32> = if alone.len() == 2 { vec![NONE, 0] } else { vec![NONE] };
                let one = scored(&lexical, &query, &alone, Some(&links));
                for (all, one) in [(&all.own, &one.own), (&all.window, &one.window)] {
                    assert_eq!(all.words[place].to_bits(), one.words.last().unwrap().to_bits());
                    assert_eq!(all.grams[place].to_bits(), one.grams.last().unwrap().to_bits());
                    assert_eq!(all.pairs[place].to_bits(), one.pairs.last().unwrap().to_bits());
                }
            }
        }
    }
}

#[test]
fn each_field_has_the_same_bits_whether_or_not_others_are_asked_for() {
    let (lexical, slots, previous) = many(GROUP_SLOTS + 300, 1);
    let text = "ice of winter, harbour cats";
    let scores_of = |words, grams, pairs| {
        let options = Options { fields: Fields { words, grams, pairs }, ..Options::default() };
        scored(&lexical, &lexical.query(text, &options), &slots, Some(&previous))
    };
    let all = scores_of(true, true, true);
    assert_eq!(scores_of(true, false, false).window.words, all.window.words);
    assert_eq!(scores_of(false, true, false).window.grams, all.window.grams);
    assert_eq!(scores_of(false, false, true).window.pairs, all.window.pairs);
    assert_eq!(scores_of(true, false, true).own.pairs, all.own.pairs);
    assert!(scores_of(false, false, true).own.words.is_empty());
    assert!(all.own.pairs.iter().any(|&score| score > 0.0));
}

#[test]
fn vacant_and_unknown_slots_score_nothing_in_a_full_group_too() {
    let (mut lexical, _, _) = many(GROUP_SLOTS, 1);
    let slots: Vec<u32> = (0..GROUP_SLOTS as u32 + 9).collect();
    lexical.remove(700);
    let query = lexical.query("harbour ice winter carve", &Options::default());
    let scores = scored(&lexical, &query, &slots, None);
    for vacant in [3, 700, GROUP_SLOTS + 8] {
        assert!(scores.own.words[vacant] + scores.own.grams[vacant] < f32::MIN_POSITIVE);
    }
}

#[test]
fn a_group_with_few_memories_left_gives_its_postings_back() {
    let (mut lexical, slots, _) = many(GROUP_SLOTS, 1);
    assert!(lexical.postings[0].is_some());
    slots[..slots.len() - 9].iter().for_each(|&slot| assert!(lexical.remove(slot)));
    assert!(lexical.postings[0].is_none());
    let query = lexical.query("harbour ice winter carve", &Options::default());
    let scores = scored(&lexical, &query, &slots, None);
    assert_eq!(
        scores.own.words.iter().position(|&score| score > 0.0).unwrap() / 9,
        slots.len() / 9 - 1
    );
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
    let lexical = rebuilt(Analysis { language: None, stop_words: false }, &memories);
    for (query, wanted) in wanted {
        for (found, wanted) in words(&lexical, query).into_iter().zip(wanted) {
            assert_near(found, wanted, query);
        }
    }
}

#[test]
fn without_memories_and_for_empty_queries_all_is_nothing() {
    let empty = filled(&[]);
    assert_eq!(words(&empty, "anything"), Vec::<f32>::new());
    let lexical = filled(&["", "?!…", "🍕", "pizza"]);
    assert_eq!(words(&lexical, "pizza 🍕")[..3], [0.0; 3]);
    assert!(words(&lexical, "pizza")[3] > 0.0);
    assert!(lexical.query(" ?! ", &Options::default()).most() < f32::MIN_POSITIVE);
    assert_eq!(words(&lexical, ""), [0.0; 4]);
}

#[test]
fn readers_see_whole_states_while_a_writer_goes_on() {
    let texts = ["harbour ice", "winter harbour", "carved ice in winter"];
    let published = parking_lot::RwLock::new(filled(&texts));
    let slots: Vec<u32> = (0..4_000).collect();
    let fresh = |text: &str| {
        let state = published.read().clone();
        let query = state.query(text, &Options::default());
        let scores = [(); 2].map(|()| bits(&scored(&state, &query, &slots, None)));
        assert_eq!(scores[0], scores[1]);
        let times = scores[0].iter().filter(|&&score| score != 0).count();
        assert!(times >= state.documents() as usize, "every memory has something of the query");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut next = published.read().clone();
            for number in 0..3_000 {
                let analysed = next.analyse(&format!("{} new{number}", texts[number % 3]));
                next.push(&analysed);
                next.remove(number as u32 / 2);
                *published.write() = next.clone();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| (0..60).for_each(|_| fresh("harbour winter carved ice")));
        }
    });
}
