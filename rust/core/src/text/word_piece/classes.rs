//! The classes of characters that BERT's tokenizers have been trained with.
//!
//! They do not come from the tables of current Unicode that the rest of this crate reads.
//! `tests/embed/test_word_piece.py` reads every code point by them.

use std::sync::LazyLock;

use serde::Deserialize;

use super::super::code_points::range;
use super::super::word_table::{listed, named};

/// A class of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// Dropped: controls, formats, private use, and the replacement character.
    Controls,
    /// Between words.
    Spaces,
    /// Words of their own.
    Ideographs,
    /// Words of their own: punctuation, and the symbols of ASCII.
    Punctuation,
    /// Dropped after decomposition: nonspacing marks, accents among them.
    Marks,
}

/// First and last code points, ascending, with their class.
static CLASSES: LazyLock<Vec<((u32, u32), Class)>> = LazyLock::new(|| {
    let lists = listed(include_str!("../../../data/bert_classes.txt"));
    let class = |list| named(list).expect("a list is called by a class");
    let mut classes: Vec<_> = lists.map(|(list, word)| (range(word), class(list))).collect();
    classes.sort_by_key(|(range, _)| *range);
    classes
});

/// The class of a character that is no letter.
pub(super) fn class_of(character: char) -> Option<Class> {
    let code = u32::from(character);
    let after = CLASSES.partition_point(|((first, _), _)| *first <= code);
    let ((_, last), class) = CLASSES[after.checked_sub(1)?];
    (code <= last).then_some(class)
}
