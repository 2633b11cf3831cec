"""Keeps the checksums right, whatever statement of the writing connection changes a row.

TEMP triggers of that connection report changes of rows and links, and vectors' end; TEMP ones run
though those of a file never do (`hardening`). `settle` then writes the sums of the changed rows and
of their agents, at the end of each write. Changes are added to the sums: damage stays as visible as
it was. Of vectors alone the sum is taken anew, for a write replaces all those of a row.

Who inserts rows, and who inserts or writes over vectors, reports it, by `new_rows`: any trigger
has SQLite keep what it needs to undo each statement, which takes a third as long again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import apsw

from mnemic._core import (
    SUMMED_COLUMNS,
    column_sum,
    link_sums,
    placed_sums,
    row_sums,
    vector_sums,
)
from mnemic.store.row_codec import UNREADABLE
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    MASK,
    NO_SUMS,
    SUM_COLUMNS,
    SUMMED,
    Sums,
)
from mnemic.store.sqlite.damage import reading_stored, unreadable
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    Columns,
    among,
    execute_all,
    fetch,
    json_array,
    read_column,
)

_ACCESSES: Final = frozenset({"last_accessed_at", "access_count"})
_STATE: Final = ("status", "updated_at", "forgotten_at", "expires_at", "version", "supersedes")
"""Columns that statements change without others."""

_OTHERS: Final = [name for name in SUMMED_COLUMNS if name not in _ACCESSES.union(_STATE)]


def _columns_changed(names: Iterable[str]) -> str:
    return " ".join(
        f"SELECT mnemic_column_changed(OLD.row, '{name}', {old}, {new}) WHERE {old} IS NOT {new};"
        for name in names
        for old, new in [(read_column(name, "OLD."), read_column(name, "NEW."))]
    )


def _link_changed(sign: int, of: str) -> str:
    link = ", ".join(f"{of}.{name}" for name in ("to_row", "type", "strength", "created_at"))
    return f"SELECT mnemic_link_changed({of}.from_row, {sign}, {link});"


def _is_own(of: str) -> str:
    return f"substr({of}model, 1, 1) <> char(31)"  # see `shadow_vectors`


_TRIGGERS: Final = (
    (f"UPDATE OF {', '.join(_STATE)} ON entries", _columns_changed(_STATE)),
    (f"UPDATE OF {', '.join(_OTHERS)} ON entries", _columns_changed(_OTHERS)),
    (
        "UPDATE OF content ON entries WHEN NEW.row_sum IS NULL",
        "SELECT mnemic_row_rewritten(NEW.row);",
    ),
    (
        "DELETE ON entries",
        f"SELECT mnemic_row_deleted(OLD.agent_id, OLD.{SUM_COLUMNS.replace(', ', ', OLD.')});",
    ),
    ("INSERT ON links", _link_changed(1, "NEW")),
    ("UPDATE ON links", _link_changed(-1, "OLD") + _link_changed(1, "NEW")),
    ("DELETE ON links", _link_changed(-1, "OLD")),
    (
        f"DELETE ON embeddings WHEN {_is_own('OLD.')}",
        "SELECT mnemic_vector_deleted(OLD.entry_row);",
    ),
)
"""What each trigger runs after, and what it runs."""

_CHANGED: Final = f"SELECT agent_id, {SUM_COLUMNS} FROM agent_memory_entries {BY_ROW} WHERE "
_OWN_VECTORS: Final = (
    "SELECT entry_row, model, embedding FROM agent_memory_embeddings "
    f"WHERE entry_row IN (SELECT value FROM json_each(?)) AND {_is_own('')} "
    "ORDER BY entry_row, model, part"
)
_LINKS: Final = (
    "SELECT to_row, type, strength, created_at FROM agent_memory_links WHERE from_row = ?"
)
_WITHOUT_SUMS: Final = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} WHERE {AMONG} AND row_sum IS NULL"
)
_SET_SUMS: Final = (
    "UPDATE agent_memory_entries SET row_sum = ?, vector_sum = ?, link_sum = ? WHERE row = ?"
)
_ADD_TO_AGENT: Final = (
    "UPDATE agent_memory_agents SET summed_rows = summed_rows + ?, "
    f"rows_sum = (rows_sum + ?) & {MASK} WHERE agent_id = ?"
)
_PART: Final = 256
"""Rows whose vectors are read together."""


class _ChangedRow:
    """The changes of a row that is there.

    Attributes:
        columns: What they add to the sum of its columns.
        links: What they add to the sum of its links.
        state: Its former status and time of deletion, of those that changed.
    """

    __slots__ = ("columns", "links", "state")

    def __init__(self) -> None:
        self.columns = 0
        self.links = 0
        self.state: dict[str, Any] = {}

    def before(self, row: Columns) -> Columns:
        """Return the `SUM_COLUMNS` of the row as they were, but for its sums as they are stored."""
        if not self.state:
            return row
        *sums, status, forgotten_at = row
        former = self.state
        return (*sums, former.get("status", status), former.get("forgotten_at", forgotten_at))


_UNCHANGED: Final = _ChangedRow()


class SummedRows:
    """The changes of rows on a connection since the last `settle`, as its triggers report them."""

    def __init__(self) -> None:
        self._has_triggers = False
        self._before: defaultdict[str, list[Columns]] = defaultdict(list)
        self._after: defaultdict[str, list[Columns]] = defaultdict(list)
        self._changed: defaultdict[int, _ChangedRow] = defaultdict(_ChangedRow)
        self._with_new_vectors: set[int] = set()
        self._rewritten: set[int] = set()

    def begin(self, connection: apsw.Connection) -> None:
        """Begin a transaction without changes; create the triggers, unless they are kept."""
        self.forget()
        if not self._has_triggers:
            self._watch(connection)

    def keep_triggers(self) -> None:
        """Keep the triggers, which the first transaction to end has made; others undo theirs."""
        self._has_triggers = True

    def _watch(self, connection: apsw.Connection) -> None:
        functions: list[tuple[str, Callable[..., Any], int]] = [
            ("mnemic_column_changed", self._column_changed, 4),
            ("mnemic_row_rewritten", self._rewritten.add, 1),
            ("mnemic_row_deleted", self._row_deleted, 7),
            ("mnemic_link_changed", self._link_changed, 6),
            ("mnemic_vector_deleted", self._with_new_vectors.add, 1),
        ]
        for name, function, arguments in functions:
            connection.create_scalar_function(name, function, arguments)
        for number, (event, what) in enumerate(_TRIGGERS):
            after = event.replace(" ON ", " ON main.agent_memory_")
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS mnemic_{number} AFTER {after} BEGIN {what} END"
            )

    def insert(self, agent_id: str, rows: Sequence[Columns]) -> None:
        """Take in new rows, each the `SUM_COLUMNS`."""
        self._after[agent_id] += rows

    def write_vectors(self, rows: Iterable[int]) -> None:
        """Take in the rows of vectors that were inserted or written over, but with new rows."""
        self._with_new_vectors.update(rows)

    def forget(self) -> None:
        """Forget the changes since the last `settle`, which were undone."""
        self._before.clear()
        self._after.clear()
        self._changed.clear()
        self._with_new_vectors.clear()
        self._rewritten.clear()

    def settle(self, connection: apsw.Connection, agent_id: str | None = None) -> Sums:
        """Write the sums of the rows that changed since the last time, and of their agents.

        Args:
            connection: In the transaction that changed them.
            agent_id: An agent to which the caller adds what is returned.

        Raises:
            StoreCorruptError: If what is stored cannot be read.
        """
        self.settle_rows(connection)
        if not (self._before or self._after):
            return NO_SUMS
        own = NO_SUMS
        for agent in self._before.keys() | self._after.keys():
            change = self._change_of(agent)
            if agent == agent_id:
                own = change
            else:
                connection.execute(_ADD_TO_AGENT, (*change, agent))
        self.forget()
        return own

    def settle_rows(self, connection: apsw.Connection) -> None:
        """Write the sums of the rows that changed, for they may be read before the write ends.

        Raises:
            StoreCorruptError: If what is stored cannot be read.
        """
        if not (self._changed or self._with_new_vectors or self._rewritten):
            return
        with reading_stored("a memory's checksum"):
            if self._changed or self._with_new_vectors:
                self._write_sums(connection)
            if self._rewritten:
                self.add_missing(connection, sorted(self._rewritten))
        self._changed.clear()
        self._with_new_vectors.clear()
        self._rewritten.clear()

    def _change_of(self, agent_id: str) -> Sums:
        """Return what the changed rows of an agent add to its sum."""
        with reading_stored("a memory's checksum"):
            old_rows, old = placed_sums(self._before[agent_id])
            rows, new = placed_sums(self._after[agent_id])
        return Sums(rows - old_rows, (new - old) & MASK)

    def _write_sums(self, connection: apsw.Connection) -> None:
        new_vectors = self._with_new_vectors
        vectors = dict(_vector_sums(connection, sorted(new_vectors))) if new_vectors else {}
        where, values = among(sorted(new_vectors.union(self._changed)))
        written = [
            self._summed(columns[0], columns[1:], vectors)
            for columns in fetch(connection, _CHANGED + where, values)
            if columns[2] is not None
        ]
        if written:
            execute_all(connection, _SET_SUMS, written)

    def _summed(self, agent_id: str, old: Columns, vectors: dict[int, int]) -> Columns:
        """Return the new sums of a row with its number; note what that changes of its agent's."""
        row, row_sum, vector_sum, link_sum, status, forgotten_at = old
        changed = self._changed.get(row, _UNCHANGED)
        row_sum = (row_sum + changed.columns) & MASK
        if changed.links:
            link_sum = ((link_sum or 0) + changed.links) & MASK
        if row in self._with_new_vectors:
            vector_sum = vectors.get(row)
        self._before[agent_id].append(changed.before(old))
        self._after[agent_id].append((row, row_sum, vector_sum, link_sum, status, forgotten_at))
        return row_sum, vector_sum, link_sum, row

    def add_missing(self, connection: apsw.Connection, rows: Sequence[int]) -> int:
        """Add sums to those of these rows that have none; return to how many."""
        found = fetch(connection, _WITHOUT_SUMS, (json_array(rows),))
        with reading_stored("a memory"):
            vectors = dict(_vector_sums(connection, [row[0] for row in found]))
            of_rows = row_sums([row[SUMMED] for row in found])
            values = [
                (of_row, vectors.get(row[0]), _sum_of_links(connection, row[0]), row[0])
                for row, of_row in zip(found, of_rows, strict=True)
            ]
        connection.executemany(_SET_SUMS, values)
        where, numbers = among([row[0] for row in found])
        for agent_id, *row in fetch(connection, _CHANGED + where, numbers):
            self._after[agent_id].append(tuple(row))
        return len(found)

    def _column_changed(self, *change: Any) -> None:
        row, name, old, new = change
        changed = self._changed[row]
        try:
            changed.columns += column_sum(name, new) - column_sum(name, old)
        except UNREADABLE as error:
            raise unreadable("a memory", error) from None
        if name in ("status", "forgotten_at"):
            changed.state.setdefault(name, old)

    def _row_deleted(self, agent_id: str, *row: Any) -> None:
        changed = self._changed.pop(row[0], _UNCHANGED)
        self._before[agent_id].append(changed.before(row))

    def _link_changed(self, row: int, sign: int, *link: Any) -> None:
        try:
            self._changed[row].links += sign * link_sums([link])[0]
        except UNREADABLE as error:
            raise unreadable("a link", error) from None


def _vector_sums(connection: apsw.Connection, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield rows that have vectors, and the sum of these."""
    for first in range(0, len(rows), _PART):
        found = fetch(connection, _OWN_VECTORS, (json_array(rows[first : first + _PART]),))
        of_models: dict[str, dict[int, list[Any]]] = defaultdict(dict)
        for row, parts in groupby(found, itemgetter(0)):
            vectors = list(parts)
            of_models[vectors[0][1]][row] = [blob for *_, blob in vectors]
        for model, of_rows in of_models.items():
            yield from zip(of_rows, vector_sums(model, list(of_rows.values())), strict=True)


def _sum_of_links(connection: apsw.Connection, row: int) -> int | None:
    links = fetch(connection, _LINKS, (row,))
    return sum(link_sums(links)) & MASK if links else None
