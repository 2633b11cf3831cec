//! Ids of vectors, made of a docid and a chunk.

/// A vector belongs to a docid, and to one chunk of a long memory: the chunk number is the upper half.
pub(crate) const fn vector_id(docid: u32, chunk: u32) -> i64 {
    (chunk as i64) << 32 | docid as i64
}

/// The docid of a vector's id.
#[expect(clippy::cast_sign_loss, reason = "the chunk number above it is cut off")]
pub(crate) const fn docid_of(id: i64) -> u32 {
    id as u32
}

/// The chunk of a vector's id.
pub(crate) const fn chunk_of(id: i64) -> u32 {
    (id >> 32).unsigned_abs() as u32
}

/// Ascending docids, cut into those of each block of so many.
pub(crate) fn by_block(docids: &[u32], size: usize) -> impl Iterator<Item = &[u32]> {
    let mut rest = docids;
    std::iter::from_fn(move || {
        let block = *rest.first()? as usize / size;
        let end = rest.partition_point(|docid| *docid as usize / size == block);
        let (of_block, others) = rest.split_at(end);
        rest = others;
        Some(of_block)
    })
}
