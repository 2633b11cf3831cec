//! A filter compiled for the columns: texts as codes, numbers as ranges, cheap tests first.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use super::{Bitmap, ColumnBlock, Interner, NO_TEXT, NONE, flags};
use crate::filter::check::{Check, Set};
use crate::filter::number_of;
use crate::filter::{Field, Filter, Json, Number, Operand, Path, Test};

/// A compiled filter. Each step narrows a set of docids.
pub(crate) enum Plan<'texts> {
    All(Vec<Plan<'texts>>),
    AnyOf(Vec<Plan<'texts>>),
    Not(Box<Plan<'texts>>),
    Step(Step<'texts>),
}

/// One test of one column.
pub(crate) enum Step<'texts> {
    Always,
    Never,
    /// Whether there is a value.
    Has(Wholes),
    /// The value lies in a range; it is there.
    Within(Wholes, RangeInclusive<i64>),
    /// The value is one of these, which ascend.
    OneOf(Wholes, Vec<i64>),
    ImportanceWithin(RangeInclusive<f64>),
    /// These ascend.
    ImportanceOneOf(Vec<f64>),
    /// The number is one of those marked.
    Marked(Bytes, Box<[bool; 256]>),
    /// The code is this one.
    Code(Codes, u32),
    /// The text of the code passes; with the results for codes tested so far.
    Text(Codes, Check, &'texts Interner, RefCell<Vec<Option<bool>>>),
    /// These ascend.
    Id(Vec<[u8; 16]>),
    Content(Check),
    Tag(u32),
    /// These ascend.
    AnyTag(Vec<u32>),
    /// The text of a tag passes.
    TagText(Check, &'texts Interner, RefCell<Vec<Option<bool>>>),
    /// The tags are one of these lists, which ascend.
    TagLists(Vec<Vec<u32>>),
    HasValue(Path),
    Value(Path, Check),
}

/// A column of whole numbers.
#[derive(Clone, Copy)]
pub(crate) struct Wholes {
    values: fn(&ColumnBlock) -> &[i64],
    may_lack: bool,
}

/// A column of small numbers.
type Bytes = fn(&ColumnBlock) -> &[u8];

/// A column of codes.
type Codes = fn(&ColumnBlock) -> &[u32];

/// Up to this many tags, each is searched for separately.
const FEW_TAGS: usize = 8;

impl<'texts> Plan<'texts> {
    pub(crate) fn new(filter: &Filter, texts: &'texts Interner) -> Self {
        match filter {
            Filter::All(parts) => {
                Self::All(sorted(parts.iter().map(|part| Self::new(part, texts))))
            }
            Filter::AnyOf(parts) => {
                Self::AnyOf(sorted(parts.iter().map(|part| Self::new(part, texts))))
            }
            Filter::Not(part) => Self::Not(Box::new(Self::new(part, texts))),
            Filter::Test(field, test) => Self::of_test(field, test, texts),
        }
    }

    /// Split a test into a check of an existing value, a test of existence, and `Not`.
    fn of_test(field: &Field, test: &Test, texts: &'texts Interner) -> Self {
        let present = || Self::present(field);
        let passing = |check| Self::passing(field, check, texts);
        match test {
            Test::Exists(true) | Test::NotEqual(Operand::Null) => present(),
            Test::Exists(false) | Test::Equal(Operand::Null) => present().negated(),
            Test::Equal(value) => passing(among(std::slice::from_ref(value))),
            Test::NotEqual(value) => passing(among(std::slice::from_ref(value))).negated(),
            Test::Ordered(order, than) => passing(Check::Ordered(*order, than.clone())),
            Test::In(values) => passing(among(values)),
            Test::NotIn(values) => {
                let outside = passing(among(values)).negated();
                let has_null = Set::of(values).has_null;
                if has_null { Self::All(sorted([present(), outside])) } else { outside }
            }
            Test::Contains(part) => passing(Check::contains(part)),
            Test::Prefix(start) => passing(Check::Prefix(start.clone())),
            Test::Any(values) => passing(Check::HasAny(Set::of(values))),
            Test::All(values) => passing(Check::HasAll(Set::of(values))),
        }
    }

    fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Whether there is a value.
    fn present(field: &Field) -> Self {
        match Target::of(field) {
            Target::Codes(column) => Self::Step(Step::Code(column, NO_TEXT)).negated(),
            Target::Wholes(column) | Target::Times(column) if column.may_lack => {
                Self::Step(Step::Has(column))
            }
            Target::Path(path) => Self::Step(Step::HasValue(path.into())),
            _ => Self::Step(Step::Always),
        }
    }

    /// Whether a value is there and passes.
    fn passing(field: &Field, check: Check, texts: &'texts Interner) -> Self {
        let step = match Target::of(field) {
            Target::Id => id_step(check),
            Target::Bytes(column, value_of) => marked(column, value_of, &check),
            Target::Codes(column) => code_step(column, check, texts),
            Target::Wholes(column) => whole_step(column, &check),
            Target::Times(column) => time_step(column, &check),
            Target::Importance => importance_step(&check),
            Target::Content => Step::Content(check),
            Target::Tags => return tag_plan(check, texts),
            Target::Path(path) => Step::Value(path.into(), check),
        };
        Self::Step(step)
    }

    /// Approximate cost a docid, in nanoseconds.
    fn cost(&self) -> u32 {
        match self {
            Self::All(parts) | Self::AnyOf(parts) => parts.iter().map(Self::cost).sum(),
            Self::Not(part) => part.cost(),
            Self::Step(step) => step.cost(),
        }
    }

    /// Keep the docids that pass.
    pub(crate) fn keep(&self, block: &ColumnBlock, among: &Bitmap) -> Bitmap {
        if among.is_empty() {
            return Bitmap::NONE;
        }
        match self {
            Self::All(parts) => parts.iter().fold(*among, |left, part| part.keep(block, &left)),
            Self::AnyOf(parts) => parts.iter().fold(Bitmap::NONE, |found, part| {
                found.or(&part.keep(block, &among.without(&found)))
            }),
            Self::Not(part) => among.without(&part.keep(block, among)),
            Self::Step(step) => step.keep(block, among),
        }
    }
}

fn sorted<'texts>(parts: impl IntoIterator<Item = Plan<'texts>>) -> Vec<Plan<'texts>> {
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(Plan::cost);
    parts
}

fn among(values: &[Operand]) -> Check {
    Check::Among(Set::of(values).without_null())
}

/// The column that a field is.
pub(super) enum Target<'field> {
    Id,
    Bytes(Bytes, fn(u8) -> Json),
    Codes(Codes),
    Wholes(Wholes),
    Times(Wholes),
    Importance,
    Content,
    Tags,
    Path(&'field [Box<str>]),
}

macro_rules! target {
    (uuid) => {
        Target::Id
    };
    (fraction) => {
        Target::Importance
    };
    (content) => {
        Target::Content
    };
    (tags) => {
        Target::Tags
    };
    (type, $place:ident.$values:ident) => {
        Target::Bytes(|block| &block.$place.$values, number)
    };
    (status, $place:ident.$values:ident) => {
        Target::Bytes(|block| &block.$place.$values, number)
    };
    (flag, $place:ident.$values:ident) => {
        Target::Bytes(
            |block| &block.attributes.$place,
            |value| Json::Bool(value & $place::$values > 0),
        )
    };
    (optional_name, $place:ident.$values:ident) => {
        Target::Codes(|block| &block.$place.$values)
    };
    (whole, $place:ident.$values:ident) => {
        Target::Wholes(Wholes { values: |block| &block.$place.$values, may_lack: false })
    };
    (optional_whole, $place:ident.$values:ident) => {
        Target::Wholes(Wholes { values: |block| &block.$place.$values, may_lack: true })
    };
    (time, $place:ident.$values:ident) => {
        Target::Times(Wholes { values: |block| &block.$place.$values, may_lack: false })
    };
    (optional_time, $place:ident.$values:ident) => {
        Target::Times(Wholes { values: |block| &block.$place.$values, may_lack: true })
    };
}

fn number(value: u8) -> Json {
    Json::Number(Number::Whole(value.into()))
}

macro_rules! targets {
    ($(
        $column:literal $about:literal $kind:ident $(sum $sum:literal)?
        $(attribute $attribute:ident)? $(access $access:ident)? $(record $other:ident)?
        $(filter $name:literal $variant:ident $(in $place:ident.$values:ident)?)?;
    )*) => {
        impl<'field> Target<'field> {
            pub(super) fn of(field: &'field Field) -> Self {
                match field {
                    $($(Field::$variant => target!($kind $(, $place.$values)?),)?)*
                    Field::Metadata(path) => Self::Path(path),
                }
            }
        }
    };
}

crate::memory_fields!(targets);

fn id_step(check: Check) -> Step<'static> {
    match check {
        Check::Among(set) if !set.ids.is_empty() => Step::Id(set.ids),
        _ => Step::Never,
    }
}

fn marked(column: Bytes, value_of: fn(u8) -> Json, check: &Check) -> Step<'static> {
    let marks = std::array::from_fn(|value| check.holds(&value_of(value as u8)));
    Step::Marked(column, Box::new(marks))
}

