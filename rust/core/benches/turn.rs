//! Time to take one turn apart.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mnemic_core::text::turn;

const TURNS: [(&str, bool, &str); 4] = [
    ("statement", false, "Anna: I moved to the other side of the river, where the rent is lower."),
    ("question", true, "Anna Lee: Did you see the heron on the way to the lake this morning?"),
    ("note", true, "Anna: Isn't it lovely? 😀 [shares a photo: a grey heron beside a lake]"),
    ("no label", false, "the list for tomorrow has bread, rice and two kinds of apples on it"),
];

fn turns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("turn");
    for (name, asks, content) in TURNS {
        assert_eq!(turn(content).asks, asks);
        group.bench_function(name, |bencher| bencher.iter(|| turn(black_box(content))));
    }
    group.finish();
}

criterion_group!(benches, turns);
criterion_main!(benches);
