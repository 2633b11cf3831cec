//! Files of vectors: damaged ones are refused, and others answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::{Search, VectorMap};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vectors");
    std::fs::write(&path, bytes).expect("a file");
    let Ok((map, _label)) = VectorMap::load(&path) else { return };
    let query = vec![1.0; map.dim()];
    let _ = map.search(&query, &Search::default());
    let _ = map.get(&map.ids());
    let _ = map.rows();
    let _ = map.upsert(&[7], &query);
    let _ = map.save(&folder.path().join("again"), b"");
});
