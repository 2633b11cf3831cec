"""Ctrl-C at any moment: it arrives as KeyboardInterrupt, and the memory works afterwards."""

import json
import subprocess
import sys

import numpy as np
import pytest

from mnemic import VectorMap
from mnemic._core import MemoryIndex
from mnemic.model import KEYWORD, Scope

PROGRAM = """
import json, random, signal, sys, time, warnings
from pathlib import Path
import numpy as np
from mnemic import Memory
from mnemic.model import MemoryQuery

warnings.simplefilter("ignore", RuntimeWarning)  # of coroutines that were interrupted at birth
sys.unraisablehook = lambda _: None

class Embedder:
    model, dimensions, max_tokens = "e", 16, None

    def embed(self, texts, /):
        vectors = [np.random.default_rng(len(text)).standard_normal(16) for text in texts]
        return np.array(vectors, dtype=np.float32)

memory = Memory(Path(sys.argv[1]) / "memories.db", embedder=Embedder())
stored = memory.add_many([f"Ana told Bo of tea {n} and word{n}" for n in range(1000)])
one, other = stored[5].id, stored[6].id
filters = {"importance": {"gte": 0.1}, "content": {"contains": "a"}}
added = [0]

def add():
    added[0] += 1
    memory.add(f"Ana has {added[0]} boats", user_id="u", check="contradictions")

verbs = {
    "search": lambda: memory.search("tea of Ana", filters=filters, since="2020-01-01"),
    "retrieve": lambda: memory.retrieve(
        MemoryQuery(query="tea word7", expand_query=True, use_cache=False)
    ),
    "recall": lambda: memory.recall("tea"),
    "recent": lambda: memory.recent(),
    "context": lambda: memory.context("tea of Ana"),
    "contradictions": lambda: memory.contradictions("Ana told Bo of tea 8"),
    "get": lambda: memory.get(one),
    "list": lambda: memory.list(limit=20),
    "add": add,
    "update": lambda: memory.update(one, importance=0.4),
    "link": lambda: memory.link(one, other, "related"),
    "links": lambda: memory.links(one),
    "delete": lambda: memory.delete_all(user_id="u"),
}
random.seed(7)
before = [hit.id for hit in memory.search("tea word77", search_type="keyword")]
signal.signal(signal.SIGALRM, signal.default_int_handler)  # what Ctrl-C does, from a timer
told = {}
for name, call in verbs.items():
    call()
    begun = time.perf_counter()
    call()
    usual = time.perf_counter() - begun
    told[name] = {}
    for _ in range(25):
        outcome = "answer"
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 1.2 * usual))
            try:
                call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            outcome = "KeyboardInterrupt"
        except BaseException as error:
            outcome = repr(error)
        told[name][outcome] = told[name].get(outcome, 0) + 1
    assert [hit.id for hit in memory.search("tea word77", search_type="keyword")] == before
number = memory.add("Cleo has a kite").id
assert memory.get(number).content == "Cleo has a kite"
memory.close()
print(json.dumps(told))
"""


def test_an_interrupt_arrives_as_one_wherever_it_comes_and_the_memory_works_on(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert {outcome for of_verb in told.values() for outcome in of_verb} <= {
        "KeyboardInterrupt",
        "answer",
    }
    interrupted = sum(of_verb.get("KeyboardInterrupt", 0) for of_verb in told.values())
    assert interrupted > len(told) * 5


class Interrupted:
    """Stands for a value whose reading runs Python code, which is where Ctrl-C comes."""

    def __init__(self, error):
        self.error = error

    @property
    def value(self):
        raise self.error

    def __index__(self):
        raise self.error

    def __array__(self, dtype=None, copy=None):
        raise self.error


class InterruptedSearch:
    """A search in which reading one field is interrupted."""

    limit, offset, ranking, text = 3, 0, KEYWORD, "tea"
    filters = min_similarity = min_score = min_salience = deadline = evidence = scale = None
    exclude, with_total, explain, is_relative, takes_partial = (), False, False, False, False

    def __init__(self, error):
        self.order = Interrupted(error)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), MemoryError()])
def test_what_interrupts_a_conversion_is_not_turned_into_another_error(error):
    index, vectors = MemoryIndex(None), VectorMap(2)
    for call in (
        lambda: index.rank(InterruptedSearch(error), Scope("a"), 0),
        lambda: vectors.search(Interrupted(error)),
        lambda: vectors.upsert([Interrupted(error)], np.ones((1, 2), np.float32)),
        lambda: Interrupted(error) in vectors,
    ):
        with pytest.raises(type(error)):
            call()


def test_a_field_of_the_wrong_type_is_still_a_type_error():
    with pytest.raises(TypeError):
        MemoryIndex(None).rank(InterruptedSearch(TypeError()), Scope("a"), 0)
    assert "seven" not in VectorMap(2)
