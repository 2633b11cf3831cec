//! Requests to a memory index and their results.

use crate::columns::{Ask, Record};
use crate::memory::links::{Link, Path};
use crate::rank::components::Components;
use crate::rank::cosine_scale::CosineScale;
use crate::rank::evidence::EvidenceFloor;
use crate::rank::scoring_config::ScoringConfig;
use crate::rank::sort_key::SortKey;
use crate::rank::why::Why;

/// A ranking request.
pub struct Request<'a> {
    /// The selection of candidates.
    pub ask: Ask<'a>,
    /// The scoring.
    pub scoring: &'a ScoringConfig,
    /// The query for keywords; `None` without one.
    pub text: Option<&'a str>,
    /// Vectors of the query, one after the other: the nearest counts.
    pub vectors: &'a [f32],
    /// Vectors of a context.
    pub context: &'a [f32],
    /// How many hits are wanted.
    pub k: usize,
    /// How many of the best are skipped before them.
    pub offset: usize,
    /// Least cosine of a hit; without a vector a memory reaches none.
    pub min_similarity: Option<f64>,
    /// Least score of a hit.
    pub min_score: Option<f64>,
    /// The scale that cosines are put on before other parts of a score are added; `None` adds them as
    /// they are.
    pub scale: Option<CosineScale>,
    /// The evidence without which there is no hit at all; ignored with a sort key.
    pub evidence: Option<EvidenceFloor>,
    /// Whether to count all that match.
    pub with_total: bool,
    /// Whether hits get their reasons.
    pub explains: bool,
    /// The sort key; `None` sorts by score.
    pub sort_key: Option<SortKey>,
    /// Least salience of a hit.
    pub min_salience: Option<f64>,
    /// Divisor of matches before other parts of the score are added; 0 is the best match of the
    /// candidates. Ignored with a sort key.
    pub best_match: Option<f64>,
    /// Whether hits that are complete at the deadline are answered in place of an error. Each has its
    /// full score and passed all filters; better ones may be missing.
    pub takes_partial: bool,
    /// Rows that a source of candidates proposes, in any order; `None` ranks all candidates. Unknown,
    /// repeated and unselected rows are ignored.
    ///
    /// Then only these are considered, the best keyword candidates, and the neighbours of both in
    /// their sessions. Their scores are the same as without proposals, unless `best_match` is 0:
    /// the divisor is the best match of those considered. A total counts the matches among them.
    /// With a sort key proposals are ignored.
    pub proposed: Option<&'a [i64]>,
}

impl Request<'_> {
    /// How many of the best are ranked: those that are wanted, and those before them.
    pub(super) fn depth(&self) -> usize {
        if self.k == 0 { 0 } else { self.k.saturating_add(self.offset) }
    }
}

/// A memory found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The store's number.
    pub row: i64,
    /// The bytes of the UUID.
    pub id: [u8; 16],
    /// The score, or the value of the sort key.
    pub score: f64,
    /// The parts of the score.
    pub components: Components,
    /// The reasons for the score, if requested.
    pub why: Option<Box<Why>>,
    /// The last access, in microseconds since 1970 in UTC, and the number of accesses.
    pub accessed: (Option<i64>, i64),
    /// Which of its vectors is nearest to a query, where it has several.
    pub chunk: Option<u32>,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Best first: score, then newest, then smallest id.
    pub hits: Vec<Hit>,
    /// The number of matches, if requested; of those considered, if `is_approximate`.
    pub total: Option<usize>,
    /// Whether the deadline passed, so that better hits may be missing; then there is no total.
    pub is_partial: bool,
    /// Whether some candidates were not considered, because rows were proposed.
    pub is_approximate: bool,
    /// The share of similarity in the matches; `None` without a query.
    pub share: Option<f64>,
    /// What the best of all is worth.
    pub evidence: Evidence,
}

/// What the best of all matches is worth as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Evidence {
    /// It may be one.
    #[default]
    Enough,
    /// It is below the floor, so nothing was found.
    Weak,
    /// The text names one speaker, and it is by another.
    ByAnother,
}

/// Memories to remove and to add in one step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Batch<'a> {
    /// Rows to remove. One that `linked` does not name is deleted permanently, and links to it go as well;
    /// one that it names is in another state, and links to it stay.
    pub removed: &'a [i64],
    /// A record of an existing row replaces it; its vector stays if the content does.
    pub records: &'a [Record],
    /// The rows of `vectors`; a repeated row has several chunks.
    pub embedded: &'a [i64],
    /// As many floats each as the index has dimensions.
    pub vectors: &'a [f32],
    /// Rows whose outgoing links are replaced.
    pub linked: &'a [i64],
    /// All their outgoing links.
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
    /// The last access, in microseconds since 1970 in UTC, and the number of accesses.
    pub accessed: (Option<i64>, i64),
}

/// A memory found as a neighbour of others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NeighbourHit {
    /// The store's number.
    pub row: i64,
    /// The bytes of the UUID.
    pub id: [u8; 16],
    /// The score of a start, times decay and strength of each link on the path from it.
    pub score: f64,
    /// The type of the last link.
    pub kind: u8,
    /// The row before it on its path.
    pub via: i64,
    /// The number of links on its path.
    pub depth: usize,
    /// The last access, in microseconds since 1970 in UTC, and the number of accesses.
    pub accessed: (Option<i64>, i64),
}

/// Linked memories.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Linked {
    /// Strongest first.
    pub hits: Vec<LinkedHit>,
    /// The total number.
    pub total: usize,
}
