//! Speakers that a query names, by their labels or as they are otherwise called.

use super::naming::NamedSpeakers;
use super::speakers::NOBODY;
use super::state::MemoryState;
use crate::columns::{Record, Users};
use crate::deadline::{Deadline, NEVER};

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
    let known = state.speakers.known.read();
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
    for role in ["user", "assistant", "ai", "model"].into_iter().chain([
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

#[test]
fn a_name_in_the_ending_of_another_is_no_name() {
    let state =
        memories(&[by("Kate Lee", "hi"), by("S Ana", "hi"), by("Kate Lee", ""), by("S Ana", "")]);
    let all = all(&state);
    assert_eq!(named(&state, "kate's ana", &all), ["Kate Lee"]);
    assert_eq!(found(&state, "kate's ana", &all).in_first_person("kate's ana"), "my ana");
    assert_eq!(named(&state, "kate, s ana", &all), ["Kate Lee", "S Ana"]);
}

#[test]
fn the_turns_are_read_as_often_for_many_names_as_for_one() {
    let turns: Vec<Record> = (0..20)
        .map(|at| match at % 2 {
            0 => turn("s", at, "Katharina", "tea"),
            _ => turn("s", at, "Bob", if at % 4 == 1 { "Hey Kat!" } else { "Hi Kathy!" }),
        })
        .collect();
    let state = memories(&turns);
    let text = "Kat or Kathy? ".repeat(100);
    let possible = state.possible_names(&text, Users::All).expect("two names");
    let few_looks = Deadline::after_looks(4);
    let named = possible.among(&all(&state), &few_looks).expect("no look but one for each pass");
    assert_eq!(named.codes, [state.speakers.of(0)]);
    assert_eq!(named.in_first_person(&text), "I or I? ".repeat(100).trim());
}
