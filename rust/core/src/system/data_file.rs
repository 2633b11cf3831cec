//! Files of binary data: a header, sections, and a directory of them with a checksum.
//!
//! A file appears complete or not at all, readable by its owner alone. It is read where it lies, by
//! a map that processes share. Numbers are little-endian, as on every machine that mnemic runs on.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use crate::Error;
use crate::system::mapped_file::{errno_of, map_file};
use crate::system::new_file::{Existing, NewFile, folder_of, remove_parts, sync_folder};

/// Sections begin here or at a multiple: a page; or a cache line, so that a fuzzer changes few zeros.
const ALIGNMENT: usize = if cfg!(fuzzing) { 64 } else { 4096 };

/// Bytes of magic, version, place and length of the directory, its sum, and the header's own sum.
const HEADER: usize = 48;

/// Whether bytes have this checksum. All do for a fuzzer, which so comes to what is behind the sums.
pub(crate) fn have_sum(bytes: &[u8], sum: u64) -> bool {
    cfg!(fuzzing) || xxh3_64(bytes) == sum
}

/// Where bytes are in a file, and their checksum.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Section {
    pub(crate) first: u64,
    pub(crate) size: u64,
    pub(crate) sum: u64,
}

impl Section {
    pub(crate) fn range(&self) -> Option<Range<usize>> {
        let first = usize::try_from(self.first).ok()?;
        Some(first..first.checked_add(usize::try_from(self.size).ok()?)?)
    }

    /// The bytes, if they have this checksum.
    fn of<'a>(&self, map: &'a [u8]) -> Option<&'a [u8]> {
        map.get(self.range()?).filter(|bytes| have_sum(bytes, self.sum))
    }
}

/// A file that is being written.
pub(crate) struct DataFileWriter {
    path: PathBuf,
    new: NewFile,
    file: BufWriter<File>,
    next: usize,
}

impl DataFileWriter {
    /// Begin a file beside `path`.
    pub(crate) fn beside(path: &Path) -> Result<Self, Error> {
        let unwritten = |error| unwritten(path, &error);
        remove_parts(folder_of(path));
        let new = NewFile::begin(path, Existing::Replaced).map_err(unwritten)?;
        let file = new.file().try_clone().map_err(unwritten)?;
        let mut writer = Self { path: path.to_owned(), new, file: BufWriter::new(file), next: 0 };
        writer.pad()?;
        Ok(writer)
    }

    /// Append a section.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<Section, Error> {
        self.append_summed(bytes, xxh3_64(bytes))
    }

    /// Append a section with a checksum that is not that of all its bytes.
    pub(crate) fn append_summed(&mut self, bytes: &[u8], sum: u64) -> Result<Section, Error> {
        let (first, size) = (self.next as u64, bytes.len() as u64);
        self.write(bytes)?;
        self.pad()?;
        Ok(Section { first, size, sum })
    }

    /// Append the directory and put the file in its place.
    pub(crate) fn finish(
        mut self,
        magic: [u8; 8],
        version: u64,
        directory: &impl Serialize,
    ) -> Result<(), Error> {
        let directory = postcard::to_allocvec(directory)
            .map_err(|_| Error::SnapshotInvalid("its directory cannot be written"))?;
        let place = self.next as u64;
        self.write(&directory)?;
        let numbers = [version, place, directory.len() as u64, xxh3_64(&directory)];
        let Self { path, new, mut file, .. } = self;
        let commit = move || {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header_of(magic, numbers))?;
            file.flush()?;
            new.commit()
        };
        commit().map_err(|error| unwritten(&path, &error))?;
        // After a power cut the old name may be back otherwise; a file is complete under either.
        let _ = sync_folder(folder_of(&path));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.next += bytes.len();
        self.file.write_all(bytes).map_err(|error| unwritten(&self.path, &error))
    }

    /// Fill up to the place of the next section.
    fn pad(&mut self) -> Result<(), Error> {
        let end = self.next.max(1).next_multiple_of(ALIGNMENT);
        self.write(&vec![0; end - self.next])
    }
}

fn header_of(magic: [u8; 8], numbers: [u64; 4]) -> Vec<u8> {
    let mut header = magic.to_vec();
    header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    let sum = xxh3_64(&header);
    header.extend(sum.to_le_bytes());
    header
}

fn unwritten(path: &Path, error: &std::io::Error) -> Error {
    let (path, problem) = (path.display().to_string(), error.to_string());
    Error::FileUnwritable { path, problem, errno: errno_of(error) }
}

/// A file that is complete, mapped.
pub(crate) struct DataFile {
    pub(crate) map: Arc<Mmap>,
    /// One of those that may be opened.
    pub(crate) version: u64,
}

impl DataFile {
    /// Map a file and read its directory.
    ///
    /// # Errors
    ///
    /// When it cannot be read, is another kind of file, of another version, or damaged, or when the
    /// process has no memory for the map.
    pub(crate) fn open<Directory: DeserializeOwned>(
        path: &Path,
        magic: [u8; 8],
        versions: &[u64],
    ) -> Result<(Self, Directory), Error> {
        let map = Arc::new(map_file(path)?);
        let (version, directory) = directory_of(&map, magic, versions)?;
        let directory = postcard::from_bytes(directory)
            .map_err(|_| Error::SnapshotInvalid("its directory cannot be read"))?;
        Ok((Self { map, version }, directory))
    }

    /// The bytes of a section, compared with their checksum.
    pub(crate) fn section(&self, section: &Section) -> Result<&[u8], Error> {
        section.of(&self.map).ok_or(Error::SnapshotInvalid("a section of it is damaged"))
    }
}

/// The version and the bytes of a directory.
fn directory_of<'a>(
    map: &'a [u8],
    magic: [u8; 8],
    wanted: &[u64],
) -> Result<(u64, &'a [u8]), Error> {
    let header = map.get(..HEADER).ok_or(Error::SnapshotInvalid("it is too short"))?;
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| header[8 * at + byte]));
    Error::unless(header[..8] == magic, "it is another kind of file")?;
    Error::unless(wanted.contains(&number(1)), "it is of another version of mnemic")?;
    Error::unless(have_sum(&header[..HEADER - 8], number(5)), "its header is damaged")?;
    let section = Section { first: number(2), size: number(3), sum: number(4) };
    let directory = section.of(map).ok_or(Error::SnapshotInvalid("its directory is damaged"))?;
    Ok((number(1), directory))
}
