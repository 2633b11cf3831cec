//! One fused, exact ranking of every memory in play.
//!
//! What a memory scores is one expression, [`Fused::score`], in float64. Every operation in it
//! rounds monotonically and no similarity in it has a negative weight, so the same expression over
//! upper bounds of similarities gives an upper bound of the score. Bounds of all memories come from
//! short codes; the most promising are scored exactly, and the others only where their bound reaches
//! the k-th best score found so far.

use std::cell::RefCell;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use crate::relevance::{Recency, Salience};
use crate::similarity::Similarity;

/// No neighbour.
pub(crate) const NONE: u32 = u32::MAX;

/// Memories that are scored first: twice as many as are wanted, and at least so many.
const LEAST_PROMISING: usize = 32;

/// All that a score is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranking {
    /// Share of the similarity in a match; the rest is the keywords'. From 0 to 1.
    pub similarity: f64,
    /// What a keyword match is made of.
    pub keywords: KeywordFields,
    /// What the turns of a session tell of one another.
    pub session: Session,
    /// Whether names of speakers are taken for the first person by similarity, and passed over by
    /// keywords.
    pub leaves_names_out: bool,
    /// How much each part of the score weighs.
    pub weights: Weights,
    /// How age counts.
    pub recency: Recency,
    /// What salience is made of.
    pub salience: Salience,
}

/// Shares of the parts of a keyword match.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeywordFields {
    /// Of words.
    pub words: f64,
    /// Of words that share character n-grams.
    pub grams: f64,
    /// Of adjacent pairs of words.
    pub pairs: f64,
    /// What a word of the previous turn of the session counts, if it is not in this one.
    pub previous: f64,
    /// What a word of the turn before that counts.
    pub second: f64,
    /// How much a stop word weighs beside other words.
    pub stop_words: f64,
    /// Words in more than this share of many memories are passed over.
    pub common: f64,
    /// The power that a match is raised to: above 1, weak matches count less.
    pub sharpness: f64,
}

/// What is added to the match of a turn for its session, as shares of matches.
///
/// Terms act only where memories carry what they need: a session, a time, a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Session {
    /// Of the previous turn's match.
    pub previous: f64,
    /// Of the next turn's match.
    pub next: f64,
    /// Of the previous turn's match, where that turn asks: this one may answer.
    pub answer: f64,
    /// Of the better match of the turns two before and two after.
    pub second: f64,
    /// Taken from a turn that ends in a question.
    pub question: f64,
    /// For a memory of the time that the query names; falls with the days between them.
    pub date: f64,
    /// For a turn of the one speaker that the query names.
    pub speaker: f64,
    /// For a memory that holds the kind of answer that the query asks for.
    pub kind: f64,
    /// Of its own match, for a memory without neighbours where others have some.
    pub alone: f64,
}

/// How much each part of the score weighs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weights {
    /// Of the match with the query.
    pub relevance: f64,
    /// Of its age.
    pub recency: f64,
    /// Of its importance.
    pub importance: f64,
    /// Of how often it was read.
    pub access: f64,
    /// Of what it is worth whatever is asked.
    pub salience: f64,
    /// Of its similarity with a context.
    pub context: f64,
}

/// What a memory is worth by itself, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Worth {
    pub(crate) recency: f64,
    pub(crate) importance: f64,
    pub(crate) access: f64,
    pub(crate) salience: f64,
}

impl Ranking {
    /// Whether the score is the similarity and nothing else.
    pub(crate) fn is_similarity_alone(&self) -> bool {
        let weights = &self.weights;
        self.similarity == 1.0
            && self.session == Session::default()
            && weights.relevance == 1.0
            && weights.of_worth() + weights.context == 0.0
    }
}

impl Weights {
    /// What all that memories are worth by themselves weighs.
    pub(crate) fn of_worth(&self) -> f64 {
        self.recency + self.importance + self.access + self.salience
    }

    /// The weighted sum of what a memory is worth by itself.
    fn of(&self, worth: Worth) -> f64 {
        self.recency * worth.recency
            + self.importance * worth.importance
            + self.access * worth.access
            + self.salience * worth.salience
    }
}

