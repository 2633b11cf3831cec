//! `MemoryIndex`: an agent's memories, ranked exactly by similarity, keywords and attributes.

mod budget;
#[cfg(test)]
mod deadline_tests;
mod filling;
mod neighbours;
mod proposals;
mod query;
mod request;
mod row_set;
mod saving;
mod scale;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use crate::collections::cow_vec::BLOCK_VALUES;
use crate::columns::{Access, Ask, DistinctValues, Listing, Record, Users};
use crate::ids::vector_id;
use crate::lexical::{self, Weighed};
use crate::memory::links::{Hops, Reached};
use crate::memory::state::MemoryState;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::{check_dim, check_rows, check_vectors, norm, normalise};
use crate::rank::keyword_match::FirstPass;
use crate::storage::snapshot_store::{Change, Maintenance, SnapshotStore};
use crate::system::memory_budget::{CALL, headroom};
use crate::text::{Analyser, Coverage, SurfaceForm, surface_forms};
use crate::{Error, simd};

use budget::{BYTES_PER_BLOCK, SHORT};
use neighbours::best;
use query::Query;
pub use request::{Answer, Batch, Evidence, Hit, Linked, LinkedHit, NeighbourHit, Request};
pub use row_set::{RowSelection, RowSet};
pub use saving::{IndexSnapshot, VectorsPage};

/// Memories by row, ranked exactly. Every change is one whole call to readers.
pub struct MemoryIndex {
    /// 0 without vectors.
    dim: usize,
    kernel: &'static dyn Kernel,
    store: SnapshotStore,
}

impl MemoryIndex {
    /// Make an empty index of memories whose vectors have `dim` components; no vectors if it is
    /// `None`. They are from an embedder of this coverage; `None` covers any language.
    ///
    /// # Errors
    ///
    /// When `dim` is 0 or above [`MAX_DIM`], or `MNEMIC_KERNEL` cannot be had.
    pub fn new(
        dim: Option<usize>,
        analyser: impl Into<Analyser>,
        coverage: Option<Coverage>,
    ) -> Result<Self, Error> {
        dim.map_or(Ok(()), check_dim)?;
        let kernel = simd::kernel()?;
        let state = MemoryState::new(analyser.into(), coverage, dim.is_some());
        let store = SnapshotStore::new(kernel, dim.unwrap_or(1), state);
        Ok(Self { dim: dim.unwrap_or(0), kernel, store })
    }

