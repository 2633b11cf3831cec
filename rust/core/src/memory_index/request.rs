//! Requests to a memory index and their results.

use crate::columns::Ask;
use crate::memory::links::{Link, Path};
use crate::rank::components::Components;
use crate::rank::scoring_config::ScoringConfig;
use crate::rank::sort_key::SortKey;

/// What to rank, and by what.
pub struct Request<'a> {
    /// Which memories are in play.
    pub ask: Ask<'a>,
    /// What a score is made of.
    pub scoring: &'a ScoringConfig,
    /// What keywords are looked for; nothing where there is no query.
    pub text: Option<&'a str>,
    /// Vectors of the query, one after the other: the nearest counts.
    pub vectors: &'a [f32],
    /// Vectors of a context.
    pub context: &'a [f32],
    /// How many hits are wanted.
    pub k: usize,
    /// Least cosine of a hit, where negative ones count as 0.
    pub min_similarity: Option<f64>,
    /// Least score of a hit.
    pub min_score: Option<f64>,
    /// Whether to count all that match.
    pub with_total: bool,
    /// In what order, where it is not that of the score.
    pub sort_key: Option<SortKey>,
    /// Least salience of a hit.
    pub min_salience: Option<f64>,
    /// What matches are divided by before other parts of the score are added; 0 is the best match
    /// in play. Not in an order that was asked for.
    pub best_match: Option<f64>,
}

/// A memory found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The store's number.
    pub row: i64,
    /// The bytes of the UUID.
    pub id: [u8; 16],
    /// What the order is by: the score, or the key of the order that was asked for.
    pub score: f64,
    /// The parts of the score.
    pub components: Components,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Best first: score, then newest, then smallest id (C164).
    pub hits: Vec<Hit>,
    /// How many match, where it was asked for.
    pub total: Option<usize>,
}

/// Links that take the place of all that led from some rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Links<'a> {
    /// The rows whose links these are.
    pub from: &'a [i64],
    /// All that lead from them.
    pub links: &'a [Link],
}

/// A memory that links lead to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkedHit {
    /// The store's number.
    pub row: i64,
    /// The bytes of the UUID.
    pub id: [u8; 16],
    /// The product of the strengths on its path.
    pub strength: f64,
    /// The links on its path.
    pub path: Path,
}

/// What links lead to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Linked {
    /// Strongest first.
    pub hits: Vec<LinkedHit>,
    /// How many there are in all.
    pub total: usize,
}
