//! Per-row facts: what rankings read and filters test, one column for each fact.
//!
//! A memory has a slot, numbered in order of arrival and never used again; one that goes is dead.
//! Slots stand in chunks that snapshots share until one of them is changed, so a copy of all columns
//! costs a pointer a chunk, and nothing changes under a reader.

mod attributes;
mod bitmap;
mod content;
mod interner;
mod plan;
mod select;
mod sessions;
mod tags;
mod tie;

use std::sync::Arc;

use crate::collections::cow_vec::{CHUNK_VALUES, Parts};
use crate::collections::id_map::IdMap;
use crate::filter::texts_of;
use sessions::{SessionKey, Sessions};

pub use attributes::{NONE, flags};
pub(crate) use select::UserCode;
pub use select::{Ask, Scope, Selected, Users};
pub use sessions::NO_SLOT;

use attributes::{Accesses, Facts};
pub(crate) use bitmap::Mask;
use content::{KeyColumn, Texts};
pub(crate) use interner::{Interner, NO_TEXT};
use tags::Tags;
pub(crate) use tie::Tie;

/// What the columns keep of one memory. Times are microseconds since 1970 in UTC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// The store's number.
    pub row: i64,
    /// The bytes of the UUID.
    pub id: [u8; 16],
    /// Whose it is; nobody's if none.
    pub user: Option<String>,
    /// The project.
    pub project: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The role of who said it.
    pub role: Option<String>,
    /// Who said it.
    pub speaker: Option<String>,
    /// The category.
    pub category: Option<String>,
    /// The scope.
    pub scope: Option<String>,
    /// The number of the memory type.
    pub kind: u8,
    /// The number of the status.
    pub status: u8,
    /// When it was made.
    pub created_at: i64,
    /// When it was last changed.
    pub updated_at: i64,
    /// When it was last read.
    pub last_accessed_at: Option<i64>,
    /// From when on it is gone.
    pub expires_at: Option<i64>,
    /// Times it was read.
    pub access_count: i64,
    /// From 0 to 1.
    pub importance: f64,
    /// Its version.
    pub version: i64,
    /// Its place in the session.
    pub position: Option<i64>,
    /// Whether it is sensitive.
    pub sensitive: bool,
    /// The tags, a JSON list of texts.
    pub tags: Option<String>,
    /// The metadata, a JSON object.
    pub metadata: Option<String>,
    /// The text.
    pub content: String,
}

/// When and how often a memory was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The store's number of the memory.
    pub row: i64,
    /// When it was last read.
    pub last: Option<i64>,
    /// Times it was read.
    pub count: i64,
}

/// The facts of all memories of an agent, as one reader or one writer holds them.
#[derive(Clone, Default)]
pub struct Columns {
    chunks: Parts<Chunk>,
    len: usize,
    live: usize,
    slots: IdMap<u32>,
    sessions: Sessions,
    texts: Arc<Interner>,
}

/// The facts of [`CHUNK_VALUES`] slots.
#[derive(Clone)]
pub(crate) struct Chunk {
    live: Mask,
    bounds: Bounds,
    pub(crate) facts: Arc<Facts>,
    pub(crate) accesses: Arc<Accesses>,
    pub(crate) tags: Arc<Tags>,
    texts: Arc<Texts>,
}

/// What holds for all slots of a chunk; after a change it may say less than it could.
#[derive(Clone, Copy)]
struct Bounds {
    first_created: i64,
    last_created: i64,
    first_expiry: i64,
}

/// Facts of a chunk of slots, by slot inside the chunk. All slices are of one length, or all are
/// empty where every memory of a full chunk has gone; only live slots mean anything.
///
/// Times and positions that are not there are [`NONE`], texts 0, neighbours [`NO_SLOT`].
pub struct ChunkFacts<'columns> {
    /// The store's numbers.
    pub row: &'columns [i64],
    /// UUIDs.
    pub id: &'columns [[u8; 16]],
    /// Times of creation.
    pub created_at: &'columns [i64],
    /// Times of the last access.
    pub last_accessed_at: &'columns [i64],
    /// Numbers of accesses.
    pub access_count: &'columns [i64],
    /// Importances.
    pub importance: &'columns [f64],
    /// Places in sessions.
    pub position: &'columns [i64],
    /// Codes of users.
    pub user: &'columns [u32],
    /// Codes of sessions.
    pub session: &'columns [u32],
    /// Codes of speakers.
    pub speaker: &'columns [u32],
    /// Codes of roles.
    pub role: &'columns [u32],
    /// Bits of [`flags`].
    pub flags: &'columns [u8],
    /// Slots that come before in their sessions; they may lie in other chunks.
    pub previous: &'columns [u32],
    /// Slots that come after.
    pub next: &'columns [u32],
}

