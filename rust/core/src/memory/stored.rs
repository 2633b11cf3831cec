//! The stored form of a state without removed memories: what is slow to make again is written, long
//! lists as one run of bytes. No text is cut into words when it is read.

use serde::{Deserialize, Serialize};

use super::links::Graph;
use super::speakers::{Speakers, StoredSpeakers};
use super::state::MemoryState;
use super::uncovered::Uncovered;
use crate::Error;
use crate::collections::cow_vec::BlockVec;
use crate::collections::id_map::IdMap;
use crate::collections::plain;
use crate::columns::{Columns, StoredColumns};
use crate::lexical::{Lexical, StoredLexical};
use crate::text::{Analyser, Coverage};

/// The version of the bytes of a state. It is raised with every change of their form or meaning:
/// numbers of languages, words that texts are cut into, and flags of texts are such meanings.
pub(crate) const STATE_VERSION: u32 = 2;

/// What other parts of a [`MemoryState`] follow from.
#[derive(Serialize, Deserialize)]
struct StoredState {
    columns: StoredColumns,
    lexical: StoredLexical,
    speakers: StoredSpeakers,
    uncovered: BlockVec<u8>,
    graph: Graph,
    chunks: u32,
    #[serde(with = "plain")]
    unembedded: Vec<i64>,
}

impl MemoryState {
    /// The bytes of a state that no memory was removed from, as a compacted one is; others cannot be
    /// read again.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let stored = StoredState {
            columns: self.columns.stored(),
            lexical: self.lexical.stored(),
            speakers: self.speakers.stored(),
            uncovered: self.uncovered.percents.clone(),
            graph: self.graph.clone(),
            chunks: self.chunks,
            unembedded: self.unembedded.ids().collect(),
        };
        let unwritable = |_| Error::SnapshotInvalid("it cannot be written");
        postcard::to_allocvec(&(STATE_VERSION, stored)).map_err(unwritable)
    }

    /// The state of these bytes. Analyser and coverage are those of the index it was written from.
    ///
    /// # Errors
    ///
    /// Another version, and bytes that do not fit together. They have to be those that were written:
    /// not every other one is found.
    pub(crate) fn from_bytes(
        bytes: &[u8],
        analyser: Analyser,
        coverage: Option<Coverage>,
        has_vectors: bool,
    ) -> Result<Self, Error> {
        let unreadable = |_| Error::SnapshotInvalid("it cannot be read");
        let (version, rest) = postcard::take_from_bytes::<u32>(bytes).map_err(unreadable)?;
        Error::unless(version == STATE_VERSION, "it is of another version")?;
        let stored: StoredState = postcard::from_bytes(rest).map_err(unreadable)?;
        let columns = Columns::restored(stored.columns)?;
        let users = columns.users();
        let lexical = Lexical::restored(stored.lexical, analyser, &users)?;
        let speakers = Speakers::restored(stored.speakers, users.len())?;
        let uncovered = Uncovered::restored(coverage, stored.uncovered, users.len())?;
        let (graph, chunks) = (stored.graph, stored.chunks);
        Error::unless(chunks > 0, "memories without a chunk")?;
        let unembedded = lacking(&stored.unembedded, has_vectors)?;
        Ok(Self { columns, lexical, speakers, uncovered, graph, chunks, unembedded, has_vectors })
    }
}

fn lacking(rows: &[i64], has_vectors: bool) -> Result<IdMap<()>, Error> {
    let rows: Vec<(i64, ())> = rows.iter().map(|row| (*row, ())).collect();
    let rows = IdMap::of_ascending(&rows).filter(|rows| has_vectors || rows.len() == 0);
    rows.ok_or(Error::SnapshotInvalid("rows without a vector that do not fit"))
}
