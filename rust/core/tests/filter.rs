//! `Columns::select` against a naive twin: the truth table of filters, row by row, for any rows,
//! any filter and any changes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use mnemic_core::columns::{Ask, Columns, NO_DOCID, Record, Scope, Users};
use mnemic_core::filter::{Field, Filter, Operand, Order, Test};
use mnemic_core::text::fold;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A value as the twin sees it.
#[derive(Debug, Clone)]
enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
    Id([u8; 16]),
    Moment(i64),
}

/// A record beside the values of its JSON texts.
#[derive(Debug, Clone)]
struct Row {
    record: Record,
    tags: Vec<String>,
    metadata: Vec<(String, Value)>,
}

mod twin {
    use super::*;

    pub(super) fn holds(filter: &Filter, row: &Row) -> bool {
        match filter {
            Filter::All(parts) => parts.iter().all(|part| holds(part, row)),
            Filter::AnyOf(parts) => parts.iter().any(|part| holds(part, row)),
            Filter::Not(part) => !holds(part, row),
            Filter::Test(field, test) => match value_of(field, row) {
                Value::Null => holds_for_missing(test),
                value => holds_for_value(test, &value),
            },
        }
    }

    fn value_of(field: &Field, row: &Row) -> Value {
        let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
        let time = |time: Option<i64>| time.map_or(Value::Null, Value::Moment);
        let record = &row.record;
        match field {
            Field::Id => Value::Id(record.id),
            Field::Type => Value::Int(record.kind.into()),
            Field::Status => Value::Int(record.status.into()),
            Field::Role => text(&record.role),
            Field::Speaker => text(&record.speaker),
            Field::Session => text(&record.session),
            Field::Project => text(&record.project),
            Field::Category => text(&record.category),
            Field::Scope => text(&record.scope),
            Field::Source => text(&record.source),
            Field::Version => Value::Int(record.version),
            Field::Importance => Value::Float(record.importance),
            Field::AccessCount => Value::Int(record.access_count),
            Field::CreatedAt => Value::Moment(record.created_at),
            Field::UpdatedAt => Value::Moment(record.updated_at),
            Field::LastAccessedAt => time(record.last_accessed_at),
            Field::ExpiresAt => time(record.expires_at),
            Field::Content => Value::Text(record.content.clone()),
            Field::Tags => Value::List(row.tags.iter().cloned().map(Value::Text).collect()),
            Field::Sensitive => Value::Bool(record.sensitive),
            Field::Message => text(&record.message),
            Field::Position => record.position.map_or(Value::Null, Value::Int),
            Field::Metadata(path) => at_path(&row.metadata, path),
        }
    }

    fn at_path(entries: &[(String, Value)], path: &[Box<str>]) -> Value {
        let found = entries.iter().find(|(known, _)| **known == *path[0]).map(|(_, value)| value);
        match (found, path) {
            (Some(value), [_]) => value.clone(),
            (Some(Value::Object(entries)), [_, rest @ ..]) => at_path(entries, rest),
            _ => Value::Null,
        }
    }

    fn holds_for_missing(test: &Test) -> bool {
        match test {
            Test::Exists(wanted) => !wanted,
            Test::Equal(value) => matches!(value, Operand::Null),
            Test::NotEqual(value) => !matches!(value, Operand::Null),
            Test::NotIn(values) => !values.iter().any(|value| matches!(value, Operand::Null)),
            _ => false,
        }
    }

