"""Recall by time, and the archiving of old memories."""

from datetime import timedelta, timezone

import pytest

from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.model import MemoryEntryUpdate, MemoryStatus
from tests.support.clock import DAY, HOUR, MICROSECOND, NOON
from tests.support.recall import (
    MODES,
    mine,
    opened,
    recalling,
    salience,
    scores,
    texts,
)

# Temporal recall


@pytest.mark.requirement("C070")
@recalling()
async def test_a_range_that_ends_before_it_begins_is_refused(retriever):
    with pytest.raises(InvalidArgumentError, match="ends before it begins"):
        await retriever.recall_temporal(NOON, NOON - MICROSECOND, user_id="u")
    for wrong in (None, "2026-05-01", 3):
        with pytest.raises(InvalidArgumentError):
            await retriever.recall_temporal(wrong, NOON, user_id="u")
        with pytest.raises(InvalidArgumentError):
            await retriever.recall_temporal(NOON, wrong, user_id="u")


@pytest.mark.requirement("C103")
@recalling()
async def test_times_of_any_zone_are_understood_and_naive_ones_are_utc(memory, retriever):
    await memory.store(mine("a"))
    oslo = NOON.astimezone(timezone(timedelta(hours=2)))
    naive = NOON.replace(tzinfo=None)
    for moment in (oslo, naive):
        assert len(await retriever.recall_temporal(moment, moment, user_id="u")) == 1


@pytest.mark.requirement("C070")
@recalling()
async def test_a_hundred_are_returned_unless_another_limit_is_given(memory, retriever):
    await memory.store_batch([mine(str(at), created_at=NOON - at * HOUR) for at in range(120)])
    found = await retriever.recall_temporal(NOON - 10 * DAY, NOON, user_id="u")
    assert texts(found) == [str(at) for at in range(100)]
    assert found.total_matches == 120
    found = await retriever.recall_temporal(NOON - 10 * DAY, NOON, user_id="u", limit=3)
    assert texts(found) == ["0", "1", "2"]
    for limit in (0, 1001):
        with pytest.raises(InvalidArgumentError):
            await retriever.recall_temporal(NOON, NOON, user_id="u", limit=limit)


@pytest.mark.requirement("C070")
@recalling()
async def test_a_topic_is_told_in_the_reason_and_does_not_change_the_order(memory, retriever):
    older = mine("older ~0.9", created_at=NOON - DAY, importance=1.0)
    newer = mine("newer ~0.4", importance=0.0)
    await memory.store_batch([older, newer, mine("far ~0.2")])
    found = await retriever.recall_temporal(NOON - DAY, NOON, "tea", user_id="u")
    assert texts(found) == ["newer ~0.4", "older ~0.9"]
    assert scores(found) == pytest.approx([salience(newer), salience(older)], abs=1e-9)
    assert [each.match_reason for each in found] == [
        "Temporal match, Similarity: 0.40",
        "Temporal match, Similarity: 0.90",
    ]
    assert found.total_matches == 2


# Archiving


def test_another_memory_on_the_file_sees_what_was_archived(path):
    with opened(path) as one, opened(path) as two:
        kept = one.add("kept", user_id="u")
        for status in ("archived", "active", "archived"):
            one.update(kept.id, status=status, user_id="u")
            for memory in (two, one):
                for mode in MODES:
                    found = memory.recall("q", mode=mode, user_id="u")
                    assert texts(found) == ([] if status == "archived" else ["kept"])
                    found = memory.recall("q", mode=mode, user_id="u", include_archived=True)
                    assert [each.memory.status.name.lower() for each in found] == [status]


@pytest.mark.parametrize("first", ["archived", "active"])
def test_what_changes_its_state_between_two_looks_is_found_once(path, monkeypatch, first):
    then = "active" if first == "archived" else "archived"
    with opened(path) as memory:
        kept = memory.add("kept", user_id="u")
        memory.update(kept.id, status=first, user_id="u")
        finder, looks = memory.repository.finder, []
        look = finder._find_in

        def change_before_looking(*given):
            looks.append(given)
            if len(looks) == 1:
                memory.update(kept.id, status=then, user_id="u")
            return look(*given)

        monkeypatch.setattr(finder, "_find_in", change_before_looking)
        found = memory.recall("q", mode="recent", user_id="u", include_archived=True)
        assert [each.memory.status.name.lower() for each in found] == [then]
        assert found.total_matches == 1


@pytest.mark.requirement("C161")
@pytest.mark.parametrize("status", ["superseded", MemoryStatus.SUPERSEDED, 2])
def test_superseded_cannot_be_set_by_hand(status):
    with pytest.raises(InvalidEntryError, match="supersedes="):
        MemoryEntryUpdate(status=status)
