"""Calls under a limit of memory: an answer or MemoryError, and the index as it was."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")

BEGIN = """
import json, resource, sys
from contextlib import contextmanager
import numpy as np
from mnemic import Memory, VectorMap, _core
from mnemic.model import MemoryQuery
from mnemic.model.filter import parse_filter

MEGABYTE = 1 << 20
numbers = np.random.default_rng(7)

@contextmanager
def limited(megabytes):
    # Whatever the allocator has kept is taken first, so that only so much is left in fact.
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + 64 * MEGABYTE
    ballast = []
    resource.setrlimit(resource.RLIMIT_AS, (limit, -1))
    try:
        for size in (MEGABYTE, MEGABYTE // 16):
            try:
                while True:
                    ballast.append(bytes(size))
            except MemoryError:
                pass
        del ballast[:int(megabytes)], ballast[len(ballast) - 8:]
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))

def outcome(megabytes, call):
    try:
        with limited(megabytes):
            call()
    except MemoryError:
        return "MemoryError"
    return "answer"
"""


def outcomes(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


STEPS = [1, 3, 8, 20, 50]

VECTORS = """
from pathlib import Path

held = VectorMap(64)
held.upsert(np.arange(4000), numbers.standard_normal((4000, 64), dtype=np.float32))
query = numbers.standard_normal(64, dtype=np.float32)
values = {
    "row": 1, "id": bytes(16), "created_at": 0, "updated_at": 0, "memory_type": 0, "status": 0,
    "importance": 0.5, "access_count": 0, "version": 1, "is_sensitive": 0,
    "content": "\\ufdfa" * 100_000, "metadata": '{"k":[' + "1," * 200_000 + "1]}",
}
record = tuple(values.get(column) for column in _core.RECORD_COLUMNS)
where = {"OR": [{"content": {"contains": "x"}}, {"metadata.k": {"all": [1, 2]}}]}
either = parse_filter(where)
rows = numbers.standard_normal((100_000, 64), dtype=np.float32)
ids = np.arange(100_000)
calls = {
    "upsert": lambda: held.upsert(ids, rows),
    "replace": lambda: held.replace(ids, rows),
    "remove": lambda: held.remove(ids + 4000),
    "get": lambda: held.get(np.arange(4000)),
    "search": lambda: held.search(query, k=4000),
    "batch": lambda: held.search(rows[:3000], k=1000),
    "count": lambda: held.count(rows[:1000], min_score=0.0),
    "select": lambda: held.select(ids),
    "prior": lambda: held.prior(ids, rows[:, 0]),
    "fold": lambda: _core.fold("\\ufdfa" * 100_000),
    "fingerprint": lambda: _core.fingerprint("A\\u00df\\u0301" * 200_000),
    "fingerprints": lambda: _core.fingerprint_digests(["A\\u0301" * 200_000] * 3),
    "matches": lambda: _core.matches(either, [record] * 3),
    "estimate_tokens": lambda: _core.estimate_tokens("\\u6c49" * 200_000),
}
path, copy = Path(sys.argv[2]) / "map", Path(sys.argv[2]) / "copy"
VectorMap.from_rows(ids[:30_000], rows[:30_000]).save(path)
in_file = VectorMap.load(path)
calls |= {
    "range": lambda: held.range_search(rows[:300], min_score=-1.0),
    "range of a file": lambda: in_file.range_search(rows[:20], min_score=-1.0),
    "load": lambda: VectorMap.load(path),
    "save": lambda: held.save(copy),
    "save of a file": lambda: in_file.save(copy),
}
before = held.search(query, k=10)
held.get(ids[:10])
told = {}
for name, call in calls.items():
    told[name] = []
    for megabytes in json.loads(sys.argv[1]):
        told[name].append(outcome(megabytes, call))
        if told[name][-1] == "answer" and name in ("upsert", "replace"):
            raise SystemExit(f"{name} was to find no memory")
        after = held.search(query, k=10)
        assert after.ids.tolist() == before.ids.tolist()
        assert after.scores.tolist() == before.scores.tolist()
        assert len(held) == 4000
        if told[name][-1] == "answer" and name.startswith("save"):
            assert len(VectorMap.load(copy)) in (4000, 30_000)
            copy.unlink()
        assert [each.name for each in path.parent.iterdir()] == ["map"]
print(json.dumps(told))
"""


def test_every_call_of_the_core_gives_an_answer_or_a_memory_error_and_changes_nothing_half(
    tmp_path,
):
    told = outcomes(VECTORS, STEPS, tmp_path)
    saves = ("save", "save of a file")
    for name in ("upsert", "replace", "batch", "range", "load", "fold", "matches", *saves):
        assert told[name][0] == "MemoryError", name
    # What the allocator keeps of the ballast is not free for the map of a file.
    for name in ("get", "search", "count", "range of a file", "estimate_tokens", *saves):
        assert told[name][-1] == "answer", name


MEMORY = """
from pathlib import Path
from mnemic.embed import MiniLmEmbedder

class Embedder:
    model, dimensions, max_tokens = "e", 32, None

    def embed(self, texts, /):
        return numbers.standard_normal((len(texts), 32), dtype=np.float32)

embedder, total = (MiniLmEmbedder(), 400) if sys.argv[3] == "minilm" else (Embedder(), 4000)
memory = Memory(Path(sys.argv[2]) / "memories.db", embedder=embedder)
memory.add_many([f"Ana told Bo of tea {n} and word{n}" for n in range(total)])
words = " ".join(f"{chr(97 + n % 26)}{n:x}{chr(97 + n % 23)}" for n in range(10 * total))
count = [0]

def many():
    count[0] += 1
    memory.add_many([f"boat {n} of {count[0]}" for n in range(total // 2)], user_id="other")

def long():
    count[0] += 1
    memory.add(f"boat {words} {count[0]}", user_id="other")

calls = {
    "many": many,
    "long": long,
    "search": lambda: memory.search("tea of Ana", limit=4000),
    "retrieve": lambda: memory.retrieve(
        MemoryQuery(query="tea word7", limit=1000, expand_query=True, use_cache=False)
    ),
    "recall": lambda: memory.recall("tea", limit=1000),
    "context": lambda: memory.context("tea", limit=1000, max_tokens=100_000),
    "contradictions": lambda: memory.contradictions(f"tea of {words}"),
    "list": lambda: memory.list(limit=1000),
    "filtered list": lambda: memory.list(filters={"content": {"contains": "TEA"}}, limit=1000),
}
before = [hit.id for hit in memory.search("tea word77", search_type="keyword")]
told = {}
for name, call in calls.items():
    told[name] = []
    for megabytes in json.loads(sys.argv[1]):
        told[name].append(outcome(megabytes, call))
        after = [hit.id for hit in memory.search("tea word77", search_type="keyword")]
        assert after == before, name
stored = memory.count(user_id="other")
found = len(memory.search("boat", user_id="other", limit=10**6, search_type="semantic"))
assert found == stored, (found, stored, told)
memory.close()
print(json.dumps(told))
"""


@pytest.mark.parametrize("embedder", ["of Python", "minilm"])
def test_every_verb_gives_an_answer_or_a_memory_error_and_the_memory_answers_as_before(
    tmp_path, embedder
):
    told = outcomes(MEMORY, STEPS, tmp_path, embedder)
    assert told["search"][0] == "MemoryError"
    assert {last for *_, last in told.values()} == {"answer"}
