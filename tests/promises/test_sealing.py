"""Sealed memories through the doors: what is sealed, what is told of it, and wrong keys."""

import asyncio
import io
import logging
import shutil
from contextlib import suppress
from uuid import UUID

import pytest

from mnemic import AsyncMemory, Memory, MemoryEntry, errors
from mnemic.compat import AsyncLongTermMemory, DocumentedLicenses, LicenseTier
from mnemic.crypto import Encryption, MasterKey
from mnemic.model import MemoryEntryUpdate, MemoryStatus
from mnemic.observability.events import (
    MemoryRetrievedEvent,
    MemorySearchCompletedEvent,
    MemoryStoredEvent,
    MemoryUpdatedEvent,
)
from mnemic_files import MemoryFiles
from tests.support.clock import NOON
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.entries import uid
from tests.support.keys import KEY, OTHER_KEY, shows, told
from tests.support.paths import FIXTURES
from tests.support.sealing import column, make_sums_right, opened_field, put, put_field, run
from tests.support.secret_forms import left_in

SECRET = "the zqsecret of the night"  # noqa: S105 - no password
AGENT = "default"


@pytest.fixture
def memory(path):
    with sealing(path) as made:
        yield made


def sealing(path, key=KEY, *, encrypt_all=False, detect=None, previous=(), **options):
    """Open a memory that seals."""
    made = Encryption(key, encrypt_all=encrypt_all, detect=detect, previous=previous)
    return opened(path, encryption=made, **options)


def is_sealed(path, number, agent=AGENT):
    return column(path, "is_encrypted", number, agent) == 1


def heard(memory, *kinds):
    """Return the list to which events of these kinds are added."""
    events = []
    for kind in kinds:
        memory.events.subscribe(kind, events.append)
    return events


# What is sealed


@pytest.mark.requirement("R117", "R126", "R004", "R081", "C080")
def test_a_sensitive_memory_is_sealed_in_the_file_and_read_as_it_was(memory, path):
    added = memory.add(SECRET, sensitive=True, tags=["t"], metadata={"encrypted": False}, id=uid(1))
    assert added.is_encrypted
    assert is_sealed(path, 1)
    assert b"zqsecret" not in column(path, "content", 1, AGENT)
    found = memory.get(uid(1))
    assert (found.content, found.tags, found.metadata) == (SECRET, ("t",), {"encrypted": False})
    assert found.is_encrypted
    (hit,) = memory.search("secret night")
    assert hit.entry.content == SECRET
    plain = memory.add("plain", metadata={"encrypted": True}, id=uid(2))
    assert not plain.is_encrypted
    assert not is_sealed(path, 2)
    assert memory.get(uid(2)).content == "plain"


@pytest.mark.requirement("R023", "R078", "C088", "C144")
@pytest.mark.parametrize(
    ("fields", "options", "is_sensitive"),
    [
        ({"sensitive": True}, {}, True),
        ({"metadata": {"sensitive": True}}, {}, True),
        ({"metadata": {"sensitive": "true"}}, {}, True),
        ({"metadata": {"sensitive": 1}}, {}, True),
        ({"content": "write to ann@example.org"}, {"detect": "pii"}, True),
        ({"tags": ["night"]}, {"detect": lambda text: text == "night"}, True),
        ({}, {"encrypt_all": True}, False),
    ],
    ids=[
        *("argument", "metadata", "metadata as text", "metadata as number"),
        *("pattern", "function", "every memory"),
    ],
)
def test_each_way_to_be_sensitive_seals(path, fields, options, is_sensitive):
    with sealing(path, **options) as memory:
        added = memory.add(**{"content": SECRET, **fields}, id=uid(1))
        assert (added.sensitive, added.is_encrypted) == (is_sensitive, True)
        (many,) = memory.add_many([{"content": SECRET, **fields, "id": uid(2)}])
        assert (many.sensitive, many.is_encrypted) == (is_sensitive, True)
        assert is_sealed(path, 1)
        assert is_sealed(path, 2)
        assert memory.get(uid(1)) == added


def test_no_tier_of_a_licence_is_needed(path):
    with sealing(path, license=DocumentedLicenses(LicenseTier.WRITER_PRO)) as memory:
        assert memory.add(SECRET, sensitive=True).is_encrypted


