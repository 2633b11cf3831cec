//! `VectorMap` against a naive twin: the answer of float64 brute force, for every input.

use std::collections::BTreeMap;

use mnemic_core::{Hit, Metric, Prior, Search, Selection, VectorMap};
use proptest::prelude::*;

/// A naive map: rows by id, scored one by one.
#[derive(Default, Clone)]
struct Twin(BTreeMap<i64, Vec<f32>>);

/// Float64 inner product over eight lanes and the fixed tree.
fn score(row: &[f32], query: &[f32]) -> f64 {
    let mut lanes = [0.0_f64; 8];
    for (at, (a, b)) in row.iter().zip(query).enumerate() {
        lanes[at % 8] += f64::from(*a) * f64::from(*b);
    }
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6]))
        + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

impl Twin {
    fn search(&self, query: &[f32], k: usize, allow: Option<&[i64]>, min: f64) -> Vec<Hit> {
        let allowed = |id: &i64| allow.is_none_or(|ids| ids.contains(id));
        let rows = self.0.iter().filter(|(id, _)| allowed(id));
        let mut hits: Vec<Hit> = rows
            .map(|(id, row)| Hit { score: score(row, query), id: *id })
            .filter(|hit| hit.score >= min)
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        hits.truncate(k);
        hits
    }
}

fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        12 => -1.0_f32..1.0,
        2 => Just(0.0),
        1 => Just(1.0),
        1 => Just(-100.0),
        1 => Just(1e30),
        1 => Just(-1e30),
        1 => Just(f32::MAX),
        1 => Just(1e-42),
        1 => Just(-1e-45),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Upsert(Vec<(i64, u64)>),
    Replace(Vec<(i64, u64)>),
    Remove(Vec<i64>),
    Search { query: u64, k: usize, allow: Option<Vec<i64>>, min: Option<u64> },
}

fn distinct() -> impl Strategy<Value = Vec<(i64, u64)>> {
    prop::collection::btree_map(-90_i64..90, any::<u64>(), 0..150)
        .prop_map(|rows| rows.into_iter().collect())
}

fn step() -> impl Strategy<Value = Step> {
    let allow = prop::option::of(prop::collection::vec(-100_i64..100, 0..120));
    prop_oneof![
        4 => distinct().prop_map(Step::Upsert),
        1 => distinct().prop_map(Step::Replace),
        2 => prop::collection::vec(-100_i64..100, 0..60).prop_map(Step::Remove),
        6 => (any::<u64>(), 0_usize..220, allow, prop::option::of(any::<u64>()))
            .prop_map(|(query, k, allow, min)| Step::Search { query, k, allow, min }),
    ]
}

/// Vectors to draw rows and queries from, so that duplicates and exact ties are common.
fn pool() -> impl Strategy<Value = Vec<Vec<f32>>> {
    (1_usize..70, 1_usize..40).prop_flat_map(|(dim, count)| {
        prop::collection::vec(prop::collection::vec(value(), dim), count)
    })
}

fn pick(pool: &[Vec<f32>], seed: u64) -> &[f32] {
    &pool[(seed % pool.len() as u64) as usize]
}

fn flat(pool: &[Vec<f32>], rows: &[(i64, u64)]) -> (Vec<i64>, Vec<f32>) {
    let ids = rows.iter().map(|(id, _)| *id).collect();
    let vectors = rows.iter().flat_map(|(_, seed)| pick(pool, *seed).to_vec()).collect();
    (ids, vectors)
}

