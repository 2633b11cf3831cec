//! Requests and scoring options as Python passes them.

use mnemic_core::columns::{Ask, Scope, Users};
use mnemic_core::deadline::Deadline;
use mnemic_core::filter::Filter;
use mnemic_core::memory::links::{Direction, Hops, MAX_DEPTH};
use mnemic_core::memory::neighbours::{KINDS, Start, Walk};
use mnemic_core::rank::sort_key::SortKey;
use mnemic_core::system::memory_budget::try_with_capacity;
use mnemic_core::{
    AdaptiveShare, CosineScale, EvidenceFloor, KeywordFields, Recency, Salience, ScoringConfig,
    Session, Weights,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{InvalidArgumentError, raised, root};

/// A converted argument; an interruption of the conversion is raised as such.
pub(crate) struct Given<T>(pub(crate) T);

impl<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'a, 'py> for Given<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract().map(Self).map_err(|error| root(given.py(), error))
    }
}

/// A list of any length, copied after a check of the memory.
pub(crate) struct Listed<T>(pub(crate) Vec<T>);

impl<'py, T> FromPyObject<'_, 'py> for Listed<T>
where
    T: FromPyObjectOwned<'py, Error: Into<PyErr>>,
{
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given = given.to_owned();
        let mut values = try_with_capacity(given.len()?).map_err(raised)?;
        for value in given.try_iter()? {
            values.push(value?.extract().map_err(Into::into)?);
        }
        Ok(Self(values))
    }
}

/// The fields of `mnemic.model.Search` that a ranking needs.
#[derive(FromPyObject)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of the Python class")]
pub(crate) struct Search<'py> {
    pub(crate) text: Option<String>,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    pub(crate) ranking: Bound<'py, PyAny>,
    #[pyo3(attribute("filters"))]
    pub(crate) filter: Option<Bound<'py, PyAny>>,
    pub(crate) exclude: Listed<Uuid>,
    pub(crate) min_similarity: Option<f64>,
    pub(crate) min_score: Option<f64>,
    pub(crate) scale: Option<GivenScale>,
    pub(crate) evidence: Option<GivenEvidence>,
    pub(crate) with_total: bool,
    pub(crate) order: Option<Member>,
    pub(crate) min_salience: Option<f64>,
    pub(crate) is_relative: bool,
    pub(crate) explain: bool,
    pub(crate) with_reasons: bool,
    pub(crate) deadline: Option<f64>,
    pub(crate) takes_partial: bool,
}

impl Search<'_> {
    pub(crate) fn excluded(&self) -> Vec<[u8; 16]> {
        self.exclude.0.iter().map(|id| id.bytes).collect()
    }
}

/// Fields of Python's objects, and the record of the core that has the same.
macro_rules! mirrored {
    ($(#[$about:meta])* $given:ident => $core:ident { $($field:ident: $kind:ty),+ $(,)? }) => {
        $(#[$about])*
        #[derive(FromPyObject)]
        pub(crate) struct $given {
            $($field: $kind),+
        }

        impl From<&$given> for $core {
            fn from(given: &$given) -> Self {
                Self { $($field: given.$field),+ }
            }
        }
    };
}

mirrored! {
    /// The fields of `mnemic.model.search.EvidenceFloor`.
    GivenEvidence => EvidenceFloor {
        similarity: Option<f64>,
        is_learned: bool,
    }
}

mirrored! {
    /// The fields of `mnemic.model.search.CosineScale` that a ranking needs.
    GivenScale => CosineScale {
        mean: f64,
        spread: f64,
        floor: f64,
        lower_limit: f64,
    }
}

/// The bytes of a `uuid.UUID`.
#[derive(FromPyObject)]
pub(crate) struct Uuid {
    bytes: [u8; 16],
}

#[derive(FromPyObject)]
pub(crate) struct GivenScope {
    pub(crate) user_id: Option<String>,
    pub(crate) project_id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) all_users: bool,
}

impl GivenScope {
    pub(crate) fn users(&self) -> Users<'_> {
        match &self.user_id {
            Some(name) => Users::One(name),
            None if self.all_users => Users::All,
            None => Users::Nobody,
        }
    }

    pub(crate) fn scope(&self) -> Scope<'_> {
        let user = self.users();
        let (project, session) = (self.project_id.as_deref(), self.session_id.as_deref());
        Scope { user, project, session }
    }

    pub(crate) fn ask<'a>(
        &'a self,
        now: i64,
        filter: Option<&'a Filter>,
        deadline: &'a Deadline,
    ) -> Ask<'a> {
        Ask { scope: self.scope(), now, filter, deadline, ..Ask::default() }
    }
}

