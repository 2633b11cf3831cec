"""The items of a window: their order, and items of one source."""

import pytest

from mnemic.context import AddOutcome, ContextItemType
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
