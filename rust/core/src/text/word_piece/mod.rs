//! The tokens of BERT models: words in the model's normal form, cut greedily into known pieces.

mod characters;
mod classes;
mod file;

use std::collections::HashMap;

use characters::{Reading, read};
use file::File;
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::encoding::{Encoding, Token, Tokenizer, Tokens};
use crate::Error;

/// What a file should be.
const KIND: &str = "tokenizer.json of an uncased BERT model";

/// Before a piece that goes on within a word.
const CONTINUATION: &str = "##";

/// Characters of the longest word that is cut into pieces; a longer one is unknown.
const MAX_CHARACTERS: usize = 100;

type Pieces = HashMap<Box<str>, u32, Xxh3DefaultBuilder>;

/// The tokenizer of uncased BERT models: `BertNormalizer`, `BertPreTokenizer` and `WordPiece` of
/// the library tokenizers, with the same results.
///
/// Control characters are dropped, accents stripped, letters made small; ideographs and
/// punctuation marks are words of their own. A word is cut into the longest known pieces from its
/// beginning on (Schuster and Nakajima, "Japanese and Korean voice search", 2012); a word with an
/// unknown piece, or of more than 100 characters, is `[UNK]` as a whole.
///
/// # Examples
/// ```
/// use mnemic_core::text::{Tokenizer, WordPieceTokenizer};
///
/// let vocabulary = ["[UNK]", "[CLS]", "[SEP]", "token", "##s", "!"];
/// let ids = vocabulary.iter().zip(0..).map(|(piece, id)| (*piece, id));
/// let tokenizer = WordPieceTokenizer::new(ids, &["[SEP]"]).unwrap();
///
/// assert_eq!(tokenizer.encode("Tökens!", 256).ids, [1, 3, 4, 5, 2]);
/// assert_eq!(tokenizer.encode("token ☃ [SEP]", 256).ids, [1, 3, 0, 2, 2]);
/// ```
#[derive(Debug)]
pub struct WordPieceTokenizer {
    words: Pieces,
    continuations: Pieces,
    /// Bytes of the longest piece.
    longest: usize,
    /// Tokens that stand for themselves in a text.
    special: Vec<(Box<str>, u32)>,
    /// The characters that these begin with.
    special_starts: Vec<char>,
    unknown: u32,
    first: u32,
    last: u32,
}

impl WordPieceTokenizer {
    /// The tokenizer that a `tokenizer.json` describes; its padding and truncation are ignored.
    ///
    /// # Errors
    ///
    /// When the file is not one of an uncased BERT model, or as in [`Self::new`].
    pub fn of_file(content: &[u8]) -> Result<Self, Error> {
        let invalid = |error: serde_json::Error| Error::InvalidTokenizer {
            kind: KIND,
            problem: error.to_string(),
        };
        let File { added_tokens, model } = serde_json::from_slice(content).map_err(invalid)?;
        let special: Vec<&str> = added_tokens.iter().map(|token| &*token.content).collect();
        Self::new(model.vocab.iter().map(|(piece, id)| (&*piece.0, *id)), &special)
    }

    /// A tokenizer with the pieces and ids of a vocabulary.
    ///
    /// The `special` tokens are found in a text before everything else, by their exact characters.
    ///
    /// # Errors
    ///
    /// When `[UNK]`, `[CLS]`, `[SEP]` or a special token is not in the vocabulary.
    pub fn new<'a>(
        vocabulary: impl IntoIterator<Item = (&'a str, u32)>,
        special: &[&str],
    ) -> Result<Self, Error> {
        let vocabulary = vocabulary.into_iter();
        let (count, _) = vocabulary.size_hint();
        let mut words = Pieces::with_capacity_and_hasher(count, Xxh3DefaultBuilder::new());
        let mut continuations = Pieces::default();
        for (piece, id) in vocabulary {
            match piece.strip_prefix(CONTINUATION) {
                Some(rest) => continuations.insert(rest.into(), id),
                None => words.insert(piece.into(), id),
            };
        }
        let id_of = |token: &str| {
            let missing = || Error::MissingToken { token: token.to_owned() };
            words.get(token).copied().ok_or_else(missing)
        };
        let with_id = |token: &&str| Ok(((*token).into(), id_of(token)?));
        let mut special_starts: Vec<char> =
            special.iter().filter_map(|token| token.chars().next()).collect();
        special_starts.dedup();
        let special = special.iter().map(with_id).collect::<Result<_, Error>>()?;
        let (unknown, first, last) = (id_of("[UNK]")?, id_of("[CLS]")?, id_of("[SEP]")?);
        let pieces = words.keys().chain(continuations.keys());
        let longest = pieces.map(|piece| piece.len()).max().unwrap_or(0);
        Ok(Self { words, continuations, longest, special, special_starts, unknown, first, last })
    }

