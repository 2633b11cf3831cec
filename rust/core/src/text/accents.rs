//! Words as they are typed on a keyboard without their accents.

use std::borrow::Cow;

use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};

const NFD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfd();

/// Return a folded word without the accents of Latin, Greek and Cyrillic letters, and without the
/// vowel marks of Arabic and Hebrew ones; й stays, which is a letter of its own.
///
/// Letters with a stroke, which Unicode does not decompose, are plain ones: ł is l, ø is o.
pub(crate) fn without_accents(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(word);
    }
    let mut plain = String::with_capacity(word.len());
    for letter in word.chars() {
        match without_stroke(letter) {
            Some(letters) => plain.push_str(letters),
            None if is_composed_otherwise(letter) => plain.push(letter),
            None => {
                let parts = NFD.normalize(letter.encode_utf8(&mut [0; 4])).into_owned();
                plain.extend(parts.chars().filter(|part| !is_accent(*part)));
            }
        }
    }
    Cow::Owned(plain)
}

fn without_stroke(letter: char) -> Option<&'static str> {
    Some(match letter {
        'æ' => "ae",
        'đ' | 'ð' => "d",
        'ħ' => "h",
        'ı' => "i",
        'ł' => "l",
        'ø' => "o",
        'œ' => "oe",
        'ŧ' => "t",
        'þ' => "th",
        _ => return None,
    })
}

/// Letters whose parts are no accents: й, and all from the scripts of India on, Hangul and kana
/// among them, but for further Latin and Greek letters.
fn is_composed_otherwise(letter: char) -> bool {
    letter == 'й' || letter >= '\u{900}' && !('\u{1e00}'..'\u{2000}').contains(&letter)
}

fn is_accent(part: char) -> bool {
    matches!(part, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{655}' | '\u{670}')
}

#[cfg(test)]
mod tests {
    use super::without_accents;

    #[test]
    fn accents_strokes_and_vowel_marks_go() {
        for (word, plain) in [
            ("zoë", "zoe"),
            ("łódź", "lodz"),
            ("tōkyō", "tokyo"),
            ("şükrü", "sukru"),
            ("smørrebrød", "smorrebrod"),
            ("ḥummuṣ", "hummus"),
            ("άνθρωπος", "ανθρωπος"),
            ("ещё", "еще"),
            ("מַיִם", "מים"),
            ("كَتَبَ", "كتب"),
            ("việt", "viet"),
        ] {
            assert_eq!(without_accents(word), plain);
        }
    }

    #[test]
    fn letters_of_their_own_stay() {
        for word in ["tea", "мой", "が", "한국어", "हिन्दी", "ไทย", "猫"]
        {
            assert_eq!(without_accents(word), word);
        }
    }
}
