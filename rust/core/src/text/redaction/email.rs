//! Addresses of e-mail.

use std::ops::Range;

use super::characters::{BREAKS, after, before_break, ends_word, is_digit, is_unspaced, joint};
use super::places::Place;

/// Top-level domains of generic names; those of countries have two letters.
const GENERIC: [&str; 12] =
    ["com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "name", "dev", "app"];

/// The address around an at sign.
///
/// A line may break it beside the at sign or in its host name, if that ends with a well-known
/// top-level domain: @app.route and @jane.doe begin lines that go on with no address.
pub(super) fn email(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at, floor, .. } = place;
    let name_end = before_break(text, at);
    let name_end = floor + text[floor..name_end].trim_end_matches(['*', '`']).len();
    let start = local_start(text, name_end, floor)?;
    let host = at + after(text, at)?.len_utf8();
    let gap = joint(&text[host..]);
    let is_broken = before_break(text, at) < at || text[host..host + gap].contains(BREAKS);
    let domain = Domain { text, is_broken, labels: 0, end: None };
    let end = domain.find(host + gap).or_else(|| literal_end(text, host))?;
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

/// A host name of at least two labels, the last of which begins with two letters.
struct Domain<'a> {
    text: &'a str,
    /// Whether a line breaks the address, or emphasis stands in it.
    is_broken: bool,
    labels: usize,
    /// The end of the last label that can be a top-level domain.
    end: Option<usize>,
}

impl Domain<'_> {
    /// The end of the name that begins at a place.
    fn find(mut self, start: usize) -> Option<usize> {
        let mut next = Some(start);
        while let Some(at) = next {
            next = self.take_label(at).and_then(|end| self.behind_dot(end));
        }
        self.end
    }

    /// Take in the label at a place, which may go on in the next line; return its end.
    fn take_label(&mut self, at: usize) -> Option<usize> {
        let first = Some(label(&self.text[at..])).filter(|label| !label.is_empty())?;
        let mut end = at + first.len();
        self.take(first, end);
        let gap = self.gap(end);
        let rest = label(&self.text[end + gap..]);
        if gap > 0 && !rest.is_empty() {
            end += gap + rest.len();
            self.is_broken = true;
            self.take(&format!("{first}{rest}"), end);
        }
        self.labels += 1;
        Some(end)
    }

    fn take(&mut self, label: &str, end: usize) {
        let is_known = || is_well_known(label) && ends_word(self.text, end);
        if self.labels > 0 && is_top_level(label) && (!self.is_broken || is_known()) {
            self.end = Some(end);
        }
    }

    /// The place behind the dot at a place.
    fn behind_dot(&mut self, at: usize) -> Option<usize> {
        let before = self.gap(at);
        let dot = after(self.text, at + before)?;
        let next = at + before + dot.len_utf8();
        let gap = self.gap(next);
        let rest = &self.text[next + gap..];
        let is_dot = match dot {
            '.' | '．' => gap == 0 || !begins_sentence(rest),
            '。' | '｡' => {
                self.end.is_none() && rest.starts_with(|next: char| next.is_ascii_alphanumeric())
            }
            _ => false,
        };
        self.is_broken |= before + gap > 0;
        is_dot.then_some(next + gap)
    }

    /// The length of a line break or emphasis at a place where the name cannot end.
    fn gap(&self, at: usize) -> usize {
        if self.end.is_none() { joint(&self.text[at..]) } else { 0 }
    }
}

/// Whether a text begins with a capital and a small letter.
fn begins_sentence(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
}

/// Whether a label is a generic top-level domain, or one of two letters, as those of countries.
fn is_well_known(label: &str) -> bool {
    label.chars().count() == 2 || GENERIC.iter().any(|name| name.eq_ignore_ascii_case(label))
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
