//! Attacks on the bounds that let a search leave rows out: rows and queries made to sit on them.
//!
//! The reconstructions below follow docs/project/lab/kernel.md, "Codes"; every answer is compared
//! with float64 brute force in the documented order, in maps on both sides of the long scan, before
//! and after a flush.

use mnemic_core::{Hit, Metric, Prior, Search, VectorMap};

/// Deterministic numbers.
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 33) % end as u64) as usize
    }

    /// In −1..1.
    fn value(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }

    fn sign(&mut self) -> f32 {
        if self.next() >> 63 == 0 { 1.0 } else { -1.0 }
    }

    fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.value()).collect()
    }

    fn signs(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.sign()).collect()
    }

    /// About normal, with variance 1.
    fn normals(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (0..12).map(|_| self.value()).sum::<f32>() * 0.5).collect()
    }
}

/// Float64 inner product over eight lanes and the fixed tree.
fn score(row: &[f32], query: &[f32]) -> f64 {
    let mut lanes = [0.0_f64; 8];
    for (row, query) in row.chunks(8).zip(query.chunks(8)) {
        for ((lane, a), b) in lanes.iter_mut().zip(row).zip(query) {
            *lane += f64::from(*a) * f64::from(*b);
        }
    }
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6]))
        + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

/// All rows, best first; row `i` of `n` has the id `n − i`, so that ties are not in row order.
fn ranked(scores: &[f64]) -> Vec<Hit> {
    let ids = (1..=scores.len() as i64).rev();
    let mut hits: Vec<Hit> =
        scores.iter().zip(ids).map(|(score, id)| Hit { score: *score, id }).collect();
    hits.sort_by(|a, b| b.score.partial_cmp(&a.score).expect("no NaN").then(a.id.cmp(&b.id)));
    hits
}

/// A map of rows beside the plain rows.
struct Attack {
    dim: usize,
    rows: Vec<f32>,
    map: VectorMap,
}

impl Attack {
    fn new(dim: usize, rows: Vec<f32>) -> Self {
        let map = VectorMap::new(dim, Metric::InnerProduct).expect("a valid dimension");
        let count = (rows.len() / dim) as i64;
        let ids: Vec<i64> = (1..=count).rev().collect();
        map.replace(&ids, &rows).expect("valid");
        Self { dim, rows, map }
    }

    fn scores(&self, query: &[f32]) -> Vec<f64> {
        self.rows.chunks(self.dim).map(|row| score(row, query)).collect()
    }

    /// Compare the answers to `queries` (`dim` floats each), alone and together, then flush and
    /// compare again.
    fn check(&self, name: &str, queries: &[f32]) {
        let wanted: Vec<Vec<Hit>> =
            queries.chunks(self.dim).map(|query| ranked(&self.scores(query))).collect();
        for state in ["new", "sealed"] {
            for k in [1, 10, 97] {
                for (number, (query, all)) in queries.chunks(self.dim).zip(&wanted).enumerate() {
                    let name = format!("{name}, {state}, query {number}, k {k}");
                    self.check_one(&name, query, k, all);
                }
            }
            let found = self.map.search(queries, &Search::default()).expect("valid");
            for (number, (found, all)) in found.iter().zip(&wanted).enumerate() {
                same(&format!("{name}, {state}, batch, query {number}"), found, all, 10);
            }
            self.map.flush();
        }
    }

    fn check_one(&self, name: &str, query: &[f32], k: usize, all: &[Hit]) {
        let search = Search { k, ..Search::default() };
        same(name, &self.map.search(query, &search).expect("valid")[0], all, k);
        if k != 10 {
            return;
        }
        let min = all[k - 1].score;
        for min_score in [min, min.next_up(), min.next_down()] {
            let reach = all.iter().take_while(|hit| hit.score >= min_score).count();
            let search = Search { k, min_score, ..Search::default() };
            assert_eq!(self.map.count(query, &search).expect("valid"), [reach], "{name}");
            let found = self.map.search(query, &search).expect("valid").remove(0);
            same(name, &found, &all[..reach], k);
        }
    }

