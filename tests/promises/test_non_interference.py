"""What one user stores and asks never changes what another user is answered.

One random program of user A is run alone and beside programs of users B, C and of nobody; every
answer A is given must be the same to the last bit. Excepted are times, and what SECURITY.md names:
the agent's quota, its embedding model, what `all_users=True` is given, and how soon a counted
access shows in an entry (`last_accessed_at`, `access_count`): the next write of anybody brings it.
"""

import asyncio
import io
from datetime import datetime, timedelta
from enum import Enum
from random import Random
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import AsyncMemory
from mnemic.compat import AsyncMemoryRetriever
from mnemic.errors import MnemicError
from mnemic.hyde import AsyncHydeEngine, HydeConfig, format_injection
from mnemic.model import HYBRID, AdaptiveShare, MemoryFilter, MemoryQuery, MemorySortOrder
from mnemic.policy import AsyncRetrievalPolicy, FixedWindow, RetrievalConfig, RetrievalRequest
from mnemic.retrieval import AsyncRetrievalService
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.exact_source import ExactSource
from tests.support.places import IN_POSTGRES, Places
from tests.support.tiers import examples

A, OTHERS = "a", ("b", "c", None)

SHARED = "the harbour boat sailing winter ice cats dog red sofa ferry noon quay tea".split()  # noqa: SIM905
OWN = {
    "a": ["anchor", "sailor", "I live in Oslo", "harbours"],
    "b": ["zeppelin", "sailer", "I live in Rome", "harbor"],
    "c": ["quasar", "anchors", "My dog is called Rex", "boats"],
    None: ["nobody", "harbourside", "I do not own a boat", "icy"],
}
SPEAKERS = {
    "a": [None, None, "Ana", "Boris Lee"],
    "b": [None, "Ana", "Boris", "Ana Maria"],
    "c": [None, "Boris Kim", "Borris", "Kate"],
    None: [None, "ana", "Boris Lee", "Kate Lee"],
}
GREETINGS = ["", "", "", "Hey Kate! ", "Hey Ana! "]
NAMES = ["", "", " Ana", " Boris", " Borris", " ana", " Kate", " Boris Lee and Ana"]
"""Names that a query of one user may share with other users' speakers."""

ROLES = [None, None, "user", "assistant"]
SESSIONS = [None, None, "s", "t"]
IDS = [UUID(int=number) for number in range(1, 7)]
STATES = ["active", "archived"]
WITHOUT_YEAR = ["on May 6th", "in March", "5月6日", "on 29 February"]
"""Dates whose year depends on the newest memory."""


class TurnCache:
    """A clock, and ids that each user has of their own."""

    def __init__(self):
        self.now, self.user, self.made = NOON, A, {}

    def __call__(self):
        return self.now

    def seconds(self):
        return self.now.timestamp()

    def new_id(self, _time):
        self.made[self.user] = number = self.made.get(self.user, 0) + 1
        return UUID(bytes=f"{self.user!s:4.4}{number:012}".encode())


def text_of(random, user, most=7):
    words = [*SHARED, *OWN[user], *OWN[user]]
    return " ".join(random.choice(words) for _ in range(random.randint(1, most)))


def vector_of(random):
    return [random.gauss() for _ in range(64)]


def vectors_of(entry):
    return None if entry.embedding is None else entry.embedding.tobytes()


def said_by(random, user):
    return random.choice(GREETINGS) + text_of(random, user)


def fields_of(random, now, user):
    given = {
        "session_id": random.choice(SESSIONS),
        "speaker": random.choice(SPEAKERS[user]),
        "role": random.choice(ROLES),
        "importance": random.choice([0.1, 0.5, 0.9]),
        "tags": random.choice([(), ("x",), ("x", "y")]),
        "type": random.choice(["fact", "event", "preference"]),
    }
    if random.random() < 0.2:
        given["expires_at"] = now + timedelta(minutes=random.randint(1, 60))
    if random.random() < 0.2:
        given["metadata"] = {"n": random.randint(0, 3)}
    if random.random() < 0.4:
        given["created_at"] = now - timedelta(days=random.choice([1, 60, 300, 700, 1500, -400]))
    return given


# The policies have no time limit: a loaded machine answers one run in time and not the other.
POLICIES = [
    RetrievalConfig(timeout=None),
    RetrievalConfig(timeout=None, min_score=0, session_boost=1.5, near_duplicates=0.8),
    RetrievalConfig(timeout=None, min_score=0, search_type="keyword", same_session_only=True),
]


