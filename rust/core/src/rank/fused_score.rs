//! One fused, exact ranking of every candidate.
//!
//! The score of a memory is one expression in float64, [`Fused::score`] over [`Fused::relevance`].
//! Every operation in it rounds monotonically and no similarity in it has a negative weight, so
//! over upper bounds of similarities it gives an upper bound of the score. Bounds of all memories
//! come from short codes; the leading memories are scored exactly, others only if their bound
//! reaches the k-th best score found so far.

use std::cell::RefCell;
use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::components::Components;
use super::cosine_scale::Rescaling;
use crate::columns::Tie;
use crate::rank::candidates::{CandidateSet, NONE, QueryFeatures, SpeakerTerm};
use crate::rank::keyword_match::Keywords;
use crate::rank::scoring_config::ScoringConfig;
use crate::rank::similarity::Similarity;
use crate::rank::static_score::StaticScores;

/// The score expression of every candidate.
pub(crate) struct Fused<'a> {
    pub(crate) candidates: &'a CandidateSet<'a>,
    pub(crate) scoring: &'a ScoringConfig,
    /// Whether there is a query at all.
    pub(crate) has_query: bool,
    pub(crate) query: Option<&'a Similarity<'a>>,
    pub(crate) context: Option<&'a Similarity<'a>>,
    /// Where cosines are put; `None` leaves them as they are.
    pub(crate) rescaling: Option<Rescaling>,
    /// Keyword matches, if keywords have a share.
    pub(crate) keywords: Option<Keywords<'a>>,
    pub(crate) features: QueryFeatures,
    /// Static scores, if they have a weight.
    pub(crate) static_scores: Option<StaticScores<'a>>,
    /// Whether neighbours lift matches.
    pub(crate) has_lift: bool,
    /// The shares of similarity in matches that are not those of the scoring, in order of ordinals;
    /// of two the one with the larger match counts.
    pub(crate) shares: Vec<(u32, [f64; 2])>,
    /// Which candidates are no hits, by ordinal: their matches count for neighbours alone. Empty if
    /// all may be hits.
    pub(crate) ruled_out: Vec<bool>,
    /// Whether dates, speakers, answer types or questions change scores.
    pub(super) has_extras: bool,
    /// The largest relevance, and the sum of the weights in use.
    pub(super) max_relevance: f64,
    pub(super) total: f64,
}

/// The value of an ordinal; the default if the vector is empty.
pub(super) fn value<T: Copy + Default>(values: &[T], at: u32) -> T {
    values.get(at as usize).copied().unwrap_or_default()
}

/// What a cosine, or an upper bound of one, counts as.
fn placed(rescaling: Option<Rescaling>, cosine: f64) -> f64 {
    rescaling.map_or(cosine, |rescaling| rescaling.of(cosine))
}

/// The part of a cosine in a match; a memory without a vector counts as orthogonal to the query.
pub(super) fn near(rescaling: Option<Rescaling>, share: f64, cosine: f64) -> f64 {
    if cosine == f64::NEG_INFINITY { 0.0 } else { share * placed(rescaling, cosine) }
}

impl<'a> Fused<'a> {
    pub(crate) fn new(
        candidates: &'a CandidateSet<'a>,
        scoring: &'a ScoringConfig,
        has_query: bool,
        [query, context]: [Option<&'a Similarity<'a>>; 2],
    ) -> Self {
        Self {
            candidates,
            scoring,
            has_query,
            query,
            context,
            rescaling: None,
            keywords: None,
            features: QueryFeatures::default(),
            static_scores: None,
            has_lift: false,
            shares: Vec::new(),
            ruled_out: Vec::new(),
            has_extras: false,
            max_relevance: 1.0,
            total: 1.0,
        }
    }

    /// Compute the divisors of relevances and scores, once all else is set.
    pub(crate) fn scaled(mut self) -> Self {
        let (session, weights) = (&self.scoring.session, &self.scoring.weights);
        let weight_if = |is_present: bool, weight: f64| if is_present { weight } else { 0.0 };
        let asks = self.features.has_text && session.question > 0.0;
        let has_role = self.features.role.is_some();
        let names = self.features.speaker.is_some() || self.features.answer_type.is_some();
        let max_of_newness = self.features.max_of_newness();
        self.has_extras = asks || has_role || names || self.features.has_time();
        self.max_relevance = 1.0
            + weight_if(self.has_lift, session.max_of_neighbours())
            + weight_if(!self.features.dates.is_empty(), session.max_of_date())
            + max_of_newness
            + self.max_of_extras(|_| true);
        self.total = weight_if(self.has_query, weights.relevance)
            + weight_if(self.context.is_some(), weights.context)
            + weights.of_static_score();
        if self.total == 0.0 {
            self.total = 1.0; // nothing in play weighs anything: all score 0
        }
        self
    }