    fn holds_for_value(test: &Test, value: &Value) -> bool {
        let is_in =
            |wanted: &Operand, items: &[Value]| items.iter().any(|item| equal(item, wanted));
        match test {
            Test::Exists(wanted) => *wanted,
            Test::Equal(other) => equal(value, other),
            Test::NotEqual(other) => !equal(value, other),
            Test::In(others) => others.iter().any(|other| equal(value, other)),
            Test::NotIn(others) => !others.iter().any(|other| equal(value, other)),
            Test::Ordered(order, other) => compare(value, other).is_some_and(|found| match order {
                Order::Above => found == Ordering::Greater,
                Order::AtLeast => found != Ordering::Less,
                Order::Below => found == Ordering::Less,
                Order::AtMost => found != Ordering::Greater,
            }),
            Test::Contains(part) => match (value, part) {
                (Value::List(items), part) => is_in(part, items),
                (Value::Text(text), Operand::Text(part)) => fold(text).contains(&fold(part)),
                _ => false,
            },
            Test::Prefix(start) => match value {
                Value::Text(text) => begins(text, start),
                Value::List(items) => items
                    .iter()
                    .any(|item| matches!(item, Value::Text(text) if begins(text, start))),
                _ => false,
            },
            Test::Any(wanted) => match value {
                Value::List(items) => wanted.iter().any(|one| is_in(one, items)),
                _ => false,
            },
            Test::All(wanted) => match value {
                Value::List(items) => wanted.iter().all(|one| is_in(one, items)),
                _ => false,
            },
        }
    }

    fn begins(text: &str, start: &str) -> bool {
        text.chars().take(start.chars().count()).eq(start.chars())
    }

    fn equal(value: &Value, other: &Operand) -> bool {
        match (value, other) {
            (Value::List(items), Operand::List(others)) => {
                items.len() == others.len()
                    && items.iter().zip(others).all(|(item, other)| equal(item, other))
            }
            (Value::Object(entries), Operand::Object(others)) => {
                let has = |(key, value): &(String, Value)| {
                    others.iter().any(|(other, wanted)| **key == **other && equal(value, wanted))
                };
                entries.len() == others.len() && entries.iter().all(has)
            }
            (Value::Null, Operand::Null) => true,
            (Value::Bool(value), Operand::Bool(other)) => value == other,
            (Value::Id(value), Operand::Id(other)) => value == other,
            _ => compare(value, other) == Some(Ordering::Equal),
        }
    }

    fn compare(value: &Value, other: &Operand) -> Option<Ordering> {
        match (value, other) {
            (Value::Int(value), Operand::Float(other)) => int_to_float(*value, *other),
            (Value::Int(_), Operand::After(other)) => 0.0_f64.partial_cmp(other),
            (Value::Float(value), Operand::After(other)) => {
                Some(if value > other { Ordering::Greater } else { Ordering::Less })
            }
            (Value::Float(value), Operand::Int(other)) => {
                int_to_float(*other, *value).map(Ordering::reverse)
            }
            (Value::Float(value), Operand::Float(other)) => value.partial_cmp(other),
            (Value::Text(value), Operand::Text(other)) => Some(value.chars().cmp(other.chars())),
            (Value::Int(value), Operand::Int(other))
            | (Value::Moment(value), Operand::Moment(other)) => Some(value.cmp(other)),
            _ => None,
        }
    }

    /// With the float's floor as a wider integer; greater ones saturate beyond every `i64`.
    fn int_to_float(int: i64, float: f64) -> Option<Ordering> {
        if float.is_nan() {
            return None;
        }
        let floor = i128::from(int).cmp(&(float.floor() as i128));
        let is_between = floor.is_eq() && float > float.floor();
        Some(if is_between { Ordering::Less } else { floor })
    }

    pub(super) fn is_inside(ask: &Ask<'_>, row: &Row) -> bool {
        let record = &row.record;
        let is_named = |named: Option<&str>, known: &Option<String>| {
            named.is_none_or(|named| known.as_deref() == Some(named))
        };
        let is_whose = match ask.scope.user {
            Users::All => true,
            Users::Nobody => record.user.is_none(),
            Users::One(user) => record.user.as_deref() == Some(user),
        };
        is_whose
            && is_named(ask.scope.project, &record.project)
            && is_named(ask.scope.session, &record.session)
            && record.expires_at.is_none_or(|time| time > ask.now)
            && !ask.exclude.contains(&record.id)
            && ask.filter.is_none_or(|filter| holds(filter, row))
    }
}

