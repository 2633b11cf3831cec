//! Files of small models with random weights, for tests.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

pub(crate) const HIDDEN: usize = 64;
pub(crate) const INNER: usize = 96;
pub(crate) const LAYERS: usize = 2;
pub(crate) const WORDS: usize = 50;
pub(crate) const POSITIONS: usize = 160;

/// Deterministic numbers (`SplitMix64`).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) >> 8
    }

    /// Between −1 and 1.
    pub(crate) fn float(&mut self) -> f32 {
        (self.bits() % (1 << 24)) as f32 / 8_388_608.0 - 1.0
    }

    pub(crate) fn text(&mut self, tokens: usize) -> Vec<u32> {
        (0..tokens).map(|_| (self.bits() % WORDS as u64) as u32).collect()
    }
}

/// A matrix as it was before it was laid out: rows of codes, one an output channel.
pub(crate) struct PlainDense {
    pub(crate) codes: Vec<Vec<i8>>,
    pub(crate) scales: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

pub(crate) struct PlainNorm {
    pub(crate) gain: Vec<f32>,
    pub(crate) offset: Vec<f32>,
}

pub(crate) struct PlainLayer {
    pub(crate) attention: PlainDense,
    pub(crate) mixing: PlainDense,
    pub(crate) attention_norm: PlainNorm,
    pub(crate) widening: PlainDense,
    pub(crate) narrowing: PlainDense,
    pub(crate) norm: PlainNorm,
}

/// A model with random weights.
pub(crate) struct PlainModel {
    pub(crate) words: Vec<i8>,
    /// 8, or 4 where each code of a word is from −8 to 7.
    pub(crate) word_bits: usize,
    pub(crate) word_scales: Vec<f32>,
    pub(crate) positions: Vec<f32>,
    pub(crate) norm: PlainNorm,
    pub(crate) layers: Vec<PlainLayer>,
    pub(crate) projection: Option<PlainDense>,
}

impl PlainModel {
    pub(crate) fn new(numbers: &mut Numbers) -> Self {
        Self {
            words: (0..WORDS * HIDDEN).map(|_| numbers.bits() as i8).collect(),
            word_bits: 8,
            word_scales: (0..WORDS).map(|_| 0.01 + 0.001 * numbers.float()).collect(),
            positions: (0..POSITIONS * HIDDEN).map(|_| 0.2 * numbers.float()).collect(),
            norm: norm(numbers),
            layers: (0..LAYERS).map(|_| layer(numbers)).collect(),
            projection: None,
        }
    }

    /// One whose vectors are multiplied by a matrix behind the mean.
    pub(crate) fn projected(numbers: &mut Numbers) -> Self {
        let plain = Self::new(numbers);
        Self { projection: Some(dense(numbers, HIDDEN, HIDDEN)), ..plain }
    }

    /// The bytes of its file.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut fields = b"MNEMBERT".to_vec();
        let sizes = [1, HIDDEN, HIDDEN / 32, LAYERS, INNER, WORDS, POSITIONS, self.word_bits];
        let projections = usize::from(self.projection.is_some());
        let all = sizes.iter().chain([&projections]);
        fields.extend(all.flat_map(|size| (*size as u32).to_le_bytes()));
        fields.resize(96, 0);
        let mut body = Vec::new();
        self.append_words(&mut body);
        append(&mut body, &self.positions);
        append_norm(&mut body, &self.norm);
        for layer in &self.layers {
            append_dense(&mut body, &layer.attention);
            append_dense(&mut body, &layer.mixing);
            append_norm(&mut body, &layer.attention_norm);
            append_dense(&mut body, &layer.widening);
            append_dense(&mut body, &layer.narrowing);
            append_norm(&mut body, &layer.norm);
        }
        if let Some(projection) = &self.projection {
            append_dense(&mut body, projection);
        }
        with_hash(&fields, &body)
    }

    fn append_words(&self, body: &mut Vec<u8>) {
        if self.word_bits == 8 {
            append(body, &self.words);
            return append(body, &self.word_scales);
        }
        let halves = self.words.as_chunks::<32>().0.iter().map(|part| part.split_at(16));
        let byte = |(first, second): (&i8, &i8)| {
            (first + 8).cast_unsigned() | ((second + 8).cast_unsigned() << 4)
        };
        let nibbles = halves.flat_map(|(first, second)| first.iter().zip(second).map(byte));
        append(body, &nibbles.collect::<Vec<u8>>());
        let scales = self.word_scales.iter().flat_map(|scale| [*scale; HIDDEN / 32]);
        append(body, &scales.collect::<Vec<f32>>());
    }
}

/// Put the hash between the fields and the arrays.
pub(crate) fn with_hash(fields: &[u8], body: &[u8]) -> Vec<u8> {
    let hash = Sha256::new().chain_update(fields).chain_update(body).finalize();
    [fields, &hash[..], body].concat()
}

/// Write a file; the folder lives as long as what is returned with it.
pub(crate) fn written(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("tests may write temporary files");
    let path = folder.path().join("weights.bin");
    std::fs::write(&path, bytes).expect("tests may write temporary files");
    (folder, path)
}

fn norm(numbers: &mut Numbers) -> PlainNorm {
    PlainNorm {
        gain: (0..HIDDEN).map(|_| 1.0 + 0.3 * numbers.float()).collect(),
        offset: (0..HIDDEN).map(|_| 0.3 * numbers.float()).collect(),
    }
}

fn dense(numbers: &mut Numbers, inputs: usize, outputs: usize) -> PlainDense {
    PlainDense {
        codes: (0..outputs).map(|_| (0..inputs).map(|_| numbers.bits() as i8).collect()).collect(),
        scales: (0..outputs).map(|_| 0.002 + 0.001 * numbers.float()).collect(),
        bias: (0..outputs).map(|_| 0.1 * numbers.float()).collect(),
    }
}

fn layer(numbers: &mut Numbers) -> PlainLayer {
    PlainLayer {
        attention: dense(numbers, HIDDEN, 3 * HIDDEN),
        mixing: dense(numbers, HIDDEN, HIDDEN),
        attention_norm: norm(numbers),
        widening: dense(numbers, HIDDEN, INNER),
        narrowing: dense(numbers, INNER, HIDDEN),
        norm: norm(numbers),
    }
}

fn append<T: bytemuck::NoUninit>(body: &mut Vec<u8>, values: &[T]) {
    body.extend_from_slice(bytemuck::cast_slice(values));
    body.resize(body.len().next_multiple_of(64), 0);
}

fn append_norm(body: &mut Vec<u8>, norm: &PlainNorm) {
    append(body, &norm.gain);
    append(body, &norm.offset);
}

fn append_dense(body: &mut Vec<u8>, dense: &PlainDense) {
    let sum = |codes: &Vec<i8>| codes.iter().map(|code| i32::from(*code)).sum::<i32>() as f32;
    let sums: Vec<f32> =
        dense.codes.iter().zip(&dense.scales).map(|(codes, scale)| sum(codes) * scale).collect();
    append(body, &dense.scales);
    append(body, &sums);
    append(body, &dense.bias);
    let mut blocks: Vec<i8> = Vec::new();
    for channels in dense.codes.chunks(32) {
        for step in 0..channels[0].len() / 4 {
            blocks.extend(channels.iter().flat_map(|codes| &codes[4 * step..4 * step + 4]));
        }
    }
    append(body, &blocks);
}