@pytest.mark.requirement("C088")
def test_a_detector_that_fails_stores_nothing(path):
    def fails(text):
        raise RuntimeError(text)

    with sealing(path, detect=fails) as memory:
        with pytest.raises(errors.DetectorError) as raised:
            memory.add(SECRET)
        assert "zqsecret" not in told(raised.value)
        assert memory.count() == 0
        with pytest.raises(errors.DetectorError):
            memory.add_many([SECRET, "other"])
        assert memory.count() == 0


@pytest.mark.requirement("R117")
def test_every_door_seals(path):
    entry = MemoryEntry(
        id=uid(1), agent_id=AGENT, content=SECRET, created_at=NOON, metadata={"sensitive": True}
    )

    async def scenario():
        given = {"embedder": WordEmbedder(), "encryption": Encryption(KEY)}
        async with AsyncLongTermMemory(path, agent_id=AGENT, **given) as door:
            await door.store(entry)
            assert (await door.retrieve(uid(1), user_id=None)).is_encrypted
            (hit,) = await door.search_semantic("secret night", 10, 0.0, user_id=None)
            assert hit.entry.content == SECRET
        async with AsyncMemory(path, AGENT, **given) as door:
            assert (await door.add(SECRET, sensitive=True, id=uid(2))).is_encrypted
            assert {hit.id for hit in await door.search("secret night")} == {uid(1), uid(2)}

    asyncio.run(scenario())
    assert is_sealed(path, 1)
    assert is_sealed(path, 2)


def test_wrong_options_are_refused(path):
    for wrong in (KEY, MasterKey(KEY), "key", True, {"key": KEY}):
        with pytest.raises(
            errors.InvalidArgumentError, match="encryption must be an Encryption"
        ) as raised:
            opened(path, encryption=wrong)
        assert not shows(told(raised.value))
    assert not path.exists()


def test_a_memory_in_this_process_seals_too():
    with sealing(":memory:") as memory:
        memory.add(SECRET, sensitive=True)
        assert memory.search("secret")[0].entry.is_encrypted
        assert memory.stats().sealed_entries == 1


# What is told


@pytest.mark.requirement("R071", "R072", "R089")
@pytest.mark.parametrize("is_sensitive", [True, False])
def test_events_and_the_log_say_whether_a_memory_is_sealed(memory, caplog, is_sensitive):
    caplog.set_level(logging.DEBUG, "mnemic")
    events = heard(memory, MemoryStoredEvent, MemoryRetrievedEvent)
    added = memory.add(SECRET, sensitive=is_sensitive)
    memory.get(added.id)
    stored, retrieved = events
    assert stored.was_encrypted is is_sensitive
    assert retrieved.was_decrypted is is_sensitive
    assert stored.content_length == len(SECRET)
    lines = [record.getMessage() for record in caplog.records]
    assert (
        f"Stored memory entry {added.id} for agent {AGENT}, type=FACT, "
        f"size={len(SECRET)}bytes, encrypted={is_sensitive}"
    ) in lines
    assert "zqsecret" not in "".join(lines)


@pytest.mark.requirement("R071", "C144")
def test_what_is_sealed_and_not_sensitive_is_hidden_as_well(path):
    with sealing(path, encrypt_all=True, log_content=True) as memory:
        events = heard(memory, MemoryStoredEvent, MemoryUpdatedEvent, MemorySearchCompletedEvent)
        added = memory.add(SECRET, tags=["zqsecret"], id=uid(1))
        memory.add(f"{SECRET} again", id=uid(2))
        memory.update(uid(1), importance=0.9)
        memory.similar(uid(1))
        shown = [repr(added), str(added), added._repr_html_(), repr(memory.list()), repr(events)]
        shown += [repr(memory.search("night")), repr(memory.recall("night"))]
        assert "zqsecret" not in "".join(shown)
        assert events[0].was_encrypted


# Updates


