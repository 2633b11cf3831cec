//! Where each id's row is: sorted chunks that snapshots share until one of them is changed.
//!
//! A persistent B-tree of pairs takes 32 to 41 bytes an id (measured with `imbl::OrdMap`); this takes
//! 12, plus what is unfilled, and copies one chunk and one reference a chunk for each change.

use std::sync::Arc;

use crate::collections::cow_vec::Parts;

/// Ids in a full chunk. Copying one takes about as long as copying the references to all chunks
/// of a hundred thousand ids.
const CHUNK_IDS: usize = 1024;

#[derive(Clone)]
pub(crate) struct IdMap<P> {
    /// The first id of each chunk, beside the chunks so that finding one reads few cache lines.
    firsts: Vec<i64>,
    chunks: Parts<Chunk<P>>,
    len: usize,
}

/// Ids in ascending order, each once, and their places.
struct Chunk<P> {
    ids: Vec<i64>,
    places: Vec<P>,
}

impl<P: Copy> Clone for Chunk<P> {
    /// Copy into vectors with room for a whole chunk: the copy is about to be changed.
    fn clone(&self) -> Self {
        let mut copy = Self::empty();
        copy.ids.extend_from_slice(&self.ids);
        copy.places.extend_from_slice(&self.places);
        copy
    }
}

impl<P: Copy> Chunk<P> {
    fn empty() -> Self {
        Self { ids: Vec::with_capacity(CHUNK_IDS), places: Vec::with_capacity(CHUNK_IDS) }
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
        Self { firsts: Vec::new(), chunks: Parts::default(), len: 0 }
    }
}

impl<P: Copy> IdMap<P> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, id: i64) -> Option<P> {
        let chunk = self.chunks.get(self.chunk_of(id))?;
        chunk.ids.binary_search(&id).ok().map(|at| chunk.places[at])
    }

    /// Set the place of an id; returns the one it had.
    pub(crate) fn insert(&mut self, id: i64, place: P) -> Option<P> {
        if self.chunks.is_empty() {
            self.add_chunk(0, Chunk::empty(), id);
        }
        let mut position = self.chunk_of(id);
        if self.chunks.get(position).is_some_and(|chunk| chunk.ids.len() == CHUNK_IDS) {
            position = self.make_room(position, id);
        }
        let chunk = self.chunk_mut(position);
        match chunk.ids.binary_search(&id) {
            Ok(at) => Some(std::mem::replace(&mut chunk.places[at], place)),
            Err(at) => {
                chunk.ids.insert(at, id);
                chunk.places.insert(at, place);
                self.firsts[position] = self.firsts[position].min(id);
                self.len += 1;
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<P> {
        let position = self.chunk_of(id);
        let at = self.chunks.get(position)?.ids.binary_search(&id).ok()?;
        let chunk = self.chunk_mut(position);
        chunk.ids.remove(at);
        let place = chunk.places.remove(at);
        let first = chunk.ids.first().copied();
        self.len -= 1;
        if let Some(first) = first {
            self.firsts[position] = first;
        } else {
            self.firsts.remove(position);
            self.chunks.remove(position);
        }
        Some(place)
    }

    /// All ids, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = i64> {
        self.chunks.iter().flat_map(|chunk| chunk.ids.iter().copied())
    }

    pub(crate) fn bytes(&self) -> usize {
        let an_id = size_of::<i64>() + size_of::<P>();
        let a_chunk = size_of::<i64>() + size_of::<Arc<Chunk<P>>>() + size_of::<Chunk<P>>();
        self.chunks.len() * (CHUNK_IDS * an_id + a_chunk)
    }

    fn chunk_mut(&mut self, position: usize) -> &mut Chunk<P> {
        Arc::make_mut(self.chunks.get_mut(position).expect("a chunk that was found is there"))
    }

    /// The chunk that holds `id` if any does.
    fn chunk_of(&self, id: i64) -> usize {
        self.firsts.partition_point(|first| *first <= id).saturating_sub(1)
    }

    /// Split a full chunk in halves; or, where `id` comes after all others, start a new one, so
    /// that ascending ids fill their chunks. Returns the chunk that `id` belongs to.
    fn make_room(&mut self, position: usize, id: i64) -> usize {
        let full = self.chunks.get(position);
        let is_past_all = full.and_then(|full| full.ids.last()).is_some_and(|last| *last < id);
        if is_past_all && position + 1 == self.chunks.len() {
            self.add_chunk(position + 1, Chunk::empty(), id);
        } else {
            let back = self.chunk_mut(position).split_off(CHUNK_IDS / 2);
            let first = back.ids[0];
            self.add_chunk(position + 1, back, first);
        }
        self.chunk_of(id)
    }

    fn add_chunk(&mut self, position: usize, chunk: Chunk<P>, first: i64) {
        self.firsts.insert(position, first);
        self.chunks.insert(position, chunk);
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
        let firsts: Vec<i64> = map.chunks.iter().map(|chunk| chunk.ids[0]).collect();
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
    fn ascending_ids_fill_their_chunks() {
        let mut map = IdMap::<u32>::default();
        for id in 0..100 * CHUNK_IDS {
            map.insert(id as i64, id as u32);
        }
        assert_eq!(map.chunks.len(), 100);
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
