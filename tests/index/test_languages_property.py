"""Memories of several languages are found as a naive twin finds them, and by nothing of others."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mnemic._core import MemoryIndex
from mnemic.model import KeywordFields, MemoryEntry, Ranking, Scope
from mnemic.model.timestamps import to_microseconds
from tests.support.clock import NOON
from tests.support.entries import to_row
from tests.support.language_twin import LanguageTwin
from tests.support.ranking_twin import Row
from tests.support.rows import Question
from tests.support.tiers import examples

PROFILE = examples(150)
FIELDS = KeywordFields()
CLOSE = 1e-5
USERS = (None, "ann", "bo")

GERMAN = (
    "die Häuser stehen an der Straße",
    "wo hat der Hund das Haus gesehen",
    "ich mag die kleinen Katzen nicht",
)
SPANISH = (
    "las casas de mi hermana son grandes",
    "el perro no quiere las cosas que comemos",
)
ENGLISH = (
    "the houses are where the dogs were running",
    "she does not like what the cat has eaten",
    "we were running to the house with a cat",
)
UNSURE = ("Katzen Hunde", "running dogs", "casas grandes", "House", "猫が好き", "猫 cats", "?!")
POOLS = (GERMAN, SPANISH, ENGLISH, UNSURE)
QUERIES = (
    "wo steht das Haus an der Straße",
    "where is the house of the dog",
    "las casas grandes de la hermana",
    *("Häuser", "Hund Katze", "running houses", "casa", "cat", "猫", "zebra"),
)


def rows_of(seed, count, first=1):
    chance = Random(seed)  # noqa: S311 - data for a test
    shares = [chance.random() ** 3 for _ in POOLS]
    rows = []
    for number in range(first, first + count):
        (pool,) = chance.choices(POOLS, shares)
        entry = MemoryEntry(
            id=UUID(int=number),
            agent_id="a",
            user_id=chance.choice(USERS),
            content=chance.choice(pool),
            created_at=NOON,
        )
        rows.append(Row(number, entry))
    return rows


def put(index, rows, removed=()):
    index.apply([(row.number, *to_row(row.entry)) for row in rows], [], None, list(removed))


def index_of(rows):
    index = MemoryIndex(None, language="auto")
    put(index, rows)
    return index


def found(index, text, user=None, *, all_users=False):
    ranking = Ranking(similarity=0.0, keywords=FIELDS)
    scope = Scope("a", user, all_users=all_users)
    question = Question(
        scope=scope, now=to_microseconds(NOON), limit=1000, ranking=ranking, text=text
    )
    hits, *_ = index.rank(question.search, *question.inputs)
    return {row: components["keyword"] for row, _id, _score, components, *_ in hits}


def everything(index):
    scopes = [*({"user": user} for user in USERS), {"all_users": True}]
    return [found(index, text, **scope) for text in QUERIES for scope in scopes]


@PROFILE
@given(seed=st.integers(0, 10**9), count=st.integers(0, 60))
def test_scores_are_those_of_the_twin(seed, count):
    rows = rows_of(seed, count)
    index, twin = index_of(rows), LanguageTwin(rows)
    event(f"{max((len(user.codes) for user in twin.users.values()), default=0)} languages")
    for text in QUERIES:
        for scope in [*({"user": user} for user in USERS), {"all_users": True}]:
            assert found(index, text, **scope) == pytest.approx(
                twin.scores(text, FIELDS, **scope), abs=CLOSE
            )


@PROFILE
@given(seed=st.integers(0, 10**9), sizes=st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_scores_do_not_depend_on_the_way_the_memories_came(seed, sizes):
    chance = Random(seed)  # noqa: S311 - data for a test
    index, living, first = MemoryIndex(None, language="auto"), {}, 1
    for size in sizes:
        new = rows_of(chance.random(), size, first)
        first += size
        removed = chance.sample(sorted(living), len(living) // 3)
        put(index, new, removed)
        living = {number: row for number, row in living.items() if number not in removed}
        living |= {row.number: row for row in new}
    rows = list(living.values())
    chance.shuffle(rows)
    assert everything(index) == everything(index_of(rows))


@pytest.mark.requirement("C198")
@PROFILE
@given(seed=st.integers(0, 10**9), count=st.integers(1, 60))
def test_memories_of_others_change_nothing(seed, count):
    rows = rows_of(seed, count)
    index = index_of(rows)
    for user in USERS:
        alone = index_of([row for row in rows if row.entry.user_id == user])
        for text in QUERIES:
            assert found(index, text, user) == found(alone, text, user)


def test_groups_with_postings_are_analysed_anew():
    german = [
        Row(number, MemoryEntry(agent_id="a", id=UUID(int=number), created_at=NOON, content=text))
        for number, text in enumerate(["Katzen Hunde"] * 5000 + [GERMAN[0]] * 100, start=1)
    ]
    index = MemoryIndex(None, language="auto")
    put(index, german[:5000])
    assert len(found(index, "Katze")) == 0
    put(index, german[5000:])
    assert len(found(index, "Katze")) == 1000
    assert found(index, "Katze") == found(index_of(german), "Katze")
    put(index, [], removed=range(5001, 5101))
    assert found(index, "Katze") == found(index_of(german[:5000]), "Katze") == {}
