"""Contradictions between memories, as judged and as linked."""

import math
from datetime import timedelta

import pytest

from mnemic import CheckedEntry
from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryEntryUpdate
from tests.support.clock import DAY, NOON
from tests.support.earlier_links import links_between_users
from tests.support.embedders import WordEmbedder
from tests.support.entries import uid
from tests.support.recall import (
    STATUSES,
    UNTRACKED,
    ScriptedJudge,
    ids,
    mine,
    opened,
    recalling,
    run,
    texts,
)

# Contradictions


def contradicting(judged, **given):
    """Return what a scenario with a judge needs."""
    return {"judge": ScriptedJudge(judged), "options": UNTRACKED, **given}


@pytest.mark.requirement("C072")
@recalling(**contradicting({"a ~0.9": 0.6, "b ~0.8": 0.9, "c ~0.7": 0.49, "far ~0.2": 1.0}))
async def test_what_the_judge_is_sure_of_is_returned_the_surest_first(memory, retriever):
    judge = retriever._engine._judge
    await memory.store_batch([mine(text) for text in judge.confidences])
    found = await retriever.find_contradictions("new", "u")
    assert [(each.memory.content, each.score, each.match_reason) for each in found] == [
        ("b ~0.8", 0.9, "as the script says"),
        ("a ~0.9", 0.6, "as the script says"),
    ]
    assert found.total_matches == 2
    assert found.query_time > timedelta()
    ((statement, others),) = judge.asked
    assert statement == "new"
    assert sorted(others) == ["a ~0.9", "b ~0.8", "c ~0.7"]
    sure = await retriever.find_contradictions("new", "u", min_confidence=0.7)
    assert texts(sure) == ["b ~0.8"]
    (most,) = await retriever.find_contradictions("new", "u", limit=1)
    assert most.memory.content == "b ~0.8"
    every = await retriever.find_contradictions("new", "u", min_confidence=0)
    assert every.total_matches == 3


@pytest.mark.requirement("C164")
@recalling(**contradicting({"x": 0.8}))
async def test_equally_sure_contradictions_are_newest_first_then_by_id(memory, retriever):
    for number, time in ((2, NOON - DAY), (1, NOON - DAY), (3, NOON)):
        await memory.store(mine("x", id=uid(number), created_at=time))
    assert ids(await retriever.find_contradictions("new", "u")) == [3, 1, 2]


@pytest.mark.requirement("R260")
@recalling(**contradicting({}))
async def test_twenty_memories_are_judged_at_most(memory, retriever):
    judge = retriever._engine._judge
    await memory.store_batch([mine(f"{at} ~{0.5 + at / 100}") for at in range(30)])
    assert not await retriever.find_contradictions("new", "u")
    ((_, others),) = judge.asked
    assert others == [f"{at} ~{0.5 + at / 100}" for at in range(29, 9, -1)]


@pytest.mark.requirement("C072")
@pytest.mark.parametrize("ends", [("near ~0.8", "other ~0.1"), ("other ~0.1", "near ~0.8")])
@recalling(**contradicting({}))
async def test_linked_pairs_are_always_among_them_whichever_way_they_are_linked(
    memory, retriever, ends
):
    of = {text: mine(text) for text in ("near ~0.8", "other ~0.1", "else ~0.9")}
    await memory.store_batch(list(of.values()))
    await memory.link(of[ends[0]].id, of[ends[1]].id, "contradicts", 0.5, user_id="u")
    await memory.link(of["else ~0.9"].id, of["near ~0.8"].id, "related", 1.0, user_id="u")
    found = await retriever.find_contradictions("new", "u", min_confidence=1.0)
    assert {each.memory.content: each.score for each in found} == pytest.approx(
        {"near ~0.8": 0.4, "other ~0.1": 0.4}, abs=1e-6
    )


