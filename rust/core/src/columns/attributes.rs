//! Attribute columns of one block of docids.

use std::ops::Deref;

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use crate::collections::cow_vec::BLOCK_VALUES;
use crate::collections::plain;
use crate::text::{Role, Turn, answer_types_held, turn};

use super::Record;
use super::compaction::NewCodes;
use super::interner::{Interner, NO_TEXT};

/// A missing time or position, which is before all others.
pub const NONE: i64 = i64::MIN;

/// Flag bits.
pub mod flags {
    /// The text ends with a question mark, apart from brackets at its end, as of a shared photo.
    pub const ENDS_AS_QUESTION: u8 = 1;
    /// The text has a question mark.
    pub const HAS_QUESTION_MARK: u8 = 2;
    /// The memory is sensitive.
    pub const SENSITIVE: u8 = 4;
    /// Shift of the bits of the answer types that a text could hold.
    pub(crate) const ANSWER_TYPES_SHIFT: u32 = 3;
    /// A turn of the user in a chat with an assistant.
    pub(crate) const BY_USER: u8 = 64;
    /// A turn of the assistant.
    pub(crate) const BY_ASSISTANT: u8 = 128;
}

/// The values of a block, by docid; a copy has capacity to grow, because it is made for an append.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "T: Pod")]
pub struct Column<T>(#[serde(with = "plain")] Vec<T>);

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Clone for Column<T> {
    fn clone(&self) -> Self {
        let capacity = (self.len() + 1).next_power_of_two().min(BLOCK_VALUES);
        let mut copy = Vec::with_capacity(capacity.max(self.len()));
        copy.extend_from_slice(&self.0);
        Self(copy)
    }
}

impl<T> Deref for Column<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy> Column<T> {
    /// Set the value of a docid, or of the one after the last.
    fn put(&mut self, at: usize, value: T) {
        match self.0.get_mut(at) {
            Some(known) => *known = value,
            None => self.0.push(value),
        }
    }

    fn push_from(&mut self, other: &Self, at: usize) {
        self.0.push(other[at]);
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<T>()
    }
}

macro_rules! columns {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Default, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$doc])* pub $field: Column<$type>,)*
        }

        impl $name {
            pub(crate) fn bytes(&self) -> usize {
                0 $(+ self.$field.bytes())*
            }

            /// Whether every column has so many values.
            pub(super) fn have_len(&self, len: usize) -> bool {
                true $(&& self.$field.len() == len)*
            }
        }
    };
}

/// The type of an attribute column.
macro_rules! column_type {
    (uuid) => {
        [u8; 16]
    };
    (optional_name) => {
        u32
    };
    (fraction) => {
        f64
    };
    (type) => {
        u8
    };
    (status) => {
        u8
    };
    ($number:ident) => {
        i64
    };
}

/// The value of a record in its attribute column.
macro_rules! column_value {
    (optional_name, $value:expr, $interner:expr) => {
        $value.as_deref().map_or(NO_TEXT, |text| $interner.code(text))
    };
    (optional_time, $value:expr, $interner:expr) => {
        $value.unwrap_or(NONE)
    };
    (optional_whole, $value:expr, $interner:expr) => {
        $value.unwrap_or(NONE)
    };
    ($kind:ident, $value:expr, $interner:expr) => {
        $value
    };
}

/// Append a value of another block, whose texts have other codes.
macro_rules! push_from {
    (optional_name, $column:expr, $other:expr, $at:expr, $codes:expr) => {
        $column.0.push($codes.code($other[$at]))
    };
    ($kind:ident, $column:expr, $other:expr, $at:expr, $codes:expr) => {
        $column.push_from(&$other, $at)
    };
}

/// Whether the codes of a column are at most those of so many texts.
macro_rules! codes_are_known {
    (optional_name, $column:expr, $texts:expr) => {
        $column.iter().all(|code| *code as usize <= $texts)
    };
    ($kind:ident, $column:expr, $texts:expr) => {
        true
    };
}

