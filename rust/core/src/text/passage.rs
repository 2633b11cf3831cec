//! The passage of a text that shares most with a query.

use std::collections::HashMap;
use std::ops::Range;

use super::detection::{beginning, detect};
use super::sentences::sentences;
use super::surface_forms::surface_forms;
use super::token_estimate::{QUARTERS, quarters};
use super::tokenizer::{QueryLanguages, tokens_in};
use super::truncation::end_of_part;
use super::word_parts::each_word_and_part;
use super::words::Analysis;

/// A stop word weighs a quarter of another word as rare as it.
const STOP_WORD: f64 = 0.25;

/// What is near by meaning gives way to words elsewhere that weigh more by a quarter of the query: one
/// of its words, but not its stop words.
const NEAR_SHARE: u64 = 4;

/// Of the shortest words with the space between them.
const BYTES_PER_WORD: usize = 2;

/// Weights are whole numbers, so that what is added and taken away again leaves nothing.
const UNITS_OF_WEIGHT: f64 = 65536.0;

/// Consecutive sentences of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// In bytes of the text.
    pub span: Range<usize>,
    /// The words of the query that the passage has, as the query writes them and in its order.
    pub words: Vec<String>,
}

/// Find the consecutive sentences of a text that share most with a query, of at most so many
/// estimated tokens; `near` is the part of the text that is nearest by meaning, or all of it.
///
/// Each distinct word of the query counts once, by how few of the sentences have it, and a stop word a
/// quarter; among equals the first sentences win. Those of the near part win unless others have words that
/// weigh more by a quarter of the query. Sentences around them are taken in as far as they fit,
/// the next one first. Without a word in common the passage begins with the near part. A sentence of
/// more tokens is cut between words. The passage has a character at least, unless the
/// text is empty. Takes time linear in the text: behind as many words as half its bytes, which only
/// characters that stand for several words can have, no further ones are looked for.
///
/// # Examples
/// ```
/// use mnemic_core::text::passage;
///
/// let text = "Hello! Thanks for asking about the house. The gate code is 4711. Bye. See you.";
/// let found = passage(text, "What is the code of the gate?", 8, 0..text.len());
/// assert_eq!(&text[found.span], "The gate code is 4711. Bye.");
/// assert_eq!(found.words, ["is", "the", "code", "gate"]);
/// ```
pub fn passage(text: &str, query: &str, max_tokens: usize, near: Range<usize>) -> Passage {
    let language = detect(beginning(text)).or_else(|| detect(query));
    let analysis = language.map_or_else(Analysis::default, |one| Analysis { language: Some(one) });
    let query_words = QueryWords::of(query, analysis);
    let max = max_tokens.saturating_mul(QUARTERS).max(1);
    let mut units = Units { all: Vec::new(), max, words_left: text.len() / BYTES_PER_WORD + 1 };
    units.read(text, &query_words, analysis);
    let weights = query_words.weights(&units.all);
    let best = units.widened(units.best_or_near(&near, &weights));
    let mut tokens: Vec<&str> = Vec::new();
    for word in units.all[best.clone()].iter().flat_map(|unit| &unit.words) {
        tokens.push(&query_words.tokens[*word]);
    }
    tokens.sort_unstable();
    tokens.dedup();
    let words = surface_forms(query, &tokens, analysis).into_iter().map(|form| form.text);
    let blank = || 0..end_of_part(text, units.max, quarters);
    Passage { span: units.span(&best).unwrap_or_else(blank), words: words.collect() }
}

/// The distinct tokens of a query.
struct QueryWords {
    tokens: Vec<String>,
    are_stop_words: Vec<bool>,
    places: HashMap<String, usize>,
}

impl QueryWords {
    fn of(query: &str, analysis: Analysis) -> Self {
        let languages = QueryLanguages { first: analysis.language, others: Vec::new() };
        let mut words =
            Self { tokens: Vec::new(), are_stop_words: Vec::new(), places: HashMap::new() };
        for token in tokens_in(query, &languages) {
            if !words.places.contains_key(&token.token) {
                words.places.insert(token.token.clone(), words.tokens.len());
                words.tokens.push(token.token);
                words.are_stop_words.push(token.is_stop_word);
            }
        }
        words
    }

