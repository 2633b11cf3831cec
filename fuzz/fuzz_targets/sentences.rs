//! Sentences, passages and cuts: parts of the text, in its order, at whole characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::text::{clip, passage, sentences, truncate, truncate_to_tokens, turn};

fuzz_target!(|given: (&str, &str, u8)| {
    let (text, query, size) = given;
    let mut end = 0;
    for place in sentences(text) {
        assert!(end <= place.start && !text[place.clone()].is_empty());
        end = place.end;
    }
    let size = usize::from(size);
    let _ = clip(text, size);
    assert!(truncate(text, size).chars().count() <= size.max(1));
    let _ = truncate_to_tokens(text, size);
    let _ = passage(text, query, size, 0..text.len());
    let _ = turn(text);
});
