//! The memories that are in no language of the embedder, by docid.

use std::sync::Arc;

use crate::Error;
use crate::collections::cow_vec::BlockVec;
use crate::text::Coverage;

/// Cheap to copy. Holds nothing where the embedder covers any language.
#[derive(Clone, Default)]
pub(crate) struct Uncovered {
    coverage: Option<Arc<Coverage>>,
    of_docid: BlockVec<bool>,
    /// Whether any memory ever was uncovered.
    any: bool,
}

impl Uncovered {
    /// `coverage` is that of the embedder; `None` covers any language.
    pub(crate) fn new(coverage: Option<Coverage>) -> Self {
        Self { coverage: coverage.map(Arc::new), ..Self::default() }
    }

    /// Those of some docids, numbered again.
    pub(crate) fn compacted(&self, docids: &[u32]) -> Self {
        let of_docid = docids.iter().filter_map(|docid| self.of_docid.get(*docid as usize));
        let of_docid: Vec<bool> = of_docid.copied().collect();
        let (coverage, any) = (self.coverage.clone(), of_docid.contains(&true));
        Self { coverage, of_docid: BlockVec::of(&of_docid), any }
    }

    /// A mark for each docid, if there is a coverage.
    pub(super) fn marks(&self) -> BlockVec<u8> {
        (0..self.of_docid.len() as u32).map(|docid| self.has(docid).into()).collect()
    }

    /// Those of so many docids with these marks.
    pub(super) fn restored(
        coverage: Option<Coverage>,
        marks: &BlockVec<u8>,
        docids: usize,
    ) -> Result<Self, Error> {
        let marked = if coverage.is_some() { docids } else { 0 };
        Error::unless(marks.len() == marked, "a mark of coverage for other memories")?;
        let is_marked = |at| marks.get(at).is_some_and(|mark| *mark != 0);
        let of_docid: Vec<bool> = (0..marks.len()).map(is_marked).collect();
        let (coverage, any) = (coverage.map(Arc::new), of_docid.contains(&true));
        Ok(Self { coverage, of_docid: BlockVec::of(&of_docid), any })
    }

    /// Append the next docid's text.
    pub(crate) fn push(&mut self, text: &str) {
        if let Some(coverage) = &self.coverage {
            let is_uncovered = !coverage.covers(text);
            self.any |= is_uncovered;
            self.of_docid.push(is_uncovered);
        }
    }

    /// Whether each of these docids is uncovered; nothing if no memory ever was.
    pub(crate) fn among(&self, docids: &[u32]) -> Vec<bool> {
        if !self.any {
            return Vec::new();
        }
        docids.iter().map(|docid| self.has(*docid)).collect()
    }

    fn has(&self, docid: u32) -> bool {
        self.of_docid.get(docid as usize).copied().unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.of_docid.bytes()
    }
}