impl Columns {
    /// Slots that one of the chunks has.
    pub const CHUNK: usize = CHUNK_VALUES;

    /// Columns without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of slots, dead ones too.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no slots.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of memories.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Give a memory the next slot, which is returned. One that has the row already dies.
    pub fn push(&mut self, record: &Record) -> u32 {
        let slot = self.len as u32;
        let old = self.slots.insert(record.row, slot);
        let accessed = old.and_then(|old| self.access_of(old));
        if let Some(old) = old {
            self.bury(old);
        }
        let at = self.len % CHUNK_VALUES;
        if at == 0 {
            self.chunks.push(Chunk::new());
        }
        let interner = Arc::clone(&self.texts);
        let (chunk, _) = self.chunk_mut(slot);
        let chunk = Arc::make_mut(chunk);
        chunk.put(at, record, &interner);
        chunk.live.set(at);
        Texts::push(&mut chunk.texts, at, &joined(record));
        self.len += 1;
        self.live += 1;
        self.sessions.push();
        self.enter_session(slot);
        if let Some((last, count)) = accessed {
            self.raise_access(slot, last, count);
        }
        slot
    }

    /// Change everything but the row of the memory in a slot; false if no such one lives there.
    pub fn replace(&mut self, slot: u32, record: &Record) -> bool {
        if self.slot_of(record.row) != Some(slot) {
            return false;
        }
        self.leave_session(slot);
        let (chunk, at) = self.chunk_mut(slot);
        let chunk = Arc::make_mut(chunk);
        let text = joined(record);
        if *chunk.texts.get(at) != *text {
            chunk.texts = Arc::new(chunk.texts.with(at, &text, &chunk.live));
        }
        let accessed = self.access_of(slot);
        let interner = Arc::clone(&self.texts);
        let chunk = Arc::make_mut(self.chunk_mut(slot).0);
        chunk.put(at, record, &interner);
        if let Some((last, count)) = accessed {
            self.raise_access(slot, last, count);
        }
        self.enter_session(slot);
        true
    }

    /// When a memory was last read, and how often; nothing where none lives in the slot.
    pub fn access_of(&self, slot: u32) -> Option<(Option<i64>, i64)> {
        let (chunk, at) = self.live_chunk(slot)?;
        let Accesses { last_accessed_at, access_count } = &*chunk.accesses;
        let last = last_accessed_at.values()[at];
        Some(((last != NONE).then_some(last), access_count.values()[at]))
    }

    /// Let a memory have been read as late and as often as given, or more where more was known:
    /// what was counted in memory may not be written down yet. False if none lives in the slot.
    pub fn raise_access(&mut self, slot: u32, last: Option<i64>, count: i64) -> bool {
        let Some((known_last, known_count)) = self.access_of(slot) else {
            return false;
        };
        let raised = (known_last.max(last), known_count.max(count));
        if raised != (known_last, known_count) {
            let (chunk, at) = self.chunk_mut(slot);
            Arc::make_mut(&mut Arc::make_mut(chunk).accesses).put(at, raised.0, raised.1);
        }
        true
    }

    /// Take a memory away; false if none lives in the slot.
    pub fn kill(&mut self, slot: u32) -> bool {
        let Some(row) = self.row_of(slot) else {
            return false;
        };
        self.slots.remove(row);
        self.bury(slot);
        true
    }

    /// The slot of the memory with this row.
    pub fn slot_of(&self, row: i64) -> Option<u32> {
        self.slots.get(row)
    }

