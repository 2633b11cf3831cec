//! The normal form in which two texts count as the same memory.

use std::borrow::Cow;

use super::fast_path;
use super::strip::is_boundary;
use super::unicode::{CASES, NFKC};

/// Return `text` without differences of case and width: NFKC, full case folding, NFKC again.
///
/// Nothing is stripped, white space stays as NFKC leaves it. Idempotent.
///
/// # Examples
/// ```
/// use mnemic_core::text::fold;
///
/// assert_eq!(fold(" STRAẞE, ２０ ℃! "), " strasse, 20 °c! ");
/// ```
pub fn fold(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { fold_compatibly(text).into_owned() }
}

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

/// Write the normal form of `text` into a part of `buffer`, which loses its old content.
pub(super) fn normalise_in<'buffer>(buffer: &'buffer mut String, text: &str) -> &'buffer str {
    buffer.clear();
    if text.is_ascii() {
        collapse_ascii(buffer, text);
        buffer.make_ascii_lowercase();
    } else if !map_by_fast_path(buffer, text) {
        buffer.clear();
        collapse_words(buffer, &fold_compatibly(text));
    }
    strip_ends(buffer)
}

/// NFKC, then full case folding, then NFKC.
///
/// Folding comes after the first NFKC, or "𝐀pple" and "℃" would keep their capitals, and the second
/// NFKC recomposes characters that folding decomposed (ΐ, ǰ). That is a fixed point: folding a
/// character in NFKC gives characters in NFKC and never U+0345, the one mark whose folding does not
/// respect canonical equivalence; both are tested over all of Unicode.
fn fold_compatibly(text: &str) -> Cow<'_, str> {
    let composed = NFKC.normalize(text);
    match CASES.fold_string(&composed) {
        Cow::Borrowed(_) => composed,
        Cow::Owned(folded) => match NFKC.normalize(&folded) {
            Cow::Borrowed(_) => Cow::Owned(folded),
            Cow::Owned(recomposed) => Cow::Owned(recomposed),
        },
    }
}

/// Write `text` with every character folded and white space collapsed, if no character of it
/// depends on its neighbours; otherwise return false and leave anything in `buffer`.
///
/// About three times as fast as [`fold_compatibly`], and most texts without combining marks qualify.
fn map_by_fast_path(buffer: &mut String, text: &str) -> bool {
    let mut space_is_due = false;
    for character in text.chars() {
        let folded = fast_path::folded(character);
        if let Some('\t'..='\r' | ' ') = folded {
            space_is_due = !buffer.is_empty();
            continue;
        }
        if std::mem::take(&mut space_is_due) {
            buffer.push(' ');
        }
        if let Some(folded) = folded {
            buffer.push(folded);
            continue;
        }
        match fast_path::expanded(character) {
            Some(several) if !several.contains(' ') => buffer.push_str(&several),
            _ => return false,
        }
    }
    true
}

fn collapse_ascii(buffer: &mut String, text: &str) {
    let is_control = |byte: u8| byte.wrapping_sub(b'\t') < 5;
    let is_double = |pair: &[u8]| pair[0] == b' ' && pair[1] == b' ';
    // No early exit, so that both loops become vector instructions.
    let controls = text.bytes().fold(false, |seen, byte| seen | is_control(byte));
    let doubles = text.as_bytes().windows(2).fold(false, |seen, pair| seen | is_double(pair));
    if controls || doubles {
        collapse_words(buffer, text);
    } else {
        buffer.push_str(text.trim_matches(' '));
    }
}

fn collapse_words(buffer: &mut String, text: &str) {
    let mut words = text.split_whitespace();
    buffer.extend(words.next());
    for word in words {
        buffer.push(' ');
        buffer.push_str(word);
    }
}

fn strip_ends(text: &str) -> &str {
    match text.trim_matches(is_boundary) {
        "" => text,
        stripped => stripped,
    }
}

#[cfg(test)]
mod tests {
    use icu_normalizer::DecomposingNormalizer;
    use icu_normalizer::properties::{
        CanonicalCombiningClassMap, CanonicalDecomposition, Decomposed,
    };

    use proptest::prelude::*;