/// JSON as a writer would write it.
fn json(value: &Value) -> String {
    match value {
        Value::Null | Value::Id(_) | Value::Moment(_) => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(text) => quoted(text),
        Value::List(items) => {
            format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(","))
        }
        Value::Object(entries) => object(entries),
    }
}

fn object(entries: &[(String, Value)]) -> String {
    let written = entries.iter().map(|(key, value)| format!("{}:{}", quoted(key), json(value)));
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    let letter = |letter: char| match letter {
        '"' => "\\\"".into(),
        '\\' => "\\\\".into(),
        control @ '\0'..' ' => format!("\\u{:04x}", u32::from(control)),
        other => other.to_string(),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

// Values of rows and filters: few, so that they meet.

const WORDS: [&str; 22] = [
    "tea",
    "Tea",
    "TEA at noon",
    "Straße",
    "STRASSE",
    "İstanbul",
    "i\u{307}stanbul",
    "café",
    "CAFE\u{301}",
    "ΟΔΟΣ",
    "οδος",
    "ﬁsh",
    "fish",
    "２０ ℃",
    "20 °c",
    "😀",
    "\u{ffff}",
    "1",
    "null",
    "[1]",
    " ",
    "say \"so\" \\ \n",
];
const KEYS: [&str; 8] = ["a", "b", "b.c", "say \"so\"", "$", "café", "", "line\nbreak"];
const INTS: [i64; 12] =
    [0, 1, -1, 2, 3, 10, 1 << 53, -(1 << 53), (1 << 53) - 1, (1 << 53) + 1, i64::MAX, i64::MIN];
const FLOATS: [f64; 15] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    2.0,
    0.1,
    0.300_000_000_000_000_04,
    0.3,
    1e300,
    -1e300,
    5e-324,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
];
const TIMES: [i64; 6] =
    [0, -1, 1, 1_777_636_800_000_000, -2_177_452_800_000_000, 253_402_300_799_999_999];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![6 => select(&WORDS[..]).prop_map(String::from), 1 => ".{0,4}"]
}

fn optional_word() -> impl Strategy<Value = Option<String>> {
    prop::option::of(select(&WORDS[..8]).prop_map(String::from))
}

fn int() -> impl Strategy<Value = i64> {
    prop_oneof![4 => select(&INTS[..]), 1 => any::<i64>()]
}

fn float() -> impl Strategy<Value = f64> {
    let finite = any::<f64>().prop_filter("finite", |float| float.is_finite());
    prop_oneof![4 => select(&FLOATS[..]), 1 => finite, 1 => 0.0..1.0_f64]
}

fn time() -> impl Strategy<Value = i64> {
    select(&TIMES[..])
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        2 => (-(1_i64 << 53)..=1 << 53).prop_map(Value::Int),
        2 => select(&INTS[..9]).prop_map(Value::Int),
        3 => float().prop_map(Value::Float),
        4 => word().prop_map(Value::Text),
    ];
    scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::btree_map(select(&KEYS[..]).prop_map(String::from), inner, 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn row()(
        names in (
            prop::option::of(select(&["alice", "bob"][..]).prop_map(String::from)),
            optional_word(), optional_word(), optional_word(), optional_word(), optional_word(),
            optional_word(),
        ),
        small in (0_u8..7, 0_u8..3, any::<bool>()),
        times in (time(), time(), prop::option::of(time()), prop::option::of(time())),
        numbers in (0_i64..4, float(), int(), prop::option::of(0_i64..5)),
        message in optional_word(),
        tags in prop::collection::vec(word(), 0..4),
        metadata in prop::collection::btree_map(select(&KEYS[..]).prop_map(String::from), value(), 0..6),
        content in word(),
        source in prop::option::of(word()),
        id in 0_u8..40,
    ) -> Row {
        let metadata: Vec<_> = metadata.into_iter().collect();
        let (user, project, session, role, speaker, category, scope) = names;
        let tag_values: Vec<Value> = tags.iter().cloned().map(Value::Text).collect();
        let record = Record {
            row: 0,
            id: [id; 16],
            user, project, session, role, speaker, category, scope, source, message,
            kind: small.0,
            status: small.1,
            sensitive: small.2,
            created_at: times.0,
            updated_at: times.1,
            last_accessed_at: times.2,
            expires_at: times.3,
            access_count: numbers.0,
            importance: numbers.1,
            version: numbers.2,
            position: numbers.3,
            tags: (!tags.is_empty()).then(|| json(&Value::List(tag_values))),
            metadata: (!metadata.is_empty()).then(|| object(&metadata)),
            content,
        };
        Row { record, tags, metadata }
    }
}

