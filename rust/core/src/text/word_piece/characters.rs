//! How uncased BERT models read a character.
//!
//! A character is read by itself: the canonical order of marks, which depends on neighbours, only
//! concerns marks that are dropped and characters that no vocabulary of these models holds. Nor
//! does that order say where a token ends: a text cut at the place that a mark would move to can
//! lack the mark.

use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};

use super::classes::{CONTROLS, IDEOGRAPHS, MARKS, PUNCTUATION, SPACES};

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
    } else if character == ' ' || is_in(SPACES, character) {
        give(Reading::Space);
    } else if is_in(IDEOGRAPHS, character) {
        parts(character, |part| give(Reading::Alone(part)));
    } else if !is_in(CONTROLS, character) {
        parts(character, |part| give(letter_or_mark(part)));
    }
}

/// The small letters of the canonical decomposition, without accents.
fn parts(character: char, give: impl FnMut(char)) {
    let decomposed = NFD.normalize_iter(std::iter::once(character));
    let kept = decomposed.filter(|part| !is_in(MARKS, *part));
    kept.flat_map(char::to_lowercase).for_each(give);
}

fn letter_or_mark(part: char) -> Reading {
    if is_in(PUNCTUATION, part) { Reading::Alone(part) } else { Reading::Letter(part) }
}

fn is_in(ranges: &[(u32, u32)], character: char) -> bool {
    let code = u32::from(character);
    let after = ranges.partition_point(|(first, _)| *first <= code);
    after > 0 && code <= ranges[after - 1].1
}
