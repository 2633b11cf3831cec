"""Recall by relevance, time, importance and type; links and contradictions have their own files."""

import asyncio
import logging
import math
import random
import threading
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from uuid import UUID, uuid4

import apsw
import pytest

from mnemic import AsyncMemory, SalienceOptions
from mnemic.contradictions import Judgement
from mnemic.errors import (
    EmbedderRequiredError,
    EntryNotFoundError,
    InvalidArgumentError,
    InvalidEntryError,
    LicenseRestrictionError,
    MnemicError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.model import (
    RECALL,
    MemoryEntryUpdate,
    MemoryKind,
    MemoryRetrieverOptions,
    MemoryStatus,
    MemoryType,
    RecallOptions,
    Salience,
    Scope,
)
from mnemic.recall import MemoryRetriever
from tests.support.clock import DAY, HOUR, MICROSECOND, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry, uid
from tests.support.recall import (
    MODES,
    OWN_ORDERS,
    STATUSES,
    UNTRACKED,
    NamedSimilarities,
    asked,
    by_every_method,
    counts,
    ids,
    mine,
    opened,
    run,
    salience,
    scores,
    texts,
)
from tests.support.threads import run_together

# Own orders


@pytest.mark.requirement("C059")
@pytest.mark.parametrize("mode", OWN_ORDERS)
def test_the_query_changes_nothing_where_a_mode_has_its_own_order(mode):
    async def scenario(memory, retriever):
        await memory.store_batch(
            [
                mine("far ~0.0", last_accessed_at=NOON, access_count=9, importance=1.0),
                mine("same", created_at=NOON - 30 * DAY, importance=0.0),
            ]
        )
        for query in ("", " ", "same", "anything ~0.3"):
            found = await retriever.recall(query, user_id="u", mode=mode)
            assert texts(found) == ["far ~0.0", "same"]

    run(scenario, options=UNTRACKED)


@pytest.mark.requirement("C059")
@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize(
    ("mode", "key"),
    [("recent", {"last_accessed_at": NOON - HOUR}), ("frequent", {"access_count": 3})],
)
def test_ties_go_to_the_more_salient_then_the_newer_then_the_smaller_id(mode, key, archived):
    # The last three are alike but for the creation and the id.
    alike = {**key, "last_accessed_at": NOON - HOUR, "access_count": 3, "importance": 0.5}
    statuses = [MemoryStatus.ARCHIVED if archived and at % 2 else MemoryStatus.ACTIVE
                for at in range(5)]  # fmt: skip
    given = [
        {"importance": 0.9, "created_at": NOON - 9 * DAY},
        {"importance": 0.8, "created_at": NOON - DAY},
        {"created_at": NOON - 2 * DAY},
        {"created_at": NOON - 3 * DAY},
        {"created_at": NOON - 3 * DAY},
    ]

    async def scenario(memory, retriever):
        entries = [
            mine("x", id=uid(at + 1), **{**alike, **fields, "status": status})
            for at, (fields, status) in enumerate(zip(given, statuses, strict=True))
        ]
        entries.append(mine("first", **{**alike, **FIRST_OF[mode], "importance": 0.0}))
        random.Random(1).shuffle(entries)  # noqa: S311 - repeatable, not secret
        await memory.store_batch(entries)
        found = await retriever.recall("", user_id="u", mode=mode, include_archived=archived)
        assert texts(found)[0] == "first"
        assert ids(found)[1:] == [1, 2, 3, 4, 5]

    run(scenario, options=UNTRACKED)


FIRST_OF = {"recent": {"last_accessed_at": NOON}, "frequent": {"access_count": 4}}


@pytest.mark.requirement("C059")
def test_equally_salient_memories_are_newest_first_then_by_id():
    async def scenario(memory, retriever):
        times = {3: NOON - DAY, 1: NOON - 2 * DAY, 2: NOON - 2 * DAY, 4: NOON - 3 * DAY}
        await memory.store_batch(
            [
                mine("x", id=uid(number), created_at=time, last_accessed_at=NOON)
                for number, time in times.items()
            ]
        )
        found = await retriever.recall("", user_id="u", mode="important")
        assert ids(found) == [3, 1, 2, 4]
        relevant = await retriever.recall("q", user_id="u")
        assert ids(relevant) == [3, 1, 2, 4]

    run(scenario, options=UNTRACKED)


@pytest.mark.requirement("R241")
def test_a_memory_that_was_never_accessed_counts_as_accessed_when_it_was_made():
    async def scenario(memory, retriever):
        await memory.store_batch(
            [
                mine("made", created_at=NOON - 2 * HOUR),
                mine("read", created_at=NOON - DAY, last_accessed_at=NOON - HOUR),
                mine("old", created_at=NOON - 2 * DAY, last_accessed_at=NOON - 3 * HOUR),
            ]
        )
        found = await retriever.recall("", user_id="u", mode="recent")
        assert texts(found) == ["read", "made", "old"]

    run(scenario, options=UNTRACKED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("archived", [False, True])
def test_a_smaller_limit_gives_the_head_of_a_larger_one(mode, archived):
    async def scenario(memory, retriever):
        chance = random.Random(7)  # noqa: S311 - as above
        await memory.store_batch(
            [
                mine(
                    f"m ~{chance.choice([0.4, 0.6, 0.6, 0.9])}",
                    importance=chance.choice([0.1, 0.5, 0.5]),
                    access_count=chance.choice([0, 1, 1]),
                    created_at=NOON - chance.choice([0, 1, 1]) * DAY,
                    status=chance.choice([MemoryStatus.ACTIVE, MemoryStatus.ARCHIVED]),
                )
                for _ in range(30)
            ]
        )
        named = {"user_id": "u", "mode": mode, "include_archived": archived}
        whole = await retriever.recall("q", **named, max_results=1000)
        assert len(whole) == whole.total_matches
        for limit in (1, 2, 7, 13):
            part = await retriever.recall("q", **named, max_results=limit)
            assert ids(part) == ids(whole)[:limit]
            assert part.total_matches == whole.total_matches

    run(scenario, options=UNTRACKED)


# Relevant recall


@pytest.mark.requirement("C060")
def test_similarity_counts_once():
    async def scenario(memory, retriever):
        one = mine("one ~0.8", importance=0.3, access_count=4, created_at=NOON - 7 * DAY)
        await memory.store(one)
        (hit,) = await retriever.recall("q", user_id="u")
        assert hit.score == pytest.approx(0.6 * 0.8 + 0.4 * salience(one), abs=1e-6)
        (other,) = await retriever.recall("q ~0.9", user_id="u")
        cosine = 0.8 * 0.9 + math.sqrt((1 - 0.64) * (1 - 0.81))
        expected = 0.6 * cosine + 0.4 * salience(one)
        assert other.score == pytest.approx(expected, abs=1e-6)

    run(scenario, options=UNTRACKED)


@pytest.mark.requirement("C060", "C012", "C076")
def test_the_best_memory_wins_however_many_are_nearer():
    async def scenario(memory, retriever):
        near = [mine(f"{at} ~0.8", importance=0.0, created_at=NOON - 70 * DAY) for at in range(60)]
        best = mine("best ~0.7", importance=1.0, access_count=100)
        await memory.store_batch([*near, best])
        assert texts(await retriever.recall("q", user_id="u", max_results=1)) == ["best ~0.7"]

    run(scenario)


@pytest.mark.requirement("C076")
def test_one_users_few_memories_are_all_found_among_many_others():
    async def scenario(memory, retriever):
        others = [mine(f"{at} ~0.99", user_id=f"other {at % 7}") for at in range(300)]
        own = [mine(f"own {at} ~0.5") for at in range(5)]
        await memory.store_batch(others + own)
        for mode in MODES:
            found = await retriever.recall("q", user_id="u", mode=mode, max_results=5)
            assert sorted(texts(found)) == [f"own {at} ~0.5" for at in range(5)]
            assert found.total_matches == 5

    run(scenario)


@pytest.mark.requirement("C073")
def test_negative_cosines_count_as_nothing():
    async def scenario(memory, retriever):
        good = mine("against ~-0.9", importance=1.0)
        weak = mine("across ~0.0", importance=0.5)
        await memory.store_batch([good, weak])
        found = await retriever.recall("q", user_id="u")
        assert texts(found) == ["against ~-0.9", "across ~0.0"]
        expected = [0.4 * salience(good), 0.4 * salience(weak)]
        assert scores(found) == pytest.approx(expected, abs=1e-6)
        assert found[0].match_reason == f"Similarity: 0.00, Salience: {salience(good):.2f}"

    run(scenario, options=MemoryRetrieverOptions(min_similarity=0.0, track_access=False))


@pytest.mark.requirement("C151")
def test_the_floor_is_the_option_or_the_embedders_own_or_the_documented_one():
    async def scenario(memory, retriever):
        await memory.store_batch([mine(f"m ~{cosine}") for cosine in (0.2, 0.5, 0.7)])
        relevant = await retriever.recall("q", user_id="u")
        topical = await retriever.recall_temporal(NOON, NOON, "q", user_id="u")
        assert set(texts(relevant)) == set(texts(topical))
        return len(relevant)

    strict = MemoryRetrieverOptions(min_similarity=0.6)
    assert run(scenario) == 2
    assert run(scenario, embedder=NamedSimilarities(floor=0.1)) == 3
    assert run(scenario, embedder=NamedSimilarities(floor=0.1), options=strict) == 1


def test_similarity_may_weigh_nothing():
    async def scenario(memory, retriever):
        plain, worthy = mine("plain ~0.9", importance=0.1), mine("worthy ~0.5", importance=0.9)
        await memory.store_batch([plain, worthy, mine("far ~0.1", importance=1.0)])
        found = await retriever.recall("q", user_id="u")
        assert texts(found) == ["worthy ~0.5", "plain ~0.9"]
        assert scores(found) == pytest.approx([salience(worthy), salience(plain)], abs=1e-6)
        assert found[0].match_reason.startswith("Similarity: 0.50, Salience: ")

    run(scenario, options=MemoryRetrieverOptions(similarity_weight=0.0, salience_weight=1.0))


@pytest.mark.requirement("C061")
@pytest.mark.parametrize("query", ["", "  \n"])
def test_relevant_recall_needs_a_query_and_the_others_embed_none(query):
    async def scenario(memory, retriever):
        await memory.store(mine("a"))
        embedded = len(memory.embedder.texts)
        for mode in OWN_ORDERS:
            assert texts(await retriever.recall(query, user_id="u", mode=mode)) == ["a"]
            assert texts(await retriever.recall("a", user_id="u", mode=mode)) == ["a"]
        await retriever.recall_by_type("fact", "u")
        await retriever.recall_temporal(NOON, NOON, query, user_id="u")
        assert len(memory.embedder.texts) == embedded
        with pytest.raises(ValueError, match="query must be a text that is not empty"):
            await retriever.recall(query, user_id="u")
        assert len(memory.embedder.texts) == embedded

    run(scenario)


@pytest.mark.requirement("C061")
@pytest.mark.parametrize("mode", MODES)
def test_a_query_that_is_no_text_is_refused(mode):
    async def scenario(_, retriever):
        for query in (None, 3, b"q"):
            with pytest.raises(InvalidArgumentError, match="query must be a str"):
                await retriever.recall(query, user_id="u", mode=mode)

    run(scenario)


def test_without_an_embedder_only_what_needs_none_is_answered():
    async def scenario(memory, retriever):
        await memory.store(mine("a"))
        for mode in OWN_ORDERS:
            assert texts(await retriever.recall("a", user_id="u", mode=mode)) == ["a"]
        assert texts(await retriever.recall_temporal(NOON, NOON, user_id="u")) == ["a"]
        with pytest.raises(EmbedderRequiredError):
            await retriever.recall("a", user_id="u")
        with pytest.raises(EmbedderRequiredError):
            await retriever.recall_temporal(NOON, NOON, "a", user_id="u")

    run(scenario, embedder=None)


# Whose memories


@pytest.mark.requirement("C062")
def test_whose_memories_is_always_said():
    async def scenario(memory, retriever):
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

    run(scenario)


@pytest.mark.requirement("C062")
@pytest.mark.parametrize(("user", "expected"), [("u", "u"), ("v", "v"), (None, "None")])
def test_only_the_memories_of_the_user_are_recalled(user, expected):
    async def scenario(memory, retriever):
        await memory.store_batch([mine(str(name), user_id=name) for name in ("u", "v", None)])
        for found in (await by_every_method(retriever, user_id=user)).values():
            assert texts(found) == [expected]
            assert found.total_matches == 1

    run(scenario)


@pytest.mark.requirement("C062")
def test_everybodys_memories_are_recalled_on_purpose_alone():
    async def scenario(memory, retriever):
        await memory.store_batch([mine(str(name), user_id=name) for name in ("u", "v", None)])
        everyone = await by_every_method(retriever, user_id=None, all_users=True)
        for found in everyone.values():
            assert sorted(texts(found)) == ["None", "u", "v"]
        assert len(await retriever.recall("q", all_users=True)) == 3
        with pytest.raises(InvalidArgumentError, match="all_users"):
            await retriever.recall("q", user_id="u", all_users=True)
        with pytest.raises(InvalidArgumentError, match="all_users"):
            await retriever.recall("q", RecallOptions(user_id="u", all_users=True))

    run(scenario)


@pytest.mark.requirement("C162")
def test_a_retriever_of_a_view_stays_in_it():
    with opened() as memory:
        for user in ("u", "v"):
            for project in ("p", "q"):
                memory.add(f"{user}{project}", user_id=user, project_id=project)
        view = memory.scoped(user_id="u", project_id="p")
        for mode in MODES:
            assert texts(asked(view, "recall", "x", user_id=None, mode=mode)) == ["up"]
            assert texts(view.recall("x", mode=mode)) == ["up"]
        with pytest.raises(InvalidArgumentError, match="bound to 'u'"):
            asked(view, "recall", "x", user_id="v")
        with pytest.raises(InvalidArgumentError, match="all_users"):
            asked(view, "recall", "x", user_id=None, all_users=True)


@pytest.mark.requirement("C062")
def test_links_to_other_users_lead_nowhere():
    async def scenario(memory, retriever):
        one, hers, behind = mine("one"), mine("hers", user_id="v"), mine("behind")
        nobodys = mine("nobody's", user_id=None)
        await memory.store_batch([one, hers, behind, nobodys])
        for ends in ((one, hers), (hers, behind), (one, nobodys)):
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

    run(scenario)


@pytest.mark.requirement("C062")
def test_a_memory_of_another_user_is_neither_weighed_nor_raised_nor_counted():
    async def scenario(memory, retriever):
        hers = mine("hers", user_id="v")
        await memory.store(hers)
        with pytest.raises(EntryNotFoundError, match="user 'u'"):
            await retriever.salience(hers.id, "u")
        with pytest.raises(EntryNotFoundError, match="user 'u'"):
            await retriever.reinforce(hers.id, "user_correction", "u")
        await retriever.record_use([hers.id, uuid4()], "u")
        (kept,) = await memory.search_by_filter({}, user_id="v")
        assert (kept.importance, kept.access_count) == (0.5, 0)

    run(scenario)


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
def test_archived_and_superseded_are_asked_for_one_by_one_everywhere(flags, expected):
    async def scenario(memory, retriever):
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

    run(scenario, clock=Clock())


async def link_in_the_store(memory, one, other, kind="related", strength=1.0):
    """Link memories by the door, which sees those that are archived or superseded only before."""
    await memory.link(one.id, other.id, kind, strength, user_id=one.user_id)


@pytest.mark.requirement("C064")
def test_the_least_salience_holds_in_every_mode():
    async def scenario(memory, retriever):
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

    run(scenario, options=UNTRACKED)


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
def test_a_project_is_a_filter_and_none_is_all_of_them_unless_strict():
    async def scenario(memory, retriever):
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

    run(scenario)


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
        {"limit": 3},
    ],
)
def test_an_option_outside_its_range_is_refused(fields):
    async def scenario(_, retriever):
        with pytest.raises(InvalidArgumentError):
            await retriever.recall("q", **{"user_id": "u", **fields})

    run(scenario)


