"""Any filter on any memories: SQL and the core give the rows of the naive twin, in its order."""

# ruff: noqa: RUF001 - letters that look alike are the point

import itertools
import math
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from random import Random
from uuid import UUID

import apsw
import msgspec
import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from mnemic import Memory
from mnemic.index import NativeIndex, RankRequest
from mnemic.model import (
    MOST_IMPORTANT,
    NEWEST,
    MemoryStatus,
    MemoryType,
    NewEntry,
    RowBatch,
    Scope,
)
from mnemic.model.filter import MemoryFilter, MemorySortOrder, parse_filter
from mnemic.store import SqliteStore
from mnemic.store.sqlite import filter_sql
from mnemic.store.sqlite.row_codec import to_row
from mnemic.sync_bridge import run_sync
from tests.support.clock import EPOCH, MICROSECOND, NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import numbered
from tests.support.filter_twin import matches, ordered

pytestmark = pytest.mark.requirement("R045", "R046", "R047", "R048", "R049", "R050", "R051", "C103")

PROFILE = settings(max_examples=300, deadline=None, derandomize=True)
EVERYONE = "everyone"

# What the memories are made of: few values, so that filters meet them, and all of the hard ones.

WORDS = (
    *("tea", "Tea", "TEA at noon", "Straße", "STRASSE", "straẞe", "İstanbul", "istanbul"),
    *("i\u0307stanbul", "caf\u00e9", "CAFE\u0301", "ΟΔΟΣ", "οδος", "οδοσ", "ﬁsh", "fish", "２０ ℃"),
    *("20 °c", "你好", "😀", "\ufffd", "100%", "a_b", "%", "_", "it's", 'say "so"', "back\\slash"),
    *("1", "1.0", "true", "null", "[1]", "2026-05-01T12:00:00Z", " ", "x'00'", "? ?1 :a"),
)
HARD_LETTERS = ("ß", "ẞ", "İ", "ı", "Σ", "ς", "ſ", "Å", "é", "e", "𝕬", "ﬀ", "Ⅷ", "ŉ", "i")
KEYS = (
    *("a", "b", "b.c", "it's", 'say "so"', "$", "$eq", "eq", "[0]", "a[0]", "AND", "back\\slash"),
    *("caf\u00e9", "cafe\u0301", "ß", "SS", " ", "a b", "😀", "line\nbreak", "#", "?1"),
)
NUMBERS = (
    *(0, 1, -1, 2, 3, 10, 2**53, -(2**53), 2**53 - 1),
    *(0.0, -0.0, 1.0, -1.0, 1.5, 2.0, 0.1, 0.1 + 0.2, 0.3, 1e300, -1e300, 5e-324, float(2**53)),
)
BEYOND = (2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))
"""Numbers that a filter may ask for though metadata cannot hold them."""

TIMES = (
    *(NOON, NOON - MICROSECOND, NOON + MICROSECOND, NOON - timedelta(hours=2)),
    *(EPOCH, EPOCH - MICROSECOND, EPOCH + MICROSECOND, datetime(1901, 1, 1, tzinfo=UTC)),
)
ZONES = (UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-5, minutes=-30)))


def memory(number=1, **fields):
    return numbered(number, **{"content": "c", **fields})


def any_memory(random):
    words = WORDS * 2 + HARD_LETTERS
    optional_words = (None, *words)
    optional_times = (None, *TIMES)
    likely = {key: any_value(random) for key in KEYS[:4] if random.random() < 0.7}
    seldom = {key: any_value(random) for key in KEYS[4:] if random.random() < 0.2}
    return memory(
        random.getrandbits(128),
        content=" ".join(random.choices(words, k=3)) + "!",
        created_at=random.choice(TIMES),
        updated_at=random.choice(TIMES),
        user_id=random.choice([None, "alice", "bob"]),
        project_id=random.choice(optional_words),
        session_id=random.choice(optional_words),
        role=random.choice([None, "user", "assistant"]),
        speaker=random.choice(optional_words),
        category=random.choice(optional_words),
        scope=random.choice(optional_words),
        type=random.choice(list(MemoryType)),
        status=random.choice(list(MemoryStatus)),
        importance=random.choice([0.0, 0.1, 0.3, 0.5, 1.0, random.random()]),
        access_count=random.choice([0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1]),
        version=random.randint(1, 3),
        last_accessed_at=random.choice(optional_times),
        expires_at=random.choice(optional_times),
        forgotten_at=random.choice(optional_times),
        tags=random.choices(words[:12] + HARD_LETTERS, k=random.randint(0, 4)),
        metadata=likely | seldom,
        sensitive=random.random() < 0.5,
    )


