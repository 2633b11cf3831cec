//! Time of one fingerprint per script, and of a batch.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use mnemic_core::text::{fingerprint, fingerprints, normalise};

const TEXTS: [(&str, &str); 6] = [
    (
        "ascii",
        "She prefers the metric system and reads her mail before breakfast.",
    ),
    (
        "latin",
        "Élodie préfère le café crème à Besançon, près de l'hôtel Müller.",
    ),
    (
        "cyrillic",
        "Она предпочитает метрическую систему и читает почту до завтрака.",
    ),
    (
        "chinese",
        "她更喜欢公制单位，早餐前先读邮件，然后步行去办公室开会。",
    ),
    (
        "arabic",
        "تفضل النظام المتري وتقرأ بريدها قبل الإفطار كل صباح.",
    ),
    (
        "mixed",
        "Loves 🍕 and 👩‍💻, lives in “Zürich” (Schweiz) – nicht in Köln!",
    ),
];

fn one_text(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fingerprint");
    for (script, text) in TEXTS {
        assert_eq!(fingerprint(text), fingerprint(&normalise(text)));
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(script, |bencher| {
            bencher.iter(|| fingerprint(black_box(text)));
        });
    }
    group.finish();
}

fn batch(criterion: &mut Criterion) {
    let texts: Vec<String> = (0..10_000)
        .map(|number| format!("{} {number}", TEXTS[number % TEXTS.len()].1))
        .collect();
    assert_eq!(fingerprints(&texts)[77], fingerprint(&texts[77]));
    criterion.bench_function("fingerprints/10000 of all scripts", |bencher| {
        bencher.iter_batched(
            || &texts,
            |texts| fingerprints(texts),
            BatchSize::LargeInput,
        );
    });
}

criterion_group!(benches, one_text, batch);
criterion_main!(benches);
