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

/// The rows whose bits are set of 64 bits, in order.
pub(crate) fn rows_of(words: &[u64]) -> impl Iterator<Item = u32> {
    let of_word = |(number, word): (usize, &u64)| {
        set_bits(*word).map(move |bit| (number * u64::BITS as usize + bit) as u32)
    };
    words.iter().enumerate().flat_map(of_word)
}
