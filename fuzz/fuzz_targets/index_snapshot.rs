//! Files of indexes: damaged ones are refused, and others can be read through and written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::MemoryIndex;
use mnemic_core::text::Analyser;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    std::fs::write(&path, bytes).expect("a file");
    for dim in [Some(4), None] {
        let analyser = Analyser::of("auto").expect("a language");
        let Ok((index, _label)) = MemoryIndex::load_file(&path, dim, analyser, None) else {
            continue;
        };
        let snapshot = index.snapshot();
        let _ = snapshot.vectors(0, 100);
        let _ = snapshot.sensitive();
        let _ = index.unembedded();
        let _ = index.accesses(&[0, 1, 2]);
        let _ = index.has_speakers();
        let _ = snapshot.save(&folder.path().join("again"), b"", &[]);
    }
});
