"""Descriptions of values for errors, log lines and reprs that never quote content."""

import os
import re
from collections.abc import Callable, Sized
from datetime import date, time, timedelta
from enum import Enum
from uuid import UUID

from mnemic.errors import InvalidArgumentError

MAX_WORD_LENGTH = 40
"""Maximum length of a quoted word that names an option, a field or an id."""

MAX_NAME_LENGTH = 200
"""Number of characters that are shown of the name of a user or an item."""

MAX_BITS = 64
"""Ints with more bits are described by their number of bits."""

_WORD = re.compile(r"[\w.:+$-]+")
_QUOTABLE = (bool, float, UUID, date, time, timedelta, Enum, os.PathLike)


def described(value: object) -> str:
    """Return type and size of a value; numbers, times, ids and enums are returned unchanged."""
    if value is None or isinstance(value, _QUOTABLE):
        return repr(value)
    if isinstance(value, int):
        bits = value.bit_length()
        return repr(value) if bits <= MAX_BITS else f"an int of {bits} bits"
    if isinstance(value, str):
        return _described_text(value)
    kind = type(value).__name__
    if isinstance(value, list | tuple | set | frozenset | dict | bytes | bytearray):
        return f"a {kind} of {_counted(value, 'item')}"
    return f"a value of type {kind}"


def tensor_advice(value: object) -> str:
    """Return how to give a tensor, or a list of them, whose numbers cannot be read; else nothing.

    That of torch on a GPU, with a gradient or in bfloat16 is one.
    """
    first = value[0] if isinstance(value, list | tuple) and value else value
    if not hasattr(first, "cpu"):
        return ""
    return "; numbers of a tensor are read from tensor.detach().cpu().float()"


def _described_text(value: str) -> str:
    if not value:
        return "an empty str"
    return f"a {'' if value.strip() else 'blank '}str of {_counted(value, 'character')}"


def quoted(value: object) -> str:
    """Return a short word unchanged, and `described` of anything else.

    For names of options, fields or ids: never for content, tags, queries or speakers.
    """
    return repr(value) if is_word(value) else described(value)


def named(value: object) -> str:
    """Return the name of a user or an item, a long one cut; anything else is described."""
    if not isinstance(value, str):
        return described(value)
    return repr(value[:MAX_NAME_LENGTH]) + "…" * (len(value) > MAX_NAME_LENGTH)


def is_word(value: object) -> bool:
    """Return whether a value is a text that may be quoted as a name: one short word."""
    return isinstance(value, str) and len(value) <= MAX_WORD_LENGTH and bool(_WORD.fullmatch(value))


def hidden(value: object) -> str:
    """Return the replacement of a content field in the repr of a record, such as <5 items>."""
    if isinstance(value, str):
        return f"<{_counted(value, 'character')}>"
    if isinstance(value, list | tuple | dict):
        return f"<{_counted(value, 'item')}>"
    return f"<{described(value)}>"


def must_be(
    field: str,
    wanted: str,
    given: object,
    *,
    show: Callable[[object], str] = described,
    error: type[InvalidArgumentError] = InvalidArgumentError,
) -> InvalidArgumentError:
    """Return the error of an argument that is of another type, or out of its range.

    Args:
        field: Its name.
        wanted: What is taken.
        given: What came.
        show: Shows that: `described`, or `quoted` where a word is no content.
        error: Its class.
    """
    return error(f"{field} must be {wanted}, got {show(given)}")


def failure(error: BaseException) -> str:
    """Return the type and place of an error; its message may quote content."""
    kind = type(error).__name__
    at = error.__traceback__
    if at is None:
        return kind
    while at.tb_next is not None:
        at = at.tb_next
    file = os.path.basename(at.tb_frame.f_code.co_filename)  # noqa: PTH119 - pathlib is slow to import
    return f"{kind} at {file}:{at.tb_lineno}"


def _counted(value: Sized, unit: str) -> str:
    return f"{len(value)} {unit}{'' if len(value) == 1 else 's'}"
