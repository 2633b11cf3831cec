import io
import logging
import sys

import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError, StoreClosedError
from mnemic.reporting.progress import Display, reporting
from tests.support.embedders import WordEmbedder

TEXTS = [f"text {number}" for number in range(600)]


class Heard(list):
    def __call__(self, done, total):
        self.append((done, total))

    def check(self, total):
        """Check that the numbers grow up to the total."""
        assert [done for done, _ in self] == sorted(done for done, _ in self)
        assert self[-1] == (total, total)
        assert {of for _, of in self} == {total}


@pytest.fixture
def heard():
    return Heard()


def test_add_many_reports_what_is_embedded_and_then_stored(heard):
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        stored = memory.add_many(TEXTS, progress=heard)
        assert [entry.content for entry in stored] == TEXTS
        assert heard == [(256, 600), (512, 600), (600, 600), (600, 600)]
        vectors = memory.get(stored[-1].id, embeddings=True).embedding
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        (last,) = memory.add_many(TEXTS[-1:])
        assert (memory.get(last.id, embeddings=True).embedding == vectors).all()


def test_texts_of_several_vectors_count_once(heard):
    memories = [{"content": text, "embed": [text, text]} for text in TEXTS[:300]]
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many(memories, progress=heard)
    assert heard == [(128, 300), (256, 300), (300, 300), (300, 300)]


def test_add_many_without_an_embedder_reports_its_end(heard):
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(TEXTS[:3], progress=heard)
        memory.add_many([], progress=heard)
    assert heard == [(3, 3)]


def test_an_export_and_its_import_report_the_total(tmp_path, heard):
    path, other = tmp_path / "export.jsonl", Heard()
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many([f"text {number}" for number in range(2500)])
        memory.delete(memory.recent(limit=1)[0].id)
        memory.export(path, progress=heard)
        assert heard == [(1000, 2500), (2000, 2500), (2500, 2500)]
        memory.export(tmp_path / "active.jsonl", include_deleted=False, progress=other)
        other.check(2499)
    other.clear()
    with Memory(":memory:", embedder=None) as copy:
        copy.import_(path, progress=other)
    assert other == [(1000, 2500), (2000, 2500), (2500, 2500)]


def test_a_function_of_one_argument_gets_the_number_alone(tmp_path):
    numbers = []

    def one(done):
        numbers.append(done)

    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(TEXTS)
        memory.export(tmp_path / "a.jsonl", progress=numbers.append)
        memory.export(tmp_path / "b.jsonl", progress=one)
        memory.verify(progress=numbers.append)
    assert numbers == [600, 600, 600]


@pytest.mark.parametrize("path", ["agent.db", ":memory:"])
def test_a_backup_reports_bytes(tmp_path, heard, path):
    path = path if path == ":memory:" else tmp_path / path
    with Memory(path, embedder=None) as memory:
        memory.add_many(["x" * 5000 + str(number) for number in range(2000)])
        memory.backup(tmp_path / "copy.db", progress=heard)
        size = (tmp_path / "copy.db").stat().st_size
    heard.check(heard[-1][1])
    assert len(heard) > 2
    assert heard[-1][1] == pytest.approx(size, rel=0.2)
    with Memory(tmp_path / "copy.db", embedder=None) as copy:
        assert copy.count() == 2000


def test_opening_reports_the_load_of_the_index(tmp_path, heard):
    path = tmp_path / "agent.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        memory.add_many(TEXTS)
    with Memory(path, embedder=WordEmbedder(), progress=heard) as memory:
        heard.check(600)
        assert heard[0][0] < 600
        heard.clear()
        memory.add("one more")
        memory.search("text", limit=3)
        assert heard == []


def test_without_an_embedder_the_first_search_loads_the_index(tmp_path, heard):
    path = tmp_path / "agent.db"
    with Memory(path, embedder=None) as memory:
        memory.add_many(TEXTS)
    with Memory(path, embedder=None, progress=heard) as memory:
        assert heard == []
        memory.search("text 5")
        heard.check(600)


def test_a_failing_function_is_logged_once_and_nothing_is_lost(tmp_path, caplog):
    calls = []

    def failing(done, total):
        calls.append((done, total))
        raise LookupError("the words of text 5")

    path = tmp_path / "copy.db"
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        with caplog.at_level(logging.ERROR):
            memory.add_many(TEXTS, progress=failing)
        (record,) = [each for each in caplog.records if each.name == "mnemic.reporting.progress"]
        assert memory.count() == 600
        memory.backup(path, progress=failing)
    assert calls[0] == (256, 600)
    assert len(calls) == 2
    assert "LookupError at test_progress.py" in record.getMessage()
    assert "the words" not in record.getMessage()
    with Memory(path, embedder=WordEmbedder(), progress=failing) as copy:
        assert copy.count() == 600


