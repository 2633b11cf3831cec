"""Answers of all services while the server of their memories is there, away, and back."""

import json
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from mnemic import Memory, MemoryEntry
from mnemic.compat import MemoryRetriever
from mnemic.errors import StoreUnavailableError
from mnemic.events import HypothesesRetrievedEvent
from mnemic.hyde import HydeEngine
from mnemic.model import MemoryRetrieverOptions
from mnemic.policy import RetrievalConfig, RetrievalPolicy, RetrievalRequest
from mnemic.policy.payload import UNAVAILABLE
from mnemic.store.postgres.store import PostgresStore
from tests.store.postgres.test_positions import (
    OtherProcess,
    away,
    filled,
    questions,
    reads,
    settled,
)
from tests.support.clock import NOON, Clock
from tests.support.hyde import PlainModel
from tests.support.waiting import until

__all__ = ["questions", "reads"]  # fixtures

REQUEST = RetrievalRequest("who likes honey?", user_id="ann", session_id="monday")


class Services:
    """All ways to an answer about Ann's memories, each as contents and mark."""

    def __init__(self, memory):
        self.memory = memory
        self.policy = RetrievalPolicy(memory, RetrievalConfig(min_score=0.0))
        self.boosted = RetrievalPolicy(memory, RetrievalConfig(min_score=0.0, session_boost=1.5))
        self.model = PlainModel("ann likes honey")
        self.engine = HydeEngine(memory.scoped(user_id="ann"), memory.embedder, self.model)
        self.turns = 0
        options = MemoryRetrieverOptions(access_interval=timedelta(hours=1), salience_weight=0.0)
        self.spaced = MemoryRetriever(memory, options)

    def listings(self):
        """Calls that return a list with a mark, by name."""
        memory = self.memory
        modes = ("relevant", "recent", "important", "frequent")
        return {
            "search": lambda: memory.search("honey", user_id="ann"),
            "retrieve": lambda: memory.retrieve("honey", user_id="ann"),
            "retrieve expanded": lambda: memory.retrieve("honey", user_id="ann", expand=True),
            "retrieve uncached": lambda: memory.retrieve("jam", user_id="ann", use_cache=False),
            "retrieve in an order": lambda: memory.retrieve(
                "honey", user_id="ann", filters={"content": {"contains": "likes"}}, total=True
            ),
            "recall temporal": lambda: memory.recall(mode="temporal", user_id="ann", since=NOON),
            "recall spaced": lambda: self.spaced.recall("honey", user_id="ann"),
            "contradictions": lambda: memory.contradictions(
                "ann does not like honey", user_id="ann", min_confidence=0.0
            ),
        } | {
            f"recall {mode}": lambda mode=mode: memory.recall("honey", mode=mode, user_id="ann")
            for mode in modes
        }

    def answers(self):
        """All answers by name: contents in their order, and since when they may be stale."""
        found = {
            name: ([hit.entry.content for hit in given], given.stale_since)
            for name, call in self.listings().items()
            for given in (call(),)
        }
        text = self.memory.context("honey", user_id="ann", min_score=None)
        found["context"] = str(text), text.stale_since
        for name, policy in (("policy", self.policy), ("boosted policy", self.boosted)):
            payload = policy.run(REQUEST)
            assert payload.metadata.error is None
            contents = [memory.content for memory in payload.memories]
            found[name] = contents, payload.metadata.stale_since
        turn = self.turn()
        found["hyde"] = [memory.content for memory in turn.memories], turn.stale_since
        return found

    def turn(self):
        self.turns += 1
        with self.engine.turn("who likes honey?", turn_id=str(self.turns)) as turn:
            return turn


@pytest.fixture
def services(server):
    """All services of a memory that is loaded, on a server that can be stopped."""
    with filled(server.new_database(), clock=Clock()) as memory:
        yield opened(memory)


