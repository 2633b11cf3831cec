//! Days and lengths of time counted from today in German, French, Spanish and Italian.

use super::super::foreign_vocabulary::{Gender, Side};
use super::lengths::{AND, LONGEST, ONE, is_hyphen, is_part, sum};
use super::*;
use crate::text::Language;
use crate::text::detection::{beginning, detect};

impl Grammar<'_> {
    /// "gestern", "vor drei Tagen", "il y a trois jours", "hace tres días", "tre giorni fa".
    pub(super) fn foreign(&self, place: usize) -> Step<Option<Found>> {
        match self.kind(place)? {
            Kind::Foreign(Foreign::Day(shift)) => {
                let shift = shift - i64::from(shift == -1 && self.is_day_before(place));
                Some((Some(self.reference.relative_day(shift)), place + 1))
            }
            Kind::Foreign(Foreign::Hier) => {
                let is_before = self.is_day_before(place);
                let shift = if is_before { -2 } else { -1 };
                (is_before || self.is_french())
                    .then(|| (Some(self.reference.relative_day(shift)), place + 1))
            }
            Kind::Foreign(Foreign::Turn(..)) => {
                self.turned(place).map(|(date, end)| (Some(date), end))
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
            Kind::Foreign(Foreign::Part(Word::Unit(..))) => {
                self.turned(place).map(|(date, end)| (Some(date), end))
            }
            Kind::Foreign(Foreign::Part(_)) | Kind::Number { .. } => {
                let (length, end) = self.foreign_length(place, false)?;
                let is_ago = self.is_foreign(end, Foreign::Behind);
                is_ago.then(|| (length.map(|length| self.ago(length)), end + 1))
            }
            _ => None,
        }
    }

    /// "l'altro ieri", "antes de ayer", "avant-hier".
    fn is_day_before(&self, place: usize) -> bool {
        let is_joined = self.before(place) == Some(Word::Of)
            || place > 0 && self.kind(place - 1) == Some(Kind::Mark('-'));
        let before = if is_joined { 2 } else { 1 };
        place >= before && self.is_foreign(place - before, Foreign::Other)
    }

    /// As the words around say: "hier" stands in half of all German questions.
    fn is_french(&self) -> bool {
        *self.is_french.get_or_init(|| {
            let text = beginning(self.text);
            let is_elided = || ["j'", "j’", "qu'", "qu’"].iter().any(|one| has(text, one));
            detect(text).map_or_else(is_elided, |language| language == Language::French)
        })
    }

    /// The week, month or year that a word beside it tells: "letzte Woche", "el mes pasado".
    pub(super) fn turned(&self, place: usize) -> Step<Found> {
        let (unit, step, end) = match self.kind(place)? {
            Kind::Foreign(Foreign::Turn(step, Side::Before | Side::Either, gender)) => {
                let next = self.over_mark(place + 1, '\'');
                (self.turned_unit(next, gender)?, step, next + 1)
            }
            _ => match self.kind(place + 1)? {
                Kind::Foreign(Foreign::Turn(step, Side::After | Side::Either, gender)) => {
                    (self.turned_unit(place, gender)?, step, place + 2)
                }
                _ => return None,
            },
        };
        // "une semaine passée à Rome", "la fin de semaine dernière", "letzte Woche vor Ostern".
        let is_counted = matches!(
            self.kind(place.wrapping_sub(1)),
            Some(
                Kind::Known(Word::Of | Word::Count(_))
                    | Kind::Number { .. }
                    | Kind::Foreign(Foreign::Part(_))
            )
        );
        let is_of_another = is_counted || self.is_foreign(end, Foreign::Ago);
        (!is_of_another).then(|| (self.reference.calendar_unit(unit, step), end))
    }

    fn is_an(&self, place: usize) -> bool {
        let start = self.tokens[place].start;
        self.text.get(start..start + 2).is_some_and(|word| word.eq_ignore_ascii_case("an"))
    }

    /// A single unit that a word of a gender may stand beside; French "an" is the English article.
    fn turned_unit(&self, place: usize, gender: Gender) -> Option<Unit> {
        let unit = match self.kind(place)? {
            Kind::Foreign(Foreign::Part(Word::Unit(unit, false)))
            | Kind::Known(Word::Unit(unit @ Unit::Weekend, false)) => unit,
            ONE if self.is_an(place) => Unit::Year,
            _ => return None,
        };
        let is_wrong = match unit {
            Unit::Week => gender == Gender::Masculine,
            Unit::Month | Unit::Weekend => gender == Gender::Feminine,
            Unit::Year => false,
            _ => true,
        };
        (!is_wrong).then_some(unit)
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

/// Whether a text has some letters, whatever their case.
fn has(text: &str, letters: &str) -> bool {
    text.to_lowercase().contains(letters)
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
