//! What ids mean in one state of a map, looked up once for each state.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::storage::snapshot_store::{Snapshot, VectorRows};

/// The rows that were last found, and the revision they were found in.
pub(crate) struct IdCache<T>(Mutex<Option<(u64, Arc<T>)>>);

impl<T> Default for IdCache<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> IdCache<T> {
    /// What was found before where nothing has changed since, else what `find` finds.
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
