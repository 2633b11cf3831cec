//! The tokens of multilingual models: words in the model's normal form, cut into their likeliest
//! pieces.

mod normal_form;
mod trie;

use memmap2::Mmap;
use normal_form::{Reading, read};
use trie::Trie;

use super::encoding::{Encoding, Token, Tokenizer, Tokens};
use crate::Error;

/// Before the first letter of a word.
const WORD: char = '▁';

/// Bytes of a word that are cut into pieces together. What is longer, as texts without spaces are, is
/// cut apart, so that it takes little memory; there may then be a token more at each end.
const WORD_BYTES: usize = 1 << 14;

/// The tokenizer of XLM-RoBERTa and of models with its vocabulary, as the library sentencepiece runs
/// it.
///
/// Controls are dropped, white space and joiners part words, and the rest has the form NFKC. A word
/// is cut into the pieces whose probabilities have the largest product (Kudo, "Subword
/// regularization", 2018, arXiv 1804.10959), of equal cuts into those with the longest last piece;
/// characters that no piece has are one unknown token. No text is a special token.
#[derive(Debug)]
pub struct UnigramTokenizer {
    trie: Trie,
    /// The piece that is the beginning of a word alone.
    word: Option<u32>,
}

impl UnigramTokenizer {
    /// The tokenizer whose pieces are in a file.
    ///
    /// # Errors
    ///
    /// When it is another file.
    pub fn new(file: Mmap) -> Result<Self, Error> {
        let (trie, mut word) = (Trie::new(file)?, None);
        trie.pieces_of(WORD.encode_utf8(&mut [0; 4]).as_bytes(), |piece| {
            word = Some(piece.id).filter(|_| piece.len == WORD.len_utf8());
        });
        Ok(Self { trie, word })
    }
}

impl Tokenizer for UnigramTokenizer {
    fn encode(&self, text: &str, max_tokens: usize) -> Encoding {
        let mut encoder = Encoder::new(&self.trie, max_tokens);
        read(text, |characters, reading| encoder.take(characters, reading));
        encoder.finish_word();
        if encoder.tokens.is_truncated {
            // The text up to the end of the last word does not have the beginning of the next.
            encoder.tokens.drop_last(self.word);
        }
        let (first, last) = self.trie.frame();
        encoder.tokens.framed(first, last)
    }
}

/// The best way to cut the beginning of a word.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    /// Where its last piece begins.
    start: usize,
    piece: u32,
}

impl Best {
    const NONE: Self = Self { score: f32::NEG_INFINITY, start: 0, piece: 0 };
}

/// One reading of a text.
struct Encoder<'a> {
    trie: &'a Trie,
    tokens: Tokens,
    /// The unfinished word.
    word: String,
    /// The number of characters of the text up to the end of that which each byte of `word` is of.
    ends: Vec<usize>,
    /// For the beginning of `word` up to each byte.
    best: Vec<Best>,
}

impl<'a> Encoder<'a> {
    fn new(trie: &'a Trie, max_tokens: usize) -> Self {
        let (word, ends, best) = (String::from(WORD), vec![0; WORD.len_utf8()], Vec::new());
        Self { trie, tokens: Tokens::new(max_tokens), word, ends, best }
    }

    /// Take what the next characters of the text are read as; return whether there is room for more.
    fn take(&mut self, characters: usize, reading: Reading<'_>) -> bool {
        let before = self.tokens.position;
        self.tokens.position += characters;
        match reading {
            Reading::Nothing => {}
            Reading::Space => self.finish_word(),
            Reading::Letters(letters) => {
                let count = letters.chars().count();
                for (letter, number) in letters.chars().zip(1..) {
                    self.extend_word(letter, before + (number * characters).div_ceil(count));
                }
            }
        }
        !self.tokens.is_truncated
    }

    fn extend_word(&mut self, letter: char, end: usize) {
        if self.word.len() >= WORD_BYTES {
            self.cut_word();
        }
        self.word.push(letter);
        self.ends.resize(self.word.len(), end);
    }

    /// Cut the word, if there is one, and begin another.
    fn finish_word(&mut self) {
        if self.word.len() > WORD.len_utf8() || !self.word.starts_with(WORD) {
            self.cut_word();
            self.word.push(WORD);
        }
        self.ends.clear();
        self.ends.resize(self.word.len(), self.tokens.position);
    }

    /// Cut what there is of the word into its tokens.
    fn cut_word(&mut self) {
        self.find_best();
        let (unknown, _) = self.trie.unknown();
        let (mut found, mut end) = (Vec::new(), self.word.len());
        while end > 0 {
            let Best { start, piece, .. } = self.best[end];
            let follows_unknown = found.last().is_some_and(|token: &Token| token.id == unknown);
            if piece != unknown || !follows_unknown {
                found.push(Token { id: piece, end: self.ends[end - 1] });
            }
            end = start;
        }
        found.into_iter().rev().for_each(|token| self.tokens.push(token));
        self.word.clear();
        self.ends.clear();
    }

    /// The likeliest cuts (Viterbi 1967), of equal ones that with the longest last piece.
    fn find_best(&mut self) {
        let Self { trie, word, best, .. } = self;
        let (unknown, unknown_score) = trie.unknown();
        best.clear();
        best.resize(word.len() + 1, Best::NONE);
        best[0].score = 0.0;
        for (start, letter) in word.char_indices() {
            let score = best[start].score;
            let mut improve = |end: usize, piece: u32, more: f32| {
                let score = score + more;
                if score > best[end].score {
                    best[end] = Best { score, start, piece };
                }
            };
            improve(start + letter.len_utf8(), unknown, unknown_score);
            trie.pieces_of(&word.as_bytes()[start..], |piece| {
                improve(start + piece.len, piece.id, piece.score);
            });
        }
    }
}

#[cfg(test)]
mod tests;