HYDE = [
    {},
    {"retrieval_top_k": 3, "retrieval_hop_depth": 3, "follow_incoming": True},
    {"candidates_per_hypothesis": 1, "drop_off": 0.2, "max_versions": 1},
]


async def hypotheses(prompt):
    """Return each word of a window as a sentence."""
    return "\n".join(prompt.rpartition("user: ")[2].split("\n")[0].split())


class Interface:
    """One open memory with its services, as one user sees it."""

    def __init__(self, memory, turns):
        self.memory, self.turns = memory, turns
        self.service = AsyncRetrievalService(memory)
        self.retriever = AsyncMemoryRetriever(memory)
        limiter = FixedWindow(3, 900, clock=turns.seconds)
        self.policies = [AsyncRetrievalPolicy(memory, config) for config in POLICIES]
        self.policies.append(AsyncRetrievalPolicy(memory, POLICIES[1], limiter=limiter))
        self.known = {}
        self._engines = {}

    async def _close(self):
        for engine in self._engines.values():
            await engine.aclose()

    async def done(self, user, verb, seed):
        """Do something and return what is answered, or the error's type and text."""
        self.turns.user = user
        random = Random(seed)  # noqa: S311 - repeatable, not secret
        try:
            return shown(await VERBS[verb](self, random, user))
        except MnemicError as error:
            return type(error).__name__, str(error)

    def some_id(self, random, user):
        known = self.known.setdefault(user, list(IDS))
        return random.choice(known)

    async def add(self, random, user):
        given = fields_of(random, self.turns.now, user)
        if random.random() < 0.4:
            given["id"] = random.choice(IDS)
        if random.random() < 0.1:
            given["supersedes"] = self.some_id(random, user)
        if random.random() < 0.2:
            given["on_duplicate"] = random.choice(["skip", "merge"])
        if random.random() < 0.2:
            given["idempotency_key"] = random.choice(["k", "l"])
        if random.random() < 0.2:
            given["check"] = "contradictions"
        text = random.choice([said_by(random, user), "the same words"])
        stored = await self.memory.add(text, user_id=user, **given)
        self.known.setdefault(user, list(IDS)).append(stored.id)
        return stored

    async def add_many(self, random, user):
        texts = [said_by(random, user) for _ in range(random.randint(1, 8))]
        stored = await self.memory.scoped(user_id=user).add_many(texts)
        self.known.setdefault(user, list(IDS)).extend(entry.id for entry in stored)
        return stored

    async def add_own_vectors(self, random, user):
        given = random.choice(
            [
                {"embedding": vector_of(random)},
                {"embedding": [vector_of(random), vector_of(random)]},
                {"embed": [said_by(random, user), said_by(random, user)]},
                {"embed": ()},
            ]
        )
        text = random.choice(["", said_by(random, user)])
        chosen = {"id": random.choice(IDS)} if random.random() < 0.5 else {}
        way = {"on_conflict": "replace"} if chosen else {}
        many = [{"content": text, "user_id": user, "metadata": {"n": 1}, **given, **chosen}]
        (stored,) = await self.memory.add_many(many, **way)
        self.known.setdefault(user, list(IDS)).append(stored.id)
        return stored

    async def search_by_vector(self, random, user):
        return await self.memory.search(
            random.choice([None, text_of(random, user, 5)]),
            vector=random.choice([vector_of(random), [vector_of(random), vector_of(random)]]),
            user_id=user,
            limit=random.choice([1, 5, 50]),
            min_score=random.choice([None, "auto"]),
            explain=True,
        )

    async def given_back(self, random, user):
        page = await self.memory.list(user_id=user, limit=50, embeddings=True)
        found = await self.memory.search(text_of(random, user, 2), user_id=user)
        ids = [hit.id for hit in found]
        entries = [*page, *await self.memory.get_many(ids, user_id=user, embeddings=True)]
        return [(entry, entry.embedding_model, vectors_of(entry)) for entry in entries]

    async def put(self, random, user):
        given = fields_of(random, self.turns.now, user)
        way = random.choice(["replace", "replace", "skip"])
        content = random.choice([said_by(random, user), "the same words"])
        fields = {"content": content, "id": self.some_id(random, user), **given}
        (stored,) = await self.memory.add_many([fields], user_id=user, on_conflict=way)
        return stored

    async def put_many(self, random, user):
        ids = [random.choice(IDS) for _ in range(4)]
        given = [{"content": said_by(random, user), "id": entry_id} for entry_id in ids]
        gone = [random.choice(IDS) for _ in range(random.randint(0, 2))]
        view = self.memory.scoped(user_id=user)
        return await view.add_many(given, on_conflict="replace", instead_of=gone)

    async def put_document(self, random, user):
        parts = [f"# {random.choice(SHARED)}\n\n{said_by(random, user)}" for _ in range(3)]
        name = random.choice(["a.md", "b.md"])
        return await self.memory.add_document("\n\n".join(parts), name=name, user_id=user)

    async def delete_document(self, random, user):
        name = random.choice(["a.md", "b.md"])
        return int(await self.memory.delete_document(name, user_id=user))

    async def renew(self, random, user):
        ids = [self.some_id(random, user) for _ in range(3)]
        expiry = random.choice(["never", self.turns.now + timedelta(minutes=30)])
        return await self.memory.touch(ids, user_id=user, expires_at=expiry)

    async def get(self, random, user):
        return await self.memory.get(self.some_id(random, user), user_id=user)

    async def update(self, random, user):
        change = random.choice(
            [
                {"content": said_by(random, user)},
                {"importance": 0.7},
                {"status": random.choice(STATES)},
                {"metadata": {"n": 9}},
                {"replace_metadata": {"n": 1}},
                {"expires_at": self.turns.now + timedelta(minutes=5)},
                {"importance": 0.3, "if_version": random.choice([1, 2, 3])},
            ]
        )
        return await self.memory.update(self.some_id(random, user), user_id=user, **change)

    async def delete(self, random, user):
        permanent = random.random() < 0.3
        deleted = await self.memory.delete(
            self.some_id(random, user), user_id=user, permanent=permanent
        )
        return int(deleted)

    async def restore(self, random, user):
        return await self.memory.restore(self.some_id(random, user), user_id=user)

    async def delete_all(self, random, user):
        if random.random() >= 0.2:
            return None
        permanent = random.random() < 0.5
        return int(await self.memory.delete_all(user_id=user, permanent=permanent))

    async def delete_many(self, random, user):
        ids = [self.some_id(random, user) for _ in range(3)]
        return int(
            await self.memory.delete_many(ids, user_id=user, permanent=random.random() < 0.3)
        )

    async def delete_by_filter(self, random, user):
        where = {"metadata.n": random.randint(0, 3), "importance": {"lt": 0.6}}
        return int(await self.memory.delete_many(filters=where, user_id=user))

    async def update_many(self, random, user):
        where = {"OR": [{"tags": {"contains": "x"}}, {"access_count": {"gte": 2}}]}
        change = random.choice([{"content": said_by(random, user)}, {"add_tags": ["y"]}])
        return await self.memory.update_many(filters=where, user_id=user, **change)

    async def link(self, random, user):
        ends = self.some_id(random, user), self.some_id(random, user)
        return await self.memory.link(*ends, user_id=user)

    async def unlink(self, random, user):
        ends = self.some_id(random, user), self.some_id(random, user)
        return await self.memory.unlink(*ends, user_id=user)

    async def links(self, random, user):
        return await self.memory.links(self.some_id(random, user), user_id=user)

    async def search(self, random, user):
        where = random.choice([None, None, {"tags": {"contains": "x"}}, {"access_count": 0}])
        return await self.memory.search(
            text_of(random, user, 5) + random.choice(NAMES),
            user_id=user,
            limit=random.choice([1, 5, 50]),
            search_type=random.choice(["hybrid", "hybrid", "semantic", "keyword"]),
            filters=where,
            explain=True,
        )

    async def search_pages(self, random, user):
        """Floors and reasons come from within the user scope, and so do pages."""
        found = await self.memory.search(
            text_of(random, user, 5) + random.choice(NAMES),
            user_id=user,
            limit=random.choice([0, 1, 5]),
            offset=random.choice([0, 1, 5]),
            min_score=random.choice([None, "auto", "auto", 0.1]),
            ranking=msgspec.structs.replace(
                HYBRID, min_similarity=random.choice([None, None, 0.2])
            ),
            explain=True,
        )
        return found, found.hint if user is not None else None

    async def counted(self, random, user):
        """So do totals."""
        text = text_of(random, user, 5) + random.choice(NAMES)
        found = await self.memory.retrieve(text, user_id=user, limit=5, total=True)
        return found.total_matches

    async def search_without_year(self, random, user):
        return await self.memory.search(
            f"{text_of(random, user, 2)} {random.choice(WITHOUT_YEAR)}",
            user_id=user,
            session_id=random.choice([None, None, "s"]),
            limit=50,
            explain=True,
        )

    async def search_by_length(self, random, user):
        """The share of similarity depends on the lengths of memories."""
        found = await self.memory.search(
            text_of(random, user, 5),
            user_id=user,
            ranking=msgspec.structs.replace(HYBRID, similarity=AdaptiveShare(0.1, 0.9, 4)),
            explain=True,
        )
        return found, found.share

    async def search_by_accesses(self, random, user):
        text, ranking = text_of(random, user, 2), {"access": 1}
        return await self.memory.search(text, user_id=user, ranking=ranking, explain=True)

    async def similar(self, random, user):
        return await self.memory.similar(self.some_id(random, user), user_id=user, explain=True)

    async def listed(self, random, user):
        page = await self.memory.list(user_id=user, limit=random.choice([2, 50]))
        more = (
            ()
            if page.cursor is None
            else await self.memory.list(user_id=user, limit=50, cursor=page.cursor)
        )
        return list(page), page.cursor, list(more)

    async def listed_with_deleted(self, _random, user):
        return await self.memory.list(user_id=user, include_deleted=True)

    async def newest_and_weightiest(self, _random, user):
        return await self.memory.recent(user_id=user), await self.memory.important(user_id=user)

    async def listed_at(self, random, user):
        where = random.choice([None, {"tags": {"contains": "x"}}, {"metadata": {"n": {"gte": 1}}}])
        offset = random.randint(0, 4)
        return list(await self.memory.list(user_id=user, filters=where, limit=3, offset=offset))

    async def get_many(self, random, user):
        ids = [self.some_id(random, user) for _ in range(3)]
        return await self.memory.get_many(ids, user_id=user)

    async def count(self, random, user):
        where = random.choice([None, {"metadata": {"n": {"lt": 2}}}, {"access_count": {"gte": 1}}])
        return await self.memory.count(user_id=user, filters=where)

    async def distinct(self, random, user):
        field = random.choice(["tags", "speaker", "session_id", "type", "metadata.n"])
        found = await self.memory.distinct(field, user_id=user, limit=random.choice([2, 50]))
        return [(one.value, one.count) for one in found]

    async def stats(self, _random, user):
        return await self.memory.stats(user_id=user)

    async def audit(self, random, user):
        near = random.choice([None, 0.5, 0.95])
        return await self.memory.audit(user_id=user, ids=True, near=near)

    async def purge(self, _random, user):
        return int(await self.memory.purge(user_id=user))

    async def purge_early(self, random, user):
        age = timedelta(days=random.choice([0, 1, 60]))
        return int(await self.memory.purge(user_id=user, older_than=age, expired=True))

    async def retrieve(self, random, user):
        query = random.choice(QUERIES)(random, user)
        return await self.service.retrieve(query, user_id=user)

    async def retrieve_here(self, random, user):
        query = random.choice(QUERIES)(random, user)
        return await self.memory.retrieve(query, user_id=user)

    async def retrieve_text(self, random, user):
        return await self.memory.retrieve(
            text_of(random, user, 4),
            user_id=user,
            limit=random.choice([2, 20]),
            expand=random.random() < 0.4,
            since=random.choice([None, NOON]),
            weights=random.choice([None, {"relevance": 1.0}]),
        )

    async def suggest_here(self, random, user):
        return await self.memory.suggest(text_of(random, A, 9), user_id=user)

    async def expand_here(self, random, user):
        return await self.memory.expand(text_of(random, user, 3), user_id=user)

    async def recall_since(self, random, user):
        mode = random.choice(["relevant", "temporal", "recent"])
        since = NOON + timedelta(minutes=random.randint(0, 60))
        topic = text_of(random, user, 3)
        return await self.memory.recall(topic, mode=mode, since=since, user_id=user)

    async def linked(self, random, user):
        return await self.memory.linked(
            self.some_id(random, user), user_id=user, depth=3, direction="both"
        )

    async def reinforce_here(self, random, user):
        return await self.memory.reinforce(
            self.some_id(random, user), "user_correction", user_id=user
        )

    async def salience_here(self, random, user):
        return await self.memory.salience(
            self.some_id(random, user), query=text_of(random, user, 2), user_id=user
        )

    async def suggest(self, random, user):
        return await self.service.suggest_queries(text_of(random, A, 9), user_id=user)

    async def expand(self, random, user):
        return await self.service.expand_query(text_of(random, user, 3), user_id=user)

    async def recall(self, random, user):
        mode = random.choice(["relevant", "recent", "important", "frequent"])
        return await self.memory.recall(text_of(random, user, 3), mode=mode, user_id=user)

    async def recall_all_states(self, random, user):
        return await self.memory.recall(
            text_of(random, user, 3), user_id=user, include_archived=True, include_superseded=True
        )

    async def recall_linked(self, random, user):
        start = self.some_id(random, user)
        return await self.retriever.recall_linked(start, user_id=user, depth=2, direction="both")

    async def contradictions(self, random, user):
        text = random.choice(["I live in Paris", "I own a boat", "My dog is called Max"])
        return await self.memory.contradictions(text, user_id=user)

    async def policy_repeated(self, random, user):
        message = random.choice(["the harbour", "the harbour", text_of(random, A, 4)])
        request = RetrievalRequest(message, user, random.choice(["s", "t"]))
        return await random.choice(self.policies).run(request)

    async def context(self, random, user):
        text, tokens = text_of(random, user, 4), random.choice([20, 60, 1000])
        block = await self.memory.context(text, user_id=user, max_tokens=tokens, explain=True)
        return str(block), block.hits, block.dropped, block.table()

    async def policy_run(self, random, user):
        message, session = text_of(random, user, 4), random.choice(SESSIONS) or "u"
        policy = random.choice(self.policies)
        return await policy.run(RetrievalRequest(message, user, session))

    async def policy_trigger(self, random, user):
        request = RetrievalRequest("ferry", user, "s")
        return await random.choice(self.policies).trigger(request)

    async def hyde_turn(self, random, user):
        """Retrieve for one of few turns, whose ids all users share."""
        number = random.randrange(len(HYDE))
        engine = self._engines.get((user, number))
        if engine is None:
            config = HydeConfig(timeout=60, min_similarity=0.1, **HYDE[number])
            view = self.memory.scoped(user_id=user)
            engine = AsyncHydeEngine(view, self.memory.embedder, hypotheses, config)
            self._engines[user, number] = engine
        found = await engine.retrieve(random.choice("123"), [f"user: {text_of(random, user, 4)}"])
        return found, format_injection(found), format_injection(found, 60, form="tagged")

    async def export(self, _random, user):
        target = io.StringIO()
        await self.memory.scoped(user_id=user).export(target, embeddings=True)
        return target.getvalue().partition("\n")[2]

    async def moved(self, _random, user):
        """Import an own export again, with an id that others may have."""
        target = io.StringIO()
        await self.memory.scoped(user_id=user).export(target)
        return await self.memory.scoped(user_id=user).import_(io.StringIO(target.getvalue()))

    async def reinforce(self, random, user):
        return await self.retriever.reinforce(self.some_id(random, user), "user_correction", user)

    async def salience(self, random, user):
        return await self.retriever.salience(self.some_id(random, user), user)