macro_rules! attributes {
    ($(
        $column:literal $about:literal $kind:ident $(sum $sum:literal)?
        $(attribute $attribute:ident)? $(access $access:ident)? $(record $other:ident)?
        $(filter $name:literal $variant:ident $(in $place:ident.$values:ident)?)?;
    )*) => {
        columns!(
            /// Attributes that reading a memory does not change.
            Attributes {
                /// The store's numbers.
                row: i64,
                /// Lengths of contents.
                content_bytes: u32,
                /// Bits of [`flags`].
                flags: u8,
                $($(#[doc = $about] $attribute: column_type!($kind),)?)*
            }
        );

        columns!(
            /// Attributes that reading a memory changes.
            Accesses {
                $($(#[doc = $about] $access: column_type!($kind),)?)*
            }
        );

        impl Attributes {
            pub(crate) fn put(
                &mut self,
                at: usize,
                record: &Record,
                flags: u8,
                interner: &Interner,
            ) {
                self.row.put(at, record.row);
                self.content_bytes.put(at, record.content.len() as u32);
                self.flags.put(at, flags);
                $($(
                    self.$attribute.put(at, column_value!($kind, record.$attribute, interner));
                )?)*
            }

            /// Whether all codes are at most those of so many texts.
            pub(super) fn codes_are_known(&self, texts: usize) -> bool {
                true $($(&& codes_are_known!($kind, self.$attribute, texts))?)*
            }

            /// Append the attributes of a docid of another block.
            pub(super) fn push_from(&mut self, other: &Self, at: usize, codes: &mut NewCodes<'_>) {
                self.row.push_from(&other.row, at);
                self.content_bytes.push_from(&other.content_bytes, at);
                self.flags.push_from(&other.flags, at);
                $($(push_from!($kind, self.$attribute, other.$attribute, at, codes);)?)*
            }
        }
    };
}

crate::memory_fields!(attributes);

impl Accesses {
    pub(crate) fn put(&mut self, at: usize, last_accessed_at: Option<i64>, access_count: i64) {
        self.last_accessed_at.put(at, last_accessed_at.unwrap_or(NONE));
        self.access_count.put(at, access_count);
    }

    /// Append the accesses of a docid of another block.
    pub(super) fn push_from(&mut self, other: &Self, at: usize) {
        self.last_accessed_at.push_from(&other.last_accessed_at, at);
        self.access_count.push_from(&other.access_count, at);
    }
}

/// The flags that filters test.
pub(super) fn tested_flags(record: &Record) -> u8 {
    if record.sensitive { flags::SENSITIVE } else { 0 }
}

/// All flags; those that only rankings read take most of the time of adding a record.
pub(super) fn flags_of(record: &Record) -> u8 {
    let turn = turn(&record.content);
    let mut flags = tested_flags(record);
    if turn.asks {
        flags |= flags::ENDS_AS_QUESTION;
    }
    if turn.mentions_question {
        flags |= flags::HAS_QUESTION_MARK;
    }
    flags |= match role_of(record, &turn) {
        Some(Role::User) => flags::BY_USER,
        Some(Role::Assistant) => flags::BY_ASSISTANT,
        None => 0,
    };
    flags | answer_types_held(turn.body) << flags::ANSWER_TYPES_SHIFT
}

/// The side of a chat with an assistant: by the role, or else by the speaker, or else, in a session,
/// by the label that the text begins with.
fn role_of(record: &Record, turn: &Turn<'_>) -> Option<Role> {
    let label = turn.label.filter(|_| record.session.is_some());
    let name = record.role.as_deref().or(record.speaker.as_deref()).or(label)?;
    Role::from_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags_of_text(content: &str) -> (bool, bool) {
        let record = Record { content: content.into(), ..Record::default() };
        let flags = flags_of(&record);
        (flags & flags::ENDS_AS_QUESTION > 0, flags & flags::HAS_QUESTION_MARK > 0)
    }

    #[test]
    fn a_question_ends_with_its_mark_brackets_aside() {
        for text in [
            "Is it so?",
            "Is it so? ",
            "Look? [a photo: a [red] bike] [x]\n",
            "是吗？",
            "?",
            "Why? []",
        ] {
            assert_eq!(flags_of_text(text), (true, true), "{text}");
        }
        for text in ["Is it? Yes.", "Yes. [is it?]", "[?]", "?]", "? [", "? a]", "? ]["] {
            assert_eq!(flags_of_text(text), (false, true), "{text}");
        }
        for text in ["Yes.", "[a photo]", "", "]"] {
            assert_eq!(flags_of_text(text), (false, false), "{text}");
        }
    }

    #[test]
    fn a_sensitive_memory_is_flagged() {
        let record = Record { sensitive: true, ..Record::default() };
        assert_eq!(flags_of(&record), flags::SENSITIVE);
    }
}
