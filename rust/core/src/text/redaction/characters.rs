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

fn before(text: &str, at: usize) -> Option<char> {
    text[..at].chars().next_back()
}

pub(super) fn after(text: &str, at: usize) -> Option<char> {
    text[at..].chars().next()
}

/// Whether a match may begin at a place: no ASCII letter or digit stands before it, nor one with
/// underscores behind it. Underscores alone may be emphasis, as in _4111…_.
///
/// Letters of other scripts bound a match: 号码4111… has a number in it.
pub(super) fn starts_word(text: &str, at: usize) -> bool {
    let bytes = &text.as_bytes()[..at];
    match bytes.last() {
        None => true,
        Some(byte) if byte.is_ascii() && *byte != b'_' => !byte.is_ascii_alphanumeric(),
        _ => {
            let underscores = bytes.iter().rev().take_while(|byte| **byte == b'_').count();
            !before(text, at - underscores).is_some_and(is_word)
        }
    }
}

/// Whether a match may end at a place.
pub(super) fn ends_word(text: &str, at: usize) -> bool {
    let underscores = text.as_bytes()[at..].iter().take_while(|byte| **byte == b'_').count();
    !after(text, at + underscores).is_some_and(is_word)
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || is_digit(character)
}

/// The length of a line break at the start of a text, with the white space around it and the marks
/// of a quotation in the next line; 0 without one.
pub(super) fn line_break(text: &str) -> usize {
    match text.as_bytes() {
        [] => return 0,
        [byte, ..] if byte.is_ascii_graphic() => return 0,
        [b' ', next, ..] if next.is_ascii_graphic() => return 0,
        _ => {}
    }
    let rest = text.trim_start();
    if !text[..text.len() - rest.len()].contains(BREAKS) {
        return 0;
    }
    text.len() - rest.trim_start_matches(is_blank).len()
}

/// The place before a line break that ends at a place, else the place itself.
pub(super) fn before_break(text: &str, at: usize) -> usize {
    if text.as_bytes()[..at].last().is_none_or(u8::is_ascii_alphanumeric) {
        return at;
    }
    let end = text[..at].trim_end_matches(is_blank).len();
    if text[end..at].contains(BREAKS) { end } else { at }
}

/// White space, and the mark of a quotation.
fn is_blank(character: char) -> bool {
    character == '>' || character.is_whitespace()
}

/// The length of a line break at the start of a text, and of emphasis beside it; either may be
/// missing.
pub(super) fn joint(text: &str) -> usize {
    if text.bytes().next().is_none_or(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return 0;
    }
    let rest = text.trim_start_matches(EMPHASIS);
    text.len() - rest[line_break(rest)..].trim_start_matches(EMPHASIS).len()
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

pub(super) const BREAKS: [char; 7] =
    ['\n', '\u{B}', '\u{C}', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Marks of emphasis, code and deletion in Markdown.
pub(super) const EMPHASIS: [char; 4] = ['*', '_', '`', '~'];

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
