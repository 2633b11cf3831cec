"""Input as a framework passes it on, and how a store may refuse it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mnemic.errors import MnemicError

TEXTS = {
    "half of a surrogate pair": "tea \ud800 and",
    "other half": "\udc80",
    "NUL": "tea\0and",
    "a megabyte": "tea and " * 131_072,
    "nothing": "",
    "white space": " \n\t\u2003",
    "control characters": "tea \x1b[2J\x7f\x85 \u202e \ufeff and",
    "no words": "?! 😀",
}
NAMES = {
    "half of a surrogate pair": "a\ud800",
    "NUL": "a\0b",
    "line feed": "a\nb",
    "escape": "\x1b[2J",
    "very long": "a" * 20_000,
    "path": "../../etc/passwd",
    "nothing": "",
    "white space": " ",
    "quotes": "a' OR 1=1 --\"",
}


def _circular() -> dict[str, Any]:
    own: dict[str, Any] = {}
    own["own"] = own
    return own


def _nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": [found]}
    return found


METADATA: dict[str, Any] = {
    "not a number": {"a": math.nan},
    "infinite": {"a": [math.inf]},
    "number beyond 64 bits": {"a": 2**70},
    "nested": {"a": {"b": [{"c": None}]}},
    "nested 40 deep": _nested(20),
    "nested 400 deep": _nested(200),
    "circular": _circular(),
    "keys that are no text": {1: "a", (2, 3): "b", None: "c"},
    "half of a surrogate pair": {"a": "\ud800", "\udc80": 1},
    "NUL": {"a\0": "\0"},
    "bytes": {"a": b"\xff"},
    "object": {"a": object()},
    "set": {"a": {1, 2}},
    "empty key": {"": {"": ""}},
    "words of a filter": {"$eq": 1, "a.b": 2, "in": [3], "\\": 4},
    "a megabyte": {"a": "x" * 2**20},
}

texts = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
names = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
metadatas = pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)


@contextmanager
def refusals(*kinds: type[Exception]) -> Iterator[list[Exception]]:
    """Keep an error of mnemic, or of one of the framework's kinds; any other one is raised.

    So are errors of Python's own codec, whatever the kinds: they say nothing of the input.
    """
    refused: list[Exception] = []
    try:
        yield refused
    except UnicodeError:
        raise
    except (MnemicError, *kinds) as error:  # type: ignore[misc]
        refused.append(error)
