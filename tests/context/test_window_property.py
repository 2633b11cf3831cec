"""Random operations on a context window, against a list that is sorted and summed again."""

from datetime import timedelta
from itertools import count

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mnemic.context import (
    AddOutcome,
    BuildContextOptions,
    CompactionStrategy,
    ContextItem,
    ContextItemType,
    ContextWindow,
)
from mnemic.errors import ContextWindowFullError
from tests.support.clock import NOON
from tests.support.tiers import examples
from tests.support.windows import Words, words

SYSTEM = ContextItemType.SYSTEM_PROMPT
MAX_TOKENS = 60
names = st.sampled_from([f"s{number}" for number in range(5)])
kinds = st.sampled_from(list(ContextItemType))
priorities = st.integers(0, 100)
sizes = st.integers(1, 30)
places = st.integers(0, 9)


class WindowAndTwin(RuleBasedStateMachine):
    """A window, and a list of (number, item) that is sorted and summed again at each step."""

    def __init__(self):
        super().__init__()
        self.clock = NOON
        self.numbers = count()
        self.window = ContextWindow(MAX_TOKENS, counter=Words(), clock=lambda: self.clock)
        self.twin = []

    def expected(self, strategy, limit):
        """Remove from the twin, one after the other, until the limit holds."""
        if strategy is CompactionStrategy.REMOVE_OLDEST:
            going = sorted(self.twin, key=lambda one: (one[1].added_at, one[0]))
        else:
            going = sorted(self.twin, key=lambda one: (one[1].priority, one[1].added_at, one[0]))
        removed = []
        for one in going:
            if self.tokens() <= limit:
                break
            if not one[1].pinned and one[1].type is not SYSTEM:
                self.twin.remove(one)
                removed.append(one[1].id)
        return removed

    def tokens(self):
        return sum(item.token_count for _, item in self.twin)

    def at(self, place):
        return self.twin[place % len(self.twin)] if self.twin else None

    def replace(self, one, **changes):
        self.twin[self.twin.index(one)] = (one[0], msgspec.structs.replace(one[1], **changes))

    @rule(kind=kinds, size=sizes, priority=priorities, pinned=st.booleans(),
          ref=st.none() | names, ahead=st.integers(0, 2))  # fmt: skip
    def add(self, *, kind, size, priority, pinned, ref, ahead):
        self.clock += timedelta(seconds=ahead)
        stays = sum(i.token_count for _, i in self.twin if i.pinned or i.type is SYSTEM)
        fields = {"priority": priority, "pinned": pinned, "source_ref": ref}
        if stays + size > MAX_TOKENS:
            with pytest.raises(ContextWindowFullError):
                self.window.add(words(size), kind, **fields)
            return
        stored = self.window.add(words(size), kind, **fields)
        if (self.tokens() + size) * 100 > MAX_TOKENS * 85:
            target = min(MAX_TOKENS * 70 // 100, MAX_TOKENS - size)
            self.expected(CompactionStrategy.REMOVE_LOW_PRIORITY, target)
        self.twin.append((next(self.numbers), stored))

    @rule(size=sizes, priority=priorities, ref=names)
    def try_add(self, size, priority, ref):
        same = [one for one in self.twin if one[1].source_ref == ref]
        fits = (self.tokens() + size) * 100 <= MAX_TOKENS * 85
        before = {item.id for _, item in self.twin}
        result = self.window.try_add(
            ContextItem(
                content=words(size), type="retrieved_document", source_ref=ref, priority=priority
            )
        )
        assert before <= {item.id for item in self.window.items()}
        if same:
            order = {kind: at for at, kind in enumerate(ContextItemType)}
            first = min(
                same,
                key=lambda one: (order[one[1].type], -one[1].priority, one[1].added_at, one[0]),
            )
            raised = priority > first[1].priority
            assert result.outcome is (AddOutcome.REFRESHED if raised else AddOutcome.PRESENT)
            self.replace(first, priority=max(priority, first[1].priority))
        elif fits:
            assert result.outcome is AddOutcome.ADDED
            assert result.tokens_added == size
            self.twin.append((next(self.numbers), result.item))
        else:
            assert (result.outcome, result.item) == (AddOutcome.DOES_NOT_FIT, None)
            assert result.tokens_added == 0

    @rule(place=places)
    def remove(self, place):
        one = self.at(place)
        if one:
            assert self.window.remove(one[1].id)
            self.twin.remove(one)

    @rule(place=places, priority=priorities)
    def update_priority(self, place, priority):
        one = self.at(place)
        if one:
            self.window.update_priority(one[1].id, priority)
            self.replace(one, priority=priority)

    @rule(place=places, pinned=st.booleans())
    def pin(self, place, pinned):
        one = self.at(place)
        if one:
            (self.window.pin if pinned else self.window.unpin)(one[1].id)
            self.replace(one, pinned=pinned)

    @rule(strategy=st.sampled_from(list(CompactionStrategy)[:2]), percent=priorities)
    def compact(self, strategy, percent):
        removed = self.window.compact(strategy, target_percent=percent)
        assert [i.id for i in removed] == self.expected(strategy, MAX_TOKENS * percent // 100)

    @rule(percent=priorities)
    def select(self, percent):
        """Which items go is not the twin's business here, only that nothing protected does."""
        removed = self.window.compact("selective", target_percent=percent)
        assert not any(item.is_protected for item in removed)
        gone = {item.id for item in removed}
        self.twin = [one for one in self.twin if one[1].id not in gone]
        if any(not item.is_protected for _, item in self.twin):
            assert self.tokens() <= MAX_TOKENS * percent // 100

    @rule(pinned=st.booleans())
    def clear(self, pinned):
        self.window.clear(include_pinned=pinned)
        self.twin = [one for one in self.twin if one[1].pinned and not pinned]

    @rule()
    def leave_and_come_back(self):
        taken = self.window.snapshot()
        self.window.clear(include_pinned=True)
        self.window.restore(taken)

    @rule(history=st.integers(0, 4), reserve=st.integers(0, MAX_TOKENS - 1))
    def build(self, history, reserve):
        options = BuildContextOptions(max_history=history, reserve_tokens=reserve)
        context = self.window.build(options)
        ids = {item.id for item in context.items}
        assert len(ids) + len(context.left_out) == len(self.twin)
        assert {i.id for _, i in self.twin if i.pinned or i.type is SYSTEM} <= ids
        assert context.token_count == Words().count(context.text)
        if any(not item.is_protected for item in context.items):
            assert context.token_count <= MAX_TOKENS - reserve
        turns = [item for item in context.items if item.type.is_history]
        assert len([item for item in turns if not item.pinned]) <= history
        assert [item.added_at for item in turns] == sorted(item.added_at for item in turns)

    @invariant()
    def agrees(self):
        ordered = sorted(
            self.twin, key=lambda one: (one[1].type, -one[1].priority, one[1].added_at, one[0])
        )
        assert self.window.items() == [item for _, item in ordered]
        for kind in ContextItemType:
            assert self.window.items(kind) == [one for _, one in ordered if one.type is kind]
        assert self.window.pinned_items() == [one for _, one in ordered if one.pinned]
        assert self.window.free_tokens == max(0, MAX_TOKENS * 85 // 100 - self.tokens())
        assert self.window.available_tokens == MAX_TOKENS - self.tokens()
        assert self.window.current_tokens == self.tokens() <= MAX_TOKENS
        assert self.window.item_count == len(self.twin)


TestWindowAndTwin = WindowAndTwin.TestCase
TestWindowAndTwin.settings = examples(100, least=40)
