use proptest::prelude::*;

use super::*;
use crate::columns::{Scope, Users};
use crate::deadline::NEVER;
use crate::rank::cosine_scale::CosineScale;
use crate::rank::keyword_match::FirstPass;
use crate::rank::scoring_config::{KeywordFields, ScoringConfig, Session, Weights};
use crate::rank::signals::{Recency, Salience};
use crate::text::Analysis;

pub(super) const DIM: usize = 3;

/// Few, so that words recur in most memories; the last is in none.
const WORDS: [&str; 12] = [
    "the", "a", "of", "my", "violin", "harbour", "bicycle", "cat", "cats", "kettle", "blue", "zinc",
];

#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) words: Vec<usize>,
    pub(super) session: u8,
    pub(super) user: u8,
    pub(super) vector: Option<[i8; DIM]>,
    pub(super) asks: bool,
}

pub(super) fn any_said() -> impl Strategy<Value = Said> {
    let words = prop::collection::vec(0..WORDS.len() - 1, 0..9);
    // A null vector has no direction; few components make ties.
    let vector = prop::option::weighted(0.9, prop::array::uniform3(1_i8..3));
    (words, 0_u8..4, 0_u8..2, vector, any::<bool>()).prop_map(
        |(words, session, user, vector, asks)| Said { words, session, user, vector, asks },
    )
}

pub(super) fn text_of(words: &[usize]) -> String {
    words.iter().map(|at| WORDS[*at]).collect::<Vec<_>>().join(" ")
}

pub(super) fn index_of(said: &[Said]) -> MemoryIndex {
    let index = MemoryIndex::new(Some(DIM), Analysis::default(), None).expect("a kernel");
    let record = |(row, said): (usize, &Said)| Record {
        row: row as i64,
        // Neither rows nor times order the ids.
        id: [(row * 37 % 251) as u8; 16],
        user: Some(format!("user {}", said.user)),
        session: (said.session > 0).then(|| format!("session {}", said.session)),
        created_at: (row / 3) as i64,
        importance: f64::from(said.user) / 2.0,
        content: text_of(&said.words) + if said.asks { "?" } else { "" },
        ..Record::default()
    };
    let records: Vec<Record> = said.iter().enumerate().map(record).collect();
    let embedded = said.iter().enumerate().filter_map(|(row, said)| Some((row, said.vector?)));
    let (rows, vectors): (Vec<i64>, Vec<[i8; DIM]>) =
        embedded.map(|(row, vector)| (row as i64, vector)).unzip();
    let vectors: Vec<f32> = vectors.into_iter().flatten().map(f32::from).collect();
    let (records, embedded, vectors) = (&records, &rows, &vectors);
    let batch = Batch { records, embedded, vectors, ..Batch::default() };
    index.apply(&batch).expect("sound records");
    index
}

fn any_keywords() -> impl Strategy<Value = KeywordFields> {
    let share = || prop::sample::select(vec![0.0, 0.5, 0.8, 1.0]);
    let exponent = prop::sample::select(vec![1.0, 1.5]);
    let fuzziness = prop::sample::select(vec![0.0, 0.5]);
    let saturation = (prop::sample::select(vec![0.0, 0.9, 2.5]), prop::option::of(share()));
    (share(), share(), 0.0..=1.0, fuzziness, exponent, saturation).prop_map(
        |(previous, second, stop_words, fuzziness, exponent, (k1, b))| KeywordFields {
            words: 1.0,
            char_ngrams: 0.0,
            bigrams: 0.0,
            previous,
            second,
            stop_words,
            max_df: 1.0,
            fuzziness,
            exponent,
            unspaced_exponent: None,
            k1,
            b,
        },
    )
}

