//! The words of a long memory that count: those of its best passage, or all.
//!
//! A text of many topics is as relevant as its best passage (`MaxP`; Dai and Callan, SIGIR 2019). Turns and
//! notes are of one topic: where those of more than 64 words had passages too, keyword search lost 5 to 7
//! points on a set of long answers; more than 512 words have only a few functions of code.

use super::query::Query;
use super::sum::Sum;

/// A memory of more words is long.
pub(super) const LONG: usize = if cfg!(test) { 10 } else { 512 };

impl Query {
    /// All of a text, or the first of its passages whose words score most, or else its n-grams, if they
    /// score more than in all of it.
    #[inline]
    pub(super) fn passage<'text>(&self, terms: &'text [u32]) -> &'text [u32] {
        if terms.len() <= LONG { terms } else { self.best_passage(terms) }
    }

    fn best_passage<'text>(&self, terms: &'text [u32]) -> &'text [u32] {
        let found = terms.iter().map(|term| self.code(*term)).enumerate();
        let found: Vec<(usize, u32)> = found.filter(|(_, code)| *code != 0).collect();
        let mut whole = Window::new(self, terms.len());
        for (_, code) in &found {
            whole.change(*code, 1);
        }
        let mut window = Window::new(self, self.width);
        let (mut start, mut best, mut most) = (0, 0..terms.len(), whole.score());
        for (at, code) in &found {
            window.change(*code, 1);
            while found[start].0 + self.width <= *at {
                window.change(found[start].1, -1);
                start += 1;
            }
            if window.score() > most {
                most = window.score();
                let first = found[start].0.min(terms.len() - self.width);
                best = first..first + self.width;
            }
        }
        &terms[best]
    }
}

/// Consecutive words of a text, and what those of the query score.
struct Window<'query> {
    query: &'query Query,
    norm: f32,
    times: Vec<u32>,
    words: Sum,
    ngrams: Sum,
}

impl<'query> Window<'query> {
    fn new(query: &'query Query, words: usize) -> Self {
        let times = vec![0; query.term_weights.len()];
        let norm = query.saturation.norm(words as u32);
        Self { query, norm, times, words: Sum::ZERO, ngrams: Sum::ZERO }
    }

    fn score(&self) -> (f32, f32) {
        (self.words.value(), self.ngrams.value())
    }

    /// Add an occurrence of a term, or take one away: sums are exact, so nothing is left of it.
    fn change(&mut self, code: u32, by: i32) {
        let weight = self.query.term_weights[code as usize];
        let times = &mut self.times[code as usize];
        let before = share(*times, self.norm);
        *times = times.wrapping_add_signed(by);
        let after = share(*times, self.norm);
        for (sum, weight) in [(&mut self.words, weight.word), (&mut self.ngrams, weight.ngram)] {
            sum.add(weight * after);
            sum.add(-weight * before);
        }
    }
}

/// The saturated frequency, 0 of a term that is not there.
fn share(times: u32, norm: f32) -> f32 {
    if times == 0 { 0.0 } else { super::query::share(times, norm) }
}
