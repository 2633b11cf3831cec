//! The normal form of the rule `nmt_nfkc` of sentencepiece, by which XLM-RoBERTa reads texts.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::unicode::NFKC;

/// The wide tilde, which stands for "to" in Japanese and Korean; the rule leaves it as it is.
const WAVE: char = '\u{FF5E}';

/// What some characters of a text are read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading<'a> {
    /// The next part of a word.
    Letters(&'a str),
    /// The end of a word.
    Space,
    /// They are left out.
    Nothing,
}

/// Give the readings of a text in order, each with the number of its characters, until one is no
/// longer wanted.
///
/// A character is normalised together with the marks on it.
pub(super) fn read(text: &str, mut give: impl FnMut(usize, Reading<'_>) -> bool) {
    let mut rest = text;
    while !rest.is_empty() {
        let cluster = first_cluster(rest);
        rest = &rest[cluster.len()..];
        let is_plain = cluster.len() == 1 && !cluster.as_bytes()[0].is_ascii_control();
        let wants_more = if is_plain && cluster != " " {
            give(1, Reading::Letters(cluster))
        } else {
            read_cluster(cluster, &mut give)
        };
        if !wants_more {
            return;
        }
    }
}

/// The first character of a text that is not empty, with the marks on it.
fn first_cluster(text: &str) -> &str {
    let bytes = text.as_bytes();
    let is_alone = bytes[0].is_ascii() && bytes.get(1).is_none_or(u8::is_ascii);
    if is_alone { &text[..1] } else { text.graphemes(true).next().unwrap_or(text) }
}

/// Read what stands between characters that are left out or part words.
fn read_cluster(cluster: &str, give: &mut impl FnMut(usize, Reading<'_>) -> bool) -> bool {
    let mut rest = cluster;
    while let Some((at, character, reading)) = first_apart(rest) {
        let (before, after) = (&rest[..at], &rest[at + character.len_utf8()..]);
        if !(give_letters(before, give) && give(1, reading)) {
            return false;
        }
        rest = after;
    }
    give_letters(rest, give)
}

/// The first character that is no part of a word, and its reading.
fn first_apart(text: &str) -> Option<(usize, char, Reading<'static>)> {
    text.char_indices().find_map(|(at, character)| Some((at, character, apart(character)?)))
}

/// The reading of a character that is no part of a word: those of the rule, and spaces that NFKC
/// would make of it.
fn apart(character: char) -> Option<Reading<'static>> {
    match character {
        '\t'
        | '\n'
        | '\u{C}'
        | '\r'
        | ' '
        | '\u{A0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200F}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202F}'
        | '\u{205F}'
        | '\u{2581}'
        | '\u{3000}'
        | '\u{FEFF}'
        | '\u{FFFD}' => Some(Reading::Space),
        '\0'..='\u{1F}' | '\u{7F}' | '\u{8F}' | '\u{9F}' => Some(Reading::Nothing),
        _ => None,
    }
}

/// Give the normal form, whose spaces part words.
fn give_letters(text: &str, give: &mut impl FnMut(usize, Reading<'_>) -> bool) -> bool {
    if text.is_empty() {
        return true;
    }
    let characters = text.chars().count();
    let form = if text.starts_with(WAVE) { text.into() } else { NFKC.normalize(text) };
    if !form.contains(' ') {
        return give(characters, Reading::Letters(&form));
    }
    let mut wants_more = give(characters, Reading::Nothing);
    for (at, letters) in form.split(' ').enumerate() {
        wants_more = wants_more && (at == 0 || give(0, Reading::Space));
        wants_more = wants_more && (letters.is_empty() || give(0, Reading::Letters(letters)));
    }
    wants_more
}
