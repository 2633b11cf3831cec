//! `VectorMap::search` at several sizes, one query at a time, float32 unit rows, k = 10.
//!
//! Each benchmark first checks its answer against scoring every row.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mnemic_core::{Metric, Prior, Search, Selection, VectorMap};

/// Sums of uniform numbers, near enough to normal ones (`SplitMix64`).
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (0..4).map(|part| (mixed >> (16 * part) & 0xffff) as f32 / 65_536.0 - 0.5).sum::<f32>()
    };
    (0..count).map(|_| next()).collect()
}

fn checked_map(dim: usize, rows: usize) -> (VectorMap, Vec<f32>) {
    let map = VectorMap::new(dim, Metric::Cosine).expect("a valid dimension");
    let ids: Vec<i64> = (0..rows as i64).collect();
    map.replace(&ids, &numbers(1, dim * rows)).expect("valid rows");
    map.flush();
    let query = numbers(2, dim);
    let every =
        map.search(&query, &Search { k: rows, ..Search::default() }).expect("a valid query");
    let best = map.search(&query, &Search::default()).expect("a valid query");
    assert_eq!(best[0], every[0][..10.min(rows)]);
    (map, query)
}

fn search(criterion: &mut Criterion) {
    let mut group = criterion
        .benchmark_group(format!("search/{}", mnemic_core::kernel_name().expect("a kernel")));
    for (dim, rows) in [
        (384, 32),
        (384, 64),
        (384, 256),
        (384, 1000),
        (384, 10_000),
        (384, 100_000),
        (1536, 10_000),
    ] {
        let (map, query) = checked_map(dim, rows);
        group.throughput(Throughput::Bytes((dim * rows) as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("{rows}x{dim}")), |bench| {
            bench.iter(|| map.search(&query, &Search::default()));
        });
    }
    group.finish();
}

fn selection(criterion: &mut Criterion) {
    let (map, query) = checked_map(384, 100_000);
    let mut group = criterion.benchmark_group("selection/100000x384");
    for share in [1000, 100, 10, 2] {
        let ids: Vec<i64> = (0..100_000 / share).map(|id| id * 7919 % 100_000).collect();
        let selection = Selection::new(&ids);
        let search = Search { allow: Some(&selection), ..Search::default() };
        group.bench_function(BenchmarkId::from_parameter(format!("1 in {share}")), |bench| {
            bench.iter(|| map.search(&query, &search));
        });
    }
    group.finish();
}

fn ranking(criterion: &mut Criterion) {
    let (map, _) = checked_map(384, 100_000);
    let queries = numbers(3, 384 * 64);
    let ids: Vec<i64> = (0..100_000).collect();
    let prior = Prior::new(&ids, &numbers(4, 100_000)).expect("finite values");
    let mut group = criterion.benchmark_group("ranking/100000x384");
    for count in [1, 2, 4, 8, 64] {
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("queries", count), |bench| {
            bench.iter(|| map.search(&queries[..384 * count], &Search::default()));
        });
    }
    let query = &queries[..384];
    let cases = [
        ("united 8", Search { combined_by_max: true, ..Search::default() }),
        ("prior", Search { prior: Some(&prior), weight: 0.5, ..Search::default() }),
        ("two threads", Search { threads: 2, ..Search::default() }),
    ];
    for (name, search) in cases {
        let queries = if search.combined_by_max { &queries[..384 * 8] } else { query };
        group.throughput(Throughput::Elements(1));
        group.bench_function(name, |bench| bench.iter(|| map.search(queries, &search)));
    }
    let counted = Search { min_score: 0.1, ..Search::default() };
    group.bench_function("count", |bench| bench.iter(|| map.count(query, &counted)));
    group.finish();
}

criterion_group!(benches, search, selection, ranking);
criterion_main!(benches);
