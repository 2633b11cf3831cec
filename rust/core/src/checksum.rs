//! Checksums of stored rows: 62 bits, so that `SQLite` adds two of them without overflow.
//!
//! The sum of a row is the sum of hashes of its columns, so that a change of one column changes the
//! sum by a difference that needs no other column. Each hash is keyed by place and type of its
//! value, so bytes that move from one column to another show. Against accidents, not attackers:
//! whoever can write the file can write its sums.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Error;

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
        Value::Real(value) => hash_of([real(value)], key(1)),
        Value::Text(value) => xxh3_64_with_seed(value.as_bytes(), key(2)),
        Value::Blob(value) => xxh3_64_with_seed(value, key(3)),
    }
}

/// The hash of one of a row's vectors.
pub fn vector(model: &str, chunk: u64, components: &[u8]) -> u64 {
    xxh3_64_with_seed(components, hash_of_model(model).wrapping_add(chunk))
}

fn hash_of_model(model: &str) -> u64 {
    xxh3_64_with_seed(model.as_bytes(), VECTOR)
}

/// As [`vector`], of components in the order of bytes of this machine.
pub fn vector_of(model: &str, chunk: u64, components: &[f32]) -> u64 {
    if cfg!(target_endian = "little") {
        return vector(model, chunk, bytemuck::cast_slice(components));
    }
    let bytes: Vec<u8> = components.iter().flat_map(|value| value.to_le_bytes()).collect();
    vector(model, chunk, &bytes)
}

/// The hash of a link in the sum of the row it comes from.
pub fn link(to: i64, kind: i64, strength: f64, created_at: i64) -> u64 {
    let [to, kind, created_at] = [to, kind, created_at].map(i64::cast_unsigned);
    hash_of([to, kind, real(strength), created_at], LINK)
}

/// A row's part of its agent's sum: its number, its three sums, and the columns of its state, by
/// which a reader may skip it.
pub fn place(row: i64, sums: [u64; 3], status: i64, forgotten_at: Option<i64>) -> u64 {
    let [of_columns, of_vectors, of_links] = sums;
    let forgotten_at = forgotten_at.unwrap_or(i64::MIN);
    let [row, status, forgotten_at] = [row, status, forgotten_at].map(i64::cast_unsigned);
    hash_of([row, of_columns, of_vectors, of_links, status, forgotten_at], PLACE)
}

/// The hash of numbers as bytes, the lowest first.
fn hash_of<const COUNT: usize>(numbers: [u64; COUNT], key: u64) -> u64 {
    xxh3_64_with_seed(bytemuck::cast_slice(&numbers.map(u64::to_le)), key)
}

/// The sums of the vectors of rows, 0 where a row has none.
///
/// Rows nearly always arrive and are looked up in ascending order, so the next place is tried
/// first; a hash map of 100,000 rows costs a wait for memory at each of them.
#[derive(Debug, Clone, Default)]
pub struct VectorSums {
    /// Ascending by row, each once.
    sums: Vec<(i64, u64)>,
    /// Position of the next row, if rows come in order.
    next: usize,
}

impl VectorSums {
    /// Reserve so many more rows.
    ///
    /// # Errors
    ///
    /// When they do not fit memory.
    pub fn reserve(&mut self, rows: usize) -> Result<(), Error> {
        let bytes = rows.saturating_mul(size_of::<(i64, u64)>());
        self.sums.try_reserve(rows).map_err(|_| Error::OutOfMemory { bytes })
    }

    /// Set the sum of a row.
    pub fn insert(&mut self, row: i64, sum: u64) {
        if self.sums.last().is_none_or(|(last, _)| *last < row) {
            self.sums.push((row, sum));
            return;
        }
        match self.place_of(row) {
            Ok(at) => self.sums[at].1 = sum,
            Err(at) => self.sums.insert(at, (row, sum)),
        }
    }

    /// The sum of a row, if there is one.
    pub fn get(&mut self, row: i64) -> Option<u64> {
        let at = match self.sums.get(self.next) {
            Some((known, _)) if *known == row => self.next,
            _ => self.place_of(row).ok()?,
        };
        self.next = at + 1;
        Some(self.sums[at].1)
    }

