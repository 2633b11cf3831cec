//! Scores of the memories in play.

use std::ops::Range;

use super::Lexical;
use super::block::BLOCK_SLOTS;
use super::query::Query;

/// Marks a memory without a previous turn.
const NONE: u32 = u32::MAX;

/// What is said one and two turns before, in the same session, counts for a turn too.
#[derive(Debug, Clone, Copy)]
pub struct Earlier<'a> {
    /// For each memory in play the place of its previous turn among them, or [`u32::MAX`].
    pub previous: &'a [u32],
    /// What a word of the previous turn counts, from 0 to 1.
    pub first: f32,
    /// What a word of the turn before that counts.
    pub second: f32,
}

/// Scores by field, each as long as the memories in play, or empty if the field was not asked for;
/// and room to work in: use it again to save the allocations.
#[derive(Default)]
pub struct Scores {
    /// BM25 of the query's words.
    pub words: Vec<f32>,
    /// BM25 of the terms that share grams with the query's words, weighted by those grams.
    pub grams: Vec<f32>,
    /// BM25 of adjacent pairs of words.
    pub pairs: Vec<f32>,
    found: Found,
    counts: Counts,
    best: Best,
}

/// What was found of the query in each memory in play.
#[derive(Default)]
struct Found {
    /// Term codes of one memory after another, in order of first appearance.
    terms: Vec<Share>,
    pairs: Vec<Share>,
    rows: Vec<Row>,
}

/// How much of a term's worth a memory has.
#[derive(Debug, Clone, Copy)]
struct Share {
    code: u32,
    /// tf / (tf + norm)
    share: f32,
}

/// Where the findings of a memory end.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    terms_end: u32,
    pairs_end: u32,
}

/// Counts by code, and which codes have any, in order of first appearance.
#[derive(Default)]
struct Counts {
    times: Vec<u32>,
    order: Vec<u32>,
}

impl Counts {
    fn add(&mut self, code: u32) {
        let count = &mut self.times[code as usize];
        if *count == 0 {
            self.order.push(code);
        }
        *count += 1;
    }

    /// The shares of what was counted, in a memory of this norm.
    fn take(&mut self, norm: f32) -> impl Iterator<Item = Share> {
        let Self { times, order } = self;
        order.drain(..).map(move |code| {
            let times = std::mem::take(&mut times[code as usize]) as f32;
            Share { code, share: times / (times + norm) }
        })
    }
}

/// The largest share by code, and which codes have any, in order of first appearance.
#[derive(Default)]
struct Best {
    shares: Vec<f32>,
    order: Vec<u32>,
}

impl Best {
    fn offer(&mut self, found: &[Share], factor: f32) {
        for found in found {
            let known = &mut self.shares[found.code as usize];
            if *known == 0.0 {
                self.order.push(found.code);
            }
            *known = known.max(factor * found.share);
        }
    }

    fn take(&mut self) -> impl Iterator<Item = Share> {
        let Self { shares, order } = self;
        order.drain(..).map(|code| Share { code, share: std::mem::take(&mut shares[code as usize]) })
    }
}

impl Found {
    fn clear(&mut self) {
        self.terms.clear();
        self.pairs.clear();
        self.rows.clear();
    }

    /// Find what the next memory has of the query.
    fn search(&mut self, query: &Query, terms: &[u32], counts: &mut Counts) {
        let is_word = |code: u32| code != 0 && code <= query.words;
        let norm = query.saturation.norm(terms.len() as u32);
        let mut adjacent = 0;
        let mut words = 0;
        for &term in terms {
            let code = query.code(term);
            if code != 0 {
                counts.add(code);
            }
            words += u32::from(is_word(code) && is_word(adjacent));
            adjacent = code;
        }
        self.terms.extend(counts.take(norm));
        if words > 0 && !query.pairs.is_empty() {
            for pair in terms.windows(2) {
                if let Some(pair) = query.pair([query.code(pair[0]), query.code(pair[1])]) {
                    counts.add(pair);
                }
            }
            self.pairs.extend(counts.take(norm));
        }
        self.rows.push(Row {
            terms_end: self.terms.len() as u32,
            pairs_end: self.pairs.len() as u32,
        });
    }

