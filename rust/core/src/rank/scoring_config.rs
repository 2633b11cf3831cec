//! Scoring options: the shares, terms and weights that a caller chooses.

use crate::rank::signals::{Recency, Salience};

/// The rarity of a query's words from which on they are rare, and up to which they are common.
const RARE: f64 = 0.48;
const COMMON: f64 = 0.38;

/// All that a score is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoringConfig {
    /// Share of the similarity in a match; the rest is the keywords'. From 0 to 1.
    pub similarity: f64,
    /// A share that depends on the memories, in place of `similarity`.
    pub adaptive: Option<AdaptiveShare>,
    /// Whether similarity has a smaller share in the match of a memory that the embedder does not
    /// cover; ignored where similarity is all there is.
    pub covered_only: bool,
    /// Subtracted from the cosine of the nearest of n chunks, times ln n.
    pub chunk_penalty: f64,
    /// Number of tokens from which on similarity has its whole share in the match of a turn of a
    /// session; a shorter one has a share in proportion. Ignored where similarity is all there is.
    pub full_words: u32,
    /// The parts of a keyword match.
    pub keywords: KeywordFields,
    /// The terms of a session.
    pub session: Session,
    /// Whether names of speakers are taken for the first person by similarity, and passed over by
    /// keywords.
    pub strip_speaker_names: bool,
    /// Keywords keep the names of speakers with at most this share of the turns. From 0 to 1.
    pub max_speaker_share: f64,
    /// How much each part of the score weighs.
    pub weights: Weights,
    /// How age counts.
    pub recency: Recency,
    /// The weights of salience.
    pub salience: Salience,
}

/// A share of the similarity that grows with the mean length of memories, and among memories without
/// sessions with how common the words of a query are.
///
/// The longer a text, and the more common a word, the more words of a query a text holds by chance,
/// while the vector of a chunk means as much as that of a short text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaptiveShare {
    /// Its limit for short memories.
    pub short: f64,
    /// Its limit for long ones, and for common words.
    pub long: f64,
    /// The mean number of tokens at which it is halfway between both.
    pub length: f64,
}

/// Shares of the parts of a keyword match.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeywordFields {
    /// Of words.
    pub words: f64,
    /// Of words that share character n-grams.
    pub char_ngrams: f64,
    /// Of adjacent pairs of words.
    pub bigrams: f64,
    /// Weight of a word of the session's previous turn that is not in this one.
    pub previous: f64,
    /// Weight of a word of the turn before that.
    pub second: f64,
    /// How much a stop word weighs beside other words.
    pub stop_words: f64,
    /// Words in more than this share of many memories are passed over.
    pub max_df: f64,
    /// Smallest similarity of a known word that replaces an unknown one; 0 replaces none.
    pub fuzziness: f64,
    /// The power that a match is raised to: above 1, weak matches count less.
    pub exponent: f64,
    /// The power in its place for a query in a script without spaces, and one between the two for a
    /// mixed query; None is the same power.
    pub unspaced_exponent: Option<f64>,
    /// How slowly repeats of a word stop counting; 0 counts presence alone.
    pub k1: f64,
    /// How far longer memories count less, from 0 (not) to 1 (in proportion to their length); None
    /// by how much the memories repeat themselves.
    pub b: Option<f64>,
}

/// Summands of a turn's match for its session, as shares of matches.
///
/// Terms count only for memories with a session, a time, a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Session {
    /// Of the previous turn's match.
    pub previous: f64,
    /// Of the next turn's match.
    pub next: f64,
    /// Of the previous turn's match if that turn is a question, which this one may answer.
    pub answer: f64,
    /// Of the better match of the turns two before and two after.
    pub second_neighbour: f64,
    /// Subtracted from a turn that ends in a question.
    pub question: f64,
    /// For a memory of the time that the query names; falls with the days between them.
    pub date: f64,
    /// For a memory inside that time, beside `date`.
    pub date_inside: f64,
    /// For a turn of a speaker that the query names, times the share of turns by others.
    pub speaker: f64,
    /// For a memory that holds the query's answer type.
    pub answer_type: f64,
    /// Of its own match, for a memory without neighbours where others have some.
    pub isolated: f64,
    /// The smallest lift, as a share of its own match, where others have neighbours.
    pub min_lift: f64,
    /// Subtracted, where an assistant speaks, from turns of the side that the query is not about; less
    /// from short turns of the assistant.
    /// Above 0, `question` is not subtracted from the user's turns, and `answer` lifts the assistant's
    /// only if the query is about these.
    pub role: f64,
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
    /// Of salience.
    pub salience: f64,
    /// Of its similarity with a context.
    pub context: f64,
}

