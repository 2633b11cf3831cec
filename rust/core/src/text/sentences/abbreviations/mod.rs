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

/// Classes of abbreviations, by what they go on before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Before words in lower case and numbers.
    BeforeLower,
    /// Also before words in upper case, but for those that begin many sentences.
    BeforeName,
    /// Before everything: titles, "e.g.".
    Always,
}

/// Words of a language, in lower case, apart by white space; abbreviations without the last full
/// stop.
struct Words {
    always: &'static str,
    before_name: &'static str,
    before_lower: &'static str,
    /// Words that begin many sentences and no names.
    starters: &'static str,
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
    starters: HashSet<&'static str>,
    months: HashSet<&'static str>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut classes = HashMap::new();
    for words in LANGUAGES {
        for (list, class) in [
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
    Tables { classes, starters: all(|words| words.starters), months: all(|words| words.months) }
});

/// The class of an abbreviation, which is given without its last full stop.
pub(super) fn class(word: &str) -> Option<Class> {
    in_lower_case([word], |word| {
        let known = TABLES.classes.get(word).copied();
        known.or_else(|| is_street(word).then_some(Class::BeforeName))
    })
}

/// The class of an abbreviation in two words, such as "z. B.".
pub(super) fn class_of_pair(first: &str, second: &str) -> Option<Class> {
    in_lower_case([first, ".", second], |word| TABLES.classes.get(word).copied())
}

/// Whether a German street: "Hauptstr".
fn is_street(word: &str) -> bool {
    word.len() > 4 && word.ends_with("str")
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
