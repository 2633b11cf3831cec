//! The words that make or surround a date.

use std::sync::LazyLock;

use serde::Deserialize;

use super::super::word_table::{WordTable, named};

static WORDS: LazyLock<WordTable<Word>> =
    LazyLock::new(|| WordTable::of(include_str!("../../../data/dates_english.txt"), meaning));

/// The meaning of a word in dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    /// 1 to 12, and other meanings of the word.
    Month(i64, Reading),
    /// 0 for Monday to 6, and whether the word needs its capital to be a day.
    Weekday(i64, Reading),
    /// First month of the season.
    Season(i64, Reading),
    Quarter(i64),
    /// A unit, and whether it stands in the plural.
    Unit(Unit, bool),
    Count(i64),
    /// A number that those before and behind it multiply and add to: hundred, dozen.
    Scale(i64),
    /// A word that makes a length of time one that is not read: thousand, point, decade.
    Uncounted,
    Ordinal(i64),
    Half,
    /// Days from today.
    Relative(i64),
    PartOfDay,
    /// Early, middle or late third; whether "of" must follow.
    Third(i64, bool),
    Last,
    This,
    Next,
    Past,
    Ago,
    From,
    Now,
    Between,
    And,
    Or,
    Until,
    Before,
    After,
    By,
    In,
    During,
    Since,
    On,
    Of,
    The,
    /// A measure that "of" joins to a number: "a budget of 2000".
    Quantity,
    /// A word that makes a number something else than a date: "version 2.1.2023".
    Numbered,
    /// Any other word that may follow a date but is never counted.
    Function,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unit {
    Minute,
    Hour,
    Day,
    Weekend,
    Week,
    Month,
    Quarter,
    Year,
}

/// How easily a word is something else than the date it can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reading {
    /// Nothing else.
    Only,
    /// Also a person: June.
    Name,
    /// Also a common word when it has no capital: may, march, sat, fall.
    Common,
    /// Of another language than English.
    Foreign,
    /// French March; also a planet, which has a capital.
    Mars,
}

/// No word of the table has more bytes.
const LONGEST: usize = 10;

/// Look a word up, whatever its case.
pub(super) fn look_up(word: &str) -> Option<Word> {
    if word.len() > LONGEST { None } else { WORDS.get_in_any_case(word) }
}

/// The meaning of the words of a list, by what it is called.
pub(super) fn meaning(list: &str) -> Option<Word> {
    let (kind, rest) = list.split_once(' ').unwrap_or((list, ""));
    let (value, reading) = rest.split_once(' ').unwrap_or((rest, "only"));
    let number = || value.parse().ok();
    match kind {
        "month" => Some(Word::Month(number()?, named(reading)?)),
        "weekday" => Some(Word::Weekday(number()?, named(reading)?)),
        "season" => Some(Word::Season(number()?, named(reading)?)),
        "quarter" => number().map(Word::Quarter),
        "unit" => Some(Word::Unit(named(value)?, false)),
        "units" => Some(Word::Unit(named(value)?, true)),
        "count" => number().map(Word::Count),
        "scale" => number().map(Word::Scale),
        "ordinal" => number().map(Word::Ordinal),
        "relative" => number().map(Word::Relative),
        "third" => Some(Word::Third(number()?, reading == "of")),
        _ => named(list),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::word_table::listed;
    use super::*;

    #[test]
    fn every_word_is_found_in_any_case() {
        for (list, word) in listed(include_str!("../../../data/dates_english.txt")) {
            assert!(word.len() <= LONGEST, "{word}");
            assert!(meaning(list).is_some(), "{list}");
            assert_eq!(look_up(word), meaning(list));
            assert_eq!(look_up(&word.to_uppercase()), meaning(list));
        }
    }

    #[test]
    fn words_outside_the_table_mean_nothing() {
        for word in ["", "ma", "mayo1", "junes", "Septemberfest", "İİİİİ", "日", "ẞ"] {
            assert_eq!(look_up(word), None, "{word}");
        }
    }
}
