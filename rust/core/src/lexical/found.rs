//! What memories have of a query, found in their texts one memory after another.

use std::cmp::Ordering;
use std::ops::Range;

use super::query::{Query, share};
use super::scores::FieldScores;
use super::sum::Sum;

/// How often something occurs.
#[derive(Debug, Clone, Copy)]
struct Count {
    code: u32,
    times: u32,
}

/// Where the findings of a memory end, and its length in tokens.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    terms_end: u32,
    pairs_end: u32,
    tokens: u32,
}

/// Findings of some memories, row by row in the order they were searched.
#[derive(Default)]
pub(super) struct Found {
    /// By row, then code.
    terms: Vec<Count>,
    /// By row, then place among the query's pairs.
    pairs: Vec<Count>,
    rows: Vec<Row>,
}

impl Found {
    pub(super) fn clear(&mut self) {
        self.terms.clear();
        self.pairs.clear();
        self.rows.clear();
    }

    /// Count what the memory of these terms has of the query; return its row.
    pub(super) fn search(&mut self, query: &Query, terms: &[u32]) -> u32 {
        let start = self.terms.len();
        let words = query.terms.len() as u32;
        let mut before_is_word = false;
        let mut words_meet = false;
        for &term in terms {
            let code = query.code(term);
            if code != 0 {
                self.terms.push(Count { code, times: 1 });
            }
            let is_word = code.wrapping_sub(1) < words;
            words_meet |= is_word && before_is_word;
            before_is_word = is_word;
        }
        add_up(&mut self.terms, start);
        if words_meet && !query.pairs.is_empty() {
            self.search_pairs(query, terms);
        }
        self.rows.push(Row {
            terms_end: self.terms.len() as u32,
            pairs_end: self.pairs.len() as u32,
            tokens: terms.len() as u32,
        });
        self.rows.len() as u32 - 1
    }

    fn search_pairs(&mut self, query: &Query, terms: &[u32]) {
        let start = self.pairs.len();
        for pair in terms.windows(2) {
            if let Some(code) = query.pair([query.code(pair[0]), query.code(pair[1])]) {
                self.pairs.push(Count { code, times: 1 });
            }
        }
        add_up(&mut self.pairs, start);
    }

    /// Score at `place` the texts of one or two rows as one.
    pub(super) fn score(
        &self,
        query: &Query,
        rows: [Option<u32>; 2],
        place: usize,
        scores: &mut FieldScores,
    ) {
        let terms = rows.map(|row| self.terms(row));
        if terms.iter().all(|terms| terms.is_empty()) {
            return;
        }
        let norm =
            query.saturation.norm(rows.into_iter().flatten().map(|row| self.tokens(row)).sum());
        let (mut words, mut grams, mut pairs) = (Sum::default(), Sum::default(), Sum::default());
        each_together(terms, |count| {
            let worth = query.worths[count.code as usize];
            let share = share(count.times, norm);
            words.add(worth.word * share);
            grams.add(worth.gram * share);
        });
        each_together(rows.map(|row| self.pairs(row)), |count| {
            pairs.add(query.pairs[count.code as usize].weight * share(count.times, norm));
        });
        scores.set(place, [words, grams, pairs]);
    }

    fn tokens(&self, row: u32) -> u32 {
        self.rows[row as usize].tokens
    }

    fn terms(&self, row: Option<u32>) -> &[Count] {
        &self.terms[self.range(row, |row| row.terms_end)]
    }

    fn pairs(&self, row: Option<u32>) -> &[Count] {
        &self.pairs[self.range(row, |row| row.pairs_end)]
    }

    fn range(&self, row: Option<u32>, end: impl Fn(&Row) -> u32) -> Range<usize> {
        let Some(row) = row else { return 0..0 };
        let start = if row == 0 { 0 } else { end(&self.rows[row as usize - 1]) };
        start as usize..end(&self.rows[row as usize]) as usize
    }
}

/// Put the counts from `start` on in order, each code once.
fn add_up(counts: &mut Vec<Count>, start: usize) {
    if counts.len() - start < 2 {
        return;
    }
    counts[start..].sort_unstable_by_key(|count| count.code);
    let mut last = start;
    for at in start + 1..counts.len() {
        if counts[at].code == counts[last].code {
            counts[last].times += counts[at].times;
        } else {
            last += 1;
            counts[last] = counts[at];
        }
    }
    counts.truncate(last + 1);
}

/// Call `visit` with the counts of two lists in order of code, those of the same code added up.
fn each_together([mut one, mut two]: [&[Count]; 2], mut visit: impl FnMut(Count)) {
    while let ([first, rest @ ..], [second, others @ ..]) = (one, two) {
        match first.code.cmp(&second.code) {
            Ordering::Less => ((), one) = (visit(*first), rest),
            Ordering::Greater => ((), two) = (visit(*second), others),
            Ordering::Equal => {
                visit(Count { times: first.times + second.times, ..*first });
                (one, two) = (rest, others);
            }
        }
    }
    one.iter().chain(two).copied().for_each(visit);
}
