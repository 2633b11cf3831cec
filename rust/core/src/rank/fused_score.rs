//! One fused, exact ranking of every memory in play.
//!
//! What a memory scores is one expression in float64, [`Fused::score`] over [`Fused::relevance`].
//! Every operation in it rounds monotonically and no similarity in it has a negative weight, so over
//! upper bounds of similarities it gives an upper bound of the score. Bounds of all memories come
//! from short codes; the most promising are scored exactly, and others only where their bound
//! reaches the k-th best score found so far.

use std::cell::RefCell;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use crate::columns::Tie;
use crate::rank::candidates::{Asked, NONE, Play};
use crate::rank::keyword_match::Keywords;
use crate::rank::scoring_config::{Ranking, Worth};
use crate::rank::similarity::Similarity;
use crate::rank::static_score::Worths;

/// Memories that are scored first: twice as many as are wanted, and at least so many.
const LEAST_PROMISING: usize = 32;

/// How many memories are scored first.
pub(crate) fn promising_of(k: usize) -> usize {
    LEAST_PROMISING.max(k.saturating_mul(2))
}

/// A bound that a row stays below by this much is below in any order of rounding.
const ROUNDING: f64 = 1e-9;

/// The parts of one score, each from 0 to 1 but for the terms of the session.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Components {
    /// Cosine with the nearest query; absent without a vector or a query.
    pub similarity: Option<f64>,
    /// Keyword match; absent where keywords have no share.
    pub keyword: Option<f64>,
    /// What neighbours in the session added.
    pub neighbours: Option<f64>,
    /// What being a question took.
    pub question: Option<f64>,
    /// What its time added.
    pub date: Option<f64>,
    /// What its speaker added.
    pub speaker: Option<f64>,
    /// What holding the kind of answer added.
    pub kind: Option<f64>,
    /// The match with all of these, divided by the most that they can add up to.
    pub relevance: Option<f64>,
    /// See [`Weights`].
    pub recency: Option<f64>,
    /// See [`Weights`].
    pub importance: Option<f64>,
    /// See [`Weights`].
    pub access: Option<f64>,
    /// See [`Weights`].
    pub salience: Option<f64>,
    /// See [`Weights`].
    pub context: Option<f64>,
}

/// What must hold of a memory that is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Least {
    pub(crate) similarity: f64,
    pub(crate) score: f64,
}

/// The expression that every memory in play is scored by.
pub(crate) struct Fused<'a> {
    pub(crate) play: &'a Play<'a>,
    pub(crate) ranking: &'a Ranking,
    /// Whether there is a query at all.
    pub(crate) has_query: bool,
    pub(crate) query: Option<&'a Similarity<'a>>,
    pub(crate) context: Option<&'a Similarity<'a>>,
    /// Keyword matches, where keywords have a share.
    pub(crate) keywords: Option<Keywords<'a>>,
    pub(crate) asked: Asked,
    /// What memories are worth by themselves, where that weighs anything.
    pub(crate) worths: Option<Worths<'a>>,
    /// Whether neighbours add anything.
    pub(crate) has_lift: bool,
    /// Whether dates, speakers, kinds or questions add or take anything.
    has_extras: bool,
    /// The most that a relevance can add up to, and the sum of the weights in play.
    most: f64,
    total: f64,
}

/// The value of an ordinal; nothing where the vector is empty.
fn value<T: Copy + Default>(values: &[T], at: u32) -> T {
    values.get(at as usize).copied().unwrap_or_default()
}

impl<'a> Fused<'a> {
    pub(crate) fn new(
        play: &'a Play<'a>,
        ranking: &'a Ranking,
        has_query: bool,
        [query, context]: [Option<&'a Similarity<'a>>; 2],
    ) -> Self {
        Self {
            play,
            ranking,
            has_query,
            query,
            context,
            keywords: None,
            asked: Asked::default(),
            worths: None,
            has_lift: false,
            has_extras: false,
            most: 1.0,
            total: 1.0,
        }
    }

    /// Work out what relevances and scores are divided by, once all else is known.
    pub(crate) fn scaled(mut self) -> Self {
        let (session, weights) = (&self.ranking.session, &self.ranking.weights);
        let in_play = |is_in_play: bool, weight: f64| if is_in_play { weight } else { 0.0 };
        let asks = self.asked.has_text && session.question > 0.0;
        let names = self.asked.speaker.is_some() || self.asked.kind.is_some();
        self.has_extras = asks || names || !self.asked.dates.is_empty();
        self.most = 1.0
            + in_play(self.has_lift, session.most_of_neighbours())
            + in_play(!self.asked.dates.is_empty(), session.date)
            + self.most_of_small_extras();
        self.total = in_play(self.has_query, weights.relevance)
            + in_play(self.context.is_some(), weights.context)
            + weights.of_worth();
        if self.total == 0.0 {
            self.total = 1.0; // nothing in play weighs anything: all score 0
        }
        self
    }

    /// Divide all matches by one.
    pub(crate) fn divide_matches(&mut self, best: f64) {
        self.most *= best;
    }

