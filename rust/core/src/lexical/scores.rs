//! Scores of the memories in play.

use std::ops::Range;

use super::Lexical;
use super::block::BLOCK_SLOTS;
use super::query::Query;

/// Marks a memory without a previous turn.
const NONE: u32 = u32::MAX;

/// Scores by field, each as long as the memories in play, or empty if the field was not asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldScores {
    /// BM25 of the query's words.
    pub words: Vec<f32>,
    /// BM25 of the terms that share grams with the query's words, weighted by those grams.
    pub grams: Vec<f32>,
    /// BM25 of adjacent pairs of words.
    pub pairs: Vec<f32>,
}

/// Scores of one query, and room to work in: use it again to save the allocations.
#[derive(Default)]
pub struct Scores {
    /// Of each memory's own text.
    pub own: FieldScores,
    /// Of each memory's previous turn and its own text as one; empty without previous turns.
    pub window: FieldScores,
    found: Found,
    counts: Counts,
}

/// What was found of the query in each memory in play.
#[derive(Default)]
struct Found {
    /// Term codes with their number, of one memory after another, in order of first appearance.
    terms: Vec<Count>,
    pairs: Vec<Count>,
    rows: Vec<Row>,
}

/// How often something occurs.
#[derive(Debug, Clone, Copy)]
struct Count {
    code: u32,
    times: u32,
}

impl Count {
    /// tf / (tf + norm)
    fn share(self, norm: f32) -> f32 {
        let times = self.times as f32;
        times / (times + norm)
    }
}

/// Where the findings of a memory end, and its length in tokens.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    terms_end: u32,
    pairs_end: u32,
    tokens: u32,
}

/// Counts by code, and which codes have any, in order of first appearance.
#[derive(Default)]
struct Counts {
    times: Vec<u32>,
    order: Vec<u32>,
}

impl Counts {
    fn add(&mut self, code: u32, times: u32) {
        let count = &mut self.times[code as usize];
        if *count == 0 {
            self.order.push(code);
        }
        *count += times;
    }

    /// Call `visit` with the counts of two lists added up.
    fn each_together(&mut self, lists: [&[Count]; 2], visit: impl FnMut(Count)) {
        match lists {
            [[], one] | [one, []] => one.iter().copied().for_each(visit),
            lists => {
                lists.into_iter().flatten().for_each(|count| self.add(count.code, count.times));
                self.take().for_each(visit);
            }
        }
    }

    fn take(&mut self) -> impl Iterator<Item = Count> {
        let Self { times, order } = self;
        order.drain(..).map(|code| Count { code, times: std::mem::take(&mut times[code as usize]) })
    }

    fn reserve(&mut self, codes: usize) {
        self.times.resize(self.times.len().max(codes), 0);
    }
}

impl Found {
    fn clear(&mut self) {
        self.terms.clear();
        self.pairs.clear();
        self.rows.clear();
    }

    /// Count what the next memory has of the query.
    fn search(&mut self, query: &Query, terms: &[u32], counts: &mut Counts) {
        let is_word = |code: u32| code != 0 && code <= query.words;
        let mut adjacent = 0;
        let mut words = 0;
        for &term in terms {
            let code = query.code(term);
            if code != 0 {
                counts.add(code, 1);
            }
            words += u32::from(is_word(code) && is_word(adjacent));
            adjacent = code;
        }
        self.terms.extend(counts.take());
        if words > 0 && !query.pairs.is_empty() {
            self.search_pairs(query, terms, counts);
        }
        self.rows.push(Row {
            terms_end: self.terms.len() as u32,
            pairs_end: self.pairs.len() as u32,
            tokens: terms.len() as u32,
        });
    }

    fn search_pairs(&mut self, query: &Query, terms: &[u32], counts: &mut Counts) {
        for pair in terms.windows(2) {
            if let Some(pair) = query.pair([query.code(pair[0]), query.code(pair[1])]) {
                counts.add(pair, 1);
            }
        }
        self.pairs.extend(counts.take());
    }

    fn row(&self, place: u32) -> Option<&Row> {
        self.rows.get(place as usize)
    }

