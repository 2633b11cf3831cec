//! An exact ranking of all memories in play by bounds: few memories are scored.

use std::collections::BinaryHeap;

use crate::rank::candidates::NONE;

use super::components::Components;
use super::fused_score::{Exact, Fused, Scored, value};
use super::largest::{largest, reaching};

/// Memories that are scored first: twice as many as are wanted, and at least so many.
const LEAST_PROMISING: usize = 32;

/// How many memories are scored first.
pub(crate) fn promising_of(k: usize) -> usize {
    LEAST_PROMISING.max(k.saturating_mul(2))
}

/// A bound that a row stays below by this much is below in any order of rounding.
const ROUNDING: f64 = 1e-9;

/// What must hold of a memory that is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Least {
    pub(crate) similarity: f64,
    pub(crate) score: f64,
}

/// The best of the memories in play.
pub(crate) struct Best<'play> {
    /// Best first.
    pub(crate) scored: Vec<Scored<'play>>,
    pub(crate) components: Vec<Components>,
}

/// Rank the memories in play.
pub(crate) fn rank<'play>(
    fused: &'play Fused<'play>,
    uppers: &'play Uppers,
    k: usize,
    least: Least,
) -> Best<'play> {
    let mut ranking = Ranked::new(fused, uppers, k, least);
    if fused.is_relevance_alone() {
        let promising = ranking.promising(&ranking.matched);
        ranking.take_all(&promising);
        let seed = ranking.least_seed();
        ranking.complete_if_many(|ranking, at| ranking.matched[at as usize] >= seed);
        ranking.take_near_seeds();
    } else {
        let mut bounds = ranking.bounds();
        let promising = ranking.promising(&bounds);
        ranking.take_all(&promising);
        let floor = ranking.best.floor();
        if ranking.complete_if_many(|_, at| bounds[at as usize] >= floor) {
            bounds = ranking.bounds();
        }
        for at in 0..ranking.len() {
            if bounds[at as usize] >= ranking.best.floor() {
                ranking.take_closer(at);
            }
        }
    }
    let scored = ranking.best.scored.into_sorted_vec();
    let components = scored.iter().map(|hit| ranking.exact.components(hit.ordinal)).collect();
    Best { scored, components }
}

/// Divide all matches by the best of those that are near enough, if that is one.
pub(crate) fn divide_by_best(fused: &mut Fused<'_>, uppers: &Uppers, least: Least) {
    if !fused.has_query || fused.ranking.weights.relevance == 0.0 {
        return;
    }
    let (worths, context) = (fused.worths.take(), fused.context.take());
    let best = rank(fused, uppers, 1, Least { score: f64::NEG_INFINITY, ..least });
    let relevance = best.components.first().and_then(|components| components.relevance);
    (fused.worths, fused.context) = (worths, context);
    if let Some(relevance) = relevance.filter(|relevance| *relevance > 0.0) {
        fused.divide_matches(relevance);
    }
}

/// The ordinals of all memories that match, of which `rank` would answer the best k.
pub(crate) fn matching(fused: &Fused<'_>, uppers: &Uppers, least: Least) -> Vec<u32> {
    let has_floors = least.score.max(least.similarity) > f64::NEG_INFINITY;
    // Whatever has a vector is a match.
    let all_have_vectors =
        || !uppers.query.is_empty() && !uppers.query.contains(&f32::NEG_INFINITY);
    if !has_floors && (!fused.has_query || all_have_vectors()) {
        return (0..fused.play.slots.len() as u32).collect();
    }
    if let Some(keywords) = &fused.keywords {
        keywords.complete();
    }
    let ranking = Ranked::new(fused, uppers, 0, least);
    let may_match = |at: &u32| ranking.may_match(*at);
    let Some(query) = fused.query.filter(|_| has_floors) else {
        let matches = |at: &u32| !has_floors || ranking.exact.score(*at) >= least.score;
        return (0..ranking.len()).filter(may_match).filter(matches).collect();
    };
    let mut found = Vec::new();
    query.each_bounds(
        &fused.play.set,
        least.similarity,
        |at| ranking.may_match(at),
        |at, bounds, exact| {
            if ranking.reaches_floors(at, bounds, exact) {
                found.push(at);
            }
        },
    );
    if least.similarity == f64::NEG_INFINITY {
        // Those without a vector are not among the bounds.
        let lacks = |at: &u32| value(&uppers.query, *at) == f32::NEG_INFINITY;
        let matches = |at: &u32| ranking.may_match(*at) && ranking.exact.score(*at) >= least.score;
        found.extend((0..ranking.len()).filter(lacks).filter(matches));
    }
    found.sort_unstable();
    found
}

