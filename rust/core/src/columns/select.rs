//! Selection of memories by scope, times and filter.

use std::cell::OnceCell;

use crate::collections::cow_vec::BLOCK_VALUES;
use crate::deadline::Deadline;
use crate::filter::Filter;
use crate::text::TimeZone;

use super::interner::NO_TEXT;
use super::plan::Plan;
use super::{Bitmap, ColumnBlock, Columns, NONE};

/// Users of the memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Users<'text> {
    /// All memories, with or without a user.
    All,
    /// Those stored without a user.
    #[default]
    Nobody,
    /// One user's.
    One(&'text str),
}

/// Whose memories, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope<'text> {
    /// The user.
    pub user: Users<'text>,
    /// Of this project alone, if named.
    pub project: Option<&'text str>,
    /// Of this session alone, if named.
    pub session: Option<&'text str>,
}

/// Which memories. Times are microseconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask<'text> {
    /// User, project and session.
    pub scope: Scope<'text>,
    /// The filter.
    pub filter: Option<&'text Filter>,
    /// UUIDs to leave out.
    pub exclude: &'text [[u8; 16]],
    /// Now; expired memories are left out.
    pub now: i64,
    /// Where the days begin that a query names.
    pub time_zone: TimeZone<'text>,
    /// The time limit of the call.
    pub deadline: &'text Deadline,
}

/// Live docids, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    pub(crate) bitmaps: Vec<Bitmap>,
    count: usize,
}

impl Selected {
    /// Number of docids.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first of these docids, about so many: whole blocks.
    pub(crate) fn first(mut self, docids: usize) -> Self {
        self.count = 0;
        for bitmap in &mut self.bitmaps {
            if self.count >= docids {
                *bitmap = Bitmap::NONE;
            }
            self.count += bitmap.count();
        }
        self
    }

    /// A bit for each docid, 64 a word.
    pub(crate) fn words(&self) -> Vec<u64> {
        self.bitmaps.iter().flat_map(Bitmap::words).copied().collect()
    }

    /// The docids, ascending.
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
    /// All memories, with or without a user.
    Any,
    /// The user with this code, or memories without one.
    One(u32),
    /// A user without memories.
    Unknown,
}

impl UserCode {
    /// The docids of a bitmap that belong to these users, by the codes of users of a block.
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
}

impl Columns {
    /// Select the memories inside the scope, not expired, and through the filter;
    /// those of the first blocks alone if the deadline passes.
    pub fn select(&self, ask: &Ask<'_>) -> Selected {
        let Some(prepared) = self.prepare(ask) else {
            return Selected { bitmaps: vec![Bitmap::NONE; self.blocks.len()], count: 0 };
        };
        let select = |block: &ColumnBlock| {
            if ask.deadline.is_past() { Bitmap::NONE } else { prepared.select(block) }
        };
        let bitmaps: Vec<Bitmap> = self.blocks.iter().map(|block| select(block)).collect();
        let count = bitmaps.iter().map(Bitmap::count).sum();
        Selected { bitmaps, count }
    }

    /// Whether [`select`](Self::select) selects every memory; no block is read to find out.
    pub(crate) fn selects_all(&self, ask: &Ask<'_>) -> bool {
        let Ask { scope, filter, exclude, .. } = ask;
        let everywhere = Scope { user: Users::All, project: None, session: None };
        *scope == everywhere && exclude.is_empty() && filter.is_none() && !self.may_expire
    }

    /// The rows of selected memories, in order of docids.
    pub(crate) fn rows_of(&self, selected: &Selected) -> Vec<i64> {
        let mut rows = Vec::with_capacity(selected.len());
        for (block, bitmap) in self.blocks.iter().zip(&selected.bitmaps) {
            let values = &block.attributes.row;
            rows.extend(bitmap.docids().map(|at| values[at]));
        }
        rows
    }

    /// Whether [`select`](Self::select) selects more memories than this; no further ones are tested.
    pub(crate) fn selects_more_than(&self, ask: &Ask<'_>, count: usize) -> bool {
        let Some(prepared) = self.prepare(ask) else { return false };
        let mut found = 0;
        self.blocks.iter().any(|block| {
            found += prepared.select(block).count();
            found > count || ask.deadline.is_past()
        })
    }

