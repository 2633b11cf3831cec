"""Constants of a ranking by dotted name, as `session.isolated`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemic.model import Ranking

    Point = tuple[Any, ...]
    """One value for each of the constants that vary, in their order."""


def names_of(struct: msgspec.Struct, prefix: str = "") -> Iterator[str]:
    """Dotted names of all constants, depth first in the order of the fields."""
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct):
            yield from names_of(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def value_of(struct: msgspec.Struct, name: str) -> Any:
    """The constant of that dotted name."""
    value: Any = struct
    for part in name.split("."):
        value = getattr(value, part)
    return value


def replaced(struct: msgspec.Struct, name: str, value: Any) -> Any:
    """A copy with another value of that constant; the struct checks it.

    Raises:
        InvalidArgumentError: If the ranking does not allow the value.
    """
    first, _, rest = name.partition(".")
    if rest:
        value = replaced(getattr(struct, first), rest, value)
    return msgspec.structs.replace(struct, **{first: value})


def ranking_of(preset: Ranking, names: tuple[str, ...], point: Point) -> Ranking:
    """The preset with the values of the point."""
    ranking = preset
    for name, value in zip(names, point, strict=True):
        ranking = replaced(ranking, name, value)
    return ranking


def as_text(ranking: Ranking) -> str:
    """Every constant as JSON, the same text for equal rankings."""
    return msgspec.json.encode(ranking, order="sorted").decode()


def parse_candidates(text: str) -> tuple[str, Point]:
    """Read `name=v1,v2,…`, each value a JSON number, true, false or null.

    Raises:
        ValueError: If the text has another form.
    """
    name, found, values = text.partition("=")
    if not (name and found and values):
        raise ValueError(f"must be name=v1,v2,…, got {text!r}")
    return name, tuple(map(parse_value, values.split(",")))


def parse_value(text: str) -> Any:
    # JSON has no number that begins with its point.
    return json.loads(f"0{text}" if text.startswith(".") else text)
