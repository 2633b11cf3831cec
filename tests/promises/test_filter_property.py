"""Any filter on any memories: SQL narrows and the core decides, to the rows of the naive twin.

A file answers every question, and a database some: those whose checksum chooses them, so that the
same are chosen in every run.
"""

# ruff: noqa: RUF001 - letters that look alike are the point

import itertools
import math
import zlib
from functools import cache
from uuid import UUID

import apsw
import msgspec
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from mnemic._core import RECORD_COLUMNS
from mnemic.index import NativeIndex
from mnemic.model import MemoryStatus, Scope
from mnemic.model.filter import MemoryFilter, MemorySortOrder, parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.model.ranking import MOST_IMPORTANT, NEWEST
from mnemic.model.rows import RowBatch
from mnemic.store import open_store
from mnemic.store.operations import Add
from mnemic.store.sqlite.dialect import SQLITE
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.store import SqliteStore
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import to_row
from tests.support.filter_strategies import (
    BEYOND,
    EVERYONE,
    ORDER,
    SIZES,
    dict_form,
    field_filters,
    filters,
    flattened,
    memory,
    metadata_values,
    numbers,
    one_field_filters,
    pages,
    population,
    sizes_and_filters,
    some_fields,
    texts,
    users,
)
from tests.support.filter_twin import matches, ordered
from tests.support.filters import narrowed_and_decided, narrowed_and_decided_in_postgres
from tests.support.places import Places
from tests.support.rows import Question, rank
from tests.support.tiers import examples

pytestmark = pytest.mark.requirement("R045", "R046", "R047", "R048", "R049", "R050", "R051", "C103")

PROFILE = examples(300)

# Where they meet: a file and a database, in which every population has an agent of its own.

ONE_OF = 10
"""The database answers one of so many questions."""


def is_chosen(*question):
    return zlib.crc32(repr(question).encode()) % ONE_OF == 0


class Kept:
    """Memories in a store."""

    def __init__(self, store):
        self.store = store
        self.numbers = itertools.count()

    def close(self):
        self.store.close()

    def keep(self, memories):
        """Store the memories for an agent of their own; return its name."""
        agent = f"agent {next(self.numbers)}"
        owned = [NewEntry(msgspec.structs.replace(entry, agent_id=agent)) for entry in memories]
        self.store.write(Add(agent, owned, now=NOON, is_import=True)).result()
        return agent

    def judge(self, agent, given_filter):
        """Return for every memory of the agent whether it passes, by narrowing and deciding."""
        found = self.found(agent, parse_filter(given_filter))
        passing = {UUID(bytes=row[2]) for row in found}
        return {entry_id: int(entry_id in passing) for entry_id in self.ids(agent)}

    def select(self, agent, user, given_filter, page):
        """Return the ids of the page of memories that pass."""
        sort_by, limit, offset = page
        found = self.found(agent, parse_filter(given_filter), sort_by)
        of_user = [row for row in found if user in (EVERYONE, row[USER_ID])]
        return [UUID(bytes=row[2]) for row in of_user[offset : offset + limit]]


class File(Kept):
    def __init__(self, path):
        super().__init__(SqliteStore(path))
        self.connection = GuardedConnection(str(path), apsw.SQLITE_OPEN_READONLY, SQLITE)

    def close(self):
        self.connection.close()
        super().close()

    def ids(self, agent):
        sql = "SELECT id FROM agent_memory_entries WHERE agent_id = ?"
        return [UUID(bytes=one) for (one,) in self.connection.execute(sql, (agent,))]

    def found(self, agent, expression, order=MemorySortOrder.CREATED_DESCENDING):
        return narrowed_and_decided(self.connection, agent, expression, order)


class Database(Kept):
    def ids(self, agent):
        return [UUID(bytes=row[2]) for row in self.found(agent, parse_filter(None))]

    def found(self, agent, expression, order=MemorySortOrder.CREATED_DESCENDING):
        return narrowed_and_decided_in_postgres(self.store, agent, expression, order)


