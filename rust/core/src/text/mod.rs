//! Work on one text or on many: folding, normal forms, fingerprints, the dates it names, its length.

pub(crate) mod address;
mod answer_type;
mod coverage;
mod dates;
pub(crate) mod detection;
mod fast_path;
mod fingerprint;
pub(crate) mod language;
pub(crate) mod mentions;
pub(crate) mod names;
mod normalise;
pub(crate) mod ordinary_names;
pub(crate) mod roles;
pub(crate) mod spelling;
mod spellings;
mod stems;
mod stop_pairs;
mod strip;
mod token_estimate;
pub(crate) mod tokenizer;
mod turn;
mod unicode;

pub(crate) use answer_type::answer_types_held;
pub use answer_type::{AnswerType, answer_type};
pub use coverage::Coverage;
pub use dates::{DateRange, Granularity, date_ranges};
pub use detection::detect;
pub use fingerprint::{Digest, FINGERPRINT_VERSION, display_id, fingerprint, fingerprints};
pub use language::Language;
pub use normalise::{fold, normalise};
pub use roles::Role;
pub use spellings::{Spelling, spellings};
pub use token_estimate::estimate_tokens;
pub use tokenizer::{Analyser, Analysis, query_tokens, tokens};
pub use turn::{Turn, turn};
