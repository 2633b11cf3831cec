//! Bitmaps of docids inside one block.

use serde::{Deserialize, Serialize};

use crate::bits::set_bits;
use crate::collections::cow_vec::BLOCK_VALUES;

const WORD: usize = u64::BITS as usize;
const WORDS: usize = BLOCK_VALUES / WORD;

/// A bit for each docid of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Bitmap([u64; WORDS]);

impl Bitmap {
    pub(crate) const NONE: Self = Self([0; WORDS]);

    /// The first docids of a block.
    pub(crate) fn first(count: usize) -> Self {
        Self(std::array::from_fn(|word| match count.saturating_sub(word * WORD) {
            0 => 0,
            few @ 1..WORD => (1 << few) - 1,
            _ => u64::MAX,
        }))
    }

    /// The bits, 64 docids a word.
    pub(crate) fn words(&self) -> &[u64] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn has(&self, at: usize) -> bool {
        self.0[at / WORD] >> (at % WORD) & 1 == 1
    }

    pub(crate) fn set(&mut self, at: usize) {
        self.0[at / WORD] |= 1 << (at % WORD);
    }

    pub(crate) fn unset(&mut self, at: usize) {
        self.0[at / WORD] &= !(1 << (at % WORD));
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    pub(crate) fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// The docids in it, ascending.
    pub(crate) fn docids(&self) -> impl Iterator<Item = usize> + use<> {
        self.0
            .into_iter()
            .enumerate()
            .flat_map(|(at, word)| set_bits(word).map(move |bit| at * WORD + bit))
    }

    /// Add `first` and the docids in it to a list; whole words at once.
    pub(crate) fn list(&self, first: u32, docids: &mut Vec<u32>) {
        for (at, word) in self.0.into_iter().enumerate() {
            let start = first + (at * WORD) as u32;
            if word == u64::MAX {
                docids.extend(start..start + WORD as u32);
            } else {
                docids.extend(set_bits(word).map(|bit| start + bit as u32));
            }
        }
    }

    /// Keep the docids whose value passes a cheap test.
    ///
    /// All 64 values of a word are tested if one of its docids is set, which takes less time than
    /// visiting the docids.
    pub(crate) fn keep<T: Copy>(&self, values: &[T], test: impl Fn(T) -> bool) -> Self {
        let mut kept = Self::NONE;
        for ((word, block), among) in kept.0.iter_mut().zip(values.chunks(WORD)).zip(self.0) {
            if among != 0 {
                *word = bits_where(block, &test) & among;
            }
        }
        kept
    }

    /// Keep the docids that pass a test too expensive for unset docids.
    pub(crate) fn keep_docids(&self, mut test: impl FnMut(usize) -> bool) -> Self {
        let mut kept = Self::NONE;
        self.docids().filter(|at| test(*at)).for_each(|at| kept.set(at));
        kept
    }
}

/// A bit for each of up to 64 values.
pub(crate) fn bits_where<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> u64 {
    let mut passed = [0_u8; WORD];
    for (flag, value) in passed.iter_mut().zip(values) {
        *flag = u8::from(test(*value));
    }
    let mut bits = 0;
    for (at, eight) in passed.as_chunks::<8>().0.iter().enumerate() {
        // The product moves the lowest bit of byte i to bit 56 + i, and no two bits meet.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= gathered << (8 * at);
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_values_that_pass_are_kept(
            values in prop::collection::vec(0_u32..4, 0..=BLOCK_VALUES),
            among in prop::collection::vec(any::<bool>(), BLOCK_VALUES),
        ) {
            let mut bitmap = Bitmap::NONE;
            (0..values.len()).filter(|at| among[*at]).for_each(|at| bitmap.set(at));
            let wanted: Vec<usize> =
                (0..values.len()).filter(|at| among[*at] && values[*at] == 2).collect();
            let kept = bitmap.keep(&values, |value| value == 2);
            prop_assert_eq!(kept.docids().collect::<Vec<_>>(), &wanted[..]);
            prop_assert_eq!(bitmap.keep_docids(|at| values[at] == 2), kept);
            prop_assert_eq!(kept.count(), wanted.len());
            let mut listed = Vec::new();
            kept.list(1000, &mut listed);
            prop_assert!(listed.iter().map(|docid| *docid as usize - 1000).eq(wanted));
        }

        #[test]
        fn the_first_docids_are_those_below_the_count(count in 0..=BLOCK_VALUES) {
            let first = Bitmap::first(count);
            prop_assert!(first.docids().eq(0..count));
            prop_assert_eq!(first.is_empty(), count == 0);
            let mut listed = Vec::new();
            first.list(0, &mut listed);
            prop_assert!(listed.into_iter().eq(0..count as u32));
        }
    }

    #[test]
    fn sets_join_meet_and_differ() {
        let (few, more) = (Bitmap::first(3), Bitmap::first(70));
        assert_eq!((few.and(&more), few.or(&more)), (few, more));
        let mut between = more.without(&few);
        assert!(between.docids().eq(3..70));
        assert!(between.has(69) && !between.has(70) && !between.has(2));
        between.unset(69);
        assert!(!between.has(69));
    }
}
