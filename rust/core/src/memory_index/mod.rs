//! `MemoryIndex`: an agent's memories, ranked exactly by all that is known of them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::collections::cow_vec::CHUNK_VALUES;
use crate::columns::{Access, Ask, Columns, Record, Users};
use crate::ids::{slot_of, vector_id};
use crate::lexical::{self, Weighed};
use crate::memory::links::{Hops, Link, Path, Reached};
use crate::memory::speakers::Named;
use crate::memory::state::Memories;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::normalise;
use crate::quantization::scalar::{MAX_DIM, norm};
use crate::rank::candidates::{Asked, Play};
use crate::rank::fused_score::{self, Components, Fused, Least, Scored, Uppers};
use crate::rank::keyword_match::{FirstLook, Keywords};
use crate::rank::scoring_config::Ranking;
use crate::rank::signals::{self, Facts};
use crate::rank::similarity::Similarity;
use crate::rank::sort_key::{self, Order, Ordered};
use crate::rank::static_score::{Worths, facts};
use crate::search::docid_set::SlotSet;
use crate::search::scan;
use crate::search::selection::SelectedRows;
use crate::search::top_k::Hit as NearHit;
use crate::storage::snapshot_store::{Change, Index, Snapshot, Upkeep};
use crate::system::memory_budget::{CALL, headroom};
use crate::text::names::{in_first_person, without};
use crate::text::{Analysis, answer_kind, date_ranges};
use crate::{Error, simd};

/// What to rank, and by what.
pub struct Request<'a> {
    /// Which memories are in play.
    pub ask: Ask<'a>,
    /// What a score is made of.
    pub ranking: &'a Ranking,
    /// What keywords are looked for; nothing where there is no query.
    pub text: Option<&'a str>,
    /// Vectors of the query, one after the other: the nearest counts.
    pub vectors: &'a [f32],
    /// Vectors of a context.
    pub context: &'a [f32],
    /// How many hits are wanted.
    pub k: usize,
    /// Least cosine of a hit, where negative ones count as 0.
    pub min_similarity: Option<f64>,
    /// Least score of a hit.
    pub min_score: Option<f64>,
    /// Whether to count all that match.
    pub with_total: bool,
    /// In what order, where it is not that of the score.
    pub order: Option<Order>,
    /// Least salience of a hit.
    pub min_salience: Option<f64>,
    /// What matches are divided by before other parts of the score are added; 0 is the best match
    /// in play. Not in an order that was asked for.
    pub best_match: Option<f64>,
}

/// A memory found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The store's number.
    pub row: i64,
    /// The bytes of the UUID.
    pub id: [u8; 16],
    /// What the order is by: the score, or the key of the order that was asked for.
    pub score: f64,
    /// The parts of the score.
    pub components: Components,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Best first: score, then newest, then smallest id (C164).
    pub hits: Vec<Hit>,
    /// How many match, where it was asked for.
    pub total: Option<usize>,
}

/// Links that take the place of all that led from some rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Links<'a> {
    /// The rows whose links these are.
    pub from: &'a [i64],
    /// All that lead from them.
    pub links: &'a [Link],
}

/// A memory that links lead to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkedHit {
    /// The store's number.
    pub row: i64,
    /// The bytes of the UUID.
    pub id: [u8; 16],
    /// The product of the strengths on its path.
    pub strength: f64,
    /// The links on its path.
    pub path: Path,
}

/// What links lead to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Linked {
    /// Strongest first.
    pub hits: Vec<LinkedHit>,
    /// How many there are in all.
    pub total: usize,
}

/// Memories by row, ranked exactly. Every change is one whole call to readers.
pub struct MemoryIndex {
    /// 0 where there are no vectors.
    dim: usize,
    kernel: &'static dyn Kernel,
    index: Index,
}

