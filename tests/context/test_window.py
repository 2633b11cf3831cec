"""The context window."""

from datetime import UTC, timedelta
from functools import partial

import pytest

from mnemic.context import AddOutcome, CompactionStrategy, ContextItem, ContextWindow
from mnemic.errors import InvalidArgumentError, UnknownIdError
from tests.support.clock import NOON
from tests.support.threads import run_together
from tests.support.windows import DOCUMENT, SYSTEM, TOOL, USER, Words, document, opened, words

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")


# Adding


def test_add_returns_the_stored_item_with_its_token_count():
    window = opened()
    given = ContextItem(content="tea for two", type=USER)
    stored = window.add(given)
    assert (stored.token_count, stored.added_at) == (3, NOON + timedelta(seconds=1))
    assert stored.id
    assert given.token_count == 0
    assert window.items() == [stored]
    assert window.get(stored.id) == stored
    assert window.current_tokens == 3


def test_what_an_item_brings_along_is_kept():
    window = opened()
    brought = ContextItem(
        content="tea", type=TOOL, id="call-7", token_count=9, added_at=NOON, pinned=True,
        priority=3, source_ref="s", role="tool", metadata={"a": [1]},
    )  # fmt: skip
    assert window.add(brought) == brought
    assert window.current_tokens == 9


def test_add_many_counts_what_it_added_and_leaves_out_what_does_not_fit():
    window = opened(10)
    window.add(words(4), SYSTEM)
    batch = [ContextItem(content=words(n), type=USER, pinned=True) for n in (7, 2, 8, 3)]
    assert window.add_many(batch) == 2
    assert [item.token_count for item in window.pinned_items()] == [2, 3]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (["tea"], r"items\[0\] must be a ContextItem, got a str of 3 characters"),
        ("tea", "items must be a list, got a str of 3 characters"),
        ([ContextItem(content="x", type=USER, id="a")] * 2, "id 'a' is in the window already"),
        ([ContextItem(content="x", type=USER, id="here")], "id 'here' is in the window already"),
    ],
)
def test_add_many_adds_nothing_if_one_cannot_be_used(batch, message):
    window = opened()
    window.add("tea", USER, id="here")
    with pytest.raises(InvalidArgumentError, match=message):
        window.add_many(batch)
    assert len(window) == 1


# Augmentation from free tokens


def test_a_known_memory_is_refreshed_even_in_a_full_window_and_without_counting():
    counted = []

    class Counting(Words):
        def count(self, text, /):
            counted.append(text)
            return super().count(text)

    window = opened(counter=Counting())
    window.add(words(85), DOCUMENT, source_ref="m1")
    assert window.try_add(document("tea", "m1", priority=90)).outcome is AddOutcome.REFRESHED
    assert counted == [words(85)]


def test_an_id_that_is_there_counts_as_present():
    window = opened()
    window.add("tea", USER, id="a")
    assert window.try_add("coffee", USER, id="a").outcome is AddOutcome.PRESENT


# Changing


def test_priority_can_be_changed_from_0_to_100():
    window = opened()
    item = window.add("tea", USER)
    assert window.update_priority(item.id, 100).priority == 100
    assert window.get(item.id).priority == 100
    for wrong in (-1, 101, "high", 1.5):
        with pytest.raises(InvalidArgumentError, match="priority must be"):
            window.update_priority(item.id, wrong)


def test_an_unknown_id_is_told():
    window = opened()
    assert window.remove("nobody") is False
    assert window.get("nobody") is None
    for change in (window.pin, window.unpin, lambda name: window.update_priority(name, 3)):
        with pytest.raises(UnknownIdError, match="no item 'nobody' is in the window of 'default'"):
            change("nobody")


# Snapshots and statistics


def test_statistics_tell_what_is_held_and_what_became_of_it():
    window = opened()
    window.add(words(30), SYSTEM)
    window.add(words(20), USER, pinned=True)
    window.add(words(20), USER)
    window.add(words(15), DOCUMENT)
    window.add(words(10), DOCUMENT)
    stats = window.stats()
    assert (stats.agent_id, stats.max_tokens, stats.current_tokens) == ("default", 100, 75)
    assert (stats.peak_tokens, stats.usage_percent) == (85, 75.0)
    assert (stats.item_count, stats.pinned_count) == (4, 1)
    assert stats.items_by_type == {SYSTEM: 1, DOCUMENT: 2, USER: 1}
    assert stats.tokens_by_type == {SYSTEM: 30, DOCUMENT: 25, USER: 20}
    assert (stats.compactions, stats.items_compacted) == (1, 1)


# The window itself


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"max_tokens": 1.5}, "max_tokens must be an int"),
        ({"agent_id": ""}, "agent_id cannot be empty"),
        ({"compaction_threshold": 0}, "compaction_threshold must be at least 1"),
        ({"compaction_threshold": 101}, "compaction_threshold must be from 1 to 100"),
        ({"compaction_strategy": 9}, "strategy 9 is unknown"),
        ({"license": "teams"}, "license must be a policy"),
        ({"counter": 5}, "counter must have a method 'count'"),
        ({"summarizer": 5}, "summarizer must be callable"),
    ],
)
def test_a_window_says_which_argument_is_wrong(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        ContextWindow(**{"max_tokens": 100, **arguments})


def test_a_window_has_the_documented_defaults():
    window = ContextWindow(4000)
    assert (window.agent_id, window.max_tokens, window.compaction_threshold) == (
        "default", 4000, 85,
    )  # fmt: skip
    assert window.compaction_strategy is CompactionStrategy.REMOVE_LOW_PRIORITY
    assert (window.current_tokens, window.available_tokens, window.usage_percent) == (0, 4000, 0)
    assert (bool(window), len(window)) == (True, 0)
    item = window.add("tea for two", USER)
    assert item.added_at.tzinfo is UTC


def test_a_low_threshold_compacts_to_nothing():
    window = opened(compaction_threshold=10)
    window.add(words(10), USER, id="a")
    window.add(words(5), USER, id="b")
    assert [item.id for item in window.items()] == ["b"]


def test_many_threads_never_lose_count():
    window = ContextWindow(2000, counter=Words())

    def work(number):
        for turn in range(150):
            window.add(words(turn % 9 + 1), USER, priority=turn % 100)
            window.try_add(document(words(3), f"m{turn % 40}", priority=turn % 90))
            if turn % 7 == number:
                window.remove(window.items()[-1].id)
            if turn % 11 == number:
                window.compact(target_percent=30)
            assert window.build().token_count <= 2000

    run_together(*(partial(work, number) for number in range(6)))
    items = window.items()
    assert window.current_tokens == sum(item.token_count for item in items) <= 2000
    refs = [item.source_ref for item in items if item.source_ref]
    assert len(refs) == len(set(refs))


def test_summarising_from_many_threads_ends_within_the_window():
    window = ContextWindow(
        100, counter=Words(), compaction_strategy="summarize", summarizer=lambda _: "in short"
    )

    def work():
        for _ in range(60):
            window.add(words(7), USER)

    run_together(*[work] * 4)
    assert window.current_tokens == sum(item.token_count for item in window.items()) <= 100
