//! Work on one text or on many: folding, normal forms and fingerprints.

mod boundary;
mod fingerprint;
mod independent;
mod language;
pub(crate) mod names;
mod normalise;
mod turn;
pub(crate) mod words;

pub use fingerprint::{Digest, FINGERPRINT_VERSION, display_id, fingerprint, fingerprints};
pub use language::Language;
pub use normalise::{fold, normalise};
pub use turn::{Turn, turn};
pub use words::{Analysis, query_tokens, tokens};
