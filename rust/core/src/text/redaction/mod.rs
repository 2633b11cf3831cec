//! Redaction: personal data and secrets in a text are replaced.
//!
//! Patterns with a name are read by hand from the places where they can stand; patterns of the
//! user are regular expressions, whose searches are counted. A search is linear in the text, but
//! all searches together can be quadratic: the text is read to its end for each short match.

mod addresses;
mod automaton;
mod characters;
mod custom;
mod email;
mod iban;
mod invisible;
mod keys;
mod known;
mod numbers;
mod phone;
mod places;
mod simulation;

use std::ops::Range;

use parking_lot::Mutex;

use automaton::{Automaton, States};
use characters::is_digit;
pub use custom::RedactionCheck;
use invisible::Visible;
pub use known::known_patterns;
use known::{KNOWN, Known};
use places::Place;
use simulation::{Spent, Work};

use crate::error::Error;

/// Bytes that one pattern may read for each byte of a text, and in any text.
const WORK_PER_BYTE: usize = 32;
const WORK_PER_TEXT: usize = 1 << 20;
/// Bytes of a text that are read again beside a place, and most bytes between it and a new match.
const WINDOW: usize = 256;
const BESIDE: usize = 8;
/// Most patterns of one redactor, each of which reads each text.
const MAX_PATTERNS: usize = 100;

/// A pattern as it is configured.
#[derive(Debug, Clone)]
pub struct PatternSource {
    /// Its name; without a regular expression one of `known_patterns`.
    pub name: String,
    /// A regular expression of the crate regex.
    pub regex: Option<String>,
    /// A check that a match of the regular expression must pass.
    pub check: Option<RedactionCheck>,
}

/// Compiled patterns, and the text that takes the place of their matches.
#[derive(Debug)]
pub struct Redactor {
    known: Vec<&'static Known>,
    custom: Vec<Custom>,
    replacement: String,
    /// States of the custom patterns for each thread that has redacted at the same time.
    states: Mutex<Vec<Vec<States>>>,
}

#[derive(Debug)]
struct Custom {
    name: String,
    automaton: Automaton,
    check: Option<RedactionCheck>,
}

impl Redactor {
    /// Compile patterns.
    ///
    /// # Errors
    ///
    /// If a name is unknown, or a regular expression is invalid, too large or matches the empty
    /// text.
    pub fn new(sources: &[PatternSource], replacement: &str) -> Result<Self, Error> {
        if sources.len() > MAX_PATTERNS {
            let problem =
                format!("there are {} patterns, at most {MAX_PATTERNS} can be used", sources.len());
            return Err(Error::InvalidPattern {
                name: sources[MAX_PATTERNS].name.clone(),
                problem,
            });
        }
        let mut redactor = Self {
            known: Vec::new(),
            custom: Vec::new(),
            replacement: replacement.to_owned(),
            states: Mutex::default(),
        };
        sources.iter().try_for_each(|source| redactor.add(source))?;
        Ok(redactor)
    }

    fn add(&mut self, source: &PatternSource) -> Result<(), Error> {
        let name = source.name.clone();
        match &source.regex {
            Some(regex) => {
                let compiled = custom::compiled(regex);
                let automaton = compiled
                    .map_err(|problem| Error::InvalidPattern { name: name.clone(), problem })?;
                self.custom.push(Custom { name, automaton, check: source.check });
            }
            None => self.known.push(known_pattern(name)?),
        }
        Ok(())
    }

    /// The places to replace, in order; matches that overlap are one place.
    ///
    /// Invisible characters hide no match, and variants of letters and digits none: the characters
    /// that a reader sees are searched too. Known patterns find matches over line breaks by
    /// themselves; for others the text is searched as one line too.
    ///
    /// # Errors
    ///
    /// If the searches of a pattern read too many bytes.
    pub fn matches(&self, text: &str) -> Result<Vec<Range<usize>>, Error> {
        let mut places = self.find(text, Vec::new())?;
        let mut more = Vec::new();
        if let Some(visible) = Visible::of(text) {
            let shown = places.iter().map(|place| visible.shown(place));
            let shown = shown.filter(|place| !place.is_empty()).collect();
            let found = self.find(&visible.text, shown)?;
            more.extend(found.iter().map(|place| visible.given(place, text)));
        }
        if let Some(line) = self.on_one_line(text) {
            let mut found = Vec::new();
            self.find_custom(&line.text, &mut found)?;
            more.extend(found.iter().map(|place| line.given(place, text)));
        }
        if more.is_empty() {
            return Ok(places);
        }
        places.extend(more);
        Ok(united(places))
    }

