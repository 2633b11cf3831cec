"""The readers by the kinds of sources."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from mnemic.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mnemic.importers.record import Reader


class Kind(NamedTuple):
    """A kind of sources, and the module that reads it."""

    summary: str
    module: str


KINDS: Final = {
    "mem0": Kind("the folder of its Qdrant, or its history.db", "mem0"),
    "langgraph": Kind("the file of a SqliteStore", "langgraph"),
    "chroma": Kind("the folder of a PersistentClient", "chroma"),
    "basic-memory": Kind("the folder of its notes", "basic_memory"),
    "chatgpt": Kind("the export: its zip, or conversations.json", "chatgpt"),
    "claude": Kind("the export: its zip, or conversations.json", "claude"),
    "jsonl": Kind("a JSON object on each line", "json_lines"),
    "csv": Kind("a table with a header", "table"),
    "markdown": Kind("a folder of notes, or one", "markdown"),
}


def reader_of(kind: str) -> "Reader":
    """Return the reader of a kind.

    Raises:
        InvalidArgumentError: If there is none.
    """
    if kind not in KINDS:
        raise InvalidArgumentError(f"kind {kind!r} is unknown; it is one of {', '.join(KINDS)}")
    module = import_module(f"mnemic.importers.{KINDS[kind].module}")
    return cast("Reader", module.read)
