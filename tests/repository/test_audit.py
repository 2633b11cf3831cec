"""`audit`: what of the memories may need attention."""

from datetime import timedelta

import numpy as np
import pytest

from mnemic import Encryption, Memory, MemoryEntry
from mnemic.errors import DeadlineExceededError, InvalidArgumentError
from mnemic.model import MemoryAudit
from mnemic.policy import RedactionPattern
from mnemic.repository import audit
from tests.support.clock import NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.keys import KEY as MASTER_KEY
from tests.support.places import STORES, Places

KEY = "sk-ant-" + "a1B2c3D4e5F6g7H8i9J0" * 2
CARD = "4111 1111 1111 1111"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def memory(clock):
    with Memory(":memory:", embedder=WordEmbedder(), clock=clock) as opened:
        yield opened


def own(**options):
    """Return a memory whose vectors are given."""
    return Memory(":memory:", embedder=None, **options)


def test_an_empty_memory_has_nothing_to_report(memory):
    assert memory.audit(ids=True) == MemoryAudit()


def test_counts_alone_are_returned_unless_ids_are_requested(memory):
    memory.add_many(["likes tea", "Likes tea."])
    assert memory.audit().exact_duplicates == 1
    assert memory.audit().findings == {}
    assert len(memory.audit(ids=True).findings["exact_duplicates"]) == 1


def test_an_exact_duplicate_names_the_earliest_memory_with_its_text(memory):
    first, second, third = memory.add_many(["Likes tea", "likes  TEA!", "likes tea"])
    found = memory.audit(ids=True)
    assert found.ids("exact_duplicates") == (second.id, third.id)
    assert {each.repeats for each in found.findings["exact_duplicates"]} == {first.id}
    assert found.near_duplicates == 0


@pytest.mark.requirement("C215")
def test_a_raised_digit_makes_another_text(memory):
    memory.add_many(["We have 10⁵ users", "We have 105 users", "We have 10₅ users"])
    assert memory.audit().exact_duplicates == 0


def test_memories_without_a_text_repeat_nothing(memory):
    memory.add("", metadata={"a": 1})
    memory.add("", metadata={"a": 1})
    assert memory.audit().exact_duplicates == 0


def test_a_floor_of_none_looks_for_no_near_duplicates():
    with own() as memory:
        memory.add_many(["a", "b"], embeddings=[[1.0, 0.0], [1.0, 0.0]])
        assert memory.audit().near_duplicates == 1
        assert memory.audit(near=None).near_duplicates == 0


