//! Texts that are the same memory, and texts that are not.

use std::collections::HashSet;
use std::fmt::Write;

use mnemic_core::text::{FINGERPRINT_VERSION, display_id, fingerprint, fingerprints, normalise};
use proptest::prelude::*;

/// Letters with one upper case that folds back to them, from scripts that have case.
const CASED: &str = "[a-zA-Z0-9àéîõüçñøœšžαβγδλσψωабвгджщюяіґհայաგნ +#%$-]{1,40}";

/// Texts in which marks, compatibility characters and odd folding are frequent.
const AWKWARD: &str = "[12９²⁵₂⁻ⁿᵏ½①⑪⑴⒈㋀㏠㎡\u{300}-\u{345}ßẞİıŉǰΐΰΣςᾳᾼſ℃™№…´¨ﬁ㎏ｱﾞÅǅᏸꭰჀꙋé한\u{1100}\u{1161}\u{11a8}\u{3099}か\u{93c}क\
    \u{94d}\u{9c7}\u{9be}\u{16d67}\u{fe0f}\u{200d}\u{200b}\u{ad}\u{feff}\u{a0}\u{3000}\u{2028}\u{85}\u{1c} \t\n.,;:!?¡¿'\"()«»“”。、，؟؛।]{0,24}";

const SURROUNDINGS: &str = "[ \t\n\u{a0}\u{3000}\u{2028}.,;:!?…¡¿'\"()\\[\\]{}«»‹›“”„‘’「」『』【】（）。、，！？；：؟؛،۔।॥]{0,6}";

fn full_width(text: &str) -> String {
    let widen = |one| match one {
        '!'..='~' => char::from_u32(u32::from(one) + 0xfee0).expect("full-width forms exist"),
        ' ' => '\u{3000}',
        _ => one,
    };
    text.chars().map(widen).collect()
}

