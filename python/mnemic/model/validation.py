"""Validation of fields and options: a function returns the value in its stored form or raises."""

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from numbers import Real
from typing import Any, NamedTuple, TypeAlias, TypeGuard, TypeVar
from uuid import UUID

from mnemic.arrays import Array, Float32Array, np
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.model.time_zones import as_utc
from mnemic.records import NumberedEnum
from mnemic.reporting.description import described, must_be, quoted, tensor_advice
from mnemic.reporting.near_names import suggestion

JsonValue: TypeAlias = Any
"""None, bool, int, float, str, or a list or dict (string keys) of these."""

MAX_CONTENT_BYTES = 10 * 1024 * 1024
MAX_TYPE_NAME = 500
MAX_METADATA_DEPTH = 64
MAX_SAFE_INTEGER = 2**53  # beyond it a JSON reader with float64 numbers changes the value
_MAX_INT64 = 2**63 - 1
_OF_SCOPES = frozenset({"agent_id", "user_id", "project_id", "session_id"})
_C1_CONTROLS = range(0x7F, 0xA0)


def text(field: str, value: object) -> str:
    """Return `value` if it is text that every store and file can hold."""
    if not isinstance(value, str):
        advice = "; decode it first" if isinstance(value, bytes | bytearray) else ""
        raise InvalidEntryError(f"{field} must be a str, got {type(value).__name__}{advice}")
    if "\0" in value:
        where = value.index("\0")
        raise InvalidEntryError(f"{field} holds a NUL character at index {where}; remove it")
    if not value.isascii():
        _refuse_lone_surrogates(field, value)
    return value


def _refuse_lone_surrogates(field: str, value: str) -> None:
    at = lone_surrogate(value)
    if at is not None:
        raise InvalidEntryError(
            f"{field} holds a lone surrogate at index {at}, which is not text; "
            "decode the source with errors='replace'"
        )


def lone_surrogate(value: str) -> int | None:
    """Return the position of half a surrogate pair in a text; None if there is none.

    No exception is chained: Python's own error contains the text.
    """
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def content(value: object) -> str:
    """Return `value` if it is text of one byte to 10 MB that is not all whitespace."""
    checked = content_or_none(value)
    if not checked:
        raise InvalidEntryError("content cannot be empty")
    return checked


def empty_content() -> InvalidEntryError:
    """Return the error for a memory without text, metadata and vectors."""
    return InvalidEntryError(
        "content cannot be empty, unless the memory has metadata or an embedding"
    )


def content_or_none(value: object) -> str:
    """Return `value` if it is a `content`, or the empty text."""
    checked = text("content", value)
    if checked.isspace():
        raise InvalidEntryError("content cannot be empty: it is all white space")
    if len(checked) * 4 > MAX_CONTENT_BYTES and len(checked.encode()) > MAX_CONTENT_BYTES:
        raise InvalidEntryError("content is larger than 10 MB; split it into several memories")
    return checked


def name(field: str, value: object) -> str:
    """Return `value` if it is a non-empty text without control characters.

    That of an agent, a user, a project or a session has no white space around it either: it would
    be another one than without.
    """
    if type(value) is str and value and value.isascii() and value.isprintable():  # nearly all
        first, last = value[0], value[-1]
        if first != " " != last:
            return value
    checked = text(field, value)
    if not checked:
        raise InvalidEntryError(f"{field} cannot be empty")
    if not checked.isprintable() and any(_is_control(letter) for letter in checked):
        at = next(at for at, letter in enumerate(checked) if _is_control(letter))
        raise InvalidEntryError(f"{field} holds a control character at index {at}; remove it")
    if field in _OF_SCOPES and checked.strip() != checked:
        raise InvalidEntryError(
            f"{field} has white space around it, and would be another one than without; give "
            f"{field}.strip()"
        )
    return checked


def optional_name(field: str, value: object) -> str | None:
    """Return `value` if it is None or a `name`."""
    if value is None:
        return None
    if isinstance(value, str) and not value:
        raise InvalidEntryError(f"{field} cannot be empty; leave it out or use None")
    return name(field, value)


