//! Characters whose normal form does not depend on their neighbours, looked up instead of computed.

use std::sync::OnceLock;

use super::apart::may_be_apart;
use super::unicode::{CASES, NFKC, is_mark};

const PAGE_LENGTH: usize = 256;
type Page = [Option<char>; PAGE_LENGTH];

/// Planes 0 and 1, each page filled when a text first touches it: 1 KB and about 60 µs a page.
static PAGES: [OnceLock<Box<Page>>; 0x2_0000 / PAGE_LENGTH] =
    [const { OnceLock::new() }; 0x2_0000 / PAGE_LENGTH];

/// Return the result of [`expanded`] if it is one character.
pub(super) fn folded(character: char) -> Option<char> {
    let number = character as usize;
    match PAGES.get(number / PAGE_LENGTH) {
        Some(page) => page.get_or_init(|| fill(number / PAGE_LENGTH))[number % PAGE_LENGTH],
        None => compute(character),
    }
}

fn fill(page: usize) -> Box<Page> {
    let character = |place| char::from_u32((page * PAGE_LENGTH + place) as u32);
    Box::new(std::array::from_fn(|place| character(place).and_then(compute)))
}

fn compute(character: char) -> Option<char> {
    let expanded = expanded(character)?;
    let mut characters = expanded.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// Return NFKC(fold(NFKC(`character`))), as in ß, İ, ™ and …, if it is the same in every context.
///
/// It is when both its composed and its folded form begin with a character that stands alone: then
/// nothing crosses the border before it, and neither does anything cross the one before the next.
pub(super) fn expanded(character: char) -> Option<String> {
    if may_be_apart(character) {
        return None;
    }
    let mut bytes = [0; 4];
    let composed = NFKC.normalize(character.encode_utf8(&mut bytes));
    let folded = CASES.fold_string(&composed);
    let begins_alone = |text: &str| text.chars().next().is_some_and(stands_alone);
    (begins_alone(&composed) && begins_alone(&folded)).then(|| NFKC.normalize(&folded).into_owned())
}

/// Whether a character in NFKC neither composes nor changes place with the character before it.
///
/// Those that do are a mark, a conjoining Hangul jamo or a Kirat Rai letter (U+16D67 to U+16D6A);
/// variation selectors are marks that never do. White space outside ASCII is excluded too, so that
/// callers need no case for it.
pub(super) fn stands_alone(character: char) -> bool {
    let is_composing_letter =
        matches!(character, '\u{1100}'..='\u{11ff}' | '\u{16d67}'..='\u{16d6a}');
    let is_selector = matches!(character, '\u{fe00}'..='\u{fe0f}');
    let is_other_space = !character.is_ascii() && character.is_whitespace();
    NFKC.is_normalized(character.encode_utf8(&mut [0; 4]))
        && !(is_composing_letter || is_other_space || is_mark(character) && !is_selector)
}
