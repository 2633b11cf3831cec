//! The first sentences of a text.

use std::borrow::Cow;

use super::sentences::{is_closing, is_dot, is_full_stop, sentences};

pub(super) const ELLIPSIS: char = '…';

/// Cut a text behind its first `max_sentences` sentences.
///
/// The result is the text up to there as it stands, with "…" in the place of the final full stop, or
/// behind another mark; quotes and brackets that close behind the full stop stay. A text of no more
/// sentences is returned as it is, with its white space. None are taken as one. Reads little further
/// than the sentences kept.
///
/// # Examples
/// ```
/// use mnemic_core::text::clip;
///
/// assert_eq!(clip("One. Two. Three.", 2), "One. Two…");
/// assert_eq!(clip("Really? \"Yes.\" Good.", 2), "Really? \"Yes…\"");
/// assert_eq!(clip("One. Two", 2), "One. Two");
/// ```
pub fn clip(text: &str, max_sentences: usize) -> Cow<'_, str> {
    let mut places = sentences(text).skip(max_sentences.max(1) - 1);
    match (places.next(), places.next()) {
        (Some(last), Some(_)) => Cow::Owned(with_ellipsis(&text[..last.end])),
        _ => Cow::Borrowed(text),
    }
}

/// A cut text with an ellipsis at its end, in the place of the dots that end it.
pub(super) fn with_ellipsis(kept: &str) -> String {
    let words = kept.trim_end_matches(is_closing);
    let closing = &kept[words.len()..];
    let mut text = String::with_capacity(kept.len() + ELLIPSIS.len_utf8());
    match without_full_stop(words) {
        Some(words) => text.extend([words, "…", closing]),
        None => text.extend([kept, "…"]),
    }
    text
}

/// A text without the full stop, or the dots, at its end.
fn without_full_stop(text: &str) -> Option<&str> {
    let last = text.chars().next_back().filter(|one| is_full_stop(*one) || is_dot(*one))?;
    let shorter = &text[..text.len() - last.len_utf8()];
    Some(if is_dot(last) { shorter.trim_end_matches(is_dot) } else { shorter })
}