    /// Components of a vector; 0 without vectors.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of memories, expired ones too.
    pub fn len(&self) -> usize {
        self.store.snapshot().memories.columns.live()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of docids, those of removed memories included.
    pub fn docids(&self) -> usize {
        self.store.snapshot().memories.lexical.docids()
    }

    /// The first time after `now` at which a memory of these users expires.
    pub fn next_expiry(&self, users: Users<'_>, now: i64) -> Option<i64> {
        self.store.snapshot().memories.columns.next_expiry(users, now)
    }

    /// Bytes held, contents left out.
    pub fn bytes(&self) -> usize {
        self.store.bytes() + self.store.snapshot().memories.bytes()
    }

    /// Rows that lack a vector, ascending.
    pub fn unembedded(&self) -> Vec<i64> {
        self.store.snapshot().memories.unembedded.ids().collect()
    }

    /// Remove and add memories in one step.
    ///
    /// # Errors
    ///
    /// Wrong lengths, NaN or infinity, or vectors of a row that is not there; nothing is changed
    /// then.
    pub fn apply(&self, batch: &Batch<'_>) -> Result<(), Error> {
        self.take(batch, Maintenance::Now)
    }

    /// The candidates that links lead to from a row of the scope, which the filter need not select:
    /// the largest product of strengths first, then the fewest hops, then the newest, then the
    /// smallest id, then the first user. Only candidates are traversed.
    ///
    /// # Errors
    ///
    /// When the deadline passes: the strongest path may be among those that were not followed.
    pub fn linked(&self, ask: &Ask<'_>, row: i64, hops: &Hops, k: usize) -> Result<Linked, Error> {
        let memories = &self.store.snapshot().memories;
        let columns = &memories.columns;
        let inside = columns.inside(ask);
        let docid_of = |row| columns.docid_of(row).filter(|docid| inside.has(*docid));
        let of_scope = Ask { scope: ask.scope, now: ask.now, ..Ask::default() };
        let within_scope = columns.inside(&of_scope);
        if !columns.docid_of(row).is_some_and(|docid| within_scope.has(docid)) {
            return Ok(Linked::default());
        }
        let is_there = |row| docid_of(row).is_some();
        let reached = memories.graph.reached(row, hops, is_there, ask.deadline)?;
        let total = reached.len();
        let place = |(row, reached): (i64, Reached)| {
            let docid = docid_of(row)?;
            let tie = columns.tie_of(docid);
            let Reached { strength, path } = reached;
            let accessed = columns.access_of(docid).unwrap_or_default();
            Some((LinkedHit { row, id: tie.id, strength, path, accessed }, tie))
        };
        let hits = best(reached.into_iter().filter_map(place).collect(), k, |one, other| {
            let by_hops = one.path.kinds().len().cmp(&other.path.kinds().len());
            other.strength.total_cmp(&one.strength).then(by_hops)
        });
        Ok(Linked { hits, total })
    }

    /// Words of these texts that belong to a query, weighed by the memories of these users; see
    /// [`lexical::Lexical::related`].
    pub fn related(
        &self,
        query: &str,
        texts: &[(impl AsRef<str> + Sync, f64)],
        users: Users<'_>,
        k: usize,
    ) -> Vec<Weighed> {
        let memories = &self.store.snapshot().memories;
        memories.lexical.related(query, texts, memories.collection(users), k)
    }

    /// Phrases of a text that memories of these users have; see
    /// [`lexical::Lexical::key_phrases`].
    pub fn key_phrases(&self, text: &str, users: Users<'_>, k: usize) -> Vec<Weighed> {
        let memories = &self.store.snapshot().memories;
        memories.lexical.key_phrases(text, memories.collection(users), k)
    }

    /// Add memories as [`apply`](Self::apply) does, when more follow before the next search.
    ///
    /// Compaction and sketches, which never change an answer, are left for the next `apply`, even
    /// of no change.
    ///
    /// # Errors
    ///
    /// Those of [`apply`](Self::apply).
    pub fn load(&self, batch: &Batch<'_>) -> Result<(), Error> {
        self.take(batch, Maintenance::Later)
    }

    fn take(&self, batch: &Batch<'_>, maintenance: Maintenance) -> Result<(), Error> {
        let Batch { removed, records, embedded, vectors, linked, links } = *batch;
        check_rows(embedded, self.dim, vectors)?;
        self.check_memory(batch)?;
        let analysed = analysed(&self.store.snapshot().memories, records)?;
        let places = RefCell::new(Vec::new());
        self.store.change(
            |snapshot| {
                let mut memories = MemoryState::clone(&snapshot.memories);
                let mut docids: Vec<u32> =
                    removed.iter().filter_map(|row| memories.remove(*row)).collect();
                let puts = records.iter().zip(&analysed);
                docids.extend(puts.filter_map(|(record, words)| memories.put(record, words)));
                memories.settle_languages();
                let (added, found) = memories.lacking(embedded)?;
                memories.link(removed, linked, links);
                *places.borrow_mut() = found;
                let chunks = memories.chunks;
                let ids = |docid| (0..chunks).map(move |chunk| vector_id(docid, chunk));
                let removed = docids.into_iter().flat_map(ids).collect();
                Ok(Change { memories, removed, added })
            },
            |at, row| self.write(&vectors[places.borrow()[at] * self.dim..], row),
            maintenance,
        )
    }

    /// Raise last access and access count to at least these values, in one step; missing rows are
    /// ignored.
    ///
    /// # Errors
    ///
    /// When memory runs out; nothing is changed then.
    pub fn raise_accesses(&self, accesses: &[Access]) -> Result<(), Error> {
        self.change_accesses(accesses, MemoryState::raise_access)
    }

    /// Add to access counts in one step; missing rows are ignored.
    ///
    /// # Errors
    ///
    /// Those of [`raise_accesses`](Self::raise_accesses).
    pub fn add_accesses(&self, accesses: &[Access]) -> Result<(), Error> {
        self.change_accesses(accesses, MemoryState::add_access)
    }

    fn change_accesses(
        &self,
        accesses: &[Access],
        change: impl Fn(&mut MemoryState, &Access),
    ) -> Result<(), Error> {
        if !accesses.is_empty() {
            let blocks = accesses.len().min(self.docids() / BLOCK_VALUES + 1);
            headroom(CALL.saturating_add(blocks.saturating_mul(BYTES_PER_BLOCK)))?;
            self.store.change_memories(|memories| {
                for access in accesses {
                    change(memories, access);
                }
            });
        }
        Ok(())
    }

    /// Last access and access count of these rows; `None` for missing rows.
    pub fn accesses(&self, rows: &[i64]) -> Vec<Option<Access>> {
        let columns = &self.store.snapshot().memories.columns;
        let access = |row: &i64| {
            let (last, count) = columns.access_of(columns.docid_of(*row)?)?;
            Some(Access { row: *row, last, count })
        };
        rows.iter().map(access).collect()
    }

    /// Rank the candidates.
    ///
    /// # Errors
    ///
    /// Vectors of a wrong length, NaN or infinity, a floor that is NaN, no memory for it, or a
    /// deadline that passes where the request takes no partial answer.
    pub fn rank(&self, request: &Request<'_>) -> Result<Answer, Error> {
        self.check_request(request)?;
        let snapshot = self.store.snapshot();
        let memories = &snapshot.memories;
        let collection = memories.collection(request.ask.scope.user);
        let scoring = request.scoring.resolved(memories.lexical.mean_length(collection));
        let request = &Request { scoring: &scoring, ..*request };
        let (deadline, first_pass) = (request.ask.deadline, &FirstPass::at);
        let query = Query {
            index: self,
            snapshot: &snapshot,
            request,
            first_pass,
            deadline,
            selection: None,
        };
        let has_match = request.text.is_some() || !request.vectors.is_empty();
        let is_shared = has_match && scoring.weights.relevance > 0.0;
        snapshot.vectors.check_codes()?;
        let answer = query.answer()?;
        let share = is_shared.then_some(answer.share.unwrap_or(scoring.similarity));
        snapshot.vectors.check_read()?;
        Ok(Answer { share, ..answer })
    }

    /// Where some tokens are written in a text; see [`surface_forms`].
    pub fn surface_forms<Token: AsRef<str>>(
        &self,
        text: &str,
        tokens: &[Token],
    ) -> Vec<SurfaceForm> {
        let analyser = self.store.snapshot().memories.lexical.analyser();
        surface_forms(text, tokens, analyser)
    }

    /// Check the numbers of a request, and that there is memory for it.
    fn check_request(&self, request: &Request<'_>) -> Result<(), Error> {
        check_vectors("query", self.dim, request.vectors)?;
        check_vectors("context", self.dim, request.context)?;
        let floors = [("min_similarity", request.min_similarity), ("min_score", request.min_score)];
        for (what, floor) in floors {
            if floor.is_some_and(f64::is_nan) {
                return Err(Error::ThresholdIsNan { what });
            }
        }
        // Proposals are ranked apart from the selection.
        let rankings = 1 + usize::from(request.proposed.is_some());
        headroom(
            self.bytes_of_reading(request.depth(), request.text.unwrap_or("").len())
                .saturating_mul(rankings)
                .saturating_add((request.vectors.len() + request.context.len()).saturating_mul(16)),
        )
    }

    /// The candidates in the order of a list, with their accesses.
    ///
    /// # Errors
    ///
    /// When memory runs out.
    pub fn listed(&self, ask: &Ask<'_>, listing: &Listing<'_>) -> Result<Vec<Access>, Error> {
        headroom(self.bytes_of_reading(0, 0))?;
        let columns = &self.store.snapshot().memories.columns;
        Ok(columns.listed(&columns.select(ask), listing))
    }

    /// The number of candidates.
    ///
    /// # Errors
    ///
    /// When memory runs out.
    pub fn counted(&self, ask: &Ask<'_>) -> Result<usize, Error> {
        headroom(self.bytes_of_reading(0, 0))?;
        Ok(self.store.snapshot().memories.columns.select(ask).len())
    }

    /// Count the distinct values of the candidates.
    ///
    /// # Errors
    ///
    /// When memory runs out.
    pub fn distinct(&self, ask: &Ask<'_>, values: &mut DistinctValues) -> Result<(), Error> {
        headroom(self.bytes_of_reading(0, 0))?;
        let columns = &self.store.snapshot().memories.columns;
        columns.distinct(&columns.select(ask), values);
        Ok(())
    }

    /// Whether any memory ever had a speaker.
    pub fn has_speakers(&self) -> bool {
        self.store.snapshot().memories.speakers.any()
    }

    /// A query in the first person of the candidates' speakers: "I" and "my" in place of their
    /// names.
    ///
    /// # Errors
    ///
    /// When the deadline passes.
    pub fn in_first_person(&self, text: &str, ask: &Ask<'_>) -> Result<String, Error> {
        let memories = &self.store.snapshot().memories;
        let Some(names) = memories.possible_names(text, ask.scope.user) else {
            return Ok(text.to_owned());
        };
        let docids = memories.columns.select(ask).docids();
        let named = names.among(&docids, ask.deadline)?;
        if ask.deadline.has_passed() {
            return Err(Error::DeadlineExceeded); // some candidates were not looked at
        }
        Ok(named.in_first_person(text))
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &crate::storage::snapshot_store::StoreState {
        &self.store.shared
    }

    /// Copy one vector to `row`, at unit length; one that is next to nothing as nothing.
    fn write(&self, vector: &[f32], row: &mut [f32]) {
        let row = &mut row[..self.dim];
        row.copy_from_slice(&vector[..self.dim]);
        if norm(row) < MIN_LENGTH {
            row.fill(0.0);
        }
        normalise(row);
    }

    fn normalised(&self, vectors: &[f32]) -> Vec<f32> {
        let mut rows = vec![0.0; vectors.len()];
        if self.dim > 0 {
            let pairs = vectors.chunks(self.dim).zip(rows.chunks_mut(self.dim));
            pairs.for_each(|(vector, row)| self.write(vector, row));
        }
        rows
    }
}

/// A vector shorter than this has no direction.
const MIN_LENGTH: f64 = 1e-10;

/// From this many records on, a second thread cuts half of the texts into words.
const MANY_RECORDS: usize = 1024;

/// The analysed texts of records, in their order.
fn analysed(memories: &MemoryState, records: &[Record]) -> Result<Vec<lexical::Analysed>, Error> {
    let one = |record: &Record| {
        let users = record.user.as_deref().map_or(Users::Nobody, Users::One);
        let is_long = record.content.len() > SHORT;
        memories.lexical.try_analyse(&record.content, memories.collection(users), is_long)
    };
    let cut = |records: &[Record]| -> Result<Vec<_>, Error> { records.iter().map(one).collect() };
    if records.len() < MANY_RECORDS {
        return cut(records);
    }
    let (first, second) = records.split_at(records.len() / 2);
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().name("mnemic-words".to_owned());
        let others = worker.spawn_scoped(scope, || cut(second));
        let words = cut(first);
        let others = match others {
            Ok(others) => others.join().expect("cutting texts does not panic"),
            Err(_) => cut(second), // no thread to be had
        };
        let mut words = words?;
        words.extend(others?);
        Ok(words)
    })
}
