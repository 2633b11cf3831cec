"""SQL statements that change many entries in one transaction."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import apsw

from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import Criteria
from mnemic.store.eviction import Write
from mnemic.store.quota import Quotas
from mnemic.store.row_codec import RowCodec
from mnemic.store.sqlite.change_log import Charge, log_changes
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS, NO_SUMS
from mnemic.store.sqlite.damage import uuids_of
from mnemic.store.sqlite.eviction import evict_entries
from mnemic.store.sqlite.selected_rows import selected
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    IS_ACTIVE,
    IS_NOT_SUPERSEDED,
    Columns,
    fetch,
    integers,
    json_array,
)
from mnemic.store.sqlite.updates import write_update
from mnemic.store.values import Model, UpdatedEntries, UpdatedEntry

if TYPE_CHECKING:
    from mnemic.store.changes import Change

_AT_ONCE = 256
"""Entries that are read together; contents of more could take much memory."""

_ENTRIES = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} "
    f"WHERE agent_id = ? AND {AMONG} ORDER BY row"
)


def update_all(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    change: Callable[[MemoryEntry], MemoryEntry],
    *,
    vectors: tuple[Model, Sequence[bytes]] | None,
    now: int,
    quotas: Quotas,
    include_archived: bool,
) -> UpdatedEntries:
    """Change the selected entries of a scope; see `updates.update`."""
    state = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
    state = f"{codec.is_visible_sql} AND {state}"
    where, values = selected(connection, codec, scope, criteria, (state, [now]))
    changes: list[Change] = []
    updated: list[UpdatedEntry] = []
    model, sums = None, NO_SUMS
    for found in _selected_entries(connection, scope, where, values):
        written = write_update(connection, codec, found, change, vectors)
        changes.append(written.change)
        updated.append(UpdatedEntry(written.entry.id, written.entry.type))
        model, sums = written.model or model, sums.plus(written.sums)
    if not changes:
        return UpdatedEntries([])
    evicted = evict_entries(connection, codec, Write(scope.agent_id, changes, quotas, now))
    charge = Charge(quotas, sums.plus(evicted.sums))
    log_changes(connection, scope.agent_id, [*changes, *evicted.changes], model, charge)
    return UpdatedEntries(updated, uuids_of(change.entry_id for change in evicted.changes))


def _selected_entries(
    connection: apsw.Connection, scope: Scope, where: str, values: Sequence[object]
) -> Iterator[Columns]:
    """Yield entries whole, by row; which ones is decided before the first is yielded."""
    sql = f"SELECT row FROM agent_memory_entries WHERE {where} ORDER BY row"
    rows = integers([row for (row,) in fetch(connection, sql, values)])
    for first in range(0, len(rows), _AT_ONCE):
        part = json_array(rows[first : first + _AT_ONCE])
        yield from fetch(connection, _ENTRIES, (scope.agent_id, part))
