"""The context window."""

import json
import threading
from datetime import UTC, timedelta

import msgspec
import pytest

import mnemic
from mnemic.context import (
    AddOutcome,
    BuildContextOptions,
    CompactionStrategy,
    ContextItem,
    ContextItemType,
    ContextSnapshot,
    ContextWindow,
)
from mnemic.errors import (
    ContextWindowFullError,
    InvalidArgumentError,
    UnknownIdError,
)
from tests.support.clock import NOON
from tests.support.windows import (
    ASSISTANT,
    DOCUMENT,
    INSTRUCTION,
    NOTE,
    OTHER,
    SYSTEM,
    TOOL,
    USER,
    Words,
    contents,
    document,
    opened,
    words,
)

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")


# Items


def test_an_item_has_the_documented_defaults():
    item = ContextItem(content="tea", type=USER)
    assert (item.priority, item.token_count, item.pinned) == (50, 0, False)
    assert (item.source_ref, item.role, item.metadata) == (None, None, {})
    assert {kind.name: kind.number for kind in ContextItemType} == {
        "SYSTEM_PROMPT": 0,
        "INSTRUCTION": 1,
        "RETRIEVED_DOCUMENT": 2,
        "WORKING_MEMORY": 3,
        "TOOL_RESULT": 4,
        "USER_MESSAGE": 5,
        "ASSISTANT_MESSAGE": 6,
        "OTHER": 99,
    }
    assert [strategy.name for strategy in CompactionStrategy] == [
        "REMOVE_OLDEST", "REMOVE_LOW_PRIORITY", "SUMMARIZE", "SELECTIVE",
    ]  # fmt: skip


def test_types_are_known_by_number_and_by_name():
    for given in (99, "other", "OTHER", OTHER):
        assert ContextItem(content="tea", type=given).type is OTHER
    assert ContextItem(content="tea", type=5).type is USER


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": " "}, "content cannot be empty"),
        ({"content": None}, "content must be a str, got NoneType"),
        ({"type": 7}, "type 7 is unknown; it is one of system_prompt, instruction"),
        ({"type": True}, "type True is unknown"),
        ({"type": "letter"}, "type 'letter' is unknown"),
        ({"id": "a\n"}, "id holds a control character"),
        ({"priority": 101}, "priority must be from 0 to 100, got 101"),
        ({"priority": -1}, "priority must be at least 0"),
        ({"priority": 50.0}, "priority must be an int, got float"),
        ({"token_count": -1}, "token_count must be at least 0"),
        ({"pinned": 1}, "pinned must be True or False, got 1"),
        ({"added_at": "noon"}, "added_at must be a datetime, got str"),
        ({"source_ref": ""}, "source_ref cannot be empty"),
        ({"role": 3}, "role must be a str, got int"),
        ({"metadata": [1]}, "metadata must be a dict, got list"),
        ({"metadata": {"a": object()}}, r"metadata\['a'\] is a object"),
    ],
)
def test_an_item_says_which_field_is_wrong_and_what_was_wanted(fields, message):
    with pytest.raises(InvalidArgumentError, match=message):
        ContextItem(**{"content": "tea", "type": USER, **fields})


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


def test_a_content_can_be_added_with_its_type_and_fields():
    window = opened()
    item = window.add("tea for two", USER, priority=80, source_ref="m1", pinned=True)
    assert (item.type, item.priority, item.source_ref, item.pinned) == (USER, 80, "m1", True)


def test_the_arguments_of_add_go_together():
    window = opened()
    with pytest.raises(InvalidArgumentError, match="type must be named with a content"):
        window.add("tea")
    item = ContextItem(content="tea", type=USER)
    with pytest.raises(InvalidArgumentError, match="type, priority must be in the item"):
        window.add(item, USER, priority=3)
    with pytest.raises(InvalidArgumentError, match="item must be a ContextItem or a str, got 3"):
        window.add(3)
    assert len(window) == 0


def test_an_id_is_in_a_window_once():
    window = opened()
    window.add("tea", USER, id="a")
    with pytest.raises(InvalidArgumentError, match="id 'a' is in the window already"):
        window.add("coffee", USER, id="a")
    assert contents(window.items()) == ["tea"]


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


# Order


