//! States that are compacted, written or read answer as a fresh state of the same memories.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::tests::{DIM, scoring};
use super::*;
use crate::columns::{ListOrder, Scope};
use crate::filter::{Field, Filter, Operand, Test};
use crate::memory::links::{Direction, Link};
use crate::memory::stored::STATE_VERSION;
use crate::rank::scoring_config::{KeywordFields, ScoringConfig};
use crate::text::{Analysis, Language};

const SENTENCES: [&str; 12] = [
    "The cat sat on the blue kettle and looked at the old harbour.",
    "My violin is in the house of my brother, who plays it every day.",
    "What did you say about the bicycle?",
    "Note: zinc",
    "Hey Anna, did you find the violin that was in the harbour?",
    "Der Hund lief gestern mit dem alten Fahrrad durch den Hafen und die Stadt.",
    "Ich habe meine Geige bei meinem Bruder gelassen, weil es regnete.",
    "Le chat est sur la table et il regarde le vieux port de la ville.",
    "猫は青い港にいます。",
    "violins violin violin violin violin violin violin violin violin violin violin violin violin \
     violin violin violin violin violin violin violin violin violin violin violin violin violin \
     violin violin violin violin violin violin violin violin",
    "kettles and cats",
    "",
];

const QUERIES: [&str; 5] = [
    "Where is the cat of my brother?",
    "What did Anna say about the violin?",
    "Wo sind die Hunde und die Fahrräder im Hafen?",
    "les chats du port",
    "kettel harbor 猫",
];

const LABELS: [&str; 4] = ["", "Anna: ", "Bernard: ", "assistant: "];

const USERS: [Option<&str>; 3] = [None, Some("user a"), Some("user b")];

#[derive(Debug, Clone)]
enum Step {
    Put { row: i64, said: Said },
    Remove { row: i64 },
    Link { from: i64, to: Vec<(i64, u8, u8)> },
    Access(Access),
}

#[derive(Debug, Clone)]
struct Said {
    texts: Vec<usize>,
    label: usize,
    user: usize,
    session: u8,
    speaker: u8,
    tags: Vec<u8>,
    position: Option<i64>,
    expires_at: Option<i64>,
    vector: Option<[i8; DIM]>,
}

impl Said {
    fn record(&self, row: i64) -> Record {
        let texts: Vec<&str> = self.texts.iter().map(|at| SENTENCES[*at]).collect();
        let tags: Vec<String> = self.tags.iter().map(|tag| format!("\"tag {tag}\"")).collect();
        Record {
            row,
            id: [(row * 37).rem_euclid(251) as u8; 16],
            user: USERS[self.user].map(str::to_owned),
            session: (self.session > 0).then(|| format!("session {}", self.session)),
            speaker: (self.speaker > 0).then(|| format!("Caroline{}", self.speaker)),
            role: (self.speaker == 2).then(|| "user".to_owned()),
            position: self.position,
            expires_at: self.expires_at,
            created_at: row / 3,
            importance: f64::from(self.session) / 4.0,
            tags: (!tags.is_empty()).then(|| format!("[{}]", tags.join(","))),
            metadata: (self.label > 0).then(|| format!("{{\"k\":{}}}", self.label)),
            content: LABELS[self.label].to_owned() + &texts.join(" "),
            ..Record::default()
        }
    }
}

const ROWS: i64 = 30;