fn run(metric: Metric, pool: &[Vec<f32>], steps: Vec<Step>) -> Result<(), TestCaseError> {
    let dim = pool[0].len();
    let map = VectorMap::new(dim, metric).expect("a valid dimension");
    let unit = VectorMap::new(dim, metric).expect("a valid dimension");
    let stored = |vector: &[f32]| {
        unit.replace(&[0], vector).expect("finite");
        unit.get(&[0]).expect("just stored")
    };
    let mut twin = Twin::default();
    for step in steps {
        match step {
            Step::Upsert(rows) => {
                let (ids, vectors) = flat(pool, &rows);
                map.upsert(&ids, &vectors).expect("valid");
                twin.0.extend(rows.iter().map(|(id, seed)| (*id, stored(pick(pool, *seed)))));
            }
            Step::Replace(rows) => {
                let (ids, vectors) = flat(pool, &rows);
                map.replace(&ids, &vectors).expect("valid");
                twin.0 = rows.iter().map(|(id, seed)| (*id, stored(pick(pool, *seed)))).collect();
            }
            Step::Remove(ids) => {
                let before = twin.0.len();
                twin.0.retain(|id, _| !ids.contains(id));
                prop_assert_eq!(map.remove(&ids).expect("fits"), before - twin.0.len());
            }
            Step::Search { query, k, allow, min } => {
                let query = pick(pool, query);
                let own = stored(query);
                let min =
                    min.map_or(f64::NEG_INFINITY, |seed| score(&stored(pick(pool, seed)), &own));
                let selection = allow.as_deref().map(Selection::new);
                let search =
                    Search { k, allow: selection.as_ref(), min_score: min, ..Search::default() };
                let wanted = twin.search(&own, k, allow.as_deref(), min);
                for _ in 0..2 {
                    let found = map.search(query, &search).expect("valid").remove(0);
                    prop_assert_eq!(&found, &wanted);
                }
            }
        }
        prop_assert_eq!(map.len(), twin.0.len());
    }
    let ids: Vec<i64> = twin.0.keys().copied().collect();
    let rows: Vec<f32> = twin.0.values().flatten().copied().collect();
    prop_assert_eq!(map.get(&ids).expect("all there"), rows);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn inner_product_answers_are_those_of_brute_force(
        pool in pool(), steps in prop::collection::vec(step(), 1..14)
    ) {
        run(Metric::InnerProduct, &pool, steps)?;
    }

    #[test]
    fn cosine_answers_are_those_of_brute_force(
        pool in pool(), steps in prop::collection::vec(step(), 1..14)
    ) {
        run(Metric::Cosine, &pool, steps)?;
    }
}

/// Deterministic numbers in −1..1.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn check_large(dim: usize, rows: usize, vectors: &[f32]) {
    let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
    let ids: Vec<i64> = (0..rows as i64).rev().map(|id| id * 3 - 50).collect();
    map.replace(&ids, vectors).expect("valid");
    let twin =
        Twin(ids.iter().zip(vectors.chunks(dim)).map(|(id, row)| (*id, row.to_vec())).collect());
    let some: Vec<i64> = ids.iter().copied().step_by(37).collect();
    let max: Vec<i64> = ids.iter().copied().filter(|id| id % 5 != 0).collect();
    for (seed, k) in [(90, 1), (91, 10), (92, 100), (93, rows / 3), (94, rows + 5)] {
        let query = numbers(seed, dim);
        for allow in [None, Some(&some), Some(&max)] {
            let selection = allow.map(|ids| Selection::new(ids));
            let search = Search { k, allow: selection.as_ref(), ..Search::default() };
            let found = map.search(&query, &search).expect("valid").remove(0);
            let wanted = twin.search(&query, k, allow.map(Vec::as_slice), f64::NEG_INFINITY);
            assert_eq!(found, wanted, "dim {dim}, {rows} rows, k {k}");
        }
    }
}

#[test]
fn large_maps_answer_as_brute_force_does() {
    for (dim, rows) in [(1, 3000), (7, 9001), (64, 9000), (385, 3000), (1536, 700), (4096, 300)] {
        check_large(dim, rows, &numbers(dim as u64, dim * rows));
    }
}

#[test]
fn outlier_dimensions_and_duplicates_change_nothing() {
    let (dim, rows) = (48, 2000);
    let mut outliers = numbers(5, dim * rows);
    outliers.iter_mut().step_by(dim).for_each(|value| *value *= 100.0);
    check_large(dim, rows, &outliers);
    let repeated: Vec<f32> = numbers(6, dim * 10).repeat(rows / 10);
    check_large(dim, rows, &repeated);
    check_large(dim, rows, &vec![0.25; dim * rows]);
    let norms: Vec<f32> =
        (0..dim * rows).map(|at| 10.0_f32.powi((at / dim % 60) as i32 - 30)).collect();
    check_large(dim, rows, &norms);
}

/// Rows that differ mostly in a few directions, so that complete segments get sketches.
fn alike(dim: usize, rows: usize) -> Vec<f32> {
    const DIRECTIONS: usize = 20;
    let directions = numbers(31, DIRECTIONS * dim);
    let shares = numbers(32, rows * DIRECTIONS);
    let mut vectors: Vec<f32> = numbers(33, rows * dim).iter().map(|value| 0.3 * value).collect();
    for (row, shares) in vectors.chunks_mut(dim).zip(shares.chunks(DIRECTIONS)) {
        for (share, direction) in shares.iter().zip(directions.chunks(dim)) {
            row.iter_mut().zip(direction).for_each(|(value, part)| *value += share * part);
        }
    }
    vectors
}

