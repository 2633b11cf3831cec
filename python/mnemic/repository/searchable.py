"""A memory as services take it: a repository and a scope in it."""

from typing import Protocol, cast

from mnemic.errors import InvalidArgumentError
from mnemic.model import Scope
from mnemic.reporting.description import described
from mnemic.repository.repository import Repository


class Searchable(Protocol):
    """A memory, scoped or not, as services take it."""

    @property
    def repository(self) -> Repository:
        """Its repository."""
        ...

    @property
    def scope(self) -> Scope:
        """Its scope."""
        ...

    @property
    def time_zone(self) -> str:
        """The name of its time zone."""
        ...


def checked_memory(memory: object) -> Searchable:
    """Return a valid memory for a service."""
    of = getattr(memory, "repository", None), getattr(memory, "scope", None)
    if not (isinstance(of[0], Repository) and isinstance(of[1], Scope)):
        raise InvalidArgumentError(
            "memory must be a Memory, an AsyncMemory, an AsyncLongTermMemory or a view of one, got "
            f"{described(memory)}"
        )
    return cast("Searchable", memory)
