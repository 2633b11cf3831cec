//! Filters: the expression tree that every store evaluates to the same rows.

pub(crate) mod check;
mod number;
mod value;

pub(crate) use number::{Number, number_of};
pub(crate) use value::{Json, texts_of};

/// Keys that lead into the metadata.
pub(crate) type Path = Box<[Box<str>]>;

/// A condition on memories. It is never an error and never a third value: a value of another type
/// is not equal and not in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// True if every part is; without parts it is true.
    All(Vec<Filter>),
    /// True if at least one part is; without parts it is false.
    AnyOf(Vec<Filter>),
    /// True if the part is false.
    Not(Box<Filter>),
    /// One test of one field.
    Test(Field, Test),
}

macro_rules! fields {
    ($(
        $column:literal $about:literal $kind:ident $(sum $sum:literal)?
        $(attribute $attribute:ident)? $(access $access:ident)? $(record $other:ident)?
        $(filter $name:literal $variant:ident $(in $place:ident.$values:ident)?)?;
    )*) => {
        /// A field to test.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Field {
            $($(#[doc = $about] $variant,)?)*
            /// The value at a path of keys into the metadata, dots and all; it leads through objects.
            Metadata(Box<[Box<str>]>),
        }

        impl Field {
            /// The field of a name in filters; those of metadata have keys.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($($name => Some(Self::$variant),)?)*
                    _ => None,
                }
            }
        }
    };
}

crate::memory_fields!(fields);

/// A test. A missing value, and null, passes [`Test::Exists`] with false, [`Test::Equal`] with
/// null, and [`Test::NotEqual`] and [`Test::NotIn`] without null; nothing else.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Whether there is a value.
    Exists(bool),
    /// Equal: numbers as numbers, texts by code points, booleans to booleans alone, lists by their
    /// elements in order, objects by the values of their keys.
    Equal(Operand),
    /// Not equal.
    NotEqual(Operand),
    /// In an order to a number, a text or a moment; a value of another kind is in none.
    Ordered(Order, Operand),
    /// Equal to one of these.
    In(Vec<Operand>),
    /// Equal to none of these.
    NotIn(Vec<Operand>),
    /// A text has this part, whatever case and width either has; or a list has this element.
    Contains(Operand),
    /// A text begins with this one, by code points; or a text of a list does.
    Prefix(Box<str>),
    /// A list has at least one of these elements.
    Any(Vec<Operand>),
    /// A list has every one of these elements.
    All(Vec<Operand>),
}

/// How a value stands to the one of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Greater.
    Above,
    /// Greater or equal.
    AtLeast,
    /// Smaller.
    Below,
    /// Smaller or equal.
    AtMost,
}

/// A value to test against. Elements of lists and objects are neither ids nor moments.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A number that is no float: above this one, and below the next.
    After(f64),
    /// A text.
    Text(Box<str>),
    /// The bytes of a UUID.
    Id([u8; 16]),
    /// Microseconds since 1970 in UTC.
    Moment(i64),
    /// A list.
    List(Vec<Operand>),
    /// Keys and their values.
    Object(Vec<(Box<str>, Operand)>),
}
