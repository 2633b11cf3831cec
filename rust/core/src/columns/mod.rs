//! Attribute columns: the values that rankings read and filters test, by docid.
//!
//! Docids number memories in order of arrival and are never used again; a removed memory's docid is
//! marked deleted. Columns are cut into blocks that snapshots share until one of them changes, so a
//! copy of all columns copies a pointer for each block, and nothing changes under a reader.

mod attributes;
mod bitmap;
mod compaction;
mod content;
mod distinct;
mod interner;
mod listing;
mod matching;
mod plan;
mod record;
mod select;
mod sessions;
mod stored;
mod tags;
mod tie;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::cow_vec::{BLOCK_VALUES, CowVec};
use crate::collections::id_map::IdMap;
use crate::filter::texts_of;
use sessions::{SessionKey, Sessions};

pub use attributes::{Accesses, Attributes, Column, NONE, flags};
pub use distinct::DistinctValues;
pub use listing::{ListOrder, Listing, PageStart};
pub use matching::matches;
pub use record::Record;
pub use select::{Ask, Scope, Selected, Users};
pub(crate) use select::{Inside, UserCode};
pub use sessions::NO_DOCID;

use attributes::{flags_of, tested_flags};
pub(crate) use bitmap::Bitmap;
use content::{ContentColumn, PathColumn};
pub(crate) use interner::{Interner, NO_TEXT};
pub(crate) use stored::StoredColumns;
use tags::Tags;
pub(crate) use tie::Tie;

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

/// The columns of all memories of an agent, as one reader or one writer holds them.
#[derive(Clone, Default)]
pub struct Columns {
    blocks: CowVec<ColumnBlock>,
    len: usize,
    live: usize,
    docids: IdMap<u32>,
    sessions: Sessions,
    texts: Arc<Interner>,
    /// Whether any memory ever had an expiry.
    may_expire: bool,
}

/// The columns of [`BLOCK_VALUES`] docids.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ColumnBlock {
    live: Bitmap,
    bounds: Bounds,
    pub(crate) attributes: Arc<Attributes>,
    pub(crate) accesses: Arc<Accesses>,
    pub(crate) tags: Arc<Tags>,
    texts: Arc<ContentColumn>,
}

/// Bounds of the values of a block, which a change may leave wider than necessary.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Bounds {
    /// Nothing reads it; the form of the file has it.
    first_created: i64,
    last_created: i64,
    first_expiry: i64,
}

impl Bounds {
    const NOTHING: Self =
        Self { first_created: i64::MAX, last_created: i64::MIN, first_expiry: i64::MAX };

    /// Take in the times of a memory; an expiry of [`NONE`] is none.
    fn widen(&mut self, created_at: i64, expires_at: i64) {
        self.first_created = self.first_created.min(created_at);
        self.last_created = self.last_created.max(created_at);
        let expiry = if expires_at == NONE { i64::MAX } else { expires_at };
        self.first_expiry = self.first_expiry.min(expiry);
    }
}

/// Attributes of a block of docids, by position in the block. All slices have one length, or all
/// are empty if every memory of a full block is deleted; values of deleted docids are undefined.
///
/// Missing times and positions are [`NONE`], missing texts 0, missing neighbours [`NO_DOCID`].
pub struct BlockAttributes<'columns> {
    /// What reading a memory does not change.
    pub attributes: &'columns Attributes,
    /// What it changes.
    pub accesses: &'columns Accesses,
    /// Previous docids of the sessions, which may be in other blocks.
    pub previous: &'columns [u32],
    /// Next docids of the sessions.
    pub next: &'columns [u32],
}

impl Columns {
    /// Docids of a block.
    pub const BLOCK: usize = BLOCK_VALUES;