/// What is known of the memories in play for one query, by ordinal. A vector without values stands
/// for zeros.
#[derive(Default)]
pub(crate) struct Known {
    /// Keyword matches from 0 to 1.
    pub(crate) keyword: Vec<f32>,
    /// Ordinals of the turns before and after, or [`NONE`]; one more, so that nothing has none.
    pub(crate) previous: Vec<u32>,
    pub(crate) next: Vec<u32>,
    /// Whether a turn asks something, and whether that is how it ends.
    pub(crate) asks: Vec<bool>,
    pub(crate) is_question: Vec<bool>,
    /// How near a memory's time is to the one that the query names.
    pub(crate) date: Vec<f32>,
    /// Whether it is a turn of the speaker that the query names.
    pub(crate) is_named: Vec<bool>,
    /// Whether it holds the kind of answer that the query asks for.
    pub(crate) holds_kind: Vec<bool>,
    /// What each is worth by itself.
    pub(crate) worth: Vec<Worth>,
}

impl Known {
    /// Whether anything but neighbours adds to matches.
    fn has_extra(&self) -> bool {
        let flags = [&self.is_question, &self.is_named, &self.holds_kind];
        !self.date.is_empty() || flags.iter().any(|flags| !flags.is_empty())
    }
}

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
    pub(crate) known: &'a Known,
    /// Of the memories in play, ascending.
    pub(crate) slots: &'a [u32],
    /// Whether there is a query at all.
    pub(crate) has_query: bool,
    pub(crate) ranking: &'a Ranking,
    pub(crate) query: Option<&'a Similarity<'a>>,
    pub(crate) context: Option<&'a Similarity<'a>>,
    /// What date, speaker and being a question add, by ordinal; empty where nothing does.
    extra: Vec<f64>,
    /// The most that a relevance can add up to, and the sum of the weights in play.
    most: f64,
    total: f64,
}

/// The value of an ordinal; nothing where the vector is empty.
fn value<T: Copy + Default>(values: &[T], at: u32) -> T {
    values.get(at as usize).copied().unwrap_or_default()
}

impl Session {
    /// Whether neighbours add anything.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.previous + self.next + self.answer + self.second + self.alone > 0.0
    }

    /// The most that the terms in play add to a match of 1.
    fn most(&self, known: &Known) -> f64 {
        let neighbours = self.previous.max(self.next).max(self.answer) + self.second;
        let neighbours = neighbours.max(self.alone);
        let neighbours = if known.previous.is_empty() { 0.0 } else { neighbours };
        let date = if known.date.is_empty() { 0.0 } else { self.date };
        let speaker = if known.is_named.is_empty() { 0.0 } else { self.speaker };
        let kind = if known.holds_kind.is_empty() { 0.0 } else { self.kind };
        1.0 + neighbours + date + speaker + kind
    }

    /// What neighbours add; `positive` gives the match of an ordinal, at least 0, and 0 of none.
    fn lift(&self, known: &Known, at: u32, positive: impl Fn(u32) -> f64) -> f64 {
        let Some(nothing) = known.previous.len().checked_sub(1) else { return 0.0 };
        let of = |neighbours: &[u32], at: u32| neighbours[nothing.min(at as usize)];
        let (previous, next) = (of(&known.previous, at), of(&known.next, at));
        if previous == NONE && next == NONE {
            return if self.alone > 0.0 { self.alone * positive(at) } else { 0.0 };
        }
        let before = positive(previous);
        let answered = if value(&known.asks, previous) { self.answer * before } else { 0.0 };
        let first = (self.previous * before).max(self.next * positive(next)).max(answered);
        if self.second == 0.0 {
            return first;
        }
        let (second, other) = (of(&known.previous, previous), of(&known.next, next));
        first + self.second * positive(second).max(positive(other))
    }

    /// What a question loses; outside a session nobody answers.
    fn question(&self, known: &Known, at: u32) -> f64 {
        if value(&known.is_question, at) { self.question } else { 0.0 }
    }

    fn date(&self, known: &Known, at: u32) -> f64 {
        self.date * f64::from(value(&known.date, at))
    }

    fn speaker(&self, known: &Known, at: u32) -> f64 {
        if value(&known.is_named, at) { self.speaker } else { 0.0 }
    }

    fn kind(&self, known: &Known, at: u32) -> f64 {
        if value(&known.holds_kind, at) { self.kind } else { 0.0 }
    }

    /// What everything but neighbours adds.
    fn extra(&self, known: &Known, at: u32) -> f64 {
        let added = self.date(known, at) + self.speaker(known, at) + self.kind(known, at);
        added - self.question(known, at)
    }
}

