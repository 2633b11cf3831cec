//! The word before a full stop, which may have the full stop for itself.

use super::abbreviations::{self, Class};
use super::characters::{is_dash, is_in_word, is_joining, is_opening, is_spaceless};
use super::reader::Reader;

/// No abbreviation has more bytes.
const LONGEST: usize = 40;
/// Numbers of more digits are no ordinals and mark no items of a list.
const LONGEST_ORDINAL: usize = 3;
const LONGEST_ROMAN: usize = 5;
const LONGEST_WITHOUT_VOWEL: usize = 5;

/// Kinds of words before a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Abbreviation(Class),
    /// One letter, as of a name.
    Initial,
    /// A letter behind a number, such as a unit.
    Unit,
    /// A number in so many digits.
    Number(usize),
    Roman,
    Plain,
}

/// A word with its full stops and hyphens inside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preceding<'t> {
    pub(super) start: usize,
    pub(super) word: &'t str,
    pub(super) kind: Kind,
}

/// The word that ends before a full stop at `at`, in a sentence from `start` on.
pub(super) fn word<'t>(reader: &Reader<'t>, start: usize, at: usize) -> Preceding<'t> {
    let word_start = start_of(reader, start, at).unwrap_or(at);
    let word = &reader.text[word_start..at];
    let is_free = word_start == start
        || reader.before(word_start).is_some_and(|one| {
            one.is_whitespace() || is_opening(one) || is_dash(one) || is_spaceless(one)
        });
    let kind = if word.is_empty() || !is_free {
        Kind::Plain
    } else {
        kind(reader, start, word_start, word)
    };
    Preceding { start: word_start, word, kind }
}

fn start_of(reader: &Reader<'_>, start: usize, at: usize) -> Option<usize> {
    let is_spaceless_word = reader.before(at).is_some_and(is_spaceless);
    let lowest = at.saturating_sub(LONGEST).max(start);
    let in_word = |one: char| {
        matches!(one, '.' | '-' | '\'' | '’' | '\u{2011}' | '&')
            || is_in_word(one) && is_spaceless(one) == is_spaceless_word
    };
    let mut place = at;
    while place > start {
        let Some(character) = reader.before(place).filter(|one| in_word(*one)) else { break };
        place -= character.len_utf8();
        if place < lowest {
            return None;
        }
    }
    Some(
        place + reader.text[place..at].len()
            - reader.text[place..at].trim_start_matches(|one| !is_in_word(one)).len(),
    )
}

fn kind(reader: &Reader<'_>, start: usize, word_start: usize, word: &str) -> Kind {
    if word.chars().all(char::is_numeric) {
        return Kind::Number(word.chars().count());
    }
    if let Some(class) = class_of_pair(reader, start, word_start).or_else(|| class(word)) {
        return Kind::Abbreviation(class);
    }
    if is_letter(word) {
        let is_unit =
            word.starts_with(char::is_lowercase) && follows_number(reader, start, word_start);
        return if is_unit { Kind::Unit } else { Kind::Initial };
    }
    if is_roman(word) {
        return Kind::Roman;
    }
    if has_no_vowel(word) {
        return Kind::Abbreviation(Class::BeforeLower);
    }
    Kind::Plain
}

fn class(word: &str) -> Option<Class> {
    let last = word.rsplit(['-', '\u{2011}', '\'', '’']).next();
    let known = abbreviations::class(word).or_else(|| last.and_then(abbreviations::class));
    known.or_else(|| is_initialism(word).then_some(Class::BeforeName))
}

/// The class of an abbreviation of two words, such as "z. B." and "p. ej.".
fn class_of_pair(reader: &Reader<'_>, start: usize, word_start: usize) -> Option<Class> {
    let end = reader.skip_back(word_start, start, |one| matches!(one, ' ' | '\u{a0}' | '\u{202f}'));
    if end == word_start || end == start || reader.before(end) != Some('.') {
        return None;
    }
    let first_start = start_of(reader, start, end - 1)?;
    let pair = &reader.text[first_start..];
    abbreviations::class_of_pair(&pair[..end - 1 - first_start], word_of(reader, word_start))
}

fn word_of<'t>(reader: &Reader<'t>, start: usize) -> &'t str {
    let rest = &reader.text[start..];
    let end = rest.find(|one| !is_in_word(one)).unwrap_or(rest.len());
    &rest[..end]
}

/// Whether a word is one letter with its marks, as Indian initials have them.
pub(super) fn is_letter(word: &str) -> bool {
    let mut characters = word.chars();
    characters.next().is_some_and(char::is_alphabetic) && characters.all(is_joining)
}

/// Whether letters stand between full stops or hyphens one by one, as in "U.S.A" and "J.-P".
fn is_initialism(word: &str) -> bool {
    word.contains('.') && word.split(['.', '-']).all(|part| part.is_empty() || is_letter(part))
}

fn is_roman(word: &str) -> bool {
    (2..=2 * LONGEST_ROMAN).contains(&word.len())
        && word.bytes().all(|byte| matches!(byte, b'I' | b'V' | b'X' | b'L' | b'C'))
}

fn follows_number(reader: &Reader<'_>, start: usize, word_start: usize) -> bool {
    let end = reader.skip_back(word_start, start, |one| matches!(one, ' ' | '\u{a0}' | '\u{202f}'));
    end > start && reader.before(end).is_some_and(char::is_numeric)
}

/// Whether a short word has no vowel, as most abbreviations that no list has.
fn has_no_vowel(word: &str) -> bool {
    (2..=LONGEST_WITHOUT_VOWEL).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
        && !word.bytes().any(|byte| b"aeiouyAEIOUY".contains(&byte))
        && !abbreviations::is_interjection(word)
}

/// Whether a word marks an item of a list, if it is the first of a sentence: "1.", "2.3.", "b.", "iv.".
pub(super) fn is_marker(word: &str) -> bool {
    let is_number = |part: &str| {
        (1..=LONGEST_ORDINAL).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_letter(word)
        || word.split('.').all(is_number)
        || word.len() <= LONGEST_ROMAN && word.bytes().all(|byte| b"ivxIVX".contains(&byte))
}

/// Whether the word before a number makes an ordinal of it in German: "am 3. Tag".
pub(super) fn is_determined(reader: &Reader<'_>, start: usize, number: usize) -> bool {
    let end = reader.without_white_before(number, start);
    let word_start = start_of(reader, start, end);
    word_start.is_some_and(|place| {
        end < number && abbreviations::makes_ordinals(&reader.text[place..end])
    })
}
