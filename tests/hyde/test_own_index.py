"""The index of a scope's memories by another model than the memory's own."""

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    DeadlineExceededError,
    EmbeddingError,
    EntryNotFoundError,
    MnemicError,
    ReadOnlyError,
    StoreBusyError,
)
from mnemic.hyde import HydeConfig
from mnemic.hyde.indexes import CompanionIndex
from mnemic.hyde.own_index import MAX_FAILURES, OwnIndex
from mnemic.model import Scope, parse_filter
from mnemic.store import changes
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.tiers import examples

OTHER = "other"
LOGGER = "mnemic.hyde.own_index"
EVERYONE = Scope("default", all_users=True)


class Other(WordEmbedder):
    """Embeds by another model; fails, or gives zeros, for texts that hold a word."""

    def __init__(self, dimensions=32, fails_for=None, zeros_for=None):
        super().__init__(dimensions, OTHER)
        self.fails_for, self.zeros_for = fails_for, zeros_for

    def embed(self, texts):
        if self.fails_for is not None and any(self.fails_for in text for text in texts):
            raise RuntimeError(texts[0])
        vectors = super().embed(texts)
        vectors[[self.zeros_for is not None and self.zeros_for in text for text in texts]] = 0
        return vectors


class Chunking(Other):
    """Takes eight words of one letter each."""

    def __init__(self, **options):
        super().__init__(**options)
        self.max_tokens = 18

    def characters_seen(self, text):
        return min(len(text), 16)


class Gated(Other):
    """Embeds once it is let."""

    def __init__(self):
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()

    def embed(self, texts):
        self.begun.set()
        assert self.may_end.wait(20)
        return super().embed(texts)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


@pytest.fixture
def memory(path):
    with Memory(path, embedder=WordEmbedder()) as opened:
        yield opened


def index_of(memory, embedder=None, scope=EVERYONE, **options):
    return OwnIndex(memory._repository, scope, embedder or Other(), **options)


def found(index, text, top_k=10, **options):
    """Return the contents that a search finds, best first."""
    vectors = WordEmbedder(dimensions=index.dimensions or 32).embed([text])
    rows = [row for row, _ in index.search(vectors, top_k, **options)]
    entries = index._companions.entries(EVERYONE, rows)
    return [entries[row].content for row in rows]


def stored(memory):
    return memory._repository.companions.models().get(OTHER, 0)


@pytest.mark.requirement("R339", "R346")
def test_a_build_embeds_every_memory_and_a_search_finds_the_nearest_first(memory):
    memory.add_many(["red sofa", "blue chair", "red lamp beside the red sofa"])
    index = index_of(memory)
    assert (index.dimensions, found(index, "red"), index.generation) == (None, [], 0)
    built = index.build()
    assert (built.rows, built.embedded, built.failed, len(index)) == (3, 3, 0, 3)
    assert found(index, "red sofa", 2) == ["red sofa", "red lamp beside the red sofa"]
    assert (index.model, index.dimensions, index.generation) == (OTHER, 32, 1)


def test_scores_are_cosines_and_ties_are_in_the_order_of_rows(memory):
    memory.add_many(["blue chair", "red sofa", "red  sofa"])
    index = index_of(memory)
    index.build()
    hits = index.search(Other().embed(["red sofa"])[0], min_similarity=0.5)
    assert [score for _, score in hits] == pytest.approx([1, 1])
    assert hits[0][0] < hits[1][0]
    assert len(index.search(-Other().embed(["red sofa"]))) == 3  # a cosine of -1 is one


def test_of_several_vectors_the_nearest_counts_and_zeros_count_for_nothing(memory):
    memory.add_many(["red sofa", "blue chair"])
    index = index_of(memory)
    index.build()
    vectors = np.stack([*Other().embed(["red sofa", "blue chair"]), np.zeros(32)])
    assert [score for _, score in index.search(vectors)] == pytest.approx([1, 1])
    assert index.search(np.zeros((2, 32))) == []
    assert index.search(np.empty((0, 32))) == []
    assert index.search(vectors, 0) == []