impl<'a> Fused<'a> {
    pub(crate) fn new(
        known: &'a Known,
        slots: &'a [u32],
        has_query: bool,
        ranking: &'a Ranking,
        [query, context]: [Option<&'a Similarity<'a>>; 2],
    ) -> Self {
        let weights = &ranking.weights;
        let in_play = |is_in_play: bool, weight: f64| if is_in_play { weight } else { 0.0 };
        let relevance = in_play(has_query, weights.relevance);
        let total = relevance + in_play(context.is_some(), weights.context) + weights.of_worth();
        // Nothing in play weighs anything: all score 0.
        let total = if total > 0.0 { total } else { 1.0 };
        let (session, most) = (&ranking.session, ranking.session.most(known));
        let len = if known.has_extra() { slots.len() as u32 } else { 0 };
        let extra = (0..len).map(|at| session.extra(known, at)).collect();
        Self { known, slots, has_query, ranking, query, context, extra, most, total }
    }

    /// The match of a memory by itself, from its similarity.
    fn matched(&self, at: u32, similarity: f64) -> f64 {
        let share = self.ranking.similarity;
        // Without a vector a memory is like one at right angles to the query.
        let near = if similarity == f64::NEG_INFINITY { 0.0 } else { share * similarity };
        near + (1.0 - share) * f64::from(value(&self.known.keyword, at))
    }

    /// The match with all that the session tells, from 0 to 1 but where similarities are negative.
    fn relevance(&self, at: u32, matched: f64, lift: f64) -> f64 {
        (matched + lift + value(&self.extra, at)) / self.most
    }

    /// The score, from the relevance and the similarity with the context.
    fn score(&self, at: u32, relevance: f64, context: f64) -> f64 {
        let weights = &self.ranking.weights;
        let relevance = if self.has_query { weights.relevance * relevance } else { 0.0 };
        let near = if context == f64::NEG_INFINITY { 0.0 } else { weights.context * context };
        (relevance + near + weights.of(value(&self.known.worth, at))) / self.total
    }
}

/// A memory with its score, in the order of the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    pub(crate) score: f64,
    pub(crate) created_at: i64,
    pub(crate) id: [u8; 16],
    pub(crate) ordinal: u32,
}

impl Eq for Scored {}