    /// The text as one line, where that is another text and a pattern is a regular expression.
    fn on_one_line(&self, text: &str) -> Option<Visible> {
        if self.custom.is_empty() { None } else { Visible::on_one_line(text) }
    }

    /// The places of matches, and those that are known already.
    fn find(&self, text: &str, known: Vec<Range<usize>>) -> Result<Vec<Range<usize>>, Error> {
        let mut found = known;
        self.find_known(text, &mut found);
        self.find_custom(text, &mut found)?;
        let mut places = united(found);
        let beside = self.find_beside(text, &places);
        if !beside.is_empty() {
            places.extend(beside);
            places = united(places);
        }
        Ok(places)
    }

    /// The matches that only a place bounds: they stand against letters or digits that will be
    /// replaced.
    fn find_beside(&self, text: &str, places: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut beside = Vec::new();
        if self.known.is_empty() || places.is_empty() {
            return beside;
        }
        let mut gaps: Vec<_> = gaps(0..text.len(), places).collect();
        while let Some(gap) = gaps.pop() {
            let found = united(self.find_at_ends(text, &gap));
            if !found.is_empty() {
                gaps.extend(self::gaps(gap, &found));
                beside.extend(found);
            }
        }
        beside
    }

    /// The matches at the ends of a part of a text that lies between places.
    fn find_at_ends(&self, text: &str, gap: &Range<usize>) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        for window in windows(text, gap) {
            let mut found = Vec::new();
            self.find_known(&text[window.clone()], &mut found);
            all.extend(found.iter().map(|at| at.start + window.start..at.end + window.start));
        }
        let is_beside = |at: &Range<usize>| {
            (gap.start > 0 && at.start - gap.start <= BESIDE)
                || (gap.end < text.len() && gap.end - at.end <= BESIDE)
        };
        all.retain(is_beside);
        all
    }

    /// The length of a text after the places are replaced.
    pub fn redacted_len(&self, text: &str, places: &[Range<usize>]) -> usize {
        let removed: usize = places.iter().map(Range::len).sum();
        places.len().saturating_mul(self.replacement.len()).saturating_add(text.len() - removed)
    }

    /// The text with the replacement at the places that `matches` found.
    pub fn redacted(&self, text: &str, places: &[Range<usize>]) -> String {
        let mut redacted = String::with_capacity(self.redacted_len(text, places));
        let mut at = 0;
        for place in places {
            redacted.push_str(&text[at..place.start]);
            redacted.push_str(&self.replacement);
            at = place.end;
        }
        redacted.push_str(&text[at..]);
        redacted
    }

    fn find_known(&self, text: &str, found: &mut Vec<Range<usize>>) {
        let of_numbers = self.known.iter().filter(|known| known.places.is_none());
        let mut numbers: Vec<_> = of_numbers.map(|known| Reading::new(known)).collect();
        if !numbers.is_empty() {
            places::for_each_number(text, |at, count, is_broken| {
                for reading in &mut numbers {
                    reading.read(Place { text, at, count, is_broken, floor: 0 }, found);
                }
            });
            found.extend(numbers.into_iter().filter_map(|reading| reading.beyond));
        }
        for known in &self.known {
            let Some(for_each) = known.places else { continue };
            let mut reading = Reading::new(known);
            for_each(text, &mut |at| {
                reading.read(Place { text, at, count: 0, is_broken: false, floor: 0 }, found);
            });
        }
    }

    fn find_custom(&self, text: &str, found: &mut Vec<Range<usize>>) -> Result<(), Error> {
        if self.custom.is_empty() {
            return Ok(());
        }
        let unused = self.states.lock().pop();
        let mut states = unused.unwrap_or_else(|| {
            self.custom.iter().map(|custom| custom.automaton.states()).collect()
        });
        let mut pairs = self.custom.iter().zip(&mut states);
        let outcome = pairs.try_for_each(|(custom, states)| custom.find(text, states, found));
        self.states.lock().push(states);
        outcome
    }
}

