//! The patterns that have a name.

use std::ops::Range;

use super::addresses::{ipv4, ipv6};
use super::email::email;
use super::iban::iban;
use super::keys::api_key;
use super::numbers::{card, ssn};
use super::phone::phone;
use super::places::Place;

/// A function that returns the match of a pattern around a place.
pub(super) type Reader = fn(Place<'_>) -> Option<Range<usize>>;

/// Places around which a pattern can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    Numbers,
    AtSigns,
    Colons,
    Keys,
}

/// A pattern with a name.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) places: Places,
    pub(super) reader: Reader,
}

pub(super) const KNOWN: [Known; 8] = [
    Known { name: "ssn", places: Places::Numbers, reader: ssn },
    Known { name: "card", places: Places::Numbers, reader: card },
    Known { name: "email", places: Places::AtSigns, reader: email },
    Known { name: "phone", places: Places::Numbers, reader: phone },
    Known { name: "iban", places: Places::Numbers, reader: iban },
    Known { name: "ipv4", places: Places::Numbers, reader: ipv4 },
    Known { name: "ipv6", places: Places::Colons, reader: ipv6 },
    Known { name: "api_key", places: Places::Keys, reader: api_key },
];

/// Names of the patterns that need no regular expression.
pub fn known_patterns() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}