pub(super) fn any_scoring() -> impl Strategy<Value = ScoringConfig> {
    let share = || prop::sample::select(vec![0.0, 0.2, 0.5]);
    let session = (share(), share(), share(), share(), share()).prop_map(
        |(previous, next, answer, second_neighbour, isolated)| Session {
            previous,
            next,
            answer,
            second_neighbour,
            isolated,
            question: 0.05,
            min_lift: 0.4,
            ..Session::default()
        },
    );
    (any_keywords(), session, share(), share(), prop::sample::select(vec![0, 3, 6])).prop_map(
        |(keywords, session, similarity, importance, full_words)| ScoringConfig {
            similarity,
            adaptive: None,
            covered_only: false,
            chunk_penalty: 0.04,
            full_words,
            keywords,
            session,
            strip_speaker_names: false,
            max_speaker_share: 0.0,
            weights: Weights { relevance: 1.0, importance, ..Weights::default() },
            recency: Recency::NewestRank,
            salience: Salience {
                recency: 0.0,
                frequency: 0.0,
                importance: 0.0,
                half_life_days: 7.0,
                frequency_max_count: 100.0,
            },
        },
    )
}

/// A scoring with neighbours, keywords and similarity.
pub(super) fn scoring() -> ScoringConfig {
    ScoringConfig {
        similarity: 0.5,
        adaptive: None,
        covered_only: false,
        chunk_penalty: 0.0,
        full_words: 0,
        keywords: KeywordFields {
            words: 1.0,
            char_ngrams: 0.0,
            bigrams: 0.0,
            previous: 0.8,
            second: 0.5,
            stop_words: 0.25,
            max_df: 1.0,
            fuzziness: 0.5,
            exponent: 1.5,
            unspaced_exponent: Some(1.0),
            k1: 0.9,
            b: Some(0.4),
        },
        session: Session { next: 0.4, isolated: 0.5, ..Session::default() },
        strip_speaker_names: false,
        max_speaker_share: 0.0,
        weights: Weights { relevance: 1.0, ..Weights::default() },
        recency: Recency::CreatedLinear { days: 365.0 },
        salience: Salience {
            recency: 0.25,
            frequency: 0.2,
            importance: 0.25,
            half_life_days: 7.0,
            frequency_max_count: 100.0,
        },
    }
}

fn any_scale() -> impl Strategy<Value = Option<CosineScale>> {
    let made = |(mean, spread)| CosineScale { mean, spread, floor: mean, lower_limit: mean };
    prop::option::of((-0.5..0.95, 0.0..0.3).prop_map(made))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_first_pass_without_non_essential_terms_changes_no_answer(
        said in prop::collection::vec(any_said(), 1..120),
        asked in prop::collection::vec(0..WORDS.len(), 1..7),
        scoring in any_scoring(),
        vector in prop::option::of(prop::array::uniform3(1_i8..4)),
        one_user in any::<bool>(),
        (k, with_total) in (0_usize..12, any::<bool>()),
        min in prop::option::of(0.0..0.6),
        min_similarity in prop::option::of(0.0..1.0),
        best_match in prop::option::of(Just(0.0)),
        scale in any_scale(),
        non_essential_share in 0.1_f32..0.9,
    ) {
        let index = index_of(&said);
        let text = text_of(&asked);
        let vector: Vec<f32> = vector.into_iter().flatten().map(f32::from).collect();
        let user = if one_user { Users::One("user 1") } else { Users::All };
        let request = Request {
            ask: Ask { scope: Scope { user, ..Scope::default() }, ..Ask::default() },
            scoring: &scoring,
            text: Some(&text),
            vectors: &vector,
            context: &[],
            k,
            offset: 0,
            min_similarity,
            min_score: min,
            scale,
            evidence: None,
            with_total,
            explains: true,
            sort_key: None,
            min_salience: None,
            best_match,
            takes_partial: false,
            proposed: None,
        };
        let snapshot = index.store.snapshot();
        let answer = |first_pass: &dyn Fn(usize, usize) -> FirstPass| {
            let (request, deadline) = (&request, &NEVER);
            let snapshot = &snapshot;
            let index = &index;
            let selection = None;
            Query { index, snapshot, request, first_pass, deadline, selection }.answer()
        };
        let wanted = answer(&|_, _| FirstPass::WHOLE);
        for few in [0, 3, usize::MAX] {
            prop_assert_eq!(&answer(&|_, _| FirstPass { non_essential_share, few }), &wanted);
        }
    }
}