@pytest.fixture
def impatient(server):
    """The same, with answers that are stale for half a second at most."""
    with filled(server.new_database(), max_stale=0.5) as memory:
        yield opened(memory)


def opened(memory):
    settled(memory)
    made = Services(memory)
    made.engine.start()
    assert made.engine.ready(10)
    return made


def marks(answers):
    return {name: mark for name, (_, mark) in answers.items()}


def contents(answers):
    return {name: found for name, (found, _) in answers.items()}


def is_back(memory):
    return memory.search("honey", user_id="ann").stale_since is None


def test_all_services_answer_while_the_server_is_away_and_say_since_when(server, services, reads):
    fresh = services.answers()
    assert all(contents(fresh).values())
    assert set(marks(fresh).values()) == {None}
    before = datetime.now(UTC)
    with away(server):
        assert services.memory.search("honey", user_id="ann").stale_since
        reads.clear()
        begun = time.monotonic()
        stale = services.answers()
        assert time.monotonic() - begun < 2.0  # a call that waited for the server would take three
        assert reads == []
    assert contents(stale) == contents(fresh)
    for name, since in marks(stale).items():
        assert since is not None, name
        assert before - timedelta(seconds=10) <= since <= datetime.now(UTC), name
    until(lambda: is_back(services.memory))
    assert services.answers() == fresh


def test_marks_are_in_every_form_of_an_answer(server, services):
    memory = services.memory
    with away(server):
        until(lambda: not is_back(memory))
        for name, call in services.listings().items():
            found = call()
            assert found.to_dict()["stale_since"] == iso(found.stale_since), name
            assert "stale_since=datetime" in repr(found), name
        text = memory.context("honey", user_id="ann", min_score=None)
        assert json.loads(json.dumps(text.to_dict()))["stale_since"] == iso(text.stale_since)
        assert pickle.loads(pickle.dumps(text)).stale_since == text.stale_since  # noqa: S301 - its own
        metadata = services.policy.run(REQUEST).metadata
        assert metadata.to_dict()["stale_since"] == iso(metadata.stale_since)
    until(lambda: is_back(memory))
    assert memory.context("honey", user_id="ann").to_dict()["stale_since"] is None


def iso(moment):
    assert moment is not None
    return moment.isoformat().replace("+00:00", "Z")


def test_after_max_stale_searches_raise_a_typed_error(server, impatient):
    with away(server):
        time.sleep(0.6)
        for name, call in impatient.listings().items():
            begun = time.monotonic()
            with pytest.raises(StoreUnavailableError, match=r"max_stale is 0\.5 s"):
                call()
            assert time.monotonic() - begun < 1.0, name
        with pytest.raises(StoreUnavailableError, match=r"max_stale is 0\.5 s"):
            impatient.memory.context("honey", user_id="ann")
    until(lambda: impatient.memory.repository._store._database.positions._connection)
    assert set(marks(impatient.answers()).values()) == {None}


def test_after_max_stale_a_policy_returns_an_earlier_payload_or_none(server, impatient):
    known = impatient.policy.run(REQUEST)
    other = RetrievalRequest("who likes jam?", user_id="ann", session_id="monday")
    with away(server):
        time.sleep(0.6)
        payload = impatient.policy.run(REQUEST)
        assert payload.metadata.error == UNAVAILABLE
        assert payload.metadata.from_cache
        assert payload.memories == known.memories
        none = impatient.policy.run(other)
        assert none.metadata.error == UNAVAILABLE
        assert (none.memories, none.metadata.stale_since) == ((), None)
    until(lambda: impatient.memory.repository._store._database.positions._connection)
    assert impatient.policy.run(other).metadata.error is None


def test_after_max_stale_a_turn_has_no_memories_and_raises_nothing(server, impatient):
    kept = impatient.turn()
    assert kept.memories
    with away(server):
        time.sleep(0.6)
        assert kept.retrieve() == []
        assert impatient.turn().memories == []
    until(lambda: impatient.memory.repository._store._database.positions._connection)
    assert impatient.turn().memories
    assert kept.text == ""


