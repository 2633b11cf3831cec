//! What the tokenizer of a model makes of a text.

/// The tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// From the token that stands before each text to the one behind it.
    pub ids: Vec<u32>,
    /// Whether the text has more tokens.
    pub is_truncated: bool,
    /// Number of characters at the beginning of the text that these tokens cover; all of them if
    /// the text has no more tokens.
    pub characters: usize,
}

/// Turns texts into the tokens of a model.
pub trait Tokenizer: Send + Sync {
    /// The tokens of `text`, at most `max_tokens` with those of the frame, which are always there.
    ///
    /// Reads no further than they reach.
    fn encode(&self, text: &str, max_tokens: usize) -> Encoding;
}

/// Tokens of a frame, one before those of a text and one behind.
const FRAME: usize = 2;

/// Tokens of a text, until there are as many as fit.
pub(super) struct Tokens {
    found: Vec<Token>,
    /// Tokens that there is room for.
    limit: usize,
    pub(super) is_truncated: bool,
    /// Characters of the text read so far.
    pub(super) position: usize,
}

/// A token, and the number of characters up to its end.
pub(super) struct Token {
    pub(super) id: u32,
    pub(super) end: usize,
}

impl Tokens {
    pub(super) fn new(max_tokens: usize) -> Self {
        let limit = max_tokens.saturating_sub(FRAME);
        Self { found: Vec::new(), limit, is_truncated: false, position: 0 }
    }

    pub(super) fn push(&mut self, token: Token) {
        if self.found.len() < self.limit {
            self.found.push(token);
        } else {
            self.is_truncated = true;
        }
    }

    /// Leave out the last token if it is this one.
    pub(super) fn drop_last(&mut self, token: Option<u32>) {
        self.found.pop_if(|last| Some(last.id) == token);
    }

    /// These tokens between two others.
    pub(super) fn framed(&self, first: u32, last: u32) -> Encoding {
        let covered = self.found.last().map_or(0, |token| token.end);
        let tokens = self.found.iter().map(|token| token.id);
        Encoding {
            ids: std::iter::once(first).chain(tokens).chain([last]).collect(),
            is_truncated: self.is_truncated,
            characters: if self.is_truncated { covered } else { self.position },
        }
    }
}
