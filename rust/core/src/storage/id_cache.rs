//! Cache of looked-up ids, one entry for the last snapshot.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::storage::snapshot_store::{Snapshot, VectorRows};

/// The last result, and the revision of its snapshot.
pub(crate) struct IdCache<T>(Mutex<Option<(u64, Arc<T>)>>);

impl<T> Default for IdCache<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> IdCache<T> {
    /// The cached result if the snapshot is unchanged, else the result of `find`.
    pub(crate) fn in_snapshot(
        &self,
        snapshot: &Snapshot,
        find: impl FnOnce(&VectorRows) -> T,
    ) -> Arc<T> {
        let known = self.0.lock().clone();
        if let Some((_, rows)) = known.filter(|(revision, _)| *revision == snapshot.revision) {
            return rows;
        }
        let fresh = Arc::new(find(&snapshot.vectors));
        *self.0.lock() = Some((snapshot.revision, Arc::clone(&fresh)));
        fresh
    }
}
