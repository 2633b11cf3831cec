//! Numbers of telephones.

use std::ops::Range;

use super::characters::{
    HYPHENS, digit_value, ends_word, is_digit, line_break, precedes_digit, starts_word,
};
use super::places::{Place, digits};

/// Most groups of digits, and most characters between two; a line break is one.
const MAX_GROUPS: usize = 7;
const MAX_GAP: usize = 3;
/// Digits of a number with its country, ITU-T E.164; the fewest are those of small countries.
const INTERNATIONAL: Range<usize> = 8..16;
/// Digits of a number that begins with the 0 of a trunk line.
const NATIONAL: Range<usize> = 9..13;
/// Most digits of an extension.
const EXTENSION: usize = 6;

/// Signs between the groups of another kind of number.
const JOINS: [char; 4] = ['.', '/', ':', ','];

/// Groups of digits.
#[derive(Default)]
struct Groups {
    counts: [usize; MAX_GROUPS],
    ends: [usize; MAX_GROUPS],
    /// The first digits.
    first: [u32; 3],
    len: usize,
    /// Groups in the first line.
    in_line: usize,
    has_plus: bool,
    has_bracket: bool,
}

/// The longest number of a telephone whose digits begin at a place.
pub(super) fn phone(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at, floor, .. } = place;
    let start = at - opening(&text[floor..at]);
    let is_plain = start == at;
    if (is_plain && !can_begin(text, at, place.count)) || !begins(text, start) {
        return None;
    }
    let groups = groups(text, start, at)?;
    let fits = |len: &usize| groups.is_phone(*len) && ends(text, groups.ends[len - 1]);
    let in_line = (1..=groups.in_line).rev().find(fits);
    let len = in_line.or_else(|| (groups.in_line + 1..=groups.len).rev().find(fits))?;
    Some(start..extension_end(text, groups.ends[len - 1]))
}

/// Whether the first digits may be those of a number without a sign: few numbers go further.
fn can_begin(text: &str, at: usize, count: usize) -> bool {
    let first = text[at..].chars().next().and_then(digit_value);
    matches!(
        (first, count),
        (Some(0), _) | (_, 2 | 3) | (Some(1), 1 | 4 | 11) | (Some(7 | 8), 1) | (Some(6..=9), 5)
    )
}

/// The length of a plus sign and a bracket before the digits.
fn opening(text: &str) -> usize {
    let without = text.strip_suffix(['(', '（']).unwrap_or(text);
    without
        .strip_suffix(['+', '＋'])
        .map_or(text.len() - without.len(), |rest| text.len() - rest.len())
}

fn begins(text: &str, start: usize) -> bool {
    let follows = |join: char| JOINS.contains(&join) || HYPHENS.contains(&join);
    let mut earlier = text[..start].chars().rev();
    let sign = earlier.next();
    let is_later_group = sign.is_some_and(follows) && earlier.next().is_some_and(is_digit);
    starts_word(text, start) && !is_later_group && !sign.is_some_and(|sign| "#$€£¥₹".contains(sign))
}

fn ends(text: &str, end: usize) -> bool {
    ends_word(text, end)
        && !precedes_digit(text, end, &JOINS)
        && !precedes_digit(text, end, &HYPHENS)
}

fn groups(text: &str, start: usize, first: usize) -> Option<Groups> {
    let opening = &text[start..first];
    let mut groups = Groups {
        has_plus: opening.starts_with(['+', '＋']),
        has_bracket: opening.ends_with(['(', '（']),
        ..Groups::default()
    };
    let mut values = text[first..].chars().map_while(digit_value);
    groups.first = [(); 3].map(|()| values.next().unwrap_or(u32::MAX));
    let mut at = first;
    let mut is_broken = false;
    while groups.len < MAX_GROUPS {
        let (count, size) = digits(&text[at..], INTERNATIONAL.end + 2);
        at += size;
        groups.counts[groups.len] = count;
        groups.ends[groups.len] = at;
        groups.len += 1;
        if !is_broken {
            groups.in_line = groups.len;
        }
        let Some((gap, breaks)) = gap(&text[at..]) else { break };
        let joins = &text[at..at + gap];
        groups.has_bracket |= joins.contains([')', '）']) && groups.len < 3;
        is_broken |= breaks;
        if is_broken && !(groups.has_plus || groups.has_bracket || joins.contains(HYPHENS)) {
            break;
        }
        at += gap;
    }
    (groups.len > 0).then_some(groups)
}

/// The length of what stands between two groups, and whether a line break is in it.
fn gap(text: &str) -> Option<(usize, bool)> {
    let (mut at, mut joins, mut breaks) = (0, 0, false);
    while let Some(next) = text[at..].chars().next().filter(|_| joins <= MAX_GAP) {
        let is_join = matches!(next, '.' | '/' | '(' | ')' | '（' | '）')
            || next.is_whitespace()
            || HYPHENS.contains(&next);
        if !is_join {
            return (joins > 0 && is_digit(next)).then_some((at, breaks));
        }
        let broken = line_break(&text[at..]);
        breaks |= broken > 0;
        at += broken.max(next.len_utf8());
        joins += 1;
    }
    None
}

impl Groups {
    /// Whether the first groups have the form of a number.
    fn is_phone(&self, len: usize) -> bool {
        let counts = &self.counts[..len];
        let total: usize = counts.iter().sum();
        match self.first {
            _ if self.has_plus => INTERNATIONAL.contains(&total),
            [0, 0, 1..=9] => {
                (if len > 1 { INTERNATIONAL.start + 2..INTERNATIONAL.end + 2 } else { 12..16 })
                    .contains(&total)
            }
            [0, second @ 1..=9, _] => is_national(counts, total, second),
            [1, 3..=9, _] if matches!(counts, [11] | [3, 4, 4]) => true,
            [1, 3 | 8, 0] if matches!(counts, [4, 3, 3]) => true,
            [1, ..] if matches!(counts, [1, 3, 3, 4]) => true,
            [7 | 8, ..] if matches!(counts, [1, 3, 3, 2, 2]) => true,
            [6..=9, ..] if matches!(counts, [5, 5]) => true,
            _ if self.has_bracket => len > 1 && counts[0] < 6 && (9..12).contains(&total),
            _ => matches!(counts, [3, 3, 4] | [2, 5, 4]),
        }
    }
}

/// Whether groups have the form of a number that begins with 0: neither a date with its time nor,
/// in one group, a number of an order or a book.
fn is_national(counts: &[usize], total: usize, second: u32) -> bool {
    match counts {
        [10] => second > 3,
        [11] => true,
        [2, 2, 4, ..] | [_] | [] => false,
        [first, ..] => (2..7).contains(first) && NATIONAL.contains(&total),
    }
}

/// The end of an extension behind a number: "ext. 12", "x12".
fn extension_end(text: &str, end: usize) -> usize {
    let rest = text[end..].trim_start_matches(' ');
    let word = ["ext.", "ext", "x"].into_iter().find(|word| rest.starts_with(word));
    let Some(word) = word else { return end };
    let number = rest[word.len()..].trim_start_matches(' ');
    let (count, size) = digits(number, EXTENSION + 1);
    let until = text.len() - number.len() + size;
    let is_extension = (1..=EXTENSION).contains(&count) && ends_word(text, until);
    if is_extension { until } else { end }
}
