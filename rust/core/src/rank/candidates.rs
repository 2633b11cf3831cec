//! The candidates of one query, with their attributes, read on demand.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::Error;
use crate::columns::{BlockAttributes, Columns, flags};
use crate::deadline::Deadline;
use crate::lexical::Lexical;
use crate::memory::naming::NamedSpeakers;
use crate::memory::speakers::Speakers;
use crate::rank::scoring_config::Session;
use crate::search::docid_set::DocidSet;
use crate::text::{DateRange, Role};

/// The part of the term of roles that a turn of an assistant loses without a word, and the words from
/// which on it loses all: a short one holds a command, a setting or a fix, a long one advice.
const SHORT_ANSWER: f64 = 0.5;
const LONG_ANSWER: f64 = 200.0;

/// Candidates that are looked at together, before it is decided whether to look on.
const CHUNK: usize = 256;

/// No neighbour.
pub(crate) const NONE: u32 = u32::MAX;

/// Memories in ascending order of docids; the position of one is its ordinal.
pub(crate) struct CandidateSet<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) speakers: &'a Speakers,
    lexical: &'a Lexical,
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
    codes: Vec<u32>,
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

    pub(crate) fn of_date(&self, session: &Session, at: u32) -> f64 {
        let near = self.dates.get(at as usize).copied().unwrap_or_default();
        let inside = if self.is_inside(at) { session.date_inside } else { 0.0 };
        session.date * f64::from(near) + inside
    }

    /// Whether it asks for memories by their time, their speaker or their role.
    pub(crate) fn may_ask_for(&self) -> bool {
        !self.dates.is_empty() || self.speaker.is_some() || self.asks_for_answers()
    }

    /// Whether it is about earlier answers of an assistant.
    fn asks_for_answers(&self) -> bool {
        self.role == Some(Role::Assistant)
    }

    /// Whether a memory's time is inside one that the query names.
    fn is_inside(&self, at: u32) -> bool {
        self.dates.get(at as usize).is_some_and(|near| *near >= 1.0)
    }
}

impl<'a> CandidateSet<'a> {
    pub(crate) fn new(
        columns: &'a Columns,
        speakers: &'a Speakers,
        lexical: &'a Lexical,
        set: DocidSet,
        deadline: &'a Deadline,
    ) -> Self {
        let docids = set.iter().collect();
        Self { columns, speakers, lexical, docids, set, deadline, turns: OnceCell::new() }
    }

