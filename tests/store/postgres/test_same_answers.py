"""The same answers as from a file: pages, programs of many users, and 10,000 memories that move."""

import random
from functools import cache
from uuid import UUID

import numpy as np
import pytest

from mnemic import Memory
from mnemic.model import MemoryType
from mnemic.repository import database_search
from tests.promises.test_non_interference import answers_of, long_program
from tests.store.postgres.test_nearest import FractionEmbedder
from tests.support.clock import Clock
from tests.support.places import IN_POSTGRES, KINDS, Places


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("user", [None, "ann"])
def test_the_pages_of_a_users_list_have_every_memory_once(kind, user):
    with Places(kind) as places, places.opened(embedder=None) as memory:
        added = memory.add_many(["one", "two", "three"], user_id=user)
        first = memory.list(limit=1, user_id=user)
        second = memory.list(limit=2, user_id=user, cursor=first.cursor)
        assert [entry.id for entry in (*first, *second)] == [entry.id for entry in added[::-1]]


SEED = 20


@cache
def answers_in(kind):
    return answers_of(long_program(SEED), kind=kind, with_others=True)


@pytest.mark.parametrize("kind", IN_POSTGRES)
def test_a_program_gets_the_answers_of_a_file_from_a_database(kind):
    for (verb, wanted), (_, given) in zip(answers_in("sqlite"), answers_in(kind), strict=True):
        assert (verb, wherever_searched(given)) == (verb, wherever_searched(wanted))


def test_answers_are_the_same_wherever_the_memories_of_others_let_searches_run(monkeypatch):
    monkeypatch.setattr(database_search, "SMALL_AGENT", 40)
    alone, beside = (
        answers_of(long_program(0), kind="postgres", with_others=others) for others in (False, True)
    )
    assert wherever_searched(alone) == wherever_searched(beside)


def wherever_searched(answer):
    """Return an answer without what says where its search ran."""
    if isinstance(answer, list | tuple):
        return [wherever_searched(part) for part in answer if part not in PLACES]
    return answer


PLACES = [("searched_in", "memory"), ("searched_in", "database")]


NUMBER = 10_000
USERS = ("ann", "bob", None)
WORDS = [f"{first}{last}" for first in "bdfgklmnprst" for last in ("ale", "ing", "on", "ure")]
QUESTIONS = ("bale ding", "fon", "gure kale ling mon nure")
FILTERS = (
    None,
    {"tags": {"any": ["fon"]}},
    {"importance": {"gte": 0.5}, "type": {"in": ["fact", "event"]}},
    {"content": {"contains": "Kale"}},
    {"metadata": {"at": {"lt": 4_000}}},
    {"created_at": {"gte": "2026-01-10T00:00:00Z"}},
)


def opened(place):
    return Memory(place, embedder=FractionEmbedder(dimensions=8), clock=Clock())


def fill(memory):
    draw = random.Random(11)  # noqa: S311 - no secret
    memories = [
        {
            "id": UUID(int=draw.getrandbits(128)),
            "content": " ".join(draw.choices(WORDS, k=5)),
            "type": draw.choice(list(MemoryType)),
            "importance": draw.random(),
            "tags": draw.sample(WORDS, 2),
            "metadata": {"at": at, "z": [1.5, "ü", None]},
            "created_at": f"2026-01-{1 + at % 28:02d}T12:00:00.{at:06d}Z",
        }
        for at in range(NUMBER)
    ]
    for at, user in enumerate(USERS):
        memory.add_many(memories[at :: len(USERS)], user_id=user)


def answers(memory):
    """Return ids and scores, to the last bit, of searches of every type, filter and user."""
    found = {}
    for user in USERS:
        for where_at, where in enumerate(FILTERS):
            for kind in ("semantic", "keyword", "hybrid"):
                for question in QUESTIONS:
                    hits = memory.search(
                        question, user_id=user, filters=where, search_type=kind, limit=25
                    )
                    found[user, where_at, kind, question] = [
                        (hit.id, np.float64(hit.score).tobytes()) for hit in hits
                    ]
            listed = memory.list(user_id=user, filters=where, limit=100)
            found[user, where_at] = [(entry.id, entry.metadata) for entry in listed]
            found[user, where_at, "number"] = memory.count(user_id=user, filters=where)
    return found


def moved(source, target, file):
    """Export everything and import it; return what the target answers."""
    assert source.export(file, all_users=True, embeddings=True) == NUMBER
    assert target.import_(file).stored == NUMBER
    return answers(target)


def test_ten_thousand_memories_answer_the_same_after_a_move_to_postgresql_and_back(
    database, tmp_path
):
    with (
        opened(tmp_path / "a.db") as first,
        opened(database) as server,
        opened(tmp_path / "b.db") as back,
    ):
        fill(first)
        expected = answers(first)
        assert all(expected.values())
        assert moved(first, server, tmp_path / "a.jsonl") == expected
        assert moved(server, back, tmp_path / "b.jsonl") == expected
        assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
        assert server.verify().ok
