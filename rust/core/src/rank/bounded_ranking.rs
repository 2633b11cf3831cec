//! Exact ranking of all candidates by bounds: few memories are scored.

use std::collections::BinaryHeap;

use crate::deadline::{Deadline, SOME_ROWS};
use crate::rank::candidates::NONE;
use crate::rank::keyword_match::Keywords;

use super::components::Components;
use super::fused_score::{Exact, Fused, Scored, near, value};
use super::largest::{largest, reaching};

/// Memories that are scored first: twice the limit, but at most so many beyond it, and at least this
/// many in all. Twice a limit of 1,000 took up to a third longer.
const MIN_FRONTIER: usize = 32;
const MAX_BEYOND: usize = 128;

/// How many memories are scored first.
pub(crate) fn frontier_size(k: usize) -> usize {
    MIN_FRONTIER.max(k.saturating_add(k.min(MAX_BEYOND)))
}

/// With up to this many candidates for each that is always scored, all turns are read at once.
const MANY_FOR_ONE: usize = 128;

/// Memories that are scored after the deadline, at most.
const MAX_LATE: usize = 128;

/// A bound that a row stays below by this much is below in any order of rounding.
const ROUNDING: f64 = 1e-9;

/// The floors that a hit must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Floors {
    pub(crate) similarity: f64,
    pub(crate) score: f64,
}

/// The best of the candidates.
pub(crate) struct Best<'candidates> {
    /// Best first.
    pub(crate) scored: Vec<Scored<'candidates>>,
    pub(crate) components: Vec<Components>,
}

/// Rank the candidates: the best k, without the first `offset` of them. If the deadline passes, those that were scored before, or a few of the leading
/// ones if none was.
pub(crate) fn rank<'candidates>(
    fused: &'candidates Fused<'candidates>,
    uppers: &'candidates Uppers,
    k: usize,
    offset: usize,
    floors: Floors,
) -> Best<'candidates> {
    if frontier_size(k).saturating_mul(MANY_FOR_ONE) >= fused.candidates.docids.len() {
        let _ = fused.candidates.look_up_turns(); // one by one after the deadline
    }
    let mut ranking = Ranked::new(fused, uppers, k, floors);
    if fused.candidates.deadline.has_passed() {
        ranking.take_late();
    } else if fused.is_relevance_alone() {
        ranking.take_by_match();
    } else {
        ranking.take_by_bounds();
    }
    let Ranked { exact, best, .. } = ranking;
    let mut scored = best.scored.into_sorted_vec();
    scored.drain(..offset.min(scored.len()));
    let mut components = Vec::with_capacity(scored.len());
    for (at, hit) in scored.iter().enumerate() {
        if at >= MAX_LATE && at.is_multiple_of(SOME_ROWS) && fused.candidates.deadline.is_past() {
            break;
        }
        components.push(exact.components(hit.ordinal));
    }
    scored.truncate(components.len());
    Best { scored, components }
}

/// Divide all matches by the best of those that are near enough, if that is one.
pub(crate) fn divide_by_best(fused: &mut Fused<'_>, uppers: &Uppers, floors: Floors) {
    if !fused.has_query || fused.scoring.weights.relevance == 0.0 {
        return;
    }
    let (static_scores, context) = (fused.static_scores.take(), fused.context.take());
    let best = rank(fused, uppers, 1, 0, Floors { score: f64::NEG_INFINITY, ..floors });
    let relevance = best.components.first().and_then(|components| components.relevance);
    (fused.static_scores, fused.context) = (static_scores, context);
    if let Some(relevance) = relevance.filter(|relevance| *relevance > 0.0) {
        fused.divide_matches(relevance);
    }
}