def test_items_stand_by_type_then_priority_then_age():
    window = opened(1000, compaction_threshold=100)
    for kind in (OTHER, ASSISTANT, USER, TOOL, NOTE, DOCUMENT, INSTRUCTION, SYSTEM):
        for priority in (20, 80, 80):
            window.add(f"{kind.name} {priority} {len(window)}", kind, priority=priority)
    items = window.items()
    assert [item.type for item in items] == [kind for kind in ContextItemType for _ in range(3)]
    for at in range(0, len(items), 3):
        assert [item.priority for item in items[at : at + 3]] == [80, 80, 20]
        assert items[at].added_at < items[at + 1].added_at
    assert window.items(NOTE) == [item for item in items if item.type is NOTE]


def test_equal_items_stand_side_by_side_in_the_order_they_were_added():
    window = opened(clock=lambda: NOON)
    for letter in "zkabq":
        window.add(letter, USER)
    assert contents(window.items()) == list("zkabq")
    window.pin(window.items()[1].id)
    window.update_priority(window.items()[3].id, 50)
    assert contents(window.items()) == list("zkabq")


# Augmentation from free tokens


def test_try_add_uses_free_tokens_only_and_never_removes():
    window = opened()
    window.add(words(60), USER, priority=0)
    assert window.free_tokens == 25
    assert window.try_add(document(words(25), "m1", priority=90))
    assert (window.free_tokens, window.available_tokens) == (0, 15)
    refused = window.try_add(document("x", "m2", priority=100))
    assert not refused
    assert (refused.outcome, refused.item, refused.tokens_added) == (AddOutcome.NO_ROOM, None, 0)
    assert window.item_count == 2
    assert window.stats().compactions == 0


def test_with_500_tokens_available_only_the_fitting_of_ten_memories_are_added():
    window = opened(1000, compaction_threshold=100)
    window.add(words(500), USER)
    sizes = [200, 400, 150, 180, 90, 70, 60, 50, 10, 5]
    results = [window.try_add(document(words(n), f"m{n}")) for n in sizes]
    assert [n for n, result in zip(sizes, results, strict=True) if result] == [200, 150, 90, 60]
    assert sum(result.tokens_added for result in results) == 500
    assert window.current_tokens == 1000


def test_a_memory_is_not_added_twice():
    window = opened()
    first = window.try_add(document("tea", "m1", priority=60))
    again = window.try_add(document("tea again", "m1", priority=60))
    assert (first.outcome, again.outcome) == (AddOutcome.ADDED, AddOutcome.PRESENT)
    assert again.item == first.item
    assert again.tokens_added == 0
    assert contents(window.items()) == ["tea"]


def test_a_memory_that_matters_more_now_gets_the_higher_priority():
    window = opened()
    window.try_add(document("tea", "m1", priority=60))
    assert window.try_add(document("tea", "m1", priority=70)).outcome is AddOutcome.REFRESHED
    lower = window.try_add(document("tea", "m1", priority=55))
    assert (lower.outcome, lower.item.priority) == (AddOutcome.PRESENT, 70)
    assert [item.priority for item in window.items()] == [70]


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


def test_of_several_items_of_one_source_the_first_in_order_is_refreshed():
    window = opened()
    window.add("part one", DOCUMENT, source_ref="m", priority=20)
    window.add("part two", DOCUMENT, source_ref="m", priority=30)
    assert window.try_add(document("x", "m", priority=40)).item.content == "part two"
    assert [item.priority for item in window.items()] == [40, 20]


def test_a_source_that_was_removed_may_come_again():
    window = opened()
    item = window.try_add(document("tea", "m1")).item
    assert window.remove(item.id)
    assert window.try_add(document("tea", "m1"))
    window.clear()
    assert window.try_add(document("tea", "m1"))


def test_an_id_that_is_there_counts_as_present():
    window = opened()
    window.add("tea", USER, id="a")
    assert window.try_add("coffee", USER, id="a").outcome is AddOutcome.PRESENT


def test_what_try_add_took_never_makes_the_next_add_fail():
    window = opened()
    window.add(words(30), SYSTEM)
    for number in range(20):
        window.try_add(document(words(5), f"m{number}", priority=90))
    window.add(words(50), USER)
    assert window.current_tokens <= 100


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


def test_clear_leaves_pinned_items_unless_told_otherwise():
    window = opened()
    window.add("prompt", SYSTEM)
    window.add("pinned", USER, pinned=True)
    window.add("tea", USER)
    assert window.clear() == 2
    assert contents(window.items()) == ["pinned"]
    assert window.current_tokens == 1
    assert window.clear(include_pinned=True) == 1
    assert (window.current_tokens, window.item_count) == (0, 0)


