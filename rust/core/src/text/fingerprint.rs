//! Fingerprints: SHA-256 of the normal form.

use std::fmt::Write;

use sha2::{Digest as _, Sha256};

use super::normalise::normalise_in;

/// The version of the normal form, raised when the fingerprint of any text made of assigned
/// characters changes. Store it beside fingerprints that outlive the process.
pub const FINGERPRINT_VERSION: u32 = 2;

/// A full fingerprint. Compare these; the shortened [`display_id`] is for people.
pub type Digest = [u8; 32];

/// Return the SHA-256 of the UTF-8 bytes of `text`'s normal form, with nothing mixed in.
///
/// # Examples
/// ```
/// use mnemic_core::text::fingerprint;
///
/// assert_eq!(fingerprint("Hello, world!"), fingerprint("“ＨELLO,  WORLD”"));
/// assert_ne!(fingerprint("C++"), fingerprint("C#"));
/// ```
pub fn fingerprint(text: &str) -> Digest {
    fingerprint_in(&mut String::with_capacity(text.len()), text)
}

/// Return the fingerprints of `texts`, in their order.
pub fn fingerprints<T: AsRef<str>>(texts: &[T]) -> Vec<Digest> {
    let mut buffer = String::new();
    let one = |text: &T| fingerprint_in(&mut buffer, text.as_ref());
    texts.iter().map(one).collect()
}

/// Return the first 16 hexadecimal characters of `digest`, in lower case.
///
/// They hold 64 bits: enough to display and to distinguish, too few to resist forgery.
pub fn display_id(digest: &Digest) -> String {
    digest[..8].iter().fold(String::with_capacity(16), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a String cannot fail");
        hex
    })
}

fn fingerprint_in(buffer: &mut String, text: &str) -> Digest {
    Sha256::digest(normalise_in(buffer, text)).into()
}
