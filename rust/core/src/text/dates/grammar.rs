//! How words and numbers make dates. One method for each way of naming a date.

use super::Granularity;
use super::calendar::{
    Days, civil, day, day_number, days_in_month, months, week, weekday_until, years,
};
use super::tokens::{Kind, Suffix, Token, full_year, is_year};
use super::vocabulary::{Reading, Unit, Word};

/// A year without its month is looked for in this many tokens behind it: "3 May and 8 June 2023".
const LOOK_AHEAD: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) days: Days,
    pub(super) granularity: Granularity,
    pub(super) basis: Basis,
}

/// What a date is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// Named with its year.
    Calendar,
    /// Named without its year, which today gives.
    Yearless,
    /// Counted from today: yesterday, last week.
    Today,
}

/// A date as it was named; what is missing is `None`.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
}

pub(super) struct Grammar<'tokens> {
    tokens: &'tokens [Token],
    today: i64,
}

type Step<T> = Option<(T, usize)>;

fn found(days: Days, granularity: Granularity, basis: Basis) -> Found {
    Found { days, granularity, basis }
}

impl<'tokens> Grammar<'tokens> {
    pub(super) fn new(tokens: &'tokens [Token], today: i64) -> Self {
        Self { tokens, today }
    }

    /// All dates in order; those that overlap the one before are part of it.
    pub(super) fn dates(&self) -> Vec<Found> {
        let mut dates = Vec::new();
        let (mut place, mut listed) = (0, None);
        while place < self.tokens.len() {
            if let Some((date, next)) = self.date(place, listed) {
                dates.extend(date);
                place = next.max(place + 1);
                listed = date.map(|date| date.granularity);
                continue;
            }
            let joins = matches!(self.kind(place), Some(Kind::Known(Word::And) | Kind::Mark(',')));
            listed = listed.filter(|_| joins);
            place += 1;
        }
        dates
    }

    /// The date that begins at `place`; one that no calendar has is passed over as a whole.
    fn date(&self, place: usize, listed: Option<Granularity>) -> Step<Option<Found>> {
        let some = |(date, next)| (Some(date), next);
        match self.kind(place)? {
            Kind::Number { suffix: Suffix::Plural, .. } => self.decade(place).map(some),
            Kind::Number { .. } => self
                .counted(place)
                .map(some)
                .or_else(|| self.calendar(place))
                .or_else(|| self.lone_year(place, listed).map(some)),
            Kind::Digits(..) | Kind::Pair(..) => self.calendar(place),
            Kind::Known(word) => self.worded(place, word, listed),
            Kind::Other | Kind::Mark(_) | Kind::Junk => None,
        }
    }

    fn worded(&self, place: usize, word: Word, listed: Option<Granularity>) -> Step<Option<Found>> {
        let some = |(date, next)| (Some(date), next);
        match word {
            Word::Month(..) => {
                self.calendar(place).or_else(|| self.lone_month(place, listed).map(some))
            }
            Word::Weekday(..) => self.day_of_week(place),
            Word::Season(..) => self.season(place).map(some),
            Word::Quarter(number) => self.quarter(place, number).map(some),
            Word::Unit(..) | Word::Count(_) => {
                self.counted(place).or_else(|| self.anchored(place)).map(some)
            }
            Word::Ordinal(_) => self.part_of_period(place).map(some),
            Word::Relative(shift) => Some((Some(self.relative_day(shift)), place + 1)),
            Word::Third(..) => self.third(place).map(some),
            Word::Last | Word::This | Word::Next | Word::Past => {
                self.part_of_period(place).or_else(|| self.neighbour(place)).map(some)
            }
            Word::Between | Word::From => self.between(place),
            Word::Since => self.since(place).map(some),
            _ => None,
        }
    }

    fn kind(&self, place: usize) -> Option<Kind> {
        self.tokens.get(place).map(|token| token.kind)
    }

    fn word(&self, place: usize) -> Option<Word> {
        match self.kind(place)? {
            Kind::Known(word) => Some(word),
            _ => None,
        }
    }