@pytest.mark.requirement("C115")
def test_a_later_build_embeds_what_is_new_alone(memory):
    memory.add("red sofa")
    embedder = Other()
    index = index_of(memory, embedder)
    index.build()
    memory.add("blue chair")
    assert index.build().embedded == 1
    assert index.build() == (2, 0, 0, 0, False)
    assert embedder.texts == ["red sofa", "blue chair"]
    assert found(index, "blue chair", 1) == ["blue chair"]


@pytest.mark.requirement("C115")
@pytest.mark.parametrize("keeps", [True, False])
def test_only_another_content_is_embedded_anew(memory, keeps):
    added = memory.add("red sofa")
    embedder = Other()
    index = index_of(memory, embedder, keeps_vectors=keeps)
    index.build()
    memory.update(added.id, importance=0.9)
    assert index.build().embedded == 0
    memory.update(added.id, content="green lamp")
    assert index.build().embedded == 1
    assert found(index, "green lamp") == ["green lamp"]
    assert embedder.texts == ["red sofa", "green lamp"]


@pytest.mark.requirement("C115")
def test_equal_contents_of_two_builds_are_embedded_once(memory):
    first = memory.add("red sofa", sensitive=True)
    embedder = Other()
    index = index_of(memory, embedder)
    index.build()
    memory.add("red sofa", user_id="alice")
    index.build()
    memory.delete(first.id)
    index.build()
    memory.add("red sofa", user_id="bob")
    index.build()
    assert embedder.texts == ["red sofa"]
    assert found(index, "red sofa") == ["red sofa"] * 2


@pytest.mark.requirement("R347")
def test_a_store_that_was_emptied_clears_the_index(memory):
    added = memory.add("red sofa")
    index = index_of(memory)
    index.build()
    memory.delete(added.id)
    assert found(index, "red sofa") == []  # before the build, too
    assert index.build().rows == len(index) == 0
    assert index  # it is one all the same
    assert index_of(memory).build().rows == 0


def test_empty_contents_are_not_embedded(memory):
    memory.add("", metadata={"a": 1})
    embedder = Other()
    index = index_of(memory, embedder)
    assert index.build() == (0, 0, 0, 0, False)
    assert embedder.texts == []


def test_changes_that_the_log_has_dropped_are_read_with_all_rows(memory, monkeypatch):
    monkeypatch.setattr(changes, "MAX_CHANGES", 8)
    monkeypatch.setattr(changes, "PRUNE_EVERY", 1)
    memory.add("red sofa")
    embedder = Other()
    index = index_of(memory, embedder)
    index.build()
    memory.add_many([f"text {number}" for number in range(30)])
    assert index.build() == (31, 1, 30, 0, False)
    assert len(embedder.texts) == 31


def test_many_changes_are_read_as_few_are(memory, monkeypatch):
    monkeypatch.setattr("mnemic.hyde.own_index.MAX_READ", 3)
    first = memory.add("red sofa")
    index = index_of(memory)
    index.build()
    memory.delete(first.id)
    memory.add_many([f"text {number}" for number in range(30)])
    assert index.build().embedded == 30
    assert len(index) == 30


# Stored vectors


@pytest.mark.requirement("R339", "C115")
def test_a_new_index_embeds_nothing_that_is_stored(memory, path):
    memory.add_many(["red sofa", "blue chair"])
    index_of(memory).build()
    memory.close()
    with Memory(path, embedder=WordEmbedder()) as again:
        embedder = Other()
        index = index_of(again, embedder)
        assert index.build() == (2, 2, 0, 0, False)
        assert embedder.texts == []
        assert found(index, "red sofa", 1) == ["red sofa"]


def test_nothing_is_stored_of_sensitive_memories_or_by_option(memory):
    memory.add_many([{"content": "red sofa", "sensitive": True}, {"content": "blue chair"}])
    index = index_of(memory, keeps_vectors=False)
    assert (index.build().embedded, stored(memory)) == (2, 0)
    index = index_of(memory)
    assert (index.build().embedded, stored(memory)) == (2, 1)
    assert index_of(memory).build() == (2, 1, 1, 0, False)


