//! Checks of existing values.

use crate::text::fold;

use super::{Json, Number, Operand, Order, number_of};

/// A test without its negations and without missing values; those are the plan's.
#[derive(Debug)]
pub(crate) enum Check {
    /// It is one of these.
    Among(Set),
    /// It stands in this order to the other.
    Ordered(Order, Operand),
    /// It is a text with this part, which is folded, or a list that has one of the set.
    Contains(Option<String>, Set),
    /// It is a text that begins with this one, or a list that has such a text.
    Prefix(Box<str>),
    /// It is a list that has one of these.
    HasAny(Set),
    /// It is a list that has all of these.
    HasAll(Set),
}

/// Values, sorted, each once.
#[derive(Debug, Default)]
pub(crate) struct Set {
    pub(crate) has_null: bool,
    bools: [bool; 2],
    pub(crate) numbers: Vec<Number>,
    pub(crate) texts: Vec<Box<str>>,
    pub(crate) ids: Vec<[u8; 16]>,
    pub(crate) moments: Vec<i64>,
    /// Lists and objects.
    pub(crate) nested: Vec<Json>,
    /// Values that no stored value is equal to.
    nowhere: bool,
}

impl Check {
    pub(crate) fn contains(part: &Operand) -> Self {
        let folded = match part {
            Operand::Text(part) => Some(fold(part)),
            _ => None,
        };
        Self::Contains(folded, Set::of(std::slice::from_ref(part)))
    }

    pub(crate) fn holds(&self, value: &Json) -> bool {
        match (self, value) {
            (Self::Among(set), value) => set.has(value),
            (Self::Ordered(order, than), Json::Number(number)) => {
                number_of(than).is_some_and(|than| order.holds(number.cmp(&than)))
            }
            (_, Json::Text(text)) => self.holds_text(text),
            (Self::Contains(_, set) | Self::HasAny(set), Json::List(items)) => {
                items.iter().any(|item| set.has(item))
            }
            (Self::HasAll(set), Json::List(items)) => set.is_within(items),
            (Self::Prefix(_), Json::List(items)) => items.iter().any(|item| match item {
                Json::Text(text) => self.holds_text(text),
                _ => false,
            }),
            _ => false,
        }
    }

    pub(crate) fn holds_text(&self, text: &str) -> bool {
        match self {
            Self::Among(set) => set.has_text(text),
            Self::Ordered(order, Operand::Text(than)) => order.holds(text.cmp(than)),
            Self::Contains(Some(part), _) => has_part(text, part),
            Self::Prefix(start) => text.starts_with(&**start),
            _ => false,
        }
    }
}

fn has_part(text: &str, folded: &str) -> bool {
    // Folding leaves ASCII in ASCII and makes it no longer.
    let is_impossible = text.is_ascii() && (!folded.is_ascii() || folded.len() > text.len());
    !is_impossible && fold(text).contains(folded)
}

impl Order {
    pub(crate) fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Above => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
            Self::Below => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
        }
    }
}

impl Set {
    pub(crate) fn of(values: &[Operand]) -> Self {
        let mut set = Self::default();
        for value in values {
            match value {
                Operand::Null => set.has_null = true,
                Operand::Bool(value) => set.bools[usize::from(*value)] = true,
                Operand::Text(text) => set.texts.push(text.clone()),
                Operand::Id(id) => set.ids.push(*id),
                Operand::Moment(moment) => set.moments.push(*moment),
                Operand::Int(_) | Operand::Float(_) | Operand::After(_) => match number_of(value) {
                    Some(number) => set.numbers.push(number),
                    None => set.nowhere = true,
                },
                Operand::List(_) | Operand::Object(_) => match Json::of(value) {
                    Some(value) => set.nested.push(value),
                    None => set.nowhere = true,
                },
            }
        }
        set.sorted()
    }

    fn of_items(items: &[Json]) -> Self {
        let mut set = Self::default();
        for item in items {
            match item {
                Json::Null => set.has_null = true,
                Json::Bool(value) => set.bools[usize::from(*value)] = true,
                Json::Number(number) => set.numbers.push(*number),
                Json::Text(text) => set.texts.push(text.clone()),
                Json::List(_) | Json::Object(_) => set.nested.push(item.clone()),
            }
        }
        set.sorted()
    }

    fn sorted(mut self) -> Self {
        self.numbers.sort_unstable();
        self.numbers.dedup();
        self.texts.sort_unstable();
        self.texts.dedup();
        self.ids.sort_unstable();
        self.ids.dedup();
        self.moments.sort_unstable();
        self.moments.dedup();
        self.nested.sort_unstable();
        self.nested.dedup();
        self
    }

    /// The number of texts, if all elements are texts.
    pub(crate) fn texts_alone(&self) -> Option<&[Box<str>]> {
        let has_others = self.has_null
            || self.nowhere
            || self.bools != [false; 2]
            || !(self.numbers.is_empty() && self.ids.is_empty())
            || !(self.moments.is_empty() && self.nested.is_empty());
        (!has_others).then_some(&self.texts)
    }

    /// Without null, which equals no existing value.
    pub(crate) fn without_null(mut self) -> Self {
        self.has_null = false;
        self
    }

    fn has(&self, value: &Json) -> bool {
        match value {
            Json::Null => self.has_null,
            Json::Bool(value) => self.bools[usize::from(*value)],
            Json::Number(number) => self.numbers.binary_search(number).is_ok(),
            Json::Text(text) => self.has_text(text),
            Json::List(_) | Json::Object(_) => self.nested.binary_search(value).is_ok(),
        }
    }

    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.texts.binary_search_by(|known| (**known).cmp(text)).is_ok()
    }

    /// Whether each of these is among the items.
    fn is_within(&self, items: &[Json]) -> bool {
        if self.nowhere || !self.ids.is_empty() || !self.moments.is_empty() {
            return false;
        }
        let there = Self::of_items(items);
        let has_bool = |at: usize| there.bools[at] || !self.bools[at];
        (there.has_null || !self.has_null)
            && has_bool(0)
            && has_bool(1)
            && self.numbers.iter().all(|number| there.numbers.binary_search(number).is_ok())
            && self.texts.iter().all(|text| there.has_text(text))
            && self.nested.iter().all(|value| there.has(value))
    }
}
