//! The state of all memories in a snapshot: attributes and keywords by docid, and the rows without
//! a vector.

use std::collections::HashSet;

use crate::Error;
use crate::collections::id_map::IdMap;
use crate::columns::{Access, Columns, Record, UserCode, Users};
use crate::ids::vector_id;
use crate::lexical::{Analysed, Collection, Lexical};
use crate::memory::links::{Graph, Link};
use crate::memory::speakers::Speakers;
use crate::memory::uncovered::Uncovered;
use crate::text::{Analyser, Analysis, Coverage};

/// Cheap to copy; a copy never changes with the original.
#[derive(Clone)]
pub(crate) struct MemoryState {
    pub(crate) columns: Columns,
    pub(crate) lexical: Lexical,
    pub(crate) speakers: Speakers,
    pub(crate) uncovered: Uncovered,
    pub(crate) graph: Graph,
    /// Largest number of chunks of any memory.
    pub(crate) chunks: u32,
    /// Rows whose vector is missing.
    pub(crate) unembedded: IdMap<()>,
    pub(super) has_vectors: bool,
}

impl Default for MemoryState {
    fn default() -> Self {
        Self::new(Analysis::default().into(), None, true)
    }
}

impl MemoryState {
    pub(crate) fn new(analyser: Analyser, coverage: Option<Coverage>, has_vectors: bool) -> Self {
        let lexical = Lexical::new(analyser);
        Self {
            columns: Columns::new(),
            lexical,
            speakers: Speakers::default(),
            uncovered: Uncovered::new(coverage),
            graph: Graph::default(),
            chunks: 1,
            unembedded: IdMap::default(),
            has_vectors,
        }
    }

    /// A state of the same kind with the same links, and without memories.
    pub(super) fn without_memories(&self) -> Self {
        let fresh = Self::new(self.lexical.analyser(), None, self.has_vectors);
        Self { graph: self.graph.clone(), chunks: self.chunks, ..fresh }
    }

    /// Add or replace a memory; returns its old docid if it got a new one, because its text
    /// changed.
    pub(crate) fn put(&mut self, record: &Record, analysed: &Analysed) -> Option<u32> {
        let known = self.columns.docid_of(record.row);
        if let Some(docid) = known
            && self.columns.content(docid) == Some(record.content.as_str())
            && self.columns.has_user(docid, record.user.as_deref())
        {
            self.columns.replace(docid, record);
            self.speakers.replace(docid, record);
            return None;
        }
        if let Some(docid) = known {
            self.lexical.remove(docid, self.columns.user_of(docid));
        }
        let docid = self.columns.push(record);
        let user = self.columns.user_of(docid);
        let resolved = self.lexical.resolved(analysed, &record.content, user);
        let pushed = self.lexical.push(&resolved, user);
        self.speakers.push(record);
        self.uncovered.push(&record.content);
        debug_assert_eq!(docid, pushed, "docids of attributes and of keywords are the same");
        if self.has_vectors {
            self.unembedded.insert(record.row, ());
        }
        known
    }

    /// Remove a memory; returns the docid it had.
    pub(crate) fn remove(&mut self, row: i64) -> Option<u32> {
        let docid = self.columns.docid_of(row)?;
        self.lexical.remove(docid, self.columns.user_of(docid));
        self.columns.remove(docid);
        self.unembedded.remove(row);
        Some(docid)
    }

    /// Replace all links from some rows, of which some may be in another state. Rows that are `removed`
    /// and not among them are in no state: links to them go as well.
    pub(crate) fn link(&mut self, removed: &[i64], from: &[i64], links: &[Link]) {
        let kept: HashSet<i64> =
            if removed.is_empty() { HashSet::new() } else { from.iter().copied().collect() };
        for row in removed.iter().filter(|row| !kept.contains(row)) {
            self.graph.forget(*row);
        }
        self.graph.set(from, links);
    }

    /// Analyse again what is in another language since memories were added or removed: memories
    /// without a sure language are in that of most memories of their user.
    pub(crate) fn settle_languages(&mut self) {
        let columns = &self.columns;
        let text_of = |docid| Some((columns.user_of(docid), columns.content(docid)?));
        self.lexical.settle_languages(text_of);
    }

    /// Raise a memory's last access and access count; missing rows are ignored.
    pub(crate) fn raise_access(&mut self, access: &Access) {
        if let Some(docid) = self.columns.docid_of(access.row) {
            self.columns.raise_access(docid, access.last, access.count);
        }
    }

    /// Add to a memory's access count; missing rows are ignored.
    pub(crate) fn add_access(&mut self, access: &Access) {
        let docid = self.columns.docid_of(access.row);
        if let Some((docid, (_, count))) =
            docid.zip(docid.and_then(|docid| self.columns.access_of(docid)))
        {
            self.columns.raise_access(docid, access.last, count.saturating_add(access.count));
        }
    }

    /// The ids of missing vectors, and the positions of these vectors among those given for `rows`;
    /// a repeated row has several chunks.
    pub(crate) fn lacking(&mut self, rows: &[i64]) -> Result<(Vec<i64>, Vec<usize>), Error> {
        let (mut ids, mut places) = (Vec::new(), Vec::new());
        let mut chunk = 0;
        for (at, row) in rows.iter().enumerate() {
            chunk = if at > 0 && rows[at - 1] == *row { chunk + 1 } else { 0 };
            let len = self.columns.live();
            let docid = self.columns.docid_of(*row).ok_or(Error::UnknownId { id: *row, len })?;
            if self.unembedded.get(*row).is_some() {
                ids.push(vector_id(docid, chunk));
                places.push(at);
                self.chunks = self.chunks.max(chunk + 1);
            }
        }
        for place in &places {
            self.unembedded.remove(rows[*place]);
        }
        Ok((ids, places))
    }

    /// The memories whose statistics weigh the words of a call: those of its user.
    pub(crate) fn collection(&self, users: Users<'_>) -> Collection {
        match self.columns.user_code(users) {
            UserCode::Any => Collection::All,
            UserCode::One(user) => Collection::User(user),
            UserCode::Unknown => Collection::User(u32::MAX),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let of_docids = self.speakers.bytes() + self.uncovered.bytes();
        let rest = self.unembedded.bytes() + self.graph.bytes();
        self.columns.bytes() + self.lexical.bytes() + of_docids + rest
    }
}
