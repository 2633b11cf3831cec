//! What memories are worth by themselves: an upper bound of each, and the value where it is asked.

use crate::columns::{ChunkFacts, NONE as MISSING};
use crate::rank::candidates::Play;
use crate::rank::scoring_config::{Ranking, Worth};
use crate::rank::signals::{self, Facts, Halving, Recency, RecencyUpper};

/// More than roundings of a few operations on numbers from 0 to 1 can take away.
const ABOVE: f64 = 1.0 + 1e-12;

/// The worths of the memories in play.
pub(crate) struct Worths<'a> {
    play: &'a Play<'a>,
    ranking: &'a Ranking,
    now: i64,
    /// By ordinal, where recency is a rank among all.
    ranks: Vec<f64>,
    /// Upper bounds of the weighted sums, by ordinal.
    pub(crate) uppers: Vec<f64>,
}

impl<'a> Worths<'a> {
    /// The worths by a ranking that weighs them.
    pub(crate) fn new(play: &'a Play<'a>, ranking: &'a Ranking, now: i64) -> Self {
        let weights = &ranking.weights;
        let mut worths = Self { play, ranking, now, ranks: Vec::new(), uppers: Vec::new() };
        if weights.recency > 0.0 && ranking.recency == Recency::NewestRank {
            let created_at = play.of_each(|chunk, at| chunk.created_at[at]);
            worths.ranks = signals::newest_ranks(&created_at);
            worths.uppers = (0..play.slots.len() as u32).map(|at| worths.sum(at)).collect();
        } else if weights.salience > 0.0 {
            let halving = Halving::new(ranking.salience.days);
            let upper = |facts: &Facts| {
                let salience = ranking.salience.upper(facts, now, &halving);
                let others = Worth { salience: 0.0, ..worths.worth(0, facts, false) };
                weights.of(others) + weights.salience * salience
            };
            worths.uppers = play.of_each(|chunk, at| upper(&facts(chunk, at)) * ABOVE);
        } else {
            let recency = RecencyUpper::new(ranking.recency);
            let upper = |facts: &Facts| {
                weights.recency * recency.of(facts, now)
                    + weights.importance * facts.importance
                    + weights.access * signals::access(facts.access_count)
            };
            worths.uppers = play.of_each(|chunk, at| upper(&facts(chunk, at)) * ABOVE);
        }
        worths
    }

    /// The weighted sum of one memory's worth.
    pub(crate) fn sum(&self, at: u32) -> f64 {
        self.ranking.weights.of(self.of(at))
    }

    /// The parts of one memory's worth.
    pub(crate) fn of(&self, at: u32) -> Worth {
        let slot = self.play.slots[at as usize];
        let facts = self.play.fact(slot, facts);
        facts.map_or_else(Worth::default, |facts| self.worth(at, &facts, true))
    }

    fn worth(&self, at: u32, facts: &Facts, with_salience: bool) -> Worth {
        let weights = &self.ranking.weights;
        let weighed =
            |weight: f64, value: &dyn Fn() -> f64| if weight > 0.0 { value() } else { 0.0 };
        let recency = || match self.ranks.get(at as usize) {
            Some(rank) => *rank,
            None => self.ranking.recency.of(facts, self.now),
        };
        Worth {
            recency: weighed(weights.recency, &recency),
            importance: weighed(weights.importance, &|| facts.importance),
            access: weighed(weights.access, &|| signals::access(facts.access_count)),
            salience: weighed(if with_salience { weights.salience } else { 0.0 }, &|| {
                self.ranking.salience.of(facts, self.now)
            }),
        }
    }
}

/// What a memory's worth is derived from.
pub(crate) fn facts(chunk: &ChunkFacts<'_>, at: usize) -> Facts {
    Facts {
        created_at: chunk.created_at[at],
        last_accessed_at: Some(chunk.last_accessed_at[at]).filter(|time| *time != MISSING),
        access_count: chunk.access_count[at],
        importance: chunk.importance[at],
    }
}