/// The parts of a static score, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct StaticScore {
    pub(crate) recency: f64,
    pub(crate) importance: f64,
    pub(crate) access: f64,
    pub(crate) salience: f64,
}

impl AdaptiveShare {
    /// The share for memories of this mean length.
    fn at(self, mean_length: f64) -> f64 {
        // In this form, no lengths give NaN.
        let growth = 1.0 / (1.0 + (self.length / mean_length).powi(3));
        (self.short + (self.long - self.short) * growth).clamp(0.0, 1.0)
    }
}

impl ScoringConfig {
    /// The scoring of memories of this mean length, with its share as a number.
    pub(crate) fn resolved(self, mean_length: f64) -> Self {
        let share = self.adaptive.map_or(self.similarity, |adaptive| adaptive.at(mean_length));
        Self { similarity: share, ..self }
    }

    /// The resolved scoring for a query with words of this rarity among memories without sessions.
    pub(crate) fn for_words(self, rarity: f64) -> Self {
        let common = ((RARE - rarity) / (RARE - COMMON)).clamp(0.0, 1.0);
        let limit = self.adaptive.map_or(self.similarity, |adaptive| adaptive.long);
        Self { similarity: self.similarity + (limit - self.similarity) * common, ..self }
    }

    /// Whether the score is the similarity and nothing else.
    #[expect(clippy::float_cmp, reason = "these are values that were given, not computed")]
    pub(crate) fn is_similarity_alone(&self) -> bool {
        let weights = &self.weights;
        self.similarity == 1.0
            && self.adaptive.is_none()
            && self.chunk_penalty == 0.0
            && self.session == Session::default()
            && weights.relevance == 1.0
            && weights.of_static_score() + weights.context == 0.0
    }

    /// Whether similarity and keywords both have a share.
    fn is_hybrid(&self) -> bool {
        self.similarity > 0.0 && self.similarity < 1.0
    }

    /// Whether the share of similarity depends on the language of a memory.
    pub(crate) fn share_depends_on_coverage(&self) -> bool {
        self.covered_only && self.is_hybrid()
    }

    /// Whether the share of similarity depends on the length of a memory.
    pub(crate) fn share_depends_on_length(&self) -> bool {
        self.full_words > 0 && self.is_hybrid()
    }

    /// The share of similarity by the number of words, for fewer than those at which it is whole.
    pub(crate) fn shares_by_words(&self) -> Vec<f64> {
        let full = f64::from(self.full_words);
        (0..self.full_words).map(|words| self.similarity * (f64::from(words) / full)).collect()
    }

    /// Whether words of earlier turns count for a turn.
    pub(crate) fn carries_keywords(&self) -> bool {
        self.similarity < 1.0 && self.keywords.previous + self.keywords.second > 0.0
    }

    /// Whether recency is a rank among all selected memories.
    pub(crate) fn needs_newest_ranks(&self) -> bool {
        self.weights.recency > 0.0 && self.recency == Recency::NewestRank
    }
}

impl Session {
    /// Whether neighbours lift matches.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.max_of_neighbours() > 0.0
    }

    /// The most that a named date adds to a match.
    pub(crate) fn max_of_date(&self) -> f64 {
        self.date + self.date_inside
    }

    /// The most that neighbours add to matches of 1.
    pub(crate) fn max_of_neighbours(&self) -> f64 {
        let lifted = self.previous.max(self.next).max(self.answer) + self.second_neighbour;
        lifted.max(self.isolated).max(self.min_lift)
    }
}

impl Weights {
    /// The weight of the static score.
    pub(crate) fn of_static_score(&self) -> f64 {
        self.recency + self.importance + self.access + self.salience
    }

    /// The static score of a memory.
    pub(crate) fn of(&self, static_score: StaticScore) -> f64 {
        self.recency * static_score.recency
            + self.importance * static_score.importance
            + self.access * static_score.access
            + self.salience * static_score.salience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adaptive_share_goes_from_one_limit_to_the_other() {
        let adaptive = AdaptiveShare { short: 0.25, long: 0.75, length: 50.0 };
        let close = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(close(adaptive.at(0.0), 0.25) && close(adaptive.at(50.0), 0.5));
        assert!(close(adaptive.at(1e30), 0.75) && close(adaptive.at(1e-30), 0.25));
        let shares: Vec<f64> = (0..500).map(|length| adaptive.at(f64::from(length))).collect();
        assert!(shares.is_sorted());
        let falling = AdaptiveShare { short: 1.0, long: 0.0, ..adaptive };
        assert!(close(falling.at(50.0), 0.5) && close(falling.at(1e300), 0.0));
        let tiny = AdaptiveShare { length: 1e-300, ..adaptive };
        assert!(close(tiny.at(0.0), 0.25) && close(tiny.at(1.0), 0.75));
    }
}
