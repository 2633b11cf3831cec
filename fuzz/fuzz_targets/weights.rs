//! Files of weights: those of impossible sizes or of another length are refused, and others embed.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mnemic_embed::{Checksum, Encoder};
use mnemic_fuzz::begin_with;

/// A model of the smallest sizes: 32 components, one head, one layer, 32 inside, two words and two
/// positions.
fn write_files(folder: &Path) {
    for (word_bits, projections) in [(4, 0), (8, 0), (4, 1)] {
        let path = folder.join(format!("valid-{word_bits}-{projections}"));
        write_file(&path, word_bits, projections);
    }
}

fn write_file(path: &Path, word_bits: u32, projections: u32) {
    let mut bytes = b"MNEMBERT".to_vec();
    let sizes = [1, 32, 1, 1, 32, 2, 2, word_bits, projections];
    bytes.extend(sizes.into_iter().flat_map(u32::to_le_bytes));
    bytes.resize(128 + 9_600 + 1_408 * projections as usize, 0);
    for (number, value) in (0_u16..).zip(bytes[128..].chunks_exact_mut(4)) {
        value.copy_from_slice(&(f32::from(number) / 512.0).to_le_bytes());
    }
    std::fs::write(path, bytes).expect("a file");
    Encoder::open(path, Checksum::Trusted).expect("a model");
}

fuzz_target!(init: begin_with("weights", write_files), |bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("weights");
    std::fs::write(&path, bytes).expect("a file");
    assert!(Encoder::open(&path, Checksum::Verified).is_err() || bytes.len() > 128);
    let Ok(encoder) = Encoder::open(&path, Checksum::Trusted) else { return };
    let mut vectors = vec![0.0; 2 * encoder.dimensions()];
    let texts: [&[u32]; 2] = [&[0], &[1, 0]];
    if encoder.memory(&texts, 1) < 1 << 28 {
        let _ = encoder.embed(&texts, &mut vectors, 1, &|| false);
    }
    assert!(encoder.max_tokens() > 0);
});
