//! The encoder beside a naive one, every kernel beside the portable one, and damaged files.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::*;
use crate::counting::{allocated_bytes, allocations};
use crate::floats::CodeRange;
use crate::format::{CodePart, Lanes, Model, Part};
use crate::forward::Batch;
use crate::kernel::portable::Portable;
use crate::kernel::{Kernel, supported};
use crate::model_file::{
    HIDDEN, LAYERS, Numbers, POSITIONS, PlainDense, PlainModel, PlainNorm, WORDS, with_hash,
    written,
};
use crate::scratch::Scratch;

/// Lengths around the panels of all kernels, and two that are no batch together.
const LENGTHS: [usize; 18] = [1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 15, 16, 17, 31, 32, 33, 64, 129];

fn never() -> bool {
    false
}

fn texts() -> Vec<Vec<u32>> {
    let mut numbers = Numbers(7);
    LENGTHS.iter().map(|length| numbers.text(*length)).collect()
}

fn encoder() -> Encoder {
    encoder_of(&PlainModel::new(&mut Numbers(1)))
}

fn encoder_of(model: &PlainModel) -> Encoder {
    let (_folder, path) = written(&model.file());
    Encoder::open(&path, Checksum::Verified).expect("the file is whole")
}

fn embedded(encoder: &Encoder, texts: &[&[u32]], threads: usize) -> Vec<f32> {
    let mut vectors = vec![f32::NAN; texts.len() * HIDDEN];
    encoder.embed(texts, &mut vectors, threads, &never).expect("all texts are possible");
    vectors
}

fn bits(vectors: &[f32]) -> Vec<u32> {
    vectors.iter().map(|value| value.to_bits()).collect()
}

fn run(model: &Model, text: &[u32], kernel: &dyn Kernel) -> Vec<u32> {
    let batch = Batch { texts: &[text], tokens: text.len() };
    let (mut scratch, mut vector) = (Scratch::default(), vec![f32::NAN; HIDDEN]);
    kernel.run(model, batch, &mut scratch, &mut vector, &never).expect("it is never over");
    bits(&vector)
}

#[test]
fn every_kernel_makes_the_same_bits() {
    let (_folder, path) = written(&PlainModel::projected(&mut Numbers(1)).file());
    let model = Model::open(&path, Checksum::Verified).expect("the file is whole");
    let kernels = supported();
    let portable = kernels.last().expect("one kernel runs everywhere");
    for text in texts() {
        let wanted = run(&model, &text, *portable);
        for kernel in &kernels {
            assert_eq!(
                run(&model, &text, *kernel),
                wanted,
                "{}, {} tokens",
                kernel.name(),
                text.len()
            );
        }
    }
}

/// So that a file of memories can be carried from one machine to another.
#[test]
fn all_cpus_make_these_bits() {
    let models = [PlainModel::new(&mut Numbers(1)), PlainModel::projected(&mut Numbers(1))];
    let texts = texts();
    let all: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let digests = models.map(|model| {
        let vectors = embedded(&encoder_of(&model), &all, 1);
        Sha256::digest(bytemuck::cast_slice::<f32, u8>(&vectors))[..8].to_vec()
    });
    assert_eq!(digests[0], [183, 232, 122, 19, 192, 56, 27, 85]);
    assert_eq!(digests[1], [2, 113, 60, 142, 33, 98, 188, 165]);
}

#[test]
fn words_of_four_bits_make_the_bits_of_the_same_words_of_eight() {
    let mut model = PlainModel::new(&mut Numbers(1));
    model.words.iter_mut().for_each(|code| *code >>= 4);
    let bytes = encoder_of(&model);
    model.word_bits = 4;
    let encoders = [bytes, encoder_of(&model)];
    for text in texts() {
        let [bytes, nibbles] = encoders.each_ref().map(|encoder| embedded(encoder, &[&text], 1));
        assert_eq!(bits(&nibbles), bits(&bytes));
    }
}

