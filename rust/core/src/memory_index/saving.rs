//! An index in a file, and back: vectors are mapped, the state of the memories is read.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::MemoryIndex;
use crate::ids::{chunk_of, docid_of, vector_id};
use crate::memory::state::MemoryState;
use crate::memory::stored::STATE_VERSION;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::MAX_DIM;
use crate::storage::snapshot_store::{Snapshot, SnapshotStore};
use crate::storage::vector_file::{self, RowsDirectory};
use crate::system::data_file::{DataFile, DataFileWriter, Section};
use crate::text::{Analyser, Coverage};
use crate::{Error, simd};

const MAGIC: [u8; 8] = *b"mnemicix";

/// Of files; raised when their form changes, other than that of the state.
const FILE_VERSION: u64 = 1;

const VERSION: u64 = FILE_VERSION << 32 | STATE_VERSION as u64;

#[derive(Serialize, Deserialize)]
struct IndexDirectory {
    rows: RowsDirectory,
    state: Section,
    label: Section,
}

/// An index as it was at one moment.
pub struct IndexSnapshot {
    snapshot: Arc<Snapshot>,
    kernel: &'static dyn Kernel,
    dim: usize,
}

impl MemoryIndex {
    /// The index as it is now, for [`IndexSnapshot::save`].
    pub fn frozen(&self) -> IndexSnapshot {
        IndexSnapshot { snapshot: self.store.snapshot(), kernel: self.kernel, dim: self.dim }
    }

    /// Open a file of [`IndexSnapshot::save`]; returns its index and the caller's bytes. The index
    /// answers as if its memories had been put into a new one. Vectors stay in the file, mapped;
    /// they are checked when they are first read.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not a sound file of this version, or has vectors of another
    /// dimension.
    pub fn load_file(
        path: &Path,
        dim: Option<usize>,
        analyser: impl Into<Analyser>,
        coverage: Option<Coverage>,
    ) -> Result<(Self, Vec<u8>), Error> {
        if let Some(found) = dim.filter(|dim| !(1..=MAX_DIM).contains(dim)) {
            return Err(Error::DimensionOutOfRange { found, max: MAX_DIM });
        }
        let kernel = simd::kernel()?;
        let (file, directory) = DataFile::open::<IndexDirectory>(path, MAGIC, VERSION)?;
        let of_rows = dim.unwrap_or(1);
        let rows = vector_file::read(&file, of_rows, &directory.rows)?;
        let state = file.section(&directory.state)?;
        let state = MemoryState::from_bytes(state, analyser.into(), coverage, dim.is_some())?;
        let label = file.section(&directory.label)?.to_vec();
        let store = SnapshotStore::of(kernel, of_rows, rows, state);
        Ok((Self { dim: dim.unwrap_or(0), kernel, store }, label))
    }
}

impl IndexSnapshot {
    /// Write the index to a file, with some bytes of the caller. It appears complete or not at all,
    /// readable by its owner alone. Sensitive memories are left out, and nothing is in it of
    /// memories that were removed.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, memory runs out, or the index's own file is damaged.
    pub fn save(&self, path: &Path, label: &[u8]) -> Result<(), Error> {
        let memories = &self.snapshot.memories;
        let is_kept = |docid| !memories.columns.is_sensitive(docid);
        let (state, old) = memories.compacted(is_kept);
        let numbers = renumbered(memories.columns.len(), &old);
        let id_of = |id| {
            let docid = numbers[docid_of(id) as usize]?;
            Some(vector_id(docid, chunk_of(id)))
        };
        let mut file = DataFileWriter::beside(path)?;
        let (vectors, dim) = (&self.snapshot.vectors, self.dim.max(1));
        let rows = vector_file::write(&mut file, path, self.kernel, dim, vectors, id_of)?;
        vectors.check_read()?;
        let state = file.append(path, &state.to_bytes()?)?;
        let label = file.append(path, label)?;
        file.finish(path, MAGIC, VERSION, &IndexDirectory { rows, state, label })
    }
}

/// The new docid of each old one; `None` for those that are left out.
fn renumbered(docids: usize, old: &[u32]) -> Vec<Option<u32>> {
    let mut numbers = vec![None; docids];
    for (new, old) in (0..).zip(old) {
        numbers[*old as usize] = Some(new);
    }
    numbers
}
