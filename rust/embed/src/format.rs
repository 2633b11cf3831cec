//! The file of weights: a header of two cache lines, then the model's arrays, each from a cache
//! line on, in the order of [`Layout::new`]. `models/minilm/build_model.py` writes it.

use std::fs::File;
use std::ops::{Deref, DerefMut, Range};
use std::path::Path;

use bytemuck::{AnyBitPattern, Pod, Zeroable};
use memmap2::Mmap;
use sha2::{Digest, Sha256};

use crate::error::Error;

const MAGIC: [u8; 8] = *b"MNEMBERT";
const VERSION: u32 = 1;
const LINE: usize = 64;
/// Bytes of the header before the hash of all other bytes.
const FIELDS: usize = 96;
const HEADER: usize = 128;

/// Output channels whose scales are read together.
pub(crate) const CHANNELS: usize = 16;
/// Inputs of a step.
pub(crate) const INPUTS: usize = 4;
/// Output channels of a pair of blocks.
pub(crate) const PAIR: usize = 2 * CHANNELS;
/// Steps of as many inputs as a pair of blocks has outputs.
pub(crate) const STEPS: usize = PAIR / INPUTS;
/// Components of an attention head; all small encoders have 32.
pub(crate) const HEAD: usize = PAIR;
/// Many more inputs could overflow a sum of products: 255·128·65,536 is below 2³¹.
const MAX_SIZE: usize = 65_536;
const MAX_LAYERS: usize = 1_024;
const MAX_WORDS: usize = 1 << 24;

/// The weights of 16 channels for the four inputs of a step, a channel's four side by side.
pub(crate) type Block = [i8; CHANNELS * INPUTS];

/// Of two times 16 channels, so that a step reads two cache lines that lie side by side.
pub(crate) type Pair = [Block; 2];

/// One number for each of 16 channels, in a cache line of its own: a register of AVX-512 would else
/// be read from two.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [f32; CHANNELS]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([0.0; CHANNELS]);
}

impl Deref for Lanes {
    type Target = [f32; CHANNELS];

    fn deref(&self) -> &[f32; CHANNELS] {
        &self.0
    }
}

impl DerefMut for Lanes {
    fn deref_mut(&mut self) -> &mut [f32; CHANNELS] {
        &mut self.0
    }
}

/// The numbers of a row that belong to a pair of blocks.
pub(crate) type Part = [Lanes; 2];

/// The codes of a part of a row, step by step.
pub(crate) type CodePart<C> = [[C; INPUTS]; STEPS];

/// Whether the hash of a file is compared when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// All bytes are read and compared.
    Verified,
    /// The header and the length alone are checked.
    Trusted,
}

/// The sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    pub(crate) layers: usize,
    pub(crate) inner: usize,
    pub(crate) words: usize,
    pub(crate) positions: usize,
    /// Of a code of a word: 8 with a scale for each word, or 4 with one for every 32 of its codes.
    pub(crate) word_bits: usize,
    /// Matrices that vectors are multiplied by behind the mean: 0 or 1.
    pub(crate) projections: usize,
}

impl Sizes {
    /// Components of query, key and value of a token.
    pub(crate) fn attention(self) -> usize {
        3 * self.hidden
    }

