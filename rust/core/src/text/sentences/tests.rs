//! Cases by rule, the table of cases that Python reads too, properties, and the work done.

use std::cell::Cell;

use proptest::prelude::*;

use super::sentences;

fn split(text: &str) -> Vec<&str> {
    sentences(text).map(|place| &text[place]).collect()
}

/// Compare with cases whose sentences are divided by ¦, without white space around it.
fn check(cases: &[&str]) {
    for case in cases {
        let wanted: Vec<&str> =
            case.split('¦').map(str::trim).filter(|one| !one.is_empty()).collect();
        assert_eq!(split(&case.replace('¦', "")), wanted);
    }
}

#[test]
fn the_shared_table_is_met_in_every_case() {
    let table =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/samples/sentences.tsv"));
    let cases: Vec<String> = table.lines().skip(1).map(|line| unescaped(cell(line))).collect();
    assert!(cases.len() >= 450);
    check(&cases.iter().map(String::as_str).collect::<Vec<_>>());
}

fn cell(line: &str) -> &str {
    line.split('\t').nth(1).expect("a line has a topic and a text")
}

fn unescaped(cell: &str) -> String {
    let (mut text, mut rest) = (String::new(), cell);
    while let Some((before, escape)) = rest.split_once('\\') {
        text.push_str(before);
        let length = if escape.starts_with('u') { 5 } else { 1 };
        let (escape, behind) = escape.split_at(length);
        text.push(match escape {
            "n" => '\n',
            "r" => '\r',
            "t" => '\t',
            "\\" => '\\',
            code => u32::from_str_radix(&code[1..], 16)
                .ok()
                .and_then(char::from_u32)
                .expect("an escape names a character"),
        });
        rest = behind;
    }
    text + rest
}

#[test]
fn texts_without_words_have_at_most_one_sentence() {
    check(&["", " \n\u{3000}\t", "...", "?!", "。。。", "\u{feff}", "\"", "- - -", "。」"]);
}

#[test]
fn runs_of_marks_end_one_sentence_apart_or_together() {
    check(&[
        "What?!¦ Really!!!¦ Quoi ? !¦ Non.",
        "I never meant that....¦ She left.",
        "It weakened . . . and went on. . . .¦ The practice stayed.",
        "Wait, what?...¦ I see.",
        "すごい！！！¦ありがとう。。。¦でも",
        "བཀྲ་ཤིས། །¦བདེ་ལེགས།",
    ]);
}

#[test]
fn quotes_and_brackets_close_the_sentence_before_and_open_the_next() {
    check(&[
        "He said \"Go.\" and left.",
        "He said \"Go.\"¦ Then he left.",
        "She cried \"No!\" twice.¦ \"Why?\"¦ (It hurt.)¦ [Silence.]",
        "She turned to him, \"This is great.\" she said.",
        "He teaches (He was an engineer once.) at the university.",
        "“Hello there.¦ How are you?” he asked.",
        "\"What?\"¦ \"Nothing.\"¦ \"'Tis,\" he said.",
        "Él dijo: «Ven».¦ Ella fue.",
        "« Non ! » dit-il.¦ « Si. »¦ Il part.",
        "„Geh.“¦ »Nein.«¦ Dann ging er.",
        "他说：“走吧。¦快走。”¦然后他走了。",
        "他说。¦\"走吧。\"¦她走了。",
        "彼は「行け。」と言った。¦『なに？』¦彼は寝た。",
        "他走了（真的？）然后回来。¦（再见。）¦好。",
        "It was so.[12]¦ But no.²¦ Yes.",
    ]);
}

#[test]
fn a_dash_binds_the_words_of_a_speaker() {
    check(&[
        "— Иди! — сказал он.¦ — Я жду.",
        "—¿Vienes? —preguntó Juan.¦ —No.",
        "Am I late?¦ — No.¦ – Yes.",
        "“Stop!” — she ran.",
    ]);
}

#[test]
fn abbreviations_go_on_by_their_class() {
    check(
        &[
            "Dr. The Great met MR. SMITH.¦ Prof. Lee left.",
            "John Smith Sr. He was old.",
            "She works at Acme Corp. in May.¦ He likes Acme Corp.¦ Anna does.",
            "Pens, ink etc. are here.¦ Pens, ink, etc.¦ Then nothing.",
            "Take no. 5.¦ No.¦ i will not.¦ no.¦ never",
            "Jan. and Feb. are cold.¦ I sat.¦ then i left.",
            "Call me.¦ Then talk to Me. Durand.",
            "Acme Inc. (Boston) opens at 10 a.m. (EST).¦ (Ann went.)",
            "The car is red.¦ Ann likes figs.¦ Bo too.",
            "Rows a vs. b, e.g. Paris, i.e. here, cf. Miller.",
            "At 8 a.m. Monday we left.¦ It was 5 p.m.¦ Mr. Smith came.",
            "Er wohnt in der Hauptstr. 5 und mag z. B. Tee.¦ Das kostet 5 Mio. Euro.",
            "Trae p. ej. fruta.¦ Es de EE. UU. y EE.UU.",
            "Книги и т. д. лежат.¦ Он жил в г. Москва.",
            "Ο κ. Παππάς, π.χ. εδώ.¦ Ναι.",
            "جاء د. أحمد.",
        ]
        .map(|case| case.replace("Sr. He", "Sr.¦ He"))
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>(),
    );
}

