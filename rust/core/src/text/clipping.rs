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
fn with_ellipsis(kept: &str) -> String {
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
pub(super) fn without_full_stop(text: &str) -> Option<&str> {
    let last = text.chars().next_back().filter(|one| is_full_stop(*one) || is_dot(*one))?;
    let shorter = &text[..text.len() - last.len_utf8()];
    Some(if is_dot(last) { shorter.trim_end_matches(is_dot) } else { shorter })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::sentences::tests::any_text;

    #[test]
    fn the_ellipsis_takes_the_place_of_a_full_stop_and_follows_other_marks() {
        for (text, wanted) in [
            ("One. Two.", "One…"),
            ("One! Two.", "One!…"),
            ("One? Two.", "One?…"),
            ("One... Two.", "One…"),
            ("One… Two.", "One…"),
            ("One?... Two.", "One?…"),
            ("one\ntwo", "one…"),
            ("He said \"Go.\" Then he left.", "He said \"Go…\""),
            ("(He left.) She stayed.", "(He left…)"),
            ("\"Why?\" She left.", "\"Why?\"…"),
            ("**One.** Two.", "**One…**"),
            ("今天很好。我去。", "今天很好…"),
            ("真的？是。", "真的？…"),
            ("राम आया। सीता गई।", "राम आया…"),
            ("میں ہوں۔ تم؟", "میں ہوں…"),
            ("In the U.S.A. He left.", "In the U.S.A…"),
            ("Great. 😀 Yes.", "Great. 😀…"),
        ] {
            assert_eq!(clip(text, 1), wanted);
        }
    }

    #[test]
    fn a_clipped_text_is_the_original_up_to_the_cut() {
        assert_eq!(clip("  One.\t Two.   Three.", 2), "  One.\t Two…");
        assert_eq!(clip("One. Two. Three", 2), "One. Two…");
        for whole in ["", " ", "One. Two. ", " One\nTwo", "no end"] {
            assert!(matches!(clip(whole, 2), Cow::Borrowed(text) if text == whole), "{whole:?}");
        }
        assert_eq!(clip("One. Two.", 0), clip("One. Two.", 1));
        assert_eq!(clip("One. Two.", usize::MAX), "One. Two.");
    }

    proptest! {
        #[test]
        fn clipping_keeps_the_start_and_no_more_sentences(text in any_text(), max in 1_usize..5) {
            let clipped = clip(&text, max);
            prop_assert!(sentences(&clipped).count() <= max);
            prop_assert!(clipped.len() <= text.len() + ELLIPSIS.len_utf8());
            let is_cut = sentences(&text).count() > max;
            prop_assert_eq!(matches!(clipped, Cow::Owned(_)), is_cut);
            if is_cut {
                let (kept, closing) = clipped.rsplit_once(ELLIPSIS).expect("an ellipsis");
                prop_assert!(text.starts_with(kept));
                prop_assert!(closing.chars().all(is_closing));
            }
        }

        #[test]
        fn a_clipped_text_is_clipped_no_further(text in any_text(), max in 1_usize..5) {
            let clipped = clip(&text, max);
            prop_assert_eq!(clip(&clipped, max), clipped.as_ref());
        }
    }
}
