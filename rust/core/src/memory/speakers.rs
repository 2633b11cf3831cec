//! The speaker of each memory, and the names of speakers.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::collections::cow_vec::BlockVec;
use crate::columns::Record;
use crate::deadline::{Deadline, MANY_ROWS};
use crate::text::address::addressed;
use crate::text::roles::is_role;
use crate::text::spelling::Spelling;
use crate::text::{self, names};

/// Nobody, and no session.
pub(super) const NOBODY: u32 = 0;

/// Flag of a session's turn without a given speaker, combined with the code of its label, if any.
const LABELLED: u32 = 1 << 31;

/// A label names a speaker if at least one turn in so many has it; "Note: …" is rarer.
const MIN_SHARE: usize = 20;

/// From this many candidates on, a name counts as a speaker's.
const MIN_TURNS: usize = 2;

/// Speakers by docid. Copies are cheap; the names are shared by all of them.
#[derive(Clone, Default)]
pub(crate) struct Speakers {
    of_docid: BlockVec<u32>,
    /// The codes of names by which turns address somebody; 0 is none.
    addressed: BlockVec<u32>,
    pub(super) known: Arc<RwLock<Known>>,
}

/// The first word of a name with its spelling.
type FirstWord = (Spelling, Arc<str>);

/// All names ever seen. It only grows, and has no influence by itself: the candidates of a call
/// decide.
#[derive(Default)]
pub(super) struct Known {
    codes: HashMap<Box<str>, u32>,
    /// By code, from 1 on.
    names: Vec<Arc<str>>,
    /// Codes by the first word of the name, in lower case.
    by_first_word: HashMap<Box<str>, Vec<u32>>,
    /// First words by their shape.
    by_shape: HashMap<(char, usize), Vec<FirstWord>>,
    /// Codes of the names in addresses, in lower case.
    addressed: HashMap<Box<str>, u32>,
}

impl Known {
    fn code(&mut self, name: &str) -> u32 {
        if let Some(code) = self.codes.get(name) {
            return *code;
        }
        self.names.push(name.into());
        let code = self.names.len() as u32;
        self.codes.insert(name.into(), code);
        if let Some(word) = names::keys(name).into_iter().next() {
            self.first_word(&word).push(code);
        }
        code
    }

    /// The codes of a first word in lower case, which may be a new one.
    fn first_word(&mut self, word: &str) -> &mut Vec<u32> {
        if !self.by_first_word.contains_key(word)
            && let Some(spelling) = Spelling::new(word)
        {
            self.by_shape.entry(spelling.shape()).or_default().push((spelling, word.into()));
        }
        self.by_first_word.entry(word.into()).or_default()
    }

    /// The name of a code.
    pub(super) fn name(&self, code: u32) -> Arc<str> {
        Arc::clone(&self.names[code as usize - 1])
    }

    /// The codes of names that begin with a word in lower case.
    pub(super) fn beginning_with(&self, word: &str) -> &[u32] {
        self.by_first_word.get(word).map_or(&[], Vec::as_slice)
    }

    /// The codes of names whose first word has a near spelling.
    pub(super) fn near(&self, spelling: &Spelling) -> Vec<u32> {
        let shapes = spelling.near_shapes();
        let alike = shapes.iter().filter_map(|shape| self.by_shape.get(shape)).flatten();
        let near = alike.filter(|(other, _)| spelling.is_near(other));
        near.flat_map(|(_, word)| self.beginning_with(word)).copied().collect()
    }

    /// The code of a name in addresses, which has one from now on.
    fn address_code(&mut self, word: &str) -> u32 {
        let code = self.addressed.len() as u32 + 1;
        *self.addressed.entry(word.into()).or_insert(code)
    }

    /// The names in addresses, by code from 1 on.
    fn addresses(&self) -> Vec<&str> {
        let mut words = vec![""; self.addressed.len()];
        for (word, code) in &self.addressed {
            words[*code as usize - 1] = word;
        }
        words
    }

    /// The code of a name in addresses; 0 if no turn ever had it.
    pub(super) fn address(&self, word: &str) -> u32 {
        self.addressed.get(word).copied().unwrap_or(NOBODY)
    }
}

/// Numbers of turns among candidates.
pub(super) struct Turns {
    /// Of each speaker, who has at least [`MIN_TURNS`], by code.
    pub(super) of_speaker: HashMap<u32, usize>,
    /// Of all, where a speaker is given or there is a session.
    pub(super) all: usize,
}

/// Speakers by docid, and the names by code.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredSpeakers {
    of_docid: BlockVec<u32>,
    addressed: BlockVec<u32>,
    names: Vec<Arc<str>>,
    addresses: Vec<Box<str>>,
}

impl Speakers {
    pub(super) fn stored(&self) -> StoredSpeakers {
        let known = self.known.read();
        StoredSpeakers {
            of_docid: self.of_docid.clone(),
            addressed: self.addressed.clone(),
            names: known.names.clone(),
            addresses: known.addresses().into_iter().map(Into::into).collect(),
        }
    }

