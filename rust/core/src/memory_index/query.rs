//! One request to one snapshot.

use std::sync::Arc;

use crate::columns::Columns;
use crate::ids::slot_of;
use crate::memory::speakers::Named;
use crate::rank::bounded_ranking::{self, Least, Uppers};
use crate::rank::candidates::{Asked, Play};
use crate::rank::components::Components;
use crate::rank::fused_score::{Fused, Scored};
use crate::rank::keyword_match::{FirstLook, Keywords};
use crate::rank::signals::{self, Facts};
use crate::rank::similarity::Similarity;
use crate::rank::sort_key::{self, Order, Ordered};
use crate::rank::static_score::{Worths, facts};
use crate::search::docid_set::SlotSet;
use crate::search::scan;
use crate::search::selection::SelectedRows;
use crate::search::top_k::Hit as NearHit;
use crate::storage::snapshot_store::Snapshot;
use crate::text::names::without;
use crate::text::{answer_kind, date_ranges};

use super::MemoryIndex;
use super::request::{Answer, Hit, Request};

/// One request to one state.
pub(super) struct Query<'a> {
    pub(super) index: &'a MemoryIndex,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) request: &'a Request<'a>,
    /// The first look for so many memories in play, of which some are scored in any case.
    pub(super) look: &'a dyn Fn(usize, usize) -> FirstLook,
}

