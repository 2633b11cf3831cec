//! Scoring options converted before.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use mnemic_core::ScoringConfig;
use pyo3::prelude::*;

use crate::requests::{Given, GivenRanking};

/// Rankings of a program at a time: one of each type of search, and one of its own.
const MAX_KEPT: usize = 4;

/// The rankings converted last, by identity: a `mnemic.model.Ranking` never changes, and reading its
/// fifty attributes takes longer than ranking a hundred memories by meaning.
#[derive(Default)]
pub(crate) struct Scorings(Mutex<VecDeque<(Py<PyAny>, ScoringConfig)>>);

impl Scorings {
    /// The scoring options of a ranking.
    pub(crate) fn of(&self, ranking: &Bound<'_, PyAny>) -> PyResult<ScoringConfig> {
        if let Some(known) = self.known(ranking) {
            return Ok(known);
        }
        let made = ranking.extract::<Given<GivenRanking>>()?.0.ranking()?;
        self.keep(ranking.clone().unbind(), &made);
        Ok(made)
    }

    fn known(&self, ranking: &Bound<'_, PyAny>) -> Option<ScoringConfig> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known.is(ranking)).map(|(_, scoring)| *scoring)
    }

    fn keep(&self, ranking: Py<PyAny>, scoring: &ScoringConfig) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = if kept.len() < MAX_KEPT { None } else { kept.pop_front() };
        kept.push_back((ranking, *scoring));
        drop(kept);
        drop(oldest); // which may run Python's code
    }
}
