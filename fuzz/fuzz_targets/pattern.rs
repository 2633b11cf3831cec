//! Regular expressions of a user: refused, or searched within the bound of work.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::text::{PatternSource, Redactor};

fuzz_target!(|given: (&str, &str)| {
    let (regex, text) = given;
    let source =
        PatternSource { name: "own".to_owned(), regex: Some(regex.to_owned()), check: None };
    let Ok(redactor) = Redactor::new(&[source], "[…]") else { return };
    let Ok(places) = redactor.matches(text) else { return };
    let _ = redactor.redacted(text, &places);
});
