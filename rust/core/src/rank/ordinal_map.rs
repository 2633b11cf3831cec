//! A map of a few ordinals to numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Values of the few candidates that were looked at, by ordinal.
pub(crate) type OrdinalMap<T> = HashMap<u32, T, BuildHasherDefault<OrdinalHasher>>;

/// Multiplicative hashing: the default hash of a number takes longer than a bound of a score.
#[derive(Default)]
pub(crate) struct OrdinalHasher(u64);

/// 2⁶⁴ by the golden ratio, as Knuth has it.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for OrdinalHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0.rotate_left(5) ^ u64::from(number)).wrapping_mul(MULTIPLIER);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
