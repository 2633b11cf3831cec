//! BM25 scores of the candidates.
//!
//! Occurrences of the query's terms are read from the postings of a group of memories, or from
//! their texts if few of the group are candidates. Terms are added one after the other, so that of
//! each term the largest share counts among a memory and its earlier turns.

use std::sync::Arc;

use super::Lexical;
use super::forward_index::{BLOCK_DOCIDS, Block};
use super::passage::LONG;
use super::postings::{GROUP_BLOCKS, GROUP_DOCIDS, Postings, terms_at};
use super::query::{Fields, NonEssential, Query, TermWeight, share};
use super::sum::Sum;
use crate::deadline::Deadline;
use crate::ids::by_block;

/// No memory.
const NONE: u32 = u32::MAX;

/// A group keeps postings while at least one of so many docids is live; all its terms are read if
/// at least one of so many is a candidate.
pub(super) const DENSE: usize = 4;

/// Reading a memory's text takes as long as reading this many postings.
const POSTINGS_OF_A_TEXT: usize = 16;

/// Words of a turn count for the next two turns of its session too.
#[derive(Debug, Clone, Copy)]
pub struct Carried<'a> {
    /// For each candidate the ordinal of its next turn, or [`u32::MAX`].
    pub next: &'a [u32],
    /// Weight of a word in the next turn, from 0 to 1.
    pub first: f32,
    /// Weight in the turn after that.
    pub second: f32,
}

/// A query with the memories to score by it.
#[derive(Clone, Copy)]
pub struct Scoring<'a> {
    /// The query, made by the state that scores.
    pub query: &'a Query,
    /// The memories, ascending.
    pub docids: &'a [u32],
    /// Words that count for later turns, too.
    pub carried: Option<&'a Carried<'a>>,
    /// Words that bounds pass over.
    pub non_essential: NonEssential,
}

/// Scores by field, each as long as the candidates, or empty if the field was not requested; and
/// working memory, whose reuse saves allocations.
#[derive(Default)]
pub struct Scores {
    /// BM25 of the query's words.
    pub words: Vec<f32>,
    /// BM25 of the terms that share n-grams with the query's words, weighted by those n-grams.
    pub ngrams: Vec<f32>,
    /// BM25 of adjacent pairs of words.
    pub bigrams: Vec<f32>,
    deadline: Deadline,
    terms: Matches,
    adjacent: Matches,
    /// The largest share of the term at hand by place, and which places have any.
    best: Vec<f32>,
    touched: Vec<u32>,
    word_sums: Vec<Sum>,
    ngram_sums: Vec<Sum>,
}

/// Occurrences of terms or bigrams in the candidates.
#[derive(Default)]
struct Matches {
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

impl Matches {
    fn clear(&mut self) {
        self.found.clear();
    }

    /// Sort occurrences by code; `codes` is above all of them.
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

    /// The occurrences of a code, once sorted; codes begin with 1.
    fn of(&self, code: usize) -> &[Found] {
        &self.sorted[self.ends[code - 1] as usize..self.ends[code] as usize]
    }
}

/// A memory, and the weight of its words.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Its docid.
    pub docid: u32,
    /// From 0 to 1.
    pub counts: f32,
}

/// The query's words with weights from the first to below the second.
#[derive(Clone, Copy)]
struct TermSelection<'a> {
    query: &'a Query,
    weights: [f32; 2],
}

impl TermSelection<'_> {
    fn is_for(self, code: u32) -> bool {
        let weight = self.query.term_weights[code as usize].word;
        self.weights[0] <= weight && weight < self.weights[1]
    }
}

/// The candidates of one group, and the ordinal of the first.
#[derive(Clone, Copy)]
struct GroupCandidates<'a> {
    docids: &'a [u32],
    first_place: u32,
}

/// A group of full blocks with some candidates.
struct Group<'a> {
    blocks: &'a [Arc<Block>],
    postings: &'a Postings,
    /// The candidate docids.
    bits: [u64; GROUP_DOCIDS / 64],
    /// The ordinal of the first candidate of each of these words.
    first_places: [u32; GROUP_DOCIDS / 64],
    /// For each word of the query its place among the terms of the group, if it is there.
    words: Vec<Option<usize>>,
}

