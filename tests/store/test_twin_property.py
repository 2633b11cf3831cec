"""Random writes to a store and to dicts beside it: answers and all that is read are alike."""

from functools import partial
from itertools import permutations
from operator import itemgetter
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mnemic._core import RECORD_COLUMNS
from mnemic.errors import EmbeddingModelMismatchError, MnemicError, StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.model import (
    LinkType,
    MemoryEntry,
    MemoryEntryUpdate,
    MemorySortOrder,
    MemoryStatus,
    MemoryType,
    Scope,
)
from mnemic.model.distinct import distinct_query
from mnemic.model.filter import EVERY_ENTRY, Criteria, parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.model.results import PageCursor
from mnemic.model.rows import State
from mnemic.store import open_store
from mnemic.store import operations as ask
from mnemic.store.values import EntryLimits, Quotas, Selection, StoredLink, WriteResult
from tests.store.conftest import URLS, Places, encryption_of
from tests.store.contract import (
    EVERYTHING,
    exported,
    link_of,
    model_of,
    records_of,
    rows_of,
    vectors_in,
)
from tests.support.clock import HOUR, MICROSECOND, NOON
from tests.support.dict_store.store import DictStore
from tests.support.entries import numbered, uid
from tests.support.tiers import examples

KINDS = [kind for kind in URLS if kind not in {"dict", "file", "memory", "other"}]
"""Those that are compared less often than a file in memory."""
MARK = RECORD_COLUMNS.index("is_encrypted") - 1
NUMBERS = st.integers(1, 4)
IDS = NUMBERS.map(uid)
SOME_IDS = st.lists(IDS, max_size=3)
USERS = "alice", None
TEXTS = st.sampled_from(["tea", "TEA ", "coffee", "a long text"])
TIMES = st.sampled_from([NOON, NOON, NOON - MICROSECOND, NOON + HOUR])
ENDS = st.sampled_from([None, None, NOON, NOON + HOUR])
IMPORTANCES = st.sampled_from([0.2, 0.5, 0.9])
TAGS = st.lists(st.sampled_from(["s", "t"]), max_size=2)
METADATA = st.dictionaries(st.sampled_from("xy"), st.integers(1, 2), max_size=2)
KIND = st.sampled_from([LinkType.RELATED, LinkType.REFINES, LinkType.SUPERSEDES])
STATUSES = st.sampled_from([MemoryStatus.ACTIVE, *MemoryStatus])
SOME_VECTORS = st.sampled_from([
    *[("m", np.array(rows, np.float32)) for rows in ([[1, 0]], [[0, 1]], [[3, 4], [5, 6]])],
    ("other", np.array([[1, 2, 3]], np.float32)),
])  # fmt: skip
VECTORS = st.none() | SOME_VECTORS
MODELS = ("m", 2), ("other", 3), ("other", 2)
"""Of the last one no entry has vectors, and no agent makes it its own."""
SOME_TEXTS = st.dictionaries(NUMBERS, st.sampled_from([None, None, "tea"]), min_size=1, max_size=4)
SOME_MISSING = st.sampled_from([0, 1, 9])
SHADOW_VECTORS = st.sampled_from([
    ("m", np.array([[5, 6]], np.float32)),
    *[("other", np.array(rows, np.float32)) for rows in ([[1, 2, 3]], [[4, 5, 6], [7, 8, 9]])],
])  # fmt: skip
LIMITS = st.sampled_from([None, 8, 15, 30])
BUDGETS = st.sampled_from([None, 2, 3, 5])
EVICTING = st.builds(
    lambda agent, user, *counts: Quotas(
        agent and Quota(agent), user, EntryLimits(*counts, evicts=True)
    ),
    *(LIMITS, LIMITS, BUDGETS, BUDGETS),
)
REFUSING = [Quotas(Quota(30)), Quotas(user=15), Quotas(entry_limits=EntryLimits(6, 3))]
QUOTAS = st.one_of(*[st.just(Quotas())] * 3, st.sampled_from(REFUSING), EVICTING)
FILTERS = (
    *({"content": {"contains": "t"}}, {"tags": ["s"]}),
    *({"status": {"ne": "active"}}, {"project_id": "p"}, {"OR": []}),
)
MORE_FILTERS = (  # those that SQL decides, those that it narrows, and those that the core decides
    *({"importance": {"lte": 0.5, "gte": 0.3}}, {"NOT": {"status": "archived"}}),
    *({"OR": [{"status": "superseded"}, {"content": "tea"}]}, {"metadata.x": {"lt": 2}}),
    *({"role": None, "expires_at": {"exists": False}}, {"created_at": {"lt": NOON}}),
    *({"NOT": {"content": "tea"}}, {"AND": [{"status": {"exists": True}}, {"version": 1}]}),
)
LISTED = [EVERYTHING, *map(parse_filter, FILTERS + MORE_FILTERS)]
VALUES = [
    distinct_query(field, None, *page)
    for page in ((1, 1), (9, 0))
    for field in ("role", "tags", ("metadata", "x"))
]
CRITERIA = st.one_of(
    st.builds(Criteria, SOME_IDS, st.none()),
    st.builds(Criteria, st.none() | SOME_IDS, st.sampled_from([*map(parse_filter, FILTERS)])),
    st.builds(Criteria, SOME_IDS, st.just(parse_filter(FILTERS[0]))),
    st.just(EVERY_ENTRY),
)
WANTED = IDS.map(lambda one: Criteria([one])) | CRITERIA
LINKS = st.builds(
    lambda ends, *rest: link_of(*ends, *rest),
    st.sampled_from(list(permutations(range(1, 5), 2))),
    KIND,
    st.sampled_from([0.25, 0.75]),
    TIMES,
)