/// The fields of `mnemic.index.base.LinkSearch`.
#[derive(FromPyObject)]
pub(crate) struct LinkSearch<'py> {
    pub(crate) scope: GivenScope,
    pub(crate) now: i64,
    pub(crate) row: i64,
    pub(crate) direction: String,
    pub(crate) kinds: u32,
    pub(crate) depth: usize,
    pub(crate) limit: usize,
    #[pyo3(attribute("filters"))]
    pub(crate) filter: Option<Bound<'py, PyAny>>,
    pub(crate) deadline: Option<f64>,
}

impl LinkSearch<'_> {
    pub(crate) fn hops(&self) -> PyResult<Hops> {
        let direction = match self.direction.as_str() {
            "out" => Direction::Out,
            "in" => Direction::In,
            "both" => Direction::Both,
            other => return Err(PyValueError::new_err(format!("there is no direction {other:?}"))),
        };
        check_depth(self.depth)?;
        Ok(Hops { direction, kinds: self.kinds, depth: self.depth })
    }
}

fn check_depth(depth: usize) -> PyResult<()> {
    if (1..=MAX_DEPTH).contains(&depth) {
        return Ok(());
    }
    let message = format!("depth must be from 1 to {MAX_DEPTH}, got {depth}");
    Err(InvalidArgumentError::new_err(message))
}

/// The fields of `mnemic.model.Hops`.
#[derive(FromPyObject)]
pub(crate) struct GivenHops {
    depth: usize,
    decays: Listed<f64>,
    follow_incoming: bool,
    pub(crate) limit: usize,
}

impl GivenHops {
    pub(crate) fn walk(&self) -> PyResult<Walk> {
        check_depth(self.depth.max(1))?;
        let found = self.decays.0.len();
        let decays = <[f64; KINDS]>::try_from(self.decays.0.as_slice()).map_err(|_| {
            InvalidArgumentError::new_err(format!("there are {KINDS} decays, got {found}"))
        })?;
        if !decays.iter().all(|decay| (0.0..=1.0).contains(decay)) {
            return Err(InvalidArgumentError::new_err("decays must be from 0 to 1"));
        }
        Ok(Walk { depth: self.depth, decays, follows_incoming: self.follow_incoming })
    }
}

/// The fields of `mnemic.index.base.NeighbourSearch`.
#[derive(FromPyObject)]
pub(crate) struct NeighbourSearch<'py> {
    pub(crate) scope: GivenScope,
    pub(crate) now: i64,
    starts: Listed<(i64, f64)>,
    pub(crate) hops: GivenHops,
    #[pyo3(attribute("filters"))]
    pub(crate) filter: Option<Bound<'py, PyAny>>,
    pub(crate) deadline: Option<f64>,
}

impl NeighbourSearch<'_> {
    pub(crate) fn starts(&self) -> Vec<Start> {
        self.starts.0.iter().map(|&(row, score)| Start { row, score }).collect()
    }
}

/// The changes of a time zone's offset, two numbers of eight bytes for each, as
/// `mnemic.model.time_zones.offset_changes` returns them.
pub(crate) fn offset_changes(given: &[u8]) -> Vec<[i64; 2]> {
    let number = |bytes: &[u8; 8]| i64::from_ne_bytes(*bytes);
    let (numbers, _) = given.as_chunks::<8>();
    numbers.as_chunks::<2>().0.iter().map(|[from, offset]| [number(from), number(offset)]).collect()
}

/// A member of an enumeration.
#[derive(FromPyObject)]
pub(crate) struct Member {
    pub(crate) value: String,
}

pub(crate) fn sort_key_of(order: &Member) -> PyResult<SortKey> {
    match order.value.as_str() {
        "newest" => Ok(SortKey::Newest),
        "oldest" => Ok(SortKey::Oldest),
        "accessed" => Ok(SortKey::Accessed),
        "access_count" => Ok(SortKey::AccessCount),
        "importance" => Ok(SortKey::Importance),
        "salience" => Ok(SortKey::Salience),
        other => Err(PyValueError::new_err(format!("there is no order {other:?}"))),
    }
}

