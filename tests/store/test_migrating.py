"""Tables brought to another version on request: up, down, tried, and refused."""

import subprocess
import sys

import pytest

import mnemic
from mnemic import Encryption, Memory
from mnemic.errors import InvalidArgumentError, SchemaVersionError, StoreFileError
from mnemic.model import SchemaVersions
from tests.support.keys import KEY
from tests.support.places import Places
from tests.support.processes import ENVIRONMENT


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    with Places(request.param, tmp_path) as places:
        url = places.new()
        with Memory(url, "a", embedder=None) as memory:
            memory.add("the tea is green")
        yield url


def newest(place):
    return mnemic.migrate(place, dry_run=True).newest


@pytest.mark.requirement("R087")
def test_tables_go_down_and_up_and_keep_what_is_stored(place):
    last = newest(place)
    assert mnemic.migrate(place, last - 1) == SchemaVersions(last, last - 1, last)
    assert mnemic.migrate(place) == SchemaVersions(last - 1, last, last)
    mnemic.migrate(place, 2)
    with Memory(place, "a", embedder=None) as memory:  # which brings them up
        assert [entry.content for entry in memory.list()] == ["the tea is green"]
        assert memory.verify().ok
    assert newest(place) == last


def test_a_dry_run_changes_nothing(place):
    last = newest(place)
    assert mnemic.migrate(place, 1, dry_run=True) == SchemaVersions(last, 1, last)
    assert mnemic.migrate(place, dry_run=True) == SchemaVersions(last, last, last)


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_an_earlier_version_cannot_hold_stops_it(place, dry_run):
    last = newest(place)
    with Memory(place, "b", embedder=None, encryption=Encryption(KEY, encrypt_all=True)) as memory:
        memory.add("a secret")
    with pytest.raises(SchemaVersionError, match="memories are sealed"):
        mnemic.migrate(place, 1, dry_run=dry_run)
    assert mnemic.migrate(place, dry_run=True).found >= last - 1
    with Memory(place, "b", embedder=None, encryption=Encryption(KEY, encrypt_all=True)) as memory:
        assert [entry.content for entry in memory.list()] == ["a secret"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_tables_with_memories_stay(place, dry_run):
    with pytest.raises(SchemaVersionError, match="there are memories"):
        mnemic.migrate(place, 0, dry_run=dry_run)


@pytest.mark.parametrize("version", [-1, 99, True, 1.0, "1", "x" * 10_000])
def test_another_version_is_refused(place, version):
    with pytest.raises(InvalidArgumentError, match="version must be None or a whole number"):
        mnemic.migrate(place, version)


HOLD = """
import sys
from mnemic import Encryption, Memory
memory = Memory(sys.argv[1], "a", embedder=None)
print("open", flush=True)
sys.stdin.read()
"""


def test_an_open_file_is_refused(tmp_path):
    path = str(tmp_path / "a.db")
    with Memory(path, "a", embedder=None) as memory:
        memory.add("tea")
        with pytest.raises(StoreFileError, match="it is open, here or in another process"):
            mnemic.migrate(path, 1)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreFileError, match="it is open, here or in another process"):
            mnemic.migrate(path, 1)
        holder.stdin.close()
    assert mnemic.migrate(path, 1).reached == 1


def test_a_missing_file_stays_missing(tmp_path):
    with pytest.raises(StoreFileError, match="it does not exist"):
        mnemic.migrate(tmp_path / "a.db")
    assert not list(tmp_path.iterdir())
