//! The ranking of rows that a source of candidates proposes.
//!
//! No vector is read but of memories that are considered: the proposed ones, the best keyword
//! candidates, and the neighbours that lift them. Each gets the score it has among all selected
//! memories: word statistics, named speakers and ranks of recency are those of the selection, and
//! every turn whose match or words count for another is read with it.

use std::sync::Arc;

use crate::Error;
use crate::bits::rows_of;
use crate::collections::cow_vec::BLOCK_VALUES;
use crate::columns::NO_DOCID;
use crate::rank::candidates::CandidateSet;
use crate::rank::largest::largest;
use crate::search::docid_set::DocidSet;
use crate::search::selection::SelectedRows;

use super::query::{Query, SelectionTerms};
use super::request::Answer;

/// Memories that are considered for their keywords: so many for each hit, and at least this many.
const KEYWORD_CANDIDATES_PER_HIT: usize = 8;
const MIN_KEYWORD_CANDIDATES: usize = 256;

/// How many turns away neighbours lift a match, and words are carried.
const REACH: usize = 2;

impl Query<'_> {
    /// Whether the answer is one by similarity alone for which the selection need not be read: among
    /// proposed rows, if nothing counts but which of them are selected, or among all.
    pub(super) fn is_of_unread_selection(&self) -> bool {
        let request = self.request;
        let is_wanted = request.k > 0 && self.is_near_alone() && request.min_salience.is_none();
        is_wanted
            && match request.proposed {
                Some(_) => request.evidence.is_none(),
                None => self.columns().selects_all(&request.ask),
            }
    }

    /// That answer.
    pub(super) fn of_unread_selection(&self) -> Answer {
        let (columns, ask) = (self.columns(), &self.request.ask);
        let Some(rows) = self.request.proposed else { return self.nearest(None, columns.live()) };
        let mut docids: Vec<u32> = rows.iter().filter_map(|row| columns.docid_of(*row)).collect();
        docids.sort_unstable();
        docids.dedup();
        columns.retain_selected(ask, &mut docids);
        let is_approximate = columns.selects_more_than(ask, docids.len());
        let count = docids.len();
        let allowed = SelectedRows::of_few(&self.snapshot.vectors, 1, docids.into_iter());
        Answer { is_approximate, ..self.nearest(Some(Arc::new(allowed)), count) }
    }

    /// The answer among proposed rows of a selection, which has 64 docids a word.
    pub(super) fn of_proposed(&self, rows: &[i64], selected: Vec<u64>) -> Result<Answer, Error> {
        let selection = self.docid_set(selected.clone());
        let proposed = self.proposed(rows, &selection);
        if self.is_near_alone() {
            let is_approximate = proposed.len() < selection.len();
            let set = self.docid_set(proposed.words);
            let answer = self.nearest(self.allowed(&set)?, selection.len());
            return Ok(Answer { is_approximate, ..answer });
        }
        if !self.reads_selection() {
            let terms = SelectionTerms::default();
            return self.of_considered(&proposed, &selection, terms);
        }
        let all = self.candidates(selected);
        let terms = self.selection_terms(&all)?;
        let mut considered = proposed;
        for docid in self.best_by_keywords(&all, &terms)? {
            considered.add(docid);
        }
        if terms.has_neighbours && self.request.scoring.session.has_neighbours() {
            considered = self.surrounded(&considered, &selection, [Side::Previous, Side::Next]);
        }
        self.of_considered(&considered, &selection, terms)
    }

    /// The answer among some docids of a selection, by its terms.
    fn of_considered(
        &self,
        considered: &Docids,
        selection: &DocidSet,
        mut terms: SelectionTerms,
    ) -> Result<Answer, Error> {
        let scoring = self.request.scoring;
        let is_approximate = considered.len() < selection.len();
        let mut read = considered.clone();
        if terms.has_neighbours && scoring.session.has_neighbours() {
            read = self.surrounded(&read, selection, [Side::Previous, Side::Next]);
        }
        if terms.has_neighbours && scoring.carries_keywords() {
            read = self.surrounded(&read, selection, [Side::Previous]);
        }
        let candidates = self.candidates(read.words);
        if candidates.docids.is_empty() {
            let total = self.request.with_total.then_some(0);
            return Ok(Answer { total, is_approximate, ..Answer::default() });
        }
        if !terms.newest_ranks.is_empty() {
            let rank = |docid: &u32| terms.newest_ranks[selection.ordinal(*docid) as usize];
            terms.newest_ranks = candidates.docids.iter().map(rank).collect();
        }
        let ruled_out = candidates.docids.iter().map(|docid| !considered.has(*docid)).collect();
        Ok(Answer { is_approximate, ..self.of_candidates(&candidates, terms, ruled_out)? })
    }

    /// The docids of rows, if they are selected.
    fn proposed(&self, rows: &[i64], selection: &DocidSet) -> Docids {
        let mut proposed = Docids::none(self.columns().len());
        let docids = rows.iter().filter_map(|row| self.columns().docid_of(*row));
        for docid in docids.filter(|docid| selection.contains(*docid)) {
            proposed.add(docid);
        }
        proposed
    }

    /// Whether scores depend on more of the selection than the memories considered.
    fn reads_selection(&self) -> bool {
        let scoring = self.request.scoring;
        let session = &scoring.session;
        let names_count = session.speaker > 0.0 || scoring.strip_speaker_names;
        let turns_count = session.has_neighbours() || session.role > 0.0;
        let is_shared = scoring.similarity < 1.0 || scoring.adaptive.is_some();
        let by_text = is_shared || turns_count || names_count;
        self.needs_newest_ranks() || self.request.text.is_some() && by_text
    }

    /// The memories with the largest bounds of their keyword matches.
    fn best_by_keywords(
        &self,
        all: &CandidateSet<'_>,
        terms: &SelectionTerms,
    ) -> Result<Vec<u32>, Error> {
        let Some(keywords) = self.keywords(all, terms.has_neighbours, &terms.named)? else {
            return Ok(Vec::new());
        };
        let uppers: Vec<f64> = keywords.uppers().iter().copied().map(f64::from).collect();
        let wanted = self.request.depth().saturating_mul(KEYWORD_CANDIDATES_PER_HIT);
        let best = largest(&uppers, wanted.max(MIN_KEYWORD_CANDIDATES));
        let matching = best.into_iter().filter(|at| uppers[*at as usize] > 0.0);
        Ok(matching.map(|at| all.docids[at as usize]).collect())
    }

    /// Some docids with their selected neighbours.
    fn surrounded<const SIDES: usize>(
        &self,
        docids: &Docids,
        selection: &DocidSet,
        sides: [Side; SIDES],
    ) -> Docids {
        let mut surrounded = docids.clone();
        for side in sides {
            for docid in docids.iter() {
                let mut at = docid;
                for _ in 0..REACH {
                    at = self.neighbour(at, side);
                    if !selection.contains(at) {
                        break; // beyond it nothing counts
                    }
                    surrounded.add(at);
                }
            }
        }
        surrounded
    }

    fn neighbour(&self, docid: u32, side: Side) -> u32 {
        let (number, at) = (docid as usize / BLOCK_VALUES, docid as usize % BLOCK_VALUES);
        let Some(block) = self.columns().block(number) else { return NO_DOCID };
        let neighbours = match side {
            Side::Previous => block.previous,
            Side::Next => block.next,
        };
        neighbours.get(at).copied().unwrap_or(NO_DOCID)
    }
}

/// A direction along a session.
#[derive(Clone, Copy)]
enum Side {
    Previous,
    Next,
}

/// A growing set of docids, 64 a word.
#[derive(Clone)]
struct Docids {
    words: Vec<u64>,
}

impl Docids {
    /// No docid, with capacity for so many.
    fn none(docids: usize) -> Self {
        Self { words: vec![0; docids.div_ceil(u64::BITS as usize)] }
    }

    fn add(&mut self, docid: u32) {
        self.words[(docid / u64::BITS) as usize] |= 1 << (docid % u64::BITS);
    }

    fn has(&self, docid: u32) -> bool {
        self.words[(docid / u64::BITS) as usize] >> (docid % u64::BITS) & 1 == 1
    }

    fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        rows_of(&self.words)
    }
}
