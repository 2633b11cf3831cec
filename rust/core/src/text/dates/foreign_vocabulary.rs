//! The words of German, French, Spanish and Italian that count days and lengths of time from today.

use std::sync::LazyLock;

use serde::Deserialize;

use super::super::word_table::{WordTable, named};
use super::vocabulary::Word::{self, Count};
use super::vocabulary::meaning as part;

static WORDS: LazyLock<WordTable<Foreign>> =
    LazyLock::new(|| WordTable::of(include_str!("../../../data/dates_foreign.txt"), meaning));

/// The meaning of a word in these languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Foreign {
    /// Before a length of time: "vor drei Tagen", "hace tres días".
    Ago,
    /// The same behind it: "tre giorni fa".
    Behind,
    /// The first word of "il y a trois jours".
    Il,
    /// Makes it a length up to now: "desde hace tres días".
    Since,
    /// Before yesterday it is the day before: "l'altro ieri", "antes de ayer".
    Other,
    /// Days from today.
    Day(i64),
    /// Yesterday in French, here in German.
    Hier,
    /// −1, 0 or 1 beside a unit: "letzte Woche", "la semaine dernière".
    Turn(i64, Side, Gender),
    /// A part of a length of time, as the English word.
    Part(Word),
}

/// Where a word may stand beside its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    Before,
    After,
    Either,
}

/// A week is feminine in all four languages: "el fin de semana pasado" is no week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Gender {
    Feminine,
    Masculine,
    Any,
}

use Foreign::{Day, Part, Turn};

/// "siebenunddreissig"; longer words are not made lower-case.
const LONGEST: usize = 18;

/// Look a word up, whatever its case. Numbers have two parts: "fünfundvierzig", "ventotto",
/// "treintaicinco".
pub(super) fn look_up(word: &str) -> Option<Foreign> {
    let word = (word.len() <= LONGEST).then(|| word.to_lowercase())?;
    let known = |word: &str| WORDS.get(word.as_bytes());
    let count = |word: &str| match known(word) {
        Some(Part(Count(count))) => Some(count),
        _ => None,
    };
    known(&word).or_else(|| german_turn(&word)).or_else(|| {
        let (tens, ones) = match word.split_once("und") {
            Some((ones, tens)) => (count(tens)?, count(ones)?),
            None => southern_parts(&word, &count)?,
        };
        ((20..).contains(&tens) && (1..=9).contains(&ones)).then_some(Part(Count(tens + ones)))
    })
}

/// "vent-uno", "trenta-due", "treinta-i-cinco": all tens have "nt" before their vowel, which is lost
/// before another one.
fn southern_parts(word: &str, count: &impl Fn(&str) -> Option<i64>) -> Option<(i64, i64)> {
    let at = word.find("nt")? + 2;
    let (stem, rest) = word.split_at(at);
    if let Some(ones) = rest.strip_prefix(['a', 'i']) {
        return Some((count(&word[..=at])?, count(ones.strip_prefix('i').unwrap_or(ones))?));
    }
    let ones = count(rest).filter(|ones| matches!(ones, 1 | 8))?;
    let tens = ["a", "i"].iter().find_map(|vowel| count(&[stem, vowel].concat()))?;
    Some((tens, ones))
}

/// "letzte", "vorigen", "dieser", whatever their endings.
fn german_turn(word: &str) -> Option<Foreign> {
    let stem = ["e", "en", "er", "es", "em"].iter().find_map(|ending| word.strip_suffix(ending))?;
    let step = match stem {
        "vorletzt" => -2,
        "letzt" | "vergangen" | "vorig" => -1,
        "dies" => 0,
        "nächst" | "naechst" | "kommend" => 1,
        _ => return None,
    };
    Some(Turn(step, Side::Before, Gender::Any))
}

/// The meaning of the words of a list, by what it is called.
fn meaning(list: &str) -> Option<Foreign> {
    let parts: Vec<&str> = list.split(' ').collect();
    match parts[..] {
        ["day", days] => days.parse().ok().map(Day),
        ["turn", step, side, gender] => {
            Some(Turn(step.parse().ok()?, named(side)?, named(gender)?))
        }
        _ => named(list).or_else(|| part(list).map(Part)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::word_table::listed;
    use super::*;

    #[test]
    fn every_word_is_found_and_none_is_an_english_one() {
        for (list, word) in listed(include_str!("../../../data/dates_foreign.txt")) {
            assert!(word.len() <= LONGEST, "{word}");
            assert!(meaning(list).is_some(), "{list}");
            assert_eq!(look_up(word), meaning(list));
            assert_eq!(super::super::vocabulary::look_up(word), None, "{word}");
        }
    }

    #[test]
    fn numbers_are_read_in_two_parts() {
        for (word, number) in [
            ("einundzwanzig", 21),
            ("fünfundvierzig", 45),
            ("neunundneunzig", 99),
            ("ventun", 21),
            ("ventotto", 28),
            ("trentatré", 33),
            ("quarantadue", 42),
            ("novantanove", 99),
            ("treintaiuno", 31),
            ("cuarentaiséis", 46),
        ] {
            assert_eq!(look_up(word), Some(Part(Count(number))));
        }
        for word in [
            "und",
            "zwanzigundeins",
            "zwanzigeins",
            "ventdue",
            "ventidieci",
            "diecidue",
            "trentacento",
            "wanted",
            "zehnundzwanzig",
            "einundzehn",
            "hundert und",
            "hundertundeins",
        ] {
            assert!(!matches!(look_up(word), Some(Part(Count(_)))), "{word}");
        }
    }
}
