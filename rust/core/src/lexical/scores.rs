//! Scores of the memories in play.
//!
//! First it is found where each term of the query occurs: from the postings of a group where enough
//! of its slots are in play, else in the texts one by one. Then the terms are added up one after
//! the other, so that of each the most counts that a memory or its earlier turns have.

use super::Lexical;
use super::block::{BLOCK_SLOTS, Block};
use super::postings::{GROUP_BLOCKS, GROUP_SLOTS, Postings};
use super::query::{Query, share};
use super::sum::Sum;
use std::sync::Arc;

/// No memory.
const NONE: u32 = u32::MAX;

/// Postings are read where at least one of so many slots is in play.
pub(super) const DENSE: usize = 4;

/// What is said in one turn counts for the next two of its session too.
#[derive(Debug, Clone, Copy)]
pub struct Carried<'a> {
    /// For each memory in play the place of its next turn among them, or [`u32::MAX`].
    pub next: &'a [u32],
    /// What a word counts in the next turn, from 0 to 1.
    pub first: f32,
    /// What it counts in the turn after that.
    pub second: f32,
}

/// Scores by field, each as long as the memories in play, or empty if the field was not asked for;
/// and room to work in: use it again to save the allocations.
#[derive(Default)]
pub struct Scores {
    /// BM25 of the query's words.
    pub words: Vec<f32>,
    /// BM25 of the terms that share grams with the query's words, weighted by those grams.
    pub grams: Vec<f32>,
    /// BM25 of adjacent pairs of words.
    pub pairs: Vec<f32>,
    terms: Findings,
    adjacent: Findings,
    /// The largest share of the term at hand by place, and which places have any.
    best: Vec<f32>,
    touched: Vec<u32>,
    word_sums: Vec<Sum>,
    gram_sums: Vec<Sum>,
}

/// Where terms, or pairs of them, occur among the memories in play.
#[derive(Default)]
struct Findings {
    found: Vec<Found>,
    sorted: Vec<Found>,
    ends: Vec<u32>,
}

/// A term in a memory.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    code: u32,
    place: u32,
    share: f32,
}

impl Findings {
    fn clear(&mut self) {
        self.found.clear();
    }

    /// Bring what was found in the order of codes; `codes` is above all of them.
    fn sort(&mut self, codes: usize) {
        self.ends.clear();
        self.ends.resize(codes + 1, 0);
        for found in &self.found {
            self.ends[found.code as usize + 1] += 1;
        }
        for code in 0..codes {
            self.ends[code + 1] += self.ends[code];
        }
        self.sorted.resize(self.found.len(), Found::default());
        for found in &self.found {
            let end = &mut self.ends[found.code as usize];
            self.sorted[*end as usize] = *found;
            *end += 1;
        }
    }

    /// What was found of each code that was, in their order.
    fn by_code(&self) -> impl Iterator<Item = &[Found]> {
        self.sorted.chunk_by(|one, other| one.code == other.code)
    }
}

/// Memories in play of one group, and the place of the first among all of them.
#[derive(Clone, Copy)]
struct InPlay<'a> {
    slots: &'a [u32],
    first_place: u32,
}

/// A group of full blocks with its postings, and its first slot.
struct Group<'a> {
    first_slot: u32,
    blocks: &'a [Arc<Block>],
    postings: &'a Postings,
}

impl Lexical {
    /// Score the memories in `slots`, ascending, by every field of `query`, made by this state.
    ///
    /// Of each term counts the most that the memory itself or, discounted, one of the two turns
    /// before has of it. A vacant or unknown slot scores 0. The scores of a memory do not depend on
    /// which others are in play, but for its earlier turns.
    pub fn scores(
        &self,
        query: &Query,
        slots: &[u32],
        carried: Option<&Carried<'_>>,
        scores: &mut Scores,
    ) {
        scores.terms.clear();
        scores.adjacent.clear();
        let mut first_place = 0;
        for slots in slots.chunk_by(|&one, &other| group_of(one) == group_of(other)) {
            let play = InPlay { slots, first_place };
            match self.dense_group(slots) {
                Some(group) => scores.find_in_group(query, &group, play),
                None => scores.find_in_texts(self, query, play),
            }
            first_place += slots.len() as u32;
        }
        scores.add_terms(query, slots.len(), carried);
        scores.add_pairs(query, slots.len());
    }

