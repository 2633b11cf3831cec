//! Sequences that are cheap to copy: copies share what they hold until one of them changes.

use std::sync::Arc;

/// Shared parts in order, the last apart from those before: `clone` costs two pointers however many
/// there are. The first change of a copy copies the part, and a pointer for each part unless that is
/// the last.
///
/// Memories come at the end, so that is where nearly all changes are.
pub(crate) struct Parts<T> {
    before: Arc<Vec<Arc<T>>>,
    last: Option<Arc<T>>,
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self { before: Arc::default(), last: None }
    }
}

impl<T> Clone for Parts<T> {
    fn clone(&self) -> Self {
        Self { before: Arc::clone(&self.before), last: self.last.clone() }
    }
}

impl<T> Parts<T> {
    /// Number of parts.
    pub(crate) fn len(&self) -> usize {
        self.before.len() + usize::from(self.last.is_some())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part at a position, where there is one.
    pub(crate) fn get(&self, at: usize) -> Option<&Arc<T>> {
        match self.before.get(at) {
            None if at == self.before.len() => self.last.as_ref(),
            found => found,
        }
    }

    /// The part at a position, to be changed or replaced.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Arc<T>> {
        if at < self.before.len() {
            return Arc::make_mut(&mut self.before).get_mut(at);
        }
        self.last.as_mut().filter(|_| at == self.before.len())
    }

    /// All parts in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.before.iter().chain(&self.last)
    }

    /// Append a part.
    pub(crate) fn push(&mut self, part: T) {
        self.settle();
        self.last = Some(Arc::new(part));
    }

    /// Put a part in before the one at a position, or at the end.
    pub(crate) fn insert(&mut self, at: usize, part: T) {
        if at == self.len() {
            self.push(part);
        } else {
            Arc::make_mut(&mut self.before).insert(at, Arc::new(part));
        }
    }

    /// Take out the part at a position that is there.
    pub(crate) fn remove(&mut self, at: usize) {
        if at == self.before.len() {
            self.last = None;
        } else {
            Arc::make_mut(&mut self.before).remove(at);
        }
    }

    /// How many parts at the front pass a test that none passes after the first that does not.
    pub(crate) fn partition_point(&self, passes: impl Fn(&T) -> bool) -> usize {
        let before = self.before.partition_point(|part| passes(part));
        let all_before = before == self.before.len();
        before + usize::from(all_before && self.last.as_deref().is_some_and(passes))
    }

    /// Put the last part to those before: it will be changed no more often than they.
    pub(crate) fn settle(&mut self) {
        if let Some(last) = self.last.take() {
            Arc::make_mut(&mut self.before).push(last);
        }
    }

    /// The parts that are settled.
    pub(crate) fn settled(&self) -> &[Arc<T>] {
        &self.before
    }

    /// The parts that are settled, to be changed or replaced.
    pub(crate) fn settled_mut(&mut self) -> &mut [Arc<T>] {
        Arc::make_mut(&mut self.before).as_mut_slice()
    }

    /// Bytes of the pointers.
    pub(crate) fn bytes(&self) -> usize {
        self.before.capacity() * size_of::<Arc<T>>()
    }
}

/// Values in a chunk. Changing one value copies its chunk, and a pointer for each chunk where that is
/// not the last; this many keep both small.
pub(crate) const CHUNK_VALUES: usize = 512;

