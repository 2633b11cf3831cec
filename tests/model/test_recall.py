"""Salience and reinforcement."""

import asyncio
import math
from uuid import uuid4

import pytest

from mnemic.errors import EntryNotFoundError, InvalidArgumentError
from mnemic.model import (
    RECENCY_FOCUSED,
    RELEVANCE_FOCUSED,
    MemoryRetrieverOptions,
    ReinforcementReason,
    Salience,
    SalienceOptions,
    SalienceWeights,
)
from mnemic.recall import AsyncMemoryRetriever
from tests.support.clock import DAY, HOUR, NOON, Clock
from tests.support.recall import (
    UNTRACKED,
    asked,
    by_every_method,
    counts,
    mine,
    opened,
    recalling,
    run,
)
from tests.support.threads import run_together

# Salience


@recalling()
async def test_salience_is_broken_down(memory, retriever):
    one = mine("one ~0.6", importance=0.4, access_count=9, last_accessed_at=NOON - 14 * DAY)
    await memory.store(one)
    plain = await retriever.salience(one.id, "u")
    frequency = math.log(10) / math.log(101)
    assert (plain.recency, plain.importance, plain.relevance) == (0.25, 0.4, 0.5)
    assert plain.frequency == pytest.approx(frequency)
    expected = 0.25 * 0.25 + 0.20 * frequency + 0.25 * 0.4 + 0.30 * 0.5
    assert plain.final_score == pytest.approx(expected)
    assert plain.weights == SalienceWeights(0.25, 0.20, 0.25, 0.30)
    near = await retriever.salience(one.id, "u", query="q")
    assert near.relevance == pytest.approx(0.6, abs=1e-6)
    assert near.final_score == pytest.approx(expected + 0.30 * 0.1, abs=1e-6)
    against = await retriever.salience(one.id, "u", query="q ~-1.0")
    assert against.relevance == 0
    blank = await retriever.salience(str(one.id), "u", query="  ")
    assert blank == plain
    assert await counts(memory) == {"one ~0.6": 9}


@pytest.mark.requirement("R224")
@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (RECENCY_FOCUSED, (0.40, 0.15, 0.20, 0.25)),
        (RELEVANCE_FOCUSED, (0.15, 0.15, 0.20, 0.50)),
    ],
)
@recalling()
async def test_there_are_presets_of_salience(memory, retriever, weights, expected):
    one = mine("one ~0.6", importance=0.4, access_count=100)
    await memory.store(one)
    shown = await retriever.salience(one.id, "u", query="q", weights=weights)
    recency, frequency, importance, relevance = expected
    total = recency + frequency + importance * 0.4 + relevance * 0.6
    assert shown.final_score == pytest.approx(total, abs=1e-6)
    assert shown.weights == weights == SalienceWeights(*expected)


@recalling()
async def test_salience_knows_of_accesses_at_once(memory, retriever):
    one = mine("one", access_count=5, created_at=NOON - 7 * DAY)
    await memory.store(one)
    await retriever.recall("q", user_id="u")
    shown = await retriever.salience(one.id, "u")
    assert shown.recency == 1
    assert shown.frequency == pytest.approx(math.log(7) / math.log(101))


@recalling()
async def test_salience_has_other_scales_when_they_are_given(memory, retriever):
    one = mine("one", access_count=2000, created_at=NOON - 10 * DAY, importance=0.0)
    await memory.store(one)
    scales = SalienceOptions(half_life_days=10, frequency_max_count=10, default_relevance=0.0)
    shown = await retriever.salience(one.id, "u", options=scales)
    assert (shown.recency, shown.frequency, shown.relevance) == (0.5, 1.0, 0.0)


@pytest.mark.parametrize(
    "scales",
    [
        Salience(),
        Salience(1.0, 0.5, 0.25, half_life_days=1.5, frequency_max_count=12),
        Salience(0.1, 0.0, 0.3, half_life_days=30),
        Salience(0.0, 0.0, 0.0),
    ],
)
def test_salience_is_what_recall_ranks_by_to_the_last_bit(scales):
    options = MemoryRetrieverOptions(salience=scales, track_access=False)

    async def scenario(memory, retriever):
        for number in range(20):
            one = mine(
                f"memory {number}",
                created_at=NOON - number * number * HOUR,
                last_accessed_at=NOON - number * HOUR if number % 3 else None,
                access_count=number if number % 3 else 0,
                importance=number / 20,
            )
            await memory.store(one)
        found = await retriever.recall("", user_id="u", mode="important", max_results=20)
        assert len(found) == 20
        for hit in found:
            shown = await retriever.salience(hit.memory.id, "u")
            assert shown.static_score == hit.score
            assert shown.final_score == pytest.approx(
                0.7 * hit.score + 0.3 * 0.5 if hit.score or scales.importance else 0.5
            )
            parts = (shown.recency, shown.frequency, shown.importance)
            given = (scales.recency, scales.frequency, scales.importance)
            total = sum(given) or 1.0
            mean = sum(weight * part for weight, part in zip(given, parts, strict=True)) / total
            assert shown.static_score == pytest.approx(mean)

    run(scenario, options=options)


