//! Text to the tokens of keyword search.

use super::Language;
use super::detection::language_of;
use super::language::Languages;
use super::stop_pairs::is_stop_pair;
use super::word_parts::each_word_and_part;
use super::words::{Analysis, Word, begins_unspaced};
use crate::Error;

/// How texts become tokens: all alike, or each by its language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Analyser {
    /// All alike.
    Fixed(Analysis),
    /// Each in the language that [`detect`](super::detect) finds, or else in that of most memories
    /// of its user.
    Detecting,
}

impl From<Analysis> for Analyser {
    fn from(analysis: Analysis) -> Self {
        Self::Fixed(analysis)
    }
}

impl Analyser {
    /// The codes of languages that have no stemmer here, because their words have no endings that
    /// a stemmer takes off; words of other scripts in such texts are English ones.
    const WITHOUT_STEMMER: [&str; 7] = ["ja", "km", "ko", "lo", "my", "th", "zh"];

    /// The analyser of "auto", or of a code of ISO 639-1 or the English name of a language.
    ///
    /// # Errors
    ///
    /// When the language is not among [`codes`](Self::codes).
    pub fn of(code: &str) -> Result<Self, Error> {
        if code == "auto" {
            return Ok(Self::Detecting);
        }
        let is_known = Self::WITHOUT_STEMMER.contains(&code);
        let language = if is_known { Some(Language::English) } else { Language::from_name(code) };
        let unknown =
            || Error::NoStemmer { code: code.to_owned(), known: Self::codes().join(", ") };
        language.map(|language| Analysis { language: Some(language) }.into()).ok_or_else(unknown)
    }

    /// The codes of all languages, ascending.
    pub fn codes() -> Vec<&'static str> {
        let mut codes: Vec<&str> = Language::all().map(Language::code).collect();
        codes.extend(Self::WITHOUT_STEMMER);
        codes.sort_unstable();
        codes
    }
}

/// The languages that the words of a query are stemmed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryLanguages {
    /// The language of the query, whose stop words it has.
    pub(crate) first: Option<Language>,
    /// Further languages of the memories.
    pub(crate) others: Vec<Language>,
}

impl QueryLanguages {
    /// The same languages with that of a text of these folded words first, if it is sure.
    fn of_text<'a>(&self, text: &str, words: impl Iterator<Item = &'a str>) -> Self {
        let is_other = |own: &Language| self.others.contains(own);
        if self.others.is_empty() {
            return self.clone();
        }
        let Some(own) = language_of(text, words).filter(is_other) else { return self.clone() };
        let others = self.first.into_iter().chain(self.others.iter().copied());
        Self { first: Some(own), others: others.filter(|other| *other != own).collect() }
    }
}

/// A word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryToken {
    pub(crate) token: String,
    /// The tokens of the word in other languages, without repeats.
    pub(crate) others: Vec<String>,
    pub(crate) is_stop_word: bool,
    /// How many of the tokens behind it are those of its parts.
    pub(crate) parts: usize,
}

/// Return the tokens of `text`, a memory, in order; stop words are among them.
///
/// Words are those of UAX #29 in the folded text that hold a letter or a digit; a word is cut after
/// 64 characters, then stemmed. Scripts that put no space between words (Han, Hiragana, Katakana,
/// Thai, Lao, Khmer, Myanmar and their like) give overlapping pairs of characters instead; a
/// combining mark belongs to the character before it.
///
/// # Examples
/// ```
/// use mnemic_core::text::{Analysis, tokens};
///
/// assert_eq!(tokens("Ann’s cats RAN!", &Analysis::default()), ["ann", "cat", "ran"]);
/// assert_eq!(tokens("東京都 2024", &Analysis::default()), ["東京", "京都", "2024"]);
/// ```
pub fn tokens(text: &str, analysis: &Analysis) -> Vec<String> {
    let mut tokens = Vec::new();
    each_word_and_part(text, *analysis, |word| tokens.push(word.token().into_owned()));
    tokens
}

/// Return the tokens of `text`, a query, each with those of other languages and with whether it is a
/// stop word: of the first language, or a pair of characters that is one in scripts without spaces.
///
/// Where another language has at least two of the words as stop words, and twice as many as the
/// first, the stop words are those of that other language. Without a language, words are no stop
/// words.
pub(crate) fn tokens_in(text: &str, languages: &QueryLanguages) -> Vec<QueryToken> {
    let LanguageWords { words, languages } = LanguageWords::of(text, languages);
    let tokens = words.iter().map(|word| {
        let word = word.in_language(languages.first);
        let token = word.token().into_owned();
        let others = word.other_tokens(&token, &languages.others);
        let parts = word.parts;
        (QueryToken { token, others, is_stop_word: false, parts }, word.stop_word())
    });
    marked(tokens.collect(), languages.first)
}

