"""The memories that a recall may find: users, types, statuses, filters."""

import math
from datetime import timedelta
from uuid import uuid4

import pytest

from mnemic.errors import (
    EntryNotFoundError,
    InvalidArgumentError,
)
from mnemic.model import (
    MemoryKind,
    MemoryRetrieverOptions,
    MemoryType,
    RecallOptions,
)
from tests.support.clock import DAY, NOON, Clock
from tests.support.earlier_links import links_between_users
from tests.support.recall import (
    MODES,
    STATUSES,
    UNTRACKED,
    asked,
    by_every_method,
    mine,
    opened,
    recalling,
    run,
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
    with pytest.raises(TypeError, match="user_id"):
        await retriever.recall_temporal(NOON, NOON)
    with pytest.raises(TypeError, match="user_id"):
        await retriever.recall_by_type("fact")
    with pytest.raises(TypeError, match="user_id"):
        await retriever.recall_linked(one.id)
    with pytest.raises(TypeError, match="user_id"):
        await retriever.find_contradictions("a")


@pytest.mark.requirement("C062")
@pytest.mark.parametrize(("user", "expected"), [("u", "u"), ("v", "v"), (None, "None")])
@recalling()
async def test_only_the_memories_of_the_user_are_recalled(memory, retriever, user, expected):
    await memory.store_batch([mine(str(name), user_id=name) for name in ("u", "v", None)])
    for found in (await by_every_method(retriever, user_id=user)).values():
        assert texts(found) == [expected]
        assert found.total_matches == 1


@pytest.mark.requirement("C062")
@recalling()
async def test_everybodys_memories_are_recalled_on_purpose_alone(memory, retriever):
    await memory.store_batch([mine(str(name), user_id=name) for name in ("u", "v", None)])
    everyone = await by_every_method(retriever, user_id=None, all_users=True)
    for found in everyone.values():
        assert sorted(texts(found)) == ["None", "u", "v"]
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
async def test_links_to_other_users_lead_nowhere(memory, retriever):
    one, hers, behind = mine("one"), mine("hers", user_id="v"), mine("behind")
    nobodys = mine("nobody's", user_id=None)
    await memory.store_batch([one, hers, behind, nobodys])
    for ends in ((one, hers), (hers, behind), (one, nobodys)):
        with links_between_users():
            await memory.link(ends[0].id, ends[1].id, all_users=True)
    for options in ({}, {"include_archived": True}):
        for direction in ("out", "both"):
            found = await retriever.recall_linked(
                one.id, user_id="u", direction=direction, depth=3, **options
            )
            assert (len(found), found.total_matches) == (0, 0)
        everyone = await retriever.recall_linked(
            one.id, user_id=None, all_users=True, depth=3, **options
        )
        assert set(texts(everyone)) == {"hers", "behind", "nobody's"}
        with pytest.raises(EntryNotFoundError, match="user 'u'"):
            await retriever.recall_linked(hers.id, user_id="u", **options)


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
def test_temporal_mode_is_refused_and_says_what_to_call():
    async def scenario(_, retriever):
        with pytest.raises(InvalidArgumentError, match="recall_temporal"):
            await retriever.recall("q", user_id="u", mode="temporal")

    run(scenario)
    with opened() as memory, pytest.raises(InvalidArgumentError, match="recall_temporal"):
        memory.recall("q", mode="temporal")


# Filters


@pytest.mark.requirement("C064")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, {"active"}),
        ({"include_archived": True}, {"active", "archived"}),
        ({"include_superseded": True}, {"active", "superseded"}),
        (
            {"include_archived": True, "include_superseded": True},
            {"active", "archived", "superseded"},
        ),
    ],
)
@recalling(clock=Clock())
async def test_archived_and_superseded_are_asked_for_one_by_one_everywhere(
    memory, retriever, flags, expected
):
    start = mine("start", type="event", created_at=NOON - 200 * DAY, user_id="u")
    entries = [mine(name, status=name, type="fact") for name in STATUSES]
    gone, brief = mine("gone"), mine("brief", expires_at=NOON)
    await memory.store_batch([start, *entries, gone, brief])
    for other in (*entries, gone):
        await link_in_the_store(memory, start, other)
    await memory.forget(gone.id, user_id="u")
    found = await by_every_method(retriever, type_filter="fact", **flags)
    found["linked"] = await retriever.recall_linked(start.id, user_id="u", **flags)
    for method, result in found.items():
        assert set(texts(result)) == expected, method
        assert result.total_matches == len(expected), method