    /// The places of the distinct words that a text has, and how many words it has, parts of words aside.
    fn found_in(&self, text: &str, analysis: Analysis) -> (Vec<usize>, usize) {
        let (mut places, mut words, mut parts) = (Vec::new(), 0, 0);
        each_word_and_part(text, analysis, |word| {
            count(1);
            (words, parts) = if parts > 0 { (words, parts - 1) } else { (words + 1, word.parts) };
            places.extend(self.places.get(&*word.token()));
        });
        places.sort_unstable();
        places.dedup();
        (places, words)
    }

    /// What each word weighs: the fewer of the units have it, the more.
    fn weights(&self, units: &[Unit]) -> Vec<u64> {
        let mut frequencies = vec![0_u64; self.tokens.len()];
        for word in units.iter().flat_map(|unit| &unit.words) {
            frequencies[*word] += 1;
        }
        #[expect(clippy::cast_sign_loss, reason = "no word is in more sentences than there are")]
        let weight = |(frequency, is_stop_word): (&u64, &bool)| {
            let (units, frequency) = (units.len() as f64, *frequency as f64);
            let idf = (1.0 + (units - frequency + 0.5) / (frequency + 0.5)).ln();
            let share = if *is_stop_word { STOP_WORD } else { 1.0 };
            (share * idf * UNITS_OF_WEIGHT).ceil() as u64
        };
        frequencies.iter().zip(&self.are_stop_words).map(weight).collect()
    }
}

/// A sentence, or a part of a long one.
struct Unit {
    /// In bytes.
    span: Range<usize>,
    /// The cost of the text before its start, and before its end.
    costs: [usize; 2],
    /// The places of its distinct words among those of the query.
    words: Vec<usize>,
}

/// All units, and what those of a passage may cost together.
struct Units {
    all: Vec<Unit>,
    max: usize,
    /// How many further words are looked for.
    words_left: usize,
}

impl Units {
    fn read(&mut self, text: &str, query_words: &QueryWords, analysis: Analysis) {
        let (mut at, mut cost) = (0, 0);
        for sentence in sentences(text) {
            let is_long = cost_of(&text[sentence.clone()]) > self.max;
            let max = if is_long { (self.max / 2).max(1) } else { self.max };
            let mut rest = sentence;
            while !rest.is_empty() {
                let unit = rest.start..rest.start + end_of_part(&text[rest.clone()], max, quarters);
                let start = cost + cost_of(&text[at..unit.start]);
                cost = start + cost_of(&text[unit.clone()]);
                at = unit.end;
                let (words, read) = match self.words_left {
                    0 => (Vec::new(), 0),
                    _ => query_words.found_in(&text[unit.clone()], analysis),
                };
                self.words_left = self.words_left.saturating_sub(read);
                rest.start = rest.end - text[unit.end..rest.end].trim_start().len();
                self.all.push(Unit { span: unit, costs: [start, cost], words });
            }
        }
    }

    fn fit(&self, units: &Range<usize>) -> bool {
        self.all[units.end - 1].costs[1] - self.all[units.start].costs[0] <= self.max
    }

    fn span(&self, units: &Range<usize>) -> Option<Range<usize>> {
        let (first, last) = (self.all.get(units.start)?, self.all.get(units.end.checked_sub(1)?)?);
        Some(first.span.start..last.span.end)
    }

    /// The best units, or those of the near part.
    fn best_or_near(&self, near: &Range<usize>, weights: &[u64]) -> Range<usize> {
        let start = self.all.partition_point(|unit| unit.span.end <= near.start);
        let end = self.all.partition_point(|unit| unit.span.start < near.end).max(start);
        let (best, most) = self.best(0..self.all.len(), weights);
        let (nearest, weight) = self.best(start..end, weights);
        let all: u64 = weights.iter().sum();
        if nearest.is_empty() || weight + all / NEAR_SHARE < most { best } else { nearest }
    }