    /// The most that speaker and kind of answer add.
    fn most_of_small_extras(&self) -> f64 {
        let session = &self.ranking.session;
        let speaker = if self.asked.speaker.is_some() { session.speaker } else { 0.0 };
        let kind = if self.asked.kind.is_some() { session.kind } else { 0.0 };
        speaker + kind
    }

    /// The keyword match of a memory; 0 where keywords have no share.
    fn keyword(&self, at: u32) -> f64 {
        self.keywords.as_ref().map_or(0.0, |keywords| f64::from(keywords.of(at)))
    }

    /// The match of a memory by itself, from its similarity.
    fn matched(&self, at: u32, similarity: f64) -> f64 {
        let share = self.ranking.similarity;
        // Without a vector a memory is like one at right angles to the query.
        let near = if similarity == f64::NEG_INFINITY { 0.0 } else { share * similarity };
        near + (1.0 - share) * self.keyword(at)
    }

    /// What neighbours add to a match; `matched` gives that of an ordinal.
    fn lift(&self, at: u32, matched: impl Fn(u32) -> f64) -> f64 {
        if !self.has_lift {
            return 0.0;
        }
        self.play.lift(&self.ranking.session, at, |at| matched(at).max(0.0))
    }

    /// The match with all that the session tells, from 0 to 1 but where similarities are negative.
    fn relevance(&self, at: u32, matched: impl Fn(u32) -> f64) -> f64 {
        if !self.has_extras && !self.has_lift {
            return matched(at) / self.most;
        }
        let extra = self.play.extra(&self.ranking.session, &self.asked, at);
        (matched(at) + self.lift(at, &matched) + extra) / self.most
    }

    /// The score, from the relevance and the similarity with the context.
    fn score(&self, at: u32, relevance: f64, context: f64) -> f64 {
        self.sum(relevance, context, self.worth(at))
    }

    /// The score, from its parts; it grows with each.
    fn sum(&self, relevance: f64, context: f64, worth: f64) -> f64 {
        let weights = &self.ranking.weights;
        // A bound may be infinite, and no weight of nothing makes that a number.
        let is_weighed = self.has_query && weights.relevance > 0.0;
        // Beside other parts a negative similarity counts as none; alone it decides the order
        // (C073, C156).
        let relevance = if self.is_relevance_alone() { relevance } else { relevance.max(0.0) };
        let relevance = if is_weighed { weights.relevance * relevance } else { 0.0 };
        let near = weights.context * context.max(0.0);
        (relevance + near + worth) / self.total
    }

    /// The weighted sum of what a memory is worth by itself.
    fn worth(&self, at: u32) -> f64 {
        self.worths.as_ref().map_or(0.0, |worths| worths.sum(at))
    }

    /// An upper bound of that.
    fn worth_upper(&self, at: u32) -> f64 {
        self.worths.as_ref().map_or(0.0, |worths| worths.uppers[at as usize])
    }

    /// Whether a score is a match, and what the memory is worth by itself, and nothing else.
    fn is_plain(&self) -> bool {
        let matches = self.has_query && self.ranking.weights.relevance > 0.0;
        matches && !self.has_lift && !self.has_extras && self.context.is_none()
    }

    /// Whether the score is the relevance alone.
    fn is_relevance_alone(&self) -> bool {
        self.has_query && self.worths.is_none() && self.context.is_none()
    }
}

/// A memory with its score, in the order of the answer.
#[derive(Clone, Copy)]
pub(crate) struct Scored<'play> {
    pub(crate) score: f64,
    pub(crate) tie: Tie<'play>,
    pub(crate) ordinal: u32,
}

impl Eq for Scored<'_> {}

impl PartialEq for Scored<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Ord for Scored<'_> {
    /// Smaller is better: score, then newest, then smallest id, then first user.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.tie.cmp(&other.tie))
    }
}

impl PartialOrd for Scored<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Exact values of one query, each computed once.
struct Exact<'a> {
    fused: &'a Fused<'a>,
    similarities: RefCell<HashMap<u32, f64>>,
    uppers: RefCell<HashMap<u32, f64>>,
}

impl<'a> Exact<'a> {
    fn new(fused: &'a Fused<'a>) -> Self {
        Self { fused, similarities: RefCell::default(), uppers: RefCell::default() }
    }

    fn similarity(&self, at: u32) -> f64 {
        let Some(query) = self.fused.query else { return f64::NEG_INFINITY };
        let slot = self.fused.play.slots[at as usize];
        *self.similarities.borrow_mut().entry(at).or_insert_with(|| query.exact(slot))
    }

    /// An upper bound of the similarity, closer than the first.
    fn upper(&self, at: u32) -> f64 {
        let Some(query) = self.fused.query else { return f64::NEG_INFINITY };
        let slot = self.fused.play.slots[at as usize];
        *self.uppers.borrow_mut().entry(at).or_insert_with(|| query.upper(slot))
    }

    fn context(&self, at: u32) -> f64 {
        let slot = self.fused.play.slots[at as usize];
        self.fused.context.map_or(f64::NEG_INFINITY, |context| context.exact(slot))
    }

