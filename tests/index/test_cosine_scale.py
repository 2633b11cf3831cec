"""The scale of cosines: that of two memories of a user, at every door, whatever else is stored."""

import asyncio
import math
import re
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory, MemoryEntry
from mnemic.compat import AsyncLongTermMemory, MemoryRetriever, RetrievalService
from mnemic.index import NativeIndex
from mnemic.model import Scope
from mnemic.policy import RetrievalPolicy, RetrievalRequest
from tests.support.rows import DIM, NOW, batch, record
from tests.support.tiers import examples

ANGLES = st.lists(st.floats(0, 3.1), min_size=30, max_size=40)
SCOPE = Scope("a", user_id="ann")


def index_of(vectors, **owners):
    """Return an index of Ann's rows; those named in `owners` belong to others."""
    index = NativeIndex(DIM)
    rows = [record(number, owners.get(f"row{number}", "ann")) for number in vectors]
    index.apply(batch(rows, vectors=vectors))
    return index


def scale_of(vectors, **owners):
    """Return the scale of Ann's rows, and the sum of their directions."""
    index = index_of(vectors, **owners)
    common = index.scale(SCOPE, NOW).common
    return index.scale(SCOPE, NOW).scale, None if common is None else common.tolist()


def turned(angles):
    return {number: (math.cos(angle), math.sin(angle)) for number, angle in enumerate(angles, 1)}


@pytest.mark.requirement("C212")
@examples(100)
@given(ANGLES)
def test_the_mean_is_that_of_all_pairs_and_the_floor_lower_among_few(angles):
    found, common = scale_of(turned(angles))
    if len(angles) < 32:
        assert (found, common) == (None, None)
        return
    pairs = [math.cos(a - b) for at, a in enumerate(angles) for b in angles[:at]]
    assert common == pytest.approx(np.sum(list(turned(angles).values()), axis=0), abs=1e-4)
    assert found.mean == pytest.approx(min(np.mean(pairs), 1 - 1e-5), abs=1e-5)
    fewer = 0.1 * math.log(100 / len(angles))
    assert found.floor == pytest.approx(found.mean - (1 - found.mean) * (0.1 + fewer), abs=1e-9)
    assert found.lower_limit == pytest.approx(found.mean - 3 * found.spread)


@pytest.mark.requirement("C212")
@examples(50)
@given(ANGLES, st.randoms(use_true_random=False))
def test_the_scale_depends_on_no_order_and_on_no_other_user(angles, chance):
    vectors = turned(angles)
    order = list(vectors.items())
    chance.shuffle(order)
    assert scale_of(dict(order)) == scale_of(vectors)
    beside = {**dict(order), 90: (1, 0), 91: (0, 1)}
    assert scale_of(beside, row90="bob", row91=None) == scale_of(vectors)


@pytest.mark.requirement("C212")
@examples(50)
@given(st.lists(st.floats(0, 3.1), min_size=100, max_size=200))
def test_the_spread_is_nearly_that_of_all_pairs(angles):
    found, _ = scale_of(turned(angles))
    cosines = np.cos(np.subtract.outer(angles, angles))[np.triu_indices(len(angles), 1)]
    assert found.spread == pytest.approx(np.std(cosines), abs=0.15)


@pytest.mark.requirement("C212")
def test_a_kept_scale_is_that_of_the_rows_as_they_are():
    index, fresh = NativeIndex(DIM), NativeIndex(DIM)
    vectors = turned([0.05 * at for at in range(60)])
    rows = [record(number, "ann", expires_at=NOW + 10 * number) for number in vectors]
    index.apply(batch(rows[:40], vectors=dict(list(vectors.items())[:40])))
    first = index.scale(SCOPE, NOW).scale
    assert index.scale(SCOPE, NOW).scale is first, "nothing is computed twice"
    index.apply(batch(rows[40:], since=1, seq=2, vectors=dict(list(vectors.items())[40:])))
    fresh.apply(batch(rows, vectors=vectors))
    for now in (NOW, NOW + 95, NOW + 205, NOW + 95, NOW + 10_000):
        assert index.scale(SCOPE, now).scale == fresh.scale(SCOPE, now).scale
    assert index.scale(SCOPE, NOW).scale != first
    assert index.scale(SCOPE, NOW + 10_000).scale is None, "all have expired"


SAME_WORDS = {"motors": "engines"}
SIZE = 128


def directions(texts):
    """Return vectors of unit length in the same direction in every run."""
    found = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=SIZE) for text in texts]
    return np.array(found) / np.linalg.norm(found, axis=1, keepdims=True)


