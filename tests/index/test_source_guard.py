"""A candidate source behind an index: changes reach it, and what fails costs no answer."""

from tests.index.test_exact_source import fill, hits_of, open_memory
from tests.support.candidate_sources import FailingSource, Made
from tests.support.exact_source import ExactSource

__all__ = ["open_memory"]


def test_what_is_stored_changed_and_deleted_reaches_the_source(open_memory, tmp_path):
    path = tmp_path / "memories.db"
    made = Made(ExactSource)
    memory = open_memory(path, make_source=made)
    fill(memory)
    kept = memory.add("zeppelin over Oslo")
    changed = memory.add("nothing of interest")
    gone = memory.add("zeppelin over Rome")
    memory.update(changed.id, content="zeppelin over Lima")
    memory.delete(gone.id)
    call = {"search_type": "semantic", "limit": 2}
    found = memory.search("zeppelin over", **call)
    assert {hit.id for hit in found} == {kept.id, changed.id}
    assert found.approximate
    other = open_memory(path, make_source=made)
    assert hits_of(other.search("zeppelin over", **call)) == hits_of(found)
    assert len(made.sources) >= 2
    memory.restore(gone.id)
    again = other.search("zeppelin over", search_type="semantic", limit=3)
    assert {hit.id for hit in again} == {kept.id, changed.id, gone.id}


def test_a_source_that_fails_costs_no_answer(open_memory):
    made = Made(FailingSource)
    memory = open_memory(make_source=made)
    fill(memory)
    exact = open_memory(make_source=None)
    fill(exact)
    found = memory.search("red sofa", explain=True)
    assert made.last.requests
    assert not found.approximate
    assert hits_of(found) == hits_of(exact.search("red sofa", explain=True))
