//! New files that get their names when complete, and that killed processes do not leave for good.
//!
//! On Linux the content goes to a file without a name, if the file system has such files
//! (`O_TMPFILE`), which ends with its process. Else it goes to a part, a file beside its place that
//! its writer keeps locked. An unlocked part was left by a process that was killed; whoever makes a
//! file in the same folder removes it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

const PREFIX: &str = ".mnemic-";
const SUFFIX: &str = ".part";

/// Names of parts that are tried, each of which another process may have.
const TRIES: usize = 100;

/// What happens to a file that is in the place of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the new one is dropped.
    Kept,
    /// The new one takes its place.
    Replaced,
}

/// A file that is being written, readable by its owner alone; it is gone when it is dropped.
#[derive(Debug)]
pub struct NewFile {
    // It is removed before its lock ends with the file.
    part: Option<Part>,
    file: File,
    place: PathBuf,
    existing: Existing,
}

impl NewFile {
    /// Begin a file that will be at `place`.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn begin(place: &Path, existing: Existing) -> io::Result<Self> {
        let place = std::path::absolute(place)?;
        match anonymous(folder_of(&place)) {
            Some(file) => Ok(Self { part: None, file, place, existing }),
            None => Self::named(&place, existing),
        }
    }

    /// Begin a file that has a name from the beginning, its [`part`](Self::part).
    ///
    /// # Errors
    ///
    /// The system's, and [`WouldBlock`](ErrorKind::WouldBlock) while another process makes a file
    /// for the same place that replaces none.
    pub fn named(place: &Path, existing: Existing) -> io::Result<Self> {
        let place = std::path::absolute(place)?;
        let (part, file) = with_part(&place, existing, |name| locked(name, existing))?;
        file.set_len(0)?; // it may have been left by another
        Ok(Self { part: Some(part), file, place, existing })
    }

    /// What to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its name until it is complete, if it has one.
    pub fn part(&self) -> Option<&Path> {
        self.part.as_ref().map(|part| part.name.as_path())
    }

    /// Put it on disk and in its place. Its name is on disk after [`sync_folder`].
    ///
    /// # Errors
    ///
    /// The system's; [`AlreadyExists`](ErrorKind::AlreadyExists) where a file is kept.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        let Some(part) = self.part.take() else { return self.commit_anonymous() };
        match self.existing {
            Existing::Kept => {
                part.name_once(&self.place, |part, place| std::fs::hard_link(part, place))
            }
            Existing::Replaced => part.rename(&self.place),
        }
    }

    fn commit_anonymous(self) -> io::Result<()> {
        match self.link() {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => self.copied()?.commit(),
            done => done,
        }
    }

    fn link(&self) -> io::Result<()> {
        match self.existing {
            Existing::Kept => link_open(&self.file, &self.place),
            Existing::Replaced => {
                let link = |name: &Path| link_open(&self.file, name);
                with_part(&self.place, self.existing, link)?.0.rename(&self.place)
            }
        }
    }

    /// Where a file cannot be linked: without `/proc`, for instance.
    fn copied(mut self) -> io::Result<Self> {
        let mut copy = Self::named(&self.place, self.existing)?;
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut self.file, &mut copy.file)?;
        Ok(copy)
    }
}

/// A file beside its place, removed when it is dropped unless it was renamed.
#[derive(Debug)]
struct Part {
    name: PathBuf,
    is_there: bool,
}

impl Part {
    fn rename(mut self, place: &Path) -> io::Result<()> {
        std::fs::rename(&self.name, place)?;
        self.is_there = false; // its name may be that of another part from now on
        Ok(())
    }

    /// Give it a name that nothing has.
    fn name_once(
        self,
        place: &Path,
        link: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        match link(&self.name, place) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                // This file system has no second names for a file: take the name, replace it.
                options().create_new(true).open(place)?;
                self.rename(place)
            }
            done => done,
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.is_there {
            remove(&self.name);
        }
    }
}

/// Remove the parts in a folder whose writers are gone.
pub fn remove_parts(folder: &Path) {
    let is_part = |name: &str| {
        let number = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
        number.is_some_and(|number| number.bytes().all(|byte| b"-0123456789abcdef".contains(&byte)))
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_part) {
            remove_if_left(&entry.path());
        }
    }
}

/// Remove the part that a killed process left of a new file for a place, which replaces none.
pub fn remove_part(place: &Path) {
    remove_if_left(&part_of(place, Existing::Kept));
}

/// Put the names in a folder on disk.
///
/// # Errors
///
/// The system's.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(windows) {
        return Ok(()); // a folder cannot be opened there
    }
    File::open(folder)?.sync_all()
}

