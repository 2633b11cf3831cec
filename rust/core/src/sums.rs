//! Checksums of stored rows: 62 bits, so that `SQLite` adds two of them without overflow.
//!
//! The sum of a row is the sum of hashes of its columns, so that a change of one column changes the
//! sum by a difference that needs no other column. Each hash is keyed by place and type of its
//! value, so bytes that move from one column to another show. Against accidents, not attackers:
//! whoever can write the file can write its sums.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bits that a sum has.
pub const MASK: u64 = (1 << 62) - 1;

const VECTOR: u64 = 1 << 32;
const LINK: u64 = 2 << 32;
const PLACE: u64 = 3 << 32;

/// A value of a column that is not NULL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'value> {
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(&'value str),
    /// Bytes.
    Blob(&'value [u8]),
}

/// The hash of the value in the column of this number; NULL counts as 0.
pub fn column(number: u32, value: Value<'_>) -> u64 {
    let key = |kind: u64| u64::from(number) << 2 | kind;
    match value {
        Value::Integer(value) => xxh3_64_with_seed(&value.to_le_bytes(), key(0)),
        Value::Real(value) => xxh3_64_with_seed(&real(value), key(1)),
        Value::Text(value) => xxh3_64_with_seed(value.as_bytes(), key(2)),
        Value::Blob(value) => xxh3_64_with_seed(value, key(3)),
    }
}

/// The hash of one of a row's vectors.
pub fn vector(model: &str, part: u64, components: &[u8]) -> u64 {
    let of_model = xxh3_64_with_seed(model.as_bytes(), VECTOR);
    xxh3_64_with_seed(components, of_model.wrapping_add(part))
}

/// As [`vector`], of components in the order of bytes of this machine.
pub fn vector_of(model: &str, part: u64, components: &[f32]) -> u64 {
    if cfg!(target_endian = "little") {
        return vector(model, part, bytemuck::cast_slice(components));
    }
    let bytes: Vec<u8> = components.iter().flat_map(|value| value.to_le_bytes()).collect();
    vector(model, part, &bytes)
}

/// The hash of a link in the sum of the row it comes from.
pub fn link(to: i64, kind: i64, strength: f64, created_at: i64) -> u64 {
    let mut bytes = [0; 32];
    for (place, value) in bytes.chunks_exact_mut(8).zip([
        to.to_le_bytes(),
        kind.to_le_bytes(),
        real(strength),
        created_at.to_le_bytes(),
    ]) {
        place.copy_from_slice(&value);
    }
    xxh3_64_with_seed(&bytes, LINK)
}

/// What a row adds to its agent's sum: its number, its three sums, and what decides its state, by
/// which it may be passed over unread.
pub fn place(row: i64, sums: [u64; 3], status: i64, forgotten_at: Option<i64>) -> u64 {
    let mut bytes = [0; 48];
    let [of_columns, of_vectors, of_links] = sums;
    let forgotten_at = forgotten_at.unwrap_or(i64::MIN).cast_unsigned();
    let values = [
        row.cast_unsigned(),
        of_columns,
        of_vectors,
        of_links,
        status.cast_unsigned(),
        forgotten_at,
    ];
    for (place, value) in bytes.chunks_exact_mut(8).zip(values) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    xxh3_64_with_seed(&bytes, PLACE)
}

/// `SQLite` keeps no negative zero.
fn real(value: f64) -> [u8; 8] {
    (value + 0.0).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_by_its_column_and_its_type() {
        let sums = [
            column(1, Value::Text("12345678")),
            column(2, Value::Text("12345678")),
            column(1, Value::Blob(b"12345678")),
            column(1, Value::Integer(i64::from_le_bytes(*b"12345678"))),
            column(1, Value::Real(f64::from_le_bytes(*b"12345678"))),
            column(1, Value::Text("")),
            column(1, Value::Blob(b"")),
            column(1, Value::Integer(0)),
        ];
        for (at, sum) in sums.iter().enumerate() {
            assert!(!sums[..at].contains(sum) && *sum & MASK != 0);
        }
    }

    #[test]
    fn every_bit_of_a_value_changes_about_half_of_its_hash() {
        for at in 0..64 {
            let changed = column(3, Value::Integer(0)) ^ column(3, Value::Integer(1 << at));
            assert!((12..52).contains(&changed.count_ones()), "bit {at}");
        }
    }

    #[test]
    fn components_count_as_their_bytes() {
        let bytes: Vec<u8> = [0.5_f32, -3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(vector_of("m", 1, &[0.5, -3.0]), vector("m", 1, &bytes));
    }

    #[test]
    fn no_negative_zero_is_told_from_zero() {
        assert_eq!(column(1, Value::Real(-0.0)), column(1, Value::Real(0.0)));
        assert_eq!(link(1, 2, -0.0, 3), link(1, 2, 0.0, 3));
    }

    #[test]
    fn vectors_links_and_places_count_by_all_they_are_made_of() {
        let vectors = [vector("m", 0, b"v"), vector("n", 0, b"v"), vector("m", 1, b"v")];
        let links = [link(1, 2, 0.5, 3), link(2, 1, 0.5, 3), link(1, 2, 0.5, 4)];
        let places = [
            place(1, [2, 3, 4], 0, None),
            place(2, [1, 3, 4], 0, None),
            place(1, [2, 4, 3], 0, None),
            place(1, [2, 3, 4], 1, None),
            place(1, [2, 3, 4], 0, Some(0)),
        ];
        for sums in [&vectors[..], &links, &places] {
            assert!((1..sums.len()).all(|at| !sums[..at].contains(&sums[at])));
        }
    }
}
