//! International bank account numbers, ISO 13616.

use std::ops::Range;
use std::sync::LazyLock;

use super::super::word_table::WordTable;
use super::characters::{HYPHENS, before_break, ends_word, joint, line_break, starts_word};
use super::places::Place;

/// Characters of a number of each country.
static LENGTHS: LazyLock<WordTable<usize>> = LazyLock::new(|| {
    WordTable::of(include_str!("../../../data/iban_lengths.txt"), |list| list.parse().ok())
});

/// The number whose check digits stand at a place, behind the letters of a country.
pub(super) fn iban(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at, count, is_broken, floor } = place;
    let bytes = text.as_bytes();
    if !bytes[at].is_ascii_digit() || (count < 2 && !is_broken) {
        return None;
    }
    let second = letter_before(text, at)?;
    let start = letter_before(text, second).filter(|start| *start >= floor)?;
    let len = length([bytes[start], bytes[second]]).filter(|_| starts_word(text, start))?;
    let end = end(&text[at..], len - 2)? + at;
    (ends_word(text, end) && is_iban(&text[start..end])).then_some(start..end)
}

/// Whether the letters and digits of a text are a number with valid check digits.
pub(super) fn is_iban(text: &str) -> bool {
    let is_long = |len| text.chars().filter(char::is_ascii_alphanumeric).count() == len;
    let mut letters = text.bytes().filter(u8::is_ascii_alphanumeric);
    let country = letters.next().zip(letters.next());
    country.and_then(|(first, second)| length([first, second])).is_some_and(is_long)
        && remainder(text) == Some(1)
}

/// The place of a letter before another place, in its line or in the one before.
fn letter_before(text: &str, at: usize) -> Option<usize> {
    let before = before_break(text, at).checked_sub(1)?;
    text.as_bytes()[before].is_ascii_alphabetic().then_some(before)
}

fn length(country: [u8; 2]) -> Option<usize> {
    LENGTHS.get(&country.map(|letter| letter.to_ascii_uppercase()))
}

/// The end of so many letters and digits, with single spaces or hyphens between them, line breaks
/// anywhere, and emphasis beside a space.
fn end(text: &str, len: usize) -> Option<usize> {
    let (mut at, mut left) = (0, len);
    let mut was_joined = true;
    while left > 0 {
        let next = text[at..].chars().next()?;
        if next.is_ascii_alphanumeric() {
            left -= 1;
            was_joined = false;
            at += 1;
            continue;
        }
        let joint = joint(&text[at..]);
        let is_apart = was_joined || line_break(&text[at..]) > 0 || ends_word(text, at + joint);
        if joint > 0 && is_apart {
            at += joint;
        } else if was_joined || !(next.is_whitespace() || HYPHENS.contains(&next)) {
            return None;
        } else {
            was_joined = true;
            at += next.len_utf8();
        }
    }
    Some(at)
}

/// The remainder by 97 of the number that has its first four characters at its end, with letters as
/// 10 to 35.
fn remainder(text: &str) -> Option<u32> {
    let values = || text.chars().filter_map(|letter| letter.to_digit(36));
    let append =
        |number: u32, value: u32| (number * if value < 10 { 10 } else { 100 } + value) % 97;
    let has_digits = values().skip(2).take(2).all(|value| value < 10);
    has_digits.then(|| values().skip(4).chain(values().take(4)).fold(0, append))
}
