//! An index in a file, and back: vectors are mapped, the state of the memories is read.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::MemoryIndex;
use crate::collections::id_map::IdMap;
use crate::ids::{chunk_of, docid_of, vector_id};
use crate::memory::state::MemoryState;
use crate::memory::stored::STATE_VERSION;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::check_dim;
use crate::storage::snapshot_store::{Snapshot, SnapshotStore};
use crate::storage::vector_file::{self, RowsDirectory};
use crate::system::data_file::{DataFile, DataFileWriter, Section};
use crate::text::{Analyser, Coverage};
use crate::{Error, simd};

const MAGIC: [u8; 8] = *b"mnemicix";

/// Of files; raised when their form changes, other than that of the state.
const FILE_VERSION: u64 = 2;

const VERSION: u64 = FILE_VERSION << 32 | STATE_VERSION as u64;

/// The version whose codes lay otherwise.
const EARLIER: u64 = 1 << 32 | STATE_VERSION as u64;

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
    pub fn snapshot(&self) -> IndexSnapshot {
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
        dim.map_or(Ok(()), check_dim)?;
        let kernel = simd::kernel()?;
        let (file, directory) = DataFile::open::<IndexDirectory>(path, MAGIC, &[VERSION, EARLIER])?;
        let of_rows = dim.unwrap_or(1);
        let rows =
            vector_file::read(kernel, &file, of_rows, &directory.rows, file.version == EARLIER)?;
        let state = file.section(&directory.state)?;
        let has_vectors = dim.is_some();
        let mut state = MemoryState::from_bytes(state, analyser.into(), coverage, has_vectors)?;
        state.chunks = chunks_of(&rows.places, state.columns.len())?;
        let label = file.section(&directory.label)?.to_vec();
        let store = SnapshotStore::of(kernel, of_rows, rows, state);
        Ok((Self { dim: dim.unwrap_or(0), kernel, store }, label))
    }
}

/// Vectors of the memories of some docids.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VectorsPage {
    /// The row of each vector; those of a row with several chunks are next to each other.
    pub rows: Vec<i64>,
    /// The vectors at unit length, or null, `dim` floats each.
    pub vectors: Vec<f32>,
    /// The docid after them; `None` at the end.
    pub next: Option<u32>,
}

impl IndexSnapshot {
    /// Components of a vector; 0 without vectors.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of vectors, those of each chunk counted.
    pub fn vector_count(&self) -> usize {
        self.snapshot.vectors.places.len()
    }

    /// The vectors of so many docids from the first on.
    ///
    /// # Errors
    ///
    /// When the index's own file is damaged.
    pub fn vectors(&self, first: u32, docids: usize) -> Result<VectorsPage, Error> {
        let memories = &self.snapshot.memories;
        let end = memories.columns.len().min((first as usize).saturating_add(docids)) as u32;
        let mut page = VectorsPage::default();
        for docid in first..end {
            let chunks = (0..memories.chunks).map(|chunk| vector_id(docid, chunk));
            let found = chunks.filter_map(|id| self.snapshot.vectors.vector(id));
            let Some(row) = memories.columns.row_of(docid) else { continue };
            for vector in found {
                page.rows.push(row);
                page.vectors.extend(&vector[..self.dim]);
            }
        }
        self.snapshot.vectors.check_read()?;
        page.next = ((end as usize) < memories.columns.len()).then_some(end);
        Ok(page)
    }

    /// The rows of sensitive memories, which a file must not have.
    pub fn sensitive(&self) -> Vec<i64> {
        let columns = &self.snapshot.memories.columns;
        let docids = 0..columns.len() as u32;
        let sensitive = docids.filter(|docid| columns.is_sensitive(*docid));
        sensitive.filter_map(|docid| columns.row_of(docid)).collect()
    }

