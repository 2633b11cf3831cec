//! Time of keyword scoring over synthetic memories of twelve words, and the memory they take.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use mnemic_core::lexical::{Carried, Collection, Fields, Lexical, Options, Scores};
use mnemic_core::text::Analysis;

const MEMORIES: usize = 100_000;
const WORDS: usize = 12;
const QUERY_WORDS: usize = 8;
const QUERIES: usize = 20;
const VOCABULARY: usize = 60_000;
const STOP_WORDS: [&str; 20] = [
    "the", "to", "and", "a", "of", "i", "in", "you", "it", "is", "that", "for", "was", "my", "on",
    "with", "have", "at", "so", "we",
];
const ONSETS: [&str; 20] = [
    "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pr", "ch",
    "gr", "",
];
const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ea", "ou", "io"];
const CODAS: [&str; 10] = ["", "", "n", "r", "l", "s", "t", "nt", "m", "ck"];

/// The generator `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A rank below `bound` with probability about 1 / rank.
    #[expect(clippy::cast_sign_loss, reason = "a power of at least one, less one, is not negative")]
    fn zipfian(&mut self, bound: usize) -> usize {
        ((bound as f64 + 1.0).powf(self.fraction()) - 1.0) as usize
    }

    fn one_of<'list>(&mut self, list: &[&'list str]) -> &'list str {
        list[self.below(list.len())]
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        for _ in 0..1 + self.below(2) + self.below(3) {
            let syllable = [self.one_of(&ONSETS), self.one_of(&VOWELS), self.one_of(&CODAS)];
            word.extend(syllable);
        }
        word
    }
}

struct Data {
    texts: Vec<String>,
    queries: Vec<String>,
}

fn data() -> Data {
    let mut random = Random(7);
    let mut words: Vec<String> = STOP_WORDS.iter().map(|&word| word.to_owned()).collect();
    words.extend((STOP_WORDS.len()..VOCABULARY).map(|_| random.word()));
    let mut sentence = |len: usize, first: usize| {
        let mut text = String::new();
        for _ in 0..len {
            let word = &words[first + random.zipfian(VOCABULARY - first)];
            write!(text, "{word} ").expect("writing to a String cannot fail");
        }
        text
    };
    // Lengths 8 to 16, so that length counts.
    let texts = (0..MEMORIES).map(|row| sentence(WORDS - 4 + row * 7 % 9, 0)).collect();
    let queries = (0..QUERIES).map(|_| sentence(QUERY_WORDS, STOP_WORDS.len())).collect();
    Data { texts, queries }
}

fn filled(texts: &[String]) -> Lexical {
    let mut lexical = Lexical::new(Analysis::default());
    for text in texts {
        let analysed = lexical.analyse(text);
        lexical.push(&analysed, 0);
    }
    lexical
}

/// The place of each turn's next one, in sessions of twenty turns.
fn sessions(len: usize) -> Vec<u32> {
    let next = (1..=len as u32).map(|next| if next % 20 == 0 { u32::MAX } else { next });
    next.map(|next| if next == len as u32 { u32::MAX } else { next }).collect()
}

fn options(words: bool, ngrams: bool, bigrams: bool) -> Options {
    Options { fields: Fields { words, ngrams, bigrams }, ..Options::default() }
}

fn scoring(criterion: &mut Criterion) {
    let Data { texts, queries } = data();
    let lexical = filled(&texts);
    let mut out = std::io::stdout();
    let bytes = lexical.bytes() as f64 / MEMORIES as f64;
    writeln!(out, "{bytes:.0} bytes a memory, its share of the vocabulary included").expect("open");
    let all: Vec<u32> = (0..MEMORIES as u32).collect();
    let few: Vec<u32> = all.iter().copied().step_by(MEMORIES / 5_000).collect();
    let user: Vec<u32> = (40_000..45_000).collect();
    let mut group = criterion.benchmark_group("lexical");
    let keyword =
        Options { stop_words: 0.25, max_df: 0.2, fuzziness: 0.5, ..options(true, false, false) };
    for (fields, options) in [
        ("words", options(true, false, false)),
        ("words, common ones left out", keyword),
        ("words and grams", options(true, true, false)),
        ("all fields", options(true, true, true)),
    ] {
        let made: Vec<_> =
            queries.iter().map(|text| lexical.query(text, Collection::All, &options)).collect();
        group.bench_function(format!("{fields}: query"), |bencher| {
            let mut turn = queries.iter().cycle();
            bencher
                .iter(|| lexical.query(turn.next().expect("endless"), Collection::All, &options));
        });
        for (name, docids) in [("100,000", &all), ("5,000 spread", &few), ("5,000 together", &user)]
        {
            let next = sessions(docids.len());
            let carried = Carried { next: &next, first: 0.8, second: 0.5 };
            let mut scores = Scores::default();
            for (turns, carried) in [("", None), (" carried", Some(&carried))] {
                let mut turn = made.iter().cycle();
                group.bench_function(format!("{fields}: {name}{turns}"), |bencher| {
                    bencher.iter(|| {
                        let query = turn.next().expect("endless");
                        lexical.scores(query, black_box(docids), carried, &mut scores);
                    });
                });
                lexical.scores(&made[0], docids, carried, &mut scores);
                assert!(scores.words.iter().any(|&score| score > 0.0));
            }
        }
    }
    group.bench_function("query of one unknown word", |bencher| {
        let mut turn = ["trounted", "stoumiecker", "greanontis"].iter().cycle();
        bencher.iter(|| lexical.query(turn.next().expect("endless"), Collection::All, &keyword));
    });
    group.finish();
}

fn changing(criterion: &mut Criterion) {
    let texts = data().texts;
    let mut lexical = filled(&texts);
    let mut turn = texts.iter().cycle();
    criterion.bench_function("lexical/analyse", |bencher| {
        bencher.iter(|| lexical.analyse(turn.next().expect("endless")));
    });
    criterion.bench_function("lexical/snapshot", |bencher| bencher.iter(|| lexical.clone()));
    let mut snapshot = lexical.clone();
    criterion.bench_function("lexical/analyse, push, publish a snapshot", |bencher| {
        bencher.iter(|| {
            let analysed = lexical.analyse(turn.next().expect("endless"));
            lexical.push(&analysed, 0);
            snapshot = lexical.clone();
        });
    });
    criterion.bench_function("lexical/remove from a copy", |bencher| {
        bencher.iter_batched(
            || lexical.clone(),
            |mut copy| assert!(copy.remove(77_777, 0)),
            BatchSize::SmallInput,
        );
    });
    assert_eq!(snapshot.docids(), lexical.docids());
}

criterion_group!(benches, scoring, changing);
criterion_main!(benches);