    /// Compare under priors that take each row's score away but for a float32 rounding.
    fn check_cancelled(&self, name: &str, query: &[f32], weight: f64) {
        let weighted: Vec<f64> = self.scores(query).iter().map(|score| weight * score).collect();
        let priors: Vec<f32> = weighted.iter().map(|score| -score as f32).collect();
        let ids: Vec<i64> = (1..=weighted.len() as i64).rev().collect();
        let prior = Prior::new(&ids, &priors).expect("finite");
        let sums = weighted.iter().zip(&priors).map(|(score, prior)| score + f64::from(*prior));
        let all = ranked(&sums.collect::<Vec<f64>>());
        for state in ["new", "sealed"] {
            for k in [1, 10, 97] {
                let name = format!("{name}, {state}, cancelled, k {k}");
                let min_score = all[(2 * k).min(all.len()) - 1].score;
                let search =
                    Search { k, min_score, weight, prior: Some(&prior), ..Search::default() };
                same(&name, &self.map.search(query, &search).expect("valid")[0], &all, k);
                let reach = all.iter().take_while(|hit| hit.score >= min_score).count();
                assert_eq!(self.map.count(query, &search).expect("valid"), [reach], "{name}");
            }
            self.map.flush();
        }
    }
}

fn same(name: &str, found: &[Hit], all: &[Hit], k: usize) {
    let wanted = &all[..k.min(all.len())];
    assert_eq!(found.len(), wanted.len(), "{name}");
    let wrong = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    if let Some(at) = wrong {
        panic!("{name}: hit {at} is {:?}, not {:?}", found[at], wanted[at]);
    }
}

/// Numbers of rows for short and long scans (2,000,000 components) of `dim` components.
fn sizes(dim: usize) -> [usize; 2] {
    [300, 2_000_000 / dim + 41]
}

fn rows(count: usize, mut row: impl FnMut(usize) -> Vec<f32>) -> Vec<f32> {
    (0..count).flat_map(&mut row).collect()
}

/// The middles of the steps that `row`'s components fall in: 256 steps over −m..m, or 16 steps
/// over that or, where it leaves less, of .335 standard deviations each.
fn reconstruction(row: &[f32], steps: i32) -> Vec<f32> {
    let max = row.iter().fold(0.0_f32, |max, value| max.max(value.abs()));
    let wide = middles(row, steps, 2.0 * f64::from(max) / f64::from(steps));
    let narrow = middles(row, steps, 0.335 * (score(row, row) / row.len() as f64).sqrt());
    let left = |middles: &[f32]| {
        let left = minus(row, middles);
        score(&left, &left)
    };
    if steps == 16 && left(&narrow) < left(&wide) { narrow } else { wide }
}

fn middles(row: &[f32], steps: i32, step: f64) -> Vec<f32> {
    let middle = |value: &f32| {
        let number = (f64::from(*value) / step).floor() + f64::from(steps / 2);
        let number = number.clamp(0.0, f64::from(steps - 1));
        (step * (number - f64::from(steps - 1) / 2.0)) as f32
    };
    row.iter().map(middle).collect()
}

fn minus(one: &[f32], other: &[f32]) -> Vec<f32> {
    one.iter().zip(other).map(|(a, b)| a - b).collect()
}

fn plus(one: &[f32], share: f32, other: &[f32]) -> Vec<f32> {
    one.iter().zip(other).map(|(a, b)| a + share * b).collect()
}

fn times(factor: f32, row: &[f32]) -> Vec<f32> {
    row.iter().map(|value| factor * value).collect()
}

/// `row` without what it has of each of `directions`, which are orthonormal.
fn without(row: &[f32], directions: &[Vec<f32>]) -> Vec<f32> {
    directions.iter().fold(row.to_vec(), |row, axis| plus(&row, -score(&row, axis) as f32, axis))
}

fn unit(row: &[f32]) -> Vec<f32> {
    let length = score(row, row).sqrt();
    row.iter().map(|value| (f64::from(*value) / length) as f32).collect()
}

fn orthonormal(numbers: &mut Numbers, count: usize, dim: usize) -> Vec<Vec<f32>> {
    let mut directions: Vec<Vec<f32>> = Vec::new();
    for _ in 0..count {
        let row = unit(&without(&numbers.normals(dim), &directions));
        directions.push(unit(&without(&row, &directions)));
    }
    directions
}

#[test]
fn one_unit_in_the_last_place_decides_the_order() {
    for (dim, seed) in [(384, 1), (1000, 3)] {
        for count in sizes(dim) {
            let mut numbers = Numbers::new(seed);
            let base = numbers.normals(dim);
            let attack = Attack::new(
                dim,
                rows(count, |_| {
                    let mut row = base.clone();
                    let at = numbers.below(dim);
                    row[at] =
                        if numbers.sign() > 0.0 { row[at].next_up() } else { base[at].next_down() };
                    row
                }),
            );
            let queries = [&base[..], &times(-1.0, &base), &numbers.normals(dim), &vec![1.0; dim]];
            attack.check("one ulp", &queries.concat());
            attack.check_cancelled("one ulp", &base, 0.3);
        }
    }
}

