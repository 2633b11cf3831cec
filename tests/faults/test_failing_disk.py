"""A full or failing disk at every point: a typed error, earlier memories intact, and then on."""

import os
from errno import EIO, ENOSPC
from uuid import uuid4

import pytest

from mnemic.errors import StoreCorruptError, StoreError, StoreFileError, StoreFullError
from mnemic.store.sqlite import wal
from tests.faults.failing_disk import READS, WRITES, FailingCalls, failing_sync
from tests.faults.history import inner_problems, states
from tests.faults.workload import FORGOTTEN, LIVING, USER, PlainDoor

ROUNDS = int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))
TEXTS = ["the cat sleeps", "ferries leave at noon", "a red sofa was bought", "oak " * 1000]


def new_id():
    return str(uuid4())


def adding(door):
    key = new_id()
    return lambda: door.add(key, "rain is expected"), {key: ("rain is expected", LIVING)}


def adding_many(door):
    texts = {new_id(): f"rain {number} " * 50 for number in range(4)}
    return lambda: door.add_many(texts), {key: (text, LIVING) for key, text in texts.items()}


def updating(door):
    key, text = new_id(), "snow " * 1000
    door.add(key, "sun")
    return lambda: door.update(key, text), {key: (text, LIVING)}


def forgetting(door):
    key = new_id()
    door.add(key, "hail is expected")
    return lambda: door.forget(key), {key: ("hail is expected", FORGOTTEN)}


def restoring(door):
    key = new_id()
    door.add(key, "fog is expected")
    door.forget(key)
    return lambda: door.restore(key), {key: ("fog is expected", LIVING)}


def erasing(door):
    key = new_id()
    door.add(key, "a secret " * 1000)
    return lambda: door.erase(key), {key: None}


OPERATIONS = [adding, adding_many, updating, forgetting, restoring, erasing]


@pytest.fixture
def failing_calls():
    with FailingCalls(WRITES) as calls:
        yield calls


@pytest.fixture
def failing_reads():
    with FailingCalls(READS) as calls:
        yield calls


def opened(path):
    door = PlainDoor(path)
    door.add_many({new_id(): text for text in TEXTS})
    return door


def points():
    """Number the calls that fail: the first ones each, then ever fewer, but each if for long."""
    number = 1
    while True:
        yield number
        number += 1 if ROUNDS else 1 + number // 2


def after(before, outcome):
    changed = {**before, **outcome}
    return {key: state for key, state in changed.items() if state is not None}


def fail_everywhere(disk, door, operation, *how, **kind):
    """Fail one call after the other until the operation meets none; return how many failed."""
    for number in points():
        act, outcome = operation(door)
        before, error = states(door), None
        disk.fail(number, *how, **kind)
        try:
            act()
        except StoreError as raised:
            error = raised
        failed = list(disk.failed)
        if error is not None:
            assert isinstance(error, StoreFullError), (number, failed, error)
            assert "was not kept" in str(error) or "nothing of this write was kept" in str(error)
            # While the disk fails, what is there can be read and found.
            assert states(door) == before, (number, failed)
            assert door.found("red sofa")
            disk.never()
            act()
        disk.never()
        assert states(door) == after(before, outcome), (number, failed, error)
        assert inner_problems(door) == [], (number, failed)
        for key in outcome.keys() & states(door).keys():
            door.erase(key)
        if not failed:
            return number
    return None


