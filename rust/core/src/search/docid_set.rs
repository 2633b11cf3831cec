//! A set of docids, and the ordinal of each in ascending order.

use crate::bits::rows_of;

const WORD: usize = u64::BITS as usize;

/// Docids in ascending order. The position of a docid among them is its ordinal, the index of all
/// values computed for one query.
pub(crate) struct DocidSet {
    words: Vec<u64>,
    /// Number of docids before each word.
    before: Vec<u32>,
    len: usize,
    /// Whether it holds every docid, deleted ones too: ordinals are the docids themselves.
    pub(crate) is_dense: bool,
    /// Whether it holds every docid that is not deleted.
    pub(crate) is_everything: bool,
}

impl DocidSet {
    /// The docids whose bits are set, among the first `docids`, of which `live` are not deleted.
    pub(crate) fn of_words(words: Vec<u64>, docids: usize, live: usize) -> Self {
        let mut len = 0;
        let mut before = Vec::with_capacity(words.len());
        for word in &words {
            before.push(len);
            len += word.count_ones();
        }
        let len = len as usize;
        Self { words, before, len, is_dense: len == docids, is_everything: len == live }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, docid: u32) -> bool {
        let (word, bit) = (docid as usize / WORD, docid as usize % WORD);
        self.words.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// The ordinal of a docid of the set.
    pub(crate) fn ordinal(&self, docid: u32) -> u32 {
        if self.is_dense {
            return docid;
        }
        let (word, bit) = (docid as usize / WORD, docid as usize % WORD);
        let below = self.words[word] & ((1 << bit) - 1);
        self.before[word] + below.count_ones()
    }

    /// The ordinal of a docid, if it is in the set.
    pub(crate) fn find(&self, docid: u32) -> Option<u32> {
        self.contains(docid).then(|| self.ordinal(docid))
    }

    /// The docids, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        rows_of(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ordinals_count_the_docids_before(
            chosen in prop::collection::vec(any::<bool>(), 0..400),
            others in 0_usize..3,
        ) {
            let mut words = vec![0_u64; chosen.len().div_ceil(WORD)];
            for (docid, _) in chosen.iter().enumerate().filter(|(_, chosen)| **chosen) {
                words[docid / WORD] |= 1 << (docid % WORD);
            }
            let live = others + chosen.iter().filter(|chosen| **chosen).count();
            let set = DocidSet::of_words(words, chosen.len(), live);
            let docids: Vec<u32> =
                (0..).zip(&chosen).filter(|(_, chosen)| **chosen).map(|(docid, _)| docid).collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), docids.clone());
            prop_assert_eq!(set.len(), docids.len());
            prop_assert_eq!(set.is_dense, docids.len() == chosen.len());
            prop_assert_eq!(set.is_everything, others == 0);
            for (docid, is_chosen) in (0..).zip(&chosen) {
                prop_assert_eq!(set.contains(docid), *is_chosen);
                let place = docids.iter().position(|one| *one == docid).map(|at| at as u32);
                prop_assert_eq!(set.find(docid), place);
            }
            prop_assert_eq!(set.find(chosen.len() as u32 + 64), None);
        }
    }
}