@pytest.mark.requirement("C079")
def test_the_limits_of_a_recall_are_allowed():
    async def scenario(memory, retriever):
        await memory.store(mine("a"))
        for fields in ({"max_results": 1}, {"max_results": 1000}, {"min_salience": 0}):
            assert len(await retriever.recall("q", user_id="u", **fields)) == 1
        assert len(await retriever.recall("q", user_id="u", min_salience=1)) == 0

    run(scenario)


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
def test_a_type_is_named_as_either_document_does(wanted, expected):
    async def scenario(memory, retriever):
        await memory.store_batch([mine(each.name, type=each) for each in MemoryType])
        assert set(texts(await retriever.recall_by_type(wanted, "u"))) == expected
        found = await retriever.recall("q", user_id="u", type_filter=wanted)
        assert set(texts(found)) == expected

    run(scenario)


@pytest.mark.requirement("C077")
def test_recall_by_type_goes_by_salience_among_the_active():
    async def scenario(memory, retriever):
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

    run(scenario)


# Accesses


START = uid(77)


async def linked_from(retriever, _):
    return await retriever.recall_linked(START, user_id="u")


EVERY_WAY = {
    "relevant": lambda retriever, _: retriever.recall("q", user_id="u"),
    "recent": lambda retriever, _: retriever.recall("", user_id="u", mode="recent"),
    "important": lambda retriever, _: retriever.recall("", user_id="u", mode="important"),
    "frequent": lambda retriever, _: retriever.recall("", user_id="u", mode="frequent"),
    "type": lambda retriever, _: retriever.recall_by_type("fact", "u"),
    "temporal": lambda retriever, _: retriever.recall_temporal(NOON, NOON, user_id="u"),
    "topic": lambda retriever, _: retriever.recall_temporal(NOON, NOON, "q", user_id="u"),
    "linked": linked_from,
}
every_way = pytest.mark.parametrize("way", EVERY_WAY)