    fn is_word(&self, place: usize, word: Word) -> bool {
        self.word(place) == Some(word)
    }

    fn before(&self, place: usize) -> Option<Word> {
        self.word(place.checked_sub(1)?)
    }

    /// `place`, or the one behind it if a token that `matches` stands there.
    fn over(&self, place: usize, matches: impl Fn(Kind) -> bool) -> usize {
        place + usize::from(self.kind(place).is_some_and(matches))
    }

    fn over_word(&self, place: usize, word: Word) -> usize {
        self.over(place, |kind| kind == Kind::Known(word))
    }

    fn over_mark(&self, place: usize, mark: char) -> usize {
        self.over(place, |kind| kind == Kind::Mark(mark))
    }

    /// Whether a token is a thing that the number or verb before it goes with: "2000 people",
    /// "may help".
    fn is_content(&self, place: usize) -> bool {
        let Some(token) = self.tokens.get(place) else {
            return false;
        };
        match token.kind {
            Kind::Other => !token.is_capital,
            Kind::Known(
                Word::Unit(..) | Word::Count(_) | Word::Half | Word::Quantity | Word::Numbered,
            )
            | Kind::Number { .. }
            | Kind::Junk => true,
            Kind::Mark('-') => !token.is_spaced,
            _ => false,
        }
    }

    /// Whether the capital of a word shows that it is a name; the first word has one anyway.
    fn is_surely_capital(&self, place: usize) -> bool {
        let begins = place == 0
            || matches!(self.kind(place - 1), Some(Kind::Mark('.' | '!' | '?' | '"' | '“')));
        self.tokens[place].is_capital && !begins
    }

    // Dates of the calendar ---------------------------------------------------------------------

    /// A date or a span of dates; `Some(None)` if it is written as a date but is none.
    fn calendar(&self, place: usize) -> Step<Option<Found>> {
        if let Some(span) = self.span(place, false) {
            return Some(span);
        }
        let (named, next) = self.named(place)?;
        Some((self.resolve(self.with_year_behind(named, next)), next))
    }

    /// A date with a month in it: in digits, 7 May 2023, May 7, May 2023.
    fn named(&self, place: usize) -> Step<Named> {
        match self.kind(place)? {
            Kind::Digits(year, month, day) => {
                if self.before(place) == Some(Word::Numbered) {
                    return None;
                }
                let day = (day > 0).then_some(day);
                Some((Named { year: Some(year), month: Some(month), day }, place + 1))
            }
            Kind::Number { .. } => self.day_first(place),
            Kind::Known(Word::Month(month, reading)) => self.month_first(place, month, reading),
            _ => None,
        }
    }

    fn day_first(&self, place: usize) -> Step<Named> {
        let (day, is_ordinal) = self.day(place)?;
        let after_day = self
            .over(place + 1, |kind| matches!(kind, Kind::Mark('.' | '-') | Kind::Known(Word::Of)));
        let Word::Month(month, reading) = self.word(after_day)? else {
            return None;
        };
        let (year, next) = self.year_behind_month(after_day);
        let is_sure = is_ordinal || year.is_some() || self.is_month(after_day, reading, next);
        let is_planet = reading == Reading::Mars && self.tokens[after_day].is_capital;
        (is_sure && !is_planet)
            .then_some((Named { year, month: Some(month), day: Some(day) }, next))
    }

    fn month_first(&self, place: usize, month: i64, reading: Reading) -> Step<Named> {
        let is_planet = self.tokens[place].is_capital || self.before(place) != Some(Word::In);
        if reading == Reading::Mars && is_planet {
            return None;
        }
        let after_month = self.over_mark(place + 1, '.');
        let at_day = self.over_word(after_month, Word::The);
        if let Some((day, is_ordinal)) = self.day(at_day) {
            let (year, next) = self.year_behind_day(at_day + 1);
            let is_sure = is_ordinal || year.is_some() || self.is_month(place, reading, next);
            let is_followed = matches!(self.kind(next), Some(Kind::Mark('%' | '°')));
            let named = Named { year, month: Some(month), day: Some(day) };
            return (is_sure && !is_followed).then_some((named, next));
        }
        let (year, next) = self.year_behind_month(place);
        year.map(|year| (Named { year: Some(year), month: Some(month), day: None }, next))
    }

