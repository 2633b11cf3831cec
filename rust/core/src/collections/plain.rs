//! Lists of plain values in stored forms: one run of bytes, which is copied at once.
//!
//! `#[serde(with = "plain")]` on a list. The bytes are those of this machine.

use std::ops::Deref;

use bytemuck::{Pod, allocation::pod_collect_to_vec, cast_slice};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Write a list.
pub(crate) fn serialize<T: Pod, V: Deref<Target = [T]>, S: Serializer>(
    values: &V,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(cast_slice(values))
}

/// Read a list.
pub(crate) fn deserialize<'de, T, V, D>(deserializer: D) -> Result<V, D::Error>
where
    T: Pod,
    V: Deref<Target = [T]> + From<Vec<T>>,
    D: Deserializer<'de>,
{
    let bytes = <&[u8]>::deserialize(deserializer)?;
    if !bytes.len().is_multiple_of(size_of::<T>()) {
        return Err(D::Error::custom("a value that is cut off"));
    }
    Ok(V::from(pod_collect_to_vec(bytes)))
}

/// A list to be read.
#[derive(Deserialize)]
#[serde(bound = "T: Pod")]
pub(crate) struct Values<T>(#[serde(deserialize_with = "deserialize")] pub(crate) Vec<T>);

/// A list to be written.
#[derive(Serialize)]
#[serde(bound = "T: Pod")]
pub(crate) struct Written<'list, T>(#[serde(serialize_with = "serialize")] pub(crate) &'list [T]);