async def store_two(memory):
    start = mine("start", id=START, type="event", created_at=NOON - DAY)
    one, two = mine("one", access_count=5), mine("two", last_accessed_at=NOON - HOUR)
    await memory.store_batch([start, one, two])
    for other in (one, two):
        await memory.link(start.id, other.id, user_id="u")


async def accesses(memory):
    found = await memory.search_by_filter({"type": "fact"}, user_id="u")
    return {each.content: each.access_count for each in found}


@pytest.mark.requirement("C068")
@every_way
def test_every_recall_is_one_access_and_shows_what_was_before(way):
    clock = Clock()

    async def scenario(memory, retriever):
        await store_two(memory)
        clock.now += HOUR
        found = await EVERY_WAY[way](retriever, memory)
        shown = {
            each.memory.content: (each.memory.access_count, each.memory.last_accessed_at)
            for each in found
            if each.memory.content != "start"
        }
        assert shown == {"one": (5, None), "two": (0, NOON - HOUR)}
        assert await accesses(memory) == {"one": 6, "two": 1}
        times = {
            each.last_accessed_at
            for each in await memory.search_by_filter({"type": "fact"}, user_id="u")
        }
        assert times == {clock.now}
        await EVERY_WAY[way](retriever, memory)
        assert await accesses(memory) == {"one": 7, "two": 2}

    run(scenario, clock=clock)


