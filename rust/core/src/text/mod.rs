//! Work on one text or on many: folding, normal forms and fingerprints.

mod boundary;
mod fingerprint;
mod independent;
mod normalise;

pub use fingerprint::{Digest, FINGERPRINT_VERSION, display_id, fingerprint, fingerprints};
pub use normalise::{fold, normalise};
