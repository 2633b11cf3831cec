//! Tables of words, read from the files of `data/`, which people who know a language can edit.
//!
//! A line has the name of a list and a colon, then its words with commas between; an indented line
//! goes on with the list above it. What is behind a # at the start of a line is a comment.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::de::value::Error;
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::hashing::Keyed;

/// The longest word that is looked up in any case, in bytes.
const LONGEST: usize = 64;

/// The words of a file in its order, each behind the name of its list.
pub(crate) fn listed(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut list = "";
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(move |line| {
        let (name, words) = line.split_once(':').unwrap_or((list, line));
        list = name;
        let words = words.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.map(move |word| (name, word))
    })
}

/// The words of one list of a file, in its order.
pub(crate) fn list(
    file: &'static str,
    name: &'static str,
) -> impl Iterator<Item = &'static str> + use<> {
    listed(file).filter(move |(list, _)| *list == name).map(|(_, word)| word)
}

/// The variant of an enum that a list is called by.
pub(crate) fn named<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(name)).ok()
}

/// Words that a file lists, read when one is looked up for the first time.
pub(crate) type Words = LazyLock<WordTable<()>>;

/// Words, each with its meaning.
#[derive(Debug)]
pub(crate) struct WordTable<T> {
    /// In the order of their bytes.
    sorted: Box<[(&'static str, T)]>,
    by_word: HashMap<&'static [u8], T, Keyed>,
}

impl WordTable<()> {
    /// The words of one list of a file.
    pub(crate) fn of_list(file: &'static str, name: &'static str) -> Self {
        Self::new(list(file, name).map(|word| (word, ())))
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.get(word.as_bytes()).is_some()
    }

    pub(crate) fn has_in_any_case(&self, word: &str) -> bool {
        self.get_in_any_case(word).is_some()
    }
}

impl<T: Copy> WordTable<T> {
    /// All words of a file, whose lists are called by their meanings.
    ///
    /// # Panics
    ///
    /// If a list is called otherwise.
    pub(crate) fn of(file: &'static str, meaning: impl Fn(&'static str) -> Option<T>) -> Self {
        let known = |list| meaning(list).unwrap_or_else(|| panic!("no list is called {list:?}"));
        Self::new(listed(file).map(|(list, word)| (word, known(list))))
    }

    /// Words with their meanings, of which the first counts.
    pub(crate) fn new(words: impl Iterator<Item = (&'static str, T)>) -> Self {
        let mut words: Vec<_> = words.collect();
        words.sort_by_key(|(word, _)| *word);
        words.dedup_by_key(|(word, _)| *word);
        let by_word = words.iter().map(|(word, meaning)| (word.as_bytes(), *meaning)).collect();
        Self { sorted: words.into(), by_word }
    }

    pub(crate) fn get(&self, word: &[u8]) -> Option<T> {
        self.by_word.get(word).copied()
    }

    /// The meaning of a word in lower case; none of a word of more than 64 bytes.
    pub(crate) fn get_in_any_case(&self, word: &str) -> Option<T> {
        in_lower_case([word], |word| self.get(word))
    }

    /// Whether any word begins with a character.
    pub(crate) fn begins(&self, first: char) -> bool {
        !self.beginning_with(first).is_empty()
    }

    /// The meaning of the longest word that begins a text, and its length.
    pub(crate) fn longest(&self, text: &str) -> Option<(T, usize)> {
        let same = self.beginning_with(text.chars().next()?);
        // A word sorts before all that it begins.
        let (word, meaning) = same.iter().rfind(|(word, _)| text.starts_with(word))?;
        Some((*meaning, word.len()))
    }

    fn beginning_with(&self, first: char) -> &[(&'static str, T)] {
        let first_of = |word: &str| word.chars().next();
        let start = self.sorted.partition_point(|(word, _)| first_of(word) < Some(first));
        let words = &self.sorted[start..];
        &words[..words.partition_point(|(word, _)| word.starts_with(first))]
    }
}

/// The result of a function of some parts put together in lower case; `None` for more than 64 bytes.
pub(crate) fn in_lower_case<const N: usize, T>(
    parts: [&str; N],
    found: impl FnOnce(&[u8]) -> Option<T>,
) -> Option<T> {
    let mut buffer = [0; LONGEST];
    let mut length = 0;
    for character in parts.iter().flat_map(|part| part.chars()).flat_map(char::to_lowercase) {
        let end = length + character.len_utf8();
        character.encode_utf8(buffer.get_mut(length..end)?);
        length = end;
    }
    found(&buffer[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Two lists.\n\none: a, ab\n    abc, b\ntwo: a b\none: é\n";

    #[test]
    fn lists_go_on_in_indented_lines_and_under_the_same_name() {
        let one: Vec<&str> = list(FILE, "one").collect();
        assert_eq!(one, ["a", "ab", "abc", "b", "é"]);
        assert!(list(FILE, "two").eq(["a b"]));
    }

    #[test]
    fn the_longest_word_that_begins_a_text_counts() {
        let table = WordTable::of_list(FILE, "one");
        assert_eq!(table.longest("abba"), Some(((), 2)));
        assert_eq!(table.longest("abcd"), Some(((), 3)));
        assert_eq!(table.longest("éa"), Some(((), 2)));
        assert!(table.longest("").is_none() && table.longest("ca").is_none());
        assert!(table.begins('b') && !table.begins('c'));
    }

    #[test]
    fn words_are_found_in_any_case() {
        let table = WordTable::of_list(FILE, "one");
        assert!(table.has("é") && !table.has("É"));
        assert!(table.has_in_any_case("É") && table.has_in_any_case("ABC"));
        assert!(!table.has_in_any_case(&"a".repeat(65)));
    }

    #[test]
    fn every_file_has_a_comment_and_then_lists_of_words() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            let file: &'static str = std::fs::read_to_string(&path).expect("a text").leak();
            assert!(file.starts_with("# "), "{path:?}");
            for line in file.lines().filter(|line| !line.starts_with('#')) {
                let (name, words) = line.split_once(':').unwrap_or(("", line));
                let is_list = !words.is_empty() && !name.starts_with(' ') && !words.contains(':');
                assert!(line.is_empty() || is_list, "{path:?}: {line}");
            }
            let words: Vec<_> = listed(file).collect();
            for (list, word) in &words {
                assert!(!list.is_empty() && !word.contains("  "), "{path:?}: {list}: {word}");
            }
        }
    }
}