/// A long scan by every way that leads through it: several groups of segments, gathered rows,
/// blocks that are skipped, one query, passes of several, more combined ones than a pass holds.
#[test]
fn every_way_of_a_long_scan_answers_as_brute_force_does() {
    let (dim, rows, queries) = (256, 42_000, 11);
    let vectors = alike(dim, rows);
    let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
    let ids: Vec<i64> = (0..rows as i64).rev().collect();
    map.replace(&ids, &vectors).expect("valid");
    let asked: Vec<f32> = vectors[..queries * dim].iter().map(|value| value * 0.9).collect();
    let priors: Vec<f32> = numbers(34, rows).iter().map(|value| value * 300.0).collect();
    let prior = Prior::new(&ids, &priors).expect("finite");
    let product =
        |query: &[f32]| -> Vec<f64> { vectors.chunks(dim).map(|row| score(row, query)).collect() };
    let products: Vec<Vec<f64>> = asked.chunks(dim).map(product).collect();
    let scattered = |share: usize| -> Vec<usize> {
        (0..rows).filter(|row| row.wrapping_mul(0x9e37_79b9) >> 7 & 1023 < share).collect()
    };
    let selections = [
        (0..rows).collect(),
        scattered(12),
        scattered(163),
        scattered(500),
        (9_000..17_500).collect(),
    ];
    assert!((6_001..rows / 6).contains(&selections[2].len()), "more than are read by bytes");
    for state in ["new", "sealed"] {
        for selected in &selections {
            let named: Vec<i64> = selected.iter().map(|row| ids[*row]).collect();
            let selection = Selection::new(&named);
            let allow = (selected.len() < rows).then_some(&selection);
            for (weight, values) in [(1.0, None), (0.5, Some(&prior))] {
                let best = |products: &[&Vec<f64>]| {
                    let hit = |row: &usize| {
                        let nearest = products.iter().map(|all| all[*row]);
                        let nearest = nearest.fold(f64::NEG_INFINITY, f64::max);
                        let added = values.map_or(0.0, |_| f64::from(priors[*row]));
                        Hit { score: weight * nearest + added, id: ids[*row] }
                    };
                    let mut hits: Vec<Hit> = selected.iter().map(hit).collect();
                    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
                    hits.truncate(10);
                    hits
                };
                let name = format!("{state}, {} rows, weight {weight}", selected.len());
                let search = Search { allow, weight, prior: values, ..Search::default() };
                for count in [1, 2, 5, queries] {
                    let found = map.search(&asked[..count * dim], &search).expect("valid");
                    let wanted: Vec<_> =
                        products[..count].iter().map(|products| best(&[products])).collect();
                    assert_eq!(found, wanted, "{name}, {count} queries");
                    let threaded = Search { threads: 2, ..search };
                    let found = map.search(&asked[..count * dim], &threaded).expect("valid");
                    assert_eq!(found, wanted, "{name}, {count} queries, two threads");
                    let combined_by_max = Search { combined_by_max: true, ..search };
                    let found = map.search(&asked[..count * dim], &combined_by_max).expect("valid");
                    let all: Vec<_> = products[..count].iter().collect();
                    assert_eq!(found, [best(&all)], "{name}, {count} united");
                }
            }
        }
        map.flush();
    }
}

#[test]
fn a_million_overwrites_of_a_thousand_ids_stay_small() {
    let (dim, ids) = (64, 1000_i64);
    let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
    let all: Vec<i64> = (0..ids).collect();
    map.replace(&all, &numbers(1, dim * 1000)).expect("valid");
    let fresh = map.bytes();
    let row = numbers(2, dim);
    let mut max = 0;
    for turn in 0..1_000_000_i64 {
        map.upsert(&[turn * 7 % ids], &row).expect("valid");
        if turn % 1000 == 0 {
            max = max.max(map.bytes());
        }
    }
    assert_eq!(map.len(), 1000);
    assert!(max as f64 <= fresh as f64 * 1.5, "{max} bytes, {fresh} when fresh");
}

#[test]
fn priors_are_searched_while_rows_are_added() {
    let (dim, rows) = (8, 103_i64);
    let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
    let ids: Vec<i64> = (0..rows).collect();
    map.replace(&ids, &numbers(41, dim * 103)).expect("valid");
    let prior = Prior::new(&[7], &[1e6]).expect("finite");
    let queries = numbers(42, 5 * dim);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let row = numbers(43, dim);
            (rows..rows + 20_000).for_each(|id| map.upsert(&[id], &row).expect("valid"));
        });
        for turn in 0..2_000 {
            let search = Search { k: 3, prior: Some(&prior), ..Search::default() };
            let count = [1, 5][turn % 2] * dim;
            for hits in map.search(&queries[..count], &search).expect("valid") {
                assert_eq!(hits[0].id, 7);
            }
            let search = Search { min_score: 1e5, ..search };
            assert_eq!(map.count(&queries[..dim], &search).expect("valid"), [1]);
        }
    });
}

