"""Record, what a reader gives for each memory, and the contract of readers."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Record(NamedTuple):
    """One memory of a source.

    Attributes:
        key: Names it in the source, the same each time.
        place: Where it is, for messages, such as "line 3".
        content: Its text.
        fields: Fields of `MemoryEntry`; times may be texts or seconds, and None leaves one out.
        metadata: Further values.
        is_current: Whether it takes the place of what had its key before. If not, its text is part
            of what it is, as that of a message.
    """

    key: str
    place: str
    content: str
    fields: Mapping[str, Any] = NOTHING
    metadata: Mapping[str, Any] = NOTHING
    is_current: bool = False


class Chosen(NamedTuple):
    """What a person says of a source.

    Attributes:
        text_field: Name of the field that has the text, None where it is one of the usual names.
        user_field: Name of the field that has the user, likewise; "" for none. Dots lead into
            values, as in `namespace.1`.
        user_id: The user of memories that name none; those of others are left out. None keeps all.
    """

    text_field: str | None = None
    user_field: str | None = None
    user_id: str | None = None


ALL: Final = Chosen()
"""Takes the usual names, and keeps the memories of all users."""


VECTORS: Final = "vectors: the texts are embedded anew"

Lost: TypeAlias = Counter[str]
"""What of a source becomes no memory, counted by kind."""

Reader: TypeAlias = Callable[[Path, Chosen, Lost], Iterator[Record]]
"""Yields the records of a file or folder, and counts what it leaves behind.

It raises `SourceError` where the source is damaged or something else, and nothing but that.
"""
