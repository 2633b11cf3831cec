//! Names in a text: found as whole words, left out or put into the first person.

use std::ops::Range;

use super::ordinary_names::DETERMINERS;
use super::unicode::{NFKC, is_mark};
use super::words::is_unspaced;

/// The words of a text with their places in it: runs of letters, digits and their marks; in scripts
/// without spaces between words, each character.
pub(crate) fn words(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut words = Vec::new();
    // Where a word began, and whether letters may follow.
    let mut begun: Option<(usize, bool)> = None;
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_special = !character.is_ascii(); // neither a mark nor of such a script otherwise
        let is_mark = is_special && is_mark(character);
        let is_alone = is_special && is_unspaced(character);
        let is_letter = character.is_alphanumeric() && !is_mark;
        let continues = |grows: bool| is_mark || is_letter && grows && !is_alone;
        if begun.is_some_and(|(_, grows)| continues(grows)) {
            continue;
        }
        words.extend(begun.map(|(start, _)| (start..at, &text[start..at])));
        begun = is_letter.then_some((at, !is_alone));
    }
    words
}

/// Look-up keys of the words of a text, without differences of case and Unicode form.
pub(crate) fn keys(text: &str) -> Vec<String> {
    words(text).into_iter().map(|(_, word)| spelled(word, true)).collect()
}

/// The look-up key of one word.
pub(crate) fn key(word: &str) -> String {
    spelled(word, true)
}

/// Whether two words differ in nothing but Unicode form.
pub(crate) fn is_spelled_alike(one: &str, other: &str) -> bool {
    spelled(one, false) == spelled(other, false)
}

pub(super) fn spelled(word: &str, in_lower_case: bool) -> String {
    let word = NFKC.normalize(word);
    if in_lower_case { word.to_lowercase() } else { word.into_owned() }
}

/// The separator between two words of a text, normalised.
pub(super) fn gap(text: &str, pair: &[(Range<usize>, &str)]) -> String {
    let mut gap = String::new();
    for character in text[pair[0].0.end..pair[1].0.start].chars() {
        match character {
            one if one.is_whitespace() && gap.ends_with(' ') => {}
            one if one.is_whitespace() => gap.push(' '),
            one if is_apostrophe(one) => gap.push('\''),
            one if is_hyphen(one) => gap.push('-'),
            one => gap.push(one),
        }
    }
    gap
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '’' | '‘' | '‛' | '＇' | 'ʼ')
}

/// U+2010 and U+2011 are hyphens as well.
fn is_hyphen(character: char) -> bool {
    matches!(character, '-' | '\u{2010}' | '\u{2011}')
}

/// Where a name stands in a text, its possessive ending included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) place: Range<usize>,
    is_possessive: bool,
}

impl Mention {
    /// The mention of a name at a place; none if that is a part of a longer word.
    pub(crate) fn at(text: &str, place: Range<usize>) -> Option<Self> {
        if is_joined(text, place.clone()) {
            return None;
        }
        let ending = possessive(text, &place);
        Some(Self { place: place.start..place.end + ending, is_possessive: ending > 0 })
    }
}

/// Whether a text has no upper-case letter: in such a text case counts for no name.
pub(crate) fn is_all_lower(text: &str) -> bool {
    !text.chars().any(char::is_uppercase)
}

/// Whether a determiner stands before a word, which is no name then unless its case shows that.
pub(crate) fn is_determined(words: &[(Range<usize>, &str)], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| DETERMINERS.has(&key(words[before].1)))
}

/// Whether a hyphen makes a place part of a longer word.
fn is_joined(text: &str, place: Range<usize>) -> bool {
    let mut before = text[..place.start].chars().rev();
    let mut after = text[place.end..].chars();
    let is_hyphened = |mut rest: [Option<char>; 2]| {
        rest[0].take().is_some_and(is_hyphen) && rest[1].is_some_and(char::is_alphanumeric)
    };
    is_hyphened([before.next(), before.next()]) || is_hyphened([after.next(), after.next()])
}

/// Bytes of an ending such as "'s", or of the bare apostrophe of "James'", behind a place.
fn possessive(text: &str, place: &Range<usize>) -> usize {
    let mut rest = text[place.end..].chars();
    let Some(apostrophe) = rest.next().filter(|one| is_apostrophe(*one)) else { return 0 };
    let mut rest = rest.peekable();
    if rest.next_if(|one| matches!(one, 's' | 'S')).is_some() {
        let goes_on = rest.next().is_some_and(char::is_alphanumeric);
        return if goes_on { 0 } else { apostrophe.len_utf8() + 1 };
    }
    let is_quoted = text[..place.start].chars().next_back().is_some_and(is_apostrophe);
    let is_bare = rest.next().is_some_and(char::is_whitespace);
    let ends_in_s = text[place.clone()].ends_with(['s', 'S']);
    if is_bare && ends_in_s && !is_quoted { apostrophe.len_utf8() } else { 0 }
}

/// The text without these mentions, unless nothing would be left of it.
pub(crate) fn without<'m>(text: &str, mentions: impl IntoIterator<Item = &'m Mention>) -> String {
    let rest = replaced(text, mentions, |_| "");
    if words(&rest).is_empty() { text.to_owned() } else { rest }
}

/// The text in the first person of the mentioned: "I" and "my" in place of names.
pub(crate) fn in_first_person<'m>(
    text: &str,
    mentions: impl IntoIterator<Item = &'m Mention>,
) -> String {
    replaced(text, mentions, |mention| if mention.is_possessive { "my" } else { "I" })
}

