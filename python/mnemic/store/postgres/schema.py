"""The tables in PostgreSQL: the steps that lead to them and back, and policies of their rows.

Migrations go up on opening and down on request, in one process at a time. Row-level security is a
second isolation of agents, by policies of the database: each transaction names the agents that it
is about, and sees no rows of others, whatever its statements say. A session that names none gets an
error instead of an empty answer.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from psycopg import errors, sql

from mnemic.errors import SchemaVersionError, StoreFileError
from mnemic.store.postgres.session import Connection, Session

PARTITIONS: Final = 8
"""Hash partitions of the large tables, by agent."""


class Migration(NamedTuple):
    """Statements that lead from one version of the tables to the next, and back.

    Attributes:
        number: Names the version that it leads to.
        up: To the next version.
        down: Back from it.
        obstacle: A query whose row says why there is no way back; none if it returns no row.
    """

    number: str
    up: str
    down: str
    obstacle: str | None = None


def _partitions(table: str) -> str:
    return "\n".join(
        f"CREATE TABLE mnemic.{table}_{part} PARTITION OF mnemic.{table} "
        f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {part});"
        for part in range(PARTITIONS)
    )


# Texts are ordered by their bytes, which in UTF-8 is the order of code points, as in the core.
# Times are microseconds since 1970 in UTC, as in every store. `json` keeps a text as it came, where
# `jsonb` would reorder its keys. Rows are numbered by a sequence: no number comes again.
_FIRST: Final = f"""
CREATE SEQUENCE mnemic.agent_memory_rows AS bigint;

CREATE TABLE mnemic.agent_memory_agents (
    agent_id   text COLLATE "C" PRIMARY KEY,
    seq        bigint NOT NULL,
    pruned     bigint NOT NULL DEFAULT 0,
    accesses   bigint NOT NULL DEFAULT 0,
    used_bytes bigint NOT NULL DEFAULT 0,
    model      text COLLATE "C",
    dimensions integer
);

CREATE TABLE mnemic.agent_memory_walls (
    agent_id   text COLLATE "C" NOT NULL,
    user_key   text COLLATE "C" NOT NULL,
    revision   bigint NOT NULL,
    used_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_id, user_key)
);

CREATE TABLE mnemic.agent_memory_entries (
    row              bigint NOT NULL,
    agent_id         text COLLATE "C" NOT NULL,
    id               uuid NOT NULL,
    user_id          text COLLATE "C",
    project_id       text COLLATE "C",
    session_id       text COLLATE "C",
    memory_type      smallint NOT NULL,
    status           smallint NOT NULL,
    importance       double precision NOT NULL DEFAULT 0.5,
    created_at       bigint NOT NULL,
    updated_at       bigint NOT NULL,
    last_accessed_at bigint,
    access_count     bigint NOT NULL DEFAULT 0,
    forgotten_at     bigint,
    expires_at       bigint,
    role             text COLLATE "C",
    speaker          text COLLATE "C",
    message_id       text COLLATE "C",
    position         bigint,
    category         text COLLATE "C",
    scope            text COLLATE "C",
    version          bigint NOT NULL,
    supersedes       uuid,
    is_sensitive     boolean NOT NULL DEFAULT false,
    is_encrypted     boolean NOT NULL DEFAULT false,
    type_name        text COLLATE "C" NOT NULL,
    source           text COLLATE "C",
    tags             json,
    metadata         json,
    content          text COLLATE "C" NOT NULL,
    idempotency_key  text COLLATE "C",
    key_fingerprint  bytea,
    fingerprint      bytea,
    access_seq       bigint,
    PRIMARY KEY (agent_id, row),
    CONSTRAINT agent_memory_entries_by_id UNIQUE NULLS NOT DISTINCT (agent_id, id, user_id)
) PARTITION BY HASH (agent_id);
{_partitions("agent_memory_entries")}
CREATE INDEX agent_memory_entries_by_user ON mnemic.agent_memory_entries
    (agent_id, user_id, created_at DESC, id);
