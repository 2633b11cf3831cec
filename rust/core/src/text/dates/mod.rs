//! The dates that a question names, as ranges of time.
//!
//! Written here because no crate does it: interim, chrono-english, `two_timer` and fuzzydate parse one
//! whole string that is a date, `date_time_parser` finds one date in a sentence but gives a point in
//! time without its granularity, and Python's dateparser and datefinder take milliseconds and find
//! dates in "may" and "car". Only day numbers are needed of a calendar, which are twenty lines.

mod calendar;
mod east_asian;
mod foreign_vocabulary;
mod grammar;
mod reference;
mod time_zone;
mod tokens;
mod vocabulary;

use std::borrow::Cow;

use calendar::Days;
use east_asian::EastAsian;
use grammar::Grammar;
use reference::{Basis, Found, Reference};
pub use time_zone::TimeZone;

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

const MICROSECONDS_PER_MINUTE: i64 = 60_000_000;

/// Of a text that are read: a question is shorter, and each may become a token of 48 bytes.
const MAX_CHARACTERS: usize = 10_000;

/// About year 12,000 either way, so that no date around it leaves an i64 of microseconds.
const FARTHEST_DAY: i64 = 3_650_000;

/// A half-open range of time in microseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateRange {
    /// First microsecond in the range; midnight.
    pub start: i64,
    /// First microsecond behind it; midnight, after `start`.
    pub end: i64,
    /// How exactly the question named it.
    pub granularity: Granularity,
}

/// The granularity of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Granularity {
    /// One day.
    Day,
    /// Saturday and Sunday.
    Weekend,
    /// Seven days.
    Week,
    /// A calendar month. "half a year", "a year and a half" and "1 month 2 weeks" are exact to their
    ///   finest unit, and numbers may be words up to 999.
    Month,
    /// Three months from January, April, July or October.
    Quarter,
    /// Three months from March, June, September or December: seasons of the north.
    Season,
    /// A calendar year.
    Year,
    /// Ten years.
    Decade,
    /// From one date to another, or a part of a period.
    Span,
}

/// Find the dates that `text` names explicitly, in their order.
///
/// `now` is in µs since 1970 UTC, and so is the time of the newest memory, which `newest` computes;
/// it is called once where a date has no year, and never where all have one.
///
/// Days begin at midnight UTC and weeks on Monday. Rather none than a wrong one: a month or a year
/// by itself counts only behind a word such as "in", may and march only where they are no verbs.
///
/// - A date without a year is the latest one up to today, a month the latest up to the current one,
///   unless a date with a year follows closely: "3 May and 8 June 2023". If the newest memory is more
///   than a week old or after today, its day takes the place of today, so that "on May 6th" is a day
///   of an old import.
/// - 07/05/2023 and 07-05-2023 are month first unless the first number is above 12; 07.05.2023 is day
///   first.
/// - Month names are English, German, French or Spanish, and so are days and lengths of time counted
///   from today, in Italian too: gestern, letzte Woche, vor drei Tagen, il y a trois jours, hace tres días,
///   tre giorni fa. "hier" is yesterday in a French text alone. All other words are English, Chinese, Japanese or Korean: 4月27日, 去年, 上周五, 三天前, 令和5年, 지난주. In these three a month, a year of
///   four digits and a day of the week count by themselves; a day of the week after 上周 and its like
///   is that of this week.
/// - "last week" and its like are calendar weeks, months and years; "the last week" and "the past 3
///   weeks" end today. "three weeks ago" is the seven days around that day, "three months ago" that
///   calendar month.
/// - "last Friday" is before today, "on Friday" may be today, "next Friday" is after today.
/// - "since June" reaches to today. "by", "before" and "after" a date mean the date itself; "two
///   weeks before" one reaches from there to the date, on which it may have been told.
/// - "early", "mid" and "late" are thirds; "winter 2022" begins in December 2022.
/// - What is counted from today is left out if the question also names a day with its year: "last
///   week, as told on 3 May 2023" does not mean the asker's last week.
///
/// Only the first 10,000 characters are read, as many as a query has. Years are 1900 to 2100. A `now`
/// outside the years −8000 to 11,900 counts as the nearest in them.
///
/// # Examples
/// ```
/// use mnemic_core::text::{Granularity, date_ranges};
///
/// let day = 86_400_000_000;
/// let found = date_ranges("What did I paint on May 7th, 2023?", 20_000 * day, &|| None);
/// assert_eq!((found[0].start, found[0].end), (19_484 * day, 19_485 * day));
/// assert_eq!(found[0].granularity, Granularity::Day);
/// assert!(date_ranges("You may march 2.0.1 times in room 2010.", 20_000 * day, &|| None).is_empty());
/// let old = date_ranges("What did I paint on May 7th?", 20_000 * day, &|| Some(19_500 * day));
/// assert_eq!(old[0], found[0]);
/// ```
pub fn date_ranges(text: &str, now: i64, newest: &dyn Fn() -> Option<i64>) -> Vec<DateRange> {
    let newest = || newest().map(day_of);
    let minute = now.rem_euclid(MICROSECONDS_PER_DAY) / MICROSECONDS_PER_MINUTE;
    let reference = Reference::new(day_of(now), minute, &newest);
    let end = text.char_indices().nth(MAX_CHARACTERS).map_or(text.len(), |(end, _)| end);
    let mut dates = dates(&half_width(&text[..end]), &reference);
    if dates.iter().any(is_calendar_day) {
        dates.retain(|date| date.basis != Basis::Today);
    }
    dates.iter().map(range).collect()
}

/// All dates in the order of the text.
fn dates(text: &str, reference: &Reference<'_>) -> Vec<Found> {
    let tokens = tokens::tokens(text);
    let mut dates = Grammar::new(text, &tokens, reference).dates();
    if !text.is_ascii() {
        dates.extend(EastAsian::new(text, reference).dates());
        dates.sort_by_key(|(place, _)| *place);
    }
    dates.into_iter().map(|(_, date)| date).collect()
}

/// The text with ASCII digits and the signs of dates in place of their full-width forms.
fn half_width(text: &str) -> Cow<'_, str> {
    const FIRST: u32 = '！' as u32 - '!' as u32;
    let is_wide = |one: char| matches!(one, '０'..='９' | '－' | '／' | '．');
    let narrow = |one: char| {
        let code = if is_wide(one) { u32::from(one) - FIRST } else { u32::from(one) };
        char::from_u32(code).unwrap_or(one)
    };
    if text.contains(is_wide) { text.chars().map(narrow).collect() } else { text.into() }
}

/// The day number of a time.
fn day_of(time: i64) -> i64 {
    time.div_euclid(MICROSECONDS_PER_DAY).clamp(-FARTHEST_DAY, FARTHEST_DAY)
}

fn is_calendar_day(date: &Found) -> bool {
    date.basis == Basis::Calendar && date.granularity == Granularity::Day
}

fn range(date: &Found) -> DateRange {
    let Days { start, end } = date.days;
    DateRange {
        start: start * MICROSECONDS_PER_DAY,
        end: end * MICROSECONDS_PER_DAY,
        granularity: date.granularity,
    }
}
