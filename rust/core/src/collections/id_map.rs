//! Map from ids to values: sorted blocks that snapshots share until one of them changes.
//!
//! A persistent B-tree of pairs takes 32 to 41 bytes an id (measured with `imbl::OrdMap`); this
//! takes 12 and the unfilled part of blocks. A change copies one block and one reference a block.

use std::sync::Arc;

use crate::collections::cow_vec::CowVec;

/// Ids in a full block. Copying one takes about as long as copying the references to all blocks of
/// a hundred thousand ids.
const BLOCK_IDS: usize = 1024;

#[derive(Clone)]
pub(crate) struct IdMap<P> {
    /// The first id of each block, beside the blocks so that finding one reads few cache lines.
    firsts: Vec<i64>,
    blocks: CowVec<Block<P>>,
    len: usize,
}

/// Ids in ascending order, each once, and their places.
struct Block<P> {
    ids: Vec<i64>,
    places: Vec<P>,
}

impl<P: Copy> Clone for Block<P> {
    /// Copy into vectors with capacity for a whole block: the copy is about to be changed.
    fn clone(&self) -> Self {
        let mut copy = Self::empty();
        copy.ids.extend_from_slice(&self.ids);
        copy.places.extend_from_slice(&self.places);
        copy
    }
}

impl<P: Copy> Block<P> {
    fn empty() -> Self {
        Self { ids: Vec::with_capacity(BLOCK_IDS), places: Vec::with_capacity(BLOCK_IDS) }
    }

    fn of(pairs: &[(i64, P)]) -> Self {
        let mut block = Self::empty();
        block.ids.extend(pairs.iter().map(|(id, _)| id));
        block.places.extend(pairs.iter().map(|(_, place)| place));
        block
    }

    fn split_off(&mut self, at: usize) -> Self {
        let mut back = Self::empty();
        back.ids.extend(self.ids.drain(at..));
        back.places.extend(self.places.drain(at..));
        back
    }
}

impl<P> Default for IdMap<P> {
    fn default() -> Self {
        Self { firsts: Vec::new(), blocks: CowVec::default(), len: 0 }
    }
}

impl<P: Copy> IdMap<P> {
    /// The map of some pairs; `None` unless their ids ascend, each once.
    pub(crate) fn of_ascending(pairs: &[(i64, P)]) -> Option<Self> {
        if !pairs.is_sorted_by(|(one, _), (other, _)| one < other) {
            return None;
        }
        let blocks: Vec<Arc<Block<P>>> =
            pairs.chunks(BLOCK_IDS).map(|pairs| Arc::new(Block::of(pairs))).collect();
        let firsts = blocks.iter().map(|block| block.ids[0]).collect();
        Some(Self { firsts, blocks: CowVec::of(blocks), len: pairs.len() })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, id: i64) -> Option<P> {
        let block = self.blocks.get(self.block_of(id))?;
        block.ids.binary_search(&id).ok().map(|at| block.places[at])
    }

