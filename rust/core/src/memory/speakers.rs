//! The speaker of each memory, and the speakers that a query names.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::Error;
use crate::collections::cow_vec::BlockVec;
use crate::columns::Record;
use crate::deadline::{Deadline, MANY_ROWS};
use crate::text::{self, names};

/// Nobody, and no session.
const NOBODY: u32 = 0;

/// Flag of a session's turn without a given speaker, combined with the code of its label, if any.
const LABELLED: u32 = 1 << 31;

/// A label names a speaker if at least one turn in so many has it; "Note: …" is rarer.
const MIN_SHARE: usize = 20;

/// From this many candidates on, a name counts as a speaker's.
const MIN_TURNS: usize = 2;

/// Roles, which are no one's name.
const ROLES: [&str; 8] = ["user", "assistant", "system", "tool", "human", "ai", "agent", "bot"];

/// Speakers by docid. Copies are cheap; the names are shared by all of them.
#[derive(Clone, Default)]
pub(crate) struct Speakers {
    of_docid: BlockVec<u32>,
    known: Arc<RwLock<Known>>,
}

#[derive(Default)]
struct Known {
    codes: HashMap<Box<str>, u32>,
    /// By code, from 1 on.
    names: Vec<Arc<str>>,
    /// Codes by the first word of the name, in lower case.
    by_first_word: HashMap<Box<str>, Vec<u32>>,
}

/// A speaker that a query names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) code: u32,
    pub(crate) name: Arc<str>,
}

impl Known {
    fn code(&mut self, name: &str) -> u32 {
        if let Some(code) = self.codes.get(name) {
            return *code;
        }
        self.names.push(name.into());
        let code = self.names.len() as u32;
        self.codes.insert(name.into(), code);
        if let Some(word) = names::keys(name).into_iter().next() {
            self.by_first_word.entry(word.into()).or_default().push(code);
        }
        code
    }
}

impl Speakers {
    /// Append the next docid's speaker.
    pub(crate) fn push(&mut self, record: &Record) {
        let code = self.code_of(record);
        self.of_docid.push(code);
    }

    /// Replace a docid's speaker.
    pub(crate) fn replace(&mut self, docid: u32, record: &Record) {
        let code = self.code_of(record);
        if let Some(known) = self.of_docid.get_mut(docid as usize) {
            *known = code;
        }
    }

    /// The speaker that is given, or else, in a session, the label that the text begins with; roles
    /// are no speakers.
    fn code_of(&self, record: &Record) -> u32 {
        let is_name = |name: &&str| !is_role(name);
        if let Some(name) = record.speaker.as_deref().filter(is_name) {
            return self.code(name);
        }
        if record.session.is_none() {
            return NOBODY;
        }
        let label = text::turn(&record.content).label.filter(is_name);
        LABELLED | label.map_or(NOBODY, |label| self.code(label))
    }

    fn code(&self, name: &str) -> u32 {
        if let Some(code) = self.known.read().codes.get(name) {
            return *code;
        }
        self.known.write().code(name)
    }

    /// The speaker of a docid.
    pub(crate) fn of(&self, docid: u32) -> u32 {
        self.marked(docid) & !LABELLED
    }

    fn marked(&self, docid: u32) -> u32 {
        self.of_docid.get(docid as usize).copied().unwrap_or(NOBODY)
    }

    /// Whether any memory ever had a speaker.
    pub(crate) fn any(&self) -> bool {
        !self.known.read().names.is_empty()
    }

    /// Whether a text names a speaker of any memory.
    pub(crate) fn may_name(&self, text: &str) -> bool {
        !self.candidates(text).is_empty()
    }

    /// The speakers of the candidates that a text names. Other memories have no influence: a name
    /// may begin one that only others have.
    pub(crate) fn named(
        &self,
        text: &str,
        docids: &[u32],
        deadline: &Deadline,
    ) -> Result<Vec<Named>, Error> {
        let mut named = self.candidates(text);
        if named.is_empty() {
            return Ok(named);
        }
        let mut turns = vec![[0; 2]; named.len()];
        let mut all = 0;
        for docids in docids.chunks(MANY_ROWS) {
            deadline.check()?;
            for docid in docids {
                let marked = self.marked(*docid);
                all += usize::from(marked != NOBODY);
                if let Some(at) = named.iter().position(|named| named.code == marked & !LABELLED) {
                    turns[at][usize::from(marked & LABELLED != 0)] += 1;
                }
            }
        }
        let mut turns = turns.into_iter();
        named.retain(|_| {
            turns.next().is_some_and(|[given, labelled]| {
                let counted = if labelled * MIN_SHARE >= all { labelled } else { 0 };
                given + counted >= MIN_TURNS
            })
        });
        let names: Vec<&str> = named.iter().map(|named| &*named.name).collect();
        let mut are_named = names::are_named(text, &names).into_iter();
        named.retain(|_| are_named.next().unwrap_or(false));
        Ok(named)
    }

    fn candidates(&self, text: &str) -> Vec<Named> {
        let known = self.known.read();
        if known.names.is_empty() {
            return Vec::new();
        }
        let mut codes: Vec<u32> = names::keys(text)
            .iter()
            .filter_map(|word| known.by_first_word.get(word.as_str()))
            .flatten()
            .copied()
            .collect();
        codes.sort_unstable();
        codes.dedup();
        let named = |code: u32| Named { code, name: Arc::clone(&known.names[code as usize - 1]) };
        let candidates = codes.into_iter().map(named);
        candidates.filter(|named| names::is_named(text, &named.name)).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.of_docid.bytes()
    }
}

