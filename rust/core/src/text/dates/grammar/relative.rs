//! Days and periods counted from today.

use super::*;

impl Grammar<'_> {
    pub(super) fn relative_day(&self, shift: i64) -> Found {
        near_today(day(self.today + shift), Granularity::Day)
    }

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
            return Some((self.shifted(unit, -count), at_unit + 2));
        }
        if self.is_word(at_unit + 1, Word::From) && self.is_word(at_unit + 2, Word::Now) {
            return Some((self.shifted(unit, count), at_unit + 3));
        }
        self.beside(at_unit, unit_days(unit)? * count)
    }

    /// The unit that lies `count` units from today's: for weeks the seven days around the day.
    pub(super) fn shifted(&self, unit: Unit, count: i64) -> Found {
        let now = civil(self.today);
        let around = |shift| Days { start: self.today + shift - 3, end: self.today + shift + 4 };
        match unit {
            Unit::Minute => self.relative_day(count / 1440),
            Unit::Hour => self.relative_day(count / 24),
            Unit::Day => self.relative_day(count),
            Unit::Weekend => near_today(self.weekend(count), Granularity::Weekend),
            Unit::Week => near_today(around(7 * count), Granularity::Week),
            Unit::Month => near_today(months(now.year, now.month + count, 1), Granularity::Month),
            Unit::Quarter => {
                let month = (now.month - 1) / 3 * 3 + 1 + 3 * count;
                near_today(months(now.year, month, 3), Granularity::Quarter)
            }
            Unit::Year => near_today(years(now.year + count, 1), Granularity::Year),
        }
    }

    /// Saturday and Sunday of the week that lies `count` weeks from this one.
    pub(super) fn weekend(&self, count: i64) -> Days {
        let days = week(self.today + 7 * count);
        Days { start: days.end - 2, end: days.end }
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
                    .then(|| self.calendar_unit(unit, step))?
            }
            Word::Weekday(weekday, reading) => {
                let is_day = reading == Reading::Only || self.tokens[next].is_capital;
                (is_day && !is_owned).then(|| self.weekday_at(weekday, step))?
            }
            Word::Month(month, Reading::Only | Reading::Name | Reading::Common) => {
                self.month_at(next, month, step)?
            }
            Word::Season(month, reading) => {
                let is_season = reading == Reading::Only || !self.is_content(next + 1);
                (is_season && !is_owned).then(|| self.season_at(month, step))?
            }
            Word::PartOfDay if step < 1 => self.relative_day(step),
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
        let other = self.moved(unit, step * count)?;
        let days = Days { start: other.min(self.today), end: other.max(self.today) + 1 };
        Some((near_today(days, Granularity::Span), at_unit + 1))
    }

    /// Today moved by `count` units; months keep the day where they have it.
    pub(super) fn moved(&self, unit: Unit, count: i64) -> Option<i64> {
        let now = civil(self.today);
        let month = match unit {
            Unit::Minute | Unit::Hour | Unit::Weekend => return None,
            Unit::Day | Unit::Week => return Some(self.today + unit_days(unit)? * count),
            Unit::Month => now.month + count,
            Unit::Quarter => now.month + 3 * count,
            Unit::Year => now.month + 12 * count,
        };
        let date = now.day.min(days_in_month(now.year, month));
        Some(day_number(now.year, month, date))
    }

    pub(super) fn calendar_unit(&self, unit: Unit, step: i64) -> Found {
        match unit {
            Unit::Week => near_today(week(self.today + 7 * step), Granularity::Week),
            _ => self.shifted(unit, step),
        }
    }

    /// Last: before today. This: in this week. Next: after today.
    pub(super) fn weekday_at(&self, weekday: i64, step: i64) -> Found {
        let number = match step {
            -1 => weekday_until(self.today - 1, weekday),
            0 => week(self.today).start + weekday,
            _ => weekday_until(self.today + 7, weekday),
        };
        near_today(day(number), Granularity::Day)
    }

    pub(super) fn month_at(&self, place: usize, month: i64, step: i64) -> Option<Found> {
        let Some(Word::Month(_, reading)) = self.word(place) else {
            return None;
        };
        let is_capital = self.tokens[place].is_capital;
        let is_verb =
            reading == Reading::Common && !is_capital && (step == 0 || self.is_content(place + 1));
        let now = civil(self.today);
        let year = match step {
            -1 => now.year - i64::from(month >= now.month),
            0 => now.year,
            _ => now.year + i64::from(month <= now.month),
        };
        (!is_verb).then(|| near_today(months(year, month, 1), Granularity::Month))
    }

    /// Last: the latest that has ended. Next: the first that has not begun. This: between them,
    /// that is the one that lasts or, between two, the one of this calendar year.
    pub(super) fn season_at(&self, month: i64, step: i64) -> Found {
        let year = civil(self.today).year;
        let season = |year| months(year, month, 3);
        let mut years = year - 2..=year + 2;
        let days = match step {
            -1 => years.rfind(|year| season(*year).end <= self.today),
            0 => {
                years.find(|one| season(*one).end > self.today && season(*one).start <= self.today)
            }
            _ => years.find(|year| season(*year).start > self.today),
        };
        near_today(season(days.unwrap_or(year)), Granularity::Season)
    }
}