    /// Keep those of ascending docids that [`select`](Self::select) selects; blocks without any are
    /// not read.
    pub(crate) fn retain_selected(&self, ask: &Ask<'_>, docids: &mut Vec<u32>) {
        let prepared = self.prepare(ask);
        let mut last = (usize::MAX, Bitmap::NONE);
        docids.retain(|docid| {
            let (at, place) = (*docid as usize / BLOCK_VALUES, *docid as usize % BLOCK_VALUES);
            if at != last.0 {
                let block = self.blocks.get(at);
                let selected = prepared.as_ref().zip(block).map(|(ask, block)| ask.select(block));
                last = (at, selected.unwrap_or(Bitmap::NONE));
            }
            last.1.has(place)
        });
    }

    /// The time of the newest memory in a scope that has not expired; no filter has an influence.
    ///
    /// `None` without one. Past the deadline some are not looked at.
    pub fn newest(&self, scope: &Scope<'_>, now: i64, deadline: &Deadline) -> Option<i64> {
        let ask = Ask { scope: *scope, now, ..Ask::default() };
        let prepared = self.prepare(&ask)?;
        let mut newest = None;
        for block in self.blocks.iter().rev() {
            let may_be_newer = newest.is_none_or(|newest| block.bounds.last_created > newest);
            if may_be_newer && !deadline.is_past() {
                let times = &block.attributes.created_at;
                let docids = prepared.select(block).docids();
                newest = newest.max(docids.map(|at| times[at]).max());
            }
        }
        newest
    }

    /// A test of single memories with the result of [`select`](Self::select).
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
        })
    }
}

/// The selected memories, evaluated by block on demand.
pub(crate) struct Inside<'ask> {
    columns: &'ask Columns,
    prepared: Option<Prepared<'ask>>,
    bitmaps: Vec<OnceCell<Bitmap>>,
}

impl Inside<'_> {
    /// Whether a docid is selected.
    pub(crate) fn has(&self, docid: u32) -> bool {
        let (at, place) = (docid as usize / BLOCK_VALUES, docid as usize % BLOCK_VALUES);
        let known = self.prepared.as_ref().zip(self.bitmaps.get(at));
        known.zip(self.columns.blocks.get(at)).is_some_and(|((prepared, bitmap), block)| {
            bitmap.get_or_init(|| prepared.select(block)).has(place)
        })
    }
}