impl<'a> Group<'a> {
    fn new(blocks: &'a [Arc<Block>], postings: &'a Postings, selection: TermSelection<'_>) -> Self {
        let terms = (1..).zip(&selection.query.terms);
        let find = |(code, term): (u32, &u32)| {
            let is_selected = selection.is_for(code);
            is_selected.then(|| postings.find(*term)).flatten()
        };
        let words = terms.map(find).collect();
        let (bits, first_places) = ([0; GROUP_DOCIDS / 64], [0; GROUP_DOCIDS / 64]);
        Self { blocks, postings, bits, first_places, words }
    }

    /// Postings that have to be read for the words of the query.
    fn len(&self) -> usize {
        self.words.iter().flatten().map(|at| self.postings.len(*at)).sum()
    }

    /// Set the candidates; false if one of the docids is vacant.
    fn set_candidates(&mut self, candidates: GroupCandidates<'_>) -> bool {
        if candidates.docids.len() == GROUP_DOCIDS {
            self.bits = [u64::MAX; GROUP_DOCIDS / 64];
        } else {
            for docid in candidates.docids {
                let docid = *docid as usize % GROUP_DOCIDS;
                self.bits[docid / 64] |= 1 << (docid % 64);
            }
        }
        let mut place = candidates.first_place;
        for (first, bits) in self.first_places.iter_mut().zip(&self.bits) {
            *first = place;
            place += bits.count_ones();
        }
        let live = self.blocks.iter().flat_map(|block| &block.live);
        self.bits.iter().zip(live).all(|(bits, live)| bits & !live == 0)
    }

    /// The ordinal of a docid, if it is a candidate.
    fn place(&self, docid: u16) -> Option<u32> {
        let (word, bit) = (usize::from(docid) / 64, docid % 64);
        let from_here = self.bits[word] >> bit;
        let before = || (self.bits[word] ^ from_here << bit).count_ones();
        (from_here & 1 == 1).then(|| self.first_places[word] + before())
    }

    /// The long candidates that may have terms of the query, with their ordinals.
    fn long(&self, query: &Query) -> Vec<(u32, u16)> {
        if !self.postings.has_longer(LONG) {
            return Vec::new();
        }
        let lists = self.words.iter().flatten().map(|at| self.postings.list(*at, self.blocks));
        let mut docids: Vec<u16> = if query.fields.ngrams {
            (0..GROUP_DOCIDS as u16).collect()
        } else {
            lists.flatten().map(|posting| posting.docid).collect()
        };
        docids.retain(|docid| self.postings.length(*docid, self.blocks) as usize > LONG);
        docids.sort_unstable();
        docids.dedup();
        docids.into_iter().filter_map(|docid| Some((self.place(docid)?, docid))).collect()
    }

    /// Call `visit` with each candidate, but the long ones, that has the term at a place among those of
    /// the group, and with the share of it.
    fn each(&self, query: &Query, at: usize, mut visit: impl FnMut(u32, f32)) {
        for posting in self.postings.list(at, self.blocks) {
            let Some(place) = self.place(posting.docid) else { continue };
            let length = self.postings.length(posting.docid, self.blocks);
            if length as usize <= LONG {
                visit(place, share(posting.times, query.saturation.norm(length)));
            }
        }
    }
}

impl Lexical {
    /// Score the memories in `docids`, ascending, by every field of `query`, made by this state.
    ///
    /// Of each term the largest share counts that the memory or, discounted, one of the two turns
    /// before has. A vacant or unknown docid scores 0. The scores of a memory do not depend on
    /// other candidates but its earlier turns.
    pub fn scores(
        &self,
        query: &Query,
        docids: &[u32],
        carried: Option<&Carried<'_>>,
        scores: &mut Scores,
    ) {
        let non_essential = NonEssential::NONE;
        self.bounds(&Scoring { query, docids, carried, non_essential }, scores);
    }

