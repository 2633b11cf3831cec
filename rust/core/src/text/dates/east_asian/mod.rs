//! Dates in Chinese, Japanese and Korean.
//!
//! They are found in the text itself: most of it has no spaces, so that words cannot be told from
//! their neighbours by a split. What begins a date is looked up at each character; a word that is
//! torn out of two others ([`is_torn`]) or out of a longer one in kana or Hangul is none.

mod calendar_dates;
mod numbers;
mod relative;
mod spans;
mod vocabulary;

use super::super::word_table::WordTable;
use super::Granularity;
use super::reference::{Basis, Found, Length, Named, Reference, found, near_today};
use numbers::{Form, Number, is_numeral};
use vocabulary::{TERMS, Term, goes_on, is_torn};

/// Characters of scripts without spaces, and Hangul.
pub(super) fn is_east_asian(character: char) -> bool {
    is_han(character) || is_kana(character) || is_hangul(character)
}

/// Marks of these scripts, which may stand beside a number.
pub(super) fn is_east_asian_mark(character: char) -> bool {
    matches!(character, '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{301F}' | '\u{FF01}'..='\u{FF0F}' | '\u{FF1A}'..='\u{FF20}')
}

fn is_han(character: char) -> bool {
    matches!(character, '\u{3005}'..='\u{3007}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
}

fn is_kana(character: char) -> bool {
    matches!(character, '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{FF66}'..='\u{FF9F}')
}

fn is_hangul(character: char) -> bool {
    matches!(character, '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7A3}')
}

/// A date as it was named, and whether its year or month was counted from today.
#[derive(Clone, Copy, Debug)]
struct Partial {
    named: Named,
    is_relative: bool,
}

type Step<T> = Option<(T, usize)>;

/// A text, read by byte offsets.
pub(super) struct EastAsian<'call> {
    text: &'call str,
    reference: &'call Reference<'call>,
}

/// Particles behind a word in kana.
const PARTICLES: &str = "はのもにがへまか";

/// Particles behind 전, 후, 초 and 말, which also begin other words.
const HANGUL_PARTICLES: &str = "에의부까쯤과은엔이";

impl<'call> EastAsian<'call> {
    pub(super) fn new(text: &'call str, reference: &'call Reference<'call>) -> Self {
        Self { text, reference }
    }

    /// All dates with their places, in order.
    pub(super) fn dates(&self) -> Vec<(usize, Found)> {
        let mut dates = Vec::new();
        let mut listed = None;
        let mut at = 0;
        while let Some(first) = self.char(at) {
            if !Self::may_begin(first) {
                at += first.len_utf8();
                continue;
            }
            let before = listed.take_if(|(_, place): &mut (Partial, usize)| *place == at);
            let read = self.listed(at, before.map(|(partial, _)| partial));
            if let Some(((date, partial), next)) = read {
                dates.extend(date.map(|date| (at, date)));
                listed = partial.and_then(|partial| Some((partial, self.over_separator(next)?)));
                at = next;
            } else {
                at = self.behind(at);
            }
        }
        dates
    }

    /// Whether a date, a word or a number may begin with a character: few do, and each lookup takes
    /// time.
    fn may_begin(first: char) -> bool {
        first.is_ascii_alphanumeric()
            || first == '_'
            || is_numeral(first)
            || is_east_asian(first) && (relative::begins(first) || TERMS.begins(first))
    }

    /// The date at a place, and its parts for the next one of a list.
    fn listed(&self, at: usize, before: Option<Partial>) -> Step<(Option<Found>, Option<Partial>)> {
        if let Some((partial, next)) = before.and_then(|before| self.next_of_list(at, before)) {
            return Some(((self.resolve(partial), Some(partial)), next));
        }
        if let Some((partial, next)) = self.calendar(at) {
            let (date, end) = self.expression(at, partial, next);
            return Some(((date, (end == next).then_some(partial)), end));
        }
        let (date, next) = self.counted(at).or_else(|| self.worded(at))?;
        let (date, next) = self.since(date, next);
        Some(((date, None), next))
    }

    fn resolve(&self, partial: Partial) -> Option<Found> {
        let date = self.reference.resolve(partial.named)?;
        let basis = if partial.is_relative { Basis::Today } else { date.basis };
        Some(Found { basis, ..date })
    }

