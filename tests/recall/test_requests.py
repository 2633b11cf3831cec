"""The memories that a recall may find: users, types, statuses, filters."""

import math
from datetime import timedelta
from uuid import uuid4

import pytest

from mnemic.errors import EntryNotFoundError, InvalidArgumentError
from mnemic.model import MemoryKind, MemoryRetrieverOptions, MemoryType, RecallOptions
from tests.support.clock import DAY, NOON, clock_of
from tests.support.recall import (
    MODES,
    RECENCY,
    UNTRACKED,
    asked,
    mine,
    opened,
    recalling,
    salience,
    texts,
)

# Whose memories


@pytest.mark.requirement("C062")
@recalling()
async def test_whose_memories_is_always_said(memory, retriever):
    one = mine("a")
    await memory.store(one)
    with pytest.raises(InvalidArgumentError, match="user_id must be named"):
        await retriever.recall("a")
    for call in (
        lambda: retriever.recall_temporal(NOON, NOON),
        lambda: retriever.recall_by_type("fact"),
        lambda: retriever.recall_linked(one.id),
        lambda: retriever.find_contradictions("a"),
    ):
        with pytest.raises(TypeError, match="user_id"):
            await call()


@pytest.mark.requirement("C062")
@recalling()
async def test_everybodys_memories_are_recalled_on_purpose_alone(memory, retriever):
    await memory.store_batch([mine(str(name), user_id=name) for name in ("u", "v", None)])
    assert len(await retriever.recall("q", all_users=True)) == 3
    with pytest.raises(InvalidArgumentError, match="all_users"):
        await retriever.recall("q", user_id="u", all_users=True)
    with pytest.raises(InvalidArgumentError, match="all_users"):
        await retriever.recall("q", RecallOptions(user_id="u", all_users=True))


@pytest.mark.requirement("C162")
def test_a_retriever_of_a_view_stays_in_it():
    with opened() as memory:
        for user in ("u", "v"):
            for project in ("p", "q"):
                memory.scoped(project_id=project).add(f"{user}{project}", user_id=user)
        view = memory.scoped(user_id="u", project_id="p")
        for mode in MODES:
            assert texts(asked(view, "recall", "x", user_id=None, mode=mode)) == ["up"]
            assert texts(view.recall("x", mode=mode)) == ["up"]
        with pytest.raises(InvalidArgumentError, match="bound to 'u'"):
            asked(view, "recall", "x", user_id="v")
        with pytest.raises(InvalidArgumentError, match="all_users"):
            asked(view, "recall", "x", user_id=None, all_users=True)


@pytest.mark.requirement("C062")
@recalling()
async def test_a_memory_of_another_user_is_neither_weighed_nor_raised_nor_counted(
    memory, retriever
):
    hers = mine("hers", user_id="v")
    await memory.store(hers)
    with pytest.raises(EntryNotFoundError, match="user 'u'"):
        await retriever.salience(hers.id, "u")
    with pytest.raises(EntryNotFoundError, match="user 'u'"):
        await retriever.reinforce(hers.id, "user_correction", "u")
    await retriever.record_use([hers.id, uuid4()], "u")
    (kept,) = await memory.search_by_filter({}, user_id="v")
    assert (kept.importance, kept.access_count) == (0.5, 0)


@pytest.mark.requirement("C063")
@recalling()
async def test_temporal_mode_is_refused_and_says_what_to_call(retriever):
    with pytest.raises(InvalidArgumentError, match="recall_temporal"):
        await retriever.recall("q", user_id="u", mode="temporal")
    with opened() as memory, pytest.raises(InvalidArgumentError, match="recall_temporal"):
        memory.recall("q", mode="temporal")