impl Ord for Scored {
    /// Smaller is better: score, then newest, then smallest id (C164).
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(other.created_at.cmp(&self.created_at)).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Scored {
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

impl Exact<'_> {
    fn similarity(&self, at: u32) -> f64 {
        let Some(query) = self.fused.query else { return f64::NEG_INFINITY };
        let slot = self.fused.slots[at as usize];
        *self.similarities.borrow_mut().entry(at).or_insert_with(|| query.exact(slot))
    }

    fn upper(&self, at: u32) -> f64 {
        let Some(query) = self.fused.query else { return f64::NEG_INFINITY };
        let slot = self.fused.slots[at as usize];
        *self.uppers.borrow_mut().entry(at).or_insert_with(|| query.upper(slot))
    }

    fn context(&self, at: u32) -> f64 {
        let context = self.fused.context;
        context.map_or(f64::NEG_INFINITY, |context| context.exact(self.fused.slots[at as usize]))
    }

    fn matched(&self, at: u32) -> f64 {
        self.fused.matched(at, self.similarity(at))
    }

    fn lift(&self, at: u32) -> f64 {
        let positive = |at: u32| if at == NONE { 0.0 } else { self.matched(at).max(0.0) };
        self.fused.ranking.session.lift(self.fused.known, at, positive)
    }

    fn relevance(&self, at: u32) -> f64 {
        self.fused.relevance(at, self.matched(at), self.lift(at))
    }

    fn score(&self, at: u32) -> f64 {
        self.fused.score(at, self.relevance(at), self.context(at))
    }

    /// An upper bound of the score, closer than the first.
    fn closer(&self, at: u32) -> f64 {
        let matched = |at| self.fused.matched(at, self.upper(at));
        let positive = |at: u32| if at == NONE { 0.0 } else { matched(at).max(0.0) };
        let lift = self.fused.ranking.session.lift(self.fused.known, at, positive);
        self.fused.score(at, self.fused.relevance(at, matched(at), lift), self.context(at))
    }
}

impl Components {
    /// Those of a score that is a similarity and nothing else.
    pub(crate) fn of_similarity(similarity: f64) -> Self {
        let similarity = Some(similarity);
        Self { similarity, relevance: similarity, ..Self::default() }
    }
}

impl Exact<'_> {
    fn components(&self, at: u32) -> Components {
        let Fused { known, ranking, .. } = self.fused;
        let weights = &ranking.weights;
        let worth = value(&known.worth, at);
        let weighed = |weight: f64, value: f64| (weight > 0.0).then_some(value);
        let near = |similarity: f64| (similarity > f64::NEG_INFINITY).then_some(similarity);
        let components = Components {
            recency: weighed(weights.recency, worth.recency),
            importance: weighed(weights.importance, worth.importance),
            access: weighed(weights.access, worth.access),
            salience: weighed(weights.salience, worth.salience),
            context: near(self.context(at)),
            ..Components::default()
        };
        if !self.fused.has_query {
            return components;
        }
        let session = &ranking.session;
        let given = |is_given: bool, value: f64| is_given.then_some(value);
        Components {
            similarity: near(self.similarity(at)),
            keyword: weighed(1.0 - ranking.similarity, f64::from(value(&known.keyword, at))),
            neighbours: given(!known.previous.is_empty(), self.lift(at)),
            question: given(!known.is_question.is_empty(), -session.question(known, at)),
            date: given(!known.date.is_empty(), session.date(known, at)),
            speaker: given(!known.is_named.is_empty(), session.speaker(known, at)),
            kind: given(!known.holds_kind.is_empty(), session.kind(known, at)),
            relevance: Some(self.relevance(at)),
            ..components
        }
    }
}

/// The best of the memories in play.
pub(crate) struct Best {
    /// Best first.
    pub(crate) scored: Vec<Scored>,
    pub(crate) components: Vec<Components>,
}

/// Rank the memories in play; `place` tells what orders equal scores: creation and id.
pub(crate) fn rank(
    fused: &Fused<'_>,
    uppers: &Uppers,
    k: usize,
    least: Least,
    place: &dyn Fn(u32) -> (i64, [u8; 16]),
) -> Best {
    let exact = Exact { fused, similarities: RefCell::default(), uppers: RefCell::default() };
    let bounds = bounds_of(fused, uppers);
    let mut best = Kept { k, least: least.score, scored: BinaryHeap::new() };
    let offer = |best: &mut Kept, at: u32| {
        if exact.similarity(at) >= least.similarity && is_a_match(&exact, at) {
            let (created_at, id) = place(at);
            best.offer(Scored { score: exact.score(at), created_at, id, ordinal: at });
        }
    };
    let (promising, least_promising) = promising(&bounds, k);
    promising.iter().for_each(|at| offer(&mut best, *at));
    for (at, bound) in (0..).zip(&bounds) {
        // Those that are promising have been offered.
        if *bound < best.floor() || (*bound, Reverse(at)) >= least_promising {
            continue;
        }
        if exact.closer(at) >= best.floor() {
            offer(&mut best, at);
        }
    }
    let scored = best.scored.into_sorted_vec();
    let components = scored.iter().map(|hit| exact.components(hit.ordinal)).collect();
    Best { scored, components }
}

