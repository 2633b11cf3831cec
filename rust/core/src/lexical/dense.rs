//! Scores of most memories of a group at once, term by term from its postings.

use std::sync::Arc;

use super::block::Block;
use super::postings::{GROUP_SLOTS, Posting, Postings, terms_at};
use super::query::{Fields, Query, share};
use super::scores::{FieldScores, NONE};
use super::sum::Sum;

/// A slot that no memory has; what is written there is never read.
const NOWHERE: u16 = GROUP_SLOTS as u16;

/// A group of full blocks with its postings, and its first slot.
#[derive(Clone, Copy)]
pub(super) struct Group<'state> {
    pub(super) first_slot: u32,
    pub(super) blocks: &'state [Arc<Block>],
    pub(super) postings: &'state Postings,
}

/// The memories in play of one group: places `first_place..first_place + slots.len()`.
#[derive(Clone, Copy)]
pub(super) struct InPlay<'play> {
    pub(super) first_place: usize,
    pub(super) slots: &'play [u32],
    pub(super) previous: Option<&'play [u32]>,
}

/// Room to score a group in.
#[derive(Default)]
pub(super) struct Dense {
    own: Side,
    window: Side,
    /// Tokens of each slot.
    lengths: Vec<u32>,
    /// Slot of the previous turn, and of the turn whose previous one this is.
    previous: Vec<u16>,
    next: Vec<u16>,
    /// How often the current term is in each slot.
    times: Vec<u32>,
    list: Vec<Posting>,
    other: Vec<Posting>,
}

/// Own texts, or windows, by slot.
#[derive(Default)]
struct Side {
    norms: Vec<f32>,
    sums: Sums,
}

impl Side {
    fn reset(&mut self, fields: Fields) {
        self.norms.resize(GROUP_SLOTS + 1, 1.0);
        let Sums { words, grams, pairs } = &mut self.sums;
        for (sums, is_asked) in
            [(words, fields.words), (grams, fields.grams), (pairs, fields.pairs)]
        {
            sums.clear();
            sums.resize(if is_asked { GROUP_SLOTS + 1 } else { 0 }, Sum::default());
        }
    }
}

#[derive(Clone, Copy)]
enum Field {
    Words,
    Grams,
    Pairs,
}

/// By field and slot.
#[derive(Default)]
struct Sums {
    words: Vec<Sum>,
    grams: Vec<Sum>,
    pairs: Vec<Sum>,
}

impl Sums {
    fn of(&mut self, field: Field) -> &mut [Sum] {
        match field {
            Field::Words => &mut self.words,
            Field::Grams => &mut self.grams,
            Field::Pairs => &mut self.pairs,
        }
    }

    /// Write the sums of the memories in play where they belong.
    fn write(&self, first_slot: u32, play: InPlay<'_>, scores: &mut FieldScores) {
        let fields = [
            (&self.words, &mut scores.words),
            (&self.grams, &mut scores.grams),
            (&self.pairs, &mut scores.pairs),
        ];
        for (sums, scores) in fields {
            let scores = scores.iter_mut().skip(play.first_place);
            if sums.is_empty() {
                continue;
            }
            for (score, &slot) in scores.zip(play.slots) {
                *score = sums[(slot - first_slot) as usize].value();
            }
        }
    }
}

impl Dense {
    /// Score the memories in play of `group`, none of them vacant.
    ///
    /// Places whose window reaches out of the group, or whose previous turn is that of another one
    /// too, are appended to `left`: their windows are not scored.
    pub(super) fn score(
        &mut self,
        query: &Query,
        group: Group<'_>,
        play: InPlay<'_>,
        [own, window]: [&mut FieldScores; 2],
        left: &mut Vec<u32>,
    ) {
        let windows = play.previous.is_some();
        self.reset(query.fields, windows);
        self.set_norms(query, group, play, left);
        self.add_terms(query, group, windows);
        if query.fields.pairs {
            self.add_pairs(query, group, windows);
        }
        self.own.sums.write(group.first_slot, play, own);
        if windows {
            self.window.sums.write(group.first_slot, play, window);
        }
    }

    fn reset(&mut self, fields: Fields, windows: bool) {
        self.own.reset(fields);
        if !windows {
            return;
        }
        self.window.reset(fields);
        self.times.resize(GROUP_SLOTS + 1, 0);
        for links in [&mut self.previous, &mut self.next] {
            links.clear();
            links.resize(GROUP_SLOTS + 1, NOWHERE);
        }
    }

