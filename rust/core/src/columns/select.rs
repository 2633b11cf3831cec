//! The memories that a question is about: its scope, its times, its filter.

use std::cell::OnceCell;

use crate::collections::cow_vec::CHUNK_VALUES;
use crate::filter::Filter;

use super::interner::NO_TEXT;
use super::plan::Plan;
use super::{Chunk, Columns, Mask, NONE};

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
    pub(crate) masks: Vec<Mask>,
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
        self.masks.iter().flat_map(Mask::words).copied().collect()
    }

    /// The slots, ascending.
    pub fn slots(&self) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.count);
        for (chunk, mask) in self.masks.iter().enumerate() {
            mask.list((chunk * CHUNK_VALUES) as u32, &mut slots);
        }
        slots
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
    pub(crate) fn keep(self, mask: Mask, users: &[u32]) -> Mask {
        match self {
            Self::Any => mask,
            Self::One(user) => mask.keep(users, |known| known == user),
            Self::Unknown => Mask::NONE,
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
            return Selected { masks: vec![Mask::NONE; self.chunks.len()], count: 0 };
        };
        let masks: Vec<Mask> = self.chunks.iter().map(|chunk| prepared.select(chunk)).collect();
        let count = masks.iter().map(Mask::count).sum();
        Selected { masks, count }
    }

    /// What tells of single memories whether [`select`](Self::select) would have them.
    pub(crate) fn inside<'ask>(&'ask self, ask: &'ask Ask<'_>) -> Inside<'ask> {
        let masks = vec![OnceCell::new(); self.chunks.len()];
        Inside { columns: self, prepared: self.prepare(ask), masks }
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
    masks: Vec<OnceCell<Mask>>,
}

impl Inside<'_> {
    /// Whether a slot is among them.
    pub(crate) fn has(&self, slot: u32) -> bool {
        let (at, place) = (slot as usize / CHUNK_VALUES, slot as usize % CHUNK_VALUES);
        let known = self.prepared.as_ref().zip(self.masks.get(at));
        known.zip(self.columns.chunks.get(at)).is_some_and(|((prepared, mask), chunk)| {
            mask.get_or_init(|| prepared.select(chunk)).has(place)
        })
    }
}

impl Prepared<'_> {
    /// Cheap tests first; each looks only at what the ones before have left.
    fn select(&self, chunk: &Chunk) -> Mask {
        let facts = &chunk.facts;
        let mut left = self.user.keep(chunk.live, facts.user.values());
        for (code, column) in [(self.project, &facts.project), (self.session, &facts.session)] {
            if let Some(code) = code {
                left = left.keep(column.values(), |known| known == code);
            }
        }
        left = self.in_time(chunk, left);
        if let Some(plan) = &self.plan
            && !left.is_empty()
        {
            left = plan.keep(chunk, &left);
        }
        if !self.excluded.is_empty() {
            let ids = facts.id.values();
            left = left.keep_slots(|at| self.excluded.binary_search(&ids[at]).is_err());
        }
        left
    }

    fn in_time(&self, chunk: &Chunk, mut left: Mask) -> Mask {
        let (facts, bounds) = (&chunk.facts, &chunk.bounds);
        if bounds.first_expiry <= self.now {
            let now = self.now;
            left = left.keep(facts.expires_at.values(), |time| time == NONE || time > now);
        }
        if bounds.first_created < self.since {
            let since = self.since;
            left = left.keep(facts.created_at.values(), |time| time >= since);
        }
        if let Some(until) = self.until.filter(|until| bounds.last_created >= *until) {
            left = left.keep(facts.created_at.values(), |time| time < until);
        }
        left
    }
}
