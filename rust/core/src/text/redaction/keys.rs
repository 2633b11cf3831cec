//! Keys and tokens of programs, by the prefixes that their makers have given them.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::util::prefilter::Prefilter;
use regex_automata::{MatchKind, Span};
use serde::Deserialize;

use super::super::word_table::{WordTable, listed, named};
use super::characters::starts_word;
use super::places::Place;

/// Characters that follow a prefix.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Alphabet {
    Hexadecimal,
    /// Letters and digits.
    Alphanumeric,
    /// Those, and hyphens and underscores.
    Token,
    /// Those, and full stops.
    Dotted,
    /// Those of a header, with the signs of Base64.
    Header,
    Base64,
}

use Alphabet::{Alphanumeric, Base64, Dotted, Header, Hexadecimal, Token};

const FILE: &str = include_str!("../../../data/key_prefixes.txt");

/// What follows each prefix.
static KEYS: LazyLock<WordTable<Body>> = LazyLock::new(|| WordTable::of(FILE, body));

#[derive(Clone, Copy)]
struct Body {
    alphabet: Alphabet,
    /// Fewest characters.
    least: usize,
    /// Whether more are too many.
    is_exact: bool,
}

/// What follows the prefixes of a list, by what that is called.
fn body(list: &str) -> Option<Body> {
    let (alphabet, least) = list.split_once(' ')?;
    let exact = least.strip_prefix("exactly ");
    let (least, is_exact) = (exact.unwrap_or(least).parse().ok()?, exact.is_some());
    Some(Body { alphabet: named(alphabet)?, least, is_exact })
}

const JSON_WEB_TOKEN: &str = "eyJ";
const PRIVATE_KEY: &str = "-----BEGIN ";
const BEARER: [&str; 3] = ["Bearer ", "bearer ", "BEARER "];
/// Fewest characters of each of the first two parts of a JSON web token, and of a bearer's token.
const MIN_PART: usize = 8;
const MIN_BEARER: usize = 16;
/// Fewest characters of a line of a private key that was cut off, and of a whole one.
const MIN_LINE: usize = 16;
const MIN_WHOLE_LINE: usize = 8;
/// Characters of a line that need not have letters of both cases and digits.
const LONG_LINE: usize = 40;
/// Most bytes between two lines of a private key: marks of quotations, comments or programs, a tag
/// for each line, headers such as `DEK-Info: AES-256-CBC,4F2A…`.
const MAX_GAP: usize = 256;

/// All prefixes at once; None where the processor has no fast search for them.
static PREFIXES: LazyLock<Option<Prefilter>> = LazyLock::new(|| {
    let others = [JSON_WEB_TOKEN, PRIVATE_KEY];
    let all = listed(FILE).map(|(_, prefix)| prefix).chain(others).chain(BEARER);
    Prefilter::new(MatchKind::LeftmostFirst, &all.collect::<Vec<_>>())
});

/// Call for each prefix of a key.
pub(super) fn for_each_prefix(text: &str, each: &mut dyn FnMut(usize)) {
    let mut at = 0;
    while let Some(start) = next_prefix(text, at) {
        each(start);
        at = start + 1;
    }
}

fn next_prefix(text: &str, at: usize) -> Option<usize> {
    let Some(prefixes) = &*PREFIXES else {
        return (at..text.len()).find(|at| text.is_char_boundary(*at));
    };
    let span = Span { start: at, end: text.len() };
    prefixes.find(text.as_bytes(), span).map(|found| found.start)
}

/// The key whose prefix stands at a place.
pub(super) fn api_key(place: Place<'_>) -> Option<Range<usize>> {
    let Place { text, at, .. } = place;
    let rest = &text[at..];
    if rest.starts_with(PRIVATE_KEY) {
        return private_key_len(rest).map(|len| at..at + len);
    }
    if !starts_word(text, at) || text[..at].ends_with('-') {
        return None;
    }
    let len = match rest.as_bytes()[0] {
        b'e' => json_web_token_len(rest),
        b'B' | b'b' => bearer_len(rest),
        _ => key_len(rest),
    };
    len.map(|len| at..at + len)
}