fn any_said() -> impl Strategy<Value = Said> {
    let texts = prop::collection::vec(0..SENTENCES.len(), 0..4);
    let names = (0..LABELS.len(), 0..USERS.len(), 0_u8..4, 0_u8..3);
    let rest = (
        prop::collection::vec(0_u8..4, 0..3),
        prop::option::of(0_i64..5),
        prop::option::weighted(0.2, 0_i64..20),
        prop::option::weighted(0.8, prop::array::uniform3(1_i8..4)),
    );
    (texts, names, rest).prop_map(
        |(texts, (label, user, session, speaker), (tags, position, expires_at, vector))| Said {
            texts,
            label,
            user,
            session,
            speaker,
            tags,
            position,
            expires_at,
            vector,
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let row = || 0..ROWS;
    let ends = prop::collection::vec((row(), 0_u8..4, 1_u8..5), 0..4);
    prop_oneof![
        8 => (row(), any_said()).prop_map(|(row, said)| Step::Put { row, said }),
        2 => row().prop_map(|row| Step::Remove { row }),
        1 => (row(), ends).prop_map(|(from, to)| Step::Link { from, to }),
        1 => (row(), prop::option::of(0_i64..9), 0_i64..9)
            .prop_map(|(row, last, count)| Step::Access(Access { row, last, count })),
    ]
}

/// An index with what is known of it.
struct Twin {
    index: MemoryIndex,
    records: BTreeMap<i64, Record>,
    vectors: BTreeMap<i64, [f32; DIM]>,
    links: BTreeMap<i64, Vec<Link>>,
}

fn coverage() -> Coverage {
    Coverage::of(&["en", "de"]).expect("known languages")
}

fn empty(analyser: Analyser) -> MemoryIndex {
    MemoryIndex::new(Some(DIM), analyser, Some(coverage())).expect("a kernel")
}

/// A state that was written and read again.
fn read_back(state: &MemoryState) -> MemoryState {
    let bytes = state.to_bytes().expect("a sound state");
    let read = MemoryState::from_bytes(&bytes, state.lexical.analyser(), Some(coverage()), true);
    read.expect("the bytes of a state")
}

impl Twin {
    fn of(analyser: Analyser, steps: &[Step]) -> Self {
        let (records, vectors, links) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut twin = Self { index: empty(analyser), records, vectors, links };
        for step in steps {
            twin.take(step);
        }
        twin
    }

    fn take(&mut self, step: &Step) {
        apply(&self.index, step);
        match step {
            Step::Put { row, said } => self.put(said.record(*row), said.vector),
            Step::Remove { row } => {
                self.records.remove(row);
                self.vectors.remove(row);
                self.links.remove(row);
                self.links.values_mut().for_each(|links| links.retain(|link| link.to != *row));
            }
            Step::Link { from, to } => {
                self.links.insert(*from, links_of(*from, to));
            }
            Step::Access(_) => {}
        }
    }

    fn put(&mut self, record: Record, vector: Option<[i8; DIM]>) {
        let row = record.row;
        let text_of = |record: &Record| (record.content.clone(), record.user.clone());
        let text = text_of(&record);
        let old = self.records.insert(row, record);
        if old.as_ref().map(text_of) != Some(text) {
            self.vectors.remove(&row);
        }
        if let Some(vector) = vector {
            self.vectors.entry(row).or_insert(vector.map(f32::from));
        }
    }

    fn state(&self) -> MemoryState {
        MemoryState::clone(&self.index.store.snapshot().memories)
    }

    /// A fresh index of some rows in their order.
    fn fresh(&self, rows: &[i64]) -> MemoryIndex {
        let state = self.state();
        let index = empty(state.lexical.analyser());
        let records: Vec<Record> = rows.iter().map(|row| self.record(*row)).collect();
        let embedded: Vec<i64> =
            rows.iter().filter(|row| self.vectors.contains_key(row)).copied().collect();
        let vectors: Vec<f32> = embedded.iter().flat_map(|row| self.vectors[row]).collect();
        let from: Vec<i64> = self.links.keys().copied().collect();
        let links: Vec<Link> = self.links.values().flatten().copied().collect();
        let (records, embedded, vectors) = (&records, &embedded, &vectors);
        let batch =
            Batch { removed: &[], records, embedded, vectors, linked: &from, links: &links };
        index.apply(&batch).expect("sound records");
        index
    }

    fn record(&self, row: i64) -> Record {
        let access = self.index.accesses(&[row])[0].expect("a memory of this row");
        let Access { last: last_accessed_at, count: access_count, .. } = access;
        Record { last_accessed_at, access_count, ..self.records[&row].clone() }
    }

    /// An index of another state of these memories.
    fn with_state(&self, state: &MemoryState, dim: Option<usize>) -> MemoryIndex {
        let kernel = simd::kernel().expect("a kernel");
        let store = SnapshotStore::new(kernel, dim.unwrap_or(1), state.clone());
        let index = MemoryIndex { dim: dim.unwrap_or(0), kernel, store };
        let rows = state
            .columns
            .docids()
            .filter_map(|docid| Some((docid, self.vectors.get(&state.columns.row_of(docid)?)?)));
        let (added, vectors): (Vec<i64>, Vec<&[f32; DIM]>) =
            rows.map(|(docid, vector)| (vector_id(docid, 0), vector)).unzip();
        let change = Change { memories: state.clone(), removed: vec![], added };
        let write = |at: usize, row: &mut [f32]| index.write(vectors[at], row);
        index.store.change(|_| Ok::<_, Error>(change), write, Maintenance::Now).expect("memory");
        index
    }
}

fn links_of(from: i64, to: &[(i64, u8, u8)]) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for (to, kind, strength) in to {
        let is_new = !links.iter().any(|link| (link.to, link.kind) == (*to, *kind));
        if is_new && *to != from {
            let strength = f64::from(*strength) / 4.0;
            links.push(Link { from, to: *to, kind: *kind, strength });
        }
    }
    links
}

fn apply(index: &MemoryIndex, step: &Step) {
    match step {
        Step::Put { row, said } => {
            let embedded: Vec<i64> = said.vector.iter().map(|_| *row).collect();
            let vectors: Vec<f32> = said.vector.iter().flatten().copied().map(f32::from).collect();
            let records = &[said.record(*row)];
            let (embedded, vectors) = (&embedded, &vectors);
            index.apply(&Batch { records, embedded, vectors, ..Batch::default() })
        }
        Step::Remove { row } => index.apply(&Batch { removed: &[*row], ..Batch::default() }),
        Step::Link { from, to } => {
            let links = links_of(*from, to);
            index.apply(&Batch { linked: &[*from], links: &links, ..Batch::default() })
        }
        Step::Access(access) => index.raise_accesses(&[*access]),
    }
    .expect("a sound change");
}

fn scorings() -> [ScoringConfig; 2] {
    let plain = scoring();
    let keywords = KeywordFields { char_ngrams: 0.4, bigrams: 0.3, ..plain.keywords };
    let wide = ScoringConfig {
        covered_only: true,
        strip_speaker_names: true,
        max_speaker_share: 0.7,
        keywords,
        ..scoring()
    };
    [plain, wide]
}

/// All that an index answers, as text: equal texts have the same bits of every score.
fn answers(index: &MemoryIndex) -> String {
    let mut answers = String::new();
    let tagged = Filter::Test(Field::Tags, Test::Contains(Operand::Text("tag 1".into())));
    for user in [Users::All, Users::Nobody, Users::One("user a"), Users::One("user b")] {
        for filter in [None, Some(&tagged)] {
            let scope = Scope { user, ..Scope::default() };
            let ask = Ask { scope, filter, now: 5, ..Ask::default() };
            answers += &lists(index, &ask);
            for text in QUERIES {
                answers += &rankings(index, &ask, text);
            }
        }
        let related = index.related(QUERIES[1], &[(SENTENCES[1], 1.0)], user, 9);
        let phrases = index.key_phrases(&SENTENCES.join(" "), user, 9);
        writeln!(answers, "{related:?} {phrases:?}").expect("a string");
    }
    answers
}

fn rankings(index: &MemoryIndex, ask: &Ask<'_>, text: &str) -> String {
    let mut answers = String::new();
    for scoring in scorings() {
        let request = Request {
            ask: *ask,
            scoring: &scoring,
            text: Some(text),
            vectors: if index.dim() > 0 { &[1.0, 2.0, 1.0] } else { &[] },
            context: &[],
            k: 50,
            offset: 0,
            min_similarity: None,
            min_score: None,
            scale: None,
            evidence: None,
            with_total: true,
            explains: true,
            sort_key: None,
            min_salience: None,
            best_match: None,
            takes_partial: false,
            proposed: None,
        };
        writeln!(answers, "{:?}", index.rank(&request)).expect("a string");
    }
    let first_person = index.in_first_person("What does Caroline1 tell Anna?", ask);
    writeln!(answers, "{first_person:?}").expect("a string");
    answers
}

fn lists(index: &MemoryIndex, ask: &Ask<'_>) -> String {
    let mut answers = String::new();
    for order in [ListOrder::Newest, ListOrder::Accessed, ListOrder::AccessCount] {
        let listing = Listing { order, after: None, offset: 0, limit: 99 };
        writeln!(answers, "{:?}", index.listed(ask, &listing)).expect("a string");
    }
    for field in [Field::Tags, Field::Session, Field::Metadata(["k".into()].into())] {
        let mut values = DistinctValues::new(field, None);
        index.distinct(ask, &mut values).expect("memory");
        writeln!(answers, "{:?}", values.page(0, 99)).expect("a string");
    }
    for direction in [Direction::Out, Direction::In] {
        let hops = Hops { direction, kinds: u32::MAX, depth: 3 };
        for row in 0..ROWS {
            writeln!(answers, "{:?}", index.linked(ask, row, &hops, 99)).expect("a string");
        }
    }
    let expiry = index.next_expiry(ask.scope.user, 3);
    let rest = (index.unembedded(), index.has_speakers(), expiry, index.len());
    writeln!(answers, "{rest:?}").expect("a string");
    answers
}

fn analysers() -> impl Strategy<Value = Analyser> {
    prop::sample::select(vec![Analyser::Detecting, Analysis::default().into()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_compacted_state_answers_as_a_fresh_one_of_the_kept_memories(
        steps in prop::collection::vec(any_step(), 1..60),
        later in prop::collection::vec(any_step(), 1..8),
        kept in prop::collection::vec(prop::bool::weighted(0.8), 60),
        analyser in analysers(),
    ) {
        let twin = Twin::of(analyser, &steps);
        let state = twin.state();
        let (compacted, docids) = state.compacted(|docid| kept[docid as usize]);
        let rows: Vec<i64> =
            docids.iter().filter_map(|docid| state.columns.row_of(*docid)).collect();
        prop_assert_eq!(rows.len(), docids.len());
        let fresh = twin.fresh(&rows);
        let index = twin.with_state(&compacted, Some(DIM));
        let read = twin.with_state(&read_back(&compacted), Some(DIM));
        let expected = answers(&fresh);
        prop_assert_eq!(answers(&index), &*expected);
        prop_assert_eq!(answers(&read), &*expected);
        prop_assert!(compacted.lexical.vocabulary_size() <= lexical_of(&fresh).vocabulary_size());
        for step in &later {
            for index in [&index, &read, &fresh] {
                apply(index, step);
            }
        }
        let expected = answers(&fresh);
        prop_assert_eq!(answers(&index), &*expected);
        prop_assert_eq!(answers(&read), &*expected);
    }
}

/// A step that puts a memory made of a number.
fn put(number: u32) -> Step {
    let digit = |place: u32| (number / place * 7 % 11) as usize;
    let said = Said {
        texts: vec![digit(1), digit(3), digit(11)],
        label: digit(2) % LABELS.len(),
        user: digit(5) % USERS.len(),
        session: (number % 4) as u8,
        speaker: (number % 3) as u8,
        tags: vec![(number % 4) as u8],
        position: number.is_multiple_of(2).then_some(number.into()),
        expires_at: number.is_multiple_of(7).then_some(number.into()),
        vector: (!number.is_multiple_of(5)).then_some([1, (number % 3) as i8, 2]),
    };
    Step::Put { row: number.into(), said }
}

fn index_of_numbers(analyser: Analyser, count: u32) -> Twin {
    Twin::of(analyser, &(0..count).map(put).collect::<Vec<Step>>())
}

#[test]
fn groups_with_postings_are_copied_written_and_read() {
    for analyser in [Analyser::Detecting, Analysis::default().into()] {
        let twin = index_of_numbers(analyser, 4400);
        let (compacted, docids) = twin.state().compacted(|docid| docid % 15 > 0);
        let rows: Vec<i64> = docids.iter().map(|docid| i64::from(*docid)).collect();
        assert_eq!(rows.len(), 4106);
        let expected = answers(&twin.fresh(&rows));
        assert_eq!(answers(&twin.with_state(&compacted, Some(DIM))), expected);
        let (whole, _) = read_back(&compacted).compacted(|docid| docid < 4096);
        let read = twin.with_state(&read_back(&whole), Some(DIM));
        assert_eq!(answers(&read), answers(&twin.fresh(&rows[..4096])));
        (4400..4500).for_each(|number| apply(&read, &put(number)));
        apply(&read, &Step::Remove { row: 1 });
    }
}

#[test]
fn nothing_of_a_memory_that_is_left_out_is_written() {
    let twin = index_of_numbers(Analysis::default().into(), 40);
    let secret = Record {
        row: 99,
        content: "Quetzalcoatl: Hey Xochitl, zzyzx".to_owned(),
        user: Some("user zzyzx".to_owned()),
        session: Some("session zzyzx".to_owned()),
        tags: Some("[\"tag zzyzx\"]".to_owned()),
        metadata: Some("{\"k\":\"zzyzx\"}".to_owned()),
        ..Record::default()
    };
    let batch = Batch { records: &[secret], ..Batch::default() };
    twin.index.apply(&batch).expect("a sound record");
    let written = |removed: &[i64], keep: &dyn Fn(u32) -> bool| {
        twin.index.apply(&Batch { removed, ..Batch::default() }).expect("a sound change");
        twin.state().compacted(keep).0.to_bytes().expect("a sound state")
    };
    let has =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let texts = ["zzyzx", "xochitl", "Quetzalcoatl", "quetzalcoatl"];
    let whole = written(&[], &|_| true);
    assert!(texts.iter().all(|text| has(&whole, text)));
    let fewer = [written(&[], &|docid| docid < 40), written(&[99], &|_| true)];
    for bytes in &fewer {
        assert!(texts.iter().all(|text| !has(bytes, text)));
    }
    let fresh = index_of_numbers(Analysis::default().into(), 40).state();
    assert_eq!(fewer[0], fresh.to_bytes().expect("a sound state"), "as if it had never been there");
}

#[test]
fn damaged_bytes_are_refused_or_read_without_a_panic() {
    let (state, _) = index_of_numbers(Analyser::Detecting, 30).state().compacted(|_| true);
    let bytes = state.to_bytes().expect("a sound state");
    let read = |bytes: &[u8]| {
        MemoryState::from_bytes(bytes, Analyser::Detecting, Some(coverage()), true).is_ok()
    };
    assert!(read(&bytes));
    assert!((0..bytes.len()).step_by(7).all(|len| !read(&bytes[..len])));
    for at in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        read(&damaged);
    }
    let fixed = Analysis::default().into();
    assert!(MemoryState::from_bytes(&bytes, fixed, Some(coverage()), true).is_err());
    assert!(MemoryState::from_bytes(&bytes, Analyser::Detecting, None, true).is_err());
    assert!(MemoryState::from_bytes(&bytes, Analyser::Detecting, Some(coverage()), false).is_err());
}

#[test]
fn a_state_with_a_removed_memory_cannot_be_read() {
    let twin = index_of_numbers(Analyser::Detecting, 30);
    apply(&twin.index, &Step::Remove { row: 3 });
    let bytes = twin.state().to_bytes().expect("a sound state");
    let read = MemoryState::from_bytes(&bytes, Analyser::Detecting, Some(coverage()), true);
    assert!(matches!(read, Err(Error::SnapshotInvalid { .. })));
}

#[test]
fn the_stored_form_is_that_of_its_version() {
    let twin = index_of_numbers(Analyser::Detecting, 60);
    let languages: String = crate::text::Language::all().map(Language::code).collect();
    let bytes = twin.state().to_bytes().expect("a sound state");
    let hash = xxhash_rust::xxh3::xxh3_64(&[&bytes, languages.as_bytes()].concat());
    assert_eq!(
        (STATE_VERSION, hash),
        (2, 617_565_177_194_144_353),
        "the bytes of a state, or the words of a text, are others: raise STATE_VERSION, and put \
         version and hash here"
    );
}

fn lexical_of(index: &MemoryIndex) -> lexical::Lexical {
    index.store.snapshot().memories.lexical.clone()
}
