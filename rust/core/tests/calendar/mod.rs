//! Days by counting, and the day ranges that a question names on one fixed day.

use mnemic_core::text::{DateRange, date_ranges};

pub(crate) const DAY: i64 = 86_400_000_000;

/// Days since 1970 by counting, with no formula in common with the code under test.
pub(crate) fn day(year: i64, month: usize, date: i64) -> i64 {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before: i64 = (1970..year).map(|year| 365 + i64::from(is_leap(year))).sum();
    let after: i64 = (year..1970).map(|year| 365 + i64::from(is_leap(year))).sum();
    let february = 28 + i64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    before - after + lengths[..month - 1].iter().sum::<i64>() + date - 1
}

/// Read "2023-05-07" as a day number.
pub(crate) fn iso(text: &str) -> i64 {
    let number = |from, until| text[from..until].parse().expect("a date as 2023-05-07");
    let month = (1..13).find(|month| text[5..7] == format!("{month:02}")).expect("a month");
    day(number(0, 4), month, number(8, 10))
}

/// Wednesday, 18 October 2023, a little before noon.
pub(crate) fn now() -> i64 {
    day(2023, 10, 18) * DAY + 42_000_000_000
}

pub(crate) fn days(text: &str, now: i64) -> Vec<(i64, i64)> {
    let to_days = |range: &DateRange| {
        assert_eq!((range.start % DAY, range.end % DAY), (0, 0));
        (range.start / DAY, range.end / DAY)
    };
    date_ranges(text, now, &|| None).iter().map(to_days).collect()
}
