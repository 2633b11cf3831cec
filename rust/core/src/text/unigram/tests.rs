//! Words are cut as a search of all cuts does, and no file makes a text fail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::system::mapped_file::map_file;

const FIRST: u32 = 0;
const LAST: u32 = 2;
const UNKNOWN: u32 = 3;
const UNKNOWN_SCORE: f32 = -20.0;

/// Ids from 4 on. With "▁ab" and "a", "b", "c", "▁": many words have several cuts.
const PIECES: [(&str, f32); 13] = [
    ("▁", -3.0),
    ("a", -2.5),
    ("b", -4.0),
    ("c", -4.25),
    ("▁ab", -5.0),
    ("ab", -6.0),
    ("bc", -5.5),
    ("abc", -7.0),
    ("é", -6.5),
    ("中", -7.5),
    ("中文", -8.0),
    ("▁a", -5.25),
    ("\u{FF5E}", -6.25),
];

fn units_of(pieces: &[(&str, f32)]) -> Vec<[u32; 4]> {
    let mut prefixes = BTreeSet::from([&b""[..]]);
    for (piece, _) in pieces {
        prefixes.extend((1..=piece.len()).map(|end| &piece.as_bytes()[..end]));
    }
    // Each prefix has 256 places of its own: large, and right at a look.
    let places: BTreeMap<&[u8], u32> = prefixes.iter().copied().zip((0..).step_by(256)).collect();
    let mut units = vec![[0, u32::MAX, u32::MAX, 0]; 256 * (prefixes.len() + 1)];
    let base_of = |prefix: &[u8]| places[prefix] + 1;
    units[0][0] = base_of(b"");
    let place_of = |prefix: &[u8]| match prefix.split_last() {
        None => 0,
        Some((byte, parent)) => (base_of(parent) + u32::from(*byte)) as usize,
    };
    for prefix in prefixes.iter().filter(|prefix| !prefix.is_empty()) {
        let unit = &mut units[place_of(prefix)];
        (unit[0], unit[1]) = (base_of(prefix), place_of(&prefix[..prefix.len() - 1]) as u32);
        if let Some(at) = pieces.iter().position(|(piece, _)| piece.as_bytes() == *prefix) {
            (unit[2], unit[3]) = (at as u32 + 4, pieces[at].1.to_bits());
        }
    }
    units
}

fn file_of(pieces: &[(&str, f32)]) -> Vec<u8> {
    let units = units_of(pieces);
    let mut file = b"MNEMUNIG".to_vec();
    let fields = [1, units.len() as u32, FIRST, LAST, UNKNOWN, UNKNOWN_SCORE.to_bits()];
    file.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
    file.resize(64, 0);
    file.extend(units.as_flattened().iter().flat_map(|field| field.to_le_bytes()));
    file
}

fn written(file: &[u8]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("tests may write temporary files");
    let path = folder.path().join("pieces.bin");
    std::fs::write(&path, file).expect("tests may write temporary files");
    (folder, path)
}

fn opened(file: &[u8]) -> Result<UnigramTokenizer, Error> {
    let (_folder, path) = written(file);
    UnigramTokenizer::new(map_file(&path).expect("it is a file"))
}

fn tokenizer() -> UnigramTokenizer {
    opened(&file_of(&PIECES)).expect("the file is whole")
}

fn ids(text: &str) -> Vec<u32> {
    let ids = tokenizer().encode(text, 1000).ids;
    assert_eq!((ids[0], ids[ids.len() - 1]), (FIRST, LAST));
    ids[1..ids.len() - 1].to_vec()
}

fn id(piece: &str) -> u32 {
    let at = PIECES.iter().position(|(known, _)| *known == piece);
    at.map_or(UNKNOWN, |at| at as u32 + 4)
}

fn ids_of(pieces: &[&str]) -> Vec<u32> {
    pieces.iter().map(|piece| id(piece)).collect()
}

/// The largest score of any cut of a word: the definition.
fn best_score(word: &str) -> f64 {
    let Some(letter) = word.chars().next() else { return 0.0 };
    let unknown = f64::from(UNKNOWN_SCORE) + best_score(&word[letter.len_utf8()..]);
    let known = PIECES.iter().filter(|(piece, _)| word.starts_with(piece));
    let scores = known.map(|(piece, score)| f64::from(*score) + best_score(&word[piece.len()..]));
    scores.fold(unknown, f64::max)
}

#[test]
fn a_word_is_cut_into_its_likeliest_pieces() {
    assert_eq!(ids("ab"), ids_of(&["▁ab"]));
    assert_eq!(ids("abc"), ids_of(&["▁ab", "c"]));
    assert_eq!(ids("ca ab"), ids_of(&["▁", "c", "a", "▁ab"]));
    assert_eq!(ids("中文"), ids_of(&["▁", "中文"]));
}

