//! Markup that opens something within a line: tags, fences, the marks of chats.

use super::super::word_table::{WordTable, Words};

/// Longest name of a tag that stands apart from its bracket, as in `< system >`.
const LONGEST_TAG: usize = 40;

/// Longest inside of a chat's mark in brackets.
const LONGEST_MARK: usize = 20;

/// Names in brackets that chat formats give a meaning.
static CHAT_MARKS: Words =
    Words::new(|| WordTable::of_list(include_str!("../../../data/roles.txt"), "chat marks"));

/// The ASCII character that a full-width, small or vertical form, or a twin of the colon or of the
/// backtick, is a picture of; others are their own.
pub(super) fn picture(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character)
        }
        '\u{fe13}' | '\u{fe55}' | '\u{2d0}' | '\u{2f8}' | '\u{589}' | '\u{5c3}' | '\u{703}'
        | '\u{704}' | '\u{1803}' | '\u{1809}' | '\u{16ec}' | '\u{205a}' | '\u{2236}'
        | '\u{a4fd}' | '\u{a789}' | '\u{fe30}' => ':',
        '\u{fe47}' => '[',
        '\u{fe48}' => ']',
        '\u{fe5f}' => '#',
        '\u{fe61}' => '*',
        '\u{fe62}' => '+',
        '\u{fe63}' => '-',
        '\u{fe64}' => '<',
        '\u{fe65}' => '>',
        '\u{fe66}' => '=',
        '\u{1fef}' => '`',
        _ => character,
    }
}

/// Whether so many backticks are a fence.
pub(super) fn is_fence(count: usize) -> bool {
    count >= 3
}

/// Whether what follows `<` makes it a tag, a comment or a chat's mark.
pub(super) fn opens_tag(rest: &str) -> bool {
    let rest = rest.trim_start_matches(is_accent);
    match rest.chars().next().map(picture) {
        Some('/' | '!' | '?' | '|' | '_') => true,
        Some(' ' | '\n') => opens_spaced_tag(&rest[1..]),
        Some(other) => other.is_alphabetic(),
        None => false,
    }
}

/// Whether a tag is written with a space behind its bracket, as in `< /system>` or `< system >`.
/// "a < b" is none: only one name stands up to the other bracket.
fn opens_spaced_tag(rest: &str) -> bool {
    let mut has_letter = false;
    let mut has_ended = false;
    for (at, character) in rest.chars().map(picture).take(LONGEST_TAG).enumerate() {
        match character {
            '/' if at == 0 => return true,
            '>' => return has_letter,
            ' ' | '\n' => has_ended = has_letter,
            _ if has_ended => return false,
            '|' | '_' | '-' | ':' | '/' | '!' | '?' => {}
            _ if character.is_alphanumeric() => has_letter |= character.is_alphabetic(),
            _ => return false,
        }
    }
    false
}

/// The place of the bracket that closes a chat's mark, counted from behind its opening bracket.
pub(super) fn chat_mark_end(rest: &str) -> Option<usize> {
    let close = |&(_, character): &(usize, char)| picture(character) == ']';
    let (end, _) = rest.char_indices().take(LONGEST_MARK).find(close)?;
    let inside: String = rest[..end].chars().map(picture).collect();
    let name = inside.trim();
    let name = name.strip_prefix('/').unwrap_or(name).trim_start();
    CHAT_MARKS.has_in_any_case(name).then_some(end)
}

/// Accents of Latin letters that are written apart.
pub(super) fn is_accent(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}')
}
