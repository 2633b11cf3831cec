//! From one date to another, and from a date until today.

use super::super::calendar::Days;
use super::calendar_dates::DASHES;
use super::*;

const JOINERS: &[&str] = &["到", "至", "から", "부터", "에서"];
const SINCE: &[&str] = &["以来", "以來", "至今", "から", "부터"];

impl EastAsian<'_> {
    /// 5月3日到9日, 5月から7月, 5월 3일부터 9일.
    pub(super) fn span(&self, first: Partial, next: usize) -> Step<Option<Found>> {
        let at = self.over_spaces(next);
        let joined = self.over(at, JOINERS).or_else(|| self.over(at, DASHES))?;
        let (last, end) = self.end_of_span(self.over_spaces(joined), first)?;
        let is_year = |partial: Partial| partial.named.month.or(partial.named.day).is_none();
        if is_year(first) != is_year(last) {
            return None;
        }
        let span = self.reference.resolve_span(first.named, last.named);
        let is_relative = first.is_relative || last.is_relative;
        let basis = |span: Found| if is_relative { Basis::Today } else { span.basis };
        Some((span.map(|span| Found { basis: basis(span), ..span }), end))
    }

    fn end_of_span(&self, at: usize, first: Partial) -> Step<Partial> {
        if let Some(last) = self.calendar(at) {
            return Some(last);
        }
        let (day, end) = self.day(at).filter(|_| first.named.day.is_some())?;
        let named = Named { day: Some(day), ..Named::default() };
        Some((Partial { named, is_relative: false }, end))
    }

    /// The parts that a date of a list takes from the one before: 2023年5月3日和6月8日, 5月3日和4日.
    pub(super) fn next_of_list(&self, at: usize, before: Partial) -> Step<Partial> {
        let Partial { named, is_relative } = before;
        if let Some((next, end)) = self.calendar(at) {
            let takes_year = next.named.year.is_none() && named.year.is_some();
            let named = Named { year: named.year, ..next.named };
            return takes_year.then_some((Partial { named, is_relative }, end));
        }
        let (day, end) = self.day(at).filter(|_| named.day.is_some())?;
        Some((Partial { named: Named { day: Some(day), ..named }, is_relative }, end))
    }

    /// A date, or the time from it until today: 5月以来, 昨日から.
    pub(super) fn since(&self, date: Option<Found>, next: usize) -> (Option<Found>, usize) {
        match self.over(next, SINCE) {
            Some(end) => (date.map(|date| self.until_today(date)), end),
            None => (date, next),
        }
    }

    pub(super) fn until_today(&self, date: Found) -> Found {
        if date.days.start > self.reference.today {
            return date;
        }
        let end = date.days.end.max(self.reference.today + 1);
        let days = Days { start: date.days.start, end };
        found(days, Granularity::Span, date.basis)
    }
}
