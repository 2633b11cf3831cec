//! Label and question marks of a turn in a dialogue.

use super::roles::is_role;

/// A turn taken apart; everything borrows from its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<'content> {
    /// The name before the first ": ", without white space around it.
    pub label: Option<&'content str>,
    /// The content behind the label, or all of it; white space at both ends is left out.
    pub body: &'content str,
    /// Whether the body ends with a question mark.
    pub asks: bool,
    /// Whether the body has a question mark anywhere, also in a note.
    pub mentions_question: bool,
}

const MAX_LABEL_CHARACTERS: usize = 40;
const MAX_LABEL_WORDS: usize = 4;
const LONGEST_CHARACTER: usize = 4;

/// Take a turn apart.
///
/// A label is at most 4 words and 40 characters, each word with an upper-case letter or one of a
/// script without case in front, or a role such as "user", in any case. "Note: buy milk" has a label
/// as well: only recurring labels are speakers, which one turn does not show.
///
/// The body asks if it ends with `?`, `？`, `؟`, `;` (Greek) or another question mark; quotes,
/// brackets, emoji, further punctuation `!` and a note in brackets such as "[shares a photo: …]" may
/// follow it.
///
/// # Examples
/// ```
/// use mnemic_core::text::turn;
///
/// let turn = turn("Anna Lee: Did you see it? 😀 [shares a photo]");
/// assert_eq!(turn.label, Some("Anna Lee"));
/// assert_eq!(turn.body, "Did you see it? 😀 [shares a photo]");
/// assert!(turn.asks);
/// ```
pub fn turn(content: &str) -> Turn<'_> {
    let content = content.trim();
    let (label, body) = match split_label(content) {
        Some((label, body)) => (Some(label), body),
        None => (None, content),
    };
    let mentions_question = has_question_mark(body);
    Turn { label, body, asks: mentions_question && asks(body), mentions_question }
}

fn split_label(content: &str) -> Option<(&str, &str)> {
    let reach = content.len().min(MAX_LABEL_CHARACTERS * LONGEST_CHARACTER + 1);
    let colon = content.as_bytes()[..reach].iter().position(|byte| *byte == b':')?;
    let (label, rest) = (content[..colon].trim_end(), &content[colon + 1..]);
    let is_followed = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (is_followed && is_label(label)).then(|| (label, rest.trim_start()))
}

fn is_label(label: &str) -> bool {
    let mut count = 0;
    let is_name = label.split(char::is_whitespace).filter(|word| !word.is_empty()).all(|word| {
        count += 1;
        count <= MAX_LABEL_WORDS && is_name_or_role(word)
    });
    is_name && count > 0 && label.chars().nth(MAX_LABEL_CHARACTERS).is_none()
}

fn is_name_or_role(word: &str) -> bool {
    let is_in_name = |one: char| {
        one.is_alphanumeric() || matches!(one, '.' | '\'' | '’' | '-' | '_') || is_mark(one)
    };
    let begins = |one: char| one.is_alphabetic() && !one.is_lowercase();
    word.starts_with(begins) && word.chars().all(is_in_name) || is_role(word) // in chat interfaces without a capital
}

/// The joining marks of Devanagari and its relatives, Thai and Arabic, which are not alphabetic.
fn is_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}' | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{dff}' | '\u{e31}'..='\u{e4e}' | '\u{200c}' | '\u{200d}')
}

/// Question marks: ASCII, Greek, Armenian, Arabic, Ethiopic, double ones, full-width and others.
fn is_question_mark(character: char) -> bool {
    matches!(
        character,
        '?' | '\u{37e}' | '\u{55e}' | '\u{61f}' | '\u{1367}' | '\u{203d}' | '\u{2047}'
            ..='\u{2049}' | '\u{2753}' | '\u{2754}' | '\u{a60f}' | '\u{fe56}' | '\u{ff1f}'
    )
}

fn has_question_mark(body: &str) -> bool {
    if body.is_ascii() { body.as_bytes().contains(&b'?') } else { body.contains(is_question_mark) }
}

fn asks(body: &str) -> bool {
    let mut rest = body;
    loop {
        rest = rest.trim_end_matches(is_trailing);
        if rest.ends_with(is_question_mark) {
            return true;
        }
        let Some(shorter) = without_note(rest) else {
            return false;
        };
        rest = shorter;
    }
}

/// The text before a bracketed note that ends it.
fn without_note(body: &str) -> Option<&str> {
    let inner = body.strip_suffix(']')?;
    let mut depth = 1;
    let opening = inner.bytes().rposition(|byte| {
        depth += i32::from(byte == b']') - i32::from(byte == b'[');
        depth == 0
    })?;
    Some(&inner[..opening])
}

/// Characters that may follow the mark that ends a sentence: no letter, digit or other punctuation.
fn is_trailing(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_whitespace() || b"\"'`)}*_~!".contains(&(character as u8));
    }
    character.is_whitespace() || is_closing_quote(character) || is_emoji(character)
}

fn is_closing_quote(character: char) -> bool {
    "”’“»›」』）】！".contains(character)
}

/// Symbols and pictographs with their joiners, colours and tags, but no question marks.
fn is_emoji(character: char) -> bool {
    !is_question_mark(character)
        && matches!(
            character,
            '\u{200d}' | '\u{20e3}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{27bf}' | '\u{2934}'..='\u{2935}'
                | '\u{2b00}'..='\u{2bff}' | '\u{fe0e}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}' | '\u{e0020}'..='\u{e007f}'
        )
}