class Stores:
    """The file, and the database, which has to give the same answers."""

    def __init__(self, file, database):
        self.file, self.database = file, database
        self.memories, self.agents = {}, {}

    def keep(self, memories):
        agent = self.file.keep(memories)
        self.memories[agent] = memories
        return agent

    def judge(self, agent, given_filter):
        judged = self.file.judge(agent, given_filter)
        if is_chosen(given_filter):
            assert self.database.judge(self.agent_in_database(agent), given_filter) == judged
        return judged

    def select(self, agent, *question):
        found = self.file.select(agent, *question)
        if is_chosen(*question):
            assert self.database.select(self.agent_in_database(agent), *question) == found
        return found

    def agent_in_database(self, agent):
        if agent not in self.agents:
            self.agents[agent] = self.database.keep(self.memories[agent])
        return self.agents[agent]


USER_ID = RECORD_COLUMNS.index("user_id")

BEFORE_ALL = -(2**62)
"""Microseconds since 1970 at which none of the memories has expired."""

CORE_ORDERS = {
    MemorySortOrder.CREATED_DESCENDING: NEWEST,
    MemorySortOrder.IMPORTANCE_DESCENDING: MOST_IMPORTANT,
}
"""The rankings that are orders of a filter too."""


class Core:
    """The core's index of some memories, all of which are alive to it."""

    def __init__(self, memories):
        self.ids = [entry.id for entry in memories]
        self.index = NativeIndex(None)
        records = [(row, *to_row(entry)) for row, entry in enumerate(memories, start=1)]
        assert self.index.apply(RowBatch(None, 1, records, [], None, []))

    def judge(self, given_filter):
        """Return for every memory whether the core lets it through."""
        answer = self.rank(EVERYONE, given_filter, MOST_IMPORTANT, len(self.ids), with_total=True)
        assert answer.total == len(answer.ranked)
        selected = {UUID(bytes=hit.id) for hit in answer.ranked}
        return {entry_id: int(entry_id in selected) for entry_id in self.ids}

    def select(self, user, given_filter, page):
        """Return the ids of the page of memories that pass, in an order of `CORE_ORDERS`."""
        sort_by, limit, offset = page
        answer = self.rank(user, given_filter, CORE_ORDERS[sort_by], offset + limit)
        return [UUID(bytes=hit.id) for hit in answer.ranked[offset:]]

    def rank(self, user, given_filter, ranking, limit, **options):
        scope = Scope("a", all_users=True) if user == EVERYONE else Scope("a", user)
        where = parse_filter(given_filter)
        given = {"now": BEFORE_ALL, "limit": limit, "ranking": ranking, "filters": where, **options}
        return rank(self.index, Question(scope=scope, **given))


@cache
def core(size):
    """Return the core's index of the population of this size."""
    return Core(population(size))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    with Places("postgres") as places:
        file = File(tmp_path_factory.mktemp("filters") / "a.db")
        database = Database(open_store(places.new()))
        yield Stores(file, database)
        file.close()
        database.close()


@pytest.fixture(scope="module")
def agents(stores):
    """Return the agent of the population of each size."""
    return {size: stores.keep(population(size)) for size in SIZES}


def disagreements(memories, where, judged):
    """Return the memories that were not judged as by the twin, with what they were judged."""
    return [
        (judged.get(entry.id), entry)
        for entry in memories
        if judged.get(entry.id) != int(matches(where, entry))
    ]


def twin_page(memories, user, where, page):
    sort_by, limit, offset = page
    inside = [entry for entry in memories if user in (EVERYONE, entry.user_id)]
    found = [entry for entry in inside if matches(where, entry)]
    return [entry.id for entry in ordered(found, sort_by.name)][offset : offset + limit]


@PROFILE
@given(case=sizes_and_filters)
def test_every_memory_is_judged_as_by_the_twin(stores, agents, case):
    size, where = case
    judged = stores.judge(agents[size], where)
    event(f"size {size}, different judgements: {len(set(judged.values()))}")
    assert disagreements(population(size), where, judged) == []
    assert len(judged) == size
    assert stores.judge(agents[size], MemoryFilter(filters=where)) == judged
    negated = {entry_id: 1 - result for entry_id, result in judged.items()}
    assert stores.judge(agents[size], {"NOT": where}) == negated
    assert core(size).judge(where) == core(size).judge(MemoryFilter(filters=where)) == judged
    assert core(size).judge({"NOT": where}) == negated


