//! Errors, with the found and the expected values.

use std::path::PathBuf;

use thiserror::Error;

/// All errors of the encoder.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// The file cannot be opened or mapped.
    #[error("the weights {} cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file is not one of weights, or is damaged.
    #[error("the weights {} cannot be used: {problem}; install the model again", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A text has no tokens.
    #[error("text {text} has no tokens; even an empty text has those of its beginning and end")]
    NoTokens {
        /// Its position in the call.
        text: usize,
    },
    /// A text has more tokens than the model has positions.
    #[error("text {text} has {found} tokens; the model reads {max}, so cut it off there")]
    TooManyTokens {
        /// Its position in the call.
        text: usize,
        /// Its tokens.
        found: usize,
        /// The model's positions.
        max: usize,
    },
    /// A token is not in the vocabulary.
    #[error("text {text} holds token {found}; the vocabulary of the model ends before {words}")]
    UnknownToken {
        /// Its position in the call.
        text: usize,
        /// The token.
        found: u32,
        /// The size of the vocabulary.
        words: usize,
    },
    /// The place for the vectors has another size.
    #[error("there is place for {found} floats, and the vectors of these texts have {wanted}")]
    PlaceMismatch {
        /// Floats there is place for.
        found: usize,
        /// Floats of all vectors.
        wanted: usize,
    },
    /// The caller's time was over.
    #[error("the texts were not embedded in time")]
    Interrupted,
    /// `MNEMIC_KERNEL` names no kernel.
    #[error("MNEMIC_KERNEL is {found:?}, which this CPU does not run; it runs {supported}")]
    UnsupportedKernel {
        /// The name.
        found: String,
        /// The kernels of this CPU.
        supported: String,
    },
}
