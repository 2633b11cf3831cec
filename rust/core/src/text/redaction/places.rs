//! Places of a text at which patterns can match, found faster than the patterns themselves.

use memchr::memchr_iter;
use memchr::memmem::Finder;

use super::super::bytes::position;
use super::characters::line_break;

/// A place around which a pattern may match.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    /// Its first byte.
    pub(super) at: usize,
    /// Number of the digits that begin there, and whether their line ends behind them.
    pub(super) count: usize,
    pub(super) is_broken: bool,
    /// The end of the pattern's last match: the next one starts there or later.
    pub(super) floor: usize,
}

/// Call for each run of digits with its first byte, their number, and whether their line ends behind
/// them.
pub(super) fn for_each_number(text: &str, mut each: impl FnMut(usize, usize, bool)) {
    let mut at = 0;
    while let Some(start) = next_digit(text, at) {
        let (count, len) = digits(&text[start..], usize::MAX);
        each(start, count, line_break(&text[start + len..]) > 0);
        at = start + len;
    }
}

/// The number of digits at the start of a text, at most `most`, and of their bytes.
pub(super) fn digits(text: &str, most: usize) -> (usize, usize) {
    let (mut count, mut at) = (0, 0);
    while count < most
        && let Some(len) = digit_len(text, at)
    {
        count += 1;
        at += len;
    }
    (count, at)
}

fn next_digit(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += position(&text.as_bytes()[at..], can_begin_digit)?;
        if digit_len(text, at).is_some() {
            return Some(at);
        }
        at += 1;
    }
}

/// ASCII digits, and the first bytes of Arabic-Indic, Persian, Devanagari and full-width ones.
fn can_begin_digit(byte: u8) -> u8 {
    let is_other =
        [0xD9, 0xDB, 0xE0, 0xEF].iter().fold(0, |any, first| any | u8::from(byte == *first));
    u8::from(byte.wrapping_sub(b'0') < 10) | is_other
}

/// The length of the digit at a place, which need not begin a character.
fn digit_len(text: &str, at: usize) -> Option<usize> {
    match text.as_bytes().get(at..)? {
        [b'0'..=b'9', ..] => Some(1),
        [0xD9, 0xA0..=0xA9, ..] | [0xDB, 0xB0..=0xB9, ..] => Some(2),
        [0xE0, 0xA5, 0xA6..=0xAF, ..] | [0xEF, 0xBC, 0x90..=0x99, ..] => Some(3),
        _ => None,
    }
}

/// Call for each at sign, ASCII or full-width, in their order.
pub(super) fn for_each_at_sign(text: &str, each: &mut dyn FnMut(usize)) {
    let bytes = text.as_bytes();
    let wide: Vec<usize> = Finder::new("＠").find_iter(bytes).collect();
    if wide.is_empty() {
        return memchr_iter(b'@', bytes).for_each(each);
    }
    let mut all: Vec<usize> = memchr_iter(b'@', bytes).chain(wide).collect();
    all.sort_unstable();
    all.into_iter().for_each(each);
}

/// Call for each colon.
pub(super) fn for_each_colon(text: &str, each: &mut dyn FnMut(usize)) {
    memchr_iter(b':', text.as_bytes()).for_each(each);
}
