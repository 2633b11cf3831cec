//! Times of the text work on the memories of a prompt: 40 of 2 kB, and 1,000.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mnemic_core::rank::interleaving::{Interleaving, Scored, interleaved};
use mnemic_core::text::{duplicates, neutralise};

const BYTES: usize = 2_000;
const COUNTS: [usize; 2] = [40, 1_000];

/// Pseudo-random numbers, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Small numbers more often, as words of a language are.
    fn word<'a>(&mut self, words: &'a [String]) -> &'a str {
        let (first, second) = (self.next() % words.len() as u64, self.next() % words.len() as u64);
        &words[(first * second / words.len() as u64) as usize]
    }

    fn text(&mut self, words: &[String], between: &[&str]) -> String {
        let mut text = String::new();
        while text.len() < BYTES {
            text.push_str(self.word(words));
            text.push_str(between[self.next() as usize % between.len()]);
        }
        text.truncate(
            text.char_indices().take_while(|(at, _)| *at <= BYTES).last().map_or(0, |(at, _)| at),
        );
        text
    }
}

fn words(random: &mut Random, letters: &str) -> Vec<String> {
    let letters: Vec<char> = letters.chars().collect();
    let mut word = || {
        (0..2 + random.next() % 7)
            .map(|_| letters[random.next() as usize % letters.len()])
            .collect()
    };
    (0..3_000).map(|_| word()).collect()
}

/// Texts that share nearly all of their trigrams with each other, and are no near duplicates.
fn alike(random: &mut Random, words: &[String], count: usize) -> Vec<String> {
    let base = random.text(words, &[" "]);
    let mut variant = || {
        let mut parts: Vec<&str> = base.split(' ').collect();
        for _ in 0..40 {
            let place = random.next() as usize % parts.len();
            parts[place] = random.word(words);
        }
        parts.join(" ")
    };
    (0..count).map(|_| variant()).collect()
}

fn repeated_texts(criterion: &mut Criterion) {
    let mut random = Random(7);
    let words = words(&mut random, "etaoinshrdlucmfwypvbgk");
    for count in COUNTS {
        let texts: Vec<String> = (0..count).map(|_| random.text(&words, &[" "])).collect();
        let alike = alike(&mut random, &words, count);
        let mut group = criterion.benchmark_group(format!("duplicates/{count}"));
        for (name, texts, near) in [
            ("exact", &texts, None),
            ("near", &texts, Some(0.95)),
            ("near, alike at 0.95", &alike, Some(0.95)),
            ("near, alike at 0.9", &alike, Some(0.9)),
        ] {
            assert_eq!(duplicates(texts, near).expect("in range").len(), count);
            group.bench_function(name, |bencher| {
                bencher.iter(|| duplicates(black_box(texts), near));
            });
        }
        group.finish();
    }
}

fn order(criterion: &mut Criterion) {
    let mut random = Random(7);
    for count in COUNTS {
        let mut memory =
            || Scored { score: (random.next() % 1_000) as f64, time: random.next() as i64 };
        let memories: Vec<Scored> = (0..count).map(|_| memory()).collect();
        criterion.bench_function(&format!("interleaved/{count}"), |bencher| {
            bencher.iter(|| interleaved(black_box(&memories), 8, Interleaving::Alternate, 0.5));
        });
    }
}

fn harmless_lines(criterion: &mut Criterion) {
    let mut random = Random(7);
    let latin = words(&mut random, "etaoinshrdlucmfwypvbgk");
    let cyrillic = words(&mut random, "оеаинтсрвлкмдпуяыьгзб");
    let han = words(&mut random, "的一是不了人我在有他这中大来上国");
    let prose = [" ", " ", " ", " ", ", ", ". ", " – ", "’s ", "\n", ": "];
    let markup = [" ", "\n", "\n# ", "\n- ", " <b>", "```", "  ", "\u{200b}"];
    let mut group = criterion.benchmark_group("neutralise");
    for (name, words, between) in [
        ("plain", &latin, &[" "][..]),
        ("prose", &latin, &prose[..]),
        ("markup", &latin, &markup[..]),
        ("Cyrillic", &cyrillic, &prose[..]),
        ("Chinese", &han, &["，", "。", "", "", "\n"][..]),
    ] {
        let text: String = (0..100).map(|_| random.text(words, between) + " ").collect();
        assert!(!neutralise(&text).contains('\n'));
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| neutralise(black_box(&text)).len()));
    }
    group.finish();
}

criterion_group!(benches, repeated_texts, order, harmless_lines);
criterion_main!(benches);
