//! The keyword match of every memory in play: bounded at once, exact where it matters.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use crate::lexical::{Carried, Collection, Fields, Lexical, Light, Options, Query, Scores, Turn};
use crate::rank::candidates::{NONE, Play};
use crate::rank::scoring_config::KeywordFields;

/// A first look passes over the words that weigh least, up to this share of the weight of all: the
/// stop words. Their lists are the longest by far. With .05 to .1, six of ten queries over 100,000
/// memories were done with the first look, with .2 three: bounds were too loose.
const LIGHT_SHARE: f32 = 0.08;

/// Where one memory in so many may be looked at, all are completed at once: a list of theirs is
/// read in the time of so many single memories.
const FEW_SHARE: usize = 100;

/// A first look is worth it with so many memories in play for each that is scored in any case.
const MANY_FOR_ONE: usize = 512;

/// How the first look at keywords is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstLook {
    /// Words that weigh least are passed over up to this share of the weight of all.
    pub(crate) light_share: f32,
    /// Matches of up to so many memories are computed one by one.
    pub(crate) few: usize,
}

impl FirstLook {
    /// No word is passed over.
    pub(crate) const WHOLE: Self = Self { light_share: 0.0, few: 0 };

    /// That for so many memories in play, of which some are scored in any case.
    pub(crate) fn at(in_play: usize, scored: usize) -> Self {
        if in_play < scored.saturating_mul(MANY_FOR_ONE) {
            return Self::WHOLE;
        }
        Self { light_share: LIGHT_SHARE, few: in_play / FEW_SHARE }
    }
}

/// Keyword matches from 0 to 1, by ordinal.
pub(crate) struct Keywords<'a> {
    play: &'a Play<'a>,
    lexical: &'a Lexical,
    fields: &'a KeywordFields,
    query: Query,
    /// The next turns of the memories in play; empty where nothing is carried over.
    next: Vec<u32>,
    /// What the first look passed over, and up to how many memories are computed one by one.
    light: Light,
    few: usize,
    scores: RefCell<Scores>,
    uppers: Vec<f32>,
    /// The exact matches of all memories, once they are computed.
    all: OnceCell<Vec<f32>>,
    some: RefCell<HashMap<u32, f32>>,
}

