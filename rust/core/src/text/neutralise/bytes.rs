//! The first byte of a kind, found some bytes at a time.

/// Bytes that are tested together, by vector instructions where the test is of comparisons alone.
const BLOCK: usize = 32;

/// The place of the first byte that passes a test.
pub(super) fn position(bytes: &[u8], passes: impl Fn(u8) -> bool) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let passes_any =
        |block: &[u8; BLOCK]| block.iter().fold(false, |any, &byte| any | passes(byte));
    let start = BLOCK * blocks.iter().position(passes_any).unwrap_or(blocks.len());
    let block = if start < BLOCK * blocks.len() { &bytes[start..start + BLOCK] } else { rest };
    block.iter().position(|&byte| passes(byte)).map(|place| start + place)
}