    /// Whether a word that can be a verb or a name is a month where it stands beside a day.
    fn is_month(&self, place: usize, reading: Reading, next: usize) -> bool {
        match reading {
            Reading::Common => self.is_surely_capital(place) || !self.is_content(next),
            Reading::Only | Reading::Name | Reading::Foreign | Reading::Mars => true,
        }
    }

    fn day(&self, place: usize) -> Option<(i64, bool)> {
        match self.kind(place)? {
            Kind::Number { value: value @ 1..=31, digits: 1..=2, suffix } => {
                (suffix != Suffix::Plural).then_some((value, suffix == Suffix::Ordinal))
            }
            _ => None,
        }
    }

    fn year_behind_month(&self, month: usize) -> (Option<i64>, usize) {
        let after_month = self.over_mark(month + 1, '.');
        let (year, next) = self.year_behind_day(after_month);
        if year.is_some() { (year, next) } else { (None, after_month) }
    }

    fn year_behind_day(&self, place: usize) -> (Option<i64>, usize) {
        let at_year =
            self.over(place, |kind| matches!(kind, Kind::Mark(',' | '-') | Kind::Known(Word::Of)));
        match self.kind(at_year) {
            Some(Kind::Number { value, digits: 4, suffix: Suffix::None }) if is_year(value) => {
                (Some(value), at_year + 1)
            }
            Some(Kind::Mark('\'')) => self.short_year(at_year, place),
            _ => (None, place),
        }
    }

    /// As in May '23.
    fn short_year(&self, apostrophe: usize, otherwise: usize) -> (Option<i64>, usize) {
        match self.tokens.get(apostrophe + 1) {
            Some(Token {
                kind: Kind::Number { value, digits: 2, suffix: Suffix::None },
                is_spaced: false,
                ..
            }) => (Some(full_year(*value)), apostrophe + 2),
            _ => (None, otherwise),
        }
    }

    /// Take the year from a month that follows closely.
    fn with_year_behind(&self, named: Named, place: usize) -> Named {
        if named.year.is_some() {
            return named;
        }
        let year = |place| self.named(place).and_then(|(other, _)| other.year);
        Named { year: (place..place + LOOK_AHEAD).find_map(year), ..named }
    }

