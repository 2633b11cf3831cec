//! The patterns that have a name.

use std::ops::Range;

use super::addresses::{ipv4, ipv6};
use super::email::email;
use super::iban::iban;
use super::keys::{api_key, for_each_prefix};
use super::numbers::{card, ssn};
use super::phone::phone;
use super::places::{Place, for_each_at_sign, for_each_colon};

/// A function that returns the match of a pattern around a place.
pub(super) type Reader = fn(Place<'_>) -> Option<Range<usize>>;

/// A function that calls for each place around which a pattern can match.
pub(super) type EachPlace = fn(&str, &mut dyn FnMut(usize));

/// A pattern with a name.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// None for a pattern of numbers, which are found for all such patterns at once.
    pub(super) places: Option<EachPlace>,
    pub(super) reader: Reader,
    /// Whether a match can begin in another one, of which it leaves a part over: any digits that
    /// stand before a card's number can pass its check with the first of its groups.
    pub(super) overlaps: bool,
}

impl Known {
    const fn new(name: &'static str, places: Option<EachPlace>, reader: Reader) -> Self {
        Self { name, places, reader, overlaps: false }
    }
}

pub(super) const KNOWN: [Known; 8] = [
    Known::new("ssn", None, ssn),
    Known { overlaps: true, ..Known::new("card", None, card) },
    Known::new("email", Some(for_each_at_sign), email),
    Known::new("phone", None, phone),
    Known::new("iban", None, iban),
    Known::new("ipv4", None, ipv4),
    Known::new("ipv6", Some(for_each_colon), ipv6),
    Known::new("api_key", Some(for_each_prefix), api_key),
];

/// Names of the patterns that need no regular expression.
pub fn known_patterns() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}
