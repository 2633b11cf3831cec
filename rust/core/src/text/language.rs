//! The languages whose words can be stemmed, with their stop words.

use std::collections::HashMap;
use std::sync::OnceLock;

use frostem::{Algorithm, Stemmer};

use super::hashing::Keyed;
use super::normalise::fold;

/// A language with a Snowball stemmer and a list of stop words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the language it is called")]
pub enum Language {
    Arabic,
    Basque,
    Catalan,
    Danish,
    Dutch,
    English,
    Finnish,
    French,
    German,
    Greek,
    Hungarian,
    Indonesian,
    Italian,
    Nepali,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Tamil,
    Turkish,
}

/// Stemmer, which has the language's English name, and ISO 639-1 code, by language.
const STEMMERS: [(Language, Algorithm, &str); 22] = [
    (Language::Arabic, Algorithm::Arabic, "ar"),
    (Language::Basque, Algorithm::Basque, "eu"),
    (Language::Catalan, Algorithm::Catalan, "ca"),
    (Language::Danish, Algorithm::Danish, "da"),
    (Language::Dutch, Algorithm::Dutch, "nl"),
    (Language::English, Algorithm::English, "en"),
    (Language::Finnish, Algorithm::Finnish, "fi"),
    (Language::French, Algorithm::French, "fr"),
    (Language::German, Algorithm::German, "de"),
    (Language::Greek, Algorithm::Greek, "el"),
    (Language::Hungarian, Algorithm::Hungarian, "hu"),
    (Language::Indonesian, Algorithm::Indonesian, "id"),
    (Language::Italian, Algorithm::Italian, "it"),
    (Language::Nepali, Algorithm::Nepali, "ne"),
    (Language::Norwegian, Algorithm::Norwegian, "no"),
    (Language::Portuguese, Algorithm::Portuguese, "pt"),
    (Language::Romanian, Algorithm::Romanian, "ro"),
    (Language::Russian, Algorithm::Russian, "ru"),
    (Language::Spanish, Algorithm::Spanish, "es"),
    (Language::Swedish, Algorithm::Swedish, "sv"),
    (Language::Tamil, Algorithm::Tamil, "ta"),
    (Language::Turkish, Algorithm::Turkish, "tr"),
];

/// The languages of each folded, unstemmed stop word.
static STOP_WORDS: OnceLock<StopWords> = OnceLock::new();

type StopWords = HashMap<String, Languages, Keyed>;

/// Some languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Languages(u32);

impl Languages {
    /// The languages that have a folded, unstemmed word as a stop word.
    pub(super) fn of_stop_word(word: &str) -> Self {
        STOP_WORDS.get_or_init(stop_words_of_all).get(word).copied().unwrap_or_default()
    }

    pub(crate) fn has(self, language: Language) -> bool {
        self.0 & language.bit() != 0
    }

    pub(crate) fn of(language: Language) -> Self {
        Self(language.bit())
    }

