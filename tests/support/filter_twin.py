"""A naive evaluator of filters: what every other evaluator is compared with.

It reads the dict as it was written, judges one entry at a time, and knows neither SQL nor the
expression tree. It judges open entries: sealed ones have to be unsealed before.
"""

import operator
import unicodedata
from datetime import UTC, datetime
from uuid import UUID

from mnemic.model import MemoryStatus, MemoryType
from mnemic.records import NumberedEnum

FIELDS = frozenset({
    "id", "type", "status", "role", "speaker", "session_id", "project_id", "category", "scope",
    "source", "message_id", "position", "version", "importance", "access_count", "created_at",
    "updated_at", "last_accessed_at", "expires_at", "content", "tags", "sensitive",
})  # fmt: skip


def matches(where, entry):
    """Return whether every test of the filter `where` holds for the entry."""
    return all(_holds(name, test, entry) for name, test in where.items())


def ordered(entries, sort_name):
    """Return the entries in the total order that the name of a `MemorySortOrder` stands for."""
    by_id = sorted(entries, key=lambda entry: entry.id.bytes)
    newest_first = sorted(by_id, key=lambda entry: entry.created_at, reverse=True)  # stable
    field, is_descending = _SORT_KEYS[sort_name]
    present = [entry for entry in newest_first if getattr(entry, field) is not None]
    missing = [entry for entry in newest_first if getattr(entry, field) is None]
    present.sort(key=operator.attrgetter(field), reverse=is_descending)
    return present + missing


def folded(text):
    """Return the form in which `contains` compares strings."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


_SORT_KEYS = {
    "CREATED_DESCENDING": ("created_at", True),
    "CREATED_ASCENDING": ("created_at", False),
    "IMPORTANCE_DESCENDING": ("importance", True),
    "ACCESSED_DESCENDING": ("last_accessed_at", True),
    "ACCESS_COUNT_DESCENDING": ("access_count", True),
}


def _holds(name, test, entry):
    if name == "AND":
        return all(matches(part, entry) for part in test)
    if name == "OR":
        return any(matches(part, entry) for part in test)
    if name == "NOT":
        return not matches(test, entry)
    if name == "metadata":
        return _holds_below(entry.metadata, test)
    return _passes_all(name, _value(name, entry), test)


def _holds_below(held, tests):
    """Return whether the tests of a dict below metadata hold for what is there."""
    values = held if isinstance(held, dict) else {}
    return all(_holds_at(values.get(name.removeprefix("\\")), test) for name, test in tests.items())


def _holds_at(value, test):
    names_keys = isinstance(test, dict) and not {name.removeprefix("$") for name in test} <= _NAMES
    return _holds_below(value, test) if names_keys else _passes_all("metadata", value, test)


def _passes_all(name, value, test):
    operators = test if isinstance(test, dict) else {"eq": test}
    return all(
        _passes(value, operator_name.removeprefix("$"), _read(name, argument))
        for operator_name, argument in operators.items()
    )


def _value(name, entry):
    """Return what the entry has under this name, None if nothing; a metadata key may hold dots."""
    if name.startswith("metadata."):
        return entry.metadata.get(name.removeprefix("metadata."))
    if name not in FIELDS:
        raise ValueError(f"{name!r} is not a field")
    return getattr(entry, name)


def _read(name, argument):
    """Return an argument as the field's own kind of value, where it has several spellings."""
    if isinstance(argument, list | tuple | set | frozenset):
        return [_read(name, one) for one in argument]
    read = _SPELLINGS.get(name)
    return (
        argument
        if read is None or argument is None or isinstance(argument, bool)
        else read(argument)
    )


def _time(given):
    time = datetime.fromisoformat(given) if isinstance(given, str) else given
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


_SPELLINGS = {
    "id": lambda given: given if isinstance(given, UUID) else UUID(given),
    "type": MemoryType.parse,
    "status": MemoryStatus.parse,
    "created_at": _time,
    "updated_at": _time,
    "last_accessed_at": _time,
    "expires_at": _time,
}


def _passes(value, operator_name, argument):
    if value is None:
        return _MISSING[operator_name](argument)
    return _PRESENT[operator_name](value, argument)


def _kind(value):
    """Return the name of the kind of values that this one is compared with."""
    for kind, types in _KINDS:
        if isinstance(value, types):
            return kind
    raise ValueError(f"{value!r} is not a value")


_KINDS = (
    ("null", type(None)),
    ("boolean", bool),  # before the numbers: a bool is an int to Python
    ("number", int | float | NumberedEnum),
    ("string", str),
    ("time", datetime),
    ("id", UUID),
    ("list", list | tuple),
    ("dict", dict),
)


def _equal(one, other):
    kind = _kind(one)
    if kind != _kind(other):
        return False
    if kind == "list":
        return len(one) == len(other) and all(map(_equal, one, other))
    if kind == "dict":
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    return one == other


def _has(values, wanted):
    return any(_equal(value, wanted) for value in values)


def _in_order(compare):
    def passes(value, argument):
        kind = _kind(value)
        return kind == _kind(argument) and kind in _ORDERED and compare(value, argument)

    return passes


_ORDERED = frozenset({"number", "string", "time"})


def _contains(value, argument):
    if _kind(value) == "list":
        return _has(value, argument)
    return _kind(value) == _kind(argument) == "string" and folded(argument) in folded(value)


def _begins(value, argument):
    texts = value if _kind(value) == "list" else [value]
    return any(isinstance(text, str) and text.startswith(argument) for text in texts)


def _never(_argument):
    return False


_PRESENT = {
    "eq": _equal,
    "ne": lambda value, argument: not _equal(value, argument),
    "gt": _in_order(operator.gt),
    "gte": _in_order(operator.ge),
    "lt": _in_order(operator.lt),
    "lte": _in_order(operator.le),
    "in": lambda value, arguments: _has(arguments, value),
    "nin": lambda value, arguments: not _has(arguments, value),
    "contains": _contains,
    "prefix": _begins,
    "any": lambda value, wanted: _kind(value) == "list" and any(_has(value, one) for one in wanted),
    "all": lambda value, wanted: _kind(value) == "list" and all(_has(value, one) for one in wanted),
    "exists": lambda _value, argument: argument,
}

_NAMES = frozenset(_PRESENT)

_MISSING = dict.fromkeys(_PRESENT, _never) | {
    "eq": lambda argument: argument is None,
    "ne": lambda argument: argument is not None,
    "nin": lambda arguments: None not in arguments,
    "exists": lambda argument: not argument,
}