fn field() -> impl Strategy<Value = Field> {
    let plain = [
        Field::Id,
        Field::Type,
        Field::Status,
        Field::Role,
        Field::Speaker,
        Field::Session,
        Field::Project,
        Field::Category,
        Field::Scope,
        Field::Source,
        Field::Version,
        Field::Importance,
        Field::AccessCount,
        Field::CreatedAt,
        Field::UpdatedAt,
        Field::LastAccessedAt,
        Field::ExpiresAt,
        Field::Content,
        Field::Tags,
        Field::Sensitive,
        Field::Message,
        Field::Position,
    ];
    let key = || select(&KEYS[..]).prop_map(Box::from);
    prop_oneof![
        3 => select(plain.to_vec()),
        2 => key().prop_map(|key| Field::Metadata([key].into())),
        1 => prop::collection::vec(key(), 1..4).prop_map(|path| Field::Metadata(path.into())),
    ]
}

/// The operand that a value is equal to.
fn operand(value: Value) -> Operand {
    match value {
        Value::Null | Value::Id(_) | Value::Moment(_) => Operand::Null,
        Value::Bool(value) => Operand::Bool(value),
        Value::Int(value) => Operand::Int(value),
        Value::Float(value) => Operand::Float(value),
        Value::Text(text) => Operand::Text(text.into()),
        Value::List(items) => Operand::List(items.into_iter().map(operand).collect()),
        Value::Object(entries) => Operand::Object(
            entries.into_iter().rev().map(|(key, value)| (key.into(), operand(value))).collect(),
        ),
    }
}

/// A value that fits the field four times in five.
fn scalar(field: &Field) -> BoxedStrategy<Operand> {
    let text = word().prop_map(|text| Operand::Text(text.into())).boxed();
    let number =
        prop_oneof![int().prop_map(Operand::Int), float().prop_map(Operand::Float)].boxed();
    let any_kind = prop_oneof![
        Just(Operand::Null),
        any::<bool>().prop_map(Operand::Bool),
        (0_i64..7).prop_map(Operand::Int),
        number.clone(),
        text.clone(),
        time().prop_map(Operand::Moment),
        (0_u8..40).prop_map(|id| Operand::Id([id; 16])),
        Just(Operand::Float(f64::NAN)),
        select(&[1e19, -1e19, 1e300, f64::MAX, f64::NEG_INFINITY]).prop_map(Operand::After),
        value().prop_map(operand),
    ];
    let fitting = match field {
        Field::Id => (0_u8..40).prop_map(|id| Operand::Id([id; 16])).boxed(),
        Field::Type | Field::Status => (0_i64..7).prop_map(Operand::Int).boxed(),
        Field::Sensitive => any::<bool>().prop_map(Operand::Bool).boxed(),
        Field::Version | Field::AccessCount | Field::Importance | Field::Position => {
            prop_oneof![number, (0_i64..5).prop_map(Operand::Int)].boxed()
        }
        Field::CreatedAt | Field::UpdatedAt | Field::LastAccessedAt | Field::ExpiresAt => {
            time().prop_map(Operand::Moment).boxed()
        }
        Field::Metadata(_) => prop_oneof![text, number, value().prop_map(operand)].boxed(),
        Field::Tags => {
            let tag = word().prop_map(|tag| Operand::Text(tag.into()));
            let tags = prop::collection::vec(tag, 0..3).prop_map(Operand::List);
            prop_oneof![text, tags].boxed()
        }
        _ => text.boxed(),
    };
    prop_oneof![4 => fitting, 1 => any_kind].boxed()
}

