//! Words in a word: the parts of an identifier, and a Korean noun without its particles.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::language::Language;
use super::unicode::{NFKC, is_invisible, is_mark};
use super::word_table::list;
use super::words::{Analysis, Word, each_word};

/// Call `visit` with every word of `text` in order, each before its parts; [`Word::parts`] tells how
/// many of the words behind a word are parts of it.
pub(crate) fn each_word_and_part(text: &str, analysis: Analysis, mut visit: impl FnMut(Word<'_>)) {
    let text = &*if text.is_ascii() { Cow::Borrowed(text) } else { NFKC.normalize(text) };
    let mut start = 0;
    if may_have_parts(text.as_bytes()) {
        for (at, joined) in runs(text) {
            let parts = parts_of(joined);
            if !parts.is_empty() {
                each_noun(&text[start..at], analysis, &mut visit);
                take_joined(joined, &parts, analysis, &mut visit);
                start = at + joined.len();
            }
        }
    }
    each_noun(&text[start..], analysis, &mut visit);
}

/// Visit a word and then its parts; the parts alone where the whole is no single word.
fn take_joined(joined: &str, texts: &[&str], analysis: Analysis, visit: &mut impl FnMut(Word<'_>)) {
    let (wholes, parts) = (words_of(&[joined], analysis), words_of(texts, analysis));
    let is_emphasis = *texts == [joined.trim_matches('_')];
    if let [(whole, language)] = wholes.as_slice()
        && !is_emphasis
    {
        visit(Word { text: whole, language: *language, parts: parts.len() });
    }
    for (part, language) in &parts {
        visit(Word { text: part, language: *language, parts: 0 });
    }
}

fn words_of(texts: &[&str], analysis: Analysis) -> Vec<(String, Option<Language>)> {
    let mut words = Vec::new();
    for text in texts {
        each_word(text, analysis, |word| words.push((word.text.to_owned(), word.language)));
    }
    words
}

/// Whether a text may have a word with parts.
fn may_have_parts(text: &[u8]) -> bool {
    let is_ascii = text.is_ascii();
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    let joins = |both: &[u8]| match (both[0], both[1]) {
        (b'_', _) | (_, b'_') => true,
        (b':' | b'.', other) if is_ascii => is_letter(other),
        (one, b':' | b'.') if !is_ascii => is_letter(one),
        (one, other) => {
            other.is_ascii_uppercase() && one.is_ascii_alphabetic()
                || other.is_ascii_alphabetic() && one.is_ascii_digit()
        }
    };
    text.windows(2).any(joins)
}

/// The runs of characters that are joined to words, with their places.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_joined = |one: char| {
        one.is_alphanumeric()
            || matches!(one, '_' | ':' | '.' | '\'' | '’')
            || !one.is_ascii() && (is_mark(one) || is_invisible(one))
    };
    text.split(move |one| !is_joined(one))
        .filter(|run| !run.is_empty())
        .map(|run| (run.as_ptr() as usize - text.as_ptr() as usize, run))
}

/// The parts of a run: between low lines, between letters with a colon or full stop between them,
/// where a small letter comes before a capital, and a number before its unit. None where there is no
/// such place. Parts of a single character are none, nor are numbers alone.
fn parts_of(run: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = run.char_indices().collect();
    let (mut parts, mut start) = (Vec::new(), 0);
    for (place, (at, one)) in characters.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| characters[before].1);
        let behind = characters.get(place + 1).map(|(_, behind)| *behind);
        if is_joiner(before, *one, behind) {
            parts.push(&run[start..*at]);
            start = at + one.len_utf8();
        } else if begins_part(before, *one, behind) {
            parts.push(&run[start..*at]);
            start = *at;
        }
    }
    if start == 0
        && let Some((number, unit)) = quantity(run)
    {
        parts.push(number);
        start = run.len() - unit.len();
    }
    if start == 0 {
        return parts;
    }
    parts.push(&run[start..]);
    let is_other = |one: char| !one.is_alphanumeric();
    for part in &mut parts {
        *part = part.trim_end_matches(is_other);
    }
    parts.retain(|part| part.chars().nth(1).is_some() || part.starts_with(char::is_numeric));
    let is_number = |part: &&str| part.chars().all(char::is_numeric);
    if parts.iter().all(is_number) { Vec::new() } else { parts }
}

fn is_joiner(before: Option<char>, one: char, behind: Option<char>) -> bool {
    let is_letter = |beside: Option<char>| beside.is_some_and(char::is_alphabetic);
    one == '_' || matches!(one, ':' | '.') && is_letter(before) && is_letter(behind)
}

fn begins_part(before: Option<char>, one: char, behind: Option<char>) -> bool {
    let Some(before) = before.filter(|_| one.is_ascii_uppercase()) else { return false };
    let ends_capitals = behind.is_some_and(|behind| behind.is_ascii_lowercase());
    before.is_ascii_lowercase() || before.is_ascii_uppercase() && ends_capitals
}

/// A number, and the letters that are written against it.
fn quantity(run: &str) -> Option<(&str, &str)> {
    let end = run.find(|one: char| !one.is_ascii_digit()).filter(|end| *end > 0)?;
    let (number, unit) = run.split_at(end);
    unit.chars().all(char::is_alphabetic).then_some((number, unit))
}

/// Particles of Korean nouns, the longer ones before those that they end with.
static PARTICLES: LazyLock<Vec<&str>> =
    LazyLock::new(|| list(include_str!("../../data/korean_particles.txt"), "particles").collect());

/// Call `visit` with every word of a text, a Korean one before the same without particles.
fn each_noun(text: &str, analysis: Analysis, visit: &mut impl FnMut(Word<'_>)) {
    if text.is_ascii() {
        return each_word(text, analysis, visit);
    }
    each_word(text, analysis, |word| {
        let nouns =
            || std::iter::successors(without_particle(word.text), |noun| without_particle(noun));
        visit(Word { parts: nouns().count(), ..word });
        nouns().for_each(|noun| visit(Word { text: noun, language: None, parts: 0 }));
    });
}

/// The noun that a Korean word is without its last particle.
fn without_particle(word: &str) -> Option<&str> {
    let is_syllable = |one: char| ('가'..='힣').contains(&one);
    if !word.ends_with(is_syllable) {
        return None;
    }
    PARTICLES
        .iter()
        .find_map(|particle| word.strip_suffix(particle).filter(|noun| noun.ends_with(is_syllable)))
}