    /// Columns without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of docids, deleted ones too.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no docid.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of memories.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Append a memory and return its docid; the memory that had the row is marked deleted.
    pub fn push(&mut self, record: &Record) -> u32 {
        let docid = self.len as u32;
        self.may_expire |= record.expires_at.is_some();
        let old = self.docids.insert(record.row, docid);
        let accessed = old.and_then(|old| self.access_of(old));
        if let Some(old) = old {
            self.mark_deleted(old);
        }
        let at = self.len % BLOCK_VALUES;
        if at == 0 {
            self.blocks.push(ColumnBlock::new());
        }
        let interner = Arc::clone(&self.texts);
        let (block, _) = self.block_mut(docid);
        let block = Arc::make_mut(block);
        block.put(at, record, flags_of(record), &interner);
        block.live.set(at);
        ContentColumn::push(&mut block.texts, at, &joined(record));
        self.len += 1;
        self.live += 1;
        self.sessions.push();
        self.enter_session(docid);
        if let Some((last, count)) = accessed {
            self.raise_access(docid, last, count);
        }
        docid
    }

    /// Replace all attributes of a memory but its row; false if the docid is deleted.
    pub fn replace(&mut self, docid: u32, record: &Record) -> bool {
        if self.docid_of(record.row) != Some(docid) {
            return false;
        }
        self.may_expire |= record.expires_at.is_some();
        self.leave_session(docid);
        let (block, at) = self.block_mut(docid);
        let block = Arc::make_mut(block);
        let text = joined(record);
        if *block.texts.get(at) != *text {
            block.texts = Arc::new(block.texts.with(at, &text, &block.live));
        }
        let accessed = self.access_of(docid);
        let interner = Arc::clone(&self.texts);
        let block = Arc::make_mut(self.block_mut(docid).0);
        block.put(at, record, flags_of(record), &interner);
        if let Some((last, count)) = accessed {
            self.raise_access(docid, last, count);
        }
        self.enter_session(docid);
        true
    }

    /// Last access and access count; `None` if the docid is deleted.
    pub fn access_of(&self, docid: u32) -> Option<(Option<i64>, i64)> {
        let (block, at) = self.live_block(docid)?;
        let Accesses { last_accessed_at, access_count } = &*block.accesses;
        let last = last_accessed_at[at];
        Some(((last != NONE).then_some(last), access_count[at]))
    }

    /// Raise last access and access count to at least these values: accesses counted here may not
    /// be stored yet. False if the docid is deleted.
    pub fn raise_access(&mut self, docid: u32, last: Option<i64>, count: i64) -> bool {
        let Some((known_last, known_count)) = self.access_of(docid) else {
            return false;
        };
        let raised = (known_last.max(last), known_count.max(count));
        if raised != (known_last, known_count) {
            let (block, at) = self.block_mut(docid);
            Arc::make_mut(&mut Arc::make_mut(block).accesses).put(at, raised.0, raised.1);
        }
        true
    }

    /// Remove a memory; false if the docid is deleted.
    pub fn remove(&mut self, docid: u32) -> bool {
        let Some(row) = self.row_of(docid) else {
            return false;
        };
        self.docids.remove(row);
        self.mark_deleted(docid);
        true
    }

    /// The docid of the memory with this row.
    pub fn docid_of(&self, row: i64) -> Option<u32> {
        self.docids.get(row)
    }

    /// The row of a docid.
    pub fn row_of(&self, docid: u32) -> Option<i64> {
        let (block, at) = self.live_block(docid)?;
        Some(block.attributes.row[at])
    }

