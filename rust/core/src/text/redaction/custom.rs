//! Patterns of the user: compiled, or refused with the cause.

use std::net::{Ipv4Addr, Ipv6Addr};

use regex_automata::MatchKind;
use regex_syntax::ParserBuilder;

use super::automaton::Automaton;
use super::iban::is_iban;
use super::numbers::Luhn;

/// Most bytes of a regular expression, and most groups inside each other.
const MAX_LENGTH: usize = 4096;
const MAX_DEPTH: u32 = 64;

/// The reason for what the crate regex lacks.
const WITHOUT: &str = "patterns have neither look-around nor back-references, because a search \
    with them can take time exponential in the text";

/// A check of a match, beside its regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedactionCheck {
    /// The digits have the check digit of payment cards.
    Luhn,
    /// It is an IBAN of a country's length with valid check digits.
    Iban,
    /// It is an IPv4 address.
    Ipv4,
    /// It is an IPv6 address.
    Ipv6,
}

impl RedactionCheck {
    /// The check of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(each, _)| *each == name).map(|(_, check)| *check)
    }

    /// The names of checks.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|(name, _)| *name)
    }

    const ALL: [(&'static str, Self); 4] =
        [("luhn", Self::Luhn), ("iban", Self::Iban), ("ipv4", Self::Ipv4), ("ipv6", Self::Ipv6)];

    pub(super) fn passes(self, text: &str) -> bool {
        match self {
            Self::Luhn => Luhn::passes(text),
            Self::Iban => is_iban(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
        }
    }
}

/// A compiled regular expression; without one a sentence with the cause.
pub(super) fn compiled(regex: &str) -> Result<Automaton, String> {
    if regex.len() > MAX_LENGTH {
        return Err(format!("it has {} bytes, at most {MAX_LENGTH} are allowed", regex.len()));
    }
    let parsed = ParserBuilder::new().nest_limit(MAX_DEPTH).build().parse(regex);
    let hir = parsed.map_err(|error| format!("{error}\n({WITHOUT})"))?;
    if hir.properties().minimum_len() == Some(0) {
        return Err("it matches the empty text; with + in place of *, or without the last ?, it \
                    would match at least one character"
            .to_owned());
    }
    Automaton::new(&hir, MatchKind::LeftmostFirst)
}
