//! Years, months and days, in this order, and parts of years and months.

use super::super::calendar::{civil, months};
use super::super::grammar::{part, week_of};
use super::super::tokens::{full_year, is_year};
use super::super::vocabulary::Unit;
use super::*;

const YEAR: &[&str] = &["年", "년"];
const MONTH: &[&str] = &["月份", "月", "월"];
const DAY: &[&str] = &["日", "号", "號", "일"];
pub(super) const DASHES: &[&str] = &["-", "~", "～", "〜", "–", "—"];

/// Two ends of a month or a year, its middle, and its other end.
const BEGIN: &[&str] = &["初", "上旬", "月初", "年初", "初め", "초", "초순", "상순", "연초"];
const MIDDLE: &[&str] = &["中旬", "年中", "중순"];
const END: &[&str] = &["底", "末", "下旬", "月底", "月末", "年底", "年末", "말", "하순", "연말"];
const FIRST_HALF: &[&str] = &["上半年", "上半期", "前半", "상반기"];
const SECOND_HALF: &[&str] = &["下半年", "下半期", "後半", "하반기"];
const QUARTER: &[&str] = &["季度", "四半期", "분기"];
const WEEK: &[&str] = &["周", "週", "个星期", "個星期", "주"];

/// Seasons by their first month.
const SEASONS: [(i64, &[&str]); 4] = [
    (3, &["春天", "春季", "春", "봄"]),
    (6, &["夏天", "夏季", "夏", "여름"]),
    (9, &["秋天", "秋季", "秋", "가을"]),
    (12, &["冬天", "冬季", "冬", "겨울"]),
];

/// Parts of a date that no calendar has, so that it is passed over as a whole.
const NO_DATE: Named = Named { year: None, month: Some(0), day: None };

/// A year, and how it was named.
struct Year {
    value: i64,
    is_relative: bool,
    /// Whether a month must follow: 23年5月, but 23年 is a length of time.
    is_short: bool,
}

