"""The tables, the steps that lead to them from every earlier version, and their functions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import apsw

from mnemic._core import column_sum, placed_sums
from mnemic.errors import StoreCorruptError
from mnemic.store.row_codec import fingerprint
from mnemic.store.sqlite.checksums import MASK, SUM_COLUMNS
from mnemic.store.sqlite.sqlite_errors import DAMAGED

APPLICATION_ID = 0x6D6E656D  # "mnem", in the file's header

_FIRST_COLUMNS = """
    row              INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id         TEXT NOT NULL,
    id               BLOB NOT NULL,
    user_id          TEXT,
    project_id       TEXT,
    session_id       TEXT,
    memory_type      INTEGER NOT NULL,
    status           INTEGER NOT NULL,
    importance       REAL NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    last_accessed_at INTEGER,
    access_count     INTEGER NOT NULL,
    forgotten_at     INTEGER,
    expires_at       INTEGER,
    role             TEXT,
    speaker          TEXT,
    message_id       TEXT,
    position         INTEGER,
    category         TEXT,
    scope            TEXT,
    version          INTEGER NOT NULL,
    supersedes       BLOB,
    is_sensitive     INTEGER NOT NULL,
    is_encrypted     INTEGER NOT NULL,
    type_name        TEXT NOT NULL,
    tags             TEXT,
    metadata         TEXT,
    content          TEXT NOT NULL"""

_FIRST = f"""
CREATE TABLE agent_memory_agents (
    agent_id   TEXT PRIMARY KEY,
    seq        INTEGER NOT NULL,
    pruned     INTEGER NOT NULL DEFAULT 0,
    model      TEXT,
    dimensions INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_memory_entries ({_FIRST_COLUMNS},
    UNIQUE (agent_id, id)
) STRICT;
CREATE INDEX agent_memory_entries_by_agent ON agent_memory_entries (agent_id);
CREATE INDEX agent_memory_entries_by_user
    ON agent_memory_entries (agent_id, user_id, forgotten_at, status);
CREATE INDEX agent_memory_entries_by_type ON agent_memory_entries (agent_id, memory_type);

-- A rowid table: at 384 dimensions two vectors share a page, where WITHOUT ROWID would spill each.
CREATE TABLE agent_memory_embeddings (
    entry_row  INTEGER NOT NULL REFERENCES agent_memory_entries (row) ON DELETE CASCADE,
    model      TEXT NOT NULL,
    part       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    embedding  BLOB NOT NULL,
    UNIQUE (entry_row, model, part)
) STRICT;

CREATE TABLE agent_memory_links (
    from_row   INTEGER NOT NULL REFERENCES agent_memory_entries (row) ON DELETE CASCADE,
    to_row     INTEGER NOT NULL REFERENCES agent_memory_entries (row) ON DELETE CASCADE,
    type       INTEGER NOT NULL,
    strength   REAL NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (from_row, to_row, type)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_memory_links_by_target ON agent_memory_links (to_row);

CREATE TABLE agent_memory_changes (
    agent_id  TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    entry_row INTEGER NOT NULL,
    entry_id  BLOB NOT NULL,
    kind      TEXT NOT NULL,
    PRIMARY KEY (agent_id, seq)
) STRICT, WITHOUT ROWID;
"""

_FIRST_DOWN = """
DROP TABLE agent_memory_changes;
DROP TABLE agent_memory_links;
DROP TABLE agent_memory_embeddings;
DROP TABLE agent_memory_entries;
DROP TABLE agent_memory_agents;
"""

_FIRST_OBSTACLE = "SELECT 'there are memories' FROM agent_memory_entries LIMIT 1"

# What an agent's contents take, so that the transaction that writes can check a quota.
_SECOND = """
ALTER TABLE agent_memory_agents ADD COLUMN used_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE agent_memory_agents AS agent SET used_bytes = (
    SELECT ifnull(sum(octet_length(content)), 0) FROM agent_memory_entries AS entry
    WHERE entry.agent_id = agent.agent_id
);
"""

_SECOND_DOWN = """
ALTER TABLE agent_memory_agents DROP COLUMN used_bytes;
"""

_THIRD_INDEXES = """
CREATE UNIQUE INDEX agent_memory_entries_by_key
    ON agent_memory_entries (agent_id, ifnull(user_id, ''), idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX agent_memory_entries_by_fingerprint ON agent_memory_entries (agent_id, fingerprint);
CREATE INDEX agent_memory_entries_by_forgotten ON agent_memory_entries (agent_id, forgotten_at)
    WHERE forgotten_at IS NOT NULL;
CREATE INDEX agent_memory_entries_by_expiry ON agent_memory_entries (agent_id, expires_at)
    WHERE expires_at IS NOT NULL;
CREATE INDEX agent_memory_entries_by_user ON agent_memory_entries
    (agent_id, user_id, created_at DESC, id, forgotten_at, status, expires_at);
"""

# Fingerprints, and retry keys with that of the content they came with; accesses are numbered apart
# from changes; the user's index lists the newest first and counts without reading rows.
_THIRD = f"""
ALTER TABLE agent_memory_agents ADD COLUMN accesses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent_memory_entries ADD COLUMN idempotency_key TEXT;
ALTER TABLE agent_memory_entries ADD COLUMN key_fingerprint BLOB;
ALTER TABLE agent_memory_entries ADD COLUMN fingerprint BLOB;
UPDATE agent_memory_entries SET fingerprint = mnemic_fingerprint(content);
DROP INDEX agent_memory_entries_by_user;
{_THIRD_INDEXES}"""

_THIRD_DOWN = """
DROP INDEX agent_memory_entries_by_user;
CREATE INDEX agent_memory_entries_by_user
    ON agent_memory_entries (agent_id, user_id, forgotten_at, status);
DROP INDEX agent_memory_entries_by_expiry;
DROP INDEX agent_memory_entries_by_forgotten;
DROP INDEX agent_memory_entries_by_fingerprint;
DROP INDEX agent_memory_entries_by_key;
ALTER TABLE agent_memory_entries DROP COLUMN fingerprint;
ALTER TABLE agent_memory_entries DROP COLUMN key_fingerprint;
ALTER TABLE agent_memory_entries DROP COLUMN idempotency_key;
ALTER TABLE agent_memory_agents DROP COLUMN accesses;
"""

_FOURTH_INDEX = """
CREATE INDEX agent_memory_entries_by_access ON agent_memory_entries (agent_id, access_seq)
    WHERE access_seq IS NOT NULL;
"""

# The number of the writing of accesses (`agents.accesses`) that an entry was last among, so that an
# index reads what was accessed since. Times would not do: earlier ones may be written later.
_FOURTH = f"""
ALTER TABLE agent_memory_entries ADD COLUMN access_seq INTEGER;
{_FOURTH_INDEX}"""

_FOURTH_DOWN = """
DROP INDEX agent_memory_entries_by_access;
ALTER TABLE agent_memory_entries DROP COLUMN access_seq;
"""


_INDEXES_OF_ENTRIES = f"""
CREATE INDEX agent_memory_entries_by_agent ON agent_memory_entries (agent_id);
CREATE INDEX agent_memory_entries_by_type ON agent_memory_entries (agent_id, memory_type);
{_THIRD_INDEXES}{_FOURTH_INDEX}"""

_OLD_KEY = "UNIQUE (agent_id, id)"
_COLUMNS_OF_ENTRIES = f"""{_FIRST_COLUMNS},
    idempotency_key  TEXT,
    key_fingerprint  BLOB,
    fingerprint      BLOB,
    access_seq       INTEGER"""


def _rebuilt(columns: str) -> str:
    """Return statements that move all entries into a table of these columns and constraints.

    SQLite cannot drop a table's constraint otherwise (its documentation of ALTER TABLE, section 7).
    Rows keep their numbers, so that vectors and links still refer to them, and are copied in one
    pass in their order; the sequence is copied too, so that no number of a deleted row comes again.
    Foreign keys must not be enforced meanwhile: dropping the table would delete what refers to it.
    """
    names = ", ".join(line.split()[0] for line in _COLUMNS_OF_ENTRIES.strip().splitlines())
    return f"""
CREATE TABLE agent_memory_entries_moved ({columns}
) STRICT;
INSERT INTO sqlite_sequence (name, seq)
    SELECT 'agent_memory_entries_moved', seq FROM sqlite_sequence
    WHERE name = 'agent_memory_entries';
INSERT INTO agent_memory_entries_moved ({names})
    SELECT {names} FROM agent_memory_entries ORDER BY row;
DROP TABLE agent_memory_entries;
ALTER TABLE agent_memory_entries_moved RENAME TO agent_memory_entries;
{_INDEXES_OF_ENTRIES}"""


# Ids are unique within agent and user: no id reveals whether another user has it. In the key
# the id stands before the user: then it finds an id of any user too, and new ids come last.
# A user's revision is raised by every change of its entries ('' is no user) and by nothing
# else. It is never taken back, not even with the last entry: kept answers are known by it.
_FIFTH = f"""{_rebuilt(_COLUMNS_OF_ENTRIES)}
CREATE UNIQUE INDEX agent_memory_entries_by_id
    ON agent_memory_entries (agent_id, id, ifnull(user_id, ''));
CREATE TABLE agent_memory_walls (
    agent_id TEXT NOT NULL,
    user_key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (agent_id, user_key)
) STRICT, WITHOUT ROWID;
ALTER TABLE agent_memory_changes ADD COLUMN user_id TEXT;
UPDATE agent_memory_changes AS change SET user_id = (
    SELECT user_id FROM agent_memory_entries AS entry WHERE entry.row = change.entry_row
);
"""

_FIFTH_DOWN = f"""
ALTER TABLE agent_memory_changes DROP COLUMN user_id;
DROP TABLE agent_memory_walls;
{_rebuilt(f"{_COLUMNS_OF_ENTRIES},{chr(10)}    {_OLD_KEY}")}"""

_FIFTH_OBSTACLE = """
SELECT 'users of one agent share the id ' || lower(hex(id)) FROM agent_memory_entries
GROUP BY agent_id, id HAVING count(*) > 1 LIMIT 1
"""


# Checksums of each row, and of all of an agent's rows; see `mnemic.store.sqlite.checksums`.
_SIXTH = """
ALTER TABLE agent_memory_entries ADD COLUMN row_sum INTEGER;
ALTER TABLE agent_memory_entries ADD COLUMN vector_sum INTEGER;
ALTER TABLE agent_memory_entries ADD COLUMN link_sum INTEGER;
ALTER TABLE agent_memory_agents ADD COLUMN summed_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent_memory_agents ADD COLUMN rows_sum INTEGER NOT NULL DEFAULT 0;
"""

_SIXTH_DOWN = """
ALTER TABLE agent_memory_agents DROP COLUMN rows_sum;
ALTER TABLE agent_memory_agents DROP COLUMN summed_rows;
ALTER TABLE agent_memory_entries DROP COLUMN link_sum;
ALTER TABLE agent_memory_entries DROP COLUMN vector_sum;
ALTER TABLE agent_memory_entries DROP COLUMN row_sum;
"""


# What each user's contents take, beside the user's revision: every change of an entry writes that
# row already. Users whose entries are older than the table have no row in it yet.
_EIGHTH = """
ALTER TABLE agent_memory_walls ADD COLUMN used_bytes INTEGER NOT NULL DEFAULT 0;
INSERT INTO agent_memory_walls (agent_id, user_key, revision, used_bytes)
    SELECT agent_id, ifnull(user_id, ''), 0, sum(octet_length(content))
    FROM agent_memory_entries WHERE true GROUP BY 1, 2
    ON CONFLICT (agent_id, user_key) DO UPDATE SET used_bytes = excluded.used_bytes;
"""

_EIGHTH_DOWN = """
DELETE FROM agent_memory_walls WHERE revision = 0;
ALTER TABLE agent_memory_walls DROP COLUMN used_bytes;
"""


# A number drawn at random with each commit distinguishes a history from every other one that has
# the same change numbers, such as that of a restored backup. Sensitive entries are reread by an
# index that begins with a snapshot, which never holds them.
_NINTH = """
ALTER TABLE agent_memory_changes ADD COLUMN nonce INTEGER;
UPDATE agent_memory_changes SET nonce = random() & 0x7fffffffffffffff;
CREATE INDEX agent_memory_entries_by_sensitive ON agent_memory_entries (agent_id)
    WHERE is_sensitive <> 0;
"""

_NINTH_DOWN = """
DROP INDEX agent_memory_entries_by_sensitive;
ALTER TABLE agent_memory_changes DROP COLUMN nonce;
"""


# What is stored of the keys under which agents' entries are sealed: a key cannot be derived again
# without its salt. Sealed entries have their sealed field in `content`, in Base64.
_TENTH = """
CREATE TABLE agent_memory_keys (
    agent_id    TEXT NOT NULL,
    number      INTEGER NOT NULL,
    key_id      BLOB NOT NULL,
    name        TEXT NOT NULL,
    salt        BLOB NOT NULL,
    check_value BLOB NOT NULL,
    PRIMARY KEY (agent_id, number),
    UNIQUE (agent_id, key_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_memory_entries_by_seal ON agent_memory_entries (agent_id)
    WHERE is_encrypted <> 0;
"""

_TENTH_DOWN = """
DROP INDEX agent_memory_entries_by_seal;
DROP TABLE agent_memory_keys;
"""

_TENTH_OBSTACLE = "SELECT 'memories are sealed' FROM agent_memory_keys LIMIT 1"


class Migration(NamedTuple):
    """Statements that lead from one schema version to the next, and back.

    Attributes:
        up: To the next version; run while foreign keys are not enforced.
        down: Back from it, in the same way.
        obstacle: A query whose first value names the obstacle to going back; no rows, no obstacle.
    """

    up: str
    down: str
    obstacle: str | None = None


def _added_column(name: str, definition: str) -> Migration:
    """Return the step that adds a column to entries, NULL in those that are there.

    NULL counts 0 in a row's checksum, so that earlier sums stay valid. On the way back the sums
    lose what the column added to them.
    """
    return Migration(
        f"ALTER TABLE agent_memory_entries ADD COLUMN {name} {definition};",
        f"""
UPDATE agent_memory_agents AS agent SET rows_sum = (rows_sum + (
    SELECT mnemic_sum_change_without('{name}', {name}, {SUM_COLUMNS})
    FROM agent_memory_entries AS entry
    WHERE entry.agent_id = agent.agent_id AND {name} IS NOT NULL
)) & {MASK};
UPDATE agent_memory_entries
    SET row_sum = (row_sum - mnemic_column_sum('{name}', {name})) & {MASK}
    WHERE {name} IS NOT NULL;
ALTER TABLE agent_memory_entries DROP COLUMN {name};
""",
    )


MIGRATIONS = (
    Migration(_FIRST, _FIRST_DOWN, _FIRST_OBSTACLE),
    Migration(_SECOND, _SECOND_DOWN),
    Migration(_THIRD, _THIRD_DOWN),
    Migration(_FOURTH, _FOURTH_DOWN),
    Migration(_FIFTH, _FIFTH_DOWN, _FIFTH_OBSTACLE),
    Migration(_SIXTH, _SIXTH_DOWN),
    _added_column("source", "TEXT"),
    Migration(_EIGHTH, _EIGHTH_DOWN),
    Migration(_NINTH, _NINTH_DOWN),
    Migration(_TENTH, _TENTH_DOWN, _TENTH_OBSTACLE),
    Migration(
        "ALTER TABLE agent_memory_agents ADD COLUMN time_zone TEXT;",
        "ALTER TABLE agent_memory_agents DROP COLUMN time_zone;",
    ),
)
"""Step n leads from schema version n to n + 1; the version is SQLite's `user_version`."""

DIGEST = "3d7ddc4e27dfa68fac1f20fe35137cb23ab432e0c3c3aaa21f61ae40d8690233"
"""Digest of the schema that they make: a test has it, and a file with another one is compared with
the schema itself."""


def register_functions(connection: apsw.Connection) -> None:
    """Register the functions of the migrations, which work on plain text.

    Earlier versions store nothing else.
    """
    for name, function, arguments in _FUNCTIONS:
        connection.create_scalar_function(name, function, arguments, deterministic=True)
    connection.create_aggregate_function("mnemic_sum_change_without", _SumChangeWithout, 8)


def _fingerprint_stored(content: Any) -> bytes:
    if not isinstance(content, str):
        raise StoreCorruptError(f"a content is no text; {DAMAGED}")
    return fingerprint(content)


_FUNCTIONS: tuple[tuple[str, Callable[..., Any], int], ...] = (
    ("mnemic_fingerprint", _fingerprint_stored, 1),
    ("mnemic_column_sum", column_sum, 2),
)


class _SumChangeWithout:
    """The change of an agent's sum when rows lose a column."""

    def __init__(self) -> None:
        self._change = 0

    def step(self, *arguments: Any) -> None:
        """Add a row: name and value of the column, then the row's `SUM_COLUMNS`."""
        column, value, row, row_sum, *others = arguments
        if row_sum is not None:
            without = (row_sum - column_sum(column, value)) & MASK
            _, before = placed_sums([(row, row_sum, *others)])
            _, after = placed_sums([(row, without, *others)])
            self._change = (self._change + after - before) & MASK

    def final(self) -> int:
        """Return the change."""
        return self._change