@pytest.mark.requirement("R078", "C188")
@pytest.mark.parametrize("value", [True, "true", 1])
def test_metadata_given_later_seal_a_memory_for_good(memory, path, value):
    memory.add(SECRET, id=uid(1), idempotency_key="k", tags=["zqsecret"])
    events = heard(memory, MemoryUpdatedEvent)
    updated = memory.update(uid(1), metadata={"sensitive": value})
    assert (updated.is_encrypted, updated.sensitive, updated.version) == (True, True, 2)
    assert is_sealed(path, 1)
    assert left_in(path.parent, ["zqsecret"]) == {}
    assert memory.add(SECRET, idempotency_key="k").id == uid(1)
    with pytest.raises(errors.DuplicateEntryError):
        memory.add("another content", idempotency_key="k")
    memory.update(uid(1), replace_metadata={}, content="harmless")
    assert memory.get(uid(1)).is_encrypted
    assert memory.get(uid(1)).sensitive
    assert is_sealed(path, 1)
    assert [event.entry_id for event in events] == [uid(1)] * 2
    assert memory.search("harmless")[0].id == uid(1)


@pytest.mark.requirement("R023", "C088")
@pytest.mark.parametrize("way", ["update", "update_many", "merge"])
def test_what_a_detector_finds_in_a_change_seals_it(path, way):
    with sealing(path, detect=lambda text: "zqsecret" in text) as memory:
        memory.add("harmless", id=uid(1))
        if way == "update":
            memory.update(uid(1), content=SECRET)
        elif way == "update_many":
            memory.update_many([uid(1)], add_tags=["zqsecret"])
        else:
            memory.add("Harmless", tags=["zqsecret"], on_duplicate="merge")
        found = memory.list()
        assert any(entry.is_encrypted for entry in found)
        assert left_in(path.parent, ["zqsecret"]) == {}
        assert memory.verify().ok


def test_an_update_of_nothing_that_is_looked_at_seals_nothing(path):
    with opened(path) as memory:
        memory.add("ann@example.org", id=uid(1))
    with sealing(path, detect="pii") as memory:
        memory.update(uid(1), importance=0.9)
        assert not is_sealed(path, 1)
        memory.update(uid(1), add_tags=["x"])
        assert is_sealed(path, 1)


@pytest.mark.parametrize("way", ["skip", "merge"])
def test_a_sensitive_duplicate_of_a_plain_memory_is_no_plain_memory(memory, path, way):
    """Whether it is merged or stored apart, the sensitive text is in no file."""
    memory.add("Harmless words", id=uid(1))
    memory.add("harmless words", sensitive=True, tags=["zqsecret"], on_duplicate=way, id=uid(2))
    assert left_in(path.parent, ["zqsecret"]) == {}
    assert any(entry.is_encrypted for entry in memory.list()) or way == "skip"


# Keys


@pytest.mark.requirement("C179")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_wrong_key_is_told_at_opening(path, read_only):
    with sealing(path) as memory:
        memory.add(SECRET, sensitive=True, id=uid(1))
    with pytest.raises(errors.WrongKeyError) as raised:
        sealing(path, OTHER_KEY, read_only=read_only)
    error = raised.value
    assert error.agent_id == AGENT
    assert (error.stored, error.given) == (
        MasterKey(KEY).key_id.hex(),
        MasterKey(OTHER_KEY).key_id.hex(),
    )
    for key in (KEY, OTHER_KEY):
        assert not shows(told(error), key)
    with sealing(path) as memory:
        assert memory.get(uid(1)).content == SECRET
    with sealing(path, OTHER_KEY, previous=[KEY]) as memory:
        assert memory.get(uid(1)).content == SECRET


@pytest.mark.requirement("R107", "C179")
def test_without_a_key_sealed_memories_are_not_found_and_are_counted(path):
    with sealing(path) as memory:
        memory.add(SECRET, sensitive=True, id=uid(1))
        memory.add("plain words of the night", id=uid(2))
        memory.add(SECRET, sensitive=True, id=uid(3), user_id="ann")
        memory.link(uid(2), uid(1))
    with opened(path) as memory:
        for search_type in ("hybrid", "semantic", "keyword"):
            assert [hit.id for hit in memory.search("night", search_type=search_type)] == [uid(2)]
        assert [entry.id for entry in memory.list(all_users=True)] == [uid(2)]
        assert [scored.entry.id for scored in memory.recall("night")] == [uid(2)]
        assert memory.count(all_users=True) == 1
        assert list(memory.search("night", filters={"sensitive": True})) == []
        for call in (
            lambda: memory.get(uid(1)),
            lambda: memory.update(uid(1), importance=1.0),
            lambda: memory.similar(uid(1)),
        ):
            with pytest.raises(errors.EntryNotFoundError):
                call()
        stats = memory.stats(all_users=True)
        assert (stats.active_entries, stats.sealed_entries, stats.unreadable_entries) == (1, 2, 2)
        assert memory.stats().sealed_entries == 1
        assert memory.stats(user_id="ann").unreadable_entries == 1
        target = io.StringIO()
        memory.export(target, all_users=True, unseal=True)
        assert "plain words" in target.getvalue()
        assert "zqsecret" not in target.getvalue()
        assert memory.verify().ok
    with sealing(path) as memory:
        assert memory.count(all_users=True) == 3
        assert memory.stats(all_users=True).unreadable_entries == 0


