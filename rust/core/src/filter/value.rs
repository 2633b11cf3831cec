//! Values of metadata, and the value at a path read out of a JSON text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Number, Operand, number_of};

/// A value as filters test it. The order is that of a set, and has no other meaning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(Box<str>),
    List(Box<[Json]>),
    /// Keys ascend, each once.
    Object(Box<[(Box<str>, Json)]>),
}

impl Json {
    /// The value at a path of keys into an object; null if it is missing. Of a repeated key the
    /// last value counts.
    ///
    /// `serde_json` reads it: among the parsers of JSON it is the one with the most users, it can
    /// leave out all values but one without building them, refuses nesting that would exhaust the
    /// stack, and with `float_roundtrip` reads every float as it was written.
    pub(crate) fn at_path(object: &str, path: &[Box<str>]) -> Self {
        let mut reader = serde_json::Deserializer::from_str(object);
        AtPath(path).deserialize(&mut reader).unwrap_or(Self::Null)
    }

    /// The value that an operand is; nothing for ids, moments and numbers that no JSON text holds.
    pub(crate) fn of(operand: &Operand) -> Option<Self> {
        match operand {
            Operand::Null => Some(Self::Null),
            Operand::Bool(value) => Some(Self::Bool(*value)),
            Operand::Text(text) => Some(Self::Text(text.clone())),
            Operand::Int(_) | Operand::Float(_) | Operand::After(_) => {
                number_of(operand).map(Self::Number)
            }
            Operand::List(items) => {
                items.iter().map(Self::of).collect::<Option<_>>().map(Self::List)
            }
            Operand::Object(entries) => {
                let entry = |(key, value): &(Box<str>, _)| Some((key.clone(), Self::of(value)?));
                entries.iter().map(entry).collect::<Option<_>>().map(Self::object)
            }
            Operand::Id(_) | Operand::Moment(_) => None,
        }
    }

    fn object(entries: BTreeMap<Box<str>, Self>) -> Self {
        Self::Object(entries.into_iter().collect())
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(items) => items.iter().map(|item| size_of::<Self>() + item.bytes()).sum(),
            Self::Object(entries) => {
                let an_entry = size_of::<(Box<str>, Self)>();
                entries.iter().map(|(key, value)| an_entry + key.len() + value.bytes()).sum()
            }
            _ => 0,
        }
    }
}

impl From<&Json> for Operand {
    fn from(value: &Json) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(Number::Whole(whole)) => Self::Int(*whole),
            Json::Number(Number::Other(float)) => Self::Float(*float),
            Json::Number(Number::After(float)) => Self::After(*float),
            Json::Text(text) => Self::Text(text.clone()),
            Json::List(items) => Self::List(items.iter().map(Self::from).collect()),
            Json::Object(entries) => {
                let entry = |(key, value): &(Box<str>, _)| (key.clone(), Self::from(value));
                Self::Object(entries.iter().map(entry).collect())
            }
        }
    }
}

/// The texts of a JSON list of texts; none if it is something else.
pub(crate) fn texts_of(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap_or_default()
}

/// Reads the value at a path. What is no object has no keys.
struct AtPath<'path>(&'path [Box<str>]);

/// The whole value at hand.
const HERE: AtPath<'_> = AtPath(&[]);

impl AtPath<'_> {
    /// A value without keys.
    fn keyless(&self, value: Json) -> Json {
        if self.0.is_empty() { value } else { Json::Null }
    }
}

