//! Surface forms: the words of a text as they are written, from the tokens that were matched.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use unicode_segmentation::UnicodeSegmentation;

use super::normalise::fold;
use super::stems::stems;
use super::tokenizer::{Analyser, tokens};
use super::unicode::is_mark;
use super::word_parts::each_word_and_part;
use super::words::{Analysis, is_unspaced};

/// A stretch of a text, and which of the tokens it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurfaceForm {
    /// As it is written.
    pub text: String,
    /// The places of the tokens in the list that was given, ascending.
    pub tokens: Vec<usize>,
}

/// Return where some tokens of `text` are written, in the order of the text, each different stretch
/// once.
///
/// A word is one stretch, whatever its ending. Of scripts without spaces, whose tokens are pairs of
/// characters, the longest run of adjacent pairs is one.
///
/// # Examples
/// ```
/// use mnemic_core::text::{Analysis, surface_forms};
///
/// let found = surface_forms("Ann's cats RAN", &["cat", "run", "ran"], Analysis::default());
/// assert_eq!(found[0].text, "cats");
/// assert_eq!((found[1].text.as_str(), &found[1].tokens[..]), ("RAN", &[2][..]));
/// let found = surface_forms("我去上海博物馆。", &["上海", "海博", "物馆"], Analysis::default());
/// assert_eq!((found[0].text.as_str(), found[1].text.as_str()), ("上海博", "物馆"));
/// ```
pub fn surface_forms<Token: AsRef<str>>(
    text: &str,
    tokens: &[Token],
    analyser: impl Into<Analyser>,
) -> Vec<SurfaceForm> {
    let analyser = analyser.into();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::with_capacity(tokens.len());
    for (place, token) in tokens.iter().enumerate() {
        places.entry(token.as_ref()).or_default().push(place);
    }
    let (units, known, found) = (Vec::new(), HashSet::new(), Vec::new());
    let mut finder = Finder { text, places, analyser, units, known, found };
    for (start, word) in text.unicode_word_indices() {
        if word.is_ascii() || !word.chars().any(is_unspaced) {
            finder.finish_run();
            finder.take_word(word);
            continue;
        }
        for (offset, character) in word.char_indices() {
            finder.take_character(start + offset, character);
        }
    }
    finder.finish_run();
    finder.found
}

/// The tokens that a word may have been given, whichever language its text is in.
fn tokens_in_all(word: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    each_word_and_part(word, Analysis::default(), |word| match word.language {
        Some(_) => tokens.extend(stems(word.text).iter().map(|(stem, _)| stem.to_string())),
        None => tokens.push(word.text.to_owned()),
    });
    tokens
}

struct Finder<'a> {
    text: &'a str,
    /// Those of each token.
    places: HashMap<&'a str, Vec<usize>>,
    analyser: Analyser,
    /// Adjacent characters of a script without spaces: where each begins and ends.
    units: Vec<(usize, usize)>,
    /// The stretches that were found.
    known: HashSet<&'a str>,
    found: Vec<SurfaceForm>,
}

impl<'a> Finder<'a> {
    fn take_word(&mut self, word: &'a str) {
        let own = match self.analyser {
            Analyser::Fixed(analysis) => tokens(word, &analysis),
            Analyser::Detecting => tokens_in_all(word),
        };
        self.push(word, own.iter().flat_map(|token| self.places_of(token)).collect());
    }

    fn take_character(&mut self, start: usize, character: char) {
        let end = start + character.len_utf8();
        if self.units.last().is_some_and(|last| last.1 != start) {
            self.finish_run();
        }
        match self.units.last_mut() {
            Some(last) if is_mark(character) => last.1 = end,
            _ => self.units.push((start, end)),
        }
    }

    /// Find the matched pairs of a run, and join adjacent ones.
    fn finish_run(&mut self) {
        let units = std::mem::take(&mut self.units);
        if let [(start, end)] = units[..] {
            return self.push(&self.text[start..end], self.places_at(start, end));
        }
        let (mut run, mut matched): (Option<(usize, usize)>, Vec<usize>) = (None, Vec::new());
        for pair in units.windows(2) {
            let (start, end) = (pair[0].0, pair[1].1);
            let places = self.places_at(start, end);
            if places.is_empty() {
                self.finish(run.take(), std::mem::take(&mut matched));
            } else {
                run = Some((run.map_or(start, |run| run.0), end));
                matched.extend(places);
            }
        }
        self.finish(run, matched);
    }

    fn finish(&mut self, run: Option<(usize, usize)>, matched: Vec<usize>) {
        if let Some((start, end)) = run {
            self.push(&self.text[start..end], matched);
        }
    }

    /// The places of the tokens that a stretch gives.
    fn places_at(&self, start: usize, end: usize) -> Vec<usize> {
        let folded: Cow<'_, str> = fold(&self.text[start..end]).into();
        self.places_of(&folded)
    }

    fn places_of(&self, token: &str) -> Vec<usize> {
        self.places.get(token).cloned().unwrap_or_default()
    }

    fn push(&mut self, text: &'a str, mut matched: Vec<usize>) {
        matched.sort_unstable();
        matched.dedup();
        if !matched.is_empty() && self.known.insert(text) {
            self.found.push(SurfaceForm { text: text.to_owned(), tokens: matched });
        }
    }
}
