//! One check for every kernel, against naive sums, at lengths around every vector width.

use super::*;
use crate::bits::rows_of;
use crate::collections::append_buffer::{Filling, Line, RegionParts};
use crate::quantization::coded_rows::{BLOCK_ROWS, CodedRowsAppender, Packing};
use crate::quantization::kernel::{Prior, TILE_ROWS};
use crate::quantization::scalar::{
    MAX_DIM, NIBBLE_PLANE_MAX, Plane, QueryCodes, RowBound, byte_stride, encode, nibble_stride,
    norm, power_of_two_for, rounded_down, row_stride,
};

/// Deterministic numbers in −1..1, some of them large or tiny (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn vector(&mut self, dim: usize) -> Vec<f32> {
        let value = |bits: u64| (bits >> 40) as f32 / 8_388_608.0 - 1.0;
        (0..dim).map(|_| value(self.bits())).collect()
    }

    fn padded(&mut self, dim: usize) -> Vec<f32> {
        let mut row = self.vector(dim);
        row.resize(row_stride(dim), 0.0);
        row
    }

    /// Of magnitudes so different that every sum of their products is rounded.
    fn uneven(&mut self, dim: usize) -> Vec<f32> {
        self.padded(dim).into_iter().map(|value| value.powi(9)).collect()
    }
}

const DIMS: [usize; 22] =
    [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 384, 1000, 1536, 4096];

/// Its scale is 1, and nothing is added to its bound.
const UNSLACKENED: RowBound = RowBound::of_scale_one();

fn power_of(query: &[f32]) -> f64 {
    power_of_two_for(norm(query))
}

fn codes_of(query: &[f32]) -> QueryCodes {
    QueryCodes::new(query, power_of(query))
}

/// Rows from 64 times a number on of which some are wanted.
#[derive(Clone, Copy)]
struct Tile {
    number: usize,
    wanted: u64,
}

/// The rows that reach the limit; checks that bounds and bits agree.
fn reaching(kernel: &dyn Kernel, rows: &CodedRows, tile: Tile, limit: &Limit<'_>) -> u64 {
    let mut uppers = [f32::NEG_INFINITY; TILE_ROWS];
    let mut found = [u64::MAX];
    let first = tile.number * TILE_ROWS;
    let tiles = Rows::InOrder { first, wanted: &[tile.wanted] };
    kernel.bound(rows, tiles, limit, &mut Uppers { values: &mut uppers, reaching: &mut found });
    let [mask] = found;
    let reaches = uppers.iter().map(|upper| *upper >= limit.threshold);
    let all = reaches.enumerate().fold(0, |mask, (at, bit)| mask | u64::from(bit) << at);
    assert_eq!(mask, all & tile.wanted);
    kernel.at_least(&uppers, limit.threshold, &mut found);
    assert_eq!(found, [all]);
    mask
}

fn reaching_listed(
    kernel: &dyn Kernel,
    rows: &CodedRows,
    listed: &[u32],
    limit: &Limit<'_>,
) -> u64 {
    let mut uppers = [0.0; TILE_ROWS];
    let mut found = [u64::MAX];
    let bounds = &mut Uppers { values: &mut uppers, reaching: &mut found };
    kernel.bound(rows, Rows::Listed(listed), limit, bounds);
    let [mask] = found;
    assert_eq!(mask >> (listed.len() - 1) >> 1, 0);
    for (at, upper) in uppers.iter().enumerate().take(listed.len()) {
        assert_eq!(mask >> at & 1 == 1, *upper >= limit.threshold);
    }
    mask
}

fn exact_in_lanes(row: &[f32], query: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for (at, (value, part)) in row.iter().zip(query).enumerate() {
        lanes[at % LANES] += f64::from(*value) * part;
    }
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6]))
        + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

#[test]
fn dot_products_are_the_same_bits_in_every_kernel() {
    let mut numbers = Numbers(1);
    for dim in DIMS {
        let row = numbers.uneven(dim);
        let query: Vec<f64> = numbers.uneven(dim).into_iter().map(f64::from).collect();
        for kernel in supported() {
            let found = kernel.dot(&row, &query);
            let wanted = exact_in_lanes(&row, &query);
            assert_eq!(found.to_bits(), wanted.to_bits(), "{} at dim {dim}", kernel.name());
        }
    }
}

