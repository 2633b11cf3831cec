//! One request to one snapshot.

use std::sync::Arc;

use crate::Error;
use crate::columns::{Columns, Selected};
use crate::deadline::{Deadline, NEVER};
use crate::ids::{docid_of, vector_id};
use crate::memory::naming::NamedSpeakers;
use crate::rank::bounded_ranking::{self, Floors, Uppers};
use crate::rank::candidates::{CandidateSet, QueryFeatures, SpeakerTerm};
use crate::rank::components::Components;
use crate::rank::cosine_scale::CosineScale;
use crate::rank::evidence;
use crate::rank::fused_score::{Exact, Fused, Scored};
use crate::rank::keyword_match::{FirstPass, Keywords};
use crate::rank::scoring_config::ScoringConfig;
use crate::rank::signals::{self, Signals};
use crate::rank::similarity::Similarity;
use crate::rank::sort_key::{self, SortKey, SortedHit};
use crate::rank::static_score::{StaticScores, newest_ranks, signals};
use crate::rank::why::Why;
use crate::search::docid_set::DocidSet;
use crate::search::scan;
use crate::search::selection::SelectedRows;
use crate::search::top_k::Hit as NearHit;
use crate::storage::snapshot_store::Snapshot;
use crate::text::coverage::{WHOLE, limits};
use crate::text::present::asks_for_present;
use crate::text::{DateRange, Role, answer_type, date_ranges};

use super::MemoryIndex;
use super::request::{Answer, Evidence, Hit, Request};

/// One request to one state.
pub(super) struct Query<'a> {
    pub(super) index: &'a MemoryIndex,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) request: &'a Request<'a>,
    /// The first pass for a number of candidates, of which some are always scored.
    pub(super) first_pass: &'a dyn Fn(usize, usize) -> FirstPass,
    pub(super) deadline: &'a Deadline,
    /// The selected memories, if only some of them are candidates.
    pub(super) selection: Option<&'a DocidSet>,
}

/// Properties of a whole selection on which scores of its memories depend.
#[derive(Default)]
pub(super) struct SelectionTerms {
    /// Whether any memory has a selected neighbour, where neighbours count.
    pub(super) has_neighbours: bool,
    /// Whether any is a turn of an assistant, where roles count.
    has_assistant: bool,
    /// The scoring with the share for the words of the text, where that depends on them.
    scoring: Option<ScoringConfig>,
    /// The speakers that the text names, where names count.
    pub(super) named: NamedSpeakers,
    /// Whether the text asks for what holds at present.
    asks_for_present: bool,
    /// By ordinal, where memories are ranked by their time; else empty.
    pub(super) newest_ranks: Vec<f64>,
}

/// Memories that are ranked after a deadline that passed before any were: the first of the selected.
const LATE_ROWS: usize = 8192;