    fn terms(&self, place: u32) -> &[Count] {
        &self.terms[self.range(place, |row| row.terms_end)]
    }

    fn pairs(&self, place: u32) -> &[Count] {
        &self.pairs[self.range(place, |row| row.pairs_end)]
    }

    fn range(&self, place: u32, end: impl Fn(&Row) -> u32) -> Range<usize> {
        let Some(row) = self.row(place) else { return 0..0 };
        let start = place.checked_sub(1).and_then(|before| self.row(before)).map_or(0, &end);
        start as usize..end(row) as usize
    }

    fn tokens(&self, place: u32) -> u32 {
        self.row(place).map_or(0, |row| row.tokens)
    }
}

impl FieldScores {
    fn reset(&mut self, query: &Query, len: usize) {
        let fields = query.fields;
        let asked = [
            (&mut self.words, fields.words),
            (&mut self.grams, fields.grams),
            (&mut self.pairs, fields.pairs),
        ];
        for (scores, is_asked) in asked {
            scores.clear();
            scores.resize(if is_asked { len } else { 0 }, 0.0);
        }
    }
}

impl Lexical {
    /// Score the memories in `slots` by every field of `query`, which this state has made.
    ///
    /// `previous` holds for each of them the place in `slots` of the previous turn of its session,
    /// or [`u32::MAX`]; with it the two texts are also scored as one: counts and lengths added up,
    /// pairs within each. A vacant or unknown slot scores 0. The scores of a memory do not depend
    /// on which others are in play.
    pub fn scores(
        &self,
        query: &Query,
        slots: &[u32],
        previous: Option<&[u32]>,
        scores: &mut Scores,
    ) {
        scores.counts.reserve(query.worths.len().max(query.pairs.len()));
        scores.found.clear();
        for &slot in slots {
            scores.found.search(query, self.terms(slot), &mut scores.counts);
        }
        scores.own.reset(query, slots.len());
        scores.window.reset(query, previous.map_or(0, <[u32]>::len));
        let Scores { own, window, found, counts } = scores;
        for place in 0..slots.len() as u32 {
            score(query, found, counts, [NONE, place], own);
        }
        for (place, &before) in (0..).zip(previous.unwrap_or_default()) {
            score(query, found, counts, [before, place], window);
        }
    }

    fn terms(&self, slot: u32) -> &[u32] {
        let block = self.blocks.get(slot as usize / BLOCK_SLOTS);
        block.map_or(&[], |block| block.terms(slot as usize % BLOCK_SLOTS))
    }
}

/// Score the last of `places` by the texts at both as one.
fn score(
    query: &Query,
    found: &Found,
    counts: &mut Counts,
    places: [u32; 2],
    scores: &mut FieldScores,
) {
    let norm = query.saturation.norm(places.iter().map(|&place| found.tokens(place)).sum());
    let row = places[1] as usize;
    let (mut words, mut grams, mut pairs) = (Sum::default(), Sum::default(), Sum::default());
    counts.each_together(places.map(|place| found.terms(place)), |count| {
        let worth = query.worths[count.code as usize];
        let share = count.share(norm);
        words.add(worth.word * share);
        grams.add(worth.gram * share);
    });
    counts.each_together(places.map(|place| found.pairs(place)), |count| {
        pairs.add(query.pairs[count.code as usize].weight * count.share(norm));
    });
    let sums = [(&mut scores.words, words), (&mut scores.grams, grams), (&mut scores.pairs, pairs)];
    for (scores, sum) in sums {
        if let Some(score) = scores.get_mut(row) {
            *score = sum.value();
        }
    }
}

/// A sum that is the same in every order: what is added is rounded to a multiple of 2⁻²⁴ first, and
/// float64 adds such numbers without error as long as their sum stays under 2²⁹.
#[derive(Clone, Copy, Default)]
struct Sum(f64);

impl Sum {
    /// Adding and taking away this much leaves no bits below 2⁻²⁴.
    const ROUNDING: f64 = 1.5 * (1_u64 << 28) as f64;

    fn add(&mut self, value: f32) {
        self.0 += (f64::from(value) + Self::ROUNDING) - Self::ROUNDING;
    }

    fn value(self) -> f32 {
        self.0 as f32
    }
}
