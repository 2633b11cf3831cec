//! Answer types of English questions, and the types that a text could hold.

use super::names::words;
use super::word_table::{WordTable, Words};

/// A kind of answer; a bit, so that a text's kinds fit a few bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerType {
    /// A time: "When did …", "What year …".
    Time = 1,
    /// How much or how many.
    Number = 2,
    /// A name: "Who …", "Where …".
    Name = 4,
}

const FILE: &str = include_str!("../../data/questions.txt");

static TIMES: Words = Words::new(|| WordTable::of_list(FILE, "times"));
static NUMBERS: Words = Words::new(|| WordTable::of_list(FILE, "numbers"));

const TIME_ASKED: [&str; 5] = ["date", "day", "time", "month", "year"];
const NUMBER_ASKED: [&str; 5] = ["many", "much", "often", "long", "old"];

/// The answer type of a question, from its first words.
///
/// # Examples
/// ```
/// use mnemic_core::text::{AnswerType, answer_type};
///
/// assert_eq!(answer_type("When did she move?"), Some(AnswerType::Time));
/// assert_eq!(answer_type("How many cats are there?"), Some(AnswerType::Number));
/// assert_eq!(answer_type("Tell me of her cats."), None);
/// ```
pub fn answer_type(question: &str) -> Option<AnswerType> {
    let words = words(question);
    let mut first = words.iter().take(3).map(|(_, word)| word.to_lowercase());
    let [one, two, three] =
        [first.next(), first.next(), first.next()].map(Option::unwrap_or_default);
    match (one.as_str(), two.as_str()) {
        ("when", _) => Some(AnswerType::Time),
        ("what" | "which", asked) if TIME_ASKED.contains(&asked) => Some(AnswerType::Time),
        ("how", "long") if three == "ago" => Some(AnswerType::Time),
        ("how", asked) if NUMBER_ASKED.contains(&asked) => Some(AnswerType::Number),
        ("who" | "whom" | "whose" | "where", _) => Some(AnswerType::Name),
        _ => None,
    }
}

/// The kinds of answers that a text could hold, as bits of [`AnswerType`]: words of time and years,
/// numbers, and capitalised words inside a sentence.
pub(crate) fn answer_types_held(text: &str) -> u8 {
    let mut kinds = 0;
    let mut lower = String::new();
    for (place, word) in words(text) {
        lower.clear();
        lower.extend(word.chars().flat_map(char::to_lowercase));
        let word_lower = lower.as_str();
        if is_of_time(word_lower) {
            kinds |= AnswerType::Time as u8;
        }
        if is_number(word_lower) {
            kinds |= AnswerType::Number as u8;
        }
        if is_inner_name(&text[..place.start], word) {
            kinds |= AnswerType::Name as u8;
        }
    }
    kinds
}

fn is_of_time(word: &str) -> bool {
    let is_year = word.len() == 4
        && (word.starts_with("19") || word.starts_with("20"))
        && word.bytes().all(|byte| byte.is_ascii_digit());
    is_year || TIMES.has(word)
}

fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_numeric()) || NUMBERS.has(word)
}

/// Whether a word of two letters or more is capitalised inside a sentence.
fn is_inner_name(before: &str, word: &str) -> bool {
    let Some(before) = before.strip_suffix(' ') else { return false };
    let goes_on = |last: char| last.is_lowercase() || last == ',' || last == ';';
    before.ends_with(goes_on)
        && word.starts_with(char::is_uppercase)
        && word.chars().nth(1).is_some_and(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: u8 = AnswerType::Time as u8;
    const NUMBER: u8 = AnswerType::Number as u8;
    const NAME: u8 = AnswerType::Name as u8;

    #[test]
    fn the_first_words_tell_what_is_asked_for() {
        for question in
            ["when was it?", "What time is it", "Which year did it open?", "How long ago?"]
        {
            assert_eq!(answer_type(question), Some(AnswerType::Time), "{question}");
        }
        for question in ["How many were there?", "How long is it?", "how old is she"] {
            assert_eq!(answer_type(question), Some(AnswerType::Number), "{question}");
        }
        for question in ["Who came?", "Whose is it?", "where"] {
            assert_eq!(answer_type(question), Some(AnswerType::Name), "{question}");
        }
        for question in ["", "?", "What is it?", "How are you?", "Since when?", "how"] {
            assert_eq!(answer_type(question), None, "{question}");
        }
    }

    #[test]
    fn texts_hold_times_numbers_and_names() {
        assert_eq!(answer_types_held("We met last week."), TIME);
        assert_eq!(answer_types_held("Built in 1987"), TIME | NUMBER);
        assert_eq!(answer_types_held("She has two cats and 3 dogs"), NUMBER);
        assert_eq!(answer_types_held("They moved to Oslo"), NAME);
        assert_eq!(answer_types_held("Oslo is cold. Very cold. I, too"), 0);
        assert_eq!(answer_types_held("hello, Ann"), NAME);
        assert_eq!(answer_types_held("plan B was it"), 0);
        assert_eq!(answer_types_held(""), 0);
    }
}
