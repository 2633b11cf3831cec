//! New files that get their names when complete, and that killed processes do not leave for good.
//!
//! On Linux the content goes to a file without a name, if the file system has such files
//! (`O_TMPFILE`), which ends with its process. Else it goes to a file beside its place that its
//! writer keeps locked. An unlocked one was left by a process that was killed; the next writer of
//! the same place removes it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};
use xxhash_rust::xxh3::xxh3_64;

const SUFFIX: &str = ".tmp";

/// A file that is being written, readable by its owner alone.
pub(crate) struct NewFile {
    file: File,
    name: Option<TempPath>,
}

impl NewFile {
    /// Begin a file that will be at `path`.
    pub(crate) fn beside(path: &Path) -> io::Result<Self> {
        remove_left(path);
        match anonymous(folder_of(path)) {
            Some(file) => Ok(Self { file, name: None }),
            None => Self::named(path),
        }
    }

    fn named(path: &Path) -> io::Result<Self> {
        let (file, name) = with_name_beside(path, locked)?.into_parts();
        Ok(Self { file, name: Some(name) })
    }

    /// Put it on disk and in its place.
    pub(crate) fn persist(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let complete = self.with_name(path)?;
        let name = complete.name.expect("it has got one");
        name.persist(path).map_err(|error| error.error)?;
        sync_folder(path);
        Ok(())
    }

    fn with_name(self, path: &Path) -> io::Result<Self> {
        if self.name.is_some() {
            return Ok(self);
        }
        match linked(&self.file, path) {
            Ok(name) => Ok(Self { name: Some(name), ..self }),
            Err(_) => self.copied(path), // without /proc, for instance
        }
    }

    fn copied(mut self, path: &Path) -> io::Result<Self> {
        let mut copy = Self::named(path)?;
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut self.file, &mut copy.file)?;
        copy.file.sync_all()?;
        Ok(copy)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.file.seek(place)
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// How the names begin that the unfinished files of one place have.
fn prefix_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    format!(".mnemic-{:016x}-", xxh3_64(name.as_encoded_bytes()))
}

/// Make something under a new name; an error `AlreadyExists` asks for another name.
fn with_name_beside<T>(
    path: &Path,
    make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<NamedTempFile<T>> {
    let prefix = prefix_of(path);
    tempfile::Builder::new().prefix(&prefix).suffix(SUFFIX).make_in(folder_of(path), make)
}

/// Make a file and lock it, unless it was taken for a leftover in between.
fn locked(name: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.read(true).write(true).create_new(true).open(name)?;
    let _ = file.lock(); // where there are no locks nobody removes it
    if name.exists() { Ok(file) } else { Err(ErrorKind::AlreadyExists.into()) }
}

#[cfg(target_os = "linux")]
fn anonymous(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    let file = options.open(folder).ok()?;
    let _ = file.lock(); // it has a name of its own for a moment before it is in its place
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn anonymous(_folder: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn linked(file: &File, path: &Path) -> io::Result<TempPath> {
    use nix::fcntl::AtFlags;
    use std::os::fd::AsRawFd;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    let open = Path::new(&open);
    let link = |name: &Path| {
        let followed = AtFlags::AT_SYMLINK_FOLLOW;
        Ok(nix::unistd::linkat(None, open, None, name, followed)?)
    };
    Ok(with_name_beside(path, link)?.into_temp_path())
}

#[cfg(not(target_os = "linux"))]
fn linked(_file: &File, _path: &Path) -> io::Result<TempPath> {
    Err(ErrorKind::Unsupported.into())
}

/// Remove the unfinished files of a place whose writers are gone.
fn remove_left(path: &Path) {
    let prefix = prefix_of(path);
    let is_of_place =
        |name: &[u8]| name.starts_with(prefix.as_bytes()) && name.ends_with(SUFFIX.as_bytes());
    for entry in std::fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_of_place(entry.file_name().as_encoded_bytes()) {
            remove_if_left(&entry.path());
        }
    }
}

fn remove_if_left(name: &Path) {
    if let Ok(file) = OpenOptions::new().write(true).open(name)
        && file.try_lock().is_ok()
    {
        // Names are random, so none is that of another file by now.
        let _ = std::fs::remove_file(name);
    }
}

/// After a power cut the old name may be back otherwise; a file is complete under either.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use std::mem::forget;

    use super::*;

    type Begin = fn(&Path) -> io::Result<NewFile>;

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("it is there").flatten();
        entries.map(|entry| entry.file_name().into_string().expect("ASCII")).collect()
    }

    /// What a process leaves that is killed while it writes to a file with a name.
    fn abandon(path: &Path) {
        let NewFile { file, name } = NewFile::named(path).expect("room");
        forget(name);
        drop(file);
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_complete_and_replaces_another() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("map");
        for (begin, content) in [(NewFile::beside as Begin, b"first"), (NewFile::named, b"after")] {
            let mut file = begin(&path).expect("room");
            file.write_all(content).expect("room");
            file.persist(&path).expect("room");
            assert_eq!(std::fs::read(&path).expect("it is there"), content);
            assert_eq!(names_in(folder.path()), ["map"]);
        }
    }

    #[test]
    fn a_file_that_is_not_completed_is_gone() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("map");
        for begin in [NewFile::beside as Begin, NewFile::named] {
            begin(&path).expect("room").write_all(b"begun").expect("room");
            assert!(names_in(folder.path()).is_empty());
        }
    }

    #[test]
    fn a_file_that_cannot_be_linked_is_copied() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("map");
        let mut file = NewFile::beside(&path).expect("room");
        file.write_all(b"content").expect("room");
        file.copied(&path).expect("room").persist(&path).expect("room");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"content");
        assert_eq!(names_in(folder.path()), ["map"]);
    }

    #[test]
    fn the_next_writer_of_a_place_removes_what_killed_ones_left_there_and_nothing_else() {
        let folder = tempfile::tempdir().expect("room");
        let (path, other) = (folder.path().join("map"), folder.path().join("other"));
        abandon(&other);
        let others = names_in(folder.path());
        abandon(&path);
        abandon(&path);
        let living = NewFile::named(&path).expect("room");
        assert_eq!(names_in(folder.path()).len(), 4);
        let next = NewFile::beside(&path).expect("room");
        living.persist(&path).expect("its file is there");
        next.persist(&path).expect("room");
        let mut kept = names_in(folder.path());
        kept.retain(|name| name != "map");
        assert_eq!(kept, others);
    }
}