@pytest.mark.requirement("C068")
@every_way
def test_accesses_of_a_recall_are_noted_together_and_after_the_answer(way, monkeypatch):
    async def scenario(memory, retriever):
        await store_two(memory)
        store = memory.repository._store
        noted, touch = [], store.touch

        def noting(agent_id, rows, now):
            noted.append(list(rows))
            touch(agent_id, rows, now)

        monkeypatch.setattr(store, "touch", noting)
        found = await EVERY_WAY[way](retriever, memory)
        row_of = partial(memory.repository.row_of, Scope(memory.scope.agent_id, "u"))
        assert noted == [[row_of(each.memory.id) for each in found]]

    run(scenario)


@pytest.mark.requirement("C067", "R249")
@every_way
def test_nothing_is_counted_where_accesses_are_not_tracked(way):
    async def scenario(memory, retriever):
        await store_two(memory)
        await EVERY_WAY[way](retriever, memory)
        assert await accesses(memory) == {"one": 5, "two": 0}

    run(scenario, options=UNTRACKED)
    run(scenario, track_access=False)


@pytest.mark.requirement("C067")
@every_way
@pytest.mark.parametrize("salience_weight", [0.4, 0.0])
def test_one_access_is_counted_in_an_interval(way, salience_weight):
    clock = Clock()

    async def scenario(memory, retriever):
        await store_two(memory)  # two was accessed an hour ago
        for _ in range(3):
            await EVERY_WAY[way](retriever, memory)
        assert await accesses(memory) == {"one": 6, "two": 0}
        clock.now = NOON + HOUR - timedelta(microseconds=1)
        await EVERY_WAY[way](retriever, memory)
        assert await accesses(memory) == {"one": 6, "two": 0}
        clock.now = NOON + HOUR
        await EVERY_WAY[way](retriever, memory)
        await EVERY_WAY[way](retriever, memory)
        assert await accesses(memory) == {"one": 6, "two": 1}
        clock.now = NOON + 2 * HOUR
        await EVERY_WAY[way](retriever, memory)
        assert await accesses(memory) == {"one": 7, "two": 1}

    options = MemoryRetrieverOptions(
        salience_weight=salience_weight, access_interval=timedelta(hours=2)
    )
    run(scenario, options=options, clock=clock)


