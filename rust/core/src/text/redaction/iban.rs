//! International bank account numbers, ISO 13616.

use std::ops::Range;

use super::characters::{HYPHENS, SPACES, ends_word, starts_word};
use super::places::Place;

/// Characters of a number of each country, from the registry of SWIFT, release 99.
const LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BI", 27),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DJ", 27),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FK", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HN", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MN", 20),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NI", 28),
    ("NL", 18),
    ("NO", 15),
    ("OM", 23),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("RU", 33),
    ("SA", 24),
    ("SC", 31),
    ("SD", 18),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("SO", 23),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
    ("YE", 30),
];

/// The number whose check digits stand at a place, behind the letters of a country.
pub(super) fn iban(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at, count, floor } = place;
    let start = at.checked_sub(2).filter(|start| *start >= floor && count > 1)?;
    let country = text.get(start..at)?;
    let len = length(country).filter(|_| starts_word(text, start))?;
    let end = end(&text[at..], len - 2)? + at;
    (ends_word(text, end) && is_iban(&text[start..end])).then_some(start..end)
}

/// Whether the letters and digits of a text are a number with valid check digits.
pub(super) fn is_iban(text: &str) -> bool {
    let is_long = |len| text.chars().filter(char::is_ascii_alphanumeric).count() == len;
    text.get(..2).and_then(length).is_some_and(is_long) && remainder(text) == Some(1)
}

fn length(country: &str) -> Option<usize> {
    let found = LENGTHS.iter().find(|(name, _)| name.eq_ignore_ascii_case(country));
    found.map(|(_, len)| *len)
}

/// The end of so many letters and digits, with single spaces or hyphens between them.
fn end(text: &str, len: usize) -> Option<usize> {
    let mut left = len;
    let mut was_joined = true;
    for (at, letter) in text.char_indices() {
        if letter.is_ascii_alphanumeric() {
            left -= 1;
            was_joined = false;
        } else if was_joined || !(SPACES.contains(&letter) || HYPHENS.contains(&letter)) {
            return None;
        } else {
            was_joined = true;
        }
        if left == 0 {
            return Some(at + 1);
        }
    }
    None
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
