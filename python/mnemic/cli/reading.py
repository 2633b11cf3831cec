"""Verbs that show what is stored: list, get, history, timeline, duplicates, stats, users."""

import argparse
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from mnemic import Memory
from mnemic.cli.call import Call, declare_days, declare_filters, filters_of, number
from mnemic.model import LinkType, MemoryEntry

if TYPE_CHECKING:
    from uuid import UUID

PAGE = 500


def declare_list(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of list."""
    parser.add_argument("-n", "--limit", type=number, help="at most so many")
    declare_filters(parser)
    parser.add_argument("--deleted", action="store_true", help="deleted ones, too")
    declare_days(parser)


def list_(call: Call) -> None:
    """Print memories, the newest first."""
    show(call, islice(_entries(call), call.given.limit))


def _entries(call: Call) -> Iterator[MemoryEntry]:
    memory, given = call.stored(track_access=False), call.given
    return entries_of(
        call, memory, limit=min(PAGE, given.limit or PAGE), include_deleted=given.deleted
    )


def entries_of(call: Call, memory: Memory, **options: Any) -> Iterator[MemoryEntry]:
    """Yield the memories of the call's user and filters page by page, the newest first."""
    cursor, filters = None, filters_of(call.given)
    while True:
        page = memory.list(cursor=cursor, filters=filters, **options, **call.scope)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return


def show(call: Call, entries: Iterable[MemoryEntry]) -> None:
    """Print memories, as JSON or as a list."""
    if call.out.is_json:
        for entry in entries:
            call.out.json(entry.to_dict())
    else:
        call.out.entries(entries)


def declare_get(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of get."""
    parser.add_argument("id", nargs="+", help="ids of memories")


def get(call: Call) -> None:
    """Print memories whole."""
    memory = call.stored()
    for identity in call.given.id:
        entry = memory.get(identity, **call.scope)
        call.out.fields(entry.to_dict())


def declare_history(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of history."""
    parser.add_argument("id", help="any version of a memory")


def history(call: Call) -> None:
    """Print the versions of a memory, the newest first."""
    memory = call.stored(track_access=False)
    seen: dict[UUID, MemoryEntry] = {}
    waiting: list[UUID | str] = [call.given.id]
    while waiting:
        neighbours = memory.linked(
            waiting.pop(),
            types=[LinkType.SUPERSEDES],
            direction="both",
            include_archived=True,
            include_superseded=True,
            **call.scope,
        )
        new = {hit.entry.id: hit.entry for hit in neighbours if hit.entry.id not in seen}
        seen |= new
        waiting += new
    if not seen:  # it has one version, or is not there
        named = memory.get(call.given.id, **call.scope)
        seen[named.id] = named
    show(call, iter(sorted(seen.values(), key=lambda entry: entry.created_at, reverse=True)))


declare_timeline = declare_list


def timeline(call: Call) -> None:
    """Print memories by day, the newest day first."""
    entries = islice(_entries(call), call.given.limit)
    if call.out.is_json:
        show(call, entries)
        return
    for day, of_day in groupby(entries, key=lambda entry: f"{entry.created_at:%Y-%m-%d}"):
        call.out.line(day)
        call.out.entries(of_day)


def declare_duplicates(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of duplicates."""
    parser.add_argument("--near", type=float, default=0.95, help="least similarity (.95)")
    parser.add_argument("-n", "--limit", type=int, default=1000, help="at most so many (1000)")


def duplicates(call: Call) -> None:
    """Print memories that repeat an earlier one, each with the one it repeats."""
    memory = call.memory(track_access=False)
    report = memory.audit(
        ids=True,
        limit=call.given.limit,
        near=call.given.near,
        progress=call.out.progress,
        **call.scope,
    )
    for kind in ("exact_duplicates", "near_duplicates"):
        for finding in report.findings.get(kind, ()):
            if call.out.is_json:
                call.out.json({"kind": kind, **finding.to_dict()})
            else:
                pair = filter(None, (finding.repeats, finding.id))
                call.out.entries(memory.get_many(pair, **call.scope), ["", "="])


def stats(call: Call) -> None:
    """Print counts of memories."""
    call.out.fields(call.stored(track_access=False).stats(**call.scope).to_dict())


def declare_users(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of users."""
    parser.add_argument("--prefix", help="users whose ids begin so")
    parser.add_argument("-n", "--limit", type=int, default=1000, help="at most so many (1000)")


def users(call: Call) -> None:
    """Print the users, and what each has stored."""
    for usage in call.stored().users(limit=call.given.limit, prefix=call.given.prefix):
        name = "(no user)" if usage.user_id is None else usage.user_id
        text = f"{usage.active_entries:8} {usage.storage_bytes_used:12,} B  {name}"
        call.out.result(usage.to_dict(), text)
