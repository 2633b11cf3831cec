"""Random operations on a sealed memory and on a plain one give equal answers, but for the marks."""

import tempfile
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mnemic.crypto import Encryption
from mnemic.errors import MnemicError
from mnemic.model import MemoryEntry
from tests.support.clock import HOUR, NOON, Clock
from tests.support.doors import opened
from tests.support.entries import uid
from tests.support.keys import KEY
from tests.support.secret_forms import left_in
from tests.support.tiers import examples

pytestmark = pytest.mark.requirement("R117", "R126", "R081")

WORDS = ["zqsecrettea", "zqplainoslo", "zqplainharbour", "zqplainwinter"]
USERS = st.sampled_from([None, None, "ann"])
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
TAGS = st.lists(st.sampled_from(["zqsecretred", "zqplainblue"]), max_size=2)
KEYS = st.none() | st.sampled_from(["k1", "k2", "k3"])
FIELDS = st.fixed_dictionaries(
    {"user_id": USERS, "tags": TAGS},
    optional={
        "speaker": st.just("zqplainann"),
        "category": st.just("zqplaincat"),
        "importance": st.sampled_from([0.1, 0.9]),
        "metadata": st.just({"zqplainkind": "zqplainnote"}),
        "expires_at": st.sampled_from([NOON + HOUR, NOON + 9000 * HOUR]),
    },
)
FILTERS = st.sampled_from(
    [
        None,
        {"tags": {"contains": "zqsecretred"}},
        {"content": {"contains": "zqsecrettea"}},
        {"NOT": {"tags": {"contains": "zqsecretred"}}},
        {"OR": [{"speaker": "zqplainann"}, {"importance": {"gt": 0.5}}]},
        {"metadata.zqplainkind": "zqplainnote"},
        {"category": {"ne": "zqplaincat"}},
        {"status": {"in": ["active", "archived"]}},
    ]
)


def plain(value):
    """Return an answer with the marks of sealed memories taken off."""
    if isinstance(value, MemoryEntry):
        return msgspec.structs.replace(
            value, is_encrypted=False, sensitive=False, embedding=None, embedding_model=None
        )
    if isinstance(value, MnemicError):
        return type(value).__name__
    if isinstance(value, list | tuple) or type(value).__name__.endswith("Results"):
        return [plain(each) for each in value]
    if hasattr(value, "entry"):
        return plain(value.entry), value.score
    return value