#[test]
fn products_of_four_rows_are_those_of_each_alone() {
    let mut numbers = Numbers(8);
    for dim in DIMS {
        let query: Vec<f64> = numbers.uneven(dim).into_iter().map(f64::from).collect();
        let rows: [Vec<f32>; 4] = std::array::from_fn(|_| numbers.uneven(dim));
        for kernel in supported() {
            let products = kernel.four_dots(rows.each_ref().map(Vec::as_slice), &query);
            for (product, row) in products.iter().zip(&rows) {
                let wanted = exact_in_lanes(row, &query);
                assert_eq!(product.to_bits(), wanted.to_bits(), "{}", kernel.name());
            }
        }
    }
}

#[test]
fn code_sums_are_exact_in_every_kernel() {
    let mut numbers = Numbers(2);
    for dim in DIMS {
        let query = codes_of(&numbers.vector(dim));
        let bytes: Vec<u8> = (0..byte_stride(dim)).map(|_| numbers.bits() as u8).collect();
        check_code_sums(&bytes, &query);
    }
}

#[test]
fn code_sums_do_not_saturate_at_the_extremes() {
    for dim in [128, 4096, MAX_DIM] {
        for value in [1.0, -1.0] {
            let query = codes_of(&vec![value; dim]);
            assert!(query.high.values.iter().all(|part| part.abs() >= 63));
            for byte in [0xff, 0x80, 0x00] {
                check_code_sums(&vec![byte; dim], &query);
            }
        }
    }
}

fn check_code_sums(bytes: &[u8], query: &QueryCodes) {
    let term = |(at, byte): (usize, &u8)| {
        let part = 128 * i64::from(query.high.values[at]) + i64::from(query.low.values[at]);
        (2 * i64::from(*byte) - 255) * part
    };
    let wanted: i64 = bytes.iter().enumerate().map(term).sum();
    let lines = lines_of(bytes);
    let (rows, mut appender) = coded_of(Packing::Bytes, 1, lines.len());
    appender.append(&lines, RowBound::UNBOUNDED);
    for kernel in supported() {
        assert_eq!(kernel.code_sum(rows.row(0), query), wanted, "{}", kernel.name());
    }
}

fn coded_of(packing: Packing, rows: usize, lines: usize) -> (CodedRows, CodedRowsAppender) {
    let sizes = CodedRows::sizes(packing, rows, lines);
    let mut parts = RegionParts::of(&sizes, Filling::AtOnce);
    CodedRows::new(&mut parts, packing, rows, lines)
}

fn lines_of(bytes: &[u8]) -> Vec<Line> {
    bytes.as_chunks().0.iter().map(|line| Line(*line)).collect()
}

#[test]
fn encoding_gives_the_same_codes_in_every_kernel() {
    let mut numbers = Numbers(5);
    for dim in DIMS {
        let row = numbers.vector(dim);
        let stride = nibble_stride(dim);
        let encoded = supported().into_iter().map(|kernel| {
            let (mut bytes, mut nibbles) = (vec![0; 2 * stride], vec![0; stride]);
            let bound = kernel.encode(&row, &mut bytes, &mut nibbles);
            (bytes, nibbles, bound.bytes.scale)
        });
        let all: Vec<_> = encoded.collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "dim {dim}");
    }
}

struct SampleRows {
    vectors: Vec<Vec<f32>>,
    nibbles: CodedRows,
    bytes: CodedRows,
    /// The nibbles as sketches, where they fill one line.
    sketches: Option<CodedRows>,
}

/// A stage: the codes, and the plane of a query for them.
type Stage<'a> = (&'a CodedRows, Plane);

