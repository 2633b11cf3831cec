"""Memories of tests."""

from uuid import UUID, uuid4

from mnemic.model import MemoryEntry
from mnemic.model.filter import Criteria
from mnemic.store.row_codec import RowCodec
from tests.support.clock import NOON

to_row = RowCodec().encode
"""Return the columns of an entry, as they are stored and as the index reads them."""


def entry(content="the user prefers dark mode", **fields):
    """Return a memory of the agent `aide`, made at noon."""
    given = {"id": uuid4(), "agent_id": "aide", "created_at": NOON, **fields}
    return MemoryEntry(content=content, **given)


def uid(number):
    return UUID(int=number)


def only(*numbers):
    """Return the criteria of the entries with the ids of these numbers."""
    return Criteria([uid(number) for number in numbers])


def numbered(number, **fields):
    """Return a memory of the agent `a`, made at noon, whose id is the number."""
    given = {"id": uid(number), "agent_id": "a", "content": f"memory {number}", "created_at": NOON}
    return MemoryEntry(**{**given, **fields})


def contents(entries):
    return [each.content for each in entries]
