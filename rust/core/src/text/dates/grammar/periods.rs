//! Months, years, decades, seasons and quarters that stand alone.

use super::*;

impl Grammar<'_> {
    /// From a date until today.
    pub(super) fn since(&self, place: usize) -> Step<Found> {
        let begin = self.over_word(place + 1, Word::The);
        if matches!(self.word(begin), Some(Word::Since | Word::Between | Word::From)) {
            return None;
        }
        let (date, next) = self.date(begin, None)?;
        let date = date?;
        let end = date.days.end.max(self.reference.today + 1);
        if date.days.start > self.reference.today {
            return Some((date, next));
        }
        let days = Days { start: date.days.start, end };
        Some((found(days, Granularity::Span, date.basis), next))
    }

    // Months, years, seasons by themselves -------------------------------------------------------

    /// A month without day and year, if the word before it is one that stands before months.
    pub(super) fn lone_month(&self, place: usize, listed: Option<Granularity>) -> Step<Found> {
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
        Some((self.reference.resolve(self.with_year_behind(named, place + 1))?, place + 1))
    }

    pub(super) fn announces_month(&self, place: usize, reading: Reading) -> bool {
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
    pub(super) fn is_alone(&self, place: usize, reading: Reading) -> bool {
        let next = self.over_mark(place + 1, '.');
        match reading {
            Reading::Common if self.is_surely_capital(place) => true,
            Reading::Common | Reading::Mars => !self.is_content(next),
            Reading::Foreign => !self.is_name(next),
            Reading::Only | Reading::Name => true,
        }
    }

    pub(super) fn is_name(&self, place: usize) -> bool {
        self.tokens.get(place).is_some_and(|token| {
            matches!(token.kind, Kind::Other | Kind::Foreign(_)) && token.is_capital
        })
    }

    /// A year, if the word before it announces one, or the text has no other word.
    pub(super) fn lone_year(&self, place: usize, listed: Option<Granularity>) -> Step<Found> {
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

    pub(super) fn announces_year(&self, place: usize) -> bool {
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
    pub(super) fn decade(&self, place: usize) -> Step<Found> {
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
    pub(super) fn season(&self, place: usize) -> Step<Found> {
        let Some(Word::Season(month, _)) = self.word(place) else {
            return None;
        };
        let (year, next) = self.year_behind_day(place + 1);
        let days = months(year?, month, 3);
        (!self.is_content(next))
            .then_some((found(days, Granularity::Season, Basis::Calendar), next))
    }

    /// "Q3 2023"; without a year only behind "in" or "during".
    pub(super) fn quarter(&self, place: usize, number: i64) -> Step<Found> {
        let month = 3 * number - 2;
        let (year, next) = self.year_behind_day(place + 1);
        if let Some(year) = year {
            let days = months(year, month, 3);
            return Some((found(days, Granularity::Quarter, Basis::Calendar), next));
        }
        let is_announced = matches!(self.before(place), Some(Word::In | Word::During));
        let days = months(self.reference.latest_year_of_month(month), month, 3);
        is_announced.then_some((found(days, Granularity::Quarter, Basis::Yearless), place + 1))
    }

    // Counted from today -------------------------------------------------------------------------
}
