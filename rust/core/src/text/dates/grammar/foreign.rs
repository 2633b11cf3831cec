//! Days and lengths of time counted from today in German, French, Spanish and Italian.

use super::lengths::{AND, LONGEST, ONE, is_hyphen, is_part, sum};
use super::*;

impl Grammar<'_> {
    /// "gestern", "vor drei Tagen", "il y a trois jours", "hace tres días", "tre giorni fa".
    pub(super) fn foreign(&self, place: usize) -> Step<Option<Found>> {
        match self.kind(place)? {
            Kind::Foreign(Foreign::Day(shift)) => {
                let shift = shift - i64::from(shift == -1 && self.is_day_before(place));
                Some((Some(self.reference.relative_day(shift)), place + 1))
            }
            Kind::Foreign(Foreign::Ago) => {
                let is_since = place > 0 && self.is_foreign(place - 1, Foreign::Since);
                let (length, end) = self.foreign_length(place + 1, false)?;
                Some((length.filter(|_| !is_since).map(|length| self.ago(length)), end))
            }
            Kind::Foreign(Foreign::Il)
                if self.is_foreign(place + 1, Foreign::Part(Word::And))
                    && self.kind(place + 2) == Some(ONE) =>
            {
                let (length, end) = self.foreign_length(place + 3, true)?;
                Some((length.map(|length| self.ago(length)), end))
            }
            Kind::Foreign(Foreign::Part(_)) | Kind::Number { .. } => {
                let (length, end) = self.foreign_length(place, false)?;
                let is_ago = self.is_foreign(end, Foreign::Behind);
                is_ago.then(|| (length.map(|length| self.ago(length)), end + 1))
            }
            _ => None,
        }
    }

    /// "l'altro ieri", "antes de ayer".
    fn is_day_before(&self, place: usize) -> bool {
        let before = if self.before(place) == Some(Word::Of) { 2 } else { 1 };
        place >= before && self.is_foreign(place - before, Foreign::Other)
    }

    fn is_foreign(&self, place: usize, word: Foreign) -> bool {
        self.kind(place) == Some(Kind::Foreign(word))
    }

    fn ago(&self, length: Length) -> Found {
        self.reference.beyond(length.times(-1))
    }

    /// As `length`, of words in these languages.
    fn foreign_length(&self, place: usize, is_french: bool) -> Step<Option<Length>> {
        let mut kinds: Vec<Kind> = Vec::new();
        let mut end = place;
        for token in self.tokens[place.min(self.tokens.len())..].iter().take(LONGEST) {
            if !is_hyphen(token) {
                let Some(kind) = part_of(token.kind, kinds.last(), is_french) else { break };
                push(&mut kinds, kind);
            }
            end += 1;
        }
        if kinds.last() == Some(&AND) {
            kinds.pop();
            end -= 1;
        }
        let length = sum(&kinds).filter(|(_, rest)| rest.is_empty());
        (end > place).then(|| (length.map(|(length, _)| length), end))
    }
}

/// The English word of a token: French "sept" is no September, and "an" behind a number a year.
fn part_of(kind: Kind, before: Option<&Kind>, is_french: bool) -> Option<Kind> {
    let is_counted = matches!(before, Some(Kind::Known(Word::Count(_)) | Kind::Number { .. }));
    match kind {
        Kind::Foreign(Foreign::Part(word)) => Some(Kind::Known(word)),
        Kind::Known(Word::Month(9, Reading::Only)) if is_french => {
            Some(Kind::Known(Word::Count(7)))
        }
        ONE if is_french && is_counted => Some(Kind::Known(Word::Unit(Unit::Year, false))),
        _ => is_part(kind).then_some(kind),
    }
}

/// Add a part; numbers of several words become one: "treinta y cinco", "soixante-dix-sept".
fn push(kinds: &mut Vec<Kind>, kind: Kind) {
    let Kind::Known(Word::Count(next)) = kind else { return kinds.push(kind) };
    if let [.., Kind::Known(Word::Count(20..)), AND] = kinds[..]
        && next <= 11
    {
        kinds.pop();
    }
    match kinds.last_mut() {
        Some(Kind::Known(Word::Count(before))) if is_sum(*before, next) => *before += next,
        Some(Kind::Known(Word::Count(before @ 4))) if next == 20 => *before = 80,
        _ => kinds.push(kind),
    }
}

fn is_sum(before: i64, next: i64) -> bool {
    match before {
        10 => (7..=9).contains(&next),
        60 | 80 => (1..=16).contains(&next),
        20 | 30 | 40 | 50 | 70 | 90 => (1..=9).contains(&next),
        _ => false,
    }
}
