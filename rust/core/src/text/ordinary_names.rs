//! Names that are ordinary English words as well, and words in front of names.

use super::word_table::{WordTable, Words};

const FILE: &str = include_str!("../../data/names.txt");

/// Names and labels that a sentence may hold as words of its own; stop words such as "will" are
/// listed by their language.
pub(crate) static ORDINARY: Words = Words::new(|| WordTable::of_list(FILE, "ordinary"));
/// Words that stand in front of many names and are no first names.
pub(crate) static TITLES: Words = Words::new(|| WordTable::of_list(FILE, "titles"));
/// Words behind which a word in other case is no name.
pub(crate) static DETERMINERS: Words = Words::new(|| WordTable::of_list(FILE, "determiners"));
/// Words that open a turn and that the name of the addressed often follows.
pub(super) static GREETINGS: Words = Words::new(|| WordTable::of_list(FILE, "greetings"));
/// Words that may stand beside a greeting.
pub(super) static FILLERS: Words = Words::new(|| WordTable::of_list(FILE, "fillers"));

#[cfg(test)]
mod tests {
    use super::super::word_table::listed;
    use super::*;

    #[test]
    fn every_list_is_read() {
        let tables = [&ORDINARY, &TITLES, &DETERMINERS, &GREETINGS, &FILLERS];
        assert!(listed(FILE).all(|(_, word)| tables.iter().any(|table| table.has(word))));
        assert!(["amber", "mark", "summer"].into_iter().all(|word| ORDINARY.has(word)));
        assert!(["a", "mr", "uncle"].into_iter().all(|word| TITLES.has(word)));
        assert!(["a", "the", "your"].into_iter().all(|word| DETERMINERS.has(word)));
        assert!(!ORDINARY.has("elise") && !TITLES.has("ana"));
    }
}