/// The ordinals of all memories that match, of which `rank` would answer the best k.
pub(crate) fn matching(fused: &Fused<'_>, uppers: &Uppers, floors: Floors) -> Vec<u32> {
    if fused.query.is_none() && floors.similarity > f64::NEG_INFINITY {
        return Vec::new(); // no memory has a similarity
    }
    let has_floors = floors.score.max(floors.similarity) > f64::NEG_INFINITY;
    // Whatever has a vector is a match.
    let all_have_vectors =
        || !uppers.query.is_empty() && !uppers.query.contains(&f32::NEG_INFINITY);
    if !has_floors && (!fused.has_query || all_have_vectors()) {
        let all = 0..fused.candidates.docids.len() as u32;
        return all.filter(|at| !value(&fused.ruled_out, *at)).collect();
    }
    if let Some(keywords) = &fused.keywords {
        keywords.complete();
    }
    let ranking = Ranked::new(fused, uppers, 0, floors);
    let may_match = |at: &u32| ranking.may_match(*at);
    let is_in_time = |at: &u32| !ranking.deadline().is_past_at(*at as usize);
    let Some(query) = fused.query.filter(|_| has_floors) else {
        let matches = |at: &u32| !has_floors || ranking.exact.score(*at) >= floors.score;
        let in_time = (0..ranking.len()).take_while(is_in_time);
        return in_time.filter(may_match).filter(matches).collect();
    };
    let mut found = Vec::new();
    query.each_bounds(
        &fused.candidates.set,
        floors.similarity,
        |at| ranking.may_match(at),
        |at, bounds, exact| {
            if ranking.reaches_floors(at, bounds, exact) {
                found.push(at);
            }
        },
    );
    if floors.similarity == f64::NEG_INFINITY {
        // Those without a vector are not among the bounds.
        let lacks = |at: &u32| value(&uppers.query, *at) == f32::NEG_INFINITY;
        let matches = |at: &u32| ranking.may_match(*at) && ranking.exact.score(*at) >= floors.score;
        let in_time = (0..ranking.len()).take_while(is_in_time);
        found.extend(in_time.filter(lacks).filter(matches));
    }
    found.sort_unstable();
    found
}

/// The similarity of an ordinal, if it has a vector and there is a query.
pub(crate) fn similarity(fused: &Fused<'_>, at: u32) -> Option<f64> {
    let exact = fused.query?.exact(fused.candidates.docids[at as usize]);
    (exact > f64::NEG_INFINITY).then_some(exact)
}

/// Upper bounds of similarities, by ordinal; empty without a query or context.
#[derive(Default)]
pub(crate) struct Uppers {
    pub(crate) query: Vec<f32>,
    pub(crate) context: Vec<f32>,
}

/// Upper bounds of the matches of memories by themselves.
fn matched_uppers(fused: &Fused<'_>, uppers: &Uppers) -> Vec<f64> {
    let mut matched = vec![0.0; fused.candidates.docids.len()];
    let (share, rescaling) = (fused.scoring.similarity, fused.rescaling);
    for (matched, upper) in matched.iter_mut().zip(&uppers.query) {
        *matched = near(rescaling, share, f64::from(*upper));
    }
    let keywords = fused.keywords.as_ref().map_or(&[][..], Keywords::uppers);
    for (matched, keyword) in matched.iter_mut().zip(keywords) {
        *matched += (1.0 - share) * f64::from(*keyword);
    }
    for (at, shares) in &fused.shares {
        let upper = uppers.query.get(*at as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let keyword = f64::from(value(keywords, *at));
        let [one, other] =
            shares.map(|share| near(rescaling, share, f64::from(upper)) + (1.0 - share) * keyword);
        matched[*at as usize] = one.max(other);
    }
    matched
}

/// A ranking in the making.
struct Ranked<'a> {
    exact: Exact<'a>,
    uppers: &'a Uppers,
    /// Upper bounds of the matches of memories by themselves.
    matched: Vec<f64>,
    /// Which memories were scored or ruled out.
    is_done: Vec<bool>,
    floors: Floors,
    best: Kept<'a>,
}

impl<'a> Ranked<'a> {
    fn new(fused: &'a Fused<'a>, uppers: &'a Uppers, k: usize, floors: Floors) -> Self {
        let is_done = match &fused.ruled_out[..] {
            [] => vec![false; fused.candidates.docids.len()],
            ruled_out => ruled_out.to_vec(),
        };
        let matched = matched_uppers(fused, uppers);
        let best = Kept { k, floors: floors.score, scored: BinaryHeap::new() };
        Self { exact: Exact::new(fused), uppers, matched, is_done, floors, best }
    }

