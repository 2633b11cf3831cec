//! Exact top-k over a snapshot: certified bounds rule rows out, float64 scores decide.
//!
//! A long scan reads sketches where segments have them, else 4 bits a component. Rows whose upper
//! bound reaches the k-th best lower bound so far wait a moment for more of their bits, are bounded
//! again, and raise that lower bound; a short scan starts with a byte a component. The few rows
//! that remain at the end are scored from their float32 values.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::deadline::{Deadline, SOME_ROWS};
use crate::quantization::coded_rows::LONG_COMPONENTS;
use crate::quantization::kernel::Kernel;
use crate::search::cascade::{Cascade, ScanResult, Scorer, SharedThreshold};
use crate::search::coarse_scan::{CoarseScan, candidate_places};
use crate::search::formula::{Formula, ScannedSegment};
use crate::search::prepared_query::{PreparedQuery, common_power};
use crate::search::prior::PriorRows;
use crate::search::selection::{SegmentRows, SelectedRows};
use crate::search::top_k::Hit;
use crate::storage::snapshot_store::{Snapshot, VectorRows};

/// Up to this many rows scoring all beats bounding them first (`docs/project/lab/kernel.md`).
const SCORE_ALL_ROWS: usize = 48;

/// Up to this many selected rows their bytes are read at once: each row is a wait for memory, and a
/// second one for its bytes costs more than the shorter codes save (`docs/project/lab/kernel.md`).
const FEW_ROWS: usize = 6_000;

/// If k is more than this share of the rows, bounds exclude too little to pay.
const SCORE_ALL_SHARE: usize = 4;

/// Queries in one pass over the rows.
const PASS_QUERIES: usize = 8;

/// Queries and limits of a scan.
pub(crate) struct ScanRequest<'a> {
    /// One query after the other, `dim` floats each; at least one.
    pub(crate) queries: &'a [f32],
    pub(crate) dim: usize,
    /// One answer for all queries, where the best of them counts, instead of one for each.
    pub(crate) combined_by_max: bool,
    pub(crate) k: usize,
    pub(crate) min_score: f64,
    pub(crate) weight: f64,
    pub(crate) threads: usize,
    /// Where it passes, the best of some of the rows are answered.
    pub(crate) deadline: &'a Deadline,
}

/// The rows to scan, and their priors.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) allowed: Option<Arc<SelectedRows>>,
    pub(crate) prior: Option<Arc<PriorRows>>,
}

/// The best rows for each answer, best first; ties go to the smaller id.
pub(crate) fn search(
    kernel: &'static dyn Kernel,
    scope: &Scope,
    request: &ScanRequest<'_>,
) -> Vec<Vec<Hit>> {
    let queries: Vec<&[f32]> = request.queries.chunks_exact(request.dim).collect();
    if request.combined_by_max {
        return answers(kernel, scope, request, &queries, queries.len());
    }
    let passes = queries.chunks(PASS_QUERIES);
    passes.flat_map(|queries| answers(kernel, scope, request, queries, 1)).collect()
}

/// One answer for every `combined_by_max` queries.
fn answers(
    kernel: &'static dyn Kernel,
    scope: &Scope,
    request: &ScanRequest<'_>,
    queries: &[&[f32]],
    combined_by_max: usize,
) -> Vec<Vec<Hit>> {
    let vectors = &scope.snapshot.vectors;
    let rows = scope.allowed.as_ref().map_or(vectors.places.len(), |rows| rows.count());
    let k = request.k.min(rows);
    let is_long = vectors.places.len() * request.dim >= LONG_COMPONENTS && rows > FEW_ROWS;
    let is_limited = k < rows / SCORE_ALL_SHARE;
    let few = rows <= SCORE_ALL_ROWS || !is_limited && request.min_score == f64::NEG_INFINITY;
    let powers = queries.chunks(combined_by_max).map(common_power);
    let powers: Vec<Option<f64>> = powers.flat_map(|power| vec![power; combined_by_max]).collect();
    let few = few || powers.contains(&None);
    let prepare = |(query, power): (&&[f32], &Option<f64>)| match (few, is_long, power) {
        (false, false, Some(power)) => PreparedQuery::new(kernel, query, *power),
        (false, true, Some(power)) => {
            PreparedQuery::for_long_scan(kernel, query, *power, vectors.basis.as_deref())
        }
        _ => PreparedQuery::for_scores(query),
    };
    let prepared_queries = queries.iter().zip(&powers).map(prepare).collect();
    let (min_score, weight) = (request.min_score, request.weight);
    let search = Search {
        kernel,
        scope: scope.clone(),
        prepared_queries,
        combined_by_max,
        k,
        is_limited,
        min_score,
        weight,
        is_long,
        deadline: request.deadline.clone(),
    };
    if few
        || !search.prepared_queries.iter().all(|prepared| search.formula().is_boundable(prepared))
    {
        return search
            .prepared_queries
            .chunks(combined_by_max)
            .map(|prepared_queries| search.score_all(prepared_queries))
            .collect();
    }
    search.bound(request.threads.min(vectors.segments.len()))
}

