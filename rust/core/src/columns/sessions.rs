//! The previous and next memory of each memory in its session.
//!
//! All docids with a session are in one sorted list, cut into blocks that snapshots share until one
//! of them changes; neighbours in the list are neighbours in the session. The neighbours of each
//! docid are stored by docid, so that a ranking reads them in order.

use std::sync::Arc;

use crate::collections::cow_vec::{BlockVec, CowVec};

/// The neighbour of a docid that has none.
pub const NO_DOCID: u32 = u32::MAX;

/// Docids in a full block; see `id_map`.
const BLOCK_DOCIDS: usize = 1024;

/// The order of docids: by session; in a session those with a position first, by position; then,
/// and among equals, by time, then by row.
///
/// A position and a time cannot both decide between any two: rows 1 (position 2, noon), 2 (no
/// position, one o'clock) and 3 (position 1, two o'clock) would each come before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionKey {
    pub(crate) user: u32,
    pub(crate) session: u32,
    pub(crate) lacks_position: bool,
    pub(crate) position: i64,
    pub(crate) created_at: i64,
    pub(crate) row: i64,
}

impl SessionKey {
    fn is_beside(&self, other: &Self) -> bool {
        (self.user, self.session) == (other.user, other.session)
    }
}

/// The order of every session. Keys are not stored: each call passes a reader of the keys of docids
/// that are in.
#[derive(Clone, Default)]
pub(crate) struct Sessions {
    order: CowVec<Vec<u32>>,
    previous: BlockVec<u32>,
    next: BlockVec<u32>,
}

impl Sessions {
    /// The sessions of so many docids; `order` has those with a session, sorted by their keys.
    pub(super) fn of(order: &[u32], docids: usize, key_of: impl Fn(u32) -> SessionKey) -> Self {
        let (mut previous, mut next) = (vec![NO_DOCID; docids], vec![NO_DOCID; docids]);
        for pair in order.windows(2).filter(|pair| key_of(pair[0]).is_beside(&key_of(pair[1]))) {
            next[pair[0] as usize] = pair[1];
            previous[pair[1] as usize] = pair[0];
        }
        let blocks = order.chunks(BLOCK_DOCIDS).map(|block| Arc::new(block.to_vec()));
        let (previous, next) = (BlockVec::of(&previous), BlockVec::of(&next));
        Self { order: CowVec::of(blocks.collect()), previous, next }
    }

    /// All docids with a session, sorted by their keys.
    pub(super) fn order(&self) -> impl Iterator<Item = u32> {
        self.order.iter().flat_map(|block| block.iter().copied())
    }

    /// Reserve one more docid, which has no neighbours yet.
    pub(crate) fn push(&mut self) {
        self.previous.push(NO_DOCID);
        self.next.push(NO_DOCID);
    }

    /// The docids before those of a block, [`NO_DOCID`] for none.
    pub(crate) fn previous(&self, block: usize) -> &[u32] {
        self.previous.block(block)
    }

    /// The docids after those of a block, [`NO_DOCID`] for none.
    pub(crate) fn next(&self, block: usize) -> &[u32] {
        self.next.block(block)
    }

    /// Insert a docid that has a session.
    pub(crate) fn insert(&mut self, docid: u32, key_of: impl Fn(u32) -> SessionKey) {
        let key = key_of(docid);
        let (block, at) = self.place_of(&key, &key_of);
        let near = |found: Option<u32>| found.filter(|docid| key_of(*docid).is_beside(&key));
        let before = near(self.before(block, at)).unwrap_or(NO_DOCID);
        let after = near(self.at_or_after(block, at)).unwrap_or(NO_DOCID);
        self.put(block, at, docid);
        self.join(before, docid);
        self.join(docid, after);
    }

    /// Remove an inserted docid. Its key must be unchanged.
    pub(crate) fn remove(&mut self, docid: u32, key_of: impl Fn(u32) -> SessionKey) {
        let (position, at) = self.place_of(&key_of(docid), &key_of);
        if self.at_or_after(position, at) != Some(docid) {
            return;
        }
        let block = self.block_mut(position);
        block.remove(at);
        if block.is_empty() {
            self.order.remove(position);
        }
        let neighbours = (self.previous.get(docid as usize), self.next.get(docid as usize));
        let (Some(&before), Some(&after)) = neighbours else {
            return;
        };
        self.join(before, after);
        self.join(NO_DOCID, docid);
        self.join(docid, NO_DOCID);
    }

