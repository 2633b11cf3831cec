//! The candidates of one query, with their attributes, read on demand.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::Error;
use crate::columns::{BlockAttributes, Columns, flags};
use crate::deadline::Deadline;
use crate::ids::by_block;
use crate::lexical::Lexical;
use crate::memory::naming::NamedSpeakers;
use crate::memory::speakers::Speakers;
use crate::memory::state::MemoryState;
use crate::rank::scoring_config::Session;
use crate::search::docid_set::DocidSet;
use crate::text::{DateRange, Role};

/// Candidates that are looked at together, before it is decided whether to look on.
const CHUNK: usize = 256;

/// No neighbour.
pub(crate) const NONE: u32 = u32::MAX;

/// Memories in ascending order of docids; the position of one is its ordinal.
pub(crate) struct CandidateSet<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) speakers: &'a Speakers,
    pub(super) lexical: &'a Lexical,
    pub(crate) docids: Vec<u32>,
    pub(crate) set: DocidSet,
    pub(crate) deadline: &'a Deadline,
    turns: OnceCell<Turns>,
}

/// Neighbours and flags of each memory as a turn of its session, by ordinal: reading all at once
/// takes an eighth of the time of reading each.
struct Turns {
    previous: Vec<u32>,
    next: Vec<u32>,
    /// Without the flag of a question if there is no session.
    flags: Vec<u8>,
}

/// Features of a query beside words and vectors.
#[derive(Default)]
pub(crate) struct QueryFeatures {
    /// Nearness of each memory's time to the time that the query names; empty if it names none.
    pub(crate) dates: Vec<f32>,
    /// The times that it names.
    pub(crate) date_ranges: Vec<DateRange>,
    /// How new each memory is, 1 for the newest, if it asks for what holds at present; else empty.
    pub(crate) newness: Vec<f64>,
    /// The term of the speakers that it names.
    pub(crate) speaker: Option<SpeakerTerm>,
    /// The bit of its answer type.
    pub(crate) answer_type: Option<u8>,
    /// The side of a chat with an assistant that it is about, if roles count.
    pub(crate) role: Option<Role>,
    /// Whether there is a query text, which a question cannot answer.
    pub(crate) has_text: bool,
}

/// The term of turns by the speakers that a query names.
pub(crate) struct SpeakerTerm {
    /// In ascending order.
    pub(super) codes: Vec<u32>,
    /// The weight of a speaker times the share of turns by others: naming somebody whose turns are
    /// all there are rules nothing out.
    pub(crate) size: f64,
    /// The ordinals of their turns, if these are few: looking at each is then faster than a bound of
    /// all matches that allows for the term.
    pub(crate) few: Option<Vec<u32>>,
}

/// What the newest memory gains by a match of 1 where a query asks for what holds at present: enough
/// to decide between two like statements.
pub(crate) const PRESENT: f64 = 0.3;

/// Turns of the named are few up to this share.
const FEW_TURNS: f64 = 0.125;

impl SpeakerTerm {
    /// The term, if speakers count and some are named.
    pub(crate) fn new(
        session: &Session,
        named: NamedSpeakers,
        candidates: &CandidateSet<'_>,
    ) -> Option<Self> {
        if session.speaker == 0.0 || named.codes.is_empty() {
            return None;
        }
        let (codes, size) = (named.codes, session.speaker * (1.0 - named.share));
        let few = (named.share <= FEW_TURNS).then(|| {
            let ordinals = 0..candidates.docids.len() as u32;
            ordinals.filter(|at| codes.contains(&candidates.speaker(*at))).collect()
        });
        Some(Self { codes, size, few })
    }
}

impl QueryFeatures {
    /// Whether times of memories change scores.
    pub(crate) fn has_time(&self) -> bool {
        !(self.dates.is_empty() && self.newness.is_empty())
    }

    /// The most that newness adds to a match of 1.
    pub(crate) fn max_of_newness(&self) -> f64 {
        if self.newness.is_empty() { 0.0 } else { PRESENT }
    }

    /// What newness adds to a match.
    pub(crate) fn of_newness(&self, at: u32, matched: f64) -> f64 {
        self.newness.get(at as usize).map_or(0.0, |newness| PRESENT * newness * matched.max(0.0))
    }