class Words:
    """Sums of vectors of words, two of which mean the same."""

    model, dimensions = "words", SIZE

    def embed(self, texts):
        words = [[SAME_WORDS.get(word, word) for word in text.lower().split()] for text in texts]
        sums = np.array([directions(each).sum(axis=0) for each in words])
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)


class Squeezed(Words):
    """Cosines are .7 and a fifth of those of words, by further dimensions."""

    model, dimensions = "squeezed", 2 * SIZE + 1

    def embed(self, texts):
        own = directions([f"own {text}" for text in texts])
        same = np.full((len(texts), 1), 0.7**0.5)
        return np.hstack([0.2**0.5 * super().embed(texts), same, 0.1**0.5 * own])


class Projected(Words):
    """Fewer dimensions, at random."""

    model, dimensions = "projected", 96

    def embed(self, texts):
        return super().embed(texts) @ np.random.default_rng(3).normal(size=(SIZE, 96))


EMBEDDERS = [Words, Squeezed, Projected]
VERBS = ("repairs", "paints", "sells", "borrows", "collects")
THINGS = ("engines", "boats", "candles", "drums", "falcons", "guitars", "hammers", "kites")
TEXTS = [f"{verb} {thing}" for thing in THINGS for verb in VERBS]
NONSENSE = ("zewqah ju", "kype mowgeniz", "ruredpas")
QUERIES = ("motors", "repairs motors", "collects engines")
"""Of one no memory has a word, of one some have one, of one a memory has all."""


def contents(entries):
    return [entry.content for entry in entries]


def by_policy(memory, query):
    request = RetrievalRequest(message=query, user_id="u", session_id="s")
    return contents(RetrievalPolicy(memory).run(request).memories)


def by_long_term_memory(memory, query):
    async def found():
        with TemporaryDirectory() as folder:
            exported = Path(folder) / "all.jsonl"
            memory.export(exported, user_id="u")
            async with AsyncLongTermMemory(":memory:", embedder=memory.embedder) as other:
                await other.import_(exported)
                return contents(await other.search_semantic(query, user_id="u"))

    return asyncio.run(found())


EVIDENCE_DOORS = {
    "search": lambda memory, query: contents(memory.search(query, user_id="u", min_score="auto")),
    "context": lambda memory, query: contents(memory.context(query, user_id="u").memories),
    "policy": by_policy,
}
DOORS = EVIDENCE_DOORS | {
    "retrieve": lambda memory, query: contents(memory.retrieve(query, user_id="u")),
    "retrieve by meaning": lambda memory, query: contents(
        memory.retrieve(query, user_id="u", search_type="semantic")
    ),
    "recall": lambda memory, query: contents(MemoryRetriever(memory).recall(query, user_id="u")),
    "search_semantic": by_long_term_memory,
}


