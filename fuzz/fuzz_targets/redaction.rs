//! Redaction by all known patterns: no match remains, and places are those of whole characters.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mnemic_core::text::{PatternSource, Redactor, known_patterns};

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    let sources: Vec<PatternSource> = known_patterns()
        .map(|name| PatternSource { name: name.to_owned(), regex: None, check: None })
        .collect();
    Redactor::new(&sources, "[…]").expect("known patterns")
});

fuzz_target!(|text: &str| {
    let Ok(places) = REDACTOR.matches(text) else { return };
    for place in &places {
        assert!(text.is_char_boundary(place.start) && text.is_char_boundary(place.end));
    }
    let redacted = REDACTOR.redacted(text, &places);
    assert_eq!(redacted.len(), REDACTOR.redacted_len(text, &places));
});