def any_value(random, depth=2):
    """Return what metadata may hold under a key: six scalars to one list and one dict."""
    sort = random.randrange(8 if depth else 6)
    if sort == 7:
        keys = random.sample(KEYS, random.randint(0, 2))
        return {key: any_value(random, depth - 1) for key in keys}
    if sort == 6:
        return [any_value(random, depth - 1) for _ in range(random.randint(0, 4))]
    return random.choice((None, True, False)) if sort == 0 else any_scalar(random, sort)


def any_scalar(random, sort):
    if sort in {1, 2}:
        return random.choice(NUMBERS)
    if sort == 3:
        return random.choice((random.uniform(-9, 9), random.gauss(0, 1e18), random.getrandbits(53)))
    return random.choice(("", *WORDS, *HARD_LETTERS))


@cache
def population(size):
    """Return memories that are the same in every run."""
    random = Random(size)  # noqa: S311 - repeatable, not secret
    return [any_memory(random) for _ in range(size)]


SIZES = (0, 1, 7, 120)

# What the filters are made of: often the very values that the memories hold.

# Unassigned characters may be assigned in the newer Unicode of the core. NUL is not stored.
letters = st.characters(exclude_categories=["Cs", "Cn", "Co"], exclude_characters="\0")
texts = st.sampled_from(("", *WORDS)) | st.text(letters, max_size=4)
numbers = (
    st.sampled_from(NUMBERS)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**53), 2**53)
)
scalars = st.sampled_from((None, True, False, "", 0, 1)) | numbers | texts
metadata_values = (
    scalars
    | st.lists(scalars, max_size=3)
    | st.lists(st.lists(scalars, max_size=2), max_size=2)
    | st.dictionaries(st.sampled_from(KEYS), scalars, max_size=2)
)

EQUALITY = ("eq", "ne", "in", "nin", "exists")
ORDER = ("gt", "gte", "lt", "lte")
LISTS = ("contains", "any", "all")
OPERATORS = {
    **dict.fromkeys(("id", "type", "status", "sensitive"), EQUALITY),
    **dict.fromkeys(("version", "importance", "access_count"), EQUALITY + ORDER),
    **dict.fromkeys(
        ("created_at", "updated_at", "last_accessed_at", "expires_at"), EQUALITY + ORDER
    ),
    **dict.fromkeys(
        ("role", "speaker", "session_id", "project_id", "category", "scope", "content"),
        (*EQUALITY, *ORDER, "contains"),
    ),
    "tags": ("exists", *LISTS),
}
METADATA_OPERATORS = (*EQUALITY, *ORDER, *LISTS)
OF_LISTS = frozenset({"in", "nin", "any", "all"})


def flattened(value):
    """Yield the scalars that a stored value is made of."""
    if isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(flattened, value))
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(flattened, value.values()))
    else:
        yield value


@cache
def held_by(size, name):
    """Return the scalars that the population of this size holds under this name."""
    field, _, key = name.partition(".")
    values = [getattr(entry, field) for entry in population(size)]
    return tuple(flattened([value.get(key) for value in values] if key else values))


def spelled_time(time, zone, spelling):
    """Return the time as a datetime, aware or naive, or as a text."""
    local = time.astimezone(zone)
    if spelling == "naive":
        return time.replace(tzinfo=None)
    if spelling == "naive text":
        return time.replace(tzinfo=None).isoformat()
    if spelling == "text":
        return local.isoformat()
    return time.isoformat().replace("+00:00", "Z") if spelling == "Z" else local


def datetimes(times, *further_spellings):
    spellings = st.sampled_from(["aware", "naive", *further_spellings])
    return st.builds(spelled_time, st.sampled_from(times), st.sampled_from(ZONES), spellings)


def spelled_members(members):
    spellings = [(each, int(each), each.name, each.name.lower()) for each in members]
    return st.sampled_from(list(itertools.chain.from_iterable(spellings)))


def arguments(held, name):
    """Return a strategy of single values to compare this name with; `held` are likely."""
    if name.endswith("_at"):
        return datetimes(TIMES, "text", "naive text", "Z") | st.none()
    if name in {"type", "status"}:
        return spelled_members(MemoryType if name == "type" else MemoryStatus) | st.none()
    if name == "id":
        ids = st.sampled_from((*held, UUID(int=1)))
        return ids | ids.map(str) | st.none()
    anything = scalars | st.sampled_from(BEYOND)
    return st.one_of(*[st.sampled_from(held)] * 6, anything) if held else anything