#[test]
fn a_prior_decides_where_its_unit_leaves_the_range_of_float32() {
    let (dim, rows) = (8, 400);
    let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
    let ids: Vec<i64> = (0..rows).collect();
    let first = |id: &i64| if *id == 7 { -1e-12 } else { 1e-12 * (1.0 + *id as f32 / 400.0) };
    let vectors: Vec<f32> =
        ids.iter().flat_map(|id| [first(id), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).collect();
    map.replace(&ids, &vectors).expect("valid");
    let prior = Prior::new(&[7], &[3e38]).expect("finite");
    let query = [3e38, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let search = Search { k: 1, weight: 1e8, prior: Some(&prior), ..Search::default() };
    assert_eq!(map.search(&query, &search).expect("valid")[0][0].id, 7);
}

/// So many rows go on that whole blocks of them are read, with rows between them that do not count.
#[test]
fn combined_queries_of_nearly_equal_rows_find_selected_rows_once() {
    let (dim, rows) = (256, 12_000);
    let base = numbers(61, dim);
    let noise = numbers(62, dim * rows);
    let vectors: Vec<f32> =
        noise.iter().enumerate().map(|(at, value)| base[at % dim] + value * 1e-4).collect();
    let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
    let ids: Vec<i64> = (0..rows as i64).collect();
    map.replace(&ids, &vectors).expect("valid");
    let queries: Vec<f32> = [&base[..], &vectors[..2 * dim]].concat();
    let named: Vec<i64> = ids.iter().copied().filter(|id| id % 3 > 0).collect();
    let nearest = |id: &i64| {
        let first = usize::try_from(*id).expect("ids count rows") * dim;
        let row = &vectors[first..][..dim];
        let products = queries.chunks(dim).map(|query| score(row, query));
        Hit { score: products.fold(f64::NEG_INFINITY, f64::max), id: *id }
    };
    let mut wanted: Vec<Hit> = named.iter().map(nearest).collect();
    wanted.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    wanted.truncate(10);
    let selection = Selection::new(&named);
    let search = Search { allow: Some(&selection), combined_by_max: true, ..Search::default() };
    assert_eq!(map.search(&queries, &search).expect("valid"), [wanted]);
}

#[test]
fn scores_beyond_what_bounds_carry_are_counted_among_the_selected_alone() {
    let (dim, rows) = (8, 200);
    let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
    let ids: Vec<i64> = (0..rows).collect();
    map.replace(&ids, &numbers(51, dim * 200)).expect("valid");
    let query = numbers(52, dim);
    let selection = Selection::new(&[3, 5, 199]);
    let zeros =
        Search { allow: Some(&selection), weight: 0.0, min_score: 0.0, ..Search::default() };
    assert_eq!(map.count(&query, &zeros).expect("valid"), [3]);
    let prior = Prior::new(&[5, 7], &[3e38; 2]).expect("finite");
    let high = Search { weight: 1.0, prior: Some(&prior), min_score: 1e38, ..zeros };
    assert_eq!(map.count(&query, &high).expect("valid"), [1]);
}

#[test]
fn background_compaction_loses_no_write_that_runs_beside_it() {
    let (dim, ids, turns) = (384, 20_000_usize, 30_000_usize);
    let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
    let all: Vec<i64> = (0..ids as i64).collect();
    map.replace(&all, &numbers(3, dim * ids)).expect("valid");
    let mut row = vec![0.0; dim];
    let mut firsts: Vec<f32> = map.get(&all).expect("there").into_iter().step_by(dim).collect();
    for turn in 0..turns {
        row[0] = turn as f32;
        let (one, other) = (turn * 7919 % ids, turn * 31 % ids);
        map.upsert(&[one as i64], &row).expect("valid");
        map.remove(&[other as i64]).expect("fits");
        map.upsert(&[other as i64], &row).expect("valid");
        firsts[one] = turn as f32;
        firsts[other] = turn as f32;
    }
    let found: Vec<f32> = map.get(&all).expect("there").into_iter().step_by(dim).collect();
    assert_eq!(found, firsts);
}
