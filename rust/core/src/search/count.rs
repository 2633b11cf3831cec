//! Exact number of rows that reach a score: bounds decide nearly all of them.

use crate::quantization::coded_rows::LONG_COMPONENTS;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::{norm, power_of_two_for};
use crate::search::cascade::{Cascade, Place, Scorer};
use crate::search::coarse_scan::{Piece, candidate_places};
use crate::search::formula::{Formula, ScannedSegment};
use crate::search::prepared_query::PreparedQuery;
use crate::search::scan::Scope;
use crate::search::selection::SegmentRows;

/// If more than one row in this many may reach the score, their bounds from below are computed for
/// whole blocks.
const DENSE_SHARE: usize = 8;

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
    let prepared = [if is_long {
        PreparedQuery::for_long_scan(kernel, query, power, vectors.basis.as_deref())
    } else {
        PreparedQuery::new(kernel, query, power)
    }];
    let negated = [PreparedQuery::new(kernel, &negated, power)];
    let scorer = |queries| Scorer::new(kernel, queries, formula, 1, min_score);
    let mut counting = Counting {
        above: Cascade::new(scorer(&prepared), None),
        below: Cascade::below(scorer(&negated)),
        scorer: scorer(&prepared),
        min_score,
        is_boundable: formula.is_boundable(&prepared[0]),
        is_long,
    };
    let views = vectors.segments.iter().enumerate();
    views
        .map(|(position, view)| {
            let allowed = scope.allowed.as_ref().map(|rows| rows.segment(position));
            counting.in_segment(formula.scanned(position, view), allowed)
        })
        .sum()
}

struct Counting<'a> {
    above: Cascade<'a>,
    below: Cascade<'a>,
    scorer: Scorer<'a>,
    min_score: f64,
    is_boundable: bool,
    is_long: bool,
}

impl<'a> Counting<'a> {
    fn in_segment(
        &mut self,
        scanned: ScannedSegment<'a>,
        allowed: Option<&'a SegmentRows>,
    ) -> usize {
        let Some(piece) = Piece::of(scanned, allowed, self.is_long) else { return 0 };
        let reaching = |places: &[Place<'_>]| {
            let scores = self.scorer.scores(places).into_iter();
            scores.filter(|score| *score >= self.min_score).count()
        };
        if !self.is_boundable {
            return reaching(&candidate_places(scanned, allowed));
        }
        let may_reach = self.above.all_reaching(&piece.scanned, piece.rows());
        let may_reach = self.above.passed(&piece.scanned, may_reach);
        let is_dense = may_reach.len() * DENSE_SHARE > scanned.view.len;
        let may_miss = self.below.reaching(&scanned, &may_reach, is_dense);
        let certain = may_reach.len() - may_miss.len();
        let places: Vec<_> = may_miss.iter().map(|bounded| (scanned, bounded.row)).collect();
        certain + reaching(&places)
    }
}
