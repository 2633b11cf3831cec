"""Files that are moved, deleted or replaced while they are open."""

import os

import pytest

from mnemic.errors import StoreReplacedError
from tests.support.doors import opened
from tests.support.paths import names_in

ADVICE = "put the file back together with its log"


def deleted(path):
    path.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere.db"))


def replaced(path):
    other = path.with_name("other.db")
    with opened(other) as memory:
        memory.add("of another memory")
    other.replace(path)


def log_deleted(path):
    path.with_name("a.db-wal").unlink()


def log_replaced(path):
    log_deleted(path)
    path.with_name("a.db-wal").write_bytes(b"of another file")


CHANGES = [deleted, moved, replaced, log_deleted, log_replaced]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if "-shm" not in path.name}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_was_replaced_while_open_is_never_written(tmp_path, change):
    path = tmp_path / "a.db"
    memory = opened(path)
    kept = memory.add("written before")
    change(path)
    before = contents(tmp_path)
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.add("never written")
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.delete(kept.id, permanent=True)
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.erase_pending()
    memory.close()
    assert contents(tmp_path) == before


@pytest.mark.parametrize("change", [deleted, moved, replaced])
@pytest.mark.parametrize("read_only", [False, True])
def test_who_reads_a_file_that_was_replaced_is_told(tmp_path, change, read_only):
    path = tmp_path / "a.db"
    with opened(path) as writer:
        writer.add("written before")
    memory = opened(path, read_only=read_only)
    assert memory.count() == 1
    change(path)
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.search("written")
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    memory.close()


def test_what_was_written_to_a_file_that_was_moved_is_there_when_it_is_back(tmp_path):
    path = tmp_path / "a.db"
    memory = opened(path)
    memory.add("written before")
    moved(path)
    with pytest.raises(StoreReplacedError):
        memory.add("never written")
    memory.close()
    (tmp_path / "elsewhere.db").rename(path)
    with opened(path) as again:
        assert [hit.content for hit in again.search("written")] == ["written before"]
    assert names_in(tmp_path) == ["a.db"]


def test_a_memory_whose_file_is_back_goes_on(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        moved(path)
        with pytest.raises(StoreReplacedError):
            memory.add("never written")
        (tmp_path / "elsewhere.db").rename(path)
        memory.add("written")
        assert memory.count() == 1


def test_a_second_name_for_the_file_changes_nothing(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        os.link(path, tmp_path / "second.db")
        memory.add("written")
        assert memory.count() == 1