def repeated(random, _user):
    return MemoryQuery(query=random.choice(["the harbour", "ice"]), min_relevance=0.0)


def semantic(random, _user):
    return MemoryQuery(
        query=random.choice([*SHARED, "harbor", "red sofa"]),
        expand_query=random.random() < 0.4,
        search_type=random.choice(["semantic", "hybrid", "keyword"]),
        min_relevance=random.choice([None, 0.0]),
        limit=random.choice([3, 20]),
    )


def filtered(random, _user):
    where = random.choice([{"type": "fact"}, {"access_count": 0}, {"tags": {"contains": "x"}}])
    order = random.choice([None, *MemorySortOrder])
    return MemoryQuery(filters=MemoryFilter(filters=where), sort_by=order)


QUERIES = [repeated, repeated, semantic, filtered]

LEFT_OUT = {"retrieval_time", "query_time", "embedding", "last_accessed_at", "access_count"}


def shown(answer):
    """Return an answer as plain values; see `LEFT_OUT`."""
    if isinstance(answer, msgspec.Struct):
        names = [name for name in answer.__struct_fields__ if name not in LEFT_OUT]
        return [(name, shown(getattr(answer, name))) for name in names]
    if isinstance(answer, dict):
        return {key: shown(value) for key, value in answer.items()}
    if isinstance(answer, float):
        return answer.hex()
    if isinstance(answer, str | bytes | int | Enum | datetime | UUID | None):
        return answer
    return [shown(part) for part in answer]