CREATE INDEX agent_memory_entries_by_type ON mnemic.agent_memory_entries (agent_id, memory_type);
CREATE INDEX agent_memory_entries_by_forgotten
    ON mnemic.agent_memory_entries (agent_id, forgotten_at) WHERE forgotten_at IS NOT NULL;
CREATE INDEX agent_memory_entries_by_expiry
    ON mnemic.agent_memory_entries (agent_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX agent_memory_entries_by_fingerprint
    ON mnemic.agent_memory_entries (agent_id, fingerprint);
CREATE INDEX agent_memory_entries_by_access
    ON mnemic.agent_memory_entries (agent_id, access_seq) WHERE access_seq IS NOT NULL;
CREATE UNIQUE INDEX agent_memory_entries_by_key
    ON mnemic.agent_memory_entries (agent_id, idempotency_key, (coalesce(user_id, '')))
    WHERE idempotency_key IS NOT NULL;

CREATE TABLE mnemic.agent_memory_links (
    agent_id   text COLLATE "C" NOT NULL,
    from_row   bigint NOT NULL,
    to_row     bigint NOT NULL,
    type       smallint NOT NULL,
    strength   double precision NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (agent_id, from_row, to_row, type),
    FOREIGN KEY (agent_id, from_row) REFERENCES mnemic.agent_memory_entries ON DELETE CASCADE,
    FOREIGN KEY (agent_id, to_row) REFERENCES mnemic.agent_memory_entries ON DELETE CASCADE
) PARTITION BY HASH (agent_id);
{_partitions("agent_memory_links")}
CREATE INDEX agent_memory_links_by_target ON mnemic.agent_memory_links (agent_id, to_row);

CREATE TABLE mnemic.agent_memory_changes (
    agent_id  text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    entry_row bigint NOT NULL,
    entry_id  uuid NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    user_id   text COLLATE "C",
    PRIMARY KEY (agent_id, seq)
) PARTITION BY HASH (agent_id);
{_partitions("agent_memory_changes")}
"""

_FIRST_DOWN: Final = """
DROP TABLE mnemic.agent_memory_changes;
DROP TABLE mnemic.agent_memory_links;
DROP TABLE mnemic.agent_memory_entries;
DROP TABLE mnemic.agent_memory_walls;
DROP TABLE mnemic.agent_memory_agents;
DROP SEQUENCE mnemic.agent_memory_rows;
"""

_FIRST_OBSTACLE: Final = "SELECT 'there are memories' FROM mnemic.agent_memory_entries LIMIT 1"

# `is_companion` marks shadow vectors; see `mnemic.store.contract.Reembedding`.
_SECOND: Final = f"""
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE mnemic.agent_memory_embeddings (
    agent_id     text COLLATE "C" NOT NULL,
    entry_row    bigint NOT NULL,
    model        text COLLATE "C" NOT NULL,
    is_companion boolean NOT NULL DEFAULT false,
    part         integer NOT NULL,
    created_at   bigint NOT NULL,
    embedding    vector NOT NULL,
    PRIMARY KEY (agent_id, entry_row, model, is_companion, part),
    FOREIGN KEY (agent_id, entry_row) REFERENCES mnemic.agent_memory_entries ON DELETE CASCADE
) PARTITION BY HASH (agent_id);
{_partitions("agent_memory_embeddings")}
"""

# What is stored of the keys under which agents' entries are sealed: a key cannot be derived again
# without its salt. Sealed entries have their sealed field in `content`, in Base64; pgvector has no
# sealed vectors.
_THIRD: Final = f"""
CREATE TABLE mnemic.agent_memory_keys (
    agent_id    text COLLATE "C" NOT NULL,
    number      bigint NOT NULL,
    key_id      bytea NOT NULL,
    name        text COLLATE "C" NOT NULL,
    salt        bytea NOT NULL,
    check_value bytea NOT NULL,
    PRIMARY KEY (agent_id, number),
    UNIQUE (agent_id, key_id)
);

CREATE TABLE mnemic.agent_memory_sealed_vectors (
    agent_id   text COLLATE "C" NOT NULL,
    entry_row  bigint NOT NULL,
    model      text COLLATE "C" NOT NULL,
    part       integer NOT NULL,
    created_at bigint NOT NULL,
    sealed     bytea NOT NULL,
    PRIMARY KEY (agent_id, entry_row, model, part),
    FOREIGN KEY (agent_id, entry_row) REFERENCES mnemic.agent_memory_entries ON DELETE CASCADE
) PARTITION BY HASH (agent_id);
{_partitions("agent_memory_sealed_vectors")}
CREATE INDEX agent_memory_entries_by_seal
    ON mnemic.agent_memory_entries (agent_id, row) WHERE is_encrypted;
"""

_THIRD_DOWN: Final = """
DROP INDEX mnemic.agent_memory_entries_by_seal;
DROP TABLE mnemic.agent_memory_sealed_vectors;
DROP TABLE mnemic.agent_memory_keys;
"""

_THIRD_OBSTACLE: Final = "SELECT 'memories are sealed' FROM mnemic.agent_memory_keys LIMIT 1"

MIGRATIONS: Final = (
    Migration("20260204_001", _FIRST, _FIRST_DOWN, _FIRST_OBSTACLE),
    Migration("20260204_002", _SECOND, "DROP TABLE mnemic.agent_memory_embeddings;"),
    Migration("20260204_003", _THIRD, _THIRD_DOWN, _THIRD_OBSTACLE),
    Migration(
        "20260204_004",
        'ALTER TABLE mnemic.agent_memory_agents ADD COLUMN time_zone text COLLATE "C";',
        "ALTER TABLE mnemic.agent_memory_agents DROP COLUMN time_zone;",
    ),
)
"""The versions of the tables, in their order. The extension stays on the way back: others may use
it."""

NEWEST: Final = len(MIGRATIONS)
"""The version that this mnemic knows last."""

_LOCK: Final = 0x6D6E656D6963
"""Number of the advisory lock: "mnemic"."""

_VERSIONS: Final = """
CREATE SCHEMA IF NOT EXISTS mnemic;
CREATE TABLE IF NOT EXISTS mnemic.schema_migrations (
    number     text COLLATE "C" PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


def version(session: Session) -> int:
    """Return the number of migrations that the database has.

    Raises:
        SchemaVersionError: If it has migrations that this version of mnemic does not know.
    """
    if session.value("SELECT to_regclass('mnemic.schema_migrations') IS NULL"):
        return 0
    found = [name for (name,) in session.fetch("SELECT number FROM mnemic.schema_migrations")]
    known = [migration.number for migration in MIGRATIONS]
    if sorted(found) != known[: len(found)]:
        unknown = sorted(set(found) - set(known)) or sorted(set(known) - set(found))
        raise SchemaVersionError(
            f"the tables in schema mnemic are of another version ({', '.join(unknown)}); this "
            f"mnemic knows {known[-1]}; open them with the version that wrote them, or a newer one"
        )
    return len(found)


def _lock_migrations(session: Session) -> None:
    """Let no other process change tables until the transaction ends."""
    session.run("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))


def migrate(session: Session, target: int = NEWEST) -> None:
    """Bring the tables to a version, each step in a transaction, or a savepoint, of its own.

    Args:
        session: A connection.
        target: Number of migrations that the database is to have.

    Raises:
        StoreFileError: If the database is not in UTF-8.
        SchemaVersionError: If it has migrations that this version of mnemic does not know.
    """
    _check_encoding(session)
    # Look first: a role that may write the tables need not have the right to change them.
    while version(session) != target:
        connection = session.connection
        with connection.transaction():
            session.script(f"SET LOCAL search_path = {connection.pgvector}")  # for its types
            _lock_migrations(session)
            session.script(_VERSIONS)
            _step(session, version(session), target)


def _check_encoding(session: Session) -> None:
    encoding = session.connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreFileError(
            f"the database is in {encoding}, which cannot hold every text; make another one: "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )


def _step(session: Session, present: int, target: int) -> None:
    """Take one step towards a version, unless another process has taken it."""
    if present < target:
        step = MIGRATIONS[present]
        session.script(step.up)
        session.run("INSERT INTO mnemic.schema_migrations (number) VALUES (%s)", (step.number,))
    elif present > target:
        step = MIGRATIONS[present - 1]
        _check_way_back(session, step)
        session.script(step.down)
        session.run("DELETE FROM mnemic.schema_migrations WHERE number = %s", (step.number,))


def _check_way_back(session: Session, step: Migration) -> None:
    """Raise SchemaVersionError if a step cannot be undone without a loss."""
    if step.obstacle is None:
        return
    session.fetch(naming(session.connection, None))  # where policies hide every agent's rows
    for (reason,) in session.fetch(step.obstacle):
        raise SchemaVersionError(f"the tables cannot go back to an older version: {reason}")


def check_readable(session: Session) -> None:
    """Check that the tables can be read as they are.

    Raises:
        StoreFileError: If the database is not in UTF-8.
        SchemaVersionError: If they are not there, or of another version.
    """
    _check_encoding(session)
    present = version(session)
    if present != NEWEST:
        raise SchemaVersionError(
            f"the database has {present} of {NEWEST} migrations of mnemic; open it once "
            "for writing to bring its tables up to date"
        )


NAMES_NO_AGENTS: Final = (errors.UndefinedObject, errors.InvalidTextRepresentation)
"""Errors of a policy in a transaction that names no agents."""

SETTING: Final = "mnemic.agents"
"""Names the agents of a transaction, in an array."""
_EVERY_AGENT: Final = "*"
"""The setting that names every agent; one of this name is `{*}`."""

_TABLES: Final = """
SELECT c.oid::regclass::text FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'agent_id'
WHERE c.relnamespace = 'mnemic'::regnamespace AND c.relkind IN ('r', 'p')
AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1
"""
"""Tables, partitions included, whose rows are visible to their owner without a policy."""

_IS_ON: Final = """
SELECT relrowsecurity AND relforcerowsecurity FROM pg_catalog.pg_class
WHERE oid = 'mnemic.agent_memory_entries'::regclass
"""
_IS_EXEMPT: Final = (
    "SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user"
)

# In a SELECT of its own the setting is read once for a statement, not once for each row.
_POLICY: Final = f"""
ALTER TABLE {{table}} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS mnemic_agents ON {{table}};
CREATE POLICY mnemic_agents ON {{table}} USING (
    (SELECT current_setting('{SETTING}') = '{_EVERY_AGENT}')
    OR agent_id = ANY((
        SELECT CASE current_setting('{SETTING}') WHEN '{_EVERY_AGENT}' THEN '{{{{}}}}'
        ELSE current_setting('{SETTING}') END
    )::text[])
);
"""


def has_row_security(session: Session) -> bool:
    """Return whether the policies of rows are in force."""
    return bool(session.value(_IS_ON))


def bypasses_row_security(session: Session) -> bool:
    """Return whether policies do not hold for the role, as for a superuser."""
    return bool(session.value(_IS_EXEMPT))


def turn_on_row_security(session: Session) -> None:
    """Put every table with an agent, and every partition, under the policy; also for the owner."""
    with session.connection.transaction():
        _lock_migrations(session)
        for (table,) in session.fetch(_TABLES):
            session.script(_POLICY.format(table=table))


def naming(connection: Connection, agents: Sequence[str] | None) -> str:
    """Return the statement by which a transaction names its agents; None is every agent."""
    value = _EVERY_AGENT if agents is None else _array_of(agents)
    literal = sql.Literal(value).as_string(connection)
    return f"SELECT set_config('{SETTING}', {literal}, true)"


def _array_of(agents: Sequence[str]) -> str:
    """Return the text of an array of PostgreSQL."""
    quoted = (agent.replace("\\", "\\\\").replace('"', '\\"') for agent in agents)
    return "{" + ",".join(f'"{agent}"' for agent in quoted) + "}"
