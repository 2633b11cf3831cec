//! Scores of the memories in play.

use super::Lexical;
use super::block::BLOCK_SLOTS;
use super::dense::{Dense, Group, InPlay};
use super::found::Found;
use super::postings::{GROUP_BLOCKS, GROUP_SLOTS};
use super::query::Query;
use super::sum::Sum;

/// Marks a memory without a previous turn.
pub(super) const NONE: u32 = u32::MAX;

/// A group is scored term by term if at least one of so many of its slots is in play; otherwise each
/// memory is looked at for itself.
pub(super) const DENSE: usize = 4;

/// Scores by field, each as long as the memories in play, or empty if the field was not asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldScores {
    /// BM25 of the query's words.
    pub words: Vec<f32>,
    /// BM25 of the terms that share grams with the query's words, weighted by those grams.
    pub grams: Vec<f32>,
    /// BM25 of adjacent pairs of words.
    pub pairs: Vec<f32>,
}

impl FieldScores {
    fn reset(&mut self, query: &Query, len: usize) {
        let fields = query.fields;
        let asked = [
            (&mut self.words, fields.words),
            (&mut self.grams, fields.grams),
            (&mut self.pairs, fields.pairs),
        ];
        for (scores, is_asked) in asked {
            scores.clear();
            scores.resize(if is_asked { len } else { 0 }, 0.0);
        }
    }

    /// Write the sums of words, grams and pairs of a place, as far as they were asked for.
    pub(super) fn set(&mut self, place: usize, sums: [Sum; 3]) {
        let fields = [&mut self.words, &mut self.grams, &mut self.pairs];
        for (scores, sum) in fields.into_iter().zip(sums) {
            if let Some(score) = scores.get_mut(place) {
                *score = sum.value();
            }
        }
    }
}

/// Scores of one query, and room to work in: use it again to save the allocations.
#[derive(Default)]
pub struct Scores {
    /// Of each memory's own text.
    pub own: FieldScores,
    /// Of each memory's previous turn and its own text as one; empty without previous turns.
    pub window: FieldScores,
    dense: Dense,
    found: Found,
    /// Places not scored by groups: their own texts, and their windows.
    left_own: Vec<u32>,
    left_windows: Vec<u32>,
    /// By place, its row among the found and one more, or 0.
    rows: Vec<u32>,
}

impl Lexical {
    /// Score the memories in `slots`, ascending, by every field of `query`, made by this state.
    ///
    /// `previous` holds for each of them the place in `slots` of the previous turn of its session,
    /// or [`u32::MAX`]; with it the two texts are also scored as one: counts and lengths added up,
    /// pairs within each. A vacant or unknown slot scores 0. The scores of a memory do not depend
    /// on which others are in play.
    ///
    /// # Panics
    ///
    /// If `previous` is of another length than `slots`.
    pub fn scores(
        &self,
        query: &Query,
        slots: &[u32],
        previous: Option<&[u32]>,
        scores: &mut Scores,
    ) {
        assert!(previous.is_none_or(|previous| previous.len() == slots.len()), "one for each slot");
        scores.own.reset(query, slots.len());
        scores.window.reset(query, previous.map_or(0, <[u32]>::len));
        self.score_groups(query, slots, previous, scores);
        self.score_left(query, slots, previous, scores);
    }

    /// Score whole groups where that is faster, and note what is left.
    fn score_groups(
        &self,
        query: &Query,
        slots: &[u32],
        previous: Option<&[u32]>,
        scores: &mut Scores,
    ) {
        scores.left_own.clear();
        scores.left_windows.clear();
        let mut first_place = 0;
        for slots in slots.chunk_by(|&one, &other| group_of(one) == group_of(other)) {
            let play = InPlay { first_place, slots, previous };
            if let Some(group) = self.dense_group(slots) {
                let sides = [&mut scores.own, &mut scores.window];
                scores.dense.score(query, group, play, sides, &mut scores.left_windows);
            } else {
                let places = first_place as u32..(first_place + slots.len()) as u32;
                scores.left_own.extend(places);
            }
            first_place += slots.len();
        }
    }

    /// The group of these slots, if it has postings and they are enough of it and not vacant.
    fn dense_group(&self, slots: &[u32]) -> Option<Group<'_>> {
        let number = group_of(slots[0]);
        let postings = self.postings.get(number)?.as_deref()?;
        let blocks = &self.blocks[number * GROUP_BLOCKS..][..GROUP_BLOCKS];
        let is_live = |&slot: &u32| {
            let slot = slot as usize % GROUP_SLOTS;
            blocks[slot / BLOCK_SLOTS].is_live(slot % BLOCK_SLOTS)
        };
        let is_full = blocks.iter().all(|block| block.live() == BLOCK_SLOTS);
        let are_live = || is_full || slots.iter().all(is_live);
        let is_dense = slots.len() * DENSE >= GROUP_SLOTS && are_live();
        let first_slot = (number * GROUP_SLOTS) as u32;
        is_dense.then_some(Group { first_slot, blocks, postings })
    }

    /// Score the places left, memory by memory.
    fn score_left(
        &self,
        query: &Query,
        slots: &[u32],
        previous: Option<&[u32]>,
        scores: &mut Scores,
    ) {
        let Scores { own, window, found, left_own, left_windows, rows, .. } = scores;
        if left_own.is_empty() && left_windows.is_empty() {
            return;
        }
        found.clear();
        rows.clear();
        rows.resize(slots.len(), 0);
        let mut search = |found: &mut Found, place: u32| {
            let (row, slot) = (rows.get_mut(place as usize)?, slots[place as usize]);
            if *row == 0 {
                *row = found.search(query, self.terms(slot)) + 1;
            }
            Some(*row - 1)
        };
        for &place in &*left_own {
            let row = search(found, place);
            found.score(query, [None, row], place as usize, own);
        }
        let Some(previous) = previous else { return };
        for &place in left_own.iter().chain(&*left_windows) {
            let both = [search(found, previous[place as usize]), search(found, place)];
            window.set(place as usize, [Sum::default(); 3]);
            found.score(query, both, place as usize, window);
        }
    }

    fn terms(&self, slot: u32) -> &[u32] {
        let block = self.blocks.get(slot as usize / BLOCK_SLOTS);
        block.map_or(&[], |block| block.terms(slot as usize % BLOCK_SLOTS))
    }
}

fn group_of(slot: u32) -> usize {
    slot as usize / GROUP_SLOTS
}
