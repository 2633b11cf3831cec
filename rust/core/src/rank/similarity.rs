//! The similarity of every candidate to a query: bounded at once, exact where it matters.

use crate::bits::set_bits;
use crate::deadline::Deadline;
use crate::ids::{docid_of, vector_id};
use crate::quantization::coded_rows::LONG_COMPONENTS;
use crate::quantization::kernel::{Kernel, Limit, Rows, TILE_ROWS, Uppers};
use crate::quantization::scalar::rounded_down;
use crate::search::cascade::{Cascade, Scorer};
use crate::search::coarse_scan::Piece;
use crate::search::docid_set::DocidSet;
use crate::search::formula::Formula;
use crate::search::prepared_query::{PreparedQuery, Stage, common_power};
use crate::search::selection::{FEW_SHARE, SPARSE_SHARE, SelectedRows};
use crate::storage::segment::SegmentView;
use crate::storage::snapshot_store::{Place, VectorRows};

/// Memories whose rows are fetched before one is looked at.
const AHEAD: usize = 4;

/// Queries of one answer; a memory is as similar as the nearest of its chunks to the nearest query.
pub(crate) struct Similarity<'a> {
    kernel: &'static dyn Kernel,
    vectors: &'a VectorRows,
    /// Largest number of chunks of any memory.
    chunks: u32,
    prepared_queries: Vec<PreparedQuery>,
    is_long: bool,
    /// Whether the queries suit bounds; otherwise every row is scored.
    is_boundable: bool,
    deadline: &'a Deadline,
}

impl<'a> Similarity<'a> {
    /// Prepare queries of `dim` components each, one after the other, for rows of which
    /// `candidates` are candidates.
    pub(crate) fn new(
        kernel: &'static dyn Kernel,
        vectors: &'a VectorRows,
        chunks: u32,
        (queries, dim): (&[f32], usize),
        candidates: usize,
        deadline: &'a Deadline,
    ) -> Self {
        let queries: Vec<&[f32]> = queries.chunks_exact(dim).collect();
        let power = common_power(&queries);
        let is_sparse = candidates * SPARSE_SHARE < vectors.places.len();
        let is_long = !is_sparse && vectors.places.len() * dim >= LONG_COMPONENTS;
        let prepare = |query: &&[f32]| match (power, is_long) {
            (None, _) => PreparedQuery::for_scores(query),
            (Some(power), false) => {
                PreparedQuery::new(kernel, query, power).with_codes(kernel, query)
            }
            (Some(power), true) => {
                PreparedQuery::for_long_scan(kernel, query, power, None).with_codes(kernel, query)
            }
        };
        let prepared_queries = queries.iter().map(prepare).collect();
        let is_boundable = power.is_some();
        Self { kernel, vectors, chunks, prepared_queries, is_long, is_boundable, deadline }
    }

    /// An upper bound for each candidate; minus infinity for one without a vector, or one that was
    /// not reached before the deadline.
    pub(crate) fn uppers(&self, candidates: &DocidSet) -> Vec<f32> {
        let mut uppers = vec![f32::NEG_INFINITY; candidates.len()];
        let (vectors, chunks) = (self.vectors, self.chunks);
        let Ok(selected) = SelectedRows::of_docids(vectors, chunks, candidates, self.deadline)
        else {
            return uppers;
        };
        let formula = Formula { weight: 1.0, prior: None };
        // All bounds are kept, so none needs to reach anything.
        let scorer = Scorer::new(self.kernel, &self.prepared_queries, formula, 0, f64::INFINITY);
        let mut cascade = Cascade::new(scorer, None);
        let mut bounds = Vec::new();
        for (position, view) in vectors.segments.iter().enumerate() {
            if self.deadline.is_past() {
                break;
            }
            let allowed = selected.as_ref().map(|rows| rows.segment(position));
            let scanned = formula.scanned(position, view);
            let Some(piece) = Piece::of(scanned, allowed, self.is_long) else { continue };
            self.bound(&mut cascade, &piece, &mut bounds);
            let ids = view.segment.ids();
            let rows = piece.rows();
            rows.positions().for_each(|position| {
                let docid = docid_of(ids[rows.row(position) as usize]);
                let known = &mut uppers[candidates.ordinal(docid) as usize];
                if bounds[position] > *known {
                    *known = bounds[position]; // in fewer steps than `max`, which heeds NaN
                }
            });
        }
        uppers
    }