    /// Whether it asks for memories by their time, their speaker or their role.
    pub(crate) fn may_ask_for(&self) -> bool {
        !self.dates.is_empty() || self.speaker.is_some() || self.asks_for_answers()
    }

    /// Whether it is about earlier answers of an assistant.
    pub(super) fn asks_for_answers(&self) -> bool {
        self.role == Some(Role::Assistant)
    }

    /// Whether a memory's time is inside one that the query names.
    pub(super) fn is_inside(&self, at: u32) -> bool {
        self.dates.get(at as usize).is_some_and(|near| *near >= 1.0)
    }
}

impl<'a> CandidateSet<'a> {
    pub(crate) fn new(memories: &'a MemoryState, set: DocidSet, deadline: &'a Deadline) -> Self {
        let MemoryState { columns, speakers, lexical, .. } = memories;
        let docids = set.iter().collect();
        Self { columns, speakers, lexical, docids, set, deadline, turns: OnceCell::new() }
    }

    /// Read all turns at once, because each will be needed; none if the deadline passes.
    pub(crate) fn look_up_turns(&self) -> Result<(), Error> {
        if self.turns.get().is_none() {
            let turns = Turns {
                previous: self.all_neighbours(|block| block.previous)?,
                next: self.all_neighbours(|block| block.next)?,
                flags: self.of_each(|block, at| {
                    turn_flags(block.attributes.session[at], block.attributes.flags[at])
                })?,
            };
            self.turns.get_or_init(|| turns);
        }
        Ok(())
    }

    /// The previous turn of the session, if it is a candidate.
    pub(crate) fn previous(&self, at: u32) -> u32 {
        match self.turns.get() {
            Some(turns) => turns.previous.get(at as usize).copied().unwrap_or(NONE),
            None => self.neighbour(at, Columns::previous),
        }
    }

    /// The next turn of the session, if it is a candidate.
    pub(crate) fn next(&self, at: u32) -> u32 {
        match self.turns.get() {
            Some(turns) => turns.next.get(at as usize).copied().unwrap_or(NONE),
            None => self.neighbour(at, Columns::next),
        }
    }

    /// The two turns before and the two after; `NONE` where there is none.
    pub(crate) fn around(&self, at: u32) -> [u32; 4] {
        let (previous, next) = (self.previous(at), self.next(at));
        [previous, self.previous(previous), next, self.next(next)]
    }

    fn neighbour(&self, at: u32, of: impl Fn(&Columns, u32) -> u32) -> u32 {
        let docid = self.docids.get(at as usize).map(|docid| of(self.columns, *docid));
        docid.and_then(|docid| self.set.find(docid)).unwrap_or(NONE)
    }

