//! The marks at the end of a sentence, and the quotes and brackets that close behind them.

use super::characters::{
    Mark, is_closing_bracket, is_closing_quote, is_east_asian, is_emoji, is_greek, is_in_word,
    is_opening, mark,
};
use super::reader::Reader;

/// An odd number of equal quotes in so many bytes before a mark shows that the next one closes.
const QUOTE_REACH: usize = 256;
/// Number of digits in a note such as `[12]`.
const LONGEST_NOTE: usize = 4;

/// A run of marks with the characters that close behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) kind: Mark,
    /// The first mark.
    pub(super) at: usize,
    /// Behind the closing quotes, brackets and notes.
    pub(super) close: usize,
    pub(super) has_bracket: bool,
    pub(super) has_quote: bool,
}

impl Marks {
    pub(super) fn is_closed(&self) -> bool {
        self.has_bracket || self.has_quote
    }
}

/// The run of marks that begins at a place; `None` if no mark stands there.
pub(super) fn run(reader: &Reader<'_>, at: usize) -> Option<Marks> {
    let first = reader.at(at)?;
    let mut kind = match (first, mark(first)) {
        (';', _) if is_greek_question(reader, at) => Mark::Strong,
        (_, Some(mark)) => mark,
        _ => return None,
    };
    let mut end = at + first.len_utf8();
    while let Some((next, mark)) = next_mark(reader, end, first) {
        kind = kind.max(mark).max(Mark::Ellipsis);
        end = next;
    }
    let mut marks = Marks { kind, at, close: end, has_bracket: false, has_quote: false };
    close(reader, &mut marks);
    Some(marks)
}

/// The place behind the next mark of a run, and its kind.
fn next_mark(reader: &Reader<'_>, at: usize, first: char) -> Option<(usize, Mark)> {
    let character = reader.at(at)?;
    if character == ';' && first == ';' {
        return Some((at + 1, Mark::Strong));
    }
    if let Some(mark) = mark(character) {
        return Some((at + character.len_utf8(), mark));
    }
    spaced_mark(reader, at, character, first)
}

/// A mark that stands apart: the dots of `. . .`, the second mark of `? !`, the shad of `། །`.
fn spaced_mark(reader: &Reader<'_>, at: usize, space: char, first: char) -> Option<(usize, Mark)> {
    if !is_space(space) {
        return None;
    }
    let at = at + space.len_utf8();
    let character = reader.at(at)?;
    let kind = mark(character)?;
    let end = at + character.len_utf8();
    let behind = reader.skip(end, |one| mark(one).is_some());
    let is_apart = reader.at(behind).is_none_or(|next| {
        character == first && kind == Mark::Definite
            || next.is_whitespace()
            || is_closing_quote(next)
            || is_closing_bracket(next)
    });
    is_apart.then_some((end, kind))
}

/// Spaces within a line, also those that French has before its marks.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// A semicolon between Greek words is a question mark; their semicolon is a raised dot.
fn is_greek_question(reader: &Reader<'_>, at: usize) -> bool {
    let word_end = reader.skip_back(at, reader.start, |one| is_closing_quote(one) || is_space(one));
    if !reader.before(word_end).is_some_and(is_greek) {
        return false;
    }
    let behind = reader.skip(at, |one| one == ';');
    let next = reader
        .skip(behind, |one| one.is_whitespace() || is_opening(one) || is_closing_bracket(one));
    next > behind && reader.at(next).is_none_or(|one| is_greek(one) || !is_in_word(one))
        || reader.at(behind).is_none()
}

