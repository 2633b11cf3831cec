//! How words and numbers make dates. One method for each way of naming a date.

mod anchored;
mod foreign;
mod lengths;
mod named;
mod periods;
mod relative;

use std::cell::OnceCell;

use super::Granularity;
use super::calendar::{Days, civil, day, day_number, months, week, weekday_until, years};
use super::foreign_vocabulary::Foreign;
use super::reference::{Basis, Found, Length, Named, Reference, found, near_today};
use super::tokens::{Kind, Suffix, Token, full_year, is_year};
use super::vocabulary::{Reading, Unit, Word};

/// The year of a date without one is searched in this many tokens after it: "3 May and 8 June
/// 2023".
const LOOK_AHEAD: usize = 12;

pub(super) struct Grammar<'tokens> {
    text: &'tokens str,
    tokens: &'tokens [Token],
    reference: &'tokens Reference<'tokens>,
    is_french: OnceCell<bool>,
}

type Step<T> = Option<(T, usize)>;

impl<'tokens> Grammar<'tokens> {
    pub(super) fn new(
        text: &'tokens str,
        tokens: &'tokens [Token],
        reference: &'tokens Reference<'tokens>,
    ) -> Self {
        Self { text, tokens, reference, is_french: OnceCell::new() }
    }

    /// All dates with their places, in order; those that overlap the one before are part of it.
    pub(super) fn dates(&self) -> Vec<(usize, Found)> {
        let mut dates = Vec::new();
        let (mut place, mut listed) = (0, None);
        while place < self.tokens.len() {
            if let Some((date, next)) = self.date(place, listed) {
                dates.extend(date.map(|date| (self.tokens[place].start, date)));
                place = next.max(place + 1);
                listed = date.map(|date| date.granularity);
                continue;
            }
            let joins = matches!(
                self.kind(place),
                Some(Kind::Known(Word::And | Word::Or) | Kind::Mark(','))
            );
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
                .or_else(|| self.calendar(place))
                .or_else(|| self.lone_year(place, listed).map(some))
                .or_else(|| self.foreign(place)),
            Kind::Digits(..) => self.calendar(place),
            Kind::Pair(..) => self.counted(place).or_else(|| self.calendar(place)),
            Kind::Known(word) => self.worded(place, word, listed),
            Kind::Fraction => self.counted(place),
            Kind::Foreign(_) => self.foreign(place),
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
            Word::Unit(..) | Word::Count(_) | Word::Scale(_) | Word::Uncounted | Word::Half => self
                .counted(place)
                .or_else(|| self.anchored(place).map(some))
                .or_else(|| self.turned(place).map(some)),
            Word::Ordinal(_) => self.part_of_period(place).map(some),
            Word::Relative(shift) => Some((Some(self.reference.relative_day(shift)), place + 1)),
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
            Kind::Other | Kind::Foreign(_) => !token.is_capital,
            Kind::Known(
                Word::Unit(..)
                | Word::Count(_)
                | Word::Scale(_)
                | Word::Half
                | Word::Quantity
                | Word::Numbered,
            )
            | Kind::Number { .. }
            | Kind::Fraction
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
}

/// Part `index` of `count`: of months by their days, of longer periods by whole months.
pub(super) fn part(whole: Found, index: i64, count: i64) -> Option<Found> {
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
        // Thirds of ten days, halves of fifteen; the last one has the rest.
        Granularity::Month if numerator < count => start + 30 / count * numerator,
        _ if numerator == count => end,
        _ => start + (end - start) * numerator / count,
    };
    let days = Days { start: cut(index), end: cut(index + 1) };
    (days.start < days.end).then_some(found(days, Granularity::Span, whole.basis))
}

/// The days 1–7, 8–14, 15–21 or 22–28 of a month, or with 0 its last seven.
pub(super) fn week_of(month: Found, number: i64) -> Found {
    let Days { start, end } = month.days;
    let start = if number == 0 { end - 7 } else { start + 7 * (number - 1) };
    found(Days { start, end: start + 7 }, Granularity::Week, month.basis)
}
