//! The normal form in which two texts count as the same memory (C030, C031).

use std::borrow::Cow;

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};

use super::boundary::is_boundary;

const CASES: CaseMapperBorrowed<'static> = CaseMapper::new();
const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();

/// Return the normal form of `text`.
///
/// NFKC, full case folding, NFKC again; each run of Unicode `White_Space` becomes one space; then
/// white space, quotes, brackets and sentence punctuation are stripped from both ends. A text made
/// of nothing else keeps its punctuation. Idempotent: the normal form of a normal form is itself.
///
/// # Examples
/// ```
/// use mnemic_core::text::normalise;
///
/// assert_eq!(normalise("  “Ｈello,\tWORLD！” "), "hello, world");
/// assert_eq!(normalise("C++"), "c++");
/// assert_eq!(normalise("?!"), "?!");
/// ```
pub fn normalise(text: &str) -> String {
    let mut buffer = String::with_capacity(text.len());
    normalise_in(&mut buffer, text).to_owned()
}

/// Write the normal form of `text` somewhere into `buffer`, whose old content is lost.
pub(super) fn normalise_in<'buffer>(buffer: &'buffer mut String, text: &str) -> &'buffer str {
    buffer.clear();
    if text.is_ascii() {
        collapse_whitespace(buffer, text);
        buffer.make_ascii_lowercase();
    } else {
        collapse_whitespace(buffer, &fold_compatibly(text));
    }
    strip_boundary(buffer)
}

/// NFKC, then full case folding, then NFKC.
///
/// Folding comes after the first NFKC, or "𝐀pple" and "℃" would keep their capitals, and the second
/// NFKC puts together again what folding took apart (ΐ, ǰ). That is a fixed point: folding a
/// character in NFKC gives characters in NFKC and never U+0345, the one mark whose folding does not
/// respect canonical equivalence; both facts are tested over all of Unicode.
fn fold_compatibly(text: &str) -> Cow<'_, str> {
    let composed = NFKC.normalize(text);
    let Some(folded) = fold(&composed) else {
        return composed;
    };
    match NFKC.normalize(&folded) {
        Cow::Borrowed(_) => Cow::Owned(folded),
        Cow::Owned(recomposed) => Cow::Owned(recomposed),
    }
}

/// Return the full case folding of `text`, or nothing if it is `text` itself.
///
/// One lookup for each character: three to five times as fast as folding the whole string with
/// [`CaseMapperBorrowed::fold_string`].
fn fold(text: &str) -> Option<String> {
    let first = text.find(changes_when_folded)?;
    let mut folded = String::with_capacity(text.len() + 8);
    folded.push_str(&text[..first]);
    for character in text[first..].chars() {
        if may_fold_to_several(character) {
            folded.push_str(&CASES.fold_string(character.encode_utf8(&mut [0; 4])));
        } else {
            folded.push(CASES.simple_fold(character));
        }
    }
    Some(folded)
}

fn changes_when_folded(character: char) -> bool {
    may_fold_to_several(character) || CASES.simple_fold(character) != character
}

/// Whether `character` lies in the ranges that hold every character whose folding is longer than
/// one: ß İ ŉ ǰ ΐ ΰ և and parts of Latin Extended Additional, Greek Extended and the ligatures.
fn may_fold_to_several(character: char) -> bool {
    matches!(
        character,
        'ß' | 'İ' | 'ŉ' | 'ǰ' | 'ΐ' | 'ΰ' | 'և' | 'ẖ'..='ẞ' | 'ὐ'..='ῼ' | 'ﬀ'..='ﬗ'
    )
}

fn collapse_whitespace(buffer: &mut String, text: &str) {
    let mut words = text.split_whitespace();
    buffer.extend(words.next());
    for word in words {
        buffer.push(' ');
        buffer.push_str(word);
    }
}

fn strip_boundary(text: &str) -> &str {
    match text.trim_matches(is_boundary) {
        "" => text,
        stripped => stripped,
    }
}

#[cfg(test)]
mod tests {
    use super::{CASES, NFKC, changes_when_folded, fold, fold_compatibly, normalise};

    fn all_characters() -> impl Iterator<Item = char> {
        '\0'..=char::MAX
    }

    #[test]
    fn folding_by_character_is_the_full_case_folding_of_unicode() {
        for character in all_characters() {
            let text = character.to_string();
            let expected = CASES.fold_string(&text);
            assert_eq!(
                fold(&text).unwrap_or(text.clone()),
                expected,
                "{character:?}"
            );
        }
    }

    #[test]
    fn folding_a_composed_character_gives_composed_characters_without_ypogegrammeni() {
        let composed = |character: &char| NFKC.is_normalized(character.encode_utf8(&mut [0; 4]));
        for character in all_characters().filter(composed) {
            let folded = fold(&character.to_string()).unwrap_or_default();
            assert!(
                folded
                    .chars()
                    .all(|part| composed(&part) && part != '\u{345}'),
                "{character:?}"
            );
        }
    }

    #[test]
    fn every_character_alone_reaches_a_fixed_point() {
        for character in all_characters() {
            let once = normalise(&character.to_string());
            assert_eq!(normalise(&once), once, "{character:?}");
        }
    }

    #[test]
    fn every_cased_character_under_every_mark_of_its_script_reaches_a_fixed_point() {
        let cased: Vec<char> = all_characters()
            .filter(|&one| changes_when_folded(one))
            .collect();
        for mark in '\u{300}'..='\u{36f}' {
            for &letter in &cased {
                let text: String = [letter, mark, '\u{345}', '\u{323}'].into_iter().collect();
                let once = fold_compatibly(&text).into_owned();
                assert_eq!(fold_compatibly(&once), once, "{text:?}");
            }
        }
    }
}
