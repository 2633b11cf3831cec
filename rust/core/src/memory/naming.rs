//! The speakers that a query names, by their labels or as they are otherwise called.
//!
//! A speaker is named by the whole name, in other case too if that is no ordinary word; by the first
//! name, if no other speaker's name begins so; by a name that others address the speaker by; and by
//! a near spelling of the first word. The candidates of a call alone decide which of these hold.

use std::ops::Range;

use super::speakers::{NOBODY, Turns};
use super::state::MemoryState;
use crate::Error;
use crate::columns::{Columns, Users};
use crate::deadline::{Deadline, MANY_ROWS};
use crate::text::names::{self, Mention, Name};
use crate::text::ordinary_names::{is_ordinary, is_title};
use crate::text::spelling::Spelling;

/// From so many turns on that address somebody by a name, the name may be an alias,
const MIN_ADDRESSES: usize = 3;

/// and is one if so many of four address one speaker.
const MIN_QUARTERS: usize = 3;

/// How far away the turn of the addressed is looked for: people send several messages in a row.
const REACH: usize = 4;

/// The speakers that a text names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct NamedSpeakers {
    /// In the order of the text, each with the largest share of a speaker that it may be of.
    mentions: Vec<(Mention, f64)>,
    /// In ascending order.
    pub(crate) codes: Vec<u32>,
    /// Their share of all turns.
    pub(crate) share: f64,
}

impl NamedSpeakers {
    /// The text without the names of speakers with more than a share of all turns, unless nothing
    /// would be left of it.
    pub(crate) fn without(&self, text: &str, max_share: f64) -> String {
        let frequent = self.mentions.iter().filter(|(_, share)| *share > max_share);
        names::without(text, frequent.map(|(mention, _)| mention))
    }

    /// The text with "I" and "my" in place of names.
    pub(crate) fn in_first_person(&self, text: &str) -> String {
        names::in_first_person(text, self.mentions.iter().map(|(mention, _)| mention))
    }
}

/// A word of a text that may name speakers.
struct Word<'a> {
    place: Range<usize>,
    text: &'a str,
    /// In lower case.
    key: String,
    /// Names that begin with it.
    beginning: Vec<u32>,
    /// Names that begin nearly so; none if it is a word of the memories.
    near: Vec<u32>,
    /// The code of the name in addresses; 0 is none.
    address: u32,
    is_ordinary: bool,
    /// Whether a determiner stands before it.
    is_determined: bool,
}

impl Word<'_> {
    fn may_name(&self) -> bool {
        !self.beginning.is_empty() || !self.near.is_empty() || self.address != NOBODY
    }

    fn is_capital(&self) -> bool {
        self.text.starts_with(char::is_uppercase)
    }
}

/// A text with the words that may name speakers.
pub(crate) struct PossibleNames<'a> {
    memories: &'a MemoryState,
    text: &'a str,
    is_lower: bool,
    words: Vec<Word<'a>>,
}

impl MemoryState {
    /// The text with its words that may name speakers of some users; `None` if no word does.
    pub(crate) fn possible_names<'a>(
        &'a self,
        text: &'a str,
        users: Users<'_>,
    ) -> Option<PossibleNames<'a>> {
        if !self.speakers.any() {
            return None;
        }
        let words = names::words(text);
        let possible = (0..words.len()).map(|at| self.possible_name(&words, at, users));
        let words: Vec<_> = possible.filter(Word::may_name).collect();
        let is_lower = names::is_all_lower(text);
        (!words.is_empty()).then_some(PossibleNames { memories: self, text, is_lower, words })
    }

    fn possible_name<'a>(
        &self,
        words: &[(Range<usize>, &'a str)],
        at: usize,
        users: Users<'_>,
    ) -> Word<'a> {
        let (place, text) = words[at].clone();
        let key = names::key(text);
        let is_ordinary = is_ordinary(&key) || self.lexical.is_stop_word(text);
        let near = if is_ordinary { Vec::new() } else { self.near(text, &key, users) };
        let known = self.speakers.known();
        let address = if is_ordinary { NOBODY } else { known.address(&key) };
        let beginning = known.beginning_with(&key).to_vec();
        let is_determined = names::is_determined(words, at);
        Word { place, text, key, beginning, near, address, is_ordinary, is_determined }
    }

    /// Names that begin nearly as a word with a capital that no memory of the users has.
    fn near(&self, word: &str, key: &str, users: Users<'_>) -> Vec<u32> {
        let is_capital = word.starts_with(char::is_uppercase);
        let Some(spelling) = Spelling::new(key).filter(|_| is_capital) else { return Vec::new() };
        let near = self.speakers.known().near(&spelling);
        if near.is_empty() || self.lexical.has_word(word, self.collection(users)) {
            return Vec::new();
        }
        near
    }
}

