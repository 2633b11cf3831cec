//! Numbers whose digits or groups show what they are.

use std::ops::Range;

use super::characters::{
    EMPHASIS, HYPHENS, digit_value, ends_word, follows_digit, is_digit, joint, line_break,
    precedes_digit, starts_word,
};
use super::places::{Place, digits};

/// Digits of each group.
const SSN_GROUPS: [usize; 3] = [3, 2, 4];
/// Fewest and most digits of a payment card's number.
const CARD_DIGITS: Range<usize> = 13..20;
/// Fewest digits of a group that is not the last: cards are printed 4-4-4-4, 4-6-5 or 4-6-4.
const CARD_GROUP: usize = 4;
/// Most characters between two groups, such as " - ", apart from emphasis; a line break is one.
const CARD_GAP: usize = 3;

/// A number of the United States' social security: 3, 2 and 4 digits.
pub(super) fn ssn(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at: start, count, is_broken, .. } = place;
    if count > SSN_GROUPS[0] || (count < SSN_GROUPS[0] && !is_broken) {
        return None;
    }
    let mut at = start;
    for (index, len) in SSN_GROUPS.into_iter().enumerate() {
        if index > 0 {
            at += joint(&text[at..]);
            at += text[at..].chars().next().filter(|hyphen| HYPHENS.contains(hyphen))?.len_utf8();
            at += joint(&text[at..]);
        }
        at += group(&text[at..], len)?;
    }
    let is_alone = starts_word(text, start)
        && ends_word(text, at)
        && !follows_digit(text, start, &HYPHENS)
        && !precedes_digit(text, at, &HYPHENS);
    is_alone.then_some(start..at)
}

/// The length of a group of so many digits, in one line or in two.
fn group(text: &str, len: usize) -> Option<usize> {
    let (count, size) = digits(text, len + 1);
    if count == len {
        return Some(size);
    }
    let gap = line_break(&text[size..]);
    if count == 0 || count > len || gap == 0 {
        return None;
    }
    let (rest, more) = digits(&text[size + gap..], len);
    let is_whole = count + rest == len && !text[size + gap + more..].starts_with(is_digit);
    is_whole.then_some(size + gap + more)
}

/// The longest number of a payment card that begins with a run of digits.
pub(super) fn card(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at: start, count, is_broken, .. } = place;
    if (count < CARD_GROUP && !is_broken)
        || !starts_word(text, start)
        || follows_digit(text, start, &['.'])
    {
        return None;
    }
    let mut luhn = Luhn::default();
    let mut end = None;
    let mut at = start;
    // Digits that stand right before a line break.
    let mut earlier = 0;
    loop {
        let (count, size) = digits(&text[at..], CARD_DIGITS.end - luhn.count);
        let run = &text[at..at + size];
        run.chars().filter_map(digit_value).for_each(|digit| luhn.push(digit));
        at += size;
        let is_joined = earlier > 0 && is_group(earlier + count, luhn.count);
        if (1..CARD_GROUP).contains(&earlier) && !is_joined {
            return end.map(|end| start..end);
        }
        let is_number = CARD_DIGITS.contains(&luhn.count) && luhn.is_valid();
        if is_number && ends_word(text, at) && !precedes_digit(text, at, &['.']) {
            end = Some(at);
        }
        let broken = line_break(&text[at..]);
        let is_part = count < CARD_GROUP && !is_joined;
        let gap = if is_part { broken } else { gap(&text[at..]) };
        let is_last = gap == 0 || luhn.count >= CARD_DIGITS.end || (is_part && earlier > 0);
        if is_last || (broken > 0 && end.is_some()) {
            return end.map(|end| start..end);
        }
        earlier = if broken == gap { count } else { 0 };
        at += gap;
    }
}

/// Whether a group that a line break stands in has as many digits as cards have; `count` are the
/// digits of the number so far.
fn is_group(len: usize, count: usize) -> bool {
    let is_first = len == count;
    len == CARD_GROUP || if is_first { CARD_DIGITS.contains(&len) } else { (5..7).contains(&len) }
}

/// The length of what stands between two groups of digits, 0 without a second one.
fn gap(text: &str) -> usize {
    let (mut at, mut joins) = (0, 0);
    while joins <= CARD_GAP
        && let Some(next) = text[at..].chars().next()
    {
        let broken = line_break(&text[at..]);
        if broken > 0 || next == '.' || next.is_whitespace() || HYPHENS.contains(&next) {
            at += broken.max(next.len_utf8());
            joins += 1;
        } else if EMPHASIS.contains(&next) {
            at += next.len_utf8();
        } else {
            let is_gap = joins > 0 || text.starts_with("**");
            return if is_gap && is_digit(next) { at } else { 0 };
        }
    }
    0
}

/// The check sum of ISO/IEC 7812, annex B, over digits from the left.
///
/// Every second digit is doubled, counted from the right, so both ways are summed up until the
/// number of digits is known.
#[derive(Default)]
pub(super) struct Luhn {
    count: usize,
    odd: u32,
    even: u32,
}

impl Luhn {
    fn push(&mut self, digit: u32) {
        let doubled = if digit > 4 { digit * 2 - 9 } else { digit * 2 };
        let (odd, even) =
            if self.count.is_multiple_of(2) { (doubled, digit) } else { (digit, doubled) };
        self.odd += odd;
        self.even += even;
        self.count += 1;
    }

    fn is_valid(&self) -> bool {
        let sum = if self.count.is_multiple_of(2) { self.odd } else { self.even };
        sum.is_multiple_of(10)
    }

    /// Whether the digits in a text are at least two and pass.
    pub(super) fn passes(text: &str) -> bool {
        let mut luhn = Self::default();
        text.chars().filter_map(digit_value).for_each(|digit| luhn.push(digit));
        luhn.count > 1 && luhn.is_valid()
    }
}
