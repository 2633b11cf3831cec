//! Memory asked for before work begins: a failed allocation ends the process, a failed question
//! does not.
//!
//! Sizes that a caller or a file gives are reserved or asked for here, in one piece, at the door of
//! each call; what the call then takes in small pieces stays within the estimate. All estimates are
//! generous, since address space that is never touched costs nothing.

use crate::Error;

/// What any call may take beside what its arguments make it take.
pub(crate) const CALL: usize = 1 << 20;

/// Bytes that folding a text takes for each of its own: some characters become eighteen, and there
/// are three copies.
const PER_TEXT_BYTE: usize = 48;

/// The same of a text in ASCII.
const PER_ASCII_BYTE: usize = 3;

/// Bytes for each word of a text, repeats too, of one byte and a space at least.
pub(crate) const PER_WORD: usize = 128;

/// Make sure that so many bytes can be had.
///
/// They are given back at once: another thread may take them first, so this is no promise where
/// several threads are at the limit at the same time.
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

/// Bytes that folding a text may take, whatever is in it.
pub fn of_folding(text: &str) -> usize {
    text.len().saturating_mul(if text.is_ascii() { PER_ASCII_BYTE } else { PER_TEXT_BYTE })
}

/// A vector of one value, however many times a caller asks for.
///
/// # Errors
///
/// When it does not fit memory.
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>, Error> {
    let mut values = with_room(count)?;
    values.resize(count, value);
    Ok(values)
}

/// An empty vector with room for a caller's number of values.
///
/// # Errors
///
/// When it does not fit memory.
pub fn with_room<T>(count: usize) -> Result<Vec<T>, Error> {
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
        assert_eq!(with_room::<u64>(usize::MAX), Err(Error::OutOfMemory { bytes: usize::MAX }));
        assert_eq!(headroom(1 << 20), Ok(()));
        assert_eq!(filled(7, 3), Ok(vec![7; 3]));
    }
}