def scopes(agent):
    """Return the scopes of an agent."""
    owned = [Scope(agent, user) for user in (*USERS, "bob")]
    return [*owned, Scope(agent, all_users=True), Scope(agent, "alice", "p")]


def new_entry(agent, number, vectors, key, supersedes, **fields):
    if supersedes == number:
        supersedes = None  # nothing supersedes itself
    older = supersedes and uid(supersedes)
    entry = numbered(number, agent_id=agent, supersedes=older, **fields)
    if vectors is None:
        return NewEntry(entry, key)
    model, rows = vectors
    return NewEntry(entry.with_embedding(rows[0], model), key, tuple(rows[1:]))


def changing(update, now):
    return partial(MemoryEntryUpdate.applied_to, update, now=now)


def embedding(agent, contents, vectors):
    """Return a call that gives entries vectors by their numbers."""

    def call(store):
        rows = rows_of(store, agent)
        given = {rows.get(number, 999): text for number, text in contents.items()}
        return store.write(ask.AddEmbeddings(agent, vectors[0], given, [vectors[1]] * len(given)))

    return call


def is_own(store, agent, model):
    """Return whether an agent's own vectors are of a model."""
    own = model_of(store, agent)
    return own is not None and own[0] == model


class Shadowing(NamedTuple):
    """A call that stores another model's vectors of entries: of a text, or of what they have."""

    agent: str
    contents: dict
    vectors: tuple

    def __call__(self, store):
        model, own = self.vectors
        if is_own(store, self.agent, model):
            return None
        everything = exported(store, Scope(self.agent, all_users=True))
        found = {one.entry.id.int: one for one in everything}
        entries = {
            found[number].row: replace(found[number].entry, content=text)
            if text
            else found[number].entry
            for number, text in self.contents.items()
            if number in found
        }
        added = ask.AddShadowVectors(self.agent, model, entries, dict.fromkeys(entries, own))
        return store.write(added)


class Switching(NamedTuple):
    """A call that makes another model the agent's own, which some entries may lack."""

    agent: str
    model: tuple
    skips: bool
    most: int

    def __call__(self, store):
        if is_own(store, self.agent, self.model[0]):
            return None
        everything = exported(store, Scope(self.agent, all_users=True)) if self.skips else []
        skipped = [one.row for one in everything]
        return store.write(ask.SwitchModel(self.agent, self.model, skipped, self.most))


def touching(agent, numbers, now):
    """Return a call that takes note of accesses and writes them."""

    def call(store):
        rows = rows_of(store, agent)
        store.touch(agent, [rows[number] for number in numbers if number in rows], now)
        return store.write_accesses()

    return call


def some_scope(agent):
    return st.sampled_from([*scopes(agent), *scopes(agent)[:2] * 2])