    /// The speakers of so many docids.
    pub(super) fn restored(stored: StoredSpeakers, docids: usize) -> Result<Self, Error> {
        let StoredSpeakers { of_docid, addressed, names, addresses } = stored;
        let mut known = Known::default();
        let named = names.iter().map(|name| known.code(name)).last().unwrap_or(NOBODY);
        let words = addresses.iter().map(|word| known.address_code(word)).last().unwrap_or(NOBODY);
        let are_known = [named as usize, words as usize] == [names.len(), addresses.len()];
        Error::unless(are_known, "a name with two codes")?;
        let speakers = Self { of_docid, addressed, known: Arc::new(RwLock::new(known)) };
        let has_names = |docid| speakers.of(docid) <= named && speakers.address(docid) <= words;
        let are_of = [speakers.of_docid.len(), speakers.addressed.len()] == [docids; 2];
        let are_sound = are_of && (0..docids as u32).all(has_names);
        Error::unless(are_sound, "speakers that do not fit the memories")?;
        Ok(speakers)
    }

    /// The speakers of some docids, numbered again, with their names alone.
    pub(crate) fn compacted(&self, docids: &[u32]) -> Self {
        let old = self.known.read();
        let addresses = old.addresses();
        let mut new = Known::default();
        let (mut of_docid, mut addressed) = (Vec::new(), Vec::new());
        for docid in docids {
            let marked = self.marked(*docid);
            let name = (marked & !LABELLED).checked_sub(1).map(|at| &old.names[at as usize]);
            let code = name.map_or(NOBODY, |name| new.code(name));
            of_docid.push(marked & LABELLED | code);
            let word = self.address(*docid).checked_sub(1).map(|at| addresses[at as usize]);
            addressed.push(word.map_or(NOBODY, |word| new.address_code(word)));
        }
        let (of_docid, addressed) = (BlockVec::of(&of_docid), BlockVec::of(&addressed));
        Self { of_docid, addressed, known: Arc::new(RwLock::new(new)) }
    }

    /// Append the next docid's speaker.
    pub(crate) fn push(&mut self, record: &Record) {
        let (code, addressed) = (self.code_of(record), self.address_of(record));
        self.of_docid.push(code);
        self.addressed.push(addressed);
    }

    /// Replace a docid's speaker.
    pub(crate) fn replace(&mut self, docid: u32, record: &Record) {
        let (code, address) = (self.code_of(record), self.address_of(record));
        let at = docid as usize;
        let known = (self.of_docid.get_mut(at), self.addressed.get_mut(at));
        if let (Some(speaker), Some(addressed)) = known {
            (*speaker, *addressed) = (code, address);
        }
    }

    /// The code of the name that a turn addresses somebody by; 0 if there is none, or no session.
    fn address_of(&self, record: &Record) -> u32 {
        if record.session.is_none() {
            return NOBODY;
        }
        let Some(name) = addressed(text::turn(&record.content).body) else { return NOBODY };
        let Some(word) = names::keys(name).into_iter().next() else { return NOBODY };
        if let Some(code) = self.known.read().addressed.get(word.as_str()) {
            return *code;
        }
        self.known.write().address_code(&word)
    }

    /// The speaker that is given, or else, in a session, the label that the text begins with; roles
    /// are no speakers.
    fn code_of(&self, record: &Record) -> u32 {
        let is_name = |name: &&str| !(name.trim().is_empty() || is_role(name));
        if let Some(name) = record.speaker.as_deref().filter(is_name) {
            return self.code(name);
        }
        if record.session.is_none() {
            return NOBODY;
        }
        let label = text::turn(&record.content).label.filter(is_name);
        LABELLED | label.map_or(NOBODY, |label| self.code(label))
    }

    fn code(&self, name: &str) -> u32 {
        if let Some(code) = self.known.read().codes.get(name) {
            return *code;
        }
        self.known.write().code(name)
    }

    /// The speaker of a docid.
    pub(crate) fn of(&self, docid: u32) -> u32 {
        self.marked(docid) & !LABELLED
    }

    fn marked(&self, docid: u32) -> u32 {
        self.of_docid.get(docid as usize).copied().unwrap_or(NOBODY)
    }

    /// The code of the name that a docid's turn addresses somebody by; 0 is none.
    pub(super) fn address(&self, docid: u32) -> u32 {
        self.addressed.get(docid as usize).copied().unwrap_or(NOBODY)
    }

    /// The name of a docid's speaker.
    pub(crate) fn name_of(&self, docid: u32) -> Option<Arc<str>> {
        let code = self.of(docid);
        (code != NOBODY).then(|| self.known.read().name(code))
    }

    /// Whether any memory ever had a speaker.
    pub(crate) fn any(&self) -> bool {
        !self.known.read().names.is_empty()
    }

    /// The turns of the candidates by some speakers, whose codes are in ascending order. A label
    /// that too few candidates have is no speaker.
    pub(super) fn turns(
        &self,
        codes: &[u32],
        docids: &[u32],
        deadline: &Deadline,
    ) -> Result<Turns, Error> {
        let mut turns = vec![[0; 2]; codes.len()];
        let mut all = 0;
        for docids in docids.chunks(MANY_ROWS) {
            deadline.check()?;
            for docid in docids {
                let marked = self.marked(*docid);
                all += usize::from(marked != NOBODY);
                if let Ok(at) = codes.binary_search(&(marked & !LABELLED)) {
                    turns[at][usize::from(marked & LABELLED != 0)] += 1;
                }
            }
        }
        let counted = |[given, labelled]: [usize; 2]| {
            given + if labelled * MIN_SHARE >= all { labelled } else { 0 }
        };
        let of_speaker = codes.iter().copied().zip(turns.into_iter().map(counted));
        Ok(Turns { of_speaker: of_speaker.filter(|(_, turns)| *turns >= MIN_TURNS).collect(), all })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.of_docid.bytes() + self.addressed.bytes()
    }
}