VERBS = {
    name: verb
    for name, verb in vars(Interface).items()
    if not name.startswith("_") and name not in {"done", "some_id"}
}


def answers_of(program, *, kind="sqlite", **options):
    with Places(kind) as places:
        return asyncio.run(answers_in(places, program, **options))


async def answers_in(places, program, *, with_others, **options):
    turns = TurnCache()
    given = {"embedder": WordEmbedder(), "clock": turns, "id_factory": turns.new_id, **options}
    async with AsyncMemory(places.new(), "aide", **places.options, **given) as memory:
        door, answers = Interface(memory, turns), []
        for user, verb, seed in program:
            if user == A:
                turns.now += (
                    timedelta(days=95) if verb == "purge" else timedelta(seconds=seed % 600)
                )
                answers.append((verb, await door.done(user, verb, seed)))
            elif with_others:
                await door.done(user, verb, seed)
        await door._close()
        return answers


STEPS = st.tuples(
    st.sampled_from([A, A, *OTHERS]),
    st.sampled_from(
        [
            *["add"] * 4,
            *["add_many"] * 3,
            *["retrieve", "policy_repeated", "hyde_turn"] * 3,
            *sorted(VERBS),
        ]
    ),
    st.integers(0, 1 << 30),
)


def check(program, **options):
    alone = answers_of(program, with_others=False, **options)
    beside = answers_of(program, with_others=True, **options)
    for (verb, wanted), (_, found) in zip(alone, beside, strict=True):
        assert (verb, found) == (verb, wanted)


