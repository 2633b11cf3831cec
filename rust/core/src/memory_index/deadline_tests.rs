//! Deadlines that pass at any look: an error, or hits with the scores of the whole ranking.

use std::collections::HashMap;

use proptest::prelude::*;

use super::tests::{any_said, any_scoring, index_of, text_of};
use super::*;
use crate::columns::{Scope, Users};
use crate::deadline::Deadline;
use crate::filter::Filter;
use crate::memory::links::{Direction, Link};
use crate::rank::scoring_config::{KeywordFields, ScoringConfig, Session, Weights};
use crate::rank::signals::Recency;
use crate::rank::sort_key::SortKey;

/// Looks after which no ranking here looks again.
const ENOUGH: usize = 1 << 40;

/// A request in parts that a proptest can draw.
#[derive(Debug, Clone)]
struct Asked {
    scoring: ScoringConfig,
    text: Option<String>,
    vector: Vec<f32>,
    context: Vec<f32>,
    sort_key: Option<SortKey>,
    k: usize,
    with_total: bool,
    min_score: Option<f64>,
    min_similarity: Option<f64>,
    min_salience: Option<f64>,
    best_match: Option<f64>,
    filter: Option<Filter>,
    proposed: Option<Vec<i64>>,
}

impl Asked {
    fn request<'a>(&'a self, deadline: &'a Deadline, takes_partial: bool) -> Request<'a> {
        let scope = Scope { user: Users::All, ..Scope::default() };
        Request {
            ask: Ask { scope, filter: self.filter.as_ref(), deadline, ..Ask::default() },
            scoring: &self.scoring,
            text: self.text.as_deref(),
            vectors: &self.vector,
            context: &self.context,
            k: self.k,
            offset: 0,
            min_similarity: self.min_similarity,
            min_score: self.min_score,
            scale: None,
            evidence: None,
            with_total: self.with_total,
            explains: false,
            sort_key: self.sort_key,
            min_salience: self.min_salience,
            best_match: self.best_match,
            takes_partial,
            proposed: self.proposed.as_deref(),
        }
    }

    fn rank(
        &self,
        index: &MemoryIndex,
        looks: usize,
        takes_partial: bool,
    ) -> Result<Answer, Error> {
        index.rank(&self.request(&Deadline::after_looks(looks), takes_partial))
    }

    /// Check the answers of a deadline after so many looks; returns the number of hits of a partial
    /// one.
    fn check(&self, index: &MemoryIndex, looks: usize) -> Option<usize> {
        let whole = self.rank(index, ENOUGH, false).expect("no deadline passes");
        match self.rank(index, looks, false) {
            Ok(answer) => assert_eq!(answer, whole),
            Err(error) => assert_eq!(error, Error::DeadlineExceeded),
        }
        let found = self.rank(index, looks, true).expect("a partial answer is no error");
        if !found.is_partial {
            assert_eq!(found, whole);
            return None;
        }
        let everything = Self { k: usize::MAX, proposed: None, ..self.clone() };
        let everything = everything.rank(index, ENOUGH, false).expect("no deadline passes").hits;
        let places: HashMap<i64, usize> =
            everything.iter().enumerate().map(|(at, hit)| (hit.row, at)).collect();
        let at: Vec<usize> = found.hits.iter().map(|hit| places[&hit.row]).collect();
        assert!(at.is_sorted_by(|one, other| one < other), "in the order of the whole: {at:?}");
        for (hit, at) in found.hits.iter().zip(at) {
            assert_eq!(*hit, everything[at], "with the score of the whole");
        }
        assert!(found.hits.len() <= self.k && found.total.is_none());
        Some(found.hits.len())
    }
}

fn any_recency() -> impl Strategy<Value = (Recency, f64)> {
    let curve = prop::sample::select(vec![
        Recency::NewestRank,
        Recency::CreatedLinear { days: 1.0 },
        Recency::AccessedHalfLife { days: 1.0 },
    ]);
    (curve, prop::sample::select(vec![0.0, 0.0, 0.3]))
}

fn any_fields() -> impl Strategy<Value = (f64, f64, bool)> {
    let share = || prop::sample::select(vec![0.0, 0.0, 0.2]);
    (share(), share(), any::<bool>())
}

fn varied(
    scoring: &ScoringConfig,
    (recency, weight): (Recency, f64),
    (char_ngrams, bigrams, is_alone): (f64, f64, bool),
) -> ScoringConfig {
    let keywords = KeywordFields { char_ngrams, bigrams, ..scoring.keywords };
    let weights = Weights { recency: weight, context: weight, ..scoring.weights };
    let (session, keywords) = if is_alone {
        (Session::default(), KeywordFields { previous: 0.0, second: 0.0, ..keywords })
    } else {
        (scoring.session, keywords)
    };
    ScoringConfig { keywords, session, weights, recency, ..*scoring }
}

