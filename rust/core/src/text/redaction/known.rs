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
    /// Whether a match can begin in another one, of which it leaves a part over: any digits that
    /// stand before a card's number can pass its check with the first of its groups.
    pub(super) overlaps: bool,
}

impl Known {
    const fn new(name: &'static str, places: Places, reader: Reader) -> Self {
        Self { name, places, reader, overlaps: false }
    }
}

pub(super) const KNOWN: [Known; 8] = [
    Known::new("ssn", Places::Numbers, ssn),
    Known { overlaps: true, ..Known::new("card", Places::Numbers, card) },
    Known::new("email", Places::AtSigns, email),
    Known::new("phone", Places::Numbers, phone),
    Known::new("iban", Places::Numbers, iban),
    Known::new("ipv4", Places::Numbers, ipv4),
    Known::new("ipv6", Places::Colons, ipv6),
    Known::new("api_key", Places::Keys, api_key),
];

/// Names of the patterns that need no regular expression.
pub fn known_patterns() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}
