//! Abbreviations and other words that decide about a full stop, by language.
//!
//! The lists of all languages are read together: a memory may mix them, and detection needs more
//! text than a sentence has. Where languages disagree about a word, the stronger class counts.

use std::sync::LazyLock;

use super::super::word_table::{WordTable, Words, in_lower_case, list};

const FILE: &str = include_str!("../../../data/sentences.txt");

/// Classes of abbreviations, by what a sentence goes on with behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Numbers: a word of its own, such as "no" and "art", in other places.
    BeforeNumber,
    /// Also words in lower case.
    BeforeLower,
    /// Also words in upper case, but for those that begin many sentences.
    BeforeName,
    /// Everything: titles, "e.g.".
    Always,
}

static CLASSES: LazyLock<WordTable<Class>> = LazyLock::new(|| {
    let of = |class, name| list(FILE, name).map(move |word| (word, class));
    let classes = of(Class::Always, "always")
        .chain(of(Class::BeforeName, "before name"))
        .chain(of(Class::BeforeLower, "before lower"))
        .chain(of(Class::BeforeNumber, "before number"));
    WordTable::new(classes)
});

/// Abbreviations behind a number.
pub(super) static UNITS: Words = Words::new(|| WordTable::of_list(FILE, "units"));
/// Words with a single letter behind them that is no initial: "vitamin C".
pub(super) static LABELS: Words = Words::new(|| WordTable::of_list(FILE, "labels"));
/// Words that begin many sentences and no names.
pub(super) static STARTERS: Words = Words::new(|| WordTable::of_list(FILE, "starters"));
/// Months, in languages whose ordinals have a full stop.
pub(super) static MONTHS: Words = Words::new(|| WordTable::of_list(FILE, "months"));
/// Words without a vowel that are no abbreviations.
pub(super) static INTERJECTIONS: Words = Words::new(|| WordTable::of_list(FILE, "interjections"));
pub(super) static TIMES_OF_DAY: Words = Words::new(|| WordTable::of_list(FILE, "times of day"));
/// Days of the week, and time zones.
pub(super) static WEEKDAYS: Words = Words::new(|| WordTable::of_list(FILE, "weekdays"));
/// Names that end in a mark.
pub(super) static BRANDS: Words = Words::new(|| WordTable::of_list(FILE, "brands"));
/// Words behind which a number with a full stop is an ordinal.
pub(super) static DETERMINERS: Words = Words::new(|| WordTable::of_list(FILE, "determiners"));

/// The class of an abbreviation, which is given without its last full stop.
pub(super) fn class(word: &str) -> Option<Class> {
    let in_any_case = in_lower_case([word], |word| {
        CLASSES.get(word).or_else(|| is_street(word).then_some(Class::BeforeName))
    });
    in_any_case.max(CLASSES.get(word.as_bytes()))
}

/// The class of an abbreviation in two words, such as "z. B.".
pub(super) fn class_of_pair(first: &str, second: &str) -> Option<Class> {
    in_lower_case([first, ".", second], |word| CLASSES.get(word))
}

/// Whether a German street: "Hauptstr".
fn is_street(word: &[u8]) -> bool {
    word.len() > 4 && word.ends_with(b"str")
}

#[cfg(test)]
mod tests {
    use super::super::super::word_table::listed;
    use super::*;

    #[test]
    fn every_list_is_read() {
        let tables = [
            &UNITS,
            &LABELS,
            &STARTERS,
            &MONTHS,
            &INTERJECTIONS,
            &TIMES_OF_DAY,
            &WEEKDAYS,
            &BRANDS,
            &DETERMINERS,
        ];
        for (name, word) in listed(FILE) {
            let is_read = CLASSES.get(word.as_bytes()).is_some()
                || tables.iter().any(|table| table.has(word));
            assert!(is_read, "{name}: {word}");
        }
        assert_eq!((class("Me"), class("me")), (Some(Class::BeforeName), None));
        assert_eq!(class("art"), Some(Class::BeforeNumber));
    }
}
