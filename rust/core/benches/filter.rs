//! Columns of 100,000 rows: selecting by scope and filter, adding, copying, and bytes a record.
//!
//! Each selection first checks its number of rows against going through the records.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use mnemic_core::columns::{Ask, Columns, Record, Scope, Users};
use mnemic_core::filter::{Field, Filter, Operand, Order, Test};

const ROWS: usize = 100_000;
const SECOND: i64 = 1_000_000;

/// A number that looks drawn (`SplitMix64`).
fn drawn(seed: usize, below: usize) -> usize {
    let mut mixed = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) % below as u64) as usize
}

const TOPICS: [&str; 8] = ["travel", "food", "work", "health", "family", "music", "sport", "money"];

fn record(number: usize) -> Record {
    let draw = |what: usize, below| drawn(number * 16 + what, below);
    let topic = TOPICS[draw(0, 8)];
    let mut id = [0; 16];
    id[..8].copy_from_slice(&(number as u64).to_be_bytes());
    id[8..].copy_from_slice(&(draw(1, usize::MAX) as u64).to_be_bytes());
    Record {
        row: number as i64,
        id,
        user: Some(format!("user {}", draw(2, 10))),
        project: None,
        session: Some(format!("session {}", number / 20)),
        role: Some("user".into()),
        speaker: Some(["Ann", "Bob"][number % 2].into()),
        kind: draw(3, 7) as u8,
        created_at: number as i64 * SECOND,
        updated_at: number as i64 * SECOND,
        importance: draw(4, 1000) as f64 / 1000.0,
        version: 1,
        position: Some((number % 20) as i64),
        tags: Some(format!("[\"{topic}\",\"tag {}\"]", draw(5, 40))),
        metadata: Some(format!("{{\"source\":\"chat\",\"topic\":\"{topic}\",\"n\":{number}}}")),
        content: format!(
            "On day {number} the two of them talked about {topic} for a while, and then agreed to \
             meet again at {} o'clock",
            draw(6, 24)
        ),
        ..Record::default()
    }
}

fn records() -> Vec<Record> {
    (0..ROWS).map(record).collect()
}

fn columns_of(records: &[Record]) -> Columns {
    let mut columns = Columns::new();
    for record in records {
        columns.push(record);
    }
    columns
}

fn metadata(key: &str, test: Test) -> Filter {
    Filter::Test(Field::Metadata([key.into()].into()), test)
}

fn text(text: &str) -> Operand {
    Operand::Text(text.into())
}

type Passes = fn(&Record) -> bool;

/// Name, filter, and the same test of a record.
fn filters() -> Vec<(&'static str, Filter, Passes)> {
    let tagged = |tag| Filter::Test(Field::Tags, Test::Contains(text(tag)));
    vec![
        ("one tag of 12 %", tagged("food"), |record| {
            record.tags.as_deref().is_some_and(|tags| tags.contains("food"))
        }),
        ("one tag of 2.5 %", tagged("tag 7"), |record| {
            record.tags.as_deref().is_some_and(|tags| tags.ends_with("\"tag 7\"]"))
        }),
        ("metadata of few values", metadata("topic", Test::Equal(text("food"))), |record| {
            record.content.contains("about food")
        }),
        (
            "metadata of many values",
            metadata("n", Test::Ordered(Order::Below, Operand::Int(50_000))),
            |record| record.row < 50_000,
        ),
        (
            "type in",
            Filter::Test(Field::Type, Test::In(vec![Operand::Int(1), Operand::Int(4)])),
            |record| record.kind == 1 || record.kind == 4,
        ),
        (
            "content contains",
            Filter::Test(Field::Content, Test::Contains(text("About FOOD"))),
            |record| record.content.contains("about food"),
        ),
    ]
}

fn selecting(criterion: &mut Criterion) {
    let records = records();
    let columns = columns_of(&records);
    let mut group = criterion.benchmark_group("select/100000");
    let of_user = Scope { user: Users::One("user 3"), ..Scope::default() };
    let everyone = Scope { user: Users::All, ..Scope::default() };
    let mut run = |name: &str, ask: Ask<'_>, passes: &dyn Fn(&Record) -> bool| {
        let wanted = records.iter().filter(|record| passes(record)).count();
        assert_eq!(columns.select(&ask).docids().len(), wanted, "{name}");
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            bench.iter(|| black_box(columns.select(black_box(&ask)).docids()));
        });
    };
    let is_theirs = |record: &Record| record.user.as_deref() == Some("user 3");
    run("user", Ask { scope: of_user, ..Ask::default() }, &is_theirs);
    run("all", Ask { scope: everyone, ..Ask::default() }, &|_| true);
    let important =
        Filter::Test(Field::Importance, Test::Ordered(Order::AtLeast, Operand::Float(0.8)));
    run(
        "user and importance",
        Ask { scope: of_user, filter: Some(&important), ..Ask::default() },
        &|record| is_theirs(record) && record.importance >= 0.8,
    );
    for (name, filter, passes) in filters() {
        run(name, Ask { scope: everyone, filter: Some(&filter), ..Ask::default() }, &passes);
    }
    let exclude: Vec<[u8; 16]> = records.iter().step_by(1000).map(|record| record.id).collect();
    run("100 excluded", Ask { scope: everyone, exclude: &exclude, ..Ask::default() }, &|record| {
        record.row % 1000 != 0
    });
    group.finish();
}

fn changing(criterion: &mut Criterion) {
    let records = records();
    let columns = columns_of(&records);
    let more: Vec<Record> = (ROWS..ROWS + 1000).map(record).collect();
    let mut group = criterion.benchmark_group("change/100000");
    group.bench_function("copy", |bench| bench.iter(|| black_box(columns.clone())));
    group.bench_function("push 1000 in one copy", |bench| {
        bench.iter_batched(
            || columns.clone(),
            |mut columns| {
                for record in &more {
                    columns.push(record);
                }
                columns
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("push 1000, a copy published after each", |bench| {
        bench.iter_batched(
            || columns.clone(),
            |mut published| {
                for record in &more {
                    let mut draft = published.clone();
                    draft.push(record);
                    published = draft;
                }
                published
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("access 1000 in one copy", |bench| {
        bench.iter_batched(
            || columns.clone(),
            |mut columns| {
                for turn in 0..1000 {
                    columns.raise_access(drawn(turn, ROWS) as u32, Some(1), 1);
                }
                columns
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("first metadata test", |bench| {
        let filter = metadata("topic", Test::Equal(text("food")));
        let scope = Scope { user: Users::All, ..Scope::default() };
        let ask = Ask { scope, filter: Some(&filter), ..Ask::default() };
        bench.iter_batched(
            || columns_of(&records),
            |columns| (columns.select(&ask), columns),
            BatchSize::PerIteration,
        );
    });
    group.finish();
    bytes(criterion, &columns, &records);
}

/// Bytes of a record, as the name of a benchmark without a time.
fn bytes(criterion: &mut Criterion, columns: &Columns, records: &[Record]) {
    let a_record = columns.bytes() as f64 / records.len() as f64;
    assert!(a_record < 250.0, "{a_record} bytes a record");
    let name = format!("{a_record:.1} a record, without texts");
    criterion
        .benchmark_group("bytes")
        .bench_function(name, |bench| bench.iter(|| black_box(columns.bytes())));
}

criterion_group!(benches, selecting, changing);
criterion_main!(benches);