impl MemoryIndex {
    /// Make an empty index of memories whose vectors have `dim` components; none have vectors where
    /// that is `None`.
    ///
    /// # Errors
    ///
    /// When `dim` is 0 or above [`MAX_DIM`], or `MNEMIC_KERNEL` cannot be had.
    pub fn new(dim: Option<usize>, analysis: Analysis) -> Result<Self, Error> {
        if let Some(found) = dim.filter(|dim| !(1..=MAX_DIM).contains(dim)) {
            return Err(Error::DimensionOutOfRange { found, most: MAX_DIM });
        }
        let kernel = simd::kernel()?;
        let index = Index::new(kernel, dim.unwrap_or(1), Memories::new(analysis, dim.is_some()));
        Ok(Self { dim: dim.unwrap_or(0), kernel, index })
    }

    /// Components of a vector; 0 where there are none.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of memories, expired ones too.
    pub fn len(&self) -> usize {
        self.index.snapshot().memories.columns.live()
    }

    /// Whether there is no memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of places: those of memories, and those that memories left and nothing takes again.
    pub fn slots(&self) -> usize {
        self.index.snapshot().memories.lexical.slots()
    }

    /// The first time after `now` at which a memory of these users expires.
    pub fn next_expiry(&self, users: Users<'_>, now: i64) -> Option<i64> {
        self.index.snapshot().memories.columns.next_expiry(users, now)
    }

