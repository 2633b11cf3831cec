"""Reads and writes the YAML between the delimiters of a memory file.

Files may come from other people. Anchors, aliases, tags and deep nesting are refused while events
are read, before anything is built of them; so a small text cannot grow into a large one.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

import yaml

from mnemic_files.errors import MemoryFileFormatError
from mnemic_files.inside import described, validation

MAX_CHARACTERS: Final = 64 * 1024
MAX_DEPTH: Final = 8
_MAX_EVENTS: Final = 8_192
_MAX_KEY: Final = 100

_INT = re.compile(r"[-+]?[0-9]{1,16}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_AMBIGUOUS = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n"])
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class Scalar(NamedTuple):
    """A scalar as it was written.

    Attributes:
        text: Its text, without quotes.
        is_plain: Whether it stood without quotes.
    """

    text: str
    is_plain: bool

    @property
    def value(self) -> Any:
        """Its value by the core schema of YAML 1.2, in which times and `no` are texts."""
        if not self.is_plain:
            return self.text
        if self.text in _WORDS:
            return _WORDS[self.text]
        if _INT.fullmatch(self.text) and abs(int(self.text)) <= validation.MAX_SAFE_INTEGER:
            return int(self.text)
        if _FLOAT.fullmatch(self.text) and math.isfinite(float(self.text)):
            return float(self.text)
        return self.text


Node: TypeAlias = "Scalar | list[Node] | dict[str, Node]"


def parse_yaml(text: str) -> dict[str, Node]:
    """Return the top level of a front matter.

    Raises:
        MemoryFileFormatError: If it is no mapping, or not of the accepted part of YAML.
    """
    if len(text) > MAX_CHARACTERS:
        raise MemoryFileFormatError(
            f"the front matter has {len(text)} characters; at most {MAX_CHARACTERS} are read"
        )
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _document(_checked_events(yaml.parse(text, Loader=loader)))
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 2} of the file"
        raise MemoryFileFormatError(f"the front matter is no valid YAML{where}") from None


def _checked_events(events: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the kind and the event of each; raise at those that are refused."""
    depth = 0
    for at, event in enumerate(events):
        kind = type(event).__name__.removesuffix("Event")
        if kind == "Alias" or getattr(event, "anchor", None) is not None:
            raise MemoryFileFormatError("the front matter has an anchor or an alias; write it out")
        if getattr(event, "tag", None) is not None:
            raise MemoryFileFormatError("the front matter has a tag; only plain values are read")
        depth += kind.endswith(("MappingStart", "SequenceStart"))
        depth -= kind.endswith(("MappingEnd", "SequenceEnd"))
        if depth > MAX_DEPTH or at > _MAX_EVENTS:
            raise MemoryFileFormatError(
                f"the front matter is nested deeper than {MAX_DEPTH} levels, or too large"
            )
        yield kind, event


def _document(events: Iterator[tuple[str, Any]]) -> dict[str, Node]:
    found: list[Node] = [
        _node(kind, event, events)
        for kind, event in events
        if kind in {"Scalar", "MappingStart", "SequenceStart"}
    ]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise MemoryFileFormatError("the front matter is no mapping of keys to values")
    return found[0]


def _node(kind: str, event: Any, events: Iterator[tuple[str, Any]]) -> Node:
    if kind == "Scalar":
        return Scalar(event.value, event.implicit[0])
    if kind == "SequenceStart":
        return list(_sequence(events))
    if kind == "MappingStart":
        return _mapping(events)
    raise MemoryFileFormatError("the front matter is no valid YAML")


def _sequence(events: Iterator[tuple[str, Any]]) -> Iterator[Node]:
    for kind, event in events:
        if kind == "SequenceEnd":
            return
        yield _node(kind, event, events)


def _mapping(events: Iterator[tuple[str, Any]]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for kind, event in events:
        if kind == "MappingEnd":
            break
        key = _key(kind, event)
        if key in found:
            raise MemoryFileFormatError("the front matter has a key twice; keep one of them")
        found[key] = _node(*next(events), events)
    return found


def _key(kind: str, event: Any) -> str:
    if kind != "Scalar" or not 0 < len(event.value) <= _MAX_KEY:
        raise MemoryFileFormatError(
            f"a key of the front matter must be a text of 1 to {_MAX_KEY} characters"
        )
    return str(event.value)


def plain_value(node: Node) -> Any:
    """Return a node as JSON has it."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, list):
        return [plain_value(item) for item in node]
    return {key: plain_value(item) for key, item in node.items()}


def yaml_text(value: str) -> str:
    """Return a text as a scalar of one line, quoted where it could be read as anything else."""
    if _PLAIN.fullmatch(value) and value.lower() not in _AMBIGUOUS:
        return value
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", _json(value))


def yaml_value(value: Any) -> str:
    """Return a JSON value as YAML of one line."""
    if isinstance(value, str):
        return yaml_text(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_quoted(key)}: {yaml_value(item)}" for key, item in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(yaml_value, value))}]"
    if value is None or isinstance(value, bool | int | float):
        return _json(value)
    raise MemoryFileFormatError(f"a key of the front matter cannot hold {described(value)}")


def yaml_time(time: datetime) -> str:
    """Return a time in UTC by RFC 3339, with as many digits as it needs."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _quoted(key: str) -> str:
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", _json(key))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