@recalling()
async def test_other_weights_and_scales_leave_what_recall_ranks_by_as_it_is(memory, retriever):
    one = mine("one", created_at=NOON - 10 * DAY, access_count=5)
    await memory.store(one)
    plain = await retriever.salience(one.id, "u")
    scales = SalienceOptions(half_life_days=1, frequency_max_count=5)
    shown = await retriever.salience(one.id, "u", weights=RECENCY_FOCUSED, options=scales)
    assert (shown.recency, shown.frequency) == (0.5**10, 1.0)
    assert shown.static_score == plain.static_score


def test_scales_of_the_retriever_hold_in_every_mode():
    scales = Salience(1.0, 0.0, 0.0, half_life_days=1)

    async def scenario(memory, retriever):
        await memory.store(mine("one", created_at=NOON - 2 * DAY, importance=1.0))
        found = await by_every_method(retriever)
        shown = {method: result[0].score for method, result in found.items()}
        assert shown == pytest.approx(
            {
                "relevant": 0.6 + 0.4 * 0.25,
                "recent": 0.25,
                "important": 0.25,
                "frequent": 0.0,
                "temporal": 0.25,
                "topic": 0.25,
                "type": 0.25,
            },
            abs=1e-6,
        )
        assert not await retriever.recall("q", user_id="u", min_salience=0.3)

    run(scenario, options=MemoryRetrieverOptions(salience=scales, track_access=False))


@pytest.mark.parametrize(
    "make",
    [
        lambda: SalienceWeights(0.25, 0.25, 0.25, 0.30),
        lambda: SalienceWeights(1.0, 0.5, -0.5, 0.0),
        lambda: SalienceOptions(half_life_days=0),
        lambda: SalienceOptions(half_life_days=math.inf),
        lambda: SalienceOptions(frequency_max_count=0),
        lambda: SalienceOptions(default_relevance=1.5),
        lambda: SalienceOptions(boosts={"luck": 0.1}),
        lambda: SalienceOptions(boosts={"user_correction": 2.0}),
    ],
)
def test_weights_and_scales_outside_their_range_are_refused(make):
    with pytest.raises(InvalidArgumentError):
        make()


def test_weights_add_up_to_one_within_a_thousandth():
    assert SalienceWeights(0.2505, 0.20, 0.25, 0.30)


@pytest.mark.requirement("C078")
@pytest.mark.parametrize(
    ("reason", "boost"),
    [
        ("explicit_user_confirmation", 0.3),
        ("successful_application", 0.2),
        ("repeated_access", 0.1),
        (ReinforcementReason.USER_CORRECTION, 0.25),
    ],
)
def test_every_reason_raises_importance_by_its_boost_to_one_at_most(reason, boost):
    clock = Clock()

    async def scenario(memory, retriever):
        one, full = mine("one", importance=0.1), mine("full", importance=0.95)
        await memory.store_batch([one, full])
        clock.now += HOUR
        raised = await retriever.reinforce(one.id, reason, "u")
        assert raised.importance == pytest.approx(0.1 + boost)
        assert raised.updated_at == clock.now
        assert (await retriever.reinforce(full.id, reason, "u")).importance == 1.0
        found = await retriever.recall("", user_id="u", mode="important")
        assert {each.memory.content: each.memory.importance for each in found} == pytest.approx(
            {"one": 0.1 + boost, "full": 1.0}
        )
        more = SalienceOptions(boosts={ReinforcementReason.parse(reason).value: 0.05})
        again = await retriever.reinforce(one.id, reason, "u", options=more)
        assert again.importance == pytest.approx(0.15 + boost)

    run(scenario, clock=clock)


@recalling()
async def test_an_unknown_reason_is_refused(memory, retriever):
    one = mine("one")
    await memory.store(one)
    for reason in ("luck", None, 3):
        with pytest.raises(InvalidArgumentError, match="reason must be one of"):
            await retriever.reinforce(one.id, reason, "u")
    with pytest.raises(EntryNotFoundError):
        await retriever.reinforce(uuid4(), "repeated_access", "u")


def test_what_many_threads_reinforce_adds_up(tmp_path):
    with opened(tmp_path / "a.db") as memory, opened(tmp_path / "a.db") as other:
        one = memory.add("one", user_id="u", importance=0.0)
        small = SalienceOptions(boosts={"repeated_access": 0.01})

        def reinforce(of):
            for _ in range(10):
                asked(of, "reinforce", one.id, "repeated_access", "u", options=UNTRACKED)

        def reinforce_little(of):
            retriever = AsyncMemoryRetriever(of)
            for _ in range(10):
                asyncio.run(retriever.reinforce(one.id, "repeated_access", "u", options=small))

        run_together(*[lambda of=of: reinforce_little(of) for of in (memory, other) * 4])
        assert memory.get(one.id, user_id="u").importance == pytest.approx(0.8)
        run_together(*[lambda of=of: reinforce(of) for of in (memory, other)])
        assert other.get(one.id, user_id="u").importance == 1.0
