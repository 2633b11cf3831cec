"""A search that is not done in time returns what is complete where it is told to."""

import time

import pytest

from mnemic import Memory
from mnemic.errors import DeadlineExceededError, InvalidArgumentError
from mnemic.index import RankedPage, RankInputs
from mnemic.model import KEYWORD, SEMANTIC, SearchResults, Weights
from mnemic.model.rows import State
from mnemic.model.search import Search
from mnemic.repository.find import READ_AT_ONCE
from tests.support.embedders import WordEmbedder


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add("tea at noon")
        yield memory


def test_a_treatment_of_timeouts_is_one_of_two(memory):
    with pytest.raises(InvalidArgumentError, match="on_timeout must be one of raise, partial"):
        memory.search("tea", timeout=1, on_timeout="stop")


def test_marks_of_results_decide_equality_and_stay_in_slices(memory):
    hits = list(memory.search("tea"))
    partial, whole = SearchResults(hits, partial=True), SearchResults(hits)
    assert partial != whole
    assert partial[:1].partial
    assert not whole[:1].partial


class Passing:
    """A deadline that passes when an index has ranked so often."""

    def __init__(self, monkeypatch, rankings):
        self.deadline, self.left = time.monotonic() + 3600, rankings
        self.monkeypatch = monkeypatch

    def watch(self, index):
        rank = index.rank

        def ranked(*given):
            page = rank(*given)
            self.left -= 1
            if self.left == 0:
                self.monkeypatch.setattr(time, "monotonic", lambda: self.deadline + 1)
            return page

        self.monkeypatch.setattr(index, "rank", ranked)


def search_of(passing, **options):
    given = {"text": "tea", "limit": 1000, "ranking": KEYWORD, **options}
    return Search(**given, deadline=passing.deadline, takes_partial=True)


def test_entries_that_were_read_are_returned(memory, monkeypatch):
    memory.add_many([f"tea number {number}" for number in range(2 * READ_AT_ONCE)])
    passing = Passing(monkeypatch, 1)
    search = search_of(passing)
    whole = memory.repository.finder.find(memory.scope, search)
    passing.watch(memory.repository._indexes.active.index)
    found = memory.repository.finder.find(memory.scope, search)
    assert found.marks.partial
    assert found.hits == whole.hits[:READ_AT_ONCE]
    assert list(found.entries) == [hit.row for hit in found.hits]
    assert (len(whole.hits), whole.marks.partial) == (2 * READ_AT_ONCE + 1, False)


def test_few_entries_are_read_after_the_deadline_and_miss_nothing(memory, monkeypatch):
    passing = Passing(monkeypatch, 1)
    passing.watch(memory.repository._indexes.active.index)
    found = memory.repository.finder.find(memory.scope, search_of(passing))
    assert ([hit.row for hit in found.hits], found.marks.partial) == ([1], False)


STATES = (State.ACTIVE, State.INACTIVE, State.DELETED)


@pytest.mark.parametrize(("rankings", "rows"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3])])
def test_states_that_were_ranked_are_returned(memory, monkeypatch, rankings, rows):
    memory.update(memory.add("tea at four").id, status="archived")
    memory.delete(memory.add("tea at six").id)
    passing = Passing(monkeypatch, rankings)
    whole = memory.repository.finder.find(
        memory.scope, search_of(passing, states=STATES, with_total=True)
    )
    assert (len(whole.hits), whole.total) == (3, 3)
    for state in STATES:
        passing.watch(memory.repository._indexes.of(state).index)
    found = memory.repository.finder.find(
        memory.scope, search_of(passing, states=STATES, with_total=True)
    )
    assert sorted(hit.row for hit in found.hits) == rows
    assert found.marks.partial == (rankings < 3)
    assert found.total == (3 if rankings == 3 else None)
    assert [hit for hit in whole.hits if hit.row in rows] == found.hits


def test_matches_are_not_divided_by_the_best_of_some_states(memory, monkeypatch):
    memory.update(memory.add("tea at four").id, status="archived")
    passing = Passing(monkeypatch, 1)
    search = search_of(passing, states=STATES[:2], is_relative=True)
    assert len(memory.repository.finder.find(memory.scope, search).hits) == 2
    for state in STATES[:2]:
        passing.watch(memory.repository._indexes.of(state).index)
    found = memory.repository.finder.find(memory.scope, search)
    assert (found.hits, found.marks.partial) == ([], True)


@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.parametrize("ranking", [KEYWORD, SEMANTIC])
def test_the_core_gives_up_at_a_deadline(memory, ranking, is_relative):
    memory.search("tea")
    index = memory.repository._indexes.active.index
    vectors = memory.embedder.embed(["tea"]) if ranking is SEMANTIC else None
    inputs = RankInputs(memory.scope, 0, vectors)
    search = Search(
        text="tea", limit=3, ranking=ranking, deadline=time.monotonic(), is_relative=is_relative
    )
    with pytest.raises(DeadlineExceededError, match="its deadline passed; allow more time"):
        index.rank(search, inputs)
    given = {name: getattr(search, name) for name in search.__struct_fields__}
    partial = Search(**{**given, "takes_partial": True})
    page = index.rank(partial, inputs)
    assert page == RankedPage([], None, partial=True, share=page.share)
    in_time = Search(**{**given, "deadline": time.monotonic() + 3600})
    assert len(index.rank(in_time, inputs).ranked) == 1


def test_a_deadline_beyond_all_clocks_is_none(memory):
    index = memory.repository._indexes.active.index
    memory.search("tea")
    weights = Weights(relevance=0, importance=1)
    ranking = KEYWORD.__class__(weights=weights)
    search = Search(text=None, limit=3, ranking=ranking, deadline=1e300)
    assert len(index.rank(search, RankInputs(memory.scope, 0)).ranked) == 1