    /// Set the place of an id; returns the one it had.
    pub(crate) fn insert(&mut self, id: i64, place: P) -> Option<P> {
        if self.blocks.is_empty() {
            self.add_block(0, Block::empty(), id);
        }
        let mut position = self.block_of(id);
        if self.blocks.get(position).is_some_and(|block| block.ids.len() == BLOCK_IDS) {
            position = self.reserve(position, id);
        }
        let block = self.block_mut(position);
        match block.ids.binary_search(&id) {
            Ok(at) => Some(std::mem::replace(&mut block.places[at], place)),
            Err(at) => {
                block.ids.insert(at, id);
                block.places.insert(at, place);
                self.firsts[position] = self.firsts[position].min(id);
                self.len += 1;
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<P> {
        let position = self.block_of(id);
        let at = self.blocks.get(position)?.ids.binary_search(&id).ok()?;
        let block = self.block_mut(position);
        block.ids.remove(at);
        let place = block.places.remove(at);
        let first = block.ids.first().copied();
        self.len -= 1;
        if let Some(first) = first {
            self.firsts[position] = first;
        } else {
            self.firsts.remove(position);
            self.blocks.remove(position);
        }
        Some(place)
    }

    /// All ids, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = i64> {
        self.blocks.iter().flat_map(|block| block.ids.iter().copied())
    }

    pub(crate) fn bytes(&self) -> usize {
        let an_id = size_of::<i64>() + size_of::<P>();
        let a_block = size_of::<i64>() + size_of::<Arc<Block<P>>>() + size_of::<Block<P>>();
        self.blocks.len() * (BLOCK_IDS * an_id + a_block)
    }

    fn block_mut(&mut self, position: usize) -> &mut Block<P> {
        Arc::make_mut(self.blocks.get_mut(position).expect("a chunk that was found is there"))
    }

    /// The block that holds `id` if any does.
    fn block_of(&self, id: i64) -> usize {
        self.firsts.partition_point(|first| *first <= id).saturating_sub(1)
    }

    /// Split a full block in halves; or, where `id` comes after all others, start a new one, so
    /// that ascending ids fill their blocks. Returns the block that `id` belongs to.
    fn reserve(&mut self, position: usize, id: i64) -> usize {
        let full = self.blocks.get(position);
        let is_past_all = full.and_then(|full| full.ids.last()).is_some_and(|last| *last < id);
        if is_past_all && position + 1 == self.blocks.len() {
            self.add_block(position + 1, Block::empty(), id);
        } else {
            let back = self.block_mut(position).split_off(BLOCK_IDS / 2);
            let first = back.ids[0];
            self.add_block(position + 1, back, first);
        }
        self.block_of(id)
    }

    fn add_block(&mut self, position: usize, block: Block<P>, first: i64) {
        self.firsts.insert(position, first);
        self.blocks.insert(position, block);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn check(map: &IdMap<u32>, twin: &BTreeMap<i64, u32>) {
        assert_eq!(map.len(), twin.len());
        assert!(twin.iter().all(|(id, place)| map.get(*id) == Some(*place)));
        assert!(map.ids().eq(twin.keys().copied()));
        let firsts: Vec<i64> = map.blocks.iter().map(|block| block.ids[0]).collect();
        assert_eq!(map.firsts, firsts);
    }

    proptest! {
        #[test]
        fn random_changes_agree_with_a_tree_and_leave_older_copies_alone(
            steps in prop::collection::vec((any::<bool>(), -3000_i64..3000), 1..6000)
        ) {
            let (mut map, mut twin) = (IdMap::<u32>::default(), BTreeMap::new());
            let mut older = (map.clone(), twin.clone());
            for (turn, (is_insert, id)) in steps.iter().enumerate() {
                if turn == steps.len() / 2 {
                    older = (map.clone(), twin.clone());
                }
                let place = turn as u32;
                if *is_insert || turn % 3 > 0 {
                    prop_assert_eq!(map.insert(*id, place), twin.insert(*id, place));
                } else {
                    prop_assert_eq!(map.remove(*id), twin.remove(id));
                }
            }
            check(&map, &twin);
            check(&older.0, &older.1);
            prop_assert_eq!(map.get(5000), None);
        }
    }

    #[test]
    fn ascending_ids_fill_their_blocks() {
        let mut map = IdMap::<u32>::default();
        for id in 0..100 * BLOCK_IDS {
            map.insert(id as i64, id as u32);
        }
        assert_eq!(map.blocks.len(), 100);
        assert!(map.bytes() < map.len() * 13);
    }

    #[test]
    fn removing_everything_leaves_nothing() {
        let mut map = IdMap::<u32>::default();
        for id in (0..2000).rev() {
            map.insert(id, 0);
        }
        assert!((0..2000).all(|id| map.remove(id).is_some()));
        assert_eq!((map.len(), map.bytes(), map.get(7), map.remove(7)), (0, 0, None, None));
    }
}