    /// The group of these slots, if it has postings and they are enough of it.
    fn dense_group(&self, slots: &[u32]) -> Option<Group<'_>> {
        let number = group_of(slots[0]);
        let postings = self.postings.get(number)?.as_deref()?;
        let blocks = &self.blocks[number * GROUP_BLOCKS..][..GROUP_BLOCKS];
        let first_slot = (number * GROUP_SLOTS) as u32;
        (slots.len() * DENSE >= GROUP_SLOTS).then_some(Group { first_slot, blocks, postings })
    }

    fn terms(&self, slot: u32) -> &[u32] {
        let block = self.blocks.get(slot as usize / BLOCK_SLOTS);
        block.map_or(&[], |block| block.terms(slot as usize % BLOCK_SLOTS))
    }
}

fn group_of(slot: u32) -> usize {
    slot as usize / GROUP_SLOTS
}

impl Scores {
    fn find_in_group(&mut self, query: &Query, group: &Group<'_>, play: InPlay<'_>) {
        let places = places_of(group, play);
        if query.fields.grams {
            for (at, term) in group.postings.terms().iter().enumerate() {
                self.find_term(query, group, &places, query.code(*term), at);
            }
        } else {
            for (code, term) in (1..).zip(&query.terms) {
                if let Some(at) = group.postings.find(*term) {
                    self.find_term(query, group, &places, code, at);
                }
            }
        }
        if query.fields.pairs {
            self.find_pairs_in_group(query, group, &places);
        }
    }

    fn find_term(
        &mut self,
        query: &Query,
        group: &Group<'_>,
        places: &[u32],
        code: u32,
        at: usize,
    ) {
        if code == 0 {
            return;
        }
        for posting in group.postings.list(at, group.blocks) {
            let place = places[usize::from(posting.slot)];
            let length = length_of(group.blocks, posting.slot);
            // What is removed stays in the postings, but is of no length.
            if place != NONE && length > 0 {
                let norm = query.saturation.norm(length);
                let share = share(posting.times, norm);
                self.terms.found.push(Found { code, place, share });
            }
        }
    }

    /// Pairs are looked for in the texts that hold the first word.
    fn find_pairs_in_group(&mut self, query: &Query, group: &Group<'_>, places: &[u32]) {
        let mut slots: Vec<u16> = Vec::new();
        for pair in &query.pairs {
            let first = query.terms[pair.words[0] as usize - 1];
            if let Some(at) = group.postings.find(first) {
                slots.extend(group.postings.list(at, group.blocks).map(|posting| posting.slot));
            }
        }
        slots.sort_unstable();
        slots.dedup();
        for slot in slots {
            let place = places[usize::from(slot)];
            if place != NONE {
                self.find_pairs(query, terms_at(group.blocks, slot), place);
            }
        }
    }

    fn find_in_texts(&mut self, lexical: &Lexical, query: &Query, play: InPlay<'_>) {
        for (place, slot) in (play.first_place..).zip(play.slots) {
            let terms = lexical.terms(*slot);
            let first = self.terms.found.len();
            let mut words = 0;
            for term in terms {
                let code = query.code(*term);
                if code != 0 {
                    words += usize::from(code as usize <= query.terms.len());
                    self.count(first, code, place);
                }
            }
            let norm = query.saturation.norm(terms.len() as u32);
            for found in &mut self.terms.found[first..] {
                found.share = share(found.share as u32, norm);
            }
            if words > 1 && query.fields.pairs {
                self.find_pairs(query, terms, place);
            }
        }
    }

