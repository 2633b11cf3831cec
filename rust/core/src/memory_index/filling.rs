//! The ranked memories that a text of so many tokens may hold.

use crate::Error;
use crate::text::{duplicates, estimate_tokens, head_of, neutralise};

use super::MemoryIndex;

/// Tokens that any memory may take (`MIN_SHARE` of `context/budget.py`): a long one takes more at
/// first, and about as many at the end.
const SHARE: usize = 32;

/// Tokens beyond those of the text: sentences that are cut out of the last few memories may take
/// half of their shares, and one with a shorter name may be cut where another was passed over.
const SPARE: usize = 4 * SHARE;

/// Tokens of a memory that may fit into what others leave: fewer than 16, or the next one would be
/// cut (`MIN_CUT_TOKENS`), and as many more as names and marks of lines differ by.
const SHORT: usize = 24;

/// Bytes that are read of a memory: enough for more tokens than `SHARE`.
const BEGINNING: usize = 192;

impl MemoryIndex {
    /// The places of those rows, best first, that a text of `max_tokens` may hold: the first ones
    /// until it must be full, and short ones behind them. Rows that are not known are among them.
    ///
    /// # Errors
    ///
    /// Those of [`duplicates`], which has none without a similarity.
    pub fn filling(&self, rows: &[i64], max_tokens: usize) -> Result<Vec<usize>, Error> {
        let snapshot = self.store.snapshot();
        let columns = &snapshot.memories.columns;
        let content = |row: &i64| columns.docid_of(*row).and_then(|docid| columns.content(docid));
        let texts: Vec<&str> =
            rows.iter().map(|row| head_of(content(row).unwrap_or(""), BEGINNING)).collect();
        let originals = duplicates(&texts, None)?;
        let mut left = max_tokens.saturating_add(SPARE);
        let may_hold = |place: &usize| {
            let tokens = tokens_of_line(texts[*place]);
            if left == 0 {
                return tokens <= SHORT;
            }
            if originals[*place] == *place {
                left = left.saturating_sub(tokens.min(SHARE));
            }
            true
        };
        Ok((0..rows.len()).filter(may_hold).collect())
    }
}

/// The tokens of a text in a line. Only white space and what has no picture is removed there, and
/// plain texts have none of it.
fn tokens_of_line(text: &str) -> usize {
    let is_plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if is_plain && !text.contains("  ") {
        return estimate_tokens(text);
    }
    estimate_tokens(&neutralise(text))
}