fn is_role(name: &str) -> bool {
    let name = name.trim();
    name.is_empty() || ROLES.iter().any(|role| name.eq_ignore_ascii_case(role))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::NEVER;

    fn said(content: &str) -> Record {
        Record { session: Some("s".into()), content: content.into(), ..Record::default() }
    }

    fn by(speaker: &str, content: &str) -> Record {
        Record { speaker: Some(speaker.into()), content: content.into(), ..Record::default() }
    }

    fn speakers(records: &[Record]) -> Speakers {
        let mut speakers = Speakers::default();
        for record in records {
            speakers.push(record);
        }
        speakers
    }

    fn named(speakers: &Speakers, text: &str, docids: &[u32]) -> Vec<String> {
        let named = speakers.named(text, docids, &NEVER).expect("no deadline passes");
        named.iter().map(|named| named.name.to_string()).collect()
    }

    #[test]
    fn labels_are_speakers_inside_sessions_only() {
        let note = |content: &str| Record { session: None, ..said(content) };
        let inside = speakers(&[said("Ana: hello"), said("Bo: hi"), said("Ana: how are you?")]);
        assert_eq!(named(&inside, "What did Ana say?", &[0, 1, 2]), ["Ana"]);
        assert_eq!(inside.of(0), inside.of(2));
        assert_ne!(inside.of(0), inside.of(1));
        let outside = speakers(&[note("Ana: hello"), note("Ana: hi")]);
        assert!(!outside.may_name("What did Ana say?"));
        assert_eq!([outside.of(0), outside.of(1), outside.of(9)], [NOBODY; 3]);
    }

    #[test]
    fn a_given_speaker_comes_before_the_label_and_needs_no_session() {
        let speakers = speakers(&[
            by("Ana", "hello"),
            Record { speaker: Some("Ana".into()), ..said("Note: buy milk") },
            said("Note: buy tea"),
        ]);
        assert_eq!(named(&speakers, "Ana's Note", &[0, 1, 2]), ["Ana"]);
        let ana = speakers.of(0);
        assert_eq!([2, 1, 0].map(|docid| speakers.of(docid) == ana), [false, true, true]);
    }

    #[test]
    fn a_label_that_few_turns_have_is_no_speakers() {
        let few = |others: usize| {
            let mut records = vec![said("Note: buy milk"), said("Note: buy tea")];
            records.extend((0..others).map(|_| said("it rains")));
            let docids: Vec<u32> = (0..records.len() as u32).collect();
            !named(&speakers(&records), "Note the rain", &docids).is_empty()
        };
        assert!(few(38));
        assert!(!few(39));
    }

    #[test]
    fn a_name_of_one_candidate_turn_is_no_speakers() {
        let speakers = speakers(&[by("Ana", "a"), by("Ana", "b"), by("Bo", "c")]);
        assert!(speakers.may_name("bo"));
        assert!(named(&speakers, "Did Bo meet Ana?", &[0, 2]).is_empty());
        assert_eq!(named(&speakers, "Did Bo meet Ana?", &[0, 1, 2]), ["Ana"]);
    }

    #[test]
    fn roles_are_no_speakers_whatever_their_case() {
        for role in ROLES.into_iter().chain(["USER", "Assistant", " System ", "", " "]) {
            let speakers = speakers(&[by(role, "hello"), by(role, "hi")]);
            assert_eq!(speakers.of(0), NOBODY, "{role:?}");
            assert!(!speakers.may_name(&format!("What did the {role} say?")));
        }
        let labelled = speakers(&[said("User: hello"), said("user: hi"), said("Agent: well")]);
        assert_eq!([0, 1, 2].map(|docid| labelled.of(docid)), [NOBODY; 3]);
        let both = Record { speaker: Some("user".into()), ..said("Ana: hi") };
        let both = speakers(&[both.clone(), both]);
        assert_eq!(named(&both, "ana", &[0, 1]), ["Ana"], "a label says more than a role");
    }

    #[test]
    fn a_replaced_memory_has_its_new_speaker_and_copies_keep_the_old_one() {
        let mut speakers = speakers(&[by("Ana", "a"), by("Ana", "b")]);
        let copy = speakers.clone();
        speakers.replace(1, &by("Bo", "b"));
        speakers.replace(7, &by("Bo", "of no docid"));
        assert!(named(&speakers, "Ana and Bo", &[0, 1]).is_empty());
        speakers.replace(0, &by("Bo", "a"));
        assert_eq!(named(&speakers, "Ana and Bo", &[0, 1]), ["Bo"]);
        assert_eq!(named(&copy, "Ana and Bo", &[0, 1]), ["Ana"]);
        speakers.replace(0, &by("user", "a"));
        assert_eq!(speakers.of(0), NOBODY);
    }

    #[test]
    fn what_others_are_called_decides_nothing() {
        let ours = [by("Juan", "a"), by("Juan", "b")];
        let theirs = [by("Juan Pablo", "c"), by("Juan Pablo", "d"), by("Bo", "e"), by("Bo", "f")];
        let alone = speakers(&ours);
        let together = speakers(&[&ours[..], &theirs[..]].concat());
        for text in ["Where is Juan Pablo?", "Did Juan meet Bo?", "Bo"] {
            assert_eq!(named(&together, text, &[0, 1]), named(&alone, text, &[0, 1]), "{text}");
        }
        assert_eq!(named(&together, "Where is Juan Pablo?", &[0, 1, 2, 3]), ["Juan Pablo"]);
    }
}
