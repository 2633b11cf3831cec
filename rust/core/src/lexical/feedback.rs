//! Pseudo-relevance feedback: words of found texts that belong to a query, and key phrases of a
//! text.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Lexical;
use super::query::idf;
use super::statistics::{Collection, CollectionStatistics};
use crate::text::Analysis;
use crate::text::tokenizer::LanguageWords;
use crate::text::words::{Word, each_word};

/// A word or phrase, and its weight relative to the heaviest, from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighed {
    /// Folded, as it is written most often.
    pub text: String,
    /// Above 0.
    pub weight: f64,
}

/// Shorter words and numbers stand for too many things.
const MIN_CHARACTERS: usize = 3;

/// Most words of a phrase.
const MAX_WORDS: usize = 3;

/// How a word's occurrences in one text saturate; the second is a share of its length over that of
/// a common turn. Those of BM25 for short texts.
const SATURATION: f64 = 0.5;
const COMMON_LENGTH: f64 = 15.0;

/// Statistics of a word over some texts.
#[derive(Default)]
struct Found {
    weight: f64,
    written: BTreeMap<String, u32>,
}

impl Lexical {
    /// The words of texts that belong to a query by these, without its own.
    ///
    /// A word counts by how often a text has it, times how rare it is in the collection, times how
    /// much the text counts. Best first; ties go to the first in the alphabet.
    pub fn related(
        &self,
        query: &str,
        texts: &[(impl AsRef<str>, f64)],
        collection: Collection,
        k: usize,
    ) -> Vec<Weighed> {
        let statistics = self.statistics_of(collection);
        let asked = self.meant(query, collection);
        let mut found: HashMap<String, Found> = HashMap::new();
        for (text, counts) in texts {
            let text = text.as_ref();
            let length = text.split_whitespace().count() as f64;
            for (token, written) in self.meanings(text, collection) {
                if asked.contains(&token) {
                    continue;
                }
                let times: f64 = written.values().map(|times| f64::from(*times)).sum();
                let share = times / (times + SATURATION * (1.0 + length / COMMON_LENGTH));
                let entry = found.entry(token).or_default();
                entry.weight += counts * share;
                for (text, times) in written {
                    *entry.written.entry(text).or_default() += times;
                }
            }
        }
        let weighed = found.into_iter().map(|(token, found)| Weighed {
            text: most_frequent(&found.written),
            weight: found.weight * self.rarity(statistics, &token),
        });
        best(weighed.collect(), k)
    }

    /// The tokens of a query's words that have a meaning of their own, in all its languages.
    fn meant(&self, query: &str, collection: Collection) -> HashSet<String> {
        let LanguageWords { words, languages } =
            LanguageWords::of(query, &self.languages_of(collection));
        let mut meant = HashSet::new();
        for word in &words {
            let word = word.in_language(languages.first);
            if !is_empty_of_meaning(word) {
                let token = word.token();
                meant.extend(word.other_tokens(&token, &languages.others));
                meant.insert(token.into_owned());
            }
        }
        meant
    }

    /// The phrases of a text whose words the memories of a collection have.
    ///
    /// The weight of a phrase is that of its words by their rarity; later phrases weigh up to twice
    /// as much as earlier ones. Best first; ties go to the alphabetically first.
    pub fn key_phrases(&self, text: &str, collection: Collection, k: usize) -> Vec<Weighed> {
        let statistics = self.statistics_of(collection);
        let analysis = self.analysis_of(text, collection);
        let parts: Vec<&str> = text.split(ends_phrase).collect();
        let mut found: HashMap<String, f64> = HashMap::new();
        for (at, part) in parts.iter().enumerate() {
            let lateness = 0.5 + 0.5 * (at + 1) as f64 / parts.len() as f64;
            for phrase in self.phrases(statistics, part, analysis) {
                let weight: f64 = phrase.iter().map(|(_, rarity)| rarity).sum();
                if weight > 0.0 {
                    let words: Vec<&str> = phrase.iter().map(|(word, _)| word.as_str()).collect();
                    let counted = weight / (phrase.len() as f64).sqrt() * lateness;
                    let known = found.entry(words.join(" ")).or_default();
                    *known = known.max(counted);
                }
            }
        }
        let weighed = found.into_iter().map(|(text, weight)| Weighed { text, weight });
        apart(best(weighed.collect(), usize::MAX), k)
    }

    /// Runs of words with a meaning, cut to a few words, with the rarity of each; 0 for a word that
    /// no memory has.
    fn phrases(
        &self,
        statistics: &CollectionStatistics,
        part: &str,
        analysis: Analysis,
    ) -> Vec<Vec<(String, f64)>> {
        let mut runs: Vec<Vec<(String, f64)>> = vec![Vec::new()];
        each_word(part, analysis, |word| {
            if is_empty_of_meaning(word) {
                runs.push(Vec::new());
            } else if let Some(run) = runs.last_mut() {
                let token = word.token();
                let frequency = self.documents_with(statistics, &token);
                let is_known = frequency > 0;
                let rarity = if is_known { rarity(statistics, frequency) } else { 0.0 };
                run.push((word.text.to_owned(), rarity));
            }
        });
        runs.iter().flat_map(|run| run.chunks(MAX_WORDS)).map(<[_]>::to_vec).collect()
    }

