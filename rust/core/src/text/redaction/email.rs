//! Addresses of e-mail.

use std::ops::Range;

use super::characters::{after, is_digit, is_unspaced};
use super::places::Place;

/// The address around an at sign.
pub(super) fn email(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at, floor, .. } = place;
    let start = local_start(text, at, floor)?;
    let host = at + after(text, at)?.len_utf8();
    let end = domain_end(text, host).or_else(|| literal_end(text, host))?;
    Some(start..end)
}

/// The start of the part before the at sign.
///
/// Han, kana, Hangul, Thai and the like belong to it only if it ends with one of them:
/// 联系john@example.com has the address john@example.com in it, 用户@例子.公司 is one.
fn local_start(text: &str, at: usize, floor: usize) -> Option<usize> {
    let earlier = text[floor..at].char_indices().rev();
    let takes_unspaced = text[floor..at].chars().next_back().is_some_and(is_unspaced);
    let part = earlier
        .take_while(|(_, letter)| is_local(*letter) && (takes_unspaced || !is_unspaced(*letter)));
    let begins = |(_, letter): &(usize, char)| *letter == '_' || is_word(*letter);
    part.filter(begins).last().map(|(start, _)| floor + start)
}

/// The end of a host name of at least two labels, the last of which begins with two letters.
fn domain_end(text: &str, host: usize) -> Option<usize> {
    let mut end = None;
    let mut at = host;
    loop {
        let label = label(&text[at..]);
        if at > host && is_top_level(label) {
            end = Some(at + label.len());
        }
        at += label.len();
        let dot = after(text, at).filter(|dot| matches!(dot, '.' | '．'));
        match dot {
            Some(dot) if !label.is_empty() => at += dot.len_utf8(),
            _ => return end,
        }
    }
}

/// The letters, digits and inner hyphens at the start of a text.
fn label(text: &str) -> &str {
    let takes_unspaced = text.chars().next().is_some_and(is_unspaced);
    let belongs = |letter: char| {
        letter == '-' || (is_word(letter) && (takes_unspaced || !is_unspaced(letter)))
    };
    let end = text.find(|letter| !belongs(letter)).unwrap_or(text.len());
    text[..end].trim_end_matches('-')
}

fn is_top_level(label: &str) -> bool {
    label.chars().take(2).filter(|letter| is_word(*letter) && !is_digit(*letter)).count() == 2
}

/// The end of a host in square brackets, such as `[192.0.2.1]` or `[IPv6:2001:db8::1]`.
fn literal_end(text: &str, host: usize) -> Option<usize> {
    let address = text[host..].strip_prefix('[')?;
    let len = address.bytes().take(64).position(|byte| byte == b']')?;
    let inner = &address[..len];
    let inner = inner.strip_prefix("IPv6:").unwrap_or(inner);
    inner.parse::<std::net::IpAddr>().is_ok().then_some(host + len + 2)
}

fn is_local(letter: char) -> bool {
    is_word(letter) || matches!(letter, '.' | '_' | '%' | '+' | '-' | '\'' | '&' | '~' | '!')
}

/// Letters, marks and digits of any script.
fn is_word(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric();
    }
    regex_syntax::is_word_character(letter)
}
