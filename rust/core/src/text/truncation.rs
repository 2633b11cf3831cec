//! Texts cut to a number of tokens or characters.

use std::borrow::Cow;

use unicode_segmentation::GraphemeCursor;

use super::clipping::{ELLIPSIS, without_full_stop};
use super::sentences::is_spaceless;
use super::token_estimate::{QUARTERS, quarters};

/// A word of more characters is cut inside.
const LONGEST_WORD: usize = 32;

/// Cut a text to an estimated number of tokens, the ellipsis at its end among them.
///
/// A text that fits is returned as it is. A longer one ends behind a word, or between two characters
/// of a script without spaces, or inside a word of more than 32 characters, with "…" behind it; user-
/// perceived characters (grapheme clusters) stay whole. A comma, colon or full stop before the "…" is
/// left out. Without space for the ellipsis the result is empty. Reads little further than the kept
/// text.
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

fn truncated(text: &str, limit: usize, cost: fn(char) -> usize) -> Cow<'_, str> {
    if text.len().saturating_mul(cost('a')) <= limit && text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let for_words = limit.checked_sub(cost(ELLIPSIS));
    let (mut spent, mut fitting) = (0_usize, 0);
    for (at, character) in text.char_indices() {
        spent += cost(character);
        if for_words.is_some_and(|limit| spent <= limit) {
            fitting = at + character.len_utf8();
        } else if spent > limit {
            return Cow::Owned(for_words.map_or_else(String::new, |_| cut(text, fitting)));
        }
    }
    Cow::Borrowed(text)
}

/// The end of the beginning of a text that costs so much at most: the whole text if it fits, else behind
/// a word or a grapheme cluster, and behind a character at least.
pub(super) fn end_of_part(text: &str, limit: usize, cost: fn(char) -> usize) -> usize {
    let (mut spent, mut fitting) = (0_usize, 0);
    for character in text.chars() {
        spent += cost(character);
        if spent > limit && fitting > 0 {
            let end = end_of_word(text, end_of_grapheme(text, fitting));
            return if end > 0 { end } else { fitting };
        }
        fitting += character.len_utf8();
    }
    text.len()
}

/// The part of a text that ends near a place, without the pause at its end, and an ellipsis.
fn cut(text: &str, fitting: usize) -> String {
    let end = end_of_word(text, end_of_grapheme(text, fitting));
    let kept = text[..end].trim_end_matches(|one: char| one.is_whitespace() || is_pause(one));
    let kept = without_full_stop(kept).unwrap_or(kept);
    [kept, "…"].concat()
}

fn is_pause(character: char) -> bool {
    matches!(character, ',' | ';' | ':' | '，' | '、' | '；' | '：' | '،' | '؛')
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
    // A mark on the last character before the word counts as a part of the word.
    if is_near { end_of_grapheme(text, at - part) } else { at }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;
    use crate::text::estimate_tokens;
    use crate::text::sentences::tests::any_text;

    #[test]
    fn a_cut_lies_behind_a_word_if_one_ends_near_it() {
        for (text, max, wanted) in [
            ("tea for two", 11, "tea for two"),
            ("tea for two", 10, "tea for…"),
            ("tea for two", 8, "tea for…"),
            ("tea for two", 7, "tea…"),
            ("tea, for two", 6, "tea…"),
            ("So. Then", 5, "So…"),
            ("Wait... then", 9, "Wait…"),
            ("unbelievable", 5, "unbe…"),
            ("a unbelievable", 5, "a…"),
            ("两个人的茶", 4, "两个人…"),
            ("see 两个人的茶", 7, "see 两个…"),
            ("ขอบคุณครับ", 6, "ขอบคุ…"),
            ("  tea for two", 4, "…"),
            ("tea", 1, "…"),
            ("tea", 0, ""),
            ("", 0, ""),
        ] {
            assert_eq!(truncate(text, max), wanted, "{text:?} {max}");
        }
        let long = format!("a {}", "x".repeat(40));
        assert_eq!(truncate(&long, 36), format!("a {}…", "x".repeat(33)));
    }

    #[test]
    fn grapheme_clusters_stay_whole() {
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(truncate(&format!("a{family}b"), 5), "a…");
        assert_eq!(truncate(&format!("a{family}bc"), 7), format!("a{family}…"));
        assert_eq!(truncate("🇩🇪🇫🇷🇮🇹", 4), "🇩🇪…");
        assert_eq!(truncate("cafe\u{301}s", 5), "caf…");
        assert_eq!(truncate("क्षत्रिय", 3), "…");
        assert_eq!(truncate("ab 你\u{10f46}cdef", 7), "ab…");
        assert_eq!(truncate_to_tokens(&"\u{301}".repeat(100), 10), "…");
    }

    #[test]
    fn tokens_are_those_of_the_estimate_and_the_ellipsis_is_one_of_them() {
        assert_eq!(truncate_to_tokens("tea for two", 3), "tea for two");
        assert_eq!(truncate_to_tokens("tea for two", 2), "tea…");
        assert_eq!(truncate_to_tokens("两个人的茶", 3), "两个…");
        assert_eq!(truncate_to_tokens("чай на двоих", 5), "чай на…");
        assert_eq!(truncate_to_tokens("tea for two", 1), "te…");
        assert_eq!(truncate_to_tokens("tea for two", 0), "");
        assert_eq!(truncate_to_tokens("tea", usize::MAX), "tea");
    }

    #[test]
    fn long_runs_of_joining_characters_are_cut_at_once() {
        for unit in ["\u{301}", "\u{200d}", "🇩", "👩\u{200d}", "क्", "e\u{301}", "\r\n", "ᄀ"]
        {
            let text = unit.repeat(100_000);
            let half = text.chars().count() / 2;
            assert!(truncate(&text, half).chars().count() <= half);
        }
    }

    proptest! {
        #[test]
        fn a_truncated_text_is_within_its_limit_and_a_start_of_the_whole(
            text in any_text(), max in 0_usize..80
        ) {
            let (tokens, characters) = (truncate_to_tokens(&text, max), truncate(&text, max));
            prop_assert!(estimate_tokens(&tokens) <= max);
            prop_assert!(characters.chars().count() <= max);
            prop_assert_eq!(tokens == text, estimate_tokens(&text) <= max);
            prop_assert_eq!(characters == text, text.chars().count() <= max);
            let boundaries: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
            for cut in [&tokens, &characters] {
                let kept = cut.strip_suffix(ELLIPSIS).unwrap_or(cut);
                prop_assert!(text.starts_with(kept));
                prop_assert!(kept.len() == text.len() || kept.is_empty() || boundaries.contains(&kept.len()));
            }
        }

        #[test]
        fn little_more_than_a_word_is_lost(words in "[a-z]{1,20}( [a-z]{1,20}){0,20}", max in 1_usize..200) {
            let kept = truncate(&words, max).chars().count();
            prop_assert!(kept == words.len() || kept + 22 > max);
        }
    }
}