/// A prepared search.
struct Search {
    kernel: &'static dyn Kernel,
    scope: Scope,
    prepared_queries: Vec<PreparedQuery>,
    /// Queries for each answer.
    combined_by_max: usize,
    k: usize,
    /// Whether so few rows are wanted that the best of them raise the threshold.
    is_limited: bool,
    min_score: f64,
    weight: f64,
    is_long: bool,
    deadline: Deadline,
}

impl Search {
    fn vectors(&self) -> &VectorRows {
        &self.scope.snapshot.vectors
    }

    fn formula(&self) -> Formula<'_> {
        Formula { weight: self.weight, prior: self.scope.prior.as_deref() }
    }

    fn scorer<'a>(&'a self, prepared_queries: &'a [PreparedQuery]) -> Scorer<'a> {
        Scorer::new(self.kernel, prepared_queries, self.formula(), self.k, self.min_score)
    }

    fn scanned(&self, position: usize) -> ScannedSegment<'_> {
        self.formula().scanned(position, &self.vectors().segments[position])
    }

    fn allowed(&self, position: usize) -> Option<&SegmentRows> {
        self.scope.allowed.as_ref().map(|rows| rows.segment(position))
    }

    fn score_all(&self, prepared_queries: &[PreparedQuery]) -> Vec<Hit> {
        let mut scorer = self.scorer(prepared_queries);
        for position in 0..self.vectors().segments.len() {
            let allowed = self.allowed(position);
            if self.k == 0 || allowed.is_some_and(|rows| rows.count == 0) {
                continue;
            }
            for some in candidate_places(self.scanned(position), allowed).chunks(SOME_ROWS) {
                if self.deadline.is_past() {
                    return scorer.into_sorted();
                }
                scorer.offer(some);
            }
        }
        scorer.into_sorted()
    }

    fn bound(self, threads: usize) -> Vec<Vec<Hit>> {
        if threads <= 1 {
            let cascades = self.walk(&AtomicUsize::new(0), None);
            return cascades.into_iter().map(|cascade| self.finish(cascade)).collect();
        }
        let shared = Arc::new(SharedSearch::of(self));
        let others: Vec<_> = (1..threads).filter_map(|_| ScanWorker::start(&shared)).collect();
        let mut cascades = shared.walk();
        for scan_result in others.into_iter().filter_map(ScanWorker::scan_result) {
            cascades.iter_mut().zip(scan_result).for_each(|(one, other)| one.absorb(other));
        }
        cascades.into_iter().map(|cascade| shared.search.finish(cascade)).collect()
    }

    /// Scan segments that no other thread has claimed, until none is left.
    fn walk<'a>(
        &'a self,
        next: &AtomicUsize,
        thresholds: Option<&'a [SharedThreshold]>,
    ) -> Vec<Cascade<'a>> {
        let cascade = |(at, prepared_queries)| {
            let threshold = thresholds.map(|all: &[SharedThreshold]| &all[at]);
            Cascade::new(self.scorer(prepared_queries), threshold)
        };
        let cascades =
            self.prepared_queries.chunks(self.combined_by_max).enumerate().map(cascade).collect();
        let k = self.is_limited.then_some(self.k);
        let mut coarse_scan =
            CoarseScan::new(self.kernel, cascades, k, self.vectors().places.len(), self.is_long);
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position >= self.vectors().segments.len() || self.deadline.is_past() {
                return coarse_scan.resolve(&self.deadline);
            }
            coarse_scan.scan(self.scanned(position), self.allowed(position));
        }
    }

    fn finish(&self, cascade: Cascade<'_>) -> Vec<Hit> {
        cascade.finish(self.vectors(), &self.deadline)
    }
}

/// A search that several threads scan for.
struct SharedSearch {
    search: Search,
    /// The next unclaimed segment.
    next: AtomicUsize,
    thresholds: Vec<SharedThreshold>,
}

impl SharedSearch {
    fn of(search: Search) -> Self {
        let thresholds = search
            .prepared_queries
            .chunks(search.combined_by_max)
            .map(|_| SharedThreshold::default())
            .collect();
        Self { search, next: AtomicUsize::new(0), thresholds }
    }

