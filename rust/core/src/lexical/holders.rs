//! The stored form of the terms that hold each n-gram. Finding them again takes longer than reading
//! them.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::ngrams::{NGRAM_CHARACTERS, Ngram};
use crate::collections::plain;

/// N-grams in ascending order, and the holders of all of them, one list after the other.
#[derive(Serialize, Deserialize)]
struct StoredHolders {
    #[serde(with = "plain")]
    ngrams: Vec<[u32; NGRAM_CHARACTERS]>,
    #[serde(with = "plain")]
    lengths: Vec<u32>,
    #[serde(with = "plain")]
    terms: Vec<u32>,
}

/// Write the terms of each n-gram.
pub(super) fn serialize<S: Serializer>(
    holders: &HashMap<Ngram, Vec<u32>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut lists: Vec<(&Ngram, &Vec<u32>)> = holders.iter().collect();
    lists.sort_unstable_by_key(|(ngram, _)| **ngram);
    let ngrams = lists.iter().map(|(ngram, _)| ngram.map(u32::from)).collect();
    let lengths = lists.iter().map(|(_, terms)| terms.len() as u32).collect();
    let terms = lists.iter().flat_map(|(_, terms)| terms.iter().copied()).collect();
    StoredHolders { ngrams, lengths, terms }.serialize(serializer)
}

/// Read the terms of each n-gram.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<HashMap<Ngram, Vec<u32>>, D::Error> {
    let stored = StoredHolders::deserialize(deserializer)?;
    let holders = stored.holders();
    holders.ok_or_else(|| D::Error::custom("n-grams that do not fit their terms"))
}

impl StoredHolders {
    fn holders(&self) -> Option<HashMap<Ngram, Vec<u32>>> {
        let mut rest = &*self.terms;
        let mut holders = HashMap::with_capacity(self.ngrams.len());
        for (ngram, length) in self.ngrams.iter().zip(&self.lengths) {
            let (terms, others) = rest.split_at_checked(*length as usize)?;
            rest = others;
            holders.insert(characters(*ngram)?, terms.to_vec());
        }
        let are_all = self.ngrams.len() == self.lengths.len() && rest.is_empty();
        are_all.then_some(holders)
    }
}

fn characters(ngram: [u32; NGRAM_CHARACTERS]) -> Option<Ngram> {
    let mut characters = Ngram::default();
    for (character, number) in characters.iter_mut().zip(ngram) {
        *character = char::from_u32(number)?;
    }
    Some(characters)
}
