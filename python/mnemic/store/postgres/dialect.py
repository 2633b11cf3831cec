"""What PostgreSQL writes in statements that SQLite writes differently."""

from collections.abc import Collection
from typing import Final

from mnemic.store.new_rows import encoded
from mnemic.store.postgres.rows import (
    StoredRows,
    adding,
    advance,
    fetch_numbered,
    has_vectors,
    insert_entries,
    overwrite_vectors,
    write_changes,
)
from mnemic.store.postgres.stored import (
    CHANGED,
    HAS_NO_VECTOR,
    ROW,
    USER_KEY,
    bound,
    entries_of,
    reading_stored,
    records_of,
)
from mnemic.store.postgres.vectors import (
    IS_OWN_ZERO,
    delete_shadow_vectors,
    delete_vectors,
    insert_vectors,
    lacks_shadow_vectors,
    opened_vectors,
    own_vectors,
    readable_vectors,
    seal_vectors,
    shadow_vectors,
    switch_vectors,
    under_other_keys,
    write_sealed,
    write_shadow_vectors,
)
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.lists import Rows, set_column
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import OwnedId


def _owned_ids(wanted: Collection[OwnedId]) -> Condition:
    users, ids = [user_id or "" for user_id, _ in wanted], [each for _, each in wanted]
    rows = "unnest(CAST(? AS text[]), CAST(? AS uuid[])) AS wanted (wanted_user, wanted_id)"
    return f"{rows} JOIN", [users, ids]


def _mark_deleted(on: SqlSession, _agent_id: str, which: Rows, time: int) -> list[Columns]:
    return set_column(on, which, "forgotten_at", time)


POSTGRES: Final = Dialect(
    row=ROW,
    keyed_row=f"{ROW}, fingerprint, idempotency_key, key_fingerprint",
    by_row="",
    by_index=lambda _name: "",
    user_key=USER_KEY,
    is_own_zero=IS_OWN_ZERO,
    sealed_content="content",
    entries_of_wall=(
        "FROM mnemic.agent_memory_entries AS entry WHERE entry.agent_id = wall.agent_id "
        "AND coalesce(entry.user_id, '') = wall.user_key"
    ),
    insert_link=(
        "INSERT INTO mnemic.agent_memory_links "
        "(agent_id, from_row, to_row, type, strength, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (agent_id, from_row, to_row, type)"
    ),
    update="UPDATE",
    sum_columns=(),
    refuses_ids=False,  # an error would end the transaction
    damaged=CHANGED,
    is_true=str,
    among="{} = ANY(?)".format,
    among_ids="{} = ANY(?)".format,
    among_rows=lambda rows, column: (f"{column} = ANY(?)", [[int(row) for row in rows]]),
    owned=lambda table, agent_id: (f"{table}.agent_id = ?", [agent_id]),
    owned_ids=_owned_ids,
    lacks_vector=lambda agent_id, model: (HAS_NO_VECTOR, [agent_id, model, agent_id, model]),
    under_other_keys=under_other_keys,
    in_order="SELECT {} FROM mnemic.agent_memory_entries WHERE {} ORDER BY {}".format,
    bound=bound,
    integers=list,
    reading_stored=reading_stored,
    entries=entries_of,
    records=records_of,
    check_links=lambda _session, _rows: None,  # the server has checksums of its pages
    vectors=own_vectors,
    readable_vectors=readable_vectors,
    new_rows=encoded,
    adding=adding,
    fetch_numbered=fetch_numbered,
    insert_entries=insert_entries,
    # The server has checksums of its pages.
    sums_of=lambda _session, _agent_id, overwrites: [()] * len(overwrites),
    mark_deleted=_mark_deleted,
    overwrite_vectors=overwrite_vectors,
    insert_vectors=insert_vectors,
    delete_vectors=delete_vectors,
    delete_shadow_vectors=delete_shadow_vectors,
    seal_vectors=seal_vectors,
    opened_vectors=opened_vectors,
    write_sealed=write_sealed,
    advance=advance,
    write_changes=write_changes,
    has_vectors=has_vectors,
    row_reader=StoredRows,
    lacks_shadow_vectors=lacks_shadow_vectors,
    shadow_vectors=shadow_vectors,
    write_shadow_vectors=write_shadow_vectors,
    switch_vectors=switch_vectors,
)
