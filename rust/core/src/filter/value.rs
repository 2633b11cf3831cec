//! Values of metadata, and one key read out of a JSON text.

use std::fmt;

use serde_core::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::Number;

/// A value as filters test it; the content of objects is never tested.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(Box<str>),
    List(Box<[Json]>),
    Object,
}

impl Json {
    /// The value of a key of an object; null if it is missing.
    ///
    /// `serde_json` reads it: among the parsers of JSON it is the one with the most users, it can
    /// leave out all values but one without building them, refuses nesting that would exhaust the
    /// stack, and with `float_roundtrip` reads every float as it was written.
    pub(crate) fn of_key(object: &str, key: &str) -> Self {
        let mut reader = serde_json::Deserializer::from_str(object);
        KeyOf(key).deserialize(&mut reader).unwrap_or(Self::Null)
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(items) => items.iter().map(|item| size_of::<Self>() + item.bytes()).sum(),
            _ => 0,
        }
    }
}

/// The texts of a JSON list of texts; none if it is something else.
pub(crate) fn texts_of(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap_or_default()
}

struct KeyOf<'key>(&'key str);

impl<'de> DeserializeSeed<'de> for KeyOf<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Json, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for KeyOf<'_> {
    type Value = Json;

    fn expecting(&self, message: &mut fmt::Formatter<'_>) -> fmt::Result {
        message.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut found = Json::Null;
        while let Some(is_wanted) = entries.next_key_seed(IsKey(self.0))? {
            if is_wanted {
                found = entries.next_value()?;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key is this one, without keeping it.
struct IsKey<'key>(&'key str);

impl<'de> DeserializeSeed<'de> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, message: &mut fmt::Formatter<'_>) -> fmt::Result {
        message.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, message: &mut fmt::Formatter<'_>) -> fmt::Result {
        message.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(Number::Whole(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        // Stored values stay within ±2⁵³.
        Ok(i64::try_from(value).map_or_else(|_| of_float(value as f64), of_whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(of_float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Json::Object)
    }
}

fn of_whole(value: i64) -> Json {
    Json::Number(Number::Whole(value))
}

fn of_float(value: f64) -> Json {
    Number::of(value).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_whole_dots_quotes_and_all() {
        let text = r#"{"a":1,"a.b":2.5,"say \"so\"":null,"é":[true,"x",{"a":[7]},[-3]],"":-0.0}"#;
        let number = |float| Number::of(float).map(Json::Number).expect("a number");
        assert_eq!(Json::of_key(text, "a"), number(1.0));
        assert_eq!(Json::of_key(text, "a.b"), number(2.5));
        assert_eq!(Json::of_key(text, "say \"so\""), Json::Null);
        let nested = Json::List([number(-3.0)].into());
        let list = [Json::Bool(true), Json::Text("x".into()), Json::Object, nested];
        assert_eq!(Json::of_key(text, "é"), Json::List(list.into()));
        assert_eq!(Json::of_key(text, ""), number(0.0));
        assert_eq!(Json::of_key(text, "b"), Json::Null);
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let text = r#"{"i":9007199254740991,"f":0.30000000000000004,"s":5e-324,"u":1e300}"#;
        assert_eq!(Json::of_key(text, "i"), of_whole((1 << 53) - 1));
        assert_eq!(Json::of_key(text, "f"), of_float(0.1 + 0.2));
        assert_eq!(Json::of_key(text, "s"), of_float(5e-324));
        assert_eq!(Json::of_key(text, "u"), of_float(1e300));
    }

    #[test]
    fn what_is_no_object_has_no_keys() {
        for text in ["", "[1]", "{\"a\":", "null", "{\"a\":1", "{\"a\":{}} x"] {
            let found = Json::of_key(text, "a");
            assert!(found == Json::Null || text.ends_with('x'), "{text}: {found:?}");
        }
        assert!(texts_of("{}").is_empty());
        assert_eq!(texts_of(r#"["a","b c",""]"#), ["a", "b c", ""]);
    }

    #[test]
    fn metadata_as_deep_as_may_be_stored_is_read() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(64), "]".repeat(64));
        let mut found = Json::of_key(&deep, "a");
        for _ in 0..64 {
            let Json::List(items) = found else { panic!("{found:?} is no list") };
            found = items[0].clone();
        }
        assert_eq!(found, of_whole(1));
    }
}
