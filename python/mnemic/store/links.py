"""Links as stores read them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from mnemic.errors import InvalidEntryError
from mnemic.model import LinkType, MemoryLink
from mnemic.model.timestamps import from_microseconds
from mnemic.store.row_codec import uuid_of
from mnemic.store.values import LinkEnd


class ReadLink(NamedTuple):
    """A link with the rows of its ends and the user of its source."""

    from_row: int
    to_row: int
    user_id: str | None
    link: MemoryLink

    @classmethod
    def of(cls, columns: tuple[Any, ...]) -> "ReadLink":
        """Return the link of columns: rows, user, ids, type, strength, time.

        Raises:
            ValueError: If it cannot have been stored.
        """
        from_row, to_row, user_id, from_id, to_id, kind, strength, created_at = columns
        ends, time = (uuid_of(from_id), uuid_of(to_id)), from_microseconds(created_at)
        try:
            link = MemoryLink(*ends, LinkType.numbered(kind), strength, time)
        except InvalidEntryError as error:
            raise ValueError(str(error)) from error
        return cls(from_row, to_row, user_id, link)

    @property
    def place(self) -> tuple[object, ...]:
        """The key of the order of links: time, then ids, then type, then user."""
        link = self.link
        return link.created_at, link.from_id, link.to_id, link.type, self.user_id or ""


class LinkedEntry(NamedTuple):
    """One end of a link: row and user of an entry, and the entry that it supersedes."""

    row: int
    user_id: str | None
    supersedes: bytes | None


def ends_of(row: int, links: Iterable[ReadLink]) -> list[LinkEnd]:
    """Return what the links of a row's entry lead to."""
    return [
        LinkEnd(
            read.to_row if read.from_row == row else read.from_row,
            read.link.type,
            read.link.strength,
        )
        for read in links
    ]