@PROFILE
@given(where=one_field_filters(SIZES[-1]))
def test_every_field_and_operator_judges_as_the_twin_does(stores, agents, where):
    memories = population(SIZES[-1])
    judged = stores.judge(agents[SIZES[-1]], where)
    event(f"different judgements: {len(set(judged.values()))}")
    assert disagreements(memories, where, judged) == []
    assert disagreements(memories, where, core(SIZES[-1]).judge(where)) == []


@PROFILE
@given(case=sizes_and_filters, user=users, page=pages)
def test_pages_are_those_of_the_twin_in_its_order(stores, agents, case, user, page):
    size, where = case
    expected = twin_page(population(size), user, where, page)
    event(
        "empty page" if not expected else "full page" if len(expected) == page[1] else "last page"
    )
    assert stores.select(agents[size], user, where, page) == expected
    if page[0] in CORE_ORDERS:
        assert core(size).select(user, where, page) == expected


@PROFILE
@given(fields=some_fields, page=pages)
def test_fields_select_the_page_of_their_dict_form(stores, agents, fields, page):
    agent, memories = agents[SIZES[-1]], population(SIZES[-1])
    sort_by, limit, offset = page
    by_fields = MemoryFilter(**fields, sort_by=sort_by, limit=limit, offset=offset)
    expected = twin_page(memories, EVERYONE, dict_form(fields), page)
    event("empty page" if not expected else "page")
    assert (by_fields.sort_by, by_fields.limit, by_fields.offset) == page
    assert stores.select(agent, EVERYONE, by_fields, page) == expected
    assert stores.select(agent, EVERYONE, dict_form(fields), page) == expected
    if sort_by in CORE_ORDERS:
        assert core(SIZES[-1]).select(EVERYONE, by_fields, page) == expected


@PROFILE
@given(value=metadata_values, data=st.data())
def test_any_metadata_is_judged_as_by_the_twin(stores, value, data):
    held = tuple(flattened(value))
    wheres = data.draw(st.lists(field_filters(held, "metadata.m"), min_size=1, max_size=8))
    entry = memory(metadata={"m": value})
    agent, in_core = stores.keep([entry]), Core([entry])
    for where in wheres:
        assert disagreements([entry], where, stores.judge(agent, where)) == []
        assert disagreements([entry], where, in_core.judge(where)) == []


@PROFILE
@given(text=texts, part=texts)
@example("Straße", "STRASSE")
@example("İ", "i\u0307")
@example("\u0345\u0301α", "ΑΙ")
def test_contains_folds_content_and_metadata_as_the_twin_does(stores, text, part):
    entry = memory(content=f"<{text}>", metadata={"m": text})
    agent, in_core = stores.keep([entry]), Core([entry])
    for name, wanted in itertools.product(("content", "metadata.m"), (part, text.swapcase())):
        where = {name: {"contains": wanted}}
        assert disagreements([entry], where, stores.judge(agent, where)) == []
        assert disagreements([entry], where, in_core.judge(where)) == []


@st.composite
def close_numbers(draw):
    """Return a number that metadata can hold, and one that is hard to tell from it."""
    stored = draw(numbers)
    close = [stored, float(stored), int(stored), int(stored) + 1, -stored, *BEYOND]
    close += [math.nextafter(stored, bound) for bound in (-1e308, 1e308)]
    return stored, draw(st.sampled_from(close))


@PROFILE
@given(two=close_numbers())
def test_numbers_are_compared_exactly(stores, two):
    stored, asked = two
    entry = memory(metadata={"m": stored, "list": [stored]})
    agent, in_core = stores.keep([entry]), Core([entry])
    wheres = [{"metadata.m": {operator: asked}} for operator in ("eq", "ne", *ORDER)]
    wheres += [{"metadata.m": {"in": [asked]}}, {"metadata.list": {"contains": asked}}]
    for where in wheres:
        assert disagreements([entry], where, stores.judge(agent, where)) == []
        assert disagreements([entry], where, in_core.judge(where)) == []


