//! The reasons for one score: its parts, and the words, neighbour, date, role and speaker behind them.

use std::sync::Arc;

use super::components::Components;
use super::fused_score::{Exact, near};
use super::signals::nearness;
use crate::lexical::MatchedWord;
use crate::rank::candidates::CandidateSet;
use crate::text::{DateRange, Role};

/// Nearness from which on a date is a reason: the memory is less than a month away from it.
const NEAR_DATE: f32 = 0.01;

/// The reasons for one score.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Why {
    /// The parts of the score by their weights: with `clamped` they add up to it, but for rounding.
    pub shares: Components,
    /// The part of a negative match that does not count beside other parts of the score.
    pub clamped: f64,
    /// The words of the query that the memory or an earlier turn has, the weightiest first.
    pub words: Vec<MatchedWord>,
    /// The id of the turn of its session that lifted it most.
    pub neighbour: Option<[u8; 16]>,
    /// The time that the query names and the memory is near to.
    pub date: Option<DateRange>,
    /// Its own role, if the query is about the other one.
    pub role: Option<Role>,
    /// Its speaker, if the query names that one.
    pub speaker: Option<Arc<str>>,
}

impl Why {
    /// Those of a score that is a similarity and nothing else.
    pub(crate) fn of_similarity(similarity: f64) -> Self {
        let shares = Components { similarity: Some(similarity), ..Components::default() };
        Self { shares, ..Self::default() }
    }
}

impl Exact<'_> {
    /// The reasons for the score of a memory.
    pub(crate) fn why(&self, at: u32) -> Why {
        let (fused, features) = (self.fused, &self.fused.features);
        let candidates = fused.candidates;
        let (shares, clamped) = self.shares(at);
        let named = fused.of_speaker(at) > 0.0;
        let lifting = fused.lifting(at, |at| self.matched(at));
        Why {
            shares,
            clamped,
            words: fused.keywords.as_ref().map_or_else(Vec::new, |keywords| keywords.words_of(at)),
            neighbour: lifting.map(|neighbour| id_of(candidates, neighbour)),
            date: near_date(candidates, &features.date_ranges, at),
            role: (fused.of_role(at) > 0.0).then(|| features.role.map(Role::other)).flatten(),
            speaker: named.then(|| candidates.speaker_name(at)).flatten(),
        }
    }

    /// The parts of the score by their weights, and what of a negative match does not count.
    fn shares(&self, at: u32) -> (Components, f64) {
        let (fused, parts) = (self.fused, self.components(at));
        let (weights, total) = (&fused.scoring.weights, fused.total);
        let static_share = |weight: f64, part: Option<f64>| part.map(|part| weight * part / total);
        let beside = Components {
            recency: static_share(weights.recency, parts.recency),
            importance: static_share(weights.importance, parts.importance),
            access: static_share(weights.access, parts.access),
            salience: static_share(weights.salience, parts.salience),
            context: static_share(
                weights.context,
                parts.context.map(|near| fused.placed(near).max(0.0)),
            ),
            ..Components::default()
        };
        if !fused.has_query || weights.relevance == 0.0 {
            return (beside, 0.0);
        }
        let unit = weights.relevance / total / fused.max_relevance;
        let of_match = |part: Option<f64>| part.map(|part| unit * part);
        let share = fused.share(at, self.similarity(at));
        let shares = Components {
            similarity: of_match(
                parts.similarity.map(|cosine| near(fused.rescaling, share, cosine)),
            ),
            keyword: of_match(parts.keyword.map(|keyword| (1.0 - share) * keyword)),
            chunks: of_match(parts.chunks),
            neighbours: of_match(parts.neighbours),
            question: of_match(parts.question),
            role: of_match(parts.role),
            date: of_match(parts.date),
            speaker: of_match(parts.speaker),
            answer_type: of_match(parts.answer_type),
            ..beside
        };
        let relevance = unit * fused.max_relevance * parts.relevance.unwrap_or_default();
        let counts = fused.is_relevance_alone() || relevance >= 0.0;
        (shares, if counts { 0.0 } else { -relevance })
    }
}

fn id_of(candidates: &CandidateSet<'_>, at: u32) -> [u8; 16] {
    candidates.columns.tie_of(candidates.docids[at as usize]).id
}

/// The nearest of the ranges, if it is near.
fn near_date(candidates: &CandidateSet<'_>, ranges: &[DateRange], at: u32) -> Option<DateRange> {
    let docid = candidates.docids[at as usize];
    let created_at = candidates.attribute(docid, |block, at| block.attributes.created_at[at])?;
    let near = |range: &DateRange| nearness((range.start, range.end), created_at);
    let nearest = ranges.iter().max_by(|one, other| near(one).total_cmp(&near(other)))?;
    (near(nearest) >= NEAR_DATE).then_some(*nearest)
}
