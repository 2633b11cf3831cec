//! Files of indexes: damaged ones are refused, and others can be read through and written again. They
//! are not changed: sums of words are not counted anew, so those of a forged file may go below zero.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mnemic_core::columns::Record;
use mnemic_core::memory::links::Link;
use mnemic_core::text::Analyser;
use mnemic_core::{Batch, MemoryIndex};
use mnemic_fuzz::{answers, begin_with};

fn record(row: i64, content: &str) -> Record {
    Record {
        row,
        user: (row > 1).then(|| "user".to_owned()),
        session: Some("session".to_owned()),
        speaker: (row == 2).then(|| "Anna".to_owned()),
        position: Some(row),
        expires_at: (row == 3).then_some(9),
        tags: Some(format!("[\"tag\", \"{row}\"]")),
        metadata: Some(format!("{{\"k\":{row}}}")),
        content: content.to_owned(),
        ..Record::default()
    }
}

/// Files of an index with vectors, and of one without.
fn write_files(folder: &Path) {
    for (name, dim) in [("vectors", Some(4)), ("words", None)] {
        let analyser = Analyser::of("auto").expect("a language");
        let index = MemoryIndex::new(dim, analyser, None).expect("a kernel");
        let records = [
            record(1, "Bernard: Hey Anna, where is my violin?"),
            record(2, "It is in the house of my brother, who plays it every day."),
            record(3, "Der Hund lief mit dem alten Fahrrad durch den Hafen."),
        ];
        let embedded: &[i64] = if dim.is_some() { &[1, 2] } else { &[] };
        let vectors = &[1.0, 2.0, 1.0, 0.0, 0.0, 3.0, 1.0, 1.0][..4 * embedded.len()];
        let links = [Link { from: 2, to: 1, kind: 3, strength: 0.5 }];
        let batch = Batch {
            records: &records,
            embedded,
            vectors,
            linked: &[2],
            links: &links,
            ..Batch::default()
        };
        index.apply(&batch).expect("three memories");
        index.snapshot().save(&folder.join(name), b"label", &[]).expect("a file");
    }
}

fuzz_target!(init: begin_with("index_snapshot", write_files), |bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    std::fs::write(&path, bytes).expect("a file");
    let again = folder.path().join("again");
    for dim in [Some(4), None] {
        let analyser = Analyser::of("auto").expect("a language");
        let Ok((index, _label)) = MemoryIndex::load_file(&path, dim, analyser, None) else {
            continue;
        };
        let _ = answers(&index, "Where did Anna see the violin?");
        let snapshot = index.snapshot();
        let _ = snapshot.vectors(0, 100);
        let _ = snapshot.sensitive();
        if snapshot.save(&again, b"", &[]).is_ok() {
            MemoryIndex::load_file(&again, dim, analyser, None).expect("what was written");
        }
    }
});