    fn resolve(&self, named: Named) -> Option<Found> {
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

    /// The year whose `month` is the latest not after the current one.
    fn latest_year_of_month(&self, month: i64) -> i64 {
        let now = civil(self.today);
        now.year - i64::from(month > now.month)
    }

    /// The year of the latest such day up to today; 29 February may be eight years back.
    fn latest_year_of_day(&self, month: i64, date: i64) -> Option<i64> {
        let this_year = civil(self.today).year;
        (0..9).map(|back| this_year - back).find(|year| {
            date <= days_in_month(*year, month) && day_number(*year, month, date) <= self.today
        })
    }

    // Spans ------------------------------------------------------------------------------------

    /// "between" or "from" and what they begin; a single date behind "from" counts by itself.
    fn between(&self, place: usize) -> Step<Option<Found>> {
        self.span(place + 1, true)
    }

    /// "3-9 May", "May 3 to 9", "May to July 2023"; a bare month or year only if `is_announced`.
    fn span(&self, place: usize, is_announced: bool) -> Step<Option<Found>> {
        let begin = self.over_word(place, Word::The);
        if let Some(Kind::Pair(first, last)) = self.kind(begin) {
            return self.pair(begin, first, last, is_announced);
        }
        let (first, next) = self.end_of_span(begin)?;
        if let Some(Kind::Pair(from, to)) = self.kind(begin + 1).filter(|_| first.day.is_none()) {
            return self.pair_behind_month(begin, from, to);
        }
        let joined = self.over(next, |kind| match kind {
            Kind::Known(Word::Until) | Kind::Mark('-') => true,
            Kind::Known(Word::And) => is_announced,
            _ => false,
        });
        if joined == next {
            return None;
        }
        let (last, end) = self.end_of_span(self.over_word(joined, Word::The))?;
        let has_loose_end = last.day.or(last.year).is_none() && self.is_content(end);
        if has_loose_end || !self.is_span(begin, joined, (first, last), is_announced) {
            return None;
        }
        Some((self.resolve_span(first, last), end))
    }

    /// Whether two ends go together: both years, or a month with what is said of the other.
    fn is_span(&self, begin: usize, end: usize, ends: (Named, Named), is_announced: bool) -> bool {
        let (first, last) = ends;
        let is_year = |named: Named| named.month.or(named.day).is_none();
        if is_year(first) || is_year(last) {
            return is_announced && is_year(first) && is_year(last);
        }
        let is_name = |place| matches!(self.word(place), Some(Word::Month(_, Reading::Name)));
        let is_exact = first.day.or(last.day).or(first.year).or(last.year).is_some();
        let has_month = first.month.or(last.month).is_some();
        has_month && (is_exact || is_announced && !(is_name(begin) && is_name(end)))
    }

    /// One end of a span, which may be a day, a month or a year alone.
    fn end_of_span(&self, place: usize) -> Step<Named> {
        if let Some(named) = self.named(place) {
            return Some(named);
        }
        match self.kind(place)? {
            Kind::Known(Word::Month(month, reading)) if reading != Reading::Mars => {
                let next = self.over_mark(place + 1, '.');
                Some((Named { month: Some(month), ..Named::default() }, next))
            }
            Kind::Number { value, digits: 4, suffix: Suffix::None } if is_year(value) => {
                let is_counted = self.is_content(place + 1) && !self.is_dash(place + 1);
                (!is_counted)
                    .then_some((Named { year: Some(value), ..Named::default() }, place + 1))
            }
            _ => {
                let (day, _) = self.day(place)?;
                Some((Named { day: Some(day), ..Named::default() }, place + 1))
            }
        }
    }

    fn is_dash(&self, place: usize) -> bool {
        self.kind(place) == Some(Kind::Mark('-'))
    }

    /// Two numbers joined by a dash: days of the month that follows, or announced years.
    fn pair(&self, place: usize, first: i64, last: i64, is_announced: bool) -> Step<Option<Found>> {
        if is_year(first) && is_year(last) {
            let is_span = is_announced || self.announces_year(place);
            let year = |year| Named { year: Some(year), ..Named::default() };
            let span = || (self.resolve_span(year(first), year(last)), place + 1);
            return (is_span && !self.is_content(place + 1)).then(span);
        }
        let after =
            self.over(place + 1, |kind| matches!(kind, Kind::Mark('.') | Kind::Known(Word::Of)));
        let Word::Month(month, _) = self.word(after)? else {
            return None;
        };
        let (year, next) = self.year_behind_month(after);
        Some((self.resolve_days(year, month, first, last), next))
    }

    fn pair_behind_month(&self, place: usize, first: i64, last: i64) -> Step<Option<Found>> {
        let Word::Month(month, _) = self.word(place)? else {
            return None;
        };
        let (year, next) = self.year_behind_day(place + 2);
        Some((self.resolve_days(year, month, first, last), next))
    }

    fn resolve_days(&self, year: Option<i64>, month: i64, first: i64, last: i64) -> Option<Found> {
        let named = |day| Named { year, month: Some(month), day: Some(day) };
        self.resolve_span(named(first), named(last))
    }

    /// Each end takes from the other what it does not name itself.
    fn resolve_span(&self, first: Named, last: Named) -> Option<Found> {
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

    /// From a date until today.
    fn since(&self, place: usize) -> Step<Found> {
        let begin = self.over_word(place + 1, Word::The);
        if matches!(self.word(begin), Some(Word::Since | Word::Between | Word::From)) {
            return None;
        }
        let (date, next) = self.date(begin, None)?;
        let date = date?;
        let end = date.days.end.max(self.today + 1);
        if date.days.start > self.today {
            return Some((date, next));
        }
        let days = Days { start: date.days.start, end };
        Some((found(days, Granularity::Span, date.basis), next))
    }

    // Months, years, seasons by themselves -------------------------------------------------------

    /// A month without day and year, if the word before it is one that stands before months.
    fn lone_month(&self, place: usize, listed: Option<Granularity>) -> Step<Found> {
        let Some(Word::Month(month, reading)) = self.word(place) else {
            return None;
        };
        let is_listed = listed == Some(Granularity::Month) && reading != Reading::Mars;
        let is_month = is_listed || self.announces_month(place, reading);
        let is_possessive = self.kind(place + 1) == Some(Kind::Mark('\''));
        if !is_month || is_possessive || !self.is_alone(place, reading) {
            return None;
        }
        let named = Named { month: Some(month), ..Named::default() };
        Some((self.resolve(self.with_year_behind(named, place + 1))?, place + 1))
    }

    fn announces_month(&self, place: usize, reading: Reading) -> bool {
        let is_capital = self.tokens[place].is_capital;
        match (self.before(place), reading) {
            (Some(Word::In), Reading::Mars) => !is_capital,
            (Some(Word::In | Word::During | Word::Since), _)
            | (Some(Word::By | Word::Before | Word::After | Word::Until), Reading::Only) => true,
            (Some(Word::Of), Reading::Only | Reading::Name | Reading::Common) => is_capital,
            _ => false,
        }
    }

    /// Whether no word follows that would make a verb or a name of the month.
    fn is_alone(&self, place: usize, reading: Reading) -> bool {
        let next = self.over_mark(place + 1, '.');
        match reading {
            Reading::Common if self.is_surely_capital(place) => true,
            Reading::Common | Reading::Mars => !self.is_content(next),
            Reading::Foreign => !self.is_name(next),
            Reading::Only | Reading::Name => true,
        }
    }

    fn is_name(&self, place: usize) -> bool {
        self.tokens.get(place).is_some_and(|token| token.kind == Kind::Other && token.is_capital)
    }

    /// A year, if the word before it is one that stands before years, or it is all there is.
    fn lone_year(&self, place: usize, listed: Option<Granularity>) -> Step<Found> {
        let Some(Kind::Number { value, digits: 4, suffix: Suffix::None }) = self.kind(place) else {
            return None;
        };
        let is_all =
            place == 0 && self.tokens[1..].iter().all(|token| matches!(token.kind, Kind::Mark(_)));
        let is_listed = listed == Some(Granularity::Year);
        let is_dated = is_listed || is_all || self.announces_year(place);
        let is_counted = self.is_content(place + 1);
        (is_dated && !is_counted && is_year(value))
            .then_some((found(years(value, 1), Granularity::Year, Basis::Calendar), place + 1))
    }

    fn announces_year(&self, place: usize) -> bool {
        let Some(Kind::Number { value, .. } | Kind::Pair(value, _)) = self.kind(place) else {
            return false;
        };
        // Round numbers are more often amounts: "fell by 2000".
        let is_round = value % 100 == 0;
        match self.before(place) {
            Some(Word::In | Word::During | Word::Since | Word::Unit(Unit::Year, false)) => true,
            Some(Word::Of) => {
                !is_round && place > 1 && self.before(place - 1) != Some(Word::Quantity)
            }
            Some(Word::By | Word::Before | Word::After | Word::Until | Word::From) => !is_round,
            _ => false,
        }
    }

    /// "the 1990s", "the '90s".
    fn decade(&self, place: usize) -> Step<Found> {
        let Some(Kind::Number { value, digits, suffix: Suffix::Plural }) = self.kind(place) else {
            return None;
        };
        let before =
            place - usize::from(place > 0 && self.kind(place - 1) == Some(Kind::Mark('\'')));
        let year = match digits {
            4 if is_year(value) => value,
            2 if value >= 50 && self.before(before) == Some(Word::The) => 1900 + value,
            _ => return None,
        };
        let decade = found(years(year, 10), Granularity::Decade, Basis::Calendar);
        (year % 10 == 0).then_some((decade, place + 1))
    }

    /// A season with its year.
    fn season(&self, place: usize) -> Step<Found> {
        let Some(Word::Season(month, _)) = self.word(place) else {
            return None;
        };
        let (year, next) = self.year_behind_day(place + 1);
        let days = months(year?, month, 3);
        (!self.is_content(next))
            .then_some((found(days, Granularity::Season, Basis::Calendar), next))
    }

    /// "Q3 2023"; without a year only behind "in" or "during".
    fn quarter(&self, place: usize, number: i64) -> Step<Found> {
        let month = 3 * number - 2;
        let (year, next) = self.year_behind_day(place + 1);
        if let Some(year) = year {
            let days = months(year, month, 3);
            return Some((found(days, Granularity::Quarter, Basis::Calendar), next));
        }
        let is_announced = matches!(self.before(place), Some(Word::In | Word::During));
        let days = months(self.latest_year_of_month(month), month, 3);
        is_announced.then_some((found(days, Granularity::Quarter, Basis::Yearless), place + 1))
    }

    // Counted from today -------------------------------------------------------------------------

    fn relative_day(&self, shift: i64) -> Found {
        near_today(day(self.today + shift), Granularity::Day)
    }

    fn number(&self, place: usize) -> Step<i64> {
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
    fn counted(&self, place: usize) -> Step<Found> {
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
    fn shifted(&self, unit: Unit, count: i64) -> Found {
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
    fn weekend(&self, count: i64) -> Days {
        let days = week(self.today + 7 * count);
        Days { start: days.end - 2, end: days.end }
    }

    /// "last week", "this weekend", "next May", "past three months".
    fn neighbour(&self, place: usize) -> Step<Found> {
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
    fn step(&self, place: usize) -> Step<i64> {
        match self.word(place)? {
            Word::This if self.is_word(place + 1, Word::Past) => Some((-1, place + 2)),
            Word::Last | Word::Past => Some((-1, place + 1)),
            Word::This => Some((0, place + 1)),
            Word::Next => Some((1, place + 1)),
            _ => None,
        }
    }

    /// "last 3 weeks", "the past month": up to and including today, or from today on.
    fn window(&self, place: usize, step: i64, is_rolling: bool) -> Step<Found> {
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
    fn moved(&self, unit: Unit, count: i64) -> Option<i64> {
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

    fn calendar_unit(&self, unit: Unit, step: i64) -> Found {
        match unit {
            Unit::Week => near_today(week(self.today + 7 * step), Granularity::Week),
            _ => self.shifted(unit, step),
        }
    }

    /// Last: before today. This: in this week. Next: after today.
    fn weekday_at(&self, weekday: i64, step: i64) -> Found {
        let number = match step {
            -1 => weekday_until(self.today - 1, weekday),
            0 => week(self.today).start + weekday,
            _ => weekday_until(self.today + 7, weekday),
        };
        near_today(day(number), Granularity::Day)
    }

    fn month_at(&self, place: usize, month: i64, step: i64) -> Option<Found> {
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
    fn season_at(&self, month: i64, step: i64) -> Found {
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

    /// "on Friday" with or without a date, "Friday, 7 May", "the Friday before 3 May".
    fn day_of_week(&self, place: usize) -> Step<Option<Found>> {
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
        let latest = day(weekday_until(self.today, weekday));
        (is_day && is_announced).then(|| (Some(near_today(latest, Granularity::Day)), place + 1))
    }

    // Parts and neighbours of other dates --------------------------------------------------------

    /// "week of 3 July", "the day after 3 May": from a unit without a number.
    fn anchored(&self, place: usize) -> Step<Found> {
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
        self.beside(place, unit_days(unit)?)
    }

    /// "day before yesterday", "day after tomorrow".
    fn beside_today(&self, place: usize) -> Step<Found> {
        let side = self.side(place + 1)?;
        match self.word(place + 2)? {
            Word::Relative(shift) if shift == side => {
                Some((self.relative_day(2 * side), place + 3))
            }
            _ => None,
        }
    }

    fn side(&self, place: usize) -> Option<i64> {
        match self.word(place)? {
            Word::Before => Some(-1),
            Word::After => Some(1),
            _ => None,
        }
    }

    /// `reach` days before or after a day, and that day, on which it was perhaps told.
    fn beside(&self, at_unit: usize, reach: i64) -> Step<Found> {
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

    fn weekday_beside(&self, place: usize, weekday: i64) -> Step<Found> {
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

    fn full_day(&self, place: usize) -> Step<Found> {
        let (date, next) = self.calendar(self.over_word(place, Word::The))?;
        date.filter(|date| date.granularity == Granularity::Day).map(|date| (date, next))
    }

    /// "early June", "mid-2023", "the end of last year".
    fn third(&self, place: usize) -> Step<Found> {
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
    fn part_of_period(&self, place: usize) -> Step<Found> {
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
    fn period(&self, place: usize) -> Step<Found> {
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
    fn bare_period(&self, place: usize) -> Step<Found> {
        let date = match self.kind(place)? {
            Kind::Known(Word::Month(month, Reading::Only | Reading::Name | Reading::Common)) => {
                let named = Named { month: Some(month), ..Named::default() };
                self.resolve(self.with_year_behind(named, place + 1))?
            }
            Kind::Number { value, digits: 4, suffix: Suffix::None } if is_year(value) => {
                found(years(value, 1), Granularity::Year, Basis::Calendar)
            }
            _ => return None,
        };
        (!self.is_content(place + 1)).then_some((date, place + 1))
    }
}

fn near_today(days: Days, granularity: Granularity) -> Found {
    found(days, granularity, Basis::Today)
}

fn in_year(named: Named, other: Named, year: i64) -> Named {
    Named { year: Some(year), month: named.month.or(other.month), day: named.day }
}

fn unit_days(unit: Unit) -> Option<i64> {
    match unit {
        Unit::Minute | Unit::Hour => None,
        Unit::Day => Some(1),
        Unit::Week | Unit::Weekend => Some(7),
        Unit::Month => Some(31),
        Unit::Quarter => Some(92),
        Unit::Year => Some(366),
    }
}

/// Part `index` of `count`: of months by their days, of longer periods by whole months.
fn part(whole: Found, index: i64, count: i64) -> Option<Found> {
    let Days { start, end } = whole.days;
    let cut = |numerator: i64| match whole.granularity {
        Granularity::Decade | Granularity::Year | Granularity::Season | Granularity::Quarter => {
            let begin = civil(start);
            let length = match whole.granularity {
                Granularity::Decade => 120,
                Granularity::Year => 12,
                _ => 3,
            };
            day_number(begin.year, begin.month + length * numerator / count, 1)
        }
        // Thirds of ten days, halves of fifteen; the last one has what is left.
        Granularity::Month if numerator < count => start + 30 / count * numerator,
        _ if numerator == count => end,
        _ => start + (end - start) * numerator / count,
    };
    let days = Days { start: cut(index), end: cut(index + 1) };
    (days.start < days.end).then_some(found(days, Granularity::Span, whole.basis))
}

/// The days 1–7, 8–14, 15–21 or 22–28 of a month, or with 0 its last seven.
fn week_of(month: Found, number: i64) -> Found {
    let Days { start, end } = month.days;
    let start = if number == 0 { end - 7 } else { start + 7 * (number - 1) };
    found(Days { start, end: start + 7 }, Granularity::Week, month.basis)
}