    fn read(fields: &[u8]) -> Self {
        let numbers = fields.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        let mut numbers = numbers.chain(std::iter::repeat(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self {
            hidden: next(),
            heads: next(),
            layers: next(),
            inner: next(),
            words: next(),
            positions: next(),
            word_bits: match next() {
                0 => 8, // as in files from before there was another number
                bits => bits,
            },
            projections: next(),
        }
    }

    /// Scales of all words.
    fn word_scales(self) -> usize {
        if self.word_bits == 8 { self.words } else { self.words * self.hidden / PAIR }
    }

    /// Whether the kernels can run such a model without overflow.
    fn are_possible(self) -> bool {
        let wide = |size: usize| size > 0 && size <= MAX_SIZE && size.is_multiple_of(PAIR);
        wide(self.hidden)
            && wide(self.inner)
            && self.heads * HEAD == self.hidden
            && (1..=MAX_LAYERS).contains(&self.layers)
            && (1..=MAX_WORDS).contains(&self.words)
            && (1..=MAX_SIZE).contains(&self.positions)
            && matches!(self.word_bits, 4 | 8)
            && self.projections <= 1
    }
}

/// A matrix with its bias: `output = codes · weights · scale + low · sum + bias`.
#[derive(Debug)]
struct DensePlaces {
    inputs: usize,
    scales: Range<usize>,
    sums: Range<usize>,
    bias: Range<usize>,
    weights: Range<usize>,
}

#[derive(Debug)]
struct NormPlaces {
    gain: Range<usize>,
    offset: Range<usize>,
}

#[derive(Debug)]
struct LayerPlaces {
    attention: DensePlaces,
    mixing: DensePlaces,
    attention_norm: NormPlaces,
    widening: DensePlaces,
    narrowing: DensePlaces,
    norm: NormPlaces,
}

/// Where the arrays are.
#[derive(Debug)]
struct Layout {
    words: Range<usize>,
    word_scales: Range<usize>,
    positions: Range<usize>,
    norm: NormPlaces,
    layers: Vec<LayerPlaces>,
    projection: Option<DensePlaces>,
    end: usize,
}

impl Layout {
    fn new(sizes: Sizes) -> Self {
        let Sizes { hidden, inner, .. } = sizes;
        let mut places = Places { end: HEADER };
        let words = places.next(sizes.words * hidden * sizes.word_bits / 8);
        let word_scales = places.floats(sizes.word_scales());
        let positions = places.floats(sizes.positions * hidden);
        let norm = places.norm(hidden);
        let layers = (0..sizes.layers).map(|_| LayerPlaces {
            attention: places.dense(hidden, sizes.attention()),
            mixing: places.dense(hidden, hidden),
            attention_norm: places.norm(hidden),
            widening: places.dense(hidden, inner),
            narrowing: places.dense(inner, hidden),
            norm: places.norm(hidden),
        });
        let layers = layers.collect();
        let projection = (sizes.projections > 0).then(|| places.dense(hidden, hidden));
        Self { words, word_scales, positions, norm, layers, projection, end: places.end }
    }
}

/// Gives out places one after the other, each from a cache line on.
struct Places {
    end: usize,
}

impl Places {
    fn next(&mut self, bytes: usize) -> Range<usize> {
        let start = self.end;
        self.end += bytes.next_multiple_of(LINE);
        start..start + bytes
    }

    fn floats(&mut self, count: usize) -> Range<usize> {
        self.next(count * size_of::<f32>())
    }

    fn norm(&mut self, hidden: usize) -> NormPlaces {
        NormPlaces { gain: self.floats(hidden), offset: self.floats(hidden) }
    }

    fn dense(&mut self, inputs: usize, outputs: usize) -> DensePlaces {
        DensePlaces {
            inputs,
            scales: self.floats(outputs),
            sums: self.floats(outputs),
            bias: self.floats(outputs),
            weights: self.next(inputs * outputs),
        }
    }
}

/// A matrix of a model and what turns its integer products into floats.
#[derive(Clone, Copy)]
pub(crate) struct Dense<'a> {
    pub(crate) inputs: usize,
    /// Of each output channel.
    pub(crate) scales: &'a [Part],
    /// The sum of each output channel's weights, scaled.
    pub(crate) sums: &'a [Part],
    pub(crate) bias: &'a [Part],
    /// For each 32 channels, a pair for every step.
    pub(crate) weights: &'a [Pair],
}

impl<'a> Dense<'a> {
    /// The weights of a pair of blocks, step by step.
    pub(crate) fn pair(self, pair: usize) -> &'a [[Pair; STEPS]] {
        let steps = self.inputs / INPUTS;
        self.weights[pair * steps..][..steps].as_chunks().0
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub(crate) gain: &'a [Part],
    pub(crate) offset: &'a [Part],
}

#[derive(Clone, Copy)]
pub(crate) struct Layer<'a> {
    pub(crate) attention: Dense<'a>,
    pub(crate) mixing: Dense<'a>,
    pub(crate) attention_norm: Norm<'a>,
    pub(crate) widening: Dense<'a>,
    pub(crate) narrowing: Dense<'a>,
    pub(crate) norm: Norm<'a>,
}