fn code_step(column: Codes, check: Check, texts: &Interner) -> Step<'_> {
    let Check::Among(Set { texts: wanted, .. }) = &check else {
        return Step::Text(column, check, texts, RefCell::default());
    };
    let mut codes = wanted.iter().filter_map(|text| texts.find(text));
    match (codes.next(), codes.next()) {
        (None, _) => Step::Never,
        (Some(code), None) => Step::Code(column, code),
        _ => Step::Text(column, check, texts, RefCell::default()),
    }
}

fn whole_step(column: Wholes, check: &Check) -> Step<'static> {
    match check {
        Check::Among(set) => {
            let wholes = set.numbers.iter().filter_map(|number| match number {
                Number::Whole(whole) => Some(*whole),
                Number::Other(_) | Number::After(_) => None,
            });
            one_of(column, wholes.collect())
        }
        Check::Ordered(order, than) => match number_of(than) {
            Some(number) => within(column, number.wholes(*order)),
            None => Step::Never,
        },
        _ => Step::Never,
    }
}

fn time_step(column: Wholes, check: &Check) -> Step<'static> {
    match check {
        Check::Among(set) => one_of(column, set.moments.clone()),
        Check::Ordered(order, Operand::Moment(moment)) => {
            within(column, Number::Whole(*moment).wholes(*order))
        }
        _ => Step::Never,
    }
}

