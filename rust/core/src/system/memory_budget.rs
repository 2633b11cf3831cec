//! Memory checks before work begins: a failed allocation ends the process, a failed check does not.
//!
//! Sizes from a caller or a file are reserved or checked here, in one piece, at the start of each
//! call; later small allocations stay within the estimate. All estimates are generous, because
//! untouched address space costs nothing.

use crate::Error;

/// Memory that any call may need, whatever its arguments.
pub(crate) const CALL: usize = 1 << 20;

/// Bytes that folding needs for each byte of a text: some characters become eighteen, and there are
/// three copies.
const PER_TEXT_BYTE: usize = 48;

/// The same of a text in ASCII.
const PER_ASCII_BYTE: usize = 3;

/// Bytes for each word of a text, repeats too, of one byte and a space at least.
pub(crate) const PER_WORD: usize = 128;

/// Make sure that so many bytes can be had.
///
/// They are released at once, so another thread may take them: near the limit this is no guarantee
/// among several threads.
///
/// # Errors
///
/// When they cannot.
pub fn headroom(bytes: usize) -> Result<(), Error> {
    let mut probe: Vec<u8> = Vec::new();
    probe.try_reserve_exact(bytes).map_err(|_| Error::OutOfMemory { bytes })?;
    // Used, or the compiler would leave out the allocation.
    std::hint::black_box(&mut probe);
    Ok(())
}

/// Largest memory for folding a text.
pub fn of_folding(text: &str) -> usize {
    text.len().saturating_mul(if text.is_ascii() { PER_ASCII_BYTE } else { PER_TEXT_BYTE })
}

/// A vector of one repeated value, of any length.
///
/// # Errors
///
/// When it does not fit memory.
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>, Error> {
    let mut values = try_with_capacity(count)?;
    values.resize(count, value);
    Ok(values)
}

/// An empty vector with capacity for a caller's number of values.
///
/// # Errors
///
/// When it does not fit memory.
pub fn try_with_capacity<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>());
    values.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes })?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_memory_holds_is_refused_and_not_an_abort() {
        let max = isize::MAX as usize;
        assert_eq!(headroom(max), Err(Error::OutOfMemory { bytes: max }));
        assert_eq!(filled(0_u8, max), Err(Error::OutOfMemory { bytes: max }));
        assert_eq!(
            try_with_capacity::<u64>(usize::MAX),
            Err(Error::OutOfMemory { bytes: usize::MAX })
        );
        assert_eq!(headroom(1 << 20), Ok(()));
        assert_eq!(filled(7, 3), Ok(vec![7; 3]));
    }
}
