//! `VectorMap`: vector search without memories. It checks all arguments.

use crate::deadline::NEVER;
use crate::memory::state::MemoryState;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::{MAX_DIM, normalise};
use crate::search::count;
use crate::search::scan::{self, ScanRequest, Scope};
use crate::search::selection::Selection;
use crate::search::top_k::Hit;
use crate::storage::snapshot_store::SnapshotStore;
use crate::system::memory_budget::{CALL, filled, headroom, with_room};
use crate::{Error, Prior, simd};

/// How two vectors are compared. Higher is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Inner product of the float32-normalised row and query.
    Cosine,
    /// Inner product of row and query as given.
    InnerProduct,
}

/// Largest memory for each row that a search may read.
const BYTES_PER_SCANNED_ROW: usize = 32;

/// Of memory, at most, for each query, beside its vector and its hits.
const BYTES_PER_QUERY: usize = 16 << 10;

/// Larger weights could make scores infinite.
const MAX_WEIGHT: f64 = 1e30;

/// Limits of a search.
pub struct Search<'a> {
    /// Number of hits wanted.
    pub k: usize,
    /// The ids that may be answered; `None` allows all.
    pub allow: Option<&'a Selection>,
    /// Least score of a hit, inclusive; minus infinity allows all.
    pub min_score: f64,
    /// Factor of the inner product, 0 to 1e30.
    pub weight: f64,
    /// Summands of the scores.
    pub prior: Option<&'a Prior>,
    /// One answer for all queries, where each row scores by the nearest of them.
    pub combined_by_max: bool,
    /// Threads that scan, at least 1.
    pub threads: usize,
}

impl Default for Search<'_> {
    fn default() -> Self {
        let min_score = f64::NEG_INFINITY;
        Self {
            k: 10,
            allow: None,
            min_score,
            weight: 1.0,
            prior: None,
            combined_by_max: false,
            threads: 1,
        }
    }
}

/// Vectors by id, searched exactly. Every change is one whole call to readers.
pub struct VectorMap {
    dim: usize,
    metric: Metric,
    kernel: &'static dyn Kernel,
    store: SnapshotStore,
}

impl VectorMap {
    /// Make an empty map of vectors with `dim` components.
    ///
    /// # Errors
    ///
    /// When `dim` is 0 or above [`MAX_DIM`], or `MNEMIC_KERNEL` cannot be had.
    pub fn new(dim: usize, metric: Metric) -> Result<Self, Error> {
        if !(1..=MAX_DIM).contains(&dim) {
            return Err(Error::DimensionOutOfRange { found: dim, max: MAX_DIM });
        }
        let kernel = simd::kernel()?;
        let store = SnapshotStore::new(kernel, dim, MemoryState::default());
        Ok(Self { dim, metric, kernel, store })
    }

    /// Components of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How vectors are compared.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.store.snapshot().vectors.places.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the id has a row.
    pub fn contains(&self, id: i64) -> bool {
        self.store.snapshot().vectors.places.get(id).is_some()
    }