fn one_of(column: Wholes, mut values: Vec<i64>) -> Step<'static> {
    values.retain(|value| !column.may_lack || *value != NONE);
    match values[..] {
        [] => Step::Never,
        [value] => within(column, value..=value),
        _ => Step::OneOf(column, values),
    }
}

/// A missing value is below all others, and in no range.
fn within(column: Wholes, range: RangeInclusive<i64>) -> Step<'static> {
    let min = if column.may_lack { NONE + 1 } else { i64::MIN };
    let range = *range.start().max(&min)..=*range.end();
    if range.is_empty() { Step::Never } else { Step::Within(column, range) }
}

fn importance_step(check: &Check) -> Step<'static> {
    match check {
        Check::Among(set) => {
            let floats: Vec<f64> = set.numbers.iter().filter_map(|number| number.float()).collect();
            match floats[..] {
                [] => Step::Never,
                [value] => Step::ImportanceWithin(value..=value),
                _ => Step::ImportanceOneOf(floats),
            }
        }
        Check::Ordered(order, than) => match number_of(than) {
            Some(number) => Step::ImportanceWithin(number.floats(*order)),
            None => Step::Never,
        },
        _ => Step::Never,
    }
}

fn tag_plan(check: Check, texts: &Interner) -> Plan<'_> {
    let codes = |wanted: &[Box<str>]| -> Vec<u32> {
        let mut codes: Vec<u32> = wanted.iter().filter_map(|tag| texts.find(tag)).collect();
        codes.sort_unstable();
        codes
    };
    match check {
        Check::Among(set) => Plan::Step(Step::TagLists(tag_lists(&set, texts))),
        Check::Prefix(_) => Plan::Step(Step::TagText(check, texts, RefCell::default())),
        Check::Contains(_, set) | Check::HasAny(set) => {
            let codes = codes(&set.texts);
            if codes.len() > FEW_TAGS {
                return Plan::Step(Step::AnyTag(codes));
            }
            Plan::AnyOf(codes.into_iter().map(|code| Plan::Step(Step::Tag(code))).collect())
        }
        Check::HasAll(set) => {
            let known = set.texts_alone().map(|wanted| (wanted.len(), codes(wanted)));
            match known {
                Some((count, codes)) if count == codes.len() => {
                    Plan::All(codes.into_iter().map(|code| Plan::Step(Step::Tag(code))).collect())
                }
                _ => Plan::Step(Step::Never),
            }
        }
        Check::Ordered(..) => Plan::Step(Step::Never),
    }
}

