//! Files of weights: those of impossible sizes or of another length are refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_embed::{Checksum, Encoder};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("weights");
    std::fs::write(&path, bytes).expect("a file");
    assert!(Encoder::open(&path, Checksum::Verified).is_err() || bytes.len() > 128);
    let Ok(encoder) = Encoder::open(&path, Checksum::Trusted) else { return };
    let _ = (encoder.dimensions(), encoder.max_tokens());
});