class Twins(RuleBasedStateMachine):
    """A memory in plain text and one that seals; both have the same calls in the same order."""

    options = ("encrypt_all", True)
    hidden = ("zqsecret", "zqplain")
    duplicates = ("keep", "skip", "merge")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.place = Path(self.folder.name)
        self.number, self.clock = 0, Clock()
        for name in ("plain", "sealed"):
            (self.place / name).mkdir()
        self.memories = [self.open("plain"), self.open("sealed")]

    def open(self, name):
        made = Encryption(KEY, **dict([self.options])) if name == "sealed" else None
        return opened(self.place / name / "a.db", encryption=made, clock=self.clock)

    @initialize(texts=st.lists(TEXTS, min_size=3, max_size=6), fields=st.lists(FIELDS, min_size=6))
    def begin(self, texts, fields):
        """Store some memories at once, so that most calls find some."""
        made = [
            {"content": text, "id": self.new(), **given}
            for text, given in zip(texts, fields, strict=False)
        ]
        self.both(lambda memory: memory.add_many(made))

    def teardown(self):
        for memory in self.memories:
            assert memory.verify().ok
            memory.close()
        assert self.shown() == {}
        self.folder.cleanup()

    def shown(self):
        return left_in(self.place / "sealed", self.hidden)

    def both(self, call):
        """Have both called; check that they answer alike."""
        answers = []
        for memory in self.memories:
            try:
                answers.append(plain(call(memory)))
            except MnemicError as error:
                answers.append(plain(error))
        assert answers[0] == answers[1]
        return answers[0]

    def new(self):
        self.number += 1
        self.clock.now += timedelta(seconds=1)
        return uid(self.number)

    def known(self, data):
        return uid(data.draw(st.integers(1, self.number)))

    @rule(text=TEXTS, key=KEYS, fields=FIELDS, data=st.data())
    def add(self, text, key, fields, data):
        way = data.draw(st.sampled_from(self.duplicates))
        given = {"id": self.new(), "idempotency_key": key, "on_duplicate": way, **fields}
        self.both(lambda memory: memory.add(text, **given))

    @precondition(lambda self: self.number)
    @rule(data=st.data(), text=TEXTS, fields=FIELDS)
    def put(self, data, text, fields):
        given = {"id": self.known(data), "on_conflict": "replace", **fields}
        self.clock.now += timedelta(seconds=1)
        self.both(lambda memory: memory.add(text, **given))

    @precondition(lambda self: self.number)
    @rule(data=st.data(), user=USERS, text=st.none() | TEXTS, tags=TAGS, archived=st.booleans())
    def update(self, data, user, text, tags, archived):
        entry_id = self.known(data)
        self.clock.now += timedelta(seconds=1)
        change = {"content": text, "add_tags": tags, "status": "archived" if archived else "active"}
        self.both(lambda memory: memory.update(entry_id, user_id=user, **change))

    @rule(user=USERS, where=FILTERS.filter(bool), importance=st.sampled_from([0.2, 0.8]))
    def update_many(self, user, where, importance):
        self.clock.now += timedelta(seconds=1)
        self.both(
            lambda memory: memory.update_many(filters=where, importance=importance, user_id=user)
        )

    @precondition(lambda self: self.number)
    @rule(data=st.data(), user=USERS, permanent=st.booleans())
    def delete(self, data, user, permanent):
        entry_id = self.known(data)
        self.both(lambda memory: int(memory.delete(entry_id, user_id=user, permanent=permanent)))

    @rule(user=USERS, where=FILTERS.filter(bool), permanent=st.booleans())
    def delete_many(self, user, where, permanent):
        self.both(
            lambda memory: int(memory.delete_many(filters=where, user_id=user, permanent=permanent))
        )

    @precondition(lambda self: self.number)
    @rule(data=st.data(), user=USERS)
    def restore(self, data, user):
        entry_id = self.known(data)
        self.both(lambda memory: memory.restore(entry_id, user_id=user))

    @precondition(lambda self: self.number)
    @rule(data=st.data(), user=USERS)
    def link_and_read(self, data, user):
        ends = self.known(data), self.known(data)
        self.both(lambda memory: memory.link(*ends, "refines", user_id=user) and None)
        self.both(lambda memory: memory.get(ends[0], user_id=user))

    @rule(
        query=TEXTS,
        user=USERS,
        where=FILTERS,
        search_type=st.sampled_from(["hybrid", "semantic", "keyword"]),
        limit=st.integers(1, 9),
    )
    def search(self, query, user, where, search_type, limit):
        given = {"filters": where, "search_type": search_type, "limit": limit, "user_id": user}
        self.both(lambda memory: memory.search(query, **given))

    @rule(user=USERS, where=FILTERS, limit=st.integers(1, 9), everyone=st.booleans())
    def read(self, user, where, limit, everyone):
        scope = {"all_users": True} if everyone else {"user_id": user}
        self.both(lambda memory: list(memory.list(filters=where, limit=limit, **scope)))
        self.both(lambda memory: memory.count(filters=where, **scope))
        self.both(lambda memory: self.figures(memory, scope))
        self.both(lambda memory: repr(memory.distinct("speaker", filters=where, **scope)))

    def figures(self, memory, scope):
        stats = msgspec.structs.asdict(memory.stats(**scope))
        for name in ("sealed_entries", "storage_bytes_used", "average_embedding_time_ms"):
            del stats[name]
        stats["top_tags"] = [repr(tag) for tag in stats["top_tags"]]
        return {name: value for name, value in stats.items() if "percent" not in name}

    @rule()
    def wait(self):
        self.clock.now += HOUR

    @rule()
    def reopen(self):
        for at, name in enumerate(("plain", "sealed")):
            self.memories[at].close()
            self.memories[at] = self.open(name)

    @invariant()
    def nothing_is_shown_and_all_is_right(self):
        assert self.shown() == {}
        assert self.memories[1].stats(all_users=True).unreadable_entries == 0


class SensitiveTwins(Twins):
    """The same with some memories that are sensitive, and some that become so by a change.

    Of a sealed text and the same one in plain text neither is a duplicate of the other.
    """

    options = ("detect", lambda text: "zqsecret" in text)
    hidden = ("zqsecret",)
    duplicates = ("keep",)


PROFILE = examples(30, stateful_step_count=30, least=3)

TestTwins = Twins.TestCase
TestTwins.settings = PROFILE
TestSensitiveTwins = SensitiveTwins.TestCase
TestSensitiveTwins.settings = PROFILE