impl Query<'_> {
    pub(super) fn answer(&self) -> Answer {
        let (request, ranking) = (self.request, self.request.ranking);
        let selected = self.columns().select(&request.ask);
        let mut play = self.play(selected.words());
        if let Some(least) = request.min_salience {
            play = self.salient(&play, least);
        }
        if play.slots.is_empty() || request.k == 0 && !request.with_total {
            return Answer { hits: Vec::new(), total: request.with_total.then_some(0) };
        }
        let vectors = if ranking.similarity > 0.0 { request.vectors } else { &[] };
        let vectors = self.index.normalised(vectors);
        let is_near_alone = ranking.is_similarity_alone() && !vectors.is_empty();
        let is_plain = !request.with_total && request.best_match.is_none();
        if is_near_alone && is_plain && self.parts() == 1 {
            return self.nearest(&vectors, &play);
        }
        let context = if ranking.weights.context > 0.0 { request.context } else { &[] };
        let context = self.index.normalised(context);
        let [query, context] = [&vectors, &context].map(|vectors| self.similarity(vectors, &play));
        let uppers = |similarity: &Option<Similarity<'_>>| {
            similarity.as_ref().map_or_else(Vec::new, |similarity| similarity.uppers(&play.set))
        };
        let uppers = Uppers { query: uppers(&query), context: uppers(&context) };
        let has_query = request.text.is_some() || query.is_some();
        let similarities = [query.as_ref(), context.as_ref()];
        let fused = Fused::new(&play, ranking, has_query, similarities);
        let mut fused = self.informed(fused).scaled();
        if let Some(order) = request.order {
            return self.in_order(order, &fused, &uppers);
        }
        match request.best_match {
            Some(best) if best > 0.0 => fused.divide_matches(best),
            Some(_) => bounded_ranking::divide_by_best(&mut fused, &uppers, self.least()),
            None => {}
        }
        self.ranked(&fused, &uppers)
    }

    fn play(&self, words: Vec<u64>) -> Play<'_> {
        let set = SlotSet::of_words(words, self.columns().len());
        Play::new(self.columns(), &self.snapshot.memories.speakers, set)
    }

    fn salience(&self, facts: &Facts) -> f64 {
        self.request.ranking.salience.of(facts, self.request.ask.now)
    }

    /// The memories in play whose salience is large enough.
    fn salient(&self, play: &Play<'_>, least: f64) -> Play<'_> {
        let is_enough = play.of_each(|chunk, at| self.salience(&facts(chunk, at)) >= least);
        let mut words = vec![0_u64; self.columns().len().div_ceil(64)];
        for (slot, _) in play.slots.iter().zip(is_enough).filter(|(_, is_enough)| *is_enough) {
            words[*slot as usize / 64] |= 1 << (slot % 64);
        }
        self.play(words)
    }

    fn in_order(&self, order: Order, fused: &Fused<'_>, uppers: &Uppers) -> Answer {
        let (request, play) = (self.request, fused.play);
        let matching = bounded_ranking::matching(fused, uppers, self.least());
        let key = |facts: &Facts| order.key(facts, |facts| self.salience(facts));
        let mut keys = play.of_each(|chunk, at| key(&facts(chunk, at)));
        if matching.len() < keys.len() {
            keys = matching.iter().map(|at| keys[*at as usize]).collect();
        }
        let facts_of = |at: u32| {
            let found = play.fact(play.slots[at as usize], facts);
            found.expect("a memory in play has facts")
        };
        let salience_of = |at: u32| self.salience(&facts_of(at));
        let tie_of = |at: u32| self.columns().tie_of(play.slots[at as usize]);
        let best = sort_key::ordered(&matching, &keys, request.k, salience_of, tie_of);
        let hit = |best: &Ordered| self.hit_in_order(fused, best, &facts_of(best.ordinal));
        let total = request.with_total.then_some(matching.len());
        Answer { hits: best.iter().map(hit).collect(), total }
    }

    fn hit_in_order(&self, fused: &Fused<'_>, best: &Ordered, facts: &Facts) -> Hit {
        let slot = fused.play.slots[best.ordinal as usize];
        let salience = &self.request.ranking.salience;
        let (recency, frequency) = sort_key::scaled(salience, facts, self.request.ask.now);
        let components = Components {
            similarity: bounded_ranking::similarity(fused, best.ordinal),
            recency: Some(recency),
            access: Some(frequency),
            importance: Some(facts.importance),
            salience: Some(best.salience),
            ..Components::default()
        };
        let (row, id) = (self.columns().row_of(slot), self.columns().tie_of(slot).id);
        Hit { row: row.unwrap_or_default(), id, score: best.key, components }
    }

    fn columns(&self) -> &Columns {
        &self.snapshot.memories.columns
    }

    fn parts(&self) -> u32 {
        self.snapshot.memories.parts
    }

    fn similarity(&self, vectors: &[f32], play: &Play<'_>) -> Option<Similarity<'_>> {
        if vectors.is_empty() {
            return None;
        }
        let MemoryIndex { dim, kernel, .. } = self.index;
        let rows = &self.snapshot.vectors;
        Some(Similarity::new(*kernel, rows, self.parts(), vectors, *dim, play.slots.len()))
    }

    /// What must hold of a hit; negative cosines count as 0, so a floor of 0 lets them all through.
    fn least(&self) -> Least {
        let similarity = self.request.min_similarity.filter(|least| *least > 0.0);
        Least {
            similarity: similarity.unwrap_or(f64::NEG_INFINITY),
            score: self.request.min_score.unwrap_or(f64::NEG_INFINITY),
        }
    }

    fn ranked(&self, fused: &Fused<'_>, uppers: &Uppers) -> Answer {
        let (request, least) = (self.request, self.least());
        let best = bounded_ranking::rank(fused, uppers, request.k, least);
        let hit = |(scored, components): (&Scored<'_>, &Components)| {
            self.hit(fused.play.slots[scored.ordinal as usize], scored, *components)
        };
        let hits = best.scored.iter().zip(&best.components).map(hit).collect();
        let total =
            request.with_total.then(|| bounded_ranking::matching(fused, uppers, least).len());
        Answer { hits, total }
    }

    fn hit(&self, slot: u32, scored: &Scored<'_>, components: Components) -> Hit {
        let row = self.columns().row_of(slot).unwrap_or_default();
        Hit { row, id: scored.tie.id, score: scored.score, components }
    }

    /// The answer where the score is the similarity alone: a scan of vectors that prunes far more.
    fn nearest(&self, vectors: &[f32], play: &Play<'_>) -> Answer {
        let scored = |hit: NearHit| {
            let tie = self.columns().tie_of(slot_of(hit.id));
            Scored { score: hit.score, tie, ordinal: slot_of(hit.id) }
        };
        let near = self.scanned(vectors, play).into_iter();
        let mut near: Vec<Scored<'_>> = near.map(scored).collect();
        near.sort_unstable();
        near.truncate(self.request.k);
        let hit =
            |near: &Scored<'_>| self.hit(near.ordinal, near, Components::of_similarity(near.score));
        Answer { hits: near.iter().map(hit).collect(), total: None }
    }

    /// The k nearest, and all that tie with the last of them.
    fn scanned(&self, vectors: &[f32], play: &Play<'_>) -> Vec<NearHit> {
        let (k, rows) = (self.request.k, &self.snapshot.vectors);
        let allowed =
            (!play.set.is_everything()).then(|| Arc::new(SelectedRows::in_play(rows, &play.set)));
        let scope = scan::Scope { snapshot: Arc::clone(self.snapshot), allowed, prior: None };
        let search = |k, min_score| {
            let wanted = scan::Wanted {
                queries: vectors,
                dim: self.index.dim,
                united: true,
                k,
                min_score,
                weight: 1.0,
                threads: 1,
            };
            let answers = scan::search(self.index.kernel, &scope, &wanted);
            answers.into_iter().next().unwrap_or_default()
        };
        let least = self.least();
        let hits = search(k.saturating_add(1), least.similarity.max(least.score));
        match (hits.get(k - 1), hits.get(k)) {
            (Some(last), Some(next)) if last.score <= next.score => {
                search(rows.places.len(), last.score)
            }
            _ => hits,
        }
    }

    /// The expression with all that is known beside similarities.
    fn informed<'p>(&'p self, mut fused: Fused<'p>) -> Fused<'p> {
        let (play, ranking) = (fused.play, fused.ranking);
        if ranking.weights.of_worth() > 0.0 {
            fused.worths = Some(Worths::new(play, ranking, self.request.ask.now));
        }
        let Some(text) = self.request.text else { return fused };
        let (session, keywords) = (&ranking.session, &ranking.keywords);
        let carries = ranking.similarity < 1.0 && keywords.previous + keywords.second > 0.0;
        let has_neighbours = (session.has_neighbours() || carries) && play.has_neighbours();
        fused.has_lift = session.has_neighbours() && has_neighbours;
        let named = self.named(text, &play.slots);
        fused.asked = Asked {
            dates: if session.date > 0.0 { self.dates(text, play) } else { Vec::new() },
            speaker: match &named[..] {
                [named] if session.speaker > 0.0 => Some(named.code),
                _ => None,
            },
            kind: answer_kind(text).filter(|_| session.kind > 0.0).map(|kind| kind as u8),
            has_text: true,
        };
        if ranking.similarity < 1.0 {
            let names: Vec<&str> = named.iter().map(|named| &*named.name).collect();
            let text = if ranking.leaves_names_out { without(text, &names) } else { text.into() };
            let next = if carries && has_neighbours { play.all_next() } else { Vec::new() };
            let memories = &self.snapshot.memories;
            let collection = memories.collection(self.request.ask.scope.user);
            let lexical = (&memories.lexical, collection);
            let look = (self.look)(play.slots.len(), bounded_ranking::promising_of(self.request.k));
            fused.keywords = Some(Keywords::new(play, lexical, keywords, &text, next, look));
        }
        fused
    }

    /// How near memories are in time to the dates that the text names; nothing where it names none.
    fn dates(&self, text: &str, play: &Play<'_>) -> Vec<f32> {
        let ranges = date_ranges(text, self.request.ask.now);
        if ranges.is_empty() {
            return Vec::new();
        }
        play.of_each(|chunk, at| {
            let nearness = |range| signals::nearness(range, chunk.created_at[at]);
            ranges.iter().map(|range| (range.start, range.end)).map(nearness).fold(0.0, f32::max)
        })
    }

    /// The speakers that the text names, where names matter.
    fn named(&self, text: &str, slots: &[u32]) -> Vec<Named> {
        let ranking = self.request.ranking;
        if ranking.session.speaker > 0.0 || ranking.leaves_names_out {
            return self.snapshot.memories.speakers.named(text, slots);
        }
        Vec::new()
    }
}