/// A scoring whose parts may depend on the whole selection.
fn any_scoring_of_selections() -> impl Strategy<Value = ScoringConfig> {
    let weight = || prop::sample::select(vec![0.0, 0.0, 0.3]);
    let similarity = prop::sample::select(vec![0.25, 0.5, 1.0]);
    (any_scoring(), similarity, weight(), weight(), any::<bool>(), any::<bool>()).prop_map(
        |(scoring, similarity, recency, context, is_plain, has_session)| {
            let session = if has_session { scoring.session } else { Session::default() };
            let plain = Weights { relevance: 1.0, ..Weights::default() };
            let weighed = Weights { recency, context, ..scoring.weights };
            let weights = if is_plain { plain } else { weighed };
            ScoringConfig { similarity, session, weights, ..scoring }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn proposed_rows_score_as_in_the_ranking_of_all(
        said in prop::collection::vec(any_said(), 1..120),
        asked in prop::option::of(prop::collection::vec(0..WORDS.len(), 1..7)),
        scoring in any_scoring_of_selections(),
        vector in prop::array::uniform3(1_i8..4),
        one_user in any::<bool>(),
        (k, with_total) in (0_usize..12, any::<bool>()),
        min_score in prop::option::of(0.0..0.6),
        min_similarity in prop::option::of(0.0..1.0),
        proposed in prop::collection::vec(-3_i64..130, 0..40),
        scale in any_scale(),
    ) {
        let index = index_of(&said);
        let text = asked.map(|asked| text_of(&asked));
        let vector = vector.map(f32::from);
        let user = if one_user { Users::One("user 1") } else { Users::All };
        let request = |k: usize, proposed| Request {
            ask: Ask { scope: Scope { user, ..Scope::default() }, ..Ask::default() },
            scoring: &scoring,
            text: text.as_deref(),
            vectors: &vector,
            context: &[1.0, 0.0, 0.0],
            k,
            offset: 0,
            min_similarity,
            min_score,
            scale,
            evidence: None,
            with_total,
            explains: true,
            sort_key: None,
            min_salience: None,
            best_match: None,
            takes_partial: false,
            proposed,
        };
        let rank = |k, proposed| index.rank(&request(k, proposed)).expect("a sound request");
        let exact = rank(1000, None);
        let hostile = [proposed.clone(), vec![i64::MIN, i64::MAX, -1], proposed.clone()].concat();
        let answer = rank(1000, Some(&hostile[..]));
        let is_hit = |hit: &&Hit| answer.hits.contains(hit);
        let expected: Vec<Hit> = exact.hits.iter().filter(is_hit).cloned().collect();
        prop_assert_eq!(&answer.hits, &expected, "scores, parts and order are those of all");
        for hit in exact.hits.iter().filter(|hit| proposed.contains(&hit.row)) {
            prop_assert!(answer.hits.contains(hit), "{} was proposed", hit.row);
        }
        prop_assert!(answer.is_approximate || answer.hits == exact.hits);
        prop_assert_eq!(answer.total, with_total.then_some(answer.hits.len()));
        let head = rank(k, Some(&proposed[..]));
        prop_assert!(k > 0 || head.hits.is_empty());
        prop_assert_eq!(&head.hits[..], &answer.hits[..k.min(answer.hits.len())]);
        let everything: Vec<i64> = (0..1000).collect();
        let of_all = rank(k, Some(&everything[..]));
        prop_assert_eq!(&of_all.hits[..], &exact.hits[..k.min(exact.hits.len())]);
        let is_ranked = k > 0 || with_total;
        prop_assert!(!of_all.is_approximate);
        prop_assert!(!is_ranked || !exact.is_approximate);
    }
}