impl SampleRows {
    fn new(dim: usize, vectors: Vec<Vec<f32>>) -> Self {
        let stride = nibble_stride(dim);
        let coded = |packing, lines| coded_of(packing, vectors.len(), lines);
        let (nibbles, mut nibbles_appender) = coded(Packing::Nibbles, stride / 64);
        let (bytes, mut bytes_appender) = coded(Packing::Bytes, byte_stride(dim) / 64);
        let mut sketches = (stride == 64).then(|| coded_of(Packing::Sketches, vectors.len(), 1));
        for vector in &vectors {
            let (mut byte_row, mut nibble_row) = (vec![0; 2 * stride], vec![0; stride]);
            let bounds = encode(&vector[..dim], &mut byte_row, &mut nibble_row);
            nibbles_appender.append(&lines_of(&nibble_row), bounds.nibbles);
            bytes_appender.append(&lines_of(&byte_row[..byte_stride(dim)]), bounds.bytes);
            if let Some((_, appender)) = &mut sketches {
                appender.append(&lines_of(&nibble_row), bounds.nibbles);
            }
        }
        let sketches = sketches.map(|(rows, appender)| {
            appender.finish();
            rows
        });
        Self { vectors, nibbles, bytes, sketches }
    }

    fn stages(&self, query: &[f32]) -> Vec<Stage<'_>> {
        let codes = QueryCodes::new(query, power_of(query));
        let plane = || Plane::signed_bytes(query, codes.power, NIBBLE_PLANE_MAX);
        let nibbles = self.sketches.iter().chain([&self.nibbles]).map(|rows| (rows, plane()));
        let mut stages: Vec<_> = nibbles.collect();
        stages.push((&self.bytes, codes.high));
        stages
    }

    fn scores(&self, query: &[f32], power: f64) -> Vec<f64> {
        let score = |row: &Vec<f32>| {
            row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() * power
        };
        self.vectors.iter().map(score).collect()
    }
}

#[test]
fn no_kernel_rules_out_a_row_that_reaches_the_threshold() {
    let mut numbers = Numbers(3);
    for dim in DIMS {
        let rows = SampleRows::new(dim, (0..70).map(|_| numbers.padded(dim)).collect());
        let query = numbers.vector(dim);
        let scores = rows.scores(&query, power_of(&query));
        for (coded, plane) in rows.stages(&query) {
            for threshold in [scores[0], scores[1], scores[69], 0.0] {
                let limit = Limit::new(coded.packing, &plane, rounded_down(threshold), None);
                for kernel in supported() {
                    check_reaching(kernel, coded, &limit, &scores, threshold);
                }
            }
        }
    }
}

const fn tile(number: usize, wanted: u64) -> Tile {
    Tile { number, wanted }
}

/// Tiles of the 70 rows, the last of which is not full.
const RUNS: [Tile; 7] = [
    tile(0, u64::MAX),
    tile(0, 0xff),
    tile(0, 1 << 63),
    tile(0, 0x8000_2211_0000_0004),
    tile(0, 0),
    tile(1, 0x3f),
    tile(1, 0b10_0001),
];

fn named_rows(tile: Tile) -> Vec<Option<u32>> {
    let row = |bit: u32| tile.number as u32 * 64 + bit;
    (0..64).map(|bit| (tile.wanted >> bit & 1 == 1).then(|| row(bit))).collect()
}

fn check_reaching(
    kernel: &dyn Kernel,
    rows: &CodedRows,
    limit: &Limit<'_>,
    scores: &[f64],
    threshold: f64,
) {
    for tile in RUNS {
        let run = reaching(kernel, rows, tile, limit);
        check_mask(kernel, run, &named_rows(tile), scores, threshold);
        if rows.packing == Packing::Sketches {
            continue;
        }
        for count in [1, 7, 8, 9, 15, 16, 17, 63, 64] {
            let listed: Vec<u32> = (0..count).map(|at| at * 11 % 70).collect();
            let picked = reaching_listed(kernel, rows, &listed, limit);
            let named: Vec<_> = listed.into_iter().map(Some).collect();
            check_mask(kernel, picked, &named, scores, threshold);
        }
    }
}

