"""mem0's stores, as it wrote them and as nobody should."""

import base64
import pickle
import resource

import pytest

from mnemic.errors import SourceError
from mnemic.importers.mem0 import NO_USERS, VERSIONS
from mnemic.importers.record import VECTORS


def test_mem0_keeps_texts_users_sessions_speakers_times_and_metadata(bring, fixtures):
    report, stored = bring("mem0", fixtures / "mem0")
    assert report.users == {"ana": 2, "ben": 3, "": 1}
    assert report.lost == {VECTORS: 6}
    assert "Forget this" not in stored  # it was deleted
    assert "Lives in Bergen" not in stored  # it was changed
    tea = stored["Prefers tea"]
    assert (tea.user_id, tea.metadata) == ("ana", {"topic": "drinks", "cups": 3})
    peanuts = stored["I am allergic to peanuts"]
    assert (peanuts.user_id, peanuts.session_id) == ("ben", "dinner")
    assert (peanuts.role, peanuts.speaker) == ("user", "Ben")
    assert peanuts.metadata == {"agent_id": "cook"}
    changed = stored["Lives in Tromsø"]
    assert changed.updated_at > changed.created_at
    assert stored["Speaks to nobody"].user_id is None


@pytest.mark.parametrize("named", ["qdrant", "qdrant/collection/mem0/storage.sqlite"])
def test_mem0_is_found_by_its_folder_or_its_file(check, fixtures, named):
    assert check("mem0", fixtures / "mem0" / named).found == 6


def test_mem0s_history_has_the_last_versions_without_users(bring, fixtures):
    report, stored = bring("mem0", fixtures / "mem0" / "history.db")
    assert len(stored) == 6
    assert report.users == {"": 6}
    assert report.lost == {NO_USERS: 6, VERSIONS: 3}
    assert stored["I am allergic to peanuts"].speaker == "Ben"
    assert stored["Lives in Tromsø"].created_at < stored["Lives in Tromsø"].updated_at


def test_the_history_and_the_points_of_mem0_are_the_same_memories(bring, memory, fixtures):
    bring("mem0", fixtures / "mem0" / "history.db", "ana")
    assert bring("mem0", fixtures / "mem0", "ana")[0].new == 0
    assert memory.count(user_id="ana") == 6


class _Command:
    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


def test_a_pickle_runs_nothing(check, points, tmp_path):
    made = tmp_path / "made"
    state = {"__dict__": {"id": "1", "payload": {"data": "x", "more": _Command(made)}}}
    hostile = pickle.dumps((_Command(made), state))
    with pytest.raises(SourceError, match="point 1: it is no point of Qdrant"):
        check("mem0", points(hostile, pickle.dumps(_Command(made))))
    assert not made.exists()


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x80\x04.",
        b"\x80\x04r\xff\xff\xff\x7f.",  # the last place of a memo
        b"\x80\x04]r\xff\xff\xff\x7f.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x00.",  # bytes of that length
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"cos\nsystem\n(S'true'\ntR.",
        base64.b64decode("gASVDAAAAAAAAABdlChoAGgAaABoAGUu"),  # a list of itself
        b"(" * 100_000 + b".",
        b"\x80\x04" + b"]" + b"(h\x00" * 5000 + b".",
        b"\x80\x04\x82\x01.",
        b"Ppersistent\n.",
        3,
        10**12,
        "text",
        None,
    ],
)
def test_a_damaged_point_is_an_error_and_takes_no_memory(check, points, blob):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SourceError, match="point 1: it is no point of Qdrant"):
        check("mem0", points(blob))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


class PointStruct:
    """Stands for Qdrant's, with the state that it pickles."""

    def __init__(self, payload):
        self.__dict__ = {"__dict__": {"id": "p", "payload": payload}}


def test_a_value_that_repeats_itself_does_not_grow_without_end(bring, points):
    value = [1]
    for _ in range(40):
        value = [value, value]
    blob = pickle.dumps(PointStruct({"data": "x", "user_id": "ana", "again": value}))
    report, stored = bring("mem0", points(blob))
    assert list(stored) == ["x"]
    assert sum(report.lost.values()) > 1


def test_a_tuple_nested_a_million_times_is_no_key(check, points):
    deep = b"\x80\x04}N" + b"\x85" * 1_000_000 + b"Ns."
    with pytest.raises(SourceError, match="point 1: it is no point of Qdrant"):
        check("mem0", points(deep))


@pytest.mark.parametrize("name", ["user_id", "id", "run_id", "more"])
def test_numbers_of_any_length_are_no_names(check, points, name):
    state = {"data": "x", name: 10**5000}
    point = PointStruct(state)
    if name == "id":
        point.__dict__["__dict__"]["id"] = 10**5000
        with pytest.raises(SourceError, match="no point of Qdrant"):
            check("mem0", points(pickle.dumps(point)))
        return
    report = check("mem0", points(pickle.dumps(point)))
    assert report.found + sum(report.left_out.values()) == 1
    assert report.found == (name != "user_id")