#[test]
fn characters_of_no_piece_are_one_token() {
    assert_eq!(ids("axyz"), [id("▁a"), UNKNOWN]);
    assert_eq!(ids("xa☃☃b"), [id("▁"), UNKNOWN, id("a"), UNKNOWN, id("b")]);
}

#[test]
fn spaces_part_words_and_are_nothing_at_the_ends() {
    for text in ["ab a", "  ab \t\n a ", "ab\u{3000}a", "ab\u{200d}a", "\u{feff}ab\u{a0}a\r\n"] {
        assert_eq!(ids(text), ids_of(&["▁ab", "▁a"]), "{text:?}");
    }
    for text in ["", " ", "▁", "\u{1}"] {
        assert!(ids(text).is_empty(), "{text:?}");
    }
}

#[test]
fn texts_are_read_in_their_normal_form() {
    assert_eq!(ids("ｃａ\u{7f}"), ids_of(&["▁", "c", "a"]));
    assert_eq!(ids("ce\u{301}"), ids_of(&["▁", "c", "é"]));
    assert_eq!(ids("a\u{FF5E}b"), ids_of(&["▁a", "\u{FF5E}", "b"]));
    assert_eq!(ids("</s> <s>").iter().filter(|id| **id < UNKNOWN).count(), 0);
}

#[test]
fn a_limit_leaves_the_first_tokens_and_the_characters_that_they_cover() {
    let tokenizer = tokenizer();
    for (limit, tokens, characters) in [(0, 0, 0), (2, 0, 0), (3, 1, 2), (4, 2, 4), (5, 2, 5)] {
        let found = tokenizer.encode("ab  a ", limit);
        assert_eq!(found.ids.len(), tokens + 2, "{limit}");
        assert_eq!(found.is_truncated, limit < 4, "{limit}");
        let covered = if found.is_truncated { characters } else { 6 };
        assert_eq!(found.characters, covered, "{limit}");
    }
    assert_eq!(tokenizer.encode("ab  中 a", 4).ids, [FIRST, id("▁ab"), LAST]);
    let marks = format!("a{}", "\u{FF9E}".repeat(6));
    assert!(tokenizer.encode(&marks, 3).characters < 7);
    let (text, mark) = ("ce\u{301}".repeat(50), "ce\u{301}".chars().count());
    assert_eq!(tokenizer.encode(&text, 5).characters, mark);
}

#[test]
fn a_text_without_spaces_is_read_no_further_than_its_tokens_reach() {
    let text = "中文".repeat(1_000_000);
    let found = tokenizer().encode(&text, 512);
    assert!(found.is_truncated && found.ids.len() == 512 && found.characters == 2 * 509);
    let marks = format!("a{}", "\u{301}".repeat(1_000_000));
    assert!(tokenizer().encode(&marks, 512).ids.len() <= 512);
}

proptest! {
    #[test]
    fn no_cut_of_a_word_is_likelier(word in "[abcé]{1,9}") {
        let scores = ids(&word).into_iter().map(|id| f64::from(PIECES[id as usize - 4].1));
        let (found, best) = (scores.sum::<f64>(), best_score(&[String::from(WORD), word].concat()));
        prop_assert!((found - best).abs() < 1e-4, "{} {}", found, best);
    }

    #[test]
    fn any_units_and_any_text_give_tokens(bytes in prop::collection::vec(any::<u8>(), 0..4096), text in ".{0,60}") {
        let mut file = file_of(&PIECES);
        let end = file.len().min(64 + bytes.len());
        file[64..end].copy_from_slice(&bytes[..end - 64]);
        let found = opened(&file).expect("its header is right").encode(&text, 9);
        prop_assert!(found.ids.len() <= 9 && found.characters <= text.chars().count());
    }
}

#[test]
fn other_files_are_refused() {
    let file = file_of(&PIECES);
    let refused = |file: &[u8], words: &str| {
        let error = opened(file).expect_err("it is another file").to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&file[..63], "shorter than its header");
    refused(b"", "shorter than its header");
    refused(&[b"MNEMBERT", &file[8..]].concat(), "another kind of file");
    refused(&[&file[..8], &[9], &file[9..]].concat(), "it has version 9, not 1");
    refused(&file[..file.len() - 16], "its header says otherwise");
    refused(&[&file[..], &[0; 16]].concat(), "its header says otherwise");
    let (folder, path) = written(&file);
    for path in [folder.path().to_owned(), path.with_extension("missing")] {
        let error = map_file(&path).expect_err("it is no file");
        assert!(matches!(error, Error::FileUnreadable { .. }), "{error}");
    }
}
