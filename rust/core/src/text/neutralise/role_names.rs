//! Names of the sides of a chat, as they begin a turn.

use std::sync::LazyLock;

use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};

use super::super::normalise::fold;
use super::super::roles::is_role;
use super::super::word_table::{WordTable, Words};
use super::markup::{is_accent, picture};

const NFKD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfkd();

/// A role and the signs behind it have at most so many characters in front of the colon.
const REACH: usize = 40;

const FILE: &str = include_str!("../../../data/roles.txt");

/// Names of roles beside those of the module `roles`, folded, each script by itself.
static NAMES: Words = Words::new(|| WordTable::of_list(FILE, "further"));
/// Letters of other scripts with the Latin ones that they look like.
static LOOK_ALIKES: LazyLock<WordTable<char>> = LazyLock::new(|| {
    WordTable::of(include_str!("../../../data/look_alikes.txt"), |latin| latin.parse().ok())
});
/// Words behind a role that leave it one.
static QUALIFIERS: Words = Words::new(|| WordTable::of_list(FILE, "qualifiers"));

/// The place of the colon behind a role at the start of a line, if there is one.
///
/// Numbers and times before the role are passed over, as in the lines of a log: `[10:30] user: …`.
pub(super) fn role_colon(line: &str) -> Option<usize> {
    let start = lead_end(line);
    let label = &line[start..];
    let colon = label_end(label)?;
    let leads_to_digit = || label[colon..].chars().nth(1).is_some_and(|next| next.is_ascii_digit());
    names_role(&label[..colon], leads_to_digit).then_some(start + colon)
}

/// The end of the signs, numbers and times at the start of a line.
fn lead_end(line: &str) -> usize {
    let mut follows_digit = false;
    let mut characters = line.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let is_digit = picture(character).is_ascii_digit();
        let is_of_time = follows_digit
            && matches!(character, 'T' | 'Z')
            && characters
                .peek()
                .is_none_or(|(_, next)| picture(*next).is_ascii_digit() || !is_in_name(*next));
        if character == '\n' || picture(character).is_alphanumeric() && !is_digit && !is_of_time {
            return at;
        }
        follows_digit = is_digit;
    }
    line.len()
}

/// The place of the colon behind a label of two words at most. Dashes that this module writes end a
/// label, so that the result of a result is itself.
fn label_end(line: &str) -> Option<usize> {
    let (mut words, mut is_in_word) = (0, false);
    for (at, character) in line.char_indices().take(REACH) {
        let character = picture(character);
        if character == ':' {
            return (words > 0).then_some(at);
        }
        let was_in_word = is_in_word; // an accent alone begins no word
        is_in_word = is_in_name(character) && (was_in_word || character.is_alphanumeric());
        words += usize::from(is_in_word && !was_in_word);
        if words > 2 || matches!(character, '–' | '—') {
            return None;
        }
    }
    None
}

/// Whether the text in front of a colon is a role with its ornaments, perhaps with a qualifier or a
/// number: "system prompt", "user 2", but not the hour in "ai 12:30".
fn names_role(label: &str, leads_to_digit: impl Fn() -> bool) -> bool {
    let plain = |one: char| if is_in_name(picture(one)) { one } else { ' ' };
    let folded = fold(&label.chars().map(plain).collect::<String>());
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let mut words = folded.split_whitespace().filter(is_word);
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    words.next().is_some_and(is_name_of_role)
        && words
            .next()
            .is_none_or(|word| QUALIFIERS.has(word) || is_number(word) && !leads_to_digit())
        && words.next().is_none()
}

fn is_name_of_role(word: &str) -> bool {
    let is_name = |word: &str| is_role(word) || NAMES.has(word);
    let bare = || word.replace(is_accent, "");
    is_name(word) || !word.is_ascii() && (is_name(&bare()) || is_name(&in_latin(word)))
}

/// A word without accents, in the Latin letters that its Cyrillic and Greek ones look like.
fn in_latin(word: &str) -> String {
    let letters = NFKD.normalize_iter(word.chars());
    let latin = |letter: char| LOOK_ALIKES.get(letter.encode_utf8(&mut [0; 4]).as_bytes());
    letters.filter(|letter| !is_accent(*letter)).map(|one| latin(one).unwrap_or(one)).collect()
}

/// Letters, digits, and the accents of letters that are written apart.
fn is_in_name(character: char) -> bool {
    character.is_alphanumeric()
        || is_accent(character)
        || matches!(character, '\u{3099}' | '\u{309a}')
}
