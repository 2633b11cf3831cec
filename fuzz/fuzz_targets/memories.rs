//! Memories of any texts, a line each: an index answers, and the same after it was written and read.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mnemic_core::columns::Record;
use mnemic_core::text::Analyser;
use mnemic_core::{Batch, MemoryIndex};
use mnemic_fuzz::{answers, begin_with};

/// A query, two memories, a name, tags and metadata.
const BEGINNING: &str = "What did Anna say about the violin on 3 May?
Bernard: Hey Anna, where is my violin? I lost it yesterday.
Der Hund lief gestern mit dem alten Fahrrad durch den Hafen. 猫は港にいます。
Anna
[\"music\", \"pets\"]
{\"k\": [1.5, {\"a\": null}]}";

fn write_text(folder: &Path) {
    std::fs::write(folder.join("valid"), BEGINNING).expect("a file");
}

fuzz_target!(init: begin_with("memories", write_text), |text: &str| {
    let mut lines = text.split('\n');
    let [query, content, other, name, tags, metadata] = [(); 6].map(|()| lines.next().unwrap_or(""));
    let analyser = Analyser::of("auto").expect("a language");
    let index = MemoryIndex::new(None, analyser, None).expect("a kernel");
    let turn = |row: i64, content: &str| Record {
        row,
        session: Some(name.to_owned()),
        tags: Some(tags.to_owned()),
        metadata: Some(metadata.to_owned()),
        content: content.to_owned(),
        ..Record::default()
    };
    let said = Record { speaker: Some(name.to_owned()), ..turn(3, query) };
    let records = [turn(1, content), turn(2, other), said];
    index.apply(&Batch { records: &records, ..Batch::default() }).expect("three memories");
    let answer = answers(&index, query);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    index.snapshot().save(&path, name.as_bytes(), &[]).expect("a file");
    let (read, label) = MemoryIndex::load_file(&path, None, analyser, None).expect("a file");
    assert_eq!(label, name.as_bytes());
    assert_eq!(answers(&read, query), answer);
    index.apply(&Batch { removed: &[1, 2, 3], ..Batch::default() }).expect("a change");
    assert!(index.is_empty());
});