/// Bounds that are twice the sums of products less their middle: a scale of 1 and no slack. Checks
/// that bits agree, and lists.
fn sums(kernel: &dyn Kernel, rows: &CodedRows, plane: &Plane, count: usize) -> Vec<f32> {
    let limit = Limit { factor: 1.0, ..Limit::new(rows.packing, plane, 0.0, None) };
    let words = vec![u64::MAX; count.div_ceil(TILE_ROWS)];
    let wanted = words.iter().enumerate().map(|(word, all)| {
        let left = count - word * TILE_ROWS;
        if left < TILE_ROWS { all >> (TILE_ROWS - left) } else { *all }
    });
    let wanted: Vec<u64> = wanted.collect();
    let mut uppers = vec![0.0; wanted.len() * TILE_ROWS];
    let mut found = vec![u64::MAX; wanted.len()];
    let all = Rows::InOrder { first: 0, wanted: &wanted };
    kernel.bound(rows, all, &limit, &mut Uppers { values: &mut uppers, reaching: &mut found });
    uppers.truncate(count);
    let reaching = (0_u32..).zip(&uppers).filter(|(_, upper)| **upper >= 0.0).map(|(row, _)| row);
    assert!(rows_of(&found).eq(reaching), "{}", kernel.name());
    if rows.packing != Packing::Sketches {
        let listed: Vec<u32> = (0..count as u32).collect();
        let mut again = vec![0.0; count.next_multiple_of(BLOCK_ROWS)];
        let mut found_again = vec![u64::MAX; wanted.len()];
        let bounds = &mut Uppers { values: &mut again, reaching: &mut found_again };
        kernel.bound(rows, Rows::Listed(&listed), &limit, bounds);
        assert_eq!((&again[..count], found_again), (&uppers[..], found), "{}", kernel.name());
    }
    uppers
}

#[test]
fn sums_are_the_same_integers_in_every_kernel() {
    let mut numbers = Numbers(9);
    for count in [1, 15, 16, 17, 31, 32, 33, 130] {
        for (packing, lines) in [
            (Packing::Sketches, 1),
            (Packing::Nibbles, 1),
            (Packing::Nibbles, 3),
            (Packing::Bytes, 1),
            (Packing::Bytes, 6),
        ] {
            let (rows, mut appender) = coded_of(packing, count, lines);
            let mut row = |at: usize| -> Vec<Line> {
                let ends = [0, 0xff, 0x0f, 0xf0];
                let mut byte = || ends.get(at).copied().unwrap_or(numbers.bits() as u8);
                (0..lines).map(|_| Line(std::array::from_fn(|_| byte()))).collect()
            };
            (0..count).for_each(|at| appender.append(&row(at), UNSLACKENED));
            if packing == Packing::Sketches {
                appender.finish();
            }
            let dim = lines * if packing == Packing::Bytes { 64 } else { 128 };
            for sign in [1.0, -1.0, 0.0] {
                let query = if sign == 0.0 { numbers.vector(dim) } else { vec![sign; dim] };
                let plane = match packing {
                    Packing::Bytes => codes_of(&query).high,
                    _ => Plane::signed_bytes(&query, power_of(&query), NIBBLE_PLANE_MAX),
                };
                let wanted = sums(&portable::Portable, &rows, &plane, count);
                for kernel in supported() {
                    let found = sums(kernel, &rows, &plane, count);
                    assert_eq!(found, wanted, "{} {packing:?} {count}", kernel.name());
                }
            }
        }
    }
}

#[test]
fn what_a_row_has_outside_its_sketch_counts_in_every_kernel() {
    let (rows, mut appender) = coded_of(Packing::Sketches, 33, 1);
    for row in 0..33 {
        let bound = UNSLACKENED.of_part(0.0, f64::from(row));
        appender.append(&lines_of(&[0x77; 64]), bound);
    }
    appender.finish();
    let plane = Plane::signed_bytes(&[0.0; 128], 1.0, NIBBLE_PLANE_MAX).of_part(0.0, 2.0, 0.0);
    let wanted = sums(&portable::Portable, &rows, &plane, 33);
    assert!(wanted.is_sorted() && wanted[32] >= 64.0, "{wanted:?}");
    for kernel in supported() {
        assert_eq!(sums(kernel, &rows, &plane, 33), wanted, "{}", kernel.name());
    }
}

