//! A hash of short words and numbers by a random key.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Hashes by one multiplication for each eight bytes: the standard library's hash takes longer than
/// all other work on a trigram or a known word.
#[derive(Clone, Copy)]
pub(super) struct Keyed {
    key: u64,
    state: u64,
}

impl Default for Keyed {
    fn default() -> Self {
        Self { key: RandomState::new().hash_one(0_u64) | 1, state: 0 }
    }
}

impl BuildHasher for Keyed {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Keyed {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(size_of::<u64>()) {
            let mut number = [0; size_of::<u64>()];
            number[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(number));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product =
            u128::from(self.state ^ value ^ self.key.rotate_left(32)) * u128::from(self.key);
        self.state = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.state
    }
}
