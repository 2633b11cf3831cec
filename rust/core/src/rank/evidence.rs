//! The evidence that any memory answers a query, and its floor.
//!
//! A score orders the memories of one query; whether the best of them is an answer at all is another
//! question. A memory of the time, of the speaker or of the role that the query asks for is enough.
//! Else the strongest cosine and the strongest keyword match of all candidates decide it together:
//! nonsense shares no word with any memory, and its vector is near to some by chance.

use super::bounded_ranking::Uppers;
use super::cosine_scale::CosineScale;
use super::fused_score::{Fused, value};
use super::largest::largest;
use crate::rank::keyword_match::Keywords;
use crate::rank::similarity::Similarity;

/// The cosines from the floor up to 1 that a keyword match of 1 counts as much as.
const KEYWORD_WEIGHT: f64 = 3.2;

/// By so much of the cosines above it the floor is lower for each factor e below [`MANY`] memories:
/// the best of few is less near by chance.
const FEWER: f64 = 0.1;
const MANY: usize = 100;

/// The same for a query in plain words, one with a stop word: among few memories a wrong one costs
/// little, and one left out may be the answer.
const FEWER_IN_PLAIN_WORDS: f64 = 0.2;

/// Least keyword match where keywords are compared alone.
const MIN_KEYWORD: f64 = 0.03;

/// A keyword match that is evidence enough whatever the cosines: memories that are all alike are more
/// like each other than any question. Where no memory has a word of the query, a smaller one counts
/// for nothing: words that mean nothing share a few characters with some word.
const ENOUGH_KEYWORD: f64 = 0.2;

/// Where no memory has a word of the query, nonsense most likely, a learned floor is higher by this
/// share of the cosines above it: it is placed so low for questions that say it in other words.
const WITHOUT_WORDS: f64 = 0.25;

/// Candidates with the largest bounds, which are looked at first.
const FIRST: usize = 32;

/// The evidence that a query needs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EvidenceFloor {
    /// The cosine that is evidence enough without any keyword; `None` where too few memories are
    /// compared to know one.
    pub similarity: Option<f64>,
    /// Whether it is placed on the scale of the memories; a floor that was given is a cosine.
    pub is_learned: bool,
}

/// Whether the candidates of a query, some or all of `count` selected memories, have enough
/// evidence; the scale counts where the floor is learned. After the deadline, the evidence seen by then
/// counts.
pub(crate) fn is_enough(
    fused: &Fused<'_>,
    uppers: &Uppers,
    (floor, scale): (EvidenceFloor, Option<CosineScale>),
    count: usize,
) -> bool {
    if !fused.has_query {
        return true;
    }
    let scale = scale.filter(|_| floor.is_learned);
    let search = Evidence { fused, uppers: &uppers.query };
    if search.has_asked_for() {
        return true;
    }
    let keywords = fused.keywords.as_ref();
    match (fused.query, floor.similarity) {
        (None, _) => has_keyword(keywords, MIN_KEYWORD),
        (Some(_), None) => true,
        (Some(query), Some(floor)) => {
            let is_plain = keywords.is_some_and(Keywords::has_stop_words);
            let is_known = is_plain || keywords.is_some_and(Keywords::has_known_words);
            let fewer = fewer(count, is_plain);
            let is_below = |scale: CosineScale| !search.has_similar(query, scale.lower_limit);
            if is_known && scale.is_some_and(is_below) {
                return true;
            }
            let lacks_words = scale.is_some() && keywords.is_some() && !is_known;
            let step = if lacks_words { WITHOUT_WORDS * (1.0 - floor) } else { 0.0 };
            let floor = floor + step;
            let needed = |keyword: f64| {
                if keyword >= ENOUGH_KEYWORD {
                    return 0.0;
                }
                needed_similarity(floor, if is_known { keyword } else { 0.0 }, fewer)
            };
            search.reaches(query, keywords, needed)
        }
    }
}

/// Whether the nearest of so many memories is near enough, where vectors are compared alone.
pub(crate) fn is_near_enough(nearest: f64, floor: EvidenceFloor, count: usize) -> bool {
    let fewer = fewer(count, false);
    floor.similarity.is_none_or(|floor| nearest >= needed_similarity(floor, 0.0, fewer))
}

/// The cosine that is needed beside a keyword match, less for few memories.
fn needed_similarity(floor: f64, keyword: f64, fewer: f64) -> f64 {
    floor - (1.0 - floor) * (KEYWORD_WEIGHT * keyword + fewer)
}

/// By how much of the cosines above it a floor is lower for so many memories.
pub(crate) fn fewer(count: usize, is_plain: bool) -> f64 {
    let by = if is_plain { FEWER_IN_PLAIN_WORDS } else { FEWER };
    by * (MANY as f64 / count.max(1) as f64).ln().max(0.0)
}

/// Whether a keyword match reaches a floor.
fn has_keyword(keywords: Option<&Keywords<'_>>, floor: f64) -> bool {
    keywords.is_some_and(|keywords| keywords.best_upper() >= floor && keywords.best() >= floor)
}

struct Evidence<'a> {
    fused: &'a Fused<'a>,
    uppers: &'a [f32],
}

impl Evidence<'_> {
    /// Whether the query asks for any memory by its time, its speaker or its role.
    fn has_asked_for(&self) -> bool {
        let Fused { candidates, features, ruled_out, .. } = self.fused;
        let ordinals = 0..candidates.docids.len() as u32;
        features.may_ask_for()
            && ordinals.filter(|at| !value(ruled_out, *at)).any(|at| self.fused.is_asked_for(at))
    }

    /// Whether a memory is as similar as is needed beside the best keyword match.
    fn reaches(
        &self,
        query: &Similarity<'_>,
        keywords: Option<&Keywords<'_>>,
        needed: impl Fn(f64) -> f64,
    ) -> bool {
        let keyword_upper = keywords.map_or(0.0, Keywords::best_upper);
        if !self.has_similar(query, needed(keyword_upper)) {
            return false;
        }
        let Some(keywords) = keywords else { return true };
        let needed_at_last = needed(keywords.best());
        needed_at_last <= needed(keyword_upper) || self.has_similar(query, needed_at_last)
    }

    /// Whether a memory is at least so similar. One without a vector is as similar as any other text.
    fn has_similar(&self, query: &Similarity<'_>, needed: f64) -> bool {
        if needed <= 0.0 {
            return true;
        }
        let uppers: Vec<f64> = self.uppers.iter().copied().map(f64::from).collect();
        let reaches = |at: u32| {
            let docid = self.fused.candidates.docids[at as usize];
            !value(&self.fused.ruled_out, at)
                && uppers[at as usize] >= needed
                && query.upper(docid) >= needed
                && query.exact(docid) >= needed
        };
        largest(&uppers, FIRST).into_iter().any(reaches) || (0..uppers.len() as u32).any(reaches)
    }
}
