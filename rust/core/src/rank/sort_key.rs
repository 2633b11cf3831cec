//! Memories in the order of one attribute instead of a score.

use crate::Error;
use crate::deadline::{Deadline, SOME_ROWS};
use crate::rank::largest::{largest, reaching};
use crate::rank::signals::{Salience, Signals, age_of_access, halved};

/// The sort key of memories, the largest first but for [`SortKey::Oldest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortKey {
    /// Creation.
    Newest,
    /// Creation, the oldest first.
    Oldest,
    /// The last access, or creation where there was none.
    Accessed,
    /// Access count.
    AccessCount,
    /// Importance.
    Importance,
    /// Salience.
    Salience,
}

impl SortKey {
    /// The value of the key, larger first: exact for the microseconds of all valid years.
    /// `salience` is computed only for its own key.
    pub(crate) fn key(self, signals: &Signals, salience: impl Fn(&Signals) -> f64) -> f64 {
        let key = match self {
            Self::Newest => signals.created_at as f64,
            Self::Oldest => -(signals.created_at as f64),
            Self::Accessed => signals.last_accessed_at.unwrap_or(signals.created_at) as f64,
            Self::AccessCount => signals.access_count as f64,
            Self::Importance => signals.importance,
            Self::Salience => salience(signals),
        };
        key + 0.0 // minus zero is zero
    }
}

/// A memory with the value of its sort key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SortedHit {
    pub(crate) ordinal: u32,
    pub(crate) key: f64,
    pub(crate) salience: f64,
}

/// The best k of some ordinals with their keys; ties go to the more salient, then to the memory
/// with the smallest tie-breaker.
pub(crate) fn sorted<Tie: Ord>(
    ordinals: &[u32],
    keys: &[f64],
    k: usize,
    salience_of: impl Fn(u32) -> f64,
    tie_of: impl Fn(u32) -> Tie,
    deadline: &Deadline,
) -> Result<Vec<SortedHit>, Error> {
    let Some(last) = largest(keys, k).last().map(|at| keys[*at as usize]) else {
        return Ok(Vec::new());
    };
    let place = |at: u32| {
        let (ordinal, key) = (ordinals[at as usize], keys[at as usize]);
        SortedHit { ordinal, key, salience: salience_of(ordinal) }
    };
    let keep_best = |places: &mut Vec<SortedHit>| {
        places.sort_unstable_by(|one, other| {
            let by_key = other.key.total_cmp(&one.key);
            by_key
                .then(other.salience.total_cmp(&one.salience))
                .then_with(|| tie_of(one.ordinal).cmp(&tie_of(other.ordinal)))
        });
        places.truncate(k);
    };
    let mut places: Vec<SortedHit> = Vec::new();
    for group in reaching(keys, last).chunks(SOME_ROWS) {
        deadline.check()?;
        places.extend(group.iter().map(|at| place(*at)));
        if places.len() >= k.saturating_mul(2).max(MIN_SORTED) {
            keep_best(&mut places);
        }
    }
    keep_best(&mut places);
    Ok(places)
}

/// Memories that are sorted at once, at least: of many equal keys the best are kept from time to time.
const MIN_SORTED: usize = 4096;

/// Recency and frequency of accesses, from 0 to 1.
pub(crate) fn scaled(salience: &Salience, signals: &Signals, now: i64) -> (f64, f64) {
    let recency = halved(age_of_access(signals, now), salience.half_life_days);
    (recency, salience.frequency_of(signals.access_count))
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;
    use crate::deadline::NEVER;

    proptest! {
        #[test]
        fn the_head_is_that_of_the_whole_list_sorted(
            drawn in prop::collection::vec((0_i64..4, prop::option::of(0_i64..4), 0_i64..3, 0_u8..3), 0..40),
            kind in 0_usize..6,
            k in 0_usize..50,
        ) {
            let sort_key = [
                SortKey::Newest,
                SortKey::Oldest,
                SortKey::Accessed,
                SortKey::AccessCount,
                SortKey::Importance,
                SortKey::Salience,
            ][kind];
            let signals: Vec<Signals> = drawn
                .iter()
                .map(|(created_at, last, count, importance)| Signals {
                    created_at: *created_at,
                    last_accessed_at: *last,
                    access_count: *count,
                    importance: f64::from(*importance) / 2.0,
                })
                .collect();
            let saliences: Vec<f64> = signals.iter().map(|signals| signals.importance / 2.0).collect();
            let all: Vec<u32> = (0..signals.len() as u32).filter(|at| at % 5 != 3).collect();
            let id_of = |ordinal: u32| ordinal.wrapping_mul(7919) % 101;
            let salience = |signals: &Signals| signals.importance / 2.0;
            let key = |at: &u32| sort_key.key(&signals[*at as usize], salience);
            let keys: Vec<f64> = all.iter().map(key).collect();
            let salience_of = |at: u32| saliences[at as usize];
            let tie_of = |at: u32| (Reverse(signals[at as usize].created_at), id_of(at));
            let found = sorted(&all, &keys, k, salience_of, tie_of, &NEVER).expect("no deadline");
            let mut whole = all;
            whole.sort_by(|one, other| {
                let key = |at: &u32| {
                    let signals = &signals[*at as usize];
                    match sort_key {
                        SortKey::Newest => signals.created_at as f64,
                        SortKey::Oldest => -signals.created_at as f64,
                        SortKey::Accessed => signals.last_accessed_at.unwrap_or(signals.created_at) as f64,
                        SortKey::AccessCount => signals.access_count as f64,
                        SortKey::Importance => signals.importance,
                        SortKey::Salience => saliences[*at as usize],
                    }
                };
                let rest = |at: &u32| {
                    (-saliences[*at as usize], -signals[*at as usize].created_at as f64)
                };
                (-key(one), rest(one), id_of(*one))
                    .partial_cmp(&(-key(other), rest(other), id_of(*other)))
                    .expect("no key is NaN")
            });
            whole.truncate(k);
            prop_assert_eq!(found.iter().map(|one| one.ordinal).collect::<Vec<_>>(), whole);
        }
    }
}
