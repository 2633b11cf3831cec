//! One pattern's searches, each of which spends the bytes that it reads.

use std::ops::Range;

use regex_automata::hybrid::dfa::{Config, DFA};
use regex_automata::hybrid::regex::{Cache, Regex};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Input, MatchKind};
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

/// A compiled pattern. Its searches share nothing, so that many threads can use it.
#[derive(Debug)]
pub(super) struct Automaton(Regex);

/// The states that searches have met; one thread uses them at a time.
#[derive(Debug)]
pub(super) struct States {
    cache: Cache,
    threads: Threads,
}

impl Automaton {
    /// Compile a pattern; `kind` decides between alternatives that match at the same place.
    pub(super) fn new(hir: &Hir, kind: MatchKind) -> Result<Self, String> {
        let prefilter = Prefilter::from_hir_prefix(kind, hir);
        let forward = automaton(nfa(hir, false)?, kind, prefilter)?;
        let backward = automaton(nfa(hir, true)?, MatchKind::All, None)?;
        Ok(Self(Regex::builder().build_from_dfas(forward, backward)))
    }

    pub(super) fn states(&self) -> States {
        States { cache: self.0.create_cache(), threads: Threads::default() }
    }

    /// The first match that starts at `at` or later.
    pub(super) fn find(
        &self,
        text: &str,
        at: usize,
        states: &mut States,
        work: &mut Work,
    ) -> Result<Option<Range<usize>>, Spent> {
        let States { cache, threads } = states;
        let (clears, bytes) = (clears(cache), bytes_read(cache));
        let found = self.0.try_search(cache, &Input::new(text).range(at..));
        // A cache that is cleared forgets how much was read.
        let is_known = self::clears(cache) == clears;
        work.spend(if is_known { bytes_read(cache) - bytes } else { text.len() - at })?;
        match found {
            Ok(found) => Ok(found.map(|found| found.range())),
            // A Unicode word boundary beside a character that is not ASCII, or too many states.
            Err(_) => Simulation::new(self.0.forward().get_nfa(), text).find(at, threads, work),
        }
    }
}

fn clears(cache: &mut Cache) -> usize {
    cache.forward().clear_count() + cache.reverse().clear_count()
}

/// The bytes that all searches have read, but for those that a prefilter skipped at their start.
fn bytes_read(cache: &mut Cache) -> usize {
    cache.forward().search_total_len() + cache.reverse().search_total_len()
}

fn nfa(hir: &Hir, is_backward: bool) -> Result<NFA, String> {
    let config = thompson::Config::new()
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(SIZE_LIMIT))
        .reverse(is_backward);
    let nfa = NFA::compiler().configure(config).build_from_hir(hir);
    nfa.map_err(|error| format!("{error}; {SMALLER}"))
}

fn automaton(nfa: NFA, kind: MatchKind, prefilter: Option<Prefilter>) -> Result<DFA, String> {
    let config = Config::new()
        .match_kind(kind)
        .unicode_word_boundary(true)
        .specialize_start_states(prefilter.is_some())
        .prefilter(prefilter)
        .cache_capacity(CACHE_CAPACITY)
        .skip_cache_capacity_check(true)
        .minimum_cache_clear_count(Some(CLEARS))
        .minimum_bytes_per_state(Some(BYTES_PER_STATE));
    DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| error.to_string())
}
