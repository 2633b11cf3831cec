"""What every verb gets: its arguments, its memory, its user, and a place to print."""

import argparse
import os
import sys
from contextlib import ExitStack, suppress
from functools import cached_property
from importlib import import_module
from typing import Any, Final, TextIO

from mnemic import Memory
from mnemic.cli.output import Output, is_installed, note
from mnemic.cli.place import AGENT, PLACE, USER, place_here
from mnemic.errors import InvalidArgumentError, MnemicError

KEY: Final = "MNEMIC_KEY"
EMBEDDER: Final = "MNEMIC_EMBEDDER"
_PACKAGES: Final = {"minilm": "mnemic_minilm", "multilingual": "mnemic_e5"}
"""The packages of the models, in the order in which one is chosen."""

_MOST_TEXT: Final = 1 << 26


def declare_place(parser: argparse.ArgumentParser) -> None:
    """Declare the options that every verb has."""
    place = parser.add_argument_group("where and for whom")
    place.add_argument("--db", metavar="PATH", help=f"file or PostgreSQL URL; or {PLACE}")
    place.add_argument("--agent", metavar="ID", default=AGENT, help="agent of the memories")
    place.add_argument(
        "--embedder",
        choices=list(_PACKAGES),
        default=os.environ.get(EMBEDDER) or None,
        help=f"model of the vectors; or {EMBEDDER}; by default that of the file",
    )
    whom = place.add_mutually_exclusive_group()
    whom.add_argument("--user", metavar="ID", help=f"whose memories; or {USER}")
    whom.add_argument("--all-users", action="store_true", help="those of everybody")
    parser.add_argument("--json", action="store_true", help="print JSON, a line for each result")


def declare_filters(parser: argparse.ArgumentParser) -> None:
    """Declare the options that leave out memories by what they are."""
    parser.add_argument("--type", help="fact, preference, … alone")
    parser.add_argument("--tag", action="append", help="with this tag alone; may be repeated")


def declare_days(parser: argparse.ArgumentParser) -> None:
    """Declare the options that leave out what is older or newer."""
    parser.add_argument("--since", metavar="DAY", help="stored on or after a day, as 2026-05-01")
    parser.add_argument("--until", metavar="DAY", help="stored before a day")


def number(given: str) -> int:
    """Return the number of a list's entries; argparse says the name of this function."""
    value = int(given)
    if not 0 <= value <= sys.maxsize:
        raise ValueError
    return value


def key_of(variable: str) -> bytes | None:
    """Return the master key in an environment variable, in base64; None without it.

    Raises:
        InvalidArgumentError: If it is not base64.
    """
    text = os.environ.get(variable)
    if not text:
        return None
    from base64 import b64decode  # noqa: PLC0415 - where there is a key

    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise InvalidArgumentError(f"{variable} must be a key of 32 bytes in base64") from None


class Call:
    """One run of a verb.

    Attributes:
        given: Its arguments.
        out: Prints.
    """

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.out = Output(is_json=given.json)
        self._open = ExitStack()

    @cached_property
    def place(self) -> str:
        """The file or URL of the memories; the folder of the default file is made."""
        return place_here(self.given.db)

    @property
    def scope(self) -> dict[str, Any]:
        """Whose memories, as arguments of the memory's calls."""
        return {"all_users": True} if self.given.all_users else {"user_id": self.user}

    @property
    def user(self) -> str | None:
        """The user, None for the memories stored without one."""
        return self.given.user or os.environ.get(USER) or None

    def memory(self, **options: Any) -> Memory:
        """Open the memory; it is closed at the end of the run.

        Unless an embedder is given or named, it is that of the file's vectors, where it is
        installed, else the first one that is. Without any, words alone are stored and searched.
        """
        key = key_of(KEY)
        if key is not None:
            from mnemic import Encryption  # noqa: PLC0415 - where there is a key

            options.setdefault("encryption", Encryption(key))
        if "embedder" not in options:
            options["embedder"] = self._embedder()
        return self._open.enter_context(Memory(self.place, self.given.agent, **options))

    def _embedder(self) -> str | None:
        if self.given.embedder in _PACKAGES:
            return str(self.given.embedder)
        if self.given.embedder:
            raise InvalidArgumentError(f"{EMBEDDER} must be {' or '.join(_PACKAGES)}")
        installed = [name for name, package in _PACKAGES.items() if is_installed(package)]
        if len(installed) > 1:
            stored = None
            with suppress(MnemicError):  # the opening of the memory says what is wrong
                stored = Memory.model_of(self.place, self.given.agent)
            for name in installed:
                if stored and stored.name == import_module(_PACKAGES[name]).MODEL_NAME:
                    return name
        return installed[0] if installed else None

    def stored(self, **options: Any) -> Memory:
        """Open the memory without a model, whatever model its vectors are of."""
        return self.memory(embedder=None, **options)

    def close(self) -> None:
        """Close what was opened."""
        self._open.close()


def filters_of(given: argparse.Namespace) -> dict[str, Any] | None:
    """Return the filters of --type, --tag, --since and --until, None without any."""
    created = {"gte": getattr(given, "since", None), "lt": getattr(given, "until", None)}
    filters = {
        "type": given.type,
        "tags": given.tag,
        "created_at": {name: day for name, day in created.items() if day is not None} or None,
    }
    return {name: value for name, value in filters.items() if value is not None} or None


def read_stdin() -> str:
    """Return what another program or a person writes, as `read_text` does."""
    if sys.stdin.isatty():
        note("reads from the terminal; Ctrl-D ends the text")
    return read_text(sys.stdin, "stdin")


def read_text(stream: TextIO, name: str) -> str:
    """Return the text of a stream, without the mark with which some editors begin a file.

    Raises:
        InvalidArgumentError: If it is no text, or has no end.
    """
    try:
        text = stream.read(_MOST_TEXT + 1)
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{name} is no text in {error.encoding}; convert it") from None
    if len(text) > _MOST_TEXT:
        raise InvalidArgumentError(f"{name} has over {_MOST_TEXT:,} characters; give it in parts")
    return text.removeprefix("\ufeff")
