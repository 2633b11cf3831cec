"""Random memories and random filters on them."""
# ruff: noqa: RUF001 - letters that look alike are the point

import itertools
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from random import Random
from uuid import UUID

from hypothesis import strategies as st

from mnemic.model import (
    MemoryStatus,
    MemoryType,
)
from mnemic.model.filter import MemorySortOrder
from tests.support.clock import EPOCH, MICROSECOND, NOON
from tests.support.entries import numbered

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
BEYOND = (
    *(2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, 2**64 + 1),
    *(int(1e300), int(1e300) - 1, 10**300, -(10**300), 2**1024, 10**400, -(10**400)),
)
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
    optional_names = (None, *(word for word in words if word == word.strip()))
    optional_times = (None, *TIMES)
    likely = {key: any_value(random) for key in KEYS[:4] if random.random() < 0.7}
    seldom = {key: any_value(random) for key in KEYS[4:] if random.random() < 0.2}
    return memory(
        random.getrandbits(128),
        content=" ".join(random.choices(words, k=3)) + "!",
        created_at=random.choice(TIMES),
        updated_at=random.choice(TIMES),
        user_id=random.choice([None, "alice", "bob"]),
        project_id=random.choice(optional_names),
        session_id=random.choice(optional_names),
        role=random.choice([None, "user", "assistant"]),
        speaker=random.choice(optional_words),
        category=random.choice(optional_words),
        scope=random.choice(optional_words),
        source=random.choice(optional_words),
        message_id=random.choice(optional_words),
        position=random.choice((None, 0, 1, 2, 2**53, 2**63 - 1)),
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
LISTS = ("contains", "prefix", "any", "all")
OPERATORS = {
    **dict.fromkeys(("id", "type", "status", "sensitive"), EQUALITY),
    **dict.fromkeys(("version", "importance", "access_count", "position"), EQUALITY + ORDER),
    **dict.fromkeys(
        ("created_at", "updated_at", "last_accessed_at", "expires_at"), EQUALITY + ORDER
    ),
    **dict.fromkeys(
        (
            *("role", "speaker", "session_id", "project_id", "category", "scope", "source"),
            *("message_id", "content"),
        ),
        (*EQUALITY, *ORDER, "contains", "prefix"),
    ),
    "tags": (*EQUALITY, *LISTS),
}
METADATA_OPERATORS = (*EQUALITY, *ORDER, *LISTS)
OF_LISTS = frozenset({"in", "nin", "any", "all"})
OF_JSON = frozenset({"eq", "ne", "in", "nin", "contains", "any", "all"})
"""Operators of metadata whose values may be lists and dicts."""


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


def head_of(value, length):
    """Return the beginning of a string; of another value that of its repr."""
    return (value if isinstance(value, str) else repr(value))[:length]


def operator_arguments(held, name, operator):
    values = arguments(held, name)
    if operator == "exists":
        return st.booleans()
    if operator == "prefix":
        return st.builds(head_of, values, st.integers(0, 3))
    if name == "tags" and operator in EQUALITY:
        values = tag_lists(held)
    elif name.startswith("metadata.") and operator in OF_JSON:
        values = st.one_of(values, values, values, metadata_values)
    if operator in OF_LISTS:
        lists = st.lists(values, max_size=3)
        return lists | lists.map(tuple)
    if operator in ORDER:
        return values.map(in_order)
    if operator == "contains" and name != "tags":
        return values | st.builds(part_of, values, st.integers(0, 3), st.integers(1, 5))
    return values


def tag_lists(held):
    tags = st.sampled_from(held) if held else texts
    return st.lists(tags, max_size=3) | st.sampled_from(
        [list(entry.tags) for entry in population(SIZES[-1])]
    )


@st.composite
def field_filters(draw, held, name):
    """Return a filter that tests one name, by one or two operators or in the short form."""
    operators = METADATA_OPERATORS if name.startswith("metadata.") else OPERATORS[name]
    if "eq" in operators and draw(st.integers(0, 5)) == 0:
        return {name: draw(tag_lists(held) if name == "tags" else arguments(held, name))}
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
    named = st.sampled_from(NAMES).flatmap(lambda name: field_filters(held_by(size, name), name))
    return st.one_of(named, named, named, filters_below(size))


@st.composite
def filters_below(draw, size):
    """Return a filter of a dict below metadata."""
    path = draw(
        st.sampled_from(paths(size)) | st.lists(st.sampled_from(KEYS), min_size=1, max_size=3)
    )
    held = tuple(flattened([value_at(entry.metadata, path) for entry in population(size)]))
    test = draw(field_filters(held, "metadata.key"))["metadata.key"]
    for key in reversed(path):
        test = {escaped(key): test}
    return {"metadata": test}


@cache
def paths(size):
    """Return the paths into the metadata of the population of this size."""
    found = {path for entry in population(size) for path in paths_of(entry.metadata)}
    return sorted(found) or [("a",)]


def paths_of(value):
    """Yield the paths to the values of dicts in dicts."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (key,)
        yield from ((key, *path) for path in paths_of(inner))


def value_at(value, path):
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def escaped(key):
    """Return a key as it is written below metadata, where operators have no backslash."""
    return f"\\{key}" if key.startswith(("$", "\\")) or key == "eq" else key


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
    "filters": filters(SIZES[-1], depth=1),
}
DICT_FORMS = {
    "types": lambda types: {"type": {"in": types}},
    "tags": lambda tags: {"tags": {"all": tags}},
    "any_tags": lambda tags: {"tags": {"any": tags}},
    "min_importance": lambda importance: {"importance": {"gte": importance}},
    "created_after": lambda time: {"created_at": {"gte": time}},
    "created_before": lambda time: {"created_at": {"lt": time}},
    "content_contains": lambda text: {"content": {"contains": text}},
    "filters": lambda where: where,
}
"""What each field of a `MemoryFilter` means."""

some_fields = st.lists(st.sampled_from(list(FIELDS)), max_size=3, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: FIELDS[name] for name in names})
)


def dict_form(fields):
    return {"AND": [DICT_FORMS[name](value) for name, value in fields.items()]}