    /// The row of the memory in a slot.
    pub fn row_of(&self, slot: u32) -> Option<i64> {
        let (chunk, at) = self.live_chunk(slot)?;
        Some(chunk.facts.row.values()[at])
    }

    /// What orders equal scores; nothing's where no memory lives in the slot.
    pub(crate) fn tie_of(&self, slot: u32) -> Tie<'_> {
        let known = self.live_chunk(slot);
        known.map_or_else(
            || Tie::of_nothing(&self.texts),
            |(Chunk { facts, .. }, at)| {
                let user = facts.user.values()[at];
                Tie::new(facts.created_at.values()[at], facts.id.values()[at], user, &self.texts)
            },
        )
    }

    /// The code of the user of the memory in a slot; 0 for nobody, and where no memory lives there.
    pub(crate) fn user_of(&self, slot: u32) -> u32 {
        self.live_chunk(slot).map_or(NO_TEXT, |(chunk, at)| chunk.facts.user.values()[at])
    }

    /// Whether the memory in a slot is this user's, or nobody's for none.
    pub(crate) fn has_user(&self, slot: u32, user: Option<&str>) -> bool {
        user.map_or(Some(NO_TEXT), |user| self.texts.find(user)) == Some(self.user_of(slot))
    }

    /// The text of the memory in a slot.
    pub fn content(&self, slot: u32) -> Option<&str> {
        let (chunk, at) = self.live_chunk(slot)?;
        Some(chunk.content(at))
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// The facts of the slots from `chunk * CHUNK` on; none where there is no such chunk.
    pub fn chunk(&self, chunk: usize) -> Option<ChunkFacts<'_>> {
        let Chunk { facts, accesses, .. } = &**self.chunks.get(chunk)?;
        Some(ChunkFacts {
            row: facts.row.values(),
            id: facts.id.values(),
            created_at: facts.created_at.values(),
            last_accessed_at: accesses.last_accessed_at.values(),
            access_count: accesses.access_count.values(),
            importance: facts.importance.values(),
            position: facts.position.values(),
            user: facts.user.values(),
            session: facts.session.values(),
            speaker: facts.speaker.values(),
            role: facts.role.values(),
            flags: facts.flags.values(),
            previous: self.sessions.previous(chunk),
            next: self.sessions.next(chunk),
        })
    }

    /// The code that stands for a text in the columns of codes, if any row ever had it.
    pub fn code_of(&self, text: &str) -> Option<u32> {
        self.texts.find(text)
    }

    /// The text of a code.
    pub fn text_of(&self, code: u32) -> Option<Arc<str>> {
        self.texts.text(code)
    }

    /// The first time after `now` at which a memory of these users expires.
    pub fn next_expiry(&self, users: Users<'_>, now: i64) -> Option<i64> {
        let user = self.user_code(users);
        let expiring = self.chunks.iter().filter(|chunk| chunk.bounds.first_expiry < i64::MAX);
        expiring.filter_map(|chunk| chunk.next_expiry(user, now)).min()
    }

    /// Bytes of memory, without contents and metadata.
    pub fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(|chunk| chunk.bytes()).sum();
        chunks
            + self.chunks.bytes()
            + self.slots.bytes()
            + self.sessions.bytes()
            + self.texts.bytes()
    }

    fn live_chunk(&self, slot: u32) -> Option<(&Chunk, usize)> {
        let (chunk, at) = place(slot);
        let chunk = self.chunks.get(chunk)?;
        chunk.live.has(at).then_some((chunk, at))
    }

    /// The chunk of a slot that is there.
    fn chunk_mut(&mut self, slot: u32) -> (&mut Arc<Chunk>, usize) {
        let (chunk, at) = place(slot);
        (self.chunks.get_mut(chunk).expect("a slot's chunk is there"), at)
    }

    /// Mark a live slot as dead; where it was the last of a full chunk, nothing of that is kept.
    fn bury(&mut self, slot: u32) {
        self.leave_session(slot);
        let is_full = (slot as usize / CHUNK_VALUES + 1) * CHUNK_VALUES <= self.len;
        let (chunk, at) = self.chunk_mut(slot);
        let known = Arc::make_mut(chunk);
        known.live.unset(at);
        if is_full && known.live.is_empty() {
            *chunk = Arc::new(Chunk::new());
        }
        self.live -= 1;
    }

    fn enter_session(&mut self, slot: u32) {
        if session_key(&self.chunks, slot).session != NO_TEXT {
            self.sessions.insert(slot, |slot| session_key(&self.chunks, slot));
        }
    }

    fn leave_session(&mut self, slot: u32) {
        if session_key(&self.chunks, slot).session != NO_TEXT {
            self.sessions.remove(slot, |slot| session_key(&self.chunks, slot));
        }
    }
}