def test_a_memory_that_is_only_read_stores_nothing(memory, path):
    memory.add_many(["red sofa", "blue chair"])
    index_of(memory, scope=EVERYONE).build()
    memory.update(memory.search("red")[0].id, content="green sofa")
    memory.close()
    with Memory(path, embedder=WordEmbedder(), read_only=True) as again:
        assert index_of(again).build() == (2, 1, 1, 0, False)
        assert stored(again) == 1


@pytest.mark.requirement("C115")
def test_a_store_that_takes_no_vectors_does_not_fail_the_build(memory, monkeypatch, caplog):
    def refuse(*_):
        raise StoreBusyError("busy")

    memory.add("red sofa")
    monkeypatch.setattr(memory._repository._store, "add_companions", refuse)
    index = index_of(memory)
    with caplog.at_level(logging.WARNING, LOGGER):
        assert index.build().rows == 1
    assert "busy" in caplog.text
    assert "sofa" not in caplog.text
    assert found(index, "red sofa") == ["red sofa"]


def test_dropped_vectors_of_the_model_are_made_anew_by_a_new_index(memory):
    memory.add("red sofa")
    index_of(memory).build()
    assert memory.drop_vectors("words") == 0  # the memory's own
    assert memory.drop_vectors(OTHER) == 1
    assert index_of(memory).build().embedded == 1
    assert memory.drop_vectors() == 1
    assert memory.drop_vectors() == 0
    assert memory.search("red sofa", search_type="semantic")[0].similarity == pytest.approx(1)


# Failures


@pytest.mark.requirement("C115", "R348", "R349")
def test_a_failing_memory_is_left_out_and_tried_again(memory, caplog):
    texts = [f"text {number}" for number in range(20)]
    memory.add_many([*texts[:7], "bad zebra", *texts[7:]])
    embedder = Other(fails_for="zebra")
    index = index_of(memory, embedder)
    with caplog.at_level(logging.DEBUG):
        built = index.build()
    assert (built.rows, built.embedded, built.failed) == (20, 20, 1)
    assert [one for one in caplog.records if one.name == LOGGER]
    assert "zebra" not in caplog.text
    assert index.build().failed == 1
    embedder.fails_for = None
    assert index.build() == (21, 0, 1, 0, False)
    assert found(index, "bad zebra", 1) == ["bad zebra"]


@pytest.mark.requirement("R348")
def test_a_broken_embedder_fails_the_first_build_and_spoils_no_later_one(memory):
    memory.add_many([f"text {number}" for number in range(50)])
    embedder = Other(fails_for="")
    index = index_of(memory, embedder)
    with pytest.raises(EmbeddingError):
        index.build()
    embedder.fails_for = None
    assert index.build().embedded == 50
    embedder.fails_for = ""
    memory.add_many([f"more {number}" for number in range(50)])
    built = index.build()
    assert (built.rows, built.failed) == (50, 50)
    embedder.fails_for = None
    assert index.build().rows == 100


def test_a_broken_embedder_is_called_a_few_times(memory, monkeypatch):
    memory.add_many([f"text {number}" for number in range(1000)])
    calls = []

    def embed(_, texts):
        calls.append(len(texts))
        raise RuntimeError("broken")

    monkeypatch.setattr(Other, "embed", embed)
    with pytest.raises(EmbeddingError):
        index_of(memory).build()
    assert calls.count(1) == MAX_FAILURES
    assert len(calls) < 12


@pytest.mark.requirement("C124")
def test_zero_vectors_are_left_out_with_one_warning(memory, caplog):
    memory.add_many(["red sofa", "nothing here", "nothing there"])
    embedder = Other(zeros_for="nothing")
    index = index_of(memory, embedder)
    with caplog.at_level(logging.WARNING, LOGGER):
        built = index.build()
        index.build()
    assert (built.rows, built.failed, stored(memory)) == (1, 2, 1)
    assert len([one for one in caplog.records if one.name == LOGGER]) == 1
    embedder.zeros_for = None
    assert index.build().rows == 3