impl Query<'_> {
    /// The answer; a partial one or an error if the deadline passes.
    pub(super) fn answer(&self) -> Result<Answer, Error> {
        let ask = &self.request.ask;
        if self.is_of_unread_selection() {
            let ranked = self.check().map(|()| self.of_unread_selection());
            return self.in_time(ranked, || self.columns().select(ask));
        }
        let selected = self.columns().select(ask);
        let ranked = self.check().and_then(|()| self.of_selected(&selected));
        self.in_time(ranked, || selected)
    }

    /// An answer that was ranked in time; else a partial one or an error.
    fn in_time(
        &self,
        ranked: Result<Answer, Error>,
        selected: impl FnOnce() -> Selected,
    ) -> Result<Answer, Error> {
        match ranked {
            Err(Error::DeadlineExceeded) if self.request.takes_partial => self.late(selected()),
            Ok(_) if self.deadline.has_passed() && !self.request.takes_partial => {
                Err(Error::DeadlineExceeded)
            }
            Ok(answer) if self.deadline.has_passed() => Ok(partial(answer)),
            others => others,
        }
    }

    /// The first of the selected memories ranked among themselves, where scores do not depend on
    /// other candidates; otherwise nothing.
    fn late(&self, selected: Selected) -> Result<Answer, Error> {
        if !self.scores_are_independent() {
            return Ok(partial(Answer::default()));
        }
        let request = Request { proposed: None, ..*self.request };
        let query = Query { deadline: &NEVER, request: &request, ..*self };
        query.of_selected(&selected.first(LATE_ROWS)).map(partial)
    }

    /// Whether the score of a memory does not depend on the other candidates.
    fn scores_are_independent(&self) -> bool {
        let (request, scoring) = (self.request, self.request.scoring);
        let (session, keywords) = (&scoring.session, &scoring.keywords);
        let has_turns = session.has_neighbours() || keywords.previous + keywords.second > 0.0;
        let has_names = session.speaker > 0.0 || scoring.strip_speaker_names;
        let is_a_rank = self.needs_newest_ranks();
        let divides = request.best_match.is_some_and(|best| best <= 0.0);
        let has_roles = session.role > 0.0;
        let by_others = has_turns || has_names || has_roles || scoring.adaptive.is_some();
        !(is_a_rank || divides || request.text.is_some() && by_others)
    }

    /// The answer among selected memories; of those that were reached before the deadline.
    fn of_selected(&self, selected: &Selected) -> Result<Answer, Error> {
        let request = self.request;
        let selected = self.salient(selected.words())?;
        let is_wanted = request.k > 0 || request.with_total;
        if !is_wanted || selected.iter().all(|word| *word == 0) {
            let total = request.with_total.then_some(0);
            return Ok(Answer { total, ..Answer::default() });
        }
        match request.proposed.filter(|_| request.sort_key.is_none()) {
            Some(rows) => {
                let selection = self.docid_set(selected.clone());
                Query { selection: Some(&selection), ..*self }.of_proposed(rows, selected)
            }
            None => self.of_all(selected),
        }
    }

    /// The answer among all selected memories, 64 docids a word.
    fn of_all(&self, selected: Vec<u64>) -> Result<Answer, Error> {
        if self.is_near_alone() {
            let set = self.docid_set(selected);
            return Ok(self.nearest(self.allowed(&set)?, set.len()));
        }
        let candidates = self.candidates(selected);
        let terms = self.selection_terms(&candidates)?;
        self.of_candidates(&candidates, terms, Vec::new())
    }

    /// What a scan of vectors is limited to.
    pub(super) fn allowed(&self, set: &DocidSet) -> Result<Option<Arc<SelectedRows>>, Error> {
        let (vectors, chunks) = (&self.snapshot.vectors, self.chunks());
        let rows = SelectedRows::of_docids(vectors, chunks, set, self.deadline)?;
        Ok(rows.map(Arc::new))
    }

    /// The answer among the candidates that are not `ruled_out` by their ordinals; no candidate is if
    /// that is empty.
    pub(super) fn of_candidates(
        &self,
        candidates: &CandidateSet<'_>,
        terms: SelectionTerms,
        ruled_out: Vec<bool>,
    ) -> Result<Answer, Error> {
        let scoring = terms.scoring.unwrap_or(*self.request.scoring);
        let request = Request { scoring: &scoring, ..*self.request };
        let answer =
            Query { request: &request, ..*self }.of_scored(candidates, terms, ruled_out)?;
        Ok(Answer { share: Some(scoring.similarity), ..answer })
    }

    /// The scoring for the words of the text.
    fn for_words(&self, text: &str) -> ScoringConfig {
        let memories = &self.snapshot.memories;
        let collection = memories.collection(self.request.ask.scope.user);
        self.request.scoring.for_words(memories.lexical.word_rarity(text, collection))
    }

    /// The answer among the candidates by the scoring of the request.
    fn of_scored(
        &self,
        candidates: &CandidateSet<'_>,
        terms: SelectionTerms,
        ruled_out: Vec<bool>,
    ) -> Result<Answer, Error> {
        let (request, scoring) = (self.request, self.request.scoring);
        let context = if scoring.weights.context > 0.0 { request.context } else { &[] };
        let vectors = [self.vectors(), self.index.normalised(context)];
        let [query, context] = vectors.each_ref().map(|rows| self.similarity(rows, candidates));
        let has_query = request.text.is_some() || query.is_some();
        let similarities = [query.as_ref(), context.as_ref()];
        let mut fused = Fused::new(candidates, scoring, has_query, similarities);
        // A score that is the cosine alone stays the cosine.
        let is_fused = !scoring.is_similarity_alone();
        fused.rescaling = request.scale.filter(|_| is_fused).map(CosineScale::rescaling);
        fused.ruled_out = ruled_out;
        fused.shares = self.shares(&candidates.docids);
        let mut fused = self.informed(fused, terms)?.scaled();
        let uppers = |similarity: &Option<Similarity<'_>>| {
            similarity
                .as_ref()
                .map_or_else(Vec::new, |similarity| similarity.uppers(&candidates.set))
        };
        let uppers = Uppers { query: uppers(&query), context: uppers(&context) };
        if let Some(sort_key) = request.sort_key {
            return self.by_sort_key(sort_key, &fused, &uppers);
        }
        if let Some(floor) = request.evidence {
            let selection = self.selection.unwrap_or(&candidates.set);
            let floor = (floor, request.scale);
            if !evidence::is_enough(&fused, &uppers, floor, selection.len()) {
                return Ok(self.weak());
            }
        }
        match request.best_match {
            Some(best) if best > 0.0 => fused.divide_matches(best),
            Some(_) => {
                bounded_ranking::divide_by_best(&mut fused, &uppers, self.floors());
                self.check()?;
            }
            None => {}
        }
        Ok(self.ranked(&fused, &uppers))
    }

    /// Return an error if the deadline was found past.
    fn check(&self) -> Result<(), Error> {
        if self.deadline.has_passed() { Err(Error::DeadlineExceeded) } else { Ok(()) }
    }

    /// The shares of similarity in matches that are not those of the scoring, in order of ordinals.
    fn shares(&self, docids: &[u32]) -> Vec<(u32, [f64; 2])> {
        let (scoring, memories) = (self.request.scoring, &self.snapshot.memories);
        let by_coverage = scoring.share_depends_on_coverage();
        let percents = if by_coverage { memories.uncovered.among(docids) } else { Vec::new() };
        let whole = scoring.similarity;
        if !scoring.share_depends_on_length() {
            let limited = |percent| limits(percent).map(|limit| whole.min(limit));
            let shares = (0..).zip(percents).map(|(at, percent)| (at, limited(percent)));
            return shares.filter(|(_, [share, _])| *share < whole).collect();
        }
        let (by_words, mut lacking, mut at) = (scoring.shares_by_words(), Vec::new(), 0_u32);
        memories.lexical.each_length(docids, |words| {
            let percent = percents.get(at as usize).copied().unwrap_or(WHOLE);
            if words < by_words.len() || percent < WHOLE {
                lacking.push((at, words, percent));
            }
            at += 1;
        });
        // Nothing but its vector tells the meaning of a memory with an empty content, and a few words
        // outside a session are a title or a note, not a name that is called.
        let is_whole = |at: u32, words: usize| {
            let docid = docids[at as usize];
            let session = self.columns().turn_of(docid).map_or(0, |(session, _)| session);
            session == 0 || words == 0 && self.columns().content(docid) == Some("")
        };
        // After all lengths are read, so that the waits for the sessions of several are one.
        let share = |(at, words, percent): (u32, usize, u8)| {
            let of_words = by_words.get(words).filter(|_| !is_whole(at, words));
            let most = *of_words.unwrap_or(&whole);
            (at, limits(percent).map(|limit| most.min(limit)))
        };
        lacking.into_iter().map(share).filter(|(_, [share, _])| *share < whole).collect()
    }

    /// The query's vectors at unit length, if similarity has a share.
    fn vectors(&self) -> Vec<f32> {
        let has_share = self.request.scoring.similarity > 0.0;
        self.index.normalised(if has_share { self.request.vectors } else { &[] })
    }

    /// Whether the score is the similarity alone, and hits are all that is wanted.
    pub(super) fn is_near_alone(&self) -> bool {
        let request = self.request;
        let is_plain = !request.with_total && request.best_match.is_none();
        let is_near = request.scoring.is_similarity_alone() && !request.vectors.is_empty();
        is_near && is_plain && request.sort_key.is_none() && self.chunks() == 1
    }

    /// The docids whose bits are set, 64 a word.
    pub(super) fn docid_set(&self, words: Vec<u64>) -> DocidSet {
        DocidSet::of_words(words, self.columns().len(), self.columns().live())
    }

    pub(super) fn candidates(&self, words: Vec<u64>) -> CandidateSet<'_> {
        CandidateSet::new(&self.snapshot.memories, self.docid_set(words), self.deadline)
    }

    fn salience(&self, signals: &Signals) -> f64 {
        self.request.scoring.salience.of(signals, self.request.ask.now)
    }

    /// The selected docids whose salience is large enough, 64 a word.
    fn salient(&self, selected: Vec<u64>) -> Result<Vec<u64>, Error> {
        let Some(floor) = self.request.min_salience else { return Ok(selected) };
        let candidates = self.candidates(selected);
        let is_enough =
            candidates.of_each(|block, at| self.salience(&signals(block, at)) >= floor)?;
        let mut words = vec![0_u64; self.columns().len().div_ceil(64)];
        for (docid, _) in
            candidates.docids.iter().zip(is_enough).filter(|(_, is_enough)| *is_enough)
        {
            words[*docid as usize / 64] |= 1 << (docid % 64);
        }
        Ok(words)
    }

    fn by_sort_key(
        &self,
        sort_key: SortKey,
        fused: &Fused<'_>,
        uppers: &Uppers,
    ) -> Result<Answer, Error> {
        let (request, candidates) = (self.request, fused.candidates);
        let matching = bounded_ranking::matching(fused, uppers, self.floors());
        let key = |signals: &Signals| sort_key.key(signals, |signals| self.salience(signals));
        let mut keys = candidates.of_each(|block, at| key(&signals(block, at)))?;
        if matching.len() < keys.len() {
            keys = matching.iter().map(|at| keys[*at as usize]).collect();
        }
        let signals_of = |at: u32| {
            let found = candidates.attribute(candidates.docids[at as usize], signals);
            found.expect("a candidate has attributes")
        };
        let salience_of = |at: u32| self.salience(&signals_of(at));
        let tie_of = |at: u32| self.columns().tie_of(candidates.docids[at as usize]);
        let best = sort_key::sorted(
            &matching,
            &keys,
            request.depth(),
            salience_of,
            tie_of,
            self.deadline,
        )?;
        let hit = |best: &SortedHit| self.hit_by_sort_key(fused, best, &signals_of(best.ordinal));
        let total = request.with_total.then_some(matching.len());
        let hits = best.iter().skip(request.offset).map(hit).collect();
        Ok(Answer { hits, total, ..Answer::default() })
    }

    fn hit_by_sort_key(&self, fused: &Fused<'_>, best: &SortedHit, signals: &Signals) -> Hit {
        let docid = fused.candidates.docids[best.ordinal as usize];
        let salience = &self.request.scoring.salience;
        let (recency, frequency) = sort_key::scaled(salience, signals, self.request.ask.now);
        let similarity = bounded_ranking::similarity(fused, best.ordinal);
        let components = Components {
            similarity: similarity.filter(|cosine| self.is_directed(docid, *cosine)),
            recency: Some(recency),
            access: Some(frequency),
            importance: Some(signals.importance),
            salience: Some(best.salience),
            ..Components::default()
        };
        let (row, id) = (self.columns().row_of(docid), self.columns().tie_of(docid).id);
        let accessed = (signals.last_accessed_at, signals.access_count);
        let row = row.unwrap_or_default();
        Hit { row, id, score: best.key, components, why: None, accessed, chunk: None }
    }

    pub(super) fn columns(&self) -> &Columns {
        &self.snapshot.memories.columns
    }

    fn chunks(&self) -> u32 {
        self.snapshot.memories.chunks
    }

    fn similarity(&self, vectors: &[f32], candidates: &CandidateSet<'_>) -> Option<Similarity<'_>> {
        if vectors.is_empty() {
            return None;
        }
        let MemoryIndex { dim, kernel, .. } = self.index;
        let rows = &self.snapshot.vectors;
        let (chunks, count) = (self.chunks(), candidates.docids.len());
        Some(Similarity::new(*kernel, rows, chunks, (vectors, *dim), count, self.deadline))
    }

    /// The floors of a hit.
    fn floors(&self) -> Floors {
        Floors {
            similarity: self.request.min_similarity.unwrap_or(f64::NEG_INFINITY),
            score: self.request.min_score.unwrap_or(f64::NEG_INFINITY),
        }
    }

    fn ranked(&self, fused: &Fused<'_>, uppers: &Uppers) -> Answer {
        let (request, floors) = (self.request, self.floors());
        let best = bounded_ranking::rank(fused, uppers, request.depth(), request.offset, floors);
        let exact = request.explains.then(|| Exact::new(fused));
        let hit = |(scored, components): (&Scored<'_>, &Components)| {
            let docid = fused.candidates.docids[scored.ordinal as usize];
            let why = exact.as_ref().map(|exact| Box::new(exact.why(scored.ordinal)));
            self.hit(docid, scored, *components, why)
        };
        let hits = best.scored.iter().zip(&best.components).map(hit).collect();
        let total =
            request.with_total.then(|| bounded_ranking::matching(fused, uppers, floors).len());
        let first = best.scored.first().filter(|_| request.offset == 0);
        let is_by_another = first.is_some_and(|first| fused.is_by_another(first.ordinal));
        let evidence = if is_by_another { Evidence::ByAnother } else { Evidence::Enough };
        Answer { hits, total, evidence, ..Answer::default() }
    }

    /// The answer without enough evidence.
    fn weak(&self) -> Answer {
        let total = self.request.with_total.then_some(0);
        Answer { total, evidence: Evidence::Weak, ..Answer::default() }
    }

    /// Whether a memory with this cosine has a vector other than null vectors, which stand for none.
    fn is_directed(&self, docid: u32, cosine: f64) -> bool {
        let vectors = &self.snapshot.vectors;
        let is_null = |chunk: u32| {
            let place = vectors.places.get(vector_id(docid, chunk))?;
            let segment = &vectors.segments[vectors.position(place.number())?].segment;
            Some(segment.vector(place.row()).iter().all(|part| *part == 0.0))
        };
        cosine != 0.0 || (0..self.chunks()).filter_map(is_null).any(|is_null| !is_null)
    }

    fn hit(
        &self,
        docid: u32,
        scored: &Scored<'_>,
        mut components: Components,
        why: Option<Box<Why>>,
    ) -> Hit {
        components.similarity =
            components.similarity.filter(|cosine| self.is_directed(docid, *cosine));
        let row = self.columns().row_of(docid).unwrap_or_default();
        let accessed = self.columns().access_of(docid).unwrap_or_default();
        let chunk = components.similarity.and_then(|_| self.nearest_chunk(docid));
        Hit { row, id: scored.tie.id, score: scored.score, components, why, accessed, chunk }
    }

    /// The chunk of a memory of several that is nearest to a query.
    fn nearest_chunk(&self, docid: u32) -> Option<u32> {
        let (rows, chunks) = (&self.snapshot.vectors, self.chunks());
        if chunks == 1 {
            return None;
        }
        rows.places.get(vector_id(docid, 1))?;
        let (vectors, MemoryIndex { dim, kernel, .. }) = (self.vectors(), self.index);
        let similarity = Similarity::new(*kernel, rows, chunks, (&vectors, *dim), 1, self.deadline);
        Some(similarity.nearest_chunk(docid))
    }

    /// The answer where the score is the similarity alone: a scan of vectors that prunes far more.
    ///
    /// `selected` is how many memories are selected, of which all are scanned or the `allowed`.
    pub(super) fn nearest(&self, allowed: Option<Arc<SelectedRows>>, selected: usize) -> Answer {
        let vectors = self.vectors();
        let scored = |hit: NearHit| {
            let tie = self.columns().tie_of(docid_of(hit.id));
            Scored { score: hit.score, tie, ordinal: docid_of(hit.id) }
        };
        let near = self.scanned(&vectors, allowed).into_iter();
        let mut near: Vec<Scored<'_>> = near.map(scored).collect();
        near.sort_unstable();
        near.truncate(self.request.depth());
        if let Some((floor, nearest)) = self.request.evidence.zip(near.first())
            && !evidence::is_near_enough(nearest.score, floor, selected)
        {
            return self.weak();
        }
        let hit = |near: &Scored<'_>| {
            let why = self.request.explains.then(|| Box::new(Why::of_similarity(near.score)));
            self.hit(near.ordinal, near, Components::of_similarity(near.score), why)
        };
        let hits = near.iter().skip(self.request.offset).map(hit).collect();
        Answer { hits, ..Answer::default() }
    }

    /// The k nearest, and all that tie with the last of them.
    fn scanned(&self, vectors: &[f32], allowed: Option<Arc<SelectedRows>>) -> Vec<NearHit> {
        let (k, rows) = (self.request.depth(), &self.snapshot.vectors);
        let scope = scan::Scope { snapshot: Arc::clone(self.snapshot), allowed, prior: None };
        let search = |k, min_score| {
            let wanted = scan::ScanRequest {
                queries: vectors,
                dim: self.index.dim,
                combined_by_max: true,
                k,
                min_score,
                weight: 1.0,
                threads: 1,
                deadline: self.deadline,
            };
            let answers = scan::search(self.index.kernel, &scope, &wanted);
            answers.into_iter().next().unwrap_or_default()
        };
        let floors = self.floors();
        let hits = search(k.saturating_add(1), floors.similarity.max(floors.score));
        match (hits.get(k - 1), hits.get(k)) {
            (Some(last), Some(next)) if last.score <= next.score && self.check().is_ok() => {
                search(rows.places.len(), last.score)
            }
            _ => hits,
        }
    }

    /// Whether memories are ranked by their time, because recency is a rank or the text asks for what
    /// holds at present.
    pub(super) fn needs_newest_ranks(&self) -> bool {
        self.request.scoring.needs_newest_ranks() || self.asks_for_present()
    }

    fn asks_for_present(&self) -> bool {
        let counts = self.request.scoring.session.max_of_date() > 0.0;
        self.request.text.is_some_and(|text| counts && asks_for_present(text))
    }

    /// The properties of a whole selection on which scores of its memories depend.
    pub(super) fn selection_terms(
        &self,
        selection: &CandidateSet<'_>,
    ) -> Result<SelectionTerms, Error> {
        let scoring = self.request.scoring;
        let asks_for_present = self.asks_for_present();
        let needs_ranks = scoring.needs_newest_ranks() || asks_for_present;
        let newest_ranks = if needs_ranks { newest_ranks(selection)? } else { Vec::new() };
        let Some(text) = self.request.text else {
            return Ok(SelectionTerms { newest_ranks, ..SelectionTerms::default() });
        };
        let reads_neighbours = scoring.session.has_neighbours() || scoring.carries_keywords();
        let has_neighbours = reads_neighbours && selection.has_neighbours()?;
        let has_assistant = scoring.session.role > 0.0 && selection.has_assistant()?;
        let named = self.named(text, &selection.docids)?;
        let depends_on_words = scoring.adaptive.is_some() && !selection.has_sessions()?;
        let scoring = depends_on_words.then(|| self.for_words(text));
        Ok(SelectionTerms {
            has_neighbours,
            has_assistant,
            scoring,
            named,
            asks_for_present,
            newest_ranks,
        })
    }

    /// The expression with all parts beside similarities.
    fn informed<'p>(
        &'p self,
        mut fused: Fused<'p>,
        terms: SelectionTerms,
    ) -> Result<Fused<'p>, Error> {
        let (candidates, scoring) = (fused.candidates, fused.scoring);
        let SelectionTerms { has_neighbours, has_assistant, named, newest_ranks, .. } = terms;
        let newness = if terms.asks_for_present { newest_ranks.clone() } else { Vec::new() };
        if scoring.weights.of_static_score() > 0.0 {
            let now = self.request.ask.now;
            let ranks = if scoring.needs_newest_ranks() { newest_ranks } else { Vec::new() };
            fused.static_scores = Some(StaticScores::new(candidates, scoring, now, ranks)?);
        }
        let Some(text) = self.request.text else { return Ok(fused) };
        let session = &scoring.session;
        fused.has_lift = session.has_neighbours() && has_neighbours;
        let has_dates = session.max_of_date() > 0.0;
        let date_ranges = if has_dates { self.date_ranges(text) } else { Vec::new() };
        fused.features = QueryFeatures {
            dates: nearness_of_dates(&date_ranges, candidates)?,
            date_ranges,
            newness,
            speaker: None,
            answer_type: answer_type(text)
                .filter(|_| session.answer_type > 0.0)
                .map(|answer_type| answer_type as u8),
            role: has_assistant.then(|| Role::of_query(text)),
            has_text: true,
        };
        fused.keywords = self.keywords(candidates, has_neighbours, &named)?;
        fused.features.speaker = SpeakerTerm::new(session, named, candidates);
        Ok(fused)
    }

    /// The keyword matches of the candidates, if keywords have a share.
    pub(super) fn keywords<'p>(
        &'p self,
        candidates: &'p CandidateSet<'p>,
        has_neighbours: bool,
        named: &NamedSpeakers,
    ) -> Result<Option<Keywords<'p>>, Error> {
        let scoring = self.request.scoring;
        let Some(text) = self.request.text.filter(|_| scoring.similarity < 1.0) else {
            return Ok(None);
        };
        let strips = scoring.strip_speaker_names;
        let text =
            if strips { named.without(text, scoring.max_speaker_share) } else { text.into() };
        let carries = scoring.carries_keywords() && has_neighbours;
        let next =
            if carries { candidates.all_neighbours(|block| block.next)? } else { Vec::new() };
        let memories = &self.snapshot.memories;
        let collection = memories.collection(self.request.ask.scope.user);
        let lexical = (&memories.lexical, collection);
        let frontier = bounded_ranking::frontier_size(self.request.depth());
        let first_pass = (self.first_pass)(candidates.docids.len(), frontier);
        Keywords::new(candidates, lexical, &scoring.keywords, &text, next, first_pass).map(Some)
    }

    /// The times that the text names.
    fn date_ranges(&self, text: &str) -> Vec<DateRange> {
        let ask = &self.request.ask;
        let zone = ask.time_zone;
        let newest = || self.columns().newest(&ask.scope, ask.now, self.deadline);
        let ranges = date_ranges(text, zone.local(ask.now), &|| Some(zone.local(newest()?)));
        let moments = |range: DateRange| DateRange {
            start: zone.moment(range.start),
            end: zone.moment(range.end),
            ..range
        };
        ranges.into_iter().map(moments).collect()
    }

    /// The speakers that the text names, where names matter.
    fn named(&self, text: &str, docids: &[u32]) -> Result<NamedSpeakers, Error> {
        let scoring = self.request.scoring;
        let counts = scoring.session.speaker > 0.0 || scoring.strip_speaker_names;
        let user = self.request.ask.scope.user;
        let names = counts.then(|| self.snapshot.memories.possible_names(text, user)).flatten();
        names.map_or_else(
            || Ok(NamedSpeakers::default()),
            |names| names.among(docids, self.deadline),
        )
    }
}

/// How near memories are to ranges of time; nothing where there is none.
fn nearness_of_dates(
    ranges: &[DateRange],
    candidates: &CandidateSet<'_>,
) -> Result<Vec<f32>, Error> {
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    candidates.of_each(|block, at| {
        let nearness = |range| signals::nearness(range, block.attributes.created_at[at]);
        ranges.iter().map(|range| (range.start, range.end)).map(nearness).fold(0.0, f32::max)
    })
}

fn partial(answer: Answer) -> Answer {
    Answer { total: None, is_partial: true, ..answer }
}
