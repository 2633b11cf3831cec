//! The largest of many values, and those that reach a floor.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Values of which the largest is compared with a floor first.
const BATCH: usize = 16;

/// In fewer steps than with `max`, which heeds NaN.
fn max_of(values: &[f64]) -> f64 {
    let larger = |one: f64, other: &f64| if *other > one { *other } else { one };
    values.iter().fold(f64::NEG_INFINITY, larger)
}

/// The ordinals of values that reach a floor, ascending.
pub(crate) fn reaching(values: &[f64], floor: f64) -> Vec<u32> {
    let mut found = Vec::new();
    for (first, batch) in (0..).step_by(BATCH).zip(values.chunks(BATCH)) {
        if max_of(batch) >= floor {
            let reaches = |(at, value): (u32, &f64)| (*value >= floor).then_some(at);
            found.extend((first..).zip(batch).filter_map(reaches));
        }
    }
    found
}

/// The ordinals of the largest values, the largest first; of equal ones the smaller ordinal first.
pub(crate) fn largest(values: &[f64], wanted: usize) -> Vec<u32> {
    let wanted = wanted.min(values.len());
    let bound = |at: u32, value: &f64| Reverse(Bound(*value, Reverse(at)));
    let (first, rest) = values.split_at(wanted);
    let mut heap: BinaryHeap<Reverse<Bound>> =
        (0..).zip(first).map(|(at, value)| bound(at, value)).collect();
    for (first, batch) in (wanted as u32..).step_by(BATCH).zip(rest.chunks(BATCH)) {
        let Some(floor) = heap.peek().map(|Reverse(smallest)| smallest.0) else { break };
        if max_of(batch) <= floor {
            continue;
        }
        for (at, value) in (first..).zip(batch) {
            if let Some(mut smallest) = heap.peek_mut()
                && *value > smallest.0.0
            {
                *smallest = bound(at, value);
            }
        }
    }
    heap.into_sorted_vec().into_iter().map(|Reverse(Bound(_, Reverse(at)))| at).collect()
}

/// A value and its ordinal; never NaN.
#[derive(PartialEq)]
struct Bound(f64, Reverse<u32>);

impl Eq for Bound {}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_largest_are_those_of_the_sorted_list(
            values in prop::collection::vec(-3_i8..4, 0..80), wanted in 0_usize..90
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let mut sorted: Vec<u32> = (0..values.len() as u32).collect();
            sorted.sort_by(|one, other| {
                values[*other as usize].total_cmp(&values[*one as usize]).then(one.cmp(other))
            });
            sorted.truncate(wanted);
            prop_assert_eq!(largest(&values, wanted), sorted);
        }
    }
}