    pub(crate) fn bytes(&self) -> usize {
        let order: usize = self.order.iter().map(|block| block.capacity() * size_of::<u32>()).sum();
        order + self.order.bytes() + self.previous.bytes() + self.next.bytes()
    }

    /// The block and the place in it where a key belongs: before the first that is not smaller.
    fn place_of(&self, key: &SessionKey, key_of: impl Fn(u32) -> SessionKey) -> (usize, usize) {
        let is_smaller = |docid: &u32| key_of(*docid) < *key;
        let firsts = self.order.partition_point(|block| block.first().is_some_and(is_smaller));
        let position = firsts.saturating_sub(1);
        let at = self.order.get(position).map_or(0, |block| block.partition_point(is_smaller));
        let is_past_block = self.order.get(position).is_some_and(|block| at == block.len());
        let is_last = position + 1 >= self.order.len();
        if is_past_block && !is_last { (position + 1, 0) } else { (position, at) }
    }

    fn before(&self, block: usize, at: usize) -> Option<u32> {
        match at.checked_sub(1) {
            Some(before) => self.order.get(block)?.get(before).copied(),
            None => self.order.get(block.checked_sub(1)?)?.last().copied(),
        }
    }

    fn at_or_after(&self, block: usize, at: usize) -> Option<u32> {
        self.order.get(block)?.get(at).copied()
    }

    fn put(&mut self, position: usize, at: usize, docid: u32) {
        // Before the first of a block is after the last of the one before, which may have a vacancy.
        let has_vacancy =
            |position| self.order.get(position).is_some_and(|block| block.len() < BLOCK_DOCIDS);
        let fits_before = at == 0 && position > 0 && has_vacancy(position - 1);
        if fits_before {
            self.block_mut(position - 1).push(docid);
        } else if !has_vacancy(position) {
            self.put_where_full(position, at, docid);
        } else {
            self.block_mut(position).insert(at, docid);
        }
    }

    fn block_mut(&mut self, position: usize) -> &mut Vec<u32> {
        Arc::make_mut(self.order.get_mut(position).expect("a chunk that was found is there"))
    }

    /// Split a full block; or, at its end, start a new one, so that a growing end fills blocks.
    fn put_where_full(&mut self, position: usize, at: usize, docid: u32) {
        if self.order.get(position).is_none() {
            self.order.push(vec![docid]);
            return;
        }
        if at == BLOCK_DOCIDS {
            self.order.insert(position + 1, vec![docid]);
            return;
        }
        let front = self.block_mut(position);
        let mut back = front.split_off(BLOCK_DOCIDS / 2);
        match at.checked_sub(BLOCK_DOCIDS / 2) {
            Some(at) => back.insert(at, docid),
            None => front.insert(at, docid),
        }
        self.order.insert(position + 1, back);
    }

    /// Make two docids neighbours; [`NO_DOCID`] for an end of the session.
    fn join(&mut self, before: u32, after: u32) {
        set(&mut self.next, before, after);
        set(&mut self.previous, after, before);
    }
}

