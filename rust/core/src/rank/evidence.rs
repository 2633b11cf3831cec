//! The evidence that any memory answers a query, and its floor.
//!
//! A score orders the memories of one query; whether the best of them is an answer at all is another
//! question. A memory of the time, of the speaker or of the role that the query asks for is enough.
//! Else the strongest cosine and the strongest keyword match of all candidates decide it together:
//! nonsense shares no word with any memory, and its vector is near to some by chance.

use super::bounded_ranking::Uppers;
use super::fused_score::{Fused, value};
use super::largest::largest;
use crate::rank::keyword_match::Keywords;
use crate::rank::similarity::Similarity;
use crate::search::docid_set::DocidSet;

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

/// Without a floor for cosines: least keyword match beside them, or how many standard deviations the
/// nearest is above the mean of the other memories.
const MIN_KEYWORD_BESIDE: f64 = 0.025;
const MIN_DEVIATIONS: f64 = 5.0;

/// Memories whose cosines are read for the mean, about.
const SAMPLE: usize = 512;

/// Fewer memories than these have no distribution to stand out of.
const MIN_SAMPLE: usize = 3;

/// Candidates with the largest bounds, which are looked at first.
const FIRST: usize = 32;

/// The evidence that a query needs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EvidenceFloor {
    /// The cosine that is evidence enough without any keyword; `None` for vectors without such a
    /// floor, of which the nearest has to stand out.
    pub similarity: Option<f64>,
}

/// Whether the candidates of a query, which are some of the selection or all of it, have enough
/// evidence. After the deadline, the evidence seen by then counts.
pub(crate) fn is_enough(
    fused: &Fused<'_>,
    uppers: &Uppers,
    floor: EvidenceFloor,
    selection: &DocidSet,
) -> bool {
    if !fused.has_query {
        return true;
    }
    let (search, count) = (Evidence { fused, uppers: &uppers.query, selection }, selection.len());
    if search.has_asked_for() {
        return true;
    }
    let is_plain = || fused.keywords.as_ref().is_some_and(Keywords::has_stop_words);
    match (fused.query, &fused.keywords, floor.similarity) {
        (None, keywords, _) => has_keyword(keywords.as_ref(), MIN_KEYWORD),
        (Some(query), keywords, Some(floor)) => {
            let fewer = fewer(count, is_plain());
            let needed = |keyword| needed_similarity(floor, keyword, fewer);
            search.reaches(query, keywords.as_ref(), needed)
        }
        (Some(_), None, None) => true,
        (Some(query), Some(keywords), None) => {
            count < MANY && is_plain()
                || has_keyword(Some(keywords), MIN_KEYWORD_BESIDE)
                || search.stands_out(query)
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

/// By how much of the cosines above it the floor is lower for so many memories.
fn fewer(count: usize, is_plain: bool) -> f64 {
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
    selection: &'a DocidSet,
}

impl Evidence<'_> {
    /// Whether the query asks for any memory by its time, its speaker or its role.
    fn has_asked_for(&self) -> bool {
        let Fused { candidates, query_features, ruled_out, .. } = self.fused;
        let ordinals = 0..candidates.docids.len() as u32;
        query_features.may_ask_for()
            && ordinals
                .filter(|at| !value(ruled_out, *at))
                .any(|at| candidates.is_asked_for(query_features, at))
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

    /// Whether the most similar memory is far above the mean of the others.
    fn stands_out(&self, query: &Similarity<'_>) -> bool {
        let columns = self.fused.candidates.columns;
        let stride = (self.selection.len() / SAMPLE).max(1) as u64;
        let is_sampled = |docid: &u32| hash(columns.tie_of(*docid).id).is_multiple_of(stride);
        let sampled = self.selection.iter().filter(is_sampled).map(|docid| query.exact(docid));
        let mut cosines: Vec<f64> = sampled.filter(|cosine| cosine.is_finite()).collect();
        // In one order whatever that of the candidates, so that the sum is the same to the last bit.
        cosines.sort_unstable_by(f64::total_cmp);
        let Some(nearest) = cosines.pop().filter(|_| cosines.len() + 1 >= MIN_SAMPLE) else {
            return true;
        };
        let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
        let square = |cosine: &f64| (cosine - mean) * (cosine - mean);
        let deviation = (cosines.iter().map(square).sum::<f64>() / cosines.len() as f64).sqrt();
        let needed = mean + MIN_DEVIATIONS * deviation;
        let others = stride > 1 && (0.0..1.0).contains(&needed);
        nearest > needed || others && self.has_similar(query, needed)
    }
}

/// FNV-1a of an id: which memories are sampled depends on nothing else.
fn hash(id: [u8; 16]) -> u64 {
    id.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