#[test]
fn priors_count_row_by_row() {
    let mut numbers = Numbers(7);
    let rows = SampleRows::new(200, (0..70).map(|_| numbers.padded(200)).collect());
    let query = numbers.vector(200);
    let mut values = vec![-1e6; 70_usize.next_multiple_of(BLOCK_ROWS)];
    for row in [0, 13, 69] {
        values[row] = 1e6;
    }
    for (coded, plane) in rows.stages(&query) {
        let prior = Some(Prior { values: &values, factor: 0.5 });
        let limit = Limit::new(coded.packing, &plane, 0.0, prior);
        for kernel in supported() {
            let mask = reaching(kernel, coded, tile(0, u64::MAX), &limit);
            assert_eq!(mask, 1 | 1 << 13, "{}", kernel.name());
            assert_eq!(reaching(kernel, coded, tile(1, 0x3f), &limit), 1 << 5);
            assert_eq!(reaching_listed(kernel, coded, &[69, 1, 13], &limit), 0b101);
        }
    }
}

fn check_mask(
    kernel: &dyn Kernel,
    mask: u64,
    rows: &[Option<u32>],
    scores: &[f64],
    threshold: f64,
) {
    for (at, row) in rows.iter().enumerate() {
        let is_set = mask >> at & 1 == 1;
        match row {
            Some(row) if scores[*row as usize] >= threshold => {
                assert!(is_set, "{} dropped row {row}", kernel.name());
            }
            Some(_) => {}
            None => assert!(!is_set, "{} sees a row that is not there", kernel.name()),
        }
    }
    assert!(rows.len() == 64 || mask >> rows.len() == 0, "bits beyond the rows asked for");
}

#[test]
fn bounds_rule_out_nearly_everything_that_is_far_below() {
    let mut numbers = Numbers(4);
    let rows = SampleRows::new(384, (0..64).map(|_| numbers.padded(384)).collect());
    let query = rows.vectors[7][..384].to_vec();
    let own = rows.scores(&query, power_of(&query))[7];
    for (coded, plane) in rows.stages(&query) {
        let limit = Limit::new(coded.packing, &plane, rounded_down(own), None);
        for kernel in supported() {
            let all = tile(0, u64::MAX);
            assert_eq!(reaching(kernel, coded, all, &limit), 1 << 7, "{}", kernel.name());
            let picked = reaching_listed(kernel, coded, &[3, 7, 9], &limit);
            assert_eq!(picked, 1 << 1, "{}", kernel.name());
        }
    }
}

#[test]
fn a_bound_that_overflows_keeps_its_row() {
    let dim = 4096;
    let rows = SampleRows::new(dim, vec![vec![f32::MAX; dim]; 9]);
    let nine = tile(0, 0x1ff);
    // Infinity for the first query; minus infinity plus infinity for the second, which is NaN unless
    // it is fused; infinity times zero, so NaN everywhere, for the third.
    for query in [vec![1.0; dim], vec![-1.0; dim], vec![0.0; dim]] {
        for (coded, plane) in rows.stages(&query) {
            let limit = Limit::new(coded.packing, &plane, f32::MAX, None);
            for kernel in supported() {
                assert_eq!(reaching(kernel, coded, nine, &limit), 0x1ff);
                assert_eq!(reaching_listed(kernel, coded, &[8, 0], &limit), 3);
            }
        }
    }
}

#[test]
fn a_bound_that_equals_the_threshold_is_not_below_it() {
    let uppers: [f32; BLOCK_ROWS] = std::array::from_fn(|at| if at % 3 == 0 { 0.5 } else { 0.25 });
    for kernel in supported() {
        let mut reaching = [u64::MAX];
        kernel.at_least(&uppers, 0.5, &mut reaching);
        assert_eq!(reaching, [0b1001_0010_0100_1001], "{}", kernel.name());
    }
}

#[test]
fn an_unknown_kernel_is_refused_by_name() {
    let message = choose(Some("sse9")).err().expect("there is no such kernel").to_string();
    assert!(message.contains("sse9") && message.contains("portable"), "{message}");
    assert_eq!(choose(Some("portable")).expect("always there").name(), "portable");
    assert!(choose(None).is_ok() && choose(Some("")).is_ok());
}

#[test]
fn a_kernel_this_cpu_lacks_is_refused_with_what_it_has() {
    let names: Vec<&str> = supported().iter().map(|kernel| kernel.name()).collect();
    for lacking in KNOWN.iter().filter(|name| !names.contains(name)) {
        let message = choose(Some(lacking)).err().expect("not supported").to_string();
        assert!(message.contains(lacking) && message.contains("portable"), "{message}");
    }
}