    /// The tie-breaker of a docid; a neutral one if it is deleted.
    pub(crate) fn tie_of(&self, docid: u32) -> Tie<'_> {
        let of_nothing = (NONE, [0; 16], NO_TEXT);
        let (created_at, id, user) = self.live_block(docid).map_or(of_nothing, |(block, at)| {
            let attributes = &block.attributes;
            (attributes.created_at[at], attributes.id[at], attributes.user[at])
        });
        Tie { created_at, id, user, texts: &self.texts }
    }

    /// Whether a memory is sensitive; a deleted docid is not.
    pub(crate) fn is_sensitive(&self, docid: u32) -> bool {
        let flags = |(block, at): (&ColumnBlock, usize)| block.attributes.flags[at];
        self.live_block(docid).is_some_and(|found| flags(found) & flags::SENSITIVE != 0)
    }

    /// The last change of a memory; `None` if the docid is deleted.
    pub(crate) fn updated_at(&self, docid: u32) -> Option<i64> {
        let (block, at) = self.live_block(docid)?;
        Some(block.attributes.updated_at[at])
    }

    /// The user's code; 0 for none, and for deleted docids.
    pub(crate) fn user_of(&self, docid: u32) -> u32 {
        self.live_block(docid).map_or(NO_TEXT, |(block, at)| block.attributes.user[at])
    }

    /// Whether the memory belongs to this user, or to no user for `None`.
    pub(crate) fn has_user(&self, docid: u32, user: Option<&str>) -> bool {
        user.map_or(Some(NO_TEXT), |user| self.texts.find(user)) == Some(self.user_of(docid))
    }

    /// The content of a memory.
    pub fn content(&self, docid: u32) -> Option<&str> {
        let (block, at) = self.live_block(docid)?;
        Some(block.content(at))
    }

    /// The attributes of the docids from `block * BLOCK` on; `None` if there is no such block.
    pub fn block(&self, block: usize) -> Option<BlockAttributes<'_>> {
        let ColumnBlock { attributes, accesses, .. } = &**self.blocks.get(block)?;
        let (previous, next) = (self.sessions.previous(block), self.sessions.next(block));
        Some(BlockAttributes { attributes, accesses, previous, next })
    }

    /// The previous memory of a docid's session; `NO_DOCID` without one.
    pub(crate) fn previous(&self, docid: u32) -> u32 {
        let (block, at) = place(docid);
        self.sessions.previous(block).get(at).copied().unwrap_or(NO_DOCID)
    }

    /// The next memory of a docid's session; `NO_DOCID` without one.
    pub(crate) fn next(&self, docid: u32) -> u32 {
        let (block, at) = place(docid);
        self.sessions.next(block).get(at).copied().unwrap_or(NO_DOCID)
    }

    /// The session and the flags of an existing docid.
    pub(crate) fn turn_of(&self, docid: u32) -> Option<(u32, u8)> {
        let (block, at) = place(docid);
        let attributes = &self.blocks.get(block)?.attributes;
        Some((*attributes.session.get(at)?, *attributes.flags.get(at)?))
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
        let expiring = self.blocks.iter().filter(|block| block.bounds.first_expiry < i64::MAX);
        expiring.filter_map(|block| block.next_expiry(user, now)).min()
    }

    /// Bytes of memory, without contents and metadata.
    pub fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.bytes()).sum();
        blocks
            + self.blocks.bytes()
            + self.docids.bytes()
            + self.sessions.bytes()
            + self.texts.bytes()
    }

    /// Whether any of some blocks has memories that expire.
    fn any_expires(blocks: &CowVec<ColumnBlock>) -> bool {
        blocks.iter().any(|block| block.bounds.first_expiry < i64::MAX)
    }

    fn live_block(&self, docid: u32) -> Option<(&ColumnBlock, usize)> {
        let (block, at) = place(docid);
        let block = self.blocks.get(block)?;
        block.live.has(at).then_some((block, at))
    }

    /// The block of an existing docid.
    fn block_mut(&mut self, docid: u32) -> (&mut Arc<ColumnBlock>, usize) {
        let (block, at) = place(docid);
        (self.blocks.get_mut(block).expect("a docid's block is there"), at)
    }

    /// Mark a live docid as deleted; a full block without live docids is emptied.
    fn mark_deleted(&mut self, docid: u32) {
        self.leave_session(docid);
        let is_full = (docid as usize / BLOCK_VALUES + 1) * BLOCK_VALUES <= self.len;
        let (block, at) = self.block_mut(docid);
        let known = Arc::make_mut(block);
        known.live.unset(at);
        if is_full && known.live.is_empty() {
            *block = Arc::new(ColumnBlock::new());
        }
        self.live -= 1;
    }

    fn enter_session(&mut self, docid: u32) {
        if session_key(&self.blocks, docid).session != NO_TEXT {
            self.sessions.insert(docid, |docid| session_key(&self.blocks, docid));
        }
    }

    fn leave_session(&mut self, docid: u32) {
        if session_key(&self.blocks, docid).session != NO_TEXT {
            self.sessions.remove(docid, |docid| session_key(&self.blocks, docid));
        }
    }
}

