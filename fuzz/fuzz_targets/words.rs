//! Words, languages, normal forms and fingerprints of any text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::text::{
    Analyser, Language, detect, duplicates, estimate_tokens, fingerprint, fold, normalise,
    surface_forms,
};

fuzz_target!(|text: &str| {
    let _ = detect(text);
    let _ = estimate_tokens(text);
    let _ = fold(text);
    let normal = normalise(text);
    assert_eq!(normalise(&normal), normal);
    assert_eq!(fingerprint(text), fingerprint(&normal));
    for language in Language::all() {
        let analyser = Analyser::of(language.code()).expect("a language");
        let words: Vec<&str> = text.split_whitespace().take(3).collect();
        let _ = surface_forms(text, &words, analyser);
    }
    let parts: Vec<&str> = text.split('\n').take(20).collect();
    let _ = duplicates(&parts, Some(0.8));
});