def test_a_stale_retrieval_and_a_stale_payload_are_not_cached(server, services):
    memory, policy = services.memory, services.policy
    with away(server):
        until(lambda: not is_back(memory))
        for _ in range(2):
            found, payload = memory.retrieve("jam", user_id="ann"), policy.run(REQUEST)
            assert (found.from_cache, payload.metadata.from_cache) == (False, False)
    until(lambda: is_back(memory))
    for is_cached in (False, True):
        found, payload = memory.retrieve("jam", user_id="ann"), policy.run(REQUEST)
        assert (found.from_cache, payload.metadata.from_cache) == (is_cached, is_cached)
        assert (found.stale_since, payload.metadata.stale_since) == (None, None)


def test_what_was_cached_before_is_not_passed_off_as_fresh(server, services):
    memory, policy = services.memory, services.policy
    for _ in range(2):
        found, payload = memory.retrieve("jam", user_id="ann"), policy.run(REQUEST)
    assert found.from_cache
    assert payload.metadata.from_cache
    with away(server):
        until(lambda: not is_back(memory))
        assert memory.retrieve("jam", user_id="ann").stale_since is not None
        assert policy.run(REQUEST).metadata.stale_since is not None


def test_a_cached_answer_asks_the_server_for_the_position_alone(database, reads, questions):
    with filled(database, track_access=False) as memory:
        settled(memory)
        policy = RetrievalPolicy(memory, RetrievalConfig(min_score=0.0))
        for _ in range(2):
            reads.clear()
            questions.clear()
            found, payload = memory.retrieve("jam", user_id="ann"), policy.run(REQUEST)
        assert found.from_cache
        assert payload.metadata.from_cache
        assert (reads, len(questions)) == ([], 2)


def test_an_answer_that_is_cached_has_the_changes_of_other_processes(database):
    with Memory(database, embedder=None) as memory:
        memory.add("ann likes honey", user_id="ann")
        settled(memory)
        policy = RetrievalPolicy(memory, RetrievalConfig(min_score=0.0))

        def found():
            retrieved, payload = memory.retrieve("honey", user_id="ann"), policy.run(REQUEST)
            return {hit.content for hit in retrieved}, {each.content for each in payload.memories}

        assert found() == found() == ({"ann likes honey"}, {"ann likes honey"})
        with OtherProcess(database) as other:
            other.does("add", "eve")
            both = {"ann likes honey", "eve likes honey"}
            assert found() == found() == (both, both)


def test_a_memory_read_as_the_server_goes_is_not_cached_as_it_was_before(database, monkeypatch):
    with filled(database) as memory, OtherProcess(database) as other:
        store = memory.repository._store
        other.does("add", "eve")
        settled(memory)
        asking, read = store._database.positions, PostgresStore._cached_rows

        def late(self, *arguments):
            asking._connection.close()
            asking._become(None, is_away=True)
            return read(self, *arguments)

        other.does("update", "eve")
        with monkeypatch.context() as patch:
            patch.setattr(PostgresStore, "_cached_rows", late)
            found = memory.search("eve", user_id="ann", search_type="keyword")
            assert found.stale_since is not None
        until(lambda: is_back(memory))
        hits = memory.search("eve", user_id="ann", search_type="keyword")
        assert "eve dislikes honey" in [hit.content for hit in hits]
        assert "eve likes honey" not in [hit.content for hit in hits]


def test_a_user_without_memories_may_have_some_by_now(server, services):
    request = RetrievalRequest("who likes honey?", user_id="eve", session_id="monday")
    assert services.policy.run(request).metadata.stale_since is None
    with away(server):
        until(lambda: not is_back(services.memory))
        metadata = services.policy.run(request).metadata
        assert metadata.trigger.reason == "no_memories"
        assert metadata.stale_since is not None


