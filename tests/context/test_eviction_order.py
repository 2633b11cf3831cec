"""Compaction of a context window: when it begins, what goes first, and compaction by choice."""

import logging
import pickle

import pytest

from mnemic import errors
from mnemic.context import CompactionStrategy, ContextItem
from mnemic.licensing import DocumentedLicenses, LicenseTier
from tests.support.windows import (
    ASSISTANT,
    INSTRUCTION,
    NOTE,
    OTHER,
    SYSTEM,
    TOOL,
    USER,
    document,
    opened,
    words,
)

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")


# Compaction


def test_a_window_that_is_full_says_so_and_keeps_what_it_has(caplog):
    window = opened(agent_id="aide")
    window.add(words(60), SYSTEM)
    window.add(words(20), USER)
    with (
        caplog.at_level(logging.WARNING, "mnemic.context"),
        pytest.raises(errors.ContextWindowFullError) as caught,
    ):
        window.add(words(41), USER)
    error = caught.value
    assert (error.current_tokens, error.max_tokens, error.requested_tokens) == (80, 100, 41)
    assert caplog.messages == [
        "Context window full for agent aide: current=80, max=100, requested=41"
    ]
    assert window.current_tokens == 80
    assert pickle.loads(pickle.dumps(error)).requested_tokens == 41  # noqa: S301
    assert errors.ContextWindowFullException is errors.ContextWindowFullError


def test_the_thousand_and_first_item_makes_one_go():
    window = opened(10**6)
    for number in range(1000):
        window.add("tea", USER, id=str(number))
    window.add("tea", USER, id="last")
    assert window.item_count == 1000
    assert window.get("0") is None
    assert not window.try_add(document("coffee"))
    assert window.get("1") is not None


def test_a_thousand_pinned_items_leave_no_space():
    window = opened(10**6)
    assert window.add_many(ContextItem(content="x", type=USER, pinned=True) for _ in range(1000))
    with pytest.raises(errors.ContextWindowFullError, match="1000 of 1000000 tokens") as caught:
        window.add("tea", USER)
    assert caught.value.__notes__ == ["it holds 1000 items that must stay, the most it may"]


def test_compaction_takes_a_target_and_a_strategy():
    window = opened()
    for number in range(8):
        window.add(words(10), USER, id=str(number), priority=100 - number)
    assert [item.id for item in window.compact()] == ["7"]
    assert [item.id for item in window.compact("remove_oldest", target_percent=60)] == ["0"]
    assert window.compact() == []
    for wrong in (-1, 101, 70.0):
        with pytest.raises(errors.InvalidArgumentError, match="target_percent must be"):
            window.compact(target_percent=wrong)
    with pytest.raises(errors.InvalidArgumentError, match="strategy 'all' is unknown"):
        window.compact("all")


@pytest.mark.parametrize("strategy", [CompactionStrategy.SUMMARIZE, CompactionStrategy.SELECTIVE])
def test_advanced_strategies_need_the_tier_teams(strategy):
    options = {"license": DocumentedLicenses(LicenseTier.WRITER_PRO), "summarizer": " ".join}
    with pytest.raises(errors.LicenseRestrictionError, match="requires a Teams license") as caught:
        opened(compaction_strategy=strategy, **options)
    assert caught.value.feature_key == "Agents.Memory.ContextWindow.Advanced"
    assert caught.value.required_tier == "Teams"
    with pytest.raises(errors.LicenseRestrictionError):
        opened(**options).compact(strategy)
    opened(
        compaction_strategy=strategy,
        license=DocumentedLicenses(LicenseTier.TEAMS),
        summarizer=" ".join,
    )


# Selective compaction


def selected(*items):
    window = opened(10**6, compaction_strategy=CompactionStrategy.SELECTIVE)
    for item in items:
        window.add(item)
    return [item.id for item in window.compact(target_percent=0)]


def test_selective_compaction_begins_with_what_is_nearly_said_twice():
    said = "The ferry to the island leaves from the pier of the old harbour at ten past every hour"
    other = "The ferry to the mainland leaves from the pier behind the new market at noon"
    order = selected(
        ContextItem(content=said, type=USER, id="old"),
        ContextItem(content="An unrelated remark", type=TOOL, id="tool", priority=0),
        ContextItem(content=other, type=USER, id="other"),
        ContextItem(content=f"{said} x!", type=USER, id="new"),
    )
    assert order == ["old", "tool", "new", "other"]


def test_of_two_that_say_the_same_the_weightier_and_pinned_one_stays():
    said = "The ferry leaves at ten past every hour"
    order = selected(
        ContextItem(content=said, type=USER, id="high", priority=60),
        ContextItem(content=said, type=USER, id="low", priority=40),
        ContextItem(content="Tea is in the kitchen", type=USER, id="one", priority=99),
        ContextItem(content="Tea is in the kitchen", type=NOTE, id="pinned", pinned=True),
    )
    assert sorted(order[:2]) == ["low", "one"]
    assert order[2:] == ["high"]


def test_of_several_that_say_the_same_the_least_goes_first_and_pinned_ones_never():
    said = "The ferry leaves at ten past every hour"
    for pinned, gone in ((False, ["10", "40", "else", "90"]), (True, ["else"])):
        same = (
            ContextItem(content=said, type=USER, id=str(at), priority=at, pinned=pinned)
            for at in (40, 90, 10)
        )
        assert selected(*same, document("Something else", id="else")) == gone


def test_texts_that_differ_in_a_number_do_not_say_the_same():
    tool = ContextItem(content="An unrelated remark", type=TOOL, id="tool")
    for second, order in (("10:45", ["tool", "first", "second"]), ("10:05", ["first", "tool"])):
        said = "The ferry to the island leaves from the pier of the old harbour at"
        first = document(f"{said} 10:05", id="first")
        assert (
            selected(first, tool, document(f"{said} {second}", id="second"))[: len(order)] == order
        )


def test_the_rest_goes_by_type_then_by_priority_for_each_token():
    order = selected(
        ContextItem(content="an instruction", type=INSTRUCTION, id="instruction"),
        ContextItem(content="a question", type=USER, id="question"),
        ContextItem(content="an answer", type=ASSISTANT, id="answer"),
        ContextItem(content="some note", type=NOTE, id="note"),
        ContextItem(content="whatever else", type=OTHER, id="other"),
        document("four words of weight", id="heavy", priority=80),
        document("two words", id="light", priority=50),
        ContextItem(content="a tool says", type=TOOL, id="tool"),
    )
    assert order == [
        "tool", "heavy", "light", "other", "note", "answer", "question", "instruction",
    ]  # fmt: skip