def test_an_empty_window_is_still_a_window():
    assert opened()
    assert len(opened()) == 0


# Snapshots and statistics


def test_a_snapshot_brings_everything_back_also_through_json():
    window = opened(clock=lambda: NOON)
    for letter in "zka":
        window.add(letter, USER, source_ref=letter, metadata={"of": [1, letter]})
    window.add("pinned", DOCUMENT, pinned=True, priority=9)
    taken = window.snapshot()
    before = window.items()
    assert (taken.agent_id, taken.max_tokens, taken.token_count) == ("default", 100, 4)
    window.clear(include_pinned=True)
    window.add("something else", USER)
    kept = msgspec.json.decode(msgspec.json.encode(taken), type=ContextSnapshot)
    assert kept == taken
    window.restore(kept)
    assert window.items() == before
    assert window.current_tokens == 4
    assert window.try_add(document("k", "k")).outcome is AddOutcome.PRESENT


def test_a_snapshot_is_restored_for_its_agent_alone():
    taken = opened(agent_id="aide").snapshot()
    window = opened(agent_id="other")
    window.add("tea", USER)
    with pytest.raises(InvalidArgumentError, match="of agent 'aide', the window of 'other'"):
        window.restore(taken)
    with pytest.raises(InvalidArgumentError, match="must be a ContextSnapshot"):
        window.restore(None)
    assert contents(window.items()) == ["tea"]


def test_a_snapshot_that_does_not_fit_changes_nothing():
    large = opened(200)
    large.add(words(120), USER)
    window = opened(100)
    window.add("tea", USER)
    with pytest.raises(ContextWindowFullError):
        window.restore(large.snapshot())
    taken = window.snapshot()
    many = tuple(ContextItem(content="x", type=USER, id=str(n), added_at=NOON) for n in range(1001))
    with pytest.raises(InvalidArgumentError, match="at most 1000 items, got 1001"):
        window.restore(msgspec.structs.replace(taken, items=many))
    assert contents(window.items()) == ["tea"]


def test_a_damaged_snapshot_is_refused_where_it_is_read():
    window = opened()
    window.add("tea", USER, id="a")
    plain = json.loads(msgspec.json.encode(window.snapshot()))
    for damage in (
        {"items": plain["items"] * 2},
        {"items": [{**plain["items"][0], "id": ""}]},
        {"items": [{**plain["items"][0], "priority": 500}]},
        {"items": [{**plain["items"][0], "added_at": None}]},
        {"agent_id": ""},
        {"max_tokens": 0},
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps({**plain, **damage}), type=ContextSnapshot)


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
    item = window.add("tea for two", USER)
    assert item.added_at.tzinfo is UTC


def test_a_low_threshold_compacts_to_nothing():
    window = opened(compaction_threshold=10)
    window.add(words(10), USER, id="a")
    window.add(words(5), USER, id="b")
    assert [item.id for item in window.items()] == ["b"]


def test_the_names_are_at_the_package():
    assert mnemic.compat.ContextWindow is ContextWindow
    assert mnemic.compat.ContextItem is ContextItem
    assert mnemic.compat.ContextItemType is ContextItemType
    assert mnemic.compat.CompactionStrategy is CompactionStrategy
    assert mnemic.compat.BuildContextOptions is BuildContextOptions


def test_many_threads_never_lose_count():
    window = ContextWindow(2000, counter=Words())
    failures = []

    def work(number):
        try:
            for turn in range(150):
                window.add(words(turn % 9 + 1), USER, priority=turn % 100)
                window.try_add(document(words(3), f"m{turn % 40}", priority=turn % 90))
                if turn % 7 == number:
                    item = window.items()[-1]
                    window.remove(item.id)
                if turn % 11 == number:
                    window.compact(target_percent=30)
                assert window.build().token_count <= 2000
        except Exception as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    items = window.items()
    assert window.current_tokens == sum(item.token_count for item in items) <= 2000
    refs = [item.source_ref for item in items if item.source_ref]
    assert len(refs) == len(set(refs))


def test_summarising_from_many_threads_ends_within_the_window():
    window = ContextWindow(
        100, counter=Words(), compaction_strategy="summarize", summarizer=lambda _: "in short"
    )
    failures = []

    def work():
        try:
            for _ in range(60):
                window.add(words(7), USER)
        except Exception as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert window.current_tokens == sum(item.token_count for item in window.items()) <= 100