fn any_asked() -> impl Strategy<Value = Asked> {
    let scoring = (any_scoring(), any_recency(), any_fields())
        .prop_map(|(scoring, recency, fields)| varied(&scoring, recency, fields));
    let vector = || {
        prop::option::of(prop::array::uniform3(1_i8..4))
            .prop_map(|vector| vector.into_iter().flatten().map(f32::from).collect::<Vec<_>>())
    };
    let text = prop::option::weighted(0.8, prop::collection::vec(0..12_usize, 1..7))
        .prop_map(|words| words.map(|words| text_of(&words)));
    let sort_key = prop::option::weighted(
        0.2,
        prop::sample::select(vec![SortKey::Newest, SortKey::Importance, SortKey::Salience]),
    );
    let floors = (
        prop::option::of(0.0..0.6),
        prop::option::of(0.0..1.0),
        prop::option::weighted(0.2, 0.0..0.3),
    );
    let others = (0_usize..40, any::<bool>(), prop::option::weighted(0.3, Just(0.0)));
    let proposed = prop::option::of(prop::collection::vec(-1_i64..130, 0..30));
    let others = (others, proposed);
    (scoring, text, vector(), vector(), sort_key, floors, others).prop_map(
        |(scoring, text, vector, context, sort_key, floors, others)| {
            let ((k, with_total, best_match), proposed) = others;
            // With proposals, the best match of the selection may not be among those considered.
            let proposed = proposed.filter(|_| best_match.is_none());
            Asked {
                scoring,
                text,
                vector,
                context,
                sort_key,
                k,
                with_total,
                min_score: floors.0,
                min_similarity: floors.1,
                min_salience: floors.2,
                best_match,
                filter: None,
                proposed,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn hits_at_a_deadline_have_the_scores_of_the_whole_ranking(
        said in prop::collection::vec(any_said(), 1..120),
        asked in any_asked(),
        looks in 0_usize..60,
    ) {
        asked.check(&index_of(&said), looks);
    }
}

fn said_by(seed: usize) -> tests::Said {
    tests::Said {
        words: (0..3 + seed % 5).map(|at| (seed * 7 + at * at * 3) % 11).collect(),
        session: (seed % 3) as u8,
        user: (seed % 2) as u8,
        vector: Some([1 + (seed % 3) as i8, 1 + (seed / 3 % 3) as i8, 1 + (seed / 9 % 2) as i8]),
        asks: seed.is_multiple_of(7),
    }
}

fn plain() -> Asked {
    Asked {
        scoring: tests::scoring(),
        text: Some("my violin of the harbour".to_owned()),
        vector: vec![1.0, 2.0, 3.0],
        context: vec![],
        sort_key: None,
        k: 10,
        with_total: false,
        min_score: None,
        min_similarity: None,
        min_salience: None,
        best_match: None,
        filter: None,
        proposed: None,
    }
}

/// Requests by name, whether they have hits at some look, and whether the first look finds some.
fn requests() -> Vec<(&'static str, Asked, bool)> {
    let alone = ScoringConfig { session: Session::default(), ..plain().scoring };
    let semantic = ScoringConfig { similarity: 1.0, ..alone };
    let keyword = ScoringConfig { similarity: 0.0, ..plain().scoring };
    let keywords = KeywordFields { char_ngrams: 0.5, bigrams: 0.2, ..keyword.keywords };
    let ngrams = ScoringConfig { keywords, ..keyword };
    vec![
        ("hybrid", plain(), false),
        ("keyword", Asked { scoring: keyword, vector: vec![], ..plain() }, false),
        ("n-grams", Asked { scoring: ngrams, vector: vec![], ..plain() }, false),
        ("semantic", Asked { scoring: semantic, text: None, ..plain() }, true),
        ("counted", Asked { scoring: semantic, text: None, with_total: true, ..plain() }, true),
        ("all", Asked { scoring: semantic, text: None, k: 9_000, ..plain() }, true),
        (
            "newest",
            Asked {
                scoring: semantic,
                text: None,
                vector: vec![],
                sort_key: Some(SortKey::Newest),
                ..plain()
            },
            true,
        ),
    ]
}

#[test]
fn every_look_of_thousands_of_memories_stops_the_ranking() {
    let said: Vec<_> = (0..5_000).map(said_by).collect();
    let index = index_of(&said);
    for (name, asked, is_independent) in requests() {
        let mut looks = 0;
        let mut most = 0;
        while let Some(hits) = asked.check(&index, looks) {
            if looks == 3 {
                assert_eq!(hits > 0, is_independent, "{name}: after three of ten blocks");
            }
            most = most.max(hits);
            looks += 1 + looks / 16;
        }
        assert!(looks > 10, "{name}: {looks} looks");
        assert!(most > 0, "{name}: no partial answer has hits");
    }
}

#[test]
fn links_are_not_followed_after_the_deadline() {
    let index = index_of(&(0..20).map(said_by).collect::<Vec<_>>());
    let link = |to| Link { from: 0, to, kind: 0, strength: 0.5 };
    let links: Vec<Link> = (1..10).map(link).collect();
    let batch = Batch { linked: &[0], links: &links, ..Batch::default() };
    index.apply(&batch).expect("sound links");
    let hops = Hops { direction: Direction::Out, kinds: 1, depth: 3 };
    let linked = |looks: usize| {
        let (scope, deadline) =
            (Scope { user: Users::All, ..Scope::default() }, Deadline::after_looks(looks));
        index.linked(&Ask { scope, deadline: &deadline, ..Ask::default() }, 0, &hops, 10)
    };
    assert_eq!(linked(0), Err(Error::DeadlineExceeded));
    assert_eq!(linked(5), Err(Error::DeadlineExceeded));
    assert_eq!(linked(ENOUGH).map(|linked| linked.total), Ok(9));
}