#[test]
fn a_vector_does_not_depend_on_texts_beside_it_or_on_threads() {
    let (encoder, texts) = (encoder_of(&PlainModel::projected(&mut Numbers(1))), texts());
    let all: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let alone: Vec<f32> = all.iter().flat_map(|text| embedded(&encoder, &[text], 1)).collect();
    for threads in [0, 1, 2, 5] {
        assert_eq!(bits(&embedded(&encoder, &all, threads)), bits(&alone));
    }
    let backwards: Vec<&[u32]> = all.iter().rev().copied().collect();
    let vectors = embedded(&encoder, &backwards, 1);
    let turned: Vec<f32> = vectors.chunks(HIDDEN).rev().flatten().copied().collect();
    assert_eq!(bits(&turned), bits(&alone));
}

#[test]
fn a_vector_does_not_depend_on_how_a_batch_is_shared() {
    let (encoder, mut numbers) = (encoder(), Numbers(11));
    for first in (1..128).step_by(9) {
        let texts = [first, 128 - first].map(|length| numbers.text(length));
        let all = [&texts[0][..], &texts[1]];
        let alone: Vec<f32> = all.iter().flat_map(|text| embedded(&encoder, &[text], 1)).collect();
        assert_eq!(bits(&embedded(&encoder, &all, 1)), bits(&alone), "{first} tokens");
    }
    let (one, many) = (embedded(&encoder, &[&[7]], 1), [&[7][..]; 300]);
    assert_eq!(bits(&embedded(&encoder, &many, 2)), bits(&one.repeat(300)));
}

#[test]
fn only_the_first_call_of_a_thread_allocates() {
    let (encoder, texts) = (encoder_of(&PlainModel::projected(&mut Numbers(1))), texts());
    let all: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let mut vectors = embedded(&encoder, &all, 1);
    let before = allocations();
    for _ in 0..3 {
        assert_eq!(encoder.embed(&all, &mut vectors, 1, &never), Ok(()));
        assert_eq!(encoder.embed(&all[..1], &mut vectors[..HIDDEN], 4, &never), Ok(()));
    }
    assert_eq!(allocations(), before);
}

#[test]
fn vectors_are_near_those_of_a_naive_encoder() {
    for model in [PlainModel::new(&mut Numbers(1)), PlainModel::projected(&mut Numbers(1))] {
        let encoder = encoder_of(&model);
        for text in texts().into_iter().chain([Numbers(13).text(POSITIONS)]) {
            let (found, wanted) = (embedded(&encoder, &[&text], 1), naive(&model, &text));
            let cosine: f64 = found.iter().zip(&wanted).map(|(x, y)| f64::from(*x) * y).sum();
            assert!(cosine > 0.9995, "{cosine} for {} tokens", text.len());
            let length: f64 = found.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            assert!((length - 1.0).abs() < 1e-5, "{length}");
        }
    }
}

/// The model in float64, activations unrounded.
fn naive(model: &PlainModel, text: &[u32]) -> Vec<f64> {
    let token = |(place, token): (usize, &u32)| {
        let token = *token as usize;
        let scale = f64::from(model.word_scales[token]);
        let words = model.words[token * HIDDEN..][..HIDDEN].iter();
        let places = &model.positions[place * HIDDEN..];
        words
            .zip(places)
            .map(|(word, place)| f64::from(*word) * scale + f64::from(*place))
            .collect()
    };
    let mut rows: Vec<Vec<f64>> = text.iter().enumerate().map(token).collect();
    for row in &mut rows {
        normalise(row, &model.norm);
    }
    for layer in &model.layers {
        let parts: Vec<Vec<f64>> = rows.iter().map(|row| product(row, &layer.attention)).collect();
        for (row, mixed) in rows.iter_mut().zip(attend(&parts)) {
            add_and_normalise(row, &product(&mixed, &layer.mixing), &layer.attention_norm);
            let inner = product(row, &layer.widening).into_iter().map(gelu).collect::<Vec<_>>();
            add_and_normalise(row, &product(&inner, &layer.narrowing), &layer.norm);
        }
    }
    let sums: Vec<f64> = (0..HIDDEN).map(|at| rows.iter().map(|row| row[at]).sum()).collect();
    let vector = unit_length(sums);
    match &model.projection {
        Some(projection) => unit_length(product(&vector, projection)),
        None => vector,
    }
}

