//! The patterns that have a name.

use std::ops::Range;

use super::email::email;
use super::numbers::{card, ssn};
use super::places::Place;

/// A function that returns the match of a pattern around a place.
pub(super) type Reader = fn(Place<'_>) -> Option<Range<usize>>;

/// Places around which a pattern can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    Numbers,
    AtSigns,
}

/// A pattern with a name.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) places: Places,
    pub(super) reader: Reader,
}

pub(super) const KNOWN: [Known; 3] = [
    Known { name: "ssn", places: Places::Numbers, reader: ssn },
    Known { name: "card", places: Places::Numbers, reader: card },
    Known { name: "email", places: Places::AtSigns, reader: email },
];

/// Names of the patterns that need no regular expression.
pub fn known_patterns() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}
