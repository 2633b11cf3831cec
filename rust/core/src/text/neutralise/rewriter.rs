//! The text as read, and as rewritten so far.

use std::borrow::Cow;

use super::super::bytes::position;
use super::markup::{chat_mark_end, is_fence, opens_tag, picture};

/// Whether a byte may begin markup within a line, or end the line. Full-width and small forms begin
/// with the last two.
fn is_trigger(byte: u8) -> u8 {
    let triggers = [b'\n', b'<', b'`', b'[', 0xe1, 0xef];
    triggers.iter().fold(0, |any, &trigger| any | u8::from(byte == trigger))
}

/// The start that a place is at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    OfText,
    /// Of a later line, which will stand within the one line of the result.
    OfLine,
}

/// Replaces parts of a clean text, from its start on.
pub(super) struct Rewriter<'a> {
    pub(super) text: &'a str,
    rewritten: String,
    /// The end of the text that `rewritten` stands for.
    done: usize,
    /// Ends of markup whose beginning was found, to be replaced when they are reached: the colon of
    /// a role, and a closing bracket.
    pub(super) colon: Option<usize>,
    bracket: Option<usize>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, rewritten: String::new(), done: 0, colon: None, bracket: None }
    }

    pub(super) fn rewritten(mut self) -> Cow<'a, str> {
        let mut at = self.start_line(0, Start::OfText);
        while let Some(found) = self.next_trigger(at) {
            at = self.treat(found);
        }
        if self.done == 0 {
            return Cow::Borrowed(self.text);
        }
        self.rewritten.push_str(&self.text[self.done..]);
        Cow::Owned(self.rewritten)
    }

    /// Put another text in the place of a part.
    pub(super) fn replace(&mut self, start: usize, end: usize, by: &str) {
        self.rewritten.push_str(&self.text[self.done..start]);
        self.rewritten.push_str(by);
        self.done = end;
    }

    /// Put a character in the place of each one of a part.
    pub(super) fn replace_each(&mut self, start: usize, end: usize, by: &str) {
        let count = self.text[start..end].chars().count();
        self.replace(start, end, &by.repeat(count));
    }

    fn next_trigger(&self, at: usize) -> Option<usize> {
        let found = position(&self.text.as_bytes()[at..], is_trigger).map(|found| at + found);
        [found, self.colon, self.bracket].into_iter().flatten().filter(|&one| one >= at).min()
    }

    /// Treat the character at a place, and return the place to go on from.
    fn treat(&mut self, at: usize) -> usize {
        let Some(character) = self.text[at..].chars().next() else { return self.text.len() };
        let end = at + character.len_utf8();
        if self.colon == Some(at) {
            self.colon = None;
            return self.replace_colons(at);
        }
        if self.bracket == Some(at) {
            self.bracket = None;
            self.replace(at, end, ")");
            return end;
        }
        match picture(character) {
            '\n' => {
                self.replace(at, end, " ");
                self.start_line(end, Start::OfLine)
            }
            '`' => self.treat_run(at, '`', "'", |_, count| is_fence(count)),
            '<' => self.treat_run(at, '<', "‹", |rest, _| opens_tag(rest)),
            '[' => {
                self.bracket = chat_mark_end(&self.text[end..]).map(|close| end + close);
                if self.bracket.is_some() {
                    self.replace(at, end, "(");
                }
                end
            }
            _ => end,
        }
    }

    /// Replace a run of one character if what follows and its length call for that.
    fn treat_run(
        &mut self,
        at: usize,
        character: char,
        by: &str,
        is_markup: impl Fn(&str, usize) -> bool,
    ) -> usize {
        let (end, count) = self.run(at, character);
        if is_markup(&self.text[end..], count) {
            self.replace_each(at, end, by);
        }
        end
    }

    /// The end and the length of the run of a character, or of pictures of it, from a place on.
    pub(super) fn run(&self, at: usize, character: char) -> (usize, usize) {
        let rest = self.text[at..].trim_start_matches(|one| picture(one) == character);
        let end = self.text.len() - rest.len();
        (end, self.text[at..end].chars().count())
    }

    /// Replace a colon, and those that follow it; a dash reads as a colon does, and ends no role.
    fn replace_colons(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        let rest = rest.trim_start_matches(|one| {
            // a selector of a colon's variant would be left without its character
            matches!(one, ' ' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
                || picture(one) == ':'
        });
        let found = &self.text[at..self.text.len() - rest.len()];
        let end = at + found.trim_end_matches(' ').len();
        let is_apart = self.text[..at].ends_with([' ', '\n']);
        let is_joined = self.text[end..].starts_with(char::is_alphanumeric);
        let dash = match (is_apart, is_joined) {
            (true, false) => "–",
            (true, true) => "– ",
            (false, false) => " –",
            (false, true) => " – ",
        };
        self.replace(at, end, dash);
        end
    }
}