@pytest.mark.requirement("C124")
def test_vectors_that_are_not_finite_are_left_out(memory):
    class Odd(Other):
        def embed(self, texts):
            vectors = super().embed(texts)
            vectors[["bad" in text for text in texts]] = np.nan
            return vectors

    memory.add_many(["red sofa", "bad sofa"])
    assert index_of(memory, Odd()).build() == (1, 0, 1, 1, False)


@pytest.mark.requirement("C123")
def test_a_query_of_another_length_finds_nothing_with_one_warning(memory, caplog):
    memory.add("red sofa")
    index = index_of(memory)
    index.build()
    with caplog.at_level(logging.WARNING, LOGGER):
        assert index.search(np.ones(33)) == index.search(np.ones((2, 31))) == []
    assert len([one for one in caplog.records if one.name == LOGGER]) == 1


@pytest.mark.requirement("C123", "R339")
@pytest.mark.parametrize("knows_its_length", [True, False])
def test_vectors_of_an_earlier_length_are_made_anew(memory, knows_its_length):
    embedder = Other(dimensions=24)
    memory.add_many(["red sofa", "blue chair"])
    index_of(memory).build()
    if not knows_its_length:
        memory.add("green lamp")
    index = index_of(memory, embedder if knows_its_length else of_unknown_length(embedder))
    built = index.build()
    assert (index.dimensions, built.rows, built.failed) == (24, len(index), 0)
    assert found(index, "red sofa", 1) == ["red sofa"]
    assert index_of(memory, Other(dimensions=24)).build().embedded == 0


@pytest.mark.requirement("C123")
def test_an_index_whose_embedder_shows_another_length_is_outdated_until_it_is_built(memory):
    memory.add("red sofa")
    index_of(memory).build()
    index = index_of(memory, of_unknown_length(Other(dimensions=24)))
    index.build()
    assert (index.dimensions, index.is_outdated) == (32, False)
    query = index._embedder.embed(["red sofa"])
    assert index.is_outdated
    assert index.search(query) == []
    index.build()
    assert (index.dimensions, index.is_outdated) == (24, False)
    assert len(index.search(query)) == 1


@pytest.mark.requirement("C123")
def test_a_new_memory_that_shows_another_length_leads_to_a_whole_build(memory):
    memory.add("red sofa")
    index_of(memory).build()
    index = index_of(memory, of_unknown_length(Other(dimensions=24)))
    index.build()
    memory.add("blue chair")
    index.build()
    assert (index.dimensions, len(index), index.is_outdated) == (24, 2, False)


def of_unknown_length(embedder):
    from mnemic import as_embedder  # noqa: PLC0415 - beside its only use

    return as_embedder(lambda texts: embedder.embed(list(texts)), model=OTHER)


def test_a_coroutine_embedder_is_awaited(memory):
    class Awaited(Other):
        async def embed(self, texts):
            await asyncio.sleep(0)
            return super().embed(texts)

    memory.add_many(["red sofa", "blue chair"])
    index = index_of(memory, Awaited())
    assert index.build().embedded == 2
    assert found(index, "red sofa", 1) == ["red sofa"]
    index._embedder.close()


# Chunks


def letters(*names):
    return " ".join(names)


def test_a_long_memory_counts_with_its_best_chunk_and_is_found_once(memory):
    long, short = letters(*"abcdefghijklmnopqrstuvwxyz"), letters(*"abc")
    memory.add_many([long, short, letters(*"xyz")])
    index = index_of(memory, Chunking())
    index.build()
    assert len(index) == 3
    for top_k in (1, 2, 3, 10):
        hits = index.search(Other().embed([letters(*"stuv"), letters(*"abcdefg")]), top_k)
        assert len({row for row, _ in hits}) == len(hits) == min(3, top_k)
    assert found(index, letters(*"stuv"), 1) == [long]
    again = index_of(memory, Chunking())
    assert again.build().loaded == 3
    query = Other().embed([letters(*"stuv")])
    assert again.search(query) == index.search(query)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_memory_that_becomes_shorter_loses_its_further_chunks(memory, keeps):
    added = memory.add(letters(*"abcdefghijklmnopqrstuvwxyz"))
    index = index_of(memory, Chunking(dimensions=2000), keeps_vectors=keeps)
    index.build()
    memory.update(added.id, content="a b")
    index.build()
    assert len(index._map) == 1
    ((_, score),) = index.search(Other(2000).embed(["x y z"]))
    assert score == pytest.approx(0)
    memory.update(added.id, content=letters(*"abcdefghijklmnopqrstuvwxyz"))
    index.build()
    assert len(index._map) > 3
    memory.delete(added.id)
    index.build()
    assert len(index._map) == 0