    fn terms(&self, place: u32) -> &[Share] {
        &self.terms[self.range(place, |row| row.terms_end)]
    }

    fn pairs(&self, place: u32) -> &[Share] {
        &self.pairs[self.range(place, |row| row.pairs_end)]
    }

    fn range(&self, place: u32, end: impl Fn(&Row) -> u32) -> Range<usize> {
        let Some(row) = self.rows.get(place as usize) else { return 0..0 };
        let before = place.checked_sub(1).and_then(|before| self.rows.get(before as usize));
        before.map_or(0, &end) as usize..end(row) as usize
    }
}

impl Lexical {
    /// Score the memories in `slots` by every field of `query`, which this state has made.
    ///
    /// Of each word or term counts the most that the memory itself or, discounted, one of the
    /// `earlier` turns has of it. A vacant or unknown slot scores 0. The scores of a memory do not
    /// depend on which others are in play, but for its earlier turns.
    pub fn scores(
        &self,
        query: &Query,
        slots: &[u32],
        earlier: Option<&Earlier<'_>>,
        scores: &mut Scores,
    ) {
        let Scores { words, grams, pairs, found, counts, best } = scores;
        let codes = query.worths.len().max(query.pairs.len());
        counts.times.resize(counts.times.len().max(codes), 0);
        best.shares.resize(best.shares.len().max(codes), 0.0);
        found.clear();
        for &slot in slots {
            found.search(query, self.terms(slot), counts);
        }
        let fields = query.fields;
        reset(words, fields.words, slots.len());
        reset(grams, fields.grams, slots.len());
        reset(pairs, fields.pairs, slots.len());
        for place in 0..slots.len() as u32 {
            let (mut word, mut gram) = (Sum::default(), Sum::default());
            let mut add = |found: Share| {
                let worth = query.worths[found.code as usize];
                word.add(worth.word * found.share);
                gram.add(worth.gram * found.share);
            };
            let own = found.terms(place);
            let [first, second] = earlier.map_or([&[][..]; 2], |earlier| earlier.terms(found, place));
            if first.is_empty() && second.is_empty() {
                own.iter().copied().for_each(add);
            } else if let Some(earlier) = earlier {
                best.offer(own, 1.0);
                best.offer(first, earlier.first);
                best.offer(second, earlier.second);
                best.take().for_each(&mut add);
            }
            set(words, place, word);
            set(grams, place, gram);
        }
        if fields.pairs {
            for place in 0..slots.len() as u32 {
                let mut sum = Sum::default();
                for pair in found.pairs(place) {
                    sum.add(query.pairs[pair.code as usize].weight * pair.share);
                }
                set(pairs, place, sum);
            }
        }
    }

    fn terms(&self, slot: u32) -> &[u32] {
        let block = self.blocks.get(slot as usize / BLOCK_SLOTS);
        block.map_or(&[], |block| block.terms(slot as usize % BLOCK_SLOTS))
    }
}

impl Earlier<'_> {
    /// What was found in the two turns before.
    fn terms<'found>(&self, found: &'found Found, place: u32) -> [&'found [Share]; 2] {
        let before = |place: u32| self.previous.get(place as usize).copied().unwrap_or(NONE);
        let first = before(place);
        [found.terms(first), found.terms(before(first))]
    }
}

fn reset(scores: &mut Vec<f32>, is_asked: bool, len: usize) {
    scores.clear();
    scores.resize(if is_asked { len } else { 0 }, 0.0);
}

fn set(scores: &mut [f32], place: u32, sum: Sum) {
    if let Some(score) = scores.get_mut(place as usize) {
        *score = sum.value();
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
