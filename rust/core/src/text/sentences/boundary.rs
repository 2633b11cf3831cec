//! The decision at a run of marks: the end of the sentence, or not.

use super::abbreviations::{
    BRANDS, Class, MONTHS, STARTERS, TIMES_OF_DAY, WEEKDAYS, class_of_pair,
};
use super::characters::{Mark, is_dash, is_east_asian, is_hangul, is_opening, mark};
use super::following::{self, Following, Kind as Next};
use super::lines;
use super::marks::{self, Marks};
use super::preceding::{self, Kind as Word, Preceding};
use super::reader::{Decision, Reader};

/// So many quotes and brackets may stand before the first word of a sentence.
const MOST_OPENING: usize = 16;
const LONGEST_DAY: usize = 2;
const LONGEST_ORDINAL: usize = 3;
const YEAR: usize = 4;

pub(super) fn decision(reader: &Reader<'_>, marks: &Marks) -> Decision {
    let ends = match reader.at(marks.close) {
        None => true,
        Some(next) if next.is_whitespace() => return before_space(reader, marks),
        Some(next) => ends_without_space(reader, marks, next),
    };
    if ends { Decision::Ends(marks.close) } else { Decision::GoesOn(marks.close) }
}

fn ends_without_space(reader: &Reader<'_>, marks: &Marks, next: char) -> bool {
    let is_aside = marks.has_bracket && !begins_with_bracket(reader);
    match marks.kind {
        _ if mark(next).is_some() || goes_on_with(next) => false,
        Mark::Definite if marks.is_closed() && is_particle(next) => false,
        Mark::Strong if marks.is_closed() && is_hangul(next) => false,
        Mark::Definite | Mark::Strong if is_aside && is_east_asian(next) => false,
        Mark::Definite => true,
        Mark::Strong | Mark::FullStop => marks::is_east_asian_around(reader, marks),
        Mark::Ellipsis => false,
    }
}

fn begins_with_bracket(reader: &Reader<'_>) -> bool {
    reader.at(reader.start).is_some_and(is_opening)
}

/// Punctuation behind which a sentence goes on.
fn goes_on_with(next: char) -> bool {
    match next {
        ',' | ';' | ':' | '/' | '~' | '=' => true,
        _ => is_dash(next) || !next.is_ascii() && "、，；：､،؛·～".contains(next),
    }
}

/// Particles that bind a Japanese quotation to the sentence around it.
fn is_particle(next: char) -> bool {
    "とっのをがはもにへでやなか".contains(next)
}

fn before_space(reader: &Reader<'_>, marks: &Marks) -> Decision {
    let close = match marks.kind {
        Mark::FullStop | Mark::Ellipsis | Mark::Strong => following::emoji(reader, marks.close),
        Mark::Definite => None,
    };
    let has_emoji = close.is_some();
    let close = close.unwrap_or(marks.close);
    let following = Following::of(reader, close);
    let goes_on = following.kind != Next::End
        && !has_emoji
        && goes_on(reader, marks, &following)
        && (following.lines == 0 || following.lines == 1 && lines::is_broken(reader, close));
    if goes_on { Decision::GoesOn(following.start) } else { Decision::Ends(close) }
}

/// Whether a sentence goes on, as it does within the row of a table too.
fn goes_on(reader: &Reader<'_>, marks: &Marks, next: &Following<'_>) -> bool {
    let is_part = next.kind == Next::Lower && (marks.is_closed() || next.has_dash)
        || next.kind == Next::Signs
        || reader.at(next.start) == Some('|');
    is_part
        || marks::is_bracketed(reader, marks)
        || match marks.kind {
            Mark::FullStop => goes_on_behind_stop(reader, marks, next),
            Mark::Ellipsis => goes_on_behind_dots(reader, marks, next),
            Mark::Strong => {
                next.kind == Next::Lower
                    && BRANDS.has_in_any_case(preceding::word(reader, marks.at).word)
            }
            Mark::Definite => false,
        }
}

fn goes_on_behind_dots(reader: &Reader<'_>, marks: &Marks, next: &Following<'_>) -> bool {
    !matches!(next.kind, Next::Upper | Next::Caseless) || first_word(reader) == marks.at
}

fn goes_on_behind_stop(reader: &Reader<'_>, marks: &Marks, next: &Following<'_>) -> bool {
    let preceding = preceding::word(reader, marks.at);
    if is_marker(reader, &preceding) || is_pair(&preceding, next) {
        return true;
    }
    let is_short = matches!(preceding.kind, Word::Abbreviation(_) | Word::Unit);
    if is_short && reader.at(next.start).is_some_and(|one| matches!(one, '(' | '[')) {
        return true;
    }
    match next.kind {
        Next::End | Next::Signs => false,
        Next::Lower => goes_on_in_lower_case(reader, &preceding, next),
        Next::Digit => goes_on_with_number(&preceding, next),
        Next::Upper | Next::Caseless => goes_on_with_name(reader, &preceding, next),
        Next::Other => preceding.kind == Word::Abbreviation(Class::Always),
    }
}