fn replaced<'m>(
    text: &str,
    mentions: impl IntoIterator<Item = &'m Mention>,
    by: impl Fn(&Mention) -> &'static str,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for mention in mentions {
        out.push_str(&text[end..mention.place.start]);
        out.push_str(by(mention));
        end = mention.place.end;
    }
    out.push_str(&text[end..]);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::mentions::Mentions;
    use super::*;

    fn mentions(text: &str, names: &[&str]) -> Mentions {
        let counts_case = !is_all_lower(text);
        Mentions::of(text, names.iter().map(|name| (*name, counts_case)))
    }

    fn found(text: &str, names: &[&str]) -> Vec<Mention> {
        mentions(text, names).found.into_iter().map(|(mention, _)| mention).collect()
    }

    fn in_first_person(text: &str, names: &[&str]) -> String {
        super::in_first_person(text, &found(text, names))
    }

    fn without(text: &str, names: &[&str]) -> String {
        super::without(text, &found(text, names))
    }

    fn is_named(text: &str, name: &str) -> bool {
        !found(text, &[name]).is_empty()
    }

    fn are_named(text: &str, names: &[&str]) -> Vec<bool> {
        let mentions = mentions(text, names);
        let groups = || mentions.found.iter().map(|(_, group)| &mentions.groups[*group]);
        let is_named = |at| groups().any(|names| names.contains(&at));
        (0..names.len()).map(is_named).collect()
    }

    #[test]
    fn names_become_the_first_person() {
        let names = ["Ana", "Juan Pablo"];
        let said = |text| in_first_person(text, &names);
        assert_eq!(said("What did Ana paint?"), "What did I paint?");
        assert_eq!(said("What is Ana's dog called?"), "What is my dog called?");
        assert_eq!(said("Ana’s   new job"), "my new job");
        assert_eq!(said("When did Juan Pablo move?"), "When did I move?");
        assert_eq!(said("Is Juan, Pablo or Anabel here?"), "Is Juan, Pablo or Anabel here?");
        assert_eq!(said("what does ana's sister eat"), "what does my sister eat");
        assert_eq!(said("Would ana come?"), "Would ana come?", "case counts where there is any");
    }

    #[test]
    fn names_can_be_left_out() {
        assert_eq!(
            without("Where does Will live, and will he move?", &["Will"]),
            "Where does live, and will he move?"
        );
        assert_eq!(without("Will's", &["Will"]), "Will's", "nothing would be left");
        assert!(is_named("Ask Will.", "Will"));
        assert!(!is_named("It will.", "Will"));
        assert!(!is_named("", "Will"));
        assert!(!is_named("Will", "") && !is_named("Will", "?!"));
        assert_eq!(without("Will  left", &["", "?!"]), "Will left");
        assert_eq!(in_first_person("", &["Will"]), "");
    }

    #[test]
    fn of_names_that_begin_alike_the_longest_counts() {
        let names = ["Juan", "Juan Pablo", "Pablo"];
        assert_eq!(are_named("Did Juan Pablo call?", &names), [false, true, false]);
        assert_eq!(are_named("Did Juan call Pablo?", &names), [true, false, true]);
        assert_eq!(are_named("Juan Pablo and Juan", &names), [true, true, false]);
        assert_eq!(in_first_person("Juan Pablo's and Juan's", &names), "my and my");
        assert_eq!(are_named("anabel", &["Ana", "Anabel"]), [false, true]);
        assert_eq!(are_named("is ana here", &["Ana", "ana", "Bo"]), [true, true, false]);
        assert_eq!(are_named("", &names), [false; 3]);
        assert_eq!(are_named("Juan", &[]), [false; 0]);
    }

    #[test]
    fn names_with_apostrophes_and_hyphens_are_whole() {
        let names = ["O'Brien", "Jean-Luc", "Anne", "J. R. Lee"];
        for (text, wanted) in [
            ("When did O’Brien sail?", "When did I sail?"),
            ("O'Brien's boat", "my boat"),
            ("Jean‑Luc’s tea", "my tea"),
            ("Anne-Marie sang", "Anne-Marie sang"),
            ("Rose-Anne sang", "Rose-Anne sang"),
            ("Anne - a friend", "I - a friend"),
            ("Would J.  R. Lee come?", "Would I come?"),
            ("Would J R Lee come?", "Would J R Lee come?"),
            ("Anne'll come", "I'll come"),
        ] {
            assert_eq!(in_first_person(text, &names), wanted);
        }
    }

    #[test]
    fn possessives_have_many_forms() {
        let names = ["James", "Ana"];
        for (text, wanted) in [
            ("Where is James' bike?", "Where is my bike?"),
            ("Where is James's bike?", "Where is my bike?"),
            ("Who said 'James' first?", "Who said 'I' first?"),
            ("ANA'S dog", "ANA'S dog"),
            ("Ana'S dog", "my dog"),
            ("Ana's", "my"),
            ("Ana'sun", "I'sun"),
            ("Ana' dog", "I' dog"),
        ] {
            assert_eq!(in_first_person(text, &names), wanted);
        }
    }

    #[test]
    fn names_are_found_in_every_script() {
        for (text, name) in [
            ("Когда Анна приехала?", "Анна"),
            ("विश्वास कब आया?", "विश्वास"),
            ("متى وصلت ليلى؟", "ليلى"),
            ("王芳今天去哪了", "王芳"),
            ("สมชายไปไหน", "สมชาย"),
            ("지수 어디 갔어?", "지수"),
            ("Did Zoe\u{308} win?", "Zoë"),
            ("Did Zoë win?", "Zoe\u{308}"),
        ] {
            assert!(is_named(text, name), "{text}");
            assert!(!without(text, &[name]).contains(name));
        }
        assert!(!is_named("विश्व कहाँ है?", "विश्वास") && !is_named("विश्वास कब आया?", "विश"));
        assert!(!is_named("Did Zoë win?", "Zoe"));
    }
}
