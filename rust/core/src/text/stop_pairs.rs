//! Stop words of scripts without spaces between words: pairs of characters.

use icu_properties::CodePointMapData;
use icu_properties::props::Script;

/// Chinese particles, pronouns, question words and the copula, simplified and traditional: few words
/// of another meaning hold one.
const FUNCTION_CHARACTERS: &str = "的了吗嗎呢吧啊呀嘛们們我你您他她它这這那哪什么麼谁誰怎是很";

/// Adverbs, prepositions, conjunctions, auxiliaries, numerals: function words by themselves and with
/// one another, parts of other words beside anything else.
const AMBIGUOUS_CHARACTERS: &str = "在也都就还還又再才太更最不没沒无無会會能可要和与與跟及或而但因为為以于於所把被给給让讓从從\
     对對向地得着著过過已曾经經一个個些几幾某此其自己有";

/// Whether a pair of characters, or a single one, is a stop word.
///
/// Such pairs are function words ("因为", "です") or the seams between one and its neighbour
/// ("的书"). Pairs of hiragana are stop words, because Japanese is searched well by kanji and
/// katakana alone (Fujii and Croft, SIGIR 1993).
///
/// # Examples
/// ```text
/// 什么, 的书, 因为, です → true      图书, 会议, 猫が → false
/// ```
pub(super) fn is_stop_pair(characters: &str) -> bool {
    characters.chars().any(|one| FUNCTION_CHARACTERS.contains(one))
        || characters.chars().all(|one| AMBIGUOUS_CHARACTERS.contains(one))
        || characters.chars().all(is_hiragana)
}

fn is_hiragana(character: char) -> bool {
    CodePointMapData::<Script>::new().get(character) == Script::Hiragana
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_and_the_seams_beside_them_are_stop_pairs() {
        for characters in ["什么", "的书", "书的", "因为", "为什", "這個", "的", "です", "から"]
        {
            assert!(is_stop_pair(characters), "{characters}");
        }
    }

    #[test]
    fn content_words_are_none_though_they_hold_a_preposition() {
        for characters in ["图书", "会议", "和平", "首都", "猫が", "食べ", "カラ", "猫", "ไท"]
        {
            assert!(!is_stop_pair(characters), "{characters}");
        }
    }
}
