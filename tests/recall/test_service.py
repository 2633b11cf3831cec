"""Licences, options, doors and concurrency of recall."""

import asyncio
import math
import threading
import typing
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from mnemic import AsyncMemory
from mnemic.contradictions import Judgement
from mnemic.errors import InvalidArgumentError, LicenseRestrictionError, MnemicError
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.model import MemoryRetrieverOptions, RecallOptions, Salience, SalienceOptions
from mnemic.model.recall import AllRecallFields, RecallFields, RecallTypeFields
from mnemic.recall import AsyncMemoryRetriever, MemoryRetriever
from tests.support.clock import DAY, NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry
from tests.support.recall import (
    MODES,
    UNTRACKED,
    asked,
    counts,
    mine,
    opened,
    recalling,
    run,
    texts,
)
from tests.support.threads import run_together

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
    options = MemoryRetrieverOptions()
    assert (options.similarity_weight, options.salience_weight) == (0.6, 0.4)
    assert options.salience == Salience(0.25, 0.20, 0.25, 7.0, 100)

    async def scenario(memory, retriever):
        assert retriever.options is UNTRACKED
        one = mine("one", created_at=NOON - 300 * DAY, last_accessed_at=NOON - 7 * DAY)
        await memory.store(one)
        (hit,) = await retriever.recall("", user_id="u", mode="recent")
        assert hit.score == pytest.approx(0.5)
        assert (await retriever.salience(one.id, "u")).recency == 0.5

    run(scenario, options=UNTRACKED)


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
    for turn in range(40):
        new = memory.add(f"{user} {turn}", user_id=user)
        memory.link(start.id, new.id, strength=turn / 40, user_id=user)
        if turn % 4 == 1:
            memory.delete(new.id, user_id=user, permanent=turn % 8 == 1)
        elif turn % 4 == 2:
            memory.update(new.id, status="archived", user_id=user)
        elif turn % 4 == 3:
            memory.unlink(start.id, new.id, user_id=user)


def recall_all_the_while(memory, start, user, stop):
    """Fail if a result has another user's memory, one twice, or one that it may not have."""
    retriever = MemoryRetriever(memory)
    while not stop.is_set():
        for archived in (False, True):
            flags = {"user_id": user, "include_archived": archived}
            allowed = {"ACTIVE", "ARCHIVED"} if archived else {"ACTIVE"}
            results = [retriever.recall("q", **flags, mode=mode, max_results=50) for mode in MODES]
            for result in [*results, retriever.recall_linked(start.id, **flags, depth=3)]:
                found = [each.memory for each in result]
                assert {each.user_id for each in found} <= {user}
                assert len({each.id for each in found}) == len(found)
                assert {each.status.name for each in found} <= allowed


@pytest.mark.usefixtures("quiet_threads")
def test_recalls_beside_writers_see_only_their_users_living_memories(path):
    with opened(path, clock=lambda: datetime.now(UTC)) as memory:
        start = {user: memory.add(f"{user} start", user_id=user) for user in ("u", "v")}
        stop = threading.Event()
        writers = [partial(write_and_unwrite, memory, start[user], user) for user in start]

        def write_all():
            try:
                run_together(*writers)
            finally:
                stop.set()

        recalls = [partial(recall_all_the_while, memory, start[user], user, stop) for user in start]
        run_together(write_all, *recalls)
        for user, first in start.items():
            left = memory.recall("q", user_id=user, limit=100)
            turns = (turn for turn in range(40) if turn % 4 in {0, 3})
            assert set(texts(left)) == {f"{user} start", *(f"{user} {turn}" for turn in turns)}
            linked = asked(memory, "recall_linked", first.id, user_id=user)
            assert texts(linked) == [f"{user} {turn}" for turn in range(36, -1, -4)]


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
        async with AsyncMemory(":memory:", embedder=WordEmbedder()) as memory:
            await memory.add("tea", user_id="u")
            retriever = AsyncMemoryRetriever(memory, judge=GivingJudge(given))
            with pytest.raises(MnemicError):
                await retriever.find_contradictions("tea", user_id="u")

    asyncio.run(main())


@pytest.mark.parametrize("wrong", ["\ud800", "a\0b", 3])
@recalling()
async def test_what_is_no_text_is_refused_wherever_one_is_asked(memory, retriever, wrong):
    one = mine("one")
    await memory.store(one)
    for call in (
        lambda: retriever.recall(wrong, user_id="u"),
        lambda: retriever.recall(wrong, user_id="u", mode="recent"),
        lambda: retriever.recall_temporal(NOON, NOON, wrong, user_id="u"),
        lambda: retriever.find_contradictions(wrong, user_id="u"),
        lambda: retriever.salience(one.id, "u", query=wrong),
        lambda: retriever.recall_temporal(NOON, NOON, user_id="u", half_open=wrong),
    ):
        with pytest.raises(InvalidArgumentError):
            await call()


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
            AsyncMemoryRetriever(memory, 3)

    run(scenario)
    with pytest.raises(InvalidArgumentError, match="boosts"):
        SalienceOptions(boosts=[1])


def test_the_keyword_arguments_of_a_recall_are_the_fields_of_its_options():
    everywhere = typing.get_type_hints(RecallTypeFields)
    assert {*typing.get_type_hints(AllRecallFields)} == {*RecallOptions.__struct_fields__, "limit"}
    assert {*typing.get_type_hints(RecallFields)} - {*everywhere} == {"type_filter"}
    named = {"user_id", "max_results", "mode", "type_filter"}
    assert {*RecallOptions.__struct_fields__} - {*everywhere} == named