@pytest.mark.parametrize("mode", ["relevant", "important"])
def test_of_recalls_at_once_one_is_counted_in_an_interval(mode):
    clock = Clock()

    async def scenario(memory, retriever):
        await store_two(memory)
        asked = {"user_id": "u", "mode": mode, "include_archived": True}
        for hours in (0, 2, 4):
            clock.now = NOON + hours * HOUR
            others = [MemoryRetriever(memory, retriever.options) for _ in range(4)]
            await asyncio.gather(*(each.recall("q", **asked) for each in [retriever, *others] * 3))
            counted = await accesses(memory)
            assert counted == {"one": 6 + hours // 2, "two": hours // 2}

    options = MemoryRetrieverOptions(access_interval=timedelta(hours=2))
    run(scenario, options=options, clock=clock)


def test_of_recalls_in_threads_one_is_counted_in_an_interval(tmp_path):
    with opened(tmp_path / "a.db") as memory:
        kept = memory.add("one", user_id="u")
        options = MemoryRetrieverOptions(access_interval=timedelta(days=1))
        barrier = threading.Barrier(8)

        def recall():
            retriever = MemoryRetriever(memory, options)
            barrier.wait(30)
            for _ in range(5):
                assert asyncio.run(retriever.recall("one", user_id="u"))

        threads = [threading.Thread(target=recall) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (entry,) = memory.list(user_id="u", filters={"access_count": {"gte": 0}})
        assert (entry.id, entry.access_count) == (kept.id, 1)


def test_a_memory_read_by_its_id_in_between_is_not_counted_again():
    async def scenario(memory, retriever):
        kept = mine("one")
        await memory.store(kept)
        await retriever.recall("one", user_id="u")
        await memory.retrieve(kept.id, user_id="u")
        for _ in range(3):
            await retriever.recall("one", user_id="u")
        assert await accesses(memory) == {"one": 2}

    run(scenario, options=MemoryRetrieverOptions(access_interval=60))


def test_an_interval_may_be_given_in_seconds():
    assert MemoryRetrieverOptions(access_interval=90).access_interval == timedelta(seconds=90)


@pytest.mark.requirement("C067")
def test_only_what_is_returned_counts_as_accessed():
    async def scenario(memory, retriever):
        await memory.store_batch([mine(f"m ~{cosine}") for cosine in (0.9, 0.8, 0.2)])
        await retriever.recall("q", user_id="u", max_results=1)
        assert await counts(memory) == {"m ~0.9": 1, "m ~0.8": 0, "m ~0.2": 0}

    run(scenario)


@pytest.mark.requirement("C068")
def test_archived_memories_count_too_when_they_are_recalled():
    async def scenario(memory, retriever):
        await memory.store(mine("old", status="archived"))
        for count in range(3):
            (hit,) = await retriever.recall("q", user_id="u", include_archived=True)
            assert hit.memory.access_count == count

    run(scenario)


@pytest.mark.requirement("C068")
@every_way
def test_a_recall_does_not_fail_because_accesses_cannot_be_written(tmp_path, way):
    path = tmp_path / "a.db"

    async def scenario(memory, retriever):
        await store_two(memory)
        memory.repository._store._connections.writer.set_busy_timeout(1)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            assert {"one", "two"} <= set(texts(await EVERY_WAY[way](retriever, memory)))
        other.execute("ROLLBACK")
        other.close()
        assert await accesses(memory) == {"one": 7, "two": 2}

    run(scenario, path)


@pytest.mark.requirement("C068")
@every_way
@pytest.mark.parametrize("failure", [StoreBusyError, StoreFullError, StoreError])
@pytest.mark.parametrize("interval", [0, 60])
def test_no_failure_to_write_accesses_fails_a_recall(way, failure, interval, monkeypatch):
    async def scenario(memory, retriever):
        await store_two(memory)
        await EVERY_WAY[way](retriever, memory)

        async def fail():
            raise failure("not now")

        with monkeypatch.context() as patched:
            patched.setattr(memory.repository._store, "write_accesses", fail)
            assert {"one", "two"} <= set(texts(await EVERY_WAY[way](retriever, memory)))

    run(scenario, options=MemoryRetrieverOptions(access_interval=interval))


def test_memories_that_may_only_be_read_are_recalled(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        one = memory.add("one", user_id="u")
        two = memory.add("two", user_id="u")
        memory.link(one.id, two.id, user_id="u")
    with opened(path, read_only=True) as memory:
        tracked = MemoryRetrieverOptions()
        for mode in MODES:
            found = asked(memory, "recall", "q", user_id="u", mode=mode, options=tracked)
            assert len(found) == 2
        found = asked(memory, "recall_linked", one.id, user_id="u", options=tracked)
        assert texts(found) == ["two"]
        assert memory.get(one.id, user_id="u").access_count == 0


@pytest.mark.requirement("C067")
def test_use_is_recorded_by_id():
    async def scenario(memory, retriever):
        one, two = mine("one"), mine("two")
        await memory.store_batch([one, two])
        await retriever.recall("q", user_id="u")
        assert await counts(memory) == {"one": 0, "two": 0}
        await retriever.record_use([one.id, str(one.id), uuid4()], "u")
        await retriever.record_use([], "u")
        assert await counts(memory) == {"one": 1, "two": 0}
        with pytest.raises(InvalidArgumentError):
            await retriever.record_use(str(one.id), "u")

    run(scenario, options=UNTRACKED)


@pytest.mark.requirement("C069")
def test_the_total_is_what_matches_before_the_limit():
    async def scenario(memory, retriever):
        start = mine("start", type="event")
        others = [mine(f"{at} ~0.5") for at in range(6)]
        await memory.store_batch([start, *others, mine("far ~0.1", type="insight")])
        for other in others:
            await memory.link(start.id, other.id, user_id="u")
        found = await by_every_method(retriever, type_filter="fact")
        assert {len(result) for result in found.values()} == {6}
        named = {"user_id": "u", "type_filter": "fact"}
        cut = [await retriever.recall("q", **named, mode=mode, max_results=2) for mode in MODES]
        cut += [
            await retriever.recall_temporal(NOON, NOON, topic, limit=2, **named)
            for topic in (None, "q")
        ]
        cut += [
            await retriever.recall_by_type("fact", "u", 2),
            await retriever.recall_linked(start.id, user_id="u", limit=2),
            await retriever.recall_linked(start.id, user_id="u", limit=2, include_archived=True),
        ]
        assert [(len(result), result.total_matches) for result in cut] == [(2, 6)] * len(cut)

    run(scenario)


# Temporal recall


@pytest.mark.requirement("C070")
def test_a_time_range_has_both_ends_unless_it_is_half_open():
    async def scenario(memory, retriever):
        start, end = NOON - DAY, NOON
        times = {
            "before": start - MICROSECOND,
            "start": start,
            "end": end,
            "after": end + MICROSECOND,
        }
        await memory.store_batch([mine(name, created_at=at) for name, at in times.items()])
        whole = await retriever.recall_temporal(start, end, user_id="u")
        assert texts(whole) == ["end", "start"]
        half = await retriever.recall_temporal(start, end, user_id="u", half_open=True)
        assert texts(half) == ["start"]
        moment = await retriever.recall_temporal(end, end, user_id="u")
        assert texts(moment) == ["end"]
        assert not await retriever.recall_temporal(end, end, user_id="u", half_open=True)

    run(scenario)


@pytest.mark.requirement("C070")
def test_a_range_that_ends_before_it_begins_is_refused():
    async def scenario(_, retriever):
        with pytest.raises(InvalidArgumentError, match="ends before it begins"):
            await retriever.recall_temporal(NOON, NOON - MICROSECOND, user_id="u")
        for wrong in (None, "2026-05-01", 3):
            with pytest.raises(InvalidArgumentError):
                await retriever.recall_temporal(wrong, NOON, user_id="u")
            with pytest.raises(InvalidArgumentError):
                await retriever.recall_temporal(NOON, wrong, user_id="u")

    run(scenario)


@pytest.mark.requirement("C103")
def test_times_of_any_zone_are_understood_and_naive_ones_are_utc():
    async def scenario(memory, retriever):
        await memory.store(mine("a"))
        oslo = NOON.astimezone(timezone(timedelta(hours=2)))
        naive = NOON.replace(tzinfo=None)
        for moment in (oslo, naive):
            assert len(await retriever.recall_temporal(moment, moment, user_id="u")) == 1

    run(scenario)


@pytest.mark.requirement("C070")
def test_a_hundred_are_returned_unless_another_limit_is_given():
    async def scenario(memory, retriever):
        await memory.store_batch([mine(str(at), created_at=NOON - at * HOUR) for at in range(120)])
        found = await retriever.recall_temporal(NOON - 10 * DAY, NOON, user_id="u")
        assert texts(found) == [str(at) for at in range(100)]
        assert found.total_matches == 120
        found = await retriever.recall_temporal(NOON - 10 * DAY, NOON, user_id="u", limit=3)
        assert texts(found) == ["0", "1", "2"]
        for limit in (0, 1001):
            with pytest.raises(InvalidArgumentError):
                await retriever.recall_temporal(NOON, NOON, user_id="u", limit=limit)

    run(scenario)


@pytest.mark.requirement("C070")
def test_a_topic_is_told_in_the_reason_and_does_not_change_the_order():
    async def scenario(memory, retriever):
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

    run(scenario)


@pytest.mark.requirement("C059", "C070")
def test_memories_of_one_moment_come_by_salience_then_id():
    async def scenario(memory, retriever):
        await memory.store_batch(
            [
                mine("x", id=uid(3), importance=0.9),
                mine("x", id=uid(2), importance=0.1),
                mine("x", id=uid(1), importance=0.1),
                mine("x", id=uid(4), importance=0.1, created_at=NOON + HOUR),
            ]
        )
        found = await retriever.recall_temporal(NOON, NOON + HOUR, user_id="u")
        assert ids(found) == [4, 3, 1, 2]

    run(scenario)


# Archiving


@pytest.mark.requirement("C064", "C160")
def test_archiving_leaves_a_memory_out_until_it_is_active_again():
    async def scenario(memory, retriever):
        one, two = mine("one"), mine("two")
        await memory.store_batch([one, two])
        for status, expected in (("archived", ["two"]), ("active", ["one", "two"])) * 2:
            assert await memory.update(one.id, MemoryEntryUpdate(status=status), user_id="u")
            for found in (await by_every_method(retriever)).values():
                assert sorted(texts(found)) == expected
            hits = await memory.search_semantic("q", min_similarity=0, user_id="u")
            assert sorted(hit.entry.content for hit in hits) == expected
            for found in (await by_every_method(retriever, include_archived=True)).values():
                assert sorted(texts(found)) == ["one", "two"]

    run(scenario)


def test_another_memory_on_the_file_sees_what_was_archived(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as one, opened(path) as two:
        kept = one.add("kept", user_id="u")
        for status in ("archived", "active", "archived"):
            update = MemoryEntryUpdate(status=status)
            asyncio.run(one.repository.update(one.scope.narrowed("u"), kept.id, update))
            for memory in (two, one):
                for mode in MODES:
                    found = memory.recall("q", mode=mode, user_id="u")
                    assert texts(found) == ([] if status == "archived" else ["kept"])
                    found = memory.recall("q", mode=mode, user_id="u", include_archived=True)
                    assert [each.memory.status.name.lower() for each in found] == [status]


@pytest.mark.parametrize("first", ["archived", "active"])
def test_what_changes_its_state_between_two_looks_is_found_once(tmp_path, monkeypatch, first):
    then = "active" if first == "archived" else "archived"
    with opened(tmp_path / "a.db") as memory:
        kept = memory.add("kept", user_id="u")
        memory.update(kept.id, status=first, user_id="u")
        repository, looks = memory.repository, []
        look = repository._rank_state

        def change_before_looking(*given):
            looks.append(given)
            if len(looks) == 1:
                memory.update(kept.id, status=then, user_id="u")
            return look(*given)

        monkeypatch.setattr(repository, "_rank_state", change_before_looking)
        found = memory.recall("q", mode="recent", user_id="u", include_archived=True)
        assert [each.memory.status.name.lower() for each in found] == [then]
        assert found.total_matches == 1


@pytest.mark.requirement("C161")
@pytest.mark.parametrize("status", ["superseded", MemoryStatus.SUPERSEDED, 2])
def test_superseded_cannot_be_set_by_hand(status):
    with pytest.raises(InvalidEntryError, match="supersedes="):
        MemoryEntryUpdate(status=status)


# Licenses


@pytest.mark.requirement("C075", "C136", "C137")
def test_recall_begins_with_writer_pro():
    calls = (
        lambda retriever, _: retriever.recall("q", user_id="u"),
        lambda retriever, _: retriever.recall("", user_id="u", mode="recent"),
        lambda retriever, _: retriever.recall_temporal(NOON, NOON, "q", user_id="u"),
        lambda retriever, _: retriever.recall_by_type("fact", "u"),
        lambda retriever, one: retriever.recall_linked(one.id, user_id="u"),
        lambda retriever, _: retriever.find_contradictions("q", "u"),
        lambda retriever, one: retriever.salience(one.id, "u", query="q"),
        lambda retriever, one: retriever.reinforce(one.id, "repeated_access", "u"),
        lambda retriever, one: retriever.record_use([one.id], "u"),
    )

    async def refused(_, retriever):
        for call in calls:
            with pytest.raises(LicenseRestrictionError, match="WriterPro") as caught:
                await call(retriever, entry())
            assert caught.value.feature_key == "Agents.Memory.Retriever"
            assert caught.value.required_tier == "WriterPro"
            assert caught.value.current_tier == "Core"

    async def allowed(memory, retriever):
        one = mine("one")
        await memory.store(one)
        for call in calls:
            await call(retriever, one)

    run(refused, license=DocumentedLicenses(LicenseTier.CORE))
    for tier in (LicenseTier.WRITER_PRO, LicenseTier.TEAMS, LicenseTier.ENTERPRISE, None):
        run(allowed, license=None if tier is None else DocumentedLicenses(tier))


# Defaults, curves and logs


@pytest.mark.requirement("C139", "C140")
def test_recall_keeps_its_own_documented_defaults():
    assert (RECALL.weights.relevance, RECALL.weights.salience) == (0.6, 0.4)
    options = MemoryRetrieverOptions()
    assert (options.similarity_weight, options.salience_weight) == (0.6, 0.4)
    assert options.salience == Salience(0.25, 0.20, 0.25, 7.0, 100)

    async def scenario(memory, retriever):
        one = mine("one", created_at=NOON - 300 * DAY, last_accessed_at=NOON - 7 * DAY)
        await memory.store(one)
        (hit,) = await retriever.recall("", user_id="u", mode="recent")
        assert hit.score == pytest.approx(0.5)
        assert (await retriever.salience(one.id, "u")).recency == 0.5

    run(scenario, options=UNTRACKED)


def test_what_is_to_come_is_as_new_as_now():
    async def scenario(memory, retriever):
        await memory.store(mine("later", created_at=NOON + 30 * DAY))
        (hit,) = await retriever.recall("", user_id="u", mode="recent")
        assert hit.score == 1.0

    run(scenario)


@pytest.mark.requirement("C079", "C028", "C199")
@pytest.mark.parametrize("log_content", [True, False])
@pytest.mark.parametrize("log_queries", [True, False])
def test_queries_are_logged_only_where_memory_and_retriever_allow_it(
    caplog, log_content, log_queries
):
    caplog.set_level(logging.DEBUG)

    async def scenario(memory, retriever):
        await memory.store(mine("one"))
        for mode in MODES:
            await retriever.recall("a secret question", user_id="u", mode=mode)
        await retriever.recall_temporal(NOON, NOON, "a secret topic", user_id="u")
        await retriever.find_contradictions("a secret statement", "u")

    run(scenario, log_queries=log_queries, log_content=log_content)
    shows = log_queries and log_content
    assert ("secret question" in caplog.text) == shows
    if not shows:
        assert "secret" not in caplog.text
        assert "for query '<17 characters>' in " in caplog.text


@pytest.mark.requirement("C079")
def test_the_front_door_logs_no_query_unless_the_memory_shows_contents(caplog):
    caplog.set_level(logging.DEBUG)
    for shows in (False, True):
        with opened(log_content=shows) as memory:
            memory.recall("a secret question", mode="recent")
        assert ("secret" in caplog.text) == shows


def test_the_front_door_recalls_as_the_retriever_does():
    with opened() as memory:
        for at in range(4):
            memory.add(f"{at} ~0.{5 + at}", user_id="u", type=at % 2, importance=at / 4,
                       session_id=f"s{at % 2}")  # fmt: skip
        for mode in MODES:
            named = {"user_id": "u", "mode": mode}
            expected = asked(memory, "recall", "q", **named, type_filter="fact")
            found = memory.recall("q", **named, type="fact")
            assert texts(found) == texts(expected)
            assert memory.recall("q", **named, limit=1).total_matches == 4
            in_session = memory.recall("q", **named, session_id="s1")
            assert sorted(texts(in_session)) == ["1 ~0.6", "3 ~0.8"]
        assert memory.recall("q").total_matches == 0
        assert memory.recall("q", all_users=True).total_matches == 4


# Many at once


def write_and_unwrite(memory, start, user):
    scope = memory.scope.narrowed(user)
    for turn in range(40):
        new = memory.add(f"{user} {turn}", user_id=user)
        memory.link(start.id, new.id, strength=turn / 40, user_id=user)
        if turn % 4 == 1:
            memory.delete(new.id, user_id=user, permanent=turn % 8 == 1)
        elif turn % 4 == 2:
            update = MemoryEntryUpdate(status="archived")
            asyncio.run(memory.repository.update(scope, new.id, update))
        elif turn % 4 == 3:
            memory.unlink(start.id, new.id, user_id=user)


async def recall_all_the_while(memory, start, user, stop):
    retriever = MemoryRetriever(memory)
    while not stop.is_set():
        for archived in (False, True):
            flags = {"user_id": user, "include_archived": archived}
            found = [
                await retriever.recall("q", **flags, mode=mode, max_results=50) for mode in MODES
            ]
            found.append(await retriever.recall_linked(start.id, **flags, depth=3))
            for result in found:
                check(result, user, archived=archived)


def check(result, user, *, archived):
    """Fail if a result has another user's memory, one twice, or one that it may not have."""
    found = [each.memory for each in result]
    assert {each.user_id for each in found} <= {user}
    assert len({each.id for each in found}) == len(found)
    allowed = {MemoryStatus.ACTIVE, MemoryStatus.ARCHIVED} if archived else {MemoryStatus.ACTIVE}
    assert {each.status for each in found} <= allowed


@pytest.mark.usefixtures("quiet_threads")
def test_recalls_beside_writers_see_only_their_users_living_memories(tmp_path):
    path, users = tmp_path / "a.db", ("u", "v")
    with opened(path, clock=lambda: datetime.now(UTC)) as memory:
        start = {user: memory.add(f"{user} start", user_id=user) for user in users}
        stop = threading.Event()

        def write_all():
            writers = [lambda user=user: write_and_unwrite(memory, start[user], user)
                       for user in users]  # fmt: skip
            try:
                run_together(*writers)
            finally:
                stop.set()

        def recall_of(user):
            return lambda: asyncio.run(recall_all_the_while(memory, start[user], user, stop))

        run_together(write_all, *map(recall_of, users))
        for user in users:
            left = memory.recall("q", user_id=user, limit=100)
            assert set(texts(left)) == {
                f"{user} start",
                *(f"{user} {turn}" for turn in range(40) if turn % 4 in {0, 3}),
            }
            linked = asked(memory, "recall_linked", start[user].id, user_id=user)
            assert texts(linked) == [f"{user} {turn}" for turn in range(36, -1, -4)]


@pytest.mark.parametrize(
    ("method", "arguments", "named"),
    [
        ("recall_temporal", (NOON, NOON, 5), {"user_id": "u"}),
        ("recall_temporal", (NOON, NOON), {"user_id": "u", "half_open": "no"}),
        ("salience", (UUID(int=1), "u"), {"query": 5}),
    ],
)
def test_what_is_no_text_or_flag_is_refused(method, arguments, named):
    async def scenario(_, retriever):
        with pytest.raises(MnemicError, match=r"must be"):
            await getattr(retriever, method)(*arguments, **named)

    run(scenario)


@pytest.mark.parametrize("interval", [1e30, timedelta.max])
def test_an_interval_of_accesses_may_be_longer_than_all_time(interval):
    async def scenario(memory, retriever):
        await memory.store(mine("tea"))
        for _ in range(2):
            await retriever.recall("", mode="recent", user_id="u")
        assert await counts(memory) == {"tea": 1}

    run(scenario, options=MemoryRetrieverOptions(access_interval=interval))


# What cannot be used


class GivingJudge:
    def __init__(self, given):
        self.given = given

    async def judge(self, _statement, _others):
        return self.given


@pytest.mark.parametrize(
    "given", [None, 7, "no", [], [None], [0.9], [Judgement(math.nan)], [Judgement(2.0)]]
)
def test_a_judge_that_gives_no_judgements_is_told_so(given):
    async def main():
        async with await AsyncMemory.open(":memory:", embedder=WordEmbedder()) as memory:
            await memory.add("tea", user_id="u")
            retriever = MemoryRetriever(memory, judge=GivingJudge(given))
            with pytest.raises(MnemicError):
                await retriever.find_contradictions("tea", user_id="u")

    asyncio.run(main())


@pytest.mark.parametrize("wrong", ["\ud800", "a\0b", 3])
def test_what_is_no_text_is_refused_wherever_one_is_asked(wrong):
    async def scenario(memory, retriever):
        one = mine("one")
        await memory.store(one)
        for call in (
            lambda: retriever.recall(wrong, user_id="u"),
            lambda: retriever.recall(wrong, user_id="u", mode="recent"),
            lambda: retriever.recall_temporal(NOON, NOON, wrong, user_id="u"),
            lambda: retriever.find_contradictions(wrong, user_id="u"),
            lambda: retriever.salience(one.id, "u", query=wrong),
        ):
            with pytest.raises(InvalidArgumentError):
                await call()

    run(scenario)


def test_options_of_another_type_are_refused():
    async def scenario(memory, retriever):
        one = mine("one")
        await memory.store(one)
        for call in (
            lambda: retriever.salience(one.id, "u", weights=3),
            lambda: retriever.salience(one.id, "u", options=3),
            lambda: retriever.reinforce(one.id, "repeated_access", "u", options=3),
        ):
            with pytest.raises(InvalidArgumentError, match="got 3"):
                await call()
        with pytest.raises(InvalidArgumentError, match="got 3"):
            MemoryRetriever(memory, 3)

    run(scenario)
    with pytest.raises(InvalidArgumentError, match="boosts"):
        SalienceOptions(boosts=[1])