fn has_content(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_normal_form_is_idempotent(text in prop_oneof![any::<String>(), AWKWARD, CASED]) {
        let once = normalise(&text);
        prop_assert_eq!(normalise(&once), once);
    }

    #[test]
    fn case_does_not_matter(text in CASED) {
        prop_assert_eq!(fingerprint(&text.to_uppercase()), fingerprint(&text));
        prop_assert_eq!(fingerprint(&text.to_lowercase()), fingerprint(&text));
    }

    #[test]
    fn width_does_not_matter(text in "[ -~]{0,40}") {
        prop_assert_eq!(fingerprint(&full_width(&text)), fingerprint(&text));
    }

    #[test]
    fn surroundings_do_not_matter(text in CASED, before in SURROUNDINGS, after in SURROUNDINGS) {
        prop_assume!(has_content(&text));
        prop_assert_eq!(fingerprint(&format!("{before}{text}{after}")), fingerprint(&text));
    }

    #[test]
    fn the_kind_of_white_space_does_not_matter(
        words in prop::collection::vec("[a-zéя你]{1,5}", 1..6),
        space in "[ \t\n\r\u{b}\u{85}\u{a0}\u{1680}\u{2003}\u{2028}\u{202f}\u{3000}]{1,3}",
    ) {
        prop_assert_eq!(fingerprint(&words.join(&space)), fingerprint(&words.join(" ")));
    }

    #[test]
    fn texts_of_letters_agree_only_when_their_lower_case_does(
        one in "[a-cA-Cа-вА-В你好مر +#]{1,4}", other in "[a-cA-Cа-вА-В你好مر +#]{1,4}",
    ) {
        let plain = |text: &str| {
            text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        prop_assert_eq!(fingerprint(&one) == fingerprint(&other), plain(&one) == plain(&other));
    }

    #[test]
    fn a_batch_has_the_fingerprint_of_each_text_in_order(
        texts in prop::collection::vec(prop_oneof![any::<String>(), AWKWARD, CASED], 0..20),
    ) {
        let single: Vec<_> = texts.iter().map(|text| fingerprint(text)).collect();
        prop_assert_eq!(fingerprints(&texts), single);
    }
}

fn assert_all_differ(texts: &[&str]) {
    let distinct: HashSet<_> = texts.iter().map(|text| fingerprint(text)).collect();
    assert_eq!(distinct.len(), texts.len(), "{texts:?}");
}

fn assert_all_agree(texts: &[&str]) {
    for text in texts {
        assert_eq!(normalise(text), normalise(texts[0]), "{text:?}");
    }
}

#[test]
fn signs_beside_a_word_keep_it_apart() {
    assert_all_differ(&["C++", "C#", "C", "C--", "C*", "C/", "C~", "@C", "#C", "C&", "C_"]);
    assert_all_differ(&["$5", "€5", "-5", "+5", "5", "5%", "5°", "5.5", "<5", ">5", "~5", "5-"]);
}

#[test]
fn texts_outside_latin_keep_their_letters() {
    assert_all_differ(&[
        "你好，世界。",
        "Привет, мир",
        "مرحبا",
        "नमस्ते",
        "こんにちは",
        "안녕",
        "שלום",
        "café",
        "cafe",
        "caf",
    ]);
    assert_all_differ(&["か", "が", "クラス", "グラス", "क", "की", "שָ", "שׁ", "и", "й"]);
}

#[test]
fn compatibility_capitals_are_folded_too() {
    assert_all_agree(&["𝐀pple", "Apple", "ＡＰＰＬＥ", "apple"]);
    assert_all_agree(&["20 ℃", "20 °C", "20 °c"]);
    assert_all_agree(&["Mnemic™", "mnemicTM", "MNEMICtm"]);
    assert_all_agree(&["㎏", "KG", "kg"]);
    assert_all_agree(&["5 ㎡", "5 m²", "５ M²"]);
    assert_all_agree(&["½ cup", "1⁄2 cup"]);
    assert_all_agree(&["㋀㏠", "1月1日"]);
    assert_all_agree(&["① Tea", "1 tea"]);
}

#[test]
fn numbers_do_not_grow_by_what_stands_beside_them() {
    assert_all_differ(&["10⁵", "105", "10₅", "10⁻⁵", "10-5", "10⁺⁵", "10+5", "10ⁿ", "10n", "10ₙ"]);
    assert_all_differ(&["1½", "11⁄2", "11/2", "1①", "11", "1⑴", "1⒈", "⑩0", "100"]);
    assert_all_differ(&[
        "m²", "m2", "m³", "H₂O", "H2O", "1㋀", "11月", "1㏠", "11日", "㎡2", "m22",
    ]);
}

#[test]
fn folding_is_full_and_respects_canonical_equivalence() {
    assert_all_agree(&["Straße", "STRASSE", "STRAẞE", "strasse"]);
    assert_all_agree(&["ΟΔΥΣΣΕΥΣ", "οδυσσευς", "οδυσσευσ"]);
    assert_all_agree(&["ǆ", "ǅ", "Ǆ", "dž"]);
    assert_all_agree(&["ᏸ", "Ᏸ"]);
    assert_all_agree(&["İ", "i\u{307}"]);
    assert_all_agree(&["J\u{30c}", "ǰ", "j\u{30c}"]);
    assert_all_agree(&["α\u{345}\u{301}", "α\u{301}\u{345}", "ᾴ", "άι", "ΆΙ"]);
    assert_all_agree(&["café", "cafe\u{301}", "CAFÉ"]);
    assert_all_agree(&["한국", "\u{1112}\u{1161}\u{11ab}국"]);
    assert_all_agree(&["ｶﾞﾗｽ", "ガラス", "カ\u{3099}ラス"]);
}

#[test]
fn punctuation_alone_is_told_apart_but_its_width_and_spacing_are_not() {
    assert_all_differ(&["", "?", "!", "...", ":)", "( )", "¿?"]);
    assert_all_agree(&["?!", "？！", " ?! ", "⁈"]);
    assert_all_agree(&["", " ", "\t\n\u{3000}"]);
    assert_all_agree(&["…", "...", " … "]);
}

#[test]
fn punctuation_inside_a_text_stays() {
    assert_all_differ(&["a.b", "a b", "ab", "a, b", "a's", "as"]);
    assert_eq!(normalise("(Hello), [World]!"), "hello), [world");
}

#[test]
fn characters_that_are_invisible_stay() {
    assert_all_differ(&["می\u{200c}خواهم", "میخواهم", "re\u{ad}sort", "resort", "\u{feff}resort"]);
}

fn hex(text: &str) -> String {
    fingerprint(text).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a String cannot fail");
        hex
    })
}

#[test]
fn digests_are_plain_sha_256_of_the_normal_form() {
    // From hashlib.sha256("hello, world".encode()) and the same of "" and "привет, мир".
    assert_eq!(
        hex("“Hello,\n WORLD!”"),
        "09ca7e4eaa6e8ae9c7d261167129184883644d07dfba7cbfbc4c8a2e08360d5b"
    );
    assert_eq!(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(display_id(&fingerprint("Привет, МИР!")), "7ae3c8e991627c58");
    assert_eq!(FINGERPRINT_VERSION, 2);
}
