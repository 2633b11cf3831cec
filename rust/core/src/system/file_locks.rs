//! File locks of `SQLite`, held in a way that no other code of the process can drop.
//!
//! `SQLite` locks files with POSIX locks, which belong to the process: when any code of it, such as
//! another copy of `SQLite`, closes any descriptor of the file, all of them are released silently,
//! and two copies of `SQLite` in one process do not see each other's locks at all. Locks of an open
//! file description (Linux, `F_OFD_SETLK`) belong to a descriptor and exclude every other one, also
//! in the same process. The functions here replace `fcntl` and `close` in `SQLite`'s table of
//! system calls.
//!
//! `SQLite` keeps one account of locks for all its descriptors of a database, and locks through any
//! of them, so all of these locks go to one descriptor of our own, as long as any is held. The
//! index of the log has one descriptor in a process, but is mapped into memory, and a mapping that
//! a forked child inherits would keep its locks for ever; so they go to one of our own as well.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod linux {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::{Mutex, MutexGuard, Once, PoisonError};

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
    use nix::libc::{F_GETLK, F_RDLCK, F_SETLK, F_SETLKW, F_UNLCK, c_int, flock, pthread_atfork};
    use nix::sys::stat::{Mode, fstat};
    use nix::unistd::close;

    /// Bytes of a database that stand for its locks: pending, reserved, and 510 shared ones.
    const PENDING: i64 = 0x4000_0000;
    const RESERVED: i64 = PENDING + 1;
    const SHARED: i64 = PENDING + 2;
    /// Byte of the log's index that everybody locks before any other.
    const INDEX_IN_USE: i64 = 128;

    /// Device and inode.
    type File = (u64, u64);

    static TABLE: Mutex<Table> = Mutex::new(Table {
        databases: BTreeMap::new(),
        indexes: BTreeMap::new(),
        inherited: BTreeSet::new(),
    });

    thread_local! {
        /// The table while this thread forks, so that no other thread is in the midst of a change.
        static FORKING: RefCell<Option<MutexGuard<'static, Table>>> = const { RefCell::new(None) };
    }

    struct Table {
        databases: BTreeMap<File, Database>,
        /// Indexes of logs, by the descriptors that `SQLite` has of them.
        indexes: BTreeMap<c_int, Descriptor>,
        /// Databases that were locked by the process that this one was forked from.
        inherited: BTreeSet<File>,
    }

    /// A descriptor that locks belong to, and nothing else.
    struct Descriptor(c_int);

    impl Descriptor {
        /// Open a file once more. It may first be open for reading alone and later for writing, and
        /// only a descriptor that can write can hold a write lock.
        fn of(descriptor: c_int) -> nix::Result<Self> {
            let path = format!("/proc/self/fd/{descriptor}");
            let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
            open(path.as_str(), flags, Mode::empty())
                .or_else(|_| fcntl(descriptor, FcntlArg::F_DUPFD_CLOEXEC(0)))
                .map(Self)
        }
    }

    impl Drop for Descriptor {
        fn drop(&mut self) {
            // A descriptor that cannot be closed is gone all the same.
            let _ = close(self.0);
        }
    }

    /// A database of which this process holds locks.
    struct Database {
        descriptor: Descriptor,
        /// A bit for each of the pending, the reserved and the shared bytes.
        locked: u8,
    }

    impl Database {
        fn call(&mut self, command: c_int, lock: &mut flock) -> nix::Result<c_int> {
            let wanted = *lock;
            let answer = call_owned(self.descriptor.0, command, lock)?;
            if command != F_GETLK {
                let bits = bits(&wanted);
                let is_unlocked = c_int::from(wanted.l_type) == F_UNLCK;
                self.locked = if is_unlocked { self.locked & !bits } else { self.locked | bits };
            }
            Ok(answer)
        }
    }

    fn table() -> MutexGuard<'static, Table> {
        TABLE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bits(lock: &flock) -> u8 {
        let end = if lock.l_len == 0 { i64::MAX } else { lock.l_start + lock.l_len };
        let has = |byte| u8::from(lock.l_start <= byte && byte < end);
        has(PENDING) | has(RESERVED) << 1 | has(SHARED) << 2
    }

    fn file(descriptor: c_int) -> nix::Result<File> {
        fstat(descriptor).map(|status| (status.st_dev, status.st_ino))
    }

    /// Run a lock call for the process, as `SQLite` meant it.
    fn call_posix(descriptor: c_int, command: c_int, lock: &mut flock) -> nix::Result<c_int> {
        fcntl(
            descriptor,
            match command {
                F_SETLK => FcntlArg::F_SETLK(lock),
                F_SETLKW => FcntlArg::F_SETLKW(lock),
                _ => FcntlArg::F_GETLK(lock),
            },
        )
    }

    /// Run a lock call for an open file description.
    fn call_owned(descriptor: c_int, command: c_int, lock: &mut flock) -> nix::Result<c_int> {
        lock.l_pid = 0; // the kernel refuses anything else
        fcntl(
            descriptor,
            match command {
                F_SETLK => FcntlArg::F_OFD_SETLK(lock),
                F_SETLKW => FcntlArg::F_OFD_SETLKW(lock),
                _ => FcntlArg::F_OFD_GETLK(lock),
            },
        )
    }

    fn is_of_index(lock: &flock) -> bool {
        lock.l_start < PENDING && lock.l_len != 0
    }

    fn call_on_index(descriptor: c_int, command: c_int, lock: &mut flock) -> nix::Result<c_int> {
        let mut table = table();
        if lock.l_start == INDEX_IN_USE && !table.indexes.contains_key(&descriptor) {
            table.indexes.insert(descriptor, Descriptor::of(descriptor)?);
        }
        let owned = table.indexes.get(&descriptor).map(|owned| owned.0);
        drop(table);
        match owned {
            Some(owned) => call_owned(owned, command, lock),
            // Locked before these functions were in place, so its locks keep their kind.
            None => call_posix(descriptor, command, lock),
        }
    }

    fn call_on_database(descriptor: c_int, command: c_int, lock: &mut flock) -> nix::Result<c_int> {
        let id = file(descriptor)?;
        let mut table = table();
        if table.inherited.contains(&id) {
            return call_on_inherited(descriptor, command, lock);
        }
        if let Some(database) = table.databases.get_mut(&id) {
            let answer = database.call(command, lock);
            if database.locked == 0 {
                table.databases.remove(&id);
            }
            return answer;
        }
        // SQLite's first lock begins so. Other calls on descriptors that are not recorded continue
        // with locks from before these functions were in place.
        let is_first = c_int::from(lock.l_type) == F_RDLCK && lock.l_start == PENDING;
        if command == F_GETLK || !is_first {
            return call_posix(descriptor, command, lock);
        }
        let mut database = Database { descriptor: Descriptor::of(descriptor)?, locked: 0 };
        let answer = database.call(command, lock)?;
        table.databases.insert(id, database);
        Ok(answer)
    }

    /// Answer for a database of the process that this one was forked from: its account of locks was
    /// copied with it and the locks were not, so nothing can be locked any more.
    fn call_on_inherited(
        descriptor: c_int,
        command: c_int,
        lock: &mut flock,
    ) -> nix::Result<c_int> {
        match (command, c_int::from(lock.l_type)) {
            (F_GETLK, _) => call_posix(descriptor, command, lock),
            (_, F_UNLCK) => Ok(0),
            _ => Err(Errno::EAGAIN),
        }
    }

    fn answered(result: nix::Result<c_int>) -> c_int {
        result.unwrap_or_else(|error| {
            error.set();
            -1
        })
    }

    /// Take the place of `fcntl`, which `SQLite` calls with a lock and with nothing else on Linux.
    extern "C" fn fcntl_call(descriptor: c_int, command: c_int, lock: Option<&mut flock>) -> c_int {
        let (F_SETLK | F_SETLKW | F_GETLK, Some(lock)) = (command, lock) else {
            return answered(Err(Errno::EINVAL));
        };
        let call = if is_of_index(lock) { call_on_index } else { call_on_database };
        answered(call(descriptor, command, lock))
    }

    /// Take the place of `close`.
    extern "C" fn close_call(descriptor: c_int) -> c_int {
        table().indexes.remove(&descriptor);
        answered(close(descriptor).map(|()| 0))
    }

    pub(super) fn calls() -> Option<[(&'static str, usize); 2]> {
        static FOLLOWED: Once = Once::new();
        if !is_supported() {
            return None;
        }
        FOLLOWED.call_once(follow_forks);
        Some([
            ("fcntl", fcntl_call as *const () as usize),
            ("close", close_call as *const () as usize),
        ])
    }

    fn is_supported() -> bool {
        let mut lock =
            flock { l_type: F_RDLCK as i16, l_whence: 0, l_start: 0, l_len: 1, l_pid: 0 };
        let nothing = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty());
        nothing.map(Descriptor).is_ok_and(|held| call_owned(held.0, F_GETLK, &mut lock).is_ok())
    }

    /// Have the C library call the functions below at each fork of the process.
    ///
    /// Hooks of an interpreter would not do: another thread of it may go on between them, and wait
    /// for the table by `close` without letting the forking thread go on.
    #[expect(unsafe_code, reason = "a function of the C library")]
    fn follow_forks() {
        // SAFETY: the functions live as long as the process, and unwind nowhere.
        let failure = unsafe {
            pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child))
        };
        assert_eq!(failure, 0, "no memory for a hook of fork");
    }

    /// Keep other threads from changing locks until one of the two functions below is called.
    extern "C" fn before_fork() {
        FORKING.set(Some(table()));
    }

    extern "C" fn after_fork_in_parent() {
        FORKING.take();
    }

    /// Let go of every lock that the parent holds: a lock would outlive the parent for as long as
    /// the child has a descriptor of it.
    extern "C" fn after_fork_in_child() {
        let Some(mut table) = FORKING.take() else { return };
        table.indexes.clear();
        let databases = std::mem::take(&mut table.databases);
        table.inherited.extend(databases.keys());
    }
}

/// Names of system calls of `SQLite` and addresses of their replacements; `None` if the system has
/// no locks of open file descriptions.
pub fn calls() -> Option<[(&'static str, usize); 2]> {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    return linux::calls();
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    None
}

/// Allocate disk space for the first bytes of an open file before a mapping writes to them: without
/// space such a write ends the process. Contents are unchanged.
///
/// # Errors
///
/// The system's, such as a full disk, or a file system that cannot do this.
pub fn allocate(descriptor: i32, length: i64) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{FallocateFlags, fallocate};
        let extends_nothing = FallocateFlags::FALLOC_FL_KEEP_SIZE;
        fallocate(descriptor, extends_nothing, 0, length).map_err(std::io::Error::from)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (descriptor, length);
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
    }
}

/// Device and inode of a path; `None` if it does not exist, or the system has no such numbers.
pub fn file_id(path: &str) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|status| (status.dev(), status.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