    /// Count a term of a memory whose findings begin at `first`; shares are counts until all are.
    fn count(&mut self, first: usize, code: u32, place: u32) {
        let known = self.terms.found[first..].iter_mut().find(|found| found.code == code);
        match known {
            Some(found) => found.share += 1.0,
            None => self.terms.found.push(Found { code, place, share: 1.0 }),
        }
    }

    fn find_pairs(&mut self, query: &Query, terms: &[u32], place: u32) {
        let norm = query.saturation.norm(terms.len() as u32);
        let first = self.adjacent.found.len();
        for both in terms.windows(2) {
            let Some(code) = query.pair([query.code(both[0]), query.code(both[1])]) else {
                continue;
            };
            let known = self.adjacent.found[first..].iter_mut().find(|found| found.code == code);
            match known {
                Some(found) => found.share += 1.0,
                None => self.adjacent.found.push(Found { code, place, share: 1.0 }),
            }
        }
        for found in &mut self.adjacent.found[first..] {
            found.share = share(found.share as u32, norm);
        }
    }

    fn add_terms(&mut self, query: &Query, len: usize, carried: Option<&Carried<'_>>) {
        let Self { terms, best, touched, word_sums, gram_sums, .. } = self;
        terms.sort(query.worths.len());
        zero(word_sums, query.fields.words, len);
        zero(gram_sums, query.fields.grams, len);
        best.resize(best.len().max(len), 0.0);
        for found in terms.by_code() {
            let worth = query.worths[found[0].code as usize];
            let mut add = |place: u32, share: f32| {
                if worth.word > 0.0 && query.fields.words {
                    word_sums[place as usize].add(worth.word * share);
                }
                if worth.gram > 0.0 && query.fields.grams {
                    gram_sums[place as usize].add(worth.gram * share);
                }
            };
            let Some(carried) = carried else {
                found.iter().for_each(|found| add(found.place, found.share));
                continue;
            };
            let mut offer = |place: u32, share: f32| {
                let known = &mut best[place as usize];
                if *known == 0.0 {
                    touched.push(place);
                }
                *known = known.max(share);
            };
            for found in found {
                offer(found.place, found.share);
                let next = carried.next[found.place as usize];
                if next != NONE {
                    offer(next, carried.first * found.share);
                    let second = carried.next[next as usize];
                    if second != NONE {
                        offer(second, carried.second * found.share);
                    }
                }
            }
            for place in touched.drain(..) {
                add(place, std::mem::take(&mut best[place as usize]));
            }
        }
        write(word_sums, &mut self.words);
        write(gram_sums, &mut self.grams);
    }

    fn add_pairs(&mut self, query: &Query, len: usize) {
        self.pairs.clear();
        if !query.fields.pairs {
            return;
        }
        let mut sums = vec![Sum::default(); len];
        for found in &self.adjacent.found {
            let weight = query.pairs[found.code as usize].weight;
            sums[found.place as usize].add(weight * found.share);
        }
        write(&sums, &mut self.pairs);
    }
}

/// The place of each slot of a group that is in play.
fn places_of(group: &Group<'_>, play: InPlay<'_>) -> Vec<u32> {
    if play.slots.len() == GROUP_SLOTS {
        return (play.first_place..).take(GROUP_SLOTS).collect();
    }
    let mut places = vec![NONE; GROUP_SLOTS];
    for (place, slot) in (play.first_place..).zip(play.slots) {
        places[(slot - group.first_slot) as usize] = place;
    }
    places
}

fn terms_at(blocks: &[Arc<Block>], slot: u16) -> &[u32] {
    let slot = usize::from(slot);
    blocks[slot / BLOCK_SLOTS].terms(slot % BLOCK_SLOTS)
}

fn length_of(blocks: &[Arc<Block>], slot: u16) -> u32 {
    terms_at(blocks, slot).len() as u32
}

fn zero(sums: &mut Vec<Sum>, is_asked: bool, len: usize) {
    sums.clear();
    sums.resize(if is_asked { len } else { 0 }, Sum::default());
}

fn write(sums: &[Sum], scores: &mut Vec<f32>) {
    scores.clear();
    scores.extend(sums.iter().map(|sum| sum.value()));
}
