//! Collection statistics: how many memories and tokens there are, and how many memories hold each
//! term. They are kept for all memories and for each user, so that scores of one user never depend
//! on memories of another.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::collections::cow_vec::{BLOCK_VALUES, BlockVec};
use crate::collections::plain;

/// The memories whose statistics weigh the words of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    /// All memories.
    All,
    /// The memories of one user; none for an unknown one.
    User(u32),
}

/// Document frequencies by term.
pub(super) trait Frequencies {
    /// Number of memories that hold a term.
    fn get(&self, term: u32) -> u32;
    /// Visit each term whose count is not 0, ascending.
    fn each_term(&self, visit: &mut dyn FnMut(u32));
    fn increment(&mut self, term: u32);
    /// Undo one `increment` of the term.
    fn decrement(&mut self, term: u32);
}

/// The statistics behind the weight of a term.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Statistics<F: ?Sized> {
    /// Number of memories.
    pub(super) documents: u64,
    /// Number of tokens of all memories.
    pub(super) tokens: u64,
    /// Number of distinct terms of each memory, added up.
    pub(super) postings: u64,
    pub(super) frequencies: F,
}

/// Those of any collection.
pub(super) type CollectionStatistics = Statistics<dyn Frequencies>;

impl<F: Frequencies> Statistics<F> {
    /// Count a memory of so many tokens that holds each of these terms.
    pub(super) fn add(&mut self, tokens: usize, distinct_terms: &[u32]) {
        self.documents += 1;
        self.tokens += tokens as u64;
        self.postings += distinct_terms.len() as u64;
        for &term in distinct_terms {
            self.frequencies.increment(term);
        }
    }

    /// Undo [`add`](Self::add).
    pub(super) fn remove(&mut self, tokens: usize, distinct_terms: &[u32]) {
        self.documents -= 1;
        self.tokens -= tokens as u64;
        self.postings -= distinct_terms.len() as u64;
        for &term in distinct_terms {
            self.frequencies.decrement(term);
        }
    }
}

/// A counter for every term.
impl Frequencies for BlockVec<u32> {
    fn get(&self, term: u32) -> u32 {
        Self::get(self, term as usize).copied().unwrap_or(0)
    }

    fn each_term(&self, visit: &mut dyn FnMut(u32)) {
        for block in 0..self.len().div_ceil(BLOCK_VALUES) {
            let counts = (block * BLOCK_VALUES) as u32..;
            let counted = counts.zip(self.block(block)).filter(|(_, count)| **count > 0);
            counted.for_each(|(term, _)| visit(term));
        }
    }

    fn increment(&mut self, term: u32) {
        while self.len() <= term as usize {
            self.push(0);
        }
        *self.get_mut(term as usize).expect("a counter was just made sure of") += 1;
    }

    fn decrement(&mut self, term: u32) {
        *self.get_mut(term as usize).expect("the term was counted") -= 1;
    }
}

/// Entries of a full leaf: 2 KB. A change copies a leaf for each term and a reference for each
/// leaf; with 20,000 terms both take equally long.
const LEAF_ENTRIES: usize = 256;

/// A term and its count.
type Entry = (u32, u32);

/// Counters for the terms that occur, 8 bytes each: ascending, in leaves that copies share.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(into = "StoredFrequencies", try_from = "StoredFrequencies")]
pub(super) struct SparseFrequencies {
    /// The first term of each leaf, beside the leaves so that finding one reads few cache lines.
    firsts: Vec<u32>,
    leaves: Vec<Arc<Vec<Entry>>>,
}

/// Terms in ascending order, and their counts.
#[derive(Serialize, Deserialize)]
struct StoredFrequencies {
    #[serde(with = "plain")]
    terms: Vec<u32>,
    #[serde(with = "plain")]
    counts: Vec<u32>,
}

impl From<SparseFrequencies> for StoredFrequencies {
    fn from(frequencies: SparseFrequencies) -> Self {
        let entries = frequencies.leaves.iter().flat_map(|leaf| leaf.iter().copied());
        let (terms, counts) = entries.unzip();
        Self { terms, counts }
    }
}

impl TryFrom<StoredFrequencies> for SparseFrequencies {
    type Error = &'static str;

