//! The name by which a turn addresses somebody.

use super::names::words;
use super::ordinary_names::{FILLERS, GREETINGS};

/// Longest beginning of a turn that is read.
const MAX_BYTES: usize = 80;

/// The word that a turn's body addresses somebody by at its beginning: "Kate" of "Hey Kate! How was
/// it?", of "Oh, thank you so much, Kate." and of "Good morning Kate". It begins with a capital,
/// stands behind a greeting and before a mark of punctuation or the end.
pub(crate) fn addressed(body: &str) -> Option<&str> {
    let reach = (0..=body.len().min(MAX_BYTES)).rev().find(|at| body.is_char_boundary(*at))?;
    let begin = &body[..reach];
    let mut greets = false;
    let mut end = 0;
    for (place, word) in words(begin) {
        let is_beside = begin[end..place.start].chars().all(|one| one == ',' || one == ' ');
        if !is_beside {
            return None;
        }
        let small = word.to_lowercase();
        if !(GREETINGS.has(&small) || FILLERS.has(&small)) {
            let is_name = greets && is_name(word) && ends(&body[place.end..]);
            return is_name.then_some(word);
        }
        greets |= GREETINGS.has(&small);
        end = place.end;
    }
    None
}

/// Whether a word has the form of a name: a capital, then small letters; "HEY GUYS" has none.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
}

/// Whether no word follows but behind a mark of punctuation; "Hello Kitty fans" goes on.
fn ends(rest: &str) -> bool {
    let mut rest = rest.chars();
    match rest.next() {
        None => true,
        Some('\'' | '’' | '-' | '_' | '&' | '/') => false,
        Some(one) if one.is_whitespace() => rest
            .find(|one| !one.is_whitespace())
            .is_none_or(|one| !(one.is_alphanumeric() || matches!(one, '&' | '/'))),
        Some(one) => !one.is_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_address_somebody() {
        for text in [
            "Hey Kate! How was it?",
            "hi Kate, long time",
            "Oh, thank you so much, Kate.",
            "Good morning Kate",
            "Wow, thanks Kate 😀 you are kind",
            "Hello, Kate…",
            "Привет, Kate!",
        ] {
            assert_eq!(addressed(text), Some("Kate"), "{text}");
        }
        assert_eq!(addressed("Спасибо, Катя!"), Some("Катя"));
    }

    #[test]
    fn other_openings_address_nobody() {
        for text in [
            "",
            "Kate, how was it?",
            "Wow, Kate!",
            "Hey kate!",
            "HEY GUYS!",
            "Hey! Kate came",
            "Hello Kitty fans",
            "Thanks Kate's mother",
            "Hi Anne-Marie",
            "Hey Kate & Bo",
            "Hey there, Kate",
            "Hey",
            "Thanks for Kate came",
        ] {
            assert_eq!(addressed(text), None, "{text}");
        }
    }

    #[test]
    fn a_long_turn_is_cut_between_characters() {
        assert_eq!(addressed(&format!("hey {}", "é".repeat(99))), None);
        assert_eq!(addressed(&format!("hey {}, Kate!", "oh ".repeat(40))), None);
    }
}