    /// The first of these units that fit and whose distinct words weigh most, with that weight;
    /// without those at either end that add nothing.
    fn best(&self, units: Range<usize>, weights: &[u64]) -> (Range<usize>, u64) {
        let mut held = Held { weights, times: vec![0; weights.len()], weight: 0 };
        let (mut start, mut best, mut most) =
            (units.start, units.start..units.end.min(units.start + 1), 0);
        let mut twice = 0; // of the words of the first unit are in another one too
        for end in units.start + 1..=units.end {
            held.add(&self.all[end - 1]);
            while start + 1 < end {
                twice = held.twice(&self.all[start], twice);
                if twice < self.all[start].words.len() && self.fit(&(start..end)) {
                    break;
                }
                held.remove(&self.all[start]);
                (start, twice) = (start + 1, 0);
            }
            if held.weight > most {
                (best, most) = (start..end, held.weight);
            }
        }
        (best, most)
    }

    /// The units with those around them as far as these fit, the next one first.
    fn widened(&self, mut units: Range<usize>) -> Range<usize> {
        loop {
            let before = units.clone();
            if units.end < self.all.len() && self.fit(&(units.start..units.end + 1)) {
                units.end += 1;
            }
            if units.start > 0 && self.fit(&(units.start - 1..units.end)) {
                units.start -= 1;
            }
            if units == before {
                return units;
            }
        }
    }
}

fn cost_of(text: &str) -> usize {
    count(text.len());
    text.chars().map(quarters).sum()
}

/// The words of consecutive units.
struct Held<'a> {
    weights: &'a [u64],
    times: Vec<u32>,
    weight: u64,
}

impl Held<'_> {
    fn add(&mut self, unit: &Unit) {
        count(unit.words.len());
        for word in &unit.words {
            self.times[*word] += 1;
            self.weight += if self.times[*word] == 1 { self.weights[*word] } else { 0 };
        }
    }

    fn remove(&mut self, unit: &Unit) {
        count(unit.words.len());
        for word in &unit.words {
            self.times[*word] -= 1;
            self.weight -= if self.times[*word] == 0 { self.weights[*word] } else { 0 };
        }
    }

    /// How many of the first words of a unit are in another one too, if so many are known to be.
    fn twice(&self, unit: &Unit, known: usize) -> usize {
        let more = unit.words[known..].iter().take_while(|word| self.times[**word] > 1).count();
        count(more + 1);
        known + more
    }
}

/// Count steps of work in tests.
#[cfg(not(test))]
fn count(_steps: usize) {}

