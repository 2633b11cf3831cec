//! Redaction of any text: places are whole, apart and in order, and the rest is left as it is.

use mnemic_core::Error;
use mnemic_core::text::{PatternSource, Redactor, known_patterns};
use proptest::prelude::*;

fn all_known() -> Redactor {
    let source = |name: &str| PatternSource { name: name.to_owned(), regex: None, check: None };
    let sources: Vec<_> = known_patterns().map(source).collect();
    Redactor::new(&sources, "[REDACTED]").expect("the names are known")
}

fn own(regex: &str) -> Result<Redactor, Error> {
    let source =
        PatternSource { name: "own".to_owned(), regex: Some(regex.to_owned()), check: None };
    Redactor::new(&[source], "$1")
}

/// Text in which parts of matches are frequent.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        "[0-9]{1,20}",
        "[-+(). :/@_#%\n]{1,3}",
        "[0-9a-fA-F:.]{1,12}",
        "[A-Za-z]{1,6}",
        "[٠-٩０-９中文กé🍵]{1,4}",
        "(sk-|ghp_|eyJ|AKIA|Bearer |-----BEGIN PRIVATE KEY-----|-----END |\\\\n|＠|GB82)",
        ".{0,4}",
    ];
    proptest::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
}

fn check(redactor: &Redactor, text: &str, replacement: &str) -> Result<(), TestCaseError> {
    let Ok(places) = redactor.matches(text) else { return Ok(()) };
    let redacted = redactor.redacted(text, &places);
    prop_assert!(places.iter().all(|place| place.start < place.end));
    prop_assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start));
    prop_assert_eq!(redacted.len(), redactor.redacted_len(text, &places));
    let mut rest = redacted.as_str();
    let mut at = 0;
    for place in &places {
        rest = rest.strip_prefix(&text[at..place.start]).unwrap_or("other");
        rest = rest.strip_prefix(replacement).unwrap_or("other");
        at = place.end;
    }
    prop_assert_eq!(rest, &text[at..]);
    Ok(())
}

proptest! {
    #[test]
    fn known_patterns_replace_whole_places_of_any_text(text in texts()) {
        check(&all_known(), &text, "[REDACTED]")?;
    }

    #[test]
    fn redacted_text_holds_no_more_matches(text in texts()) {
        let redactor = all_known();
        let places = redactor.matches(&text).expect("known patterns need no budget");
        let redacted = redactor.redacted(&text, &places);
        prop_assert_eq!(redactor.matches(&redacted), Ok(vec![]), "{:?}", redacted);
    }

    #[test]
    fn own_patterns_replace_whole_places_or_are_refused(
        regex in "[ab.é\\\\bwd(|)*+?\\[\\]^${},1-3]{0,12}",
        text in "[abé中1 \n]{0,20}",
    ) {
        if let Ok(redactor) = own(&regex) {
            check(&redactor, &text, "$1")?;
        }
    }
}

#[test]
fn quadratic_work_is_an_error_with_ascii_and_without() {
    for start in ["", "é\n"] {
        let text = start.to_owned() + &"A".repeat(100_000);
        let redactor = own(r".*[^A-Z]\b|[A-Z]").expect("it is valid");
        assert!(matches!(redactor.matches(&text), Err(Error::RedactionBudget { .. })));
    }
}

/// Texts of one kind, ten times as long, take about ten times as much work: their known patterns
/// have no budget that would end it, so that a quadratic one would not end within the day.
#[test]
fn long_texts_of_parts_of_matches_end() {
    for part in [
        "@",
        "a@",
        "1",
        "1 ",
        "1-",
        ":",
        "a:",
        "::",
        "eyJ",
        "eyJa.",
        "sk-",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----\n",
        "Bearer ",
        "+1 ",
        "(",
        "+",
        "1.",
        "GB82 ",
        "a@b.co",
        "+7 495 123-45-67",
        "123-45-6789+7 495 123-45-67",
        "中",
        "１",
        "x ext. ",
    ] {
        let text = part.repeat(2_000_000 / part.len());
        let redactor = all_known();
        let places = redactor.matches(&text).expect("known patterns need no budget");
        assert!(redactor.redacted_len(&text, &places) <= text.len() * 11, "{part:?}");
    }
}
