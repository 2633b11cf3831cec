//! Top k of a stream, in a total order: higher score first, then the smaller id.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Float64 inner product of the stored row and the query.
    pub score: f64,
    /// The row's id.
    pub id: i64,
}

impl Eq for Hit {}

impl Ord for Hit {
    /// Smaller is better, so that the worst kept hit is on top of the heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Keeps the `k` best hits seen.
pub(crate) struct TopK {
    k: usize,
    heap: BinaryHeap<Hit>,
}

impl TopK {
    pub(crate) fn new(k: usize) -> Self {
        Self { k, heap: BinaryHeap::with_capacity(k.min(4096) + 1) }
    }

    /// Offer one hit. A NaN score is never kept.
    pub(crate) fn offer(&mut self, hit: Hit) {
        if hit.score.is_nan() || self.k == 0 {
            return;
        }
        if self.heap.len() < self.k {
            self.heap.push(hit);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
    }

    /// The score that a new hit must reach; minus infinity until the heap is full.
    pub(crate) fn floor(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.k => worst.score,
            _ => f64::NEG_INFINITY,
        }
    }

    /// The hits, best first.
    pub(crate) fn into_sorted(self) -> Vec<Hit> {
        let mut hits = self.heap.into_vec();
        hits.sort_unstable();
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_smaller_id() {
        let mut best = TopK::new(2);
        for id in [5, 3, 9, 4] {
            best.offer(Hit { score: 1.0, id });
        }
        assert_eq!(best.into_sorted().iter().map(|hit| hit.id).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn nan_is_never_kept_and_k_zero_keeps_nothing() {
        let mut best = TopK::new(1);
        best.offer(Hit { score: f64::NAN, id: 1 });
        assert!(best.into_sorted().is_empty());
        let mut none = TopK::new(0);
        none.offer(Hit { score: 1.0, id: 1 });
        assert!(none.into_sorted().is_empty());
    }

    proptest! {
        #[test]
        fn equals_sorting_everything(scores in prop::collection::vec(-3_i8..3, 0..60), k in 0_usize..70) {
            let hits: Vec<Hit> = scores.iter().enumerate()
                .map(|(id, score)| Hit { score: f64::from(*score), id: (id * 7 % 61) as i64 }).collect();
            let mut best = TopK::new(k);
            for hit in &hits {
                best.offer(*hit);
            }
            let mut all = hits;
            all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
            all.truncate(k);
            prop_assert_eq!(best.into_sorted(), all);
        }
    }
}
