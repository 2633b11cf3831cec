//! The languages that an embedder covers, and how far it covers a text, by its script and language.

use icu_properties::CodePointMapData;
use icu_properties::props::Script;

use crate::Error;

use super::Language;
use super::code_points::script;
use super::detection::{beginning, detect};
use super::word_table::listed;

/// The largest share of similarity, in hundredths: of a text in a covered language; in another one of a
/// covered script, of which a model knows names and loan words; of a memory in such a one where it has
/// no words of the query; in Han and Kana, of which it knows single characters.
pub(crate) const WHOLE: u8 = 100;
const OTHER_LANGUAGE: u8 = 10;
const WITHOUT_WORDS: u8 = 40;
const IDEOGRAPHS: u8 = 5;

/// The languages of ISO 639-1 by their scripts.
const FILE: &str = include_str!("../../data/scripts_of_languages.txt");

/// The languages that an embedder covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    scripts: Vec<Script>,
    /// Those that are detected.
    languages: Vec<Language>,
}

impl Coverage {
    /// The coverage of languages by their ISO 639-1 codes, in small letters.
    ///
    /// # Errors
    ///
    /// A code that ISO 639-1 does not have.
    pub fn of<Code: AsRef<str>>(languages: &[Code]) -> Result<Self, Error> {
        let (mut scripts, mut detected) = (Vec::new(), Vec::new());
        for code in languages.iter().map(AsRef::as_ref) {
            let known = scripts.len();
            scripts
                .extend(listed(FILE).filter(|(_, one)| *one == code).map(|(name, _)| script(name)));
            if scripts.len() == known {
                return Err(Error::UnknownLanguage { code: code.to_owned() });
            }
            let is_norwegian = matches!(code, "nb" | "nn");
            detected.extend(Language::from_name(if is_norwegian { "no" } else { code }));
        }
        Ok(Self { scripts, languages: detected })
    }

    /// Whether a text is in a covered language: whether at least half of its letters are of the
    /// scripts of covered languages, and it is not plainly in another language of these scripts. A
    /// text without letters is covered.
    ///
    /// # Examples
    /// ```
    /// use mnemic_core::text::Coverage;
    ///
    /// let english = Coverage::of(&["en"])?;
    /// assert!(english.covers("tea for two") && !english.covers("两个人的茶"));
    /// assert!(english.covers("用 Python 写的 script"));
    /// assert!(!english.covers("Wo steht der Wein, den Anna mag?"));
    /// # Ok::<(), mnemic_core::Error>(())
    /// ```
    pub fn covers(&self, text: &str) -> bool {
        self.percent(text) == WHOLE
    }

    /// The largest share that similarity may have in the match of a text, from 0 to 1, which is that
    /// of a covered one.
    pub fn max_share(&self, text: &str) -> f64 {
        share_of(self.percent(text))
    }

    /// The largest share in hundredths.
    pub(crate) fn percent(&self, text: &str) -> u8 {
        let (mut inside, mut ideographs, mut others) = (0_usize, 0_usize, 0_usize);
        let is_latin = text.is_ascii() && self.has(Script::Latin);
        let read = if is_latin { "" } else { text };
        for letter in read.chars().filter(|one| one.is_alphabetic()) {
            match CodePointMapData::<Script>::new().get(letter) {
                Script::Common | Script::Inherited => {}
                script if self.has(script) => inside += 1,
                Script::Han | Script::Hiragana | Script::Katakana => ideographs += 1,
                _ => others += 1,
            }
        }
        if inside >= ideographs + others {
            return if self.is_in_another_language(text) { OTHER_LANGUAGE } else { WHOLE };
        }
        if ideographs >= others { IDEOGRAPHS } else { 0 }
    }

    fn is_in_another_language(&self, text: &str) -> bool {
        detect(beginning(text)).is_some_and(|language| !self.languages.contains(&language))
    }

    fn has(&self, script: Script) -> bool {
        self.scripts.contains(&script)
    }
}