/// The rows of a table of words, 32 components each time.
#[derive(Clone, Copy)]
pub(crate) enum Table<'a> {
    /// A scale for each word.
    Bytes(&'a [[i8; PAIR]], &'a [f32]),
    /// A scale for each part. A byte has a code of the first half and, above it, one of the second,
    /// both 8 too large.
    Nibbles(&'a [[u8; PAIR / 2]], &'a [f32]),
}

/// What a token is at the beginning.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) table: Table<'a>,
    pub(crate) positions: &'a [Part],
    pub(crate) norm: Norm<'a>,
}

/// A mapped file.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) sizes: Sizes,
    layout: Layout,
    map: Mmap,
}

impl Model {
    pub(crate) fn open(path: &Path, checksum: Checksum) -> Result<Self, Error> {
        let map = mapped(path)?;
        let invalid = |problem| Error::Invalid { path: path.to_owned(), problem };
        let sizes = sizes_of(&map).map_err(invalid)?;
        let layout = Layout::new(sizes);
        if map.len() != layout.end {
            let problem = format!("it has {} bytes, and its header says {}", map.len(), layout.end);
            return Err(invalid(problem));
        }
        let model = Self { sizes, layout, map };
        if checksum == Checksum::Verified && !model.is_intact() {
            return Err(invalid("its bytes do not have the checksum in its header".to_owned()));
        }
        Ok(model)
    }

    fn is_intact(&self) -> bool {
        let mut hash = Sha256::new();
        hash.update(&self.map[..FIELDS]);
        hash.update(&self.map[HEADER..]);
        hash.finalize()[..] == self.map[FIELDS..HEADER]
    }

    pub(crate) fn words(&self) -> Words<'_> {
        let scales = self.array(&self.layout.word_scales);
        let table = match self.sizes.word_bits {
            8 => Table::Bytes(self.array(&self.layout.words), scales),
            _ => Table::Nibbles(self.array(&self.layout.words), scales),
        };
        Words {
            table,
            positions: self.array(&self.layout.positions),
            norm: self.norm(&self.layout.norm),
        }
    }

    pub(crate) fn layer(&self, number: usize) -> Layer<'_> {
        let places = &self.layout.layers[number];
        Layer {
            attention: self.dense(&places.attention),
            mixing: self.dense(&places.mixing),
            attention_norm: self.norm(&places.attention_norm),
            widening: self.dense(&places.widening),
            narrowing: self.dense(&places.narrowing),
            norm: self.norm(&places.norm),
        }
    }

    pub(crate) fn projection(&self) -> Option<Dense<'_>> {
        self.layout.projection.as_ref().map(|places| self.dense(places))
    }

    fn dense(&self, places: &DensePlaces) -> Dense<'_> {
        Dense {
            inputs: places.inputs,
            scales: self.array(&places.scales),
            sums: self.array(&places.sums),
            bias: self.array(&places.bias),
            weights: self.array(&places.weights),
        }
    }

    fn norm(&self, places: &NormPlaces) -> Norm<'_> {
        Norm { gain: self.array(&places.gain), offset: self.array(&places.offset) }
    }

    /// A place as an array: it begins at a cache line, and the length of the file was checked.
    fn array<T: AnyBitPattern>(&self, place: &Range<usize>) -> &[T] {
        bytemuck::cast_slice(&self.map[place.clone()])
    }
}

#[expect(unsafe_code, reason = "mapping a file")]
fn mapped(path: &Path) -> Result<Mmap, Error> {
    let unreadable = |reason: &dyn ToString| Error::Unreadable {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        // Opening a pipe would wait for its writer.
        return Err(unreadable(&"it is not a file"));
    }
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    // SAFETY: a file of weights is installed once and never written in place; whoever cuts one
    // off by hand ends this process, as with any mapped library.
    unsafe { Mmap::map(&file) }.map_err(|error| unreadable(&error))
}

fn sizes_of(map: &[u8]) -> Result<Sizes, String> {
    let header: &[u8; HEADER] = map.first_chunk().ok_or("it is shorter than its header")?;
    if header[..8] != MAGIC {
        return Err("it is another kind of file".to_owned());
    }
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if version != VERSION {
        return Err(format!("it has version {version}, and this program reads {VERSION}"));
    }
    let sizes = Sizes::read(&header[12..FIELDS]);
    if !sizes.are_possible() {
        return Err(format!("no kernel runs a model of these sizes: {sizes:?}"));
    }
    Ok(sizes)
}