/// Values by position, for snapshots.
#[derive(Clone)]
pub(crate) struct Chunks<T> {
    chunks: Parts<Vec<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Parts::default(), len: 0 }
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
            self.chunks.push(Vec::with_capacity(CHUNK_VALUES));
        }
        let chunk = self.chunks.get_mut(self.len / CHUNK_VALUES);
        let chunk = chunk.expect("a chunk with room was just made sure of");
        Arc::make_mut(chunk).push(value);
        self.len += 1;
    }

    /// The values of one chunk; none where there is no such chunk.
    pub(crate) fn chunk(&self, at: usize) -> &[T] {
        self.chunks.get(at).map_or(&[], |chunk| chunk.as_slice())
    }

    /// Bytes of memory, without what the values themselves point to.
    pub(crate) fn bytes(&self) -> usize {
        let values: usize = self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<T>()).sum();
        values + self.chunks.bytes()
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_copy_keeps_its_values_when_the_original_changes() {
        let mut values: Chunks<usize> = (0..=3 * CHUNK_VALUES).collect();
        let copy = values.clone();
        *values.get_mut(CHUNK_VALUES).expect("it is there") = 7;
        values.push(9);
        assert_eq!(copy.len, 3 * CHUNK_VALUES + 1);
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
        let is_shared = |at| {
            let of = |chunks: &Chunks<u8>| chunks.chunks.get(at).map(Arc::as_ptr);
            of(&values) == of(&copy)
        };
        assert!(!is_shared(0));
        assert!(is_shared(1));
    }

    proptest! {
        #[test]
        fn parts_are_those_of_a_plain_vector_and_copies_keep_theirs(
            steps in prop::collection::vec((0..6, any::<prop::sample::Index>()), 1..200),
        ) {
            let (mut parts, mut twin) = (Parts::default(), Vec::new());
            let mut older = (parts.clone(), twin.clone());
            for (turn, (kind, which)) in steps.iter().enumerate() {
                if turn == steps.len() / 2 {
                    older = (parts.clone(), twin.clone());
                }
                let at = which.index(twin.len() + 1);
                match kind {
                    0 => parts.settle(),
                    1 if at < twin.len() => {
                        parts.remove(at);
                        twin.remove(at);
                    }
                    2 if at < twin.len() => {
                        *Arc::make_mut(parts.get_mut(at).expect("it is there")) = turn;
                        twin[at] = turn;
                    }
                    3 => {
                        parts.insert(at, turn);
                        twin.insert(at, turn);
                    }
                    _ => {
                        parts.push(turn);
                        twin.push(turn);
                    }
                }
            }
            for (mut parts, mut twin) in [(parts, twin), older] {
                prop_assert!(parts.iter().map(|part| **part).eq(twin.iter().copied()));
                prop_assert_eq!((parts.len(), parts.is_empty()), (twin.len(), twin.is_empty()));
                for (at, value) in twin.iter_mut().enumerate() {
                    prop_assert_eq!(parts.get(at).map(|part| **part), Some(*value));
                    *Arc::make_mut(parts.get_mut(at).expect("it is there")) = at;
                    *value = at;
                }
                prop_assert!(parts.get(twin.len()).is_none());
                prop_assert!(parts.get_mut(twin.len()).is_none());
                for least in 0..=twin.len() {
                    prop_assert_eq!(parts.partition_point(|part| *part < least), least);
                }
                parts.settle();
                prop_assert!(parts.settled().iter().map(|part| **part).eq(twin));
            }
        }
    }

    #[test]
    fn a_change_of_the_last_part_leaves_the_others_shared_as_one() {
        let mut parts = Parts::default();
        (0..9).for_each(|part| parts.push(part));
        let copy = parts.clone();
        *Arc::make_mut(parts.get_mut(8).expect("it is there")) = 7;
        assert!(Arc::ptr_eq(&parts.before, &copy.before));
        assert_eq!(
            (parts.get(8).map(|part| **part), copy.get(8).map(|part| **part)),
            (Some(7), Some(8))
        );
    }

    #[test]
    fn chunks_come_in_order() {
        let values: Chunks<usize> = (0..CHUNK_VALUES + 2).collect();
        assert!(values.chunk(0).iter().copied().eq(0..CHUNK_VALUES));
        assert_eq!(values.chunk(1), [CHUNK_VALUES, CHUNK_VALUES + 1]);
        assert!(values.chunk(2).is_empty());
    }

    #[test]
    fn memory_is_counted() {
        let values: Chunks<u64> = (0..600).collect();
        assert!(values.bytes() >= 2 * CHUNK_VALUES * 8);
    }
}
