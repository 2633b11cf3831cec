//! Characters that a reader does not see: they would hide a match from its pattern.

use std::ops::Range;

const CHUNK: usize = 32;

/// The visible characters of a text, with the places that they have in it.
pub(super) struct Visible {
    pub(super) text: String,
    /// Start of each run of visible characters: here, and in the given text.
    runs: Vec<(usize, usize)>,
}

impl Visible {
    /// None if all characters of a text are visible.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut at = next(text, 0)?;
        let mut visible = Self { text: text[..at].to_owned(), runs: vec![(0, 0)] };
        while at < text.len() {
            let start = at + invisible_len(&text[at..]);
            at = next(text, start).unwrap_or(text.len());
            visible.runs.push((visible.text.len(), start));
            visible.text.push_str(&text[start..at]);
        }
        Some(visible)
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
        let end = given(place.end - 1) + 1;
        let before = text[..start].chars().rev().take_while(|letter| is_invisible(*letter));
        let before: usize = before.map(char::len_utf8).sum();
        start - before..end + invisible_len(&text[end..])
    }
}

/// The first invisible character at a place or behind it.
fn next(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_hidden = |at: &usize| {
        BEGINS[usize::from(bytes[*at])] && text[*at..].chars().next().is_some_and(is_invisible)
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

/// Whether a byte is visible ASCII or white space.
fn is_plain(byte: u8) -> bool {
    byte.wrapping_sub(0x20) < 0x5F || byte.wrapping_sub(0x09) < 5
}

/// Whether a byte begins an invisible character, among others.
const BEGINS: [bool; 256] = {
    let mut begins = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        begins[byte] = byte < 0x09 || byte > 0x0D;
        byte += 1;
    }
    let firsts = [0x7F, 0xC2, 0xCD, 0xD8, 0xE1, 0xE2, 0xE3, 0xEF, 0xF3];
    let mut index = 0;
    while index < firsts.len() {
        begins[firsts[index]] = true;
        index += 1;
    }
    begins
};

/// The length of the invisible characters at the start of a text.
fn invisible_len(text: &str) -> usize {
    text.find(|letter| !is_invisible(letter)).unwrap_or(text.len())
}

/// Controls apart from white space, soft hyphens, fillers, joiners, marks of direction, selectors of
/// variants, and tags.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\0'..='\u{8}' | '\u{E}'..='\u{1F}' | '\u{7F}'..='\u{84}' | '\u{86}'..='\u{9F}' | '\u{AD}'
        | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::{BEGINS, is_invisible};

    #[test]
    fn the_first_byte_of_every_invisible_character_show_it() {
        for letter in ('\0'..=char::MAX).filter(|letter| is_invisible(*letter)) {
            let mut bytes = [0; 4];
            letter.encode_utf8(&mut bytes);
            assert!(BEGINS[usize::from(bytes[0])], "{letter:?}");
        }
    }
}