def test_what_is_no_progress_is_refused_before_anything_is_stored(tmp_path):
    with pytest.raises(InvalidArgumentError, match="progress must be a function"):
        Memory(tmp_path / "a.db", embedder=None, progress="yes")
    assert not (tmp_path / "a.db").exists()
    with Memory(":memory:", embedder=None) as memory:
        for call in (
            lambda: memory.add_many(["a"], progress=1),
            lambda: memory.export(io.StringIO(), progress="bar"),
            lambda: memory.backup(tmp_path / "b.db", progress=[]),
        ):
            with pytest.raises(InvalidArgumentError, match="progress must be a function"):
                call()
        assert memory.count() == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_on_a_terminal_is_one_line_that_ends_with_the_work(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("mnemic.reporting.progress.SECONDS_BETWEEN_LINES", 0.0)
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many(TEXTS, progress=True)
    first, second, *_, last = sys.stderr.getvalue().split("\r")[1:]
    assert first == "[########            ] add_many: 256 of 600 (42 %)"
    assert second == "[#################   ] add_many: 512 of 600 (85 %)"
    assert last == "[####################] add_many: 600 of 600 (100 %)\n"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("given", [None, False, lambda done: done])
def test_nothing_is_shown_unless_it_is_wanted(given, monkeypatch):
    monkeypatch.setattr(
        "mnemic.reporting.progress.Display", lambda name: pytest.fail(f"shown: {name}")
    )
    with reporting(given, "work") as report:
        report(1, 2)


def test_lines_where_stderr_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr("mnemic.reporting.progress.SECONDS_BETWEEN_LINES", 0.0)
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(TEXTS, progress=True)
    assert "add_many: 600 of 600 (100 %)" in capsys.readouterr().err.splitlines()


def test_lines_are_a_second_apart_and_short_work_prints_none(capsys):
    now = [0.0]
    lines = Display("export", lambda: now[0])
    for at, done in ((0.4, 10), (1.0, 20), (1.9, 30), (2.1, 40), (2.2, 50)):
        now[0] = at
        lines.show(done, 50)
    lines.close()
    short = Display("import", lambda: 0.0)
    short.show(5, 5)
    short.close()
    wanted = ["export: 20 of 50 (40 %)", "export: 40 of 50 (80 %)", "export: 50 of 50 (100 %)"]
    assert capsys.readouterr().err.splitlines() == wanted


@pytest.mark.parametrize("total", [None, 0])
def test_lines_without_a_total(total, capsys):
    now = [0.0]
    lines = Display("import", lambda: now[0])
    now[0] = 1.5
    lines.show(7, total)
    lines.close()
    assert capsys.readouterr().err == "import: 7\n"


class Gone(io.StringIO):
    """A terminal whose reader has left."""

    def write(self, _text):
        raise BrokenPipeError(32, "Broken pipe")

    def isatty(self):
        return True


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("terminal", [Gone, closed, lambda: None])
def test_a_terminal_that_is_gone_stops_no_work(monkeypatch, capfd, terminal):
    stderr = terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr("mnemic.reporting.progress.SECONDS_BETWEEN_LINES", 0.0)
    stdout = sys.stdout
    with Memory(":memory:", embedder=None) as memory:
        assert len(memory.add_many(TEXTS, progress=True)) == len(TEXTS)
        assert memory.verify(progress=True).ok
    assert (sys.stderr, sys.stdout) == (stderr, stdout)
    assert capfd.readouterr().out == ""


def test_a_coroutine_function_is_refused():
    async def later(done, total):
        pass

    class Shown:
        async def show(self, done):
            pass

        async def __call__(self, done):
            pass

    with Memory(":memory:", embedder=None) as memory:
        for function in (later, Shown().show, Shown()):
            with pytest.raises(InvalidArgumentError, match="a plain function, got a coroutine"):
                memory.add_many(TEXTS, progress=function)
        assert memory.count() == 0


def test_a_second_argument_with_a_value_of_its_own_keeps_it(tmp_path):
    numbers, totals = [], []
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(TEXTS)
        memory.export(tmp_path / "a.jsonl", progress=lambda done, kept=numbers: kept.append(done))
        memory.export(tmp_path / "b.jsonl", progress=lambda _, total=None: totals.append(total))
        memory.export(tmp_path / "c.jsonl", progress=lambda *both: totals.append(both[1]))
    assert (numbers, totals) == ([600], [600, 600])


def stored_at(path):
    with Memory(path, embedder=None) as memory:
        memory.add_many(TEXTS)
    return path


def test_a_function_cannot_search_the_memory_that_is_loaded(tmp_path, caplog):
    def search(_done, _total):
        memory.search("text")

    path = stored_at(tmp_path / "agent.db")
    with Memory(path, embedder=None, progress=search) as memory:
        assert len(memory.search("text")) == 10
    assert "failed, and is not called again: BusyThreadError" in caplog.text


def test_a_function_may_close_the_memory_that_is_loaded(tmp_path):
    def close(_done, _total):
        memory.close()

    memory = Memory(stored_at(tmp_path / "agent.db"), embedder=None, progress=close)
    with pytest.raises(StoreClosedError):
        memory.search("text")
