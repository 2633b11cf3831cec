//! The first byte of a kind, found some bytes at a time.

/// Bytes that are tested together, by vector instructions.
const BLOCK: usize = 32;

/// The place of the first byte that passes a test, which returns 1 or 0: numbers are combined
/// without branches, truth values are not.
pub(super) fn position(bytes: &[u8], passes: impl Fn(u8) -> u8) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let any = |block: &[u8; BLOCK]| block.iter().fold(0, |any, &byte| any | passes(byte)) > 0;
    let start = BLOCK * blocks.iter().position(any).unwrap_or(blocks.len());
    let block = if start < BLOCK * blocks.len() { &bytes[start..start + BLOCK] } else { rest };
    block.iter().position(|&byte| passes(byte) > 0).map(|place| start + place)
}

/// The bytes of a kind, as truth values by their numbers.
pub(super) const fn set_of(bytes: &[u8]) -> [bool; 256] {
    let mut set = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        set[bytes[at] as usize] = true;
        at += 1;
    }
    set
}