/// The tokens with whether they are stop words in the language of most stop words.
fn marked(tokens: Vec<(QueryToken, StopWord)>, language: Option<Language>) -> Vec<QueryToken> {
    let language =
        language.map(|one| one.of_query(tokens.iter().map(|(_, stop_word)| stop_word.languages())));
    let marked = |(token, stop_word): (QueryToken, StopWord)| QueryToken {
        is_stop_word: stop_word.is_of(language),
        ..token
    };
    tokens.into_iter().map(marked).collect()
}

/// The words of a text that may be in one of several languages.
pub(crate) struct LanguageWords {
    pub(crate) words: Vec<OwnedWord>,
    pub(crate) languages: QueryLanguages,
}

impl LanguageWords {
    /// The words, and the languages with that of the text first, if it is sure.
    pub(crate) fn of(text: &str, languages: &QueryLanguages) -> Self {
        let words = words_of(text, languages.first);
        let spaced = words.iter().filter(|word| word.language.is_some());
        let found = languages.of_text(text, spaced.map(|word| word.text.as_str()));
        let turkish = Some(Language::Turkish);
        let is_recased = (languages.first == turkish) != (found.first == turkish);
        let words = if is_recased { words_of(text, found.first) } else { words };
        Self { words, languages: found }
    }
}

/// A word on its own.
pub(crate) struct OwnedWord {
    /// Folded.
    pub(crate) text: String,
    language: Option<Language>,
    parts: usize,
}

impl OwnedWord {
    /// The word as one of another language, if it can be stemmed.
    pub(crate) fn in_language(&self, language: Option<Language>) -> Word<'_> {
        Word { text: &self.text, language: self.language.and(language), parts: self.parts }
    }
}

fn words_of(text: &str, language: Option<Language>) -> Vec<OwnedWord> {
    let mut words = Vec::new();
    each_word_and_part(text, Analysis { language }, |Word { text, language, parts }| {
        words.push(OwnedWord { text: text.to_owned(), language, parts });
    });
    words
}

/// Where a word is a stop word.
#[derive(Clone, Copy)]
enum StopWord {
    Of(Languages),
    Everywhere,
    Nowhere,
}

impl StopWord {
    fn languages(self) -> Languages {
        if let Self::Of(languages) = self { languages } else { Languages::default() }
    }

    fn is_of(self, language: Option<Language>) -> bool {
        match self {
            Self::Of(languages) => language.is_some_and(|language| languages.has(language)),
            Self::Everywhere => true,
            Self::Nowhere => false,
        }
    }
}