def test_a_stale_turn_is_kept_until_the_server_is_back(server, services):
    memory, model = services.memory, services.model
    events = []
    memory.events.subscribe(HypothesesRetrievedEvent, events.append)
    with away(server):
        until(lambda: not is_back(memory))
        turn = services.turn()
        assert turn.retrieve() == turn.memories
        assert turn.memories
        assert turn.stale_since is not None
        assert model.calls == 1
    until(lambda: is_back(memory))
    memory.add("ann likes honey cake", user_id="ann")
    assert "ann likes honey cake" in [each.content for each in turn.retrieve()]
    assert (turn.stale_since, model.calls) == (None, 2)
    turn.retrieve()
    assert model.calls == 2
    assert [event.stale_since is not None for event in events] == [True, False]


def test_a_turn_kept_from_before_is_marked_while_the_server_is_away(server, services):
    turn = services.turn()
    known = turn.memories
    with away(server):
        until(lambda: not is_back(services.memory))
        assert turn.retrieve() == known
        assert turn.stale_since is not None
    until(lambda: is_back(services.memory))
    assert turn.retrieve() == known
    assert (turn.stale_since, services.model.calls) == (None, 1)


def test_expired_memories_leave_a_kept_turn_while_the_server_is_away(server):
    clock = Clock()
    with filled(server.new_database(), clock=clock) as memory:
        soon = NOON + timedelta(hours=1)
        memory.add(MemoryEntry("ann likes honey for now", expires_at=soon), user_id="ann")
        services = opened(memory)
        turn = services.turn()
        assert "ann likes honey for now" in turn.text
        with away(server):
            until(lambda: not is_back(memory))
            clock.now = soon
            left = [each.content for each in turn.retrieve()]
            assert "ann likes honey" in left
            assert "ann likes honey for now" not in left


def test_a_turn_does_not_wait_for_earlier_versions(server, reads):
    with filled(server.new_database()) as memory:
        first = memory.add("ann likes honey from bees", user_id="ann")
        memory.add("ann likes honey from the shop", user_id="ann", supersedes=first.id)
        services = opened(memory)
        known = services.turn().memories
        assert any(each.versions for each in known)
        with away(server):
            until(lambda: not is_back(memory))
            reads.clear()
            found = services.turn().memories
            assert reads == []
        assert [each.content for each in found] == [each.content for each in known]
        assert not any(each.versions for each in found)
        assert services.engine.stats().failures == {"lineages": 1}


def test_memories_without_vectors_are_found_while_the_server_is_away(server, reads):
    with Memory(server.new_database(), embedder=None) as memory:
        memory.add("ann likes honey", user_id="ann")
        settled(memory)
        with away(server):
            until(lambda: not is_back(memory))
            reads.clear()
            for found in (
                memory.search("honey", user_id="ann"),
                memory.retrieve("honey", user_id="ann"),
                memory.recall(mode="recent", user_id="ann"),
            ):
                assert [hit.entry.content for hit in found] == ["ann likes honey"]
                assert found.stale_since is not None
            assert reads == []


def test_verbs_that_need_the_server_say_that_it_is_away(server, services):
    memory = services.memory.scoped(user_id="ann")
    (entry, _) = memory.list()
    calls = [
        lambda: memory.get(entry.id),
        memory.list,
        memory.count,
        lambda: memory.similar(entry.id),
        lambda: memory.linked(entry.id),
        lambda: memory.salience(entry.id),
        lambda: memory.list(embeddings=True),
        lambda: memory.recall("honey", include_archived=True),
    ]
    with away(server):
        until(lambda: not is_back(services.memory))
        with ThreadPoolExecutor(len(calls)) as threads:
            errors = [done.exception() for done in [threads.submit(call) for call in calls]]
    assert [type(error) for error in errors] == [StoreUnavailableError] * len(calls)
