//! The parts of a score.

/// The parts of one score, each from 0 to 1 but for the terms of the session.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Components {
    /// Cosine with the nearest query; absent without a vector or a query.
    pub similarity: Option<f64>,
    /// Keyword match; absent where keywords have no share.
    pub keyword: Option<f64>,
    /// Share of the similarity in a match of similarity and keywords; the rest is the keywords'.
    pub share: Option<f64>,
    /// The term of the number of chunks, negative.
    pub chunks: Option<f64>,
    /// The lift by neighbours in the session.
    pub neighbours: Option<f64>,
    /// The term of a question, negative.
    pub question: Option<f64>,
    /// The term of its role, negative.
    pub role: Option<f64>,
    /// The term of its time.
    pub date: Option<f64>,
    /// The term of its speaker.
    pub speaker: Option<f64>,
    /// The term of the answer type.
    pub answer_type: Option<f64>,
    /// The match with all of these, divided by their largest sum.
    pub relevance: Option<f64>,
    /// See [`Weights`](super::scoring_config::Weights).
    pub recency: Option<f64>,
    /// See [`Weights`](super::scoring_config::Weights).
    pub importance: Option<f64>,
    /// See [`Weights`](super::scoring_config::Weights).
    pub access: Option<f64>,
    /// See [`Weights`](super::scoring_config::Weights).
    pub salience: Option<f64>,
    /// See [`Weights`](super::scoring_config::Weights).
    pub context: Option<f64>,
}

impl Components {
    /// Those of a score that is a similarity and nothing else.
    pub(crate) fn of_similarity(similarity: f64) -> Self {
        let similarity = Some(similarity);
        Self { similarity, relevance: similarity, ..Self::default() }
    }
}
