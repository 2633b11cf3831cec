//! Speakers of turns, and turns that ask.

use mnemic_core::text::turn;
use proptest::prelude::*;

#[test]
fn a_short_name_before_a_colon_is_a_label() {
    for (content, label, body) in [
        ("Anna: I moved.", "Anna", "I moved."),
        ("  Anna :  I moved. ", "Anna", "I moved."),
        ("Anna Lee: Hi", "Anna Lee", "Hi"),
        ("Dr. J. O'Neil-Smith: Hi", "Dr. J. O'Neil-Smith", "Hi"),
        ("user: hi", "user", "hi"),
        ("ASSISTANT: hi", "ASSISTANT", "hi"),
        ("Agent 7: hi", "", ""),
        ("User_2: hi", "User_2", "hi"),
        ("Élodie: salut", "Élodie", "salut"),
        ("小明: 你好", "小明", "你好"),
        ("दीपिका: नमस्ते", "दीपिका", "नमस्ते"),
        ("Anna:", "Anna", ""),
        ("Anna:\nI moved.", "Anna", "I moved."),
        ("Anna: Ben: hi", "Anna", "Ben: hi"),
        ("Note: buy milk", "Note", "buy milk"),
        ("One Two Three Four: x", "One Two Three Four", "x"),
    ] {
        let found = turn(content);
        if label.is_empty() {
            assert_eq!((found.label, found.body), (None, content), "{content}");
        } else {
            assert_eq!((found.label, found.body), (Some(label), body), "{content}");
        }
    }
}

#[test]
fn other_texts_with_a_colon_have_no_label() {
    let long = format!("{}: hi", "A".repeat(41));
    for content in [
        "",
        ":",
        ": hi",
        "I moved.",
        "http://example.org is down",
        "https://example.org: down",
        "Http://example.org",
        "10:30 we met",
        "At 10:30: we met",
        "10: thirty",
        "- Anna: hi",
        "* Anna: hi",
        "1. Anna: hi",
        "• Anna: hi",
        "the list: milk",
        "She said: no",
        "One Two Three Four Five: x",
        "Yes, Anna: no",
        "Anna (mum): hi",
        "Anna:hi",
        "Std::vec",
        "C:\\temp",
        &long,
    ] {
        assert_eq!((turn(content).label, turn(content).body), (None, content), "{content}");
    }
}

#[test]
fn the_longest_label_has_forty_characters_of_any_width() {
    for letter in ["A", "Я", "𐐀"] {
        let label = letter.repeat(40);
        assert_eq!(turn(&format!("{label}: hi")).label, Some(&label[..]));
        assert_eq!(turn(&format!("{label}{letter}: hi")).label, None);
    }
}

#[test]
fn a_body_that_ends_with_a_question_mark_asks() {
    for content in [
        "Anna: How are you?",
        "How are you? ",
        "How are you?!",
        "How are you??",
        "She said \"how are you?\"",
        "“How are you?”",
        "(How are you?)",
        "*How are you?*",
        "How are you? 😀",
        "How are you? 👩‍💻❤️🇩🇪",
        "How are you? [shares a photo: a dog]",
        "How are you? 😀 [shares a photo: a dog [brown]] [and another]",
        "元気ですか？",
        "كيف حالك؟",
        "Τι κάνεις\u{37e}",
        "Ինչպե՞ս ես՞",
        "Really‽",
        "Really⁇ ❓",
    ] {
        assert!(turn(content).asks, "{content}");
        assert!(turn(content).mentions_question, "{content}");
    }
}

#[test]
fn a_body_that_goes_on_after_its_question_mentions_one() {
    for content in [
        "How are you? I am fine.",
        "Why? Because.",
        "I am fine. [is that a dog?]",
        "Why? :) ok",
        "? 1",
    ] {
        assert!(!turn(content).asks, "{content}");
        assert!(turn(content).mentions_question, "{content}");
    }
}

#[test]
fn statements_neither_ask_nor_mention_a_question() {
    for content in ["", "Anna: hi", "hi!", "[a dog]", "]", "hi]", "[[", "😀", "one; two;", "Anna:"]
    {
        assert!(!turn(content).asks, "{content}");
        assert!(!turn(content).mentions_question, "{content}");
    }
}

const PIECES: [&str; 20] = [
    "Anna", "user", "said", "10", ":", ": ", " ", "?", "？", "[", "]", "\"", "”", "😀", "\u{fe0f}",
    "http://", "é", "日", "\n", "!",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn label_and_body_are_the_ends_of_the_content(
        content in prop_oneof![
            any::<String>(),
            prop::collection::vec(prop::sample::select(&PIECES[..]), 0..12).prop_map(|pieces| pieces.concat()),
        ],
    ) {
        let found = turn(&content);
        let content = content.trim();
        prop_assert!(content.ends_with(found.body));
        prop_assert!(!found.asks || found.mentions_question);
        if let Some(label) = found.label {
            prop_assert!(content.starts_with(label) && !label.is_empty());
            prop_assert!(label.chars().count() <= 40);
            let between = &content[label.len()..content.len() - found.body.len()];
            prop_assert_eq!(between.trim(), ":");
        } else {
            prop_assert_eq!(found.body, content);
        }
    }

    #[test]
    fn a_label_does_not_change_what_the_body_asks(body in "[a-zé?\\[\\]! \"😀]{0,20}") {
        let (bare, labelled) = (turn(&body), format!("Anna: {body}"));
        let labelled = turn(&labelled);
        prop_assert_eq!(labelled.label, Some("Anna"));
        prop_assert_eq!((bare.body, bare.asks, bare.mentions_question), (labelled.body, labelled.asks, labelled.mentions_question));
    }
}