/// The largest shares of similarity in the match of a memory of so many hundredths, of which the one
/// with the larger match counts: where it has no words of the query, as in another language, its
/// meaning is all that can be compared.
pub(crate) fn limits(percent: u8) -> [f64; 2] {
    let other = if percent == OTHER_LANGUAGE { WITHOUT_WORDS } else { percent };
    [share_of(percent), share_of(other)]
}

/// A share of so many hundredths.
fn share_of(percent: u8) -> f64 {
    f64::from(percent) / 100.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn covers(languages: &[&str], text: &str) -> bool {
        Coverage::of(languages).expect("known codes").covers(text)
    }

    #[test]
    fn a_text_is_covered_by_its_script() {
        for (language, text) in [
            ("en", "What did Ann say?"),
            ("fr", "œuvre inédite"),
            ("zh", "你好，世界"),
            ("ja", "東京タワーへ行きました。"),
            ("ko", "안녕하세요"),
            ("ru", "Привет, мир"),
            ("ar", "مرحبا"),
            ("he", "שלום"),
            ("hi", "नमस्ते दुनिया"),
            ("th", "สวัสดี"),
            ("el", "Καλημέρα"),
        ] {
            assert!(covers(&[language], text), "{language} {text}");
            assert_eq!(covers(&["en"], text), ["en", "fr"].contains(&language), "{text}");
            assert!(covers(&["en", language], "Ann") && covers(&["en", language], text));
        }
        assert!(!covers(&["zh"], "What did Ann say?"));
    }

    fn share(languages: &[&str], text: &str) -> String {
        format!("{:.2}", Coverage::of(languages).expect("known codes").max_share(text))
    }

    #[test]
    fn a_text_is_covered_by_its_language() {
        for (code, text) in [
            ("de", "Wo steht der Wein, den Anna mag?"),
            ("es", "A Jonas le da miedo volar en avión"),
            ("nb", "Jeg liker ikke å gå på ski om vinteren"),
            ("id", "Kakak saya tinggal di Bandung sejak dua tahun lalu"),
        ] {
            assert_eq!(
                [share(&["en"], text), share(&["en", code], text)],
                ["0.10", "1.00"],
                "{text}"
            );
        }
        let both =
            "Wo steht der Wein, den Anna mag? ".repeat(9) + &"where is the wine? ".repeat(99);
        assert_eq!(share(&["en"], &both.repeat(99)), "0.10", "its beginning counts");
        for (text, of_english) in [
            ("Anna", "1.00"),
            ("我们最喜欢的茶", "0.05"),
            ("カタカナ", "0.05"),
            ("вода", "0.00"),
            ("茶 вода", "0.00"),
        ] {
            assert_eq!(share(&["en"], text), of_english, "{text}");
        }
    }

    #[test]
    fn mixed_texts_go_by_the_majority_of_their_letters() {
        assert!(covers(&["en"], "用Python写的 script"));
        assert!(!covers(&["en"], "我昨天学会了用 AI 写的代码"));
        assert!(!covers(&["zh"], "用Python写的 script"));
        assert!(covers(&["en"], "ab 你好"), "half of them suffice");
    }

    #[test]
    fn texts_without_letters_are_covered() {
        for text in ["", "2024-05-03", "😀 🎉", "¿?", "12 − 3 = 9"] {
            assert!(covers(&["zh"], text) && covers(&["en"], text), "{text}");
        }
    }

    #[test]
    fn every_code_has_scripts_and_no_other_is_known() {
        let codes: BTreeSet<&str> = listed(FILE).map(|(_, code)| code).collect();
        assert_eq!(codes.len(), 183);
        let codes: Vec<&str> = codes.into_iter().collect();
        assert!(Coverage::of(&codes).is_ok());
        for code in ["", "english", "EN", "xx", "e"] {
            assert_eq!(
                Coverage::of(&["de", code]),
                Err(Error::UnknownLanguage { code: code.to_owned() })
            );
        }
    }
}
