"""Keeps the checksums right, whatever statement of the writing connection changes a row.

TEMP triggers of that connection see each change of a row, a vector or a link; TEMP ones run though
those of a file never do (`hardening`). A trigger adds the change to the sum rather than taking it
anew: damage stays as visible as it was. They change `row_sum` and `link_sum` at once. `settle` does
the rest at the end of a write: the sums of vectors that were replaced, sums for rows of an earlier
version that were rewritten, and those of the agents.

New rows come with the sums of their columns and vectors. No trigger sees them be inserted, for it
would cost an insertion a third: they are those above the last row that there was before.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

import apsw

from mnemic._core import SUMMED_COLUMNS, column_sum, link_sums, row_sums, vector_sums
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS, MASK, SUM_COLUMNS, SUMMED, added
from mnemic.store.sqlite.damage import reading_stored
from mnemic.store.sqlite.sql import AMONG, BY_ROW, Columns, fetch, json_array, read_column

_PART: Final = 256
"""Rows whose vectors are read together."""

_SUMS: Final = ("row_sum", "vector_sum", "link_sum", "status", "forgotten_at")
_ACCESSES: Final = ("last_accessed_at", "access_count")
_NAMES: Final = [name for name in SUMMED_COLUMNS if name not in _ACCESSES]


def _columns(table: str) -> str:
    return ", ".join(f"{table}{name}" for name in _SUMS)


def _changed(names: Sequence[str]) -> str:
    return " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in names)


def _with_column(total: str, name: str) -> str:
    """Return a sum to which the change of a column is added."""
    old, new = read_column(name, "OLD."), read_column(name, "NEW.")
    change = f"mnemic_column_change('{name}', {old}, {new})"
    return f"(({total} + CASE WHEN {old} IS NOT {new} THEN {change} ELSE 0 END) & {MASK})"


def _new_row_sum() -> str:
    total = "row_sum"
    for name in _NAMES:
        total = _with_column(total, name)
    return total


def _trigger(name: str, event: str, what: str, when: str = "TRUE") -> str:
    return (
        f"CREATE TEMP TRIGGER mnemic_{name} AFTER {event} WHEN {when} BEGIN {what}; END"
    ).replace(" ON ", " ON main.agent_memory_", 1)


def _add_link(sign: str, of: str) -> str:
    link = ", ".join(f"{of}.{name}" for name in ("to_row", "type", "strength", "created_at"))
    return (
        f"UPDATE agent_memory_entries SET link_sum = (ifnull(link_sum, 0) {sign} "
        f"mnemic_link_sum({link})) & {MASK} WHERE row = {of}.from_row AND row_sum IS NOT NULL"
    )


def _is_own(of: str) -> str:
    return f"substr({of}.model, 1, 1) <> char(31)"  # see `shadow_vectors`


_TRIGGERS: Final = (
    _trigger(
        "row_changed",
        f"UPDATE OF {', '.join(_SUMS)} ON entries",
        f"SELECT mnemic_row_changed(OLD.agent_id, OLD.row, {_columns('OLD.')}, {_columns('NEW.')})",
        _changed(_SUMS),
    ),
    _trigger(
        "row_deleted",
        "DELETE ON entries",
        f"SELECT mnemic_row_deleted(OLD.agent_id, OLD.row, {_columns('OLD.')})",
    ),
    _trigger(
        "columns_changed",
        f"UPDATE OF {', '.join(_NAMES)} ON entries",
        f"UPDATE agent_memory_entries SET row_sum = {_new_row_sum()} WHERE row = NEW.row",
        "NEW.row_sum IS NOT NULL",
    ),
    _trigger(
        "row_rewritten",
        "UPDATE OF content ON entries",
        "SELECT mnemic_row_rewritten(NEW.row)",
        "NEW.row_sum IS NULL",
    ),
    _trigger("link_added", "INSERT ON links", _add_link("+", "NEW")),
    _trigger("link_deleted", "DELETE ON links", _add_link("-", "OLD")),
    _trigger(
        "link_changed",
        "UPDATE ON links",
        f"{_add_link('-', 'OLD')}; {_add_link('+', 'NEW')}",
    ),
    _trigger(
        "vector_added",
        "INSERT ON embeddings",
        "SELECT mnemic_vector_added(NEW.entry_row, "
        "(SELECT vector_sum FROM agent_memory_entries WHERE row = NEW.entry_row))",
        _is_own("NEW"),
    ),
    _trigger(
        "vector_deleted",
        "DELETE ON embeddings",
        "SELECT mnemic_vector_changed(OLD.entry_row)",
        _is_own("OLD"),
    ),
    _trigger(
        "vector_changed",
        "UPDATE OF model, embedding ON embeddings",
        "SELECT mnemic_vector_changed(NEW.entry_row)",
        f"{_is_own('OLD')} OR {_is_own('NEW')}",
    ),
)

_LAST_ROW: Final = "SELECT max(row) FROM agent_memory_entries"
_NEW_ROWS: Final = (
    f"SELECT agent_id, {SUM_COLUMNS} FROM agent_memory_entries {BY_ROW} WHERE row > ? ORDER BY row"
)
_OWN_VECTORS: Final = (
    "SELECT entry_row, model, embedding FROM agent_memory_embeddings "
    f"WHERE entry_row IN (SELECT value FROM json_each(?)) AND {_is_own('agent_memory_embeddings')} "
    "ORDER BY entry_row, model, part"
)
_LINKS: Final = (
    "SELECT to_row, type, strength, created_at FROM agent_memory_links WHERE from_row = ?"
)
_WITHOUT_SUMS: Final = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} WHERE {AMONG} AND row_sum IS NULL"
)
_SET_VECTOR_SUM: Final = (
    "UPDATE agent_memory_entries SET vector_sum = ? WHERE row = ? AND row_sum IS NOT NULL"
)
_SET_SUMS: Final = (
    "UPDATE agent_memory_entries SET row_sum = ?, vector_sum = ?, link_sum = ? "
    "WHERE row = ? AND row_sum IS NULL"
)
_ADD_TO_AGENT: Final = (
    "UPDATE agent_memory_agents SET summed_rows = summed_rows + ?, "
    f"rows_sum = (rows_sum + ?) & {MASK} WHERE agent_id = ?"
)

_BeforeAndAfter: TypeAlias = tuple[list[Columns], list[Columns]]
"""The `SUM_COLUMNS` of an agent's changed rows."""