impl<'a> Keywords<'a> {
    /// Look for the words of a text, weighed by the statistics of a collection; `next` are the next
    /// turns of the memories in play, or nothing.
    pub(crate) fn new(
        play: &'a Play<'a>,
        (lexical, collection): (&'a Lexical, Collection),
        fields: &'a KeywordFields,
        text: &str,
        next: Vec<u32>,
        look: FirstLook,
    ) -> Self {
        let query = lexical.query(text, collection, &options(fields));
        let light = light(&query, fields, look.light_share);
        let mut keywords = Self {
            play,
            lexical,
            fields,
            query,
            next,
            light,
            few: look.few,
            scores: RefCell::default(),
            uppers: Vec::new(),
            all: OnceCell::new(),
            some: RefCell::default(),
        };
        let uppers = keywords.computed(Lexical::bounds);
        if light.is_any() {
            keywords.uppers = uppers;
        } else {
            keywords.all = uppers.into();
        }
        keywords
    }

    /// An upper bound of each match.
    pub(crate) fn uppers(&self) -> &[f32] {
        self.all.get().unwrap_or(&self.uppers)
    }

    /// Whether the upper bounds are not yet the matches themselves.
    pub(crate) fn are_bounds(&self) -> bool {
        self.all.get().is_none()
    }

    /// Whether so many matches are sooner computed with all others than one by one.
    pub(crate) fn are_many(&self, looks: usize) -> bool {
        looks > self.few
    }

    /// Make the upper bounds the matches themselves.
    pub(crate) fn complete(&self) {
        self.all.get_or_init(|| self.computed(Lexical::complete));
    }

    /// The match of one memory.
    pub(crate) fn of(&self, at: u32) -> f32 {
        match self.all.get() {
            Some(all) => all[at as usize],
            None => *self.some.borrow_mut().entry(at).or_insert_with(|| self.look_up(at)),
        }
    }

    fn computed(
        &self,
        score: impl Fn(&Lexical, &Query, Light, &[u32], Option<&Carried<'_>>, &mut Scores),
    ) -> Vec<f32> {
        let (first, second) = self.counts();
        let carried = Carried { next: &self.next, first, second };
        let carried = self.carries().then_some(&carried);
        let scores = &mut *self.scores.borrow_mut();
        score(self.lexical, &self.query, self.light, &self.play.slots, carried, scores);
        self.matches([&scores.words, &scores.grams, &scores.pairs], self.play.slots.len())
    }

    /// What a word counts in the next turn, and in the one after.
    fn counts(&self) -> (f32, f32) {
        (self.fields.previous as f32, self.fields.second as f32)
    }

    fn carries(&self) -> bool {
        let (first, second) = self.counts();
        first + second > 0.0 && !self.next.is_empty()
    }

    /// The match of one memory from its text and those of the turns before.
    fn look_up(&self, at: u32) -> f32 {
        let mut turns = [(at, 1.0), (NONE, 0.0), (NONE, 0.0)];
        if self.carries() {
            let (first, second) = self.counts();
            let before = self.play.previous(at);
            turns[1..].copy_from_slice(&[(before, first), (self.play.previous(before), second)]);
        }
        let turn = |(at, counts): (u32, f32)| {
            self.play.slots.get(at as usize).map(|slot| Turn { slot: *slot, counts })
        };
        let score = self.lexical.score_of(&self.query, turns.into_iter().filter_map(turn));
        self.matches([&[score], &[], &[]], 1)[0]
    }

    /// The mean of fields by their shares, each divided by the most that it can be, and sharpened.
    fn matches(&self, scores: [&[f32]; 3], len: usize) -> Vec<f32> {
        let (fields, most) = (self.fields, self.query.most());
        let shares = [fields.words as f32, fields.grams as f32, fields.pairs as f32];
        let total: f32 = shares.iter().sum();
        let mut matches = vec![0.0; len];
        for ((share, scores), most) in
            shares.into_iter().zip(scores).zip([most.words, most.grams, most.pairs])
        {
            if share > 0.0 && most > 0.0 {
                for (sum, score) in matches.iter_mut().zip(scores) {
                    *sum += share / total * (score / most).min(1.0);
                }
            }
        }
        sharpen(&mut matches, fields.sharpness as f32);
        matches
    }
}

/// Words that a first look may pass over. A match must grow with its score for that; roots and
/// products are rounded so that they do, any other power may not be.
fn light(query: &Query, fields: &KeywordFields, share: f32) -> Light {
    if is_monotone(fields.sharpness as f32) { query.light(share) } else { Light::NONE }
}

fn options(fields: &KeywordFields) -> Options {
    Options {
        fields: Fields {
            words: fields.words > 0.0,
            grams: fields.grams > 0.0,
            pairs: fields.pairs > 0.0,
        },
        stop_words: fields.stop_words as f32,
        common: fields.common as f32,
        near: fields.near as f32,
        ..Options::default()
    }
}

/// Raise to a power; that of the presets by a square root, which every machine rounds alike.
#[expect(clippy::float_cmp, reason = "only exactly these powers have a shorter way")]
fn sharpen(matches: &mut [f32], sharpness: f32) {
    if sharpness == 1.5 {
        for sum in matches {
            *sum *= sum.sqrt();
        }
    } else if sharpness != 1.0 {
        for sum in matches {
            *sum = sum.powf(sharpness);
        }
    }
}

#[expect(clippy::float_cmp, reason = "only exactly these powers have a shorter way")]
fn is_monotone(sharpness: f32) -> bool {
    sharpness == 1.5 || sharpness == 1.0
}