/// The similarity of an ordinal, where it has a vector and there is a query.
pub(crate) fn similarity(fused: &Fused<'_>, at: u32) -> Option<f64> {
    let exact = fused.query?.exact(fused.play.slots[at as usize]);
    (exact > f64::NEG_INFINITY).then_some(exact)
}

/// Upper bounds of similarities, by ordinal; empty where there is nothing to compare with.
#[derive(Default)]
pub(crate) struct Uppers {
    pub(crate) query: Vec<f32>,
    pub(crate) context: Vec<f32>,
}

/// Upper bounds of the matches of memories by themselves.
fn matched_uppers(fused: &Fused<'_>, uppers: &Uppers) -> Vec<f64> {
    let mut matched = vec![0.0; fused.play.slots.len()];
    let share = fused.ranking.similarity;
    for (matched, upper) in matched.iter_mut().zip(&uppers.query) {
        *matched = if *upper == f32::NEG_INFINITY { 0.0 } else { share * f64::from(*upper) };
    }
    if let Some(keywords) = &fused.keywords {
        for (matched, keyword) in matched.iter_mut().zip(keywords.uppers()) {
            *matched += (1.0 - share) * f64::from(*keyword);
        }
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
    least: Least,
    best: Kept<'a>,
}

impl<'a> Ranked<'a> {
    fn new(fused: &'a Fused<'a>, uppers: &'a Uppers, k: usize, least: Least) -> Self {
        let is_done = vec![false; fused.play.slots.len()];
        let matched = matched_uppers(fused, uppers);
        let best = Kept { k, least: least.score, scored: BinaryHeap::new() };
        Self { exact: Exact::new(fused), uppers, matched, is_done, least, best }
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
        self.fused().sum(relevance, context, self.fused().worth_upper(at))
    }

    fn bounds(&self) -> Vec<f64> {
        let fused = self.fused();
        let Some(worths) = fused.worths.as_ref().filter(|_| fused.is_plain()) else {
            fused.play.look_up_turns();
            return (0..self.len()).map(|at| self.bound(at)).collect();
        };
        // What `bound` does, in a loop that vector instructions can do.
        let (weight, most, total) = (fused.ranking.weights.relevance, fused.most, fused.total);
        let bound = |(matched, worth): (&f64, &f64)| {
            let relevance = matched / most;
            let relevance = if relevance > 0.0 { relevance } else { 0.0 };
            (weight * relevance + 0.0 + worth) / total
        };
        self.matched.iter().zip(&worths.uppers).map(bound).collect()
    }

    /// Compute all keyword matches where so many memories may be looked at that this is sooner
    /// done than one by one; returns whether bounds are closer now.
    fn complete_if_many(&mut self, may_be_looked_at: impl Fn(&Self, u32) -> bool) -> bool {
        let Some(keywords) = &self.fused().keywords else { return false };
        let looks = || (0..self.len()).filter(|at| may_be_looked_at(self, *at)).count();
        if !keywords.are_bounds() || !keywords.are_many(looks()) {
            return false;
        }
        keywords.complete();
        self.matched = matched_uppers(self.fused(), self.uppers);
        true
    }

    /// The memories with the largest of these values, the largest first.
    fn promising(&self, values: &[f64]) -> Vec<u32> {
        largest(values, promising_of(self.best.k))
    }

    fn take_all(&mut self, promising: &[u32]) {
        for at in promising {
            self.take(*at);
        }
    }

    /// Score all that may be among the best where the score is the relevance alone.
    ///
    /// With every match of a memory and of its neighbours below a seed's, and no more than the small
    /// extras, it stays below the floor; so it is enough to look at seeds, at their neighbours, and
    /// at memories near to a date.
    fn take_near_seeds(&mut self) {
        let seed = self.least_seed();
        for at in reaching(&self.matched, seed) {
            self.take_around(at);
        }
        for (at, near) in (0..).zip(&self.fused().asked.dates) {
            if *near > 0.0 {
                self.take_closer(at);
            }
        }
    }

    /// A match below which no memory can lift another or itself to the floor.
    fn least_seed(&self) -> f64 {
        let (fused, floor) = (self.fused(), self.best.floor());
        if floor == f64::NEG_INFINITY {
            return floor;
        }
        let weight = fused.ranking.weights.relevance;
        let relevance = if weight > 0.0 { floor * fused.total / weight } else { f64::NEG_INFINITY };
        let sum = relevance * fused.most - fused.most_of_small_extras();
        let lifted = if fused.has_lift { fused.ranking.session.most_of_neighbours() } else { 0.0 };
        // Where nothing is needed, negative matches, which lift nothing, are enough.
        let seed = if sum > 0.0 { sum / (1.0 + lifted) } else { f64::NEG_INFINITY };
        seed - ROUNDING * seed.abs()
    }

    /// Look at a memory and at those that it may lift.
    fn take_around(&mut self, at: u32) {
        self.take_closer(at);
        if !self.fused().has_lift {
            return;
        }
        let play = self.fused().play;
        let (previous, next) = (play.previous(at), play.next(at));
        for neighbour in [previous, play.previous(previous), next, play.next(next)] {
            if neighbour != NONE {
                self.take_closer(neighbour);
            }
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

    /// Whether a memory has anything to do with the query; one with a vector always has.
    fn is_a_match(&self, at: u32) -> bool {
        let fused = self.fused();
        let upper = self.uppers.query.get(at as usize);
        !fused.has_query
            || upper.is_some_and(|upper| *upper > f32::NEG_INFINITY)
            || fused.keyword(at) > 0.0
            || self.exact.lift(at) > 0.0
    }

    /// Whether a memory is a match that may reach the floors, by its first bounds.
    fn may_match(&self, at: u32) -> bool {
        let least = self.least;
        if f64::from(value(&self.uppers.query, at)) < least.similarity {
            return false;
        }
        let may_reach = least.score == f64::NEG_INFINITY || self.bound(at) >= least.score;
        may_reach && self.is_a_match(at)
    }

    /// Whether a memory reaches the floors; its similarity is looked up where bounds do not tell.
    fn reaches_floors(&self, at: u32, (lower, upper): (f64, f64), exact: impl Fn() -> f64) -> bool {
        let least = self.least;
        let is_near = || lower >= least.similarity || exact() >= least.similarity;
        let is_enough = || {
            least.score == f64::NEG_INFINITY
                || self.is_sure(at, lower, least.score)
                || self.exact.score(at) >= least.score
        };
        upper >= least.similarity && is_near() && is_enough()
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

    /// Whether the similarity reaches the least one; where bounds tell, nothing else is asked.
    fn is_near_enough(&self, at: u32) -> bool {
        let least = self.least.similarity;
        least == f64::NEG_INFINITY
            || f64::from(value(&self.uppers.query, at)) >= least
                && self.exact.upper(at) >= least
                && self.exact.similarity(at) >= least
    }

    fn take(&mut self, at: u32) {
        if std::mem::replace(&mut self.is_done[at as usize], true) {
            return;
        }
        if self.is_near_enough(at) && self.is_a_match(at) {
            let play = self.fused().play;
            let tie = play.columns.tie_of(play.slots[at as usize]);
            self.best.offer(Scored { score: self.exact.score(at), tie, ordinal: at });
        }
    }
}

/// The k best so far.
struct Kept<'play> {
    k: usize,
    least: f64,
    /// The worst of them on top.
    scored: BinaryHeap<Scored<'play>>,
}

impl<'play> Kept<'play> {
    /// What a memory must score to be among them.
    fn floor(&self) -> f64 {
        match self.scored.peek() {
            Some(worst) if self.scored.len() == self.k => worst.score.max(self.least),
            _ => self.least,
        }
    }

    fn offer(&mut self, scored: Scored<'play>) {
        if self.k == 0 || scored.score < self.least {
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
    fn nothing_is_kept_below_the_least_score() {
        let columns = Columns::default();
        let scored = |score, ordinal| Scored { score, tie: columns.tie_of(ordinal), ordinal };
        let mut kept = Kept { k: 2, least: 0.5, scored: BinaryHeap::new() };
        for scored in [scored(0.4, 1), scored(0.5, 2), scored(0.7, 3), scored(0.7, 4)] {
            kept.offer(scored);
        }
        let best = kept.scored.into_sorted_vec();
        assert_eq!(best.iter().map(|kept| kept.score).collect::<Vec<_>>(), [0.7, 0.7]);
    }
}