fn is_marker(reader: &Reader<'_>, preceding: &Preceding<'_>) -> bool {
    let is_first = || first_word(reader) == preceding.start || is_item(reader, preceding);
    preceding::is_marker(preceding.word) && is_first()
}

/// Whether the next word makes an abbreviation of two words, as in "EE. UU.".
fn is_pair(preceding: &Preceding<'_>, next: &Following<'_>) -> bool {
    next.next == Some('.') && class_of_pair(preceding.word, next.word).is_some()
}

/// Whether a number follows a bullet, or is the first of a list behind a colon.
fn is_item(reader: &Reader<'_>, preceding: &Preceding<'_>) -> bool {
    let end = reader.skip_back(preceding.start, 0, |one| one == ' ');
    let before = reader.before(end).filter(|_| end < preceding.start);
    match before {
        Some(':' | '：') => preceding.word == "1",
        Some('•' | '▪' | '◦' | '‣') => {
            preceding.word.starts_with(|one: char| one.is_ascii_digit())
        }
        _ => false,
    }
}

/// The place of the first word, behind quotes, brackets and bullets.
fn first_word(reader: &Reader<'_>) -> usize {
    let mut at = reader.start;
    for _ in 0..MOST_OPENING {
        let is_before = |one: &char| is_opening(*one) || is_dash(*one) || " •▪◦‣#+".contains(*one);
        let Some(character) = reader.at(at).filter(is_before) else { break };
        at += character.len_utf8();
    }
    at
}

fn goes_on_in_lower_case(
    reader: &Reader<'_>,
    preceding: &Preceding<'_>,
    next: &Following<'_>,
) -> bool {
    match preceding.kind {
        Word::Abbreviation(class) => class > Class::BeforeNumber,
        Word::Initial | Word::Unit | Word::Roman => true,
        Word::Number(digits) if digits <= LONGEST_ORDINAL => {
            MONTHS.has_in_any_case(next.word)
                || preceding::is_determined(reader, preceding.start)
                || !STARTERS.has_in_any_case(next.word)
        }
        Word::Number(digits) => digits == YEAR && MONTHS.has_in_any_case(next.word),
        Word::Marked => is_initial(next),
        Word::Plain => false,
    }
}

fn goes_on_with_number(preceding: &Preceding<'_>, next: &Following<'_>) -> bool {
    match preceding.kind {
        Word::Abbreviation(_) | Word::Initial | Word::Unit => true,
        Word::Number(digits) => is_date(digits, next),
        Word::Roman | Word::Marked | Word::Plain => false,
    }
}

/// Whether a number goes on as a date does: "3. 5. 2020", "2020. 5. 3.".
fn is_date(digits: usize, next: &Following<'_>) -> bool {
    let more = next.word.chars().count();
    let is_followed = more <= LONGEST_DAY && next.next == Some('.') || more == YEAR;
    is_followed && (digits <= LONGEST_DAY || digits == YEAR && more <= LONGEST_DAY)
}

fn goes_on_with_name(reader: &Reader<'_>, preceding: &Preceding<'_>, next: &Following<'_>) -> bool {
    match preceding.kind {
        Word::Abbreviation(Class::Always) => true,
        Word::Abbreviation(Class::BeforeName) | Word::Initial => {
            !STARTERS.has_in_any_case(next.word) || is_initial(next)
        }
        Word::Abbreviation(Class::BeforeLower | Class::BeforeNumber) => {
            TIMES_OF_DAY.has_in_any_case(preceding.word) && WEEKDAYS.has_in_any_case(next.word)
        }
        Word::Number(digits) if digits <= LONGEST_ORDINAL => {
            MONTHS.has_in_any_case(next.word)
                || next.word.starts_with(is_hangul) && preceding.follows_stop
                || preceding::is_determined(reader, preceding.start)
                    && !STARTERS.has_in_any_case(next.word)
        }
        Word::Marked => is_initial(next),
        Word::Number(_) | Word::Roman | Word::Unit | Word::Plain => false,
    }
}

/// Whether the next word is an initial, although a word such as "I" and "A" begins sentences too.
fn is_initial(next: &Following<'_>) -> bool {
    next.next == Some('.') && preceding::is_letter(next.word)
}