    /// Divide all matches by a match.
    pub(crate) fn divide_matches(&mut self, best: f64) {
        self.max_relevance *= best;
    }

    /// The largest sum of the terms of speaker, if it counts, and answer type.
    pub(super) fn max_of_extras(&self, counts: impl Fn(&SpeakerTerm) -> bool) -> f64 {
        let session = &self.scoring.session;
        let speaker = self.features.speaker.as_ref().filter(|term| counts(term));
        let answer_type =
            if self.features.answer_type.is_some() { session.answer_type } else { 0.0 };
        speaker.map_or(0.0, |term| term.size) + answer_type
    }

    /// The keyword match of a memory; 0 if keywords have no share.
    pub(super) fn keyword(&self, at: u32) -> f64 {
        self.keywords.as_ref().map_or(0.0, |keywords| f64::from(keywords.of(at)))
    }

    /// The share of similarity in the match of a memory.
    pub(super) fn share(&self, at: u32, similarity: f64) -> f64 {
        let Ok(found) = self.shares.binary_search_by_key(&at, |(at, _)| *at) else {
            return self.scoring.similarity;
        };
        let [share, other] = self.shares[found].1;
        let matched = |share| self.matched_by(at, similarity, share);
        if other > share && matched(other) > matched(share) { other } else { share }
    }

    /// The match of a memory by itself, from its similarity.
    pub(super) fn matched(&self, at: u32, similarity: f64) -> f64 {
        self.matched_by(at, similarity, self.share(at, similarity))
    }

    fn matched_by(&self, at: u32, similarity: f64, share: f64) -> f64 {
        near(self.rescaling, share, similarity) - self.of_chunks(at, share)
            + (1.0 - share) * self.keyword(at)
    }

    /// What a cosine counts as.
    pub(super) fn placed(&self, cosine: f64) -> f64 {
        placed(self.rescaling, cosine)
    }

    /// Whether the number of chunks changes scores.
    fn penalises_chunks(&self) -> bool {
        self.scoring.similarity * self.scoring.chunk_penalty > 0.0 && self.query.is_some()
    }

    /// The term of the number of chunks, from the share of similarity: the nearest of many is near by
    /// chance.
    fn of_chunks(&self, at: u32, share: f64) -> f64 {
        let Some(query) = self.query.filter(|_| self.penalises_chunks()) else { return 0.0 };
        let chunks = query.chunks_of(self.candidates.docids[at as usize]).max(1);
        share * self.scoring.chunk_penalty * f64::from(chunks).ln()
    }

    /// The match with the terms of the session, from 0 to 1 unless similarities are negative.
    pub(super) fn relevance(&self, at: u32, matched: impl Fn(u32) -> f64) -> f64 {
        if !self.has_extras && !self.has_lift {
            return matched(at) / self.max_relevance;
        }
        let extra = self.extra(at);
        let own = matched(at);
        let of_newness = self.features.of_newness(at, own);
        (own + of_newness + self.lift(at, &matched) + extra) / self.max_relevance
    }

    /// The score, from the relevance and the similarity with the context.
    pub(super) fn score(&self, at: u32, relevance: f64, context: f64) -> f64 {
        self.sum(relevance, context, self.static_score(at))
    }

    /// The score, from its parts; it grows with each.
    pub(super) fn sum(&self, relevance: f64, context: f64, static_score: f64) -> f64 {
        let weights = &self.scoring.weights;
        // A bound may be infinite, and 0 times infinity is NaN.
        let is_weighed = self.has_query && weights.relevance > 0.0;
        // Beside other parts a negative similarity counts as none; alone it decides the order.
        let relevance = if self.is_relevance_alone() { relevance } else { relevance.max(0.0) };
        let relevance = if is_weighed { weights.relevance * relevance } else { 0.0 };
        let near = weights.context * self.placed(context).max(0.0);
        (relevance + near + static_score) / self.total
    }

    /// The static score of a memory.
    pub(super) fn static_score(&self, at: u32) -> f64 {
        self.static_scores.as_ref().map_or(0.0, |static_scores| static_scores.sum(at))
    }

    /// An upper bound of that.
    pub(super) fn static_score_upper(&self, at: u32) -> f64 {
        self.static_scores.as_ref().map_or(0.0, |static_scores| static_scores.uppers[at as usize])
    }

    /// Whether the score is a match and a static score alone.
    pub(super) fn is_plain(&self) -> bool {
        let matches = self.has_query && self.scoring.weights.relevance > 0.0;
        matches && !self.has_lift && !self.has_extras && self.context.is_none()
    }

    /// Whether the score is a static score alone.
    pub(super) fn is_static(&self) -> bool {
        !self.has_query && self.context.is_none()
    }

    /// Whether the score is the relevance alone.
    pub(super) fn is_relevance_alone(&self) -> bool {
        self.has_query && self.static_scores.is_none() && self.context.is_none()
    }
}