fn unit_length(vector: Vec<f64>) -> Vec<f64> {
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    vector.into_iter().map(|value| value / length).collect()
}

fn product(row: &[f64], dense: &PlainDense) -> Vec<f64> {
    let channels = dense.codes.iter().zip(&dense.scales).zip(&dense.bias);
    let channel = |((codes, scale), bias): ((&Vec<i8>, &f32), &f32)| {
        let sum: f64 = codes.iter().zip(row).map(|(code, value)| f64::from(*code) * value).sum();
        sum * f64::from(*scale) + f64::from(*bias)
    };
    channels.map(channel).collect()
}

fn attend(parts: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mix = |query: &Vec<f64>, at: usize| {
        let head = at / 32 * 32;
        let score = |key: &Vec<f64>| -> f64 {
            (head..head + 32).map(|part| query[part] * key[HIDDEN + part]).sum::<f64>().exp()
        };
        let weights: Vec<f64> = parts.iter().map(score).collect();
        let values =
            parts.iter().zip(&weights).map(|(value, weight)| weight * value[2 * HIDDEN + at]);
        values.sum::<f64>() / weights.iter().sum::<f64>()
    };
    parts.iter().map(|query| (0..HIDDEN).map(|at| mix(query, at)).collect()).collect()
}

fn add_and_normalise(row: &mut [f64], more: &[f64], norm: &PlainNorm) {
    for (value, more) in row.iter_mut().zip(more) {
        *value += more;
    }
    normalise(row, norm);
}

fn normalise(row: &mut [f64], norm: &PlainNorm) {
    let mean = row.iter().sum::<f64>() / HIDDEN as f64;
    let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / HIDDEN as f64;
    for (at, value) in row.iter_mut().enumerate() {
        let unit = (*value - mean) / variance.sqrt();
        *value = unit * f64::from(norm.gain[at]) + f64::from(norm.offset[at]);
    }
}

fn gelu(x: f64) -> f64 {
    x * normal(x)
}

/// The distribution of a standard normal variable, by Simpson's rule from 0.
fn normal(x: f64) -> f64 {
    const STEPS: u32 = 200;
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let width = x / f64::from(STEPS);
    let weight =
        |step: u32| if step == 0 || step == STEPS { 1.0 } else { f64::from(2 + step % 2 * 2) };
    let sum: f64 = (0..=STEPS).map(|step| weight(step) * density(width * f64::from(step))).sum();
    0.5 + sum * width / 3.0
}

#[test]
fn gelu_is_near_the_exact_one() {
    let row: Vec<f32> = (-1024..1024).map(|at| at as f32 / 100.0).collect();
    let wanted: Vec<f64> = row.iter().map(|x| gelu(f64::from(*x))).collect();
    let mut found: Vec<Part> = bytemuck::pod_collect_to_vec(&row);
    floats::gelu(Portable, found.iter_mut());
    for (found, wanted) in bytemuck::cast_slice::<Part, f32>(&found).iter().zip(wanted) {
        assert!((f64::from(*found) - wanted).abs() < 2e-6, "{found} for {wanted}");
    }
}

#[test]
fn exponentials_are_near_the_exact_ones() {
    let scores: Vec<f32> = (0..960).map(|at| at as f32 / -11.0 + 5.0).collect();
    let mut lanes: Vec<Lanes> = scores.iter().map(|score| Lanes([*score; 16])).collect();
    let sum = f64::from(floats::exponentials(&mut lanes)[0]);
    let wanted: Vec<f64> = scores.iter().map(|x| f64::from(x - scores[0]).exp()).collect();
    for (Lanes([found, ..]), wanted) in
        lanes.iter().zip(&wanted).filter(|(_, wanted)| **wanted > 1e-37)
    {
        assert!((f64::from(*found) / wanted - 1.0).abs() < 1e-5, "{found} for {wanted}");
    }
    assert!((sum / wanted.iter().sum::<f64>() - 1.0).abs() < 1e-6);
}

