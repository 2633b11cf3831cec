//! The day that dates are counted from, and the days that follow from it.

use std::cell::OnceCell;

use super::Granularity;
use super::calendar::{
    Days, civil, day, day_number, days_in_month, months, week, weekday_until, years,
};
use super::vocabulary::Unit;

/// While the newest memory is at most so many days old, memories count as current: a memory so near
/// to a date is still near it.
const CURRENT_DAYS: i64 = 7;

const MINUTES_PER_DAY: i64 = 1_440;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) days: Days,
    pub(super) granularity: Granularity,
    pub(super) basis: Basis,
}

/// The reference of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// Named with its year.
    Calendar,
    /// Named without its year, which follows from today.
    Yearless,
    /// Counted from today: yesterday, last week.
    Today,
}

/// A date as it was named; missing parts are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Named {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
}

/// Now, and the newest memory.
pub(super) struct Reference<'call> {
    pub(super) today: i64,
    /// Of today.
    minute: i64,
    newest: &'call dyn Fn() -> Option<i64>,
    latest: OnceCell<i64>,
}

pub(super) fn found(days: Days, granularity: Granularity, basis: Basis) -> Found {
    Found { days, granularity, basis }
}

pub(super) fn near_today(days: Days, granularity: Granularity) -> Found {
    found(days, granularity, Basis::Today)
}

/// A length of time, and the unit to which it is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length {
    months: i64,
    days: i64,
    minutes: i64,
    pub(super) finest: Unit,
}

impl Length {
    pub(super) fn whole(count: i64, unit: Unit) -> Self {
        let (months, days, minutes) = match unit {
            Unit::Minute => (0, 0, 1),
            Unit::Hour => (0, 0, 60),
            Unit::Day => (0, 1, 0),
            Unit::Weekend | Unit::Week => (0, 7, 0),
            Unit::Month => (1, 0, 0),
            Unit::Quarter => (3, 0, 0),
            Unit::Year => (12, 0, 0),
        };
        Self { months, days, minutes, finest: unit }.times(count)
    }

    /// So many quarters of a unit; `None` where nobody could say how long that is.
    pub(super) fn new(quarters: i64, unit: Unit) -> Option<Self> {
        let (count, part) = (quarters / 4, quarters % 4);
        let whole = Self::whole(count, unit);
        match unit {
            _ if part == 0 => Some(whole),
            Unit::Year => Some(Self::whole(3 * quarters, Unit::Month)),
            Unit::Month if part == 2 => Some(Self { days: 15, finest: Unit::Week, ..whole }),
            Unit::Week if count > 0 => Some(Self { days: 7 * quarters / 4, ..whole }),
            Unit::Day => Some(Self::whole(6 * quarters, Unit::Hour)),
            Unit::Hour => Some(Self::whole(15 * quarters, Unit::Minute)),
            _ => None,
        }
    }

    pub(super) fn times(self, factor: i64) -> Self {
        let Self { months, days, minutes, finest } = self;
        Self { months: factor * months, days: factor * days, minutes: factor * minutes, finest }
    }

    /// With a length of a finer unit.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let is_sum = other.finest < self.finest
            && self.finest != Unit::Weekend
            && other.finest != Unit::Weekend;
        is_sum.then_some(Self { finest: other.finest, ..self.after(other) })
    }

    /// Behind another length, as exact as before.
    pub(super) fn after(self, other: Self) -> Self {
        Self {
            months: self.months + other.months,
            days: self.days + other.days,
            minutes: self.minutes + other.minutes,
            finest: self.finest,
        }
    }

    /// The most days that it may last; `None` if it is told in hours.
    pub(super) fn reach(self) -> Option<i64> {
        (self.minutes == 0).then_some((self.months * 61 + 1) / 2 + self.days)
    }
}

/// Saturday and Sunday of the week of a day.
pub(super) fn weekend(number: i64) -> Days {
    let days = week(number);
    Days { start: days.end - 2, end: days.end }
}

fn in_year(named: Named, other: Named, year: i64) -> Named {
    Named { year: Some(year), month: named.month.or(other.month), day: named.day }
}

impl<'call> Reference<'call> {
    /// `newest` computes the day of the newest memory, at most once.
    pub(super) fn new(today: i64, minute: i64, newest: &'call dyn Fn() -> Option<i64>) -> Self {
        Self { today, minute, newest, latest: OnceCell::new() }
    }

    /// The day up to which dates without a year lie: today while memories are current, otherwise
    /// that of the newest memory, so that in an old import "on May 6th" is a day of the import.
    fn latest_day(&self) -> i64 {
        let is_current = |newest: &i64| (self.today - CURRENT_DAYS..=self.today).contains(newest);
        let latest = || (self.newest)().filter(|newest| !is_current(newest)).unwrap_or(self.today);
        *self.latest.get_or_init(latest)
    }

