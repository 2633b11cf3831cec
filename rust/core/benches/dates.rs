//! Time to look for dates in questions with and without one.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mnemic_core::text::date_ranges;

/// 18 October 2023.
const NOW: i64 = 1_697_600_000_000_000;

const QUESTIONS: [(&str, usize, &str); 8] = [
    ("none, short", 0, "What is my favourite colour?"),
    (
        "none, long",
        0,
        "Which of the two restaurants that we may have talked about did she like better, and why?",
    ),
    ("day", 1, "What did we decide about the kitchen on 7 May 2023?"),
    ("relative", 1, "What did I say about the new job last week?"),
    ("span", 1, "Where was she between August 11 and August 15 2023?"),
    ("none, Chinese", 0, "我曾经和你提到我去过绿禾公园，我在绿禾公园看到了什么景色？"),
    ("day, Chinese", 1, "在5月6号，我和你分享了一些书籍，是哪些书？"),
    ("three", 3, "Was it on 3 May or on 8 June 2022, or only in 2020, that they moved?"),
];

fn questions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("date_ranges");
    for (name, count, question) in QUESTIONS {
        assert_eq!(date_ranges(question, NOW, &|| None).len(), count);
        group.bench_function(name, |bencher| {
            bencher.iter(|| date_ranges(black_box(question), NOW, &|| None));
        });
    }
    group.finish();
}

criterion_group!(benches, questions);
criterion_main!(benches);