    /// A date, a span, or a part of a period that begins with a date.
    fn expression(&self, at: usize, partial: Partial, next: usize) -> (Option<Found>, usize) {
        if let Some((span, end)) = self.span(partial, next) {
            return (span, end);
        }
        let (date, end) = match self.part(partial, next) {
            Some((date, end)) => (date, end),
            None => (self.resolve(partial), next),
        };
        let starts = self.before(at).is_some_and(|before| "从從自".contains(before));
        match self.over(end, &["起", "开始", "開始"]).filter(|_| starts) {
            Some(next) => (date.map(|date| self.until_today(date)), next),
            None => self.since(date, end),
        }
    }

    fn char(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    fn is_before(&self, at: usize, characters: &str) -> bool {
        self.before(at).is_some_and(|before| characters.contains(before))
    }

    /// Whether one of these characters stands at a place.
    fn is_at(&self, at: usize, characters: &str) -> bool {
        self.char(at).is_some_and(|character| characters.contains(character))
    }

    /// The place behind the longest of some words.
    fn over(&self, at: usize, words: &[&str]) -> Option<usize> {
        let found = words.iter().filter(|word| self.text[at..].starts_with(**word));
        found.map(|word| at + word.len()).max()
    }

    /// The meaning of the longest word of a table, and the place behind it.
    fn longest<T: Copy>(&self, at: usize, table: &WordTable<T>) -> Step<T> {
        table.longest(&self.text[at..]).map(|(meaning, length)| (meaning, at + length))
    }

    /// The place behind up to two spaces: 2023 年 5 月.
    fn over_spaces(&self, at: usize) -> usize {
        let spaces = self.text[at..].chars().take(2).take_while(|one| one.is_whitespace());
        at + spaces.map(char::len_utf8).sum::<usize>()
    }

    /// The place behind a particle between two parts of a date: 先週の金曜日.
    fn over_link(&self, at: usize) -> usize {
        let at = self.over_spaces(at);
        self.over_spaces(self.over(at, &["の", "的", "의"]).unwrap_or(at))
    }

    fn over_separator(&self, at: usize) -> Option<usize> {
        const WORDS: &[&str] = &[
            "和", "与", "與", "及", "以及", "或", "或者", "跟", "と", "や", "、", ",", "，", "와",
            "과", "및",
        ];
        Some(self.over_spaces(self.over(self.over_spaces(at), WORDS)?))
    }

    fn number(&self, at: usize) -> Step<Number> {
        Number::read(&self.text[at..]).map(|(number, length)| (number, at + length))
    }

    /// The word that begins at a place and is no part of others.
    fn term(&self, at: usize) -> Step<Term> {
        let (term, end) = self.longest(at, &TERMS)?;
        let (first, before, behind) = (self.char(at)?, self.before(at), self.char(end));
        let word = &self.text[at..end];
        let is_apart = if is_hangul(first) {
            !before.is_some_and(is_hangul)
        } else if word.chars().all(is_kana) {
            let ends = behind.is_none_or(|behind| !is_kana(behind) || PARTICLES.contains(behind));
            !before.is_some_and(is_kana) && ends
        } else {
            !before.is_some_and(|before| is_torn(word, before))
        };
        let goes_on = behind.is_some_and(|behind| goes_on(word, behind));
        (is_apart && !goes_on).then_some((term, end))
    }

    /// Whether no word goes on at the end of a Hangul word but with a particle.
    fn ends_hangul(&self, at: usize) -> bool {
        let behind = self.char(at);
        behind.is_none_or(|behind| !is_hangul(behind) || HANGUL_PARTICLES.contains(behind))
    }

    /// The place behind a character, a word or a number: no date begins inside them.
    fn behind(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        let Some(first) = rest.chars().next() else { return self.text.len() };
        if first.is_ascii_alphanumeric() || first == '_' {
            return at + length_of_run(rest);
        }
        let numerals = rest.chars().take_while(|one| is_numeral(*one)).map(char::len_utf8);
        at + numerals.sum::<usize>().max(first.len_utf8())
    }
}

/// Bytes of the letters and digits that begin a text, with the marks between them.
fn length_of_run(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_word =
        |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let joins = |at: usize| b".,:/-".contains(&bytes[at]) && is_word(at + 1);
    let mut end = 0;
    while end < bytes.len() && (is_word(end) || joins(end)) {
        end += 1;
    }
    end.max(1)
}
