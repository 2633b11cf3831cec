//! A few memories chosen and ordered by score and by time at once.

use std::cmp::Ordering;

use crate::Error;

/// The list that each place of an interleaved order is filled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interleaving {
    /// Even places, from 0, take the best by score, odd places the newest.
    Alternate,
    /// The first places take the best by score, the others the newest.
    ScoreFirst,
    /// The first places take the newest, the others the best by score.
    RecencyFirst,
}

/// The two values that a memory is ordered by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Higher is better; infinities are in order, NaN is refused.
    pub score: f64,
    /// Time in any unit, later is newer.
    pub time: i64,
}

/// Return the places of the chosen memories in `memories`, in the interleaved order: `limit` of
/// them, or all if there are fewer, each once.
///
/// The order by score is by score, then time, then place in `memories`; that by time is by time,
/// then score, then place. `ratio` of the limit goes to the first list, half a place rounded up;
/// [`Interleaving::Alternate`] has no use for it. A place whose list is at an end does not occur:
/// both lists hold all memories.
///
/// # Errors
///
/// When a score is NaN, or the ratio is not between 0 and 1.
///
/// # Examples
/// ```
/// use mnemic_core::rank::interleaving::{Interleaving, Scored, interleaved};
///
/// let memories = [(0.9, 1), (0.8, 2), (0.1, 3)].map(|(score, time)| Scored { score, time });
/// assert_eq!(interleaved(&memories, 2, Interleaving::Alternate, 0.5), Ok(vec![0, 2]));
/// ```
pub fn interleaved(
    memories: &[Scored],
    limit: usize,
    interleaving: Interleaving,
    ratio: f64,
) -> Result<Vec<usize>, Error> {
    if let Some(place) = memories.iter().position(|memory| memory.score.is_nan()) {
        return Err(Error::ScoreIsNan { place });
    }
    if !(0.0..=1.0).contains(&ratio) {
        return Err(Error::ShareOutOfRange { what: "ratio", found: ratio.to_string() });
    }
    let mut best = Order::by(memories, |a, b| by_score(a, b).then(by_time(a, b)));
    let mut newest = Order::by(memories, |a, b| by_time(a, b).then(by_score(a, b)));
    #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
    let first_places = (ratio * limit as f64).round() as usize;
    let mut is_chosen = vec![false; memories.len()];
    let choose = |place| {
        let takes_best = match interleaving {
            Interleaving::Alternate => place % 2 == 0,
            Interleaving::ScoreFirst => place < first_places,
            Interleaving::RecencyFirst => place >= first_places,
        };
        if takes_best { best.next(&mut is_chosen) } else { newest.next(&mut is_chosen) }
    };
    Ok((0..limit).map_while(choose).collect())
}

/// The higher score first; both zeros are one score.
fn by_score(a: &Scored, b: &Scored) -> Ordering {
    b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal)
}

/// The later time first.
fn by_time(a: &Scored, b: &Scored) -> Ordering {
    b.time.cmp(&a.time)
}

/// Places of memories in an order, and the number of those passed.
struct Order {
    places: Vec<usize>,
    passed: usize,
}

impl Order {
    fn by(memories: &[Scored], compare: impl Fn(&Scored, &Scored) -> Ordering) -> Self {
        let mut places: Vec<usize> = (0..memories.len()).collect();
        places.sort_by(|&a, &b| compare(&memories[a], &memories[b]));
        Self { places, passed: 0 }
    }