    /// Read all turns at once, because each will be needed; none if the deadline passes.
    pub(crate) fn look_up_turns(&self) -> Result<(), Error> {
        if self.turns.get().is_none() {
            let turns = Turns {
                previous: self.all_neighbours(|block| block.previous)?,
                next: self.all_neighbours(|block| block.next)?,
                flags: self.of_each(|block, at| turn_flags(block.session[at], block.flags[at]))?,
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

    fn has_flag(&self, at: u32, bit: u8) -> bool {
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
        self.any(|block| block.session, |session| session != 0)
    }

    /// Whether any candidate is a turn of an assistant.
    pub(crate) fn has_assistant(&self) -> Result<bool, Error> {
        self.any(|block| block.flags, |flags| flags & flags::BY_ASSISTANT != 0)
    }

    /// Whether an attribute of any candidate is so. Where candidates follow each other, a chunk is
    /// looked at without branches, which the compiler turns into vector instructions.
    fn any<T: Copy>(
        &self,
        attribute: impl for<'c> Fn(&BlockAttributes<'c>) -> &'c [T],
        is_so: impl Fn(T) -> bool,
    ) -> Result<bool, Error> {
        for of_block in by_block(&self.docids) {
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

    /// The next turns of all candidates.
    pub(crate) fn all_next(&self) -> Result<Vec<u32>, Error> {
        self.all_neighbours(|block| block.next)
    }

    fn all_neighbours(
        &self,
        of: impl for<'c> Fn(&BlockAttributes<'c>) -> &'c [u32],
    ) -> Result<Vec<u32>, Error> {
        let mut found = Vec::with_capacity(self.docids.len());
        for of_block in by_block(&self.docids) {
            self.deadline.check()?;
            let block = self.columns.block(block_of(of_block[0]));
            let neighbours = block.as_ref().map_or(&[][..], &of);
            if self.set.is_dense() && neighbours.len() >= of_block.len() {
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
        for of_block in by_block(&self.docids) {
            self.deadline.check()?;
            if let Some(block) = self.columns.block(block_of(of_block[0])) {
                let at = |docid: &u32| *docid as usize % Columns::BLOCK;
                attributes.extend(of_block.iter().map(|docid| attribute(&block, at(docid))));
            }
        }
        Ok(attributes)
    }

    /// The lift of a match by neighbours; `positive` computes the match of an ordinal, at least 0.
    pub(crate) fn lift(
        &self,
        session: &Session,
        query_features: &QueryFeatures,
        at: u32,
        positive: impl Fn(u32) -> f64,
    ) -> f64 {
        let neighbours = (self.previous(at), self.next(at));
        let is_isolated = neighbours == (NONE, NONE);
        let share = session.min_lift.max(if is_isolated { session.isolated } else { 0.0 });
        let own = if share > 0.0 { share * positive(at) } else { 0.0 };
        if is_isolated {
            return own;
        }
        let positive = |at: u32| if at == NONE { 0.0 } else { positive(at) };
        own.max(self.lift_by(neighbours, session, query_features, at, positive))
    }

    /// The neighbour with the largest part in the lift of a match; none if the match lifts itself.
    pub(crate) fn lifting(
        &self,
        session: &Session,
        query_features: &QueryFeatures,
        at: u32,
        positive: impl Fn(u32) -> f64,
    ) -> Option<u32> {
        let (previous, next) = (self.previous(at), self.next(at));
        let of = |at: u32| if at == NONE { 0.0 } else { positive(at) };
        let is_answer = of(previous) > 0.0 && self.is_answer(query_features, previous, at);
        let answer = if is_answer { session.answer } else { 0.0 };
        let (before, behind) = (self.previous(previous), self.next(next));
        let parts = [
            (previous, session.previous.max(answer) * of(previous)),
            (next, session.next * of(next)),
            (before, session.second_neighbour * of(before)),
            (behind, session.second_neighbour * of(behind)),
        ];
        let lift = self.lift_by((previous, next), session, query_features, at, of);
        let is_own = session.min_lift * of(at) >= lift;
        let largest = parts.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        largest.filter(|(_, part)| *part > 0.0 && !is_own).map(|(at, _)| at)
    }

    /// The lift by the previous and the next turn, and by those behind them.
    fn lift_by(
        &self,
        (previous, next): (u32, u32),
        session: &Session,
        query_features: &QueryFeatures,
        at: u32,
        positive: impl Fn(u32) -> f64,
    ) -> f64 {
        let before = positive(previous);
        let is_answer = before > 0.0 && self.is_answer(query_features, previous, at);
        let answered = if is_answer { session.answer * before } else { 0.0 };
        let first = (session.previous * before).max(session.next * positive(next)).max(answered);
        if session.second_neighbour == 0.0 {
            return first;
        }
        let second_neighbour = positive(self.previous(previous)).max(positive(self.next(next)));
        first + session.second_neighbour * second_neighbour
    }

    /// Whether a turn answers the previous one. Where roles count, an assistant's turn does so only for
    /// queries about the assistant: the user's question states the fact, and the answer is advice.
    fn is_answer(&self, query_features: &QueryFeatures, previous: u32, at: u32) -> bool {
        let is_advice = || {
            query_features.role == Some(Role::User)
                && self.has_flag(previous, flags::BY_USER)
                && self.has_flag(at, flags::BY_ASSISTANT)
        };
        self.asks(previous) && !is_advice()
    }

    /// The terms of date, speaker and answer type, less those of a question and of the other role.
    pub(crate) fn extra(&self, session: &Session, query_features: &QueryFeatures, at: u32) -> f64 {
        let parts = [
            query_features.of_date(session, at),
            self.of_speaker(query_features, at),
            self.of_answer_type(session, query_features, at),
            -self.of_question(session, query_features, at),
            -self.of_role(session, query_features, at),
        ];
        parts.iter().sum()
    }

    pub(crate) fn of_speaker(&self, query_features: &QueryFeatures, at: u32) -> f64 {
        self.naming(query_features, at).map_or(0.0, |term| term.size)
    }

    /// The term of speakers, if it names that of a memory.
    fn naming<'f>(&self, query_features: &'f QueryFeatures, at: u32) -> Option<&'f SpeakerTerm> {
        let term = query_features.speaker.as_ref();
        term.filter(|term| term.codes.binary_search(&self.speaker(at)).is_ok())
    }

    /// Whether the query asks for a memory by its time, its speaker or its role, whatever its words.
    pub(crate) fn is_asked_for(&self, query_features: &QueryFeatures, at: u32) -> bool {
        query_features.is_inside(at)
            || self.naming(query_features, at).is_some()
            || query_features.asks_for_answers() && self.has_flag(at, flags::BY_ASSISTANT)
    }

    /// Whether the query names one speaker and a memory is by another.
    pub(crate) fn is_by_another(&self, query_features: &QueryFeatures, at: u32) -> bool {
        let is_one = query_features.speaker.as_ref().is_some_and(|term| term.codes.len() == 1);
        is_one && self.naming(query_features, at).is_none() && self.speaker_name(at).is_some()
    }

    pub(crate) fn of_answer_type(
        &self,
        session: &Session,
        query_features: &QueryFeatures,
        at: u32,
    ) -> f64 {
        let holds =
            query_features.answer_type.is_some_and(|answer_type| self.holds(at, answer_type));
        if holds { session.answer_type } else { 0.0 }
    }

    pub(crate) fn of_question(
        &self,
        session: &Session,
        query_features: &QueryFeatures,
        at: u32,
    ) -> f64 {
        let counts = query_features.has_text && session.question > 0.0;
        let is_exempt = || query_features.role.is_some() && self.has_flag(at, flags::BY_USER);
        if counts && self.is_question(at) && !is_exempt() { session.question } else { 0.0 }
    }

    pub(crate) fn of_role(
        &self,
        session: &Session,
        query_features: &QueryFeatures,
        at: u32,
    ) -> f64 {
        match query_features.role {
            Some(Role::User) if self.has_flag(at, flags::BY_ASSISTANT) => {
                session.role * self.part_of_answer(at)
            }
            Some(Role::Assistant) if self.has_flag(at, flags::BY_USER) => session.role,
            _ => 0.0,
        }
    }

    /// The part of the term of roles that a turn of an assistant loses, by its words.
    fn part_of_answer(&self, at: u32) -> f64 {
        let words = self.lexical.length(self.docids[at as usize]) as f64;
        SHORT_ANSWER + (1.0 - SHORT_ANSWER) * (words / LONG_ANSWER).min(1.0)
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

/// Ascending docids, block by block.
fn by_block(docids: &[u32]) -> impl Iterator<Item = &[u32]> {
    let mut rest = docids;
    std::iter::from_fn(move || {
        let block = block_of(*rest.first()?);
        let end = rest.partition_point(|docid| block_of(*docid) == block);
        let (of_block, others) = rest.split_at(end);
        rest = others;
        Some(of_block)
    })
}
