//! Copy-on-write sequences: copies share their elements until one of them changes.

use std::sync::Arc;

use bytemuck::Pod;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::collections::plain::{Values, Written};

/// Shared elements in order, the last one apart from the others: `clone` copies two pointers
/// whatever the length. The first change of a copy copies the element, and a pointer for each
/// element unless it is the last.
///
/// New memories are appended, so nearly all changes are at the end.
pub(crate) struct CowVec<T> {
    before: Arc<Vec<Arc<T>>>,
    last: Option<Arc<T>>,
}

impl<T> Default for CowVec<T> {
    fn default() -> Self {
        Self { before: Arc::default(), last: None }
    }
}

impl<T> Clone for CowVec<T> {
    fn clone(&self) -> Self {
        Self { before: Arc::clone(&self.before), last: self.last.clone() }
    }
}

impl<T> CowVec<T> {
    /// These elements in order.
    pub(crate) fn of(mut elements: Vec<Arc<T>>) -> Self {
        let last = elements.pop();
        Self { before: Arc::new(elements), last }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.before.len() + usize::from(self.last.is_some())
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at a position, if there is one.
    pub(crate) fn get(&self, at: usize) -> Option<&Arc<T>> {
        match self.before.get(at) {
            None if at == self.before.len() => self.last.as_ref(),
            found => found,
        }
    }

    /// The element at a position, to be changed or replaced.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Arc<T>> {
        if at < self.before.len() {
            return Arc::make_mut(&mut self.before).get_mut(at);
        }
        self.last.as_mut().filter(|_| at == self.before.len())
    }

    /// All elements in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<T>> {
        self.before.iter().chain(&self.last)
    }

    /// Append an element.
    pub(crate) fn push(&mut self, element: T) {
        self.settle();
        self.last = Some(Arc::new(element));
    }

    /// Insert an element before the one at a position, or at the end.
    pub(crate) fn insert(&mut self, at: usize, element: T) {
        if at == self.len() {
            self.push(element);
        } else {
            Arc::make_mut(&mut self.before).insert(at, Arc::new(element));
        }
    }

    /// Remove the element at an existing position.
    pub(crate) fn remove(&mut self, at: usize) {
        if at == self.before.len() {
            self.last = None;
        } else {
            Arc::make_mut(&mut self.before).remove(at);
        }
    }

    /// Length of the prefix that passes a test; after the first failure no element may pass.
    pub(crate) fn partition_point(&self, passes: impl Fn(&T) -> bool) -> usize {
        let before = self.before.partition_point(|element| passes(element));
        let all_before = before == self.before.len();
        before + usize::from(all_before && self.last.as_deref().is_some_and(passes))
    }

    /// Move the last element to the others, once it changes no more often than they do.
    pub(crate) fn settle(&mut self) {
        if let Some(last) = self.last.take() {
            Arc::make_mut(&mut self.before).push(last);
        }
    }

    /// The settled elements.
    pub(crate) fn settled(&self) -> &[Arc<T>] {
        &self.before
    }

    /// The settled elements, to be changed or replaced.
    pub(crate) fn settled_mut(&mut self) -> &mut [Arc<T>] {
        Arc::make_mut(&mut self.before).as_mut_slice()
    }

    /// Bytes of the pointers.
    pub(crate) fn bytes(&self) -> usize {
        self.before.capacity() * size_of::<Arc<T>>()
    }
}

impl<T: Serialize> Serialize for CowVec<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for CowVec<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(Vec::deserialize(deserializer)?))
    }
}

/// Values in a block. Changing one value copies its block, and a pointer for each block where that
/// is not the last; this many keep both small.
pub(crate) const BLOCK_VALUES: usize = 512;

/// Values by position, for snapshots.
#[derive(Clone)]
pub(crate) struct BlockVec<T> {
    blocks: CowVec<Vec<T>>,
    len: usize,
}

impl<T> Default for BlockVec<T> {
    fn default() -> Self {
        Self { blocks: CowVec::default(), len: 0 }
    }
}

impl<T: Clone> BlockVec<T> {
    /// These values in order, copied a block at a time.
    pub(crate) fn of(values: &[T]) -> Self {
        let blocks = values.chunks(BLOCK_VALUES).map(|block| Arc::new(block.to_vec()));
        Self { blocks: CowVec::of(blocks.collect()), len: values.len() }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The value at a position, if there is one.
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.blocks.get(at / BLOCK_VALUES)?.get(at % BLOCK_VALUES)
    }

    /// The value at a position, to be changed.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let block = self.blocks.get_mut(at / BLOCK_VALUES)?;
        Arc::make_mut(block).get_mut(at % BLOCK_VALUES)
    }

    /// Append a value.
    pub(crate) fn push(&mut self, value: T) {
        if self.len.is_multiple_of(BLOCK_VALUES) {
            self.blocks.push(Vec::with_capacity(BLOCK_VALUES));
        }
        let block = self.blocks.get_mut(self.len / BLOCK_VALUES);
        let block = block.expect("a chunk with capacity was just made sure of");
        Arc::make_mut(block).push(value);
        self.len += 1;
    }

    /// The values of one block; empty if there is no such block.
    pub(crate) fn block(&self, at: usize) -> &[T] {
        self.blocks.get(at).map_or(&[], |block| block.as_slice())
    }

    /// Bytes of memory, without the heap memory of the values.
    pub(crate) fn bytes(&self) -> usize {
        let values: usize = self.blocks.iter().map(|block| block.capacity() * size_of::<T>()).sum();
        values + self.blocks.bytes()
    }
}

