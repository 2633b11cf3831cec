//! The memories in play for one query, and what is known of each, looked up when it is asked for.

use std::cell::OnceCell;

use crate::columns::{ChunkFacts, Columns, flags};
use crate::memory::speakers::Speakers;
use crate::rank::scoring_config::Session;
use crate::search::docid_set::SlotSet;

/// No neighbour.
pub(crate) const NONE: u32 = u32::MAX;

/// Memories in ascending order of their slots; the place of one is its ordinal.
pub(crate) struct Play<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) speakers: &'a Speakers,
    pub(crate) slots: Vec<u32>,
    pub(crate) set: SlotSet,
    turns: OnceCell<Turns>,
}

/// What is known of each memory as a turn of its session, by ordinal: looked up at once in an
/// eighth of the time that looking up each takes.
struct Turns {
    previous: Vec<u32>,
    next: Vec<u32>,
    /// Without that of a question where there is no session.
    flags: Vec<u8>,
}

/// What a query asks beside words and meaning.
#[derive(Default)]
pub(crate) struct Asked {
    /// How near each memory's time is to the one that the query names; empty where it names none.
    pub(crate) dates: Vec<f32>,
    /// The one speaker that it names.
    pub(crate) speaker: Option<u32>,
    /// The bit of the kind of answer that it asks for.
    pub(crate) kind: Option<u8>,
    /// Whether there is a text at all, which a question cannot answer.
    pub(crate) has_text: bool,
}

impl Asked {
    pub(crate) fn of_date(&self, session: &Session, at: u32) -> f64 {
        self.dates.get(at as usize).map_or(0.0, |near| session.date * f64::from(*near))
    }
}

impl<'a> Play<'a> {
    pub(crate) fn new(columns: &'a Columns, speakers: &'a Speakers, set: SlotSet) -> Self {
        let slots = set.iter().collect();
        Self { columns, speakers, slots, set, turns: OnceCell::new() }
    }

    /// Look up all turns at once, because each of them will be asked for.
    pub(crate) fn look_up_turns(&self) {
        self.turns.get_or_init(|| Turns {
            previous: self.all_neighbours(|chunk| chunk.previous),
            next: self.all_neighbours(|chunk| chunk.next),
            flags: self.of_each(turn_flags),
        });
    }

    /// The turn before in the session, where it is in play.
    pub(crate) fn previous(&self, at: u32) -> u32 {
        match self.turns.get() {
            Some(turns) => turns.previous.get(at as usize).copied().unwrap_or(NONE),
            None => self.neighbour(at, |chunk| chunk.previous),
        }
    }

    /// The turn after in the session, where it is in play.
    pub(crate) fn next(&self, at: u32) -> u32 {
        match self.turns.get() {
            Some(turns) => turns.next.get(at as usize).copied().unwrap_or(NONE),
            None => self.neighbour(at, |chunk| chunk.next),
        }
    }

