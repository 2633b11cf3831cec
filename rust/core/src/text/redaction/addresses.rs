//! Addresses of the Internet Protocol.

use std::net::Ipv6Addr;
use std::ops::Range;

use super::characters::{ends_word, follows_digit, precedes_digit, starts_word};
use super::places::Place;

/// Bytes of the longest IPv6 address, with an IPv4 address in it.
const MAX_LENGTH: usize = 45;
/// Digits of a group of an IPv6 address.
const GROUP: usize = 4;

/// An IPv4 address: four numbers from 0 to 255, with leading zeros or without.
pub(super) fn ipv4(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at: start, count, .. } = place;
    if count > 3 || !starts_word(text, start) || follows_digit(text, start, &['.']) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut at = start;
    for index in 0..4 {
        if index > 0 {
            at += usize::from(bytes.get(at) == Some(&b'.'));
        }
        let rest = &bytes[at..];
        let len = rest.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
        let is_apart = index == 0 || bytes[at - 1] == b'.';
        if !is_apart || !text[at..at + len].parse::<u16>().is_ok_and(|part| len < 4 && part < 256) {
            return None;
        }
        at += len;
    }
    (ends_word(text, at) && !precedes_digit(text, at, &['.'])).then_some(start..at)
}

/// The IPv6 address around its first colon, its zone included.
pub(super) fn ipv6(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at, floor, .. } = place;
    let bytes = text.as_bytes();
    let group = bytes[floor..at].iter().rev().take(GROUP + 1);
    let start = at - group.take_while(|byte| byte.is_ascii_hexdigit()).count();
    if !starts_word(text, start) || text[..start].ends_with([':', '.']) {
        return None;
    }
    let part = |byte: &&u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let len = bytes[start..].iter().take(MAX_LENGTH + 2).take_while(part).count();
    let address = without_stop(&text[start..start + len]);
    let end = start + address.len();
    (ends_word(text, end) && is_address(address)).then(|| start..zone_end(text, end))
}

/// An address without the full stop or the colon of a sentence.
fn without_stop(address: &str) -> &str {
    let address = address.trim_end_matches('.');
    if address.ends_with("::") { address } else { address.strip_suffix(':').unwrap_or(address) }
}

/// Whether a text is an address that is not a path of a program: neither `::` nor `abc::def`.
fn is_address(text: &str) -> bool {
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let groups = || text.split(':').filter(|group| !group.is_empty());
    (has_digit || groups().count() > 2) && text.parse::<Ipv6Addr>().is_ok()
}

/// The end of a zone, such as `%eth0`.
fn zone_end(text: &str, end: usize) -> usize {
    let Some(zone) = text[end..].strip_prefix('%') else { return end };
    let len = zone.bytes().take_while(u8::is_ascii_alphanumeric).count();
    if len == 0 { end } else { end + 1 + len }
}
