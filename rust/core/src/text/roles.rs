//! Roles in chats with an assistant: the side that a name stands for, and the side that a query is
//! about.

use super::names::words;
use super::word_table::{WordTable, Words, list};

/// A side of a chat with an assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The other side.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::User => Self::Assistant,
            Self::Assistant => Self::User,
        }
    }
}

const FILE: &str = include_str!("../../data/roles.txt");

static USERS: Words = Words::new(|| WordTable::of_list(FILE, "user"));
static ASSISTANTS: Words = Words::new(|| WordTable::of_list(FILE, "assistant"));
/// Roles of neither side.
static OTHERS: Words = Words::new(|| WordTable::of_list(FILE, "neither"));
/// Verbs of an assistant's answers: stem forms, then past forms and participles.
static ANSWERING: Words = Words::new(|| WordTable::of_list(FILE, "answering"));
static ANSWERED: Words = Words::new(|| WordTable::of_list(FILE, "answered"));
/// Those who answered, where a verb of answering follows.
static ANSWERERS: Words = Words::new(|| WordTable::of_list(FILE, "answerers"));
/// "your earlier answer": what follows "your" where the answer is a past one.
static EARLIER: Words = Words::new(|| WordTable::of_list(FILE, "earlier"));

/// Largest number of adverbs between the person and the verb.
const MAX_ADVERBS: usize = 2;

/// Characters in front of 你 that make it the listener.
const CHINESE_ADDRESSING: [char; 6] = ['和', '跟', '向', '给', '对', '与'];
/// The verb and the mark of its past are searched for in so many characters behind 你.
const CHINESE_REACH: usize = 11;

impl Role {
    /// The side that a role, a speaker or a label stands for, in any case.
    ///
    /// # Examples
    /// ```
    /// use mnemic_core::text::Role;
    ///
    /// assert_eq!(Role::from_name("User"), Some(Role::User));
    /// assert_eq!(Role::from_name("AI"), Some(Role::Assistant));
    /// assert_eq!(Role::from_name("Ada"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim();
        if USERS.has_in_any_case(name) {
            Some(Self::User)
        } else {
            ASSISTANTS.has_in_any_case(name).then_some(Self::Assistant)
        }
    }

    /// The side whose turns a query is about: the assistant's where it asks about an earlier answer
    /// ("What did you suggest?", "the list you gave me", "the assistant's tips"), else the user's. "Can
    /// you recommend …" asks for a new answer. English, and Chinese.
    ///
    /// # Examples
    /// ```
    /// use mnemic_core::text::Role;
    ///
    /// assert_eq!(Role::of_query("Which hotel did you recommend?"), Role::Assistant);
    /// assert_eq!(Role::of_query("Can you recommend a hotel?"), Role::User);
    /// ```
    #[must_use]
    pub fn of_query(query: &str) -> Self {
        let words: Vec<&str> = words(query).into_iter().map(|(_, word)| word).collect();
        let is_answered = (0..words.len()).any(|at| names_answer(&words, at));
        if is_answered || names_answer_in_chinese(query) { Self::Assistant } else { Self::User }
    }
}

/// Whether a name is that of a role, in any case, and therefore nobody's.
pub(crate) fn is_role(name: &str) -> bool {
    Role::from_name(name).is_some() || OTHERS.has_in_any_case(name.trim())
}

/// Whether the words name an earlier answer of the assistant at a place.
fn names_answer(words: &[&str], at: usize) -> bool {
    let next = || words.get(at + 1).is_some_and(|next| EARLIER.has_in_any_case(next));
    ANSWERERS.has_in_any_case(words[at]) && has_answered(words, at)
        || words[at].eq_ignore_ascii_case("your") && next()
}

/// Whether the word at a place is the subject of an answer in the past: "did you suggest", "did the
/// assistant say", "you once gave".
fn has_answered(words: &[&str], at: usize) -> bool {
    let asks_for_past =
        words[at.saturating_sub(2)..at].iter().any(|word| word.eq_ignore_ascii_case("did"));
    let is_verb = |verb: &str| {
        ANSWERED.has_in_any_case(verb) || asks_for_past && ANSWERING.has_in_any_case(verb)
    };
    words[at + 1..].iter().take(MAX_ADVERBS + 1).any(|verb| is_verb(verb))
}

/// Whether 你 is the subject of an answer: 你推荐过…, 你上次建议的….
fn names_answer_in_chinese(query: &str) -> bool {
    query.match_indices('你').any(|(at, you)| {
        let is_addressed =
            query[..at].chars().next_back().is_some_and(|one| CHINESE_ADDRESSING.contains(&one));
        !is_addressed && answers_in_chinese(&query[at + you.len()..])
    })
}

/// Whether a verb of answering follows soon, in the past.
fn answers_in_chinese(rest: &str) -> bool {
    let end = rest.char_indices().nth(CHINESE_REACH).map_or(rest.len(), |(end, _)| end);
    let rest = &rest[..end];
    list(FILE, "chinese answered").any(|verb| {
        let Some(at) = rest.find(verb) else { return false };
        let between = &rest[..at];
        let after = rest[at + verb.len()..].trim_start_matches('我');
        let is_past = list(FILE, "chinese past").any(|mark| between.contains(mark));
        is_past || after.starts_with(['过', '了', '的'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_about_earlier_answers_are_about_the_assistant() {
        for query in [
            "Which hotel did you recommend?",
            "What did you say about the trip",
            "did you ever suggest a book to me?",
            "Remind me of the recipe you gave me",
            "the steps you've previously listed",
            "You told me a joke, which one?",
            "What was your earlier answer?",
            "What did the assistant propose?",
            "the tip that the bot gave me",
            "你推荐过哪些书？",
            "你上次建议我做什么？",
            "你给我推荐的电影叫什么",
        ] {
            assert_eq!(Role::of_query(query), Role::Assistant, "{query}");
        }
    }

    #[test]
    fn all_others_are_about_the_user() {
        for query in [
            "",
            "?",
            "you",
            "your",
            "Can you recommend a hotel?",
            "Could you suggest some books?",
            "What would you say to a friend?",
            "Do you know where I live?",
            "I told you my name, what is it?",
            "Give me your advice on moving",
            "Who is the assistant of my manager?",
            "Which AI conference was it?",
            "Where did I go with her?",
            "我曾经和你推荐过一部科幻电影，它的名字是？",
            "你能推荐一本书吗？",
            "你",
        ] {
            assert_eq!(Role::of_query(query), Role::User, "{query}");
        }
    }

    #[test]
    fn names_of_roles_count_in_any_case_and_others_do_not() {
        for (name, role) in [
            ("user", Some(Role::User)),
            (" Human ", Some(Role::User)),
            ("ASSISTANT", Some(Role::Assistant)),
            ("ai", Some(Role::Assistant)),
            ("bot", Some(Role::Assistant)),
            ("Tool", None),
            ("system", None),
            ("", None),
            ("Aida", None),
        ] {
            assert_eq!(Role::from_name(name), role, "{name:?}");
            assert_eq!(is_role(name), role.is_some() || ["Tool", "system"].contains(&name));
        }
    }
}
