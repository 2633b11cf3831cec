//! `VectorMap`: vector search without memories. It checks all arguments.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::deadline::NEVER;
use crate::memory::state::MemoryState;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::{MAX_DIM, check_dim, check_rows, check_vectors, normalise};
use crate::search::count;
use crate::search::scan::{self, ScanRequest, Scope};
use crate::search::selection::Selection;
use crate::search::top_k::Hit;
use crate::storage::snapshot_store::SnapshotStore;
use crate::storage::vector_file::{self, RowsDirectory};
use crate::system::data_file::{DataFile, DataFileWriter, Section};
use crate::system::memory_budget::{CALL, filled, headroom, try_with_capacity};
use crate::{Error, Prior, simd};

/// How two vectors are compared. Higher is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

const MAGIC: [u8; 8] = *b"mnemicvm";

/// Of files; raised when their form changes.
const FILE_VERSION: u64 = 2;

/// The version whose codes lay otherwise.
const EARLIER: u64 = 1;

#[derive(Serialize, Deserialize)]
struct MapDirectory {
    metric: Metric,
    rows: RowsDirectory,
    label: Section,
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
        check_dim(dim)?;
        let kernel = simd::kernel()?;
        let store = SnapshotStore::new(kernel, dim, MemoryState::default());
        Ok(Self { dim, metric, kernel, store })
    }

    /// Write the map to a file, which appears complete or not at all and is its owner's alone to
    /// read, with some bytes of the caller. Changes that come meanwhile are not in it.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, memory runs out, or this map's own file is damaged.
    pub fn save(&self, path: &Path, label: &[u8]) -> Result<(), Error> {
        let snapshot = self.store.snapshot();
        let mut file = DataFileWriter::beside(path)?;
        let rows = &snapshot.vectors;
        let rows = vector_file::write(&mut file, self.kernel, self.dim, rows, Some)?;
        snapshot.vectors.check_read()?;
        let label = file.append(label)?;
        let directory = MapDirectory { metric: self.metric, rows, label };
        file.finish(MAGIC, FILE_VERSION, &directory)
    }

    /// Open a file of [`save`](Self::save); returns its map and the caller's bytes. Its rows stay in the file, mapped, and processes that
    /// open it share their memory; changes are the map's own and leave the file alone.
    ///
    /// Header, directory and ids are checked here; codes and vectors when they are first read.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is not a sound file of this version.
    pub fn load(path: &Path) -> Result<(Self, Vec<u8>), Error> {
        let kernel = simd::kernel()?;
        let (file, directory) =
            DataFile::open::<MapDirectory>(path, MAGIC, &[FILE_VERSION, EARLIER])?;
        let dim = directory.rows.dim();
        Error::unless((1..=MAX_DIM).contains(&dim), "its dimension is out of range")?;
        let rows = vector_file::read(kernel, &file, dim, &directory.rows, file.version == EARLIER)?;
        let label = file.section(&directory.label)?.to_vec();
        let store = SnapshotStore::of(kernel, dim, rows, MemoryState::default());
        Ok((Self { dim, metric: directory.metric, kernel, store }, label))
    }

    /// All ids, ascending.
    pub fn ids(&self) -> Vec<i64> {
        self.store.snapshot().vectors.places.ids().collect()
    }

    /// All ids, ascending, with their rows, one after the other, all from one state of the map.
    ///
    /// # Errors
    ///
    /// When the rows do not fit memory, or their file is damaged.
    pub fn rows(&self) -> Result<(Vec<i64>, Vec<f32>), Error> {
        let vectors = &self.store.snapshot().vectors;
        let mut rows = try_with_capacity(vectors.places.len().saturating_mul(self.dim))?;
        let ids: Vec<i64> = vectors.places.ids().collect();
        for row in ids.iter().filter_map(|id| vectors.vector(*id)) {
            rows.extend_from_slice(&row[..self.dim]);
        }
        vectors.check_read()?;
        Ok((ids, rows))
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
        let mut rows = try_with_capacity(ids.len().saturating_mul(self.dim))?;
        for id in ids {
            let len = snapshot.vectors.places.len();
            let row = snapshot.vectors.vector(*id).ok_or(Error::UnknownId { id: *id, len })?;
            rows.extend_from_slice(&row[..self.dim]);
        }
        snapshot.vectors.check_read()?;
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
        self.check_memory(queries, search)?;
        self.found(queries, search, &self.scope(search)?)
    }

    /// All rows that score at least `search.min_score`, for each query, in the order of
    /// [`search`](Self::search); `search.k` is ignored.
    ///
    /// # Errors
    ///
    /// As for [`VectorMap::search`]; also when the hits do not fit memory.
    pub fn range_search(
        &self,
        queries: &[f32],
        search: &Search<'_>,
    ) -> Result<Vec<Vec<Hit>>, Error> {
        self.check_search(queries, search)?;
        self.check_memory(queries, &Search { k: 0, ..*search })?;
        let scope = self.scope(search)?;
        let found = queries.chunks_exact(self.dim).map(|query| {
            let all = Search { k: self.len(), ..*search };
            // Hits are counted first where memory would not hold them if they were all rows.
            let search = match self.check_memory(query, &all) {
                Ok(()) => all,
                Err(_) => Search { k: self.counted(query, search, &scope)?[0], ..*search },
            };
            self.check_memory(query, &search)?;
            Ok(self.found(query, &search, &scope)?.into_iter().flatten().collect())
        });
        found.collect()
    }

    fn found(
        &self,
        queries: &[f32],
        search: &Search<'_>,
        scope: &Scope,
    ) -> Result<Vec<Vec<Hit>>, Error> {
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
        let found = scan::search(self.kernel, scope, &wanted);
        scope.snapshot.vectors.check_read()?;
        Ok(found)
    }

    /// Number of rows that score at least `search.min_score`, for each query; `search.k` is
    /// ignored.
    ///
    /// # Errors
    ///
    /// As for [`VectorMap::search`].
    pub fn count(&self, queries: &[f32], search: &Search<'_>) -> Result<Vec<usize>, Error> {
        self.check_search(queries, search)?;
        self.check_memory(queries, search)?;
        self.counted(queries, search, &self.scope(search)?)
    }

    fn counted(
        &self,
        queries: &[f32],
        search: &Search<'_>,
        scope: &Scope,
    ) -> Result<Vec<usize>, Error> {
        let mut row = vec![0.0; self.dim];
        let counts = queries.chunks_exact(self.dim).map(|query| {
            self.write(query, &mut row);
            count::count(self.kernel, scope, &row, search.weight, search.min_score)
        });
        let counts = counts.collect();
        scope.snapshot.vectors.check_read()?;
        Ok(counts)
    }

    fn check_search(&self, queries: &[f32], search: &Search<'_>) -> Result<(), Error> {
        check_vectors("query", self.dim, queries)?;
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
    fn check_memory(&self, queries: &[f32], search: &Search<'_>) -> Result<(), Error> {
        let rows = self.len();
        let searches = queries.len() / self.dim;
        let hits = search.k.min(rows).saturating_mul(size_of::<Hit>() * 4);
        let hits = hits.saturating_add(BYTES_PER_QUERY + self.dim * 32);
        let scanned = searches.saturating_mul(hits).saturating_mul(search.threads.min(64));
        headroom(CALL.saturating_add(scanned).saturating_add(rows * BYTES_PER_SCANNED_ROW))
    }

    fn scope(&self, search: &Search<'_>) -> Result<Scope, Error> {
        let snapshot = self.store.snapshot();
        snapshot.vectors.check_codes()?;
        let allowed = search.allow.map(|selection| selection.rows_in(&snapshot));
        let prior = search.prior.map(|prior| prior.rows_in(&snapshot));
        Ok(Scope { snapshot, allowed, prior })
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
        check_rows(ids, self.dim, vectors)?;
        match first_repeat(ids)? {
            Some(id) => Err(Error::DuplicateId { id }),
            None => Ok(()),
        }
    }
}

fn first_repeat(ids: &[i64]) -> Result<Option<i64>, Error> {
    if ids.len() < 2 || ids.is_sorted_by(|one, next| one < next) {
        return Ok(None);
    }
    let mut sorted = try_with_capacity(ids.len())?;
    sorted.extend_from_slice(ids);
    sorted.sort_unstable();
    Ok(sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]))
}