    fn len(&self) -> u32 {
        self.matched.len() as u32
    }

    fn fused(&self) -> &'a Fused<'a> {
        self.exact.fused
    }

    /// An upper bound of the score.
    fn bound(&self, at: u32) -> f64 {
        let relevance = self.fused().relevance(at, |at| self.matched[at as usize]);
        let context = self.uppers.context.get(at as usize);
        let context = context.map_or(f64::NEG_INFINITY, |upper| f64::from(*upper));
        self.fused().sum(relevance, context, self.fused().static_score_upper(at))
    }

    /// Upper bounds of all scores; of the first ones if the deadline passes.
    fn bounds(&self) -> Vec<f64> {
        let fused = self.fused();
        if let Some(static_scores) = fused.static_scores.as_ref().filter(|_| fused.is_static()) {
            return static_scores.uppers.iter().map(|upper| upper / fused.total).collect();
        }
        let Some(static_scores) = fused.static_scores.as_ref().filter(|_| fused.is_plain()) else {
            if fused.candidates.look_up_turns().is_err() {
                return Vec::new();
            }
            let in_time =
                (0..self.len()).take_while(|at| !self.deadline().is_past_at(*at as usize));
            return in_time.map(|at| self.bound(at)).collect();
        };
        // As `bound`, in a loop that compiles to vector instructions.
        let (weight, max_relevance, total) =
            (fused.scoring.weights.relevance, fused.max_relevance, fused.total);
        let bound = |(matched, static_score): (&f64, &f64)| {
            let relevance = matched / max_relevance;
            let relevance = if relevance > 0.0 { relevance } else { 0.0 };
            (weight * relevance + 0.0 + static_score) / total
        };
        self.matched.iter().zip(&static_scores.uppers).map(bound).collect()
    }

    /// Compute all keyword matches if so many memories may be scored that this is faster than one
    /// by one; returns whether bounds are tighter now.
    fn complete_if_many(&mut self, may_be_scored: impl Fn(&Self, u32) -> bool) -> bool {
        let Some(keywords) = &self.fused().keywords else { return false };
        let looks = || (0..self.len()).filter(|at| may_be_scored(self, *at)).count();
        if !keywords.are_many_bounds(looks) {
            return false;
        }
        keywords.complete();
        self.matched = matched_uppers(self.fused(), self.uppers);
        true
    }

    /// The frontier: the memories with the largest of these values, the largest first.
    fn frontier(&self, values: &[f64]) -> Vec<u32> {
        largest(values, frontier_size(self.best.k))
    }

    fn take_all(&mut self, frontier: &[u32]) {
        for some in frontier.chunks(SOME_ROWS) {
            self.exact.look_up(some);
            for at in some {
                self.take(*at);
            }
            if self.deadline().is_past() {
                return;
            }
        }
    }