def in_order(value):
    """Return what may be ordered: whether booleans are is not said, so text stands for them."""
    return str(value) if isinstance(value, bool) else value


def part_of(value, start, length):
    """Return a part of a string in another case, so that it is contained; others as they are."""
    return value[start : start + length].swapcase() if isinstance(value, str) else value


def operator_arguments(held, name, operator):
    values = arguments(held, name)
    if operator == "exists":
        return st.booleans()
    if operator in OF_LISTS:
        lists = st.lists(values, max_size=3)
        return lists | lists.map(tuple)
    if operator in ORDER:
        return values.map(in_order)
    if operator == "contains" and name != "tags":
        return values | st.builds(part_of, values, st.integers(0, 3), st.integers(1, 5))
    return values


@st.composite
def field_filters(draw, held, name):
    """Return a filter that tests one name, by one or two operators or in the short form."""
    operators = METADATA_OPERATORS if name.startswith("metadata.") else OPERATORS[name]
    if "eq" in operators and draw(st.integers(0, 5)) == 0:
        return {name: draw(arguments(held, name))}
    chosen = draw(st.lists(st.sampled_from(operators), min_size=1, max_size=2))
    prefixes = st.sampled_from(("", "$"))
    return {
        name: {
            draw(prefixes) + operator: draw(operator_arguments(held, name, operator))
            for operator in chosen
        }
    }


NAMES = (*OPERATORS, *("metadata." + key for key in KEYS), *("metadata." + key for key in KEYS[:4]))


@cache
def one_field_filters(size):
    """Return a strategy of filters of one name for the population of this size."""
    return st.sampled_from(NAMES).flatmap(lambda name: field_filters(held_by(size, name), name))


@cache
def filters(size, depth=2):
    """Return a strategy of filters for the population of this size; empty ones are seldom."""
    simple = one_field_filters(size)
    if depth == 0:
        return simple
    inner = filters(size, depth - 1)
    some = st.lists(inner, min_size=1, max_size=3)
    several = st.one_of(some, some, some, some, st.just([]))
    grouped = st.one_of(
        st.fixed_dictionaries({"OR": several}),
        st.fixed_dictionaries({"AND": several}),
        st.fixed_dictionaries({"NOT": inner}),
    )
    mixed = st.lists(simple | grouped, max_size=3).map(merged)
    return st.one_of(simple, grouped, grouped, mixed)


def merged(parts):
    return {name: test for part in parts for name, test in part.items()}


sizes_and_filters = st.sampled_from((*SIZES, *[SIZES[-1]] * 4)).flatmap(
    lambda size: st.tuples(st.just(size), filters(size))
)
pages = st.tuples(st.sampled_from(MemorySortOrder), st.integers(1, 40), st.integers(0, 20))
users = st.sampled_from((EVERYONE, None, "alice", "bob"))

tags = st.sampled_from(held_by(SIZES[-1], "tags"))
FIELDS = {
    "types": st.lists(spelled_members(MemoryType), max_size=8),
    "tags": st.lists(tags, max_size=2),
    "any_tags": st.lists(tags, max_size=4),
    "min_importance": st.sampled_from((0, 0.1, 0.3, 0.30000000000000004, 0.5, 1)),
    "created_after": datetimes(TIMES),
    "created_before": datetimes(TIMES),
    "content_contains": st.builds(
        part_of, st.sampled_from(WORDS + HARD_LETTERS), st.just(0), st.integers(1, 3)
    ),
    "where": filters(SIZES[-1], depth=1),
}
DICT_FORMS = {
    "types": lambda types: {"type": {"in": types}},
    "tags": lambda tags: {"tags": {"all": tags}},
    "any_tags": lambda tags: {"tags": {"any": tags}},
    "min_importance": lambda importance: {"importance": {"gte": importance}},
    "created_after": lambda time: {"created_at": {"gte": time}},
    "created_before": lambda time: {"created_at": {"lt": time}},
    "content_contains": lambda text: {"content": {"contains": text}},
    "where": lambda where: where,
}
"""What each field of a `MemoryFilter` means."""

some_fields = st.lists(st.sampled_from(list(FIELDS)), max_size=3, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: FIELDS[name] for name in names})
)


def dict_form(fields):
    return {"AND": [DICT_FORMS[name](value) for name, value in fields.items()]}


# Where they meet: one file, in which every population has an agent of its own.


