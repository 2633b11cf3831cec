//! The memories in play: a set of slots, and the place of each in ascending order.

use crate::bits::rows_of;

const WORD: usize = u64::BITS as usize;

/// Slots in ascending order. The place of a slot among them is its ordinal, by which everything
/// that is computed for one query is kept.
pub(crate) struct SlotSet {
    words: Vec<u64>,
    /// How many come before each word.
    before: Vec<u32>,
    len: usize,
    /// Whether ordinals are the slots themselves.
    is_everything: bool,
}

impl SlotSet {
    /// The slots whose bits are set, of `slots` slots in all.
    pub(crate) fn of_words(words: Vec<u64>, slots: usize) -> Self {
        let mut len = 0;
        let mut before = Vec::with_capacity(words.len());
        for word in &words {
            before.push(len);
            len += word.count_ones();
        }
        let len = len as usize;
        Self { words, before, len, is_everything: len == slots }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether every slot there is, dead ones too, is in play.
    pub(crate) fn is_everything(&self) -> bool {
        self.is_everything
    }

    pub(crate) fn contains(&self, slot: u32) -> bool {
        let (word, bit) = (slot as usize / WORD, slot as usize % WORD);
        self.words.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// The place of a slot that is in play.
    pub(crate) fn ordinal(&self, slot: u32) -> u32 {
        if self.is_everything {
            return slot;
        }
        let (word, bit) = (slot as usize / WORD, slot as usize % WORD);
        let below = self.words[word] & ((1 << bit) - 1);
        self.before[word] + below.count_ones()
    }

    /// The place of a slot, where it is in play.
    pub(crate) fn find(&self, slot: u32) -> Option<u32> {
        self.contains(slot).then(|| self.ordinal(slot))
    }

    /// The slots, ascending.
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
        fn ordinals_count_the_slots_before(chosen in prop::collection::vec(any::<bool>(), 0..400)) {
            let mut words = vec![0_u64; chosen.len().div_ceil(WORD)];
            for (slot, _) in chosen.iter().enumerate().filter(|(_, chosen)| **chosen) {
                words[slot / WORD] |= 1 << (slot % WORD);
            }
            let set = SlotSet::of_words(words, chosen.len());
            let slots: Vec<u32> =
                (0..).zip(&chosen).filter(|(_, chosen)| **chosen).map(|(slot, _)| slot).collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), slots.clone());
            prop_assert_eq!(set.len(), slots.len());
            prop_assert_eq!(set.is_everything(), slots.len() == chosen.len());
            for (slot, is_chosen) in (0..).zip(&chosen) {
                prop_assert_eq!(set.contains(slot), *is_chosen);
                let place = slots.iter().position(|one| *one == slot).map(|at| at as u32);
                prop_assert_eq!(set.find(slot), place);
            }
            prop_assert_eq!(set.find(chosen.len() as u32 + 64), None);
        }
    }
}
