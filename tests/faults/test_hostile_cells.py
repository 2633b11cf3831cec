"""Cells of every column replaced by values of every SQLite type: answers or typed errors."""

import contextlib
import io
import math
import os
import random
import shutil
import struct

import apsw
import numpy as np
import pytest

from mnemic.crypto import Encryption
from mnemic.errors import MnemicError
from mnemic.memory import Memory
from mnemic.model import MemoryQuery
from tests.support.embedders import WordEmbedder
from tests.support.keys import KEY

SEED = 20260502
CELLS = 500 + 50 * int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))
USER = "alice"

VALUES = (
    None,
    *(0, 1, -1, 2, 7, 99, 256, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 10**15),
    *(0.0, 0.5, 1.5, -0.5, 1e300, math.inf, -math.inf, 1e15),
    *("", "x", "5", "a\0b", "x" * 100_000, "é" * 50, " ", "agent", USER),
    *("[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, '{"a":[' * 40 + "1" + "]}" * 40),
    *('{"a": NaN}', '{"a": 1e999}', '{"a": ' + "9" * 400 + "}", '{"a": "\\u0000"}', "[1, 2]"),
    *('"text"', "5", "null", "{}", '["a", null]', '{"a": 1, "a": 2}', '["\\ud800"]', "[[[["),
    *(b"", b"x", b"\xff\xfe", b"short", bytes(16), bytes(15), bytes(256), b"\0" * 4096),
    *(np.full(64, np.nan, "<f4").tobytes(), np.full(64, np.inf, "<f4").tobytes()),
)
COLUMNS = (
    "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "
    "WHERE t.type = 'table' AND t.name LIKE 'agent_%' ORDER BY 1, 2"
)


def opened(path):
    return Memory(path, embedder=WordEmbedder(), encryption=Encryption(KEY))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "a.db"
    with opened(path) as memory:
        entries = memory.add_many(
            {
                "content": f"fact{at} tea höhe",
                "user_id": USER if at % 2 else None,
                "session_id": f"s{at % 3}",
                "position": at,
                "speaker": "Ann",
                "tags": ["t", f"t{at}"],
                "metadata": {"at": at, "deep": {"list": [at]}},
                "category": "c",
                "source": "notes.md",
                "importance": 0.9,
                "idempotency_key": f"k{at}",
                "sensitive": at > 5,  # and sealed
            }
            for at in range(8)
        )
        memory.link(entries[1].id, entries[3].id, user_id=USER)
        memory.add("fact newer tea", supersedes=entries[5].id, user_id=USER)
        memory.delete(entries[7].id, user_id=USER)
        memory.get(entries[1].id, user_id=USER)
    connection = apsw.Connection(str(path))
    # Who makes a hostile file can make the checksums that fit; here there are none to refuse it.
    connection.execute(
        "UPDATE agent_memory_entries SET row_sum = NULL, vector_sum = NULL, link_sum = NULL; "
        "UPDATE agent_memory_agents SET summed_rows = 0, rows_sum = 0"
    )
    columns = [
        (table, column)
        for table, column in connection.execute(COLUMNS).fetchall()
        if (table, column) != ("agent_memory_entries", "row")  # always a whole number
    ]
    connection.close()
    return path, columns, entries[1].id


def put(path, table, column, value, choose):
    """Write a value into one cell, of whatever type, past every constraint."""
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.pragma("synchronous", "OFF")  # no power is cut here
    connection.pragma("ignore_check_constraints", value=True)
    sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
    loose = sql.replace(" STRICT,", "").replace(" STRICT", "").replace("NOT NULL", "")
    for kind in ("TEXT", "INTEGER ", "REAL"):
        loose = loose.replace(kind, "INTEGER " if kind == "INTEGER " and "row  " in loose else "")
    loose = sql if "WITHOUT ROWID" in sql and value is None else loose
    change = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(change, (loose, table))
    connection.execute("PRAGMA writable_schema = RESET")
    key = "(agent_id, seq)" if table.endswith("changes") else None
    key = {
        "agent_memory_agents": "agent_id",
        "agent_memory_links": "(from_row, to_row, type)",
        "agent_memory_keys": "(agent_id, number)",
    }.get(table, key or "rowid")
    number = connection.execute(f"SELECT count(*) FROM {table}").get  # noqa: S608 - constants
    place = choose.randrange(number)
    with contextlib.suppress(apsw.ConstraintError, apsw.SQLError):
        connection.execute(
            f"UPDATE {table} SET {column} = ? WHERE {key} = "  # noqa: S608 - constants
            f"(SELECT {key.strip('()')} FROM {table} LIMIT 1 OFFSET ?)",
            (value, place),
        )
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(change, (sql, table))
    connection.execute("PRAGMA writable_schema = RESET")
    connection.close()


