//! Files of unigram pieces, and what their tokenizers make of a text.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mnemic_core::system::mapped_file::map_file;
use mnemic_core::text::{Tokenizer, UnigramTokenizer};
use mnemic_fuzz::begin_with;

/// The pieces "a" and "ab", in units behind a header.
fn write_files(folder: &Path) {
    let (root, a, ab) = (0, 1 + u32::from(b'a'), 200 + u32::from(b'b'));
    let mut units = vec![[0, u32::MAX, u32::MAX, 0]; 1 + ab as usize];
    units[root as usize][0] = 1;
    units[a as usize] = [200, root, 4, (-1.0_f32).to_bits()];
    units[ab as usize] = [0, a, 5, (-1.5_f32).to_bits()];
    let mut bytes = b"MNEMUNIG".to_vec();
    let fields = [1, units.len() as u32, 0, 2, 3, (-11.0_f32).to_bits()];
    bytes.extend(fields.into_iter().flat_map(u32::to_le_bytes));
    bytes.resize(64, 0);
    bytes.extend(units.into_iter().flatten().flat_map(u32::to_le_bytes));
    std::fs::write(folder.join("valid"), bytes).expect("a file");
}

fuzz_target!(init: begin_with("unigram", write_files), |bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pieces");
    std::fs::write(&path, bytes).expect("a file");
    let Ok(map) = map_file(&path) else { return };
    let Ok(tokenizer) = UnigramTokenizer::new(map) else { return };
    let end = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(40)..]);
    for text in ["ab a\u{301}b", &end] {
        let found = tokenizer.encode(text, 9);
        assert!(found.ids.len() <= 9 && found.characters <= text.chars().count());
    }
});
