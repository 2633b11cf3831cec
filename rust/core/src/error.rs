//! Errors, with the found and the expected values.

use thiserror::Error;

/// All errors of the core. A call that returns one has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// A map's dimension is outside the range that kernels sum without overflow.
    #[error("dim must be between 1 and {max}, found {found}")]
    DimensionOutOfRange {
        /// The requested dimension.
        found: usize,
        /// The largest dimension allowed.
        max: usize,
    },
    /// A vector's length is not the map's dimension.
    #[error("found {found} components in the {what}; this map holds vectors of {wanted}")]
    DimensionMismatch {
        /// Which argument.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The map's dimension.
        wanted: usize,
    },
    /// The number of ids differs from the number of the values beside them.
    #[error("{ids} ids were given with {found} {what}; each needs one id")]
    CountMismatch {
        /// Number of ids.
        ids: usize,
        /// The values beside them.
        what: &'static str,
        /// Number of those.
        found: usize,
    },
    /// A vector holds NaN or infinity.
    #[error("row {row} of the {what} holds NaN or infinity; remove or repair that row")]
    NonFinite {
        /// Which argument.
        what: &'static str,
        /// Position of the first such row.
        row: usize,
    },
    /// One call names an id twice.
    #[error("id {id} is given twice in one call; which vector it should keep is not clear")]
    DuplicateId {
        /// The id.
        id: i64,
    },
    /// An id is not in the map.
    #[error("id {id} is not in this map of {len} rows")]
    UnknownId {
        /// The id.
        id: i64,
        /// Rows in the map.
        len: usize,
    },
    /// A score threshold that no score can be compared with.
    #[error("{what} must be a number, found NaN")]
    ThresholdIsNan {
        /// Which argument.
        what: &'static str,
    },
    /// A score that has no place in an order.
    #[error("scores[{place}] must be a number, found NaN")]
    ScoreIsNan {
        /// Its place among the scores.
        place: usize,
    },
    /// A share of a whole, or a similarity, that is none.
    #[error("{what} must be a number from 0 to 1, found {found}")]
    ShareOutOfRange {
        /// Which argument.
        what: &'static str,
        /// The share, as text.
        found: String,
    },
    /// A weight that does not keep the order of similarities.
    #[error("weight must be a number from 0 to 1e30, found {found}")]
    WeightOutOfRange {
        /// The weight, as text.
        found: String,
    },
    /// Memory that a call needs cannot be had.
    #[error("{bytes} bytes of memory cannot be had; nothing was changed")]
    OutOfMemory {
        /// The number requested.
        bytes: usize,
    },
    /// A code that names no language.
    #[error("there is no language {code:?}; languages are named by ISO 639-1 codes, as \"en\"")]
    UnknownLanguage {
        /// The code found.
        code: String,
    },
    /// A language whose words cannot be stemmed.
    #[error("there is no stemmer for the language {code:?}; it can be \"auto\" or one of {known}")]
    NoStemmer {
        /// The code found.
        code: String,
        /// The codes that there are.
        known: String,
    },
    /// A vocabulary lacks a token that every text may need.
    #[error("the vocabulary has no token {token:?}; it must be that of an uncased BERT model")]
    MissingToken {
        /// The token.
        token: String,
    },
    /// A file describes no tokenizer of a kind.
    #[error("this is no {kind}: {problem}")]
    InvalidTokenizer {
        /// What it should be.
        kind: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A redaction pattern cannot be used.
    #[error("the redaction pattern '{name}' is refused: {problem}")]
    InvalidPattern {
        /// The pattern's name.
        name: String,
        /// A sentence, with the words of the crate regex where they are its.
        problem: String,
    },
    /// The searches of a redaction pattern read a text too many times.
    #[error(
        "the searches of the redaction pattern '{name}' read more than {budget} bytes of a text of \
         {size} bytes, so the text was not redacted; let the pattern end sooner: bound its \
         repetitions, as in x{{1,64}}, and replace .* by a class that ends"
    )]
    RedactionBudget {
        /// The pattern's name.
        name: String,
        /// Length of the text in bytes.
        size: usize,
        /// Bytes that the searches of one pattern may read in it.
        budget: usize,
    },
    /// A file cannot be read.
    #[error("{path} cannot be read: {problem}")]
    FileUnreadable {
        /// Its path.
        path: String,
        /// The system's words.
        problem: String,
        /// The system's `errno`, if there is one.
        errno: Option<i32>,
    },
    /// A file cannot be written.
    #[error("{path} cannot be written: {problem}; a file that was there before is unchanged")]
    FileUnwritable {
        /// Its path.
        path: String,
        /// The system's words.
        problem: String,
        /// The system's `errno`, if there is one.
        errno: Option<i32>,
    },
    /// A saved index or map cannot be used; what is wrong with it.
    #[error("the file cannot be used as a saved map or index: {0}")]
    SnapshotInvalid(&'static str),
    /// The deadline of a call passed.
    #[error("the deadline passed")]
    DeadlineExceeded,
    /// `MNEMIC_KERNEL` names something that is not a kernel.
    #[error("MNEMIC_KERNEL is {found:?}; the kernels are {known}, and unset chooses the best one")]
    UnknownKernel {
        /// The value found.
        found: String,
        /// The names that exist.
        known: String,
    },
    /// `MNEMIC_KERNEL` names a kernel this CPU cannot run.
    #[error("MNEMIC_KERNEL is {found:?}, which this CPU cannot run; it can run {supported}")]
    UnsupportedKernel {
        /// The value found.
        found: String,
        /// The names this CPU can run.
        supported: String,
    },
}

impl Error {
    /// A [`SnapshotInvalid`](Self::SnapshotInvalid) unless something holds.
    pub(crate) fn unless(holds: bool, problem: &'static str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::SnapshotInvalid(problem)) }
    }
}
