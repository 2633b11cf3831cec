//! The first word behind the white space after a mark.

use super::characters::{is_dash, is_emoji, is_in_word, is_line_end, is_opening, mark};
use super::reader::Reader;

/// So many quotes, brackets, dashes and spaces are read over before the first letter.
const MOST_OPENING: usize = 16;
/// No word that is looked for has more bytes.
const LONGEST_WORD: usize = 32;
/// More line ends are as good as two.
const BLANK: usize = 2;

/// Kinds of first characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The end of the text.
    End,
    /// Quotes, brackets, dashes and marks up to the end of the line.
    Signs,
    Lower,
    Upper,
    Caseless,
    Digit,
    Other,
}

/// The start of the text that follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Following<'t> {
    pub(super) kind: Kind,
    /// Behind the white space.
    pub(super) start: usize,
    /// Number of line ends in the white space; 2 stand for more.
    pub(super) lines: usize,
    /// Whether a dash comes before the word.
    pub(super) has_dash: bool,
    /// The letters and digits of the first word, or some of them.
    pub(super) word: &'t str,
    /// The character behind the word.
    pub(super) next: Option<char>,
}

impl<'t> Following<'t> {
    pub(super) fn of(reader: &Reader<'t>, at: usize) -> Self {
        let (start, lines) = gap(reader, at);
        let (word_start, has_dash) = without_opening(reader, start);
        let word_end = end_of_word(reader, word_start);
        Self {
            kind: kind(reader, start, word_start),
            start,
            lines,
            has_dash,
            word: &reader.text[word_start..word_end],
            next: reader.at(word_end),
        }
    }
}

/// The place behind white space, and the number of line ends in it, at most 2.
pub(super) fn gap(reader: &Reader<'_>, mut at: usize) -> (usize, usize) {
    let (mut lines, mut before) = (0, None);
    while let Some(character) = reader.at(at).filter(|one| one.is_whitespace()) {
        lines += match character {
            '\n' if before == Some('\r') => 0,
            '\u{c}' | '\u{2029}' => BLANK,
            _ if is_line_end(character) => 1,
            _ => 0,
        };
        before = Some(character);
        at += character.len_utf8();
    }
    (at, lines.min(BLANK))
}

fn without_opening(reader: &Reader<'_>, mut at: usize) -> (usize, bool) {
    let mut has_dash = false;
    for _ in 0..MOST_OPENING {
        let Some(character) = reader.at(at) else { break };
        let is_space = character.is_whitespace() && !is_line_end(character);
        if !(is_space || is_dash(character) || is_opening(character) || is_number_sign(character)) {
            break;
        }
        has_dash |= is_dash(character);
        at += character.len_utf8();
    }
    (at, has_dash)
}

/// Signs that stand before a number.
fn is_number_sign(character: char) -> bool {
    matches!(character, '$' | '#' | '+' | '§' | '£' | '¥' | '±' | '№' | '\u{20a0}'..='\u{20cf}')
}

fn end_of_word(reader: &Reader<'_>, start: usize) -> usize {
    let mut at = start;
    while let Some(character) = reader.at(at).filter(|one| is_in_word(*one)) {
        if at + character.len_utf8() - start > LONGEST_WORD {
            break;
        }
        at += character.len_utf8();
    }
    at
}

fn kind(reader: &Reader<'_>, start: usize, word_start: usize) -> Kind {
    let behind = if word_start == start {
        word_start
    } else {
        let marks_end = reader.skip(word_start, |one| mark(one).is_some());
        reader.skip(marks_end, |one| one.is_whitespace() && !is_line_end(one))
    };
    match reader.at(word_start) {
        None if start == word_start => Kind::End,
        _ if reader.at(behind).is_none_or(is_line_end) => Kind::Signs,
        Some(one) if one.is_numeric() => Kind::Digit,
        Some(one) if one.is_lowercase() => Kind::Lower,
        Some(one) if one.is_uppercase() => Kind::Upper,
        Some(one) if is_in_word(one) => Kind::Caseless,
        _ => Kind::Other,
    }
}

/// The place behind emoji and emoticons that stand apart behind a mark, and further marks, before
/// white space or the end.
pub(super) fn emoji(reader: &Reader<'_>, at: usize) -> Option<usize> {
    let mut end = at;
    loop {
        let next = reader.skip(end, |one| one == ' ');
        let behind = emoticon(reader, next).unwrap_or_else(|| reader.skip(next, is_emoji));
        if behind == next {
            break;
        }
        end = behind;
    }
    if end == at {
        return None;
    }
    let end = reader.skip(end, |one| mark(one).is_some());
    reader.at(end).is_none_or(char::is_whitespace).then_some(end)
}

/// The place behind a face of letters and signs: ":)", ";-D", ":'(", "<3", "xD", "^^".
fn emoticon(reader: &Reader<'_>, at: usize) -> Option<usize> {
    const WHOLE: [&str; 6] = ["<3", "xD", "XD", "^^", "^_^", "\\o/"];
    let rest = &reader.text[at..];
    let length = WHOLE.iter().find(|face| rest.starts_with(**face)).map(|face| face.len());
    let end = at + length.or_else(|| face(rest.as_bytes()))?;
    reader.at(end).is_none_or(|next| next.is_whitespace() || mark(next).is_some()).then_some(end)
}

/// The length of eyes, a nose perhaps, and some of one mouth.
fn face(bytes: &[u8]) -> Option<usize> {
    let eyes = bytes.first().filter(|byte| b":;=".contains(byte))?;
    let nose = usize::from(bytes.get(1).is_some_and(|byte| b"-'^o".contains(byte)));
    let mouth =
        bytes.get(1 + nose).filter(|byte| b")(]DPpOo3/|*".contains(byte) && *byte != eyes)?;
    let mouths = bytes[1 + nose..].iter().take_while(|byte| *byte == mouth).count();
    Some(1 + nose + mouths)
}
