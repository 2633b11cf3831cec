//! Names that are ordinary English words as well, and words in front of names.

/// Names and labels that a sentence may hold as a word of its own, in alphabetical order; stop words
/// such as "will" are listed by their language.
const ORDINARY: [&str; 110] = [
    "amber",
    "angel",
    "answer",
    "april",
    "art",
    "ash",
    "august",
    "autumn",
    "bill",
    "bishop",
    "brook",
    "buck",
    "bud",
    "carol",
    "chance",
    "charity",
    "chase",
    "chip",
    "christian",
    "chuck",
    "clay",
    "cliff",
    "crystal",
    "daisy",
    "dale",
    "dawn",
    "dean",
    "drew",
    "duke",
    "earl",
    "eve",
    "event",
    "faith",
    "fern",
    "forest",
    "frank",
    "gene",
    "ginger",
    "grace",
    "grant",
    "gray",
    "guy",
    "harmony",
    "hazel",
    "heath",
    "heather",
    "holly",
    "hope",
    "hunter",
    "idea",
    "info",
    "iris",
    "ivy",
    "jack",
    "jade",
    "jay",
    "jean",
    "jewel",
    "josh",
    "joy",
    "june",
    "king",
    "lance",
    "lane",
    "laurel",
    "lily",
    "mark",
    "mason",
    "may",
    "mercy",
    "miles",
    "nick",
    "norm",
    "note",
    "olive",
    "page",
    "pat",
    "patience",
    "pearl",
    "penny",
    "pepper",
    "piper",
    "plan",
    "poppy",
    "prince",
    "question",
    "ray",
    "red",
    "reed",
    "reminder",
    "rich",
    "rob",
    "robin",
    "rocky",
    "rod",
    "rose",
    "ruby",
    "rusty",
    "sage",
    "sandy",
    "skip",
    "sky",
    "sue",
    "summary",
    "summer",
    "task",
    "title",
    "todo",
    "topic",
    "update",
];

/// Words that stand in front of many names and are no first names, in alphabetical order.
const TITLES: [&str; 19] = [
    "a",
    "an",
    "aunt",
    "dr",
    "fr",
    "lady",
    "lord",
    "madame",
    "miss",
    "mr",
    "mrs",
    "ms",
    "mx",
    "prof",
    "professor",
    "sir",
    "st",
    "the",
    "uncle",
];

/// Words behind which a word in other case is no name, in alphabetical order: "the teacher" may be
/// another one than "Teacher".
const DETERMINERS: [&str; 22] = [
    "a", "an", "any", "each", "every", "her", "his", "its", "my", "no", "our", "some", "that",
    "the", "their", "these", "this", "those", "what", "which", "whose", "your",
];

/// Whether a word in lower case is a determiner.
pub(crate) fn is_determiner(word: &str) -> bool {
    DETERMINERS.binary_search(&word).is_ok()
}

/// Whether a word in lower case is a name and an ordinary word.
pub(crate) fn is_ordinary(word: &str) -> bool {
    ORDINARY.binary_search(&word).is_ok()
}

/// Whether a word in lower case is a title.
pub(crate) fn is_title(word: &str) -> bool {
    TITLES.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order_and_found_in() {
        assert!([&ORDINARY[..], &TITLES, &DETERMINERS].iter().all(|list| list.is_sorted()));
        assert!(["amber", "mark", "summer"].into_iter().all(is_ordinary));
        assert!(["a", "mr", "uncle"].into_iter().all(is_title));
        assert!(["a", "the", "your"].into_iter().all(is_determiner));
        assert!(!is_ordinary("elise") && !is_title("ana"));
    }
}