fn close(reader: &Reader<'_>, marks: &mut Marks) {
    let mut unclear_from = None;
    while let Some(character) = reader.at(marks.close) {
        let here = marks.close;
        if is_closing_bracket(character) {
            marks.has_bracket |= !is_corner(character);
            marks.has_quote |= is_corner(character);
            unclear_from = None;
        } else if is_closing_quote(character) {
            unclear_from = unclear_from.or(Some(here)).filter(|_| is_unclear(character));
            marks.has_quote = true;
        } else if let Some(end) = french_quote(reader, here) {
            (marks.has_quote, marks.close) = (true, end);
            continue;
        } else if let Some(end) = note(reader, here) {
            marks.close = end;
            continue;
        } else if !is_emoji(character) {
            break;
        }
        marks.close += character.len_utf8();
    }
    let opening = unclear_from.filter(|_| begins_word(reader, marks.close));
    if let Some(opening) = opening.filter(|quote| !is_open(reader, marks.at, *quote)) {
        marks.close = opening;
    }
}

/// Whether a bracket is a quote in East Asia.
fn is_corner(bracket: char) -> bool {
    matches!(bracket, '」' | '』' | '｣' | '﹂' | '﹄' | '》' | '〉' | '〟' | '〞')
}

/// Whether a quote opens as often as it closes.
fn is_unclear(quote: char) -> bool {
    !matches!(quote, '”' | '’')
}

/// Whether the quote at a place is its own opposite, and stands an odd number of times before a mark.
fn is_open(reader: &Reader<'_>, at: usize, quote: usize) -> bool {
    let Some(quote) = reader.at(quote).filter(|quote| matches!(quote, '"' | '\u{ff02}')) else {
        return false;
    };
    let mut is_open = false;
    let lowest = at.saturating_sub(QUOTE_REACH).max(reader.start);
    let mut place = at;
    while place > lowest {
        let Some(character) = reader.before(place) else { break };
        is_open ^= character == quote;
        place -= character.len_utf8();
    }
    is_open
}

/// The place behind a quote that French sets off from the mark by a space.
fn french_quote(reader: &Reader<'_>, at: usize) -> Option<usize> {
    let space = reader.at(at).filter(|one| is_space(*one))?;
    let at = at + space.len_utf8();
    let quote = reader.at(at).filter(|one| matches!(one, '»' | '›'))?;
    let end = at + quote.len_utf8();
    (!begins_word(reader, end)).then_some(end)
}

/// The place behind the number of a footnote, as in "so.[2] But" and "so.² But".
fn note(reader: &Reader<'_>, at: usize) -> Option<usize> {
    let first = reader.at(at)?;
    if matches!(first, '¹' | '²' | '³' | '⁰' | '⁴'..='⁹') {
        return Some(at + first.len_utf8());
    }
    let digits = (first == '[').then_some(at + 1)?;
    let end = digits
        + reader.text.as_bytes()[digits..]
            .iter()
            .take(LONGEST_NOTE)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
    (end > digits && reader.at(end) == Some(']')).then_some(end + 1)
}

fn begins_word(reader: &Reader<'_>, at: usize) -> bool {
    reader.at(at).is_some_and(|one| is_in_word(one) || is_opening(one))
}

/// Whether a run of marks stands alone between brackets, as in "(?)" and "[...]".
pub(super) fn is_bracketed(reader: &Reader<'_>, marks: &Marks) -> bool {
    marks.has_bracket
        && marks.at > reader.start
        && reader.before(marks.at).is_some_and(|one| matches!(one, '(' | '[' | '（' | '［'))
}

/// Whether the letters around a run of marks are East Asian, which have no space there.
pub(super) fn is_east_asian_around(reader: &Reader<'_>, marks: &Marks) -> bool {
    let is_east_asian_before =
        marks.at > reader.start && reader.before(marks.at).is_some_and(is_east_asian);
    let next = reader.at(marks.close);
    match marks.kind {
        Mark::Strong => {
            next.is_some_and(is_east_asian)
                || is_east_asian_before
                    && next.is_some_and(|one| is_in_word(one) || is_opening(one))
        }
        _ => is_east_asian_before && next.is_some_and(|one| is_east_asian(one) || is_opening(one)),
    }
}
