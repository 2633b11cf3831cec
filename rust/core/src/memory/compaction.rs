//! Copies of a state without some of its memories.

use super::state::MemoryState;
use crate::collections::id_map::IdMap;
use crate::lexical::Lexical;

impl MemoryState {
    /// A state of the memories that are kept, as if no other had ever been there, with the old docid
    /// of each new one. Docids have no gaps and keep their order.
    ///
    /// Links are copied whole: they hold numbers of rows alone, of memories in other states too.
    pub(crate) fn compacted(&self, keep: impl Fn(u32) -> bool) -> (Self, Vec<u32>) {
        let docids: Vec<u32> = self.columns.docids().filter(|docid| keep(*docid)).collect();
        let mut compacted = self.without_memories();
        compacted.columns = self.columns.compacted(&docids);
        compacted.lexical = self.compacted_lexical(&docids, &compacted);
        compacted.speakers = self.speakers.compacted(&docids);
        compacted.uncovered = self.uncovered.compacted(&docids);
        let lacking =
            self.unembedded.ids().filter(|row| compacted.columns.docid_of(*row).is_some());
        let lacking: Vec<(i64, ())> = lacking.map(|row| (row, ())).collect();
        compacted.unembedded = IdMap::of_ascending(&lacking).unwrap_or_default();
        (compacted, docids)
    }

    fn compacted_lexical(&self, docids: &[u32], compacted: &Self) -> Lexical {
        let columns = &compacted.columns;
        let memory = |docid| (columns.user_of(docid), columns.content(docid).unwrap_or_default());
        self.lexical.compacted(docids, |docid| self.columns.user_of(docid), memory)
    }
}