#[test]
fn units_are_abbreviations_behind_numbers_alone() {
    check(&[
        "It is 3 in. wide.¦ He went in.¦ then she came",
        "It took 5 min.¦ Anna waited 5 min. or more.",
        "5 тыс. руб. в год.¦ В XIX в.¦ Пушкин писал.¦ Он родился в 1990 г.¦ Он жил.",
    ]);
}

#[test]
fn initials_go_on_before_names() {
    check(&[
        "J. R. R. Tolkien and J.-P. Sartre met George W. Bush.¦ They talked.",
        "You and I.¦ Did you see Albert I. Jones?",
        "Take vitamin C.¦ Oranges have it.¦ Choose plan B.¦ It works.",
        "The U.S. Army left the U.S.¦ They went home.",
        "ए. पी. जे. अब्दुल कलाम आए।¦ यह घर है.¦ वह स्कूल है.",
    ]);
}

#[test]
fn numbers_dates_and_ordinals_hold_together() {
    check(&[
        "Pi is 3.14, v1.2.3 is out at 10.30 for $1.50.¦ Buy 5.¦ Then 3.5.¦ Go.",
        "Am 3. Mai ist der 2. Weltkrieg Thema.¦ Am 5. kommt er.¦ Er ist 19.¦ Sie ist 20.",
        "Ludwig XIV. war König.¦ Vi ses den 3. maj.¦ Přijdu 5. května.",
        "It is on 3. 5. 2020.¦ Come.¦ 2020. 5. 3. 서울에서 만났다.¦ 좋았다.",
        "Call me at 5.¦ i will be home",
        "I am 30.¦ Anna is 31.",
        "Pay approx. $5 for no. #3.¦ Fine.",
    ]);
}

#[test]
fn list_markers_belong_to_their_items() {
    check(&[
        "1. Wash it.¦ 2. Dry it.¦ a. Fold it.¦ iv. Rest.",
        "Steps: 1. Wash it.¦ 2. Dry it.",
        "Age: 30.¦ Version: 3.2.¦ Lives in Oslo.",
        "• 9. Nine.¦ • 10. Ten.",
        "3.2. Methods of work\n¦3.3. Results",
        "| a | b. |\n¦| c. | d |",
    ]);
}

#[test]
fn addresses_and_names_of_files_hold_together() {
    check(&[
        "See http://a.com/b?c=d.e!f#g.¦ Mail x.y@b.co.uk.¦ Open main.c and .gitignore.",
        "Yahoo! is old.¦ Use a != b.¦ Use f(x)!.",
        "https://a.b/c?d=e.f is it",
    ]);
}

#[test]
fn ellipses_end_before_a_capital_or_a_letter_without_case() {
    check(&[
        "Well... maybe.¦ I can't...¦ Anyway… 5 came…¦ 好。",
        "Is it (...) here [...] So?",
        "... then what?",
        "等等……我来。",
        "Wait...what?",
    ]);
}

#[test]
fn a_line_end_is_a_boundary_but_in_a_broken_paragraph() {
    let long = "This line was broken by an editor at some column";
    check(&[
        "milk\n¦eggs\r\n¦bread\r¦tea\u{2028}¦coffee\u{85}¦water",
        &format!("{long}\nand goes on."),
        &format!("{long} with Dr.\n¦Lee"),
        &format!("{long}\n\n¦and ends."),
        &format!("{long}\n¦And ends."),
        &format!("{long}\n¦- and a list"),
        &format!("{long}\n¦a) and a list"),
        &format!("{long}\n¦b. and a list"),
        &format!("{long}\n¦bob: and a turn"),
        &format!("{long}:\n¦and a list"),
        &format!("{long} etc.\nand goes on."),
        &format!("{long}.\n¦and goes on."),
        "short line\n¦and another",
        "短い行\n¦次の行",
    ]);
}

#[test]
fn emoji_and_emoticons_belong_to_the_sentence_before_them() {
    check(&[
        "Great!😀😀¦ Thanks 😀.¦ What?? 🤔 🤔¦ I go 🤷‍♂️.¦ ok",
        "Go!¦ 😀yes",
        "Hello! :)¦ How are you? ;-) <3¦ fine :D thanks.¦ Bye... :'(",
        "See!¦ :memo: x.¦ =)no",
    ]);
}

