//! One pattern's searches, each of which returns the number of bytes that it read.

use std::ops::Range;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Anchored, Input, MatchKind, Span};
use regex_syntax::hir::Hir;

use super::simulation::{Simulation, Spent, Threads, Work};

/// Bytes of one compiled pattern, the limit of the crate regex; `\w{200}` takes about as many.
const SIZE_LIMIT: usize = 10 << 20;
const SMALLER: &str = "lower its repetitions, or let its classes be ASCII, as in (?-u:\\w)";
/// Bytes of the states that one search keeps; a pattern that needs more is simulated.
const CACHE_CAPACITY: usize = 1 << 20;
/// A cache that was cleared so often, and gave fewer bytes a state than this, is of no use.
const CLEARS: usize = 4;
const BYTES_PER_STATE: usize = 10;

/// The cause of a search without an answer.
enum Stop {
    Spent,
    /// The automaton cannot go on: a Unicode word boundary beside a character that is not ASCII, or
    /// too many states.
    Lost,
}

impl From<Spent> for Stop {
    fn from(_: Spent) -> Self {
        Self::Spent
    }
}

/// A compiled pattern. Its searches share nothing, so that many threads can use it.
#[derive(Debug)]
pub(super) struct Automaton {
    forward: DFA,
    backward: DFA,
    prefilter: Option<Prefilter>,
}

/// The states that searches have met; one thread uses them at a time.
#[derive(Debug)]
pub(super) struct States {
    forward: Cache,
    backward: Cache,
    threads: Threads,
}

impl Automaton {
    /// Compile a pattern; `kind` decides between alternatives that match at the same place.
    pub(super) fn new(hir: &Hir, kind: MatchKind) -> Result<Self, String> {
        let prefilter = Prefilter::from_hir_prefix(kind, hir);
        let forward = automaton(nfa(hir, false)?, kind, prefilter.is_some())?;
        let backward = automaton(nfa(hir, true)?, MatchKind::All, false)?;
        Ok(Self { forward, backward, prefilter })
    }

    pub(super) fn states(&self) -> States {
        States {
            forward: self.forward.create_cache(),
            backward: self.backward.create_cache(),
            threads: Threads::default(),
        }
    }

    /// The first match that starts at `at` or later.
    pub(super) fn find(
        &self,
        text: &str,
        at: usize,
        states: &mut States,
        work: &mut Work,
    ) -> Result<Option<Range<usize>>, Spent> {
        let found = match self.end(text, at, Anchored::No, &mut states.forward, work) {
            Ok(Some(end)) => self.start(text, at..end, &mut states.backward, work).map(Some),
            Ok(None) => Ok(None),
            Err(stop) => Err(stop),
        };
        match found {
            Ok(found) => Ok(found),
            Err(Stop::Spent) => Err(Spent),
            Err(Stop::Lost) => {
                Simulation::new(self.forward.get_nfa(), text).find(at, &mut states.threads, work)
            }
        }
    }

    fn end(
        &self,
        text: &str,
        at: usize,
        anchored: Anchored,
        cache: &mut Cache,
        work: &mut Work,
    ) -> Result<Option<usize>, Stop> {
        let prefilter = self.prefilter.as_ref().filter(|_| anchored == Anchored::No);
        let mut search = Forward { dfa: &self.forward, cache, text: text.as_bytes(), anchored, at };
        search.cache.search_start(at);
        let end = search.run(prefilter, at.saturating_add(work.left));
        let until = search.at;
        search.cache.search_finish(until);
        work.spend(until - at)?;
        end
    }

    fn start(
        &self,
        text: &str,
        span: Range<usize>,
        cache: &mut Cache,
        work: &mut Work,
    ) -> Result<Range<usize>, Stop> {
        cache.search_start(span.end);
        let (start, at) = backward(&self.backward, cache, text.as_bytes(), span.clone());
        cache.search_finish(at);
        work.spend(span.end - at)?;
        Ok(start?..span.end)
    }
}

struct Forward<'a> {
    dfa: &'a DFA,
    cache: &'a mut Cache,
    text: &'a [u8],
    anchored: Anchored,
    at: usize,
}

