//! Dates and times that a text names: ranges that do not end before they begin.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::text::{answer_type, date_ranges};

fuzz_target!(|given: (&str, i64)| {
    let (text, now) = given;
    for range in date_ranges(text, now, &|| Some(now)) {
        assert!(range.start <= range.end, "{range:?}");
    }
    let _ = answer_type(text);
});