    fn neighbour(&self, at: u32, of: impl for<'c> Fn(&ChunkFacts<'c>) -> &'c [u32]) -> u32 {
        let Some(slot) = self.slots.get(at as usize) else { return NONE };
        let neighbour = self.fact(*slot, |chunk, at| of(chunk).get(at).copied());
        neighbour.flatten().and_then(|slot| self.set.find(slot)).unwrap_or(NONE)
    }

    pub(crate) fn fact<T>(&self, slot: u32, of: impl Fn(&ChunkFacts<'_>, usize) -> T) -> Option<T> {
        let chunk = self.columns.chunk(chunk_of(slot))?;
        Some(of(&chunk, slot as usize % Columns::CHUNK))
    }

    fn has_flag(&self, at: u32, bit: u8) -> bool {
        if let Some(turns) = self.turns.get() {
            return turns.flags.get(at as usize).is_some_and(|flags| flags & bit != 0);
        }
        let slot = self.slots.get(at as usize);
        slot.and_then(|slot| self.fact(*slot, turn_flags)).is_some_and(|flags| flags & bit != 0)
    }

    /// Whether a turn asks something.
    pub(crate) fn asks(&self, at: u32) -> bool {
        self.has_flag(at, flags::HAS_QUESTION_MARK)
    }

    /// Whether a turn of a session ends in a question; outside a session nobody answers.
    pub(crate) fn is_question(&self, at: u32) -> bool {
        self.has_flag(at, flags::ENDS_AS_QUESTION)
    }

    /// Whether a memory could hold the kind of answer with this bit.
    pub(crate) fn holds(&self, at: u32, kind: u8) -> bool {
        self.has_flag(at, kind << flags::KINDS_SHIFT)
    }

    pub(crate) fn speaker(&self, at: u32) -> u32 {
        self.speakers.of(self.slots[at as usize])
    }

    /// Whether any memory in play has a neighbour in play.
    pub(crate) fn has_neighbours(&self) -> bool {
        let has_next = |of_chunk: &[u32]| {
            let chunk = self.columns.chunk(chunk_of(of_chunk[0]));
            chunk.is_some_and(|chunk| {
                let next = |slot: &u32| chunk.next.get(*slot as usize % Columns::CHUNK).copied();
                of_chunk.iter().filter_map(next).any(|slot| self.set.contains(slot))
            })
        };
        by_chunk(&self.slots).any(has_next)
    }

    /// The next turns of all memories in play.
    pub(crate) fn all_next(&self) -> Vec<u32> {
        self.all_neighbours(|chunk| chunk.next)
    }

    fn all_neighbours(&self, of: impl for<'c> Fn(&ChunkFacts<'c>) -> &'c [u32]) -> Vec<u32> {
        let mut found = Vec::with_capacity(self.slots.len());
        for of_chunk in by_chunk(&self.slots) {
            let chunk = self.columns.chunk(chunk_of(of_chunk[0]));
            let neighbours = chunk.as_ref().map_or(&[][..], &of);
            if self.set.is_everything() && neighbours.len() >= of_chunk.len() {
                found.extend_from_slice(&neighbours[..of_chunk.len()]);
                continue;
            }
            for slot in of_chunk {
                let neighbour = neighbours.get(*slot as usize % Columns::CHUNK).copied();
                found.push(neighbour.and_then(|slot| self.set.find(slot)).unwrap_or(NONE));
            }
        }
        found
    }

    /// A fact of each memory in play.
    pub(crate) fn of_each<T>(&self, fact: impl Fn(&ChunkFacts<'_>, usize) -> T) -> Vec<T> {
        let mut facts = Vec::with_capacity(self.slots.len());
        for of_chunk in by_chunk(&self.slots) {
            if let Some(chunk) = self.columns.chunk(chunk_of(of_chunk[0])) {
                let at = |slot: &u32| *slot as usize % Columns::CHUNK;
                facts.extend(of_chunk.iter().map(|slot| fact(&chunk, at(slot))));
            }
        }
        facts
    }

    /// What neighbours add to a match; `positive` gives that of an ordinal, at least 0.
    pub(crate) fn lift(&self, session: &Session, at: u32, positive: impl Fn(u32) -> f64) -> f64 {
        let (previous, next) = (self.previous(at), self.next(at));
        if previous == NONE && next == NONE {
            return if session.alone > 0.0 { session.alone * positive(at) } else { 0.0 };
        }
        let positive = |at: u32| if at == NONE { 0.0 } else { positive(at) };
        let before = positive(previous);
        let answered =
            if before > 0.0 && self.asks(previous) { session.answer * before } else { 0.0 };
        let first = (session.previous * before).max(session.next * positive(next)).max(answered);
        if session.second == 0.0 {
            return first;
        }
        let second = positive(self.previous(previous)).max(positive(self.next(next)));
        first + session.second * second
    }

    /// What date, speaker and kind add, and what being a question takes.
    pub(crate) fn extra(&self, session: &Session, asked: &Asked, at: u32) -> f64 {
        let parts = [
            asked.of_date(session, at),
            self.of_speaker(session, asked, at),
            self.of_kind(session, asked, at),
            -self.of_question(session, asked, at),
        ];
        parts.iter().sum()
    }

    pub(crate) fn of_speaker(&self, session: &Session, asked: &Asked, at: u32) -> f64 {
        let is_named = asked.speaker.is_some_and(|speaker| self.speaker(at) == speaker);
        if is_named { session.speaker } else { 0.0 }
    }

    pub(crate) fn of_kind(&self, session: &Session, asked: &Asked, at: u32) -> f64 {
        let holds = asked.kind.is_some_and(|kind| self.holds(at, kind));
        if holds { session.kind } else { 0.0 }
    }

    pub(crate) fn of_question(&self, session: &Session, asked: &Asked, at: u32) -> f64 {
        let counts = asked.has_text && session.question > 0.0;
        if counts && self.is_question(at) { session.question } else { 0.0 }
    }
}

/// The flags of a turn; outside a session nobody answers a question.
fn turn_flags(chunk: &ChunkFacts<'_>, at: usize) -> u8 {
    let outside = if chunk.session[at] == 0 { flags::ENDS_AS_QUESTION } else { 0 };
    chunk.flags[at] & !outside
}

fn chunk_of(slot: u32) -> usize {
    slot as usize / Columns::CHUNK
}

/// Ascending slots, chunk by chunk.
fn by_chunk(slots: &[u32]) -> impl Iterator<Item = &[u32]> {
    let mut rest = slots;
    std::iter::from_fn(move || {
        let chunk = chunk_of(*rest.first()?);
        let end = rest.partition_point(|slot| chunk_of(*slot) == chunk);
        let (of_chunk, others) = rest.split_at(end);
        rest = others;
        Some(of_chunk)
    })
}
