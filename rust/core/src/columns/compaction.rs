//! Copies of columns without some of their memories.

use std::sync::Arc;

use crate::collections::cow_vec::{BLOCK_VALUES, CowVec};
use crate::collections::id_map::IdMap;

use super::content::ContentColumn;
use super::interner::{Interner, NO_TEXT};
use super::sessions::{NO_DOCID, Sessions};
use super::{ColumnBlock, Columns, place, session_key};

/// New codes for the texts of kept memories, in the order in which these are met.
pub(super) struct NewCodes<'old> {
    old: &'old Interner,
    new: Interner,
    /// By old code; [`NO_TEXT`] for a text that no memory had so far.
    codes: Vec<u32>,
}

impl<'old> NewCodes<'old> {
    fn new(old: &'old Interner) -> Self {
        Self { old, new: Interner::default(), codes: vec![NO_TEXT; old.len() + 1] }
    }

    /// The new code of an old one.
    pub(super) fn code(&mut self, old: u32) -> u32 {
        match self.codes[old as usize] {
            NO_TEXT => self.learn(old),
            code => code,
        }
    }

    fn learn(&mut self, old: u32) -> u32 {
        let Some(text) = self.old.text(old) else { return NO_TEXT };
        let code = self.new.code(&text);
        self.codes[old as usize] = code;
        code
    }
}

impl Columns {
    /// The docids of all memories, ascending.
    pub(crate) fn docids(&self) -> impl Iterator<Item = u32> {
        let blocks = (0..).zip(self.blocks.iter());
        blocks.flat_map(|(at, block)| {
            block.live.docids().map(move |docid| at * BLOCK_VALUES as u32 + docid as u32)
        })
    }

    /// The memories of some live docids, which ascend, under new docids without gaps; with the
    /// texts of these alone. Contents are shared.
    pub(crate) fn compacted(&self, docids: &[u32]) -> Self {
        let mut codes = NewCodes::new(&self.texts);
        let blocks = docids.chunks(BLOCK_VALUES);
        let blocks = blocks.map(|docids| Arc::new(self.compacted_block(docids, &mut codes)));
        let blocks = CowVec::of(blocks.collect());
        let sessions = self.compacted_sessions(&blocks, docids);
        let len = docids.len();
        let docids = docids_by_row(&blocks).expect("a row has one live docid");
        let may_expire = Self::any_expires(&blocks);
        Self { blocks, len, live: len, docids, sessions, texts: Arc::new(codes.new), may_expire }
    }

    fn compacted_block(&self, docids: &[u32], codes: &mut NewCodes<'_>) -> ColumnBlock {
        let mut block = ColumnBlock::new();
        let mut texts = Vec::with_capacity(docids.len());
        for docids in docids.chunk_by(|one, other| place(*one).0 == place(*other).0) {
            let old = self.blocks.get(place(docids[0]).0).expect("a docid's block is there");
            let tags = old.tags.by_docid();
            for (_, at) in docids.iter().map(|docid| place(*docid)) {
                block.push_from(texts.len(), old, at, tags[at], codes);
                texts.push(old.texts.shared(at));
            }
        }
        block.texts = Arc::new(ContentColumn::of(texts));
        block
    }

    /// The old order, cut into sessions, which are sorted by their new codes.
    fn compacted_sessions(&self, blocks: &CowVec<ColumnBlock>, docids: &[u32]) -> Sessions {
        let mut numbers = vec![NO_DOCID; self.len];
        (0..).zip(docids).for_each(|(new, old)| numbers[*old as usize] = new);
        let kept = self.sessions.order().map(|old| numbers[old as usize]);
        let kept: Vec<u32> = kept.filter(|docid| *docid != NO_DOCID).collect();
        let session_of = |docid: u32| {
            let key = session_key(blocks, docid);
            (key.user, key.session)
        };
        let mut sessions: Vec<&[u32]> =
            kept.chunk_by(|one, other| session_of(*one) == session_of(*other)).collect();
        sessions.sort_unstable_by_key(|docids| session_of(docids[0]));
        Sessions::of(&sessions.concat(), docids.len(), |docid| session_key(blocks, docid))
    }
}

impl ColumnBlock {
    /// Append a docid of another block; all but its texts.
    fn push_from(
        &mut self,
        at: usize,
        other: &Self,
        other_at: usize,
        tags: &[u32],
        codes: &mut NewCodes<'_>,
    ) {
        let attributes = Arc::make_mut(&mut self.attributes);
        attributes.push_from(&other.attributes, other_at, codes);
        self.bounds.widen(attributes.created_at[at], attributes.expires_at[at]);
        Arc::make_mut(&mut self.accesses).push_from(&other.accesses, other_at);
        if !tags.is_empty() {
            let tags: Vec<u32> = tags.iter().map(|tag| codes.code(*tag)).collect();
            Arc::make_mut(&mut self.tags).put(at, &tags);
        }
        self.live.set(at);
    }
}

/// The docids of live blocks by row; `None` if a row has several.
pub(super) fn docids_by_row(blocks: &CowVec<ColumnBlock>) -> Option<IdMap<u32>> {
    let rows = blocks.iter().flat_map(|block| block.attributes.row.iter().copied());
    let mut docids: Vec<(i64, u32)> = rows.zip(0..).collect();
    docids.sort_unstable();
    IdMap::of_ascending(&docids)
}
