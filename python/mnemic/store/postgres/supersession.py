"""SQL statements by which an entry supersedes another, in transactions with the agent's lock."""

from typing import Final

from mnemic.model import LinkType, MemoryEntry, MemoryStatus, Scope
from mnemic.store.changes import Change
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.sql import ENTRIES, LINKS, visible, with_id
from mnemic.store.row_codec import RowCodec, next_version

INSERT_LINK: Final = (
    f"INSERT INTO {LINKS} (agent_id, from_row, to_row, type, strength, created_at) "
    "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (agent_id, from_row, to_row, type)"
)
PUT_LINK: Final = f"{INSERT_LINK} DO UPDATE SET strength = excluded.strength RETURNING created_at"


def supersede(
    session: Session, codec: RowCodec, entry: MemoryEntry, row: int, at: int
) -> Change | None:
    """Mark the entry that a stored entry supersedes, and link the two.

    Args:
        session: In the transaction that stores the entry.
        codec: Codec of the entries; one that it cannot read is superseded by none.
        entry: The stored entry.
        row: Its row.
        at: When it was stored, in microseconds since 1970 in UTC.

    Returns:
        The change; None if there is no such entry.
    """
    if entry.supersedes is None:
        return None
    where, values = with_id(Scope(entry.agent_id, entry.user_id), entry.supersedes)
    where = f"{where} AND {visible(codec)}"
    sql = f"SELECT row, status, updated_at, version FROM {ENTRIES} WHERE {where}"
    found = session.fetch(sql, values)
    if not found:
        return None
    superseded, status, updated_at, version = found[0]
    if status != MemoryStatus.SUPERSEDED:
        version = next_version(version)
    session.run(
        f"UPDATE {ENTRIES} SET status = %s, updated_at = %s, version = %s "
        "WHERE agent_id = %s AND row = %s",
        (int(MemoryStatus.SUPERSEDED), max(updated_at, at), version, entry.agent_id, superseded),
    )
    link = (entry.agent_id, row, superseded, int(LinkType.SUPERSEDES), 1.0, at)
    session.fetch(PUT_LINK, link)
    return Change(superseded, entry.supersedes.bytes, "supersede", entry.user_id)


def end_supersession(session: Session, agent_id: str, row: int, at: int) -> list[Change]:
    """Let the entries that superseded a row do so no more, before the row is stored again.

    They superseded its old content. Otherwise an import, or a later reader, would take the new one
    for superseded.

    Args:
        session: In the transaction that stores the row again.
        agent_id: The agent.
        row: The row.
        at: The time now, in microseconds since 1970 in UTC.
    """
    sql = (
        f"DELETE FROM {LINKS} WHERE agent_id = %s AND to_row = %s AND type = %s RETURNING from_row"
    )
    sources = session.fetch(sql, (agent_id, row, int(LinkType.SUPERSEDES)))
    sql = (
        f"SELECT row, id, user_id, updated_at, version FROM {ENTRIES} "
        "WHERE agent_id = %s AND row = ANY(%s) ORDER BY row"
    )
    changes = []
    for source, entry_id, user_id, updated_at, version in session.fetch(
        sql, (agent_id, [source for (source,) in sources])
    ):
        session.run(
            f"UPDATE {ENTRIES} SET supersedes = NULL, updated_at = %s, version = %s "
            "WHERE agent_id = %s AND row = %s",
            (max(updated_at, at), next_version(version), agent_id, source),
        )
        changes.append(Change(source, entry_id, "update", user_id))
    return changes
