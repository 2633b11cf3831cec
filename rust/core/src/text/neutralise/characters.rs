//! Characters without a picture: white space becomes one space or one break, the others go unless
//! spelling needs them.

use std::borrow::Cow;
use std::sync::LazyLock;

use icu_properties::props::{Emoji, ExtendedPictographic, Script};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::super::bytes::position;
use super::super::code_points::{CodePoints, is_in, ranges, script};
use super::super::word_table::list;

const FILE: &str = include_str!("../../../data/invisible.txt");

static INVISIBLE: CodePoints = CodePoints::new(|| ranges(FILE, "invisible"));
static JOINED_SCRIPTS: LazyLock<Vec<Script>> =
    LazyLock::new(|| list(FILE, "joined scripts").map(script).collect());

/// Whether a byte may begin a character that is not simply kept, but for spaces. Continuation bytes
/// never do; the first bytes named are those of U+0080 to U+00BF, U+0340 to U+037F, U+0600 to U+063F,
/// U+1000 to U+3FFF, U+F000 to U+1FFFF and of planes 3 on.
fn is_suspicious(byte: u8) -> u8 {
    let is_control = u8::from(byte < 0x20) | u8::from(byte == 0x7f);
    let is_of_two = u8::from(byte == 0xc2) | u8::from(byte == 0xcd) | u8::from(byte == 0xd8);
    let is_of_three = u8::from(byte.wrapping_sub(0xe1) < 3);
    is_control | is_of_two | is_of_three | u8::from(byte >= 0xef)
}

/// The treatment of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kept,
    Space,
    Break,
    Removed,
    /// Kept between certain neighbours alone.
    Joiner,
    /// Kept behind certain characters alone.
    Selector,
}

/// Return the text with single spaces, a line feed for each white space with a line break in it,
/// none of either at the ends, and without invisible characters.
pub(super) fn cleaned(text: &str) -> Cow<'_, str> {
    if is_clean_ascii(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let mut cleaner = Cleaner { kept: String::with_capacity(text.len()), space: None, held: None };
    let mut rest = text;
    while !rest.is_empty() {
        let (plain, suspicious) = rest.split_at(plain_length(rest));
        cleaner.keep_plain(plain);
        let mut characters = suspicious.chars();
        if let Some(character) = characters.next() {
            cleaner.treat(character);
        }
        rest = characters.as_str();
    }
    if cleaner.kept.ends_with(' ') {
        cleaner.kept.pop();
    }
    if cleaner.kept == text { Cow::Borrowed(text) } else { Cow::Owned(cleaner.kept) }
}

/// The length of the text in front of the first character that is not simply kept.
fn plain_length(text: &str) -> usize {
    let mut end = 0;
    loop {
        end = position(&text.as_bytes()[end..], is_suspicious).map_or(text.len(), |at| end + at);
        match text[end..].chars().next() {
            Some(character) if kind(character) == Kind::Kept => end += character.len_utf8(),
            _ => return end,
        }
    }
}

fn has_double_space(text: &[u8]) -> bool {
    let is_double = |pair: &[u8]| pair[0] == b' ' && pair[1] == b' ';
    text.windows(2).fold(false, |any, pair| any | is_double(pair))
}

/// Whether a text is ASCII with nothing to clean. There is no early exit, so that the loops become
/// vector instructions.
fn is_clean_ascii(text: &[u8]) -> bool {
    let is_picture = |byte: u8| (0x20..0x7f).contains(&byte);
    text.iter().fold(true, |clean, &byte| clean & is_picture(byte))
        && !has_double_space(text)
        && text.first() != Some(&b' ')
        && text.last() != Some(&b' ')
}

struct Cleaner {
    kept: String,
    /// The white space between what was kept and what follows.
    space: Option<char>,
    /// A joiner that the next character decides on.
    held: Option<char>,
}

impl Cleaner {
    /// Keep a text without suspicious bytes, its white space collapsed.
    fn keep_plain(&mut self, plain: &str) {
        if !has_double_space(plain.as_bytes()) {
            let word = plain.trim_start_matches(' ');
            if word.len() < plain.len() {
                self.add_space(' ');
            }
            self.keep(word);
            return;
        }
        for (at, word) in plain.split(' ').enumerate() {
            if at > 0 {
                self.add_space(' ');
            }
            self.keep(word);
        }
    }