def growing(agent, numbers, quotas):
    """Return the writes of an agent that quotas are for."""
    own, scope = st.just(agent), some_scope(agent)
    new = st.builds(
        new_entry,
        *(own, numbers, VECTORS, st.sampled_from([None, None, "k", "l"])),
        content=TEXTS,
        user_id=st.sampled_from(USERS),
        project_id=st.sampled_from([None, "p"]),
        role=st.sampled_from([None, "user", "assistant"]),
        created_at=TIMES,
        expires_at=ENDS,
        forgotten_at=st.sampled_from([None, None, None, NOON]),
        importance=IMPORTANCES,
        tags=TAGS,
        metadata=METADATA,
        status=STATUSES,
        supersedes=st.none() | numbers,
        sensitive=st.booleans(),
        access_count=st.sampled_from([0, 0, 1, 2]),
        last_accessed_at=st.sampled_from([None, NOON, NOON + HOUR]),
    )
    changes = st.builds(
        MemoryEntryUpdate,
        content=st.none() | TEXTS,
        importance=st.none() | IMPORTANCES,
        type=st.sampled_from([None, MemoryType.EVENT]),
        status=st.sampled_from([None, MemoryStatus.ARCHIVED, MemoryStatus.ACTIVE]),
        add_tags=TAGS,
        metadata=METADATA,
    )
    change = {
        "change": st.builds(changing, changes, TIMES),
        "now": TIMES,
        "embedded": VECTORS,
        "quotas": quotas,
        "include_archived": st.booleans(),
    }
    add = st.builds(
        ask.Add,
        *(own, st.lists(new, min_size=1, max_size=3), TIMES, quotas),
        st.sampled_from(["raise", "replace", "replace", "skip"]),
        st.sampled_from(["keep", "skip", "merge"]),
        st.booleans(),
        st.sampled_from([None, "Asia/Tokyo", "Europe/Oslo"]),
        st.none() | st.none() | st.none() | st.builds(Selection, scope, CRITERIA),
    )
    update = st.builds(ask.Update, scope, WANTED, replace_vectors=st.booleans(), **change)
    return [*[add] * 2, *[update] * 2]


def writes(agent):
    """Return writes of an agent: records, and calls of what takes rows."""
    own, scope = st.just(agent), some_scope(agent)
    stored_links = st.lists(st.builds(StoredLink, LINKS, st.sampled_from(USERS)), max_size=3)
    return st.one_of(
        *growing(agent, NUMBERS, QUOTAS),
        st.builds(ask.SetExpiry, scope, WANTED, ENDS, TIMES),
        *[st.builds(ask.SoftDelete, scope, WANTED, TIMES)] * 2,
        *[st.builds(ask.Restore, scope, WANTED, TIMES, TIMES)] * 3,
        *[st.builds(ask.Delete, scope, WANTED)] * 2,
        st.builds(ask.Purge, scope, TIMES, st.none() | TIMES),
        st.builds(ask.Link, scope, LINKS, TIMES),
        st.builds(ask.Unlink, scope, IDS, IDS, st.none() | KIND),
        st.builds(ask.AddLinks, st.just(Scope(agent, all_users=True)), stored_links),
        st.builds(embedding, own, st.dictionaries(NUMBERS, TEXTS, max_size=2), SOME_VECTORS),
        st.builds(touching, own, st.lists(NUMBERS), TIMES),
        *[st.builds(Shadowing, own, SOME_TEXTS, SHADOW_VECTORS)] * 2,
        st.builds(ask.DropShadowVectors, own, st.sampled_from([None, "m", "m", "other"])),
        st.builds(Switching, own, st.sampled_from(MODELS[:2]), st.booleans(), SOME_MISSING),
    )


OF_SHADOWS = Shadowing, Switching, ask.DropShadowVectors
"""What a store that seals is not asked: it need not keep vectors of two models."""


def without_bytes(write):
    """Return a write without quotas of bytes: sealed contents are longer."""
    if not hasattr(write, "quotas"):
        return write
    return replace(write, quotas=Quotas(entry_limits=write.quotas.entry_limits))


def marked(store, write):
    """Return a write of entries that are marked if the store seals them."""
    if not isinstance(write, ask.Add):
        return write
    entries = [one._replace(entry=store.marked(one.entry)) for one in write.entries]
    return replace(write, entries=entries)