    /// Upper bounds of the similarity of a segment's candidate rows, in their order.
    fn bound(&self, cascade: &mut Cascade<'_>, piece: &Piece<'_>, bounds: &mut Vec<f32>) {
        bounds.clear();
        let rows = piece.rows();
        bounds.resize(rows.bounds(), f32::INFINITY);
        if !self.is_boundable {
            return;
        }
        // By sketches so many rows may reach the floor of a fused score that a hybrid search of 100,000
        // took 1.5 times as long.
        let scanned = piece.scanned.at(piece.scanned.stage.max(Stage::Nibbles));
        let reaching = &mut vec![0; bounds.len().div_ceil(TILE_ROWS)];
        let uppers = Uppers { values: bounds, reaching };
        cascade.bound(&scanned, rows, f32::NEG_INFINITY, uppers);
        // A power of two: dividing by it loses nothing.
        let power = self.prepared_queries[0].power as f32;
        for bound in bounds {
            *bound /= power;
        }
    }

    /// A closer upper bound of one memory's similarity.
    pub(crate) fn upper(&self, docid: u32) -> f64 {
        if !self.is_boundable {
            return f64::INFINITY;
        }
        self.best(docid, |view, row, prepared| self.range(view, row, prepared).1)
    }

    /// Bounds of the similarity of one row to one query from below and above.
    fn range(&self, view: &SegmentView, row: usize, prepared: &PreparedQuery) -> (f64, f64) {
        let (rows, codes) = (&view.segment.bytes, prepared.codes());
        let sum = self.kernel.code_sum(rows.row(row), codes);
        let (lower, upper) = codes.range(rows.bounds()[row], sum);
        (lower / prepared.power, upper / prepared.power)
    }

    /// [`exact`](Self::exact) of each of several memories.
    pub(crate) fn exact_of(&self, docids: &[u32]) -> Vec<f64> {
        self.best_of(
            docids,
            |view, row| self.kernel.prefetch(view.segment.vector_lines(row)),
            |view, row, prepared| self.dot(view, row, prepared),
        )
    }

    /// [`upper`](Self::upper) of each of several memories.
    pub(crate) fn uppers_of(&self, docids: &[u32]) -> Vec<f64> {
        if !self.is_boundable {
            return vec![f64::INFINITY; docids.len()];
        }
        self.best_of(
            docids,
            |view, row| self.kernel.prefetch(view.segment.bytes.row(row)),
            |view, row, prepared| self.range(view, row, prepared).1,
        )
    }

    /// The largest of each memory's rows, which are fetched a few ahead.
    fn best_of(
        &self,
        docids: &[u32],
        fetch: impl Fn(&SegmentView, usize),
        of: impl Fn(&SegmentView, usize, &PreparedQuery) -> f64,
    ) -> Vec<f64> {
        let mut rows = Vec::with_capacity(docids.len());
        for (at, docid) in docids.iter().enumerate() {
            self.each_place(*docid, |view, row| rows.push((at, view, row)));
        }
        let mut best = vec![f64::NEG_INFINITY; docids.len()];
        for (number, (at, view, row)) in rows.iter().enumerate() {
            if let Some((_, view, row)) = rows.get(number + AHEAD) {
                fetch(view, *row);
            }
            for prepared in &self.prepared_queries {
                best[*at] = best[*at].max(of(view, *row, prepared));
            }
        }
        best
    }

