//! Work on one text or on many: folding, normal forms, fingerprints, the dates it names, its length.

mod answers;
mod boundary;
mod dates;
mod fingerprint;
mod independent;
mod language;
pub(crate) mod names;
mod normalise;
mod tokens;
mod turn;
pub(crate) mod words;

pub(crate) use answers::kinds_held;
pub use answers::{AnswerKind, answer_kind};
pub use dates::{DateRange, Granularity, date_ranges};
pub use fingerprint::{Digest, FINGERPRINT_VERSION, display_id, fingerprint, fingerprints};
pub use language::Language;
pub use normalise::{fold, normalise};
pub use tokens::estimate_tokens;
pub use turn::{Turn, turn};
pub use words::{Analysis, query_tokens, tokens};
