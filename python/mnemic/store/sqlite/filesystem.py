"""Detects file systems shared between machines, where SQLite's write-ahead log cannot be used.

All processes share the log's index as memory by mapping one file, so they must share one kernel
(SQLite, "Write-Ahead Logging", section 1). If the file lies on another machine, or on the host of a
virtual machine, each side has its own copy, and the file is damaged sooner or later.
"""

import os
from contextlib import suppress

from mnemic.errors import StoreFileError

# The third to the fifth line: how a host shows its folders, such as Windows its drives in WSL and
# Docker Desktop those of a Mac (fakeowner since version 4.15).
_NAMES = """
nfs nfs4 cifs smb2 smb3 smbfs ncpfs afs auristorfs coda
ceph lustre gpfs beegfs fhgfs glusterfs orangefs pvfs2 gfs2 ocfs2 wekafs panfs acfs cvfs
9p virtiofs fakeowner grpcfuse osxfs drvfs vboxsf prl_fs vmhgfs hostfs
fuse.virtiofs fuse.virtiofsd fuse.fakeowner fuse.grpcfuse fuse.osxfs fuse.drvfs fuse.vboxsf
fuse.vmhgfs-fuse fuse.prl_fsd
fuse.sshfs fuse.smbnetfs fuse.gvfsd-fuse fuse.kio-fuse fuse.curlftpfs fuse.davfs fuse.davfs2
fuse.rclone fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.mfs fuse.moosefs fuse.juicefs
fuse.seaweedfs fuse.cubefs fuse.curvefs fuse.quobyte fuse.dfuse fuse.alluxio-fuse fuse.hdfs
fuse.s3fs fuse.goofys fuse.mount-s3 fuse.gcsfuse fuse.blobfuse fuse.blobfuse2 fuse.ossfs
"""
_SHARED = frozenset(_NAMES.split())
_ESCAPES = {ord(each): f"\\{ord(each):03o}" for each in " \t\n\\"}


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


def is_mount(mountinfo: str, path: str) -> bool:
    """Return whether something is mounted at a path, which is absolute and has no links."""
    escaped = path.translate(_ESCAPES)
    return any(line.split(" ", 5)[4:5] == [escaped] for line in mountinfo.splitlines())


def check_place(path: str, *, read_only: bool = False) -> None:
    """Refuse a file where its log would be lost or would damage it; only Linux is checked.

    Args:
        path: The file, which need not exist; its directory must.
        read_only: Whether nothing will be written.

    Raises:
        StoreFileError: If its file system, or that of its directory, is shared between machines;
            or if the file itself is mounted there, and would be written.
    """
    try:
        # The log lies beside the file itself, wherever links lead to it.
        file = os.path.realpath(path)
        devices = {os.stat(os.path.dirname(file)).st_dev}  # noqa: PTH116, PTH120 - pathlib is slow to import
        with suppress(FileNotFoundError):
            devices.add(os.stat(file).st_dev)  # noqa: PTH116 - the same
        with open("/proc/self/mountinfo", "rb", buffering=0) as opened:  # noqa: PTH123 - the same
            mountinfo = opened.read().decode(errors="surrogateescape")
    except OSError:
        return
    for device in devices:
        kind = shared_type(mountinfo, device)
        if kind is not None:
            raise StoreFileError(
                f"{path}: it lies on a file system shared between machines ({kind}), where "
                "SQLite's write-ahead log would damage it; choose a path on a local disk"
            )
    if not read_only and is_mount(mountinfo, file):
        raise StoreFileError(
            f"{path}: this one file is mounted here, and its log would not lie beside it where it "
            "comes from; mount the directory that it is in (docker run -v ./data:/data), or open "
            "it with read_only=True"
        )
