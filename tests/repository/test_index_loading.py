"""Lists by filter load the index once the store's answers have taken as long as that takes."""

import itertools

import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import StoreCorruptError
from mnemic.repository import listing
from mnemic.store.operations import RowsSince
from tests.support.failing_embedders import FailingEmbedder
from tests.support.operations import replace_operation

CALL_SECONDS = 0.004
CALLS = int(listing.LOADING_SECONDS * listing.LEAST_LOADED / CALL_SECONDS) + 1


@pytest.fixture
def memory(path, monkeypatch):
    """Return a memory without an embedder; each answer of its store takes 4 ms."""
    with Memory(path, embedder=None) as opened:
        opened.add_many([{"content": f"note {at}", "category": f"c{at % 3}"} for at in range(9)])
        ticks = itertools.count()
        monkeypatch.setattr(listing, "perf_counter", lambda: next(ticks) * CALL_SECONDS)
        yield opened


def is_loaded(memory):
    return memory.repository._indexes.active.is_loaded


ASKED = {
    "list": lambda memory: [one.content for one in memory.list(filters={"category": "c1"})],
    "count": lambda memory: memory.count(filters={"category": "c1"}),
    "distinct": lambda memory: memory.distinct("category"),
}


@pytest.mark.parametrize("call", ASKED.values(), ids=ASKED)
def test_the_index_is_loaded_after_some_answers_and_gives_the_same(memory, call):
    first = call(memory)
    answers = [(call(memory), is_loaded(memory)) for _ in range(CALLS + 1)]
    assert all(answer == first for answer, _ in answers)
    assert [loaded for _, loaded in answers].index(True) == CALLS - 2
    memory.add(MemoryEntry("another", category="c1"))
    assert call(memory) != first


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.list(),
        lambda memory: memory.list(filters={"status": "archived"}),
        lambda memory: memory.list(filters={"category": "c1"}, include_deleted=True),
        lambda memory: memory.get_many([]),
    ],
)
def test_what_the_index_does_not_answer_faster_never_loads_it(memory, call):
    for _ in range(3 * CALLS):
        call(memory)
    assert not is_loaded(memory)


@pytest.mark.usefixtures("memory")
def test_loading_embeds_nothing_and_is_not_stopped_by_a_failing_embedder(path):

    with Memory(path, embedder=FailingEmbedder(is_down=True)) as other:
        for _ in range(2 * CALLS):
            assert other.count(filters={"category": "c1"}) == 3
        assert is_loaded(other)
        assert other.search("note 4", search_type="keyword")[0].content == "note 4"


def test_a_load_that_fails_keeps_the_answer_and_is_not_repeated_at_once(memory, monkeypatch):
    loads = []

    def failing(*given, **named):
        loads.append((given, named))
        raise StoreCorruptError("damaged")

    replace_operation(monkeypatch, memory.repository._store, RowsSince, failing)
    answers = [memory.count(filters={"category": "c1"}) for _ in range(2 * CALLS)]
    assert set(answers) == {3}
    assert not is_loaded(memory)
    assert 1 <= len(loads) <= 2