# Walls


@pytest.mark.requirement("R339")
def test_an_index_of_a_user_holds_and_finds_that_users_memories_alone(memory):
    memory.add("red sofa", user_id="alice")
    memory.add("red sofa of Bob", user_id="bob")
    memory.add("red sofa of nobody")
    embedder = Other()
    index = index_of(memory, embedder, Scope("default", "alice"))
    index.build()
    assert (len(index), embedder.texts) == (1, ["red sofa"])
    assert found(index, "red sofa") == ["red sofa"]
    memory.add("red sofa of Bob, too", user_id="bob")
    assert index.build().embedded == 0
    assert found(index, "red sofa") == ["red sofa"]


def test_vectors_that_others_stored_are_not_taken_in(memory):
    memory.add("red sofa", user_id="alice")
    memory.add("red sofa of Bob", user_id="bob")
    index_of(memory).build()
    index = index_of(memory, scope=Scope("default", "alice"))
    assert index.build() == (1, 1, 0, 0, False)
    assert len(index._map) == 1


def test_an_index_narrowed_to_a_project_or_session_finds_no_other(memory):
    for project in "pq":
        for session in "st":
            names = {"project_id": project, "session_id": session}
            memory.add(f"red {project} {session}", **names)
    index = index_of(memory, scope=Scope("default", None, "p", "t"))
    index.build()
    assert found(index, "red") == ["red p t"]


def test_an_outdated_index_finds_only_what_is_active_now(memory, path):
    names = ["deleted", "archived", "other process"]
    ids = {name: memory.add(f"red sofa {name}").id for name in [*names, "kept", "kept too"]}
    index = index_of(memory)
    index.build()
    memory.delete(ids["deleted"])
    memory.update(ids["archived"], status="archived")
    with Memory(path, embedder=WordEmbedder()) as another:
        another.delete(ids["other process"], permanent=True)
    shown = found(index, "red sofa")
    assert sorted(shown) == ["red sofa kept", "red sofa kept too"]
    assert found(index, "red sofa", 1)  # what is gone takes nobody's place
    for top_k in (1, 2, 3):
        hits = index.search(Other().embed(["red sofa deleted"]), top_k)
        assert len(hits) == min(2, top_k)


def test_expired_memories_are_not_found(path):
    now = [NOON]
    with Memory(path, embedder=WordEmbedder(), clock=lambda: now[0]) as memory:
        memory.add("red sofa", expires_at=NOON + timedelta(hours=1))
        memory.add("red lamp")
        index = index_of(memory)
        index.build()
        assert len(found(index, "red")) == 2
        now[0] += timedelta(hours=2)
        assert found(index, "red") == ["red lamp"]
        memory.add("red chair")
        index.build()
        assert sorted(found(index, "red")) == ["red chair", "red lamp"]


def test_filters_choose_among_memories(memory):
    memory.add_many(
        [{"content": f"red {number}", "importance": number / 10} for number in range(10)]
    )
    index = index_of(memory)
    index.build()
    filters = parse_filter({"importance": {"gte": 0.8}})
    assert sorted(found(index, "red", filters=filters)) == ["red 8", "red 9"]
    nothing = parse_filter({"importance": {"gt": 0.95}})
    assert found(index, "red", filters=nothing) == []


def test_a_deadline_that_has_passed_ends_a_search(memory):
    memory.add("red sofa")
    index = index_of(memory)
    index.build()
    with pytest.raises(DeadlineExceededError):
        found(index, "red", deadline=time.monotonic() - 1)
    assert found(index, "red", deadline=time.monotonic() + 60) == ["red sofa"]