def verbs(memory, entry_id):
    """Return everything that reads, and most that writes."""
    user = {"user_id": USER}
    every = {"all_users": True}
    return {
        "get": lambda: memory.get(entry_id, **user),
        "search": lambda: memory.search("fact1 tea", **user),
        "search all": lambda: memory.search("fact1 tea", limit=100, **every),
        "keyword": lambda: memory.search("tea", search_type="keyword", **user),
        "filtered": lambda: memory.search("tea", filters={"metadata.at": {"gte": 0}}, **user),
        "list": lambda: memory.list(**user),
        "deleted": lambda: memory.list(include_deleted=True, **user),
        "list by": lambda: memory.list(filters={"tags": {"contains": "t"}}, **user),
        "list text": lambda: memory.list(filters={"content": {"contains": "TEA"}}, **user),
        "list meta": lambda: memory.list(filters={"metadata.at": {"gt": 1}}, **user),
        "count": lambda: memory.count(**user),
        "stats": memory.stats,
        "recent": lambda: memory.recent(**user),
        "important": lambda: memory.important(**user),
        "similar": lambda: memory.similar(entry_id, **user),
        "links": lambda: memory.links(entry_id, **user),
        "recall": lambda: memory.recall("tea", **user),
        "retrieve": lambda: memory.retrieve(MemoryQuery(query="fact1 tea"), **user),
        "context": lambda: memory.context("tea", max_tokens=200, **user),
        "contradictions": lambda: memory.contradictions("fact1 is not tea", **user),
        "export": lambda: memory.export(io.StringIO(), embeddings=True, unseal=True, **every),
        "touch": lambda: memory.touch([entry_id], **user),
        "update": lambda: memory.update(entry_id, content="fact1 changed tea", **user),
        "link": lambda: memory.link(entry_id, entry_id, **user),
        "add": lambda: memory.add("fact9 tea", on_duplicate="merge", **user),
        "key": lambda: memory.add("fact1 tea höhe", idempotency_key="k1", **user),
        "delete": lambda: memory.delete(entry_id, **user),
        "restore": lambda: memory.restore(entry_id, **user),
        "purge": memory.purge,
        "delete all": lambda: memory.delete_all(permanent=True, **user),
    }


def played(path, entry_id):
    """Call every verb; return the names of those that raised something untyped."""
    wrong = []
    try:
        memory = opened(path)
    except MnemicError:
        return []
    with memory:
        for name, verb in verbs(memory, entry_id).items():
            try:
                verb()
            except MnemicError:
                continue
            except Exception as error:  # noqa: BLE001 - which is the finding
                wrong.append(f"{name}: {error!r}")
    return wrong


def test_the_verbs_answer_where_nothing_is_damaged(tmp_path, whole):
    original, _, entry_id = whole
    path = tmp_path / "a.db"
    shutil.copy(original, path)
    with opened(path) as memory:
        for name, verb in verbs(memory, entry_id).items():
            if name != "link":  # of a memory to itself
                verb()


def test_a_cell_of_any_type_gives_an_answer_or_a_typed_error(tmp_path, whole):
    original, columns, entry_id = whole
    choose = random.Random(SEED)  # noqa: S311 - not a secret
    wrong, path = [], tmp_path / "a.db"
    for number in range(CELLS):
        shutil.copy(original, path)
        table, column = columns[number % len(columns)]
        value = choose.choice(VALUES)
        if isinstance(value, int) and choose.random() < 0.2:
            value = choose.getrandbits(64) - 2**63
        elif isinstance(value, float) and choose.random() < 0.5:
            value = struct.unpack("<d", choose.randbytes(8))[0]
        put(path, table, column, value, choose)
        shown = table, column, repr(value)[:60]
        wrong += [(*shown, problem) for problem in played(path, entry_id)]
        for left in path.parent.glob("a.db*"):
            left.unlink()
    assert not wrong, (len(wrong), wrong[:20])