@pytest.fixture(params=EMBEDDERS, scope="module")
def memory(request):
    """Return forty memories, of which those about engines are the oldest."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    with Memory(":memory:", embedder=request.param(), track_access=False) as memory:
        memory.add_many(
            [
                {"content": text, "user_id": "u", "created_at": begin + timedelta(days=at)}
                for at, text in enumerate(TEXTS)
            ]
        )
        yield memory


@pytest.mark.requirement("C212", "R030", "R125", "R287")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("query", QUERIES)
def test_every_door_finds_the_right_memory_first(memory, door, query):
    found = DOORS[door](memory, query)
    assert found, "no answer of an embedder without floors is empty"
    wanted = query.replace("motors", "engines")
    assert wanted in found[0]


@pytest.mark.requirement("C212", "R030")
@pytest.mark.parametrize("door", EVIDENCE_DOORS)
@pytest.mark.parametrize("query", NONSENSE)
def test_every_door_that_needs_evidence_finds_nothing_by_nonsense(memory, door, query):
    assert not DOORS[door](memory, query)


LINES = [f"{at} sensor reads {20 + at % 9} degrees in the hall of engines" for at in range(40)]


@pytest.mark.requirement("C212", "R030")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("make", EMBEDDERS)
def test_lines_that_are_all_alike_are_found_at_every_door(make, door):
    with Memory(":memory:", embedder=make()) as memory:
        memory.add_many(LINES, user_id="u")
        assert DOORS[door](memory, "motors reads warm")


@pytest.mark.requirement("C212")
@pytest.mark.parametrize("make", EMBEDDERS)
def test_cosines_of_lines_that_are_all_alike_count_as_they_are_on_every_page(make):
    with Memory(":memory:", embedder=make()) as memory:
        memory.add_many(LINES, user_id="u")
        whole = memory.search("motors reads warm", user_id="u", limit=30)
        assert all(hit.score > 0 for hit in whole)
        pages = [
            memory.search("motors reads warm", user_id="u", limit=10, offset=offset)
            for offset in (0, 10, 20)
        ]
        assert [hit for page in pages for hit in contents(page)] == contents(whole)


@pytest.mark.requirement("C212")
def test_a_hint_says_which_cosine_a_default_became(memory):
    default = memory.retrieve("motors", user_id="u", search_type="semantic")
    least = float(re.search(r"cosine is (-?\d\.\d\d)", default.hint)[1])
    assert all(hit.scores.similarity >= least - 0.005 for hit in default)
    assert MemoryRetriever(memory).recall("motors", user_id="u").hint == default.hint
    service = RetrievalService(memory, similarity_floor=0.1)
    assert service.retrieve("motors", user_id="u", search_type="semantic").hint is None


@pytest.mark.requirement("C212")
def test_similarities_in_results_are_cosines(memory):
    vectors = memory.embedder.embed(["motors", *TEXTS])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = dict(zip(TEXTS, vectors[1:] @ vectors[0], strict=True))
    for hit in memory.search("motors", user_id="u"):
        assert hit.similarity == pytest.approx(cosines[hit.entry.content], abs=1e-5)
    for hit in memory.retrieve("motors", user_id="u"):
        shown = max(0, cosines[hit.entry.content])
        assert hit.scores.similarity == pytest.approx(shown, abs=1e-5)


def opened(make, **floors):
    """Return a memory of forty texts whose embedder names these floors."""
    embedder = make()
    for name, value in floors.items():
        setattr(embedder, name, value)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    memory = Memory(":memory:", embedder=embedder, track_access=False, clock=lambda: now)
    # The scale depends on the ids.
    entries = [MemoryEntry(text, id=UUID(int=at)) for at, text in enumerate(TEXTS, 1)]
    memory.add_many(entries, user_id="u")
    return memory


def scores(memory, query, **options):
    hits = memory.search(query, user_id="u", limit=40, **options)
    return [(hit.content, hit.score) for hit in hits]


@pytest.mark.requirement("C212")
@pytest.mark.parametrize("floor", [-1.0, 0.1, 0.75, 0.9])
def test_a_floor_that_an_embedder_names_is_a_cosine_beside_the_learned_scale(floor):
    calibrated = {"similarity_floor": floor, "score_floors": {"hybrid": floor}}
    with (
        opened(Squeezed) as learned,
        opened(Squeezed, similarity_floor=floor) as named,
        opened(Squeezed, **calibrated) as kept,
    ):
        for query in QUERIES:
            assert scores(named, query) == scores(learned, query) != scores(kept, query)
            similar = learned.search(query, user_id="u", limit=40, search_type="semantic")
            wanted = [hit.content for hit in similar if hit.similarity >= floor]
            found = named.retrieve(query, user_id="u", limit=40, search_type="semantic")
            assert sorted(contents(found)) == sorted(wanted)
            assert found.hint is None


@pytest.mark.requirement("C212", "R030")
def test_evidence_by_a_floor_that_an_embedder_names_is_no_higher_without_words():
    with opened(Squeezed) as learned:
        (best,) = learned.search("motors", user_id="u", limit=1, search_type="semantic")
    # The floor of the evidence is above it by 22 % of the cosines above it, less among 40.
    fewer = 0.1 * math.log(100 / len(TEXTS))
    for off, is_found in ((0.001, True), (-0.001, False)):
        evidence = 1 - (1 - best.similarity + off) / (1 + fewer)
        floor = 1 - (1 - evidence) / 0.78
        with opened(Squeezed, similarity_floor=floor) as named:
            assert bool(scores(named, "motors", min_score="auto")) == is_found


@pytest.mark.requirement("C212", "R030")
def test_a_floor_that_an_embedder_names_holds_where_memories_are_all_alike():
    with Memory(":memory:", embedder=Words()) as learned:
        learned.add_many(LINES, user_id="u")
        free = learned.search("motors reads warm", user_id="u")
        best = max(hit.similarity for hit in free)
    for floor, is_found in ((best - 0.1, True), (best + 0.1, False)):
        embedder = Words()
        embedder.similarity_floor = floor
        with Memory(":memory:", embedder=embedder) as named:
            named.add_many(LINES, user_id="u")
            found = named.retrieve("motors reads warm", user_id="u", search_type="semantic")
            assert bool(found) == is_found
            assert scores(named, "motors reads warm")[:10] == [
                (hit.content, hit.score) for hit in free
            ]