# Builds at once


@pytest.mark.requirement("C114")
def test_a_cancelled_build_changes_nothing_and_its_stored_vectors_serve_the_next(memory):
    memory.add_many([f"text {number}" for number in range(600)])
    embedder = Other()
    index = index_of(memory, embedder)
    looks = iter([False, True])
    built = index.build(lambda: next(looks))
    assert (built.is_cancelled, len(index), index.generation) == (True, 0, 0)
    assert index.search(np.ones(32)) == []
    assert index.build() == (600, 256, 344, 0, False)
    assert len(embedder.texts) == 600


@pytest.mark.requirement("C114")
def test_an_older_build_never_follows_a_newer_one(memory):
    memory.add("red sofa")
    index = index_of(memory)
    first = next(index._tickets)
    index.build()
    generation = index.generation
    index._tickets = iter([first])
    assert index.build().embedded == 0
    assert index.generation == generation > first


@pytest.mark.requirement("C114")
def test_a_build_that_waits_for_another_can_be_cancelled(memory):
    memory.add("red sofa")
    embedder = Gated()
    index = index_of(memory, embedder)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(index.build)
        try:
            assert embedder.begun.wait(20)
            assert index.build(lambda: True).is_cancelled
            assert index.search(np.ones(32)) == []  # nobody waits for a build
        finally:
            embedder.may_end.set()
        assert first.result(20).rows == 1


@pytest.mark.requirement("R341", "R350")
def test_searches_meet_whole_memories_while_builds_change_them(memory):
    ids = [memory.add("a a a", importance=0.5).id for _ in range(20)]
    index = index_of(memory, Chunking())
    index.build()
    before, query = index._map, Other().embed(["a", "z"])
    is_over, counts = threading.Event(), []

    def search():
        while not is_over.is_set():
            hits = index.search(query, 100)
            counts.append(len(hits))
            # Every content holds nothing but letters of the queries, in every chunk.
            assert min(score for _, score in hits) > 0.99

    with ThreadPoolExecutor(3) as threads:
        searches = [threads.submit(search) for _ in range(2)]
        try:
            for turn in range(25):
                for number, entry_id in enumerate(ids):
                    letter = "az"[(turn + number) % 2]
                    memory.update(entry_id, content=letters(*letter * (1 + 12 * (turn % 3))))
                index.build()
        finally:
            is_over.set()
        for one in searches:
            one.result(20)
    assert set(counts) == {20}
    assert index._map is before


# A twin

CONTENTS = st.sampled_from(["a", "a b", "b c d", "z", letters(*"abcdefghijklmnopqrst"), ""])
USERS = st.sampled_from([None, "alice", "bob"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), CONTENTS, USERS, st.booleans()),
        st.tuples(st.just("update"), st.integers(0, 9), CONTENTS),
        st.tuples(st.sampled_from(["delete", "restore", "gone"]), st.integers(0, 9)),
        st.tuples(st.just("build")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("verify")),
    ),
    max_size=25,
)


@given(steps=STEPS, keeps=st.booleans(), user=st.sampled_from(["alice", None, "everyone"]))
@examples(60)
def test_it_finds_what_a_scan_of_all_memories_finds(steps, keeps, user):
    scope = EVERYONE if user == "everyone" else Scope("default", user)
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        index = index_of(memory, Chunking(), scope, keeps_vectors=keeps)
        added = []
        for verb, *given_ in steps:
            if verb == "add":
                content, owner, sensitive = given_
                one = memory.add(content, user_id=owner, sensitive=sensitive, metadata={"a": 1})
                added.append((one.id, owner))
            elif verb == "build":
                index.build()
            elif verb == "reopen":
                index = index_of(memory, Chunking(), scope, keeps_vectors=keeps)
            elif verb == "verify":
                assert memory.verify().ok
            elif added:
                play(memory, verb, added[given_[0] % len(added)], *given_[1:])
        index.build()
        check_against_scan(index, scope)


