"""Values of filters: their checks, and the errors that name the place of a wrong one."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from mnemic.errors import FilterError
from mnemic.model import validation
from mnemic.model.entry import MemoryStatus, MemoryType
from mnemic.records import NumberedEnum
from mnemic.reporting.description import described, hidden, is_word, quoted

MAX_LIST = 10_000
"""Maximum number of values of one test, nested ones included."""

MAX_LEVELS = validation.MAX_METADATA_DEPTH
"""Maximum number of keys of a path into metadata, and of levels of a value."""

Scalar: TypeAlias = bool | int | float | str | datetime | UUID | None
Value: TypeAlias = "Scalar | JsonObject | tuple[Value, ...]"
Read = TypeVar("Read")
Reader: TypeAlias = Callable[[str, object], Read]
"""Converts a value at a place to its final form, or raises FilterError."""


class JsonObject(msgspec.Struct, frozen=True):
    """A dict to compare with.

    Attributes:
        items: Keys and values, by key.
    """

    items: tuple[tuple[str, Value], ...]


METADATA = "metadata."
"""Beginning of the field of one metadata key."""


def counted(place: str, what: str, number: int, limit: int) -> int:
    """Return a number plus one; raise if it would pass the limit."""
    if number == limit:
        raise wrong(place, f"{limit + 1} {what}", f"{limit}")
    return number + 1


def wrong(place: str, found: str, allowed: str) -> FilterError:
    """Return the error of a wrong value at a place."""
    return FilterError(f"{place}: found {found}, allowed: {allowed}")


def step(name: object) -> str:
    """Return a name as a part of a place; a name that is not a word may be content: hidden."""
    if not isinstance(name, str):
        return described(name)
    if is_word(name):
        return name
    if name.startswith(METADATA):
        return f"{METADATA}{hidden(name.removeprefix(METADATA))}"
    return hidden(name)


def shown(found: object) -> str:
    """Return type and size of a value, for an error."""
    return _typed(described(found), found)


def shown_word(found: object) -> str:
    """Return `shown` of a value, and a short word as it is."""
    return _typed(quoted(found), found)


def _typed(text: str, found: object) -> str:
    names_type = text.startswith(("a ", "an "))
    return text if names_type else f"{text} ({type(found).__name__})"


def reader(
    parse: Callable[[Any], Read], allowed: str, show: Callable[[object], str] = shown
) -> Reader[Read]:
    """Return a reader that raises FilterError where `parse` raises ValueError."""

    def read(place: str, given: object) -> Read:
        with suppress(ValueError, OverflowError):
            return parse(given)
        raise wrong(place, show(given), allowed)

    return read


def optional(read: Reader[Read]) -> Reader[Read | None]:
    """Return a reader that lets None through."""
    return lambda place, given: None if given is None else read(place, given)


def tuple_of(read: Reader[Read]) -> Reader[tuple[Read, ...]]:
    """Return a reader of lists of values."""

    def read_all(place: str, given: object) -> tuple[Read, ...]:
        return tuple(read(f"{place}[{at}]", item) for at, item in enumerate(items(place, given)))

    return read_all


def items(place: str, given: object) -> tuple[object, ...]:
    """Return the elements of a list, a tuple or a set, not too many."""
    if not isinstance(given, list | tuple | set | frozenset):
        raise wrong(place, shown(given), "a list")
    if len(given) > MAX_LIST:
        raise wrong(place, f"{len(given)} values", f"{MAX_LIST}")
    return tuple(given)


def scalar(given: object) -> Scalar:
    """Return a scalar in its final form, or raise ValueError."""
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, NumberedEnum):
        return str(given)
    if isinstance(given, str):
        given.encode()  # a lone surrogate is a ValueError
        return given
    if isinstance(given, int):
        return int(given) if given.bit_length() <= _MAX_BITS else _BEYOND_ALL[given > 0]
    if isinstance(given, float) and math.isfinite(given):
        return float(given)
    raise ValueError


class _Values:
    """Reads the JSON values of one test, and counts them."""

    def __init__(self) -> None:
        self._values = 0

    def read(self, place: str, given: object, depth: int = 1) -> Value:
        self._values = counted(place, "values", self._values, MAX_LIST)
        if not isinstance(given, list | tuple | Mapping):
            return _read_json_scalar(place, given)
        if depth > MAX_LEVELS:
            raise wrong(place, f"values {depth} deep", f"{MAX_LEVELS}")
        if isinstance(given, Mapping):
            return JsonObject(tuple(sorted(self._items(place, given, depth), key=itemgetter(0))))
        return tuple(self.read(f"{place}[{at}]", item, depth + 1) for at, item in enumerate(given))

    def _items(
        self, place: str, given: Mapping[object, object], depth: int
    ) -> Iterator[tuple[str, Value]]:
        for name, item in given.items():
            at = f"{place}.{step(name)}"
            yield read_text(at, name), self.read(at, item, depth + 1)


def read_value(place: str, given: object) -> Value:
    """Return a JSON value; lists are tuples, dicts are `JsonObject`."""
    return _Values().read(place, given)


def read_values(place: str, given: object) -> tuple[Value, ...]:
    """Return the JSON values of a list."""
    values = _Values()
    return tuple(values.read(f"{place}[{at}]", item) for at, item in enumerate(items(place, given)))


def read_tags(place: str, given: object) -> Value:
    """Return the tags of a list."""
    return _tags(place, read_value(place, given), given)


def read_tag_lists(place: str, given: object) -> tuple[Value, ...]:
    """Return the lists of tags of a list."""
    lists = zip(read_values(place, given), items(place, given), strict=True)
    return tuple(_tags(f"{place}[{at}]", *each) for at, each in enumerate(lists))


def _tags(place: str, tags: Value, given: object) -> Value:
    if isinstance(tags, tuple) and all(isinstance(tag, str) for tag in tags):
        return tags
    allowed = "a list of str, which all tags are equal to in order; contains tests a single tag"
    raise wrong(place, shown(given), allowed)


def _string(given: object) -> str:
    if not isinstance(given, str):
        raise ValueError  # noqa: TRY004 - the reader turns it into a FilterError
    given.encode()
    return given


def _moment(given: object) -> datetime:
    return validation.given_time("", given)


_MAX_BITS = 1024
_BEYOND_ALL = (-(2**_MAX_BITS), 2**_MAX_BITS)
"""Numbers in place of greater ones: every float and every stored number is between them."""

read_scalar = reader(scalar, "None, a bool, a finite number or a str of valid text")
_read_json_scalar = reader(
    scalar, "None, a bool, a finite number, a str of valid text, or a list or dict of these"
)
read_text = reader(_string, "a str of valid text")
read_flag = reader(partial(validation.flag, ""), "True or False", shown_word)
read_id = reader(partial(validation.uuid, ""), "a UUID or its text", shown_word)
read_time = reader(
    _moment, "a datetime, a date or an ISO 8601 text, in the years 1 to 9999", shown_word
)
_TYPES = ", ".join(map(str, MemoryType))
read_type = reader(MemoryType.parse, _TYPES, shown_word)
read_type_number = reader(lambda given: MemoryType.parse(given).number, _TYPES, shown_word)
read_status_number = reader(
    lambda given: MemoryStatus.parse(given).number, ", ".join(map(str, MemoryStatus)), shown_word
)