impl PossibleNames<'_> {
    /// The speakers among candidates, in ascending order, that the text names.
    pub(crate) fn among(
        &self,
        docids: &[u32],
        deadline: &Deadline,
    ) -> Result<NamedSpeakers, Error> {
        let codes = self.words.iter().flat_map(|word| word.beginning.iter().chain(&word.near));
        let mut codes: Vec<u32> = codes.copied().collect();
        codes.sort_unstable();
        codes.dedup();
        let mut turns = self.memories.speakers.turns(&codes, docids, deadline)?;
        let mut found = self.whole_names(&turns);
        for word in &self.words {
            if found.iter().any(|(mention, _)| mention.place.contains(&word.place.start)) {
                continue;
            }
            let code = match self.by_first_name(word, &turns) {
                None => self.by_alias(word, &mut turns, docids, deadline)?,
                found => found,
            };
            let code = code.or_else(|| by_near_spelling(word, &turns));
            let mention = code.and_then(|_| Mention::at(self.text, word.place.clone(), Vec::new()));
            found.extend(mention.map(|mention| (mention, code.into_iter().collect())));
        }
        found.sort_unstable_by_key(|(mention, _)| mention.place.start);
        Ok(named(found, &turns))
    }

    /// The mentions of whole names.
    fn whole_names(&self, turns: &Turns) -> Vec<(Mention, Vec<u32>)> {
        let mut codes: Vec<u32> = turns.of_speaker.keys().copied().collect();
        codes.sort_unstable();
        let known = self.memories.speakers.known();
        let names = codes.iter().map(|code| {
            let name = known.name(*code);
            Name::new(&name, !self.is_lower && self.is_ordinary(&name))
        });
        let mentions = names::mentions(self.text, &names.collect::<Vec<_>>());
        let codes_of = |mention: &Mention| mention.names.iter().map(|at| codes[*at]).collect();
        mentions.into_iter().map(|mention| (mention.clone(), codes_of(&mention))).collect()
    }

    /// Whether each word of a name is an ordinary word.
    fn is_ordinary(&self, name: &str) -> bool {
        let is_stop_word = |word: &str| self.memories.lexical.is_stop_word(word);
        let words = names::words(name);
        words.iter().all(|(_, word)| is_ordinary(&names::key(word)) || is_stop_word(word))
    }

    /// The only speaker with this first name, beside which there is another.
    fn by_first_name(&self, word: &Word<'_>, turns: &Turns) -> Option<u32> {
        let code = only(&word.beginning, turns)?;
        let is_initial = word.key.chars().nth(1).is_none();
        if is_initial || is_title(&word.key) {
            return None;
        }
        let name = self.memories.speakers.known().name(code);
        let parts = names::words(&name);
        let is_first = word.place.start == 0 || self.text[..word.place.start].trim().is_empty();
        let has_case = names::is_spelled_alike(parts[0].1, word.text);
        let is_meant = if word.is_ordinary {
            has_case && !is_first && !self.is_lower
        } else {
            has_case || !word.is_determined
        };
        (parts.len() > 1 && is_meant).then_some(code)
    }

    /// The speaker that others address so.
    fn by_alias(
        &self,
        word: &Word<'_>,
        turns: &mut Turns,
        docids: &[u32],
        deadline: &Deadline,
    ) -> Result<Option<u32>, Error> {
        if word.address == NOBODY || !(word.is_capital() || self.is_lower) {
            return Ok(None);
        }
        let addressed = self.addressed(word.address, docids, deadline)?;
        let Some(code) = majority(&addressed) else { return Ok(None) };
        if !turns.of_speaker.contains_key(&code) {
            let of_code = self.memories.speakers.turns(&[code], docids, deadline)?;
            turns.of_speaker.extend(of_code.of_speaker);
        }
        Ok(Some(code).filter(|code| turns.of_speaker.contains_key(code)))
    }

    /// The speakers that turns address by a name, in no order.
    fn addressed(
        &self,
        address: u32,
        docids: &[u32],
        deadline: &Deadline,
    ) -> Result<Vec<u32>, Error> {
        let speakers = &self.memories.speakers;
        let mut addressed = Vec::new();
        for of_chunk in docids.chunks(MANY_ROWS) {
            deadline.check()?;
            let turns = of_chunk.iter().filter(|docid| speakers.address(**docid) == address);
            addressed.extend(turns.filter_map(|docid| self.addressee(*docid, docids)));
        }
        Ok(addressed)
    }

    /// The other speaker whose turn is the nearest before a turn of a session, or else after it.
    fn addressee(&self, docid: u32, docids: &[u32]) -> Option<u32> {
        let MemoryState { speakers, columns, .. } = self.memories;
        let own = speakers.of(docid);
        let other = |side: fn(&Columns, u32) -> u32| {
            let neighbour = |at: &u32| Some(side(columns, *at));
            let turns = std::iter::successors(neighbour(&docid), neighbour).take(REACH);
            let selected = turns.take_while(|docid| docids.binary_search(docid).is_ok());
            selected.map(|docid| speakers.of(docid)).find(|code| ![NOBODY, own].contains(code))
        };
        if own == NOBODY { None } else { other(Columns::previous).or_else(|| other(Columns::next)) }
    }
}