def play(memory, verb, named, *content):
    entry_id, owner = named
    with suppress(EntryNotFoundError):  # it is deleted, or is not
        if verb == "update":
            memory.update(entry_id, user_id=owner, content=content[0])
        elif verb == "restore":
            memory.restore(entry_id, user_id=owner)
        else:
            memory.delete(entry_id, user_id=owner, permanent=verb == "gone")


def check_against_scan(index, scope):
    queries = unit(Other().embed(["a b", "z", "q r s"]))
    rows = index._companions.rows(scope).tolist()
    entries = index._companions.entries(scope, rows)
    expected = {
        row: max(float(cosine) for cosine in (chunks_of(entry.content) @ queries.T).ravel())
        for row, entry in entries.items()
        if entry.content
    }
    hits = index.search(queries, 100)
    assert dict(hits) == pytest.approx(expected, abs=1e-6)
    scores = [score for _, score in hits]
    assert scores == sorted(scores, reverse=True)


def chunks_of(content):
    from mnemic.embed.chunking import Chunker  # noqa: PLC0415 - beside its only use

    embedder = Chunking()
    return unit(embedder.embed(Chunker(18, embedder.characters_seen).chunks(content)))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# The verb that drops vectors


def test_vectors_are_dropped_by_both_doors(memory):
    memory.add("red sofa")
    index_of(memory).build()

    async def drop():
        return await memory.aio.drop_vectors(OTHER)

    assert asyncio.run(drop()) == 1
    assert stored(memory) == 0


@pytest.mark.parametrize("model", ["", "a\x1f", "\x1fother", 7, b"other"])
def test_the_name_of_a_model_is_checked(memory, model):
    with pytest.raises(MnemicError, match="model"):
        memory.drop_vectors(model)


def test_a_memory_that_is_only_read_drops_nothing(memory, path):
    memory.add("red sofa")
    index_of(memory).build()
    memory.close()
    with Memory(path, embedder=None, read_only=True) as again:
        with pytest.raises(ReadOnlyError):
            again.drop_vectors()
        assert stored(again) == 1


def test_an_agent_drops_its_own_vectors_alone(memory, path):
    memory.add("red sofa")
    index_of(memory).build()
    with Memory(path, agent_id="another", embedder=WordEmbedder()) as another:
        assert another.drop_vectors() == another.drop_vectors(OTHER) == 0
    assert stored(memory) == 1


# What is deleted for good


def test_nothing_of_an_erased_memorys_vectors_is_left_in_any_file(memory, path):
    length = 64

    class Random(Other):
        def embed(self, texts):
            self.texts.extend(texts)
            return np.stack([vector_of(text) for text in texts])

    def vector_of(text):
        chosen = np.random.default_rng(list(text.encode()))
        return chosen.standard_normal(length).astype(np.float32)

    def left(text):
        data = b"".join(file.read_bytes() for file in path.parent.iterdir())
        blob = vector_of(text).tobytes()
        return any(blob[at : at + 24] in data for at in range(0, len(blob) - 24, 24))

    texts = [f"text {number}" for number in range(40)]
    added = memory.add_many(texts)
    index = index_of(memory, Random(dimensions=length))
    index.build()
    assert all(map(left, texts))
    assert memory.delete(added[7].id, permanent=True).erased
    memory.update(added[8].id, content="another")
    assert memory.delete_many([entry.id for entry in added[10:20]], permanent=True).erased
    assert memory.erase_pending()
    assert [text for text in texts if left(text)] == [*texts[:7], texts[9], *texts[20:]]
    assert index.build().rows == 29


@pytest.mark.requirement("C123")
def test_an_engine_builds_an_outdated_index_anew(memory):
    memory.add("red sofa")
    index_of(memory).build()
    embedder = ValidatedEmbedder(of_unknown_length(Other(dimensions=24)))
    repository = memory._repository
    index = CompanionIndex(repository, EVERYONE, embedder, HydeConfig(), None)
    index.build(lambda: False)
    assert not index.is_behind
    query = embedder.embed(["red sofa"])
    assert index.search(query, time.monotonic() + 60).candidates == []
    assert index.is_behind
    index.build(lambda: False)
    assert not index.is_behind
    assert len(index.search(query, time.monotonic() + 60).candidates) == 1
