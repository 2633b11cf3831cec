//! The search that needs no states: all paths through a pattern at once, as Thompson and Pike do.
//!
//! R. Cox, Regular Expression Matching: the Virtual Machine Approach, 2009. It is slower than the
//! automaton, reads each byte once, and knows Unicode word boundaries beside any character.

use std::ops::Range;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;

/// A visit of a state takes about half of the time that the automaton takes for a byte.
const VISITS_PER_BYTE: usize = 2;

/// Bytes that the searches of one pattern may still read in one text.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) left: usize,
}

/// The end of the work that is allowed.
#[derive(Debug)]
pub(super) struct Spent;

impl Work {
    pub(super) fn new(bytes: usize) -> Self {
        Self { left: bytes }
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Spent> {
        self.left = self.left.checked_sub(bytes).ok_or(Spent)?;
        Ok(())
    }
}

/// Paths of one place, the preferred ones first, with the place where each began.
#[derive(Debug, Default)]
struct Paths {
    states: Vec<(StateID, usize)>,
    /// For each state the number of the place at which it was last visited.
    visited: Vec<usize>,
}

/// The memory of searches.
#[derive(Debug, Default)]
pub(super) struct Threads {
    now: Paths,
    next: Paths,
    stack: Vec<StateID>,
    /// Number of places so far, so that no search needs to forget the visits of earlier ones.
    places: usize,
}

/// A pattern and a text.
pub(super) struct Simulation<'a> {
    nfa: &'a NFA,
    text: &'a [u8],
}

impl<'a> Simulation<'a> {
    pub(super) fn new(nfa: &'a NFA, text: &'a str) -> Self {
        Self { nfa, text: text.as_bytes() }
    }

    /// The first match that starts at `from` or later, as the automaton finds it.
    pub(super) fn find(
        &self,
        from: usize,
        threads: &mut Threads,
        work: &mut Work,
    ) -> Result<Option<Range<usize>>, Spent> {
        let Threads { now, next, stack, places } = threads;
        now.clear(self.nfa.states().len());
        next.clear(self.nfa.states().len());
        let mut found = None;
        for at in from..=self.text.len() {
            *places += 1;
            let mut visits = 0;
            if found.is_none() {
                visits += self.add((self.nfa.start_anchored(), at), at, *places, now, stack);
            }
            if now.states.is_empty() && found.is_some() {
                break;
            }
            for index in 0..now.states.len() {
                let (state, start) = now.states[index];
                if matches!(self.nfa.state(state), State::Match { .. }) {
                    found = Some(start..at);
                    break;
                }
                if let Some(state) = self.step(state, at) {
                    visits += self.add((state, start), at + 1, *places + 1, next, stack);
                }
            }
            work.spend(1 + visits / VISITS_PER_BYTE)?;
            std::mem::swap(now, next);
            next.states.clear();
        }
        *places += 1;
        Ok(found)
    }

    fn step(&self, state: StateID, at: usize) -> Option<StateID> {
        let byte = *self.text.get(at)?;
        match self.nfa.state(state) {
            State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
            State::Sparse(transitions) => transitions.matches_byte(byte),
            State::Dense(transitions) => transitions.matches_byte(byte),
            _ => None,
        }
    }

    /// Add the states that a path reaches without reading; the number of states visited.
    fn add(
        &self,
        (first, start): (StateID, usize),
        at: usize,
        place: usize,
        paths: &mut Paths,
        stack: &mut Vec<StateID>,
    ) -> usize {
        let mut visits = 0;
        stack.push(first);
        while let Some(state) = stack.pop() {
            visits += 1;
            if std::mem::replace(&mut paths.visited[state.as_usize()], place) == place {
                continue;
            }
            match self.nfa.state(state) {
                State::Look { look, next } => {
                    if self.nfa.look_matcher().matches(*look, self.text, at) {
                        stack.push(*next);
                    }
                }
                State::Union { alternates } => stack.extend(alternates.iter().rev()),
                State::BinaryUnion { alt1, alt2 } => stack.extend([*alt2, *alt1]),
                State::Capture { next, .. } => stack.push(*next),
                State::Fail => {}
                _ => paths.states.push((state, start)),
            }
        }
        visits
    }
}

impl Paths {
    fn clear(&mut self, len: usize) {
        self.states.clear();
        self.visited.resize(len, 0);
    }
}
