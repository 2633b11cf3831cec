"""Detects file systems shared between machines, where SQLite's write-ahead log cannot be used.

All processes share the log's index as memory by mapping one file, so they must share one kernel
(SQLite, "Write-Ahead Logging", section 1). If the file lies on another machine, or on the host of a
virtual machine, each side has its own copy, and the file is damaged sooner or later.
"""

import os

from mnemic.errors import StoreFileError

# The third line and the fourth: how a host shows its folders, such as Windows its drives in WSL.
_NAMES = """
nfs nfs4 cifs smb2 smb3 smbfs ncpfs afs auristorfs coda
ceph lustre gpfs beegfs glusterfs orangefs pvfs2 gfs2 ocfs2 wekafs panfs acfs
9p virtiofs vboxsf prl_fs vmhgfs
fuse.virtiofs fuse.vmhgfs-fuse fuse.prl_fsd fuse.grpcfuse fuse.osxfs
fuse.sshfs fuse.smbnetfs fuse.curlftpfs fuse.davfs fuse.davfs2 fuse.rclone
fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.mfs fuse.moosefs fuse.juicefs fuse.seaweedfs
fuse.s3fs fuse.goofys fuse.gcsfuse fuse.blobfuse fuse.blobfuse2
"""
_SHARED = frozenset(_NAMES.split())


def shared_type(mountinfo: str, device: int) -> str | None:
    """Return the type of a device's file system if several machines share it, else None.

    Args:
        mountinfo: The text of `/proc/self/mountinfo`.
        device: `st_dev` of a file on it. A device has one type, wherever it is mounted; an unlisted
            device, such as a subvolume, counts as not shared.
    """
    numbers = f" {os.major(device)}:{os.minor(device)} "
    start = mountinfo.find(numbers)
    if start < 0:
        return None
    line = mountinfo[start : mountinfo.find("\n", start)]
    # Six fields, any number of optional ones, a hyphen, and then the type; spaces are escaped.
    kind = line.partition(" - ")[2].split(" ", 1)[0]
    return kind if kind in _SHARED else None


def refuse_shared(path: str) -> None:
    """Refuse a file on a file system shared between machines; only Linux is checked.

    Args:
        path: The file, which need not exist; its directory must.

    Raises:
        StoreFileError: If its file system is shared.
    """
    try:
        # The log lies beside the file itself, wherever links lead to it.
        folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120 - pathlib is slow to import
        device = os.stat(folder).st_dev  # noqa: PTH116 - the same
        with open("/proc/self/mountinfo", "rb", buffering=0) as file:  # noqa: PTH123 - the same
            kind = shared_type(file.read().decode(errors="replace"), device)
    except OSError:
        return
    if kind is not None:
        raise StoreFileError(
            f"{path}: it lies on a file system shared between machines ({kind}), where SQLite's "
            f"write-ahead log would damage it; choose a path on a local disk"
        )