    fn try_from(
        StoredFrequencies { terms, counts }: StoredFrequencies,
    ) -> Result<Self, Self::Error> {
        let ascend = terms.is_sorted_by(|one, other| one < other);
        if terms.len() != counts.len() || counts.contains(&0) || !ascend {
            return Err("counts of other terms");
        }
        let entries: Vec<Entry> = terms.into_iter().zip(counts).collect();
        let leaves = entries.chunks(LEAF_ENTRIES);
        let firsts = leaves.clone().map(|leaf| leaf[0].0).collect();
        Ok(Self { firsts, leaves: leaves.map(|leaf| Arc::new(leaf.to_vec())).collect() })
    }
}

impl SparseFrequencies {
    /// Whether all terms are among the first, so many.
    fn are_below(&self, terms: usize) -> bool {
        let last = self.leaves.last().and_then(|leaf| leaf.last());
        last.is_none_or(|(term, _)| (*term as usize) < terms)
    }

    /// The leaf that holds a term if any does.
    fn leaf_of(&self, term: u32) -> usize {
        self.firsts.partition_point(|first| *first <= term).saturating_sub(1)
    }

    fn insert(&mut self, leaf: usize, at: usize, term: u32) {
        let Some(entries) = self.leaves.get_mut(leaf) else {
            self.firsts.push(term);
            self.leaves.push(Arc::new(vec![(term, 1)]));
            return;
        };
        let entries = Arc::make_mut(entries);
        entries.insert(at, (term, 1));
        self.firsts[leaf] = entries[0].0;
        if entries.len() > LEAF_ENTRIES {
            let back = entries.split_off(LEAF_ENTRIES / 2);
            self.firsts.insert(leaf + 1, back[0].0);
            self.leaves.insert(leaf + 1, Arc::new(back));
        }
    }

    fn remove(&mut self, leaf: usize, at: usize) {
        let entries = Arc::make_mut(&mut self.leaves[leaf]);
        entries.remove(at);
        if let Some((first, _)) = entries.first() {
            self.firsts[leaf] = *first;
        } else {
            self.firsts.remove(leaf);
            self.leaves.remove(leaf);
        }
    }

    fn bytes(&self) -> usize {
        let a_leaf = size_of::<u32>() + size_of::<Arc<Vec<Entry>>>() + size_of::<Vec<Entry>>() + 16;
        let entries: usize = self.leaves.iter().map(|leaf| leaf.capacity()).sum();
        entries * size_of::<Entry>() + self.leaves.len() * a_leaf
    }
}

impl Frequencies for SparseFrequencies {
    fn get(&self, term: u32) -> u32 {
        let Some(leaf) = self.leaves.get(self.leaf_of(term)) else { return 0 };
        let found = leaf.binary_search_by_key(&term, |(term, _)| *term);
        found.map_or(0, |at| leaf[at].1)
    }

    fn each_term(&self, visit: &mut dyn FnMut(u32)) {
        self.leaves.iter().flat_map(|leaf| leaf.iter()).for_each(|(term, _)| visit(*term));
    }

    fn increment(&mut self, term: u32) {
        let leaf = self.leaf_of(term);
        let entries = self.leaves.get_mut(leaf);
        let search =
            |entries: &Arc<Vec<Entry>>| entries.binary_search_by_key(&term, |(term, _)| *term);
        match entries.as_ref().map_or(Err(0), |entries| search(entries)) {
            Ok(at) => Arc::make_mut(&mut self.leaves[leaf])[at].1 += 1,
            Err(at) => self.insert(leaf, at, term),
        }
    }

    fn decrement(&mut self, term: u32) {
        let leaf = self.leaf_of(term);
        let entries = &self.leaves[leaf];
        let at = entries.binary_search_by_key(&term, |(term, _)| *term);
        let at = at.expect("the term was counted");
        if entries[at].1 == 1 {
            self.remove(leaf, at);
        } else {
            Arc::make_mut(&mut self.leaves[leaf])[at].1 -= 1;
        }
    }
}

/// Statistics by user; none are stored for a user without memories.
#[derive(Clone, Default)]
pub(super) struct UserStatistics(BlockVec<Option<Arc<Statistics<SparseFrequencies>>>>);

impl UserStatistics {
    /// The statistics of a user with memories.
    pub(super) fn get(&self, user: u32) -> Option<&Statistics<SparseFrequencies>> {
        self.0.get(user as usize)?.as_deref()
    }

    /// Count a memory of a user; see [`Statistics::add`].
    pub(super) fn add(&mut self, user: u32, tokens: usize, distinct_terms: &[u32]) {
        while self.0.len() <= user as usize {
            self.0.push(None);
        }
        let statistics = self.0.get_mut(user as usize).expect("a place was just made sure of");
        Arc::make_mut(statistics.get_or_insert_default()).add(tokens, distinct_terms);
    }