/// The lists of a set that memories may have as tags, as codes.
fn tag_lists(set: &Set, texts: &Interner) -> Vec<Vec<u32>> {
    let code = |tag: &Json| match tag {
        Json::Text(tag) => texts.find(tag),
        _ => None,
    };
    let codes = |list: &Json| match list {
        Json::List(tags) => tags.iter().map(code).collect(),
        _ => None,
    };
    let mut lists: Vec<Vec<u32>> = set.nested.iter().filter_map(codes).collect();
    lists.sort_unstable();
    lists
}

impl Step<'_> {
    fn cost(&self) -> u32 {
        match self {
            Self::Always | Self::Never => 0,
            Self::Within(..)
            | Self::ImportanceWithin(_)
            | Self::Marked(..)
            | Self::Code(..)
            | Self::Has(_) => 1,
            Self::Tag(_) | Self::Text(..) => 3,
            Self::TagText(..) | Self::TagLists(_) => 10,
            Self::AnyTag(_) | Self::OneOf(..) | Self::ImportanceOneOf(_) | Self::Id(_) => 20,
            Self::HasValue(_) | Self::Value(..) => 40,
            Self::Content(_) => 100,
        }
    }

    fn keep(&self, block: &ColumnBlock, among: &Bitmap) -> Bitmap {
        let attributes = &block.attributes;
        match self {
            Self::Always => *among,
            Self::Never => Bitmap::NONE,
            Self::Has(column) => among.keep((column.values)(block), |value| value != NONE),
            Self::Within(column, range) => {
                let (min, max) = (*range.start(), *range.end());
                among.keep((column.values)(block), |value| (min..=max).contains(&value))
            }
            Self::OneOf(column, values) => {
                let column = (column.values)(block);
                among.keep_docids(|at| values.binary_search(&column[at]).is_ok())
            }
            Self::ImportanceWithin(range) => {
                let (min, max) = (*range.start(), *range.end());
                let values = &attributes.importance;
                among.keep(values, |value| (min..=max).contains(&value))
            }
            Self::ImportanceOneOf(wanted) => {
                let values = &attributes.importance;
                let order = |at: usize| move |known: &f64| known.total_cmp(&(values[at] + 0.0));
                among.keep_docids(|at| wanted.binary_search_by(order(at)).is_ok())
            }
            Self::Marked(column, marks) => {
                among.keep(column(block), |value| marks[usize::from(value)])
            }
            Self::Code(column, code) => among.keep(column(block), |known| known == *code),
            Self::Text(column, check, texts, known) => {
                let (codes, mut known) = (column(block), known.borrow_mut());
                among.keep_docids(|at| passes(codes[at], check, texts, &mut known))
            }
            Self::Id(wanted) => {
                let ids = &attributes.id;
                among.keep_docids(|at| wanted.binary_search(&ids[at]).is_ok())
            }
            Self::Content(check) => among.keep_docids(|at| check.holds_text(block.content(at))),
            Self::Tag(code) => among.and(&block.tags.having(*code)),
            Self::AnyTag(codes) => among.and(&block.tags.having_any(codes)),
            Self::TagText(check, texts, known) => {
                let mut known = known.borrow_mut();
                among.and(&block.tags.having_where(|code| passes(code, check, texts, &mut known)))
            }
            Self::TagLists(lists) => among.and(&block.tags.having_lists(lists)),
            Self::HasValue(path) => {
                block.at_path(path, among).keep(among, |value| *value != Json::Null)
            }
            Self::Value(path, check) => {
                let check = |value: &Json| *value != Json::Null && check.holds(value);
                block.at_path(path, among).keep(among, check)
            }
        }
    }
}

/// Whether the text of a code passes, which is found out once.
fn passes(code: u32, check: &Check, texts: &Interner, known: &mut Vec<Option<bool>>) -> bool {
    let at = code as usize;
    if known.len() <= at {
        known.resize((at + 1).max(texts.len() + 1), None);
    }
    *known[at].get_or_insert_with(|| texts.text(code).is_some_and(|text| check.holds_text(&text)))
}
