"""Row-level security: a second isolation of agents, by policies of the database.

Each transaction names the agents that it is about, and sees no rows of others, whatever its
statements say. A session that names none gets an error instead of an empty answer.
"""

from collections.abc import Sequence
from typing import Final

from psycopg import errors, sql

from mnemic.store.postgres.session import Connection, Session

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


def is_on(session: Session) -> bool:
    """Return whether the policies are in force."""
    return bool(session.value(_IS_ON))


def bypasses(session: Session) -> bool:
    """Return whether policies do not hold for the role, as for a superuser."""
    return bool(session.value(_IS_EXEMPT))


def turn_on(session: Session) -> None:
    """Put every table with an agent, and every partition, under the policy; also for the owner."""
    for (table,) in session.fetch(_TABLES):
        session.script(_POLICY.format(table=table))


def naming(connection: Connection, agents: Sequence[str] | None) -> str:
    """Return the statement by which a transaction names its agents; None is every agent."""
    value = _EVERY_AGENT if agents is None else array_of(agents)
    literal = sql.Literal(value).as_string(connection)
    return f"SELECT set_config('{SETTING}', {literal}, true)"


def array_of(agents: Sequence[str]) -> str:
    """Return the text of an array of PostgreSQL."""
    quoted = (agent.replace("\\", "\\\\").replace('"', '\\"') for agent in agents)
    return "{" + ",".join(f'"{agent}"' for agent in quoted) + "}"