    fn set_norms(
        &mut self,
        query: &Query,
        group: Group<'_>,
        play: InPlay<'_>,
        left: &mut Vec<u32>,
    ) {
        self.lengths.clear();
        for block in group.blocks {
            block.append_lengths(&mut self.lengths);
        }
        self.lengths.push(0);
        self.own.norms.clear();
        self.own.norms.extend(self.lengths.iter().map(|&length| query.saturation.norm(length)));
        let Some(previous) = play.previous else { return };
        for (place, &slot) in (play.first_place..).zip(play.slots) {
            let slot = (slot - group.first_slot) as u16;
            let before = self.link(group, play, slot, previous[place]);
            if before.is_none() {
                left.push(place as u32);
            }
            let [own, before] = [slot, before.unwrap_or(NOWHERE)].map(usize::from);
            let norm = query.saturation.norm(self.lengths[own] + self.lengths[before]);
            self.window.norms[own] = norm;
        }
    }

    /// Link a slot with its previous turn and return that; nothing if this cannot be done here.
    fn link(
        &mut self,
        group: Group<'_>,
        play: InPlay<'_>,
        slot: u16,
        previous: u32,
    ) -> Option<u16> {
        if previous == NONE {
            return Some(NOWHERE);
        }
        let before = *play.slots.get((previous as usize).wrapping_sub(play.first_place))?;
        let before = (before - group.first_slot) as u16;
        let next = &mut self.next[usize::from(before)];
        if *next != NOWHERE {
            return None;
        }
        *next = slot;
        self.previous[usize::from(slot)] = before;
        Some(before)
    }

    fn add_terms(&mut self, query: &Query, group: Group<'_>, windows: bool) {
        if query.fields.grams {
            for (place, &term) in group.postings.terms().iter().enumerate() {
                let code = query.code(term);
                if code != 0 {
                    self.add_term(query, group, place, code, windows);
                }
            }
        } else if query.fields.words {
            for (code, &term) in (1..).zip(&query.terms) {
                if let Some(place) = group.postings.find(term) {
                    self.add_term(query, group, place, code, windows);
                }
            }
        }
    }

    fn add_term(
        &mut self,
        query: &Query,
        group: Group<'_>,
        place: usize,
        code: u32,
        windows: bool,
    ) {
        let worth = query.worths[code as usize];
        group.postings.list(place, group.blocks, &mut self.list);
        if query.fields.grams && worth.gram > 0.0 {
            self.add_list(Field::Grams, worth.gram, windows);
        }
        if query.fields.words && worth.word > 0.0 {
            self.add_list(Field::Words, worth.word, windows);
        }
    }

    fn add_pairs(&mut self, query: &Query, group: Group<'_>, windows: bool) {
        for pair in &query.pairs {
            let terms = pair.words.map(|code| query.terms[code as usize - 1]);
            let [Some(first), Some(second)] = terms.map(|term| group.postings.find(term)) else {
                continue;
            };
            group.postings.list(first, group.blocks, &mut self.list);
            group.postings.list(second, group.blocks, &mut self.other);
            keep_common(&mut self.list, &self.other);
            self.list.retain_mut(|posting| {
                posting.times = adjacencies(terms_at(group.blocks, posting.slot), terms);
                posting.times > 0
            });
            self.add_list(Field::Pairs, pair.weight, windows);
        }
    }

    /// Add what is at the slots of `list` to their sums.
    fn add_list(&mut self, field: Field, weight: f32, windows: bool) {
        let Side { norms, sums } = &mut self.own;
        let sums = sums.of(field);
        for &Posting { slot, times } in &self.list {
            sums[usize::from(slot)].add(weight * share(times, norms[usize::from(slot)]));
        }
        if windows {
            self.add_windows(field, weight);
        }
    }

    /// Add what is at the slots of `list` to their windows, and to those of the turns after them.
    fn add_windows(&mut self, field: Field, weight: f32) {
        let Side { norms, sums } = &mut self.window;
        let sums = sums.of(field);
        for &Posting { slot, times } in &self.list {
            self.times[usize::from(slot)] = times;
        }
        for &Posting { slot, times } in &self.list {
            let before = self.times[usize::from(self.previous[usize::from(slot)])];
            sums[usize::from(slot)].add(weight * share(before + times, norms[usize::from(slot)]));
            let next = self.next[usize::from(slot)];
            if self.times[usize::from(next)] == 0 {
                sums[usize::from(next)].add(weight * share(times, norms[usize::from(next)]));
            }
        }
        for &Posting { slot, .. } in &self.list {
            self.times[usize::from(slot)] = 0;
        }
    }
}

/// Keep the postings at slots that `other` has too; both are in order of slots.
fn keep_common(list: &mut Vec<Posting>, other: &[Posting]) {
    let mut rest = other.iter().peekable();
    list.retain(|posting| {
        while rest.next_if(|other| other.slot < posting.slot).is_some() {}
        rest.peek().is_some_and(|other| other.slot == posting.slot)
    });
}

fn adjacencies(terms: &[u32], pair: [u32; 2]) -> u32 {
    terms.windows(2).filter(|&both| both == pair).count() as u32
}