impl Word<'_> {
    /// Where it is a stop word: a stop pair is one whatever the language.
    fn stop_word(self) -> StopWord {
        match begins_unspaced(self.text) {
            true if is_stop_pair(self.text) => StopWord::Everywhere,
            true => StopWord::Nowhere,
            false => StopWord::Of(Languages::of_stop_word(self.text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::fold;
    use crate::text::words::MAX_CHARACTERS;

    const PLAIN: Analysis = Analysis { language: None };

    fn english(text: &str) -> Vec<String> {
        tokens(text, &Analysis::default())
    }

    #[test]
    fn words_are_folded_and_stemmed() {
        assert_eq!(english("Running RUNS ｒｕｎ"), ["run", "run", "run"]);
        assert_eq!(tokens("Running Straße", &PLAIN), ["running", "strasse"]);
        let german = Analysis { language: Some(Language::German) };
        assert_eq!(tokens("Häuser Haus", &german), ["haus", "haus"]);
    }

    #[test]
    fn possessives_meet_the_word_whatever_the_apostrophe() {
        for text in ["Ann's", "Ann’s", "Ann‘s", "Ann＇s", "Ann‛s"] {
            assert_eq!(english(text), ["ann"], "{text}");
        }
        assert_eq!(tokens("can’t", &PLAIN), ["can't"]);
    }

    #[test]
    fn numbers_and_addresses_are_cut_as_the_standard_says() {
        assert_eq!(
            tokens("3.14; a-b v2 me@10.0.0.1 10:30 a1b2c3d e.g. 1st", &PLAIN),
            [
                "3.14", "a", "b", "v2", "me", "10.0.0.1", "10", "30", "a1b2c3d", "e.g", "1st", "1",
                "st"
            ]
        );
    }

    #[test]
    fn joined_words_have_their_parts_behind_them() {
        for (text, wanted) in [
            ("snake_case", &["snake_case", "snake", "case"][..]),
            ("site.org's", &["site.org's", "site", "org's"]),
            ("color:red", &["color:red", "color", "red"]),
            ("цвет:красный", &["цвет:красный", "цвет", "красный"]),
            ("HTTPServer2", &["httpserver2", "http", "server2"]),
            ("ForeignKey", &["foreignkey", "foreign", "key"]),
            ("__init__ _Tea_", &["init", "tea"]),
            ("x_train", &["x_train", "train"]),
            ("5kg", &["5kg", "5", "kg"]),
            ("tea.Then", &["tea.then", "tea", "then"]),
            ("McDonald", &["mcdonald", "mc", "donald"]),
            ("me@site", &["me", "site"]),
        ] {
            assert_eq!(tokens(text, &PLAIN), wanted, "{text}");
        }
    }

    #[test]
    fn invisible_characters_hide_no_word() {
        for text in ["t\u{ad}ea", "tea\u{200e}", "\u{feff}tea", "t\u{200b}e\u{200d}a"] {
            assert_eq!(tokens(text, &PLAIN), ["tea"], "{text:?}");
        }
    }

    #[test]
    fn scripts_without_spaces_give_pairs_of_characters() {
        assert_eq!(tokens("日本語", &PLAIN), ["日本", "本語"]);
        assert_eq!(tokens("猫", &PLAIN), ["猫"]);
        assert_eq!(tokens("カラオケ", &PLAIN), ["カラ", "ラオ", "オケ"]);
        assert_eq!(tokens("コーヒー", &PLAIN), ["コー", "ーヒ", "ヒー"]);
        assert_eq!(tokens("私はAnnです", &PLAIN), ["私は", "ann", "です"]);
        assert_eq!(tokens("猫。犬", &PLAIN), ["猫", "犬"]);
    }

    #[test]
    fn a_mark_stays_with_its_character() {
        assert_eq!(tokens("ภาษาไทย", &PLAIN), ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]);
        assert_eq!(tokens("กินปู", &PLAIN), ["กิน", "นปู"]);
        assert_eq!(tokens("ខ្មែរ", &PLAIN).len(), 2);
    }

    #[test]
    fn korean_arabic_and_devanagari_are_words() {
        assert_eq!(tokens("한국어 공부", &PLAIN), ["한국어", "공부"]);
        assert_eq!(
            tokens("부산에서 고양이가", &PLAIN),
            ["부산에서", "부산", "고양이가", "고양이", "고양"]
        );
        assert_eq!(tokens("تفضل النظام", &PLAIN).len(), 2);
        assert_eq!(tokens("हिन्दी भाषा", &PLAIN).len(), 2);
    }

    #[test]
    fn what_has_no_letter_or_digit_has_no_tokens() {
        for text in ["", " \n\t", "?!… — «»", "🍕👩‍💻❤️"] {
            assert!(english(text).is_empty(), "{text:?}");
        }
        assert_eq!(english("loves🍕pizza"), ["love", "pizza"]);
    }

    #[test]
    fn a_very_long_word_is_cut() {
        let long = "ab".repeat(5_000);
        assert_eq!(tokens(&long, &PLAIN), ["ab".repeat(32)]);
        let marks = format!("ก{}", "\u{e34}".repeat(1_000));
        assert!(tokens(&marks, &PLAIN).iter().all(|token| token.len() <= 2 * 2 * MAX_CHARACTERS));
    }

    #[test]
    fn tokens_of_a_query_are_those_of_a_text_and_tell_which_are_stop_words() {
        let stop_words = |text, language| {
            let found = tokens_in(text, &QueryLanguages { first: language, others: Vec::new() });
            assert_eq!(
                tokens(text, &Analysis { language }),
                found.iter().map(|one| one.token.clone()).collect::<Vec<_>>()
            );
            found.into_iter().map(|one| one.is_stop_word).collect::<Vec<_>>()
        };
        let english = Some(Language::English);
        assert_eq!(stop_words("the cat doesn’t", english), [true, false, true]);
        assert_eq!(stop_words("To BE or not", english), [true; 4]);
        assert_eq!(
            stop_words("the Katze und der Hund", Some(Language::German)),
            [false, false, true, true, false]
        );
        assert_eq!(stop_words("the cat", None), [false; 2]);
        assert_eq!(
            stop_words("wo ist der Wein", english),
            [true, true, true, false],
            "the language of the query"
        );
        assert_eq!(stop_words("猫が好き", english), [false; 3]);
        assert_eq!(stop_words("猫です the", None), [false, true, false]);
        assert_eq!(stop_words("我的图书", english), [true, true, false]);
        assert_eq!(stop_words("?!", english), [false; 0]);
    }

    proptest! {
        #[test]
        fn any_text_in_any_language_gives_short_tokens_that_are_not_empty(
            text in prop_oneof![
                any::<String>(), "[a-z' éüßñçşğıİ]{0,40}", "[а-яё ]{0,40}", "[\\p{Greek} ]{0,30}",
                "[\\p{Arabic} ]{0,30}", "[\\p{Tamil} ]{0,30}", "[\\p{Devanagari} ]{0,30}",
                "[\\p{Thai}\\p{Han}a ]{0,30}",
            ],
        ) {
            for language in Language::all().map(Some).chain([None]) {
                for token in tokens(&text, &Analysis { language }) {
                    prop_assert!(!token.is_empty() && token.len() <= 8 * MAX_CHARACTERS);
                }
            }
        }

        #[test]
        fn folding_twice_changes_no_token(text in any::<String>()) {
            let text = fold(&text); // capitals tell parts apart
            prop_assert_eq!(tokens(&fold(&text), &PLAIN), tokens(&text, &PLAIN));
        }
    }
}