    fn walk(&self) -> Vec<Cascade<'_>> {
        self.search.walk(&self.next, Some(&self.thresholds))
    }
}

/// A thread that scans segments of a search.
struct ScanWorker {
    is_claimed: Arc<AtomicBool>,
    scan_result: mpsc::Receiver<Vec<ScanResult>>,
}

impl ScanWorker {
    /// `None` if the system has no thread: the search goes on without.
    fn start(shared: &Arc<SharedSearch>) -> Option<Self> {
        let (sender, scan_result) = mpsc::channel();
        let is_claimed = Arc::new(AtomicBool::new(false));
        let (shared, claim) = (Arc::clone(shared), Arc::clone(&is_claimed));
        let work = move || {
            if !claim.swap(true, Ordering::AcqRel) {
                // The receiver is gone only if the searching thread panicked.
                let _ = sender.send(shared.walk().into_iter().map(Cascade::scan_result).collect());
            }
        };
        std::thread::Builder::new().name("mnemic-scan".to_owned()).spawn(work).ok()?;
        Some(Self { is_claimed, scan_result })
    }

    /// The thread's result; a thread that has not begun is not waited for.
    fn scan_result(self) -> Option<Vec<ScanResult>> {
        if !self.is_claimed.swap(true, Ordering::AcqRel) {
            return None;
        }
        Some(self.scan_result.recv().expect("a scanning thread panicked"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::cascade::BoundedRow;
    use crate::storage::snapshot_store::SnapshotStore;

    /// A map of three segments and a search with its best rows in the last one.
    fn shared_search() -> Arc<SharedSearch> {
        let kernel = crate::simd::kernel().expect("a kernel");
        let index = SnapshotStore::new(kernel, 1, crate::memory::state::MemoryState::default());
        let ids: Vec<i64> = (0..20_000).collect();
        index.replace(&ids, |at, row| row[0] = at as f32);
        let scope = Scope { snapshot: index.snapshot(), allowed: None, prior: None };
        let prepared_queries = vec![PreparedQuery::new(kernel, &[0.5], 1.0)];
        let (min_score, weight) = (f64::NEG_INFINITY, 1.0);
        let search = Search {
            kernel,
            scope,
            prepared_queries,
            combined_by_max: 1,
            k: 5,
            is_limited: true,
            min_score,
            weight,
            is_long: false,
            deadline: Deadline::default(),
        };
        Arc::new(SharedSearch::of(search))
    }

    fn ids_of(shared: &SharedSearch, cascades: Vec<Cascade<'_>>) -> Vec<i64> {
        let hits = cascades.into_iter().flat_map(|cascade| shared.search.finish(cascade));
        hits.map(|hit| hit.id).collect()
    }

    #[test]
    fn what_another_thread_found_is_taken_over() {
        let shared = shared_search();
        let worker = ScanWorker::start(&shared).expect("a thread");
        while shared.next.load(Ordering::Relaxed) <= 3 {
            std::thread::yield_now();
        }
        let mut cascades = shared.walk();
        assert_eq!(ids_of(&shared, shared.walk()), [0_i64; 0], "all segments were taken");
        let scan_result = worker.scan_result().expect("it has begun");
        cascades.iter_mut().zip(scan_result).for_each(|(one, other)| one.absorb(other));
        assert_eq!(ids_of(&shared, cascades), [19_999, 19_998, 19_997, 19_996, 19_995]);
    }

    #[test]
    fn rows_that_another_scan_has_or_has_not_scored_are_taken_over() {
        let shared = shared_search();
        let search = &shared.search;
        let cascade = || Cascade::new(search.scorer(&search.prepared_queries), None);
        let (mut one, mut other) = (cascade(), cascade());
        let mut rows = [9, 1, 2, 3, 8, 7, 6].map(|row| BoundedRow { upper: f32::INFINITY, row });
        // The last of four need not reach what the first does.
        rows[6].upper = f32::NEG_INFINITY;
        other.take(&search.scanned(0), rows.to_vec());
        other.score(&[(search.scanned(0), 10)]);
        one.absorb(other.scan_result());
        assert_eq!(ids_of(&shared, vec![one]), [10, 9, 8, 7, 6]);
    }

    #[test]
    fn a_thread_that_has_not_begun_is_not_waited_for() {
        let (_sender, scan_result) = mpsc::channel();
        let worker = ScanWorker { is_claimed: Arc::new(AtomicBool::new(false)), scan_result };
        assert!(worker.scan_result().is_none());
    }
}