def unmarked(found):
    """Return what a store gave, without the marks of sealed entries."""
    if isinstance(found, MemoryEntry):
        return replace(found, is_encrypted=False)
    if isinstance(found, dict):
        return {name: unmarked(one) for name, one in found.items()}
    if type(found) in {list, tuple}:
        return type(found)(map(unmarked, found))
    return found


def outcome(store, write):
    """Return what a write returns, or the kind of the error that refuses it.

    Of a quota and a model that both refuse it, none is promised to be found first.
    """
    try:
        done = store.write(write) if isinstance(write, ask.Write) else write(store)
        return None if done is None else done.result(60)
    except (StorageQuotaExceededError, EmbeddingModelMismatchError):
        return MnemicError
    except MnemicError as error:
        return type(error)


class Heard(set):
    """Agents and users of whose changes a store tells."""

    def receive(self, changed_users):
        self.update(changed_users)


class Pair:
    """A store beside dicts, whose rows are names: the store may number its own otherwise."""

    def __init__(self, store, *, seals):
        self.store, self.twin, self.names, self.seals = store, DictStore(), {}, seals
        self.heard, self.expected = Heard(), Heard()
        store.watch(self.heard.receive)
        self.twin.watch(self.expected.receive)

    def write(self, write):
        self.heard.clear()
        self.expected.clear()
        mine, wanted = outcome(self.store, marked(self.store, write)), outcome(self.twin, write)
        if isinstance(mine, WriteResult) and isinstance(wanted, WriteResult):
            self.names.update(zip(mine.rows, wanted.rows, strict=True))
            self.check_batch(write.agent_id, mine.batch)
            mine, wanted = shown_result(mine, self.names.get), shown_result(wanted)
        if isinstance(write, ask.Purge) and isinstance(mine, list):  # in an order of each store's
            mine, wanted = sorted(mine), sorted(wanted)
        assert unmarked(mine) == wanted, write
        assert self.heard >= self.expected, write  # a refused write may be told of too

    def check_batch(self, agent, batch):
        """Check that the change that an addition returns is what a reader would be given."""
        if batch is not None:
            wanted = ask.RowsSince(agent, model_of(self.store, agent), batch.since)
            read, given = (shown(one, int) for one in (self.store.read(wanted), batch))
            assert given[:4] == read[:4]

    def compare(self, agent, seqs):
        mine = seen(self.store, agent, seqs, self.names.get, seals=self.seals)
        assert unmarked(mine) == seen(self.twin, agent, seqs, seals=self.seals)


def shown_result(result, name=int):
    replaced = {at: (one[0].without_embedding(), one[1]) for at, one in result.replaced.items()}
    told = result._replace(
        rows=list(map(name, result.rows)),
        changed={name(row) for row in result.changed if row not in result.rows},
        batch=result.batch and shown(result.batch, name),
        replaced=replaced,
        removed=sorted(result.removed),
    )
    return tuple(told)


def shown(batch, name):
    """Return what a batch says as values that can be compared."""
    records = [
        (name(row), *fields[:MARK], *fields[MARK + 1 :]) for row, *fields in records_of(batch)
    ]
    links = sorted((name(one), name(other), *rest) for one, other, *rest in batch.links)
    removed, linked = (sorted(map(name, rows)) for rows in (batch.removed, batch.linked))
    vectors = sorted(
        zip(map(name, batch.embedded), vectors_in(batch), strict=True), key=itemgetter(0)
    )
    return batch.since, batch.seq, sorted(records), vectors, removed, linked, links