    /// How many rows have vectors.
    pub fn rows(&self) -> usize {
        self.sums.iter().filter(|(_, sum)| *sum != 0).count()
    }

    fn place_of(&self, row: i64) -> Result<usize, usize> {
        self.sums.binary_search_by_key(&row, |(known, _)| *known)
    }
}

/// Compares vectors with the sums of their rows. Those of a row come together, in the order of its
/// chunks.
pub struct VectorCheck<'sums> {
    sums: &'sums mut VectorSums,
    of_model: u64,
    current: Option<CurrentRow>,
    wrong: Option<i64>,
    rows: usize,
}

/// The row of the current vectors.
struct CurrentRow {
    row: i64,
    /// Nothing where the row has no sums, and nothing is hashed.
    stored: Option<u64>,
    sum: u64,
    chunk: u64,
}

impl<'sums> VectorCheck<'sums> {
    /// Begin with the vectors of a model.
    pub fn new(model: &str, sums: &'sums mut VectorSums) -> Self {
        Self { sums, of_model: hash_of_model(model), current: None, wrong: None, rows: 0 }
    }

    /// Take the next vector.
    pub fn push(&mut self, row: i64, components: &[u8]) {
        if self.current.as_ref().is_none_or(|current| current.row != row) {
            self.finish_row();
            let stored = self.sums.get(row);
            self.current = Some(CurrentRow { row, stored, sum: 0, chunk: 0 });
        }
        let Some(current) = self.current.as_mut().filter(|row| row.stored.is_some()) else {
            return;
        };
        let hash = xxh3_64_with_seed(components, self.of_model.wrapping_add(current.chunk));
        current.sum = current.sum.wrapping_add(hash);
        current.chunk += 1;
    }

    /// The first row whose vectors do not have its sum, and how many rows before it have a sum;
    /// rows without sums are skipped.
    pub fn finish(mut self) -> (Option<i64>, usize) {
        self.finish_row();
        (self.wrong, self.rows)
    }

    fn finish_row(&mut self) {
        let Some(CurrentRow { row, stored: Some(stored), sum, .. }) = self.current.take() else {
            return;
        };
        if self.wrong.is_some() {
            return;
        }
        if stored == sum & MASK {
            self.rows += 1;
        } else {
            self.wrong = Some(row);
        }
    }
}

/// `SQLite` keeps no negative zero.
fn real(value: f64) -> u64 {
    (value + 0.0).to_bits()
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
    fn vectors_are_compared_row_by_row_in_any_order_of_rows() {
        let sum = |chunks: &[&[u8]]| {
            let hashes = chunks.iter().zip(0..).map(|(chunk, number)| vector("m", number, chunk));
            hashes.fold(0_u64, u64::wrapping_add) & MASK
        };
        let of_rows = [(7, sum(&[b"a", b"b"])), (3, sum(&[b"c"])), (9, 0), (5, sum(&[b"d"]))];
        let mut sums = VectorSums::default();
        for (row, sum) in of_rows {
            sums.insert(row, sum);
        }
        assert_eq!(sums.rows(), 3);
        let mut checked = |vectors: &[(i64, &[u8])]| {
            let mut check = VectorCheck::new("m", &mut sums);
            for (row, components) in vectors {
                check.push(*row, components);
            }
            check.finish()
        };
        let right: [(i64, &[u8]); 5] = [(5, b"d"), (3, b"c"), (4, b"x"), (7, b"a"), (7, b"b")];
        assert_eq!(checked(&right), (None, 3));
        assert_eq!(checked(&[(3, b"c"), (7, b"b"), (7, b"a"), (5, b"x")]), (Some(7), 1));
        assert_eq!(checked(&[(9, b"x")]), (Some(9), 0));
        assert_eq!(checked(&[]), (None, 0));
    }

    #[test]
    fn the_sum_of_a_row_that_comes_again_replaces_the_first() {
        let mut sums = VectorSums::default();
        for (row, sum) in [(2, 5), (1, 6), (2, 0)] {
            sums.insert(row, sum);
        }
        assert_eq!([1, 2, 3].map(|row| sums.get(row)), [Some(6), Some(0), None]);
        assert_eq!(sums.rows(), 1);
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
