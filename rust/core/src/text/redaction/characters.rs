//! Characters beside a match, digits of several scripts, scripts without spaces.

/// The first characters of the digits that are found: ASCII, full-width, Arabic-Indic, Persian and
/// Devanagari. Others would cost a look-up for each character of their scripts.
const ZEROS: [char; 5] = ['0', '０', '٠', '۰', '०'];

/// The value of a digit.
pub(super) fn digit_value(character: char) -> Option<u32> {
    if character.is_ascii() {
        return character.to_digit(10);
    }
    let value = |zero: char| u32::from(character).checked_sub(u32::from(zero));
    ZEROS.into_iter().filter_map(value).find(|value| *value < 10)
}

pub(super) fn is_digit(character: char) -> bool {
    digit_value(character).is_some()
}

pub(super) fn before(text: &str, at: usize) -> Option<char> {
    text[..at].chars().next_back()
}

pub(super) fn after(text: &str, at: usize) -> Option<char> {
    text[at..].chars().next()
}

/// Whether a match may begin at a place: no ASCII letter, digit or underscore stands before it.
///
/// Letters of other scripts bound a match: 号码4111… has a number in it.
pub(super) fn starts_word(text: &str, at: usize) -> bool {
    !before(text, at).is_some_and(is_word)
}

/// Whether a match may end at a place.
pub(super) fn ends_word(text: &str, at: usize) -> bool {
    !after(text, at).is_some_and(is_word)
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || is_digit(character)
}

/// Whether a digit stands before a place, with one of `joins` between.
pub(super) fn follows_digit(text: &str, at: usize, joins: &[char]) -> bool {
    let mut earlier = text[..at].chars().rev();
    earlier.next().is_some_and(|join| joins.contains(&join)) && earlier.next().is_some_and(is_digit)
}

/// Whether a digit stands after a place, with one of `joins` between.
pub(super) fn precedes_digit(text: &str, at: usize, joins: &[char]) -> bool {
    let mut later = text[at..].chars();
    later.next().is_some_and(|join| joins.contains(&join)) && later.next().is_some_and(is_digit)
}

/// Hyphens and dashes that people put between groups of digits.
pub(super) const HYPHENS: [char; 7] = ['-', '‐', '‑', '‒', '–', '−', '－'];

/// Spaces within a line.
pub(super) const SPACES: [char; 5] = [' ', '\u{A0}', '\u{2009}', '\u{202F}', '\u{3000}'];

/// Whether a character belongs to a script whose words touch each other or other scripts' words.
pub(super) fn is_unspaced(character: char) -> bool {
    matches!(u32::from(character),
        0x0E00..=0x0EFF // Thai, Lao
        | 0x1000..=0x11FF // Myanmar, Hangul Jamo
        | 0x1780..=0x17FF // Khmer
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x9FFF | 0xA960..=0xA97F // kana, Han
        | 0xAC00..=0xD7FF // Hangul, whose particles follow a word without a space
        | 0xF900..=0xFAFF | 0xFF66..=0xFFDC | 0x1_B000..=0x1_B16F | 0x2_0000..=0x3_FFFF)
}
