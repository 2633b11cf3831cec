"""Kept answers are those of a service that keeps none, and no user's depend on another's."""

import random
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest

from mnemic import Memory, MemoryEntry, MemoryFilter, MemorySortOrder
from mnemic.errors import DuplicateEntryError, EntryNotFoundError
from mnemic.model import MemoryQuery, Scope
from mnemic.retrieval import CorpusExpander, RetrievalEngine
from mnemic.threads.sync_bridge import run_sync
from tests.support.clock import NOON, Clock
from tests.support.embedders import WordEmbedder

USERS = ("alice", "boris", None)
WORDS = ("tea", "sofa", "ferry", "quay", "blue")
IDS = 6
FREE = {"recency_weight": 0.0, "access_weight": 0.0}
"""Weights with which no score depends on the time or on accesses."""

QUERIES = (
    MemoryQuery(query="tea ferry", min_relevance=0, **FREE),
    MemoryQuery(query="tea ferry", min_relevance=0),
    MemoryQuery(query="blue sofa", search_type="hybrid", limit=3, **FREE),
    MemoryQuery(query="quay", search_type="keyword", filters=MemoryFilter(offset=1), **FREE),
    MemoryQuery(query="quay", search_type="keyword", expand_query=True, cache_ttl=40, **FREE),
    MemoryQuery(filters={"importance": {"gte": 0.5}, "tags": {"any": ["a", "b"]}}, **FREE),
    MemoryQuery(filters={"tags": {"any": ["b", "a"]}, "importance": {"gte": 0.5}}, **FREE),
    MemoryQuery(filters={"access_count": 0}, **FREE),
    MemoryQuery(filters={"NOT": {"access_count": {"lt": 2}}}, limit=2),
    MemoryQuery(filters={"last_accessed_at": {"exists": False}}, cache_ttl=3600, **FREE),
    MemoryQuery(filters=MemoryFilter(sort_by=MemorySortOrder.ACCESSED_DESCENDING), **FREE),
    MemoryQuery(filters={}, sort_by=MemorySortOrder.ACCESS_COUNT_DESCENDING, limit=2),
    MemoryQuery(filters=MemoryFilter(sort_by=MemorySortOrder.CREATED_DESCENDING), **FREE),
    MemoryQuery(filters=MemoryFilter(include_forgotten=True), **FREE),
    MemoryQuery(filters=MemoryFilter(include_forgotten=True), limit=1, **FREE),
    MemoryQuery(filters={}, limit=1, cache_ttl=3600, **FREE),
)


class Step(NamedTuple):
    """One thing that a user does."""

    user: str | None
    verb: str
    number: int
    query: int
    seconds: int


VERBS = ("retrieve",) * 8 + ("add", "brief", "update", "delete", "restore", "touch", "wait")


def steps(choose, users, queries, number):
    """Return what users do: few queries, asked before and after something happens."""
    return [
        Step(
            choose.choice(users),
            choose.choice(VERBS),
            choose.randrange(IDS),
            choose.choice(queries),
            choose.choice([1, 30, 61, 299, 301]),
        )
        for _ in range(number)
    ]


def fill(users):
    return [Step(user, "add", number, 0, 0) for user in users for number in range(3)]