PROGRAMS = st.lists(STEPS, min_size=1, max_size=60)


@examples(60)
@given(program=PROGRAMS)
def test_a_users_answers_are_the_same_whatever_others_do_beside(program):
    check(program)


@examples(16)
@given(program=PROGRAMS, kind=st.sampled_from(IN_POSTGRES))
def test_a_users_answers_in_postgresql_are_the_same_whatever_others_do_beside(program, kind):
    check(program, kind=kind)


def long_program(seed):
    random = Random(seed)  # noqa: S311 - repeatable, not secret
    verbs = sorted(VERBS)
    return [
        (
            random.choice([A, *OTHERS]),
            random.choice(["add", "add", "hyde_turn", "hyde_turn", *verbs]),
            random.randrange(1 << 30),
        )
        for _ in range(400)
    ]


IN_EACH = [*(("sqlite", seed) for seed in range(6)), *((kind, 0) for kind in IN_POSTGRES)]


@pytest.mark.parametrize(("kind", "seed"), IN_EACH)
def test_long_programs_give_the_same_answers_whatever_others_do_beside(kind, seed):
    check(long_program(seed), kind=kind)


@pytest.mark.parametrize("seed", range(6, 9))
def test_long_programs_give_the_same_answers_through_an_exact_candidate_source(seed):
    check(long_program(seed), make_source=ExactSource, exact_limit=0)


@pytest.mark.parametrize(("kind", "seed"), [("sqlite", 9), ("sqlite", 10), ("postgres", 9)])
def test_long_programs_give_the_same_answers_within_a_quota_of_each_user(kind, seed):
    program = long_program(seed)
    check(program, kind=kind, user_quota=150)
    alone = answers_of(program, kind=kind, with_others=False, user_quota=150)
    refusals = [answer[1] for _, answer in alone if _is_refusal(answer)]
    assert refusals
    assert all("of user 'a' exceeded" in text for text in refusals)


@pytest.mark.parametrize(("kind", "seed"), [("sqlite", 11), ("sqlite", 12), ("postgres", 11)])
def test_long_programs_give_the_same_answers_where_what_is_least_important_goes(kind, seed):
    limits = {"user_quota": 150, "user_max_entries": 8, "when_full": "evict"}
    check(long_program(seed), kind=kind, **limits)


def _is_refusal(answer):
    return isinstance(answer, tuple) and answer[0] == "StorageQuotaExceededError"