#[test]
fn marks_of_many_scripts_end_sentences() {
    check(&[
        "كيف حالك؟¦ بخير۔¦ نعم!",
        "राम आया।¦सीता गई॥¦ अब।",
        "ሰላም ነው።¦ የት ነህ፧¦ ቤት።",
        "Բարև։¦ Ինչպե՞ս ես։",
        "ខ្ញុំនៅផ្ទះ។¦ អរគុណ៕",
        "သင် ဘယ်မှာလဲ။¦ ကောင်းပါတယ်၊ ကျေးဇူးပါ။",
        "Τι κάνεις;¦ Καλά.¦ «Πού πας;» ρώτησε.",
        "int main(); return 0;",
        "สวัสดีครับ ผมอยู่กรุงเทพฯ กับเพื่อน\n¦ฉันชอบชา",
        "真的?¦我不知道!¦圆周率３．１４。¦好．¦走",
        "정말 좋아요!¦ 그는 “싫어!”라고 했다.",
    ]);
}

#[test]
fn the_first_sentences_of_a_long_text_cost_no_look_at_the_rest() {
    for rest in ["word ", "a. ", "\n", "\"", "「", "e\u{301}", "好。", "("] {
        let text = format!("One. Two. {}", rest.repeat(100_000));
        let mut places = sentences(&text);
        assert_eq!(places.by_ref().take(2).last(), Some(5..9), "{rest:?}");
        let steps = STEPS.take();
        assert!(steps < 300_000, "{rest:?}: {steps}");
    }
    let text = format!("One. Two. {}", "Word ".repeat(100_000));
    let mut places = sentences(&text);
    places.by_ref().take(2).for_each(drop);
    let steps = STEPS.take();
    assert!(steps < 100, "{steps}");
}

thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Count bytes and characters that are read.
pub(super) fn count(steps: usize) {
    STEPS.set(STEPS.get() + steps);
}

fn work(text: &str) -> usize {
    STEPS.take();
    sentences(text).for_each(drop);
    STEPS.take()
}

#[test]
fn work_grows_with_the_length_of_hostile_texts() {
    let long = "x".repeat(50);
    for unit in [
        ".",
        "a.",
        "a. ",
        "A. ",
        "1. ",
        "\"",
        "a.\" ",
        "(",
        ".)",
        "\n",
        "a\n",
        "a\n \n",
        " ",
        ". ",
        "e\u{301}",
        "\u{301}",
        "?",
        "? ",
        "。",
        "。\"",
        "。“",
        "「",
        "」",
        "\u{1f600}",
        "! \u{1f600} ",
        "! \u{1f600}",
        "...",
        ". . ",
        "a. b. ",
        "dr. ",
        "1.",
        "- ",
        "\u{a0}",
        "«",
        "» ",
        "! »",
        "[1]",
        ".[1",
        ";",
        "α; ",
        "\r",
        "\r\n",
        "क",
        "है. ",
        "•",
        "a.b-",
        "U.S.",
        "\u{2029}",
        "'",
        "…",
        "\u{200d}",
        ":) ",
        "! :) ",
        "*",
        "*.",
        &long,
    ] {
        for start in ["", "\"", "ok?", "a. ", "(a", "α;"] {
            let of = |count: usize| work(&format!("{start}{}", unit.repeat(count)));
            let (once, twice) = (of(2_000), of(4_000));
            assert!(twice <= 2 * once + 2_000, "{start:?} {unit:?}: {once}, {twice}");
            let bytes = 4_000 * unit.len();
            assert!(twice <= 120 * bytes + 1_000, "{start:?} {unit:?}: {twice} for {bytes} bytes");
        }
    }
}

/// Texts of characters that matter here, besides whatever else there is.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let known = prop::sample::select(
        ". . ! ? … ; : , \" ' ( ) [ ] “ ” „ « » 「 」 。 ！ ？ । ؟ - — \n \n \r a b I A Z Dr e.g U.S 1 \
         2020 Mai z B ж α 你 と 한 है e\u{301} 😀 👩\u{200d}👧 \u{a0} \u{2029} \u{feff} • 1. **"
            .split(' ')
            .chain([" ", " ", " "])
            .collect::<Vec<_>>(),
    );
    let part = prop_oneof![
        6 => known.prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn sentences_and_the_white_space_between_them_give_the_text(text in any_text()) {
        let mut at = 0;
        for place in sentences(&text) {
            prop_assert!(place.start < place.end);
            prop_assert!(text[at..place.start].chars().all(char::is_whitespace));
            let sentence = &text[place.clone()];
            prop_assert_eq!(sentence.trim(), sentence);
            at = place.end;
        }
        prop_assert!(text[at..].chars().all(char::is_whitespace));
    }

    #[test]
    fn white_space_around_a_text_changes_no_sentence(text in any_text()) {
        let padded = format!(" \n{text}\u{3000}\t ");
        prop_assert_eq!(split(&padded), split(&text));
    }

    #[test]
    fn a_blank_line_divides_sentences(first in any_text(), second in any_text()) {
        let both = format!("{first}\n\n{second}");
        let apart = [split(&first), split(&second)].concat();
        let starts_alone = !second.starts_with(|one: char| "\u{301}".contains(one));
        prop_assume!(starts_alone);
        prop_assert_eq!(split(&both), apart);
    }

    #[test]
    fn work_is_bounded_by_the_length(text in any_text()) {
        prop_assert!(work(&text) <= 150 * text.len() + 100);
    }
}