/// A memory with its score, in the order of the answer.
#[derive(Clone, Copy)]
pub(crate) struct Scored<'candidates> {
    pub(crate) score: f64,
    pub(crate) tie: Tie<'candidates>,
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
pub(crate) struct Exact<'a> {
    pub(super) fused: &'a Fused<'a>,
    similarities: RefCell<FxHashMap<u32, f64>>,
    uppers: RefCell<FxHashMap<u32, f64>>,
}

impl<'a> Exact<'a> {
    pub(crate) fn new(fused: &'a Fused<'a>) -> Self {
        Self { fused, similarities: RefCell::default(), uppers: RefCell::default() }
    }

    pub(super) fn similarity(&self, at: u32) -> f64 {
        let Some(query) = self.fused.query else { return f64::NEG_INFINITY };
        let docid = self.fused.candidates.docids[at as usize];
        *self.similarities.borrow_mut().entry(at).or_insert_with(|| query.exact(docid))
    }

    /// An upper bound of the similarity, closer than the first.
    pub(super) fn upper(&self, at: u32) -> f64 {
        let Some(query) = self.fused.query else { return f64::NEG_INFINITY };
        let docid = self.fused.candidates.docids[at as usize];
        *self.uppers.borrow_mut().entry(at).or_insert_with(|| query.upper(docid))
    }

    /// Compute the similarities that the exact scores of some memories need, all at once.
    pub(super) fn look_up(&self, some: &[u32]) {
        self.add_needed(some, &self.similarities, Similarity::exact_of);
    }

    /// Compute the closer bounds that those of the scores of some memories need.
    pub(super) fn look_up_bounds(&self, some: &[u32]) {
        self.add_needed(some, &self.uppers, Similarity::uppers_of);
    }

    fn add_needed(
        &self,
        some: &[u32],
        known: &RefCell<FxHashMap<u32, f64>>,
        of: impl Fn(&Similarity<'a>, &[u32]) -> Vec<f64>,
    ) {
        let Some(query) = self.fused.query else { return };
        let known = &mut *known.borrow_mut();
        let needed = self.needed(some, known);
        let docid = |at: &u32| self.fused.candidates.docids[*at as usize];
        let docids: Vec<u32> = needed.iter().map(docid).collect();
        known.extend(needed.into_iter().zip(of(query, &docids)));
    }

    /// Those of some memories and the neighbours that lift them that are not known, ascending.
    fn needed(&self, some: &[u32], known: &FxHashMap<u32, f64>) -> Vec<u32> {
        let mut needed = some.to_vec();
        if self.fused.has_lift {
            needed.extend(some.iter().flat_map(|at| self.fused.candidates.around(*at)));
        }
        needed.retain(|at| *at != NONE && !known.contains_key(at));
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    pub(super) fn context(&self, at: u32) -> f64 {
        let docid = self.fused.candidates.docids[at as usize];
        self.fused.context.map_or(f64::NEG_INFINITY, |context| context.exact(docid))
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
        let (fused, features) = (self.fused, &self.fused.features);
        let (scoring, weights) = (fused.scoring, &fused.scoring.weights);
        let static_score = fused.static_scores.as_ref();
        let static_score = static_score.map(|scores| scores.of(at)).unwrap_or_default();
        let given = |is_given: bool, value: f64| is_given.then_some(value);
        let near = |similarity: f64| (similarity > f64::NEG_INFINITY).then_some(similarity);
        let components = Components {
            recency: given(weights.recency > 0.0, static_score.recency),
            importance: given(weights.importance > 0.0, static_score.importance),
            access: given(weights.access > 0.0, static_score.access),
            salience: given(weights.salience > 0.0, static_score.salience),
            context: near(self.context(at)),
            ..Components::default()
        };
        if !fused.has_query {
            return components;
        }
        let asks = features.has_text && scoring.session.question > 0.0;
        let share = fused.share(at, self.similarity(at));
        Components {
            similarity: near(self.similarity(at)),
            keyword: given(scoring.similarity < 1.0, fused.keyword(at)),
            share: given(scoring.similarity < 1.0, share),
            chunks: given(fused.penalises_chunks(), 0.0 - fused.of_chunks(at, share)),
            neighbours: given(fused.has_lift, self.lift(at)),
            question: given(asks, 0.0 - fused.of_question(at)),
            role: given(features.role.is_some(), 0.0 - fused.of_role(at)),
            date: given(
                features.has_time(),
                fused.of_date(at) + features.of_newness(at, self.matched(at)),
            ),
            speaker: given(features.speaker.is_some(), fused.of_speaker(at)),
            answer_type: given(features.answer_type.is_some(), fused.of_answer_type(at)),
            relevance: Some(self.relevance(at)),
            ..components
        }
    }
}