async def link_in_the_store(memory, one, other, kind="related", strength=1.0):
    """Link memories by the door, which sees those that are archived or superseded only before."""
    await memory.link(one.id, other.id, kind, strength, user_id=one.user_id)


@pytest.mark.requirement("C064")
@recalling(options=UNTRACKED)
async def test_the_least_salience_holds_in_every_mode(memory, retriever):
    start = mine("start", type="event")
    high, low = mine("high", importance=1.0), mine("low", importance=0.0)
    middle = mine("middle", importance=0.5)
    await memory.store_batch([start, high, low, middle])
    for other in (high, low, middle):
        await memory.link(start.id, other.id, user_id="u")
    floor = salience(middle) - 1e-9
    found = await by_every_method(retriever, type_filter="fact", min_salience=floor)
    for archived in (False, True):
        found[f"linked {archived}"] = await retriever.recall_linked(
            start.id, user_id="u", min_salience=floor, include_archived=archived
        )
    for method, result in found.items():
        assert set(texts(result)) == {"high", "middle"}, method
        assert result.total_matches == 2, method


@pytest.mark.requirement("C065", "C066")
def test_salience_is_that_of_the_moment_it_is_asked_for():
    clock = Clock()

    async def scenario(memory, retriever):
        one = mine("one", importance=0.0)
        await memory.store(one)
        for _ in range(5):
            assert len(await retriever.recall("q", user_id="u", min_salience=0.3)) == 1
        (stored,) = await memory.search_by_filter({}, user_id="u")
        for days in (7, 14, 14, 70):
            clock.now = NOON + days * DAY
            expected = salience(one, clock.now)
            (hit,) = await retriever.recall("q", user_id="u", mode="important")
            assert hit.score == pytest.approx(expected, abs=1e-12)
            assert expected == pytest.approx(RECENCY_SHARE * 0.5 ** (days / 7), abs=1e-12)
            for mode in MODES:
                assert not await retriever.recall("q", user_id="u", mode=mode, min_salience=0.3)
        (kept,) = await memory.search_by_filter({}, user_id="u")
        assert (kept, kept.importance) == (stored, 0.0)

    run(scenario, options=UNTRACKED, clock=clock)


RECENCY_SHARE = 0.25 / 0.70


@pytest.mark.requirement("C074")
@recalling()
async def test_a_project_is_a_filter_and_none_is_all_of_them_unless_strict(memory, retriever):
    start = mine("start", type="event")
    entries = [mine(str(project), project_id=project) for project in ("p", "q", None)]
    await memory.store_batch([start, *entries])
    for other in entries:
        await memory.link(start.id, other.id, user_id="u")
    for fields, expected in (
        ({}, {"p", "q", "None"}),
        ({"project_id": "p"}, {"p"}),
        ({"project_scope": "strict"}, {"None"}),
        ({"project_scope": "strict", "project_id": "p"}, {"p"}),
    ):
        found = await by_every_method(retriever, type_filter="fact", **fields)
        for archived in (False, True):
            found[f"linked {archived}"] = await retriever.recall_linked(
                start.id, user_id="u", include_archived=archived, **fields
            )
        for method, result in found.items():
            assert set(texts(result)) == expected, (method, fields)
    with pytest.raises(InvalidArgumentError, match="project_scope"):
        await retriever.recall("q", user_id="u", project_scope="loose")


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


@pytest.mark.requirement("C138")
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