    /// The next place not chosen yet, which then is.
    fn next(&mut self, is_chosen: &mut [bool]) -> Option<usize> {
        let found = self.places[self.passed..].iter().position(|&place| !is_chosen[place])?;
        let place = self.places[self.passed + found];
        self.passed += found + 1;
        is_chosen[place] = true;
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STRATEGIES: [Interleaving; 3] =
        [Interleaving::Alternate, Interleaving::ScoreFirst, Interleaving::RecencyFirst];

    fn memories(values: &[(f64, i64)]) -> Vec<Scored> {
        values.iter().map(|&(score, time)| Scored { score, time }).collect()
    }

    #[test]
    fn places_alternate_between_the_best_and_the_newest() {
        let memories = memories(&[(0.9, 1), (0.8, 2), (0.7, 3), (0.3, 9), (0.2, 8)]);
        let all = interleaved(&memories, 9, Interleaving::Alternate, 0.5);
        assert_eq!(all, Ok(vec![0, 3, 1, 4, 2]));
    }

    #[test]
    fn the_first_list_has_its_share_of_the_limit_half_a_place_rounded_up() {
        let memories = memories(&[(0.9, 1), (0.8, 2), (0.7, 3), (0.3, 9), (0.2, 8)]);
        let by =
            |interleaving, ratio| interleaved(&memories, 3, interleaving, ratio).expect("valid");
        assert_eq!(by(Interleaving::ScoreFirst, 1.0), [0, 1, 2]);
        assert_eq!(by(Interleaving::ScoreFirst, 0.5), [0, 1, 3]);
        assert_eq!(by(Interleaving::ScoreFirst, 0.0), [3, 4, 2]);
        assert_eq!(by(Interleaving::RecencyFirst, 0.5), [3, 4, 0]);
        assert_eq!(by(Interleaving::RecencyFirst, 0.0), [0, 1, 2]);
    }

    #[test]
    fn ties_go_to_the_newer_then_to_the_earlier_place() {
        let memories = memories(&[(0.5, 1), (0.0, 2), (-0.0, 2), (0.5, 2), (0.5, 2)]);
        let by = |interleaving| interleaved(&memories, 5, interleaving, 1.0);
        assert_eq!(by(Interleaving::ScoreFirst), Ok(vec![3, 4, 0, 1, 2]));
        assert_eq!(by(Interleaving::RecencyFirst), Ok(vec![3, 4, 1, 2, 0]));
    }

    #[test]
    fn a_score_without_order_and_a_ratio_out_of_range_are_refused() {
        let memories = memories(&[(0.5, 1), (f64::NAN, 2)]);
        let refused = interleaved(&memories, 1, Interleaving::Alternate, 0.5);
        assert_eq!(refused, Err(Error::ScoreIsNan { place: 1 }));
        for ratio in [-0.1, 1.1, f64::NAN] {
            assert!(interleaved(&[], 1, Interleaving::ScoreFirst, ratio).is_err());
        }
        let infinite = [(f64::NEG_INFINITY, 0), (f64::INFINITY, 0)];
        let by_score = interleaved(&self::memories(&infinite), 2, Interleaving::ScoreFirst, 1.0);
        assert_eq!(by_score, Ok(vec![1, 0]));
    }

    proptest! {
        #[test]
        fn each_place_holds_the_first_of_its_list_that_is_not_chosen_yet(
            values in prop::collection::vec((0..5_i8, 0..5_i64), 0..30),
            limit in 0..40_usize,
            interleaving in prop::sample::select(&STRATEGIES[..]),
            ratio in 0.0..=1.0,
        ) {
            let given = values.iter().map(|&(score, time)| (f64::from(score), time));
            let memories = memories(&given.collect::<Vec<_>>());
            let found = interleaved(&memories, limit, interleaving, ratio).expect("valid");
            prop_assert_eq!(found.len(), limit.min(values.len()));
            for (place, &chosen) in found.iter().enumerate() {
                let by_score = match interleaving {
                    Interleaving::Alternate => place % 2 == 0,
                    Interleaving::ScoreFirst => (place as f64 + 0.5) <= ratio * limit as f64,
                    Interleaving::RecencyFirst => (place as f64 + 0.5) > ratio * limit as f64,
                };
                let key = |at: usize| {
                    let (score, time) = values[at];
                    let time = -time;
                    let score = -i64::from(score);
                    if by_score { (score, time, at) } else { (time, score, at) }
                };
                let first = (0..values.len()).filter(|at| !found[..place].contains(at)).min_by_key(|&at| key(at));
                prop_assert_eq!(first, Some(chosen));
            }
        }
    }
}
