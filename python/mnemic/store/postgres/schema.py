"""The tables in PostgreSQL, and the steps that lead to them and back."""

from typing import Final, NamedTuple

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

_SECOND_DOWN: Final = """
DROP TABLE mnemic.agent_memory_embeddings;
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
    Migration("20260204_002", _SECOND, _SECOND_DOWN),
    Migration("20260204_003", _THIRD, _THIRD_DOWN, _THIRD_OBSTACLE),
    Migration(
        "20260204_004",
        'ALTER TABLE mnemic.agent_memory_agents ADD COLUMN time_zone text COLLATE "C";',
        "ALTER TABLE mnemic.agent_memory_agents DROP COLUMN time_zone;",
    ),
)
"""The versions of the tables, in their order. The extension stays on the way back: others may use
it."""
