//! Kinds of characters that matter at the ends of sentences.

use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup, Script, SentenceBreak};

use super::super::unicode::is_mark;

/// Quotes, which close in some languages and open in others.
const QUOTES: GeneralCategoryGroup =
    GeneralCategoryGroup::InitialPunctuation.union(GeneralCategoryGroup::FinalPunctuation);
const OPENING: GeneralCategoryGroup = QUOTES.union(GeneralCategoryGroup::OpenPunctuation);

/// Kinds of marks that may end a sentence, and of runs of them: a run is of the last of its kinds, or
/// else an ellipsis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// A full stop that abbreviations and numbers have as well.
    FullStop,
    /// Dots in one character.
    Ellipsis,
    /// An exclamation or question mark, which ends a sentence before a space.
    Strong,
    /// A terminator of a script that has it for nothing else, and needs no space behind it.
    Definite,
}

/// The kind of a mark; `None` for other characters, and for the semicolon, whose neighbours decide.
pub(super) fn mark(character: char) -> Option<Mark> {
    match character {
        '.' | '\u{ff0e}' | '\u{fe52}' | '\u{2024}' => Some(Mark::FullStop),
        '…' | '‥' | '⋯' => Some(Mark::Ellipsis),
        '!' | '?' | '\u{203c}' | '\u{203d}' | '\u{2047}'..='\u{2049}' | '\u{2e2e}' | '\u{37e}' => {
            Some(Mark::Strong)
        }
        _ if character.is_ascii() => None,
        // Tibetan has no other mark than the shad, which Unicode counts among pauses.
        '\u{f0d}'..='\u{f0f}' | '\u{f11}' | '\u{fe12}' | '\u{e5a}' | '\u{e5b}' => {
            Some(Mark::Definite)
        }
        _ => is_terminal(character).then_some(Mark::Definite),
    }
}

/// Unicode counts the comma of Burmese among the terminators.
fn is_terminal(character: char) -> bool {
    CodePointMapData::<SentenceBreak>::new().get(character) == SentenceBreak::STerm
        && character != '\u{104a}'
}

pub(super) fn is_line_end(character: char) -> bool {
    matches!(character, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character closes what an opposite one opened, whatever stands around it.
pub(super) fn is_closing_bracket(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ')' | ']' | '}');
    }
    category(character) == GeneralCategory::ClosePunctuation
}

/// Whether a character is a quote that closes, or one that closes in some languages and opens in
/// others, or emphasis of Markdown.
pub(super) fn is_closing_quote(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, '"' | '\'' | '*' | '_' | '`' | '~');
    }
    QUOTES.contains(category(character)) || character == '\u{ff02}'
}

/// Whether a character may stand between the mark at the end of a sentence and its end.
pub(crate) fn is_closing(character: char) -> bool {
    is_closing_bracket(character) || is_closing_quote(character)
}

/// Whether a character may stand between the start of a sentence and its first word.
pub(super) fn is_opening(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, '(' | '[' | '{' | '"' | '\'' | '*' | '_' | '`' | '~' | '<');
    }
    OPENING.contains(category(character)) || "¿¡\u{2e18}\u{ff02}".contains(character)
}

pub(super) fn is_dash(character: char) -> bool {
    matches!(character, '-' | '–' | '—' | '―' | '−')
}

/// Whether a full stop of some script, which an ellipsis may replace.
pub(crate) fn is_full_stop(character: char) -> bool {
    mark(character).is_some_and(|mark| match mark {
        Mark::FullStop => true,
        Mark::Ellipsis | Mark::Strong => false,
        Mark::Definite => !is_wide_exclamation_or_question(character),
    })
}

/// Whether a character is a dot or dots.
pub(crate) fn is_dot(character: char) -> bool {
    matches!(mark(character), Some(Mark::FullStop | Mark::Ellipsis))
}

fn is_wide_exclamation_or_question(character: char) -> bool {
    "！？\u{fe56}\u{fe57}\u{61f}\u{7f9}\u{1367}\u{1945}\u{1944}\u{a60f}\u{a6f7}\u{2cfa}\u{2cfb}\u{11143}"
        .contains(character)
}

/// Whether a letter of a script that has no spaces between words.
pub(crate) fn is_spaceless(character: char) -> bool {
    matches!(
        script(character),
        Script::Han
            | Script::Hiragana
            | Script::Katakana
            | Script::Bopomofo
            | Script::Yi
            | Script::Thai
            | Script::Lao
            | Script::Khmer
            | Script::Myanmar
            | Script::Tibetan
    )
}

/// Whether a letter of Chinese, Japanese or Korean, whose writers type marks without a space.
pub(super) fn is_east_asian(character: char) -> bool {
    character >= '\u{1100}'
        && matches!(
            script(character),
            Script::Han | Script::Hiragana | Script::Katakana | Script::Bopomofo | Script::Hangul
        )
}

pub(super) fn is_hangul(character: char) -> bool {
    matches!(character, '\u{ac00}'..='\u{d7a3}')
}

pub(super) fn is_greek(character: char) -> bool {
    matches!(character, '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}')
}

/// Whether a mark that joins the letter before it, such as a vowel sign.
pub(super) fn is_joining(character: char) -> bool {
    !character.is_ascii() && is_mark(character)
}

pub(super) fn is_in_word(character: char) -> bool {
    character.is_alphanumeric() || is_joining(character)
}

/// Symbols and pictographs with their joiners, colours and tags.
pub(super) fn is_emoji(character: char) -> bool {
    matches!(
        character,
        '\u{200d}'
            | '\u{20e3}'
            | '\u{2600}'..='\u{27bf}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{fe0e}'
            | '\u{fe0f}'
            | '\u{1f000}'..='\u{1faff}'
            | '\u{e0020}'..='\u{e007f}'
    )
}

fn category(character: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(character)
}

fn script(character: char) -> Script {
    CodePointMapData::<Script>::new().get(character)
}