    /// Bounds of one memory's similarity from below and above, as close as the second is.
    pub(crate) fn bounds(&self, docid: u32) -> (f64, f64) {
        if !self.is_boundable {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        let mut bounds = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        self.each_place(docid, |view, row| bounds = larger(bounds, self.row_bounds(view, row)));
        bounds
    }

    /// Bounds of the similarity of all memories that `is_wanted` by their ordinals; each is visited
    /// at most once, in no order, with a function of the exact similarity, unless it is certainly
    /// below `floor`.
    pub(crate) fn each_bounds(
        &self,
        candidates: &DocidSet,
        floor: f64,
        is_wanted: impl Fn(u32) -> bool,
        mut visit: impl FnMut(u32, (f64, f64), &dyn Fn() -> f64),
    ) {
        let are_few = candidates.len() * FEW_SHARE < self.vectors.places.len();
        if !self.is_boundable || are_few {
            for (at, docid) in (0..).zip(candidates.iter()).filter(|(at, _)| is_wanted(*at)) {
                if self.deadline.is_past_at(at as usize) {
                    return;
                }
                visit(at, self.bounds(docid), &|| self.exact(docid));
            }
        } else if self.chunks == 1 {
            self.each_row(candidates, floor, is_wanted, |at, bounds, exact| {
                visit(at, bounds, &exact);
            });
        } else {
            let mut found = vec![(f64::NEG_INFINITY, f64::NEG_INFINITY); candidates.len()];
            self.each_row(candidates, floor, is_wanted, |at, bounds, _| {
                found[at as usize] = larger(found[at as usize], bounds);
            });
            for ((at, docid), bounds) in (0..).zip(candidates.iter()).zip(found) {
                if self.deadline.is_past_at(at as usize) {
                    return;
                }
                if bounds.1 > f64::NEG_INFINITY {
                    visit(at, bounds, &|| self.exact(docid));
                }
            }
        }
    }

    /// Bounds of the similarity of all rows of wanted memories, along the segments; not of those that
    /// are certainly below `floor`.
    fn each_row(
        &self,
        candidates: &DocidSet,
        floor: f64,
        is_wanted: impl Fn(u32) -> bool,
        mut visit: impl FnMut(u32, (f64, f64), &dyn Fn() -> f64),
    ) {
        for view in &self.vectors.segments {
            let (rows, ordinals) = listed(view, candidates, &is_wanted);
            for first in (0..rows.len()).step_by(TILE_ROWS) {
                if self.deadline.is_past() {
                    return;
                }
                let reaching = self.reaching(view, &rows[first..], floor);
                let bounded = reaching.map(|at| {
                    let row = rows[first + at] as usize;
                    let (lower, upper) = self.row_bounds(view, row);
                    if lower < floor && floor <= upper {
                        self.kernel.prefetch(view.segment.vector_lines(row));
                    }
                    Bounded { ordinal: ordinals[first + at], lower, upper, row }
                });
                for bounded in bounded.collect::<Vec<_>>() {
                    let dot = |prepared| self.dot(view, bounded.row, prepared);
                    let exact =
                        || self.prepared_queries.iter().map(dot).fold(f64::NEG_INFINITY, f64::max);
                    visit(bounded.ordinal, (bounded.lower, bounded.upper), &exact);
                }
            }
        }
    }

    /// Which of the first rows of a list may reach a similarity, by one of the planes of bytes.
    fn reaching(
        &self,
        view: &SegmentView,
        listed: &[u32],
        floor: f64,
    ) -> impl Iterator<Item = usize> {
        let listed = &listed[..listed.len().min(TILE_ROWS)];
        if floor == f64::NEG_INFINITY {
            return set_bits(u64::MAX >> (TILE_ROWS - listed.len()));
        }
        let bytes = &view.segment.bytes;
        let mut reaching = 0;
        for prepared in &self.prepared_queries {
            let min = rounded_down(floor * prepared.power);
            let limit = Limit::new(bytes.packing, prepared.plane(Stage::Bytes), min, None);
            let mut uppers = Uppers { values: &mut [0.0; TILE_ROWS], reaching: &mut [0] };
            self.kernel.bound(bytes, Rows::Listed(listed), &limit, &mut uppers);
            reaching |= uppers.reaching[0];
        }
        set_bits(reaching)
    }

    /// Bounds of one row's similarity from below and above.
    fn row_bounds(&self, view: &SegmentView, row: usize) -> (f64, f64) {
        let of_prepared = |prepared: &PreparedQuery| self.range(view, row, prepared);
        let nothing = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        self.prepared_queries.iter().map(of_prepared).fold(nothing, larger)
    }

    /// The similarity of one memory, in float64; minus infinity if it has no vector.
    pub(crate) fn exact(&self, docid: u32) -> f64 {
        self.best(docid, |view, row, prepared| self.dot(view, row, prepared))
    }

    fn dot(&self, view: &SegmentView, row: usize, prepared: &PreparedQuery) -> f64 {
        // Adding zero turns minus zero into zero, with which it ties.
        self.kernel.dot(view.segment.vector(row), &prepared.query) + 0.0
    }

    fn best(&self, docid: u32, of: impl Fn(&SegmentView, usize, &PreparedQuery) -> f64) -> f64 {
        let mut best = f64::NEG_INFINITY;
        self.each_place(docid, |view, row| {
            for prepared in &self.prepared_queries {
                best = best.max(of(view, row, prepared));
            }
        });
        best
    }

    fn each_place<'s>(&'s self, docid: u32, mut visit: impl FnMut(&'s SegmentView, usize)) {
        for place in self.places(docid) {
            if let Some(position) = self.vectors.position(place.number()) {
                visit(&self.vectors.segments[position], place.row());
            }
        }
    }

    /// The number of one memory's chunks.
    pub(crate) fn chunks_of(&self, docid: u32) -> u32 {
        // Mostly no memory has more than one, and each look-up is a step of every exact score.
        if self.chunks == 1 { 1 } else { self.places(docid).count() as u32 }
    }

    /// Which of a memory's chunks is nearest to a query, the first of equals.
    pub(crate) fn nearest_chunk(&self, docid: u32) -> u32 {
        let (mut nearest, mut best, mut chunk) = (0, f64::NEG_INFINITY, 0);
        self.each_place(docid, |view, row| {
            for prepared in &self.prepared_queries {
                let cosine = self.dot(view, row, prepared);
                if cosine > best {
                    (nearest, best) = (chunk, cosine);
                }
            }
            chunk += 1;
        });
        nearest
    }

    fn places(&self, docid: u32) -> impl Iterator<Item = Place> {
        (0..self.chunks).filter_map(move |chunk| self.vectors.places.get(vector_id(docid, chunk)))
    }
}

/// The larger of two lower bounds, and of two upper ones.
fn larger(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (one.0.max(other.0), one.1.max(other.1))
}

/// A row with bounds of its similarity.
struct Bounded {
    ordinal: u32,
    lower: f64,
    upper: f64,
    row: usize,
}

/// The candidate rows of a segment that are wanted by ordinal, with their ordinals.
fn listed(
    view: &SegmentView,
    candidates: &DocidSet,
    is_wanted: impl Fn(u32) -> bool,
) -> (Vec<u32>, Vec<u32>) {
    let (mut rows, mut ordinals) = (Vec::new(), Vec::new());
    let ids = view.segment.ids();
    for row in view.live_rows() {
        if let Some(at) = candidates.find(docid_of(ids[row])).filter(|at| is_wanted(*at)) {
            rows.push(row as u32);
            ordinals.push(at);
        }
    }
    (rows, ordinals)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "infinities are what they are")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::deadline::NEVER;
    use crate::memory::state::MemoryState;
    use crate::simd;
    use crate::storage::snapshot_store::SnapshotStore;