@pytest.mark.parametrize("errno", [ENOSPC, EIO], ids=["full", "failing"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_write_that_meets_a_failing_disk_is_undone_and_works_afterwards(
    tmp_path, failing_calls, operation, errno
):
    door = opened(tmp_path / "a.db")
    assert fail_everywhere(failing_calls, door, operation, errno, lasting=errno == ENOSPC) > 3
    door.close()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_checkpoint_that_meets_a_failing_disk_takes_nothing_away(
    tmp_path, monkeypatch, failing_calls, operation
):
    monkeypatch.setattr(wal, "COPY_PAGES", 1)
    door = opened(tmp_path / "a.db")
    assert fail_everywhere(failing_calls, door, operation, EIO) > 3
    door.close()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_write_that_cannot_be_synced_is_undone_and_works_afterwards(tmp_path, operation):
    with failing_sync() as disk:
        door = opened(tmp_path / "a.db")
        assert fail_everywhere(disk, door, operation) > 1
        door.close()


@pytest.mark.parametrize("errno", [ENOSPC, EIO], ids=["full", "failing"])
def test_a_file_that_cannot_be_made_for_a_failing_disk_can_be_made_afterwards(
    tmp_path, failing_calls, errno
):
    for number in points():
        path = tmp_path / f"{number}.db"
        failing_calls.fail(number, errno, lasting=bool(number % 2))
        try:
            PlainDoor(path).close()
        except StoreError as error:
            assert str(path) in str(error)  # noqa: PT017 - not every failed call is noticed
        failed = failing_calls.failed
        failing_calls.never()
        door = opened(path)
        assert len(states(door)) == len(TEXTS)
        assert inner_problems(door) == []
        door.close()
        path.unlink()
        if not failed:
            break
    assert number > 20
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_made_at_all_is_a_typed_error(tmp_path, monkeypatch):
    def full(*_arguments, **_named):
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(StoreFileError, match="No space left on device"):
        PlainDoor(tmp_path / "a.db")


@pytest.mark.parametrize("errno", [ENOSPC, EIO], ids=["full", "failing"])
def test_closing_on_a_failing_disk_loses_nothing(tmp_path, failing_calls, errno):
    for number in points():
        path = tmp_path / f"{number}.db"
        door = opened(path)
        key = door.view.add("kept").id
        before = states(door)
        failing_calls.fail(number, errno, lasting=True)
        door.close()
        failed = failing_calls.failed
        failing_calls.never()
        again = PlainDoor(path)
        assert states(again) == before
        assert inner_problems(again) == []
        assert again.content(key) == "kept"
        again.close()
        if not failed:
            break
    assert number > 5


def readings(door, key):
    return {
        "get": lambda: door.content(key),
        "search": lambda: door.found("red sofa"),
        "count": door.view.count,
        "stats": lambda: door.memory.stats().active_entries,
        "filter": lambda: len(door.memory.list(user_id=USER).entries),
    }


@pytest.mark.parametrize("name", ["get", "search", "count", "stats", "filter"])
def test_a_read_that_meets_a_failing_disk_is_a_typed_error_and_works_afterwards(
    tmp_path, failing_reads, name
):
    path = tmp_path / "a.db"
    first = opened(path)
    key = str(first.view.add("kept").id)
    expected = readings(first, key)[name]()
    for number in points():
        door = PlainDoor(path)
        door.memory._repository._store._connections._idle.clear()  # so that nothing is cached
        failing_reads.fail(number, EIO)
        error = None
        try:
            assert readings(door, key)[name]() == expected
        except StoreError as raised:
            error = raised
        failed = failing_reads.failed
        failing_reads.never()
        assert bool(failed) == bool(error), (number, failed)
        assert readings(door, key)[name]() == expected
        door.add(new_id(), "written afterwards")
        assert inner_problems(door) == []
        door.close()
        expected = readings(first, key)[name]()
        if not failed:
            break
    assert number > 1
    first.close()


def test_opening_on_a_disk_that_cannot_be_read_is_a_typed_error(tmp_path, failing_reads):
    path = tmp_path / "a.db"
    opened(path).close()
    for number in points():
        failing_reads.fail(number, EIO)
        try:
            PlainDoor(path).close()
        except StoreError as error:
            # SQLite itself takes a page that cannot be read for a damaged one.
            assert isinstance(error, StoreFullError | StoreCorruptError)  # noqa: PT017
        failed = failing_reads.failed
        failing_reads.never()
        door = PlainDoor(path)
        assert len(states(door)) == len(TEXTS)
        assert inner_problems(door) == []
        door.close()
        if not failed:
            break
    assert number > 5
