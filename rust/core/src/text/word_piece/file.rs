//! The part of a `tokenizer.json` of an uncased BERT model in which such models differ.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

#[derive(Deserialize)]
pub(super) struct File<'a> {
    #[serde(borrow)]
    pub(super) added_tokens: Vec<AddedToken<'a>>,
    #[serde(borrow)]
    pub(super) model: Model<'a>,
}

#[derive(Deserialize)]
pub(super) struct AddedToken<'a> {
    #[serde(borrow)]
    pub(super) content: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct Model<'a> {
    #[serde(borrow, deserialize_with = "pairs")]
    pub(super) vocab: Vec<(Piece<'a>, u32)>,
}

/// A piece, in the file's own bytes where nothing in it is escaped.
#[derive(Deserialize)]
pub(super) struct Piece<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Read an object as its pairs, which go into other maps.
fn pairs<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<(Piece<'de>, u32)>, D::Error> {
    struct Pairs;

    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(Piece<'de>, u32)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object of pieces and their ids")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }

    reader.deserialize_map(Pairs)
}