    /// Keep a text whose spaces are single, with none in front.
    fn keep(&mut self, text: &str) {
        let Some(next) = text.chars().next() else { return };
        if let Some(space) = self.space.take().filter(|_| !self.kept.is_empty()) {
            self.kept.push(space);
        }
        if let Some(joiner) = self.held.take() {
            let previous = self.previous();
            if previous.is_some_and(|previous| joins(previous, joiner, next)) {
                self.kept.push(joiner);
            }
        }
        self.kept.push_str(text);
    }

    fn treat(&mut self, character: char) {
        match kind(character) {
            Kind::Kept | Kind::Removed => {}
            Kind::Space => self.add_space(' '),
            Kind::Break => self.add_space('\n'),
            Kind::Joiner => self.hold(character),
            Kind::Selector => self.select(character),
        }
    }

    fn add_space(&mut self, space: char) {
        self.held = None;
        if self.kept.ends_with(' ') {
            self.kept.pop();
            self.space = Some(' ');
        }
        if self.space != Some('\n') {
            self.space = Some(space);
        }
    }

    fn hold(&mut self, joiner: char) {
        if self.space.is_none() && self.held.is_none() {
            self.held = Some(joiner);
        }
    }

    fn select(&mut self, selector: char) {
        if self.space.is_some() || self.held.is_some() {
            return;
        }
        match self.previous() {
            Some('#' | '*' | '0'..='9') if selector == '\u{fe0f}' => self.held = Some(selector),
            Some(base) if has_variant(base, selector) => self.kept.push(selector),
            _ => {}
        }
    }

    fn previous(&self) -> Option<char> {
        self.kept.chars().next_back()
    }
}

/// The kind of a character. Default-ignorable characters are removed, and all controls; the marks of
/// Arabic numbers and the joints of hieroglyphs are format characters with a picture, and stay.
fn kind(character: char) -> Kind {
    match character {
        '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Kind::Break,
        ' ' | '\t' | '\u{1f}' => Kind::Space,
        '!'..='~' => Kind::Kept,
        '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200c}' | '\u{200d}' => Kind::Joiner,
        '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            Kind::Selector
        }
        _ if is_invisible(character) => Kind::Removed,
        _ if character.is_whitespace() => Kind::Space,
        _ => Kind::Kept,
    }
}

fn is_invisible(character: char) -> bool {
    // The last two of each plane are no characters.
    is_in(&INVISIBLE, character) || u32::from(character) & 0xfffe == 0xfffe
}

/// Whether a joiner is part of the spelling between two characters.
fn joins(previous: char, joiner: char, next: char) -> bool {
    match joiner {
        '\u{fe0f}' => next == '\u{20e3}', // a key: digit, selector, enclosing key cap
        '\u{115f}' => matches!(next, '\u{1161}'..='\u{11a7}'),
        '\u{1160}' => matches!(previous, '\u{1100}'..='\u{115e}'),
        '\u{180e}' => is_mongolian(previous) && is_mongolian(next),
        '\u{200d}' if is_pictographic(next) => ends_emoji(previous),
        _ => needs_joiners(previous) && needs_joiners(next),
    }
}

/// Whether an emoji can end with a character: a picture, a skin tone or a selector behind one.
fn ends_emoji(character: char) -> bool {
    matches!(character, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}') || is_pictographic(character)
}

fn is_pictographic(character: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(character)
}

fn is_mongolian(character: char) -> bool {
    matches!(character, '\u{1820}'..='\u{18aa}')
}

/// Whether words of a character's script are spelled with joiners: where letters join by their
/// place, and where a vowel killer makes conjuncts or shows itself.
fn needs_joiners(character: char) -> bool {
    let script = || CodePointMapData::<Script>::new().get(character);
    !character.is_ascii() && JOINED_SCRIPTS.contains(&script())
}

/// Whether a variation selector may stand behind a character: those of emoji, of Han and of a few
/// signs and scripts.
fn has_variant(base: char, selector: char) -> bool {
    match selector {
        '\u{180b}'..='\u{180f}' => is_mongolian(base),
        '\u{fe0e}' | '\u{fe0f}' => {
            !base.is_ascii() && CodePointSetData::new::<Emoji>().contains(base)
        }
        _ => {
            let script = CodePointMapData::<Script>::new().get(base);
            let is_sign = matches!(base, '\u{2200}'..='\u{22ff}' | '\u{2a00}'..='\u{2aff}');
            matches!(script, Script::Han | Script::Myanmar | Script::PhagsPa | Script::Manichaean)
                || is_sign
        }
    }
}
