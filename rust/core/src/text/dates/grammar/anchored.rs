//! Days and periods beside others: weekdays, the day after tomorrow, the last week of May.

use super::*;

impl Grammar<'_> {
    /// "on Friday" with or without a date, "Friday, 7 May", "the Friday before 3 May".
    pub(super) fn day_of_week(&self, place: usize) -> Step<Option<Found>> {
        let Some(Word::Weekday(weekday, reading)) = self.word(place) else {
            return None;
        };
        if let Some((date, next)) = self.weekday_beside(place, weekday) {
            return Some((Some(date), next));
        }
        let behind = self.over(place + 1, |kind| matches!(kind, Kind::Mark(',' | '.')));
        if let Some(date) = self.calendar(self.over_word(behind, Word::The)) {
            return Some(date);
        }
        let is_day = reading == Reading::Only || self.tokens[place].is_capital;
        let is_announced = matches!(self.before(place), Some(Word::On | Word::Since));
        let latest = day(weekday_until(self.reference.today, weekday));
        (is_day && is_announced).then(|| (Some(near_today(latest, Granularity::Day)), place + 1))
    }

    // Parts and neighbours of other dates --------------------------------------------------------

    /// "week of 3 July", "the day after 3 May": from a unit without a number.
    pub(super) fn anchored(&self, place: usize) -> Step<Found> {
        let Word::Unit(unit, false) = self.word(place)? else {
            return None;
        };
        if unit == Unit::Week && self.is_word(place + 1, Word::Of) {
            let (date, next) = self.full_day(place + 2)?;
            let days = week(date.days.start);
            return Some((found(days, Granularity::Week, date.basis), next));
        }
        if let Some(shifted) = self.beside_today(place).filter(|_| unit == Unit::Day) {
            return Some(shifted);
        }
        self.beside(place, Length::whole(1, unit).reach()?)
    }

    /// "day before yesterday", "day after tomorrow".
    pub(super) fn beside_today(&self, place: usize) -> Step<Found> {
        let side = self.side(place + 1)?;
        match self.word(place + 2)? {
            Word::Relative(shift) if shift == side => {
                Some((self.reference.relative_day(2 * side), place + 3))
            }
            _ => None,
        }
    }

    pub(super) fn side(&self, place: usize) -> Option<i64> {
        match self.word(place)? {
            Word::Before => Some(-1),
            Word::After => Some(1),
            _ => None,
        }
    }

    /// `reach` days before or after a day, and that day, on which the memory may have been stored.
    pub(super) fn beside(&self, at_unit: usize, reach: i64) -> Step<Found> {
        let side = self.side(at_unit + 1)?;
        let (date, next) = self.full_day(at_unit + 2)?;
        let Days { start, end } = date.days;
        let days = if side < 0 {
            Days { start: start - reach, end }
        } else {
            Days { start, end: end + reach }
        };
        Some((found(days, Granularity::Span, date.basis), next))
    }

    pub(super) fn weekday_beside(&self, place: usize, weekday: i64) -> Step<Found> {
        let side = self.side(place + 1)?;
        let (date, next) = self.full_day(place + 2)?;
        let Days { start, end } = date.days;
        let days = if side < 0 {
            Days { start: weekday_until(start - 1, weekday), end }
        } else {
            Days { start, end: weekday_until(start + 7, weekday) + 1 }
        };
        Some((found(days, Granularity::Span, date.basis), next))
    }

    pub(super) fn full_day(&self, place: usize) -> Step<Found> {
        let (date, next) = self.calendar(self.over_word(place, Word::The))?;
        date.filter(|date| date.granularity == Granularity::Day).map(|date| (date, next))
    }

    /// "early June", "mid-2023", "the end of last year".
    pub(super) fn third(&self, place: usize) -> Step<Found> {
        let Some(Word::Third(third, needs_of)) = self.word(place) else {
            return None;
        };
        let after = self.over(place + 1, |kind| {
            matches!(kind, Kind::Mark('-') | Kind::Known(Word::Of | Word::In))
        });
        if needs_of && !self.is_word(place + 1, Word::Of) {
            return None;
        }
        let (whole, next) = self.period(after)?;
        Some((part(whole, third, 3)?, next))
    }

    /// "first week of June", "last week of May 2023", "second half of 2022", "third quarter of 2023".
    pub(super) fn part_of_period(&self, place: usize) -> Step<Found> {
        let ordinal = match self.word(place)? {
            Word::Ordinal(number) => number,
            Word::Last => 0,
            _ => return None,
        };
        let unit = self.word(place + 1)?;
        if !self.is_word(place + 2, Word::Of) {
            return None;
        }
        let (whole, next) = self.period(place + 3)?;
        let part = match (unit, whole.granularity) {
            (Word::Unit(Unit::Week, false), Granularity::Month) => Some(week_of(whole, ordinal)),
            (Word::Half, _) if ordinal < 3 => part(whole, (ordinal + 1) % 2, 2),
            (Word::Unit(Unit::Quarter, false), Granularity::Year) => {
                part(whole, (ordinal + 3) % 4, 4)
            }
            _ => None,
        };
        part.map(|part| (part, next))
    }

    /// A month, a season, a year or a decade that has parts.
    pub(super) fn period(&self, place: usize) -> Step<Found> {
        let begin = self.over_word(place, Word::The);
        let named = match (self.kind(begin)?, self.word(begin)) {
            (_, Some(Word::Last | Word::This | Word::Next)) => self.neighbour(begin),
            (_, Some(Word::Month(..) | Word::Season(..) | Word::Quarter(_)))
            | (Kind::Number { .. } | Kind::Digits(..), _) => {
                self.date(begin, None).and_then(|(date, next)| Some((date?, next)))
            }
            _ => None,
        };
        let (whole, next) = named.or_else(|| self.bare_period(begin))?;
        let is_parted = !matches!(whole.granularity, Granularity::Day | Granularity::Span);
        is_parted.then_some((whole, next))
    }

    /// A month or a year that nothing but the part before it announces.
    pub(super) fn bare_period(&self, place: usize) -> Step<Found> {
        let date = match self.kind(place)? {
            Kind::Known(Word::Month(month, Reading::Only | Reading::Name | Reading::Common)) => {
                let named = Named { month: Some(month), ..Named::default() };
                self.reference.resolve(self.with_year_behind(named, place + 1))?
            }
            Kind::Number { value, digits: 4, suffix: Suffix::None } if is_year(value) => {
                found(years(value, 1), Granularity::Year, Basis::Calendar)
            }
            _ => return None,
        };
        (!self.is_content(place + 1)).then_some((date, place + 1))
    }
}