@pytest.mark.requirement("R107")
def test_without_a_key_sealed_memories_can_be_deleted(path):
    with sealing(path) as memory:
        for number in range(1, 5):
            memory.add(f"{SECRET} {number}", sensitive=True, id=uid(number))
    with opened(path) as memory:
        assert memory.delete(uid(1)) == 1
        assert memory.delete(uid(2), permanent=True) == 1
        assert memory.delete_many([uid(3)], permanent=True) == 1
        assert memory.stats().sealed_entries == 2
        assert memory.verify().ok
    with sealing(path) as memory:
        assert [entry.id for entry in memory.list()] == [uid(4)]
        assert memory.restore(uid(1))
    with opened(path) as memory:
        assert memory.delete_all(permanent=True) == 2
        assert memory.stats().sealed_entries == 0
        assert memory.verify().ok


@pytest.mark.requirement("C179")
def test_without_a_key_nothing_sensitive_is_stored_where_there_was_one(path):
    with sealing(path) as memory:
        memory.add(SECRET, sensitive=True)
    with opened(path) as memory:
        for call in (
            lambda: memory.add(SECRET, sensitive=True),
            lambda: memory.add_many(["plain", {"content": SECRET, "sensitive": True}]),
            lambda: memory.add_many(
                [MemoryEntry(SECRET, sensitive=True, id=uid(9))], on_conflict="replace"
            )[0],
            lambda: memory.add(SECRET, sensitive=True, on_duplicate="merge"),
        ):
            with pytest.raises(errors.KeyUnavailableError) as raised:
                call()
            assert "zqsecret" not in told(raised.value)
        assert memory.count() == 0
        assert memory.add("plain").is_encrypted is False
    with opened(path, "another") as memory:
        assert memory.add(SECRET, sensitive=True).is_encrypted is False


def test_a_memory_without_a_key_is_as_it_was(path):
    with opened(path) as memory:
        added = memory.add(SECRET, sensitive=True, metadata={"sensitive": True}, id=uid(1))
        assert not added.is_encrypted
        memory.update(uid(1), metadata={"sensitive": "true"})
        assert not is_sealed(path, 1)
        assert memory.stats().sealed_entries == 0
        assert run(path, "SELECT count(*) FROM agent_memory_keys") == [(0,)]


def test_agents_under_different_keys_share_a_file(path):
    with sealing(path, agent_id="a") as one, sealing(path, OTHER_KEY, agent_id="b") as other:
        one.add(f"{SECRET} of a", sensitive=True, id=uid(1))
        other.add(f"{SECRET} of b", sensitive=True, id=uid(1))
        assert one.get(uid(1)).content.endswith("of a")
        assert other.get(uid(1)).content.endswith("of b")
        for memory in (one, other):
            assert len(memory.search("night")) == 1
            assert memory.verify().ok
            assert memory.stats().unreadable_entries == 0
    for agent, key in (("a", OTHER_KEY), ("b", KEY)):
        with pytest.raises(errors.WrongKeyError):
            sealing(path, key, agent_id=agent)


class Provider:
    """A service of keys by name; `fails` quotes a key."""

    def __init__(self, *keys):
        self.keys, self.asked, self.fails = list(keys), [], False

    def key(self, name):
        self.asked.append(name)
        if self.fails:
            raise RuntimeError(f"no connection for {KEY.hex()}")
        found = [key for key in self.keys if name in (None, key.name)]
        return found[-1]