def type_name(value: object) -> str:
    """Return `value` if it is a `name` of at most 500 characters."""
    checked = name("type_name", value)
    if len(checked) > MAX_TYPE_NAME:
        raise InvalidEntryError(f"type_name is longer than {MAX_TYPE_NAME} characters")
    return checked


def _is_control(letter: str) -> bool:
    return letter < " " or ord(letter) in _C1_CONTROLS


def uuid(field: str, value: object) -> UUID:
    """Return `value` as a UUID; its text form is accepted."""
    if isinstance(value, UUID):
        return value
    if isinstance(value, str):
        with suppress(ValueError):
            return UUID(value)
        raise InvalidEntryError(
            f"{field} is not a UUID: {quoted(value)}; for an id of your own give "
            "uuid.uuid5(uuid.NAMESPACE_URL, it), the same each time"
        )
    raise InvalidEntryError(f"{field} must be a UUID or its text, got {type(value).__name__}")


def optional_uuid(field: str, value: object) -> UUID | None:
    """Return `value` as a UUID, or None."""
    return None if value is None else uuid(field, value)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number, such as one of numpy's; a bool is none."""
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def fraction(field: str, value: object) -> float:
    """Return `value` if it is a number from 0 to 1; NaN is not."""
    if type(value) is not float and not is_number(value):
        raise InvalidEntryError(f"{field} must be a number, got {type(value).__name__}")
    if not 0.0 <= value <= 1.0:
        raise must_be(field, "from 0 to 1", value, show=quoted, error=InvalidEntryError)
    return float(value)


def whole(
    field: str,
    value: object,
    *,
    minimum: int = 0,
    error: type[InvalidArgumentError] = InvalidEntryError,
) -> int:
    """Return `value` if it is an int from `minimum` to the largest of 64 bits.

    Args:
        field: Its name.
        value: The value.
        minimum: Smallest one.
        error: What is raised: another one for an argument than for a field of a record.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise error(f"{field} must be an int, got {type(value).__name__}")
    if not minimum <= value <= _MAX_INT64:
        raise must_be(field, f"at least {minimum}, and at most 2**63 - 1", value, error=error)
    return value


def positive(field: str, value: object) -> float:
    """Return `value` if it is a finite number above 0."""
    if not (is_number(value) and 0 < value < float("inf")):
        raise must_be(field, "a number above 0", value, error=InvalidEntryError)
    return float(value)


def optional_whole(field: str, value: object) -> int | None:
    """Return `value` if it is None or a `whole`."""
    return None if value is None else whole(field, value)


def time(field: str, value: object) -> datetime:
    """Return `value` in UTC; a naive time is read in the zone of `naive_times_in`."""
    if not isinstance(value, datetime):
        is_unix = isinstance(value, int | float) and not isinstance(value, bool)
        advice = "; a Unix time is datetime.fromtimestamp(seconds, UTC)" if is_unix else ""
        raise InvalidEntryError(f"{field} must be a datetime, got {type(value).__name__}{advice}")
    if value.tzinfo is UTC:
        return value
    try:
        return as_utc(value) if value.tzinfo is None else value.astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidEntryError(f"{field} lies outside the years 1 to 9999 in UTC") from None


def given_time(field: str, value: object) -> datetime:
    """Return a time, a date or ISO 8601 text as a time in UTC; see `time`."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - read in a zone below
    return time(field, _parsed_time(field, value) if isinstance(value, str) else value)


def _parsed_time(field: str, value: str) -> datetime:
    with suppress(ValueError):
        return datetime.fromisoformat(value)
    # Raised out here: Python's own error contains the text.
    raise InvalidEntryError(f"{field} is not an ISO 8601 time: {quoted(value)}")


def duration(field: str, value: object) -> timedelta:
    """Return `value` if it is a timedelta of 0 or more."""
    if not isinstance(value, timedelta) or value < timedelta():
        raise must_be(field, "a timedelta of at least 0", value, error=InvalidEntryError)
    return value