#[derive(FromPyObject)]
pub(crate) struct GivenRanking {
    pub(crate) similarity: GivenShare,
    pub(crate) covered_only: bool,
    pub(crate) chunk_penalty: f64,
    pub(crate) full_words: u32,
    pub(crate) keywords: GivenKeywords,
    pub(crate) session: GivenSession,
    pub(crate) strip_speaker_names: bool,
    pub(crate) max_speaker_share: f64,
    pub(crate) weights: GivenWeights,
    pub(crate) recency: GivenRecency,
    pub(crate) salience: GivenSalience,
}

#[derive(FromPyObject)]
pub(crate) enum GivenShare {
    Adaptive { short: f64, long: f64, length: f64 },
    Fixed(f64),
}

impl GivenShare {
    /// The fixed share, and the adaptive one in place of it.
    fn shares(&self) -> (f64, Option<AdaptiveShare>) {
        match *self {
            Self::Fixed(share) => (share, None),
            Self::Adaptive { short, long, length } => {
                (short, Some(AdaptiveShare { short, long, length }))
            }
        }
    }
}

mirrored! {
    GivenKeywords => KeywordFields {
        words: f64,
        char_ngrams: f64,
        bigrams: f64,
        previous: f64,
        second: f64,
        stop_words: f64,
        max_df: f64,
        fuzziness: f64,
        exponent: f64,
        unspaced_exponent: Option<f64>,
        k1: f64,
        b: Option<f64>,
    }
}

mirrored! {
    GivenSession => Session {
        previous: f64,
        next: f64,
        answer: f64,
        second_neighbour: f64,
        question: f64,
        date: f64,
        speaker: f64,
        answer_type: f64,
        isolated: f64,
        date_inside: f64,
        min_lift: f64,
        role: f64,
    }
}

mirrored! {
    GivenWeights => Weights {
        relevance: f64,
        recency: f64,
        importance: f64,
        access: f64,
        salience: f64,
        context: f64,
    }
}

#[derive(FromPyObject)]
pub(crate) struct GivenRecency {
    pub(crate) curve: Member,
    pub(crate) days: f64,
}

mirrored! {
    GivenSalience => Salience {
        recency: f64,
        frequency: f64,
        importance: f64,
        half_life_days: f64,
        frequency_max_count: f64,
    }
}

#[doc = stub!("salience_parts")]
#[pyfunction]
#[pyo3(signature = (salience, /, *, created_at, last_accessed_at, access_count, importance, now))]
pub(crate) fn salience_parts(
    salience: GivenSalience,
    created_at: i64,
    last_accessed_at: Option<i64>,
    access_count: i64,
    importance: f64,
    now: i64,
) -> (f64, f64, f64) {
    let salience = Salience::from(&salience);
    let parts = salience.parts(created_at, last_accessed_at, access_count, importance, now);
    (parts.recency, parts.frequency, parts.mean)
}

impl GivenRanking {
    pub(crate) fn ranking(&self) -> PyResult<ScoringConfig> {
        let (similarity, adaptive) = self.similarity.shares();
        Ok(ScoringConfig {
            similarity,
            adaptive,
            covered_only: self.covered_only,
            chunk_penalty: self.chunk_penalty,
            full_words: self.full_words,
            keywords: (&self.keywords).into(),
            strip_speaker_names: self.strip_speaker_names,
            max_speaker_share: self.max_speaker_share,
            session: (&self.session).into(),
            weights: (&self.weights).into(),
            recency: self.recency.recency()?,
            salience: (&self.salience).into(),
        })
    }
}

impl GivenRecency {
    pub(crate) fn recency(&self) -> PyResult<Recency> {
        let days = self.days;
        match self.curve.value.as_str() {
            "created_linear" => Ok(Recency::CreatedLinear { days }),
            "created_half_life" => Ok(Recency::CreatedHalfLife { days }),
            "accessed_half_life" => Ok(Recency::AccessedHalfLife { days }),
            "newest_rank" => Ok(Recency::NewestRank),
            other => {
                let message = format!("there is no curve of recency {other:?}");
                Err(InvalidArgumentError::new_err(message))
            }
        }
    }
}
