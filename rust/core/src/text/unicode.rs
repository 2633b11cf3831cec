//! Unicode data that several kinds of text work read.

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};

pub(super) const CASES: CaseMapperBorrowed<'static> = CaseMapper::new();
pub(super) const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();

/// Whether a character has no picture: controls apart from white space, soft hyphens, fillers, blanks, joiners, marks of direction,
/// selectors of variants, tags, formats of music, shorthand and hieroglyphs, and lines through,
/// under or around a character.
pub(super) fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\0'..='\u{8}' | '\u{E}'..='\u{1F}' | '\u{7F}'..='\u{84}' | '\u{86}'..='\u{9F}' | '\u{AD}'
        | '\u{332}' | '\u{333}' | '\u{335}'..='\u{338}'
        | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{20DD}'..='\u{20E4}' | '\u{2800}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
        | '\u{13430}'..='\u{13455}' | '\u{16FE4}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D159}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether a character is a mark on another one: an accent, a vowel sign.
pub(super) fn is_mark(character: char) -> bool {
    GeneralCategoryGroup::Mark.contains(CodePointMapData::<GeneralCategory>::new().get(character))
}