class File:
    def __init__(self, path):
        self.store = SqliteStore(path)
        self.connection = apsw.Connection(str(path))
        filter_sql.register(self.connection)
        self.numbers = itertools.count()

    def close(self):
        self.connection.close()
        run_sync(self.store.close())

    def keep(self, memories):
        """Store the memories for an agent of their own; return its name."""
        agent = f"agent {next(self.numbers)}"
        owned = [NewEntry(msgspec.structs.replace(entry, agent_id=agent)) for entry in memories]
        run_sync(self.store.add(agent, owned, now=NOON, is_import=True))
        return agent

    def judge(self, agent, given_filter):
        """Return for every memory of the agent what the compiled condition is."""
        condition, values = filter_sql.compiled(parse_filter(given_filter))
        sql = f"SELECT id, ({condition}) FROM agent_memory_entries WHERE agent_id = ?"  # noqa: S608 - values are bound
        found = self.connection.execute(sql, (*values, agent))
        return {UUID(bytes=entry_id): result for entry_id, result in found}

    def select(self, agent, user, given_filter, page):
        """Return the ids of the page of memories that pass."""
        condition, values = filter_sql.compiled(parse_filter(given_filter))
        wall, walled = ("", []) if user == EVERYONE else ("AND user_id IS ?", [user])
        sort_by, limit, offset = page
        sql = (
            f"SELECT id FROM agent_memory_entries WHERE agent_id = ? {wall} AND ({condition}) "  # noqa: S608 - values are bound
            f"ORDER BY {filter_sql.order_by(sort_by)} LIMIT ? OFFSET ?"
        )
        found = self.connection.execute(sql, (agent, *walled, *values, limit, offset))
        return [UUID(bytes=entry_id) for (entry_id,) in found]


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
        nothing = np.empty(0, dtype=np.int64), np.empty((0, 1), dtype=np.float32)
        assert self.index.apply(RowBatch(None, 1, records, *nothing, []))

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
        given = {"now": BEFORE_ALL, "limit": limit, "ranking": ranking, "where": where, **options}
        return self.index.rank(RankRequest(scope=scope, **given))


@cache
def core(size):
    """Return the core's index of the population of this size."""
    return Core(population(size))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    opened = File(tmp_path_factory.mktemp("filters") / "a.db")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def agents(file):
    """Return the agent of the population of each size."""
    return {size: file.keep(population(size)) for size in SIZES}


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
def test_every_memory_is_judged_as_by_the_twin_and_never_null(file, agents, case):
    size, where = case
    judged = file.judge(agents[size], where)
    event(f"size {size}, different judgements: {len(set(judged.values()))}")
    assert disagreements(population(size), where, judged) == []
    assert len(judged) == size
    assert file.judge(agents[size], MemoryFilter(where=where)) == judged
    negated = {entry_id: 1 - result for entry_id, result in judged.items()}
    assert file.judge(agents[size], {"NOT": where}) == negated
    assert core(size).judge(where) == core(size).judge(MemoryFilter(where=where)) == judged
    assert core(size).judge({"NOT": where}) == negated


@PROFILE
@given(where=one_field_filters(SIZES[-1]))
def test_every_field_and_operator_judges_as_the_twin_does(file, agents, where):
    memories = population(SIZES[-1])
    judged = file.judge(agents[SIZES[-1]], where)
    event(f"different judgements: {len(set(judged.values()))}")
    assert disagreements(memories, where, judged) == []
    assert disagreements(memories, where, core(SIZES[-1]).judge(where)) == []


@PROFILE
@given(case=sizes_and_filters, user=users, page=pages)
def test_pages_are_those_of_the_twin_in_its_order(file, agents, case, user, page):
    size, where = case
    expected = twin_page(population(size), user, where, page)
    event(
        "empty page" if not expected else "full page" if len(expected) == page[1] else "last page"
    )
    assert file.select(agents[size], user, where, page) == expected
    if page[0] in CORE_ORDERS:
        assert core(size).select(user, where, page) == expected


@PROFILE
@given(fields=some_fields, page=pages)
def test_fields_select_the_page_of_their_dict_form(file, agents, fields, page):
    agent, memories = agents[SIZES[-1]], population(SIZES[-1])
    sort_by, limit, offset = page
    by_fields = MemoryFilter(**fields, sort_by=sort_by, limit=limit, offset=offset)
    expected = twin_page(memories, EVERYONE, dict_form(fields), page)
    event("empty page" if not expected else "page")
    assert (by_fields.sort_by, by_fields.limit, by_fields.offset) == page
    assert file.select(agent, EVERYONE, by_fields, page) == expected
    assert file.select(agent, EVERYONE, dict_form(fields), page) == expected
    if sort_by in CORE_ORDERS:
        assert core(SIZES[-1]).select(EVERYONE, by_fields, page) == expected