    pub(super) fn resolve(&self, named: Named) -> Option<Found> {
        let month = named.month.unwrap_or(1);
        if !(1..=12).contains(&month) {
            return None;
        }
        let basis = if named.year.is_some() { Basis::Calendar } else { Basis::Yearless };
        if let Some(date) = named.day {
            let year = named.year.or_else(|| self.latest_year_of_day(month, date))?;
            let is_date = (1..=days_in_month(year, month)).contains(&date);
            let days = day(day_number(year, month, date));
            return is_date.then_some(found(days, Granularity::Day, basis));
        }
        if named.month.is_none() {
            return Some(found(years(named.year?, 1), Granularity::Year, basis));
        }
        let year = named.year.unwrap_or_else(|| self.latest_year_of_month(month));
        Some(found(months(year, month, 1), Granularity::Month, basis))
    }

    /// Each end inherits missing parts from the other.
    pub(super) fn resolve_span(&self, first: Named, last: Named) -> Option<Found> {
        let own_years = (first.year, last.year);
        let year = first.year.or(last.year);
        let fill = |named: Named, other: Named| {
            let month = named.month.or(other.month.filter(|_| named.day.is_some()));
            Named { year, month, ..named }
        };
        let mut from = self.resolve(Named { year: own_years.0.or(year), ..fill(first, last) })?;
        let mut last = Named { year: own_years.1.or(year), ..fill(last, first) };
        last.year = last.year.or_else(|| Some(civil(from.days.start).year));
        let mut to = self.resolve(last)?;
        if to.days.start < from.days.start {
            match own_years {
                (Some(_), Some(_)) => return None,
                (None, Some(year)) => from = self.resolve(in_year(first, last, year - 1))?,
                (_, None) => {
                    to = self.resolve(Named { year: last.year.map(|year| year + 1), ..last })?;
                }
            }
        }
        let days = Days { start: from.days.start, end: to.days.end };
        (days.start < days.end).then_some(found(days, Granularity::Span, from.basis))
    }

    /// The year whose `month` is the latest not after that of the latest day.
    pub(super) fn latest_year_of_month(&self, month: i64) -> i64 {
        let latest = civil(self.latest_day());
        latest.year - i64::from(month > latest.month)
    }

    /// The year of the latest such day up to the latest day; 29 February may be eight years back.
    pub(super) fn latest_year_of_day(&self, month: i64, date: i64) -> Option<i64> {
        let latest = self.latest_day();
        let latest_year = civil(latest).year;
        (0..9).map(|back| latest_year - back).find(|year| {
            date <= days_in_month(*year, month) && day_number(*year, month, date) <= latest
        })
    }

    pub(super) fn relative_day(&self, shift: i64) -> Found {
        near_today(day(self.today + shift), Granularity::Day)
    }

    /// The unit that lies `count` units from today's: for weeks the seven days around the day.
    pub(super) fn shifted(&self, unit: Unit, count: i64) -> Found {
        self.beyond(Length::whole(count, unit))
    }

    /// The unit that lies a length of time from now, as long as the length is exact.
    pub(super) fn beyond(&self, length: Length) -> Found {
        let number = self.landing(length);
        let date = civil(number);
        let (days, granularity) = match length.finest {
            Unit::Minute | Unit::Hour | Unit::Day => (day(number), Granularity::Day),
            Unit::Weekend => (weekend(number), Granularity::Weekend),
            Unit::Week => (Days { start: number - 3, end: number + 4 }, Granularity::Week),
            Unit::Month => (months(date.year, date.month, 1), Granularity::Month),
            Unit::Quarter => {
                let month = (date.month - 1) / 3 * 3 + 1;
                (months(date.year, month, 3), Granularity::Quarter)
            }
            Unit::Year => (years(date.year, 1), Granularity::Year),
        };
        near_today(days, granularity)
    }

    /// Today moved by a length of whole days; months keep the day where they have it.
    pub(super) fn moved(&self, length: Length) -> Option<i64> {
        let is_in_days = !matches!(length.finest, Unit::Minute | Unit::Hour | Unit::Weekend);
        is_in_days.then(|| self.landing(length))
    }

    fn landing(&self, length: Length) -> i64 {
        let now = civil(self.today);
        let month = now.month + length.months;
        let date = now.day.min(days_in_month(now.year, month));
        let minutes = self.minute + length.minutes;
        day_number(now.year, month, date) + length.days + minutes.div_euclid(MINUTES_PER_DAY)
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

    /// Last: the latest before this month. This: in this year. Next: the first after this month.
    pub(super) fn month_at(&self, month: i64, step: i64) -> Found {
        let now = civil(self.today);
        let year = match step {
            -1 => now.year - i64::from(month >= now.month),
            0 => now.year,
            _ => now.year + i64::from(month <= now.month),
        };
        near_today(months(year, month, 1), Granularity::Month)
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
