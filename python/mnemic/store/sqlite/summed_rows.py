"""Keeps the checksums right, whatever statement of the writing connection changes a row.

TEMP triggers of that connection note changes of rows and links, and vectors' end, in a TEMP table;
TEMP ones run though those of a file never do (`hardening`). `settle` then writes the sums of the
changed rows and of their agents, at the end of each write. Changes are added to the sums: damage
stays as visible as it was. Of vectors alone the sum is taken anew, for a write replaces all those
of a row.

A statement for many rows that sets their sums itself is noted nowhere, which spares each row a note
and a second UPDATE: it comes after `settle_rows`, and `rewrite` takes in what it changed.

A trigger calls no function: one that may fail has SQLite keep what it needs to undo the statement,
every page before its change, which takes half as long again. So does any trigger where a constraint
may fail: who inserts rows, and who inserts or writes over vectors, reports it, by `new_rows`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from mnemic._core import (
    SUMMED_COLUMNS,
    changed_sums,
    link_sums,
    placed_sums,
    row_sums,
    vector_sums,
)
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    MASK,
    NO_SUMS,
    SUM_COLUMNS,
    SUMMED,
    Sums,
)
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    Columns,
    among,
    is_own,
    read_column,
)
from mnemic.store.sqlite.sqlite_errors import reading_stored

if TYPE_CHECKING:
    from mnemic.store.sqlite.hardening import GuardedConnection

_ACCESSES: Final = {"last_accessed_at", "access_count"}
_ALONE: Final = ("status", "forgotten_at", "expires_at")
"""Columns that statements change without others."""

_OTHERS: Final = [name for name in SUMMED_COLUMNS if name not in _ACCESSES.union(_ALONE)]

_NOTE: Final = tuple("abcdefghijkl")
_TABLE: Final = f"CREATE TEMP TABLE IF NOT EXISTS mnemic_changes ({', '.join(_NOTE)}, what)"
_READ: Final = "SELECT * FROM temp.mnemic_changes ORDER BY rowid"
_EMPTY: Final = "DELETE FROM temp.mnemic_changes"


def _noted(*notes: str) -> str:
    """Return one statement for some notes, for each statement opens the table."""
    return f"INSERT INTO mnemic_changes {' UNION ALL '.join(notes)};"


def _note(what: str, *values: str) -> str:
    nothing = ["NULL"] * (len(_NOTE) - len(values))
    return f"SELECT {', '.join([*values, *nothing])}, '{what}'"


def _row_changed(*change: str) -> str:
    before = [f"OLD.{name}" for name in (*SUM_COLUMNS.split(", "), "agent_id")]
    return _note("row", *before, *change)


def _columns_changed(names: Iterable[str]) -> str:
    """Return the statement that notes which of some columns changed.

    One SELECT of all that is noted for each column had twice as many registers, which SQLite makes
    anew for each row, 3 µs, though nothing is noted.
    """
    columns = " UNION ALL ".join(
        f"SELECT '{name}' AS name, {read_column(name, 'OLD.')} AS old, "
        f"{read_column(name, 'NEW.')} AS new"
        for name in names
    )
    note = _row_changed("NEW.status", "NEW.forgotten_at", "name", "old", "new")
    return _noted(f"{note} FROM ({columns}) WHERE old IS NOT new")


def _link_changed(sign: int, of: str) -> str:
    link = [f"{of}.{name}" for name in ("to_row", "type", "strength", "created_at")]
    return _note("link", f"{of}.from_row", str(sign), *link)


_SETS_NO_SUM: Final = "WHEN NEW.row_sum IS OLD.row_sum"

_TRIGGERS: Final = (
    *[
        (f"UPDATE OF {', '.join(names)} ON entries {_SETS_NO_SUM}", _columns_changed(names))
        for names in (*[[name] for name in _ALONE], _OTHERS)
    ],
    (
        "UPDATE OF content ON entries WHEN NEW.row_sum IS NULL",
        _noted(_note("rewritten", "NEW.row")),
    ),
    ("DELETE ON entries", _noted(_row_changed())),
    ("INSERT ON links", _noted(_link_changed(1, "NEW"))),
    ("UPDATE ON links", _noted(_link_changed(-1, "OLD"), _link_changed(1, "NEW"))),
    ("DELETE ON links", _noted(_link_changed(-1, "OLD"))),
    (f"DELETE ON embeddings WHEN {is_own('OLD.')}", _noted(_note("vector", "OLD.entry_row"))),
)
"""What each trigger runs after, and what it runs."""

_ROWS: Final = (
    f"SELECT {SUM_COLUMNS}, agent_id, status, forgotten_at, NULL, NULL, NULL "
    f"FROM agent_memory_entries {BY_ROW} WHERE "
)
_OWN_VECTORS: Final = (
    "SELECT entry_row, model, embedding FROM agent_memory_embeddings "
    f"WHERE entry_row IN (SELECT value FROM json_each(?)) AND {is_own('')} "
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


class SummedRows:
    """The changes of rows on a connection since the last `settle`."""

    def __init__(self) -> None:
        self._is_watching = False
        self._has_triggers = False
        self._gains: defaultdict[str, Sums] = defaultdict(lambda: NO_SUMS)
        self._new_vectors: set[int] = set()

    def begin(self, connection: "GuardedConnection") -> None:
        """Begin a transaction without changes; create the triggers, unless they are kept."""
        self._gains.clear()
        self._new_vectors.clear()
        if not self._has_triggers:
            self._watch(connection)
            self._is_watching = True

    def keep_triggers(self) -> None:
        """Keep the triggers, which the first transaction to end has made; others undo theirs."""
        self._has_triggers = True

    def _watch(self, connection: "GuardedConnection") -> None:
        connection.execute(_TABLE)
        for number, (event, what) in enumerate(_TRIGGERS):
            after = event.replace(" ON ", " ON main.agent_memory_")
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS mnemic_{number} AFTER {after} BEGIN {what} END"
            )

    def insert(self, agent_id: str, rows: list[Columns]) -> None:
        """Take in new rows, each the `SUM_COLUMNS`."""
        self._gain(agent_id, placed_sums(rows))

    def rewrite(self, agent_id: str, before: list[Columns], after: list[Columns]) -> None:
        """Take in rows of an agent, each the `SUM_COLUMNS`, whose statement set their sums.

        Raises:
            StoreCorruptError: If a stored sum is none.
        """
        with reading_stored("a memory's checksum"):
            (_, old), (_, new) = placed_sums(before), placed_sums(after)
        self._gain(agent_id, (0, new - old))

    def _gain(self, agent_id: str, gained: tuple[int, int]) -> None:
        self._gains[agent_id] = self._gains[agent_id].plus(Sums(*gained))

    def write_vectors(self, rows: Iterable[int]) -> None:
        """Take in the rows of vectors that were inserted or written over, but with new rows."""
        self._new_vectors.update(rows)

    def forget(self) -> None:
        """Forget the changes since the last `settle`, which were undone."""
        self._gains.clear()
        self._new_vectors.clear()

    def settle(self, connection: "GuardedConnection", agent_id: str | None = None) -> Sums:
        """Write the sums of the rows that changed since the last time, and of their agents.

        Args:
            connection: In the transaction that changed them.
            agent_id: An agent to which the caller adds what is returned.

        Raises:
            StoreCorruptError: If what is stored cannot be read.
        """
        self.settle_rows(connection)
        own = self._gains.pop(agent_id, NO_SUMS) if agent_id is not None else NO_SUMS
        for agent, gained in self._gains.items():
            connection.execute(_ADD_TO_AGENT, (*gained, agent))
        self._gains.clear()
        return own

    def settle_rows(self, connection: "GuardedConnection") -> None:
        """Write the sums of the rows that changed, for they may be read before the write ends.

        Raises:
            StoreCorruptError: If what is stored cannot be read.
        """
        noted = connection.fetch(_READ) if self._is_watching else []
        if not (noted or self._new_vectors):
            return
        changes: defaultdict[str, list[Columns]] = defaultdict(list)
        for change in noted:
            changes[change[-1]].append(change)
        connection.execute(_EMPTY)
        with reading_stored("a memory's checksum"):
            self._write_sums(connection, changes)
        if changes["rewritten"]:
            self.add_missing(connection, sorted({row for row, *_ in changes["rewritten"]}))
        self._new_vectors.clear()

    def _write_sums(
        self, connection: "GuardedConnection", changes: dict[str, list[Columns]]
    ) -> None:
        """Write the sums of the rows that are still there."""
        rows, links = changes["row"], changes["link"]
        of_vectors = sorted(self._new_vectors.union([row for row, *_ in changes["vector"]]))
        vectors: dict[int, int | None] = dict.fromkeys(of_vectors)
        vectors.update(_vector_sums(connection, of_vectors))
        others = vectors.keys() | {row for row, *_ in links}
        others -= {row for row, *_ in rows}
        if others:
            where, values = among(sorted(others))
            rows += connection.fetch(_ROWS + where, values)
        written, gains = changed_sums(rows, links, vectors)
        for agent_id, gained in gains.items():
            self._gain(agent_id, gained)
        if written:
            connection.run_all(_SET_SUMS, written)

    def add_missing(self, connection: "GuardedConnection", rows: Sequence[int]) -> int:
        """Add sums to those of these rows that have none; return to how many."""
        found = connection.fetch(_WITHOUT_SUMS, (rows,))
        with reading_stored("a memory"):
            vectors = dict(_vector_sums(connection, [row[0] for row in found]))
            of_rows = row_sums([row[SUMMED] for row in found])
            values = [
                (of_row, vectors.get(row[0]), _sum_of_links(connection, row[0]), row[0])
                for row, of_row in zip(found, of_rows, strict=True)
            ]
        connection.executemany(_SET_SUMS, values)
        where, numbers = among([row[0] for row in found])
        for row in connection.fetch(_ROWS + where, numbers):
            self._gain(row[6], placed_sums([row[:6]]))
        return len(found)


def _vector_sums(connection: "GuardedConnection", rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield rows that have vectors, and the sum of these."""
    for first in range(0, len(rows), _PART):
        found = connection.fetch(_OWN_VECTORS, (rows[first : first + _PART],))
        of_models: dict[str, dict[int, list[Any]]] = defaultdict(dict)
        for row, parts in groupby(found, itemgetter(0)):
            vectors = list(parts)
            of_models[vectors[0][1]][row] = [blob for *_, blob in vectors]
        for model, of_rows in of_models.items():
            yield from zip(of_rows, vector_sums(model, list(of_rows.values())), strict=True)


def _sum_of_links(connection: "GuardedConnection", row: int) -> int | None:
    links = connection.fetch(_LINKS, (row,))
    return sum(link_sums(links)) & MASK if links else None
