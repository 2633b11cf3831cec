//! Distinct values of a field, and the number of memories that have each.

use std::collections::{BTreeMap, HashMap};

use crate::Error;
use crate::filter::{Field, Filter, Json, Operand};

use super::matching::for_each_block;
use super::plan::Target;
use super::select::Selected;
use super::{Bitmap, ColumnBlock, Columns, Interner, Record};

/// The distinct values of one field: names, types, single tags, or the values at a path into the
/// metadata. Missing values and null are none. A memory counts once for each of its tags.
///
/// Values ascend: booleans, numbers, texts by code points, lists, objects.
pub struct DistinctValues {
    field: Field,
    prefix: Option<Box<str>>,
    counts: BTreeMap<Json, usize>,
}

impl DistinctValues {
    /// No values yet. With a prefix, only texts that begin with it are counted.
    pub fn new(field: Field, prefix: Option<&str>) -> Self {
        Self { field, prefix: prefix.map(Into::into), counts: BTreeMap::new() }
    }

    /// Count the values of the records that pass a filter.
    ///
    /// # Errors
    ///
    /// When memory runs out.
    pub fn add(&mut self, filter: &Filter, records: &[Record]) -> Result<(), Error> {
        for_each_block(filter, records, |block, passed, texts| {
            self.count([(block, passed)].into_iter(), texts);
        })
    }

    /// Some of the values in their order, with the numbers of memories.
    pub fn page(&self, offset: usize, limit: usize) -> Vec<(Operand, usize)> {
        let page = self.counts.iter().skip(offset).take(limit);
        page.map(|(value, count)| (value.into(), *count)).collect()
    }

    fn count<'blocks>(
        &mut self,
        blocks: impl Iterator<Item = (&'blocks ColumnBlock, &'blocks Bitmap)>,
        texts: &Interner,
    ) {
        let field = self.field.clone();
        let mut codes = HashMap::new();
        for (block, among) in blocks {
            match Target::of(&field) {
                Target::Codes(column) => {
                    among.docids().for_each(|at| *codes.entry(column(block)[at]).or_default() += 1);
                }
                Target::Tags => count_tags(block, among, &mut codes),
                Target::Bytes(column, value_of) => {
                    among.docids().for_each(|at| self.add_value(&value_of(column(block)[at]), 1));
                }
                Target::Path(path) => {
                    let column = block.at_path(path, among);
                    column.counts(among).for_each(|(value, count)| self.add_value(value, count));
                }
                // Nobody lists ids, contents, times or importances.
                Target::Id
                | Target::Content
                | Target::Importance
                | Target::Times(_)
                | Target::Wholes(_) => {}
            }
        }
        for (code, count) in codes {
            if let Some(text) = texts.text(code) {
                self.add_value(&Json::Text((*text).into()), count);
            }
        }
    }

    fn add_value(&mut self, value: &Json, count: usize) {
        let is_counted = match (value, &self.prefix) {
            (Json::Text(text), Some(prefix)) => text.starts_with(&**prefix),
            (Json::Null, _) | (_, Some(_)) => false,
            (_, None) => true,
        };
        match self.counts.get_mut(value) {
            Some(known) => *known += count,
            None if is_counted => {
                self.counts.insert(value.clone(), count);
            }
            None => {}
        }
    }
}

fn count_tags(block: &ColumnBlock, among: &Bitmap, codes: &mut HashMap<u32, usize>) {
    for (at, tags) in block.tags.lists() {
        if among.has(at) {
            for (place, tag) in tags.iter().enumerate() {
                if !tags[..place].contains(tag) {
                    *codes.entry(*tag).or_default() += 1;
                }
            }
        }
    }
}

impl Columns {
    /// Count the values of the selected memories.
    pub fn distinct(&self, selected: &Selected, values: &mut DistinctValues) {
        let blocks = self.blocks.iter().map(|block| &**block);
        let some = blocks.zip(&selected.bitmaps).filter(|(_, among)| !among.is_empty());
        values.count(some, &self.texts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Ask, Scope, Users};

    fn record(number: usize) -> Record {
        let tags = ["[]", "[\"b\",\"a\",\"b\"]", "[\"a\"]"];
        let values =
            ["1", "1.0", "\"x/y\"", "[1]", "null", "true", "{\"k\":\"x\"}", "\"x\"", "2.5"];
        Record {
            row: number as i64,
            session: (!number.is_multiple_of(4)).then(|| format!("s{}", number % 4)),
            kind: (number % 3) as u8,
            tags: Some(tags[number % 3].to_owned()),
            metadata: Some(format!("{{\"k\":{{\"v\":{}}}}}", values[number % 9])),
            ..Record::default()
        }
    }

    /// The page by an index of the records, and by the records alone.
    fn both(records: &[Record], field: &Field, prefix: Option<&str>) -> [Vec<(Operand, usize)>; 2] {
        let mut columns = Columns::new();
        for record in records {
            columns.push(record);
        }
        let everything = Filter::All(vec![]);
        let scope = Scope { user: Users::All, ..Scope::default() };
        let ask = Ask { scope, filter: Some(&everything), ..Ask::default() };
        let mut of_index = DistinctValues::new(field.clone(), prefix);
        columns.distinct(&columns.select(&ask), &mut of_index);
        let mut of_records = DistinctValues::new(field.clone(), prefix);
        for some in records.chunks(700) {
            of_records.add(&everything, some).expect("there is memory");
        }
        [of_index, of_records].map(|values| values.page(0, usize::MAX))
    }

    fn text(text: &str) -> Operand {
        Operand::Text(text.into())
    }

    #[test]
    fn values_ascend_with_the_numbers_of_their_memories() {
        let records: Vec<Record> = (0..1800).map(record).collect();
        let path = Field::Metadata(["k".into(), "v".into()].into());
        let object = Operand::Object(vec![("k".into(), text("x"))]);
        let at_path = vec![
            (Operand::Bool(true), 200),
            (Operand::Int(1), 400),
            (Operand::Float(2.5), 200),
            (text("x"), 200),
            (text("x/y"), 200),
            (Operand::List(vec![Operand::Int(1)]), 200),
            (object, 200),
        ];
        let numbers = (0..3).map(|kind| (Operand::Int(kind), 600)).collect::<Vec<_>>();
        let sessions = ["s1", "s2", "s3"].map(|name| (text(name), 450)).to_vec();
        let tags = vec![(text("a"), 1200), (text("b"), 600)];
        for (field, prefix, expected) in [
            (path.clone(), None, at_path),
            (path, Some("x/"), vec![(text("x/y"), 200)]),
            (Field::Type, None, numbers),
            (Field::Session, None, sessions.clone()),
            (Field::Session, Some("s3"), sessions[2..].to_vec()),
            (Field::Tags, None, tags),
            (Field::Id, None, vec![]),
        ] {
            assert_eq!(both(&records, &field, prefix), [expected.clone(), expected], "{field:?}");
        }
    }

    #[test]
    fn a_page_is_a_part_of_the_values() {
        let mut values = DistinctValues::new(Field::Session, None);
        let records: Vec<Record> = (0..8).map(record).collect();
        values.add(&Filter::All(vec![]), &records).expect("there is memory");
        assert_eq!(values.page(1, 1), [(text("s2"), 2)]);
        assert!(values.page(3, 9).is_empty());
    }
}