@pytest.mark.requirement("C072")
@recalling(**contradicting({"one ~0.8": 0.95, "two ~0.9": 0.6}))
async def test_of_judgement_and_link_the_surer_counts_and_nothing_comes_twice(memory, retriever):
    one, two, three = mine("one ~0.8"), mine("two ~0.9"), mine("three ~0.2")
    await memory.store_batch([one, two, three])
    await memory.link(one.id, two.id, "contradicts", 1.0, user_id="u")
    await memory.link(two.id, three.id, "contradicts", 0.5, user_id="u")
    found = await retriever.find_contradictions("new", "u")
    assert {each.memory.content: each.score for each in found} == pytest.approx(
        {"one ~0.8": 0.95, "two ~0.9": 0.9, "three ~0.2": 0.45}, abs=1e-6
    )
    assert len(found) == found.total_matches == 3


@pytest.mark.requirement("C062", "C072")
@recalling(**contradicting({"hers": 1.0, "mine": 1.0, "nobody's": 1.0}))
async def test_contradictions_of_other_users_stay_with_them(memory, retriever):
    judge = retriever._engine._judge
    one, hers, nobodys = mine("mine"), mine("hers", user_id="v"), mine("nobody's", user_id=None)
    await memory.store_batch([one, hers, nobodys])
    with links_between_users():
        await memory.link(one.id, hers.id, "contradicts", all_users=True)
        await memory.link(nobodys.id, one.id, "contradicts", all_users=True)
    for user, expected in (("u", ["mine"]), ("v", ["hers"]), (None, ["nobody's"]), ("w", [])):
        found = await retriever.find_contradictions("new", user)
        assert texts(found) == expected
        assert found.total_matches == len(expected)
    everyone = await retriever.find_contradictions("new", None, all_users=True)
    assert set(texts(everyone)) == {"mine", "hers", "nobody's"}
    assert ["mine"] in [others for _, others in judge.asked]


@pytest.mark.requirement("C064", "C072")
@recalling(**contradicting({}))
async def test_filters_hold_for_contradictions_linked_ones_too(memory, retriever):
    one = mine("one", project_id="p")
    other = mine("other ~0.1", project_id="q", type="event")
    third = mine("third ~0.1", project_id="p", importance=0.0, created_at=NOON - 70 * DAY)
    await memory.store_batch([one, other, third])
    for end in (other, third):
        await memory.link(one.id, end.id, "contradicts", user_id="u")
    find = retriever.find_contradictions
    assert set(texts(await find("new", "u"))) == {"one", "other ~0.1", "third ~0.1"}
    assert set(texts(await find("new", "u", project_id="p"))) == {"one", "third ~0.1"}
    assert set(texts(await find("new", "u", type_filter="fact"))) == {"one", "third ~0.1"}
    assert set(texts(await find("new", "u", min_salience=0.2))) == {"one", "other ~0.1"}


@pytest.mark.requirement("C064", "C072")
@pytest.mark.parametrize("flag", [{}, {"include_archived": True}, {"include_superseded": True}])
@recalling(**contradicting({}))
async def test_archived_and_superseded_memories_contradict_only_when_asked(memory, retriever, flag):
    of = {name: mine(name) for name in STATUSES}
    ends = {name: mine(f"end of {name} ~0.1") for name in STATUSES}
    await memory.store_batch([*of.values(), *ends.values()])
    for name in STATUSES:
        await memory.link(ends[name].id, of[name].id, "contradicts", user_id="u")
    await memory.update(of["archived"].id, MemoryEntryUpdate(status="archived"), user_id="u")
    await memory.store(mine("newer ~0.1", supersedes=of["superseded"].id))
    asked_for = ["active", *(name.removeprefix("include_") for name in flag)]
    found = await retriever.find_contradictions("new", "u", min_confidence=1.0, **flag)
    assert set(texts(found)) == {*asked_for, *(f"end of {name} ~0.1" for name in asked_for)}


@recalling()
async def test_what_contradicts_nothing_at_all_cannot_be_asked(retriever):
    for content in ("", " ", None, 3):
        with pytest.raises(InvalidArgumentError, match="content"):
            await retriever.find_contradictions(content, "u")
    for confidence in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidArgumentError, match="min_confidence"):
            await retriever.find_contradictions("new", "u", min_confidence=confidence)


