//! Records: memories as the columns take them.

/// The type of a column's value in a record.
macro_rules! value_type {
    (uuid) => { [u8; 16] };
    (time) => { i64 };
    (optional_time) => { Option<i64> };
    (whole) => { i64 };
    (optional_whole) => { Option<i64> };
    (type) => { u8 };
    (status) => { u8 };
    (fraction) => { f64 };
    (flag) => { bool };
    (optional_name) => { Option<String> };
    (tags) => { Option<String> };
    (metadata) => { Option<String> };
    (content) => { String };
}

/// The text of a value, if it is one.
macro_rules! text_of {
    (optional_name, $value:expr) => {
        $value.as_deref()
    };
    (tags, $value:expr) => {
        $value.as_deref()
    };
    (metadata, $value:expr) => {
        $value.as_deref()
    };
    (content, $value:expr) => {
        Some($value.as_str())
    };
    ($kind:ident, $value:expr) => {
        None
    };
}

macro_rules! record {
    ($(
        $column:literal $about:literal $kind:ident $(sum $sum:literal)?
        $(attribute $attribute:ident)? $(access $access:ident)? $(record $other:ident)?
        $(filter $name:literal $variant:ident $(in $place:ident.$values:ident)?)?;
    )*) => {
        /// One memory as the columns take it. Times are microseconds since 1970 in UTC.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Record {
            /// The store's number.
            pub row: i64,
            $($(#[doc = $about] pub $attribute: value_type!($kind),)?
            $(#[doc = $about] pub $access: value_type!($kind),)?
            $(#[doc = $about] pub $other: value_type!($kind),)?)*
        }

        impl Record {
            /// Bytes of its texts.
            pub fn text_bytes(&self) -> usize {
                let texts: [Option<&str>; _] = [
                    $($(text_of!($kind, self.$attribute),)? $(text_of!($kind, self.$other),)?)*
                ];
                texts.into_iter().flatten().map(str::len).sum()
            }
        }
    };
}

crate::memory_fields!(record);
