"""Arguments that a memory's call does not take are answered with what to write."""

import asyncio
import re

import pytest

from mnemic import Memory, MemoryEntry, Ranking
from mnemic.errors import ArgumentMismatchError
from mnemic.model.new_entry import FIELDS
from mnemic.reporting.hints import ADVICE, advice
from tests.support.signatures import parameters

ADVISED = [
    (call.removeprefix("Memory."), name)
    for call, names in ADVICE.items()
    for name in names
    if call not in {"Memory", "Memory.*"}
]


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=None) as opened:
        yield opened


@pytest.mark.parametrize(("call", "name"), ADVISED)
def test_the_sentence_about_an_argument_is_in_the_error(memory, call, name):
    assert name not in parameters(getattr(Memory, call))
    with pytest.raises(ArgumentMismatchError) as caught:
        getattr(memory.scoped(user_id="ann"), call)("tea", **{name: "x"})
    head = f"ScopedMemory.{call}() has no argument '{name}'; "
    assert str(caught.value) == head + advice(f"Memory.{call}", name)


@pytest.mark.parametrize("call", ["add", "add_many", "search", "context", "recent"])
def test_a_project_is_bound(memory, call):
    with pytest.raises(ArgumentMismatchError, match=rf"memory.scoped\(project_id=…\).{call}\(…\)"):
        getattr(memory, call)("tea", project_id="p")


def test_what_the_sentences_say_is_taken():
    sentences = {name: ADVICE[f"Memory.{call}"][name] for call, name in ADVISED if call == "add"}
    begin = "it is a field of an entry"
    fields = {name for name, said in sentences.items() if said.startswith(begin)}
    assert fields < set(MemoryEntry.__struct_fields__)
    of_many = {name for name, said in sentences.items() if said.startswith("add_many takes it")}
    assert of_many <= parameters(Memory.add_many)
    assert "embed" in FIELDS
    assert Ranking(min_similarity=0.5).min_similarity == 0.5
    assert "embeddings" in parameters(Memory.get_many)
    assert "filters" in parameters(Memory.count)
    with Memory(":memory:", embedder=None) as memory:
        memory.add("tea")
        assert memory.search("tea", ranking={"relevance": 0.5, "recency": 0.5})
        found = memory.retrieve("tea", total=True, on_embed_error="raise")
        assert found.total_matches == 1


def test_awaited_calls_get_it_too_and_those_of_other_classes_do_not(memory):
    asynchronous = memory.aio
    with pytest.raises(ArgumentMismatchError, match=re.escape("AsyncMemory.search()")) as caught:
        asyncio.run(asynchronous.search("tea", weights={"recency": 1}))
    assert "ranking={'relevance': …, 'recency': …}" in str(caught.value)
    with pytest.raises(ArgumentMismatchError, match=r"Ranking\(\) has no argument 'project_id'"):
        Ranking(project_id="p")
    assert advice("Memory.search", "colour") is None