    use super::{
        CASES, NFKC, collapse_words, fast_path, fold, fold_compatibly, map_by_fast_path, normalise,
    };

    fn all_characters() -> impl Iterator<Item = char> {
        '\0'..=char::MAX
    }

    fn is_composed(character: char) -> bool {
        NFKC.is_normalized(character.encode_utf8(&mut [0; 4]))
    }

    #[test]
    fn folding_a_composed_character_gives_composed_characters_without_ypogegrammeni() {
        for character in all_characters().filter(|&one| is_composed(one) && one != '\u{345}') {
            for part in CASES.fold_string(character.encode_utf8(&mut [0; 4])).chars() {
                assert!(is_composed(part) && part != '\u{345}', "{character:?}");
            }
        }
    }

    #[test]
    fn ascii_is_folded_as_any_other_text() {
        let ascii: String = ('\0'..='\x7f').collect();
        assert_eq!(fold(&ascii), fold_compatibly(&ascii));
        assert_eq!(fold("Ab"), "ab");
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
        let changes = |one: &char| CASES.simple_fold(*one) != *one;
        let cased: Vec<char> = all_characters().filter(changes).collect();
        for mark in '\u{300}'..='\u{36f}' {
            for &letter in &cased {
                let text: String = [letter, mark, '\u{345}', '\u{323}'].into_iter().collect();
                let once = fold_compatibly(&text).into_owned();
                assert_eq!(fold_compatibly(&once), once, "{text:?}");
            }
        }
    }

    #[test]
    fn the_mapping_of_an_independent_character_is_its_full_folding() {
        for character in all_characters() {
            if let Some(expanded) = fast_path::expanded(character) {
                assert_eq!(fold_compatibly(&character.to_string()), expanded, "{character:?}");
            }
        }
        assert_eq!(fast_path::expanded('ß').as_deref(), Some("ss"));
        assert_eq!(fast_path::expanded('İ').as_deref(), Some("i\u{307}"));
        assert_eq!(fast_path::expanded('…').as_deref(), Some("..."));
        assert_eq!(fast_path::folded('，'), Some(','));
    }

    proptest! {
        #[test]
        fn independent_characters_give_what_the_general_path_gives(
            text in prop_oneof![any::<String>(), "[İßΐΰǰᾳẖŉ…™ﬁ㎏가힣がガㄱक५ა́a-zA-Z \t]{0,12}"],
        ) {
            let is_independent = |one: &char| fast_path::expanded(*one).is_some_and(|text| text.len() == 1 || !text.contains(' '));
            let text: String = text.chars().filter(is_independent).collect();
            let (mut mapped, mut general) = (String::new(), String::new());
            prop_assert!(map_by_fast_path(&mut mapped, &text));
            collapse_words(&mut general, &fold_compatibly(&text));
            prop_assert_eq!(mapped, general);
        }
    }

    /// The characters that compose with one before them; Hangul composes by rule, not by table.
    fn combine_backwards() -> Vec<char> {
        let decomposition = CanonicalDecomposition::new();
        let second = |character| match decomposition.decompose(character) {
            Decomposed::Expansion(_, second) => Some(second),
            _ => None,
        };
        let mut seconds: Vec<char> = all_characters().filter_map(second).collect();
        seconds.extend('\u{1160}'..='\u{11ff}');
        seconds.sort_unstable();
        seconds.dedup();
        seconds
    }

    #[test]
    fn no_character_that_stands_alone_composes_or_changes_place_with_its_neighbours() {
        let seconds = combine_backwards();
        assert!(seconds.contains(&'\u{301}') && seconds.contains(&'\u{9be}'));
        let combining_class = CanonicalCombiningClassMap::new();
        let decomposer = DecomposingNormalizer::new_nfkd();
        for character in all_characters().filter(|&one| fast_path::stands_alone(one)) {
            let parts = decomposer.normalize(character.encode_utf8(&mut [0; 4])).into_owned();
            let first = parts.chars().next().expect("a decomposition is never empty");
            assert!(seconds.binary_search(&first).is_err(), "{character:?}");
            assert_eq!(combining_class.get_u8(first), 0, "{character:?}");
        }
    }
}