class SummedRows:
    """The changes of rows on a connection since the last `settle`, as its triggers report them."""

    def __init__(self) -> None:
        self._last_row = 0
        self._changes_settled = 0
        self._changed: dict[str, _BeforeAndAfter] = defaultdict(lambda: ([], []))
        self._with_new_vectors: set[int] = set()
        self._rewritten: set[int] = set()

    def watch(self, connection: apsw.Connection) -> None:
        """Create the triggers and their functions on a connection, once its tables are there."""
        functions: tuple[tuple[str, Any, int, bool], ...] = (
            ("mnemic_column_change", _column_change, 3, True),
            ("mnemic_link_sum", _link_sum, 4, True),
            ("mnemic_row_changed", self._row_changed, 2 + 2 * len(_SUMS), False),
            ("mnemic_row_deleted", self._row_deleted, 2 + len(_SUMS), False),
            ("mnemic_row_rewritten", self._rewritten.add, 1, False),
            ("mnemic_vector_added", self._vector_added, 2, False),
            ("mnemic_vector_changed", self._with_new_vectors.add, 1, False),
        )
        for name, function, arguments, is_pure in functions:
            connection.create_scalar_function(name, function, arguments, deterministic=is_pure)
        for trigger in _TRIGGERS:
            connection.execute(trigger)

    def begin(self, connection: apsw.Connection) -> None:
        """Begin with the state of a connection, whose earlier changes are settled or undone."""
        self.forget()
        self._last_row = connection.execute(_LAST_ROW).get or 0
        self._changes_settled = connection.total_changes()

    def forget(self) -> None:
        """Forget the changes since the last `settle`, which were undone."""
        self._changed.clear()
        self._with_new_vectors.clear()
        self._rewritten.clear()

    def settle(self, connection: apsw.Connection) -> None:
        """Bring all sums up to the changes since the last time.

        Raises:
            StoreCorruptError: If what is stored cannot be read.
        """
        if connection.total_changes() == self._changes_settled:
            return
        if self._with_new_vectors:
            self._sum_vectors(connection)
        if self._rewritten:
            add_missing_sums(connection, sorted(self._rewritten))
        for agent_id, *row in fetch(connection, _NEW_ROWS, (self._last_row,)):
            self._changed[agent_id][1].append(tuple(row))
            self._last_row = row[0]
        for agent_id, (before, after) in self._changed.items():
            old, new = added(before), added(after)
            change = (new.rows - old.rows, (new.total - old.total) & MASK)
            connection.execute(_ADD_TO_AGENT, (*change, agent_id))
        self.forget()
        self._changes_settled = connection.total_changes()

    def _row_changed(self, agent_id: str, row: int, *sums: Any) -> None:
        if row <= self._last_row:  # others are read when they are settled
            before, after = self._changed[agent_id]
            before.append((row, *sums[: len(_SUMS)]))
            after.append((row, *sums[len(_SUMS) :]))

    def _row_deleted(self, agent_id: str, row: int, *sums: Any) -> None:
        if row <= self._last_row:
            self._changed[agent_id][0].append((row, *sums))

    def _vector_added(self, row: int, vector_sum: int | None) -> None:
        if row <= self._last_row or vector_sum is None:
            self._with_new_vectors.add(row)

    def _sum_vectors(self, connection: apsw.Connection) -> None:
        rows = sorted(self._with_new_vectors)
        for first in range(0, len(rows), _PART):
            part = rows[first : first + _PART]
            found = dict(_vector_sums(connection, part))
            connection.executemany(_SET_VECTOR_SUM, [(found.get(row), row) for row in part])


