//! A text as a reader sees it: characters without a picture, variants of letters and digits, and
//! line breaks would hide a match from its pattern.

use std::ops::Range;

use super::super::bytes::set_of;
use super::super::unicode::{NFKC, is_invisible};

const CHUNK: usize = 32;

/// The visible characters of a text, with the places that they have in it.
#[derive(Default)]
pub(super) struct Visible {
    pub(super) text: String,
    /// Start of each run of visible characters: here, and in the given text.
    runs: Vec<(usize, usize)>,
}

impl Visible {
    /// None if all characters of a text are visible, and none is a variant.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut at = next(text, 0)?;
        let mut visible = Self::default();
        visible.push(&text[..at], 0);
        while let Some(letter) = text[at..].chars().next() {
            if let Some(plain) = plain(letter) {
                visible.push(plain.encode_utf8(&mut [0; 4]), at);
            }
            let start = at + letter.len_utf8();
            at = next(text, start).unwrap_or(text.len());
            visible.push(&text[start..at], start);
        }
        Some(visible)
    }

    /// The visible characters with one space for each white space, as a block for a prompt shows
    /// them; None if a text is like that.
    pub(super) fn on_one_line(text: &str) -> Option<Self> {
        let mut at = next_odd(text.as_bytes(), 0)?;
        let mut line = Self::default();
        line.push(&text[..at], 0);
        while let Some(letter) = text[at..].chars().next() {
            let start = at + letter.len_utf8();
            if !letter.is_whitespace() {
                line.push(if is_invisible(letter) { "" } else { &text[at..start] }, at);
            } else if !line.text.ends_with(' ') {
                line.push(" ", at);
            }
            at = next_odd(text.as_bytes(), start).unwrap_or(text.len());
            line.push(&text[start..at], start);
        }
        (line.text != text).then_some(line)
    }

    /// Add visible characters that stand at a place of the given text.
    fn push(&mut self, shown: &str, at: usize) {
        let here = self.text.len();
        let follows = self.runs.last().is_some_and(|(start, given)| here - start == at - given);
        if !follows {
            self.runs.push((here, at));
        }
        self.text.push_str(shown);
    }

    /// A place of the given text among the visible characters.
    pub(super) fn shown(&self, place: &Range<usize>) -> Range<usize> {
        let shown = |at: usize| {
            let index = self.runs.partition_point(|(_, given)| *given <= at) - 1;
            let (here, given) = self.runs[index];
            let end = self.runs.get(index + 1).map_or(self.text.len(), |(here, _)| *here);
            end.min(here + at - given)
        };
        shown(place.start)..shown(place.end)
    }

    /// A place of the visible characters in the given text, with the invisible ones around it.
    pub(super) fn given(&self, place: &Range<usize>, text: &str) -> Range<usize> {
        let given = |at: usize| {
            let index = self.runs.partition_point(|(here, _)| *here <= at) - 1;
            self.runs[index].1 + at - self.runs[index].0
        };
        let start = given(place.start);
        let last = given(place.end - 1);
        let len = text.get(last..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        let end = last + len;
        let before = text[..start].chars().rev().take_while(|letter| is_invisible(*letter));
        let before: usize = before.map(char::len_utf8).sum();
        start - before..end + invisible_len(&text[end..])
    }
}

/// The first invisible character or variant at a place or behind it.
fn next(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_hidden = |at: &usize| {
        may_hide(bytes, *at)
            && text[*at..].chars().next().is_some_and(|letter| plain(letter) != Some(letter))
    };
    let mut at = from;
    while at < bytes.len() {
        let end = bytes.len().min(at + CHUNK);
        if bytes[at..end].iter().fold(false, |found, byte| found | !is_plain(*byte)) {
            let hidden = (at..end).find(is_hidden);
            if hidden.is_some() {
                return hidden;
            }
        }
        at = end;
    }
    None
}

/// The first place, there or behind it, where one line may have another character.
fn next_odd(bytes: &[u8], from: usize) -> Option<usize> {
    let is_odd = |at: &usize| match bytes[*at] {
        b' ' => *at == 0 || !bytes[*at - 1].is_ascii_graphic(),
        byte => byte < b' ' || may_hide(bytes, *at),
    };
    let is_double = |pair: &[u8]| pair[0] == b' ' && pair[1] == b' ';
    let mut at = from;
    while at < bytes.len() {
        let end = bytes.len().min(at + CHUNK);
        let chunk = &bytes[at.saturating_sub(1)..end];
        let doubles = chunk.windows(2).fold(false, |found, pair| found | is_double(pair));
        let others = chunk.iter().fold(false, |found, byte| found | !(b' '..0x7F).contains(byte));
        if doubles || others || at == 0 {
            let odd = (at..end).find(is_odd);
            if odd.is_some() {
                return odd;
            }
        }
        at = end;
    }
    None
}

/// Whether an invisible character or a variant may begin at a place. Nearly all pictures have the
/// same two bytes first, and are none.
fn may_hide(bytes: &[u8], at: usize) -> bool {
    let is_picture = || bytes.get(at + 1) == Some(&0x9F) && bytes.get(at + 2) != Some(&0xAF);
    BEGINS[usize::from(bytes[at])] && !(bytes[at] == 0xF0 && is_picture())
}

/// Whether a byte is visible ASCII or white space.
fn is_plain(byte: u8) -> bool {
    byte.wrapping_sub(0x20) < 0x5F || byte.wrapping_sub(0x09) < 5
}

/// Whether a byte begins an invisible character or a variant, among others.
const BEGINS: [bool; 256] = set_of(
    b"\0\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\
      \x7f\xc2\xcc\xcd\xd8\xe1\xe2\xe3\xef\xf0\xf3",
);

/// The length of the invisible characters at the start of a text.
fn invisible_len(text: &str) -> usize {
    text.find(|letter| !is_invisible(letter)).unwrap_or(text.len())
}

/// What a reader sees of a character: nothing, the ASCII character of which it is a variant, or itself.
fn plain(letter: char) -> Option<char> {
    if is_invisible(letter) {
        return None;
    }
    if !is_variant(letter) {
        return Some(letter);
    }
    let form = NFKC.normalize(letter.encode_utf8(&mut [0; 4])).into_owned();
    let mut letters = form.chars();
    let plain = letters.next().filter(|plain| plain.is_ascii_graphic() && letters.next().is_none());
    Some(plain.unwrap_or(letter))
}

/// Mathematical and circled letters and digits, small punctuation, full-width letters, digits of
/// seven segments.
fn is_variant(letter: char) -> bool {
    matches!(letter,
        '\u{2460}'..='\u{2468}' | '\u{24B6}'..='\u{24EA}' | '\u{FE50}'..='\u{FE6B}'
        | '\u{FF21}'..='\u{FF3A}' | '\u{FF41}'..='\u{FF5A}' | '\u{1D400}'..='\u{1D7FF}'
        | '\u{1FBF0}'..='\u{1FBF9}')
}

#[cfg(test)]
mod tests {
    use super::{BEGINS, plain};

    #[test]
    fn the_first_byte_of_every_invisible_character_and_variant_shows_it() {
        for letter in ('\0'..=char::MAX).filter(|letter| plain(*letter) != Some(*letter)) {
            let mut bytes = [0; 4];
            letter.encode_utf8(&mut bytes);
            assert!(BEGINS[usize::from(bytes[0])], "{letter:?}");
        }
    }
}
