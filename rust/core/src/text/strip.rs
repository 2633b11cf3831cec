//! The characters stripped from both ends of a text before it is fingerprinted.

use super::code_points::{CodePoints, is_in, ranges};

/// Whether `character` is stripped from the ends of a text.
///
/// The set is, as Unicode 18.0 has it: `White_Space`, `Quotation_Mark`, the brackets and quotes of
/// the general categories Ps, Pe, Pi and Pf, `Terminal_Punctuation` (the `. , ; : ! ?` of every
/// script), and `… ¡ ¿ ⸘`. Everything else stays, so `C++`, `C#`, `$5`, `-5` and `50%` survive.
pub(super) fn is_boundary(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, '\t'..='\r') || " !\"'(),.:;?[]{}".contains(character);
    }
    is_in(&PUNCTUATION, character) || character.is_whitespace()
}

/// Quotes, brackets and sentence punctuation outside ASCII.
static PUNCTUATION: CodePoints =
    CodePoints::new(|| ranges(include_str!("../../data/boundary_punctuation.txt"), "punctuation"));

#[cfg(test)]
mod tests {
    use icu_properties::props::{GeneralCategory, QuotationMark, TerminalPunctuation, WhiteSpace};
    use icu_properties::{CodePointMapData, CodePointSetData};

    use super::is_boundary;

    fn is_bracket_or_quote(character: char) -> bool {
        matches!(
            CodePointMapData::<GeneralCategory>::new().get(character),
            GeneralCategory::OpenPunctuation
                | GeneralCategory::ClosePunctuation
                | GeneralCategory::InitialPunctuation
                | GeneralCategory::FinalPunctuation
        )
    }

    #[test]
    fn the_boundary_set_is_the_documented_union_of_unicode_properties() {
        let quotes = CodePointSetData::new::<QuotationMark>();
        let terminals = CodePointSetData::new::<TerminalPunctuation>();
        let spaces = CodePointSetData::new::<WhiteSpace>();
        for character in '\0'..=char::MAX {
            let expected = is_bracket_or_quote(character)
                || quotes.contains(character)
                || terminals.contains(character)
                || spaces.contains(character)
                || "…¡¿⸘".contains(character);
            assert_eq!(is_boundary(character), expected, "{character:?}");
        }
    }

    #[test]
    fn signs_that_carry_meaning_are_no_boundary() {
        for character in "+-#$%&*/@^_~|<>=\\`€£°№·–—•αя你م०5".chars() {
            assert!(!is_boundary(character), "{character:?}");
        }
    }
}
