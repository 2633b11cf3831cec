//! How many rows score at least so much, exactly: bounds settle nearly all of them (C155).

use crate::cascade::{Formula, Here, Scorer};
use crate::probe::{Probe, Stage};
use crate::quant::{norm, power_of_two_for};
use crate::scan::Scope;
use crate::segment::set_bits;
use crate::simd::{CHUNK, EIGHT, Kernel};
use crate::survey::words_in_play;

/// Count the rows in `scope` that score at least `min_score`.
pub(crate) fn count(
    kernel: &dyn Kernel,
    scope: &Scope,
    query: &[f32],
    weight: f64,
    min_score: f64,
) -> usize {
    let negated: Vec<f32> = query.iter().map(|value| -value).collect();
    let formula = Formula { weight, prior: scope.prior.as_deref() };
    let power = power_of_two_for(norm(query));
    let probes = [Probe::new(kernel, query, power)];
    let negated = Probe::new(kernel, &negated, power);
    let counting = Counting {
        kernel,
        formula,
        scorer: Scorer::new(kernel, &probes, formula, 1, min_score),
        probe: &probes[0],
        negated: &negated,
        min_score,
        is_boundable: formula.is_boundable(&probes[0]),
    };
    let views = scope.snapshot.vectors.segments.iter().enumerate();
    let counts = views.map(|(position, view)| {
        let here = Here { position, view, priors: formula.priors(position) };
        let allowed = scope.allowed.as_ref().map(|rows| rows.segment(position));
        if allowed.is_some_and(|rows| rows.count == 0) {
            return 0;
        }
        let words = words_in_play(view, allowed).enumerate();
        words.map(|(at, word)| counting.in_chunk(&here, at, word)).sum()
    });
    counts.sum()
}

struct Counting<'a> {
    kernel: &'a dyn Kernel,
    formula: Formula<'a>,
    scorer: Scorer<'a>,
    probe: &'a Probe,
    negated: &'a Probe,
    min_score: f64,
    is_boundable: bool,
}

impl Counting<'_> {
    /// Count among the rows of one chunk that are in play.
    fn in_chunk(&self, here: &Here<'_>, chunk: usize, in_play: u64) -> usize {
        if in_play == 0 {
            return 0;
        }
        let (may_reach, may_miss) =
            if self.is_boundable { self.masks(here, chunk) } else { (u64::MAX, u64::MAX) };
        let certain = (in_play & !may_miss).count_ones() as usize;
        let reaches = |bit: &usize| self.scorer.score(here, chunk * CHUNK + bit) >= self.min_score;
        certain + set_bits(in_play & may_reach & may_miss).filter(reaches).count()
    }

    /// The rows that may reach the least score, and those that may miss it.
    fn masks(&self, here: &Here<'_>, chunk: usize) -> (u64, u64) {
        let rows = Stage::Bytes.rows(here.view);
        let filled = here.view.len.div_ceil(EIGHT) - chunk * EIGHT;
        let numbers: [u32; EIGHT] = std::array::from_fn(|at| (chunk * EIGHT + at) as u32);
        let blocks = &numbers[..filled.min(EIGHT)];
        let reach = self.formula.limit(self.probe, Stage::Bytes, here, self.min_score);
        let miss = self.formula.negated_limit(self.negated, Stage::Bytes, here, self.min_score);
        let mask = |limit| self.kernel.bound(rows, blocks, limit, &mut [0.0; CHUNK]);
        (mask(&reach), mask(&miss))
    }
}