#[test]
fn rows_of_127_in_4096_dimensions_do_not_saturate() {
    let dim = 4096;
    for count in sizes(dim) {
        let mut numbers = Numbers::new(4);
        let base = times(127.0, &numbers.signs(dim));
        let all = rows(count, |number| match number % 3 {
            0 => times(127.0, &numbers.signs(dim)),
            1 => times(if number % 2 == 0 { 127.0 } else { -127.0 }, &vec![1.0; dim]),
            _ => {
                let mut row = base.clone();
                (0..number % 9).for_each(|_| row[numbers.below(dim)] *= -1.0);
                row
            }
        });
        let attack = Attack::new(dim, all);
        let plain = vec![127.0; dim];
        let queries =
            [&base[..], &times(-1.0, &base), &plain, &times(-1.0, &plain), &numbers.signs(dim)];
        attack.check("±127", &queries.concat());
        attack.check_cancelled("±127", &base, 1.0);
    }
}

#[test]
fn extremes_in_every_sign_pattern_do_not_saturate() {
    let pattern = |bits: usize, at: usize| if bits >> (at % 8) & 1 == 0 { 1.0 } else { -1.0 };
    for (dim, inner) in [(256, 1.0), (520, 127.0 / 128.0), (256, 0.875), (256, 1.0 - f32::EPSILON)]
    {
        for count in sizes(dim) {
            let all = rows(count, |number| {
                let level = if number % 512 < 256 { 1.0 } else { inner };
                let mut row: Vec<f32> =
                    (0..dim).map(|at| level * pattern(number % 256, at)).collect();
                row[number % dim] = pattern(number, 3);
                row
            });
            let attack = Attack::new(dim, all);
            let queries = rows(9, |turn| {
                (0..dim)
                    .map(|at| pattern([0, 255, 85, 170, 15, 240, 1, 127, 204][turn], at))
                    .collect()
            });
            attack.check(&format!("sign patterns of {inner}"), &queries);
            attack.check_cancelled("sign patterns", &queries[..dim], 7.5);
        }
    }
}

/// A component on a border of the 256 or 16 steps of −m..m, or one unit beside it.
fn border(numbers: &mut Numbers, max: f32) -> f32 {
    let parts = if numbers.sign() > 0.0 { 128 } else { 8 };
    let part = numbers.below(2 * parts + 1) as f32 - parts as f32;
    let value = max * (part / parts as f32);
    let beside = [value, value.next_up(), value.next_down()][numbers.below(3)];
    beside.clamp(-max, max)
}

fn border_row(numbers: &mut Numbers, max: f32, dim: usize) -> Vec<f32> {
    let mut row: Vec<f32> = (0..dim).map(|_| border(numbers, max)).collect();
    row[numbers.below(dim)] = max * numbers.sign();
    row
}

#[test]
fn components_on_the_borders_of_steps_are_bounded() {
    for (max, query_max) in [(1.0, 1.0), (0.7, 0.3), (3e-30, 5e20), (2.9e38, 0.9)] {
        for count in sizes(384) {
            let mut numbers = Numbers::new(5);
            let all = rows(count, |_| border_row(&mut numbers, max, 384));
            let mut queries = rows(4, |_| border_row(&mut numbers, query_max, 384));
            queries.extend(numbers.normals(384));
            let one = queries[..384].to_vec();
            let attack = Attack::new(384, all);
            attack.check(&format!("borders of {max}"), &queries);
            if max <= 1.0 {
                attack.check_cancelled("borders", &one, 1.0);
            }
        }
    }
}

#[test]
fn queries_along_a_row_s_own_residual_are_bounded() {
    let dim = 384;
    for steps in [16, 256] {
        for count in sizes(dim) {
            let mut numbers = Numbers::new(6);
            let all = rows(count, |_| numbers.normals(dim));
            let queries = rows(12, |turn| {
                let row = &all[turn * 20 * dim..][..dim];
                let residual = minus(row, &reconstruction(row, steps));
                match turn % 4 {
                    0 => residual,
                    1 => times(-1.0, &residual),
                    2 => plus(row, 40.0, &residual),
                    _ => plus(row, -40.0, &residual),
                }
            });
            let attack = Attack::new(dim, all);
            attack.check(&format!("residuals of {steps} steps"), &queries);
            attack.check_cancelled("residuals", &queries[..dim], 1.0);
        }
    }
}

