"""Makes fields of memories of the values in a source."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from mnemic.adapters import storable_text
from mnemic.errors import InvalidArgumentError
from mnemic.importers.record import NOTHING, Chosen, Lost, Record
from mnemic.model import MemoryEntry

NO_TIME: Final = "times that cannot be read: the time of the import is used"
REPAIRED: Final = "texts with characters that are none, which became U+FFFD"
TOO_LARGE: Final = "values of metadata that are nested too deep or too many"
NO_TEXT: Final = "records without a text"
TIMES: Final = ("created_at", "updated_at", "expires_at")

_CONTENT: Final = ("content", "text", "memory", "document", "data", "body", "note", "fact")
_USER: Final = ("user_id", "userId", "user")
_FIELDS: Final = {
    "session_id": ("session_id", "session", "thread_id", "conversation_id", "run_id"),
    "created_at": ("created_at", "createdAt", "created", "timestamp", "time", "date"),
    "updated_at": ("updated_at", "updatedAt", "updated", "modified"),
    "expires_at": ("expires_at", "expiration_date"),
    "tags": ("tags", "labels"),
    "speaker": ("speaker", "author", "actor_id"),
    **{name: (name,) for name in ("role", "type", "importance", "category", "sensitive")},
    **{name: (name,) for name in ("project_id", "message_id", "position", "source")},
}
"""Usual names of fields elsewhere, by the field of a memory."""

_JSON: Final = frozenset({"tags", "importance", "position"})
_NO: Final = frozenset({"false", "no", "n", "off", "0"})
_MAX_DEPTH: Final = 60
_MAX_VALUES: Final = 10_000
_MAX_WHOLE: Final = 2**53
_MAX_SHOWN: Final = 2**256
_MILLISECONDS: Final = 1e11
"""Seconds since 1970 reach this number in the year 5138; milliseconds did in 1973."""


def clean_text(text: str, lost: Lost) -> str:
    """Return a text that can be stored, and count it if it is another one."""
    cleaned = storable_text(text.replace("\0", "\ufffd"))
    if cleaned != text:
        lost[REPAIRED] += 1
    return cleaned


def clean_metadata(values: Mapping[str, Any], lost: Lost) -> dict[str, Any]:
    """Return values as JSON has them, bounded in number and depth; empty ones are left out."""
    left = [_MAX_VALUES]
    given = {name: value for name, value in values.items() if value not in (None, "")}
    cleaned: dict[str, Any] = _clean_value(given, 0, left, lost)
    lost[TOO_LARGE] += left[0] <= 0
    return cleaned


def _clean_value(value: Any, depth: int, left: list[int], lost: Lost) -> Any:
    left[0] -= 1
    if depth > _MAX_DEPTH or left[0] <= 0:
        lost[TOO_LARGE] += depth > _MAX_DEPTH
        return None
    if isinstance(value, Mapping):
        return {
            clean_text(str(name), lost): _clean_value(each, depth + 1, left, lost)
            for name, each in value.items()
            if left[0] > 0
        }
    if isinstance(value, list | tuple):
        return [_clean_value(each, depth + 1, left, lost) for each in value if left[0] > 0]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        is_short = abs(value) < _MAX_SHOWN  # Python writes no thousands of digits
        return value if abs(value) <= _MAX_WHOLE else str(value) if is_short else None
    return clean_text(str(value), lost) if isinstance(value, str | datetime) else None


def time_of(value: Any, lost: Lost) -> datetime | None:
    """Return the time that a text or a number of seconds or milliseconds names.

    One without a zone is in UTC.
    """
    try:
        if isinstance(value, str):
            with suppress(ValueError):
                value = datetime.fromisoformat(value.strip())
        if not isinstance(value, datetime):
            seconds = float(value)
            seconds = seconds / 1000 if seconds >= _MILLISECONDS else seconds
            return datetime.fromtimestamp(seconds, UTC)
        time: datetime = value
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        lost[NO_TIME] += 1
        return None


def records_of(
    values: Mapping[str, Any],
    chosen: Chosen,
    lost: Lost,
    place: str,
    key: str = "",
    *,
    otherwise: str | None = None,
    defaults: Mapping[str, Any] = NOTHING,
    metadata: Mapping[str, Any] = NOTHING,
) -> Iterator[Record]:
    """Yield the record that named values describe, none without a text.

    What can be no field becomes metadata.

    Args:
        values: A row or an object of a source.
        chosen: Which of them are text and user.
        lost: Counts those without a text.
        place: Its place.
        key: Its key; "" where the values have an `id`, or nothing names them. An `id` that is a
            UUID, or `mem_` and one, is the memory's.
        otherwise: The text where no value is one.
        defaults: Fields that the values need not have.
        metadata: Further values, not to be searched for fields; a `user_field` may lead there.
    """
    rest = dict(values)
    further = _metadata(rest.pop("metadata", None))
    content = _taken_text(rest, chosen) or otherwise
    if content is None:
        lost[NO_TEXT] += 1
        return
    fields = {**defaults, **dict(_fields(rest))}
    fields["user_id"] = _user({**metadata, **further, **values}, rest, chosen)
    if not key and rest.get("id") not in (None, ""):
        key = str(rest.pop("id"))
        with suppress(ValueError):
            fields["id"] = UUID(key.removeprefix("mem_"))
    yield Record(key, place, content, fields, {**rest, **further, **metadata}, is_current=bool(key))


def _metadata(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and value.startswith("{"):  # in a cell of a table
        value = _decoded(value)
    if isinstance(value, Mapping):
        return value
    return {} if value in (None, "") else {"metadata": value}


def _decoded(text: str) -> Any:
    """Return the value of a JSON text; itself if it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return text


