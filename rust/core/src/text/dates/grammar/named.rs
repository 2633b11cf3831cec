//! Dates with a month, in all orders of day, month and year, and spans between them.

use super::*;

impl Grammar<'_> {
    /// A date or a span of dates; `Some(None)` if it is written as a date but is none.
    pub(super) fn calendar(&self, place: usize) -> Step<Option<Found>> {
        if let Some(span) = self.span(place, false) {
            return Some(span);
        }
        let (named, next) = self.named(place)?;
        Some((self.reference.resolve(self.with_year_behind(named, next)), next))
    }

    /// A date with a month in it: in digits, 7 May 2023, May 7, May 2023.
    pub(super) fn named(&self, place: usize) -> Step<Named> {
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

    pub(super) fn day_first(&self, place: usize) -> Step<Named> {
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

    pub(super) fn month_first(&self, place: usize, month: i64, reading: Reading) -> Step<Named> {
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
    pub(super) fn is_month(&self, place: usize, reading: Reading, next: usize) -> bool {
        match reading {
            Reading::Common => self.is_surely_capital(place) || !self.is_content(next),
            Reading::Only | Reading::Name | Reading::Foreign | Reading::Mars => true,
        }
    }

    pub(super) fn day(&self, place: usize) -> Option<(i64, bool)> {
        match self.kind(place)? {
            Kind::Number { value: value @ 1..=31, digits: 1..=2, suffix } => {
                (suffix != Suffix::Plural).then_some((value, suffix == Suffix::Ordinal))
            }
            _ => None,
        }
    }

    pub(super) fn year_behind_month(&self, month: usize) -> (Option<i64>, usize) {
        let after_month = self.over_mark(month + 1, '.');
        let (year, next) = self.year_behind_day(after_month);
        if year.is_some() { (year, next) } else { (None, after_month) }
    }

    pub(super) fn year_behind_day(&self, place: usize) -> (Option<i64>, usize) {
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
    pub(super) fn short_year(&self, apostrophe: usize, otherwise: usize) -> (Option<i64>, usize) {
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
    pub(super) fn with_year_behind(&self, named: Named, place: usize) -> Named {
        if named.year.is_some() {
            return named;
        }
        let year = |place| self.named(place).and_then(|(other, _)| other.year);
        Named { year: (place..place + LOOK_AHEAD).find_map(year), ..named }
    }

    // Spans ------------------------------------------------------------------------------------

    /// A span after "between" or "from"; a single date after "from" counts by itself.
    pub(super) fn between(&self, place: usize) -> Step<Option<Found>> {
        self.span(place + 1, true)
    }

    /// "3-9 May", "May 3 to 9", "May to July 2023"; a bare month or year only if `is_announced`.
    pub(super) fn span(&self, place: usize, is_announced: bool) -> Step<Option<Found>> {
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
        Some((self.reference.resolve_span(first, last), end))
    }

    /// Whether two ends form a span: both years, or a month with a part of the other.
    pub(super) fn is_span(
        &self,
        begin: usize,
        end: usize,
        ends: (Named, Named),
        is_announced: bool,
    ) -> bool {
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
    pub(super) fn end_of_span(&self, place: usize) -> Step<Named> {
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

    pub(super) fn is_dash(&self, place: usize) -> bool {
        self.kind(place) == Some(Kind::Mark('-'))
    }

    /// Two numbers joined by a dash: days of the month that follows, or announced years.
    pub(super) fn pair(
        &self,
        place: usize,
        first: i64,
        last: i64,
        is_announced: bool,
    ) -> Step<Option<Found>> {
        if is_year(first) && is_year(last) {
            let is_span = is_announced || self.announces_year(place);
            let year = |year| Named { year: Some(year), ..Named::default() };
            let span = || (self.reference.resolve_span(year(first), year(last)), place + 1);
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

    pub(super) fn pair_behind_month(
        &self,
        place: usize,
        first: i64,
        last: i64,
    ) -> Step<Option<Found>> {
        let Word::Month(month, _) = self.word(place)? else {
            return None;
        };
        let (year, next) = self.year_behind_day(place + 2);
        Some((self.resolve_days(year, month, first, last), next))
    }

    pub(super) fn resolve_days(
        &self,
        year: Option<i64>,
        month: i64,
        first: i64,
        last: i64,
    ) -> Option<Found> {
        let named = |day| Named { year, month: Some(month), day: Some(day) };
        self.reference.resolve_span(named(first), named(last))
    }
}
