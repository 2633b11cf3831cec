//! The tags of a block's docids.

use serde::{Deserialize, Serialize};

use crate::bits::set_bits;
use crate::collections::cow_vec::BLOCK_VALUES;
use crate::collections::plain;

use super::bitmap::{Bitmap, bits_where};

/// Pairs of a tag's code and a docid, in two lists so that codes are compared many at once. A
/// docid's pairs stand together.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tags {
    #[serde(with = "plain")]
    codes: Vec<u32>,
    #[serde(with = "plain")]
    docids: Vec<u16>,
}

const BLOCK: usize = u64::BITS as usize;

impl Tags {
    /// Set the tags of a docid.
    pub(crate) fn put(&mut self, at: usize, codes: &[u32]) {
        self.codes.extend_from_slice(codes);
        self.docids.resize(self.codes.len(), at as u16);
    }

    /// Take a docid's tags away.
    pub(crate) fn clear(&mut self, at: usize) {
        let mut kept = self.docids.iter().map(|docid| usize::from(*docid) != at);
        self.codes.retain(|_| kept.next().unwrap_or(true));
        self.docids.retain(|docid| usize::from(*docid) != at);
    }

    /// Whether a docid has any tags.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.docids.contains(&(at as u16))
    }

    /// The docids that have a tag.
    pub(crate) fn having(&self, code: u32) -> Bitmap {
        let mut found = Bitmap::NONE;
        for (codes, docids) in self.codes.chunks(BLOCK).zip(self.docids.chunks(BLOCK)) {
            for at in set_bits(bits_where(codes, |known| known == code)) {
                found.set(usize::from(docids[at]));
            }
        }
        found
    }

    /// The docids that have one of many tags; the codes ascend.
    pub(crate) fn having_any(&self, codes: &[u32]) -> Bitmap {
        let mut found = Bitmap::NONE;
        for (code, docid) in self.codes.iter().zip(&self.docids) {
            if codes.binary_search(code).is_ok() {
                found.set(usize::from(*docid));
            }
        }
        found
    }

    /// The docids that have a tag whose code passes.
    pub(crate) fn having_where(&self, mut test: impl FnMut(u32) -> bool) -> Bitmap {
        let mut found = Bitmap::NONE;
        for (code, docid) in self.codes.iter().zip(&self.docids) {
            if test(*code) {
                found.set(usize::from(*docid));
            }
        }
        found
    }

    /// The docids whose tags are one of these lists, in their order; the lists ascend.
    pub(crate) fn having_lists(&self, lists: &[Vec<u32>]) -> Bitmap {
        let mut found = Bitmap::NONE;
        if lists.first().is_some_and(Vec::is_empty) {
            found = Bitmap::first(BLOCK_VALUES).without(&self.having_where(|_| true));
        }
        for (at, tags) in self.lists() {
            if lists.binary_search_by(|known| (**known).cmp(tags)).is_ok() {
                found.set(at);
            }
        }
        found
    }

    /// Each docid with tags, and their codes in the order of the tags.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let mut rest = &*self.codes;
        self.docids.chunk_by(|one, other| one == other).map(move |docid| {
            let (codes, after) = rest.split_at(docid.len());
            rest = after;
            (usize::from(docid[0]), codes)
        })
    }

    /// The codes of the tags of each docid, in the order of the tags.
    pub(super) fn by_docid(&self) -> Vec<&[u32]> {
        let mut tags: Vec<&[u32]> = vec![&[]; BLOCK_VALUES];
        self.lists().for_each(|(at, codes)| tags[at] = codes);
        tags
    }

    /// Whether these are tags of the first docids, so many, with codes of so many texts.
    pub(super) fn are_of(&self, docids: usize, texts: usize) -> bool {
        self.codes.len() == self.docids.len()
            && self.codes.iter().all(|code| *code as usize <= texts)
            && self.docids.iter().all(|docid| usize::from(*docid) < docids)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.codes.capacity() * size_of::<u32>() + self.docids.capacity() * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn docids_are_found_by_the_tags_they_were_given_last(
            given in prop::collection::vec((0_usize..90, prop::collection::vec(1_u32..9, 0..5)), 0..200),
            wanted in prop::collection::btree_set(1_u32..9, 0..5),
            lists in prop::collection::btree_set(prop::collection::vec(1_u32..9, 0..3), 0..5),
        ) {
            let mut tags = Tags::default();
            let mut twin = vec![Vec::new(); 90];
            for (at, codes) in given {
                tags.clear(at);
                tags.put(at, &codes);
                twin[at] = codes;
            }
            for code in 1..9 {
                let having = (0..90).filter(|at| twin[*at].contains(&code));
                prop_assert!(tags.having(code).docids().eq(having));
            }
            let wanted: Vec<u32> = wanted.into_iter().collect();
            let any = (0..90).filter(|at| twin[*at].iter().any(|code| wanted.contains(code)));
            prop_assert!(tags.having_any(&wanted).docids().eq(any));
            let even = (0..90).filter(|at| twin[*at].iter().any(|code| code % 2 == 0));
            prop_assert!(tags.having_where(|code| code % 2 == 0).docids().eq(even));
            let lists: Vec<Vec<u32>> = lists.into_iter().collect();
            let same = (0..90).filter(|at| lists.contains(&twin[*at]));
            prop_assert!(tags.having_lists(&lists).docids().filter(|at| *at < 90).eq(same));
            prop_assert!((0..90).all(|at| tags.has(at) != twin[at].is_empty()));
        }
    }
}
