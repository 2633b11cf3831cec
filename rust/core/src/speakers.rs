//! Who speaks: the speaker of each memory, and which of them a query names.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::chunks::Chunks;
use crate::columns::Record;
use crate::text::{self, names};

/// Nobody.
const NOBODY: u32 = 0;

/// From so many memories in play on, a name is taken for a speaker's.
const LEAST_TURNS: usize = 2;

/// Speakers by slot. Copies are cheap; the names are shared by all of them.
#[derive(Clone, Default)]
pub(crate) struct Speakers {
    of_slot: Chunks<u32>,
    known: Arc<RwLock<Known>>,
}

#[derive(Default)]
struct Known {
    codes: HashMap<Box<str>, u32>,
    /// By code, from 1 on.
    names: Vec<Arc<str>>,
    /// Codes by the first word of the name, in lower case.
    by_first_word: HashMap<Box<str>, Vec<u32>>,
}

/// A speaker that a query names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) code: u32,
    pub(crate) name: Arc<str>,
}

impl Known {
    fn code(&mut self, name: &str) -> u32 {
        if let Some(code) = self.codes.get(name) {
            return *code;
        }
        self.names.push(name.into());
        let code = self.names.len() as u32;
        self.codes.insert(name.into(), code);
        if let Some((_, word)) = names::words(name).first() {
            self.by_first_word.entry(word.to_lowercase().into()).or_default().push(code);
        }
        code
    }
}

impl Speakers {
    /// Give the next slot its speaker.
    pub(crate) fn push(&mut self, record: &Record) {
        let code = self.code_of(record);
        self.of_slot.push(code);
    }

    /// Give a slot another speaker.
    pub(crate) fn replace(&mut self, slot: u32, record: &Record) {
        let code = self.code_of(record);
        if let Some(known) = self.of_slot.get_mut(slot as usize) {
            *known = code;
        }
    }

    /// The speaker that is given, or else, in a session, the label that the text begins with.
    fn code_of(&self, record: &Record) -> u32 {
        let label = || {
            let label = record.session.as_ref().and_then(|_| text::turn(&record.content).label);
            label.map(str::to_owned)
        };
        let Some(name) = record.speaker.clone().or_else(label) else { return NOBODY };
        if let Some(code) = self.known.read().codes.get(name.as_str()) {
            return *code;
        }
        self.known.write().code(&name)
    }

    /// The speaker of a slot.
    pub(crate) fn of(&self, slot: u32) -> u32 {
        self.of_slot.get(slot as usize).copied().unwrap_or(NOBODY)
    }

    /// Whether a text names a speaker of any memory.
    pub(crate) fn may_name(&self, text: &str) -> bool {
        !self.candidates(text).is_empty()
    }

    /// The speakers of the memories in play that a text names.
    pub(crate) fn named(&self, text: &str, slots: &[u32]) -> Vec<Named> {
        let mut named = self.candidates(text);
        if named.is_empty() {
            return named;
        }
        let mut turns = vec![0; named.len()];
        for slot in slots {
            let code = self.of(*slot);
            if let Some(at) = named.iter().position(|named| named.code == code) {
                turns[at] += 1;
            }
        }
        let mut turns = turns.into_iter();
        named.retain(|_| turns.next().is_some_and(|turns| turns >= LEAST_TURNS));
        named
    }

    fn candidates(&self, text: &str) -> Vec<Named> {
        let known = self.known.read();
        if known.names.is_empty() {
            return Vec::new();
        }
        let mut codes: Vec<u32> = names::words(text)
            .iter()
            .filter_map(|(_, word)| known.by_first_word.get(word.to_lowercase().as_str()))
            .flatten()
            .copied()
            .collect();
        codes.sort_unstable();
        codes.dedup();
        let named = |code: u32| Named { code, name: Arc::clone(&known.names[code as usize - 1]) };
        let candidates = codes.into_iter().map(named);
        candidates.filter(|named| names::is_named(text, &named.name)).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.of_slot.bytes()
    }
}
