//! Line ends: whether a sentence goes on behind one.
//!
//! Memories are chat turns, notes and lists more often than paragraphs of a fixed width, so a line
//! end is a boundary. Three things together show a paragraph that an editor has broken into lines:
//! the line is long, it lacks a mark at its end, and the next begins in lower case without being an
//! item of a list or a turn of a dialogue.

use super::characters::is_line_end;
use super::following::{Following, Kind, gap};
use super::preceding::is_letter;
use super::reader::{Decision, Reader};

/// Editors break lines at 60 to 100 characters; a shorter line was ended by its writer.
const SHORTEST_BROKEN: usize = 40;

/// The decision at a line end that no mark precedes.
pub(super) fn decision(reader: &Reader<'_>, at: usize) -> Decision {
    let (next, lines) = gap(reader, at);
    if lines == 1 && is_broken(reader, at) {
        Decision::GoesOn(next)
    } else {
        Decision::Ends(reader.without_white_before(at))
    }
}

/// Whether a line that ends at a place, or in white space behind it, goes on in the next.
pub(super) fn is_broken(reader: &Reader<'_>, end: usize) -> bool {
    let following = Following::of(reader, end);
    following.kind == Kind::Lower
        && !following.has_dash
        && !is_item(&following)
        && following.next != Some(':')
        && reader.before(end) != Some(':')
        && is_long(reader, end)
}

fn is_item(following: &Following<'_>) -> bool {
    matches!(following.next, Some(')' | '.')) && is_letter(following.word)
}

fn is_long(reader: &Reader<'_>, end: usize) -> bool {
    let line = reader.text[..end].chars().rev().take_while(|one| !is_line_end(*one));
    line.take(SHORTEST_BROKEN).count() == SHORTEST_BROKEN
}