fn key_len(text: &str) -> Option<usize> {
    let (Body { alphabet, least, is_exact }, prefix) = KEYS.longest(text)?;
    let body = &text[prefix..];
    let len = run(body, alphabet);
    let is_long = len >= least && !(is_exact && len > least);
    let is_key = is_long && is_random(&body[..len]);
    is_key.then(|| prefix + body[..len].trim_end_matches('.').len())
}

/// Whether a body is no row of words such as `learn-to-build-the-tree`.
fn is_random(body: &str) -> bool {
    let unlike = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    body.bytes().any(unlike) || !body.contains(['-', '_', '.'])
}

/// Three parts, or the five of an encrypted one; the signature may be missing.
fn json_web_token_len(text: &str) -> Option<usize> {
    let mut len = run(text, Token);
    if len < JSON_WEB_TOKEN.len() + MIN_PART {
        return None;
    }
    for part in 1..5 {
        let Some(next) = text[len..].strip_prefix('.') else { break };
        let size = run(next, Token);
        if part == 1 && size < MIN_PART {
            return None;
        }
        if size == 0 && !next.starts_with('.') {
            break;
        }
        len += 1 + size;
    }
    text[..len].contains('.').then_some(len)
}

/// The word, spaces and a token with a digit in it.
fn bearer_len(text: &str) -> Option<usize> {
    let prefix = BEARER.into_iter().find(|prefix| text.starts_with(prefix))?;
    let token = text[prefix.len()..].trim_start_matches(' ');
    let body = token[..run(token, Header)].trim_end_matches('.');
    let is_key = body.len() >= MIN_BEARER && body.bytes().any(|byte| byte.is_ascii_digit());
    is_key.then_some(text.len() - token.len() + body.len())
}

/// A private key from its first line to its last, or as far as it was copied, whatever stands before
/// and behind each line; None for a first line alone, which has nothing secret in it.
fn private_key_len(text: &str) -> Option<usize> {
    let header = text[PRIVATE_KEY.len()..].find("-----").filter(|len| *len < 40)?;
    if !text[PRIVATE_KEY.len()..][..header].contains("PRIVATE KEY") {
        return None;
    }
    let mut at = PRIVATE_KEY.len() + header + 5;
    let (mut end, mut last, mut has_lines) = (None, at, false);
    while at < text.len() && at - last <= MAX_GAP && !text[at..].starts_with(PRIVATE_KEY) {
        let rest = &text[at..];
        if let Some(footer) = footer_len(rest).filter(|_| has_lines) {
            return Some(at + footer);
        }
        let line = &rest[..run(rest, Base64)];
        at += line.len();
        if is_line(line) {
            end = Some(at);
        }
        if is_line(line) || is_whole_line(line) {
            (last, has_lines) = (at, true);
        }
        at += text[at..].chars().next().filter(|_| line.is_empty()).map_or(0, char::len_utf8);
    }
    end
}

/// Whether a run of characters of Base64 is a line of a key: neither a word, a path nor a digest.
fn is_line(run: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| run.bytes().any(|byte| kind(&byte));
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    run.len() >= MIN_LINE
        && has(u8::is_ascii_uppercase)
        && (is_mixed || run.len() >= LONG_LINE)
        && run.matches('/').count() * 8 <= run.len()
}

/// Whether a run is one where the last line follows: it has capitals as no word has, or digits too.
fn is_whole_line(run: &str) -> bool {
    let capitals = run.bytes().filter(u8::is_ascii_uppercase).count();
    let has_digit = run.bytes().any(|byte| byte.is_ascii_digit());
    run.len() >= MIN_WHOLE_LINE && capitals > 0 && (has_digit || 2 * capitals >= run.len())
}

/// The length of the last line of a private key.
fn footer_len(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("-----END ")?;
    let len = rest.find("-----").filter(|len| *len < 40)?;
    Some(text.len() - rest.len() + len + 5)
}

fn run(text: &str, alphabet: Alphabet) -> usize {
    let belongs = |byte: &u8| match alphabet {
        Hexadecimal => byte.is_ascii_hexdigit(),
        Alphanumeric => byte.is_ascii_alphanumeric(),
        Token => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
        Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
        Header => {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'+' | b'/' | b'=')
        }
        Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
    };
    text.bytes().take_while(belongs).count()
}
