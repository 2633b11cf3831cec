//! Numbers whose digits or groups show what they are.

use std::ops::Range;

use super::characters::{
    HYPHENS, SPACES, digit_value, ends_word, follows_digit, is_digit, precedes_digit, starts_word,
};
use super::places::{Place, digits};

/// Digits of each group.
const SSN_GROUPS: [usize; 3] = [3, 2, 4];
/// Fewest and most digits of a payment card's number.
const CARD_DIGITS: Range<usize> = 13..20;
/// Fewest digits of a group that is not the last: cards are printed 4-4-4-4, 4-6-5 or 4-6-4.
const CARD_GROUP: usize = 4;
/// Most characters between two groups, such as " - ".
const CARD_GAP: usize = 3;

/// A number of the United States' social security: 3, 2 and 4 digits.
pub(super) fn ssn(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at: start, count, .. } = place;
    if count != SSN_GROUPS[0] {
        return None;
    }
    let mut at = start;
    for (index, len) in SSN_GROUPS.into_iter().enumerate() {
        if index > 0 {
            at += text[at..].chars().next().filter(|hyphen| HYPHENS.contains(hyphen))?.len_utf8();
        }
        let (count, size) = digits(&text[at..], len + 1);
        if count != len {
            return None;
        }
        at += size;
    }
    let is_alone = starts_word(text, start)
        && ends_word(text, at)
        && !follows_digit(text, start, &HYPHENS)
        && !precedes_digit(text, at, &HYPHENS);
    is_alone.then_some(start..at)
}

/// The longest number of a payment card that begins with a run of digits.
pub(super) fn card(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at: start, count, .. } = place;
    if count < CARD_GROUP || !starts_word(text, start) || follows_digit(text, start, &['.']) {
        return None;
    }
    let mut luhn = Luhn::default();
    let mut end = None;
    let mut at = start;
    loop {
        let (count, size) = digits(&text[at..], CARD_DIGITS.end - luhn.count);
        let run = &text[at..at + size];
        run.chars().filter_map(digit_value).for_each(|digit| luhn.push(digit));
        at += size;
        let is_number = CARD_DIGITS.contains(&luhn.count) && luhn.is_valid();
        if is_number && ends_word(text, at) && !precedes_digit(text, at, &['.']) {
            end = Some(at);
        }
        let gap = gap(&text[at..]);
        if count < CARD_GROUP || gap == 0 || luhn.count >= CARD_DIGITS.end {
            return end.map(|end| start..end);
        }
        at += gap;
    }
}

/// The length of what stands between two groups of digits, 0 without a second one.
fn gap(text: &str) -> usize {
    let joins = |join: char| join == '.' || SPACES.contains(&join) || HYPHENS.contains(&join);
    let end = text.char_indices().take(CARD_GAP + 1).find(|(_, join)| !joins(*join));
    end.filter(|(_, next)| is_digit(*next)).map_or(0, |(end, _)| end)
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
