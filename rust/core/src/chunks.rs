//! A vector that is cheap to copy: copies share their chunks until one of them changes.

use std::sync::Arc;

/// Values in a chunk. Changing one value copies its chunk, copying the vector copies a pointer for
/// each chunk; this many keep both small.
pub(crate) const CHUNK_VALUES: usize = 512;

/// Values by position, for snapshots: `clone` costs a pointer for every [`CHUNK_VALUES`] values.
#[derive(Clone)]
pub(crate) struct Chunks<T> {
    chunks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Clone> Chunks<T> {
    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The value at a position, where there is one.
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK_VALUES)?.get(at % CHUNK_VALUES)
    }

    /// The value at a position, to be changed.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(at / CHUNK_VALUES)?;
        Arc::make_mut(chunk).get_mut(at % CHUNK_VALUES)
    }

    /// Append a value.
    pub(crate) fn push(&mut self, value: T) {
        if self.len.is_multiple_of(CHUNK_VALUES) {
            self.chunks.push(Arc::new(Vec::with_capacity(CHUNK_VALUES)));
        }
        let chunk = self.chunks.last_mut().expect("a chunk with room was just made sure of");
        Arc::make_mut(chunk).push(value);
        self.len += 1;
    }

    /// All values in order, chunk by chunk.
    #[cfg(test)]
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &[T]> {
        self.chunks.iter().map(|chunk| chunk.as_slice())
    }

    /// Bytes of memory, without what the values themselves point to.
    pub(crate) fn bytes(&self) -> usize {
        let values: usize = self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<T>()).sum();
        values + self.chunks.capacity() * size_of::<Arc<Vec<T>>>()
    }
}

impl<T: Clone> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut chunks = Self::default();
        values.into_iter().for_each(|value| chunks.push(value));
        chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_its_values_when_the_original_changes() {
        let mut values: Chunks<usize> = (0..=3 * CHUNK_VALUES).collect();
        let copy = values.clone();
        *values.get_mut(CHUNK_VALUES).expect("it is there") = 7;
        values.push(9);
        assert_eq!(copy.len(), 3 * CHUNK_VALUES + 1);
        assert_eq!(copy.get(CHUNK_VALUES), Some(&CHUNK_VALUES));
        assert_eq!(copy.get(3 * CHUNK_VALUES + 1), None);
        assert_eq!(values.get(CHUNK_VALUES), Some(&7));
        assert_eq!(values.get(3 * CHUNK_VALUES + 1), Some(&9));
    }

    #[test]
    fn copies_share_the_chunks_that_did_not_change() {
        let mut values: Chunks<u8> = (0..2 * CHUNK_VALUES).map(|at| at as u8).collect();
        let copy = values.clone();
        *values.get_mut(0).expect("it is there") = 7;
        assert!(!Arc::ptr_eq(&values.chunks[0], &copy.chunks[0]));
        assert!(Arc::ptr_eq(&values.chunks[1], &copy.chunks[1]));
    }

    #[test]
    fn chunks_come_in_order() {
        let values: Chunks<usize> = (0..CHUNK_VALUES + 2).collect();
        let all: Vec<usize> = values.chunks().flatten().copied().collect();
        assert!(all.into_iter().eq(0..CHUNK_VALUES + 2));
    }

    #[test]
    fn memory_is_counted() {
        let values: Chunks<u64> = (0..600).collect();
        assert!(values.bytes() >= 2 * CHUNK_VALUES * 8);
    }
}
