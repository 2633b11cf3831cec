//! Characters whose compatible form would become part of a number beside it: 10⁵ is not 105.

use super::unicode::NFKC;

/// Write what the normal form has of a character in place of its compatible form, and return
/// whether there is such a thing; `beside` are the characters before and behind it.
pub(super) fn push_apart(form: &mut String, character: char, beside: [Option<char>; 2]) -> bool {
    if is_unit(character) {
        let raised = |part| match part {
            '2' => '²',
            '3' => '³',
            _ => part,
        };
        form.extend(compatible(character).chars().map(raised));
        return true;
    }
    let is_apart = is_raised(character) || is_number(character) && touches(character, beside);
    if is_apart {
        form.push(character);
    }
    is_apart
}

/// Whether [`push_apart`] may have to do with a character.
pub(super) fn may_be_apart(character: char) -> bool {
    is_raised(character) || is_number(character) || is_unit(character)
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

/// Digits, signs and letters that stand higher or lower than their line: those whose mapping in
/// Unicode 18.0 has the tag `super` or `sub`, without the ª and º of ordinals and the ™ of names.
fn is_raised(character: char) -> bool {
    matches!(character,
        '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{2b0}'..='\u{2b8}' | '\u{2e0}'..='\u{2e4}'
        | '\u{10fc}' | '\u{1d2c}'..='\u{1d2e}' | '\u{1d30}'..='\u{1d3a}'
        | '\u{1d3c}'..='\u{1d4d}' | '\u{1d4f}'..='\u{1d6a}' | '\u{1d78}' | '\u{1d9b}'..='\u{1dbf}'
        | '\u{2070}' | '\u{2071}' | '\u{2074}'..='\u{208e}' | '\u{2090}'..='\u{209c}'
        | '\u{2c7c}' | '\u{2c7d}' | '\u{2d6f}' | '\u{3192}'..='\u{319f}' | '\u{a69c}' | '\u{a69d}'
        | '\u{a770}' | '\u{a7f1}'..='\u{a7f4}' | '\u{a7f8}' | '\u{a7f9}'
        | '\u{ab5c}'..='\u{ab5f}' | '\u{ab69}' | '\u{10781}'..='\u{10785}'
        | '\u{10787}'..='\u{107b0}' | '\u{107b2}'..='\u{107ba}' | '\u{1e030}'..='\u{1e06d}')
}

/// Fractions, and numbers with a circle, a bracket, a stop, or the sign of an hour, month or day.
fn is_number(character: char) -> bool {
    matches!(character,
        '\u{bc}'..='\u{be}' | '\u{2150}'..='\u{215f}' | '\u{2189}' | '\u{2460}'..='\u{249b}'
        | '\u{24ea}' | '\u{3251}'..='\u{325f}' | '\u{32b1}'..='\u{32cb}' | '\u{3358}'..='\u{3370}'
        | '\u{33e0}'..='\u{33fe}' | '\u{1f100}'..='\u{1f10a}')
}

/// Units in one character with a raised digit in it, such as ㎡.
fn is_unit(character: char) -> bool {
    matches!(character, '\u{3378}' | '\u{3379}' | '\u{339f}'..='\u{33a6}' | '\u{33a8}' | '\u{33af}')
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
