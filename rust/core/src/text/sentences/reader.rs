//! Reading of a text by place, with a count of the characters read in tests.

#[cfg(test)]
use std::cell::Cell;

/// A text that is read at places given in bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    /// Bytes and characters read so far.
    #[cfg(test)]
    pub(super) steps: Cell<usize>,
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
static MAY_END: [bool; 256] = {
    let mut table = [false; 256];
    let marks = *b".!?;\n\r\x0b\x0c";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    let leads = [0xc2, 0xcd, 0xd6, 0xd8, 0xdb, 0xdc, 0xdf, 0xe0, 0xe1, 0xe2, 0xe3, 0xea, 0xef];
    let mut at = 0;
    while at < leads.len() {
        table[leads[at]] = true;
        at += 1;
    }
    table[0xf0] = true;
    table
};

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            #[cfg(test)]
            steps: Cell::new(0),
        }
    }

    #[cfg(test)]
    fn count(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps);
    }

    #[cfg(not(test))]
    #[inline]
    #[expect(clippy::unused_self, reason = "tests count here")]
    fn count(&self, _steps: usize) {}

    /// The character at a place.
    #[inline]
    pub(super) fn at(&self, at: usize) -> Option<char> {
        self.count(1);
        self.text[at..].chars().next()
    }

    /// The character that ends at a place.
    #[inline]
    pub(super) fn before(&self, at: usize) -> Option<char> {
        self.count(1);
        self.text[..at].chars().next_back()
    }

    /// The first place from `at` on whose character may end a sentence, or the end.
    #[inline]
    pub(super) fn candidate(&self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        let skipped = rest.iter().position(|byte| MAY_END[usize::from(*byte)]);
        let skipped = skipped.unwrap_or(rest.len());
        self.count(skipped);
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

    pub(super) fn without_white_before(&self, at: usize, lowest: usize) -> usize {
        self.skip_back(at, lowest, char::is_whitespace)
    }
}