    /// Upper bounds of [`scores`](Self::scores): as if every memory had all the non-essential
    /// words, as much as can be.
    pub fn bounds(&self, scoring: &Scoring<'_>, scores: &mut Scores) {
        let Scoring { query, docids, non_essential, .. } = *scoring;
        scores.clear(query.fields, docids.len());
        let weights = [non_essential.below, f32::INFINITY];
        self.add(scoring, TermSelection { query, weights }, scores);
        scores.write(non_essential.max);
        scores.add_bigrams(query, docids.len());
    }

    /// Turn [`bounds`](Self::bounds) of the same into scores.
    pub fn complete(&self, scoring: &Scoring<'_>, scores: &mut Scores) {
        let weights = [0.0, scoring.non_essential.below];
        self.add(scoring, TermSelection { query: scoring.query, weights }, scores);
        scores.write(Sum::ZERO);
    }

    /// Find and add the selected words; bigrams are only found.
    fn add(&self, scoring: &Scoring<'_>, selection: TermSelection<'_>, scores: &mut Scores) {
        scores.terms.clear();
        scores.adjacent.clear();
        let mut groups = Vec::new();
        let mut first_place = 0;
        for docids in by_block(scoring.docids, GROUP_DOCIDS) {
            if scores.deadline.is_past() {
                return;
            }
            let candidates = GroupCandidates { docids, first_place };
            match self.group(selection, candidates) {
                Some(group) => groups.push(group),
                None => scores.find_in_texts(self, selection, candidates),
            }
            first_place += docids.len() as u32;
        }
        for group in &groups {
            if scores.deadline.is_past() {
                return;
            }
            scores.find_in_group(selection, group);
        }
        scores.add_terms(selection.query, &groups, scoring.carried);
    }

    /// The words' score of one memory, from the texts of its turns: its own, and those before that
    /// count for it. The same to the bit as in [`scores`](Self::scores).
    pub fn score_of(&self, query: &Query, turns: impl IntoIterator<Item = Turn>) -> f32 {
        // How often each word is in the turn at hand, and the largest share of it.
        let mut words = vec![(0_u32, 0.0_f32); query.terms.len() + 1];
        for turn in turns {
            let terms = query.passage(self.terms(turn.docid));
            for code in terms.iter().map(|term| query.code(*term)).filter(|code| *code != 0) {
                if let Some((times, _)) = words.get_mut(code as usize) {
                    *times += 1;
                }
            }
            let norm = query.saturation.norm(terms.len() as u32);
            for (times, best) in words.iter_mut().filter(|(times, _)| *times > 0) {
                *best = best.max(turn.counts * share(std::mem::take(times), norm));
            }
        }
        let mut sum = Sum::default();
        for (term_weight, (_, share)) in query.term_weights.iter().zip(words) {
            sum.add(term_weight.word * share);
        }
        sum.value()
    }

    /// The group of these docids, if its postings are faster to read than the texts.
    fn group(
        &self,
        selection: TermSelection<'_>,
        candidates: GroupCandidates<'_>,
    ) -> Option<Group<'_>> {
        let fields = selection.query.fields;
        let number = candidates.docids[0] as usize / GROUP_DOCIDS;
        let postings = self.postings.get(number)?.as_deref()?;
        let blocks = &self.blocks.settled()[number * GROUP_BLOCKS..][..GROUP_BLOCKS];
        if fields.ngrams && candidates.docids.len() * DENSE < GROUP_DOCIDS {
            return None;
        }
        let mut group = Group::new(blocks, postings, selection);
        if !fields.ngrams && group.len() > candidates.docids.len() * POSTINGS_OF_A_TEXT {
            return None;
        }
        // Removed memories stay in the postings, so groups with vacant docids are read from the
        // texts.
        group.set_candidates(candidates).then_some(group)
    }

    /// Call `visit` with the number of words of each of ascending docids; 0 for a vacant one.
    pub(crate) fn each_length(&self, docids: &[u32], mut visit: impl FnMut(usize)) {
        for of_block in by_block(docids, BLOCK_DOCIDS) {
            let block = self.blocks.get(of_block[0] as usize / BLOCK_DOCIDS);
            if let Some(block) = block.filter(|_| of_block.len() == BLOCK_DOCIDS) {
                block.lengths().for_each(&mut visit);
                continue;
            }
            for docid in of_block {
                visit(block.map_or(0, |block| block.terms(*docid as usize % BLOCK_DOCIDS).len()));
            }
        }
    }

    /// The number of words of a docid; 0 for a vacant one.
    pub(crate) fn length(&self, docid: u32) -> usize {
        self.terms(docid).len()
    }

    pub(super) fn terms(&self, docid: u32) -> &[u32] {
        let block = self.blocks.get(docid as usize / BLOCK_DOCIDS);
        block.map_or(&[], |block| block.terms(docid as usize % BLOCK_DOCIDS))
    }
}