def twin(vectors, near):
    """Return by position the earlier one that each vector repeats, by comparing all pairs."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    originals, repeated = [], {}
    for at, vector in enumerate(unit):
        best = max(((float(unit[one] @ vector), -one) for one in originals), default=(-1.0, 0))
        if best[0] >= near:
            repeated[at] = -best[1]
        else:
            originals.append(at)
    return repeated


@pytest.mark.parametrize("block", [1, 2, 7, 256])
def test_near_duplicates_are_those_of_comparing_every_pair(monkeypatch, block):
    monkeypatch.setattr(audit, "BLOCK", block)
    draw = np.random.default_rng(block)
    centres = draw.standard_normal((12, 8))
    vectors = centres[draw.integers(0, 12, 90)] + 0.15 * draw.standard_normal((90, 8))
    vectors = vectors.astype(np.float32)
    with own() as memory:
        added = memory.add_many([f"text {at}" for at in range(90)], embeddings=vectors)
        found = memory.audit(ids=True).findings["near_duplicates"]
        repeated = twin(vectors.astype(np.float64), 0.95)
        assert 20 < len(repeated) < 85
        assert [(each.id, each.repeats) for each in found] == [
            (added[at].id, added[original].id) for at, original in repeated.items()
        ]


def test_memories_in_chunks_are_compared_with_those_of_as_many_chunks():
    with own() as memory:
        one, other = [1.0, 0.0], [0.0, 1.0]
        memory.add(MemoryEntry("long", embedding=[one, other]))
        memory.add(MemoryEntry("turned around", embedding=[other, one]))
        memory.add(MemoryEntry("its first part", embedding=one))
        same = memory.add(MemoryEntry("long too", embedding=[one, other]))
        assert memory.audit(ids=True).ids("near_duplicates") == (same.id,)


def test_memories_without_a_vector_are_compared_by_their_texts():
    with own() as memory:
        text = "the harbour pilot prefers to board the northern ferries before six in the morning"
        first = memory.add(text)
        near = memory.add(f"{text}s")
        memory.add("another text")
        found = memory.audit(ids=True, near=0.9)
        (finding,) = found.findings["near_duplicates"]
        assert (finding.id, finding.repeats, finding.similarity) == (near.id, first.id, None)


def test_memories_of_different_users_are_never_compared(memory):
    for user in ("ann", "bob", None):
        memory.add("likes green tea", user_id=user)
    found = memory.audit(all_users=True, near=0.0)
    assert (found.memories, found.exact_duplicates, found.near_duplicates) == (3, 0, 0)


def test_memories_without_vectors_of_different_users_are_never_compared():
    with own() as memory:
        memory.add("likes green tea", user_id="ann")
        memory.add("likes green teas", user_id="bob")
        assert memory.audit(all_users=True, near=0.1).near_duplicates == 0


def test_a_scope_audits_its_own_memories_alone(memory):
    for user in ("ann", "bob"):
        memory.add_many(["tea", "tea"], user_id=user)
    memory.scoped(project_id="p").add_many(["tea", "tea"], user_id="ann")
    assert memory.audit().stored == 0
    assert memory.audit(user_id="ann").exact_duplicates == 3
    assert memory.scoped(project_id="p").audit(user_id="ann").exact_duplicates == 1
    assert memory.scoped(user_id="bob").audit().exact_duplicates == 1
    found = memory.audit(all_users=True, ids=True).findings["exact_duplicates"]
    assert [each.user_id for each in found] == ["ann", "bob", "ann", "ann"]


@pytest.mark.parametrize("kind", STORES)
def test_both_stores_give_the_same_audit(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "BATCH", 2)
    with Places(kind, tmp_path) as places:
        clock = Clock()
        memory = places.opened(embedder=None, clock=clock)
        old = memory.add(MemoryEntry("lives in Oslo", embedding=[1.0, 0.0]), user_id="ann")
        memory.add(
            MemoryEntry("lives in Rome", embedding=[0.0, 1.0], supersedes=old.id), user_id="ann"
        )
        memory.add(MemoryEntry("LIVES in Rome", embedding=[0.0, 1.0]), user_id="ann")
        memory.add(MemoryEntry("is living in Rome", embedding=[0.1, 1.0]), user_id="ann")
        memory.add(MemoryEntry("buys milk", expires_at=NOON + timedelta(hours=1)), user_id="bob")
        memory.add(f"key {KEY}", user_id="bob")
        memory.delete(memory.add(f"card {CARD}", user_id="bob").id, user_id="bob")
        clock.now += timedelta(days=100)
        found = memory.audit(all_users=True, ids=True)
        assert found == MemoryAudit(
            memories=4,
            stored=7,
            exact_duplicates=1,
            near_duplicates=1,
            stale=4,
            never_accessed=4,
            unembedded=1,
            superseded=1,
            expired=1,
            secrets=2,
            secrets_by_pattern={"api_key": 1, "card": 1},
            findings=found.findings,
        )
        assert [each.user_id for each in found.findings["stale"]] == ["ann"] * 3 + ["bob"]


def test_stale_memories_were_neither_changed_nor_accessed(memory, clock):
    old, changed, accessed = memory.add_many(["old", "changed", "accessed"])
    clock.now += timedelta(days=10)
    memory.update(changed.id, importance=0.9)
    memory.touch([accessed.id])
    memory.add("made now")
    clock.now += timedelta(days=1)
    assert memory.audit().stale == 0
    assert memory.audit(ids=True, stale_after=timedelta(days=5)).ids("stale") == (old.id,)


def test_never_accessed_memories_were_not_read(memory):
    read, unread = memory.add_many(["read", "unread"])
    memory.get(read.id)
    found = memory.audit(ids=True)
    assert found.ids("never_accessed") == (unread.id,)
    assert memory.audit().never_accessed == 1, "an audit is no access"


def test_memories_that_are_to_have_no_vector_are_not_unembedded(memory):
    memory.add({"content": "found by its words alone", "embed": ()})
    assert memory.audit().unembedded == 0


def test_sealed_memories_are_counted_and_not_scanned(tmp_path):
    path, options = tmp_path / "a.db", {"embedder": None}
    with Memory(path, encryption=Encryption(MASTER_KEY), **options) as memory:
        entry = memory.add("Pays with 4111 1111 1111 1111", user_id="ann", sensitive=True)
        found = memory.audit(user_id="ann", ids=True)
    assert found.ids("sealed") == (entry.id,)
    assert (found.memories, found.sealed, found.secrets) == (1, 1, 0)
    with Memory(path, **options) as memory:
        found = memory.audit(user_id="ann", ids=True)
    assert (found.memories, found.sealed, found.ids("sealed")) == (0, 1, ())


def test_inactive_memories_count_by_their_state_alone(memory, clock):
    old = memory.add("lives in Oslo")
    memory.add("lives in Rome", supersedes=old.id)
    gone = memory.add(MemoryEntry("buys milk", expires_at=NOON + timedelta(hours=1)))
    memory.delete(memory.add("lives in Rome").id)
    clock.now += timedelta(hours=2)
    found = memory.audit(ids=True)
    assert (found.memories, found.stored) == (1, 4)
    assert found.ids("superseded") == (old.id,)
    assert found.ids("expired") == (gone.id,)
    assert (found.exact_duplicates, found.near_duplicates, found.never_accessed) == (0, 0, 1)


def test_oversized_contents_have_more_bytes_than_allowed(memory):
    memory.add("four")
    five = memory.add("fünf")
    assert memory.audit(max_bytes=4, ids=True).ids("oversized") == (five.id,)
    assert memory.audit().oversized == 0


def test_contents_are_oversized_if_the_embedder_takes_them_in_chunks():
    embedder = WordEmbedder()
    embedder.max_tokens = 32
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("short")
        long = memory.add("a long text. " * 40)
        assert memory.audit(ids=True).ids("oversized") == (long.id,)


def test_secrets_are_found_in_every_text_of_a_memory(memory):
    found_in = [
        memory.add(f"the key is {KEY}"),
        memory.add("tagged", tags=[KEY]),
        memory.add("noted", metadata={"inner": [{"deep": KEY}]}),
        memory.add("named", metadata={KEY: 1}),
        memory.add(MemoryEntry("from", source=KEY)),
        memory.add("numbered", metadata={"card": 4111111111111111}),
    ]
    memory.add("pays by card")
    found = memory.audit(ids=True)
    assert found.ids("secrets") == tuple(each.id for each in found_in)
    assert found.secrets_by_pattern == {"api_key": 5, "card": 1}
    assert found.findings["secrets"][0].patterns == ("api_key",)


def test_a_secret_is_in_no_form_of_an_audit(memory):
    memory.add(f"{KEY} and {CARD}", tags=[KEY])
    found = memory.audit(ids=True)
    assert found.findings["secrets"][0].patterns == ("api_key", "card")
    for form in (repr(found), found.to_json(), str(found)):
        assert KEY not in form
        assert CARD not in form


def test_secrets_of_deleted_memories_count_until_they_are_gone(memory):
    entry = memory.add(KEY)
    memory.delete(entry.id)
    assert memory.audit(ids=True).ids("secrets") == (entry.id,)
    memory.delete(entry.id, permanent=True)
    assert memory.audit().secrets == 0


def test_patterns_may_be_chosen(memory):
    memory.add("write to ann@example.org, ticket T-1234")
    patterns = ["email", RedactionPattern("ticket", r"T-\d{4}"), r"T-\d+"]
    found = memory.audit(ids=True, patterns=patterns).findings["secrets"]
    assert found[0].patterns == ("email", "ticket", r"T-\d+")
    assert memory.audit(patterns=()).secrets == 0
    assert memory.audit().secrets == 0


def test_a_text_that_takes_a_pattern_too_long_is_reported(memory):
    plain = memory.add(KEY)
    slow = memory.add("A" * 100_000)
    patterns = ["api_key", RedactionPattern("slow", ".*[^A-Z]|[A-Z]")]
    found = memory.audit(ids=True, patterns=patterns)
    assert found.ids("unscanned") == (slow.id,)
    assert found.ids("secrets") == (plain.id,)


def test_each_kind_has_as_many_findings_as_requested(memory):
    added = memory.add_many(["tea"] * 5)
    found = memory.audit(ids=True, limit=2)
    assert found.exact_duplicates == 4
    assert found.ids("exact_duplicates") == tuple(each.id for each in added[1:3])


def test_an_audit_reports_its_progress(memory, monkeypatch):
    monkeypatch.setattr(audit, "BATCH", 2)
    memory.add_many(["a", "b", "c"])
    told = []
    memory.audit(progress=lambda done, total: told.append((done, total)))
    assert told == [(2, 3), (3, 3)]


def test_an_audit_ends_at_its_timeout(memory):
    memory.add("a")
    with pytest.raises(DeadlineExceededError, match="the audit was not done in time"):
        memory.audit(timeout=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"near": 1.5},
        {"near": "high"},
        {"limit": 0},
        {"ids": 1},
        {"stale_after": 90},
        {"max_bytes": -1},
        {"patterns": "api_key"},
        {"patterns": ["("]},
        {"timeout": -1},
        {"progress": 1},
        {"user_id": "ann", "all_users": True},
    ],
)
def test_wrong_arguments_are_refused(memory, wrong):
    with pytest.raises(InvalidArgumentError):
        memory.audit(**wrong)