def test_a_key_provider_is_asked_for_the_key_by_its_name(path):
    provider = Provider(MasterKey(KEY, "2025"))
    with opened(path, encryption=Encryption(provider)) as memory:
        memory.add(SECRET, sensitive=True, id=uid(1))
    provider.keys.append(MasterKey(OTHER_KEY, "2026"))
    with opened(path, encryption=Encryption(provider)) as memory:
        assert memory.get(uid(1)).content == SECRET
    assert "2025" in provider.asked
    provider.fails = True
    with pytest.raises(errors.KeyUnavailableError) as raised:
        opened(path, encryption=Encryption(provider))
    assert not shows(told(raised.value))
    with opened(path) as memory:
        assert memory.stats().unreadable_entries == 1


# Damage


@pytest.mark.requirement("R097", "C105", "C145", "C179")
@pytest.mark.parametrize("right_sums", [False, True], ids=["wrong sums", "right sums"])
def test_a_memory_that_was_tampered_with_costs_itself_alone(path, caplog, right_sums):
    with sealing(path) as memory:
        for number in (1, 2, 3):
            memory.add(f"{SECRET} {number}", sensitive=True, id=uid(number))
        memory.add("plain words of the night", id=uid(4))
    field = bytearray(opened_field(path, 1, AGENT))
    field[40] ^= 1
    put_field(path, bytes(field), 1, AGENT)
    if right_sums:
        make_sums_right(path)
    with sealing(path) as memory:
        with pytest.raises(errors.SealBrokenError) as raised:
            memory.get(uid(1))
        assert raised.value.entry_id == uid(1)
        assert "zqsecret" not in told(raised.value)
        for search_type in ("hybrid", "semantic", "keyword"):
            found = {hit.id.int for hit in memory.search("night", search_type=search_type)}
            assert found == {2, 3, 4}
        assert {entry.id.int for entry in memory.list()} == {2, 3, 4}
        assert memory.count(filters={"content": {"contains": "zqsecret"}}) == 2
        assert {scored.entry.id.int for scored in memory.recall("night")} == {2, 3, 4}
        target = io.StringIO()
        memory.export(target, unseal=True)
        assert f"{SECRET} 2" in target.getvalue()
        assert f"{SECRET} 1" not in target.getvalue()
        memory.add_many([{"content": SECRET, "sensitive": True}, "plain"])
        assert memory.stats().unreadable_entries == 1
        with pytest.raises(errors.SealBrokenError) as raised:
            memory.verify()
        assert raised.value.entry_id == uid(1)
        assert raised.value.report.memories == 6
        assert not raised.value.report.ok
        assert memory.delete(uid(1), permanent=True) == 1
        assert memory.verify().ok
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert any(line.startswith(f"Failed to decrypt memory entry {uid(1)}: ") for line in lines)
    assert "zqsecret" not in "".join(lines)


@pytest.mark.requirement("C105")
def test_a_memory_with_a_damaged_vector_is_found_by_its_words(path, caplog):
    with sealing(path) as memory:
        memory.add(SECRET, sensitive=True, id=uid(1))
        memory.add("plain words", id=uid(2))
    run(path, "UPDATE agent_memory_embeddings SET embedding = zeroblob(99) WHERE entry_row = 1")
    with sealing(path) as memory:
        assert memory.search("zqsecret", search_type="keyword")[0].id == uid(1)
        assert memory.search("zqsecret")[0].id == uid(1)
        assert memory.get(uid(1)).content == SECRET
        with pytest.raises(errors.SealBrokenError) as raised:
            memory.verify()
        assert raised.value.entry_id == uid(1)
    assert any("Failed to decrypt memory entry" in line.getMessage() for line in caplog.records)


@pytest.mark.requirement("C145")
def test_a_sealed_memory_moved_to_another_user_shows_nothing(path):
    with sealing(path) as memory:
        memory.add(SECRET, sensitive=True, id=uid(1), user_id="ann")
        memory.add("of mallory", id=uid(2), user_id="mallory")
    put(path, "user_id", "mallory", 1, AGENT)
    make_sums_right(path)
    with sealing(path) as memory:
        assert [entry.id for entry in memory.list(user_id="mallory")] == [uid(2)]
        assert {hit.id for hit in memory.search("night of mallory", user_id="mallory")} == {uid(2)}
        with pytest.raises(errors.SealBrokenError):
            memory.get(uid(1), user_id="mallory")
        assert memory.stats(user_id="mallory").unreadable_entries == 1


