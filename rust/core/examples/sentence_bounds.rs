//! Sentence bounds of the crate unicode-segmentation (Unicode Standard Annex 29), for
//! `python -m benches.sentences_peers`.
//!
//! Standard input holds texts with a null character between them. A line for each text has the
//! lengths of its sentences in bytes; the last line is the time of splitting them all, in seconds.

use std::io::{self, Read, Write};
use std::time::Instant;

use unicode_segmentation::UnicodeSegmentation;

fn main() -> io::Result<()> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let texts: Vec<&str> = input.split('\0').collect();
    let begin = Instant::now();
    let lengths: Vec<Vec<usize>> = texts.iter().map(|text| lengths(text)).collect();
    let seconds = begin.elapsed().as_secs_f64();
    let mut output = io::stdout().lock();
    for lengths in lengths {
        let words: Vec<String> = lengths.iter().map(usize::to_string).collect();
        writeln!(output, "{}", words.join(" "))?;
    }
    writeln!(output, "{seconds}")
}

fn lengths(text: &str) -> Vec<usize> {
    text.split_sentence_bounds().map(str::len).collect()
}
