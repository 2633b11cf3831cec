//! One fused, exact ranking of every memory in play.
//!
//! What a memory scores is one expression in float64, [`Fused::score`] over [`Fused::relevance`].
//! Every operation in it rounds monotonically and no similarity in it has a negative weight, so over
//! upper bounds of similarities it gives an upper bound of the score. Bounds of all memories come
//! from short codes; the most promising are scored exactly, and others only where their bound
//! reaches the k-th best score found so far.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

use super::components::Components;
use crate::columns::Tie;
use crate::rank::candidates::{Asked, Play};
use crate::rank::keyword_match::Keywords;
use crate::rank::scoring_config::{Ranking, Worth};
use crate::rank::similarity::Similarity;
use crate::rank::static_score::Worths;

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
    pub(super) has_extras: bool,
    /// The most that a relevance can add up to, and the sum of the weights in play.
    pub(super) most: f64,
    pub(super) total: f64,
}

/// The value of an ordinal; nothing where the vector is empty.
pub(super) fn value<T: Copy + Default>(values: &[T], at: u32) -> T {
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
    pub(super) fn most_of_small_extras(&self) -> f64 {
        let session = &self.ranking.session;
        let speaker = if self.asked.speaker.is_some() { session.speaker } else { 0.0 };
        let kind = if self.asked.kind.is_some() { session.kind } else { 0.0 };
        speaker + kind
    }

    /// The keyword match of a memory; 0 where keywords have no share.
    pub(super) fn keyword(&self, at: u32) -> f64 {
        self.keywords.as_ref().map_or(0.0, |keywords| f64::from(keywords.of(at)))
    }

    /// The match of a memory by itself, from its similarity.
    pub(super) fn matched(&self, at: u32, similarity: f64) -> f64 {
        let share = self.ranking.similarity;
        // Without a vector a memory is like one at right angles to the query.
        let near = if similarity == f64::NEG_INFINITY { 0.0 } else { share * similarity };
        near + (1.0 - share) * self.keyword(at)
    }

    /// What neighbours add to a match; `matched` gives that of an ordinal.
    pub(super) fn lift(&self, at: u32, matched: impl Fn(u32) -> f64) -> f64 {
        if !self.has_lift {
            return 0.0;
        }
        self.play.lift(&self.ranking.session, at, |at| matched(at).max(0.0))
    }

    /// The match with all that the session tells, from 0 to 1 but where similarities are negative.
    pub(super) fn relevance(&self, at: u32, matched: impl Fn(u32) -> f64) -> f64 {
        if !self.has_extras && !self.has_lift {
            return matched(at) / self.most;
        }
        let extra = self.play.extra(&self.ranking.session, &self.asked, at);
        (matched(at) + self.lift(at, &matched) + extra) / self.most
    }

    /// The score, from the relevance and the similarity with the context.
    pub(super) fn score(&self, at: u32, relevance: f64, context: f64) -> f64 {
        self.sum(relevance, context, self.worth(at))
    }

    /// The score, from its parts; it grows with each.
    pub(super) fn sum(&self, relevance: f64, context: f64, worth: f64) -> f64 {
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
    pub(super) fn worth(&self, at: u32) -> f64 {
        self.worths.as_ref().map_or(0.0, |worths| worths.sum(at))
    }

    /// An upper bound of that.
    pub(super) fn worth_upper(&self, at: u32) -> f64 {
        self.worths.as_ref().map_or(0.0, |worths| worths.uppers[at as usize])
    }

    /// Whether a score is a match, and what the memory is worth by itself, and nothing else.
    pub(super) fn is_plain(&self) -> bool {
        let matches = self.has_query && self.ranking.weights.relevance > 0.0;
        matches && !self.has_lift && !self.has_extras && self.context.is_none()
    }

    /// Whether the score is the relevance alone.
    pub(super) fn is_relevance_alone(&self) -> bool {
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
pub(super) struct Exact<'a> {
    pub(super) fused: &'a Fused<'a>,
    similarities: RefCell<HashMap<u32, f64>>,
    uppers: RefCell<HashMap<u32, f64>>,
}

impl<'a> Exact<'a> {
    pub(super) fn new(fused: &'a Fused<'a>) -> Self {
        Self { fused, similarities: RefCell::default(), uppers: RefCell::default() }
    }

    pub(super) fn similarity(&self, at: u32) -> f64 {
        let Some(query) = self.fused.query else { return f64::NEG_INFINITY };
        let slot = self.fused.play.slots[at as usize];
        *self.similarities.borrow_mut().entry(at).or_insert_with(|| query.exact(slot))
    }

    /// An upper bound of the similarity, closer than the first.
    pub(super) fn upper(&self, at: u32) -> f64 {
        let Some(query) = self.fused.query else { return f64::NEG_INFINITY };
        let slot = self.fused.play.slots[at as usize];
        *self.uppers.borrow_mut().entry(at).or_insert_with(|| query.upper(slot))
    }

    pub(super) fn context(&self, at: u32) -> f64 {
        let slot = self.fused.play.slots[at as usize];
        self.fused.context.map_or(f64::NEG_INFINITY, |context| context.exact(slot))
    }

    pub(super) fn matched(&self, at: u32) -> f64 {
        self.fused.matched(at, self.similarity(at))
    }

    pub(super) fn lift(&self, at: u32) -> f64 {
        self.fused.lift(at, |at| self.matched(at))
    }

    pub(super) fn relevance(&self, at: u32) -> f64 {
        self.fused.relevance(at, |at| self.matched(at))
    }

    pub(super) fn score(&self, at: u32) -> f64 {
        self.fused.score(at, self.relevance(at), self.context(at))
    }

    /// An upper bound of the score, closer than the first.
    pub(super) fn closer(&self, at: u32) -> f64 {
        let relevance = self.fused.relevance(at, |at| self.fused.matched(at, self.upper(at)));
        self.fused.score(at, relevance, self.context(at))
    }

    pub(super) fn components(&self, at: u32) -> Components {
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