/// A pattern with a name, and the end of its last match.
struct Reading {
    known: &'static Known,
    floor: usize,
    /// The longest match that begins in the last one and ends behind it.
    beyond: Option<Range<usize>>,
}

impl Reading {
    fn new(known: &'static Known) -> Self {
        Self { known, floor: 0, beyond: None }
    }

    fn read(&mut self, place: Place<'_>, found: &mut Vec<Range<usize>>) {
        let is_inside = place.at < self.floor;
        if is_inside && !self.known.overlaps {
            return;
        }
        let text = place.text;
        let Some(place) = (self.known.reader)(Place { floor: self.floor, ..place }) else {
            return;
        };
        if is_inside {
            let end = self.beyond.as_ref().map_or(self.floor, |beyond| beyond.end);
            if place.end > end {
                self.beyond = Some(place);
            }
            return;
        }
        // Of two numbers, one behind the other, parts can be a third one by chance.
        let is_covered = |beyond: &Range<usize>| {
            beyond.end <= place.end && !text[self.floor..place.start].contains(is_digit)
        };
        found.extend(self.beyond.take().filter(|beyond| !is_covered(beyond)));
        self.floor = place.end;
        found.push(place);
    }
}

impl Custom {
    fn find(
        &self,
        text: &str,
        states: &mut States,
        found: &mut Vec<Range<usize>>,
    ) -> Result<(), Error> {
        let budget = text.len().saturating_mul(WORK_PER_BYTE).saturating_add(WORK_PER_TEXT);
        let mut work = Work::new(budget);
        let mut at = 0;
        loop {
            match self.automaton.find(text, at, states, &mut work) {
                Ok(Some(place)) => {
                    at = place.end;
                    if self.check.is_none_or(|check| check.passes(&text[place.clone()])) {
                        found.push(place);
                    }
                }
                Ok(None) => return Ok(()),
                Err(Spent) => {
                    let name = self.name.clone();
                    return Err(Error::RedactionBudget { name, size: text.len(), budget });
                }
            }
        }
    }
}

fn known_pattern(name: String) -> Result<&'static Known, Error> {
    let known = KNOWN.iter().find(|known| known.name == name);
    known.ok_or_else(|| {
        let names: Vec<&str> = known_patterns().collect();
        let problem = format!("no pattern has this name; the names are {}", names.join(", "));
        Error::InvalidPattern { name, problem }
    })
}

/// The parts of a part of a text that lie before, between and behind places in it.
fn gaps(part: Range<usize>, places: &[Range<usize>]) -> impl Iterator<Item = Range<usize>> {
    let starts = [part.start].into_iter().chain(places.iter().map(|place| place.end));
    let ends = places.iter().map(|place| place.start).chain([part.end]);
    starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty())
}

/// Both ends of a part of a text, as far as a match at an end can reach.
fn windows(text: &str, part: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let ends = if part.len() <= 2 * WINDOW {
        [Some(part.clone()), None]
    } else {
        let head = (part.start + WINDOW..part.end).find(is_boundary).map(|end| part.start..end);
        let tail = (part.end - WINDOW..part.end).find(is_boundary).map(|start| start..part.end);
        [head, tail]
    };
    ends.into_iter().flatten()
}

/// Matches in their order; those that overlap become one, so that no part of a match is left over.
fn united(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if !found.is_sorted_by_key(|place| place.start) {
        found.sort_unstable_by_key(|place| (place.start, place.end));
    }
    let mut united: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for place in found {
        match united.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => united.push(place),
        }
    }
    united
}
