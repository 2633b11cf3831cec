//! The stored form of columns without removed memories.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::collections::cow_vec::{BLOCK_VALUES, CowVec};
use crate::collections::plain;

use super::compaction::docids_by_row;
use super::sessions::Sessions;
use super::{Bitmap, ColumnBlock, Columns, Interner, NO_TEXT, session_key};

/// What other parts of [`Columns`] follow from.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredColumns {
    blocks: CowVec<ColumnBlock>,
    /// All docids with a session, session by session.
    #[serde(with = "plain")]
    order: Vec<u32>,
    texts: Arc<Interner>,
}

impl Columns {
    pub(crate) fn stored(&self) -> StoredColumns {
        let (blocks, texts) = (self.blocks.clone(), Arc::clone(&self.texts));
        StoredColumns { blocks, order: self.sessions.order().collect(), texts }
    }

    pub(crate) fn restored(stored: StoredColumns) -> Result<Self, Error> {
        let StoredColumns { blocks, order, texts } = stored;
        let len = blocks.iter().map(|block| block.attributes.row.len()).sum();
        let mut firsts = (0..len).step_by(BLOCK_VALUES);
        let are_sound = blocks.iter().all(|block| {
            let rest = firsts.next().map(|first| len - first);
            rest.is_some_and(|rest| block.is_full(rest.min(BLOCK_VALUES), texts.len()))
        });
        Error::unless(are_sound, "attributes that do not fit together")?;
        let sessions = sessions_of(&blocks, &order, len)?;
        let repeated = Error::SnapshotInvalid("a row of two memories");
        let docids = docids_by_row(&blocks).ok_or(repeated)?;
        let may_expire = Self::any_expires(&blocks);
        Ok(Self { blocks, len, live: len, docids, sessions, texts, may_expire })
    }
}

impl Columns {
    /// The code of each docid's user, if no memory was removed.
    pub(crate) fn users(&self) -> Vec<u32> {
        self.blocks.iter().flat_map(|block| block.attributes.user.iter()).copied().collect()
    }
}

impl ColumnBlock {
    /// Whether the first docids have a memory, so many, with codes of so many texts.
    fn is_full(&self, docids: usize, texts: usize) -> bool {
        self.live == Bitmap::first(docids)
            && self.attributes.have_len(docids)
            && self.attributes.codes_are_known(texts)
            && self.accesses.have_len(docids)
            && self.tags.are_of(docids, texts)
            && self.texts.has_len(docids)
    }
}

fn sessions_of(blocks: &CowVec<ColumnBlock>, order: &[u32], len: usize) -> Result<Sessions, Error> {
    let codes = blocks.iter().flat_map(|block| block.attributes.session.iter());
    let are_all = order.len() == codes.filter(|code| **code != NO_TEXT).count();
    let are_there = order.iter().all(|docid| (*docid as usize) < len);
    Error::unless(are_all && are_there, "sessions of other memories")?;
    Ok(Sessions::of(order, len, |docid| session_key(blocks, docid)))
}
