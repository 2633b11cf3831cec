//! Memories ordered by score and time at once, as Python passes them.

use mnemic_core::rank::interleaving::{Interleaving, Scored, interleaved as core_interleaved};
use pyo3::prelude::*;

use crate::errors::{CountMismatchError, InvalidArgumentError, raised};

#[doc = stub!("interleaved")]
#[pyfunction]
#[pyo3(signature = (scores, times, limit, strategy, ratio, /))]
pub(crate) fn interleaved(
    scores: Vec<f64>,
    times: Vec<i64>,
    limit: usize,
    strategy: &str,
    ratio: f64,
) -> PyResult<Vec<usize>> {
    if scores.len() != times.len() {
        let message = format!("{} scores were given with {} times", scores.len(), times.len());
        return Err(CountMismatchError::new_err(message));
    }
    let pair = |(&score, &time): (&f64, &i64)| Scored { score, time };
    let memories: Vec<Scored> = scores.iter().zip(&times).map(pair).collect();
    core_interleaved(&memories, limit, interleaving_of(strategy)?, ratio).map_err(raised)
}

fn interleaving_of(strategy: &str) -> PyResult<Interleaving> {
    match strategy {
        "alternate" => Ok(Interleaving::Alternate),
        "score_first" => Ok(Interleaving::ScoreFirst),
        "recency_first" => Ok(Interleaving::RecencyFirst),
        other => Err(InvalidArgumentError::new_err(format!(
            "strategy must be 'alternate', 'score_first' or 'recency_first', found {other:?}"
        ))),
    }
}
