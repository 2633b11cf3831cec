//! Abbreviations and other words that decide about a full stop, by language.
//!
//! The lists of all languages are read together: a memory may mix them, and detection needs more
//! text than a sentence has. Where languages disagree about a word, the stronger class counts.

mod english;
mod germanic;
mod greek;
mod other;
mod romance;
mod slavic;

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Classes of abbreviations, by what a sentence goes on with behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Numbers: a word of its own, such as "no" and "art", in other places.
    BeforeNumber,
    /// Also words in lower case.
    BeforeLower,
    /// Also words in upper case, but for those that begin many sentences.
    BeforeName,
    /// Everything: titles, "e.g.".
    Always,
}

/// Words of a language, apart by white space; abbreviations without the last full stop.
///
/// An abbreviation with a capital counts in this spelling alone, another one in any: so "Me." is the
/// French title and "me." is a word.
struct Words {
    always: &'static str,
    before_name: &'static str,
    before_lower: &'static str,
    before_number: &'static str,
    /// Abbreviations behind a number alone; they go on in lower case.
    units: &'static str,
    /// Words that begin many sentences and no names.
    starters: &'static str,
    /// Words with a single letter behind them that is no initial: "vitamin C".
    labels: &'static str,
    /// Months, in languages whose ordinals have a full stop.
    months: &'static str,
}

const LANGUAGES: &[&Words] = &[
    &english::ENGLISH,
    &germanic::GERMAN,
    &germanic::DUTCH,
    &germanic::NORDIC,
    &romance::FRENCH,
    &romance::SPANISH,
    &romance::ITALIAN,
    &romance::PORTUGUESE,
    &slavic::POLISH,
    &slavic::CZECH,
    &slavic::RUSSIAN,
    &greek::GREEK,
    &other::OTHER,
];

/// Words of German, Danish and Norwegian behind which a number with a full stop is an ordinal.
const DETERMINERS: &[&str] = &[
    "ab", "am", "bei", "beim", "bis", "das", "dem", "den", "der", "des", "det", "die", "diese",
    "diesem", "diesen", "dieser", "dieses", "ein", "eine", "einem", "einen", "einer", "eines",
    "ihr", "ihre", "ihrem", "ihren", "ihrer", "im", "ins", "jede", "jedem", "jeden", "jeder",
    "jedes", "mein", "meine", "meinem", "meinen", "meiner", "sein", "seine", "seinem", "seinen",
    "seiner", "seit", "unser", "unsere", "vom", "zum", "zur", "zweiten",
];

/// Words without a vowel that are no abbreviations.
const INTERJECTIONS: &[&str] = &[
    "brb", "brr", "btw", "dm", "grr", "gg", "hm", "hmm", "hmmm", "idk", "lmk", "mhm", "mm", "mmm",
    "msg", "nth", "nvm", "pfft", "pls", "plz", "ppl", "psst", "rn", "shh", "sms", "tbh", "thx",
    "tsk", "tv", "txt", "zzz",
];

const TIMES_OF_DAY: &[&str] = &["a.m", "am", "p.m", "pm"];

const WEEKDAYS: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "est",
    "edt",
    "cst",
    "cdt",
    "mst",
    "mdt",
    "pst",
    "pdt",
    "gmt",
    "utc",
    "cet",
    "cest",
    "bst",
];

const BRANDS: &[&str] = &["jeopardy", "joomla", "yahoo", "yum"];

/// The longest word that is looked up, in bytes.
const LONGEST: usize = 64;

struct Tables {
    classes: HashMap<&'static str, Class>,
    units: HashSet<&'static str>,
    labels: HashSet<&'static str>,
    starters: HashSet<&'static str>,
    months: HashSet<&'static str>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut classes = HashMap::new();
    for words in LANGUAGES {
        for (list, class) in [
            (words.before_number, Class::BeforeNumber),
            (words.before_lower, Class::BeforeLower),
            (words.before_name, Class::BeforeName),
            (words.always, Class::Always),
        ] {
            for word in list.split_whitespace() {
                let known = classes.entry(word).or_insert(class);
                *known = class.max(*known);
            }
        }
    }
    let all = |list: fn(&Words) -> &'static str| {
        LANGUAGES.iter().flat_map(|words| list(words).split_whitespace()).collect()
    };
    Tables {
        classes,
        units: all(|words| words.units),
        labels: all(|words| words.labels),
        starters: all(|words| words.starters),
        months: all(|words| words.months),
    }
});

/// The class of an abbreviation, which is given without its last full stop.
pub(super) fn class(word: &str) -> Option<Class> {
    let in_any_case = in_lower_case([word], |word| {
        let known = TABLES.classes.get(word).copied();
        known.or_else(|| is_street(word).then_some(Class::BeforeName))
    });
    in_any_case.max(TABLES.classes.get(word).copied())
}

/// The class of an abbreviation in two words, such as "z. B.".
pub(super) fn class_of_pair(first: &str, second: &str) -> Option<Class> {
    in_lower_case([first, ".", second], |word| TABLES.classes.get(word).copied())
}

/// Whether a German street: "Hauptstr".
fn is_street(word: &str) -> bool {
    word.len() > 4 && word.ends_with("str")
}

/// Whether a word in front of a full stop and behind a number is a unit.
pub(super) fn is_unit(word: &str) -> bool {
    in_lower_case([word], |word| TABLES.units.get(word).copied()).is_some()
}

/// Whether a single letter behind a word is no initial.
pub(super) fn is_label(word: &str) -> bool {
    in_lower_case([word], |word| TABLES.labels.get(word).copied()).is_some()
}

pub(super) fn is_starter(word: &str) -> bool {
    in_lower_case([word], |word| TABLES.starters.get(word).copied()).is_some()
}

pub(super) fn is_month(word: &str) -> bool {
    in_lower_case([word], |word| TABLES.months.get(word).copied()).is_some()
}

pub(super) fn is_interjection(word: &str) -> bool {
    is_one_of(INTERJECTIONS, word)
}

pub(super) fn is_time_of_day(word: &str) -> bool {
    is_one_of(TIMES_OF_DAY, word)
}

pub(super) fn is_weekday(word: &str) -> bool {
    is_one_of(WEEKDAYS, word)
}

pub(super) fn is_brand(word: &str) -> bool {
    is_one_of(BRANDS, word)
}

pub(super) fn makes_ordinals(word: &str) -> bool {
    is_one_of(DETERMINERS, word)
}

fn is_one_of(words: &[&str], word: &str) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

/// The result of a function of some parts put together in lower case; `None` for too long ones.
fn in_lower_case<const N: usize, T>(
    parts: [&str; N],
    found: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let mut buffer = [0; LONGEST];
    let mut length = 0;
    for character in parts.iter().flat_map(|part| part.chars()).flat_map(char::to_lowercase) {
        let end = length + character.len_utf8();
        character.encode_utf8(buffer.get_mut(length..end)?);
        length = end;
    }
    std::str::from_utf8(&buffer[..length]).ok().and_then(found)
}