MAX_QUERY_LENGTH = 10_000
"""Maximum number of characters of a query."""


def query(value: object) -> str:
    """Return `value` if it is a query: a text with more than white space, not too long."""
    if not isinstance(value, str) or not value.strip():
        raise must_be("query", "a text that is not empty", value)
    return bounded("query", value)


def bounded(field: str, value: object) -> str:
    """Return `value` if it is a text of at most `MAX_QUERY_LENGTH` characters."""
    checked = text(field, value)
    if len(checked) > MAX_QUERY_LENGTH:
        raise InvalidArgumentError(
            f"{field} must not exceed {MAX_QUERY_LENGTH} characters, got {len(checked)}"
        )
    return checked


MAX_LIMIT = 1000
"""Maximum number of memories of one result."""


def limit(field: str, value: object, maximum: int = MAX_LIMIT) -> int:
    """Return `value` if it is an int from 1 to the maximum."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
        raise must_be(field, f"an int from 1 to {maximum}", value, show=quoted)
    return value


Choice = TypeVar("Choice", bound=Enum)


def choice(field: str, of: type[Choice], value: object) -> Choice:
    """Return the choice given as itself or by name; case is ignored."""
    names = {each.value: each for each in of}
    chosen = names.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(chosen, of):
        raise must_be(field, f"one of {', '.join(names)}", value, show=quoted)
    return chosen


def word(field: str, value: object, known: Sequence[str]) -> None:
    """Refuse what is not one of the known words; only a text is compared with them."""
    if not isinstance(value, str) or value not in known:
        raise must_be(field, f"one of {', '.join(known)}", value, show=quoted)


def flag(field: str, value: object) -> bool:
    """Return `value` if it is a bool."""
    if not isinstance(value, bool):
        raise must_be(field, "True or False", value, show=quoted, error=InvalidEntryError)
    return value


MAX_PATH_LENGTH = 4095
"""Maximum number of characters of a path: Linux takes no longer one."""


def path(field: str, value: object) -> str:
    """Return `value` if it is a path; `~` at its beginning becomes the home directory."""
    if not isinstance(value, str | os.PathLike):
        raise must_be(field, "a str or an os.PathLike", value)
    given = os.fsdecode(value)
    if not 0 < len(given) <= MAX_PATH_LENGTH or "\0" in given:
        wanted = f"a path of 1 to {MAX_PATH_LENGTH} characters without NUL"
        raise must_be(field, wanted, given)
    return os.path.expanduser(given)  # noqa: PTH111 - pathlib is slow to import


def file(field: str, value: object) -> str:
    """Return `value` if it is a `path` and no URL, whose password errors would quote."""
    given = path(field, value)
    if "://" in given:
        raise InvalidArgumentError(f"{field} must be the path of a file, got a URL")
    return given


def function(field: str, value: object) -> None:
    """Raise if the value is not callable."""
    if not callable(value):
        raise must_be(field, "a function", value)


def optional_function(field: str, value: object) -> None:
    """Raise if the value is neither None nor callable."""
    if value is not None:
        function(field, value)


Capable = TypeVar("Capable")
Kind = TypeVar("Kind")


def of_kind(field: str, kind: type[Kind], wanted: str, given: object) -> Kind:
    """Return an argument of a type; raise the error of `must_be` for any other.

    Args:
        field: Its name.
        kind: The type.
        wanted: The type, in words.
        given: What came.
    """
    if not isinstance(given, kind):
        raise must_be(field, wanted, given)
    return given


def capable(field: str, value: Capable, method: str) -> Capable:
    """Return `value` if it has a method of this name; texts and lists do not pass."""
    if isinstance(value, str | bytes | Sequence) or not callable(getattr(value, method, None)):
        raise InvalidArgumentError(f"{field} must have a method {method!r}, got {described(value)}")
    return value


def tags(value: object) -> tuple[str, ...]:
    """Return `value` as a tuple of names, in the given order."""
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise must_be("tags", "a list of str", value, error=InvalidEntryError)
    given = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return tuple(name("a tag", tag) for tag in given)


def items(field: str, value: object, kind: Any = object, wanted: str = "") -> list[Any]:
    """Return `value` as a list, each item of a kind; a text or a dict does not pass."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise must_be(field, "a list", value)
    listed = list(value)
    for at, item in enumerate(listed):
        if not isinstance(item, kind):
            raise must_be(f"{field}[{at}]", wanted, item)
    return listed


