//! The number of trigrams that a text shares with each of many.

use super::trigrams::Trigrams;

/// Texts in a word of a bitmap.
const WORD: usize = u64::BITS as usize;

/// The texts that have a trigram.
#[derive(Clone, Copy)]
enum Texts {
    /// One text, so none that could share it.
    Single,
    /// A list: `length` places from `start` on.
    Few { start: u32, length: u32 },
    /// A bitmap: the row of this number.
    Many { row: u32 },
}

/// Counts the trigrams that a text shares with each kept one, all at once.
///
/// A trigram of few texts has a list of them. One of many has a bitmap, and bitmaps are added up bit
/// by bit: each counter is spread over the bits of one place in several planes, so one operation
/// counts for 64 texts (carry-save adders, as Harley and Seal count bits). A trigram therefore costs
/// as many operations as there are 64 texts, however many share it.
pub(super) struct Overlaps {
    texts: Vec<Texts>,
    lists: Vec<u32>,
    rows: Vec<u64>,
    words: usize,
    kept: usize,
    counts: Vec<u32>,
    planes: Planes,
}

impl Overlaps {
    pub(super) fn new(trigrams: &Trigrams) -> Self {
        let words = trigrams.len().div_ceil(WORD);
        let (mut listed, mut rows) = (0, 0);
        let place = |&frequency: &u32| match frequency {
            ..=1 => Texts::Single,
            few if few as usize <= words => {
                listed += few;
                Texts::Few { start: listed - few, length: 0 }
            }
            _ => {
                rows += 1;
                Texts::Many { row: rows - 1 }
            }
        };
        let texts = trigrams.frequencies.iter().map(place).collect();
        Self {
            texts,
            lists: vec![0; listed as usize],
            rows: vec![0; rows as usize * words],
            words,
            kept: 0,
            counts: vec![0; words * WORD],
            planes: Planes { words, levels: Vec::new(), carry: vec![0; words] },
        }
    }

    /// Begin with the next text.
    pub(super) fn start(&mut self) {
        self.counts.fill(0);
    }

    /// Count some of its trigrams, each given once.
    pub(super) fn count(&mut self, trigrams: &[u32]) {
        for &trigram in trigrams {
            match self.texts[trigram as usize] {
                Texts::Single => {}
                Texts::Few { start, length } => {
                    for &text in &self.lists[start as usize..(start + length) as usize] {
                        self.counts[text as usize] += 1;
                    }
                }
                Texts::Many { row } => {
                    let start = row as usize * self.words;
                    self.planes.add(&self.rows[start..start + self.words]);
                }
            }
        }
        self.planes.drain_to(&mut self.counts);
    }

    /// The number counted for each kept text.
    pub(super) fn shared(&self) -> &[u32] {
        &self.counts[..self.kept]
    }

    /// Keep the text, to be compared with those to come.
    pub(super) fn keep(&mut self, trigrams: &[u32]) {
        let text = self.kept;
        for &trigram in trigrams {
            match &mut self.texts[trigram as usize] {
                Texts::Single => {}
                Texts::Few { start, length } => {
                    self.lists[(*start + *length) as usize] = text as u32;
                    *length += 1;
                }
                Texts::Many { row } => {
                    self.rows[*row as usize * self.words + text / WORD] |= 1 << (text % WORD);
                }
            }
        }
        self.kept += 1;
    }
}

/// Counters of many texts: bit `l` of each stands in level `l`.
struct Planes {
    words: usize,
    levels: Vec<Level>,
    carry: Vec<u64>,
}

/// One bit of each counter, and a bit more of the same weight that waits for a third.
struct Level {
    bits: Vec<u64>,
    waiting: Vec<u64>,
    waits: bool,
}

impl Planes {
    /// Count 1 for each bit of a row.
    fn add(&mut self, row: &[u64]) {
        self.carry.copy_from_slice(row);
        for at in 0.. {
            if at == self.levels.len() {
                self.add_level();
            }
            if !self.levels[at].absorb(&mut self.carry) {
                break;
            }
        }
    }

    /// Move the counts to `counts`.
    fn drain_to(&mut self, counts: &mut [u32]) {
        self.settle();
        for (word, counts) in counts.chunks_exact_mut(WORD).enumerate() {
            for (part, counts) in counts.chunks_exact_mut(8).enumerate() {
                self.add_counts(word, 8 * part, counts);
            }
        }
        for level in &mut self.levels {
            level.bits.fill(0);
        }
    }

    /// Add the counts of eight texts, whose bits begin at `shift` in a word: first in the bytes of
    /// one number for eight levels each.
    fn add_counts(&self, word: usize, shift: usize, counts: &mut [u32]) {
        for (at, levels) in self.levels.chunks(8).enumerate() {
            let eight = |level: &Level| (level.bits[word] >> shift) as u8;
            let spread =
                |(weight, level): (usize, &Level)| SPREAD[usize::from(eight(level))] << weight;
            let sums: u64 = levels.iter().enumerate().map(spread).sum();
            for (count, sum) in counts.iter_mut().zip(sums.to_le_bytes()) {
                *count += u32::from(sum) << (8 * at);
            }
        }
    }

    /// Take in the bits that wait for a third.
    fn settle(&mut self) {
        self.carry.fill(0);
        for at in 0.. {
            if at == self.levels.len() {
                if self.carry.iter().all(|&bits| bits == 0) {
                    break;
                }
                self.add_level();
            }
            self.levels[at].settle(&mut self.carry);
        }
    }

    fn add_level(&mut self) {
        let (bits, waiting) = (vec![0; self.words], vec![0; self.words]);
        self.levels.push(Level { bits, waiting, waits: false });
    }
}

impl Level {
    /// Take a carry in; if there are three bits of this weight then, put the next carry in its
    /// place and return true.
    fn absorb(&mut self, carry: &mut Vec<u64>) -> bool {
        self.waits = !self.waits;
        if self.waits {
            std::mem::swap(&mut self.waiting, carry);
            return false;
        }
        self.add(carry);
        true
    }

    /// Take in a carry and the waiting bits, and put the next carry in its place.
    fn settle(&mut self, carry: &mut [u64]) {
        if !std::mem::take(&mut self.waits) {
            self.waiting.fill(0);
        }
        self.add(carry);
    }

    /// A full adder for each bit.
    fn add(&mut self, carry: &mut [u64]) {
        for ((bits, waiting), carry) in self.bits.iter_mut().zip(&self.waiting).zip(carry) {
            let odd = *bits ^ waiting;
            let next = (*bits & waiting) | (odd & *carry);
            *bits = odd ^ *carry;
            *carry = next;
        }
    }
}

/// The bits of a byte, each in a byte of its own.
const SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
};