impl Forward<'_> {
    /// The end of the first match; `at` is then the place up to which the text was read.
    fn run(&mut self, prefilter: Option<&Prefilter>, limit: usize) -> Result<Option<usize>, Stop> {
        let mut found = None;
        if !self.skip(prefilter) {
            return Ok(None);
        }
        let mut state = self.first_state()?;
        while self.at < self.text.len() {
            if self.at >= limit {
                return Err(Stop::Spent);
            }
            state = self.next_state(state)?;
            if state.is_tagged() {
                if state.is_match() {
                    found = Some(self.at);
                } else if state.is_dead() {
                    return Ok(found);
                } else if state.is_quit() {
                    return Err(Stop::Lost);
                } else if state.is_start() && prefilter.is_some() && self.at + 1 < self.text.len() {
                    self.at += 1;
                    let before = self.at;
                    if !self.skip(prefilter) {
                        return Ok(found);
                    }
                    if self.at > before {
                        state = self.first_state()?;
                    }
                    continue;
                }
            }
            self.at += 1;
        }
        let last = self.dfa.next_eoi_state(self.cache, state).map_err(|_| Stop::Lost)?;
        Ok(if last.is_match() { Some(self.text.len()) } else { found })
    }

    /// Go on to the next place where a match can start; false without one.
    fn skip(&mut self, prefilter: Option<&Prefilter>) -> bool {
        let Some(prefilter) = prefilter else { return true };
        let span = Span { start: self.at, end: self.text.len() };
        let next = prefilter.find(self.text, span);
        self.at = next.map_or(self.text.len(), |next| next.start);
        next.is_some()
    }

    fn first_state(&mut self) -> Result<LazyStateID, Stop> {
        let input = Input::new(self.text).range(self.at..).anchored(self.anchored);
        self.dfa.start_state_forward(self.cache, &input).map_err(|_| Stop::Lost)
    }

    fn next_state(&mut self, state: LazyStateID) -> Result<LazyStateID, Stop> {
        if !state.is_tagged() {
            let next = self.dfa.next_state_untagged(self.cache, state, self.text[self.at]);
            if !next.is_unknown() {
                return Ok(next);
            }
        }
        self.cache.search_update(self.at);
        self.dfa.next_state(self.cache, state, self.text[self.at]).map_err(|_| Stop::Lost)
    }
}

/// The start of the match that ends at the end of the span, and the place down to which was read.
fn backward(
    dfa: &DFA,
    cache: &mut Cache,
    text: &[u8],
    span: Range<usize>,
) -> (Result<usize, Stop>, usize) {
    let input = Input::new(text).range(span.clone()).anchored(Anchored::Yes);
    let Ok(mut state) = dfa.start_state_reverse(cache, &input) else {
        return (Err(Stop::Lost), span.end);
    };
    let mut found = None;
    let mut at = span.end;
    while at > span.start {
        let Ok(next) = dfa.next_state(cache, state, text[at - 1]) else {
            return (Err(Stop::Lost), at);
        };
        if next.is_match() {
            found = Some(at);
        } else if next.is_dead() {
            return (found.ok_or(Stop::Lost), at);
        } else if next.is_quit() {
            return (Err(Stop::Lost), at);
        }
        state = next;
        at -= 1;
    }
    let last = match span.start.checked_sub(1) {
        Some(before) => dfa.next_state(cache, state, text[before]),
        None => dfa.next_eoi_state(cache, state),
    };
    match last {
        Ok(last) if last.is_match() => (Ok(at), at),
        Ok(last) if !last.is_quit() => (found.ok_or(Stop::Lost), at),
        _ => (Err(Stop::Lost), at),
    }
}

fn nfa(hir: &Hir, is_backward: bool) -> Result<NFA, String> {
    let config = thompson::Config::new()
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(SIZE_LIMIT))
        .reverse(is_backward);
    let nfa = NFA::compiler().configure(config).build_from_hir(hir);
    nfa.map_err(|error| format!("{error}; {SMALLER}"))
}

fn automaton(nfa: NFA, kind: MatchKind, has_prefilter: bool) -> Result<DFA, String> {
    let config = Config::new()
        .match_kind(kind)
        .unicode_word_boundary(true)
        .specialize_start_states(has_prefilter)
        .cache_capacity(CACHE_CAPACITY)
        .skip_cache_capacity_check(true)
        .minimum_cache_clear_count(Some(CLEARS))
        .minimum_bytes_per_state(Some(BYTES_PER_STATE));
    DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| error.to_string())
}
