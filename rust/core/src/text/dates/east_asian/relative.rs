//! Days and periods counted from today.

use super::super::calendar::{Days, day, week, weekday_until};
use super::super::vocabulary::Unit;
use super::vocabulary::{KOREAN, PERIODS, UNITS};
use super::*;

const AGO: &[&str] = &["以前", "之前", "前", "전"];
const LATER: &[&str] = &["以后", "以後", "之后", "之後", "后", "後", "후", "뒤"];

/// Words between two amounts of one length.
const JOINERS: &[&str] = &["零", "又", "と", "하고", "과", "와", ","];

/// Steps of Chinese periods, and the characters before them that make another word of them: 晚上周围,
/// 日本周边.
const STEPS: [(&str, i64, &str); 7] = [
    ("上上", -2, ""),
    ("下下", 2, ""),
    ("上", -1, "晚早网網身路天地线線桌马馬会會手街床山船车車世心基以"),
    ("这", 0, ""),
    ("這", 0, ""),
    ("本", 0, "日基根书書课課文版资資成标標样樣剧劇"),
    ("下", 1, "天地楼樓手之乡鄉底以一脚腳"),
];

/// Characters behind 周 and 月 that make another word of them: 周围, 月亮.
const NO_PERIOD: &str = "围圍边邊杰傑转轉遭旋亮光球饼餅票台臺经經嫂";

/// Characters behind a numeral that count with it, so that it names no day of the week: 上周三次.
const COUNTED: &str = "次天起样樣些共般定切直个個回遍场場顿頓趟位名度点點种種部家件份条條句段张張";

const WEEKDAYS: &[&str] = &["星期", "礼拜", "禮拜", "周", "週"];

/// Whether a word of these tables begins with a character.
pub(super) fn begins(first: char) -> bool {
    let steps = STEPS.iter().map(|(word, ..)| *word);
    KOREAN.begins(first)
        || steps.chain(WEEKDAYS.iter().copied()).any(|word| word.starts_with(first))
}

