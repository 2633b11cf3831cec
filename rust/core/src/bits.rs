//! Positions of set bits.

/// The positions of the set bits of `word`, in order.
pub(crate) fn set_bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}

/// The positions of the set bits of words, 64 a word, in order.
pub(crate) fn positions(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words
        .enumerate()
        .flat_map(|(number, word)| set_bits(word).map(move |bit| number * u64::BITS as usize + bit))
}

/// The same as rows.
pub(crate) fn rows_of(words: &[u64]) -> impl Iterator<Item = u32> {
    positions(words.iter().copied()).map(|row| row as u32)
}