fn start() -> impl Strategy<Value = Box<str>> {
    (word(), 0_usize..3)
        .prop_map(|(word, length)| word.chars().take(length).collect::<String>().into())
}

fn test(field: &Field) -> BoxedStrategy<Test> {
    let (one, few) = (scalar(field), prop::collection::vec(scalar(field), 0..4));
    let order = select(&[Order::Above, Order::AtLeast, Order::Below, Order::AtMost][..]);
    let lists = prop_oneof![
        one.clone().prop_map(Test::Contains),
        start().prop_map(Test::Prefix),
        few.clone().prop_map(Test::Any),
        few.clone().prop_map(Test::All),
    ];
    let others = prop_oneof![
        any::<bool>().prop_map(Test::Exists),
        start().prop_map(Test::Prefix),
        one.clone().prop_map(Test::Equal),
        one.clone().prop_map(Test::NotEqual),
        (order, one).prop_map(|(order, than)| Test::Ordered(order, than)),
        few.clone().prop_map(Test::In),
        few.prop_map(Test::NotIn),
    ];
    match field {
        Field::Tags => prop_oneof![4 => lists, 1 => others].boxed(),
        _ => prop_oneof![1 => lists, 3 => others].boxed(),
    }
}

fn filter() -> impl Strategy<Value = Filter> {
    let leaf = field().prop_flat_map(|field| {
        test(&field).prop_map(move |test| Filter::Test(field.clone(), test))
    });
    leaf.prop_recursive(3, 16, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            parts.clone().prop_map(Filter::All),
            parts.prop_map(Filter::AnyOf),
            inner.prop_map(|part| Filter::Not(Box::new(part))),
        ]
    })
}

/// A change of the columns, of an existing docid.
#[derive(Debug, Clone)]
enum Step {
    Push(Box<Row>),
    PushAgain(Index, Box<Row>),
    Replace(Index, Box<Row>),
    Access(Index, Option<i64>, i64),
    Kill(Index),
    Ask(Box<Filter>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => row().prop_map(|row| Step::Push(Box::new(row))),
        1 => (any::<Index>(), row()).prop_map(|(at, row)| Step::PushAgain(at, Box::new(row))),
        3 => (any::<Index>(), row()).prop_map(|(at, row)| Step::Replace(at, Box::new(row))),
        2 => (any::<Index>(), prop::option::of(time()), int())
            .prop_map(|(at, time, count)| Step::Access(at, time, count)),
        3 => any::<Index>().prop_map(Step::Kill),
        3 => filter().prop_map(|filter| Step::Ask(Box::new(filter))),
    ]
}

/// Access counts only grow: accesses counted here may not be in a record yet.
fn raise(record: &mut Record, last: Option<i64>, count: i64) {
    record.last_accessed_at = record.last_accessed_at.max(last);
    record.access_count = record.access_count.max(count);
}

/// Columns and their expected content: the rows of live docids.
#[derive(Clone, Default)]
struct Both {
    columns: Columns,
    rows: BTreeMap<u32, Row>,
    pushed: i64,
}

impl Both {
    fn some_docid(&self, which: Index) -> u32 {
        which.index(self.columns.len().max(1)) as u32
    }