/// Rows whose codes are all equal and whose residuals are all along one direction, so that the
/// code says nothing and the residual's bound is met with equality.
#[test]
fn rows_that_differ_by_their_residual_alone_are_told_apart() {
    let dim = 384;
    for steps in [16_u16, 256] {
        for count in sizes(dim) {
            let mut numbers = Numbers::new(7);
            let step = 2.0 / f32::from(steps);
            let base = reconstruction(&numbers.values(dim), i32::from(steps));
            let along = numbers.signs(dim);
            let all = rows(count, |_| {
                let mut row = plus(&base, 0.499 * step * numbers.value(), &along);
                row[0] = 1.0;
                row
            });
            let attack = Attack::new(dim, all);
            let beside = minus(&along, &times(0.9, &base));
            let queries = [&along[..], &times(-3.0, &along), &beside, &plus(&base, 5.0, &along)];
            attack.check(&format!("one residual of {steps} steps"), &queries.concat());
            attack.check_cancelled("one residual", &along, 1.0);
        }
    }
}

/// Queries that are poorly approximated themselves: one large component hides all others.
#[test]
fn queries_that_lose_their_small_components_are_bounded() {
    let dim = 256;
    for count in sizes(dim) {
        let mut numbers = Numbers::new(8);
        let all = rows(count, |_| {
            let mut row = numbers.normals(dim);
            row[5] = 0.001 * numbers.value();
            row
        });
        let attack = Attack::new(dim, all.clone());
        let queries = rows(6, |turn| {
            let mut query = times(0.002, &numbers.signs(dim));
            if turn % 2 == 0 {
                query = times(0.003, &unit(&all[turn * dim..][..dim]));
            }
            query[5] = numbers.sign();
            query
        });
        attack.check("hidden components", &queries);
        attack.check_cancelled("hidden components", &queries[..dim], 2.0);
    }
}

#[test]
fn thousands_of_near_duplicates_around_the_last_hit_keep_their_order() {
    for (dim, apart) in [(384, 1e-7), (256, 3e-8)] {
        for count in sizes(dim) {
            let mut numbers = Numbers::new(9);
            let base = unit(&numbers.normals(dim));
            let all = rows(count, |number| match number % 50 {
                0 => unit(&numbers.normals(dim)),
                7 => plus(&base, 0.01, &unit(&numbers.normals(dim))),
                _ => plus(&base, apart, &numbers.normals(dim)),
            });
            let attack = Attack::new(dim, all);
            let near = plus(&base, 0.1, &unit(&numbers.normals(dim)));
            let queries = [&base[..], &times(-1.0, &base), &near, &times(1e-20, &near)].concat();
            attack.check(&format!("near duplicates {apart} apart"), &queries);
            attack.check_cancelled("near duplicates", &near, 0.5);
        }
    }
}

/// Rows lie in a space of some large and 60 small directions, more together than a sketch has.
#[test]
fn queries_in_what_a_projection_leaves_out_are_bounded() {
    let dim = 384;
    for (inside, tail) in [(24, 0.0), (64, 1e-3), (120, 0.05), (120, 1.0)] {
        for count in sizes(dim) {
            let mut numbers = Numbers::new(10);
            let axes = orthonormal(&mut numbers, inside + 60, dim);
            let (axes, left_out) = axes.split_at(inside);
            let latent = |numbers: &mut Numbers| {
                axes.iter()
                    .fold(vec![0.0; dim], |row, axis| plus(&row, numbers.value() * 4.0, axis))
            };
            let all = rows(count, |number| {
                let along = tail * numbers.value();
                plus(&latent(&mut numbers), along, &left_out[number % 60])
            });
            let row = all[..dim].to_vec();
            let attack = Attack::new(dim, all);
            let random = numbers.normals(dim);
            let queries = [
                &without(&without(&random, axes), axes)[..],
                &left_out[0],
                &times(-1.0, &left_out[59]),
                &plus(&left_out[1], 0.01, &row),
                &plus(&latent(&mut numbers), 30.0, &left_out[30]),
                &without(&row, axes),
                &axes[0],
                &random,
            ]
            .concat();
            attack.check(&format!("{inside} dimensions and {tail} beside them"), &queries);
            attack.check_cancelled("left out", &left_out[45], 1.0);
        }
    }
}

/// The same with axes of the coordinate system, where what is left out is exactly zero or not.
#[test]
fn rows_with_empty_components_and_queries_there_are_bounded() {
    let dim = 512;
    for count in sizes(dim) {
        let mut numbers = Numbers::new(11);
        let all = rows(count, |number| {
            let mut row = numbers.normals(dim);
            row[48..].fill(0.0);
            if number % 11 == 0 {
                row[48 + numbers.below(dim - 48)] = numbers.value() * 1e-5;
            }
            row
        });
        let attack = Attack::new(dim, all);
        let mut outside = numbers.normals(dim);
        let mut inside = outside.clone();
        outside[..48].fill(0.0);
        inside[48..].fill(0.0);
        let queries = [&outside[..], &inside, &plus(&inside, 1e4, &outside), &vec![0.0; dim]];
        attack.check("empty components", &queries.concat());
        attack.check_cancelled("empty components", &inside, 1.0);
    }
}