class World:
    """One memory, with a service that keeps answers and one that keeps none."""

    def __init__(self, memory, clock, **options):
        self.memory, self.clock = memory, clock
        repository, expander = memory.repository, CorpusExpander()
        given = {"expander": expander, "log_queries": False}
        self.keeping = RetrievalEngine(repository, **given, **options)
        self.plain = RetrievalEngine(repository, **given, track_access=False)

    def ask(self, user, query):
        """Return what each service answers; the plain one first, for it counts no accesses."""
        scope = Scope("aide", user)
        fresh = msgspec.structs.replace(query, use_cache=False)
        expected = run_sync(self.plain.retrieve(scope, fresh))
        return expected, run_sync(self.keeping.retrieve(scope, query))

    def do(self, step):
        """Do what is no retrieval; return what came of it."""
        memory = self.memory.scoped(user_id=step.user)
        entry_id = UUID(int=step.number + 1)  # all users give the same
        verbs = {
            "add": lambda: self.add(memory, step, entry_id),
            "brief": lambda: self.add(memory, step, entry_id),
            "update": lambda: memory.update(entry_id, importance=step.query / len(QUERIES)).version,
            "delete": lambda: int(memory.delete(entry_id, permanent=step.query % 4 == 0)),
            "restore": lambda: memory.restore(entry_id),
            "touch": lambda: memory.touch([entry_id]),
            "wait": lambda: self.wait(step),
        }
        try:
            return verbs[step.verb]()
        except (DuplicateEntryError, EntryNotFoundError) as error:
            return str(error)

    def wait(self, step):
        if step.user == "alice":  # there is one clock, and it is hers
            self.clock.now += timedelta(seconds=step.seconds)

    def add(self, memory, step, entry_id):
        chosen = random.Random(f"{step.user} {step.number} {step.query}")  # noqa: S311 - repeatable
        expires_at = self.clock.now + timedelta(seconds=45) if step.verb == "brief" else None
        added = memory.add_many(
            [
                MemoryEntry(
                    id=entry_id,
                    agent_id="aide",
                    user_id=step.user,
                    content=" ".join(chosen.choices(WORDS, k=chosen.randint(1, 6))),
                    created_at=NOON - timedelta(days=step.number),
                    importance=chosen.choice([0.0, 0.5, 1.0]),
                    tags=chosen.sample(["a", "b", "c"], 1),
                    expires_at=expires_at,
                )
            ]
        )
        return len(added)


@contextmanager
def world(**options):
    clock = Clock()
    given = {"embedder": WordEmbedder(64), "clock": clock}
    with Memory(":memory:", "aide", **given) as memory:
        yield World(memory, clock, **options)


def encoded(result):
    """Return all of an answer but where it came from, how long it took, and counts of accesses.

    These may lag by one flush, whoever causes it; where they decide an answer they are exact.
    """
    plain = msgspec.structs.replace(
        result,
        results=tuple(msgspec.structs.replace(one, entry=bare(one.entry)) for one in result),
        from_cache=False,
        retrieval_time=timedelta(),
    )
    return msgspec.json.encode(plain)


def bare(entry):
    return msgspec.structs.replace(entry, access_count=0, last_accessed_at=None)


def scored(result):
    """Return what is kept of an answer, which may be as old as its time to live."""
    hits = [(one.entry.id, one.rank, one.relevance_score, one.scores) for one in result]
    return hits, result.total_matches, result.expanded_query


def depends_on_time_or_accesses(query):
    return bool(query.recency_weight or query.access_weight)


@pytest.mark.parametrize("track_access", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_kept_answers_are_those_of_a_service_that_keeps_none(seed, track_access):
    choose = random.Random(seed)  # noqa: S311 - repeatable
    queries = [0, *choose.sample(range(1, len(QUERIES)), 3)]
    program, made, hits = steps(choose, USERS[:2], queries, 80), {}, 0
    cache_bytes = choose.choice([64 << 20, 1 << 17])
    with world(track_access=track_access, cache_bytes=cache_bytes) as played:
        for step in [*fill(USERS), *program]:
            if step.verb != "retrieve":
                played.do(step)
                continue
            query = QUERIES[step.query]
            expected, result = played.ask(step.user, query)
            # Two filters in another order share an answer.
            asked = step.user, 5 if step.query == 6 else step.query
            if not result.from_cache:
                made[asked] = scored(result)
            hits += result.from_cache
            assert scored(result) == made[asked]
            if not result.from_cache or not depends_on_time_or_accesses(query):
                assert encoded(result) == encoded(expected)
    assert hits


def outcomes(program):
    """Return all that alice is told by a program of her steps and those of others."""
    told = []
    with world() as played:
        for step in program:
            if step.verb == "retrieve":
                _, result = played.ask(step.user, QUERIES[step.query])
                outcome = result.from_cache, encoded(result)
            else:
                outcome = played.do(step)
            if step.user == "alice":
                told.append((step, outcome))
    return told


@pytest.mark.parametrize("seed", range(30))
def test_what_others_do_changes_neither_a_users_answers_nor_where_they_come_from(seed):
    choose = random.Random(seed)  # noqa: S311 - repeatable
    queries = choose.sample(range(len(QUERIES)), 4)
    hers = [*fill(["alice"]), *steps(choose, ["alice"], queries, 30)]
    together = list(hers)
    for step in steps(choose, ["boris", None], queries, 40):
        together.insert(choose.randint(0, len(together)), step)
    assert outcomes(together) == outcomes(hers)
