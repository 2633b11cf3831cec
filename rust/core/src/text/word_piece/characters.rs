//! How uncased BERT models read a character.
//!
//! A character is read by itself: the canonical order of marks, which depends on neighbours, only
//! concerns marks that are dropped and characters that no vocabulary of these models holds. Nor
//! does that order say where a token ends: a text cut at the place that a mark would move to can
//! lack the mark.

use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};

use super::classes::{Class, class_of};

const NFD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfd();

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// A part of a word.
    Letter(char),
    /// A word of its own.
    Alone(char),
    /// The end of a word.
    Space,
}

/// Give the parts that `character` consists of, in order; none if it is dropped.
pub(super) fn read(character: char, mut give: impl FnMut(Reading)) {
    if character.is_ascii_alphanumeric() {
        give(Reading::Letter(character.to_ascii_lowercase()));
    } else if character.is_ascii_punctuation() {
        give(Reading::Alone(character));
    } else if character == ' ' {
        give(Reading::Space);
    } else {
        match class_of(character) {
            Some(Class::Spaces) => give(Reading::Space),
            Some(Class::Ideographs) => parts(character, |part| give(Reading::Alone(part))),
            Some(Class::Controls) => {}
            _ => parts(character, |part| give(letter_or_mark(part))),
        }
    }
}

/// The small letters of the canonical decomposition, without accents.
fn parts(character: char, give: impl FnMut(char)) {
    let decomposed = NFD.normalize_iter(std::iter::once(character));
    let kept = decomposed.filter(|part| class_of(*part) != Some(Class::Marks));
    kept.flat_map(char::to_lowercase).for_each(give);
}

fn letter_or_mark(part: char) -> Reading {
    if class_of(part) == Some(Class::Punctuation) {
        Reading::Alone(part)
    } else {
        Reading::Letter(part)
    }
}