    /// Undo [`add`](Self::add).
    pub(super) fn remove(&mut self, user: u32, tokens: usize, distinct_terms: &[u32]) {
        let place = self.0.get_mut(user as usize).expect("the user has the memory");
        let statistics = place.as_mut().expect("the user has the memory");
        if statistics.documents == 1 {
            *place = None;
        } else {
            Arc::make_mut(statistics).remove(tokens, distinct_terms);
        }
    }

    /// Whether each user has as many memories, of `terms` distinct terms at most, as they have
    /// among these.
    pub(super) fn are_of(&self, users: impl Iterator<Item = u32>, terms: usize) -> bool {
        let mut documents = vec![0_u64; self.0.len()];
        for user in users {
            let Some(count) = documents.get_mut(user as usize) else { return false };
            *count += 1;
        }
        (0..).zip(documents).all(|(user, count)| {
            let known = self.get(user);
            let are_below = known.is_none_or(|known| known.frequencies.are_below(terms));
            are_below && known.map_or(0, |known| known.documents) == count
        })
    }

    pub(super) fn bytes(&self) -> usize {
        let all = (0..self.0.len()).filter_map(|user| self.get(user as u32));
        let a_user = size_of::<Statistics<SparseFrequencies>>() + 16;
        self.0.bytes() + all.map(|user| a_user + user.frequencies.bytes()).sum::<usize>()
    }
}

impl Serialize for UserStatistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.0.len()).map(|user| self.get(user as u32)))
    }
}

impl<'de> Deserialize<'de> for UserStatistics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Vec::deserialize(deserializer)?.into_iter().collect()))
    }
}

/// The statistics of no memories.
pub(super) static NOTHING: Statistics<SparseFrequencies> = Statistics {
    documents: 0,
    tokens: 0,
    postings: 0,
    frequencies: SparseFrequencies { firsts: Vec::new(), leaves: Vec::new() },
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn check(frequencies: &SparseFrequencies, twin: &BTreeMap<u32, u32>) {
        let entries = frequencies.leaves.iter().flat_map(|leaf| leaf.iter().copied());
        assert!(entries.eq(twin.iter().map(|(term, count)| (*term, *count))));
        let firsts: Vec<u32> = frequencies.leaves.iter().map(|leaf| leaf[0].0).collect();
        assert_eq!(frequencies.firsts, firsts);
        let mut visited = Vec::new();
        frequencies.each_term(&mut |term| visited.push(term));
        assert!(visited.iter().eq(twin.keys()));
        for term in 0..1000 {
            assert_eq!(frequencies.get(term), twin.get(&term).copied().unwrap_or(0), "{term}");
        }
    }

    proptest! {
        #[test]
        fn sparse_counts_agree_with_a_tree_and_leave_older_copies_alone(
            steps in prop::collection::vec((prop::bool::weighted(0.7), 0_u32..1000), 1..4000)
        ) {
            let (mut frequencies, mut twin) = (SparseFrequencies::default(), BTreeMap::new());
            let mut older = (frequencies.clone(), twin.clone());
            for (turn, (is_increment, term)) in steps.iter().enumerate() {
                if turn == steps.len() / 2 {
                    older = (frequencies.clone(), twin.clone());
                }
                if *is_increment {
                    frequencies.increment(*term);
                    *twin.entry(*term).or_default() += 1;
                } else if let Some(count) = twin.get_mut(term) {
                    frequencies.decrement(*term);
                    *count -= 1;
                    twin.retain(|_, count| *count > 0);
                }
            }
            check(&frequencies, &twin);
            check(&older.0, &older.1);
        }
    }

    #[test]
    fn a_user_without_memories_takes_no_memory() {
        let mut users = UserStatistics::default();
        users.add(3, 2, &[7, 9]);
        users.add(3, 1, &[7]);
        let copy = users.clone();
        let of = |users: &UserStatistics| {
            let user = users.get(3)?;
            let counts = [user.documents, user.tokens, user.postings];
            Some((counts, user.frequencies.get(7), user.frequencies.get(9)))
        };
        users.remove(3, 2, &[7, 9]);
        assert_eq!((of(&copy), of(&users)), (Some(([2, 3, 3], 2, 1)), Some(([1, 1, 1], 1, 0))));
        users.remove(3, 1, &[7]);
        assert_eq!((of(&users), of(&copy)), (None, Some(([2, 3, 3], 2, 1))));
        assert!(users.get(2).is_none() && users.get(4000).is_none());
    }
}
