//! Sentences of a text: their places, found one after the other.

mod abbreviations;
mod boundary;
mod characters;
mod following;
mod lines;
mod marks;
mod preceding;
mod reader;
#[cfg(test)]
pub(super) mod tests;

use std::ops::Range;

use self::reader::{Decision, Reader};

pub(super) use self::characters::{is_closing, is_dot, is_full_stop, is_spaceless};

/// Iterate over the sentences of a text: their places in bytes, in order, without the white space
/// between them.
///
/// A sentence ends behind `.`, `!`, `?` or a terminator of another script, with the closing quotes
/// and brackets that follow it. A full stop ends none in an abbreviation, an initial, a number, a
/// list marker, an address or a file name, and an ellipsis ends one before a capital or a letter
/// without case alone. A line end ends one unless the next line goes on in lower case behind a long
/// one, and a blank line always does. Text without a terminator at its end is a sentence too; Thai
/// and other scripts without terminators are split at line ends alone.
///
/// Takes time linear in the text that is read, and reads little further than the sentences taken.
///
/// # Examples
/// ```
/// use mnemic_core::text::sentences;
///
/// let text = "Dr. Lee paid $3.50. \"Why?\" she asked. 好吧。走！";
/// let found: Vec<&str> = sentences(text).map(|place| &text[place]).collect();
/// assert_eq!(found, ["Dr. Lee paid $3.50.", "\"Why?\" she asked.", "好吧。", "走！"]);
/// ```
pub fn sentences(text: &str) -> Sentences<'_> {
    Sentences { reader: Reader::new(text), position: 0 }
}

/// The places of the sentences of a text; see [`sentences`].
#[derive(Clone, Debug)]
pub struct Sentences<'t> {
    reader: Reader<'t>,
    position: usize,
}

impl Iterator for Sentences<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.reader.skip(self.position, char::is_whitespace);
        self.reader.at(start)?;
        self.reader.start = start;
        let end = end_of(&self.reader);
        self.position = end;
        Some(start..end)
    }
}

fn end_of(reader: &Reader<'_>) -> usize {
    let mut at = reader.start;
    loop {
        at = reader.candidate(at);
        let Some(character) = reader.at(at) else {
            return reader.without_white_before(at);
        };
        let decision = if characters::is_line_end(character) {
            lines::decision(reader, at)
        } else if let Some(marks) = marks::run(reader, at) {
            boundary::decision(reader, &marks)
        } else {
            Decision::GoesOn(at + character.len_utf8())
        };
        match decision {
            Decision::Ends(end) => return end,
            Decision::GoesOn(next) => at = next,
        }
    }
}
