//! The language of a text, by its stop words and by the n-grams of its letters.
//!
//! Stop words alone (Grefenstette, JADT 1995) confuse related languages, n-grams alone misjudge short
//! texts; where both agree they erred in three of 5,074 short English turns
//! (docs/project/lab/quality.md).

use whichlang::{LANGUAGES, Lang, detect_language};

use super::Language;
use super::language::{Counts, Languages};
use super::words::{Analysis, each_word};

/// A text of fewer distinct words has no language of its own: "No, no!" has in too many.
const MIN_WORDS: usize = 3;

/// Distinct stop words that decide without the n-grams: English ones, because most texts are, or
/// those of a language that the n-grams do not know.
const MANY_STOP_WORDS: u32 = 2;

/// Words and characters that are read, so that a long text takes no longer than a paragraph.
const MAX_WORDS: usize = 64;
const MAX_CHARACTERS: usize = 400;

/// The language of a text; None where it is not sure, as of a few words, or has no stemmer.
///
/// # Examples
/// ```
/// use mnemic_core::text::{Language, detect};
///
/// assert_eq!(detect("Wo steht der Wein, den Anna mag?"), Some(Language::German));
/// assert_eq!(detect("Metric units"), None);
/// assert_eq!(detect("这是我们最喜欢的茶"), None);
/// ```
pub fn detect(text: &str) -> Option<Language> {
    let mut words = Vec::new();
    each_word(text, Analysis::default(), |word| {
        words.extend(word.language.map(|_| word.text.to_owned()));
    });
    language_of(text, words.iter().map(String::as_str))
}

/// The language of a text of these folded words, pairs of characters left out.
pub(crate) fn language_of<'words>(
    text: &str,
    words: impl Iterator<Item = &'words str>,
) -> Option<Language> {
    let mut evidence = Evidence::default();
    words.take(MAX_WORDS).for_each(|word| evidence.take(word));
    evidence.language(text)
}

/// The words of a text that say in which language it is.
#[derive(Default)]
struct Evidence<'words> {
    /// The first distinct words.
    words: Vec<&'words str>,
    /// Distinct stop words with their languages.
    stop_words: Vec<(&'words str, Languages)>,
}

impl<'words> Evidence<'words> {
    fn take(&mut self, word: &'words str) {
        if self.words.len() < MIN_WORDS && !self.words.contains(&word) {
            self.words.push(word);
        }
        let languages = Languages::of_stop_word(word);
        let is_new = || !self.stop_words.iter().any(|(known, _)| *known == word);
        if !languages.is_empty() && is_new() {
            self.stop_words.push((word, languages));
        }
    }

    /// The language, if the words of this text leave no doubt.
    fn language(&self, text: &str) -> Option<Language> {
        if self.words.len() < MIN_WORDS || self.stop_words.is_empty() {
            return None;
        }
        let counts = Counts::of(self.stop_words.iter().map(|(_, languages)| *languages));
        let (most, leaders) = counts.leaders();
        let has_many = most >= MANY_STOP_WORDS;
        if has_many && leaders == [Language::English] {
            return Some(Language::English);
        }
        let by_letters = by_ngrams(beginning(text));
        if let Some(language) = by_letters.filter(|language| leaders.contains(language)) {
            // "Ticket 344 is open": what could be English is no other language.
            let could_be_english = leaders.contains(&Language::English);
            let is_sure = !could_be_english || language == Language::English;
            return is_sure.then_some(language);
        }
        let known = || LANGUAGES.into_iter().filter_map(language_named);
        let is_unknown = !known().any(|language| leaders.contains(&language));
        let is_one = leaders.len() == 1 || leaders == [Language::Danish, Language::Norwegian];
        let is_english = by_letters == Some(Language::English);
        (has_many && is_unknown && is_one && !is_english).then(|| leaders[0])
    }
}

fn by_ngrams(text: &str) -> Option<Language> {
    language_named(detect_language(text))
}

/// The language that the n-grams call so, if it has a stemmer.
fn language_named(name: Lang) -> Option<Language> {
    match name {
        Lang::Ara => Some(Language::Arabic),
        Lang::Deu => Some(Language::German),
        Lang::Eng => Some(Language::English),
        Lang::Fra => Some(Language::French),
        Lang::Ita => Some(Language::Italian),
        Lang::Nld => Some(Language::Dutch),
        Lang::Por => Some(Language::Portuguese),
        Lang::Rus => Some(Language::Russian),
        Lang::Spa => Some(Language::Spanish),
        Lang::Swe => Some(Language::Swedish),
        Lang::Tur => Some(Language::Turkish),
        Lang::Cmn | Lang::Hin | Lang::Jpn | Lang::Kor | Lang::Vie => None,
    }
}

/// The part of a text that is read.
pub(super) fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_CHARACTERS);
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sentences_are_in_their_language() {
        for (text, language) in [
            ("She does not drink coffee in the evening", Language::English),
            ("Großvater isst weder Knoblauch noch Lamm", Language::German),
            ("A Jonas le da miedo volar en avión", Language::Spanish),
            ("Notre voisin garde les clés de la cave", Language::French),
            ("Non mangia carne da tre anni", Language::Italian),
            ("O meu irmão mora no Porto há dois anos", Language::Portuguese),
            ("Mijn broer woont sinds twee jaar in Utrecht", Language::Dutch),
            ("Мой брат живёт в Казани уже два года", Language::Russian),
            ("Jag tycker om att promenera i skogen", Language::Swedish),
            ("Hunden er bange for tordenvejr", Language::Danish),
            ("Fratele meu locuiește la Cluj de doi ani", Language::Romanian),
            ("Kakak saya tinggal di Bandung sejak dua tahun lalu", Language::Indonesian),
        ] {
            assert_eq!(detect(text), Some(language), "{text}");
        }
    }

    #[test]
    fn texts_that_could_be_in_several_languages_are_in_none() {
        for text in [
            "",
            "!?",
            "Oslo",
            "No, no, no!",
            "Oh, sweetie!",
            "Prefers metric units",
            "See ya.",
            "Ticket 344 is open.",
            "2024-05-03",
            "我们最喜欢的茶",
            "東京タワーへ行きました",
            "สวัสดีครับ",
            "Ona pije kawę bez cukru",
        ] {
            assert_eq!(detect(text), None, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_read_in_part() {
        let german = "Wo steht der Wein, den Anna mag? ".repeat(10_000);
        assert_eq!(detect(&german), Some(Language::German));
        assert_eq!(beginning(&"é".repeat(2_000)), "é".repeat(MAX_CHARACTERS));
    }
}
