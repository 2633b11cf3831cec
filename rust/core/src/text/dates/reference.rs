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

/// Today, and the newest memory.
pub(super) struct Reference<'call> {
    pub(super) today: i64,
    newest: &'call dyn Fn() -> Option<i64>,
    latest: OnceCell<i64>,
}

pub(super) fn found(days: Days, granularity: Granularity, basis: Basis) -> Found {
    Found { days, granularity, basis }
}

pub(super) fn near_today(days: Days, granularity: Granularity) -> Found {
    found(days, granularity, Basis::Today)
}

pub(super) fn unit_days(unit: Unit) -> Option<i64> {
    match unit {
        Unit::Minute | Unit::Hour => None,
        Unit::Day => Some(1),
        Unit::Week | Unit::Weekend => Some(7),
        Unit::Month => Some(31),
        Unit::Quarter => Some(92),
        Unit::Year => Some(366),
    }
}

fn in_year(named: Named, other: Named, year: i64) -> Named {
    Named { year: Some(year), month: named.month.or(other.month), day: named.day }
}

impl<'call> Reference<'call> {
    /// `newest` computes the day of the newest memory, at most once.
    pub(super) fn new(today: i64, newest: &'call dyn Fn() -> Option<i64>) -> Self {
        Self { today, newest, latest: OnceCell::new() }
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