impl<'de> DeserializeSeed<'de> for AtPath<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Json, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AtPath<'_> {
    type Value = Json;

    fn expecting(&self, message: &mut fmt::Formatter<'_>) -> fmt::Result {
        message.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(self.keyless(Json::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(self.keyless(Json::Number(Number::Whole(value))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        // Stored values stay within ±2⁵³.
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(self.keyless(Number::of(value).map_or(Json::Null, Json::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(if self.0.is_empty() { Json::Text(value.into()) } else { Json::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        if !self.0.is_empty() {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Json::Null);
        }
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(HERE)? {
            list.push(item);
        }
        Ok(Json::List(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let Some((wanted, rest)) = self.0.split_first() else {
            let mut object = BTreeMap::new();
            while let Some(key) = entries.next_key()? {
                object.insert(key, entries.next_value_seed(HERE)?);
            }
            return Ok(Json::object(object));
        };
        let mut found = Json::Null;
        while let Some(Key(key)) = entries.next_key()? {
            if key == **wanted {
                found = entries.next_value_seed(AtPath(rest))?;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A key, copied only where the text has it otherwise.
#[derive(Deserialize)]
struct Key<'text>(#[serde(borrow)] Cow<'text, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn of_key(object: &str, key: &str) -> Json {
        Json::at_path(object, &[key.into()])
    }

    fn of_whole(value: i64) -> Json {
        Json::Number(Number::Whole(value))
    }

    fn of_float(value: f64) -> Json {
        Number::of(value).map(Json::Number).expect("a number")
    }

    #[test]
    fn a_key_is_read_whole_dots_quotes_and_all() {
        let text = r#"{"a":1,"a.b":2.5,"say \"so\"":null,"é":[true,"x",{"a":[7]},[-3]],"":-0.0}"#;
        let number = |float| Number::of(float).map(Json::Number).expect("a number");
        assert_eq!(of_key(text, "a"), number(1.0));
        assert_eq!(of_key(text, "a.b"), number(2.5));
        assert_eq!(of_key(text, "say \"so\""), Json::Null);
        let list = |items: &[Json]| Json::List(items.into());
        let object = Json::Object([("a".into(), list(&[number(7.0)]))].into());
        let nested = list(&[number(-3.0)]);
        let items = [Json::Bool(true), Json::Text("x".into()), object, nested];
        assert_eq!(of_key(text, "é"), list(&items));
        assert_eq!(of_key(text, ""), number(0.0));
        assert_eq!(of_key(text, "b"), Json::Null);
    }

    #[test]
    fn a_path_leads_through_objects_alone() {
        let text = r#"{"a":{"b":{"c":1,"c":2},"l":[{"b":3}],"n":null,"x.y":4},"a.b":5,"t":"b"}"#;
        let at = |path: &[&str]| {
            let path: Vec<Box<str>> = path.iter().map(|key| (*key).into()).collect();
            Json::at_path(text, &path)
        };
        assert_eq!(at(&["a", "b", "c"]), of_whole(2));
        assert_eq!(at(&["a", "b"]), Json::Object([("c".into(), of_whole(2))].into()));
        assert_eq!(at(&["a", "x.y"]), of_whole(4));
        assert_eq!(at(&["a.b"]), of_whole(5));
        let missing: [&[&str]; 6] = [
            &["a", "b", "d"],
            &["a", "l", "b"],
            &["a", "n", "b"],
            &["t", "b"],
            &["a.b", "c"],
            &["x"],
        ];
        assert!(missing.into_iter().all(|path| at(path) == Json::Null));
    }

    #[test]
    fn an_operand_is_the_value_that_is_equal() {
        let text = r#"{"k":{"b":[1,true,null,2.5],"a":"x"}}"#;
        let items = [Operand::Float(1.0), Operand::Bool(true), Operand::Null, Operand::Float(2.5)];
        let mut entries: Vec<(Box<str>, Operand)> = vec![
            ("b".into(), Operand::List(items.into())),
            ("a".into(), Operand::Text("x".into())),
        ];
        assert_eq!(Json::of(&Operand::Object(entries.clone())), Some(of_key(text, "k")));
        entries.push(("c".into(), Operand::Moment(0)));
        assert_eq!(Json::of(&Operand::Object(entries)), None);
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let text = r#"{"i":9007199254740991,"f":0.30000000000000004,"s":5e-324,"u":1e300}"#;
        assert_eq!(of_key(text, "i"), of_whole((1 << 53) - 1));
        assert_eq!(of_key(text, "f"), of_float(0.1 + 0.2));
        assert_eq!(of_key(text, "s"), of_float(5e-324));
        assert_eq!(of_key(text, "u"), of_float(1e300));
    }

    #[test]
    fn what_is_no_object_has_no_keys() {
        for text in ["", "[1]", "{\"a\":", "null", "{\"a\":1", "{\"a\":{}} x"] {
            let found = of_key(text, "a");
            assert!(found == Json::Null || text.ends_with('x'), "{text}: {found:?}");
        }
        assert!(texts_of("{}").is_empty());
        assert_eq!(texts_of(r#"["a","b c",""]"#), ["a", "b c", ""]);
    }

    #[test]
    fn metadata_as_deep_as_may_be_stored_is_read() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(64), "]".repeat(64));
        let mut found = of_key(&deep, "a");
        for _ in 0..64 {
            let Json::List(items) = found else { panic!("{found:?} is no list") };
            found = items[0].clone();
        }
        assert_eq!(found, of_whole(1));
    }
}