impl EastAsian<'_> {
    /// 三天前, 3週間前, 두 달 전, 一年零三个月前, 1년 반 전.
    pub(super) fn counted(&self, at: usize) -> Step<Option<Found>> {
        let (length, next) = self.length(at)?;
        let (sign, end) = self.side(next)?;
        Some((length.map(|length| self.reference.beyond(length.times(sign))), end))
    }

    /// Amounts one behind the other; `None` inside if they make no length.
    fn length(&self, at: usize) -> Step<Option<Length>> {
        let (mut total, mut end) = self.amount(at)?;
        let joined = |end| {
            let at = self.over_spaces(end);
            self.amount(self.over_spaces(self.over(at, JOINERS).unwrap_or(at)))
        };
        while let Some((more, behind)) = joined(end) {
            total = total.zip(more).and_then(|(total, more)| total.plus(more));
            end = behind;
        }
        Some((total, end))
    }

    /// A number of units, with a half behind the number or the unit: 两个半月, 一年半.
    fn amount(&self, at: usize) -> Step<Option<Length>> {
        if let Some((Term::Length(unit, count), next)) = self.term(at) {
            return Some((Some(Length::whole(count, unit)), next));
        }
        let (count, next) = self.count(at)?;
        let at = self.over_spaces(next);
        let half_before = self.over(at, &["个半", "個半"]);
        let at = half_before.unwrap_or(at);
        let of_month = half_before.and_then(|at| self.over(at, &["月"]));
        let (unit, next) = match of_month {
            Some(next) => (Unit::Month, next),
            None => self.longest(at, &UNITS)?,
        };
        let half_behind = self.over(self.over_spaces(next), &["半", "반"]);
        let halves = half_before.into_iter().chain(half_behind).count() as i64;
        Some((Length::new(4 * count + 2 * halves, unit), half_behind.unwrap_or(next)))
    }

    fn count(&self, at: usize) -> Step<i64> {
        if self.is_before(at, "第几幾数數몇千万萬点點") || self.ends_range(at) {
            return None;
        }
        if let Some((number, next)) = self.number(at) {
            return Some((number.counted()?, next));
        }
        if self.before(at).is_some_and(is_hangul) {
            return None;
        }
        let (first, next) = self.longest(at, &KOREAN)?;
        let ones = self.longest(self.over_spaces(next), &KOREAN).filter(|(ones, _)| *ones < 10);
        match ones.filter(|_| first >= 10) {
            Some((ones, next)) => Some((first + ones, next)),
            None => Some((first, next)),
        }
    }

    /// Whether a number stands before the one at a place: 三到五天, 3、4日.
    fn ends_range(&self, at: usize) -> bool {
        let before =
            self.text[..at].trim_end_matches(['到', '至', '~', '～', '〜', '-', '–', '、']);
        let is_number = |last: char| last.is_ascii_digit() || is_numeral(last);
        before.len() < at && before.ends_with(is_number)
    }

    /// −1 for ago, 1 for later.
    fn side(&self, at: usize) -> Step<i64> {
        let at = self.over_spaces(at);
        let of = |sign, words| self.over(at, words).map(|end| (sign, end));
        let (sign, end) = of(-1, AGO).or_else(|| of(1, LATER))?;
        let is_whole = match self.before(end) {
            Some('前' | '后' | '後') => !self.is_at(end, "后後面半期悔"),
            Some(last) if is_hangul(last) => self.ends_hangul(end),
            _ => true,
        };
        is_whole.then_some((sign, end))
    }

    pub(super) fn worded(&self, at: usize) -> Step<Option<Found>> {
        let some = |(date, next)| (Some(date), next);
        if let Some(((unit, step), next)) = self.period(at) {
            return Some(some(self.of_period(unit, step, next)));
        }
        if let Some((weekday, next)) = self.chinese_weekday(at) {
            return Some(some((self.latest_weekday(weekday), next)));
        }
        let (term, next) = self.term(at)?;
        match term {
            Term::Day(shift) => Some((Some(self.reference.relative_day(shift)), next)),
            Term::Weekday(weekday) => {
                let is_every = self.over(next, &["마다", "ごと"]).is_some();
                (!is_every).then(|| some((self.latest_weekday(weekday), next)))
            }
            Term::Step(step) => self.behind_step(step, self.over_spaces(next)).map(some),
            Term::Recent => self.window(self.over_spaces(next)).map(some),
            Term::Void => Some((None, self.over_void(self.over_spaces(next)))),
            Term::Period(..) | Term::Era(_) | Term::Length(..) => None,
        }
    }

    fn latest_weekday(&self, weekday: i64) -> Found {
        near_today(day(weekday_until(self.reference.today, weekday)), Granularity::Day)
    }

    /// A period counted from today: 去年, 上个月, 先週, 지난주.
    pub(super) fn period(&self, at: usize) -> Step<(Unit, i64)> {
        match self.chinese_period(at).or_else(|| self.term(at))? {
            (Term::Period(unit, step), next) => Some(((unit, step), next)),
            _ => None,
        }
    }

    fn chinese_period(&self, at: usize) -> Step<Term> {
        let torn = |before: &str| !before.is_empty() && self.is_before(at, before);
        let (step, next) = STEPS.into_iter().find_map(|(word, step, before)| {
            let next = self.over(at, &[word]).filter(|_| !torn(before))?;
            Some((step, next))
        })?;
        let at_unit = self.over(next, &["个", "個"]).unwrap_or(next);
        let (unit, end) = self.longest(at_unit, &PERIODS)?;
        let is_word = self.is_at(end, NO_PERIOD);
        (!is_word).then_some((Term::Period(unit, step), end))
    }

    /// A week, weekend or quarter, or a day of the week: 上周五, 先週の金曜日.
    fn of_period(&self, unit: Unit, step: i64, next: usize) -> (Found, usize) {
        let weekday = || {
            let in_chinese = self.is_before(next, "周週期拜").then(|| self.weekday_numeral(next));
            in_chinese.flatten().or_else(|| self.weekday(self.over_link(next)))
        };
        match weekday().filter(|_| unit == Unit::Week) {
            Some((weekday, end)) => {
                let monday = week(self.reference.today + 7 * step).start;
                (near_today(day(monday + weekday), Granularity::Day), end)
            }
            None => (self.reference.calendar_unit(unit, step), next),
        }
    }

    fn weekday(&self, at: usize) -> Step<i64> {
        match self.term(at) {
            Some((Term::Weekday(weekday), next)) => Some((weekday, next)),
            _ => self.chinese_weekday(at),
        }
    }

    /// 星期三, 礼拜三, 周三; not 三周三次, 每周三, 两个星期三.
    fn chinese_weekday(&self, at: usize) -> Step<i64> {
        let next = self.over(at, WEEKDAYS)?;
        let before = self.before(at).unwrap_or(' ');
        let is_counted =
            is_numeral(before) || before.is_ascii_digit() || "每个個几幾数數".contains(before);
        let is_short = self.is_before(next, "周週");
        let no_day = is_counted || is_short && self.is_at(next, "天");
        self.weekday_numeral(next).filter(|_| !no_day)
    }

    fn weekday_numeral(&self, at: usize) -> Step<i64> {
        let numeral = self.char(at)?;
        let weekday = "一二三四五六日".chars().position(|one| one == numeral);
        let weekday = weekday.or_else(|| (numeral == '天').then_some(6))?;
        let next = at + numeral.len_utf8();
        let is_counted = self.is_at(next, COUNTED) || self.char(next).is_some_and(is_numeral);
        let is_weather = numeral == '天' && self.is_at(next, "气氣");
        (!is_counted && !is_weather).then_some((weekday as i64, next))
    }

    /// 지난 금요일, 지난 5월, 지난 3일.
    fn behind_step(&self, step: i64, at: usize) -> Step<Found> {
        if let Some((Term::Weekday(weekday), next)) = self.term(at) {
            return Some((self.reference.weekday_at(weekday, step), next));
        }
        let month = self.calendar(at).filter(|(partial, _)| !partial.is_relative);
        match month.map(|(partial, next)| (partial.named, next)) {
            Some((Named { year: None, month: Some(month @ 1..=12), day: None }, next)) => {
                Some((self.reference.month_at(month, step), next))
            }
            _ => self.window(at).filter(|_| step == -1),
        }
    }

    /// So many units up to and including today: 最近三天, 過去3日間.
    fn window(&self, at: usize) -> Step<Found> {
        let (length, next) = self.length(at)?;
        let start = self.reference.moved(length?.times(-1))?;
        if self.side(next).is_some() {
            return None;
        }
        let days = Days { start, end: self.reference.today + 1 };
        Some((
            near_today(days, Granularity::Span),
            self.over(next, &["间", "間", "간"]).unwrap_or(next),
        ))
    }

    /// The place behind a date that is none: 每年5月, 매주 금요일.
    fn over_void(&self, at: usize) -> usize {
        let weekday = self.weekday_numeral(at).or_else(|| self.weekday(at));
        let end = self.calendar(at).map(|(_, end)| end).or(weekday.map(|(_, end)| end));
        end.unwrap_or(at)
    }
}
