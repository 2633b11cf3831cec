import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from mnemic.errors import StoreFileError
from mnemic.store.sqlite.file_locks import check_place, is_mount, shared_type
from mnemic.store.sqlite.store import SqliteStore
from mnemic.store.url import path_of


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (":memory:", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
        ("sqlite:///a.db", "a.db"),
        ("sqlite:///folder/a.db", "folder/a.db"),
        ("sqlite:////var/lib/a.db", "/var/lib/a.db"),
        ("sqlite:///a%20b%3F%23%25.db", "a b?#%.db"),
        ("sqlite:///Z%C3%BCrich.db", "Zürich.db"),
        ("a.db", "a.db"),
        ("/var/lib/a%20b.db", "/var/lib/a%20b.db"),
        ("file:x.db", "file:x.db"),
        ("./:memory", "./:memory"),
        ("agent:1.db", "agent:1.db"),
        ("folder/x://y", "folder/x://y"),
        (Path("a.db"), "a.db"),
        (b"a.db", "a.db"),
    ],
)
def test_a_path_or_a_url_names_a_file(url, path):
    assert path_of(url) == path


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host/db",
        "file:///a.db",
        "sqlite+async:///a.db",
        "sqlite://",
        "sqlite:///",
        "sqlite://a.db",
        "sqlite://host/a.db",
        "sqlite:x.db",
        "sqlite:///a.db".upper(),
        "postgresql:x",
        "postgres:user:secret@host/x",
        "POSTGRES://user:secret@host/x",
        "PostgreSQL://host/db",
        ":memory",
        ":Memory:",
        "memory:",
    ],
)
def test_another_url_is_refused_with_what_is_supported(url):
    with pytest.raises(StoreFileError, match="sqlite:///relative/path, sqlite:////absolute/path"):
        path_of(url)


def test_a_misspelt_url_is_refused_without_its_password():
    with pytest.raises(StoreFileError) as caught:
        path_of("postgres:user:secret@host/x")
    assert "secret" not in str(caught.value)


def test_no_file_is_made_of_a_misspelt_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in (":memory", "memory:", "postgresql:x", "sqlite:x.db"):
        with pytest.raises(StoreFileError, match="would be the name of a file"):
            SqliteStore(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["sqlite:///a.db?mode=ro", "sqlite:///a.db#top"])
def test_a_url_with_options_is_refused_and_not_taken_for_a_strange_name(url):
    with pytest.raises(StoreFileError, match="no options"):
        path_of(url)


def test_a_url_that_is_not_utf_8_is_refused():
    with pytest.raises(StoreFileError, match="not a path in UTF-8"):
        path_of("sqlite:///%FF.db")


def test_a_store_opens_a_url(tmp_path):
    SqliteStore(f"sqlite:///{tmp_path}/a%20b.db").close()
    assert os.listdir(tmp_path) == ["a b.db"]  # noqa: PTH208 - names


MOUNTINFO = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 27 0:31 / /home rw,relatime shared:5 - nfs4 server:/home rw,vers=4.2
37 27 0:32 / /mnt/c rw master:1 propagate_from:2 - 9p drvfs rw
38 27 0:33 / /mnt/a\040-\040b rw - fuse.sshfs me@server:/ rw
39 27 0:331 / /local rw - xfs /dev/nfs rw
40 27 0:35 / /odd rw shared:1 - fuse.ntfs /dev/sdb1 rw
41 27 0:36 /Users/ann /data rw - fakeowner /run/host_mark/Users rw,fakeowner
"""


@pytest.mark.parametrize(
    ("major", "minor", "kind"),
    [
        (254, 0, None),
        (0, 31, "nfs4"),
        (0, 32, "9p"),
        (0, 33, "fuse.sshfs"),
        (0, 331, None),
        (0, 35, None),
        (0, 36, "fakeowner"),
        (0, 99, None),
    ],
)
def test_a_file_system_is_known_by_its_devices_numbers(major, minor, kind):
    assert shared_type(MOUNTINFO, os.makedev(major, minor)) == kind


@pytest.mark.parametrize(
    "kind",
    ["9p", "virtiofs", "fakeowner", "grpcfuse", "osxfs", "drvfs", "vboxsf", "prl_fs", "vmhgfs"],
)
def test_folders_that_a_host_shows_in_a_virtual_machine_are_shared(kind):
    line = "512 480 0:59 /Users/ann/data /data rw,relatime - {} /run/host_mark/Users rw\n"
    assert shared_type(line.format(kind), os.makedev(0, 59)) == kind


def test_what_is_mounted_at_a_path_is_known_by_its_whole_name():
    assert is_mount(MOUNTINFO, "/mnt/a - b")
    assert is_mount(MOUNTINFO, "/data")
    assert not is_mount(MOUNTINFO, "/data/a.db")
    assert not is_mount(MOUNTINFO, "/dat")


@pytest.fixture
def mounted(tmp_path):
    """A file that is mounted at another name, as `docker run -v` does with one file."""
    SqliteStore(tmp_path / "a.db").close()
    here = tmp_path / "a b.db"
    here.touch()
    command = ["mount", "--bind", tmp_path / "a.db", here]
    if (
        not shutil.which("mount")
        or subprocess.run(command, check=False, capture_output=True).returncode
    ):
        pytest.skip("this user may not mount a file")
    yield here
    subprocess.run(["umount", here], check=True)  # noqa: S607


def test_one_file_that_is_mounted_is_read_and_not_written(mounted):
    with pytest.raises(StoreFileError, match=r"mount the directory .* read_only=True"):
        SqliteStore(mounted)
    SqliteStore(mounted, read_only=True).close()
    SqliteStore(mounted.with_name("a.db")).close()


def test_one_file_of_a_shared_file_system_in_a_local_folder_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    SqliteStore(path).close()
    stat, shared = os.stat, os.makedev(0, 31)

    def of_another_device(name, *arguments, **options):
        found = stat(name, *arguments, **options)
        return SimpleNamespace(st_dev=shared) if name == str(path) else found

    monkeypatch.setattr("mnemic.store.sqlite.file_locks.os.stat", of_another_device)
    monkeypatch.setattr(
        "mnemic.store.sqlite.file_locks.shared_type",
        lambda _, on: "nfs4" if on == shared else None,
    )
    with pytest.raises(StoreFileError, match=r"shared between machines \(nfs4\)"):
        check_place(str(path))


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="needs Linux")  # noqa: PTH110 - at import
def test_a_file_on_a_shared_file_system_is_refused_before_it_is_made(tmp_path, monkeypatch):
    check_place(str(tmp_path / "a.db"))
    monkeypatch.setattr("mnemic.store.sqlite.file_locks._SHARED", EveryType())
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    for name in ("a.db", "link.db"):
        with pytest.raises(StoreFileError, match=r"shared between machines .* on a local disk"):
            SqliteStore(tmp_path / name)
    assert not (tmp_path / "a.db").exists()
    SqliteStore(":memory:").close()


class EveryType:
    def __contains__(self, kind):
        return True
