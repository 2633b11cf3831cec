//! How far the embedder covers each memory, by docid.

use std::sync::Arc;

use crate::Error;
use crate::collections::cow_vec::BlockVec;
use crate::text::coverage::{Coverage, WHOLE};

/// Cheap to copy. Holds nothing where the embedder covers any language.
#[derive(Clone, Default)]
pub(crate) struct Uncovered {
    coverage: Option<Arc<Coverage>>,
    /// Largest shares of similarity, in hundredths, if there is a coverage.
    pub(super) percents: BlockVec<u8>,
    /// Whether any memory ever was not wholly covered.
    any: bool,
}

impl Uncovered {
    /// `coverage` is that of the embedder; `None` covers any language.
    pub(crate) fn new(coverage: Option<Coverage>) -> Self {
        Self { coverage: coverage.map(Arc::new), ..Self::default() }
    }

    /// Those of some docids, numbered again.
    pub(crate) fn compacted(&self, docids: &[u32]) -> Self {
        let percents = docids.iter().filter_map(|docid| self.percents.get(*docid as usize));
        let percents: Vec<u8> = percents.copied().collect();
        Self::of(self.coverage.clone(), BlockVec::of(&percents))
    }

    /// Those of so many docids with these shares.
    pub(super) fn restored(
        coverage: Option<Coverage>,
        percents: BlockVec<u8>,
        docids: usize,
    ) -> Result<Self, Error> {
        let covered = if coverage.is_some() { docids } else { 0 };
        Error::unless(percents.len() == covered, "a coverage of other memories")?;
        Ok(Self::of(coverage.map(Arc::new), percents))
    }

    fn of(coverage: Option<Arc<Coverage>>, percents: BlockVec<u8>) -> Self {
        let any = (0..percents.len()).any(|at| percents.get(at).is_some_and(|one| *one < WHOLE));
        Self { coverage, percents, any }
    }

    /// Append the next docid's text.
    pub(crate) fn push(&mut self, text: &str) {
        if let Some(coverage) = &self.coverage {
            let percent = coverage.percent(text);
            self.any |= percent < WHOLE;
            self.percents.push(percent);
        }
    }

    /// The largest share of similarity of each of these docids in hundredths; nothing if all ever were
    /// covered.
    pub(crate) fn among(&self, docids: &[u32]) -> Vec<u8> {
        if !self.any {
            return Vec::new();
        }
        let percent = |docid: &u32| self.percents.get(*docid as usize).copied().unwrap_or(WHOLE);
        docids.iter().map(percent).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.percents.bytes()
    }
}
