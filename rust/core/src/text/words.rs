//! The words of a text: folded, cut (UAX #29), stemmed.

use std::borrow::Cow;
use std::ops::Range;

use icu_properties::CodePointMapData;
use icu_properties::props::{LineBreak, Script};
use unicode_segmentation::UnicodeSegmentation;

use super::Language;
use super::normalise::fold;
use super::unicode::{is_invisible, is_mark};

/// Characters of a word that count; the rest is cut off, so that no token is long.
pub(super) const MAX_CHARACTERS: usize = 64;

/// How text becomes tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Analysis {
    /// Language of the stemmer and stop words; without one, words stay as written.
    pub language: Option<Language>,
}

impl Default for Analysis {
    /// English.
    fn default() -> Self {
        Self { language: Some(Language::English) }
    }
}

/// A word, or a pair of characters of a script without spaces.
#[derive(Clone, Copy)]
pub(crate) struct Word<'text> {
    /// As it is written, but folded and of bounded length.
    pub(crate) text: &'text str,
    /// The word with its stem; pairs have none.
    pub(crate) language: Option<Language>,
    /// How many of the words behind it are its parts.
    pub(crate) parts: usize,
}

impl<'text> Word<'text> {
    /// The token of the word.
    pub(crate) fn token(self) -> Cow<'text, str> {
        let stem = self.language.map(|language| language.stemmer().stem(self.text));
        // A stemmer may leave nothing of a word that is all ending.
        stem.filter(|stem| !stem.is_empty()).unwrap_or(Cow::Borrowed(self.text))
    }
}

/// Call `visit` with every word of `text` in order.
pub(crate) fn each_word(text: &str, analysis: Analysis, visit: impl FnMut(Word<'_>)) {
    let language = analysis.language;
    let folded = straighten_apostrophes(fold(&cased(text, language)));
    let folded = without_invisible(folded);
    let mut run = Run { folded: &folded, language, units: Vec::new(), visit };
    for (start, word) in folded.unicode_word_indices() {
        run.take_word(start, word);
    }
    run.finish();
}

/// The text with the small letters of Turkish capitals, whose i has a dot and whose I has none.
fn cased(text: &str, language: Option<Language>) -> Cow<'_, str> {
    if language != Some(Language::Turkish) || !text.contains(['I', 'İ']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('I', "ı").replace('İ', "i"))
}

/// Stemmers handle one apostrophe; texts have three more, which folding leaves unchanged.
fn straighten_apostrophes(folded: String) -> String {
    let is_apostrophe = |one: char| matches!(one, '‘' | '’' | '‛');
    if folded.is_ascii() || !folded.contains(is_apostrophe) {
        return folded;
    }
    folded.replace(is_apostrophe, "'")
}

/// The text without characters that have no picture, such as soft hyphens and joiners.
fn without_invisible(mut folded: String) -> String {
    if !folded.is_ascii() && folded.contains(is_invisible) {
        folded.retain(|one| !is_invisible(one));
    }
    folded
}

/// Words on their way out, and the run of characters without spaces that may still grow.
struct Run<'text, Visit> {
    folded: &'text str,
    language: Option<Language>,
    units: Vec<Range<usize>>,
    visit: Visit,
}

impl<Visit: FnMut(Word<'_>)> Run<'_, Visit> {
    fn take_word(&mut self, start: usize, word: &str) {
        if word.is_ascii() || !word.chars().any(is_unspaced) {
            self.finish();
            self.take_spaced(word);
            return;
        }
        for (offset, character) in word.char_indices() {
            self.take_unspaced(start + offset, character);
        }
    }

    fn take_spaced(&mut self, word: &str) {
        let word = match word.char_indices().nth(MAX_CHARACTERS) {
            Some((end, _)) => &word[..end],
            None => word,
        };
        (self.visit)(Word { text: word, language: self.language, parts: 0 });
    }

    fn take_unspaced(&mut self, start: usize, character: char) {
        let place = start..start + character.len_utf8();
        let continues = self.units.last().is_some_and(|last| last.end == start);
        if !continues {
            self.finish();
        }
        match self.units.last_mut() {
            Some(last) if is_mark(character) && last.len() < MAX_CHARACTERS => {
                last.end = place.end;
            }
            _ if is_mark(character) || character.is_alphanumeric() => self.units.push(place),
            _ => self.finish(),
        }
    }

    /// Hand out the run as overlapping pairs, or as the one character it is.
    fn finish(&mut self) {
        if let [only] = self.units.as_slice() {
            let only = &self.folded[only.clone()];
            (self.visit)(Word { text: only, language: None, parts: 0 });
        }
        for pair in self.units.windows(2) {
            let both = &self.folded[pair[0].start..pair[1].end];
            (self.visit)(Word { text: both, language: None, parts: 0 });
        }
        self.units.clear();
    }
}

/// Whether a token is of a script that writes words without spaces between them.
pub(crate) fn begins_unspaced(token: &str) -> bool {
    token.chars().next().is_some_and(|first| !first.is_ascii() && is_unspaced(first))
}

/// Whether a character is of a script that writes words without spaces between them.
///
/// U+30FC lengthens the kana before it and has no script of its own.
pub(super) fn is_unspaced(character: char) -> bool {
    character == '\u{30fc}'
        || matches!(
            CodePointMapData::<Script>::new().get(character),
            Script::Han | Script::Hiragana | Script::Katakana
        )
        || CodePointMapData::<LineBreak>::new().get(character) == LineBreak::ComplexContext
}
