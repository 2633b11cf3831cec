//! Characters whose compatible form would become part of a number beside it: 10⁵ is not 105.

use super::code_points::{CodePoints, is_in, ranges};
use super::unicode::NFKC;

const FILE: &str = include_str!("../../data/apart.txt");

/// Digits, signs and letters that stand higher or lower than their line.
static RAISED: CodePoints = CodePoints::new(|| ranges(FILE, "raised"));
/// Fractions, and numbers with signs around them.
static NUMBERS: CodePoints = CodePoints::new(|| ranges(FILE, "numbers"));
/// Units in one character with a raised digit in it, such as ㎡.
static UNITS: CodePoints = CodePoints::new(|| ranges(FILE, "units"));

/// Write what the normal form has of a character in place of its compatible form, and return
/// whether there is such a thing; `beside` are the characters before and behind it.
pub(super) fn push_apart(form: &mut String, character: char, beside: [Option<char>; 2]) -> bool {
    if is_in(&UNITS, character) {
        let raised = |part| match part {
            '2' => '²',
            '3' => '³',
            _ => part,
        };
        form.extend(compatible(character).chars().map(raised));
        return true;
    }
    let is_apart =
        is_in(&RAISED, character) || is_in(&NUMBERS, character) && touches(character, beside);
    if is_apart {
        form.push(character);
    }
    is_apart
}

/// Whether [`push_apart`] may have to do with a character.
pub(super) fn may_be_apart(character: char) -> bool {
    !character.is_ascii() && [&RAISED, &NUMBERS, &UNITS].iter().any(|kind| is_in(kind, character))
}

/// Whether a digit of a character's compatible form would stand beside another one.
fn touches(character: char, beside: [Option<char>; 2]) -> bool {
    let [before, behind] = beside.map(|other| other.map(compatible));
    let form = compatible(character);
    let ends_in_digit = |text: &str| text.chars().next_back().is_some_and(char::is_numeric);
    let begins_with_digit = |text: &str| text.chars().next().is_some_and(char::is_numeric);
    let follows = before.is_some_and(|text| ends_in_digit(&text)) && begins_with_digit(&form);
    follows || ends_in_digit(&form) && behind.is_some_and(|text| begins_with_digit(&text))
}

fn compatible(character: char) -> String {
    NFKC.normalize(character.encode_utf8(&mut [0; 4])).into_owned()
}

#[cfg(test)]
mod tests {
    use icu_properties::CodePointMapData;
    use icu_properties::props::GeneralCategory;

    use super::{compatible, may_be_apart};

    #[test]
    fn no_other_character_brings_a_digit_into_a_text() {
        let category = CodePointMapData::<GeneralCategory>::new();
        for character in '\0'..=char::MAX {
            let form = compatible(character);
            let is_digit = category.get(character) == GeneralCategory::DecimalNumber;
            if form.contains(|one: char| one.is_ascii_digit()) && !is_digit {
                assert!(may_be_apart(character), "{character:?} {form}");
            }
        }
    }
}