    fn push(&mut self, mut row: Row, number: i64) {
        row.record.row = number;
        let known = self.rows.values().find(|known| known.record.row == number);
        if let Some(known) = known {
            raise(&mut row.record, known.record.last_accessed_at, known.record.access_count);
        }
        self.rows.retain(|_, known| known.record.row != number);
        let docid = self.columns.push(&row.record);
        assert_eq!(docid as usize + 1, self.columns.len());
        self.rows.insert(docid, row);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Push(row) => {
                self.pushed += 1;
                self.push(*row, self.pushed);
            }
            Step::PushAgain(at, row) => {
                if let Some(known) = self.rows.get(&self.some_docid(at)) {
                    self.push(*row, known.record.row);
                }
            }
            Step::Replace(at, mut row) => {
                let docid = self.some_docid(at);
                match self.rows.get_mut(&docid) {
                    None => assert!(!self.columns.replace(docid, &row.record)),
                    Some(known) => {
                        row.record.row = known.record.row;
                        assert!(self.columns.replace(docid, &row.record));
                        let Record { last_accessed_at, access_count, .. } = known.record;
                        raise(&mut row.record, last_accessed_at, access_count);
                        *known = *row;
                    }
                }
            }
            Step::Access(at, time, count) => {
                let docid = self.some_docid(at);
                let known = self.rows.get_mut(&docid);
                assert_eq!(self.columns.raise_access(docid, time, count), known.is_some());
                if let Some(known) = known {
                    raise(&mut known.record, time, count);
                }
            }
            Step::Kill(at) => {
                let docid = self.some_docid(at);
                assert_eq!(self.columns.remove(docid), self.rows.remove(&docid).is_some());
            }
            Step::Ask(filter) => self.check(&everyone(&filter)),
        }
    }

    fn check(&self, ask: &Ask<'_>) {
        let found = self.columns.select(ask);
        let wanted: Vec<u32> = self
            .rows
            .iter()
            .filter(|(_, row)| twin::is_inside(ask, row))
            .map(|(docid, _)| *docid)
            .collect();
        assert_eq!(found.docids(), wanted, "{ask:?}");
        assert_eq!(found.len(), wanted.len());
    }

    fn check_all(&self) {
        assert_eq!(self.columns.live(), self.rows.len());
        for (docid, row) in &self.rows {
            assert_eq!(self.columns.docid_of(row.record.row), Some(*docid));
            assert_eq!(self.columns.row_of(*docid), Some(row.record.row));
            assert_eq!(self.columns.content(*docid), Some(row.record.content.as_str()));
        }
        let docids = 0..self.columns.len() as u32;
        for docid in docids.filter(|docid| !self.rows.contains_key(docid)) {
            assert_eq!((self.columns.row_of(docid), self.columns.content(docid)), (None, None));
        }
        self.check_neighbours();
    }

    fn check_neighbours(&self) {
        let with_session = self.rows.iter().filter(|(_, row)| row.record.session.is_some());
        let mut sessions: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (docid, Row { record, .. }) in with_session {
            let key = (record.position.is_none(), record.position, record.created_at, record.row);
            sessions.entry((&record.user, &record.session)).or_default().push((key, *docid));
        }
        let mut wanted = vec![(NO_DOCID, NO_DOCID); self.columns.len()];
        for session in sessions.values_mut() {
            session.sort_unstable();
            for pair in session.windows(2) {
                wanted[pair[0].1 as usize].1 = pair[1].1;
                wanted[pair[1].1 as usize].0 = pair[0].1;
            }
        }
        let mut found = Vec::new();
        for block in (0..).map_while(|block| self.columns.block(block)) {
            found.extend(block.previous.iter().copied().zip(block.next.iter().copied()));
        }
        assert_eq!(found, wanted);
    }
}

fn everyone(filter: &Filter) -> Ask<'_> {
    let scope = Scope { user: Users::All, ..Scope::default() };
    Ask { scope, filter: Some(filter), now: i64::MIN, ..Ask::default() }
}