#[test]
fn norms_from_nothing_to_the_largest_are_bounded() {
    let dim = 256;
    for count in sizes(dim) {
        let mut numbers = Numbers::new(12);
        let all = rows(count, |number| {
            let scale = [0.0, 1e-45, 1e-41, 1e-33, 1e-20, 1e-6, 1.0, 1e6, 1e20, 3e38][number % 10];
            let scale = if number % 3 == 0 { 1.0 } else { scale };
            times(scale, &numbers.values(dim))
        });
        let attack = Attack::new(dim, all);
        let queries = rows(6, |turn| {
            times([1.0, 1e-45, 1e-38, 1e30, 3e38, 1e-10][turn], &numbers.values(dim))
        });
        attack.check("all norms", &queries);
    }
    for scale in [1e-45, 1e-32, 3e38] {
        for count in sizes(dim) {
            let mut numbers = Numbers::new(13);
            let attack = Attack::new(dim, rows(count, |_| times(scale, &numbers.values(dim))));
            let queries = rows(3, |turn| times([1.0, 1e-38, 3e38][turn], &numbers.values(dim)));
            attack.check(&format!("norms of {scale}"), &queries);
        }
    }
}

/// Weights that are no powers of two round the priors in the bounds, and so their sums.
#[test]
fn priors_far_above_every_similarity_do_not_hide_the_order() {
    let (dim, count) = (64, 300);
    let mut numbers = Numbers::new(14);
    let attack = Attack::new(dim, times(1e-9, &numbers.values(dim * count)));
    let ids: Vec<i64> = (1..=count as i64).collect();
    for turn in 0..400 {
        let query = numbers.values(dim);
        let weight = 1.5 + f64::from(numbers.value());
        let value = numbers.sign() * (1.5 + 0.5 * numbers.value());
        let prior = Prior::new(&ids, &vec![value; count]).expect("finite");
        let sums = attack.scores(&query).into_iter().map(|score| weight * score + f64::from(value));
        let all = ranked(&sums.collect::<Vec<f64>>());
        let search = Search { weight, prior: Some(&prior), ..Search::default() };
        let found = attack.map.search(&query, &search).expect("valid").remove(0);
        same(&format!("turn {turn}, weight {weight}, prior {value}"), &found, &all, 10);
        let search = Search { min_score: all[9].score, ..search };
        assert_eq!(attack.map.count(&query, &search).expect("valid"), [10], "turn {turn}");
    }
}

/// A row whose bounds leave no slack for [`tight_query`]: each of 1,024 components lies half a step
/// from its code on the query's side, and what the codes leave out is a hair shorter than a length
/// that needs no rounding up. Nearly all of the bound cancels, which leaves the rounding of its
/// terms. The other components are met by their codes, and keep the steps as wide as the range.
fn tight_row(step: f32) -> Vec<f32> {
    let mut row = vec![0.0; 1024];
    row[0] = -128.0 * step;
    row[7] = 1e-6 * step;
    row.extend([120.0 * step; 120]);
    row
}

fn tight_query(value: f32) -> Vec<f32> {
    let mut query = vec![-value; 1024];
    query.extend([0.0; 120]);
    query
}

#[test]
fn rows_whose_bounds_leave_no_slack_are_not_lost_to_rounding() {
    let dim = 1144;
    let mut numbers = Numbers::new(31);
    for count in sizes(dim) {
        // Every step of eight significant bits, so that scales are exact.
        let step = |at: usize| (128 + at % 128) as f32 * 0.125;
        let attack = Attack::new(dim, rows(count, |at| tight_row(step(at))));
        for _ in 0..12 {
            // A multiple of 127 that has a plane without error, just below a power of two, where
            // rounding a length up adds the least.
            let query = tight_query(127.0 * (66_052 - numbers.below(6_000)) as f32 / 4_194_304.0);
            let scores = attack.scores(&query);
            for min in &scores[..128] {
                let reach = scores.iter().filter(|score| *score >= min).count();
                let search = Search { min_score: *min, ..Search::default() };
                let found = attack.map.count(&query, &search).expect("valid");
                assert_eq!(found, [reach], "{count} rows, least {min}");
            }
            for weight in [1.0, 0.3, 0.7] {
                attack.check_cancelled("tight", &query, weight);
            }
        }
    }
}