fn rounded(row: &[f32], codes: &mut [u8]) -> CodeRange {
    let row: Vec<Part> = bytemuck::pod_collect_to_vec(row);
    let range = floats::range(Portable, row.iter());
    let codes: &mut [CodePart<u8>] = bytemuck::cast_slice_mut(codes);
    floats::round(Portable, row.iter(), range, codes.iter_mut());
    range
}

#[test]
fn what_is_far_below_the_largest_score_has_no_weight() {
    for far in [-88.0, -1000.0, -1e30, f32::NEG_INFINITY] {
        let mut scores = [Lanes([7.0; 16]), Lanes([7.0 + far; 16])];
        let sums = floats::exponentials(&mut scores);
        let whole = scores[0].iter().chain(sums.iter());
        assert!(whole.into_iter().all(|weight| (weight - 1.0).abs() < 1e-6), "{scores:?}");
        assert!(scores[1].iter().all(|weight| (0.0..1e-37).contains(weight)), "{scores:?}");
    }
}

#[test]
fn every_sum_but_that_of_zeros_gets_unit_length() {
    let pooled = |row: [f32; 64]| {
        let parts: [Part; 2] = bytemuck::cast(row);
        let mut vector = [f32::NAN; 64];
        floats::pool(Portable, parts.iter().map(std::slice::from_ref), &mut vector);
        vector
    };
    for size in [1e-15, 0.01, 1.0, 1e15] {
        assert!(pooled([size; 64]).iter().all(|value| (value - 0.125).abs() < 1e-6), "{size}");
    }
    assert_eq!(pooled([0.0; 64]).map(f32::to_bits), [0; 64]);
}

#[test]
fn a_row_of_one_number_is_rounded_to_it() {
    for number in [0.0f32, -0.0, 1e-38, 1e-20, -3.5, 1e30] {
        let mut codes = [77u8; 32];
        let range = rounded(&[number; 32], &mut codes);
        for code in codes {
            let error = f32::from(code).mul_add(range.step, range.low) - number;
            assert!(error.abs() <= 1e-6 * number.abs() + 1e-30, "{error} for {number}");
        }
    }
}

#[test]
fn zero_is_rounded_to_itself() {
    let mut numbers = Numbers(11);
    for shift in [-0.9f32, -0.01, 0.3, 1.0, 5.0, -5.0] {
        let mut row: Vec<f32> = (0..64).map(|_| numbers.float() + shift).collect();
        row[5] = 0.0;
        let mut codes = [0u8; 64];
        let range = rounded(&row, &mut codes);
        let error = f32::from(codes[5]).mul_add(range.step, range.low);
        assert!(error.abs() <= 1e-5 * range.step, "{error} beside numbers around {shift}");
    }
}

#[test]
fn rounding_errs_by_half_a_step_at_most() {
    let mut numbers = Numbers(9);
    for at in 0..100 {
        let size = [10.0, 1e-4, 1e-20, 1e20][at % 4];
        let row: Vec<f32> = (0..64).map(|_| size * numbers.float()).collect();
        let mut codes = [0u8; 64];
        let range = rounded(&row, &mut codes);
        for (code, value) in codes.iter().zip(&row) {
            let error = f32::from(*code).mul_add(range.step, range.low) - value;
            assert!(error.abs() <= 0.5001 * range.step, "{error}, a step is {}", range.step);
        }
    }
}

#[test]
fn texts_that_cannot_be_embedded_are_refused() {
    let encoder = encoder();
    let mut place = vec![0.0; 2 * HIDDEN];
    let mut refused = |text: &[u32]| encoder.embed(&[&[1], text], &mut place, 1, &never);
    assert_eq!(refused(&[]), Err(Error::NoTokens { text: 1 }));
    let (found, max) = (POSITIONS + 1, POSITIONS);
    assert_eq!(refused(&vec![0; found]), Err(Error::TooManyTokens { text: 1, found, max }));
    let (found, words) = (WORDS as u32, WORDS);
    assert_eq!(refused(&[0, found]), Err(Error::UnknownToken { text: 1, found, words }));
    assert_eq!(refused(&vec![found - 1; POSITIONS]), Ok(()));
}

