//! Days and periods counted from today.

use super::*;

impl Grammar<'_> {
    pub(super) fn number(&self, place: usize) -> Step<i64> {
        match self.kind(place)? {
            Kind::Number { value, suffix: Suffix::None, digits: 1..=3 } => Some((value, place + 1)),
            Kind::Known(Word::Count(1)) if self.is_word(place + 1, Word::Count(2)) => {
                Some((2, self.over_word(place + 2, Word::Of)))
            }
            Kind::Known(Word::Count(value)) => Some((value, self.over_word(place + 1, Word::Of))),
            _ => None,
        }
    }

    /// "two days ago", "three weeks from now", "two weeks before 3 May 2023".
    pub(super) fn counted(&self, place: usize) -> Step<Found> {
        let (count, at_unit) = self.number(place)?;
        let Word::Unit(unit, _) = self.word(at_unit)? else {
            return None;
        };
        if self.is_word(at_unit + 1, Word::Ago) {
            return Some((self.reference.shifted(unit, -count), at_unit + 2));
        }
        if self.is_word(at_unit + 1, Word::From) && self.is_word(at_unit + 2, Word::Now) {
            return Some((self.reference.shifted(unit, count), at_unit + 3));
        }
        self.beside(at_unit, unit_days(unit)? * count)
    }

    /// "last week", "this weekend", "next May", "past three months".
    pub(super) fn neighbour(&self, place: usize) -> Step<Found> {
        let (step, next) = self.step(place)?;
        let is_rolling =
            self.is_word(place, Word::Past) || self.before(place) == Some(Word::The) && step == -1;
        if let Some(window) = self.window(next, step, is_rolling) {
            return Some(window);
        }
        if self.calendar(next).is_some() || self.season(next).is_some() {
            return None;
        }
        let is_owned = self.is_word(next + 1, Word::Of);
        let date = match self.word(next)? {
            Word::Unit(
                unit @ (Unit::Weekend | Unit::Week | Unit::Month | Unit::Quarter | Unit::Year),
                false,
            ) => {
                let is_of_a_story = is_owned || self.before(place) == Some(Word::The);
                (!is_of_a_story || unit == Unit::Weekend && !is_owned)
                    .then(|| self.reference.calendar_unit(unit, step))?
            }
            Word::Weekday(weekday, reading) => {
                let is_day = reading == Reading::Only || self.tokens[next].is_capital;
                (is_day && !is_owned).then(|| self.reference.weekday_at(weekday, step))?
            }
            Word::Month(month, Reading::Only | Reading::Name | Reading::Common) => {
                self.month_at(next, month, step)?
            }
            Word::Season(month, reading) => {
                let is_season = reading == Reading::Only || !self.is_content(next + 1);
                (is_season && !is_owned).then(|| self.reference.season_at(month, step))?
            }
            Word::PartOfDay if step < 1 => self.reference.relative_day(step),
            _ => return None,
        };
        Some((date, next + 1))
    }

    /// −1, 0 or 1 for last, this or next; "this past" is last.
    pub(super) fn step(&self, place: usize) -> Step<i64> {
        match self.word(place)? {
            Word::This if self.is_word(place + 1, Word::Past) => Some((-1, place + 2)),
            Word::Last | Word::Past => Some((-1, place + 1)),
            Word::This => Some((0, place + 1)),
            Word::Next => Some((1, place + 1)),
            _ => None,
        }
    }

    /// "last 3 weeks", "the past month": up to and including today, or from today on.
    pub(super) fn window(&self, place: usize, step: i64, is_rolling: bool) -> Step<Found> {
        let counted = self.number(place).filter(|_| step != 0);
        let (count, at_unit) = counted.or_else(|| is_rolling.then_some((1, place)))?;
        let Word::Unit(unit, is_plural) = self.word(at_unit)? else {
            return None;
        };
        let is_single_day = counted.is_none() && unit == Unit::Day;
        if is_plural == counted.is_none() || is_single_day || self.is_word(at_unit + 1, Word::Of) {
            return None;
        }
        let other = self.reference.moved(unit, step * count)?;
        let days = Days {
            start: other.min(self.reference.today),
            end: other.max(self.reference.today) + 1,
        };
        Some((near_today(days, Granularity::Span), at_unit + 1))
    }

    pub(super) fn month_at(&self, place: usize, month: i64, step: i64) -> Option<Found> {
        let Some(Word::Month(_, reading)) = self.word(place) else {
            return None;
        };
        let is_capital = self.tokens[place].is_capital;
        let is_verb =
            reading == Reading::Common && !is_capital && (step == 0 || self.is_content(place + 1));
        (!is_verb).then(|| self.reference.month_at(month, step))
    }
}
