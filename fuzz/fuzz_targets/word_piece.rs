//! Tokenizers read from JSON, and what they make of a text.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mnemic_core::text::{Tokenizer, WordPieceTokenizer};

const SMALL: [&str; 9] = ["[UNK]", "[CLS]", "[SEP]", "a", "##b", "te", "##a", "é", "中"];

static TOKENIZER: LazyLock<WordPieceTokenizer> = LazyLock::new(|| {
    let pieces = SMALL.iter().copied().zip(0..);
    WordPieceTokenizer::new(pieces, &["[SEP]"]).expect("a tokenizer")
});

fuzz_target!(|given: (&[u8], &str, u8)| {
    let (file, text, most) = given;
    let most = usize::from(most);
    let _ = TOKENIZER.encode(text, most);
    if let Ok(tokenizer) = WordPieceTokenizer::of_file(file) {
        let _ = tokenizer.encode(text, most);
    }
});