@PROFILE
@given(value=metadata_values, data=st.data())
def test_any_metadata_is_judged_as_by_the_twin(file, value, data):
    held = tuple(flattened(value))
    wheres = data.draw(st.lists(field_filters(held, "metadata.m"), min_size=1, max_size=8))
    entry = memory(metadata={"m": value})
    agent, in_core = file.keep([entry]), Core([entry])
    for where in wheres:
        assert disagreements([entry], where, file.judge(agent, where)) == []
        assert disagreements([entry], where, in_core.judge(where)) == []


@PROFILE
@given(text=texts, part=texts)
@example("Straße", "STRASSE")
@example("İ", "i\u0307")
@example("\u0345\u0301α", "ΑΙ")
def test_contains_folds_content_and_metadata_as_the_twin_does(file, text, part):
    entry = memory(content=f"<{text}>", metadata={"m": text})
    agent, in_core = file.keep([entry]), Core([entry])
    for name, wanted in itertools.product(("content", "metadata.m"), (part, text.swapcase())):
        where = {name: {"contains": wanted}}
        assert disagreements([entry], where, file.judge(agent, where)) == []
        assert disagreements([entry], where, in_core.judge(where)) == []


@st.composite
def close_numbers(draw):
    """Return a number that metadata can hold, and one that is hard to tell from it."""
    stored = draw(numbers)
    close = [stored, float(stored), int(stored), int(stored) + 1, -stored, *BEYOND]
    close += [math.nextafter(stored, bound) for bound in (-1e308, 1e308)]
    # Ints that take more than 64 bits are refused, see tests/store/sqlite/test_filter_sql.py.
    fitting = [one for one in close if isinstance(one, float) or -(2**63) <= one < 2**63]
    return stored, draw(st.sampled_from(fitting))


@PROFILE
@given(two=close_numbers())
def test_numbers_are_compared_exactly(file, two):
    stored, asked = two
    entry = memory(metadata={"m": stored, "list": [stored]})
    agent, in_core = file.keep([entry]), Core([entry])
    wheres = [{"metadata.m": {operator: asked}} for operator in ("eq", "ne", *ORDER)]
    wheres += [{"metadata.m": {"in": [asked]}}, {"metadata.list": {"contains": asked}}]
    for where in wheres:
        assert disagreements([entry], where, file.judge(agent, where)) == []
        assert disagreements([entry], where, in_core.judge(where)) == []


@pytest.mark.parametrize("everything", [None, {}, {"AND": []}, MemoryFilter()])
def test_no_tests_select_everything(file, everything):
    entry = memory()
    assert file.judge(file.keep([entry]), everything) == {entry.id: 1}
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
def test_ten_thousand_values_are_as_good_as_one(file, name, test, expected):
    entry = memory(metadata={"one": 99, "many": list(range(100))})
    where = {f"metadata.{name}": test}
    assert file.judge(file.keep([entry]), where) == {entry.id: expected}
    assert Core([entry]).judge(where) == {entry.id: expected}


def test_two_hundred_tests_nested_twelve_deep_are_as_good_as_one(file):
    memories = [memory(number, metadata={"n": number}) for number in range(250)]
    where = {"OR": [{"metadata.n": {"eq": number}} for number in range(200)]}
    for _ in range(5):
        where = {"AND": [{"NOT": where}]}
    expected = {entry.id: int(entry.id.int >= 200) for entry in memories}
    assert file.judge(file.keep(memories), where) == expected
    assert Core(memories).judge(where) == expected


# The front door: the same filters, asked as a user asks them.

COMMON = "zebra"


@cache
def at_the_door():
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
    opened = Memory(":memory:", embedder=WordEmbedder(), track_access=False, clock=lambda: NOON)
    opened.add_many(memories)
    return opened, memories


@pytest.fixture(scope="module", autouse=True)
def _closed_door():
    yield
    if at_the_door.cache_info().currsize:
        at_the_door()[0].close()
        at_the_door.cache_clear()


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
    opened, memories = at_the_door()
    scope = {"all_users": True} if user == EVERYONE else {"user_id": user}
    inside = [entry for entry in memories if user in (EVERYONE, entry.user_id)]
    expected = {entry.id for entry in inside if matches(where, entry)}
    event("nothing" if not expected else "all" if len(expected) == len(inside) else "some")
    found = DOORS[door](opened, filters=where, limit=1000, **scope)
    assert {hit.id for hit in found} == expected
    assert len(found) == len(expected)
    head = DOORS[door](opened, filters=where, limit=3, **scope)
    assert head == found[:3]
