"""One line of JSON decoded by a type, with errors that quote none of its values."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from mnemic.errors import ExportFormatError
from mnemic.model import validation
from mnemic.reporting.description import hidden, is_word, quoted

Line = TypeVar("Line")

LAST_LINE: Final = '{"kind": "end", ...}'
_KINDS = "memory, link and end"
_HALF_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])", re.DOTALL
)  # msgspec says of it that the line was cut off
_QUOTED = re.compile(
    r"^(.*?unknown field `|Invalid(?: enum)? value ')(.*?)([`'](?: - at `[^`]*`)?)$", re.DOTALL
)
"""Matches the parts of a line that msgspec's errors quote: names of fields, and tags."""
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?+', re.DOTALL)


def decoded(decode: Callable[[bytes], Line], number: int, line: bytes) -> Line:
    """Return the value of a line.

    Raises:
        ExportFormatError: If it is not JSON, or of another type.
    """
    try:
        return decode(line)
    except msgspec.ValidationError as error:
        problem = _wanted(_QUOTED.sub(_quoted_if_word, str(error)))
    except msgspec.DecodeError as error:
        problem = _broken(line, error)
    except UnicodeDecodeError as error:
        problem = f"the line is not UTF-8: {error}"
    except RecursionError:
        problem = f"nested too deep; metadata has at most {validation.MAX_METADATA_DEPTH} levels"
    # Raised out here, for an error that is chained to it may carry the line.
    raise ExportFormatError(number, problem)


def _quoted_if_word(found: re.Match[str]) -> str:
    shown = found[2] if is_word(found[2]) else hidden(found[2])
    return f"{found[1]}{shown}{found[3]}"


def _wanted(problem: str) -> str:
    if "`$.kind`" in problem or "`kind`" in problem:
        return f"{problem}; the kinds are {_KINDS}"
    return problem


def _broken(line: bytes, error: msgspec.DecodeError) -> str:
    if not line.strip():
        return f"the line is blank; wanted a memory, a link or the last line, {LAST_LINE}"
    half = _HALF_PAIR.search(line)
    if half:
        return f"{half[0].decode()} is half of a character, which is not text"
    cut = "" if line.endswith(b"\n") else "; the file stops here, so it may have been cut off"
    return f"not JSON: {error}{cut}"


def refuse_duplicate_keys(number: int, line: bytes) -> None:
    """Refuse a line with an object that has a key twice: readers disagree on which one counts."""
    keys = [match[0] for match in _STRING.finditer(line) if match[1]]
    if len(set(keys)) == len(keys) and not any(b"\\" in key for key in keys):
        return  # not even in different objects, which is allowed
    import json  # noqa: PLC0415 - nearly never needed

    try:
        json.loads(line, object_pairs_hook=_with_unique_keys)
    except _DuplicateKeyError as error:
        name = quoted(error.args[0])
    else:
        return
    raise ExportFormatError(number, f"the key {name} stands twice in one object")


class _DuplicateKeyError(Exception):
    """An object has a key twice; the argument is the key."""


def _with_unique_keys(pairs: list[tuple[str, object]]) -> None:
    names = set()
    for name, _ in pairs:
        if name in names:
            raise _DuplicateKeyError(name)
        names.add(name)
