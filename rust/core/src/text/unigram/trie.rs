//! The pieces of a unigram model, in a trie that is mapped from a file.
//!
//! A double array (Aoe, "An efficient digital search algorithm by using a double-array structure",
//! 1989): the unit behind another one by a byte is `base + byte`, if that unit's `parent` says so.
//! `models/e5/build_model.py` writes the file.

use bytemuck::{Pod, Zeroable};
use memmap2::Mmap;

use crate::Error;

const MAGIC: [u8; 8] = *b"MNEMUNIG";
const VERSION: u32 = 1;

/// Of no piece, and of no unit.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    /// Number of units behind the header.
    units: u32,
    /// Before the pieces of each text, behind them, and of characters that no piece has.
    first: u32,
    last: u32,
    unknown: u32,
    unknown_score: f32,
    unused: [u32; 8],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Unit {
    base: u32,
    parent: u32,
    /// The piece that ends here.
    piece: u32,
    /// Its logarithmic probability.
    score: f32,
}

/// A piece at the beginning of a text.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) id: u32,
    pub(super) score: f32,
    /// Of its bytes.
    pub(super) len: usize,
}

/// A mapped file of pieces.
#[derive(Debug)]
pub(super) struct Trie {
    map: Mmap,
}

impl Trie {
    pub(super) fn new(map: Mmap) -> Result<Self, Error> {
        let trie = Self { map };
        let problem = match trie.map.first_chunk::<{ size_of::<Header>() }>() {
            None => "it is shorter than its header".to_owned(),
            Some(_) if trie.header().magic != MAGIC => "it is another kind of file".to_owned(),
            Some(_) if trie.header().version != VERSION => {
                format!("it has version {}, not {VERSION}", trie.header().version)
            }
            Some(_) if trie.units().len() != trie.header().units as usize => {
                format!("it has {} bytes, and its header says otherwise", trie.map.len())
            }
            Some(_) => return Ok(trie),
        };
        Err(Error::InvalidTokenizer { kind: "file of unigram pieces", problem })
    }

    /// The tokens before and behind each text.
    pub(super) fn frame(&self) -> (u32, u32) {
        (self.header().first, self.header().last)
    }

    /// The token of characters that no piece has, and its score.
    pub(super) fn unknown(&self) -> (u32, f32) {
        (self.header().unknown, self.header().unknown_score)
    }

    /// Give the pieces that a text begins with, the shortest first.
    pub(super) fn pieces_of(&self, text: &[u8], mut give: impl FnMut(Piece)) {
        let units = self.units();
        let mut at = 0;
        for (byte, len) in text.iter().zip(1..) {
            let Some(unit) = units.get(at as usize) else { return };
            let next = unit.base.wrapping_add(u32::from(*byte));
            let Some(found) = units.get(next as usize).filter(|unit| unit.parent == at) else {
                return;
            };
            if found.piece != NONE {
                give(Piece { id: found.piece, score: found.score, len });
            }
            at = next;
        }
    }

    /// A map begins at a page, and the file was seen to be long enough.
    fn header(&self) -> &Header {
        bytemuck::from_bytes(&self.map[..size_of::<Header>()])
    }

    /// Whole units; a file of another length was refused.
    fn units(&self) -> &[Unit] {
        let rest = &self.map[size_of::<Header>()..];
        let whole = rest.len() - rest.len() % size_of::<Unit>();
        bytemuck::cast_slice(&rest[..whole])
    }
}
