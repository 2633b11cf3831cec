//! The languages whose words can be stemmed, with their stop words.

use std::collections::HashSet;
use std::sync::OnceLock;

use frostem::{Algorithm, Stemmer};

use super::normalise::fold;

/// A language with a Snowball stemmer and a list of stop words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// English name and ISO 639-1 code, by language.
const NAMES: [(Language, &str, &str); 22] = [
    (Language::Arabic, "arabic", "ar"),
    (Language::Basque, "basque", "eu"),
    (Language::Catalan, "catalan", "ca"),
    (Language::Danish, "danish", "da"),
    (Language::Dutch, "dutch", "nl"),
    (Language::English, "english", "en"),
    (Language::Finnish, "finnish", "fi"),
    (Language::French, "french", "fr"),
    (Language::German, "german", "de"),
    (Language::Greek, "greek", "el"),
    (Language::Hungarian, "hungarian", "hu"),
    (Language::Indonesian, "indonesian", "id"),
    (Language::Italian, "italian", "it"),
    (Language::Nepali, "nepali", "ne"),
    (Language::Norwegian, "norwegian", "no"),
    (Language::Portuguese, "portuguese", "pt"),
    (Language::Romanian, "romanian", "ro"),
    (Language::Russian, "russian", "ru"),
    (Language::Spanish, "spanish", "es"),
    (Language::Swedish, "swedish", "sv"),
    (Language::Tamil, "tamil", "ta"),
    (Language::Turkish, "turkish", "tr"),
];

static STOP_WORDS: [OnceLock<HashSet<String>>; NAMES.len()] =
    [const { OnceLock::new() }; NAMES.len()];

impl Language {
    /// All languages, by English name.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|&(language, _, _)| language)
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
        let found = NAMES.iter().find(|(_, long, code)| is_meant(long) || is_meant(code));
        found.map(|&(language, _, _)| language)
    }

    /// The English name, in small letters.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// Whether a folded, unstemmed word is one of the language's stop words.
    pub(crate) fn is_stop_word(self, word: &str) -> bool {
        STOP_WORDS[self as usize].get_or_init(|| self.folded_stop_words()).contains(word)
    }

    fn folded_stop_words(self) -> HashSet<String> {
        let listed = stop_words::lookup(NAMES[self as usize].2).unwrap_or_default();
        listed.iter().map(|word| fold(word)).collect()
    }

    pub(super) fn stemmer(self) -> Stemmer {
        Stemmer::new(match self {
            Self::Arabic => Algorithm::Arabic,
            Self::Basque => Algorithm::Basque,
            Self::Catalan => Algorithm::Catalan,
            Self::Danish => Algorithm::Danish,
            Self::Dutch => Algorithm::Dutch,
            Self::English => Algorithm::English,
            Self::Finnish => Algorithm::Finnish,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Greek => Algorithm::Greek,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Indonesian => Algorithm::Indonesian,
            Self::Italian => Algorithm::Italian,
            Self::Nepali => Algorithm::Nepali,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Romanian => Algorithm::Romanian,
            Self::Russian => Algorithm::Russian,
            Self::Spanish => Algorithm::Spanish,
            Self::Swedish => Algorithm::Swedish,
            Self::Tamil => Algorithm::Tamil,
            Self::Turkish => Algorithm::Turkish,
        })
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
            assert!(language.folded_stop_words().len() > 50, "{language:?}");
        }
    }

    #[test]
    fn stop_words_are_those_of_the_language() {
        assert!(Language::English.is_stop_word("the") && Language::English.is_stop_word("don't"));
        assert!(Language::German.is_stop_word("und") && !Language::German.is_stop_word("the"));
        assert!(Language::Russian.is_stop_word("и"));
        assert!(!Language::English.is_stop_word("metric"));
    }
}
