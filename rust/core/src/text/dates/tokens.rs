//! A text as words, numbers and marks, with everything glued into ids, prices and times set aside.

use super::east_asian::{is_east_asian, is_east_asian_mark};
use super::foreign_vocabulary::{self, Foreign};
use super::vocabulary::{Word, look_up};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// The place of its first byte.
    pub(super) start: usize,
    /// Whether it begins the text or follows white space.
    pub(super) is_spaced: bool,
    pub(super) is_capital: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Known(Word),
    /// A word of another language.
    Foreign(Foreign),
    /// A word without a meaning of its own.
    Other,
    /// A whole number below 10,000; `Suffix` as in 7th.
    Number {
        value: i64,
        digits: usize,
        suffix: Suffix,
    },
    /// Two numbers joined by a dash: 3-9, 2019-2021.
    Pair(i64, i64),
    /// 1/2, ½.
    Fraction,
    /// A date in digits: year, month, and day or 0.
    Digits(i64, i64, i64),
    Mark(char),
    /// A run of characters that is no word and no date, such as an id, a price or a time.
    Junk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suffix {
    None,
    Ordinal,
    Plural,
}

/// The years that numbers are taken for.
pub(super) fn is_year(value: i64) -> bool {
    (1900..=2100).contains(&value)
}

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 5 + 2);
    let mut scanner = Scanner { text, place: 0 };
    while let Some(token) = scanner.token() {
        tokens.push(token);
    }
    tokens
}

struct Scanner<'text> {
    text: &'text str,
    place: usize,
}

impl Scanner<'_> {
    fn token(&mut self) -> Option<Token> {
        let from = self.place;
        self.skip(char::is_whitespace);
        let is_spaced = self.place > from || from == 0;
        let first = self.peek()?;
        let start = self.place;
        let kind = if is_east_asian(first) {
            self.skip(is_east_asian);
            Kind::Other
        } else if first.is_ascii_digit() {
            self.number()
        } else if is_word(first) {
            self.word()
        } else {
            self.place += first.len_utf8();
            Kind::Mark(plain_mark(first))
        };
        Some(Token { kind, start, is_spaced, is_capital: first.is_uppercase() })
    }

    fn peek(&self) -> Option<char> {
        let rest = self.text.as_bytes().get(self.place)?;
        if rest.is_ascii() { Some(char::from(*rest)) } else { self.rest().chars().next() }
    }

    fn rest(&self) -> &str {
        &self.text[self.place..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.place + ahead).copied().unwrap_or(b' ')
    }

    fn skip(&mut self, matches: impl Fn(char) -> bool) {
        while let Some(character) = self.peek().filter(|one| matches(*one)) {
            self.place += character.len_utf8();
        }
    }

    fn word(&mut self) -> Kind {
        let start = self.place;
        self.skip(is_word);
        if self.is_glued(b"./:@\\") {
            return self.junk();
        }
        let word = &self.text[start..self.place];
        if matches!(word, "½" | "¼" | "¾") {
            return Kind::Fraction;
        }
        let foreign = || foreign_vocabulary::look_up(word).map(Kind::Foreign);
        look_up(word).map(Kind::Known).or_else(foreign).unwrap_or(Kind::Other)
    }

    /// Whether one of `marks` joins the token to a letter or digit.
    fn is_glued(&self, marks: &[u8]) -> bool {
        marks.contains(&self.byte(0)) && self.byte(1).is_ascii_alphanumeric()
    }

    fn junk(&mut self) -> Kind {
        self.skip(is_word);
        while self.is_glued(b".,/:@\\-+%") {
            self.place += 1;
            self.skip(is_word);
        }
        Kind::Junk
    }

    fn number(&mut self) -> Kind {
        let before = self.text[..self.place].chars().next_back();
        let groups = Groups::read(self);
        let follows_dash = before == Some('-');
        let is_joined =
            follows_dash && (groups.count > 1 || !self.follows_letter_and_dash(&groups));
        let is_free = before.is_none_or(|one| {
            one.is_whitespace()
                || "([{\"'“”‘’«»„,;¿¡—–-".contains(one)
                || is_east_asian(one)
                || is_east_asian_mark(one)
        });
        if !is_free || is_joined || self.is_thousands() {
            return self.junk();
        }
        let suffix = self.suffix(&groups);
        match (suffix, groups.kind(suffix.unwrap_or(Suffix::None))) {
            (Some(_), Some(kind)) if !self.continues() => kind,
            _ => self.junk(),
        }
    }

    /// As in mid-2023 and 7-May-2023.
    fn follows_letter_and_dash(&self, groups: &Groups) -> bool {
        let before = self.text[..self.place - groups.length].trim_end_matches('-');
        before.ends_with(char::is_alphabetic)
    }

    /// As in 2,000.
    fn is_thousands(&self) -> bool {
        self.byte(0) == b','
            && (1..4).all(|ahead| self.byte(ahead).is_ascii_digit())
            && !self.byte(4).is_ascii_digit()
    }

    /// Read the suffix of the digits of a date; `None` if other letters follow.
    fn suffix(&mut self, groups: &Groups) -> Option<Suffix> {
        let start = self.place;
        self.skip(is_word);
        let letters = &self.text[start..self.place];
        let is = |known: &str| letters.eq_ignore_ascii_case(known);
        match groups.count {
            _ if letters.is_empty() => Some(Suffix::None),
            1 if ["st", "nd", "rd", "th", "er"].into_iter().any(is) => Some(Suffix::Ordinal),
            1 if letters == "s" => Some(Suffix::Plural),
            // The time of an ISO 8601 date.
            3 if letters.starts_with('T')
                && letters[1..].starts_with(|one: char| one.is_ascii_digit()) =>
            {
                self.junk();
                Some(Suffix::None)
            }
            _ => None,
        }
    }

    /// Whether the next characters make the number a price, a share, a time or a part of an id.
    fn continues(&self) -> bool {
        match self.peek() {
            Some('%' | '°' | '€' | '$' | '£' | '¥' | '@' | '/' | '\\' | '+' | '=' | '#') => {
                true
            }
            Some(':' | '.' | '-') => self.byte(1).is_ascii_digit(),
            _ => false,
        }
    }
}

