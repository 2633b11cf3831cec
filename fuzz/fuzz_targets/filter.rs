//! Filters over tags and metadata that are any text: true or false, and the other when negated.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mnemic_core::columns::{Record, matches};
use mnemic_core::filter::{Field, Filter, Operand, Order, Test};
use mnemic_fuzz::begin_with;

/// The kinds of test and operand, a character each; tags, metadata, a path, and a value.
const BEGINNING: &str = "11\n[\"a\", \"b\"]\n{\"k\": {\"a\": [1.5, null]}}\nk.a\n1";

fn write_text(folder: &Path) {
    std::fs::write(folder.join("valid"), BEGINNING).expect("a file");
}

fn operand(kind: u8, text: &str) -> Operand {
    let element = || Operand::Text(text.into());
    match kind % 8 {
        0 => Operand::Null,
        1 => text.parse().map_or(Operand::Bool(true), Operand::Int),
        2 => text.parse().map_or(Operand::Bool(false), Operand::Float),
        3 => text.parse().map_or(Operand::Null, Operand::After),
        4 => Operand::List(vec![element(), Operand::Int(1)]),
        5 => Operand::Object(vec![(text.into(), Operand::Float(1.0))]),
        6 => text.parse().map_or(Operand::Id([7; 16]), Operand::Moment),
        _ => element(),
    }
}

fn test(kind: u8, wanted: Operand, text: &str) -> Test {
    match kind % 10 {
        0 => Test::Exists(true),
        1 => Test::Equal(wanted),
        2 => Test::NotEqual(wanted),
        3 => Test::Ordered(Order::Below, wanted),
        4 => Test::In(vec![wanted, Operand::Null]),
        5 => Test::NotIn(vec![wanted]),
        6 => Test::Contains(wanted),
        7 => Test::Prefix(text.into()),
        8 => Test::Any(vec![wanted, Operand::Text(text.into())]),
        _ => Test::All(vec![wanted]),
    }
}

fuzz_target!(init: begin_with("filter", write_text), |text: &str| {
    let mut lines = text.split('\n');
    let [kinds, tags, metadata, name, wanted] = [(); 5].map(|()| lines.next().unwrap_or(""));
    let kind = |at: usize| kinds.as_bytes().get(at).copied().unwrap_or(0);
    let record = Record {
        tags: Some(tags.to_owned()),
        metadata: Some(metadata.to_owned()),
        content: wanted.to_owned(),
        ..Record::default()
    };
    let passes = |filter: &Filter| {
        matches(filter, std::slice::from_ref(&record)).expect("memory for a short text")
    };
    let path = Field::Metadata(name.split('.').map(Box::from).collect());
    for field in [path, Field::Tags, Field::Content] {
        let filter = Filter::Test(field, test(kind(0), operand(kind(1), wanted), wanted));
        let found = passes(&filter);
        assert_ne!(passes(&Filter::Not(Box::new(filter))), found);
    }
});