impl ColumnBlock {
    fn new() -> Self {
        Self {
            live: Bitmap::NONE,
            bounds: Bounds::NOTHING,
            attributes: Arc::default(),
            accesses: Arc::default(),
            tags: Arc::default(),
            texts: Arc::new(ContentColumn::new()),
        }
    }

    /// A block of some records, at most [`BLOCK_VALUES`], in their order; for filters alone.
    fn of(records: &[Record], interner: &Interner) -> Self {
        let mut block = Self::new();
        for (at, record) in records.iter().enumerate() {
            block.put(at, record, tested_flags(record), interner);
            block.live.set(at);
            ContentColumn::push(&mut block.texts, at, &joined(record));
        }
        block
    }

    /// Write all of a record but its texts.
    fn put(&mut self, at: usize, record: &Record, flags: u8, interner: &Interner) {
        Arc::make_mut(&mut self.attributes).put(at, record, flags, interner);
        let accesses = Arc::make_mut(&mut self.accesses);
        accesses.put(at, record.last_accessed_at, record.access_count);
        if self.live.has(at) && self.tags.has(at) {
            Arc::make_mut(&mut self.tags).clear(at);
        }
        if let Some(tags) = &record.tags {
            let codes: Vec<u32> = texts_of(tags).iter().map(|tag| interner.code(tag)).collect();
            Arc::make_mut(&mut self.tags).put(at, &codes);
        }
        self.bounds.widen(record.created_at, record.expires_at.unwrap_or(NONE));
    }

    fn next_expiry(&self, user: UserCode, now: i64) -> Option<i64> {
        let times = &self.attributes.expires_at;
        let mut left = user.keep(self.live, &self.attributes.user);
        left = left.keep(times, |time| time != NONE && time > now);
        let mut docids = Vec::new();
        left.list(0, &mut docids);
        docids.into_iter().map(|docid| times[docid as usize]).min()
    }

    pub(crate) fn content(&self, at: usize) -> &str {
        let bytes = self.attributes.content_bytes[at] as usize;
        self.texts.get(at).get(..bytes).unwrap_or_default()
    }

    /// The metadata in a docid's text; empty for none.
    fn metadata<'text>(&self, at: usize, text: &'text str) -> &'text str {
        let bytes = self.attributes.content_bytes[at] as usize;
        text.get(bytes..).unwrap_or_default()
    }

    /// The values of some docids at a path into the metadata.
    pub(crate) fn at_path(&self, path: &[Box<str>], among: &Bitmap) -> Arc<PathColumn> {
        self.texts.at_path(path, among, |at, text| self.metadata(at, text))
    }

    fn bytes(&self) -> usize {
        let parts = self.attributes.bytes() + self.accesses.bytes() + self.tags.bytes();
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

fn place(docid: u32) -> (usize, usize) {
    (docid as usize / BLOCK_VALUES, docid as usize % BLOCK_VALUES)
}

fn session_key(blocks: &CowVec<ColumnBlock>, docid: u32) -> SessionKey {
    let (block, at) = place(docid);
    let attributes = &blocks.get(block).expect("a docid's block is there").attributes;
    let position = attributes.position[at];
    SessionKey {
        user: attributes.user[at],
        session: attributes.session[at],
        lacks_position: position == NONE,
        position,
        created_at: attributes.created_at[at],
        row: attributes.row[at],
    }
}
