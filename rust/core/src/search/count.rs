//! Exact number of rows that reach a score: bounds decide nearly all of them.

use crate::bits::set_bits;
use crate::quantization::kernel::{Kernel, Limit, TILE_ROWS, Tile};
use crate::quantization::row_blocks::{CodedRows, LONG_COMPONENTS};
use crate::quantization::scalar::{norm, power_of_two_for};
use crate::search::cascade::{Formula, ScannedSegment, Scorer};
use crate::search::coarse_scan::candidate_words;
use crate::search::prepared_query::{PreparedQuery, Stage};
use crate::search::scan::Scope;

/// Up to so many wanted rows of a tile of 64 are read one by one instead of in whole blocks.
const FEW_IN_TILE: usize = 12;

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
    let vectors = &scope.snapshot.vectors;
    let is_long = vectors.places.len() * query.len() >= LONG_COMPONENTS;
    let (prepared, stages): (_, &[Stage]) = if is_long {
        let prepared = PreparedQuery::for_long_scan(kernel, query, power, None);
        (prepared, &[Stage::Nibbles, Stage::Bytes])
    } else {
        (PreparedQuery::new(kernel, query, power), &[Stage::Bytes])
    };
    let prepared_queries = [prepared];
    let negated = PreparedQuery::new(kernel, &negated, power);
    let counting = Counting {
        kernel,
        formula,
        scorer: Scorer::new(kernel, &prepared_queries, formula, 1, min_score),
        prepared: &prepared_queries[0],
        negated: &negated,
        min_score,
        is_boundable: formula.is_boundable(&prepared_queries[0]),
        stages,
    };
    let views = vectors.segments.iter().enumerate();
    let counts = views.map(|(position, view)| {
        let scanned = ScannedSegment { position, view, priors: formula.priors(position) };
        let allowed = scope.allowed.as_ref().map(|rows| rows.segment(position));
        if allowed.is_some_and(|rows| rows.count == 0) {
            return 0;
        }
        let words = candidate_words(view, allowed).enumerate();
        words.map(|(at, word)| counting.in_tile(&scanned, at, word)).sum()
    });
    counts.sum()
}

struct Counting<'a> {
    kernel: &'a dyn Kernel,
    formula: Formula<'a>,
    scorer: Scorer<'a>,
    prepared: &'a PreparedQuery,
    negated: &'a PreparedQuery,
    min_score: f64,
    is_boundable: bool,
    /// The stages of upper bounds, one after the other.
    stages: &'static [Stage],
}

impl Counting<'_> {
    /// Count among the candidate rows of one tile.
    fn in_tile(&self, scanned: &ScannedSegment<'_>, tile: usize, candidates: u64) -> usize {
        if candidates == 0 {
            return 0;
        }
        let (may_reach, may_miss) = if self.is_boundable {
            self.masks(scanned, tile, candidates)
        } else {
            (candidates, candidates)
        };
        let certain = (may_reach & !may_miss).count_ones() as usize;
        let reaches =
            |bit: &usize| self.scorer.score(scanned, tile * TILE_ROWS + bit) >= self.min_score;
        certain + set_bits(may_miss).filter(reaches).count()
    }

    /// The rows that may reach the smallest score, and those of them that may miss it.
    fn masks(&self, scanned: &ScannedSegment<'_>, number: usize, candidates: u64) -> (u64, u64) {
        let may_reach = self.stages.iter().fold(candidates, |wanted, stage| {
            let limit = self.formula.limit(self.prepared, *stage, scanned, self.min_score);
            self.reaching(stage.rows(scanned.view), Tile { number, wanted }, &limit)
        });
        let (last, min) = (Stage::Bytes, self.min_score);
        let limit = self.formula.negated_limit(self.negated, last, scanned, min);
        let tile = Tile { number, wanted: may_reach };
        (may_reach, self.reaching(last.rows(scanned.view), tile, &limit))
    }

    /// Which of the wanted rows reach a limit; few of them are read one by one.
    fn reaching(&self, rows: &CodedRows, tile: Tile, limit: &Limit<'_>) -> u64 {
        let mut uppers = [0.0; TILE_ROWS];
        if tile.wanted.count_ones() as usize > FEW_IN_TILE {
            return self.kernel.bound(rows, tile, limit, &mut uppers);
        }
        let bits: Vec<usize> = set_bits(tile.wanted).collect();
        let listed: Vec<u32> =
            bits.iter().map(|bit| (tile.number * TILE_ROWS + bit) as u32).collect();
        let mask = self.kernel.bound_listed(rows, &listed, limit, &mut uppers);
        set_bits(mask).fold(0, |found, at| found | 1 << bits[at])
    }
}
