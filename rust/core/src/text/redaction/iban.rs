//! International bank account numbers, ISO 13616.

use std::ops::Range;

use super::characters::{HYPHENS, before_break, ends_word, joint, line_break, starts_word};
use super::places::Place;

/// Characters of a number of each country, from the registry of SWIFT, release 99.
const LENGTHS: [([u8; 2], usize); 89] = [
    (*b"AD", 24),
    (*b"AE", 23),
    (*b"AL", 28),
    (*b"AT", 20),
    (*b"AZ", 28),
    (*b"BA", 20),
    (*b"BE", 16),
    (*b"BG", 22),
    (*b"BH", 22),
    (*b"BI", 27),
    (*b"BR", 29),
    (*b"BY", 28),
    (*b"CH", 21),
    (*b"CR", 22),
    (*b"CY", 28),
    (*b"CZ", 24),
    (*b"DE", 22),
    (*b"DJ", 27),
    (*b"DK", 18),
    (*b"DO", 28),
    (*b"EE", 20),
    (*b"EG", 29),
    (*b"ES", 24),
    (*b"FI", 18),
    (*b"FK", 18),
    (*b"FO", 18),
    (*b"FR", 27),
    (*b"GB", 22),
    (*b"GE", 22),
    (*b"GI", 23),
    (*b"GL", 18),
    (*b"GR", 27),
    (*b"GT", 28),
    (*b"HN", 28),
    (*b"HR", 21),
    (*b"HU", 28),
    (*b"IE", 22),
    (*b"IL", 23),
    (*b"IQ", 23),
    (*b"IS", 26),
    (*b"IT", 27),
    (*b"JO", 30),
    (*b"KW", 30),
    (*b"KZ", 20),
    (*b"LB", 28),
    (*b"LC", 32),
    (*b"LI", 21),
    (*b"LT", 20),
    (*b"LU", 20),
    (*b"LV", 21),
    (*b"LY", 25),
    (*b"MC", 27),
    (*b"MD", 24),
    (*b"ME", 22),
    (*b"MK", 19),
    (*b"MN", 20),
    (*b"MR", 27),
    (*b"MT", 31),
    (*b"MU", 30),
    (*b"NI", 28),
    (*b"NL", 18),
    (*b"NO", 15),
    (*b"OM", 23),
    (*b"PK", 24),
    (*b"PL", 28),
    (*b"PS", 29),
    (*b"PT", 25),
    (*b"QA", 29),
    (*b"RO", 24),
    (*b"RS", 22),
    (*b"RU", 33),
    (*b"SA", 24),
    (*b"SC", 31),
    (*b"SD", 18),
    (*b"SE", 24),
    (*b"SI", 19),
    (*b"SK", 24),
    (*b"SM", 27),
    (*b"SO", 23),
    (*b"ST", 25),
    (*b"SV", 28),
    (*b"TL", 23),
    (*b"TN", 24),
    (*b"TR", 26),
    (*b"UA", 29),
    (*b"VA", 22),
    (*b"VG", 24),
    (*b"XK", 20),
    (*b"YE", 30),
];

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
    let name = country.map(|letter| letter.to_ascii_uppercase());
    let index = LENGTHS.binary_search_by_key(&name, |(each, _)| *each).ok()?;
    Some(LENGTHS[index].1)
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