def _column_change(*change: Any) -> int:
    column, old, new = change
    return (column_sum(column, new) - column_sum(column, old)) & MASK


def _link_sum(*link: Any) -> int:
    return link_sums([link])[0]


def _vector_sums(connection: apsw.Connection, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield rows that have vectors, and the sum of these."""
    found = fetch(connection, _OWN_VECTORS, (json_array(rows),))
    of_models: dict[str, dict[int, list[Any]]] = defaultdict(dict)
    for row, parts in groupby(found, itemgetter(0)):
        (_, model, blob), *more = parts
        of_models[model][row] = [blob, *(blob for *_, blob in more)]
    with reading_stored("a vector"):
        for model, vectors in of_models.items():
            yield from zip(vectors, vector_sums(model, list(vectors.values())), strict=True)


def add_missing_sums(connection: apsw.Connection, rows: Sequence[int]) -> int:
    """Add sums to those of these rows that have none; return to how many."""
    found = fetch(connection, _WITHOUT_SUMS, (json_array(rows),))
    of_vectors = dict(_vector_sums(connection, [row[0] for row in found]))
    with reading_stored("a memory"):
        of_rows = row_sums([row[SUMMED] for row in found])
        values = [
            (of_row, of_vectors.get(row[0]), _sum_of_links(connection, row[0]), row[0])
            for row, of_row in zip(found, of_rows, strict=True)
        ]
    connection.executemany(_SET_SUMS, values)
    return len(found)


def _sum_of_links(connection: apsw.Connection, row: int) -> int | None:
    links = fetch(connection, _LINKS, (row,))
    return sum(link_sums(links)) & MASK if links else None