fn is_word(character: char) -> bool {
    if character.is_ascii() {
        character.is_ascii_alphanumeric() || character == '_'
    } else {
        character.is_alphanumeric() && !is_east_asian(character)
    }
}

fn plain_mark(mark: char) -> char {
    match mark {
        '–' | '—' | '‑' => '-',
        '’' | '‘' => '\'',
        _ => mark,
    }
}

/// Up to four groups of digits with the signs between them.
#[derive(Default)]
struct Groups {
    values: [i64; 4],
    digits: [usize; 4],
    signs: [u8; 4],
    count: usize,
    length: usize,
}

impl Groups {
    fn read(scanner: &mut Scanner<'_>) -> Self {
        let mut groups = Self::default();
        let start = scanner.place;
        loop {
            groups.group(scanner);
            let Some(sign) = sign(scanner).filter(|_| groups.count < 4) else {
                break;
            };
            groups.signs[groups.count - 1] = sign.0;
            scanner.place += sign.1;
        }
        groups.length = scanner.place - start;
        groups
    }

    fn group(&mut self, scanner: &mut Scanner<'_>) {
        let start = scanner.place;
        let mut value: i64 = 0;
        while scanner.byte(0).is_ascii_digit() {
            value = value.saturating_mul(10).saturating_add(i64::from(scanner.byte(0) - b'0'));
            scanner.place += 1;
        }
        self.values[self.count] = value;
        self.digits[self.count] = scanner.place - start;
        self.count += 1;
    }

    fn kind(&self, suffix: Suffix) -> Option<Kind> {
        let [first, second, third, _] = self.values;
        let [first_digits, second_digits, third_digits, _] = self.digits;
        let is_day_or_month = |digits| digits <= 2;
        match (self.count, &self.signs[..self.count - 1]) {
            (1, _) if first_digits <= 4 => {
                Some(Kind::Number { value: first, digits: first_digits, suffix })
            }
            (2, b"-" | b"/") if first_digits == 4 && second_digits == 2 => month_of(first, second),
            (2, b"/" | b".") if first_digits == 2 && second_digits == 4 => month_of(second, first),
            (2, b"/") if first_digits == 1 && second_digits == 1 => Some(Kind::Fraction),
            (2, b"-") if first < second && first_digits == second_digits => {
                Some(Kind::Pair(first, second))
            }
            (2, b"-") if first < second && is_day_or_month(second_digits) => {
                Some(Kind::Pair(first, second))
            }
            (3, b"--" | b"//" | b"..") if first_digits == 4 && is_day_or_month(second_digits) => {
                let is_full = second_digits == 2 && third_digits == 2;
                let is_date = is_full || self.signs[0] != b'.' && third_digits <= 2;
                (is_date && is_year(first)).then_some(Kind::Digits(first, second, third))
            }
            (3, b"--" | b"//" | b"..") if is_day_or_month(first_digits.max(second_digits)) => {
                let year = self.last_year()?;
                let is_day_first = self.signs[0] == b'.' || first > 12;
                let (day, month) = if is_day_first { (first, second) } else { (second, first) };
                Some(Kind::Digits(year, month, day))
            }
            _ => None,
        }
    }

    /// Two digits only between slashes: 7/5/23 is a date, 1.2.23 rather a version.
    fn last_year(&self) -> Option<i64> {
        let year = self.values[2];
        match self.digits[2] {
            4 if is_year(year) => Some(year),
            2 if self.signs[0] == b'/' => Some(full_year(year)),
            _ => None,
        }
    }
}

fn month_of(year: i64, month: i64) -> Option<Kind> {
    (is_year(year) && (1..=12).contains(&month)).then_some(Kind::Digits(year, month, 0))
}

/// The year of two digits, with the pivot of POSIX `strptime`: 69 to 99 are in the 1900s.
pub(super) fn full_year(two_digits: i64) -> i64 {
    if two_digits < 69 { 2000 + two_digits } else { 1900 + two_digits }
}

/// The sign between two groups of digits, and its length.
fn sign(scanner: &Scanner<'_>) -> Option<(u8, usize)> {
    let first = scanner.byte(0);
    if b".-/".contains(&first) && scanner.byte(1).is_ascii_digit() {
        return Some((first, 1));
    }
    let is_dash = scanner.rest().starts_with('–') && scanner.byte('–'.len_utf8()).is_ascii_digit();
    is_dash.then_some((b'-', '–'.len_utf8()))
}