# Files of earlier versions


@pytest.mark.parametrize("with_key", [False, True])
def test_a_file_of_the_version_before_opens_with_and_without_a_key(tmp_path, with_key):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / "store_v9.db", path)
    given = {"embedder": WordEmbedder(dimensions=8), "agent_id": "aide"}
    options = {"encryption": Encryption(KEY) if with_key else None, **given}
    with opened(path, **options) as memory:
        kept = memory.get(UUID(int=1), user_id="alice")
        assert (kept.content, kept.is_encrypted) == ("the user prefers dark mode", False)
        assert memory.stats(all_users=True).sealed_entries == 0
        added = memory.add(SECRET, sensitive=True, user_id="alice")
        assert added.is_encrypted is with_key
        if with_key:
            memory.update(UUID(int=1), metadata={"sensitive": True}, user_id="alice")
            assert left_in(tmp_path, ["zqsecret", "dark mode"]) == {}
        assert memory.get(UUID(int=1), user_id="alice").content == kept.content
        assert memory.search("dark mode", user_id="alice")[0].id == UUID(int=1)
        assert memory.verify().ok
    with opened(path, **given) as memory:
        assert memory.stats(all_users=True).unreadable_entries == (2 if with_key else 0)


def test_what_an_earlier_version_stored_as_sensitive_stays_plain_until_it_is_changed(path):
    with opened(path) as memory:
        memory.add(SECRET, sensitive=True, id=uid(1))
    with sealing(path) as memory:
        assert memory.get(uid(1)).content == SECRET
        assert not is_sealed(path, 1)
        memory.update(uid(1), add_tags=["x"])
        assert is_sealed(path, 1)
        assert left_in(path.parent, ["zqsecret"]) == {}


# Copies


@pytest.mark.parametrize("sealing", ["sensitive", "all", "detected"])
def test_plain_text_of_sealed_memories_has_to_be_asked_for_by_name(tmp_path, sealing):
    options = {"sensitive": {}, "all": {"encrypt_all": True}, "detected": {"detect": "pii"}}
    encryption = Encryption(KEY, **options[sealing])
    path, files = tmp_path / "a.jsonl", MemoryFiles(user=tmp_path / "user")
    with Memory(":memory:", embedder=None, encryption=encryption) as memory:
        memory.add("plain words" if sealing != "all" else "all words")
        memory.add("mail zed@example.org", user_id="ann", sensitive=sealing == "sensitive")
        mine = memory.scoped(user_id="ann")
        for export in (
            lambda: memory.export(path, all_users=True),
            lambda: mine.export(path),
            lambda: mine.export(io.StringIO(), embeddings=True),
            lambda: files.export(mine, include_sensitive=True),
        ):
            with pytest.raises(errors.InvalidArgumentError, match="unseal=True") as raised:
                export()
            assert "zed" not in str(raised.value)
        assert not list(tmp_path.iterdir())
        if sealing != "all":
            assert memory.export(path) == 1  # no sealed one is among them
            path.unlink()
        with pytest.raises(errors.InvalidArgumentError, match="unseal must be True or False"):
            memory.export(path, unseal="yes")
        assert memory.export(path, all_users=True, unseal=True) == 2
        assert "zed@example.org" in path.read_text()
        assert len(files.export(mine, include_sensitive=True, unseal=True).written) == 1


def test_an_export_is_imported_sealed_under_the_other_memorys_key(path, tmp_path):
    target = io.StringIO()
    with sealing(path) as memory:
        memory.add_many([f"first {number}" for number in range(1000)])  # as many as a batch
        memory.add(SECRET, sensitive=True, id=uid(1), idempotency_key="k")
        memory.add("plain", id=uid(2))
        memory.export(target, embeddings=True, unseal=True)
    target.seek(0)
    with sealing(tmp_path / "copy.db", OTHER_KEY) as memory:
        memory.import_(target)
        assert (memory.get(uid(1)).content, memory.get(uid(1)).is_encrypted) == (SECRET, True)
        assert memory.get(uid(2)).is_encrypted is False
        assert memory.add(SECRET, sensitive=True, idempotency_key="k").id == uid(1)
        assert memory.verify().ok
    target.seek(0)
    with opened(tmp_path / "plain.db") as memory:
        with pytest.raises(errors.KeyUnavailableError):
            memory.import_(target)
        assert memory.count() == 0