@pytest.mark.parametrize("everything", [None, {}, {"AND": []}, MemoryFilter()])
def test_no_tests_select_everything(stores, everything):
    entry = memory()
    assert stores.judge(stores.keep([entry]), everything) == {entry.id: 1}
    assert Core([entry]).judge(everything) == {entry.id: 1}


@pytest.mark.parametrize(
    ("name", "test", "expected"),
    [
        ("one", {"in": list(range(10_000))}, 1),
        ("one", {"in": list(range(100, 10_100))}, 0),
        ("one", {"nin": list(range(10_000))}, 0),
        ("one", {"nin": list(range(100, 10_100))}, 1),
        ("many", {"any": list(range(99, 10_099))}, 1),
        ("many", {"any": list(range(100, 10_100))}, 0),
        ("many", {"all": list(range(100)) * 100}, 1),
        ("many", {"all": list(range(10_000))}, 0),
    ],
)
def test_ten_thousand_values_are_as_good_as_one(stores, name, test, expected):
    entry = memory(metadata={"one": 99, "many": list(range(100))})
    where = {f"metadata.{name}": test}
    assert stores.judge(stores.keep([entry]), where) == {entry.id: expected}
    assert Core([entry]).judge(where) == {entry.id: expected}


def test_two_hundred_tests_nested_twelve_deep_are_as_good_as_one(stores):
    memories = [memory(number, metadata={"n": number}) for number in range(250)]
    where = {"OR": [{"metadata.n": {"eq": number}} for number in range(200)]}
    for _ in range(5):
        where = {"AND": [{"NOT": where}]}
    expected = {entry.id: int(entry.id.int >= 200) for entry in memories}
    assert stores.judge(stores.keep(memories), where) == expected
    assert Core(memories).judge(where) == expected


# The front door: the same filters, asked as a user asks them.

COMMON = "zebra"


DOOR = Places("sqlite"), Places("postgres-search")


@cache
def at_the_door(places):
    """Return an open memory, and what is in it: the population as it would be living."""
    memories = [
        msgspec.structs.replace(
            entry,
            agent_id="default",
            content=f"{entry.content} {COMMON}",
            status=MemoryStatus.ACTIVE,
            expires_at=None,
            forgotten_at=None,
        )
        for entry in population(SIZES[-1])
    ]
    given = {"embedder": WordEmbedder(), "track_access": False, "clock": lambda: NOON}
    opened = places.opened(**given)
    opened.add_many(memories)
    return opened, memories


@pytest.fixture(scope="module", autouse=True)
def _closed_door():
    yield
    at_the_door.cache_clear()
    for places in DOOR:
        places.close()


DOORS = {
    "recent": lambda opened, **options: opened.recent(**options),
    "important": lambda opened, **options: opened.important(**options),
    "hybrid": lambda opened, **options: opened.search(COMMON, **options),
    "semantic": lambda opened, **options: opened.search(COMMON, search_type="semantic", **options),
    "keyword": lambda opened, **options: opened.search(COMMON, search_type="keyword", **options),
}


@PROFILE
@given(where=filters(SIZES[-1]), door=st.sampled_from(list(DOORS)), user=users)
def test_every_search_of_the_front_door_finds_what_the_twin_lets_through(where, door, user):
    asked = DOOR if is_chosen(where, door, user) else DOOR[:1]
    for places in asked:
        check_at_the_door(*at_the_door(places), where, door, user)


def check_at_the_door(opened, memories, where, door, user):
    scope = {"all_users": True} if user == EVERYONE else {"user_id": user}
    inside = [entry for entry in memories if user in (EVERYONE, entry.user_id)]
    expected = {entry.id for entry in inside if matches(where, entry)}
    event("nothing" if not expected else "all" if len(expected) == len(inside) else "some")
    found = DOORS[door](opened, filters=where, limit=1000, **scope)
    assert {hit.id for hit in found} == expected
    assert len(found) == len(expected)
    head = DOORS[door](opened, filters=where, limit=3, **scope)
    assert head == found[:3]