def metadata(value: object, field: str = "metadata") -> dict[str, JsonValue]:
    """Return a deep copy of `value` in JSON's form: lists, and dicts with str keys."""
    if not isinstance(value, Mapping):
        raise InvalidEntryError(f"{field} must be a dict, got {type(value).__name__}")
    return _json_object(field, value, 1) if value else {}


def _json_object(path: str, value: Mapping[Any, Any], depth: int) -> dict[str, JsonValue]:
    if depth > MAX_METADATA_DEPTH:
        raise InvalidEntryError(f"metadata is nested deeper than {MAX_METADATA_DEPTH} levels")
    checked: dict[str, JsonValue] = {}
    for key, item in value.items():
        name = key if _is_plain_text(key) else text(f"a key of {path}", key)
        plain = _is_plain_text(item) or _is_plain_number(item)
        checked[name] = item if plain else _json_value(f"{path}[{quoted(key)}]", item, depth + 1)
    return checked


def _is_plain_text(value: object) -> bool:
    """Return whether a value is text that needs no further check, as nearly all is."""
    return type(value) is str and value.isascii() and "\0" not in value


def _is_plain_number(value: object) -> bool:
    if type(value) is int:
        return -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER
    return type(value) is float and math.isfinite(value)


def _json_value(path: str, value: object, depth: int) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, NumberedEnum):
        return str(value)
    if isinstance(value, str):
        return text(path, value)
    if isinstance(value, int | float):
        return _json_number(path, value)
    if isinstance(value, Mapping):
        return _json_object(path, value, depth)
    if isinstance(value, list | tuple):
        if depth > MAX_METADATA_DEPTH:
            raise InvalidEntryError(f"metadata is nested deeper than {MAX_METADATA_DEPTH} levels")
        return [_json_value(f"{path}[{at}]", item, depth + 1) for at, item in enumerate(value)]
    raise InvalidEntryError(
        f"{path} is a {type(value).__name__}; metadata holds only None, bool, int, float, str, "
        "lists and dicts"
    )


def _json_number(path: str, value: float) -> float:
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise InvalidEntryError(f"{path} is beyond ±2**53; store it as a str")
        return int(value)
    if not math.isfinite(value):
        raise InvalidEntryError(f"{path} is {quoted(value)}; metadata holds only finite numbers")
    return float(value)


MAX_VECTORS = 256
"""Maximum number of vectors of one memory: a ranking looks for so many of each candidate."""

MAX_DIMENSIONS = 32_768
"""Maximum length of a vector: the index takes no longer one."""

_ONE_AXIS, _TWO_AXES = 1, 2


def embedding(value: object) -> Float32Array | None:
    """Return `value` as a read-only float32 array of finite numbers, or None.

    Its shape is (d,), or (chunks, d) with several chunks.
    """
    return None if value is None else vectors("embedding", value)


def vectors(field: str, value: object) -> Float32Array:
    """Return `value`, any array-like, as a read-only float32 copy, shape (d,) or (m, d), m > 1."""
    given = _numbers(field, value)
    if given.ndim not in (_ONE_AXIS, _TWO_AXES) or given.size == 0:
        raise InvalidEntryError(
            f"{field} must have the shape (d,), or (m, d) for several vectors, got {given.shape}"
        )
    if given.ndim == _TWO_AXES and len(given) > MAX_VECTORS:
        raise InvalidEntryError(f"{field} has {len(given)} vectors; at most {MAX_VECTORS} fit")
    if given.shape[-1] > MAX_DIMENSIONS:
        raise InvalidEntryError(
            f"{field} has {given.shape[-1]} dimensions; at most {MAX_DIMENSIONS} fit"
        )
    checked = _single_precision(given[0] if len(given) == given.ndim - 1 else given)
    if not np.isfinite(checked).all():
        raise InvalidEntryError(f"{field} holds NaN or infinity, or a number beyond 32 bits")
    checked.flags.writeable = False
    return checked