def test_an_update_record_of_a_whole_door_seals(path):
    async def scenario():
        given = {"embedder": WordEmbedder(), "encryption": Encryption(KEY)}
        async with AsyncLongTermMemory(path, agent_id=AGENT, **given) as door:
            await door.store(
                MemoryEntry(id=uid(1), agent_id=AGENT, content=SECRET, created_at=NOON)
            )
            update = MemoryEntryUpdate(metadata={"sensitive": True})
            await door.update(uid(1), update, user_id=None)
            return await door.get_stats(user_id=None)

    stats = asyncio.run(scenario())
    assert stats.sealed_entries == 1
    assert is_sealed(path, 1)
    assert left_in(path.parent, ["zqsecret"]) == {}


def test_two_memories_of_one_file_and_one_key_see_each_others_sealed_memories(path):
    with sealing(path) as one, sealing(path) as other:
        one.add(SECRET, sensitive=True, id=uid(1))
        assert other.search("secret night")[0].id == uid(1)
        other.update(uid(1), content="changed by the other", importance=1.0)
        assert one.search("changed")[0].entry.content == "changed by the other"
        one.delete(uid(1))
        assert list(other.search("changed")) == []


def test_a_memory_beside_one_without_a_key_shows_nothing_to_it(path):
    """Memories of one agent share an index in one process; one without a key has its own."""
    with sealing(path) as one, opened(path) as blind:
        one.add(SECRET, sensitive=True, id=uid(1))
        one.add("plain words", id=uid(2))
        assert {hit.id for hit in one.search("secret plain words")} == {uid(1), uid(2)}
        for search_type in ("hybrid", "semantic", "keyword"):
            found = blind.search("zqsecret words", search_type=search_type)
            assert [hit.id for hit in found] == [uid(2)]
        assert [entry.id for entry in blind.list()] == [uid(2)]
        assert blind.count() == 1
    with opened(path) as blind, sealing(path) as one:
        assert [hit.id for hit in blind.search("zqsecret words")] == [uid(2)]
        assert one.search("zqsecret")[0].id == uid(1)
        assert one.count() == 2


@pytest.mark.parametrize("version", range(1, 11))
def test_what_any_earlier_version_stored_can_be_sealed(tmp_path, version):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / f"store_v{version}.db", path)
    given = {"embedder": WordEmbedder(dimensions=8), "agent_id": "aide"}
    with sealing(path, **given) as memory:
        assert left_in(tmp_path, ["dark mode"]) != {}
        assert memory.update_many(filters={}, metadata={"sensitive": True}, all_users=True)
        assert left_in(tmp_path, ["dark mode"]) == {}
        kept = memory.get(UUID(int=1), user_id="alice")
        assert (kept.content, kept.tags, kept.is_encrypted) == (
            "the user prefers dark mode",
            ("ui",),
            True,
        )
        assert memory.search("dark mode", user_id="alice")[0].id == UUID(int=1)
        assert memory.verify(repair=True).ok
        assert memory.verify().ok


# Erasure of what was plain


@pytest.mark.requirement("C175")
@pytest.mark.parametrize("way", ["update", "update_many", "add"])
def test_plain_bytes_are_erased_though_what_follows_the_write_fails(path, monkeypatch, way):
    """As the index's following of the change does, where another memory is damaged."""

    async def fails(*_args, **_named):
        raise OSError("deliberate")

    calls = {
        "update": lambda: memory.update(uid(1), metadata={"sensitive": True}),
        "update_many": lambda: memory.update_many([uid(1)], metadata={"sensitive": True}),
        "add": lambda: memory.add_many(
            [MemoryEntry(SECRET, id=uid(1), sensitive=True)], on_conflict="replace"
        )[0],
    }
    with sealing(path) as memory:
        memory.add(SECRET, id=uid(1))
        memory.search("secret")
        with monkeypatch.context() as patch:
            patch.setattr(type(memory.repository._indexes.active), "refresh", fails)
            patch.setattr(type(memory.repository._telemetry), "updated", fails)
            with suppress(OSError):
                calls[way]()
        assert is_sealed(path, 1)
        assert left_in(path.parent, ["zqsecret"]) == {}


