"""Bodies of errors without keys and texts, and log lines of the HTTP client without keys."""

from __future__ import annotations

import json
import logging
import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

MAX_READ = 2000
"""Characters of a body that are read."""

MAX_SHOWN = 500
"""Characters of a body that are shown."""

SECRET_RUN = 6
"""A run of a secret of this length is hidden. Services show a key's first and last letters."""

TEXT_RUN = 10
"""A run of a text of twice this length is hidden, wherever it begins."""

MIN_TEXT = 4
"""Texts with fewer characters are words that any error may have."""

_HIDDEN = "[…]"
_LOGGERS = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "proxy")))
_MASKED = re.compile(r"[^\s\"':=]*\*{3,}[^\s\"',;]*")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")


def shown_body(body: bytes, secrets: Sequence[str], texts: Iterable[str]) -> str:
    """Return the beginning of an error's body, without keys and texts of the request.

    Args:
        body: The body, or its beginning.
        secrets: The key, and the values of headers.
        texts: The texts of the request.
    """
    read = _unescaped(body.decode("utf-8", "replace"))[:MAX_READ]
    hidden = bytearray(len(read))
    _hide_secrets(read, secrets, hidden)
    _hide_texts(read, texts, hidden)
    for found in _MASKED.finditer(read):
        _hide(hidden, found.start(), found.end())
    clean = _UNPRINTABLE.sub(" ", _joined(read, hidden)).strip()
    return clean if len(clean) <= MAX_SHOWN else f"{clean[:MAX_SHOWN]}…"


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """Return a text without runs of secrets."""
    hidden = bytearray(len(text))
    _hide_secrets(text, secrets, hidden)
    return _joined(text, hidden)


def _unescaped(body: str) -> str:
    """Return JSON with its letters unescaped, as the texts of the request have them."""
    try:
        return json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return body


def _hide_secrets(text: str, secrets: Iterable[str], hidden: bytearray) -> None:
    for secret in secrets:
        length = min(SECRET_RUN, len(secret))
        for at in range(len(text) - length + 1):
            if text[at : at + length] in secret:
                _hide(hidden, at, at + length)


def _hide_texts(body: str, texts: Iterable[str], hidden: bytearray) -> None:
    places: dict[str, list[int]] = {}
    for at in range(len(body) - TEXT_RUN + 1):
        places.setdefault(body[at : at + TEXT_RUN], []).append(at)
    for text in texts:
        for form in {text, json.dumps(text, ensure_ascii=False)[1:-1]}:
            if MIN_TEXT <= len(form) < 2 * TEXT_RUN:
                _hide_each(body, form, hidden)
            # Any run of twice the length holds a piece that begins at a multiple of the length.
            for start in range(0, len(form) - TEXT_RUN + 1, TEXT_RUN):
                for at in places.get(form[start : start + TEXT_RUN], ()):
                    _hide_run(body, at, form, start, hidden)


def _hide_run(body: str, at: int, text: str, start: int, hidden: bytearray) -> None:
    """Hide a piece of a text, and what is equal on its two sides up to the next pieces."""
    begin, end = 0, TEXT_RUN
    while begin > -TEXT_RUN and min(at, start) + begin > 0:
        if body[at + begin - 1] != text[start + begin - 1]:
            break
        begin -= 1
    while (
        end < 2 * TEXT_RUN and body[at + end : at + end + 1] == text[start + end : start + end + 1]
    ):
        end += 1
    _hide(hidden, at + begin, at + end)


def _hide_each(body: str, text: str, hidden: bytearray) -> None:
    at = body.find(text)
    while at >= 0:
        _hide(hidden, at, at + len(text))
        at = body.find(text, at + 1)


def _hide(hidden: bytearray, start: int, end: int) -> None:
    first, last = max(start, 0), min(end, len(hidden))
    hidden[first:last] = b"\1" * max(last - first, 0)


def _joined(text: str, hidden: bytearray) -> str:
    parts: list[str] = []
    end = 0
    for run in re.finditer(rb"\x01+", hidden):
        parts += text[end : run.start()], _HIDDEN
        end = run.end()
    return "".join((*parts, text[end:]))


_sends_ours: ContextVar[bool] = ContextVar("mnemic_http_request", default=False)
_RETURNED = re.compile(r" return_value=.*", re.DOTALL)
_RAISED = re.compile(r" exception=(\w*).*", re.DOTALL)
_STATUS_LINE = re.compile(r'("HTTP/[0-9.]+ [0-9]{3}).*', re.DOTALL)


@contextmanager
def hiding_responses() -> Generator[None, None, None]:
    """Keep what a service responds out of the HTTP client's log lines in this block.

    It may echo texts of the request in the words of its status, or in headers.
    """
    token = _sends_ours.set(True)
    try:
        yield
    finally:
        _sends_ours.reset(token)


def _without_response(message: str) -> str:
    cut = _RAISED.sub(r" exception=\1", _RETURNED.sub("", message))
    return _STATUS_LINE.sub(r'\1"', cut)


class _KeyFilter(logging.Filter):
    """Takes keys and responses out of the HTTP client's log lines."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if _sends_ours.get():
            message = _without_response(message)
            record.msg, record.args = message, ()
        if any(secret in message for secret in self.secrets):
            record.msg, record.args = without_secrets(message, tuple(self.secrets)), ()
        return True


_filter = _KeyFilter()


def keep_out_of_logs(secrets: Iterable[str]) -> None:
    """Keep secrets out of the HTTP client's log lines, for the life of the process."""
    _filter.secrets.update(secrets)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_filter)  # has an effect once