    /// The longest special token that `rest` begins with, which begins with `character`.
    fn special_at(&self, rest: &str, character: char) -> Option<&(Box<str>, u32)> {
        if !self.special_starts.contains(&character) {
            return None;
        }
        let begins = |special: &&(Box<str>, u32)| rest.starts_with(&*special.0);
        self.special.iter().filter(begins).max_by_key(|(token, _)| token.len())
    }

    /// The id and the bytes of the longest piece that `rest` begins with.
    fn piece_at(&self, rest: &str, is_first: bool) -> Option<(u32, usize)> {
        let pieces = if is_first { &self.words } else { &self.continuations };
        let is_end = |end: &usize| rest.is_char_boundary(*end);
        let mut ends = (1..=rest.len().min(self.longest)).rev().filter(is_end);
        ends.find_map(|end| pieces.get(&rest[..end]).map(|id| (*id, end)))
    }
}

impl Tokenizer for WordPieceTokenizer {
    fn encode(&self, text: &str, max_tokens: usize) -> Encoding {
        let mut encoder = Encoder::new(self, max_tokens);
        encoder.read(text);
        encoder.tokens.framed(self.first, self.last)
    }
}

/// One reading of a text.
struct Encoder<'a> {
    tokenizer: &'a WordPieceTokenizer,
    tokens: Tokens,
    /// The unfinished word: no more than `MAX_CHARACTERS` of it.
    word: String,
    /// The number of characters of the text up to the end of that which each byte of `word` is of.
    ends: Vec<usize>,
    /// Characters of the word, also of those that are not stored.
    word_characters: usize,
    /// The number of characters of the text up to the end of the word.
    word_end: usize,
}

impl<'a> Encoder<'a> {
    fn new(tokenizer: &'a WordPieceTokenizer, max_tokens: usize) -> Self {
        Self {
            tokenizer,
            tokens: Tokens::new(max_tokens),
            word: String::new(),
            ends: Vec::new(),
            word_characters: 0,
            word_end: 0,
        }
    }

    fn read(&mut self, text: &str) {
        let mut skipped_to = 0;
        for (at, character) in text.char_indices() {
            if at < skipped_to {
                continue;
            }
            if let Some((special, id)) = self.tokenizer.special_at(&text[at..], character) {
                self.finish_word();
                self.tokens.position += special.chars().count();
                skipped_to = at + special.len();
                self.tokens.push(Token { id: *id, end: self.tokens.position });
            } else {
                self.tokens.position += 1;
                self.take(character);
            }
            if self.tokens.is_truncated {
                return;
            }
        }
        self.finish_word();
    }

    fn take(&mut self, character: char) {
        read(character, |part| match part {
            Reading::Letter(letter) => self.extend_word(letter),
            Reading::Alone(mark) => {
                self.finish_word();
                self.extend_word(mark);
                self.finish_word();
            }
            Reading::Space => self.finish_word(),
        });
    }

    fn extend_word(&mut self, letter: char) {
        self.word_characters += 1;
        self.word_end = self.tokens.position;
        if self.word_characters <= MAX_CHARACTERS {
            self.word.push(letter);
            self.ends.resize(self.word.len(), self.tokens.position);
        }
    }

    fn finish_word(&mut self) {
        if self.word_characters == 0 {
            return;
        }
        for token in self.pieces().unwrap_or_else(|| self.unknown_word()) {
            self.tokens.push(token);
        }
        self.word.clear();
        self.ends.clear();
        self.word_characters = 0;
    }

    /// The pieces of the word, if it consists of known ones.
    fn pieces(&self) -> Option<Vec<Token>> {
        if self.word_characters > MAX_CHARACTERS {
            return None;
        }
        let (mut pieces, mut at) = (Vec::new(), 0);
        while at < self.word.len() {
            let (id, bytes) = self.tokenizer.piece_at(&self.word[at..], at == 0)?;
            at += bytes;
            pieces.push(Token { id, end: self.ends[at - 1] });
        }
        Some(pieces)
    }

    fn unknown_word(&self) -> Vec<Token> {
        vec![Token { id: self.tokenizer.unknown, end: self.word_end }]
    }
}
