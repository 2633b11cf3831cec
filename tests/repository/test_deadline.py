"""A search gives up at its deadline, between its steps."""

import time

import pytest

from mnemic import Memory
from mnemic.errors import DeadlineExceededError, InvalidArgumentError
from mnemic.model import KEYWORD
from mnemic.model.rows import State
from mnemic.model.search import Search
from mnemic.store.operations import EntriesByRow, RowsSince
from tests.support.embedders import WordEmbedder
from tests.support.operations import replace_operation


class Slow(WordEmbedder):
    """Takes longer than the deadline to embed a query."""

    seconds = 0.0

    def embed(self, texts):
        time.sleep(self.seconds)
        return super().embed(texts)


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=Slow()) as memory:
        memory.add("tea at noon")
        yield memory


def test_a_search_gives_up_after_an_embedder_that_was_too_slow(memory):
    memory.embedder.seconds = 0.05
    with pytest.raises(DeadlineExceededError):
        memory.search("tea", timeout=0.04)
    memory.embedder.seconds = 0.0
    assert len(memory.search("tea", timeout=60)) == 1


@pytest.mark.parametrize("is_archived", [False, True])
def test_nothing_is_read_after_a_ranking_that_was_too_slow(memory, monkeypatch, is_archived):
    repository, reads = memory.repository, []
    kept = memory.add("tea at four")
    if is_archived:
        memory.update(kept.id, status="archived")
    states = (State.ACTIVE, State.INACTIVE) if is_archived else (State.ACTIVE,)
    deadline = time.monotonic() + 60
    search = Search(text="tea", limit=5, ranking=KEYWORD, states=states, deadline=deadline)
    assert repository.finder.find(memory.scope, search).hits
    index = repository._indexes.of(states[-1]).index
    rank = index.rank

    def slow(*given):
        page = rank(*given)
        monkeypatch.setattr(time, "monotonic", lambda: deadline + 1)
        monkeypatch.setattr(repository._store, "read", lambda *_, **__: reads.append(1))
        return page

    monkeypatch.setattr(index, "rank", slow)
    with pytest.raises(DeadlineExceededError):
        repository.finder.find(memory.scope, search)
    assert reads == []


def test_the_store_reads_changes_and_memories_until_the_deadline_alone(tmp_path, monkeypatch):
    deadlines = {}

    def recorded(name):
        def call(read, *given, deadline, **named):
            deadlines[name] = deadline
            return read(*given, deadline=deadline, **named)

        return call

    with Memory(tmp_path / "a.db", embedder=None) as memory:
        memory.search("tea", search_type="keyword")  # an index is loaded whatever the deadline
        with Memory(tmp_path / "a.db", embedder=None) as other:
            other.add("tea at four")
        store = memory.repository._store
        replace_operation(monkeypatch, store, RowsSince, recorded("rows_since"))
        replace_operation(monkeypatch, store, EntriesByRow, recorded("entries"))
        deadline = time.monotonic() + 60
        search = Search(text="tea", limit=5, ranking=KEYWORD, deadline=deadline)
        assert len(memory.repository.finder.find(memory.scope, search).hits) == 1
    assert deadlines == {"rows_since": deadline, "entries": deadline}


@pytest.mark.parametrize("timeout", [-1, -0.001, "1", True, float("nan"), float("inf"), [1]])
def test_a_timeout_is_a_number_of_seconds(memory, timeout):
    with pytest.raises(InvalidArgumentError, match="timeout"):
        memory.search("tea", timeout=timeout)


def test_a_timeout_of_thousands_of_digits_is_an_error_like_any_other(memory):
    with pytest.raises(InvalidArgumentError, match="timeout must be a number of seconds"):
        memory.search("tea", timeout=10**5000)