@pytest.mark.requirement("C065", "C066")
@recalling(options=UNTRACKED)
async def test_salience_is_that_of_the_moment_it_is_asked_for(memory, retriever):
    one = mine("one", importance=0.0)
    await memory.store(one)
    for _ in range(5):
        assert len(await retriever.recall("q", user_id="u", min_salience=0.3)) == 1
    (stored,) = await memory.search_by_filter({}, user_id="u")
    for days in (7, 14, 14, 70):
        clock_of(memory).now = NOON + days * DAY
        expected = salience(one, NOON + days * DAY)
        (hit,) = await retriever.recall("q", user_id="u", mode="important")
        assert hit.score == pytest.approx(expected, abs=1e-12)
        assert expected == pytest.approx(RECENCY * 0.5 ** (days / 7), abs=1e-12)
        for mode in MODES:
            assert not await retriever.recall("q", user_id="u", mode=mode, min_salience=0.3)
    (kept,) = await memory.search_by_filter({}, user_id="u")
    assert (kept, kept.importance) == (stored, 0.0)


@pytest.mark.requirement("C079")
@pytest.mark.parametrize(
    "fields",
    [
        {"max_results": 0},
        {"max_results": 1001},
        {"max_results": True},
        {"max_results": 2.0},
        {"min_salience": -0.1},
        {"min_salience": 1.1},
        {"min_salience": math.nan},
        {"min_salience": "0.5"},
        {"mode": "best"},
        {"mode": None},
        {"type_filter": "dream"},
        {"include_archived": 1},
        {"project_id": ""},
        {"project_scope": "loose"},
        {"user_id": ""},
        {"top_k": 3},
    ],
)
@recalling()
async def test_an_option_outside_its_range_is_refused(retriever, fields):
    with pytest.raises(InvalidArgumentError):
        await retriever.recall("q", **{"user_id": "u", **fields})


@pytest.mark.requirement("C079")
@recalling()
async def test_the_limits_of_a_recall_are_allowed(memory, retriever):
    await memory.store(mine("a"))
    for fields in ({"max_results": 1}, {"max_results": 1000}, {"min_salience": 0}):
        assert len(await retriever.recall("q", user_id="u", **fields)) == 1
    assert len(await retriever.recall("q", user_id="u", min_salience=1)) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"similarity_weight": 0, "salience_weight": 0},
        {"similarity_weight": 1.5},
        {"min_similarity": -0.1},
        {"min_similarity": math.nan},
        {"candidate_multiplier": 1},
        {"track_access": None},
        {"access_interval": timedelta(seconds=-1)},
        {"access_interval": math.nan},
        {"salience": 0.5},
    ],
)
def test_an_option_of_the_retriever_outside_its_range_is_refused(fields):
    with pytest.raises(InvalidArgumentError):
        MemoryRetrieverOptions(**fields)


@pytest.mark.requirement("C138", "R278")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("semantic", {"FACT", "INSIGHT", "PREFERENCE", "CORRECTION"}),
        ("Episodic", {"EVENT", "CONVERSATION"}),
        (MemoryKind.PROCEDURAL, {"PROCEDURAL"}),
        (MemoryType.EVENT, {"EVENT"}),
        ("insight", {"INSIGHT"}),
    ],
)
@recalling()
async def test_a_type_is_named_as_either_document_does(memory, retriever, wanted, expected):
    await memory.store_batch([mine(each.name, type=each) for each in MemoryType])
    assert set(texts(await retriever.recall_by_type(wanted, "u"))) == expected
    found = await retriever.recall("q", user_id="u", type_filter=wanted)
    assert set(texts(found)) == expected


@pytest.mark.requirement("C077")
@recalling()
async def test_recall_by_type_goes_by_salience_among_the_active(memory, retriever):
    await memory.store_batch(
        [
            mine("low", importance=0.1),
            mine("high", importance=0.9),
            mine("archived", status="archived"),
            mine("used", importance=0.1, access_count=50),
        ]
    )
    found = await retriever.recall_by_type("fact", "u", 2)
    assert texts(found) == ["high", "used"]
    assert found.total_matches == 3
    for working in ("working", "WORKING", None):
        with pytest.raises(InvalidArgumentError):
            await retriever.recall_by_type(working, "u")