    fn deadline(&self) -> &'a Deadline {
        self.fused().candidates.deadline
    }

    /// Score a few of the memories whose match and static score are the largest by the bounds that
    /// are known.
    fn take_late(&mut self) {
        let (fused, weight) = (self.fused(), self.fused().scoring.weights.relevance);
        let mut values = self.matched.clone();
        if let Some(static_scores) = &fused.static_scores {
            for (value, static_score) in values.iter_mut().zip(&static_scores.uppers) {
                *value = weight * *value + static_score;
            }
        }
        for at in largest(&values, frontier_size(self.best.k).min(MAX_LATE)) {
            self.take(at);
        }
    }

    /// Score all that may be among the best, by bounds of their matches.
    fn take_by_match(&mut self) {
        let frontier = self.frontier(&self.matched);
        self.take_all(&frontier);
        let seed = self.min_seed();
        self.complete_if_many(|ranking, at| ranking.matched[at as usize] >= seed);
        self.take_near_seeds();
    }

    /// Score all that may be among the best, by bounds of their scores.
    fn take_by_bounds(&mut self) {
        let mut bounds = self.bounds();
        if self.deadline().has_passed() {
            return self.take_late();
        }
        let frontier = self.frontier(&bounds);
        self.take_all(&frontier);
        let floor = self.best.floor();
        if self.complete_if_many(|_, at| bounds[at as usize] >= floor) {
            bounds = self.bounds();
        }
        for (at, bound) in (0..).zip(bounds) {
            if self.deadline().is_past_at(at as usize) {
                return;
            }
            if bound >= self.best.floor() {
                self.take_closer(at);
            }
        }
    }

    /// Score all that may be among the best where the score is the relevance alone.
    ///
    /// A memory whose match and whose neighbours' matches are below the smallest seed stays below
    /// the floor, even with the small extras; so only seeds, their neighbours, memories near a date
    /// and those by named speakers of few turns are scored.
    fn take_near_seeds(&mut self) {
        let seed = self.min_seed();
        for some in reaching(&self.matched, seed).chunks(SOME_ROWS) {
            if self.deadline().is_past() {
                return;
            }
            if self.fused().has_lift {
                let around = |at: &u32| self.fused().candidates.around(*at);
                let around = some.iter().flat_map(around).filter(|at| *at != NONE);
                let around: Vec<u32> = some.iter().copied().chain(around).collect();
                self.take_closer_of(&around);
            } else {
                self.take_closer_of(some);
            }
        }
        let term = self.fused().features.speaker.as_ref();
        for some in
            term.and_then(|term| term.few.as_ref()).iter().flat_map(|few| few.chunks(SOME_ROWS))
        {
            if self.deadline().is_past() {
                return;
            }
            self.take_closer_of(some);
        }
        for (at, near) in (0..).zip(&self.fused().features.dates) {
            if self.deadline().is_past_at(at as usize) {
                return;
            }
            if *near > 0.0 {
                self.take_closer(at);
            }
        }
    }

    /// Smallest match that could still reach the k-th score, its own or a neighbour's.
    fn min_seed(&self) -> f64 {
        let (fused, floor) = (self.fused(), self.best.floor());
        if floor == f64::NEG_INFINITY {
            return floor;
        }
        let weight = fused.scoring.weights.relevance;
        let relevance = if weight > 0.0 { floor * fused.total / weight } else { f64::NEG_INFINITY };
        let sum = relevance * fused.max_relevance - fused.max_of_extras(|term| term.few.is_none());
        let lifted = if fused.has_lift { fused.scoring.session.max_of_neighbours() } else { 0.0 };
        // If no match is needed, negative matches, which lift nothing, suffice.
        let largest = 1.0 + lifted + fused.features.max_of_newness();
        let seed = if sum > 0.0 { sum / largest } else { f64::NEG_INFINITY };
        seed - ROUNDING * seed.abs()
    }

    /// Score some memories whose bounds reach the floor, one bound of all after the other.
    fn take_closer_of(&mut self, some: &[u32]) {
        let floor = self.best.floor();
        let mut left = Vec::new();
        for at in some {
            if !std::mem::replace(&mut self.is_done[*at as usize], true) && self.bound(*at) >= floor
            {
                left.push(*at);
            }
        }
        self.exact.look_up_bounds(&left);
        left.retain(|at| self.exact.closer(*at) >= floor);
        self.exact.look_up(&left);
        for at in left {
            self.score(at);
        }
    }

    /// Score a memory if its bounds reach the floor, one after the other.
    fn take_closer(&mut self, at: u32) {
        if self.is_done[at as usize] {
            return;
        }
        let floor = self.best.floor();
        if self.bound(at) >= floor && self.exact.closer(at) >= floor {
            return self.take(at);
        }
        self.is_done[at as usize] = true;
    }

    /// Whether a memory matches the query at all; one with a vector always does, and one of the time
    /// or the speaker that the query names.
    fn is_a_match(&self, at: u32) -> bool {
        let fused = self.fused();
        let upper = self.uppers.query.get(at as usize);
        !fused.has_query
            || upper.is_some_and(|upper| *upper > f32::NEG_INFINITY)
            || fused.keyword(at) > 0.0
            || fused.is_asked_for(at)
            || self.exact.lift(at) > 0.0
    }

    /// Whether a memory is a match that may reach the floors, by its first bounds.
    fn may_match(&self, at: u32) -> bool {
        let floors = self.floors;
        if self.is_done[at as usize] || f64::from(value(&self.uppers.query, at)) < floors.similarity
        {
            return false;
        }
        let may_reach = floors.score == f64::NEG_INFINITY || self.bound(at) >= floors.score;
        may_reach && self.is_a_match(at)
    }

    /// Whether a memory reaches the floors; its exact similarity is computed if bounds do not
    /// decide.
    fn reaches_floors(&self, at: u32, (lower, upper): (f64, f64), exact: impl Fn() -> f64) -> bool {
        let floors = self.floors;
        let is_near = || lower >= floors.similarity || exact() >= floors.similarity;
        let is_enough = || {
            floors.score == f64::NEG_INFINITY
                || self.is_sure(at, lower, floors.score)
                || self.exact.score(at) >= floors.score
        };
        upper >= floors.similarity && is_near() && is_enough()
    }

    /// Whether a lower bound of its similarity is enough for a memory to reach a score.
    fn is_sure(&self, at: u32, lower: f64, score: f64) -> bool {
        let fused = self.fused();
        let is_simple = !fused.has_lift && fused.context.is_none() && lower > f64::NEG_INFINITY;
        is_simple
            && fused.score(
                at,
                fused.relevance(at, |at| fused.matched(at, lower)),
                f64::NEG_INFINITY,
            ) >= score
    }

    /// Whether the similarity reaches its floor; it is computed only if bounds do not decide.
    fn is_near_enough(&self, at: u32) -> bool {
        let floors = self.floors.similarity;
        floors == f64::NEG_INFINITY
            || f64::from(value(&self.uppers.query, at)) >= floors
                && self.exact.upper(at) >= floors
                && self.exact.similarity(at) >= floors
    }

    fn take(&mut self, at: u32) {
        if !std::mem::replace(&mut self.is_done[at as usize], true) {
            self.score(at);
        }
    }

    fn score(&mut self, at: u32) {
        if self.is_near_enough(at) && self.is_a_match(at) {
            let candidates = self.fused().candidates;
            let tie = candidates.columns.tie_of(candidates.docids[at as usize]);
            self.best.offer(Scored { score: self.exact.score(at), tie, ordinal: at });
        }
    }
}