/// The only one of some codes that is a speaker's.
fn only(codes: &[u32], turns: &Turns) -> Option<u32> {
    let mut speakers = codes.iter().filter(|code| turns.of_speaker.contains_key(code));
    let first = speakers.next()?;
    speakers.all(|code| code == first).then_some(*first)
}

/// The only speaker whose name begins nearly as a word that begins no speaker's name.
fn by_near_spelling(word: &Word<'_>, turns: &Turns) -> Option<u32> {
    let begins = word.beginning.iter().any(|code| turns.of_speaker.contains_key(code));
    if begins { None } else { only(&word.near, turns) }
}

/// The speaker that most of the turns address.
fn majority(addressed: &[u32]) -> Option<u32> {
    // The vote of Boyer and Moore, 1981: only this one can be of more than half.
    let (most, _) = addressed.iter().fold((NOBODY, 0_usize), |(most, lead), code| match lead {
        0 => (*code, 1),
        _ if most == *code => (most, lead + 1),
        _ => (most, lead - 1),
    });
    let count = addressed.iter().filter(|code| **code == most).count();
    let is_clear = count * 4 >= addressed.len() * MIN_QUARTERS;
    (is_clear && addressed.len() >= MIN_ADDRESSES).then_some(most)
}

fn named(found: Vec<(Mention, Vec<u32>)>, turns: &Turns) -> NamedSpeakers {
    let share = |turns_of: usize| turns_of as f64 / turns.all.max(1) as f64;
    let mut codes: Vec<u32> = found.iter().flat_map(|(_, codes)| codes).copied().collect();
    codes.sort_unstable();
    codes.dedup();
    let largest = |codes: Vec<u32>| codes.iter().map(|code| turns.of_speaker[code]).max();
    let mentions = found
        .into_iter()
        .map(|(mention, codes)| (mention, share(largest(codes).unwrap_or_default())));
    let of_all = codes.iter().map(|code| turns.of_speaker[code]).sum();
    NamedSpeakers { mentions: mentions.collect(), share: share(of_all), codes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Record;
    use crate::deadline::NEVER;

    fn said(content: &str) -> Record {
        Record { session: Some("s".into()), content: content.into(), ..Record::default() }
    }

    fn by(speaker: &str, content: &str) -> Record {
        Record { speaker: Some(speaker.into()), content: content.into(), ..Record::default() }
    }

    fn turn(session: &str, position: i64, speaker: &str, content: &str) -> Record {
        let position = Some(position);
        Record { session: Some(session.into()), position, ..by(speaker, content) }
    }

    fn put(state: &mut MemoryState, row: i64, record: &Record) {
        let analysed = state.lexical.analyse(&record.content);
        state.put(&Record { row, ..record.clone() }, &analysed);
    }

    fn memories(records: &[Record]) -> MemoryState {
        let mut state = MemoryState::default();
        for (row, record) in (0..).zip(records) {
            put(&mut state, row, record);
        }
        state
    }

    fn all(state: &MemoryState) -> Vec<u32> {
        (0..state.columns.len() as u32).collect()
    }

    fn found(state: &MemoryState, text: &str, docids: &[u32]) -> NamedSpeakers {
        let possible = state.possible_names(text, Users::All);
        possible.map_or_else(NamedSpeakers::default, |possible| {
            possible.among(docids, &NEVER).expect("no deadline passes")
        })
    }

    /// The names of the speakers, in the order of their codes.
    fn named(state: &MemoryState, text: &str, docids: &[u32]) -> Vec<String> {
        let known = state.speakers.known();
        let codes = found(state, text, docids).codes.into_iter();
        codes.map(|code| known.name(code).to_string()).collect()
    }

    #[test]
    fn labels_are_speakers_inside_sessions_only() {
        let note = |content: &str| Record { session: None, ..said(content) };
        let inside = memories(&[said("Ana: hello"), said("Bo: hi"), said("Ana: how are you?")]);
        assert_eq!(named(&inside, "What did Ana say?", &[0, 1, 2]), ["Ana"]);
        assert_eq!(inside.speakers.of(0), inside.speakers.of(2));
        assert_ne!(inside.speakers.of(0), inside.speakers.of(1));
        let outside = memories(&[note("Ana: hello"), note("Ana: hi")]);
        assert!(outside.possible_names("What did Ana say?", Users::All).is_none());
        assert_eq!(
            [outside.speakers.of(0), outside.speakers.of(1), outside.speakers.of(9)],
            [NOBODY; 3]
        );
    }

    #[test]
    fn a_given_speaker_comes_before_the_label_and_needs_no_session() {
        let state = memories(&[
            by("Ana", "hello"),
            Record { speaker: Some("Ana".into()), ..said("Note: buy milk") },
            said("Note: buy tea"),
        ]);
        assert_eq!(named(&state, "Ana's Note", &[0, 1, 2]), ["Ana"]);
        let ana = state.speakers.of(0);
        assert_eq!([2, 1, 0].map(|docid| state.speakers.of(docid) == ana), [false, true, true]);
    }

    #[test]
    fn a_label_that_few_turns_have_is_no_speakers() {
        let few = |others: usize| {
            let mut records = vec![said("Note: buy milk"), said("Note: buy tea")];
            records.extend((0..others).map(|_| said("it rains")));
            let docids: Vec<u32> = (0..records.len() as u32).collect();
            !named(&memories(&records), "Note the rain", &docids).is_empty()
        };
        assert!(few(38));
        assert!(!few(39));
    }

    #[test]
    fn a_name_of_one_candidate_turn_is_no_speakers() {
        let state = memories(&[by("Ana", "a"), by("Ana", "b"), by("Bo", "c")]);
        assert!(state.possible_names("bo", Users::All).is_some());
        assert!(named(&state, "Did Bo meet Ana?", &[0, 2]).is_empty());
        assert_eq!(named(&state, "Did Bo meet Ana?", &[0, 1, 2]), ["Ana"]);
    }

    #[test]
    fn roles_are_no_speakers_whatever_their_case() {
        for role in ["user", "assistant", "ai"].into_iter().chain([
            "USER",
            "Assistant",
            " System ",
            "",
            " ",
        ]) {
            let state = memories(&[by(role, "hello"), by(role, "hi")]);
            assert_eq!(state.speakers.of(0), NOBODY, "{role:?}");
            let text = format!("What did {role} say?");
            assert!(state.possible_names(&text, Users::All).is_none());
        }
        let labelled = memories(&[said("User: hello"), said("user: hi"), said("Agent: well")]);
        assert_eq!([0, 1, 2].map(|docid| labelled.speakers.of(docid)), [NOBODY; 3]);
        let both = Record { speaker: Some("user".into()), ..said("Ana: hi") };
        let both = memories(&[both.clone(), both]);
        assert_eq!(named(&both, "ana", &[0, 1]), ["Ana"], "a label says more than a role");
    }

    #[test]
    fn a_replaced_memory_has_its_new_speaker_and_copies_keep_the_old_one() {
        let mut state = memories(&[by("Ana", "a"), by("Ana", "b")]);
        let copy = state.clone();
        put(&mut state, 1, &by("Bo", "b"));
        state.speakers.replace(7, &by("Bo", "of no docid"));
        assert!(named(&state, "Ana and Bo", &[0, 1]).is_empty());
        put(&mut state, 0, &by("Bo", "a"));
        assert_eq!(named(&state, "Ana and Bo", &[0, 1]), ["Bo"]);
        assert_eq!(named(&copy, "Ana and Bo", &[0, 1]), ["Ana"]);
        put(&mut state, 0, &by("user", "a"));
        assert_eq!(state.speakers.of(0), NOBODY);
    }

    #[test]
    fn what_others_are_called_decides_nothing() {
        let ours = [by("Juan", "a"), by("Juan", "b")];
        let theirs = [by("Juan Pablo", "c"), by("Juan Pablo", "d"), by("Bo", "e"), by("Bo", "f")];
        let alone = memories(&ours);
        let together = memories(&[&ours[..], &theirs[..]].concat());
        for text in ["Where is Juan Pablo?", "Did Juan meet Bo?", "Bo"] {
            assert_eq!(named(&together, text, &[0, 1]), named(&alone, text, &[0, 1]), "{text}");
        }
        assert_eq!(named(&together, "Where is Juan Pablo?", &[0, 1, 2, 3]), ["Juan Pablo"]);
    }

    fn first_person(state: &MemoryState, text: &str) -> String {
        found(state, text, &all(state)).in_first_person(text)
    }

    #[test]
    fn a_first_name_is_enough_where_one_speaker_has_it() {
        let mut records = vec![by("Fahim Khan", "a"), by("Fahim Khan", "b"), by("The Judge", "c")];
        records.extend([by("The Judge", "d"), by("J. Lee", "e"), by("J. Lee", "f")]);
        records.extend([by("Will Smith", "g"), by("Will Smith", "h")]);
        let state = memories(&records);
        for (text, wanted) in [
            ("Where does Fahim live?", "Where does I live?"),
            ("Fahim's and Fahim Khan’s dog", "my and my dog"),
            ("did fahim call?", "did I call?"),
            ("Did fahim call?", "Did I call?"),
            ("the fahim", "the fahim"),
            ("The dog of J", "The dog of J"),
            ("What did Will eat?", "What did I eat?"),
            ("Will he eat?", "Will he eat?"),
            ("what will he eat?", "what will he eat?"),
            ("Khan and Fahim-Bo", "Khan and Fahim-Bo"),
            ("What did The Judge say?", "What did I say?"),
        ] {
            assert_eq!(first_person(&state, text), wanted);
        }
        records.extend([by("Fahim Amin", "i"), by("Fahim Amin", "j")]);
        let state = memories(&records);
        assert_eq!(first_person(&state, "Where does Fahim live?"), "Where does Fahim live?");
        assert_eq!(first_person(&state, "Where does Fahim Amin live?"), "Where does I live?");
        assert_eq!(found(&state, "Fahim", &[0, 1, 2]).codes, [1], "the other is no candidate");
    }

    #[test]
    fn case_counts_for_ordinary_words_only() {
        let mut records = Vec::new();
        for name in ["elise", "Bo", "Rose", "Will"] {
            records.extend([by(name, "a"), by(name, "b")]);
        }
        let state = memories(&records);
        for (text, wanted) in [
            ("Did Elise or BO call?", "Did I or I call?"),
            ("Did the rose bloom, and will bo come?", "Did the rose bloom, and will I come?"),
            ("Did Rose call?", "Did I call?"),
            ("did rose call?", "did I call?"),
        ] {
            assert_eq!(first_person(&state, text), wanted);
        }
    }

    #[test]
    fn a_near_spelling_of_an_unknown_word_names_the_only_speaker_alike() {
        let mut records = vec![by("Muhammad", "a"), by("Muhammad", "b"), by("Melanie Fox", "c")];
        records.extend([by("Melanie Fox", "d"), by("Bo", "Melaine is my cat")]);
        let state = memories(&records);
        for (text, wanted) in [
            ("Where is Muhhamed's dog?", "Where is my dog?"),
            ("Did Melani call?", "Did I call?"),
            ("Did Melaine call?", "Did Melaine call?"),
            ("Did melani call?", "Did melani call?"),
        ] {
            assert_eq!(first_person(&state, text), wanted);
        }
        records.extend([by("Muhamad", "e"), by("Muhamad", "f")]);
        let state = memories(&records);
        assert_eq!(first_person(&state, "Did Muhhamed call?"), "Did Muhhamed call?");
        assert_eq!(first_person(&state, "Did Muhamad call?"), "Did I call?");
    }

    fn talk(addressed: &[&str]) -> Vec<Record> {
        let mut records = Vec::new();
        for name in addressed {
            let at = records.len() as i64;
            let content = format!("Hey {name}! How are you?");
            records.extend([turn("s", at, "Bo", &content), turn("s", at + 1, "Emi", "Well")]);
        }
        records
    }

    #[test]
    fn an_alias_is_learnt_from_addresses_and_forgotten_with_them() {
        let mut state = memories(&talk(&["Kate", "Kate", "Kate"]));
        assert_eq!(first_person(&state, "Where is Kate's dog?"), "Where is my dog?");
        assert_eq!(named(&state, "kate", &all(&state)), ["Emi"]);
        assert!(found(&state, "Where is kate?", &all(&state)).codes.is_empty());
        assert!(found(&state, "Kate", &[0, 1, 2, 3]).codes.is_empty(), "two of three turns");
        put(&mut state, 2, &turn("s", 2, "Bo", "Hey Kim!"));
        let live = [0, 1, 3, 4, 5, 6];
        assert!(found(&state, "Where is Kate?", &live).codes.is_empty());
        put(&mut state, 2, &turn("s", 2, "Bo", "Thanks, Kate."));
        assert_eq!(named(&state, "Where is Kate?", &[0, 1, 3, 4, 5, 7]), ["Emi"]);
    }

    #[test]
    fn a_name_for_everybody_is_no_alias() {
        let mut records = talk(&["Love", "Love", "Love"]);
        records.extend([turn("s", 6, "Emi", "Bye Love!"), turn("s", 7, "Bo", "Bye")]);
        assert_eq!(first_person(&memories(&records), "Where is Love?"), "Where is I?");
        records.extend([turn("s", 8, "Emi", "Hi Love!"), turn("s", 9, "Bo", "Hi")]);
        assert_eq!(first_person(&memories(&records), "Where is Love?"), "Where is Love?");
        let alone: Vec<Record> = (0..3).map(|at| turn("s", at, "Bo", "Hey Kate!")).collect();
        assert!(found(&memories(&alone), "Kate", &[0, 1, 2]).codes.is_empty());
        let mut state = memories(&talk(&["Bo", "Bo", "Bo"]));
        assert_eq!(named(&state, "Where is Bo?", &all(&state)), ["Bo"], "a name comes first");
        put(&mut state, 9, &by("Ann", "no turn"));
        assert!(found(&state, "Ann", &all(&state)).codes.is_empty());
    }

    #[test]
    fn shares_are_those_of_the_named_among_all_turns() {
        let mut records: Vec<Record> = (0..6).map(|_| by("Ana", "a")).collect();
        records.extend([by("Bo", "b"), by("Bo", "c"), by("Cy", "d"), by("Cy", "e")]);
        let state = memories(&records);
        let text = "Did Ana meet Bo?";
        let both = found(&state, text, &all(&state));
        assert!((both.share - 0.8).abs() < 1e-12);
        assert_eq!(both.without(text, 0.0), "Did meet ?");
        assert_eq!(both.without(text, 0.2), "Did meet Bo?");
        assert_eq!(both.without(text, 0.6), text);
        assert_eq!(found(&state, "Nobody", &all(&state)), NamedSpeakers::default());
    }
}