/// The term at hand on its way into the sums.
struct Adding<'a> {
    term_weight: TermWeight,
    carried: Option<&'a Carried<'a>>,
    /// The largest share of it by place, and the places that have any.
    best: &'a mut [f32],
    touched: &'a mut Vec<u32>,
    words: &'a mut [Sum],
    ngrams: &'a mut [Sum],
}

impl Adding<'_> {
    /// Take in that a memory has this share of the term.
    fn take(&mut self, place: u32, share: f32) {
        let Some(carried) = self.carried else {
            self.add(place, share);
            return;
        };
        self.offer(place, share);
        let next = carried.next[place as usize];
        if next != NONE {
            self.offer(next, carried.first * share);
            let second = carried.next[next as usize];
            if second != NONE {
                self.offer(second, carried.second * share);
            }
        }
    }

    fn offer(&mut self, place: u32, share: f32) {
        let known = &mut self.best[place as usize];
        if *known == 0.0 {
            self.touched.push(place);
        }
        *known = known.max(share);
    }

    /// Add the best shares, once all are taken in.
    fn finish(mut self) {
        for at in 0..self.touched.len() {
            let place = self.touched[at];
            let share = std::mem::take(&mut self.best[place as usize]);
            self.add(place, share);
        }
        self.touched.clear();
    }

    fn add(&mut self, place: u32, share: f32) {
        if self.term_weight.word > 0.0
            && let Some(sum) = self.words.get_mut(place as usize)
        {
            sum.add(self.term_weight.word * share);
        }
        if self.term_weight.ngram > 0.0
            && let Some(sum) = self.ngrams.get_mut(place as usize)
        {
            sum.add(self.term_weight.ngram * share);
        }
    }
}

impl Scores {
    /// Scores that are sums of the terms added so far where a deadline passes.
    pub fn until(deadline: Deadline) -> Self {
        Self { deadline, ..Self::default() }
    }

    /// Start again for so many memories.
    fn clear(&mut self, fields: Fields, len: usize) {
        zero(&mut self.word_sums, fields.words, len);
        zero(&mut self.ngram_sums, fields.ngrams, len);
        self.best.resize(self.best.len().max(len), 0.0);
    }

    /// Write the sums down, the words' with this much more.
    fn write(&mut self, more: Sum) {
        write(&self.word_sums, more, &mut self.words);
        write(&self.ngram_sums, Sum::ZERO, &mut self.ngrams);
    }

    /// Find terms that share n-grams, bigrams, and all of the passages of long memories.
    fn find_in_group(&mut self, selection: TermSelection<'_>, group: &Group<'_>) {
        let query = selection.query;
        for (place, docid) in group.long(query) {
            let terms = terms_at(group.blocks, docid);
            self.find_in_text(selection, query.passage(terms), place);
        }
        if query.fields.ngrams {
            for (at, term) in group.postings.terms.iter().enumerate() {
                let code = query.code(*term);
                if code != 0 {
                    let found = &mut self.terms.found;
                    group.each(query, at, |place, share| found.push(Found { code, place, share }));
                }
            }
        }
        if query.fields.bigrams {
            self.find_bigrams_in_group(query, group);
        }
    }