def _taken_text(rest: dict[str, Any], chosen: Chosen) -> str | None:
    names = _CONTENT if chosen.text_field is None else (chosen.text_field,)
    for name in names:
        text = _text(at_path(rest, name))
        if text is not None:
            found = rest.pop(name, None)
            if isinstance(found, Mapping):
                rest |= {name: each for name, each in found.items() if name != "content"}
            return text
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, Mapping):  # as langmem has it: {"content": {"content": "…"}}
        value = value.get("content")
    return value if isinstance(value, str) and value.strip() else None


def _user(values: Mapping[str, Any], rest: dict[str, Any], chosen: Chosen) -> Any:
    """Return the user as it stands there; whoever makes a memory of it refuses what is no name."""
    names = _USER if chosen.user_field is None else (chosen.user_field,)
    for name in filter(None, names):
        found = at_path(values, name)
        if found not in (None, ""):
            rest.pop(name, None)
            return found
    return None


def _fields(rest: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Take what is a field out of values; what cannot be one stays there."""
    for field, names in _FIELDS.items():
        for name in names:
            value = _field(field, rest.get(name))
            if value is not None:
                del rest[name]
                yield field, value
                break


def _field(field: str, value: Any) -> Any:
    """Return the value of a field; None if it cannot be one."""
    if value in (None, ""):
        return None
    if field in TIMES:
        return time_of(value, Lost())
    if field == "sensitive":
        return str(value).strip().casefold() not in _NO  # what cannot be understood is
    if field in _JSON and isinstance(value, str):
        value = _decoded(value)
    if field == "tags" and isinstance(value, str):
        value = [tag.strip() for tag in value.split(",") if tag.strip()]
    if field not in _JSON and not isinstance(value, str):
        return None
    alone: dict[str, Any] = {field: value}
    with suppress(InvalidArgumentError):
        return getattr(MemoryEntry("-", **alone), field)
    return None


def at_path(values: Any, path: str) -> Any:
    """Return what dotted names and numbers lead to; None where there is nothing."""
    if isinstance(values, Mapping) and path in values:
        return values[path]
    for name in path.split("."):
        if isinstance(values, list):
            values = {str(number): value for number, value in enumerate(values)}
        values = values.get(name) if isinstance(values, Mapping) else None
    return values
