//! The sets of three consecutive characters of texts.

use std::collections::HashMap;

use super::super::hashing::Keyed;

/// Stands where a text of fewer than three characters has none; no character has this number.
const NONE: u64 = 0x1f_ffff;

/// Bits of a character's number.
const CHARACTER: u32 = 21;

/// The trigrams of each text, as numbers from 0.
pub(super) struct Trigrams {
    /// The trigrams of all texts, each once a text.
    numbers: Vec<u32>,
    /// The end of each text's part of them.
    ends: Vec<usize>,
    /// The number of texts with each trigram.
    pub(super) frequencies: Vec<u32>,
}

/// The trigrams of a text, so many of the rarest first that texts without them can be left out.
pub(super) struct RarestFirst<'a> {
    /// All of them.
    pub(super) all: &'a [u32],
    /// The number of the rarest.
    pub(super) rarest: usize,
    /// The number of the rarest that every near text shares.
    pub(super) required: usize,
}

impl Trigrams {
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self { numbers: Vec::new(), ends: Vec::new(), frequencies: Vec::new() };
        let mut known = HashMap::with_hasher(Keyed::default());
        let mut last_texts: Vec<u32> = Vec::new();
        for (at, text) in (1..).zip(texts) {
            for_each_trigram(text, |trigram| {
                let next = last_texts.len() as u32;
                let number = *known.entry(trigram).or_insert(next);
                if number == next {
                    last_texts.push(0);
                    found.frequencies.push(0);
                }
                if std::mem::replace(&mut last_texts[number as usize], at) != at {
                    found.numbers.push(number);
                    found.frequencies[number as usize] += 1;
                }
            });
            found.ends.push(found.numbers.len());
        }
        found
    }

    /// The number of texts.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The trigrams of a text, the rarest in front; `near` is the least similarity of interest.
    pub(super) fn rarest_first(&mut self, text: usize, near: f64) -> RarestFirst<'_> {
        let start = if text == 0 { 0 } else { self.ends[text - 1] };
        let all = &mut self.numbers[start..self.ends[text]];
        #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
        let missing = all.len() - (near * all.len() as f64).ceil() as usize;
        let rarest = (2 * missing + 1).min(all.len());
        if rarest < all.len() {
            let frequencies = &self.frequencies;
            all.select_nth_unstable_by_key(rarest, |&number| frequencies[number as usize]);
        }
        RarestFirst { all, rarest, required: rarest - missing.min(rarest) }
    }
}

fn for_each_trigram(text: &str, mut work: impl FnMut(u64)) {
    let mut characters = text.chars().map(u64::from);
    let mut next = || characters.next();
    let first = next().unwrap_or(NONE);
    let second = next().unwrap_or(NONE);
    let third = next().unwrap_or(NONE);
    let mut trigram = (first << CHARACTER | second) << CHARACTER | third;
    work(trigram);
    while let Some(character) = next() {
        trigram = (trigram << CHARACTER | character) & ((1 << (3 * CHARACTER)) - 1);
        work(trigram);
    }
}
