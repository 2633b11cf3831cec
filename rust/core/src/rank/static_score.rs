//! Static scores: an upper bound of each, and the exact value on demand.

use crate::Error;
use crate::columns::{BlockAttributes, NONE as MISSING};
use crate::rank::candidates::CandidateSet;
use crate::rank::scoring_config::{ScoringConfig, StaticScore};
use crate::rank::signals::{self, Halving, RecencyUpper, Signals};

/// More than the rounding of a few operations on numbers from 0 to 1.
const ABOVE: f64 = 1.0 + 1e-12;

/// The static scores of the candidates.
pub(crate) struct StaticScores<'a> {
    candidates: &'a CandidateSet<'a>,
    scoring: &'a ScoringConfig,
    now: i64,
    /// By ordinal, where recency is a rank among all.
    ranks: Vec<f64>,
    /// Upper bounds of the weighted sums, by ordinal.
    pub(crate) uppers: Vec<f64>,
}

impl<'a> StaticScores<'a> {
    /// The static scores by a scoring that weighs them.
    pub(crate) fn new(
        candidates: &'a CandidateSet<'a>,
        scoring: &'a ScoringConfig,
        now: i64,
        ranks: Vec<f64>,
    ) -> Result<Self, Error> {
        let weights = &scoring.weights;
        let mut static_scores = Self { candidates, scoring, now, ranks, uppers: Vec::new() };
        let recency_alone = weights.of_static_score() <= weights.recency;
        if scoring.needs_newest_ranks() && recency_alone {
            let sum =
                |rank: &f64| weights.of(StaticScore { recency: *rank, ..StaticScore::default() });
            static_scores.uppers = static_scores.ranks.iter().map(sum).collect();
        } else if scoring.needs_newest_ranks() {
            static_scores.uppers =
                (0..candidates.docids.len() as u32).map(|at| static_scores.sum(at)).collect();
        } else if weights.salience > 0.0 {
            let halving = Halving::new(scoring.salience.half_life_days);
            let upper = |signals: &Signals| {
                let salience = scoring.salience.upper(signals, now, &halving);
                let others =
                    StaticScore { salience: 0.0, ..static_scores.static_score(0, signals, false) };
                weights.of(others) + weights.salience * salience
            };
            static_scores.uppers =
                candidates.of_each(|block, at| upper(&signals(block, at)) * ABOVE)?;
        } else {
            let recency = RecencyUpper::new(scoring.recency);
            let upper = |signals: &Signals| {
                weights.recency * recency.of(signals, now)
                    + weights.importance * signals.importance
                    + weights.access * signals::access(signals.access_count)
            };
            static_scores.uppers =
                candidates.of_each(|block, at| upper(&signals(block, at)) * ABOVE)?;
        }
        Ok(static_scores)
    }

    /// The static score of one memory.
    pub(crate) fn sum(&self, at: u32) -> f64 {
        self.scoring.weights.of(self.of(at))
    }

    /// The parts of one memory's static score.
    pub(crate) fn of(&self, at: u32) -> StaticScore {
        let docid = self.candidates.docids[at as usize];
        let signals = self.candidates.attribute(docid, signals);
        signals.map_or_else(StaticScore::default, |signals| self.static_score(at, &signals, true))
    }

    fn static_score(&self, at: u32, signals: &Signals, with_salience: bool) -> StaticScore {
        let weights = &self.scoring.weights;
        let weighed =
            |weight: f64, value: &dyn Fn() -> f64| if weight > 0.0 { value() } else { 0.0 };
        let recency = || match self.ranks.get(at as usize) {
            Some(rank) => *rank,
            None => self.scoring.recency.of(signals, self.now),
        };
        StaticScore {
            recency: weighed(weights.recency, &recency),
            importance: weighed(weights.importance, &|| signals.importance),
            access: weighed(weights.access, &|| signals::access(signals.access_count)),
            salience: weighed(if with_salience { weights.salience } else { 0.0 }, &|| {
                self.scoring.salience.of(signals, self.now)
            }),
        }
    }
}

/// The recency of each memory as a rank among all.
///
/// # Errors
///
/// When the deadline passes.
pub(crate) fn newest_ranks(candidates: &CandidateSet<'_>) -> Result<Vec<f64>, Error> {
    let created_at = candidates.of_each(|block, at| block.attributes.created_at[at])?;
    let ranks = signals::newest_ranks(&created_at);
    candidates.deadline.check()?;
    Ok(ranks)
}

/// The attributes behind a memory's static score.
pub(crate) fn signals(block: &BlockAttributes<'_>, at: usize) -> Signals {
    let BlockAttributes { attributes, accesses, .. } = block;
    Signals {
        created_at: attributes.created_at[at],
        last_accessed_at: Some(accesses.last_accessed_at[at]).filter(|time| *time != MISSING),
        access_count: accesses.access_count[at],
        importance: attributes.importance[at],
    }
}
