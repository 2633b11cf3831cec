//! Reading of a text by place.

use super::super::bytes::set_of;
#[cfg(test)]
use super::tests::count;

/// Tests count the characters read.
#[cfg(not(test))]
fn count(_characters: usize) {}

/// A text that is read at places given in bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    /// Where the sentence begins.
    pub(super) start: usize,
}

/// The result at a place that may end a sentence.
pub(super) enum Decision {
    /// The sentence ends there.
    Ends(usize),
    /// The next place to read on from.
    GoesOn(usize),
}

/// Whether a byte begins a character that may end a sentence; a continuation byte never does.
///
/// Most of the two-byte characters (Latin, Greek, Cyrillic, Hebrew) and Han and Hangul are passed
/// over by this table alone.
static MAY_END: [bool; 256] =
    set_of(b".!?;\n\r\x0b\x0c\xc2\xcd\xd6\xd8\xdb\xdc\xdf\xe0\xe1\xe2\xe3\xea\xef\xf0");

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, start: 0 }
    }

    /// The character at a place.
    #[inline]
    pub(super) fn at(&self, at: usize) -> Option<char> {
        count(1);
        self.text[at..].chars().next()
    }

    /// The character that ends at a place.
    #[inline]
    pub(super) fn before(&self, at: usize) -> Option<char> {
        count(1);
        self.text[..at].chars().next_back()
    }

    /// The first place from `at` on whose character may end a sentence, or the end.
    #[inline]
    pub(super) fn candidate(&self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        let skipped = rest.iter().position(|byte| MAY_END[usize::from(*byte)]);
        let skipped = skipped.unwrap_or(rest.len());
        count(skipped);
        at + skipped
    }

    /// The place behind the characters from `at` on that pass a test.
    pub(super) fn skip(&self, mut at: usize, test: impl Fn(char) -> bool) -> usize {
        while let Some(character) = self.at(at).filter(|character| test(*character)) {
            at += character.len_utf8();
        }
        at
    }

    /// The place before the characters up to `at` that pass a test; at least `lowest`.
    pub(super) fn skip_back(
        &self,
        mut at: usize,
        lowest: usize,
        test: impl Fn(char) -> bool,
    ) -> usize {
        while at > lowest {
            let Some(character) = self.before(at).filter(|character| test(*character)) else {
                break;
            };
            at -= character.len_utf8();
        }
        at
    }

    /// The place before the white space of the sentence that ends at a place.
    pub(super) fn without_white_before(&self, at: usize) -> usize {
        self.skip_back(at, self.start, char::is_whitespace)
    }
}