#[cfg(test)]
use tests::count;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::text::estimate_tokens;
    use crate::text::sentences::tests::any_text;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count(steps: usize) {
        STEPS.set(STEPS.get() + steps);
    }

    /// Bytes and words that are read for a passage, for each byte of the text.
    fn work(text: &str, query: &str, max_tokens: usize) -> usize {
        STEPS.set(0);
        passage(text, query, max_tokens, 0..text.len());
        STEPS.get() / text.len()
    }

    fn found<'t>(text: &'t str, query: &str, max_tokens: usize) -> &'t str {
        &text[passage(text, query, max_tokens, 0..text.len()).span]
    }

    #[test]
    fn the_sentences_with_most_words_of_the_query_are_found_wherever_they_stand() {
        let text = "Hello! How are you? We had rain all day. Marta moved to Bergen in May. Bye.";
        assert_eq!(found(text, "Where did Marta move?", 8), "Marta moved to Bergen in May.");
        assert_eq!(found(text, "When was there rain?", 6), "We had rain all day.");
        assert_eq!(found(text, "Where is Bergen?", 100), text);
        assert_eq!(found("今天很好。我去上海博物馆。再见。", "上海在哪里", 9), "我去上海博物馆。");
    }

    #[test]
    fn sentences_around_are_taken_in() {
        let text = "One cat. Two cows. Three dogs. Four bees. Five ants.";
        assert_eq!(found(text, "dogs", 6), "Three dogs. Four bees.");
        assert_eq!(found(text, "dogs", 8), "Two cows. Three dogs. Four bees.");
        assert_eq!(found(text, "ants", 6), "Four bees. Five ants.");
    }

    #[test]
    fn words_are_those_of_the_query_as_it_writes_them() {
        let text = "The SECRET garden parties take place. Nothing else does.";
        let words = passage(text, "Which Gardens had a party?", 10, 0..text.len()).words;
        assert_eq!(words, ["Gardens", "party"]);
    }

    #[test]
    fn without_a_word_in_common_the_beginning_is_the_passage() {
        let text = "One cat. Two cows. Three dogs.";
        for query in ["", "?", "elephants"] {
            assert_eq!(found(text, query, 5), "One cat. Two cows.");
        }
    }

    #[test]
    fn what_is_near_by_meaning_gives_way_to_words_of_weight_alone() {
        let text = "The cat is here. A dog barks. The sun is up.";
        let near = 17..29;
        for (query, wanted) in [
            ("Is the puppy loud?", "A dog barks."),
            ("elephants", "A dog barks."),
            ("Where is the cat?", "The cat is here."),
        ] {
            let span = passage(text, query, 4, near.clone()).span;
            assert_eq!(&text[span], wanted);
        }
    }

    #[test]
    fn a_long_sentence_is_cut_between_words() {
        let text = format!("{}the gate code is 4711 {}", "blah ".repeat(100), "more ".repeat(100));
        let passage = found(&text, "gate code", 16);
        assert!(passage.contains("gate code") && estimate_tokens(passage) <= 16, "{passage}");
        assert!(!passage.starts_with(' ') && !passage.ends_with(' '));
    }

    #[test]
    fn work_does_not_grow_with_the_length_of_any_text() {
        let letters = ('a'..='z').flat_map(|one| [one, ' ']).collect::<String>();
        let repeating = format!("{letters}. {}", "a. ".repeat(60));
        for unit in [
            "word boat key ",
            "# boat\n",
            "boat",
            "boat_",
            "boatKey",
            "e\u{301}",
            "\u{315}\u{300}\u{5ae}",
            "👩\u{200d}",
            "漢",
            "\u{fdfa}",
            "a. ",
            &letters,
            &repeating,
        ] {
            for size in [2_000, 20_000, 200_000] {
                let text: String = unit.repeat(size / unit.len());
                for max_tokens in [1, 100, 100_000] {
                    for query in ["boat key", &letters] {
                        let work = work(&text, query, max_tokens);
                        assert!(work <= 6, "{unit:?} {size} {max_tokens} {work}");
                    }
                }
            }
        }
    }

    #[test]
    fn words_that_another_sentence_has_too_are_looked_at_once() {
        let letters = ('a'..='y').flat_map(|one| [one, ' ']).collect::<String>();
        let sentences = ('a'..='y').flat_map(|one| [one, '.', ' ']).collect::<String>();
        let text = format!("{letters}z. {sentences}{}", "a. ".repeat(20_000));
        assert!(work(&text, &format!("{letters}z"), 100_000) <= 6);
    }

    #[test]
    fn the_last_words_of_any_text_of_short_words_are_found() {
        for unit in ["a b ", "5kg ", "a_b ", "aB1 ", "漢", "나는 ", "1,2,", "e\u{301} "] {
            let text = format!("{}. The gate code is 4711.", unit.repeat(5_000));
            assert!(found(&text, "gate code", 20).contains("gate code"), "{unit:?}");
        }
    }

    #[test]
    fn a_megabyte_is_read_at_once() {
        for unit in ["a", "\n", ". ", "a. ", "\u{301}", "gate code ", "漢", "a\n", "👩\u{200d}"]
        {
            let text = unit.repeat(1 << 20).chars().take(1 << 20).collect::<String>();
            for max_tokens in [0, 1, 100, usize::MAX] {
                assert!(!found(&text, "gate code a 漢", max_tokens).is_empty());
            }
        }
    }

    proptest! {
        #[test]
        fn a_passage_is_a_part_that_fits(text in any_text(), query in any_text(), max in 0_usize..40) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let third = |share| places.get(places.len() * share / 3).copied().unwrap_or(text.len());
            let span = passage(&text, &query, max, third(1)..third(2)).span;
            prop_assert_eq!(span.is_empty(), text.is_empty());
            let found = &text[span];
            prop_assert!(found.chars().count() <= 1 || estimate_tokens(found) <= max);
        }
    }
}
