//! Duplicates are those that a plain comparison of all pairs finds.

use std::collections::HashSet;

use mnemic_core::text::{duplicates, normalise};
use proptest::prelude::*;

/// Sets of three consecutive characters; a shorter text is one.
fn trigrams(form: &str) -> HashSet<Vec<char>> {
    let characters: Vec<char> = form.chars().collect();
    if characters.len() < 3 {
        return HashSet::from([characters]);
    }
    characters.windows(3).map(<[char]>::to_vec).collect()
}

fn numbers(form: &str) -> Vec<&str> {
    form.split(|one: char| !one.is_numeric()).filter(|number| !number.is_empty()).collect()
}

fn is_near(one: &str, other: &str, near: f64) -> bool {
    let (mine, theirs) = (trigrams(one), trigrams(other));
    let shared = mine.intersection(&theirs).count();
    let union = mine.union(&theirs).count();
    numbers(one) == numbers(other) && shared as f64 >= near * union as f64
}

fn twin(texts: &[String], near: Option<f64>) -> Vec<usize> {
    let forms: Vec<String> = texts.iter().map(|text| normalise(text)).collect();
    let mut originals: Vec<usize> = Vec::new();
    for (at, form) in forms.iter().enumerate() {
        let same = forms[..at].iter().position(|other| other == form).map(|first| originals[first]);
        let near = |&kept: &usize| near.is_some_and(|near| is_near(form, &forms[kept], near));
        let kept = || (0..at).filter(|&place| originals[place] == place).find(near);
        originals.push(same.or_else(kept).unwrap_or(at));
    }
    originals
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let free = "[abA .,1你]{0,6}";
    // Cuts and changes of one text, so that similarities of all sizes occur.
    let variant = (0..60_usize, 0..60_usize, "[a-c 7é]{0,2}").prop_map(|(start, length, end)| {
        let base = "Der schnelle braune Fuchs springt über den faulen Hund am Ufer";
        base.chars().skip(start / 6).take(length).chain(end.chars()).collect()
    });
    prop::collection::vec(prop_oneof![1 => free.prop_map(String::from), 3 => variant], 0..90)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_duplicates_have_equal_normal_forms(texts in texts()) {
        prop_assert_eq!(duplicates(&texts, None), Ok(twin(&texts, None)));
    }

    #[test]
    fn near_duplicates_are_those_of_the_plain_comparison(
        texts in texts(),
        near in prop_oneof![Just(0.0), Just(1.0), Just(0.5), Just(0.9), 0.0..=1.0_f64],
    ) {
        prop_assert_eq!(duplicates(&texts, Some(near)), Ok(twin(&texts, Some(near))));
    }
}

#[test]
fn thousands_of_shared_trigrams_are_counted_exactly() {
    // More than 255 in a counter, more than 64 texts in a bitmap, and lists beside bitmaps.
    let word = |number: usize| {
        format!("{}{}", "abcdefghij".repeat(1 + number % 3), "klmnop".repeat(number % 5))
    };
    let letters = |number: usize| {
        let spelled = |digit: u8| char::from(b'a' + (digit - b'0') * 2);
        (number * 7_919).to_string().bytes().map(spelled).collect::<String>()
    };
    let text = |kind: usize| {
        let words = (0..300)
            .map(|at| if at < 10 * kind { letters(at * kind) } else { word(at) + &letters(at) });
        words.collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = (0..150).map(|at| text(at % 25)).collect();
    for near in [0.3, 0.6, 0.8, 0.9, 0.97] {
        assert_eq!(duplicates(&texts, Some(near)), Ok(twin(&texts, Some(near))), "{near}");
    }
}

#[test]
fn a_threshold_that_is_no_similarity_is_refused() {
    for near in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
        assert!(duplicates(&["a"], Some(near)).is_err(), "{near}");
    }
}