@pytest.mark.requirement("C175")
def test_plain_bytes_are_erased_though_the_task_is_cancelled_once_it_is_written(path):
    async def scenario():
        given = {"embedder": WordEmbedder(), "encryption": Encryption(KEY)}
        async with AsyncMemory(path, AGENT, **given) as memory:
            await memory.add(SECRET, id=uid(1))
            task = asyncio.current_task()

            def cancel(_event):
                task.cancel()

            memory.events.subscribe(MemoryUpdatedEvent, cancel)
            with suppress(asyncio.CancelledError):
                await memory.update(uid(1), metadata={"sensitive": True})
                await asyncio.sleep(0)
            assert is_sealed(path, 1)
            await asyncio.sleep(0.2)
            assert left_in(path.parent, ["zqsecret"]) == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("with_key", [True, False])
@pytest.mark.parametrize("rest", ["", " is what I saw in the file", "whole"])
def test_a_text_that_looks_like_a_sealed_field_is_a_text_like_others(path, rest, with_key):
    """As somebody may paste one from a file, through a memory with a key or one without."""
    with sealing(path) as memory:
        memory.add(SECRET, sensitive=True, id=uid(1))
        memory.search("night")
        field = column(path, "content", 1, AGENT).decode()
        text = field if rest == "whole" else field[:12] + rest
        if with_key:
            memory.add(text, id=uid(2))
            memory.add("of the night", id=uid(3))
            memory.update(uid(3), content=f"{text} again")
        else:
            with opened(path) as blind:
                blind.add(text, id=uid(2))
                blind.add(f"{text} again", id=uid(3))
                assert blind.get(uid(2)).content == text
        assert memory.get(uid(2)).content == text
        assert memory.get(uid(3)).content == f"{text} again"
        assert {entry.id for entry in memory.list()} == {uid(1), uid(2), uid(3)}
        assert memory.count() == len(memory.search(f"{text} night", limit=9)) == 3
        assert memory.stats().unreadable_entries == 0
        assert memory.verify().ok
    with sealing(path) as memory:
        assert memory.get(uid(2)).content == text
        assert memory.count() == len(memory.search(f"{text} night", limit=9)) == 3


@pytest.mark.requirement("R107")
@pytest.mark.parametrize("way", ["link to", "link from", "supersede", "links", "unlink"])
def test_without_a_key_a_sealed_memory_is_no_end_of_a_link(path, way):
    with sealing(path) as memory:
        memory.add(SECRET, sensitive=True, id=uid(1))
        memory.add("plain", id=uid(2))
        memory.link(uid(2), uid(1))
    with opened(path) as memory:
        if way == "links":
            assert list(memory.links(uid(2))) == list(memory.links(uid(1))) == []
        elif way == "unlink":
            assert memory.unlink(uid(2), uid(1)) == 0
        else:
            calls = {
                "link to": lambda: memory.link(uid(2), uid(1), "refines"),
                "link from": lambda: memory.link(uid(1), uid(2), "refines"),
                "supersede": lambda: memory.add("newer", supersedes=uid(1)),
            }
            with pytest.raises(errors.EntryNotFoundError):
                calls[way]()
    with sealing(path) as memory:
        assert memory.get(uid(1)).status is MemoryStatus.ACTIVE
        assert [link.to_id for link in memory.links(uid(2))] == [uid(1)]


@pytest.mark.requirement("C088")
@pytest.mark.parametrize("many", [False, True])
def test_a_detector_that_fails_in_an_update_changes_nothing(path, many):
    def fails_for_secrets(text):
        if "zqsecret" in text:
            raise RuntimeError(text)
        return False

    with sealing(path, detect=fails_for_secrets) as memory:
        before = memory.add("harmless", id=uid(1))
        memory.add("other", id=uid(2))
        change = {"content": SECRET, "add_tags": ["zqsecret"]}
        with pytest.raises(errors.DetectorError) as raised:
            memory.update_many([uid(2), uid(1)], **change) if many else memory.update(
                uid(1), **change
            )
        assert "zqsecret" not in told(raised.value)
        assert memory.get(uid(1)).content == before.content
        assert memory.get(uid(2)).content == "other"
        assert memory.add("more", id=uid(3)).id == uid(3)
        assert left_in(path.parent, ["zqsecret"]) == {}
        assert memory.verify().ok
