//! The rows of a selection, as id selectors of vector libraries take them.

use crate::Error;
use crate::columns::Ask;
use crate::system::memory_budget::headroom;

use super::MemoryIndex;

/// A bitmap may take as many bits for each row as a list.
const BITS_PER_LISTED_ROW: usize = i64::BITS as usize;

/// A set of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSet {
    /// All rows of the index.
    Everything,
    /// These rows, ascending.
    List(Vec<i64>),
    /// Row r is in the set if bit r % 8 of byte r / 8 is 1; rows beyond the end are not.
    Bitmap(Vec<u8>),
}

/// The selected rows and their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSelection {
    /// How many.
    pub count: usize,
    /// Which: a bitmap where that is smaller than a list.
    pub rows: RowSet,
}

impl MemoryIndex {
    /// The selected rows; `None` if there are at most `few`, or the deadline passes.
    ///
    /// # Errors
    ///
    /// When memory runs out.
    pub fn selected(&self, ask: &Ask<'_>, few: usize) -> Result<Option<RowSelection>, Error> {
        headroom(self.bytes_of_reading(0, 0))?;
        let columns = &self.store.snapshot().memories.columns;
        if columns.selects_all(ask) {
            let count = columns.live();
            return Ok((count > few).then_some(RowSelection { count, rows: RowSet::Everything }));
        }
        let selected = columns.select(ask);
        let count = selected.len();
        if count <= few || ask.deadline.has_passed() {
            return Ok(None);
        }
        if count == columns.live() {
            return Ok(Some(RowSelection { count, rows: RowSet::Everything }));
        }
        Ok(Some(RowSelection { count, rows: row_set(columns.rows_of(&selected)) }))
    }
}

fn row_set(mut rows: Vec<i64>) -> RowSet {
    let mut places = rows.iter().map(|row| usize::try_from(*row).ok());
    let last = places.try_fold(0, |last: usize, place| Some(last.max(place?)));
    let listed_bits = rows.len().saturating_mul(BITS_PER_LISTED_ROW);
    if let Some(last) = last.filter(|last| *last < listed_bits) {
        return RowSet::Bitmap(bitmap(&rows, last));
    }
    rows.sort_unstable();
    RowSet::List(rows)
}

/// The bits of rows from 0 to `last`.
fn bitmap(rows: &[i64], last: usize) -> Vec<u8> {
    let mut bytes = vec![0; last / 8 + 1];
    for row in rows.iter().filter_map(|row| usize::try_from(*row).ok()) {
        bytes[row / 8] |= 1 << (row % 8);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_close_together_are_a_bitmap_and_others_a_list() {
        assert_eq!(row_set(vec![9, 0, 3]), RowSet::Bitmap(vec![0b1001, 0b10]));
        assert_eq!(row_set(vec![127, 5]), {
            let mut bytes = vec![0; 16];
            (bytes[0], bytes[15]) = (1 << 5, 1 << 7);
            RowSet::Bitmap(bytes)
        });
        assert_eq!(row_set(vec![128, 5]), RowSet::List(vec![5, 128]));
        assert_eq!(row_set(vec![i64::MAX, 5, 6]), RowSet::List(vec![5, 6, i64::MAX]));
        assert_eq!(row_set(vec![2, -1]), RowSet::List(vec![-1, 2]));
    }
}