#[test]
fn the_place_must_be_that_of_the_vectors() {
    let wanted = 2 * HIDDEN;
    for found in [0, HIDDEN, wanted - 1, wanted + 1] {
        let refused = encoder().embed(&[&[1], &[2]], &mut vec![0.0; found], 1, &never);
        assert_eq!(refused, Err(Error::PlaceMismatch { found, wanted }));
    }
    assert_eq!(encoder().embed(&[], &mut [], 3, &never), Ok(()));
}

#[test]
fn the_time_is_looked_at_before_each_layer() {
    let (encoder, asked) = (encoder(), AtomicUsize::new(0));
    let mut place = vec![0.0; HIDDEN];
    let is_over = || asked.fetch_add(1, Ordering::Relaxed) + 1 == LAYERS;
    assert_eq!(encoder.embed(&[&[1, 2, 3]], &mut place, 1, &is_over), Err(Error::Interrupted));
    assert_eq!(asked.into_inner(), LAYERS);
    assert_eq!(encoder.embed(&[&[1, 2, 3]], &mut place, 1, &never), Ok(()));
}

/// The calling thread waits in its first batch until the other one was asked.
#[test]
fn the_time_of_every_thread_counts() {
    let (caller, asked) = (thread::current().id(), AtomicBool::new(false));
    let ends = Instant::now() + Duration::from_secs(20);
    let is_over = || {
        if thread::current().id() != caller {
            asked.store(true, Ordering::Relaxed);
            return true;
        }
        while !asked.load(Ordering::Relaxed) && Instant::now() < ends {
            thread::yield_now();
        }
        false
    };
    let text = Numbers(5).text(100);
    let texts: [&[u32]; 4] = [&text; 4];
    let mut place = vec![0.0; 4 * HIDDEN];
    assert_eq!(encoder().embed(&texts, &mut place, 2, &is_over), Err(Error::Interrupted));
}

#[test]
fn the_memory_of_a_call_is_no_less_than_its_buffers() {
    let (encoder, texts) = (encoder(), texts());
    let all: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let mut vectors = vec![0.0; all.len() * HIDDEN];
    let measured = || {
        let before = allocated_bytes();
        assert_eq!(encoder.embed(&all, &mut vectors, 1, &never), Ok(()));
        allocated_bytes() - before
    };
    // A new thread, which has no buffers yet.
    let taken = thread::scope(|scope| scope.spawn(measured).join()).expect("texts are possible");
    let one = encoder.memory(&all, 1);
    assert!((one / 10..=one).contains(&taken), "{taken} of {one}");
    assert!(encoder.memory(&all[..1], 1) < one);
    assert!(encoder.memory(&all, 2) > 2 * one);
    assert_eq!(encoder.memory(&all, 1000), encoder.memory(&all, usize::MAX));
}

fn opened(bytes: &[u8], checksum: Checksum) -> Result<(), String> {
    let (_folder, path) = written(bytes);
    Encoder::open(&path, checksum).map(drop).map_err(|error| error.to_string())
}

