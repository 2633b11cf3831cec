//! The words of Chinese, Japanese and Korean that make or surround a date.

use std::sync::LazyLock;

use serde::Deserialize;

use super::super::super::word_table::{WordTable, named};
use super::super::vocabulary::Unit;

pub(super) static TERMS: LazyLock<WordTable<Term>> =
    LazyLock::new(|| WordTable::of(include_str!("../../../../data/dates_east_asian.txt"), meaning));

/// Units behind a number.
pub(super) static UNITS: LazyLock<WordTable<Unit>> = LazyLock::new(|| {
    WordTable::of(include_str!("../../../../data/dates_east_asian_units.txt"), named)
});

/// Korean numerals before a unit.
pub(super) static KOREAN: LazyLock<WordTable<i64>> = LazyLock::new(|| {
    WordTable::of(include_str!("../../../../data/korean_numbers.txt"), |list| list.parse().ok())
});

/// Periods of Chinese behind a step.
pub(super) static PERIODS: LazyLock<WordTable<Unit>> =
    LazyLock::new(|| WordTable::of(include_str!("../../../../data/chinese_periods.txt"), named));

/// Words with the characters before and behind them that make other words of them.
static TORN: LazyLock<WordTable<&str>> = LazyLock::new(|| {
    WordTable::of(include_str!("../../../../data/dates_east_asian_torn.txt"), Some)
});
static LONGER: LazyLock<WordTable<&str>> = LazyLock::new(|| {
    WordTable::of(include_str!("../../../../data/dates_east_asian_longer.txt"), Some)
});

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Term {
    /// Days from today.
    Day(i64),
    /// A period of the calendar, so many from today's.
    Period(Unit, i64),
    /// A length of time without a number of its own: 半年, 이틀.
    Length(Unit, i64),
    /// 0 for Monday to 6.
    Weekday(i64),
    /// The last, this or the next, before a day of the week.
    Step(i64),
    /// The last of a number of units.
    Recent,
    /// The year before the first of an era.
    Era(i64),
    /// A word that makes a date none of the calendar: every year, of the lunar calendar.
    Void,
}

/// The meaning of the words of a list, by what it is called.
fn meaning(list: &str) -> Option<Term> {
    let parts: Vec<&str> = list.split(' ').collect();
    let number = parts.get(1).and_then(|number| number.parse().ok());
    match parts[..] {
        ["day", _] => number.map(Term::Day),
        ["weekday", _] => number.map(Term::Weekday),
        ["step", _] => number.map(Term::Step),
        ["era", _] => number.map(Term::Era),
        ["period", _, unit] => Some(Term::Period(named(unit)?, number?)),
        ["length", _, unit] => Some(Term::Length(named(unit)?, number?)),
        _ => named(list),
    }
}

/// Whether the character behind a word makes a name or another word of it: 明日香, 日曜大工.
pub(super) fn goes_on(word: &str, behind: char) -> bool {
    LONGER.get(word.as_bytes()).is_some_and(|others| others.contains(behind))
}

/// Whether a word is only the end of another and the begin of a third: 以前 天气 has 前天.
pub(super) fn is_torn(word: &str, before: char) -> bool {
    TORN.get(word.as_bytes()).is_some_and(|others| others.contains(before))
}

#[cfg(test)]
mod tests {
    use super::super::super::super::word_table::listed;
    use super::*;

    #[test]
    fn every_word_is_found() {
        for (list, word) in listed(include_str!("../../../../data/dates_east_asian.txt")) {
            let meaning = meaning(list).expect("a meaning");
            assert_eq!(TERMS.longest(word), Some((meaning, word.len())), "{word}");
        }
        for (list, word) in listed(include_str!("../../../../data/dates_east_asian_units.txt")) {
            let unit = named(list).expect("a unit");
            assert_eq!(UNITS.longest(word), Some((unit, word.len())), "{word}");
        }
        let torn = include_str!("../../../../data/dates_east_asian_torn.txt");
        let longer = include_str!("../../../../data/dates_east_asian_longer.txt");
        assert!(
            listed(torn)
                .chain(listed(longer))
                .all(|(_, word)| TERMS.get(word.as_bytes()).is_some())
        );
        assert_eq!(TERMS.longest("東京"), None);
        assert_eq!(PERIODS.longest("周末"), Some((Unit::Weekend, "周末".len())));
        assert_eq!(KOREAN.longest("스물"), Some((20, "스물".len())));
    }
}
