//! Names in a text: found as whole words, left out or put into the first person.

use std::ops::Range;

/// The words of a text: runs of letters and digits, with their places in it.
pub(crate) fn words(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, character) in text.char_indices() {
        match (start, character.is_alphanumeric()) {
            (None, true) => start = Some(at),
            (Some(first), false) => {
                words.push((first..at, &text[first..at]));
                start = None;
            }
            _ => {}
        }
    }
    words.extend(start.map(|first| (first..text.len(), &text[first..])));
    words
}

/// Where a name stands in a text, its possessive ending included.
struct Mention {
    place: Range<usize>,
    is_possessive: bool,
}

/// The mentions of any of `names`, in order. Case counts unless the text is all in lower case.
fn mentions(text: &str, names: &[&str]) -> Vec<Mention> {
    let words = words(text);
    let is_lower = !text.chars().any(char::is_uppercase);
    let names: Vec<Vec<String>> = names.iter().map(|name| spelled(name, is_lower)).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let here = &words[at..];
        let length = names.iter().filter(|name| stands(here, name, text)).map(Vec::len).max();
        let Some(length) = length.filter(|length| *length > 0) else {
            at += 1;
            continue;
        };
        let (start, end) = (here[0].0.start, here[length - 1].0.end);
        let ending = possessive(&text[end..]);
        found.push(Mention { place: start..end + ending, is_possessive: ending > 0 });
        at += length + usize::from(ending > 0);
    }
    found
}

fn spelled(name: &str, is_lower: bool) -> Vec<String> {
    let spell = |word: &str| if is_lower { word.to_lowercase() } else { word.to_owned() };
    words(name).into_iter().map(|(_, word)| spell(word)).collect()
}

/// Whether these words begin with a name, with nothing but white space between its parts.
fn stands(here: &[(Range<usize>, &str)], name: &[String], text: &str) -> bool {
    here.len() >= name.len()
        && here.iter().zip(name).all(|((_, word), part)| word == part)
        && here[..name.len()].windows(2).all(|pair| {
            let between = &text[pair[0].0.end..pair[1].0.start];
            between.chars().all(char::is_whitespace)
        })
}

/// Bytes of an ending such as "'s" at the start of a text.
fn possessive(text: &str) -> usize {
    let mut rest = text.chars();
    let (Some(apostrophe @ ('\'' | '’')), Some('s')) = (rest.next(), rest.next()) else {
        return 0;
    };
    if rest.next().is_some_and(char::is_alphanumeric) { 0 } else { apostrophe.len_utf8() + 1 }
}

/// Whether any of `names` stands in a text.
pub(crate) fn is_named(text: &str, name: &str) -> bool {
    !mentions(text, &[name]).is_empty()
}

/// The text without these names.
pub(crate) fn without(text: &str, names: &[&str]) -> String {
    replaced(text, names, |_| "")
}

/// The text as one of the named would say it of themselves: "I" and "my" in place of names.
pub(crate) fn in_first_person(text: &str, names: &[&str]) -> String {
    let said = replaced(text, names, |mention| if mention.is_possessive { "my" } else { "I" });
    if said.is_empty() { text.to_owned() } else { said }
}

fn replaced(text: &str, names: &[&str], by: impl Fn(&Mention) -> &'static str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for mention in mentions(text, names) {
        out.push_str(&text[end..mention.place.start]);
        out.push_str(by(&mention));
        end = mention.place.end;
    }
    out.push_str(&text[end..]);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(without("Will's", &["Will"]), "");
        assert!(is_named("Ask Will.", "Will"));
        assert!(!is_named("It will.", "Will"));
        assert!(!is_named("", "Will"));
        assert!(!is_named("Will", ""));
    }
}
