//! Days and periods counted from today.

use super::*;

impl Grammar<'_> {
    /// "two days ago", "three weeks from now", "two weeks before 3 May 2023".
    pub(super) fn counted(&self, place: usize) -> Step<Option<Found>> {
        let (length, end) = self.length(place)?;
        if length.is_none() && end == place + 1 {
            return None;
        }
        let from = |sign, origin| {
            let origin = Length::whole(origin, Unit::Day);
            Some(self.reference.beyond(length?.times(sign).after(origin)))
        };
        match (self.word(end)?, self.word(end + 1)) {
            (Word::Ago, _) => Some((from(-1, 0), end + 1)),
            (Word::From, Some(Word::Now)) => Some((from(1, 0), end + 2)),
            (Word::From | Word::After, Some(Word::Relative(shift))) => {
                Some((from(1, shift), end + 2))
            }
            (Word::Before, Some(Word::Relative(shift))) => Some((from(-1, shift), end + 2)),
            _ => {
                let (date, next) = self.beside(end - 1, length?.reach()?)?;
                Some((Some(date), next))
            }
        }
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
        let is_counted = !matches!(self.word(place), Some(Word::Unit(..)));
        if is_counted && step == 0 || !is_counted && !is_rolling {
            return None;
        }
        let (length, end) = self.window_length(place, is_counted)?;
        let mut units = self.tokens[place..end].iter().filter_map(|token| match token.kind {
            Kind::Known(Word::Unit(unit, is_plural)) => Some((unit, is_plural)),
            _ => None,
        });
        let (unit, is_plural) = units.next()?;
        let is_single_day = !is_counted && unit == Unit::Day;
        let is_of_more = matches!(self.word(end), Some(Word::Of | Word::Ago));
        if is_plural != is_counted || is_single_day || is_of_more {
            return None;
        }
        let other = self.reference.moved(length.times(step))?;
        let days = Days {
            start: other.min(self.reference.today),
            end: other.max(self.reference.today) + 1,
        };
        Some((near_today(days, Granularity::Span), end))
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