fn refused(bytes: &[u8], words: &str) {
    for checksum in [Checksum::Verified, Checksum::Trusted] {
        let error = opened(bytes, checksum).expect_err("the file is damaged");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn files_of_another_length_are_refused() {
    let file = PlainModel::new(&mut Numbers(1)).file();
    for length in [0, 1, 95, 127] {
        refused(&file[..length], "shorter than its header");
    }
    for length in (128..file.len()).step_by(64) {
        refused(&file[..length], "its header says");
        refused(&file[..=length], "its header says");
    }
    refused(&file[..file.len() - 1], "its header says");
    refused(&[&file[..], &[0]].concat(), "its header says");
}

#[test]
fn files_with_another_header_are_refused() {
    let file = PlainModel::new(&mut Numbers(1)).file();
    let with = |at: usize, number: u32| {
        let mut fields = file[..96].to_vec();
        fields[at..at + 4].copy_from_slice(&number.to_le_bytes());
        with_hash(&fields, &file[128..])
    };
    refused(&with(0, 0), "another kind of file");
    for version in [0, 2, u32::MAX] {
        refused(&with(8, version), &format!("version {version}"));
    }
    for at in (12..36).step_by(4) {
        for size in [0, u32::MAX] {
            refused(&with(at, size), "sizes");
        }
    }
    // One pair of blocks more than sums have room for.
    let large = 65_536 + 32;
    refused(&with(24, large), "sizes");
    let mut fields = with(12, large)[..96].to_vec();
    fields[16..20].copy_from_slice(&(large / 32).to_le_bytes());
    refused(&with_hash(&fields, &file[128..]), "sizes");
    refused(&with(16, 1), "sizes");
    for word_bits in [1, 5, 16, u32::MAX] {
        refused(&with(36, word_bits), "sizes");
    }
    refused(&with(36, 4), "its header says");
    refused(&with(40, 1), "its header says");
    refused(&with(40, 2), "sizes");
    refused(&with(24, 100), "sizes");
    refused(&with(20, 3), "its header says");
}

#[test]
fn no_sizes_in_a_header_overflow() {
    const SIZES: [u32; 12] =
        [0, 1, 2, 32, 96, 1024, 2048, 65_536, 65_537, 1 << 24, 1 << 31, u32::MAX];
    let file = PlainModel::new(&mut Numbers(1)).file();
    let places = |from: usize| (from..44).step_by(4);
    for (one, other) in places(12).flat_map(|one| places(one + 4).map(move |other| (one, other))) {
        for (first, second) in SIZES.iter().flat_map(|first| SIZES.map(|second| (*first, second))) {
            let mut fields = file[..128].to_vec();
            fields[one..one + 4].copy_from_slice(&first.to_le_bytes());
            fields[other..other + 4].copy_from_slice(&second.to_le_bytes());
            assert!(opened(&fields, Checksum::Trusted).is_err(), "{one} {first} {other} {second}");
        }
    }
}

/// The checksum says that a file is as it was made, and not that its numbers make sense.
#[test]
fn all_numbers_in_a_file_can_be_run() {
    let file = PlainModel::projected(&mut Numbers(1)).file();
    let mut numbers = Numbers(17);
    for text in texts() {
        let mut odd = file.clone();
        odd[128..].fill_with(|| numbers.bits() as u8);
        let (_folder, path) = written(&odd);
        let model = Model::open(&path, Checksum::Trusted).expect("its header is right");
        for kernel in supported() {
            assert_eq!(run(&model, &text, kernel).len(), HIDDEN);
        }
    }
}

/// Rounded, the variance of such a row can be below 0.
#[test]
fn rows_of_one_number_give_vectors() {
    let mut numbers = Numbers(19);
    for _ in 0..50 {
        let mut model = PlainModel::new(&mut Numbers(1));
        model.words.fill(0);
        model.positions.fill(1000.0 * numbers.float());
        let (_folder, path) = written(&model.file());
        let encoder = Encoder::open(&path, Checksum::Trusted).expect("the file is whole");
        assert!(embedded(&encoder, &[&[1, 2, 3]], 1).iter().all(|value| value.is_finite()));
    }
}

#[test]
fn a_changed_byte_is_found_by_the_checksum() {
    let file = PlainModel::new(&mut Numbers(1)).file();
    for at in [44, 96, 127, 128, file.len() / 2, file.len() - 1] {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        let error = opened(&damaged, Checksum::Verified).expect_err("a byte is changed");
        assert!(error.contains("checksum"), "{error}");
        assert_eq!(opened(&damaged, Checksum::Trusted), Ok(()));
    }
}

#[test]
fn a_folder_and_a_missing_file_are_not_weights() {
    let folder = tempfile::TempDir::new().expect("tests may write temporary files");
    for path in [folder.path().to_owned(), folder.path().join("missing")] {
        let refused = Encoder::open(&path, Checksum::Trusted).map(drop);
        assert!(matches!(refused, Err(Error::Unreadable { .. })), "{refused:?}");
    }
}