impl Prepared<'_> {
    /// Cheap tests first; each tests only the docids that passed those before.
    fn select(&self, block: &ColumnBlock) -> Bitmap {
        let attributes = &block.attributes;
        let mut left = self.user.keep(block.live, &attributes.user);
        for (code, column) in
            [(self.project, &attributes.project), (self.session, &attributes.session)]
        {
            if let Some(code) = code {
                left = left.keep(column, |known| known == code);
            }
        }
        if block.bounds.first_expiry <= self.now {
            let now = self.now;
            left = left.keep(&attributes.expires_at, |time| time == NONE || time > now);
        }
        if let Some(plan) = &self.plan
            && !left.is_empty()
        {
            left = plan.keep(block, &left);
        }
        if !self.excluded.is_empty() {
            let ids = &attributes.id;
            left = left.keep_docids(|at| self.excluded.binary_search(&ids[at]).is_err());
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Record;
    use crate::deadline::NEVER;

    /// Four blocks of three users, times in no order; every fifth memory has expired.
    fn records() -> Vec<Record> {
        let record = |row: i64| Record {
            row,
            created_at: (row * 7_919) % 10_007,
            user: (row % 3 > 0).then(|| format!("user {}", row % 3)),
            project: (row % 7 == 0).then(|| "p".to_owned()),
            session: (row % 11 == 0).then(|| "s".to_owned()),
            expires_at: (row % 5 == 0).then_some(50),
            ..Record::default()
        };
        (0..4 * BLOCK_VALUES as i64 - 5).map(record).collect()
    }

    fn columns(records: &[Record]) -> Columns {
        let mut columns = Columns::new();
        for record in records {
            columns.push(record);
        }
        columns
    }

    fn is_inside(scope: &Scope<'_>, record: &Record) -> bool {
        let is_of_user = match scope.user {
            Users::All => true,
            Users::Nobody => record.user.is_none(),
            Users::One(name) => record.user.as_deref() == Some(name),
        };
        let has_expired = record.expires_at.is_some_and(|time| time <= 100);
        let is_in =
            |name: Option<&str>, own: &Option<String>| name.is_none() || own.as_deref() == name;
        is_of_user
            && !has_expired
            && is_in(scope.project, &record.project)
            && is_in(scope.session, &record.session)
    }

    #[test]
    fn the_newest_memory_is_that_of_a_walk_over_the_scope() {
        let records = records();
        let columns = columns(&records);
        for user in [Users::All, Users::Nobody, Users::One("user 2"), Users::One("nobody")] {
            for (project, session) in
                [(None, None), (Some("p"), None), (None, Some("s")), (Some("p"), Some("s"))]
            {
                let scope = Scope { user, project, session };
                let inside = records.iter().filter(|record| is_inside(&scope, record));
                let expected = inside.map(|record| record.created_at).max();
                assert_eq!(columns.newest(&scope, 100, &NEVER), expected, "{scope:?}");
            }
        }
    }

    #[test]
    fn single_docids_are_selected_as_all_are() {
        let mut columns = columns(&records());
        (0..40).for_each(|at| {
            columns.remove(at * 47);
        });
        for user in [Users::All, Users::Nobody, Users::One("user 2"), Users::One("nobody")] {
            for project in [None, Some("p"), Some("q")] {
                let scope = Scope { user, project, session: None };
                let ask = Ask { scope, now: 100, ..Ask::default() };
                let selected = columns.select(&ask);
                let mut docids: Vec<u32> = (0..5 * BLOCK_VALUES as u32).step_by(3).collect();
                let expected: Vec<u32> =
                    selected.docids().into_iter().filter(|docid| docid % 3 == 0).collect();
                columns.retain_selected(&ask, &mut docids);
                assert_eq!(docids, expected, "{ask:?}");
                let rows: Vec<i64> =
                    selected.docids().iter().filter_map(|docid| columns.row_of(*docid)).collect();
                assert_eq!(columns.rows_of(&selected), rows, "{ask:?}");
                let count = selected.len();
                assert!(!columns.selects_all(&ask), "some expire");
                for few in [0, count.saturating_sub(1), count, count + 1] {
                    assert_eq!(columns.selects_more_than(&ask, few), few < count, "{ask:?}");
                }
            }
        }
    }

    #[test]
    fn all_are_selected_where_nothing_limits_them() {
        let mut records = records();
        for record in &mut records {
            record.expires_at = None;
        }
        let mut columns = columns(&records);
        columns.remove(7);
        let all = Ask { scope: Scope { user: Users::All, ..Scope::default() }, ..Ask::default() };
        assert!(columns.selects_all(&all));
        assert_eq!(columns.select(&all).len(), columns.live());
        for limited in [
            Ask::default(),
            Ask { filter: Some(&Filter::All(vec![])), ..all },
            Ask { exclude: &[[0; 16]], ..all },
            Ask { scope: Scope { project: Some("p"), ..all.scope }, ..all },
        ] {
            assert!(!columns.selects_all(&limited), "{limited:?}");
        }
        columns.replace(3, &Record { expires_at: Some(9), ..records[3].clone() });
        assert!(!columns.selects_all(&all));
        let docids: Vec<u32> = columns.docids().collect();
        assert!(!columns.compacted(&docids).selects_all(&all));
    }

    #[test]
    fn a_removed_memory_is_not_the_newest() {
        let record = |row, created_at| Record { row, created_at, ..Record::default() };
        let mut columns = columns(&[record(1, 10), record(2, 30), record(3, 20)]);
        columns.remove(1);
        assert_eq!(columns.newest(&Scope::default(), 0, &NEVER), Some(20));
        assert_eq!(Columns::new().newest(&Scope::default(), 0, &NEVER), None);
    }

    #[test]
    fn no_block_is_read_past_the_deadline() {
        let columns = columns(&records());
        let deadline = Deadline::after_looks(0);
        assert_eq!(columns.newest(&Scope::default(), 0, &deadline), None);
    }
}