fn both(rows: Vec<Row>) -> Both {
    let mut both = Both::default();
    for row in rows {
        both.take(Step::Push(Box::new(row)));
    }
    both
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_filter_selects_the_rows_of_the_twin(
        rows in prop::collection::vec(row(), 0..120),
        filters in prop::collection::vec(filter(), 1..12),
    ) {
        let both = both(rows);
        for filter in &filters {
            both.check(&everyone(filter));
            both.check(&everyone(&Filter::Not(Box::new(filter.clone()))));
        }
    }

    #[test]
    fn any_scope_time_and_exclusions_select_the_rows_of_the_twin(
        rows in prop::collection::vec(row(), 0..120),
        filter in prop::option::of(filter()),
        user in select(vec![Users::All, Users::Nobody, Users::One("alice"), Users::One("carol")]),
        names in (optional_word(), optional_word()),
        now in time(),
        exclude in prop::collection::vec((0_u8..40).prop_map(|id| [id; 16]), 0..9),
    ) {
        let scope = Scope { user, project: names.0.as_deref(), session: names.1.as_deref() };
                let filter = filter.as_ref();
        both(rows).check(&Ask { scope, filter, exclude: &exclude, now, ..Ask::default() });
    }

    #[test]
    fn any_changes_leave_the_rows_of_the_twin_and_copies_as_they_were(
        steps in prop::collection::vec(step(), 1..160),
        filter in filter(),
    ) {
        let mut both = Both::default();
        let mut copies = Vec::new();
        for (turn, step) in steps.into_iter().enumerate() {
            if turn % 20 == 10 {
                copies.push(both.clone());
            }
            both.take(step);
        }
        for known in copies.iter().chain([&both]) {
            known.check_all();
            known.check(&everyone(&filter));
        }
        // A copy can be changed as well as the original, without either seeing the other.
        if let Some(mut other) = copies.pop() {
            let rows: Vec<Row> = both.rows.values().take(5).cloned().collect();
            for row in rows {
                other.take(Step::Push(Box::new(row)));
            }
            other.check_all();
            other.check(&everyone(&filter));
            both.check_all();
            both.check(&everyone(&filter));
        }
    }
}

fn plain(number: usize) -> Row {
    let record = Record { content: format!("text {number}"), ..Record::default() };
    Row { record, tags: Vec::new(), metadata: Vec::new() }
}

fn with_metadata(number: usize, value: Value) -> Row {
    let metadata = vec![("k".to_owned(), value)];
    let mut row = plain(number);
    row.record.metadata = Some(object(&metadata));
    Row { metadata, ..row }
}

fn metadata_test(test: Test) -> Filter {
    Filter::Test(Field::Metadata(["k".into()].into()), test)
}

#[test]
fn thousands_of_rows_come_and_go_in_many_chunks() {
    let mut known = Both::default();
    for number in 0..2600 {
        let mut row = with_metadata(number, Value::Int(number as i64 % 7));
        row.record.session = (number % 3 > 0).then(|| format!("session {}", number % 4));
        row.record.created_at = (number * 2617 % 5003) as i64;
        known.take(Step::Push(Box::new(row)));
    }
    let filter = metadata_test(Test::Equal(Operand::Int(3)));
    known.check(&everyone(&filter));
    let older = known.clone();
    // All of the second block and every fifth of the others.
    for docid in (0..2600).filter(|docid| docid / 512 == 1 || docid % 5 == 0) {
        assert!(known.columns.remove(docid));
        known.rows.remove(&docid);
    }
    known.check(&everyone(&filter));
    known.check_all();
    older.check_all();
    older.check(&everyone(&filter));
    assert!(known.columns.block(1).is_some_and(|block| block.attributes.row.is_empty()));
    assert_eq!(
        older.columns.block(1).map(|block| block.attributes.row.len()),
        Some(Columns::BLOCK)
    );
}

