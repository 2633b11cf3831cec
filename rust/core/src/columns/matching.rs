//! Filters over records that are in no index.

use crate::Error;
use crate::collections::cow_vec::BLOCK_VALUES;
use crate::filter::Filter;
use crate::system::memory_budget::{CALL, headroom, of_folding};

use super::plan::Plan;
use super::{Bitmap, ColumnBlock, Interner, Record};

/// Whether each record passes a filter, in their order.
///
/// Columns of some records at a time are built and tested by the plan that an index runs, so a
/// record passes here if and only if it is selected there.
///
/// # Errors
///
/// When memory runs out.
pub fn matches(filter: &Filter, records: &[Record]) -> Result<Vec<bool>, Error> {
    let mut passed = Vec::new();
    for_each_block(filter, records, |block, kept, _| {
        passed.extend((0..block.live.count()).map(|at| kept.has(at)));
    })?;
    Ok(passed)
}

/// Pass on columns of some records at a time, and the docids of the records that pass a filter.
pub(super) fn for_each_block(
    filter: &Filter,
    records: &[Record],
    mut visit: impl FnMut(&ColumnBlock, &Bitmap, &Interner),
) -> Result<(), Error> {
    for records in records.chunks(BLOCK_VALUES) {
        headroom(bytes_of_matching(records))?;
        let texts = Interner::default();
        let block = ColumnBlock::of(records, &texts);
        let kept = Plan::new(filter, &texts).keep(&block, &Bitmap::first(records.len()));
        visit(&block, &kept, &texts);
    }
    Ok(())
}

/// Bytes of the columns of one block, without its texts.
const BYTES_PER_BLOCK: usize = 160 << 10;

/// Bytes for each byte of a short text or of metadata: folded, or a list of one-digit numbers that
/// is read while it grows and sorted for a test of all its elements.
const PER_BYTE: usize = 96;

/// Largest memory for testing the records of one block.
fn bytes_of_matching(records: &[Record]) -> usize {
    let texts: usize = records.iter().map(Record::text_bytes).sum();
    let contents: usize = records.iter().map(|record| record.content.len()).sum();
    let folded = records.iter().map(|record| of_folding(&record.content)).max().unwrap_or(0);
    let parts = [CALL, BYTES_PER_BLOCK, contents * 2, (texts - contents).saturating_mul(PER_BYTE)];
    parts.into_iter().fold(folded, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::columns::{Ask, Columns, Scope, Users};
    use crate::filter::{Field, Operand, Order, Test};

    fn record(row: i64, drawn: u64) -> Record {
        let of = |shift: u32| drawn >> shift & 3;
        let text = |shift: u32| (of(shift) > 0).then(|| format!("t{}", of(shift)));
        Record {
            row,
            id: [drawn as u8; 16],
            content: format!("ab{}", of(0)).repeat(1 + of(2) as usize),
            role: text(4),
            session: text(6),
            kind: of(8) as u8,
            importance: of(10) as f64 / 3.0,
            last_accessed_at: (of(12) > 0).then_some(of(12) as i64),
            sensitive: of(14) > 1,
            tags: (of(16) > 0).then(|| format!("[\"t{}\",\"t{}\"]", of(18), of(20))),
            metadata: (of(22) > 0).then(|| format!("{{\"k\":{}}}", of(24))),
            ..Record::default()
        }
    }

    fn tests() -> impl Strategy<Value = Filter> {
        let number = (0_i64..4).prop_map(Operand::Int);
        let text = (0_u8..5).prop_map(|at| Operand::Text(format!("t{at}").into()));
        let value = prop_oneof![Just(Operand::Null), number, text];
        let test = prop_oneof![
            any::<bool>().prop_map(Test::Exists),
            value.clone().prop_map(Test::Equal),
            value.clone().prop_map(Test::NotEqual),
            value.clone().prop_map(|than| Test::Ordered(Order::AtLeast, than)),
            prop::collection::vec(value.clone(), 0..3).prop_map(Test::In),
            prop::collection::vec(value.clone(), 0..3).prop_map(Test::NotIn),
            value.clone().prop_map(Test::Contains),
            prop::collection::vec(value.clone(), 0..3).prop_map(Test::Any),
            prop::collection::vec(value, 0..3).prop_map(Test::All),
        ];
        let field = prop::sample::select(vec![
            Field::Type,
            Field::Role,
            Field::Session,
            Field::Importance,
            Field::Content,
            Field::Tags,
            Field::LastAccessedAt,
            Field::Metadata(["k".into()].into()),
        ]);
        (field, test).prop_map(|(field, test)| Filter::Test(field, test))
    }

    fn filters() -> impl Strategy<Value = Filter> {
        tests().prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::All),
                prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::AnyOf),
                inner.prop_map(|part| Filter::Not(Box::new(part))),
            ]
        })
    }

    proptest! {
        #[test]
        fn records_pass_that_an_index_of_them_selects(
            drawn in prop::collection::vec(any::<u64>(), 0..40),
            copies in 1_usize..30,
            filter in filters(),
        ) {
            let count = drawn.len() * copies;
            let drawn = drawn.into_iter().cycle().take(count);
            let records: Vec<Record> =
                drawn.zip(0..).map(|(drawn, row)| record(row, drawn)).collect();
            let mut columns = Columns::new();
            for record in &records {
                columns.push(record);
            }
            let scope = Scope { user: Users::All, ..Scope::default() };
            let selected = columns.select(&Ask { scope, filter: Some(&filter), ..Ask::default() });
            let mut expected = vec![false; count];
            for docid in selected.docids() {
                expected[docid as usize] = true;
            }
            prop_assert_eq!(matches(&filter, &records).expect("there is memory"), expected);
        }
    }

    #[test]
    fn records_may_repeat_a_row() {
        let records = [record(1, 0), record(1, u64::MAX)];
        let filter = Filter::Test(Field::Type, Test::Equal(Operand::Int(3)));
        assert_eq!(matches(&filter, &records), Ok(vec![false, true]));
        assert_eq!(matches(&filter, &[]), Ok(vec![]));
    }
}
