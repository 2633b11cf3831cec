//! Proleptic Gregorian calendar on day numbers since 1970-01-01.
//!
//! Both conversions are Howard Hinnant's `days_from_civil` and `civil_from_days` (chrono-compatible
//! low-level date algorithms), which count years from March so that leap days come last.

/// Days `start..end`, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Days {
    pub(super) start: i64,
    pub(super) end: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

const DAYS_IN_ERA: i64 = 146_097;
const YEARS_IN_ERA: i64 = 400;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// The number of a day; `month` may lie outside 1 to 12 and then counts into other years.
pub(super) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let months = year * 12 + month - 3;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let (era, year_of_era) = (year.div_euclid(YEARS_IN_ERA), year.rem_euclid(YEARS_IN_ERA));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_IN_ERA + day_of_era - EPOCH
}

pub(super) fn civil(day_number: i64) -> Civil {
    let shifted = day_number + EPOCH;
    let (era, day_of_era) = (shifted.div_euclid(DAYS_IN_ERA), shifted.rem_euclid(DAYS_IN_ERA));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let january = i64::from(month >= 10);
    Civil { year: era * YEARS_IN_ERA + year_of_era + january, month: (month + 2) % 12 + 1, day }
}

pub(super) fn day(number: i64) -> Days {
    Days { start: number, end: number + 1 }
}

/// `count` months from the first of `month`, which may lie outside 1 to 12.
pub(super) fn months(year: i64, month: i64, count: i64) -> Days {
    Days { start: day_number(year, month, 1), end: day_number(year, month + count, 1) }
}

pub(super) fn years(year: i64, count: i64) -> Days {
    months(year, 1, 12 * count)
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    let days = months(year, month, 1);
    days.end - days.start
}

/// 0 on Monday, 6 on Sunday.
pub(super) fn weekday(day_number: i64) -> i64 {
    (day_number + 3).rem_euclid(7)
}

/// The week from Monday to Sunday that holds a day.
pub(super) fn week(day_number: i64) -> Days {
    let start = day_number - weekday(day_number);
    Days { start, end: start + 7 }
}

/// The latest `wanted` weekday up to and including `day_number`.
pub(super) fn weekday_until(day_number: i64, wanted: i64) -> i64 {
    day_number - (weekday(day_number) - wanted).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_have_their_numbers_and_weekdays() {
        for (year, month, day, number, weekday_number) in [
            (1970, 1, 1, 0, 3),
            (1969, 12, 31, -1, 2),
            (2000, 2, 29, 11_016, 1),
            (2000, 3, 1, 11_017, 2),
            (2023, 5, 7, 19_484, 6),
            (2100, 3, 1, 47_541, 0),
        ] {
            assert_eq!(day_number(year, month, day), number);
            assert_eq!(civil(number), Civil { year, month, day });
            assert_eq!(weekday(number), weekday_number);
        }
    }

    #[test]
    fn day_numbers_and_dates_are_inverse_over_two_eras() {
        let mut previous = civil(-1 - 2 * DAYS_IN_ERA);
        for number in -2 * DAYS_IN_ERA..2 * DAYS_IN_ERA {
            let date = civil(number);
            assert_eq!(day_number(date.year, date.month, date.day), number);
            let follows = date.day == previous.day + 1
                || date.day == 1 && previous.day == days_in_month(previous.year, previous.month);
            assert!(follows, "{previous:?} then {date:?}");
            previous = date;
        }
    }

    #[test]
    fn leap_years_follow_the_gregorian_rule() {
        let lengths = [1900, 2000, 2023, 2024, 2100].map(|year| days_in_month(year, 2));
        assert_eq!(lengths, [28, 29, 28, 29, 28]);
    }

    #[test]
    fn months_outside_the_year_count_into_other_years() {
        assert_eq!(day_number(2023, 0, 1), day_number(2022, 12, 1));
        assert_eq!(day_number(2023, 14, 9), day_number(2024, 2, 9));
    }
}