    /// Each word of a text that has a meaning of its own, by its token: how it is written, how often.
    fn meanings(
        &self,
        text: &str,
        collection: Collection,
    ) -> BTreeMap<String, BTreeMap<String, u32>> {
        let mut found: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
        each_word(text, self.analysis_of(text, collection), |word| {
            if !is_empty_of_meaning(word) {
                let written = found.entry(word.token().into_owned()).or_default();
                *written.entry(word.text.to_owned()).or_default() += 1;
            }
        });
        found
    }

    fn documents_with(&self, statistics: &CollectionStatistics, token: &str) -> u32 {
        let id = self.vocabulary.read(|known| known.id(token));
        id.map_or(0, |id| statistics.frequencies.get(id))
    }

    fn rarity(&self, statistics: &CollectionStatistics, token: &str) -> f64 {
        rarity(statistics, self.documents_with(statistics, token))
    }
}

fn rarity(statistics: &CollectionStatistics, frequency: u32) -> f64 {
    f64::from(idf(statistics.documents, u64::from(frequency)))
}

fn is_empty_of_meaning(word: Word<'_>) -> bool {
    let is_stop_word = word.language.is_some_and(|language| language.is_stop_word(word.text));
    let is_number = word.text.chars().all(char::is_numeric);
    let is_short = word.language.is_some() && word.text.chars().count() < MIN_CHARACTERS;
    is_stop_word || is_number || is_short
}

/// Whether a phrase ends before this character.
fn ends_phrase(character: char) -> bool {
    matches!(character, '\n' | '"' | '(' | ')' | '[' | ']' | '—' | '–' | '/')
        || matches!(character, '.' | ',' | ';' | ':' | '!' | '?' | '。' | '、' | '，' | '！' | '？')
}

fn most_frequent(written: &BTreeMap<String, u32>) -> String {
    let max = written.values().max();
    let found = written.iter().find(|(_, times)| Some(*times) == max);
    found.map(|(text, _)| text.clone()).unwrap_or_default()
}

/// The weightiest, as shares of the first.
fn best(mut weighed: Vec<Weighed>, k: usize) -> Vec<Weighed> {
    weighed.retain(|one| one.weight > 0.0);
    weighed.sort_unstable_by(|one, other| {
        other.weight.total_cmp(&one.weight).then_with(|| one.text.cmp(&other.text))
    });
    weighed.truncate(k);
    let max = weighed.first().map_or(1.0, |first| first.weight);
    for one in &mut weighed {
        one.weight /= max;
    }
    weighed
}

/// Phrases without those whose words are all part of a heavier one.
fn apart(weighed: Vec<Weighed>, k: usize) -> Vec<Weighed> {
    let mut kept: Vec<Weighed> = Vec::new();
    for phrase in weighed {
        let is_new = !kept.iter().any(|other| {
            let words: Vec<&str> = other.text.split(' ').collect();
            phrase.text.split(' ').all(|word| words.contains(&word))
        });
        if is_new {
            kept.push(phrase);
        }
        if kept.len() == k {
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Analysis;

    fn lexical(texts: &[&str]) -> Lexical {
        let mut lexical = Lexical::new(Analysis::default());
        for text in texts {
            let analysed = lexical.analyse(text);
            lexical.push(&analysed, 0);
        }
        lexical
    }

    fn texts(weighed: &[Weighed]) -> Vec<&str> {
        weighed.iter().map(|one| one.text.as_str()).collect()
    }

    #[test]
    fn rare_words_of_related_texts_come_first_and_those_of_the_query_not_at_all() {
        let lexical =
            lexical(&["the boat is blue", "the boat sank", "a mast and a boat", "a bird"]);
        let said = [("The boats' mast: a mast of oak".to_owned(), 1.0)];
        let found = lexical.related("the oaks", &said, Collection::All, 5);
        assert_eq!(texts(&found), ["mast", "boats"]);
        assert_eq!(found[0].weight.to_bits(), 1.0_f64.to_bits());
        assert!(lexical.related("the oaks", &said, Collection::All, 0).is_empty());
    }

    #[test]
    fn a_word_is_shown_as_it_is_written_most_often() {
        let lexical = lexical(&["x"]);
        let said = [("run runs runs running".to_owned(), 1.0)];
        assert_eq!(texts(&lexical.related("", &said, Collection::All, 5)), ["runs"]);
    }

    #[test]
    fn phrases_are_of_what_memories_know() {
        let lexical = lexical(&["Ana bought a red sailing boat", "the harbour froze"]);
        let asked = "Yesterday we talked of nothing. Is the red sailing boat in the harbour?";
        let found = lexical.key_phrases(asked, Collection::All, 5);
        assert_eq!(texts(&found), ["red sailing boat", "harbour"]);
        assert!(lexical.key_phrases("Nobody knows anything", Collection::All, 5).is_empty());
    }

    #[test]
    fn a_phrase_inside_a_weightier_one_is_left_out() {
        let lexical = lexical(&["red boat", "boat", "tea", "tea"]);
        let found = lexical.key_phrases("the boat, the red boat, the tea", Collection::All, 5);
        assert_eq!(texts(&found), ["red boat", "tea"]);
    }
}
