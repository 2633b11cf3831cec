//! Files that are read where they lie, by a map that processes share.
#![expect(unsafe_code, reason = "a file is mapped, not read")]

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use memmap2::Mmap;

use crate::Error;

/// Map a file that is replaced by renaming and never written in place.
///
/// # Errors
///
/// When it cannot be read, is no file, or the process has no memory for the map.
pub fn map_file(path: &Path) -> Result<Mmap, Error> {
    let unreadable = |error| unread(path, &error);
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        // Opening a pipe would wait for its writer.
        return Err(unreadable(std::io::Error::other("it is not a file")));
    }
    let file = File::open(path).map_err(unreadable)?;
    // SAFETY: the bytes do not change under the map; whoever cuts a file off by hand ends this
    // process, as with any mapped library.
    unsafe { Mmap::map(&file) }.map_err(|error| unmapped(path, &file, &error))
}

fn unread(path: &Path, error: &std::io::Error) -> Error {
    let (path, problem) = (path.display().to_string(), error.to_string());
    Error::FileUnreadable { path, problem, errno: errno_of(error) }
}

fn unmapped(path: &Path, file: &File, error: &std::io::Error) -> Error {
    if error.kind() != ErrorKind::OutOfMemory {
        return unread(path, error);
    }
    let bytes = file.metadata().map_or(0, |found| found.len());
    Error::OutOfMemory { bytes: usize::try_from(bytes).unwrap_or(usize::MAX) }
}

/// Windows has numbers of another kind.
pub(super) fn errno_of(error: &std::io::Error) -> Option<i32> {
    error.raw_os_error().filter(|_| cfg!(unix))
}