/// The folder of a place.
pub(crate) fn folder_of(place: &Path) -> &Path {
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The part of a place. That of a file which replaces none is always the same, so that it is found
/// again without a look through the folder, and so that only one process makes the file.
fn part_of(place: &Path, existing: Existing) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = place.file_name().unwrap_or_default();
    let start = format!("{PREFIX}{:016x}", xxh3_64(name.as_encoded_bytes()));
    let (process, number) = (std::process::id(), || NEXT.fetch_add(1, Ordering::Relaxed));
    folder_of(place).join(match existing {
        Existing::Kept => start + SUFFIX,
        Existing::Replaced => format!("{start}-{process:x}-{:x}{SUFFIX}", number()),
    })
}

/// Make something under the name of a part; an error `AlreadyExists` asks for another try.
fn with_part<T>(
    place: &Path,
    existing: Existing,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(Part, T)> {
    for _ in 0..TRIES {
        let name = part_of(place, existing);
        match make(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (Part { name, is_there: true }, made)),
        }
    }
    Err(ErrorKind::WouldBlock.into())
}

/// Make a part and lock it, unless another process has it or took it for a leftover in between.
fn locked(name: &Path, existing: Existing) -> io::Result<File> {
    let mut options = options();
    let file = match existing {
        Existing::Kept => options.create(true).open(name)?,
        Existing::Replaced => options.create_new(true).open(name)?,
    };
    // Where there are no locks nobody removes it.
    let is_locked = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    if is_locked && is_at(&file, name) { Ok(file) } else { Err(ErrorKind::AlreadyExists.into()) }
}

fn remove_if_left(name: &Path) {
    // Opening a pipe would wait.
    if name.symlink_metadata().is_ok_and(|found| found.is_file())
        && let Ok(file) = options().open(name)
        && file.try_lock().is_ok()
        && is_at(&file, name)
    {
        remove(name);
    }
}

/// Remove a part, and after a failure what `SQLite` leaves beside it.
fn remove(name: &Path) {
    let mut journal = name.as_os_str().to_owned();
    journal.push("-journal");
    let _ = std::fs::remove_file(journal);
    let _ = std::fs::remove_file(name);
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    }
    options
}

#[cfg(unix)]
fn is_at(file: &File, name: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: std::fs::Metadata| (found.dev(), found.ino());
    name.symlink_metadata().ok().map(id) == file.metadata().ok().map(id)
}

#[cfg(not(unix))]
fn is_at(_file: &File, name: &Path) -> bool {
    name.exists()
}

