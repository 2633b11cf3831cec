//! The word before a full stop, which may have the full stop for itself.

use super::abbreviations::{self, Class, DETERMINERS, INTERJECTIONS, LABELS, UNITS};
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
    /// A letter with a vowel sign.
    Marked,
    /// A unit behind a number.
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
    /// Whether a number with a full stop stands before it, as in a date.
    pub(super) follows_stop: bool,
}

/// The word that ends before a full stop at `at`, in a sentence from `start` on.
pub(super) fn word<'t>(reader: &Reader<'t>, at: usize) -> Preceding<'t> {
    let word_start = start_of(reader, at).unwrap_or(at);
    let word = &reader.text[word_start..at];
    let is_free = word_start == reader.start
        || reader.before(word_start).is_some_and(|one| {
            one.is_whitespace() || is_opening(one) || is_dash(one) || is_spaceless(one)
        });
    let kind =
        if word.is_empty() || !is_free { Kind::Plain } else { kind(reader, word_start, word) };
    let follows_stop = matches!(kind, Kind::Number(_))
        && word_before(reader, word_start).is_some_and(|word| word.chars().all(char::is_numeric));
    Preceding { start: word_start, word, kind, follows_stop }
}

fn start_of(reader: &Reader<'_>, at: usize) -> Option<usize> {
    let is_spaceless_word = reader.before(at).is_some_and(is_spaceless);
    let lowest = at.saturating_sub(LONGEST).max(reader.start);
    let in_word = |one: char| {
        matches!(one, '.' | '-' | '\'' | '’' | '\u{2011}' | '&')
            || is_in_word(one) && is_spaceless(one) == is_spaceless_word
    };
    let mut place = at;
    while place > reader.start {
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

fn kind(reader: &Reader<'_>, word_start: usize, word: &str) -> Kind {
    if word.chars().all(char::is_numeric) {
        return Kind::Number(word.chars().count());
    }
    let before = word_before(reader, word_start);
    let of_pair = before.and_then(|before| abbreviations::class_of_pair(before, word));
    if let Some(class) = of_pair {
        return Kind::Abbreviation(class);
    }
    let is_one = is_letter(word);
    let is_capital = word.starts_with(char::is_uppercase);
    let may_be_unit = is_one && word.starts_with(char::is_lowercase)
        || UNITS.has_in_any_case(word)
            && !(is_capital && (is_one || class(word) == Some(Class::BeforeName)));
    if may_be_unit && follows_number(reader, word_start) {
        return Kind::Unit;
    }
    if is_one {
        return letter(reader, word_start, word, before);
    }
    if let Some(class) = class(word) {
        return Kind::Abbreviation(class);
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
    let last = word.rsplit(['-', '\u{2011}', '\'', '’']).next().filter(|last| !is_letter(last));
    let known = abbreviations::class(word).or_else(|| last.and_then(abbreviations::class));
    known.or_else(|| is_initialism(word).then_some(Class::BeforeName))
}

/// The kind of one letter. With a vowel sign it may be a word of an Indian language, but is none
/// behind another such letter with a full stop.
fn letter(reader: &Reader<'_>, word_start: usize, word: &str, before: Option<&str>) -> Kind {
    let is_upper = word.starts_with(char::is_uppercase);
    if let Some(class) = abbreviations::class(word).filter(|_| !is_upper) {
        return Kind::Abbreviation(class.max(Class::BeforeLower));
    }
    if word.starts_with(char::is_lowercase) {
        return Kind::Abbreviation(Class::BeforeLower);
    }
    let is_marked = word.chars().nth(1).is_some() && is_caseless(word);
    if is_marked && !before.is_some_and(is_letter) {
        Kind::Marked
    } else if is_upper && is_labelled(reader, word_start) {
        Kind::Plain
    } else {
        Kind::Initial
    }
}

fn is_labelled(reader: &Reader<'_>, word_start: usize) -> bool {
    let end = reader.skip_back(word_start, reader.start, is_thin_space);
    let label = start_of(reader, end).filter(|_| end < word_start);
    label.is_some_and(|label| LABELS.has_in_any_case(&reader.text[label..end]))
}

fn is_caseless(word: &str) -> bool {
    !word.starts_with(|one: char| one.is_lowercase() || one.is_uppercase())
}

/// The word before another one and white space, if it has a full stop: the "z" of "z. B.".
fn word_before<'t>(reader: &Reader<'t>, word_start: usize) -> Option<&'t str> {
    let end = reader.skip_back(word_start, reader.start, is_thin_space);
    if end == word_start || end == reader.start || reader.before(end) != Some('.') {
        return None;
    }
    let first_start = start_of(reader, end - 1)?;
    Some(&reader.text[first_start..end - 1])
}

fn is_thin_space(character: char) -> bool {
    matches!(character, ' ' | '\u{a0}' | '\u{202f}')
}

/// Whether a word is one letter, with the vowel signs of Indian initials.
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

fn follows_number(reader: &Reader<'_>, word_start: usize) -> bool {
    let end = reader
        .skip_back(word_start, reader.start, |one| matches!(one, ' ' | '\u{a0}' | '\u{202f}'));
    if end == reader.start || reader.before(end).is_some_and(char::is_numeric) {
        return end > reader.start;
    }
    let number_start = start_of(reader, end).filter(|_| end < word_start);
    number_start.is_some_and(|number_start| {
        let number = &reader.text[number_start..end];
        is_roman(number) || number.strip_suffix('.').is_some_and(|word| UNITS.has_in_any_case(word))
    })
}

/// Whether a short word has no vowel, as most abbreviations that no list has.
fn has_no_vowel(word: &str) -> bool {
    (2..=LONGEST_WITHOUT_VOWEL).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
        && !word.bytes().any(|byte| b"aeiouyAEIOUY".contains(&byte))
        && !INTERJECTIONS.has_in_any_case(word)
}

/// Whether a word marks an item of a list, if it is the first of a sentence: "1.", "2.3.", "b.", "iv.".
pub(super) fn is_marker(word: &str) -> bool {
    let is_one = word.chars().nth(1).is_none() && is_letter(word);
    let is_number = |part: &str| {
        (1..=LONGEST_ORDINAL).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_one
        || word.split('.').all(is_number)
        || word.len() <= LONGEST_ROMAN && word.bytes().all(|byte| b"ivxIVX".contains(&byte))
}

/// Whether the word before a number makes an ordinal of it in German, as in "am 3. Tag" but not in
/// "I am 30. Anna".
pub(super) fn is_determined(reader: &Reader<'_>, number: usize) -> bool {
    let word = |end: usize| {
        let word_end = reader.without_white_before(end);
        let word_start = start_of(reader, word_end).filter(|_| word_end < end)?;
        Some((word_start, &reader.text[word_start..word_end]))
    };
    word(number).is_some_and(|(place, determiner)| {
        let is_english = || word(place).is_some_and(|(_, word)| word.eq_ignore_ascii_case("i"));
        DETERMINERS.has_in_any_case(determiner)
            && !(determiner.eq_ignore_ascii_case("am") && is_english())
    })
}
