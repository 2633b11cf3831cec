//! The normal form in which two texts count as the same memory.

use std::borrow::Cow;

use super::apart::{may_be_apart, push_apart};
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
/// NFKC, full case folding, NFKC again, but for raised and lowered characters, and for fractions and
/// the like beside a digit; each run of Unicode `White_Space` becomes one space; then white space,
/// quotes, brackets and sentence punctuation are stripped from both ends. A text made of nothing else
/// keeps its punctuation. Idempotent: the normal form of a normal form is itself.
///
/// # Examples
/// ```
/// use mnemic_core::text::normalise;
///
/// assert_eq!(normalise("  “Ｈello,\tWORLD！” "), "hello, world");
/// assert_eq!(normalise("C++"), "c++");
/// assert_eq!(normalise("?!"), "?!");
/// assert_eq!(normalise("10⁵ ｍ"), "10⁵ m");
/// ```
pub fn normalise(text: &str) -> String {
    let mut buffer = String::with_capacity(text.len());
    normalise_in(&mut buffer, text).to_owned()
}

/// Write the normal form of `text` into a part of `buffer`, which loses its old content.
pub(super) fn normalise_in<'buffer>(buffer: &'buffer mut String, text: &str) -> &'buffer str {
    buffer.clear();
    if !map_by_fast_path(buffer, text) {
        buffer.clear();
        collapse_words(buffer, &fold_numbers_apart(text));
    }
    strip_ends(buffer)
}

/// The length in bytes of [`beginning_in`].
const BEGINNING: usize = 64;

/// Write the first 64 bytes of the normal form of `text` into a part of `buffer`, without the end
/// of them that would be stripped from a text. Only the start of most texts is read for it.
///
/// It depends on nothing but the normal form, so texts with different ones do not repeat each other.
pub(super) fn beginning_in<'buffer>(buffer: &'buffer mut String, text: &str) -> &'buffer str {
    let form = if map_beginning(buffer, text) {
        buffer.trim_start_matches(is_boundary)
    } else {
        normalise_in(buffer, text)
    };
    head_of(form, BEGINNING).trim_end_matches(is_boundary)
}

/// At most `length` bytes of the start of a text, whole characters.
pub(crate) fn head_of(text: &str, length: usize) -> &str {
    let fits = |&end: &usize| text.is_char_boundary(end);
    &text[..(0..=length.min(text.len())).rev().find(fits).unwrap_or(0)]
}

/// Map the start of a long text, and return whether the normal form begins with it, the start
/// stripped: no character of it depends on the next, and enough of it is left.
fn map_beginning(buffer: &mut String, text: &str) -> bool {
    let (head, others) = text.split_at(head_of(text, 2 * BEGINNING).len());
    let is_independent = |next| fast_path::folded(next).is_some();
    buffer.clear();
    others.chars().next().is_some_and(is_independent)
        && map_by_fast_path(buffer, head)
        && buffer.trim_start_matches(is_boundary).len() >= BEGINNING
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

/// NFKC and full case folding, without what would make another number of one.
///
/// No mark composes with a character that is kept, so that the texts between them fold alone.
fn fold_numbers_apart(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(may_be_apart) else { return fold_compatibly(text) };
    let (mut form, mut apart) = (String::with_capacity(text.len()), String::new());
    let mut start = 0;
    let mut before = text[..first].chars().next_back();
    let mut characters = text[first..].char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let behind = characters.peek().map(|(_, behind)| *behind);
        if push_apart(&mut apart, character, [before, behind]) {
            form.push_str(&fold_compatibly(&text[start..first + at]));
            form.push_str(&apart);
            apart.clear();
            start = first + at + character.len_utf8();
        }
        before = Some(character);
    }
    form.push_str(&fold_compatibly(&text[start..]));
    Cow::Owned(form)
}

/// Write `text` with every character folded and white space collapsed, if no character of it
/// depends on its neighbours; otherwise return false and leave anything in `buffer`.
///
/// About three times as fast as [`fold_compatibly`], and most texts without combining marks qualify.
/// ASCII is copied in runs, and folded at the end in vector instructions.
fn map_by_fast_path(buffer: &mut String, text: &str) -> bool {
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let is_ascii = character.is_ascii();
        let length = if is_ascii { length_of_ascii(rest) } else { character.len_utf8() };
        let (run, others) = rest.split_at(length);
        rest = others;
        if is_ascii {
            buffer.push_str(run);
        } else if let Some(folded) = fast_path::folded(character) {
            buffer.push(folded);
        } else {
            match fast_path::expanded(character) {
                Some(several) if !several.contains(' ') => buffer.push_str(&several),
                _ => return false,
            }
        }
    }
    buffer.make_ascii_lowercase();
    collapse(buffer);
    true
}

/// The number of ASCII characters at the start of a text.
fn length_of_ascii(text: &str) -> usize {
    const STEP: usize = 32;
    let bytes = text.as_bytes();
    let steps = bytes.chunks_exact(STEP).take_while(|chunk| chunk.is_ascii()).count();
    let begin = steps * STEP;
    begin + bytes[begin..].iter().take(STEP).take_while(|byte| byte.is_ascii()).count()
}

/// Collapse the white space of a text that has none outside ASCII.
fn collapse(buffer: &mut String) {
    let is_control = |byte: u8| byte.wrapping_sub(b'\t') < 5;
    let is_double = |pair: &[u8]| pair[0] == b' ' && pair[1] == b' ';
    // No early exit, so that both loops become vector instructions.
    let controls = buffer.bytes().fold(false, |seen, byte| seen | is_control(byte));
    let doubles = buffer.as_bytes().windows(2).fold(false, |seen, pair| seen | is_double(pair));
    if controls || doubles || buffer.starts_with(' ') || buffer.ends_with(' ') {
        let text = std::mem::take(buffer);
        buffer.reserve(text.len());
        collapse_words(buffer, &text);
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
        BEGINNING, CASES, NFKC, beginning_in, collapse_words, fast_path, fold, fold_compatibly,
        head_of, is_boundary, map_by_fast_path, normalise,
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
    fn every_character_alone_or_beside_digits_reaches_a_fixed_point() {
        for character in all_characters() {
            for text in [character.to_string(), format!("1{character}2")] {
                let once = normalise(&text);
                assert_eq!(normalise(&once), once, "{text:?}");
            }
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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

        #[test]
        fn a_beginning_is_that_of_the_normal_form(
            parts in prop::collection::vec(
                prop_oneof![
                    "[ .,!\t\u{a0}\u{2003}…»\u{301}]{0,70}", "[a-zA-Z0-9 \n]{0,70}",
                    "[İßΐΰǰᾳẖŉ™ﬁ㎏가힣がガㄱ你я,. ]{0,40}", any::<String>(),
                ],
                0..5,
            ),
        ) {
            let text = parts.concat();
            let form = normalise(&text);
            let expected = head_of(&form, BEGINNING).trim_end_matches(is_boundary);
            let mut buffer = String::new();
            prop_assert_eq!(beginning_in(&mut buffer, &text), expected);
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