    fn matched(&self, at: u32) -> f64 {
        self.fused.matched(at, self.similarity(at))
    }

    fn lift(&self, at: u32) -> f64 {
        self.fused.lift(at, |at| self.matched(at))
    }

    fn relevance(&self, at: u32) -> f64 {
        self.fused.relevance(at, |at| self.matched(at))
    }

    fn score(&self, at: u32) -> f64 {
        self.fused.score(at, self.relevance(at), self.context(at))
    }

    /// An upper bound of the score, closer than the first.
    fn closer(&self, at: u32) -> f64 {
        let relevance = self.fused.relevance(at, |at| self.fused.matched(at, self.upper(at)));
        self.fused.score(at, relevance, self.context(at))
    }

    fn components(&self, at: u32) -> Components {
        let Fused { play, ranking, asked, .. } = self.fused;
        let (session, weights) = (&ranking.session, &ranking.weights);
        let worth = self.fused.worths.as_ref().map_or_else(Worth::default, |worths| worths.of(at));
        let given = |is_given: bool, value: f64| is_given.then_some(value);
        let near = |similarity: f64| (similarity > f64::NEG_INFINITY).then_some(similarity);
        let components = Components {
            recency: given(weights.recency > 0.0, worth.recency),
            importance: given(weights.importance > 0.0, worth.importance),
            access: given(weights.access > 0.0, worth.access),
            salience: given(weights.salience > 0.0, worth.salience),
            context: near(self.context(at)),
            ..Components::default()
        };
        if !self.fused.has_query {
            return components;
        }
        let asks = asked.has_text && session.question > 0.0;
        Components {
            similarity: near(self.similarity(at)),
            keyword: given(ranking.similarity < 1.0, self.fused.keyword(at)),
            neighbours: given(self.fused.has_lift, self.lift(at)),
            question: given(asks, 0.0 - play.of_question(session, asked, at)),
            date: given(!asked.dates.is_empty(), asked.of_date(session, at)),
            speaker: given(asked.speaker.is_some(), play.of_speaker(session, asked, at)),
            kind: given(asked.kind.is_some(), play.of_kind(session, asked, at)),
            relevance: Some(self.relevance(at)),
            ..components
        }
    }
}

impl Components {
    /// Those of a score that is a similarity and nothing else.
    pub(crate) fn of_similarity(similarity: f64) -> Self {
        let similarity = Some(similarity);
        Self { similarity, relevance: similarity, ..Self::default() }
    }
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

/// Values of which the largest is compared with a floor first.
const BATCH: usize = 16;

/// In fewer steps than with `max`, which heeds NaN.
fn most_of(values: &[f64]) -> f64 {
    let larger = |one: f64, other: &f64| if *other > one { *other } else { one };
    values.iter().fold(f64::NEG_INFINITY, larger)
}

/// The ordinals of values that reach a floor, ascending.
pub(crate) fn reaching(values: &[f64], floor: f64) -> Vec<u32> {
    let mut found = Vec::new();
    for (first, batch) in (0..).step_by(BATCH).zip(values.chunks(BATCH)) {
        if most_of(batch) >= floor {
            let reaches = |(at, value): (u32, &f64)| (*value >= floor).then_some(at);
            found.extend((first..).zip(batch).filter_map(reaches));
        }
    }
    found
}

/// The ordinals of the largest values, the largest first; of equal ones the smaller ordinal first.
pub(crate) fn largest(values: &[f64], wanted: usize) -> Vec<u32> {
    let wanted = wanted.min(values.len());
    let bound = |at: u32, value: &f64| Reverse(Bound(*value, Reverse(at)));
    let (first, rest) = values.split_at(wanted);
    let mut heap: BinaryHeap<Reverse<Bound>> =
        (0..).zip(first).map(|(at, value)| bound(at, value)).collect();
    for (first, batch) in (wanted as u32..).step_by(BATCH).zip(rest.chunks(BATCH)) {
        let Some(floor) = heap.peek().map(|Reverse(least)| least.0) else { break };
        if most_of(batch) <= floor {
            continue;
        }
        for (at, value) in (first..).zip(batch) {
            if let Some(mut least) = heap.peek_mut()
                && *value > least.0.0
            {
                *least = bound(at, value);
            }
        }
    }
    heap.into_sorted_vec().into_iter().map(|Reverse(Bound(_, Reverse(at)))| at).collect()
}

/// A value and its ordinal; never NaN.
#[derive(PartialEq)]
struct Bound(f64, Reverse<u32>);

impl Eq for Bound {}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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
    use proptest::prelude::*;

    use super::*;
    use crate::columns::Columns;

    proptest! {
        #[test]
        fn the_largest_are_those_of_the_sorted_list(
            values in prop::collection::vec(-3_i8..4, 0..80), wanted in 0_usize..90
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let mut sorted: Vec<u32> = (0..values.len() as u32).collect();
            sorted.sort_by(|one, other| {
                values[*other as usize].total_cmp(&values[*one as usize]).then(one.cmp(other))
            });
            sorted.truncate(wanted);
            prop_assert_eq!(largest(&values, wanted), sorted);
        }
    }

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
