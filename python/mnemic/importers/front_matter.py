"""Reads and writes the front matter of Markdown notes, of which YAML has more forms."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from mnemic.importers.record import Lost

NESTED: Final = "lines of front matter that are nested or unusual"

_BLOCK = re.compile(
    r"\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.DOTALL
)
_PAIR = re.compile(r"([^\s:#\-\[{'\"][^:]*?|\"[^\"]+\"):(?:\s+(.*))?")
_ITEM = re.compile(r"\s*-\s+(.*)")
_WORDS: Final = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_MAX_CHARACTERS: Final = 1024 * 1024


def parted(text: str, lost: Lost) -> tuple[dict[str, Any], str]:
    """Return the values of a note's front matter, and its text below; no values without any."""
    found = _BLOCK.match(text)
    if found is None or len(found[1]) > _MAX_CHARACTERS:
        return {}, text.removeprefix("\ufeff")
    values: dict[str, Any] = {}
    key = ""
    for line in found[1].replace("\r", "").split("\n"):
        item, pair = _ITEM.fullmatch(line), _PAIR.fullmatch(line)
        if pair is not None:
            key = pair[1].strip('"')
            values[key] = _value(pair[2] or "")
        elif item is not None and key and isinstance(values[key], list | None):
            values[key] = values[key] or []
            values[key].append(_value(item[1]))
        elif line.strip() and not line.lstrip().startswith("#"):
            lost[NESTED] += 1
    return values, text[found.end() :].removeprefix("\r").removeprefix("\n")


def _value(text: str) -> Any:
    bare = text.strip()
    if bare[:1] not in {'"', "'"}:
        bare = bare.partition(" #")[0].strip()
    with suppress(ValueError, RecursionError):
        return json.loads(bare, parse_constant=str)
    if bare[:1] == "'" == bare[-1:]:
        return bare[1:-1].replace("''", "'")
    if bare[:1] == "[" and bare[-1:] == "]":
        return [each.strip(" '\"") for each in bare[1:-1].split(",") if each.strip()]
    return None if bare in {"", "~"} else {"True": True, "False": False}.get(bare, bare)


def written(values: Mapping[str, Any]) -> str:
    """Return front matter, each value on one line, as JSON where it is no plain word."""
    lines = [f"{key}: {_written(value)}\n" for key, value in values.items()]
    return "".join(["---\n", *lines, "---\n"])


def _written(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.casefold() not in _WORDS:
        return value
    return _ESCAPED.sub(
        lambda each: f"\\u{ord(each[0]):04x}", json.dumps(value, ensure_ascii=False)
    )
