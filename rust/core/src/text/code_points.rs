//! Sets of characters by their code points, read from the files of `data/`.

use std::sync::LazyLock;

use icu_properties::PropertyParser;
use icu_properties::props::Script;

use super::word_table::list;

/// First and last code points, ascending.
pub(super) type CodePoints = LazyLock<Vec<(u32, u32)>>;

/// The ranges of a list whose words are code points, or two with a hyphen between, in hexadecimal.
///
/// # Panics
///
/// If a word is no such number.
pub(super) fn ranges(file: &'static str, name: &'static str) -> Vec<(u32, u32)> {
    list(file, name).map(range).collect()
}

/// The code points of a word: one, or two with a hyphen between.
pub(super) fn range(word: &str) -> (u32, u32) {
    let code = |digits| u32::from_str_radix(digits, 16).expect("hexadecimal digits");
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    (code(first), code(last))
}

pub(super) fn is_in(ranges: &[(u32, u32)], character: char) -> bool {
    let code = u32::from(character);
    let after = ranges.partition_point(|(first, _)| *first <= code);
    after > 0 && code <= ranges[after - 1].1
}

/// The script of a name in Unicode.
///
/// # Panics
///
/// If there is none.
pub(super) fn script(name: &str) -> Script {
    PropertyParser::<Script>::new().get_strict(name).expect("the name of a script")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_range_are_in_it() {
        let ranges = ranges("a: 41-43, 61", "a");
        assert_eq!(
            "@ABCDa`b".chars().filter(|one| is_in(&ranges, *one)).collect::<String>(),
            "ABCa"
        );
    }
}
