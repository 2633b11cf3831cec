//! The memories that a question is about: its scope, its times, its filter.

use std::cell::OnceCell;

use crate::collections::cow_vec::BLOCK_VALUES;
use crate::filter::Filter;

use super::interner::NO_TEXT;
use super::plan::Plan;
use super::{Bitmap, ColumnBlock, Columns, NONE};

/// Whose memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Users<'text> {
    /// Everybody's and nobody's.
    All,
    /// Those stored without a user.
    #[default]
    Nobody,
    /// One user's.
    One(&'text str),
}

/// The walls and filters of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope<'text> {
    /// Whose.
    pub user: Users<'text>,
    /// Of this project alone, if named.
    pub project: Option<&'text str>,
    /// Of this session alone, if named.
    pub session: Option<&'text str>,
}

/// Which memories. Times are microseconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask<'text> {
    /// Whose, and of what.
    pub scope: Scope<'text>,
    /// What must hold.
    pub filter: Option<&'text Filter>,
    /// UUIDs to leave out.
    pub exclude: &'text [[u8; 16]],
    /// Now: what has expired by then is left out.
    pub now: i64,
    /// Created at this time or later.
    pub since: Option<i64>,
    /// Created before this time.
    pub until: Option<i64>,
}

/// Live slots, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    pub(crate) bitmaps: Vec<Bitmap>,
    count: usize,
}

impl Selected {
    /// Number of slots.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A bit for each slot, 64 a word.
    pub(crate) fn words(&self) -> Vec<u64> {
        self.bitmaps.iter().flat_map(Bitmap::words).copied().collect()
    }

    /// The slots, ascending.
    pub fn docids(&self) -> Vec<u32> {
        let mut docids = Vec::with_capacity(self.count);
        for (block, bitmap) in self.bitmaps.iter().enumerate() {
            bitmap.list((block * BLOCK_VALUES) as u32, &mut docids);
        }
        docids
    }
}

/// [`Users`] with a code in place of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserCode {
    /// Everybody's and nobody's.
    Any,
    /// Of the user, or of nobody, with this code.
    One(u32),
    /// Of a user whose name no memory has.
    Unknown,
}

impl UserCode {
    /// The slots of a mask that these users have, given a chunk's codes of users.
    pub(crate) fn keep(self, bitmap: Bitmap, users: &[u32]) -> Bitmap {
        match self {
            Self::Any => bitmap,
            Self::One(user) => bitmap.keep(users, |known| known == user),
            Self::Unknown => Bitmap::NONE,
        }
    }
}

/// An [`Ask`] with its texts as codes and its filter as a plan.
struct Prepared<'ask> {
    user: UserCode,
    project: Option<u32>,
    session: Option<u32>,
    plan: Option<Plan<'ask>>,
    excluded: Vec<[u8; 16]>,
    now: i64,
    since: i64,
    until: Option<i64>,
}

impl Columns {
    /// Select the memories inside the scope, not expired, between the times and through the filter.
    pub fn select(&self, ask: &Ask<'_>) -> Selected {
        let Some(prepared) = self.prepare(ask) else {
            return Selected { bitmaps: vec![Bitmap::NONE; self.blocks.len()], count: 0 };
        };
        let bitmaps: Vec<Bitmap> = self.blocks.iter().map(|block| prepared.select(block)).collect();
        let count = bitmaps.iter().map(Bitmap::count).sum();
        Selected { bitmaps, count }
    }

    /// What tells of single memories whether [`select`](Self::select) would have them.
    pub(crate) fn inside<'ask>(&'ask self, ask: &'ask Ask<'_>) -> Inside<'ask> {
        let bitmaps = vec![OnceCell::new(); self.blocks.len()];
        Inside { columns: self, prepared: self.prepare(ask), bitmaps }
    }

    /// The code of users.
    pub(crate) fn user_code(&self, users: Users<'_>) -> UserCode {
        match users {
            Users::All => UserCode::Any,
            Users::Nobody => UserCode::One(NO_TEXT),
            Users::One(name) => self.texts.find(name).map_or(UserCode::Unknown, UserCode::One),
        }
    }

    /// None if a project or session of the scope is one that no memory has.
    fn prepare<'ask>(&'ask self, ask: &'ask Ask<'_>) -> Option<Prepared<'ask>> {
        let code = |name: Option<&str>| match name {
            None => Some(None),
            Some(name) => self.texts.find(name).map(Some),
        };
        let mut excluded = ask.exclude.to_vec();
        excluded.sort_unstable();
        Some(Prepared {
            user: self.user_code(ask.scope.user),
            project: code(ask.scope.project)?,
            session: code(ask.scope.session)?,
            plan: ask.filter.map(|filter| Plan::new(filter, &self.texts)),
            excluded,
            now: ask.now,
            since: ask.since.unwrap_or(i64::MIN),
            until: ask.until,
        })
    }
}

/// The memories that a question is about, told by the chunk where one of them is asked for.
pub(crate) struct Inside<'ask> {
    columns: &'ask Columns,
    prepared: Option<Prepared<'ask>>,
    bitmaps: Vec<OnceCell<Bitmap>>,
}

impl Inside<'_> {
    /// Whether a slot is among them.
    pub(crate) fn has(&self, docid: u32) -> bool {
        let (at, place) = (docid as usize / BLOCK_VALUES, docid as usize % BLOCK_VALUES);
        let known = self.prepared.as_ref().zip(self.bitmaps.get(at));
        known.zip(self.columns.blocks.get(at)).is_some_and(|((prepared, bitmap), block)| {
            bitmap.get_or_init(|| prepared.select(block)).has(place)
        })
    }
}

impl Prepared<'_> {
    /// Cheap tests first; each looks only at what the ones before have left.
    fn select(&self, block: &ColumnBlock) -> Bitmap {
        let attributes = &block.attributes;
        let mut left = self.user.keep(block.live, attributes.user.values());
        for (code, column) in
            [(self.project, &attributes.project), (self.session, &attributes.session)]
        {
            if let Some(code) = code {
                left = left.keep(column.values(), |known| known == code);
            }
        }
        left = self.in_time(block, left);
        if let Some(plan) = &self.plan
            && !left.is_empty()
        {
            left = plan.keep(block, &left);
        }
        if !self.excluded.is_empty() {
            let ids = attributes.id.values();
            left = left.keep_docids(|at| self.excluded.binary_search(&ids[at]).is_err());
        }
        left
    }

    fn in_time(&self, block: &ColumnBlock, mut left: Bitmap) -> Bitmap {
        let (attributes, bounds) = (&block.attributes, &block.bounds);
        if bounds.first_expiry <= self.now {
            let now = self.now;
            left = left.keep(attributes.expires_at.values(), |time| time == NONE || time > now);
        }
        if bounds.first_created < self.since {
            let since = self.since;
            left = left.keep(attributes.created_at.values(), |time| time >= since);
        }
        if let Some(until) = self.until.filter(|until| bounds.last_created >= *until) {
            left = left.keep(attributes.created_at.values(), |time| time < until);
        }
        left
    }
}