    pub(crate) fn attribute<T>(
        &self,
        docid: u32,
        of: impl Fn(&BlockAttributes<'_>, usize) -> T,
    ) -> Option<T> {
        let block = self.columns.block(block_of(docid))?;
        Some(of(&block, docid as usize % Columns::BLOCK))
    }

    pub(super) fn has_flag(&self, at: u32, bit: u8) -> bool {
        if let Some(turns) = self.turns.get() {
            return turns.flags.get(at as usize).is_some_and(|flags| flags & bit != 0);
        }
        let docid = self.docids.get(at as usize);
        let turn = docid.and_then(|docid| self.columns.turn_of(*docid));
        turn.is_some_and(|(session, flags)| turn_flags(session, flags) & bit != 0)
    }

    /// Whether a turn has a question mark.
    pub(crate) fn asks(&self, at: u32) -> bool {
        self.has_flag(at, flags::HAS_QUESTION_MARK)
    }

    /// Whether a turn ends in a question; outside a session questions do not count.
    pub(crate) fn is_question(&self, at: u32) -> bool {
        self.has_flag(at, flags::ENDS_AS_QUESTION)
    }

    /// Whether a memory could hold the answer type with this bit.
    pub(crate) fn holds(&self, at: u32, answer_type: u8) -> bool {
        self.has_flag(at, answer_type << flags::ANSWER_TYPES_SHIFT)
    }

    pub(crate) fn speaker(&self, at: u32) -> u32 {
        self.speakers.of(self.docids[at as usize])
    }

    /// The name of a memory's speaker.
    pub(crate) fn speaker_name(&self, at: u32) -> Option<Arc<str>> {
        self.speakers.name_of(self.docids[at as usize])
    }

    /// Whether any candidate has a candidate as neighbour.
    pub(crate) fn has_neighbours(&self) -> Result<bool, Error> {
        self.any(|block| block.next, |next| self.set.contains(next))
    }

    /// Whether any candidate is of a session.
    pub(crate) fn has_sessions(&self) -> Result<bool, Error> {
        self.any(|block| &block.attributes.session, |session| session != 0)
    }

    /// Whether any candidate is a turn of an assistant.
    pub(crate) fn has_assistant(&self) -> Result<bool, Error> {
        self.any(|block| &block.attributes.flags, |flags| flags & flags::BY_ASSISTANT != 0)
    }

    /// Whether an attribute of any candidate is so. Where candidates follow each other, a chunk is
    /// looked at without branches, which the compiler turns into vector instructions.
    fn any<T: Copy>(
        &self,
        attribute: impl for<'c> Fn(&BlockAttributes<'c>) -> &'c [T],
        is_so: impl Fn(T) -> bool,
    ) -> Result<bool, Error> {
        for of_block in by_block(&self.docids, Columns::BLOCK) {
            self.deadline.check()?;
            let block = self.columns.block(block_of(of_block[0]));
            let values = block.as_ref().map_or(&[][..], &attribute);
            let first = of_block[0] as usize % Columns::BLOCK;
            let found = match values.get(first..first + of_block.len()) {
                Some(values) if is_run(of_block) => values
                    .chunks(CHUNK)
                    .any(|chunk| chunk.iter().fold(false, |found, value| found | is_so(*value))),
                _ => of_block
                    .iter()
                    .filter_map(|docid| values.get(*docid as usize % Columns::BLOCK))
                    .any(|value| is_so(*value)),
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The previous or the next turns of all candidates.
    pub(crate) fn all_neighbours(
        &self,
        of: impl for<'c> Fn(&BlockAttributes<'c>) -> &'c [u32],
    ) -> Result<Vec<u32>, Error> {
        let mut found = Vec::with_capacity(self.docids.len());
        for of_block in by_block(&self.docids, Columns::BLOCK) {
            self.deadline.check()?;
            let block = self.columns.block(block_of(of_block[0]));
            let neighbours = block.as_ref().map_or(&[][..], &of);
            if self.set.is_dense && neighbours.len() >= of_block.len() {
                found.extend_from_slice(&neighbours[..of_block.len()]);
                continue;
            }
            for docid in of_block {
                let neighbour = neighbours.get(*docid as usize % Columns::BLOCK).copied();
                found.push(neighbour.and_then(|docid| self.set.find(docid)).unwrap_or(NONE));
            }
        }
        Ok(found)
    }

    /// An attribute of each candidate.
    pub(crate) fn of_each<T>(
        &self,
        attribute: impl Fn(&BlockAttributes<'_>, usize) -> T,
    ) -> Result<Vec<T>, Error> {
        let mut attributes = Vec::with_capacity(self.docids.len());
        for of_block in by_block(&self.docids, Columns::BLOCK) {
            self.deadline.check()?;
            if let Some(block) = self.columns.block(block_of(of_block[0])) {
                let at = |docid: &u32| *docid as usize % Columns::BLOCK;
                attributes.extend(of_block.iter().map(|docid| attribute(&block, at(docid))));
            }
        }
        Ok(attributes)
    }
}

/// The flags of a turn; outside a session questions do not count.
fn turn_flags(session: u32, flags: u8) -> u8 {
    let outside = if session == 0 { flags::ENDS_AS_QUESTION } else { 0 };
    flags & !outside
}

fn block_of(docid: u32) -> usize {
    docid as usize / Columns::BLOCK
}

/// Whether sorted numbers follow each other without a gap.
fn is_run(docids: &[u32]) -> bool {
    docids.last().is_some_and(|last| (last - docids[0]) as usize + 1 == docids.len())
}