impl<T: Clone> FromIterator<T> for BlockVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut blocks = Self::default();
        values.into_iter().for_each(|value| blocks.push(value));
        blocks
    }
}

impl<T: Pod> Serialize for BlockVec<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.blocks.iter().map(|block| Written(block)))
    }
}

impl<'de, T: Pod> Deserialize<'de> for BlockVec<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let blocks = Vec::<Values<T>>::deserialize(deserializer)?;
        let is_sound = blocks.split_last().is_none_or(|(last, full)| {
            let are_full = full.iter().all(|block| block.0.len() == BLOCK_VALUES);
            are_full && (1..=BLOCK_VALUES).contains(&last.0.len())
        });
        if !is_sound {
            return Err(D::Error::custom("blocks of other lengths"));
        }
        let len = blocks.iter().map(|block| block.0.len()).sum();
        let blocks = blocks.into_iter().map(|block| Arc::new(block.0)).collect();
        Ok(Self { blocks: CowVec::of(blocks), len })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_copy_keeps_its_values_when_the_original_changes() {
        let mut values: BlockVec<usize> = (0..=3 * BLOCK_VALUES).collect();
        let copy = values.clone();
        *values.get_mut(BLOCK_VALUES).expect("it is there") = 7;
        values.push(9);
        assert_eq!(copy.len, 3 * BLOCK_VALUES + 1);
        assert_eq!(copy.get(BLOCK_VALUES), Some(&BLOCK_VALUES));
        assert_eq!(copy.get(3 * BLOCK_VALUES + 1), None);
        assert_eq!(values.get(BLOCK_VALUES), Some(&7));
        assert_eq!(values.get(3 * BLOCK_VALUES + 1), Some(&9));
    }

    #[test]
    fn copies_share_the_blocks_that_did_not_change() {
        let mut values: BlockVec<u8> = (0..2 * BLOCK_VALUES).map(|at| at as u8).collect();
        let copy = values.clone();
        *values.get_mut(0).expect("it is there") = 7;
        let is_shared = |at| {
            let of = |blocks: &BlockVec<u8>| blocks.blocks.get(at).map(Arc::as_ptr);
            of(&values) == of(&copy)
        };
        assert!(!is_shared(0));
        assert!(is_shared(1));
    }

    proptest! {
        #[test]
        fn elements_are_those_of_a_plain_vector_and_copies_keep_theirs(
            steps in prop::collection::vec((0..6, any::<prop::sample::Index>()), 1..200),
        ) {
            let (mut elements, mut twin) = (CowVec::default(), Vec::new());
            let mut older = (elements.clone(), twin.clone());
            for (turn, (kind, which)) in steps.iter().enumerate() {
                if turn == steps.len() / 2 {
                    older = (elements.clone(), twin.clone());
                }
                let at = which.index(twin.len() + 1);
                match kind {
                    0 => elements.settle(),
                    1 if at < twin.len() => {
                        elements.remove(at);
                        twin.remove(at);
                    }
                    2 if at < twin.len() => {
                        *Arc::make_mut(elements.get_mut(at).expect("it is there")) = turn;
                        twin[at] = turn;
                    }
                    3 => {
                        elements.insert(at, turn);
                        twin.insert(at, turn);
                    }
                    _ => {
                        elements.push(turn);
                        twin.push(turn);
                    }
                }
            }
            for (mut elements, mut twin) in [(elements, twin), older] {
                prop_assert!(elements.iter().map(|element| **element).eq(twin.iter().copied()));
                prop_assert_eq!((elements.len(), elements.is_empty()), (twin.len(), twin.is_empty()));
                for (at, value) in twin.iter_mut().enumerate() {
                    prop_assert_eq!(elements.get(at).map(|element| **element), Some(*value));
                    *Arc::make_mut(elements.get_mut(at).expect("it is there")) = at;
                    *value = at;
                }
                prop_assert!(elements.get(twin.len()).is_none());
                prop_assert!(elements.get_mut(twin.len()).is_none());
                for min in 0..=twin.len() {
                    prop_assert_eq!(elements.partition_point(|element| *element < min), min);
                }
                elements.settle();
                prop_assert!(elements.settled().iter().map(|element| **element).eq(twin));
            }
        }
    }

    #[test]
    fn a_change_of_the_last_element_leaves_the_others_shared_as_one() {
        let mut elements = CowVec::default();
        (0..9).for_each(|element| elements.push(element));
        let copy = elements.clone();
        *Arc::make_mut(elements.get_mut(8).expect("it is there")) = 7;
        assert!(Arc::ptr_eq(&elements.before, &copy.before));
        assert_eq!(
            (elements.get(8).map(|element| **element), copy.get(8).map(|element| **element)),
            (Some(7), Some(8))
        );
    }

    #[test]
    fn blocks_come_in_order() {
        let values: BlockVec<usize> = (0..BLOCK_VALUES + 2).collect();
        assert!(values.block(0).iter().copied().eq(0..BLOCK_VALUES));
        assert_eq!(values.block(1), [BLOCK_VALUES, BLOCK_VALUES + 1]);
        assert!(values.block(2).is_empty());
    }

    #[test]
    fn memory_is_counted() {
        let values: BlockVec<u64> = (0..600).collect();
        assert!(values.bytes() >= 2 * BLOCK_VALUES * 8);
    }
}
