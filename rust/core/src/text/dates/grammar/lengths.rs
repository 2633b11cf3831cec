//! Lengths of time: "forty-five days", "a year and a half", "1 month 2 weeks".

use super::*;

/// Tokens of the longest length of time that is read: "a hundred and twenty-five years and" has
/// eight.
pub(super) const LONGEST: usize = 40;

pub(super) const ONE: Kind = Kind::Known(Word::Count(1));
pub(super) const AND: Kind = Kind::Known(Word::And);
const OF: Kind = Kind::Known(Word::Of);
const HALF: Kind = Kind::Known(Word::Half);
const HUNDRED: Kind = Kind::Known(Word::Scale(100));

impl Grammar<'_> {
    /// The length of time that takes up all tokens from a place on that may be parts of one; `None`
    /// inside if they make none, so that "two thousand and five days" is not read as five days.
    pub(super) fn length(&self, place: usize) -> Step<Option<Length>> {
        let (kinds, places) = self.parts(place);
        let end = places.last()? + 1;
        let length = sum(&kinds).filter(|(_, rest)| rest.is_empty() && !self.is_torn(place));
        Some((length.map(|(length, _)| length), end))
    }

    /// The length of time that begins at a place, with a number or as one unit: "the past week".
    pub(super) fn window_length(&self, place: usize, is_counted: bool) -> Step<Length> {
        let (mut kinds, mut places) = self.parts(place);
        if !is_counted {
            kinds.insert(0, ONE);
            places.insert(0, place);
        }
        let (length, rest) = sum(&kinds)?;
        Some((length, places[kinds.len() - rest.len() - 1] + 1))
    }

    /// Tokens that may be parts of a length of time, without hyphens, and their places.
    fn parts(&self, place: usize) -> (Vec<Kind>, Vec<usize>) {
        let tokens = self.tokens[place..].iter().zip(place..).take(LONGEST);
        tokens
            .take_while(|(token, _)| is_hyphen(token) || is_part(token.kind))
            .filter(|(token, _)| !is_hyphen(token))
            .map(|(token, place)| (token.kind, place))
            .unzip()
    }

    /// As "five" in "fourty-five".
    fn is_torn(&self, place: usize) -> bool {
        !self.tokens[place].is_spaced && place > 0 && is_hyphen(&self.tokens[place - 1])
    }
}

pub(super) fn is_hyphen(token: &Token) -> bool {
    token.kind == Kind::Mark('-') && !token.is_spaced
}

/// Whether a token is a part of a length of time, or shows that there is none: "two or three weeks".
pub(super) fn is_part(kind: Kind) -> bool {
    match kind {
        Kind::Number { suffix: Suffix::None, digits: 1..=3, .. }
        | Kind::Fraction
        | Kind::Mark(',') => true,
        Kind::Pair(first, _) => !is_year(first),
        Kind::Known(word) => matches!(
            word,
            Word::Count(_)
                | Word::Ordinal(_)
                | Word::Scale(_)
                | Word::Uncounted
                | Word::Half
                | Word::Unit(..)
                | Word::And
                | Word::Or
                | Word::Until
                | Word::Of
        ),
        _ => false,
    }
}

/// Lengths of falling units, and what follows: "two weeks and three days", "1 year, 2 months".
pub(super) fn sum(kinds: &[Kind]) -> Option<(Length, &[Kind])> {
    let (mut total, mut rest) = summand(kinds)?;
    while let Some((length, behind)) = summand(over(over(rest, Kind::Mark(',')), AND)) {
        (total, rest) = (total.plus(length)?, behind);
    }
    Some((total, rest))
}

/// A number and its unit, with a half behind them: "three weeks", "a year and a half".
fn summand(kinds: &[Kind]) -> Option<(Length, &[Kind])> {
    let (quarters, rest) = quarters(kinds)?;
    let (unit, rest) = unit(rest)?;
    let half = rest.strip_prefix(&[AND]).and_then(|rest| over(rest, ONE).strip_prefix(&[HALF]));
    match half.filter(|behind| unit_of(behind).is_none()) {
        Some(behind) => Some((Length::new(quarters + 2, unit)?, behind)),
        None => Some((Length::new(quarters, unit)?, rest)),
    }
}

/// How many quarters of a unit: "half a", "three quarters of a", "two and a half", "forty-five".
fn quarters(kinds: &[Kind]) -> Option<(i64, &[Kind])> {
    if let [HALF, rest @ ..] | [ONE, HALF, rest @ ..] = kinds {
        return Some((2, over(over(rest, OF), ONE)));
    }
    let (count, rest) = number(kinds).unwrap_or((1, kinds));
    if let [Kind::Known(Word::Unit(Unit::Quarter, _)), OF, ONE, rest @ ..] = rest {
        return Some((count, rest));
    }
    if rest.len() == kinds.len() {
        return None;
    }
    let half = rest.strip_prefix(&[AND]).and_then(|rest| over(rest, ONE).strip_prefix(&[HALF]));
    Some(half.map_or_else(|| (4 * count, over(rest, OF)), |behind| (4 * count + 2, behind)))
}

/// A whole number in digits or words.
fn number(kinds: &[Kind]) -> Option<(i64, &[Kind])> {
    if let [Kind::Number { value, suffix: Suffix::None, .. }, rest @ ..] = kinds {
        return Some((*value, rest));
    }
    let (count, rest) = below_hundred(kinds).unwrap_or((1, kinds));
    match rest {
        [HUNDRED, rest @ ..] => {
            let (ones, behind) = below_hundred(over(rest, AND)).unwrap_or((0, rest));
            Some((100 * count + ones, behind))
        }
        [Kind::Known(Word::Scale(scale)), rest @ ..] => Some((scale * count, rest)),
        _ => (rest.len() < kinds.len()).then_some((count, rest)),
    }
}

fn below_hundred(kinds: &[Kind]) -> Option<(i64, &[Kind])> {
    match kinds {
        [
            Kind::Known(Word::Count(tens @ 20..)),
            Kind::Known(Word::Count(ones @ 1..=9)),
            rest @ ..,
        ] => Some((tens + ones, rest)),
        [Kind::Known(Word::Count(count)), rest @ ..] => Some((*count, rest)),
        _ => None,
    }
}

fn unit(kinds: &[Kind]) -> Option<(Unit, &[Kind])> {
    Some((unit_of(kinds)?, &kinds[1..]))
}

fn unit_of(kinds: &[Kind]) -> Option<Unit> {
    match kinds.first()? {
        Kind::Known(Word::Unit(unit, _)) => Some(*unit),
        _ => None,
    }
}

/// What follows a token, if it comes first.
fn over(kinds: &[Kind], one: Kind) -> &[Kind] {
    kinds.strip_prefix(&[one]).unwrap_or(kinds)
}