    const DIM: usize = 24;

    fn vectors(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed | 1;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
        };
        (0..count * DIM).map(|_| next()).collect()
    }

    /// A store whose docids are the ids of its vectors, of `chunks` chunks each.
    fn index_of(rows: &[f32], chunks: u32) -> SnapshotStore {
        let index =
            SnapshotStore::new(simd::kernel().expect("a kernel"), DIM, MemoryState::default());
        let docids = (rows.len() / DIM) as u32 / chunks;
        let ids: Vec<i64> = (0..docids)
            .flat_map(|docid| (0..chunks).map(move |chunk| vector_id(docid, chunk)))
            .collect();
        index.upsert(&ids, |at, row| row[..DIM].copy_from_slice(&rows[at * DIM..][..DIM]));
        index
    }

    fn dot(one: &[f32], other: &[f32]) -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn bounds_are_above_and_exact_values_are_exact(
            docids in 1_usize..300,
            chunks in 1_u32..4,
            queries in 1_usize..4,
            every in 1_u32..20,
            seed in any::<u64>(),
        ) {
            let rows = vectors(docids * chunks as usize, seed);
            let asked = vectors(queries, seed.rotate_left(7));
            let index = index_of(&rows, chunks);
            let snapshot = index.snapshot();
            let mut words = vec![0_u64; docids.div_ceil(64)];
            (0..docids as u32).step_by(every as usize).for_each(|docid| {
                words[docid as usize / 64] |= 1 << (docid % 64);
            });
            let candidates = DocidSet::of_words(words, docids, docids);
            let kernel = simd::kernel().expect("a kernel");
            let similarity =
                Similarity::new(kernel, &snapshot.vectors, chunks, (&asked, DIM), candidates.len(), &NEVER);
            let uppers = similarity.uppers(&candidates);
            prop_assert_eq!(uppers.len(), candidates.len());
            for (docid, upper) in candidates.iter().zip(uppers) {
                let of_docid = &rows[docid as usize * chunks as usize * DIM..][..chunks as usize * DIM];
                let products = of_docid.chunks(DIM).flat_map(|row| {
                    asked.chunks(DIM).map(move |query| dot(row, query))
                });
                let largest = products.fold(f64::NEG_INFINITY, f64::max);
                let exact = similarity.exact(docid);
                prop_assert!((exact - largest).abs() < 1e-12, "{exact} {largest}");
                prop_assert!(similarity.upper(docid) >= exact);
                prop_assert_eq!(similarity.bounds(docid).1, similarity.upper(docid));
                prop_assert!(similarity.bounds(docid).0 <= exact);
                prop_assert!(f64::from(upper) >= similarity.upper(docid).min(exact));
                prop_assert!(f64::from(upper) >= exact);
            }
            prop_assert_eq!(similarity.exact(docids as u32), f64::NEG_INFINITY);
            let docids: Vec<u32> = candidates.iter().collect();
            for floor in [f64::NEG_INFINITY, similarity.exact(docids[docids.len() / 2])] {
                let mut visits = vec![0_usize; docids.len()];
                let visit = |at: u32, (lower, upper): (f64, f64), exact: &dyn Fn() -> f64| {
                    let found = similarity.exact(docids[at as usize]);
                    assert!(lower <= found && found <= upper.max(floor));
                    assert_eq!(exact(), found);
                    visits[at as usize] += 1;
                };
                similarity.each_bounds(&candidates, floor, |at| at % 3 != 1, visit);
                for ((at, docid), visits) in docids.iter().enumerate().zip(visits) {
                    let reaches = similarity.exact(*docid) >= floor;
                    prop_assert!(visits == usize::from(at % 3 != 1 && (reaches || visits > 0)));
                }
            }
        }
    }

    #[test]
    fn a_docid_without_a_vector_has_no_similarity() {
        let index = index_of(&vectors(3, 5), 1);
        let snapshot = index.snapshot();
        let asked = vectors(1, 9);
        let kernel = simd::kernel().expect("a kernel");
        let similarity = Similarity::new(kernel, &snapshot.vectors, 1, (&asked, DIM), 5, &NEVER);
        let uppers = similarity.uppers(&DocidSet::of_words(vec![0b11111], 5, 5));
        assert!(uppers[2] > f32::NEG_INFINITY);
        assert_eq!(uppers[3..], [f32::NEG_INFINITY; 2]);
    }
}
