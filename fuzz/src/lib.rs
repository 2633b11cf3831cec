//! What several targets need: files to begin with, and an index asked for all that it answers.

use std::path::Path;

use mnemic_core::columns::{Ask, DistinctValues, ListOrder, Listing, Scope, Users};
use mnemic_core::filter::Field;
use mnemic_core::memory::links::{Direction, Hops};
use mnemic_core::{
    Answer, KeywordFields, MemoryIndex, Recency, Request, Salience, ScoringConfig, Session, Weights,
};

const SCORING: ScoringConfig = ScoringConfig {
    similarity: 0.5,
    adaptive: None,
    covered_only: false,
    chunk_penalty: 0.1,
    full_words: 9,
    keywords: KeywordFields {
        words: 1.0,
        char_ngrams: 0.4,
        bigrams: 0.3,
        previous: 0.8,
        second: 0.5,
        stop_words: 0.25,
        max_df: 0.9,
        fuzziness: 0.5,
        exponent: 1.5,
        unspaced_exponent: Some(1.0),
        k1: 0.9,
        b: Some(0.4),
    },
    session: Session {
        previous: 0.3,
        next: 0.4,
        answer: 0.2,
        second_neighbour: 0.1,
        question: 0.1,
        date: 0.2,
        date_inside: 0.1,
        speaker: 0.3,
        answer_type: 0.1,
        isolated: 0.5,
        min_lift: 0.1,
        role: 0.1,
    },
    strip_speaker_names: true,
    max_speaker_share: 0.7,
    weights: Weights {
        relevance: 1.0,
        recency: 0.1,
        importance: 0.1,
        access: 0.1,
        salience: 0.1,
        context: 0.0,
    },
    recency: Recency::NewestRank,
    salience: Salience {
        recency: 0.25,
        frequency: 0.2,
        importance: 0.25,
        half_life_days: 7.0,
        frequency_max_count: 100.0,
    },
};

/// Write files to where `cargo fuzz` keeps the inputs of a target, so that it begins with them.
pub fn begin_with(target: &str, write: impl FnOnce(&Path)) {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    if inputs.is_dir() {
        write(&inputs);
    }
}

/// Rank and list what an index has, each in every way; the ranking is returned.
pub fn answers(index: &MemoryIndex, text: &str) -> Option<Answer> {
    let ask = Ask { scope: Scope { user: Users::All, ..Scope::default() }, ..Ask::default() };
    for order in [
        ListOrder::Newest,
        ListOrder::Oldest,
        ListOrder::Importance,
        ListOrder::Accessed,
        ListOrder::AccessCount,
    ] {
        let _ = index.listed(&ask, &Listing { order, after: None, offset: 0, limit: 9 });
    }
    for field in [Field::Tags, Field::Session, Field::Metadata(["k".into()].into())] {
        let mut values = DistinctValues::new(field, None);
        let _ = index.distinct(&ask, &mut values);
        let _ = values.page(0, 9);
    }
    for row in index.unembedded().into_iter().chain([1]).take(3) {
        let hops = Hops { direction: Direction::Both, kinds: u32::MAX, depth: 3 };
        let _ = index.linked(&ask, row, &hops, 9);
    }
    let _ = index.related(text, &[(text, 1.0)], Users::All, 9);
    let _ = index.key_phrases(text, Users::All, 9);
    let _ = index.in_first_person(text, &ask);
    let _ = index.next_expiry(Users::All, 0);
    let _ = (index.has_speakers(), index.accesses(&[0, 1, 2]), index.bytes(), index.len());
    let vector = vec![1.0; index.dim()];
    index
        .rank(&Request {
            ask,
            scoring: &SCORING,
            text: Some(text),
            vectors: &vector,
            context: &[],
            k: 9,
            offset: 0,
            min_similarity: None,
            min_score: None,
            scale: None,
            evidence: None,
            with_total: true,
            explains: true,
            sort_key: None,
            min_salience: None,
            best_match: Some(0.0),
            takes_partial: false,
            proposed: None,
        })
        .ok()
}