    pub(crate) fn add(&mut self, language: Language) {
        self.0 |= language.bit();
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How many stop words there are of each language.
#[derive(Debug, Default)]
pub(super) struct Counts([u32; STEMMERS.len()]);

impl Counts {
    pub(super) fn of(stop_words: impl Iterator<Item = Languages>) -> Self {
        let mut counts = Self::default();
        for languages in stop_words {
            let mut rest = languages.0;
            while rest != 0 {
                counts.0[rest.trailing_zeros() as usize] += 1;
                rest &= rest - 1;
            }
        }
        counts
    }

    fn get(&self, language: Language) -> u32 {
        self.0[language as usize]
    }

    /// The most stop words of any language, and the languages that have so many.
    pub(super) fn leaders(&self) -> (u32, Vec<Language>) {
        let most = self.0.iter().copied().max().unwrap_or_default();
        (most, Language::all().filter(|language| self.get(*language) == most).collect())
    }
}

fn stop_words_of_all() -> StopWords {
    let mut of_all = StopWords::default();
    for language in Language::all() {
        for word in language.stop_words() {
            of_all.entry(word).or_default().0 |= language.bit();
        }
    }
    of_all
}

/// A query is in another language than its index if so many of its words are stop words there, ...
const FEWEST_STOP_WORDS: u32 = 2;

/// ... so many times as many as in the language of the index: no English question of the five sets
/// in docs/project/lab/quality.md is taken for another language, a German one with "was" and "in"
/// is.
const TIMES_AS_MANY: u32 = 2;

impl Language {
    /// Number of languages.
    pub(crate) const COUNT: usize = STEMMERS.len();

    /// All languages, by English name.
    pub fn all() -> impl Iterator<Item = Self> {
        STEMMERS.iter().map(|&(language, _, _)| language)
    }

    /// The language of an English name or an ISO 639-1 code, in any case, if it is supported.
    ///
    /// # Examples
    /// ```
    /// use mnemic_core::text::Language;
    ///
    /// assert_eq!(Language::from_name("English"), Some(Language::English));
    /// assert_eq!(Language::from_name("de"), Some(Language::German));
    /// assert_eq!(Language::from_name("Klingon"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let is_meant = |known: &str| known.eq_ignore_ascii_case(name);
        let found =
            STEMMERS.iter().find(|(_, stemmer, code)| is_meant(stemmer.name()) || is_meant(code));
        found.map(|&(language, _, _)| language)
    }

    /// The ISO 639-1 code.
    pub fn code(self) -> &'static str {
        STEMMERS[self as usize].2
    }

    /// The English name, in small letters.
    pub fn name(self) -> &'static str {
        STEMMERS[self as usize].1.name()
    }

    /// Whether a folded, unstemmed word is one of the language's stop words.
    pub(crate) fn is_stop_word(self, word: &str) -> bool {
        Languages::of_stop_word(word).has(self)
    }

    /// The language of a query to an index of this one, from the languages of its stop words
    /// (Grefenstette, JADT 1995).
    pub(super) fn of_query(self, stop_words: impl Iterator<Item = Languages>) -> Self {
        let counts = Counts::of(stop_words);
        let (most, leaders) = counts.leaders();
        if most < FEWEST_STOP_WORDS.max(TIMES_AS_MANY * counts.get(self)) {
            return self;
        }
        leaders.first().copied().unwrap_or(self)
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }

    fn stop_words(self) -> impl Iterator<Item = String> {
        let listed = stop_words::lookup(STEMMERS[self as usize].2).unwrap_or_default();
        listed.iter().map(|word| fold(word))
    }

    pub(super) fn stemmer(self) -> Stemmer {
        Stemmer::new(STEMMERS[self as usize].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_its_place_a_name_a_stemmer_and_stop_words() {
        for (place, language) in Language::all().enumerate() {
            assert_eq!(language as usize, place);
            assert_eq!(Language::from_name(language.name()), Some(language));
            assert_eq!(language.stemmer().algorithm().name(), language.name());
            assert!(language.stop_words().count() > 50, "{language:?}");
        }
    }

    #[test]
    fn stop_words_are_those_of_the_language() {
        assert!(Language::English.is_stop_word("the") && Language::English.is_stop_word("don't"));
        assert!(Language::German.is_stop_word("und") && !Language::German.is_stop_word("the"));
        assert!(Language::Russian.is_stop_word("и"));
        assert!(!Language::English.is_stop_word("metric"));
    }

    #[test]
    fn a_query_is_in_the_language_that_most_of_its_stop_words_are_of() {
        let of = |text: &str, index: Language| {
            index.of_query(text.split(' ').map(Languages::of_stop_word))
        };
        let english = Language::English;
        assert_eq!(of("wo steht der wein den anna mag", english), Language::German);
        assert_eq!(of("¿cuándo fue la última vez que vi a mi hermano", english), Language::Spanish);
        assert_eq!(of("когда я была у врача", english), Language::Russian);
        assert_eq!(of("where did the friends of hers go", Language::German), english);
        for text in ["", "die hard movie", "who is der spiegel's editor", "zahnarzt", "der wein"] {
            assert_eq!(of(text, english), english, "{text}");
        }
    }
}