def seen(store, agent, seqs, name=int, *, seals=False):
    """Return what all reads say of an agent, with the names of rows."""
    everyone, model = Scope(agent, all_users=True), model_of(store, agent)
    stored = exported(store, everyone)
    rows = [one.row for one in stored]
    owned = [(user, uid(number)) for user in USERS for number in range(1, 5)]
    changed = [store.read(ask.ChangedRows(agent, seq)) for seq in seqs]
    users = [
        user
        for now in (NOON, NOON + HOUR)
        for page in ((9, 0), (1, 0), (2, 1))
        for user in store.read(ask.Users(agent, now, *page))
    ]
    writings = store.position(agent).accesses
    vectors = store.read(ask.VectorsById(agent, owned, model[0] if model else "m"))
    return {
        "facts": store.read(ask.AgentFacts(agent)),
        "position": store.position(agent),
        "users": [user[:2] for user in map(msgspec.structs.astuple, users)] if seals else users,
        "stored": [(name(row), entry.without_embedding(), key) for row, entry, key, *_ in stored],
        "pages of stored": [
            [(name(one.row), one.entry.without_embedding(), embedded(one)) for one in page]
            for after in (0, *rows[:2])
            for page in (
                exported(store, everyone, row=after, model="m", limit=3),
                exported(store, everyone, row=after, model="other", everything=False),
            )
        ],
        "vectors": {
            owner: (*found[:2], None if found.vectors is None else found.vectors.tolist())
            for owner, found in vectors.items()
        },
        "own vectors": [
            store.read(ask.VectorsOfRow(agent, row, own)).tolist()
            for row in rows
            for own in ("m", "other")
        ],
        "to embed": [
            (
                store.read(ask.CountToEmbed(agent, one)),
                list(map(name, store.read(ask.RowsToEmbed(agent, one, 0, 9)))),
                list(map(name, store.read(ask.RowsToEmbed(agent, one, rows[0] if rows else 0, 1)))),
            )
            for one in MODELS
            if not is_own(store, agent, one[0])  # whose vectors are no shadows
        ],
        "accessed": [
            shown_accesses(store.read(ask.AccessesSince(agent, since)), name)
            for since in (0, max(0, writings - 1), writings, writings + 1)
        ],
        "links": [
            shown_links(store, ask.Links(everyone, now, include_deleted=is_everything), name)
            for now, is_everything in ((NOON, True), (NOON, False), (NOON + HOUR, False))
        ],
        "changed": [rows and sorted(map(name, rows)) for rows in changed],
        "batches": [
            shown(store.read(wanted), name)
            for seq in (None, *seqs)
            for state in State
            for wanted in (
                ask.RowsSince(agent, model, seq, state=state),
                ask.RowsSince(agent, model, seq, state=state, with_sensitive=not seals),
            )
        ],
        "listed": [
            (
                store.read(ask.EntryPage(everyone, where, NOON, 2, offset=1)),
                store.read(ask.EntryPage(everyone, where, NOON, 9, order)),
                store.read(ask.EntryCount(everyone, NOON, where)),
                store.read(ask.DistinctValues(everyone, where, values, NOON)),
            )
            for where, order, values in asked_lists(sum(seqs) + len(stored))
        ],
        "scopes": [seen_by(store, scope, rows, name, seals=seals) for scope in scopes(agent)],
    }