    /// Bytes held: rows with their coarse copies, deleted and unused ones too, and ids (estimated).
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }

    /// Insert or overwrite rows. `vectors` has `dim` floats for each id, row after row.
    ///
    /// # Errors
    ///
    /// Wrong length, NaN or infinity, or an id given twice; nothing is changed then.
    pub fn upsert(&self, ids: &[i64], vectors: &[f32]) -> Result<(), Error> {
        self.check_rows(ids, vectors)?;
        if !ids.is_empty() {
            headroom(CALL + self.store.bytes_of_change(ids.len(), ids.len()))?;
            self.store.upsert(ids, |at, row| self.write(&vectors[at * self.dim..], row));
        }
        Ok(())
    }

    /// Finish background maintenance: compaction and sketches.
    pub fn flush(&self) {
        self.store.flush();
    }

    /// Replace the whole content by these rows in one swap.
    ///
    /// # Errors
    ///
    /// As for [`VectorMap::upsert`].
    pub fn replace(&self, ids: &[i64], vectors: &[f32]) -> Result<(), Error> {
        self.check_rows(ids, vectors)?;
        headroom(CALL + self.store.bytes_of_change(ids.len(), 0))?;
        self.store.replace(ids, |at, row| self.write(&vectors[at * self.dim..], row));
        Ok(())
    }

    /// Remove rows; returns how many of the ids had one.
    ///
    /// # Errors
    ///
    /// When memory runs out; nothing is changed then.
    pub fn remove(&self, ids: &[i64]) -> Result<usize, Error> {
        headroom(CALL + self.store.bytes_of_change(0, ids.len()))?;
        Ok(self.store.remove(ids))
    }

    /// The stored rows of `ids`, one after the other.
    ///
    /// # Errors
    ///
    /// When an id has no row, or the rows do not fit memory.
    pub fn get(&self, ids: &[i64]) -> Result<Vec<f32>, Error> {
        let snapshot = self.store.snapshot();
        let mut rows = with_room(ids.len().saturating_mul(self.dim))?;
        for id in ids {
            let len = snapshot.vectors.places.len();
            let row = snapshot.vectors.vector(*id).ok_or(Error::UnknownId { id: *id, len })?;
            rows.extend_from_slice(&row[..self.dim]);
        }
        Ok(rows)
    }

    /// The best rows for each of `queries` (`dim` floats each), all from one state of the map.
    ///
    /// Scores are float64 sums of exact products in a fixed order; hits are ordered by score
    /// descending, then id ascending. Each answer has min(k, matching rows) hits.
    ///
    /// # Errors
    ///
    /// Wrong length, NaN or infinity in a query, or a threshold that is NaN.
    pub fn search(&self, queries: &[f32], search: &Search<'_>) -> Result<Vec<Vec<Hit>>, Error> {
        self.check_search(queries, search)?;
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        self.check_room(queries, search)?;
        let mut prepared = filled(0.0, queries.len())?;
        for (query, row) in queries.chunks(self.dim).zip(prepared.chunks_mut(self.dim)) {
            self.write(query, row);
        }
        let wanted = ScanRequest {
            queries: &prepared,
            dim: self.dim,
            combined_by_max: search.combined_by_max,
            k: search.k,
            min_score: search.min_score,
            weight: search.weight,
            threads: search.threads,
            deadline: &NEVER,
        };
        Ok(scan::search(self.kernel, &self.scope(search), &wanted))
    }

    /// Number of rows that score at least `search.min_score`, for each query; `search.k` is
    /// ignored.
    ///
    /// # Errors
    ///
    /// As for [`VectorMap::search`].
    pub fn count(&self, queries: &[f32], search: &Search<'_>) -> Result<Vec<usize>, Error> {
        self.check_search(queries, search)?;
        self.check_room(queries, search)?;
        let scope = self.scope(search);
        let mut row = vec![0.0; self.dim];
        let counts = queries.chunks_exact(self.dim).map(|query| {
            self.write(query, &mut row);
            count::count(self.kernel, &scope, &row, search.weight, search.min_score)
        });
        Ok(counts.collect())
    }

    fn check_search(&self, queries: &[f32], search: &Search<'_>) -> Result<(), Error> {
        self.check_vectors("query", queries)?;
        if search.min_score.is_nan() {
            return Err(Error::ThresholdIsNan { what: "min_score" });
        }
        if !(0.0..=MAX_WEIGHT).contains(&search.weight) {
            return Err(Error::WeightOutOfRange { found: search.weight.to_string() });
        }
        Ok(())
    }

    /// Check that the memory is available that a search may need: for each query its hits and the
    /// state of each segment, and for each row its priors and selection.
    fn check_room(&self, queries: &[f32], search: &Search<'_>) -> Result<(), Error> {
        let rows = self.len();
        let searches = queries.len() / self.dim;
        let hits = search.k.min(rows).saturating_mul(size_of::<Hit>() * 4);
        let hits = hits.saturating_add(BYTES_PER_QUERY + self.dim * 32);
        let scanned = searches.saturating_mul(hits).saturating_mul(search.threads.min(64));
        headroom(CALL.saturating_add(scanned).saturating_add(rows * BYTES_PER_SCANNED_ROW))
    }

    fn scope(&self, search: &Search<'_>) -> Scope {
        let snapshot = self.store.snapshot();
        let allowed = search.allow.map(|selection| selection.rows_in(&snapshot));
        let prior = search.prior.map(|prior| prior.rows_in(&snapshot));
        Scope { snapshot, allowed, prior }
    }

    /// Copy one vector to `row`, normalised if the metric requires it.
    fn write(&self, vector: &[f32], row: &mut [f32]) {
        let vector = &vector[..self.dim];
        row[..self.dim].copy_from_slice(vector);
        if self.metric == Metric::Cosine {
            normalise(&mut row[..self.dim]);
        }
    }

    fn check_rows(&self, ids: &[i64], vectors: &[f32]) -> Result<(), Error> {
        self.check_vectors("vectors", vectors)?;
        let count = vectors.len() / self.dim;
        if count != ids.len() {
            return Err(Error::CountMismatch { ids: ids.len(), what: "vectors", found: count });
        }
        match first_repeat(ids)? {
            Some(id) => Err(Error::DuplicateId { id }),
            None => Ok(()),
        }
    }

    fn check_vectors(&self, what: &'static str, vectors: &[f32]) -> Result<(), Error> {
        if !vectors.len().is_multiple_of(self.dim) {
            return Err(Error::DimensionMismatch { what, found: vectors.len(), wanted: self.dim });
        }
        // Without a short cut, so that the comparison runs in vector registers.
        let finite = |row: &[f32]| row.iter().fold(true, |all, value| all & value.is_finite());
        match vectors.chunks_exact(self.dim).position(|row| !finite(row)) {
            Some(row) => Err(Error::NonFinite { what, row }),
            None => Ok(()),
        }
    }
}

fn first_repeat(ids: &[i64]) -> Result<Option<i64>, Error> {
    if ids.len() < 2 || ids.is_sorted_by(|one, next| one < next) {
        return Ok(None);
    }
    let mut sorted = with_room(ids.len())?;
    sorted.extend_from_slice(ids);
    sorted.sort_unstable();
    Ok(sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]))
}