    /// Bytes held, contents left out.
    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.index.snapshot().memories.bytes()
    }

    /// Rows that lack a vector, ascending.
    pub fn unembedded(&self) -> Vec<i64> {
        self.index.snapshot().memories.unembedded.ids().collect()
    }

    /// Take memories out and in, all in one step.
    ///
    /// A record whose row is known replaces it; a vector stays where the content does. `embedded`
    /// names the rows that `vectors` belong to, `dim` floats for each; a row that comes several
    /// times in a row has several parts.
    ///
    /// # Errors
    ///
    /// Wrong lengths, NaN or infinity, or vectors of a row that is not there; nothing is changed
    /// then.
    pub fn apply(
        &self,
        gone: &[i64],
        records: &[Record],
        embedded: &[i64],
        vectors: &[f32],
    ) -> Result<(), Error> {
        self.apply_with_links(gone, records, embedded, vectors, &Links::default())
    }

    /// Take memories out and in as [`apply`](Self::apply) does, and replace all links that lead from
    /// some rows, all in one step.
    ///
    /// # Errors
    ///
    /// Those of [`apply`](Self::apply).
    pub fn apply_with_links(
        &self,
        gone: &[i64],
        records: &[Record],
        embedded: &[i64],
        vectors: &[f32],
        links: &Links<'_>,
    ) -> Result<(), Error> {
        self.take(gone, records, embedded, vectors, links, Upkeep::Now)
    }

    /// The memories in play that links lead to from a row of the scope, which the filter need not
    /// select: the largest product of strengths first, then the fewest hops, then the newest, then
    /// the smallest id, then the first user. Only memories in play are walked through.
    pub fn linked(&self, ask: &Ask<'_>, row: i64, hops: &Hops, k: usize) -> Linked {
        let memories = &self.index.snapshot().memories;
        let columns = &memories.columns;
        let inside = columns.inside(ask);
        let slot_of = |row| columns.slot_of(row).filter(|slot| inside.has(*slot));
        let of_scope = Ask { scope: ask.scope, now: ask.now, ..Ask::default() };
        let within_scope = columns.inside(&of_scope);
        if !columns.slot_of(row).is_some_and(|slot| within_scope.has(slot)) {
            return Linked::default();
        }
        let reached = memories.graph.reached(row, hops, |row| slot_of(row).is_some());
        let total = reached.len();
        let place = |(row, reached): (i64, Reached)| {
            let tie = columns.tie_of(slot_of(row)?);
            Some((
                LinkedHit { row, id: tie.id, strength: reached.strength, path: reached.path },
                tie,
            ))
        };
        let mut hits: Vec<_> = reached.into_iter().filter_map(place).collect();
        hits.sort_unstable_by(|(one, one_tie), (other, other_tie)| {
            let by_strength = other.strength.total_cmp(&one.strength);
            let by_hops = one.path.kinds().len().cmp(&other.path.kinds().len());
            by_strength.then(by_hops).then_with(|| one_tie.cmp(other_tie))
        });
        hits.truncate(k);
        Linked { hits: hits.into_iter().map(|(hit, _)| hit).collect(), total }
    }

    /// Words that belong to a query by what these texts say, weighed by the memories of these
    /// users; see [`lexical::Lexical::related`].
    pub fn related(
        &self,
        query: &str,
        texts: &[(impl AsRef<str> + Sync, f64)],
        users: Users<'_>,
        k: usize,
    ) -> Vec<Weighed> {
        let memories = &self.index.snapshot().memories;
        memories.lexical.related(query, texts, memories.collection(users), k)
    }

    /// Phrases of a text that memories of these users have; see
    /// [`lexical::Lexical::key_phrases`].
    pub fn key_phrases(&self, text: &str, users: Users<'_>, k: usize) -> Vec<Weighed> {
        let memories = &self.index.snapshot().memories;
        memories.lexical.key_phrases(text, memories.collection(users), k)
    }

    /// Take memories in as [`apply`](Self::apply) does, where more follow and nobody searches
    /// before.
    ///
    /// Compaction and sketches, which never change an answer, are left for the next `apply`, be it
    /// of nothing.
    ///
    /// # Errors
    ///
    /// Those of [`apply`](Self::apply).
    pub fn load(&self, records: &[Record], embedded: &[i64], vectors: &[f32]) -> Result<(), Error> {
        self.take(&[], records, embedded, vectors, &Links::default(), Upkeep::Later)
    }

    fn take(
        &self,
        gone: &[i64],
        records: &[Record],
        embedded: &[i64],
        vectors: &[f32],
        links: &Links<'_>,
        upkeep: Upkeep,
    ) -> Result<(), Error> {
        self.check(embedded, vectors)?;
        self.check_room(gone, records, embedded, links)?;
        let lexical = self.index.snapshot().memories.lexical.clone();
        let analysed = analysed(&lexical, records)?;
        let places = RefCell::new(Vec::new());
        self.index.change(
            |snapshot| {
                let mut memories = Memories::clone(&snapshot.memories);
                let mut removed: Vec<u32> =
                    gone.iter().filter_map(|row| memories.remove(*row)).collect();
                let puts = records.iter().zip(&analysed);
                removed.extend(puts.filter_map(|(record, words)| memories.put(record, words)));
                let (added, found) = memories.lacking(embedded)?;
                memories.graph.set(links.from, links.links);
                *places.borrow_mut() = found;
                let parts = memories.parts;
                let ids = |slot| (0..parts).map(move |part| vector_id(slot, part));
                let removed = removed.into_iter().flat_map(ids).collect();
                Ok(Change { memories, removed, added })
            },
            |at, row| self.write(&vectors[places.borrow()[at] * self.dim..], row),
            upkeep,
        )
    }

    /// Make sure of the memory that a change may take: copies of the chunks that it changes, what
    /// the records hold, their words, vectors and links. Long texts ask for theirs one by one.
    fn check_room(
        &self,
        gone: &[i64],
        records: &[Record],
        embedded: &[i64],
        links: &Links<'_>,
    ) -> Result<(), Error> {
        let memories = &self.index.snapshot().memories;
        let rows = gone.iter().copied().chain(records.iter().map(|record| record.row));
        let slots = rows.filter_map(|row| memories.columns.slot_of(row));
        let blocks: BTreeSet<usize> = slots.map(lexical::Lexical::block_of).collect();
        let held: usize = records.iter().map(bytes_of).sum();
        let words: usize = records.iter().map(|record| record.content.len().min(SHORT)).sum();
        let tokens: usize = records.iter().map(|record| record.content.len()).sum::<usize>() / 2;
        let new_terms = words / BYTES_PER_NEW_TERM;
        let bytes = [
            CALL,
            blocks.len().saturating_add(2).saturating_mul(BYTES_PER_CHUNK),
            memories.lexical.bytes_of_change(&blocks, records.len(), tokens, new_terms),
            self.index.bytes_of_change(embedded.len(), gone.len().saturating_add(records.len())),
            held.saturating_mul(2),
            records.len().saturating_mul(BYTES_PER_RECORD),
            words.saturating_mul(BYTES_PER_SHORT_BYTE),
            links.links.len().saturating_add(links.from.len()).saturating_mul(BYTES_PER_LINK),
        ];
        headroom(bytes.into_iter().fold(0, usize::saturating_add))
    }

    /// Note when and how often memories were read, all in one step; rows that are not there are
    /// passed over, and so is what is less than known.
    ///
    /// # Errors
    ///
    /// When there is no memory for it; nothing is changed then.
    pub fn raise_accesses(&self, accesses: &[Access]) -> Result<(), Error> {
        self.change_accesses(accesses, Memories::raise_access)
    }

    /// Count memories as read so many times more, all in one step; rows that are not there are
    /// passed over.
    ///
    /// # Errors
    ///
    /// Those of [`raise_accesses`](Self::raise_accesses).
    pub fn add_accesses(&self, accesses: &[Access]) -> Result<(), Error> {
        self.change_accesses(accesses, Memories::add_access)
    }

    fn change_accesses(
        &self,
        accesses: &[Access],
        change: impl Fn(&mut Memories, &Access),
    ) -> Result<(), Error> {
        if !accesses.is_empty() {
            let chunks = accesses.len().min(self.slots() / CHUNK_VALUES + 1);
            headroom(CALL.saturating_add(chunks.saturating_mul(BYTES_PER_CHUNK)))?;
            self.index.change_memories(|memories| {
                for access in accesses {
                    change(memories, access);
                }
            });
        }
        Ok(())
    }

    /// When these rows were last read, and how often; nothing of rows that are not there.
    pub fn accesses(&self, rows: &[i64]) -> Vec<Option<Access>> {
        let columns = &self.index.snapshot().memories.columns;
        let access = |row: &i64| {
            let (last, count) = columns.access_of(columns.slot_of(*row)?)?;
            Some(Access { row: *row, last, count })
        };
        rows.iter().map(access).collect()
    }

    /// Rank the memories in play.
    ///
    /// # Errors
    ///
    /// Vectors of a wrong length, NaN or infinity, a floor that is NaN, or no memory for it.
    pub fn rank(&self, request: &Request<'_>) -> Result<Answer, Error> {
        self.check_vectors("query", request.vectors)?;
        self.check_vectors("context", request.context)?;
        let floors = [("min_similarity", request.min_similarity), ("min_score", request.min_score)];
        for (what, floor) in floors {
            if floor.is_some_and(f64::is_nan) {
                return Err(Error::ThresholdIsNan { what });
            }
        }
        headroom(
            self.bytes_of_reading(request.k, request.text.unwrap_or("").len())
                .saturating_add((request.vectors.len() + request.context.len()).saturating_mul(16)),
        )?;
        let snapshot = self.index.snapshot();
        Ok(Query { index: self, snapshot: &snapshot, request, look: &FirstLook::at }.answer())
    }

    /// Bytes that a call may take which reads the memories for so many hits, by a text of so many
    /// bytes: scores and sets of all memories, weights of all terms, words of the text.
    pub fn bytes_of_reading(&self, hits: usize, text: usize) -> usize {
        let terms = self.index.snapshot().memories.lexical.vocabulary_size();
        let slots = self.slots();
        CALL.saturating_add(slots.saturating_mul(BYTES_PER_RANKED))
            .saturating_add(terms.saturating_mul(BYTES_PER_WEIGHED_TERM))
            .saturating_add(hits.min(slots).saturating_mul(BYTES_PER_HIT))
            .saturating_add(text.saturating_mul(BYTES_PER_SHORT_BYTE))
    }

    /// The text of a query as a speaker of the memories in play would say it: "I" and "my" in place
    /// of the names of speakers.
    pub fn in_first_person(&self, text: &str, ask: &Ask<'_>) -> String {
        let memories = &self.index.snapshot().memories;
        if !memories.speakers.may_name(text) {
            return text.to_owned();
        }
        let named = memories.speakers.named(text, &memories.columns.select(ask).slots());
        let names: Vec<&str> = named.iter().map(|named| &*named.name).collect();
        in_first_person(text, &names)
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &crate::storage::snapshot_store::Shared {
        &self.index.shared
    }

    fn check(&self, embedded: &[i64], vectors: &[f32]) -> Result<(), Error> {
        self.check_vectors("vectors", vectors)?;
        let found = vectors.len().checked_div(self.dim).unwrap_or(0);
        if found != embedded.len() {
            return Err(Error::CountMismatch { ids: embedded.len(), what: "vectors", found });
        }
        Ok(())
    }

    fn check_vectors(&self, what: &'static str, vectors: &[f32]) -> Result<(), Error> {
        if vectors.is_empty() {
            return Ok(());
        }
        if self.dim == 0 || !vectors.len().is_multiple_of(self.dim) {
            return Err(Error::DimensionMismatch { what, found: vectors.len(), wanted: self.dim });
        }
        let finite = |row: &[f32]| row.iter().fold(true, |all, value| all & value.is_finite());
        match vectors.chunks_exact(self.dim).position(|row| !finite(row)) {
            Some(row) => Err(Error::NonFinite { what, row }),
            None => Ok(()),
        }
    }

    /// Copy one vector to `row`, at unit length; one that is next to nothing as nothing.
    fn write(&self, vector: &[f32], row: &mut [f32]) {
        let row = &mut row[..self.dim];
        row.copy_from_slice(&vector[..self.dim]);
        if norm(row) < LEAST_LENGTH {
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

/// Texts up to here are asked for together with all else that a change takes.
const SHORT: usize = 4096;

/// Bytes, at most, for each byte of a short text: its words, and new terms with their grams.
const BYTES_PER_SHORT_BYTE: usize = 192;

/// A new term has at least two bytes and a space, but for the few of one.
const BYTES_PER_NEW_TERM: usize = 3;

/// Bytes for each record, beside its texts.
const BYTES_PER_RECORD: usize = 2048;

/// Bytes for each link, in both directions.
const BYTES_PER_LINK: usize = 512;

/// Bytes of a chunk of all columns.
const BYTES_PER_CHUNK: usize = 160 << 10;

/// Bytes for each memory that may be ranked: similarities, matches, scores, and sets of slots.
const BYTES_PER_RANKED: usize = 96;

/// Bytes for each term of the vocabulary: its code, and what is spelled like a word.
const BYTES_PER_WEIGHED_TERM: usize = 8;

/// Bytes for each hit, with what its score is made of.
const BYTES_PER_HIT: usize = 1024;

/// Bytes of the texts of a record.
fn bytes_of(record: &Record) -> usize {
    let optional = [&record.user, &record.project, &record.session, &record.role, &record.speaker];
    let others = [&record.category, &record.scope, &record.tags, &record.metadata];
    let texts = optional.into_iter().chain(others).flatten();
    record.content.len() + texts.map(String::len).sum::<usize>()
}

/// A vector shorter than this has no direction (R261).
const LEAST_LENGTH: f64 = 1e-10;

/// From so many records on, a second thread helps to cut their texts into words.
const MANY_RECORDS: usize = 1024;

/// The words of records, in their order.
fn analysed(
    lexical: &lexical::Lexical,
    records: &[Record],
) -> Result<Vec<lexical::Analysed>, Error> {
    let one = |record: &Record| match record.content.as_str() {
        short if short.len() <= SHORT => Ok(lexical.analyse(short)),
        long => lexical.try_analyse(long),
    };
    let cut = |records: &[Record]| -> Result<Vec<_>, Error> { records.iter().map(one).collect() };
    if records.len() < MANY_RECORDS {
        return cut(records);
    }
    let (first, second) = records.split_at(records.len() / 2);
    std::thread::scope(|scope| {
        let helper = std::thread::Builder::new().name("mnemic-words".to_owned());
        let others = helper.spawn_scoped(scope, || cut(second));
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

/// One request to one state.
struct Query<'a> {
    index: &'a MemoryIndex,
    snapshot: &'a Arc<Snapshot>,
    request: &'a Request<'a>,
    /// The first look for so many memories in play, of which some are scored in any case.
    look: &'a dyn Fn(usize, usize) -> FirstLook,
}

impl Query<'_> {
    fn answer(&self) -> Answer {
        let (request, ranking) = (self.request, self.request.ranking);
        let selected = self.columns().select(&request.ask);
        let mut play = self.play(selected.words());
        if let Some(least) = request.min_salience {
            play = self.salient(&play, least);
        }
        if play.slots.is_empty() || request.k == 0 && !request.with_total {
            return Answer { hits: Vec::new(), total: request.with_total.then_some(0) };
        }
        let vectors = if ranking.similarity > 0.0 { request.vectors } else { &[] };
        let vectors = self.index.normalised(vectors);
        let is_near_alone = ranking.is_similarity_alone() && !vectors.is_empty();
        let is_plain = !request.with_total && request.best_match.is_none();
        if is_near_alone && is_plain && self.parts() == 1 {
            return self.nearest(&vectors, &play);
        }
        let context = if ranking.weights.context > 0.0 { request.context } else { &[] };
        let context = self.index.normalised(context);
        let [query, context] = [&vectors, &context].map(|vectors| self.similarity(vectors, &play));
        let uppers = |similarity: &Option<Similarity<'_>>| {
            similarity.as_ref().map_or_else(Vec::new, |similarity| similarity.uppers(&play.set))
        };
        let uppers = Uppers { query: uppers(&query), context: uppers(&context) };
        let has_query = request.text.is_some() || query.is_some();
        let similarities = [query.as_ref(), context.as_ref()];
        let fused = Fused::new(&play, ranking, has_query, similarities);
        let mut fused = self.informed(fused).scaled();
        if let Some(order) = request.order {
            return self.in_order(order, &fused, &uppers);
        }
        match request.best_match {
            Some(best) if best > 0.0 => fused.divide_matches(best),
            Some(_) => fused_score::divide_by_best(&mut fused, &uppers, self.least()),
            None => {}
        }
        self.ranked(&fused, &uppers)
    }

    fn play(&self, words: Vec<u64>) -> Play<'_> {
        let set = SlotSet::of_words(words, self.columns().len());
        Play::new(self.columns(), &self.snapshot.memories.speakers, set)
    }

    fn salience(&self, facts: &Facts) -> f64 {
        self.request.ranking.salience.of(facts, self.request.ask.now)
    }

    /// The memories in play whose salience is large enough.
    fn salient(&self, play: &Play<'_>, least: f64) -> Play<'_> {
        let is_enough = play.of_each(|chunk, at| self.salience(&facts(chunk, at)) >= least);
        let mut words = vec![0_u64; self.columns().len().div_ceil(64)];
        for (slot, _) in play.slots.iter().zip(is_enough).filter(|(_, is_enough)| *is_enough) {
            words[*slot as usize / 64] |= 1 << (slot % 64);
        }
        self.play(words)
    }

    fn in_order(&self, order: Order, fused: &Fused<'_>, uppers: &Uppers) -> Answer {
        let (request, play) = (self.request, fused.play);
        let matching = fused_score::matching(fused, uppers, self.least());
        let key = |facts: &Facts| order.key(facts, |facts| self.salience(facts));
        let mut keys = play.of_each(|chunk, at| key(&facts(chunk, at)));
        if matching.len() < keys.len() {
            keys = matching.iter().map(|at| keys[*at as usize]).collect();
        }
        let facts_of = |at: u32| {
            let found = play.fact(play.slots[at as usize], facts);
            found.expect("a memory in play has facts")
        };
        let salience_of = |at: u32| self.salience(&facts_of(at));
        let tie_of = |at: u32| self.columns().tie_of(play.slots[at as usize]);
        let best = sort_key::ordered(&matching, &keys, request.k, salience_of, tie_of);
        let hit = |best: &Ordered| self.hit_in_order(fused, best, &facts_of(best.ordinal));
        let total = request.with_total.then_some(matching.len());
        Answer { hits: best.iter().map(hit).collect(), total }
    }

    fn hit_in_order(&self, fused: &Fused<'_>, best: &Ordered, facts: &Facts) -> Hit {
        let slot = fused.play.slots[best.ordinal as usize];
        let salience = &self.request.ranking.salience;
        let (recency, frequency) = sort_key::scaled(salience, facts, self.request.ask.now);
        let components = Components {
            similarity: fused_score::similarity(fused, best.ordinal),
            recency: Some(recency),
            access: Some(frequency),
            importance: Some(facts.importance),
            salience: Some(best.salience),
            ..Components::default()
        };
        let (row, id) = (self.columns().row_of(slot), self.columns().tie_of(slot).id);
        Hit { row: row.unwrap_or_default(), id, score: best.key, components }
    }

    fn columns(&self) -> &Columns {
        &self.snapshot.memories.columns
    }

    fn parts(&self) -> u32 {
        self.snapshot.memories.parts
    }

    fn similarity(&self, vectors: &[f32], play: &Play<'_>) -> Option<Similarity<'_>> {
        if vectors.is_empty() {
            return None;
        }
        let MemoryIndex { dim, kernel, .. } = self.index;
        let rows = &self.snapshot.vectors;
        Some(Similarity::new(*kernel, rows, self.parts(), vectors, *dim, play.slots.len()))
    }

    /// What must hold of a hit; negative cosines count as 0, so a floor of 0 lets them all through.
    fn least(&self) -> Least {
        let similarity = self.request.min_similarity.filter(|least| *least > 0.0);
        Least {
            similarity: similarity.unwrap_or(f64::NEG_INFINITY),
            score: self.request.min_score.unwrap_or(f64::NEG_INFINITY),
        }
    }

    fn ranked(&self, fused: &Fused<'_>, uppers: &Uppers) -> Answer {
        let (request, least) = (self.request, self.least());
        let best = fused_score::rank(fused, uppers, request.k, least);
        let hit = |(scored, components): (&Scored<'_>, &Components)| {
            self.hit(fused.play.slots[scored.ordinal as usize], scored, *components)
        };
        let hits = best.scored.iter().zip(&best.components).map(hit).collect();
        let total = request.with_total.then(|| fused_score::matching(fused, uppers, least).len());
        Answer { hits, total }
    }

    fn hit(&self, slot: u32, scored: &Scored<'_>, components: Components) -> Hit {
        let row = self.columns().row_of(slot).unwrap_or_default();
        Hit { row, id: scored.tie.id, score: scored.score, components }
    }

    /// The answer where the score is the similarity alone: a scan of vectors that prunes far more.
    fn nearest(&self, vectors: &[f32], play: &Play<'_>) -> Answer {
        let scored = |hit: NearHit| {
            let tie = self.columns().tie_of(slot_of(hit.id));
            Scored { score: hit.score, tie, ordinal: slot_of(hit.id) }
        };
        let near = self.scanned(vectors, play).into_iter();
        let mut near: Vec<Scored<'_>> = near.map(scored).collect();
        near.sort_unstable();
        near.truncate(self.request.k);
        let hit =
            |near: &Scored<'_>| self.hit(near.ordinal, near, Components::of_similarity(near.score));
        Answer { hits: near.iter().map(hit).collect(), total: None }
    }

    /// The k nearest, and all that tie with the last of them.
    fn scanned(&self, vectors: &[f32], play: &Play<'_>) -> Vec<NearHit> {
        let (k, rows) = (self.request.k, &self.snapshot.vectors);
        let allowed =
            (!play.set.is_everything()).then(|| Arc::new(SelectedRows::in_play(rows, &play.set)));
        let scope = scan::Scope { snapshot: Arc::clone(self.snapshot), allowed, prior: None };
        let search = |k, min_score| {
            let wanted = scan::Wanted {
                queries: vectors,
                dim: self.index.dim,
                united: true,
                k,
                min_score,
                weight: 1.0,
                threads: 1,
            };
            let answers = scan::search(self.index.kernel, &scope, &wanted);
            answers.into_iter().next().unwrap_or_default()
        };
        let least = self.least();
        let hits = search(k.saturating_add(1), least.similarity.max(least.score));
        match (hits.get(k - 1), hits.get(k)) {
            (Some(last), Some(next)) if last.score <= next.score => {
                search(rows.places.len(), last.score)
            }
            _ => hits,
        }
    }

    /// The expression with all that is known beside similarities.
    fn informed<'p>(&'p self, mut fused: Fused<'p>) -> Fused<'p> {
        let (play, ranking) = (fused.play, fused.ranking);
        if ranking.weights.of_worth() > 0.0 {
            fused.worths = Some(Worths::new(play, ranking, self.request.ask.now));
        }
        let Some(text) = self.request.text else { return fused };
        let (session, keywords) = (&ranking.session, &ranking.keywords);
        let carries = ranking.similarity < 1.0 && keywords.previous + keywords.second > 0.0;
        let has_neighbours = (session.has_neighbours() || carries) && play.has_neighbours();
        fused.has_lift = session.has_neighbours() && has_neighbours;
        let named = self.named(text, &play.slots);
        fused.asked = Asked {
            dates: if session.date > 0.0 { self.dates(text, play) } else { Vec::new() },
            speaker: match &named[..] {
                [named] if session.speaker > 0.0 => Some(named.code),
                _ => None,
            },
            kind: answer_kind(text).filter(|_| session.kind > 0.0).map(|kind| kind as u8),
            has_text: true,
        };
        if ranking.similarity < 1.0 {
            let names: Vec<&str> = named.iter().map(|named| &*named.name).collect();
            let text = if ranking.leaves_names_out { without(text, &names) } else { text.into() };
            let next = if carries && has_neighbours { play.all_next() } else { Vec::new() };
            let memories = &self.snapshot.memories;
            let collection = memories.collection(self.request.ask.scope.user);
            let lexical = (&memories.lexical, collection);
            let look = (self.look)(play.slots.len(), fused_score::promising_of(self.request.k));
            fused.keywords = Some(Keywords::new(play, lexical, keywords, &text, next, look));
        }
        fused
    }

    /// How near memories are in time to the dates that the text names; nothing where it names none.
    fn dates(&self, text: &str, play: &Play<'_>) -> Vec<f32> {
        let ranges = date_ranges(text, self.request.ask.now);
        if ranges.is_empty() {
            return Vec::new();
        }
        play.of_each(|chunk, at| {
            let nearness = |range| signals::nearness(range, chunk.created_at[at]);
            ranges.iter().map(|range| (range.start, range.end)).map(nearness).fold(0.0, f32::max)
        })
    }

    /// The speakers that the text names, where names matter.
    fn named(&self, text: &str, slots: &[u32]) -> Vec<Named> {
        let ranking = self.request.ranking;
        if ranking.session.speaker > 0.0 || ranking.leaves_names_out {
            return self.snapshot.memories.speakers.named(text, slots);
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