def asked_lists(number):
    """Return four filters, each with an order and a field; others of another number."""
    orders = list(MemorySortOrder)
    return [
        (
            LISTED[(number + 5 * at) % len(LISTED)],
            orders[(number + at) % len(orders)],
            VALUES[(number // 3 + at) % len(VALUES)],
        )
        for at in range(4)
    ]


def embedded(stored):
    """Return the vectors of what is stored."""
    vectors = (stored.entry.embedding, *stored.more)
    return [None if vector is None else vector.tolist() for vector in vectors]


def seen_by(store, scope, rows, name, *, seals):
    """Return what all reads say of a scope."""
    figures = store.read(ask.ScopeStatistics(scope, NOON))
    by_row = [
        store.read(wanted)
        for now in (NOON, NOON + HOUR)
        for wanted in (
            ask.EntriesByRow(scope, rows, now),
            ask.EntriesByRow(scope, rows, now, include_deleted=True),
            ask.Successors(scope, rows, now),
        )
    ]
    place = PageCursor(NOON, uid(1), scope.user_id)
    return [
        store.read(ask.PositionAndRevision(scope)),
        replace(figures, sealed_entries=0, storage_bytes_used=0) if seals else figures,
        [{name(row): entry for row, entry in found.items()} for found in by_row],
        *(store.read(ask.EntryPage(scope, EVERYTHING, now, 9)) for now in (NOON, NOON + HOUR)),
        store.read(ask.EntryPage(scope, EVERYTHING, NOON, 9, include_deleted=True)),
        store.read(ask.EntryPage(scope, EVERYTHING, NOON, 2, after=place)),
        store.read(ask.EntryCount(scope, NOON)),
        *([] if scope.all_users else seen_of_ids(store, scope, rows, name)),
    ]


def shown_links(store, wanted, name):
    """Return the links that a read finds, with the names of rows."""
    found = store.read(wanted)
    return [(name(one.from_row), name(one.to_row), one.user_id, one.link) for one in found]


def shown_accesses(accessed, name):
    """Return what was accessed, by row."""
    return accessed.position, sorted((name(row), *rest) for row, *rest in accessed.rows)


def seen_of_ids(store, scope, rows, name):
    """Return what reads by an id say, which are of one user: the ids of all may be ambiguous."""
    found = store.read(ask.EntriesById(scope, list(map(uid, range(1, 5))), NOON))
    links = [("in", None), ("out", None), ("both", [LinkType.REFINES])]
    return [
        {entry_id: (name(one.row), one.entry) for entry_id, one in found.items()},
        shown_links(store, ask.Links(scope, NOON, rows[0] if rows else 1), name),
        *(
            shown_links(store, ask.Links(scope, NOON, uid(number), way, kinds), name)
            for number, (way, kinds) in enumerate(links, start=1)
        ),
    ]


VECTOR = "m", np.array([[7, 8]], np.float32)
ARCHIVED = {"status": MemoryStatus.ARCHIVED}
FIRST = ask.Add(
    "a",
    [
        new_entry("a", 1, VECTOR, None, None, user_id="alice", tags=["s"]),
        new_entry("a", 2, None, None, None, user_id="alice", **ARCHIVED),
        new_entry("a", 3, VECTOR, None, None, user_id="alice", project_id="p", expires_at=NOON),
        new_entry("a", 1, VECTOR, None, None, forgotten_at=NOON),
        new_entry("a", 2, None, "k", None, expires_at=NOON + HOUR),
        new_entry("a", 3, VECTOR, None, 2),
    ],
    NOON,
)
"""What an agent has at first: an entry of each state."""
OWNED_WRITES = st.one_of(
    *[st.tuples(st.just("a"), writes("a"))] * 7, st.tuples(st.just("b"), writes("b"))
)


def check(kind, some, every=3):
    """Have a store and dicts carry out writes; read all after every so many, and compare it."""
    encryption = encryption_of(kind)
    with TemporaryDirectory() as folder:
        places = Places(kind, folder)
        store = open_store(places.url(), encryption=encryption)
        try:
            compare_writes(store, some, every, seals=encryption is not None)
        finally:
            store.close()
            places.drop()


def compare_writes(store, some, every, *, seals):
    pair, seqs = Pair(store, seals=seals), {"a": [0], "b": [0]}
    asked = [one for one in some if not (seals and isinstance(one[1], OF_SHADOWS))]
    for at, (agent, write) in enumerate([("a", FIRST), *asked]):
        pair.write(without_bytes(write) if seals else write)
        if at % every == 0:
            pair.compare(agent, seqs[agent][-2:])
            seqs[agent].append(store.position(agent).seq)
    for agent, known in seqs.items():
        pair.compare(agent, known)
    report = store.verify()
    assert (report.problems, report.without_sums) == ((), 0)


SOME = given(some=st.lists(OWNED_WRITES, min_size=8, max_size=30))
pytestmark = pytest.mark.requirement(
    *("C109", "C135", "C158", "C160", "C161", "C201", "C214", "R005")
)


@examples(200, least=60, suppress_health_check=[HealthCheck.too_slow])
@SOME
def test_a_file_answers_as_dicts_do(some):
    check("memory", some)


@pytest.mark.parametrize("kind", KINDS)
@examples(60, suppress_health_check=[HealthCheck.too_slow])
@SOME
def test_every_other_store_answers_as_dicts_do(kind, some):
    check(kind, some)


EVICTING_WRITES = st.one_of(
    *growing("a", st.integers(1, 9), EVICTING),
    st.builds(ask.SoftDelete, some_scope("a"), WANTED, TIMES),
    *[st.builds(touching, st.just("a"), st.lists(st.integers(1, 9)), TIMES)] * 2,
)


@pytest.mark.parametrize("kind", ["memory", "postgres"])
@examples(60, least=20, suppress_health_check=[HealthCheck.too_slow])
@given(some=st.lists(st.tuples(st.just("a"), EVICTING_WRITES), min_size=8, max_size=20))
def test_what_makes_room_is_what_makes_it_among_dicts(kind, some):
    check(kind, some, every=99)