    /// Write the index to a file, with some bytes of the caller. It appears complete or not at all,
    /// readable by its owner alone. Sensitive memories are left out, and some rows of the caller's
    /// choice; nothing is in it of memories that were removed.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, memory runs out, or the index's own file is damaged.
    pub fn save(&self, path: &Path, label: &[u8], without: &[i64]) -> Result<(), Error> {
        let columns = &self.snapshot.memories.columns;
        let without: HashSet<i64> = without.iter().copied().collect();
        let is_left_out = |docid| columns.row_of(docid).is_some_and(|row| without.contains(&row));
        let is_kept = |docid| !columns.is_sensitive(docid) && !is_left_out(docid);
        let memories = &self.snapshot.memories;
        let (state, old) = memories.compacted(is_kept);
        let numbers = renumbered(memories.columns.len(), &old);
        let id_of = |id| {
            let docid = numbers[docid_of(id) as usize]?;
            Some(vector_id(docid, chunk_of(id)))
        };
        let mut file = DataFileWriter::beside(path)?;
        let (vectors, dim) = (&self.snapshot.vectors, self.dim.max(1));
        let rows = vector_file::write(&mut file, self.kernel, dim, vectors, id_of)?;
        vectors.check_read()?;
        let state = file.append(&state.to_bytes()?)?;
        let label = file.append(label)?;
        file.finish(MAGIC, VERSION, &IndexDirectory { rows, state, label })
    }
}

/// The largest number of chunks of a memory with these vectors, which are all of so many docids.
///
/// Chunks are numbered without gaps, so none has a larger number than there are vectors.
fn chunks_of<Place: Copy>(places: &IdMap<Place>, docids: usize) -> Result<u32, Error> {
    let is_sound = |id| {
        let (docid, chunk) = (docid_of(id) as usize, chunk_of(id) as usize);
        id >= 0 && docid < docids && chunk < places.len()
    };
    Error::unless(places.ids().all(is_sound), "vectors of other memories")?;
    Ok(places.ids().last().map_or(1, |id| chunk_of(id) + 1))
}

/// The new docid of each old one; `None` for those that are left out.
fn renumbered(docids: usize, old: &[u32]) -> Vec<Option<u32>> {
    let mut numbers = vec![None; docids];
    for (new, old) in (0..).zip(old) {
        numbers[*old as usize] = Some(new);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Record;
    use crate::memory_index::request::Batch;
    use crate::text::Analysis;

    #[test]
    fn vectors_of_no_memory_are_refused() {
        let analyser = Analyser::from(Analysis::default());
        let index = MemoryIndex::new(Some(2), analyser, None).expect("a kernel");
        let record = Record { row: 7, content: "A violin".to_owned(), ..Record::default() };
        let (records, vectors) = (&[record], &[1.0, 2.0, 2.0, 1.0]);
        let batch = Batch { records, embedded: &[7, 7], vectors, ..Batch::default() };
        index.apply(&batch).expect("a memory with two chunks");
        let (docid, chunk) = (vector_id(0, 0), vector_id(0, 1));
        for (ids, is_sound) in [
            ([docid, chunk], true),
            ([docid, vector_id(0, 2)], false),
            ([docid, vector_id(1, 0)], false),
            ([docid, -1], false),
        ] {
            let folder = tempfile::tempdir().expect("tests may write temporary files");
            let path = folder.path().join("index");
            let of = |id| Some(if id == docid { ids[0] } else { ids[1] });
            write(&index.snapshot(), &path, of).expect("a file");
            let read = MemoryIndex::load_file(&path, Some(2), analyser, None);
            assert_eq!(read.is_ok(), is_sound, "{ids:?}");
        }
    }

    fn write(
        of: &IndexSnapshot,
        path: &Path,
        id_of: impl Fn(i64) -> Option<i64>,
    ) -> Result<(), Error> {
        let mut file = DataFileWriter::beside(path)?;
        let vectors = &of.snapshot.vectors;
        let rows = vector_file::write(&mut file, of.kernel, of.dim, vectors, id_of)?;
        let state = file.append(&of.snapshot.memories.to_bytes()?)?;
        let label = file.append(b"")?;
        file.finish(MAGIC, VERSION, &IndexDirectory { rows, state, label })
    }
}
