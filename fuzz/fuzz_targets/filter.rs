//! Filters over tags and metadata that are any text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::columns::{Record, matches};
use mnemic_core::filter::{Field, Filter, Operand, Order, Test};

fuzz_target!(|given: (&str, &str, &str, &str)| {
    let (tags, metadata, name, wanted) = given;
    let record = Record {
        tags: Some(tags.to_owned()),
        metadata: Some(metadata.to_owned()),
        content: wanted.to_owned(),
        ..Record::default()
    };
    let path = Field::Metadata(name.split('.').map(Box::from).collect());
    for test in [
        Test::Equal(Operand::Text(wanted.into())),
        Test::Ordered(Order::Below, Operand::Text(wanted.into())),
        Test::Contains(Operand::Text(wanted.into())),
        Test::Prefix(wanted.into()),
    ] {
        for field in [path.clone(), Field::Tags, Field::Content] {
            let _ = matches(&Filter::Test(field, test.clone()), std::slice::from_ref(&record));
        }
    }
});
