"""With another codec the store gives the same answers, and its file holds no plain text."""

from datetime import timedelta

import numpy as np
import pytest

from mnemic._core import matches
from mnemic.errors import StorageQuotaExceededError, StoreCorruptError
from mnemic.licensing import Quota
from mnemic.model.filter import parse_filter
from mnemic.store.operations import AddEmbeddings, Delete, ScopeStatistics
from mnemic.store.row_codec import COLUMN_NAMES, RowCodec
from mnemic.store.sqlite.store import SqliteStore
from tests.store.contract import (
    AGENT,
    ALICE,
    EVERYONE,
    MODEL,
    added,
    changed,
    contents_of,
    embedded,
    exported,
    matched,
    one,
    paged,
    rows_of,
    rows_since,
    used_bytes,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, uid

SEALED = [COLUMN_NAMES.index(name) for name in ("content", "tags", "metadata")]
_PLAIN = RowCodec()


def sealed(columns, first=0, *, seal=lambda text: text.encode().hex()):
    values = list(columns)
    for at in SEALED:
        if values[first + at] is not None:
            values[first + at] = seal(values[first + at])
    return tuple(values)


def unsealed(columns, first=0):
    return sealed(columns, first, seal=lambda text: bytes.fromhex(text).decode())


class HexCodec(RowCodec):
    """Hides content, tags and metadata from whoever reads the file without a second look."""

    content_size_sql = "octet_length(content) / 2"

    def rows(self, entries):
        return [
            row._replace(columns=sealed(row.columns), more=(row.more[0][::-1], *row.more[1:]))
            for row in _PLAIN.rows(entries)
        ]

    def lookup(self, entry):
        return [digest[::-1] for digest in _PLAIN.lookup(entry)]

    def decode(self, columns):
        return _PLAIN.decode(unsealed(columns))

    def decode_tags(self, stored):
        return () if stored is None else _PLAIN.decode_tags(bytes.fromhex(stored).decode())

    def records(self, rows):
        return [unsealed(row, 1) for row in rows]

    def stored_content_size(self, stored):
        return len(stored) // 2 if isinstance(stored, str) else 0


@pytest.fixture
def stores(tmp_path):
    opened = [
        SqliteStore(tmp_path / "hex.db", codec=HexCodec()),
        SqliteStore(tmp_path / "plain.db", codec=RowCodec()),
    ]
    yield opened
    for store in opened:
        store.close()


def filled(store):
    """Store, change, merge and delete entries with secrets in all that a codec may seal."""
    secret = {"tags": ["zqtag", "tea"], "metadata": {"zqkey": "zqvalue"}}
    added(store, "a", [embedded(1, content="zqsecret tea", **secret), numbered(2, content="rain")])
    added(store, "a", [numbered(3, content="zqsecret alice", user_id="alice", **secret)])
    changed(store, 2, content="zqsecret rain", add_tags=["tea"], metadata={"a": ["zqitem"]})
    added(store, "a", [numbered(4, content="ZQSECRET  tea", tags=["new"])], on_duplicate="merge")
    added(store, "a", [numbered(5, content="zqsecret gone")], keys=["zqname"])
    store.write(Delete(AGENT, uid(5))).result()
    store.write(
        AddEmbeddings("a", "m", {rows_of(store)[2]: "zqsecret rain"}, [np.ones((1, 2), np.float32)])
    ).result()


FILTERS = [
    None,
    {"content": {"contains": "TEA"}},
    {"content": "zqsecret rain"},
    {"tags": {"any": ["zqtag", "new"]}},
    {"metadata.zqkey": "zqvalue"},
    {"NOT": {"metadata.a": {"contains": "zqitem"}}},
]


def answers(store):
    stats = store.read(ScopeStatistics(EVERYONE, now=NOON))
    batch = rows_since(store, None)
    return {
        "entries": [one(store, scope, at) for scope in (AGENT, ALICE) for at in range(1, 6)],
        "pages": [paged(store, where=where) for where in FILTERS],
        "matching": [matched(store, where=where) for where in FILTERS],
        "exported": [(each.entry, each.key) for each in exported(store, model="m")],
        "stats": (stats.storage_bytes_used, stats.top_tags, stats.active_entries),
        "used": used_bytes(store, "a"),
        "contents": contents_of(store, "a", list(rows_of(store).values())),
        "records": [record[: 1 + len(COLUMN_NAMES)] for record in batch.records],
        "vectors": batch.vectors.tolist(),
        "changes": [len(rows_since(store, at).records) for at in range(4)],
        "matches": list(matches(parse_filter(FILTERS[3]), batch.records)),
        "problems": store.verify().problems,
    }


def test_another_codec_gives_the_same_answers(stores):
    for store in stores:
        filled(store)
    sealed_answers, plain_answers = map(answers, stores)
    assert sealed_answers == plain_answers
    assert plain_answers["stats"][0] == plain_answers["used"] > 0
    assert plain_answers["entries"][0].tags == ("zqtag", "tea", "new")
    assert set(plain_answers["pages"][3]) == {1, 3}
    assert plain_answers["problems"] == ()


def test_the_file_of_another_codec_holds_no_plain_text(stores, tmp_path):
    for store in stores:
        filled(store)
        store.close()
    files = {
        kind: b"".join(path.read_bytes() for path in tmp_path.glob(f"{kind}.db*"))
        for kind in ("hex", "plain")
    }
    for secret in (b"zqsecret", b"zqtag", b"zqkey", b"zqvalue", b"zqitem"):
        assert secret in files["plain"]
        assert secret not in files["hex"]
    assert b"zqsecret".hex().encode() in files["hex"]


def test_an_added_batch_reaches_the_index_in_plain_text(stores):
    for store in stores:
        batch = added(store, "a", [embedded(1, content="zqsecret", tags=["zqtag"])]).batch
        assert batch.records == [
            (1, *_PLAIN.encode(numbered(1, content="zqsecret", tags=["zqtag"])))
        ]


def test_a_quota_counts_what_the_codec_says(stores):
    for store in stores:
        quota = Quota(10)
        added(store, "a", [numbered(1, content="12345")], quota=quota)
        with pytest.raises(StorageQuotaExceededError):
            added(store, "a", [numbered(2, content="123456")], quota=quota)
        changed(store, 1, content="1234567", quota=quota)
        assert used_bytes(store, "a") == 7
        store.write(Delete(AGENT, uid(1))).result()
        assert used_bytes(store, "a") == 0
        added(store, "a", [numbered(3, content="1234567890")], quota=quota)


def test_a_file_of_another_codec_is_damaged_to_this_one(tmp_path):
    store = SqliteStore(tmp_path / "a.db", codec=RowCodec())
    added(store, "a", [numbered(1, content="plain")])
    store.close()
    store = SqliteStore(tmp_path / "a.db", codec=HexCodec())
    try:
        for read in (
            lambda: one(store, AGENT, 1),
            lambda: contents_of(store, "a", [1]),
            lambda: rows_since(store, None, model=MODEL),
        ):
            with pytest.raises(StoreCorruptError, match="cannot be read"):
                read()
    finally:
        store.close()


def test_dates_of_updates_do_not_depend_on_the_codec(stores):
    later = NOON + timedelta(hours=1)
    for store in stores:
        added(store, "a", [numbered(1)])
        assert changed(store, 1, content="new", now=later).updated_at == later
        assert one(store, AGENT, 1, now=later).updated_at == later