/// How many memories match at all, of which rank would answer the first k.
pub(crate) fn count(fused: &Fused<'_>, uppers: &Uppers, least: Least) -> usize {
    let exact = Exact { fused, similarities: RefCell::default(), uppers: RefCell::default() };
    let bounds = bounds_of(fused, uppers);
    let counts = |(at, bound): &(u32, &f64)| {
        **bound >= least.score
            && (least.similarity == f64::NEG_INFINITY || exact.similarity(*at) >= least.similarity)
            && is_a_match(&exact, *at)
            && (least.score == f64::NEG_INFINITY || exact.score(*at) >= least.score)
    };
    (0..).zip(&bounds).filter(counts).count()
}

/// Upper bounds of similarities, by ordinal; empty where there is nothing to compare with.
#[derive(Default)]
pub(crate) struct Uppers {
    pub(crate) query: Vec<f32>,
    pub(crate) context: Vec<f32>,
}

fn bounds_of(fused: &Fused<'_>, uppers: &Uppers) -> Vec<f64> {
    let upper = |values: &[f32], at: u32| {
        values.get(at as usize).map_or(f64::NEG_INFINITY, |upper| f64::from(*upper))
    };
    let nothing = fused.slots.len();
    let ordinals = 0..nothing as u32;
    let matched = |at| fused.matched(at, upper(&uppers.query, at));
    let mut bounds: Vec<f64> = ordinals.clone().map(matched).collect();
    if fused.known.previous.is_empty() {
        for (at, bound) in ordinals.zip(&mut bounds) {
            *bound = fused.score(at, fused.relevance(at, *bound, 0.0), upper(&uppers.context, at));
        }
        return bounds;
    }
    let mut positive: Vec<f64> = bounds.iter().map(|matched| matched.max(0.0)).collect();
    positive.push(0.0);
    let session = &fused.ranking.session;
    for (at, bound) in ordinals.zip(&mut bounds) {
        let lift = session.lift(fused.known, at, |at| positive[nothing.min(at as usize)]);
        *bound = fused.score(at, fused.relevance(at, *bound, lift), upper(&uppers.context, at));
    }
    bounds
}

/// A bound and the ordinal it belongs to; of equal bounds the smaller ordinal is larger.
type Bound = (f64, Reverse<u32>);

/// The ordinals with the largest bounds, largest first, and the least of these bounds.
fn promising(bounds: &[f64], k: usize) -> (Vec<u32>, Bound) {
    let wanted = LEAST_PROMISING.max(k.saturating_mul(2)).min(bounds.len());
    let mut heap: BinaryHeap<Reverse<OrderedBound>> = BinaryHeap::with_capacity(wanted);
    for (at, bound) in (0..).zip(bounds) {
        let bound = OrderedBound((*bound, Reverse(at)));
        if heap.len() < wanted {
            heap.push(Reverse(bound));
        } else if let Some(mut least) = heap.peek_mut()
            && bound > least.0
        {
            *least = Reverse(bound);
        }
    }
    let largest_first = heap.into_sorted_vec();
    let nothing = (f64::INFINITY, Reverse(0));
    let least = largest_first.last().map_or(nothing, |Reverse(bound)| bound.0);
    (largest_first.into_iter().map(|Reverse(OrderedBound((_, Reverse(at))))| at).collect(), least)
}

/// Bounds are never NaN.
#[derive(PartialEq, PartialOrd)]
struct OrderedBound(Bound);

impl Eq for OrderedBound {}

impl Ord for OrderedBound {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (&self.0, &other.0);
        one.0.total_cmp(&two.0).then(one.1.cmp(&two.1))
    }
}

/// Whether a memory has anything to do with the query.
fn is_a_match(exact: &Exact<'_>, at: u32) -> bool {
    let fused = exact.fused;
    if !fused.has_query || fused.query.is_some() && exact.similarity(at) > f64::NEG_INFINITY {
        return true;
    }
    value(&fused.known.keyword, at) > 0.0 || exact.lift(at) > 0.0
}

/// The k best so far.
struct Kept {
    k: usize,
    least: f64,
    /// The worst of them on top.
    scored: BinaryHeap<Scored>,
}

impl Kept {
    /// What a memory must score to be among them.
    fn floor(&self) -> f64 {
        match self.scored.peek() {
            Some(worst) if self.scored.len() == self.k => worst.score.max(self.least),
            _ => self.least,
        }
    }

    fn offer(&mut self, scored: Scored) {
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