/// Write only differences: a write copies a shared block.
fn set(neighbours: &mut BlockVec<u32>, docid: u32, neighbour: u32) {
    let at = docid as usize;
    if neighbours.get(at).is_some_and(|known| *known != neighbour)
        && let Some(known) = neighbours.get_mut(at)
    {
        *known = neighbour;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(row: usize, user: u32, session: u32, position: Option<i64>, time: i64) -> SessionKey {
        SessionKey {
            user,
            session,
            lacks_position: position.is_none(),
            position: position.unwrap_or(0),
            created_at: time,
            row: row as i64,
        }
    }

    fn keys() -> impl Strategy<Value = Vec<SessionKey>> {
        let of_one = (0_u32..3, 0_u32..3, prop::option::of(0_i64..40), 0_i64..40);
        prop::collection::vec(of_one, 1..400).prop_map(|rows| {
            let numbered = rows.into_iter().enumerate();
            numbered.map(|(row, (u, s, p, t))| key(row, u, s, p, t)).collect()
        })
    }

    /// The neighbours of every docid, from sorting all that are in.
    fn naive(keys: &[SessionKey], is_in: &[bool]) -> Vec<(u32, u32)> {
        let mut sorted: Vec<usize> = (0..keys.len()).filter(|docid| is_in[*docid]).collect();
        sorted.sort_by_key(|docid| keys[*docid]);
        let mut found = vec![(NO_DOCID, NO_DOCID); keys.len()];
        for pair in sorted.windows(2).filter(|pair| keys[pair[0]].is_beside(&keys[pair[1]])) {
            found[pair[0]].1 = pair[1] as u32;
            found[pair[1]].0 = pair[0] as u32;
        }
        found
    }

    fn neighbours(sessions: &Sessions, count: usize) -> Vec<(u32, u32)> {
        let of = |blocks: &BlockVec<u32>, docid| *blocks.get(docid).expect("every docid has one");
        (0..count).map(|docid| (of(&sessions.previous, docid), of(&sessions.next, docid))).collect()
    }

    proptest! {
        #[test]
        fn neighbours_are_those_of_sorting_and_copies_keep_theirs(
            keys in keys(),
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..1200),
        ) {
            let mut sessions = Sessions::default();
            (0..keys.len()).for_each(|_| sessions.push());
            let mut is_in = vec![false; keys.len()];
            let mut older = (sessions.clone(), is_in.clone());
            for (turn, (which, inserts)) in steps.iter().enumerate() {
                let docid = which.index(keys.len());
                if turn == steps.len() / 2 {
                    older = (sessions.clone(), is_in.clone());
                }
                if is_in[docid] && !inserts {
                    sessions.remove(docid as u32, |docid| keys[docid as usize]);
                } else if !is_in[docid] {
                    sessions.insert(docid as u32, |docid| keys[docid as usize]);
                }
                is_in[docid] = !is_in[docid] || *inserts;
            }
            prop_assert_eq!(neighbours(&sessions, keys.len()), naive(&keys, &is_in));
            prop_assert_eq!(neighbours(&older.0, keys.len()), naive(&keys, &older.1));
        }
    }

    #[test]
    fn thousands_in_any_order_stand_as_sorted() {
        let keys: Vec<SessionKey> = (0..5000_usize)
            .map(|row| key(row, 1, 1 + row as u32 % 3, None, (row * 2617 % 5003) as i64))
            .collect();
        let mut sessions = Sessions::default();
        (0..keys.len()).for_each(|_| sessions.push());
        let key_of = |docid: u32| keys[docid as usize];
        (0..5000).for_each(|docid| sessions.insert(docid, key_of));
        assert_eq!(neighbours(&sessions, 5000), naive(&keys, &[true; 5000]));
        (0..5000).step_by(2).for_each(|docid| sessions.remove(docid, key_of));
        let odd: Vec<bool> = (0..5000).map(|docid| docid % 2 == 1).collect();
        assert_eq!(neighbours(&sessions, 5000), naive(&keys, &odd));
        (1..5000).step_by(2).for_each(|docid| sessions.remove(docid, key_of));
        assert!(sessions.order.is_empty());
    }

    #[test]
    fn a_growing_session_fills_its_blocks() {
        let mut sessions = Sessions::default();
        for docid in 0..10 * BLOCK_DOCIDS as u32 {
            sessions.push();
            sessions.insert(docid, |docid| key(docid as usize, 1, 1, None, i64::from(docid)));
        }
        assert_eq!(sessions.order.len(), 10);
        assert!(sessions.bytes() < 10 * BLOCK_DOCIDS * 13);
    }

    #[test]
    fn positions_come_before_times_and_rows_decide_last() {
        let keys = [
            key(0, 1, 1, Some(2), 10),
            key(1, 1, 1, None, 5),
            key(2, 1, 1, Some(1), 20),
            key(3, 1, 1, None, 5),
            key(4, 2, 1, Some(0), 0),
        ];
        let mut sessions = Sessions::default();
        (0..keys.len()).for_each(|_| sessions.push());
        (0..5).for_each(|docid| sessions.insert(docid, |docid| keys[docid as usize]));
        assert_eq!(sessions.next(0), [1, 3, 0, NO_DOCID, NO_DOCID]);
        assert_eq!(sessions.previous(0), [2, 0, NO_DOCID, 1, NO_DOCID]);
    }
}