    /// Bigrams are searched in the texts that have the first word.
    fn find_bigrams_in_group(&mut self, query: &Query, group: &Group<'_>) {
        let mut docids: Vec<u16> = Vec::new();
        for pair in &query.bigrams {
            if let Some(at) = group.words[pair.words[0] as usize - 1] {
                docids.extend(group.postings.list(at, group.blocks).map(|posting| posting.docid));
            }
        }
        docids.sort_unstable();
        docids.dedup();
        for docid in docids {
            let terms = terms_at(group.blocks, docid);
            if let Some(place) = group.place(docid).filter(|_| terms.len() <= LONG) {
                self.find_bigrams(query, terms, place);
            }
        }
    }

    fn find_in_texts(
        &mut self,
        lexical: &Lexical,
        selection: TermSelection<'_>,
        candidates: GroupCandidates<'_>,
    ) {
        for (place, docid) in (candidates.first_place..).zip(candidates.docids) {
            let terms = selection.query.passage(lexical.terms(*docid));
            self.find_in_text(selection, terms, place);
        }
    }

    #[inline]
    fn find_in_text(&mut self, selection: TermSelection<'_>, terms: &[u32], place: u32) {
        let query = selection.query;
        let first = self.terms.found.len();
        let mut words = 0;
        for term in terms {
            let code = query.code(*term);
            if code != 0 && selection.is_for(code) {
                words += usize::from(code as usize <= query.terms.len());
                count(&mut self.terms.found, first, code, place);
            }
        }
        let norm = query.saturation.norm(terms.len() as u32);
        for found in &mut self.terms.found[first..] {
            found.share /= found.share + norm;
        }
        if words > 1 && query.fields.bigrams {
            self.find_bigrams(query, terms, place);
        }
    }

    fn find_bigrams(&mut self, query: &Query, terms: &[u32], place: u32) {
        let norm = query.saturation.norm(terms.len() as u32);
        let first = self.adjacent.found.len();
        for both in terms.windows(2) {
            let Some(code) = query.pair([query.code(both[0]), query.code(both[1])]) else {
                continue;
            };
            count(&mut self.adjacent.found, first, code, place);
        }
        for found in &mut self.adjacent.found[first..] {
            found.share /= found.share + norm;
        }
    }

    fn add_terms(&mut self, query: &Query, groups: &[Group<'_>], carried: Option<&Carried<'_>>) {
        let Self { terms, best, touched, word_sums, ngram_sums, deadline, .. } = self;
        terms.sort(query.term_weights.len());
        for (code, term_weight) in query.term_weights.iter().enumerate().skip(1) {
            if deadline.is_past() {
                return;
            }
            let (words, ngrams) = (&mut word_sums[..], &mut ngram_sums[..]);
            let mut adding =
                Adding { term_weight: *term_weight, carried, best, touched, words, ngrams };
            terms.of(code).iter().for_each(|found| adding.take(found.place, found.share));
            if !query.fields.ngrams {
                for group in groups {
                    let Some(at) = group.words[code - 1] else { continue };
                    if deadline.is_past() {
                        break; // the shares so far are still added, so that none are left behind
                    }
                    group.each(query, at, |place, share| adding.take(place, share));
                }
            }
            adding.finish();
        }
    }

    fn add_bigrams(&mut self, query: &Query, len: usize) {
        self.bigrams.clear();
        if !query.fields.bigrams {
            return;
        }
        let mut sums = vec![Sum::default(); len];
        for found in &self.adjacent.found {
            let weight = query.bigrams[found.code as usize].weight;
            sums[found.place as usize].add(weight * found.share);
        }
        write(&sums, Sum::ZERO, &mut self.bigrams);
    }
}

/// Count a term or bigram of a memory whose occurrences begin at `first`; shares are counts until all are
/// counted.
fn count(found: &mut Vec<Found>, first: usize, code: u32, place: u32) {
    match found[first..].iter_mut().find(|found| found.code == code) {
        Some(known) => known.share += 1.0,
        None => found.push(Found { code, place, share: 1.0 }),
    }
}

fn zero(sums: &mut Vec<Sum>, is_asked: bool, len: usize) {
    sums.clear();
    sums.resize(if is_asked { len } else { 0 }, Sum::default());
}

fn write(sums: &[Sum], more: Sum, scores: &mut Vec<f32>) {
    scores.clear();
    scores.extend(sums.iter().map(|sum| sum.plus(more).value()));
}