#[cfg(target_os = "linux")]
fn anonymous(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = options().custom_flags(libc::O_TMPFILE).open(folder).ok()?;
    let _ = file.lock(); // it may be a part for a moment before it is in its place
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn anonymous(_folder: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn link_open(file: &File, name: &Path) -> io::Result<()> {
    use nix::fcntl::AtFlags;
    use std::os::fd::AsRawFd;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    let followed = AtFlags::AT_SYMLINK_FOLLOW;
    Ok(nix::unistd::linkat(None, Path::new(&open), None, name, followed)?)
}

#[cfg(not(target_os = "linux"))]
fn link_open(_file: &File, _name: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::mem::forget;

    use super::*;

    type Begin = fn(&Path, Existing) -> io::Result<NewFile>;

    const WAYS: [(Begin, Existing); 4] = [
        (NewFile::begin, Existing::Kept),
        (NewFile::begin, Existing::Replaced),
        (NewFile::named, Existing::Kept),
        (NewFile::named, Existing::Replaced),
    ];

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("it is there").flatten();
        entries.map(|entry| entry.file_name().into_string().expect("ASCII")).collect()
    }

    /// What a process leaves that is killed while it writes to a part.
    fn abandon(place: &Path, existing: Existing) {
        let NewFile { part, file, .. } = NewFile::named(place, existing).expect("space");
        (&file).write_all(b"begun").expect("space");
        forget(part);
        drop(file);
    }

    fn written(file: NewFile, content: &[u8]) -> NewFile {
        file.file().write_all(content).expect("space");
        file
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_complete_and_replaces_another_or_leaves_it() {
        let folder = tempfile::tempdir().expect("space");
        let place = folder.path().join("map");
        for (begin, existing) in WAYS {
            let _ = std::fs::remove_file(&place);
            let begun = written(begin(&place, existing).expect("space"), b"first");
            assert!(!place.exists());
            begun.commit().expect("space");
            let done = written(begin(&place, existing).expect("space"), b"after").commit();
            let is_kept = existing == Existing::Kept;
            let kind = done.err().map(|error| error.kind());
            assert_eq!(kind, is_kept.then_some(ErrorKind::AlreadyExists));
            let content = std::fs::read(&place).expect("it is there");
            assert_eq!(content, if is_kept { b"first" } else { b"after" });
            assert_eq!(names_in(folder.path()), ["map"]);
        }
    }

    #[test]
    fn a_file_that_is_not_completed_is_gone() {
        let folder = tempfile::tempdir().expect("space");
        for (begin, existing) in WAYS {
            written(begin(&folder.path().join("map"), existing).expect("space"), b"begun");
            assert!(names_in(folder.path()).is_empty());
        }
    }

    #[test]
    fn a_part_takes_what_stands_beside_it_away() {
        let folder = tempfile::tempdir().expect("space");
        let begun = NewFile::named(&folder.path().join("map"), Existing::Kept).expect("space");
        let journal = format!("{}-journal", begun.part().expect("it has one").display());
        std::fs::write(journal, b"begun").expect("space");
        drop(begun);
        assert!(names_in(folder.path()).is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_linked_is_copied() {
        let folder = tempfile::tempdir().expect("space");
        let place = folder.path().join("map");
        for existing in [Existing::Kept, Existing::Replaced] {
            let _ = std::fs::remove_file(&place);
            let begun = written(NewFile::begin(&place, existing).expect("space"), b"content");
            begun.copied().expect("space").commit().expect("space");
            assert_eq!(std::fs::read(&place).expect("it is there"), b"content");
            assert_eq!(names_in(folder.path()), ["map"]);
        }
    }

    #[test]
    fn without_links_a_name_is_taken_first_and_another_file_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("space");
        let place = folder.path().join("map");
        let refused = |_: &Path, _: &Path| Err(ErrorKind::PermissionDenied.into());
        let named = || {
            let begun = NewFile::named(&place, Existing::Kept).expect("space");
            written(begun, b"content").part.take().expect("it has one").name_once(&place, refused)
        };
        named().expect("space");
        assert_eq!(std::fs::read(&place).expect("it is there"), b"content");
        std::fs::write(&place, b"mine").expect("space");
        assert_eq!(named().expect_err("it is there").kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&place).expect("it is there"), b"mine");
        assert_eq!(names_in(folder.path()), ["map"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_cannot_be_put_on_disk_gets_no_name() {
        let folder = tempfile::tempdir().expect("space");
        for (begin, existing) in WAYS {
            let mut begun = begin(&folder.path().join("map"), existing).expect("space");
            begun.file = OpenOptions::new().write(true).open("/dev/null").expect("it is there");
            assert!(begun.commit().is_err());
            assert!(names_in(folder.path()).is_empty());
        }
    }

    #[test]
    fn what_killed_writers_left_in_a_folder_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("space");
        let places = ["map", "other"].map(|name| folder.path().join(name));
        let others = [".mnemic-map.part", ".mnemic-1.tmp", "mnemic-1.part"];
        for name in others {
            std::fs::write(folder.path().join(name), b"mine").expect("space");
        }
        std::fs::create_dir(folder.path().join(".mnemic-1.part")).expect("space");
        let kept = names_in(folder.path()).len();
        for place in &places {
            abandon(place, Existing::Kept);
            abandon(place, Existing::Replaced);
        }
        let living = NewFile::named(&folder.path().join("living"), Existing::Kept).expect("space");
        assert_eq!(names_in(folder.path()).len(), kept + 5);
        remove_parts(folder.path());
        assert_eq!(names_in(folder.path()).len(), kept + 1);
        living.commit().expect("its file is there");
        assert_eq!(names_in(folder.path()).len(), kept + 1);
    }

    #[test]
    fn the_part_of_one_place_is_found_without_its_folder() {
        let folder = tempfile::tempdir().expect("space");
        let (place, other) = (folder.path().join("map"), folder.path().join("other"));
        abandon(&place, Existing::Kept);
        abandon(&other, Existing::Kept);
        remove_part(&place);
        remove_part(&place);
        assert_eq!(names_in(folder.path()).len(), 1);
        let living = NewFile::named(&place, Existing::Kept).expect("space");
        remove_part(&place);
        living.commit().expect("its file is there");
    }

    #[test]
    fn one_process_makes_a_new_file_and_any_number_replace_one() {
        let folder = tempfile::tempdir().expect("space");
        let place = folder.path().join("map");
        let made = NewFile::named(&place, Existing::Kept).expect("space");
        let busy = NewFile::named(&place, Existing::Kept).expect_err("another makes it");
        assert_eq!(busy.kind(), ErrorKind::WouldBlock);
        let replacing = || NewFile::named(&place, Existing::Replaced).expect("space");
        let (one, two) = (written(replacing(), b"one"), written(replacing(), b"two"));
        made.commit().expect("space");
        one.commit().expect("space");
        two.commit().expect("space");
        assert_eq!(std::fs::read(&place).expect("it is there"), b"two");
        assert_eq!(names_in(folder.path()), ["map"]);
    }

    #[test]
    fn a_part_that_was_left_is_written_anew() {
        let folder = tempfile::tempdir().expect("space");
        let place = folder.path().join("map");
        abandon(&place, Existing::Kept);
        NewFile::named(&place, Existing::Kept).expect("space").commit().expect("space");
        assert_eq!(std::fs::read(&place).expect("it is there"), b"");
    }
}