@pytest.mark.requirement("C072")
def test_a_brand_new_contradiction_is_found_offline():
    async def scenario(memory, retriever):
        await memory.store_batch([mine("Anna likes coffee"), mine("Anna lives in Oslo")])
        found = await retriever.find_contradictions("Anna does not like coffee", "u")
        assert texts(found) == ["Anna likes coffee"]
        assert found[0].score >= 0.5
        assert found[0].match_reason

    run(scenario, embedder=WordEmbedder())
    run(scenario, embedder=None)


@pytest.mark.requirement("C072")
def test_adding_with_a_check_tells_what_the_new_memory_contradicts():
    with opened(embedder=WordEmbedder()) as memory:
        old = memory.add("Anna likes coffee", user_id="u")
        memory.add("Anna likes coffee", user_id="v")
        memory.add("Anna does not like coffee", user_id="v")
        new = memory.add("Anna does not like coffee", user_id="u", check="contradictions")
        assert isinstance(new, CheckedEntry)
        assert [scored.memory.id for scored in new.contradictions] == [old.id]
        assert memory.get(new.id, user_id="u") == new
        plain = memory.add("Anna does not like coffee", user_id="u")
        assert not isinstance(plain, CheckedEntry)
        calm = memory.add("The ferry leaves at noon", user_id="u", check="contradictions")
        assert calm.contradictions == ()
        with pytest.raises(InvalidArgumentError, match="check"):
            memory.add("x", check="spelling")
        assert memory.count() == 0
        found = memory.contradictions("Anna does not like coffee", user_id="u")
        assert old.id in [scored.memory.id for scored in found]
        view = memory.scoped(user_id="v")
        checked = view.add("Anna hates coffee", check="contradictions")
        assert {scored.memory.user_id for scored in checked.contradictions} <= {"v"}


@pytest.mark.requirement("C072")
def test_a_new_memory_does_not_contradict_itself(monkeypatch):
    judge = ScriptedJudge({"same": 1.0})
    monkeypatch.setattr("mnemic.contradictions.RuleJudge", lambda: judge)
    with opened() as memory:
        first = memory.add("same", user_id="u", check="contradictions")
        assert first.contradictions == ()
        second = memory.add("same", user_id="u", check="contradictions")
        assert [each.memory.id for each in second.contradictions] == [first.id]
        memory.link(second.id, first.id, "contradicts", user_id="u")
        third = memory.add("same", user_id="u", check="contradictions")
        assert {each.memory.id for each in third.contradictions} == {first.id, second.id}


def test_a_memory_that_was_there_already_does_not_contradict_itself_by_its_links(monkeypatch):
    monkeypatch.setattr("mnemic.contradictions.RuleJudge", lambda: ScriptedJudge({}))
    with opened() as memory:
        first, second = (memory.add(text, user_id="u") for text in ("first", "second"))
        memory.link(second.id, first.id, "contradicts", user_id="u")
        again = memory.add("first", user_id="u", on_duplicate="skip", check="contradictions")
        assert again.id == first.id
        assert [each.memory.id for each in again.contradictions] == [second.id]


class FailingJudge:
    async def judge(self, statement, others):
        raise OverflowError(f"{len(others)} memories beside {len(statement)} characters")


@pytest.mark.requirement("C072")
def test_a_judge_that_fails_is_heard_and_leaves_nothing_stored(monkeypatch):
    monkeypatch.setattr("mnemic.contradictions.RuleJudge", FailingJudge)
    with opened() as memory:
        assert not memory.contradictions("tea", user_id="u")  # nothing to judge
        memory.add("tea with milk", user_id="u")
        for call in (
            lambda: memory.contradictions("tea without milk", user_id="u"),
            lambda: memory.add("tea without milk", user_id="u", check="contradictions"),
        ):
            with pytest.raises(OverflowError, match="1 memories beside 16 characters"):
                call()
        assert memory.count(user_id="u") == 1


def test_a_new_memory_does_not_contradict_the_one_it_supersedes():
    with opened() as memory:
        old = memory.add("The account has 8 euros", user_id="u")
        new = memory.add(
            "The account has 7 euros", user_id="u", supersedes=old.id, check="contradictions"
        )
        assert new.contradictions == ()
