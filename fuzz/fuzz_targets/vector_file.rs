//! Files of vectors: damaged ones are refused, and others answer.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mnemic_core::{Metric, Search, VectorMap};
use mnemic_fuzz::begin_with;

/// A file of this form, and the same read as one of the earlier form.
fn write_files(folder: &Path) {
    let map = VectorMap::new(3, Metric::Cosine).expect("a kernel");
    map.upsert(&[1, 2, 5], &[1.0, 2.0, 3.0, -1.0, 0.0, 1.0, 4.0, 4.0, 4.0]).expect("three rows");
    map.save(&folder.join("valid"), b"label").expect("a file");
    let mut bytes = std::fs::read(folder.join("valid")).expect("a file");
    bytes[8] = 1;
    std::fs::write(folder.join("earlier"), bytes).expect("a file");
}

fuzz_target!(init: begin_with("vector_file", write_files), |bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vectors");
    std::fs::write(&path, bytes).expect("a file");
    let Ok((map, _label)) = VectorMap::load(&path) else { return };
    let query = vec![1.0; map.dim()];
    let _ = map.search(&query, &Search::default());
    let _ = map.range_search(&query, &Search { min_score: 0.5, ..Search::default() });
    let _ = map.count(&query, &Search::default());
    let _ = map.get(&map.ids());
    let _ = map.rows();
    let _ = map.upsert(&[7], &query);
    let _ = map.remove(&[1, 7]);
    let again = folder.path().join("again");
    if map.save(&again, b"").is_ok() {
        VectorMap::load(&again).expect("what was written can be read");
    }
});