def _single_precision(numbers: Array) -> Float32Array:
    """Return a copy in float32; a number beyond it is infinite."""
    if numbers.dtype == np.float32:
        return numbers.copy()
    with np.errstate(over="ignore"):  # takes 1.5 µs
        return np.array(numbers, dtype=np.float32)


def _numbers(field: str, value: object) -> Array:
    try:
        given = np.asarray(value)
    except Exception:  # noqa: BLE001 - of an array-like of another library
        given = np.empty(0, dtype=object)
    if given.dtype.kind not in "fiu":  # raised out here: other errors quote what was given
        raise InvalidEntryError(
            f"{field} must be an array or a list of numbers, got {described(value)}"
            f"{tensor_advice(value)}"
        )
    return given


def directed(field: str, value: object) -> Float32Array:
    """Return `vectors` of which none is all zeros."""
    checked = vectors(field, value)
    check_directions(field, checked)
    return checked


def check_directions(field: str, checked: Float32Array) -> None:
    """Raise if one of some vectors is all zeros."""
    if not np.atleast_2d(checked).any(axis=1).all():
        raise InvalidEntryError(
            f"{field} holds a vector of zeros, which has no direction; leave it out"
        )


def check_choice(path: str, given: object, words: Collection[str]) -> None:
    """Raise if the value of an option is none of its words; the message has the nearest one."""
    if not (isinstance(given, str) and given in words):
        raise InvalidArgumentError(
            f"{path} must be one of {', '.join(words)}, got {quoted(given)}"
            f"{suggestion(given, words)}"
        )


class Range(NamedTuple):
    """The values of a numeric option.

    Attributes:
        minimum: Smallest accepted value.
        maximum: Largest accepted value.
        recommended: Smallest and largest recommended value; None recommends all.
        is_whole: Whether it is an int.
        word: A word that is accepted too; None accepts none.
        may_be_none: Whether None is accepted.
        unit: Unit of the value, for messages.
        excludes_minimum: Whether the minimum itself is refused.
    """

    minimum: float
    maximum: float
    recommended: tuple[float, float] | None = None
    is_whole: bool = False
    word: str | None = None
    may_be_none: bool = False
    unit: str = ""
    excludes_minimum: bool = False

    def __str__(self) -> str:
        noun = "a whole number" if self.is_whole else "a number"
        unit = f" of {self.unit}" if self.unit else ""
        ends = f" from {self.minimum:g} to {self.maximum:g}"
        if self.excludes_minimum:
            ends = f" above {self.minimum:g}, at most {self.maximum:g}"
        advice = ""
        if self.recommended is not None:
            smallest, largest = self.recommended
            advice = f" (recommended: {smallest:g} to {largest:g})"
        words = ([] if self.word is None else [repr(self.word)]) + ["None"] * self.may_be_none
        return " or ".join([f"{noun}{unit}{ends}{advice}", *words])

    def checked(self, path: str, given: object) -> float | str | None:
        """Return a value of the range.

        Raises:
            InvalidArgumentError: If it is none.
        """
        if given is None and self.may_be_none:
            return None
        if isinstance(given, str) and given == self.word:
            return given
        is_excluded = self.excludes_minimum and given == self.minimum
        if is_number(given) and self.minimum <= given <= self.maximum and not is_excluded:
            if not self.is_whole:
                return float(given)
            if isinstance(given, int):
                return given
        raise must_be(path, str(self), given, show=quoted)

    def advice(self, path: str, value: object) -> str | None:
        """Return a sentence about an accepted value outside the recommended range."""
        if self.recommended is None or not is_number(value):
            return None
        smallest, largest = self.recommended
        if smallest <= value <= largest:
            return None
        return f"{path}={value:g} is outside the recommended range from {smallest:g} to {largest:g}"
