//! Texts cut to a number of tokens or characters.

use std::borrow::Cow;

use unicode_segmentation::GraphemeCursor;

use super::clipping::ELLIPSIS;
use super::sentences::is_spaceless;
use super::token_estimate::{QUARTERS, quarters};

/// A word of more characters is cut inside.
const LONGEST_WORD: usize = 32;

/// Cut a text to an estimated number of tokens, the ellipsis at its end among them.
///
/// A text that fits is returned as it is. A longer one ends behind a word, or between two characters
/// of a script without spaces, or inside a word of more than 32 characters, with "…" behind it; user-
/// perceived characters (grapheme clusters) stay whole. Without room for the ellipsis the result is
/// empty. Reads little further than the kept text.
///
/// # Examples
/// ```
/// use mnemic_core::text::truncate_to_tokens;
///
/// assert_eq!(truncate_to_tokens("tea for two", 3), "tea for two");
/// assert_eq!(truncate_to_tokens("tea for two", 2), "tea…");
/// assert_eq!(truncate_to_tokens("tea for two", 0), "");
/// ```
pub fn truncate_to_tokens(text: &str, max_tokens: usize) -> Cow<'_, str> {
    truncated(text, max_tokens.saturating_mul(QUARTERS), quarters)
}

/// Cut a text to a number of characters (code points), the ellipsis at its end among them.
///
/// As [`truncate_to_tokens`] otherwise.
///
/// # Examples
/// ```
/// use mnemic_core::text::truncate;
///
/// assert_eq!(truncate("tea for two", 9), "tea for…");
/// assert_eq!(truncate("两个人的茶", 4), "两个人…");
/// ```
pub fn truncate(text: &str, max_characters: usize) -> Cow<'_, str> {
    truncated(text, max_characters, |_| 1)
}

fn truncated(text: &str, room: usize, cost: fn(char) -> usize) -> Cow<'_, str> {
    if text.len().saturating_mul(cost('a')) <= room && text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let for_words = room.checked_sub(cost(ELLIPSIS));
    let (mut spent, mut fitting) = (0_usize, 0);
    for (at, character) in text.char_indices() {
        spent += cost(character);
        if for_words.is_some_and(|room| spent <= room) {
            fitting = at + character.len_utf8();
        } else if spent > room {
            return Cow::Owned(for_words.map_or_else(String::new, |_| cut(text, fitting)));
        }
    }
    Cow::Borrowed(text)
}

/// The part of a text that ends near a place, and an ellipsis.
fn cut(text: &str, fitting: usize) -> String {
    let end = end_of_word(text, end_of_grapheme(text, fitting));
    let mut kept = text[..end].trim_end().to_owned();
    kept.push(ELLIPSIS);
    kept
}

/// The last boundary between grapheme clusters up to a place.
fn end_of_grapheme(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    if cursor.is_boundary(text, 0).unwrap_or(true) {
        return at;
    }
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// The end of the last whole word up to a place, or the place itself without one near it.
fn end_of_word(text: &str, at: usize) -> usize {
    let is_within = |character: char| !character.is_whitespace() && !is_spaceless(character);
    let (kept, rest) = text.split_at(at);
    if !(rest.starts_with(is_within) && kept.ends_with(is_within)) {
        return at;
    }
    let part: usize = kept
        .chars()
        .rev()
        .take_while(|one| is_within(*one))
        .take(LONGEST_WORD + 1)
        .map(char::len_utf8)
        .sum();
    let is_near = kept[at - part..].chars().count() <= LONGEST_WORD && part < at;
    if is_near { at - part } else { at }
}