impl Chunk {
    fn new() -> Self {
        Self {
            live: Mask::NONE,
            bounds: Bounds {
                first_created: i64::MAX,
                last_created: i64::MIN,
                first_expiry: i64::MAX,
            },
            facts: Arc::default(),
            accesses: Arc::default(),
            tags: Arc::default(),
            texts: Arc::new(Texts::new()),
        }
    }

    /// Write all of a record but its texts.
    fn put(&mut self, at: usize, record: &Record, interner: &Interner) {
        Arc::make_mut(&mut self.facts).put(at, record, interner);
        let accesses = Arc::make_mut(&mut self.accesses);
        accesses.put(at, record.last_accessed_at, record.access_count);
        if self.live.has(at) && self.tags.has(at) {
            Arc::make_mut(&mut self.tags).clear(at);
        }
        if let Some(tags) = &record.tags {
            let codes: Vec<u32> = texts_of(tags).iter().map(|tag| interner.code(tag)).collect();
            Arc::make_mut(&mut self.tags).put(at, &codes);
        }
        self.bounds.first_created = self.bounds.first_created.min(record.created_at);
        self.bounds.last_created = self.bounds.last_created.max(record.created_at);
        let expiry = record.expires_at.unwrap_or(i64::MAX);
        self.bounds.first_expiry = self.bounds.first_expiry.min(expiry);
    }

    fn next_expiry(&self, user: UserCode, now: i64) -> Option<i64> {
        let times = self.facts.expires_at.values();
        let mut left = user.keep(self.live, self.facts.user.values());
        left = left.keep(times, |time| time != NONE && time > now);
        let mut slots = Vec::new();
        left.list(0, &mut slots);
        slots.into_iter().map(|slot| times[slot as usize]).min()
    }

    pub(crate) fn content(&self, at: usize) -> &str {
        let bytes = self.facts.content_bytes.values()[at] as usize;
        self.texts.get(at).get(..bytes).unwrap_or_default()
    }

    /// What of a slot's text is its metadata; empty for none.
    fn metadata<'text>(&self, at: usize, text: &'text str) -> &'text str {
        let bytes = self.facts.content_bytes.values()[at] as usize;
        text.get(bytes..).unwrap_or_default()
    }

    /// What some slots hold under a key of the metadata.
    pub(crate) fn under(&self, key: &str, among: &Mask) -> Arc<KeyColumn> {
        self.texts.under(key, among, |at, text| self.metadata(at, text))
    }

    fn bytes(&self) -> usize {
        let parts = self.facts.bytes() + self.accesses.bytes() + self.tags.bytes();
        size_of::<Self>() + parts + self.texts.bytes()
    }
}

/// Content and metadata, one after the other: one allocation instead of two.
fn joined(record: &Record) -> Arc<str> {
    match &record.metadata {
        None => record.content.as_str().into(),
        Some(metadata) => [record.content.as_str(), metadata].concat().into(),
    }
}

fn place(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK_VALUES, slot as usize % CHUNK_VALUES)
}

fn session_key(chunks: &Parts<Chunk>, slot: u32) -> SessionKey {
    let (chunk, at) = place(slot);
    let facts = &chunks.get(chunk).expect("a slot's chunk is there").facts;
    let position = facts.position.values()[at];
    SessionKey {
        user: facts.user.values()[at],
        session: facts.session.values()[at],
        lacks_position: position == NONE,
        position,
        created_at: facts.created_at.values()[at],
        row: facts.row.values()[at],
    }
}
