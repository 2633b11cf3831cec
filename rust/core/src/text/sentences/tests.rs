//! Cases by rule.

use super::sentences;

fn split(text: &str) -> Vec<&str> {
    sentences(text).map(|place| &text[place]).collect()
}

#[test]
fn marks_end_sentences() {
    assert_eq!(split("One. Two! Three? Four"), ["One.", "Two!", "Three?", "Four"]);
    assert_eq!(split("好。走吧！真的？是"), ["好。", "走吧！", "真的？", "是"]);
    assert!(split(" \n ").is_empty());
}
