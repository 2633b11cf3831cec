//! What the session of a memory, its time, its speaker and its role add to its match.

use super::candidates::{NONE, SpeakerTerm};
use super::fused_score::Fused;
use crate::columns::flags;
use crate::text::Role;

/// The part of the term of roles that a turn of an assistant loses without a word, and the words from
/// which on it loses all: a short one holds a command, a setting or a fix, a long one advice.
const SHORT_ANSWER: f64 = 0.5;
const LONG_ANSWER: f64 = 200.0;

impl Fused<'_> {
    /// The lift of a match by neighbours; `matched` computes the match of an ordinal.
    pub(super) fn lift(&self, at: u32, matched: impl Fn(u32) -> f64) -> f64 {
        if !self.has_lift {
            return 0.0;
        }
        let session = &self.scoring.session;
        let neighbours = (self.candidates.previous(at), self.candidates.next(at));
        let is_isolated = neighbours == (NONE, NONE);
        let share = session.min_lift.max(if is_isolated { session.isolated } else { 0.0 });
        let own = if share > 0.0 { share * matched(at).max(0.0) } else { 0.0 };
        if is_isolated {
            return own;
        }
        own.max(self.lift_by(neighbours, at, |at| positive(at, &matched)))
    }

    /// The neighbour with the largest part in the lift of a match; none if the match lifts itself.
    pub(super) fn lifting(&self, at: u32, matched: impl Fn(u32) -> f64) -> Option<u32> {
        if !self.has_lift {
            return None;
        }
        let (candidates, session) = (self.candidates, &self.scoring.session);
        let (previous, next) = (candidates.previous(at), candidates.next(at));
        let of = |at: u32| positive(at, &matched);
        let is_answer = of(previous) > 0.0 && self.is_answer(previous, at);
        let answer = if is_answer { session.answer } else { 0.0 };
        let (before, behind) = (candidates.previous(previous), candidates.next(next));
        let parts = [
            (previous, session.previous.max(answer) * of(previous)),
            (next, session.next * of(next)),
            (before, session.second_neighbour * of(before)),
            (behind, session.second_neighbour * of(behind)),
        ];
        let is_own = session.min_lift * of(at) >= self.lift_by((previous, next), at, of);
        let largest = parts.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        largest.filter(|(_, part)| *part > 0.0 && !is_own).map(|(at, _)| at)
    }

    /// The lift by the previous and the next turn, and by those behind them.
    fn lift_by(&self, (previous, next): (u32, u32), at: u32, positive: impl Fn(u32) -> f64) -> f64 {
        let (candidates, session) = (self.candidates, &self.scoring.session);
        let before = positive(previous);
        let is_answer = before > 0.0 && self.is_answer(previous, at);
        let answered = if is_answer { session.answer * before } else { 0.0 };
        let first = (session.previous * before).max(session.next * positive(next)).max(answered);
        if session.second_neighbour == 0.0 {
            return first;
        }
        let (before, behind) = (candidates.previous(previous), candidates.next(next));
        first + session.second_neighbour * positive(before).max(positive(behind))
    }

    /// Whether a turn answers the previous one. Where roles count, an assistant's turn does so only for
    /// queries about the assistant: the user's question states the fact, and the answer is advice.
    fn is_answer(&self, previous: u32, at: u32) -> bool {
        let is_advice = || {
            self.features.role == Some(Role::User)
                && self.candidates.has_flag(previous, flags::BY_USER)
                && self.candidates.has_flag(at, flags::BY_ASSISTANT)
        };
        self.candidates.asks(previous) && !is_advice()
    }

    /// The terms of date, speaker and answer type, less those of a question and of the other role.
    pub(super) fn extra(&self, at: u32) -> f64 {
        let parts = [
            self.of_date(at),
            self.of_speaker(at),
            self.of_answer_type(at),
            -self.of_question(at),
            -self.of_role(at),
        ];
        parts.iter().sum()
    }

    pub(super) fn of_date(&self, at: u32) -> f64 {
        let (session, features) = (&self.scoring.session, &self.features);
        let near = features.dates.get(at as usize).copied().unwrap_or_default();
        let inside = if features.is_inside(at) { session.date_inside } else { 0.0 };
        session.date * f64::from(near) + inside
    }

    pub(super) fn of_speaker(&self, at: u32) -> f64 {
        self.naming(at).map_or(0.0, |term| term.size)
    }

    /// The term of speakers, if it names that of a memory.
    fn naming(&self, at: u32) -> Option<&SpeakerTerm> {
        let term = self.features.speaker.as_ref();
        term.filter(|term| term.codes.binary_search(&self.candidates.speaker(at)).is_ok())
    }

    /// Whether the query asks for a memory by its time, its speaker or its role, whatever its words.
    pub(super) fn is_asked_for(&self, at: u32) -> bool {
        self.features.is_inside(at)
            || self.naming(at).is_some()
            || self.features.asks_for_answers() && self.candidates.has_flag(at, flags::BY_ASSISTANT)
    }

    /// Whether the query names one speaker and a memory is by another.
    pub(crate) fn is_by_another(&self, at: u32) -> bool {
        let is_one = self.features.speaker.as_ref().is_some_and(|term| term.codes.len() == 1);
        is_one && self.naming(at).is_none() && self.candidates.speaker_name(at).is_some()
    }

    pub(super) fn of_answer_type(&self, at: u32) -> f64 {
        let asked = self.features.answer_type;
        let holds = asked.is_some_and(|answer_type| self.candidates.holds(at, answer_type));
        if holds { self.scoring.session.answer_type } else { 0.0 }
    }

    pub(super) fn of_question(&self, at: u32) -> f64 {
        let (candidates, question) = (self.candidates, self.scoring.session.question);
        let counts = self.features.has_text && question > 0.0;
        let is_exempt = || self.features.role.is_some() && candidates.has_flag(at, flags::BY_USER);
        if counts && candidates.is_question(at) && !is_exempt() { question } else { 0.0 }
    }

    pub(super) fn of_role(&self, at: u32) -> f64 {
        let (candidates, role) = (self.candidates, self.scoring.session.role);
        match self.features.role {
            Some(Role::User) if candidates.has_flag(at, flags::BY_ASSISTANT) => {
                role * self.part_of_answer(at)
            }
            Some(Role::Assistant) if candidates.has_flag(at, flags::BY_USER) => role,
            _ => 0.0,
        }
    }

    /// The part of the term of roles that a turn of an assistant loses, by its words.
    fn part_of_answer(&self, at: u32) -> f64 {
        let words = self.candidates.lexical.length(self.candidates.docids[at as usize]) as f64;
        SHORT_ANSWER + (1.0 - SHORT_ANSWER) * (words / LONG_ANSWER).min(1.0)
    }
}

/// The match of a neighbour, at least 0; 0 for none.
fn positive(at: u32, matched: &impl Fn(u32) -> f64) -> f64 {
    if at == NONE { 0.0 } else { matched(at).max(0.0) }
}