#[test]
fn a_memory_may_have_a_thousand_tags() {
    let tags =
        |count: usize| -> Vec<String> { (0..count).map(|tag| format!("tag {tag}")).collect() };
    let rows = [0, 1, 500, 1000].map(|count| {
        let tags = tags(count);
        let values = tags.iter().cloned().map(Value::Text).collect();
        let record = Record { tags: Some(json(&Value::List(values))), ..plain(count).record };
        Row { record, tags, metadata: Vec::new() }
    });
    let known = both(rows.to_vec());
    let wanted = |count: usize| -> Vec<Operand> {
        tags(count).into_iter().map(|tag| Operand::Text(tag.into())).collect()
    };
    let tests = [
        (Test::All(wanted(1000)), vec![3]),
        (Test::All(wanted(500)), vec![2, 3]),
        (Test::All(wanted(1001)), vec![]),
        (Test::All(vec![]), vec![0, 1, 2, 3]),
        (Test::Any(wanted(1000)), vec![1, 2, 3]),
        (Test::Any(wanted(10_000).split_off(400)), vec![2, 3]),
        (Test::Contains(Operand::Text("tag 999".into())), vec![3]),
        (Test::Contains(Operand::Text("tag".into())), vec![]),
    ];
    for (test, docids) in tests {
        let filter = Filter::Test(Field::Tags, test);
        known.check(&everyone(&filter));
        assert_eq!(known.columns.select(&everyone(&filter)).docids(), docids);
    }
}

#[test]
fn ten_thousand_values_are_as_good_as_one() {
    let ints = |range: std::ops::Range<i64>| -> Vec<Operand> { range.map(Operand::Int).collect() };
    let known = both(vec![
        with_metadata(0, Value::Int(99)),
        with_metadata(1, Value::List((0..100).map(Value::Int).collect())),
    ]);
    let tests = [
        (Test::In(ints(0..10_000)), vec![0]),
        (Test::In(ints(100..10_100)), vec![]),
        (Test::NotIn(ints(0..10_000)), vec![1]),
        (Test::Any(ints(99..10_099)), vec![1]),
        (Test::Any(ints(100..10_100)), vec![]),
        (Test::All([ints(0..100), ints(0..100)].concat()), vec![1]),
        (Test::All(ints(0..10_000)), vec![]),
    ];
    for (test, docids) in tests {
        assert_eq!(known.columns.select(&everyone(&metadata_test(test))).docids(), docids);
    }
}

#[test]
fn deep_filters_and_deep_metadata_are_judged() {
    let deep = (0..60).fold(Value::Int(1), |inner, _| Value::List(vec![inner]));
    let known =
        both(vec![with_metadata(0, deep), with_metadata(1, Value::List(vec![Value::Int(1)]))]);
    let mut filter = metadata_test(Test::Contains(Operand::Float(1.0)));
    for _ in 0..200 {
        filter = Filter::All(vec![Filter::Not(Box::new(filter))]);
    }
    assert_eq!(known.columns.select(&everyone(&filter)).docids(), [1]);
}

#[test]
fn a_session_that_no_memory_has_selects_nothing() {
    let known = both(vec![plain(0), plain(1)]);
    let scope = Scope { user: Users::All, session: Some("nowhere"), ..Scope::default() };
    let found = known.columns.select(&Ask { scope, ..Ask::default() });
    assert!(found.is_empty() && found.docids().is_empty());
    assert_eq!(known.columns.select(&Ask::default()).docids(), [0, 1]);
}

#[test]
fn codes_stand_for_the_texts_of_all_copies() {
    let mut columns = Columns::new();
    let copy = columns.clone();
    columns.push(&Record { speaker: Some("Ann".into()), ..Record::default() });
    let code = columns.code_of("Ann").expect("a row has it");
    assert_eq!(columns.block(0).map(|block| block.attributes.speaker[0]), Some(code));
    assert_eq!(copy.text_of(code).as_deref(), Some("Ann"));
    assert_eq!((copy.code_of("Bob"), copy.text_of(0), copy.text_of(99)), (None, None, None));
    assert!(copy.is_empty() && copy.block(0).is_none() && !columns.is_empty());
}
