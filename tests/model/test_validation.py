"""What is said of wrong values: what was found, what is wanted, and what to do."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import NAMESPACE_URL, uuid5

import pytest

from mnemic import Memory
from mnemic.compat import ContextItem, ContextWindow
from mnemic.errors import ExportFormatError, InvalidArgumentError, InvalidEntryError, StoreFileError
from mnemic.model import Scope
from mnemic.policy import RetrievalPolicy, RetrievalRequest, TokenBucket
from mnemic_files import MemoryFiles


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=None) as opened:
        yield opened


def test_an_id_of_ones_own_is_told_how_to_be_made_a_uuid(memory):
    with pytest.raises(InvalidEntryError, match=r"'note-1'; for an id of your own give uuid"):
        memory.add("x", id="note-1")
    assert memory.add("x", id=uuid5(NAMESPACE_URL, "note-1")).id == uuid5(NAMESPACE_URL, "note-1")


@pytest.mark.parametrize("seconds", [1_700_000_000, 1.7e9])
def test_a_unix_time_is_told_how_to_be_made_a_time(memory, seconds):
    with pytest.raises(InvalidEntryError, match=r"datetime\.fromtimestamp\(seconds, UTC\)$"):
        memory.add("x", created_at=seconds)
    at = datetime.fromtimestamp(seconds, UTC)
    assert memory.add("x", created_at=at).created_at == at


def test_bytes_are_told_to_be_decoded():
    with pytest.raises(InvalidEntryError, match="must be a str, got bytes; decode it first"):
        ContextItem(content=b"x", type="other")


@pytest.mark.parametrize("name", ["ana ", " ana", "ana\N{NO-BREAK SPACE}", " "])
def test_a_user_with_white_space_around_the_name_is_no_other_user(memory, name):
    calls = (
        lambda: memory.add("x", user_id=name),
        lambda: memory.add_many([{"content": "x", "user_id": name}]),
        lambda: memory.search("x", user_id=name),
        lambda: memory.scoped(user_id=name),
        lambda: memory.scoped(project_id=name),
        lambda: memory.list(user_id="ana", session_id=name),
        lambda: Memory(":memory:", agent_id=name, embedder=None),
        lambda: Scope("default", name),
    )
    for call in calls:
        with pytest.raises(InvalidEntryError, match=r"has white space around it, .*strip"):
            call()
    assert memory.count(all_users=True) == 0
    assert memory.add("x", user_id="ana b").user_id == "ana b"


def test_other_names_may_have_white_space_around_them(memory):
    assert memory.add("x", speaker=" Ana ").speaker == " Ana "


def test_a_wrong_number_of_tokens_is_a_wrong_argument(memory):
    with pytest.raises(InvalidArgumentError, match="max_tokens must be at least 1") as caught:
        memory.context("x", max_tokens=0)
    assert not isinstance(caught.value, InvalidEntryError)


def test_a_table_that_is_imported_is_sent_to_add_many(memory, tmp_path):
    table = tmp_path / "x.csv"
    table.write_text("content,user\nx,ana\n")
    with pytest.raises(ExportFormatError, match=r"rows of a table .* are stored by add_many"):
        memory.import_(table)


def test_a_path_may_begin_with_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with Memory("~/a.db", embedder=None) as memory:
        memory.add("x")
        memory.backup("~/copy.db")
        memory.export("~/a.jsonl")
        memory.import_("~/a.jsonl")
        MemoryFiles(user="~/files").export(memory)
    assert {each.name for each in tmp_path.iterdir()} >= {"a.db", "copy.db", "a.jsonl", "files"}
    assert Memory.model_of("~/a.db") is None


NO_PATHS = {
    "empty": "",
    "NUL": "a\0b",
    "surrogate": "\ud800",
    "long name": "x" * 300,
    "long path": "a/" * 5000,
    "in a file": "a file/x",
    "in a circle": "a circle/x",
}
DOORS = {
    "Memory": lambda path, _: Memory(path, embedder=None),
    "model_of": lambda path, _: Memory.model_of(path),
    "export": lambda path, memory: memory.export(path),
    "import_": lambda path, memory: memory.import_(path),
    "backup": lambda path, memory: memory.backup(path),
    "MemoryFiles": lambda path, memory: MemoryFiles(repo=path).synchronise(memory),
}


@pytest.mark.parametrize("path", NO_PATHS)
@pytest.mark.parametrize("door", DOORS)
def test_what_can_be_no_path_is_a_typed_error_at_each_door(
    memory, door, path, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").touch()
    (tmp_path / "a circle").symlink_to("a circle")
    with pytest.raises((InvalidArgumentError, StoreFileError)) as refused:
        DOORS[door](NO_PATHS[path], memory)
    assert len(str(refused.value).encode()) < 500


@pytest.mark.parametrize("door", ["export", "import_", "MemoryFiles"])
def test_a_url_in_place_of_a_file_is_refused_without_its_password(memory, door):
    with pytest.raises(InvalidArgumentError, match="must be the path of a file, got a URL") as told:
        DOORS[door]("postgresql://user:zqsecret@host/db", memory)
    assert "zqsecret" not in repr(told.value.__cause__ or told.value.__context__)


def test_an_import_of_a_file_that_is_not_there_names_what_is_missing(memory, tmp_path):
    with pytest.raises(StoreFileError, match=r"absent.jsonl: it does not exist$"):
        memory.import_(tmp_path / "absent.jsonl")
    with pytest.raises(StoreFileError, match="its directory does not exist; create it first"):
        memory.import_(tmp_path / "absent" / "a.jsonl")


NO_TIMES = {
    "naive": lambda: datetime(2026, 5, 1),  # noqa: DTZ001 - that is what is wrong
    "date": lambda: datetime.now(UTC).date(),
    "None": lambda: None,
    "text": lambda: "2026-05-01T00:00Z",
    "failing": lambda: {}["zqsecret"],
    "of an argument": lambda now: now,
    "before the year 1": lambda: datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
}
CLOCKED = {
    "add": lambda clock: Memory(":memory:", embedder=None, clock=clock).add("x"),
    "search": lambda clock: Memory(":memory:", embedder=None, clock=clock).search("x"),
    "a window": lambda clock: ContextWindow(100, clock=clock).add("x", "other"),
}


@pytest.mark.parametrize("clock", NO_TIMES)
@pytest.mark.parametrize("call", CLOCKED)
def test_a_clock_that_gives_no_time_with_a_zone_is_named(call, clock):
    with pytest.raises(InvalidArgumentError, match="clock") as refused:
        CLOCKED[call](NO_TIMES[clock])
    assert "zqsecret" not in str(refused.value)


@pytest.mark.parametrize("seconds", [None, "1"])
def test_a_clock_that_gives_no_seconds_is_named(memory, seconds):
    request = RetrievalRequest("x", "u", "s")
    for call in (
        lambda: RetrievalPolicy(memory, clock=lambda: seconds).run(request),
        lambda: TokenBucket(1, 1, clock=lambda: seconds).acquire("u"),
    ):
        with pytest.raises(InvalidArgumentError, match=r"seconds, such as time\.monotonic, got"):
            call()