impl EastAsian<'_> {
    /// A year, a month, or a day with its month.
    pub(super) fn calendar(&self, at: usize) -> Step<Partial> {
        if self.is_before(at, "第几幾数數몇") {
            return None;
        }
        if let Some((year, next)) = self.year(at) {
            return self.behind_year(&year, next);
        }
        if let Some(((Unit::Month, step), next)) = self.period(at) {
            return Some(self.behind_month_of_today(step, next));
        }
        if self.follows_year(at) {
            return None;
        }
        let (named, next) = self.month_and_day(at)?;
        Some((Partial { named, is_relative: false }, next))
    }

    fn behind_year(&self, year: &Year, next: usize) -> Step<Partial> {
        let Year { value: year, is_relative, is_short } = *year;
        if let Some((named, end)) = self.month_and_day(self.over_link(next)) {
            let named = Named { year: Some(year), ..named };
            let named = if is_year(year) || is_relative { named } else { NO_DATE };
            return Some((Partial { named, is_relative }, end));
        }
        let is_length = self.is_at(next, "间間来來간")
            || self.over(next, &["的历史", "的歷史", "の歴史"]).is_some();
        let named = Named { year: Some(year), ..Named::default() };
        let is_named = is_relative || is_year(year) && !is_short && !is_length;
        is_named.then_some((Partial { named, is_relative }, next))
    }

    /// 上个月5号, 先月の5日.
    fn behind_month_of_today(&self, step: i64, next: usize) -> (Partial, usize) {
        let today = civil(self.reference.today);
        let months = today.year * 12 + today.month - 1 + step;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let day = self.day(self.over_link(next));
        let end = day.map_or(next, |(_, end)| end);
        let day = day.map(|(day, _)| day);
        let named = Named { year: Some(year), month: Some(month), day };
        (Partial { named, is_relative: true }, end)
    }

    fn year(&self, at: usize) -> Step<Year> {
        let written = |value, is_short| Year { value, is_relative: false, is_short };
        if let Some(((Unit::Year, step), next)) = self.period(at) {
            let value = civil(self.reference.today).year + step;
            return Some((Year { value, is_relative: true, is_short: false }, next));
        }
        if let Some((Term::Era(before), next)) = self.term(at) {
            let (number, end) = self.year_of_era(self.over_spaces(next))?;
            return Some((written(before + number, false), self.behind_unit(end, YEAR)?));
        }
        let (number, end) = self.number(at)?;
        let next = self.behind_unit(end, YEAR)?;
        match number.form {
            Form::Digits(4) | Form::Sequence(4) => Some((written(number.value, false), next)),
            Form::Digits(2) | Form::Sequence(2) => {
                Some((written(full_year(number.value), true), next))
            }
            _ => Some((written(number.value, true), next)),
        }
    }

    /// 元 is the first.
    fn year_of_era(&self, at: usize) -> Step<i64> {
        match self.over(at, &["元"]) {
            Some(end) => Some((1, end)),
            None => self.number(at).and_then(|(number, end)| Some((number.counted()?, end))),
        }
    }

    /// Whether a year stands before a place, which then was no year of a calendar: 12345年5月.
    fn follows_year(&self, at: usize) -> bool {
        let before = &self.text[..at];
        before.strip_suffix(' ').unwrap_or(before).ends_with(['年', '년'])
    }

    fn month_and_day(&self, at: usize) -> Step<Named> {
        let (month, next) = self.month(at)?;
        let named = Named { month: Some(month), ..Named::default() };
        match self.day(self.over_link(next)) {
            Some((day, end)) => Some((Named { day: Some(day), ..named }, end)),
            None => Some((named, next)),
        }
    }

    fn month(&self, at: usize) -> Step<i64> {
        let (number, end) = self.number(at)?;
        let next = self.behind_unit(end, MONTH)?;
        let is_name = number.form == Form::Numerals && self.is_at(next, "天");
        let is_issue = self.is_at(next, "号號호");
        (!is_name && !is_issue).then_some((number.counted()?, next))
    }

    pub(super) fn day(&self, at: usize) -> Step<i64> {
        let (number, end) = self.number(at)?;
        let next = self.behind_unit(end, DAY)?;
        (!self.is_at(next, "间間간")).then_some((number.counted()?, next))
    }

    /// The place behind the unit of a number, or behind the number itself if it shares the unit with
    /// the one behind a dash: 3-9日.
    fn behind_unit(&self, end: usize, units: &[&str]) -> Option<usize> {
        if let Some(next) = self.over(self.over_spaces(end), units) {
            return Some(next);
        }
        let (_, other) = self.number(self.over(end, DASHES)?)?;
        self.over(other, units).map(|_| end)
    }

    // Parts of periods --------------------------------------------------------------------------

    /// 5月上旬, 2023年底, 去年夏天.
    pub(super) fn part(&self, partial: Partial, next: usize) -> Step<Option<Found>> {
        if partial.named.day.is_some() {
            return None;
        }
        let whole = self.resolve(partial)?;
        let at = self.over_link(next);
        if let Some((third, end)) = self.third(at) {
            return Some((part(whole, third, 3), end));
        }
        let (date, end) = match partial.named.month {
            None => self.part_of_year(whole, at)?,
            Some(_) => self.week_of_month(whole, at)?,
        };
        Some((Some(date), end))
    }

    fn third(&self, at: usize) -> Step<i64> {
        let of = |third, words| self.over(at, words).map(|end| (third, end));
        let (third, end) = of(0, BEGIN).or_else(|| of(1, MIDDLE)).or_else(|| of(2, END))?;
        // 初三 is a day of the lunar calendar.
        let is_lunar = self.is_at(at, "初") && self.char(end).is_some_and(is_numeral);
        let is_word = self.before(end).is_some_and(is_hangul) && !self.ends_hangul(end);
        (!is_lunar && !is_word).then_some((third, end))
    }

    fn part_of_year(&self, whole: Found, at: usize) -> Step<Found> {
        let half = |half, words| Some((part(whole, half, 2)?, self.over(at, words)?));
        half(0, FIRST_HALF)
            .or_else(|| half(1, SECOND_HALF))
            .or_else(|| self.quarter(whole, at))
            .or_else(|| self.season(whole, at))
    }

    /// 第三季度, 3분기.
    fn quarter(&self, whole: Found, at: usize) -> Step<Found> {
        let (number, end) = self.number(self.over(at, &["第"]).unwrap_or(at))?;
        let end = self.over(end, QUARTER)?;
        let number = number.counted().filter(|number| (1..=4).contains(number))?;
        let days = months(civil(whole.days.start).year, 3 * number - 2, 3);
        Some((Found { days, granularity: Granularity::Quarter, ..whole }, end))
    }

    fn season(&self, whole: Found, at: usize) -> Step<Found> {
        let ends = SEASONS.map(|(month, words)| Some((month, self.over(at, words)?)));
        let (month, end) = ends.into_iter().flatten().next()?;
        let is_feast = self.is_at(end, "节節晚分");
        let days = months(civil(whole.days.start).year, month, 3);
        (!is_feast).then_some((Found { days, granularity: Granularity::Season, ..whole }, end))
    }

    /// 5月第一周, 5月の最後の週.
    fn week_of_month(&self, whole: Found, at: usize) -> Step<Found> {
        if let Some(end) =
            self.over(at, &["最后一周", "最後一週", "最后一个星期", "最後の週", "마지막 주"])
        {
            return Some((week_of(whole, 0), end));
        }
        let (number, end) = self.number(self.over(at, &["第"])?)?;
        let number = number.counted().filter(|number| (1..=4).contains(number))?;
        Some((week_of(whole, number), self.over(end, WEEK)?))
    }
}
