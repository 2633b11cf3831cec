//! Estimated number of a language model's tokens in a text, from its scripts.

use icu_properties::props::{
    EastAsianWidth, EmojiPresentation, GeneralCategory, GeneralCategoryGroup, Script,
};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Costs are whole quarters of a token, so that sums are exact and one rounding is enough.
pub(super) const QUARTERS: usize = 4;

const LATIN: usize = 1;
const ALPHABET: usize = 2;
const WHOLE: usize = QUARTERS;
const EMOJI: usize = 2 * QUARTERS;

/// Start of the second plane, whose characters no vocabulary has: they are encoded in bytes.
const RARE: char = '\u{10000}';
/// Where the full-width copies of ASCII begin.
const FULL_WIDTH: char = '\u{ff00}';

/// Estimate the number of a language model's tokens in `text`, rounded up.
///
/// A token is 4 characters of Latin script or ASCII, 2 of another alphabet (Cyrillic, Greek,
/// Arabic, Hebrew, Devanagari, Thai and their like, and punctuation outside ASCII), or 1 of Han,
/// kana, Hangul, Bopomofo and Yi, of full-width forms, symbols, joiners, and whatever lies beyond
/// the basic plane. An emoji is 2 tokens. Each character counts for itself, so that the estimate
/// of two texts put together is at least that of either and at most the sum of both.
///
/// # Examples
/// ```
/// use mnemic_core::text::estimate_tokens;
///
/// assert_eq!(estimate_tokens("tea for two"), 3);
/// assert_eq!(estimate_tokens("чай на двоих"), 6);
/// assert_eq!(estimate_tokens("两个人的茶"), 5);
/// ```
pub fn estimate_tokens(text: &str) -> usize {
    let quarters: usize =
        if text.is_ascii() { text.len() * LATIN } else { text.chars().map(quarters).sum() };
    quarters.div_ceil(QUARTERS)
}

/// The quarters of a token that a character costs.
pub(super) fn quarters(character: char) -> usize {
    if character.is_ascii() {
        return LATIN;
    }
    match CodePointMapData::<Script>::new().get(character) {
        Script::Common | Script::Inherited => quarters_without_script(character),
        Script::Latin if character < FULL_WIDTH => LATIN,
        Script::Latin
        | Script::Han
        | Script::Hiragana
        | Script::Katakana
        | Script::Hangul
        | Script::Bopomofo
        | Script::Yi => WHOLE,
        _ if character >= RARE => WHOLE,
        _ => ALPHABET,
    }
}

/// Costs of punctuation, symbols, marks and invisible characters, which many scripts share.
fn quarters_without_script(character: char) -> usize {
    if CodePointSetData::new::<EmojiPresentation>().contains(character) {
        EMOJI
    } else if character >= RARE || is_wide(character) || is_sign(character) {
        WHOLE
    } else {
        ALPHABET
    }
}

fn is_wide(character: char) -> bool {
    matches!(
        CodePointMapData::<EastAsianWidth>::new().get(character),
        EastAsianWidth::Wide | EastAsianWidth::Fullwidth | EastAsianWidth::Halfwidth
    )
}

/// Whether a character is a symbol, or invisible and changes its neighbours, as U+FE0F turns the
/// symbol before it into an emoji.
fn is_sign(character: char) -> bool {
    let category = CodePointMapData::<GeneralCategory>::new().get(character);
    GeneralCategoryGroup::Symbol.contains(category)
        || category == GeneralCategory::Format
        || matches!(character, '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Characters of every kind of cost, besides whatever else there is.
    fn any_text() -> impl Strategy<Value = String> {
        let known = prop::sample::select(
            "aZ é0.Жλשمकท“—中かカ한。Ａｱ€→❤️\u{200d}🍵🏽𝐀𓀀".chars().collect::<Vec<_>>(),
        );
        prop::collection::vec(prop_oneof![known, any::<char>()], 0..40)
            .prop_map(|characters| characters.into_iter().collect())
    }

    #[test]
    fn nothing_takes_no_token_and_anything_takes_one() {
        assert_eq!(estimate_tokens(""), 0);
        for text in [" ", "a", "é", "\n", "я", "\u{301}"] {
            assert_eq!(estimate_tokens(text), 1, "{text:?}");
        }
    }

    #[test]
    fn each_script_has_its_characters_a_token() {
        let of_eight = |character: &str| estimate_tokens(&character.repeat(8));
        for latin in ["a", "é", "ß", "ż", "ế", "7", " ", "{"] {
            assert_eq!(of_eight(latin), 2, "{latin:?}");
        }
        for alphabet in ["я", "λ", "ש", "م", "क", "ท", "ა", "ह", "“", "—", "؟", "\u{301}"]
        {
            assert_eq!(of_eight(alphabet), 4, "{alphabet:?}");
        }
        for whole in ["中", "か", "カ", "한", "ㄅ", "ꀀ", "𠀀", "。", "ー", "Ａ", "ｱ", "€", "→"]
        {
            assert_eq!(of_eight(whole), 8, "{whole:?}");
        }
        for emoji in ["🍵", "🏽", "❤️", "⌚", "🇳"] {
            assert_eq!(of_eight(emoji), 16, "{emoji:?}");
        }
        for rare in ["𝐀", "𓀀", "𐍈"] {
            assert_eq!(of_eight(rare), 8, "{rare:?}");
        }
    }

    #[test]
    fn fractions_of_scripts_are_summed_before_they_are_rounded() {
        assert_eq!(estimate_tokens("aя"), 1); // 1/4 + 1/2
        assert_eq!(estimate_tokens("aяя"), 2);
        assert_eq!(estimate_tokens("茶tea"), 2); // 1 + 3/4
        assert_eq!(estimate_tokens("茶teas!"), 3);
    }

    proptest! {
        #[test]
        fn two_texts_together_take_no_more_than_both_and_no_less_than_either(
            first in any_text(), second in any_text()
        ) {
            let (one, other) = (estimate_tokens(&first), estimate_tokens(&second));
            let both = estimate_tokens(&format!("{first}{second}"));
            prop_assert!(one.max(other) <= both);
            prop_assert!(both <= one + other);
        }

        #[test]
        fn a_character_takes_from_a_quarter_of_a_token_to_two(text in any_text()) {
            let characters = text.chars().count();
            let tokens = estimate_tokens(&text);
            prop_assert!(characters.div_ceil(4) <= tokens && tokens <= 2 * characters);
        }

        #[test]
        fn text_of_ascii_alone_is_counted_as_text_that_is_not(text in "[ -~]{0,60}") {
            let beside_another = estimate_tokens(&format!("{text}中"));
            prop_assert_eq!(estimate_tokens(&text) + 1, beside_another);
        }
    }
}