/// The k best so far.
struct Kept<'candidates> {
    k: usize,
    floors: f64,
    /// The worst of them on top.
    scored: BinaryHeap<Scored<'candidates>>,
}

impl<'candidates> Kept<'candidates> {
    /// The score that a memory must reach to be among them.
    fn floor(&self) -> f64 {
        match self.scored.peek() {
            Some(worst) if self.scored.len() == self.k => worst.score.max(self.floors),
            _ => self.floors,
        }
    }

    fn offer(&mut self, scored: Scored<'candidates>) {
        if self.k == 0 || scored.score < self.floors {
            return;
        }
        if self.scored.len() < self.k {
            self.scored.push(scored);
        } else if let Some(mut worst) = self.scored.peek_mut()
            && scored < *worst
        {
            *worst = scored;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;

    #[test]
    fn nothing_is_kept_below_the_min_score() {
        let columns = Columns::default();
        let scored = |score, ordinal| Scored { score, tie: columns.tie_of(ordinal), ordinal };
        let mut kept = Kept { k: 2, floors: 0.5, scored: BinaryHeap::new() };
        for scored in [scored(0.4, 1), scored(0.5, 2), scored(0.7, 3), scored(0.7, 4)] {
            kept.offer(scored);
        }
        let best = kept.scored.into_sorted_vec();
        assert_eq!(best.iter().map(|kept| kept.score).collect::<Vec<_>>(), [0.7, 0.7]);
    }
}
