//! Markdown, and texts made harmless for prompts: doing so twice changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::text::{markdown_blocks, neutralise};

fuzz_target!(|text: &str| {
    let _ = markdown_blocks(text);
    let harmless = neutralise(text);
    assert_eq!(neutralise(&harmless), harmless);
});
