"""A context window: items for a language model's prompt, within a budget of tokens."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Unpack

from mnemic._core import duplicates
from mnemic.context.item_store import (
    Capacity,
    ItemStore,
    in_order,
    newest_first,
    oldest_first,
    sums_by_type,
    time_of,
)
from mnemic.context.items import (
    MAX_ITEMS,
    AddOutcome,
    AddResult,
    BuildContextOptions,
    BuiltContext,
    CompactionStrategy,
    ContextItem,
    ContextItemType,
    ContextSnapshot,
    ContextWindowStats,
    ItemFields,
    percent,
)
from mnemic.context.tokens import Count, count_of
from mnemic.errors import ContextWindowFullError, InvalidArgumentError, UnknownIdError
from mnemic.licensing import CONTEXT_WINDOW_ADVANCED, LicensePolicy, Need, checked_policy
from mnemic.model import validation
from mnemic.model.ids import UuidFactory
from mnemic.model.timestamps import checked_clock
from mnemic.protocols import Clock, IdFactory, Summarizer, TokenCounter, system_clock
from mnemic.reporting.description import described, must_be, named
from mnemic.reporting.logs import logger
from mnemic.reporting.near_names import names_arguments
from mnemic.threads.locks import Lock
from mnemic.threads.sync_bridge import run_sync

SUMMARY_SHARE = 5
"""1/n of the capacity is left free: for the summary, whose length is unknown
before, and so that the next item does not need another summary."""

NEAR_DUPLICATE = 0.9
"""Minimum Jaccard similarity of the trigrams of two near duplicates."""

_EVICTION_TYPES = (
    ContextItemType.TOOL_RESULT,
    ContextItemType.RETRIEVED_DOCUMENT,
    ContextItemType.OTHER,
    ContextItemType.WORKING_MEMORY,
    ContextItemType.ASSISTANT_MESSAGE,
    ContextItemType.USER_MESSAGE,
    ContextItemType.INSTRUCTION,
    ContextItemType.SYSTEM_PROMPT,
)
"""Types in order of eviction: those that can be obtained again go first, by another call of a tool
or another retrieval."""


def items_to_evict(
    strategy: CompactionStrategy, store: ItemStore, capacity: Capacity
) -> list[ContextItem]:
    """Return the items to evict to get within a capacity, in order.

    Protected items are never evicted. No more items than necessary are evicted; if all removable
    items are not enough, all are.
    """
    tokens, items, chosen = store.tokens, len(store), list[ContextItem]()
    if store.is_within(capacity):
        return chosen
    for item in _eviction_order(strategy, store.in_insertion_order()):
        chosen.append(item)
        tokens, items = tokens - item.token_count, items - 1
        if tokens <= capacity.tokens and items <= capacity.items:
            break
    return chosen


def to_summarise(store: ItemStore, capacity: Capacity) -> list[ContextItem]:
    """Return the items that one summary replaces, oldest first."""
    free = capacity.tokens - store.protected().tokens
    smaller = Capacity(
        capacity.tokens - free // SUMMARY_SHARE, capacity.items - capacity.items // SUMMARY_SHARE
    )
    return items_to_evict(CompactionStrategy.REMOVE_OLDEST, store, smaller)


def _eviction_order(strategy: CompactionStrategy, items: list[ContextItem]) -> list[ContextItem]:
    """Return all removable items in the order of eviction.

    SELECTIVE begins with near duplicates; then follow the others by type and priority per token.
    """
    removable = oldest_first(item for item in items if not item.is_protected)
    if strategy is CompactionStrategy.REMOVE_LOW_PRIORITY:
        removable.sort(key=lambda item: item.priority)
    if strategy is not CompactionStrategy.SELECTIVE:
        return removable
    best_first = newest_first(items)
    best_first.sort(key=lambda item: (not item.is_protected, -item.priority))
    repeated = list(_near_duplicates(best_first))
    ids = {item.id for item in repeated}
    removable.sort(key=_eviction_place)
    return repeated[::-1] + [item for item in removable if item.id not in ids]


def _eviction_place(item: ContextItem) -> tuple[int, float]:
    return _EVICTION_TYPES.index(item.type), item.priority / max(1, item.token_count)


def _near_duplicates(items: list[ContextItem]) -> Iterator[ContextItem]:
    """Yield removable items that nearly repeat an earlier one that was not yielded."""
    repeated = duplicates([item.content for item in items], NEAR_DUPLICATE)
    for place, item in enumerate(items):
        if repeated[place] != place and not item.is_protected:
            yield item


def render(
    items: list[ContextItem],
    options: BuildContextOptions,
    max_tokens: int,
    count: Count,
) -> BuiltContext:
    """Choose among items, given in the order they were added, and join them.

    Raises:
        InvalidArgumentError: If the reserve leaves nothing.
    """
    budget = options.budget(max_tokens)
    wanted = [item for item in items if options.types is None or item.type in options.types]
    recent = _without_old_history(wanted, options.max_history)
    chosen = _fitting(recent, count(options.separator), budget)
    while True:
        kept = {item.id for item in chosen}
        read = sorted((item for item in wanted if item.id in kept), key=_reading_place)
        text = options.separator.join(item.content for item in read)
        tokens = count(text)
        if tokens <= budget or not chosen or chosen[-1].is_protected:
            break
        chosen.pop()  # a tokenizer may need more for the whole than for its parts
    return BuiltContext(
        text=text,
        items=tuple(read),
        left_out=tuple(in_order(item for item in wanted if item.id not in kept)),
        token_count=tokens,
        budget=budget,
    )


def _without_old_history(items: list[ContextItem], max_history: int) -> list[ContextItem]:
    history = oldest_first(item for item in items if item.type.is_history and not item.pinned)
    old = {item.id for item in history[: max(0, len(history) - max_history)]}
    return [item for item in items if item.id not in old]


def _fitting(items: list[ContextItem], between: int, budget: int) -> list[ContextItem]:
    """Return the items that fit, by weight and newest first; those that do not fit are skipped."""
    chosen, tokens = list[ContextItem](), -between
    for item in sorted(newest_first(items), key=_weight):
        cost = item.token_count + between
        if item.is_protected or tokens + cost <= budget:
            chosen.append(item)
            tokens += cost
    return chosen


def _weight(item: ContextItem) -> tuple[bool, bool, int]:
    is_instruction = item.type is ContextItemType.INSTRUCTION
    return not item.is_protected, not is_instruction, -item.priority


def _reading_place(item: ContextItem) -> tuple[ContextItemType, int, datetime]:
    if item.type.is_history:
        return ContextItemType.USER_MESSAGE, 0, time_of(item)
    return item.type, -item.priority, time_of(item)


def given_item(
    given: ContextItem | str, kind: ContextItemType | None, fields: ItemFields
) -> ContextItem:
    """Return the item that was given, or the one of a content with its fields."""
    if isinstance(given, str):
        if kind is None:
            raise InvalidArgumentError("type must be named with a content, such as 'user_message'")
        return ContextItem(content=given, type=kind, **fields)
    if not isinstance(given, ContextItem):
        raise must_be("item", "a ContextItem or a str", given)
    named = [*(("type",) if kind is not None else ()), *fields]
    if named:
        raise InvalidArgumentError(f"{', '.join(named)} must be in the item, not beside it")
    return given


def known_id(item: ContextItem) -> InvalidArgumentError:
    """Return the error for an item whose id is in the window."""
    return InvalidArgumentError(f"id {item.id!r} is in the window already; ids must differ")


def check_snapshot(snapshot: object, agent_id: str) -> None:
    """Raise if it is no snapshot, another agent's, or has too many items."""
    if not isinstance(snapshot, ContextSnapshot):
        raise must_be("snapshot", "a ContextSnapshot", snapshot)
    if snapshot.agent_id != agent_id:
        raise InvalidArgumentError(
            f"snapshot is of agent {snapshot.agent_id!r}, the window of {agent_id!r}"
        )
    if len(snapshot.items) > MAX_ITEMS:
        raise InvalidArgumentError(
            f"snapshot must hold at most {MAX_ITEMS} items, got {len(snapshot.items)}"
        )


COMPACTION_THRESHOLD = 85
COMPACTION_STEP = 15
COMPACTION_TARGET = 70
"""Per cent of the window: start of compaction, its depth below that in `add`, and the target of
`compact`."""

_log = logger("mnemic.context")


@names_arguments
class ContextWindow:
    """Items for a language model, never more tokens than its window has.

    `add` makes space by compaction, `try_add` never does. Compaction keeps pinned items and the
    system prompt. Items are ordered by type, then priority, highest first, then time, oldest first,
    then order of addition, so the order is total. At most 1000 items.

    Thread-safe; no lock is held while the counter or the summariser runs, and both are called in
    the thread that adds.

    Args:
        max_tokens: Size of the window, at least 1.
        agent_id: Agent of the window.
        counter: Counts the tokens of contents; an estimate by script unless given.
        compaction_threshold: Per cent of the window, from 1 to 100, above which `add` compacts.
        compaction_strategy: Eviction order of compaction.
        license: The host's license policy; with None nothing is checked.
        clock: Gives items their time of addition.
        id_factory: Gives ids to items without one; version 7 unless given.
        summarizer: Summarises several texts, oldest first, in one: a function, plain or a
            coroutine function; SUMMARIZE needs it.

    Raises:
        InvalidArgumentError: If an argument is of the wrong type or out of range, or a summariser
            is missing.
        LicenseRestrictionError: If the license does not include the strategy.
    """

    def __init__(
        self,
        max_tokens: int,
        *,
        agent_id: str = "default",
        counter: TokenCounter | None = None,
        compaction_threshold: int = COMPACTION_THRESHOLD,
        compaction_strategy: CompactionStrategy = CompactionStrategy.REMOVE_LOW_PRIORITY,
        license: LicensePolicy | None = None,  # noqa: A002 - the field's name everywhere
        clock: Clock = system_clock,
        id_factory: IdFactory | None = None,
        summarizer: Summarizer | None = None,
    ) -> None:
        self._max_tokens = validation.whole("max_tokens", max_tokens, minimum=1)
        self._agent_id = validation.name("agent_id", agent_id)
        self._count = count_of(counter)
        self._threshold = percent("compaction_threshold", compaction_threshold, minimum=1)
        self._license = checked_policy(license)
        self._clock = checked_clock(clock)
        self._id_factory = UuidFactory() if id_factory is None else id_factory
        if summarizer is not None and not callable(summarizer):
            raise must_be("summarizer", "callable", summarizer)
        self._summarizer = summarizer
        self._strategy = self._allowed(compaction_strategy)
        self._lock = Lock()
        self._store = ItemStore()
        self._compactions = 0
        self._compacted = 0

    def __repr__(self) -> str:
        items, tokens = len(self._store), self._store.tokens
        noun = "item" if items == 1 else "items"
        size = f"{items} {noun}, {tokens} of {self._max_tokens} tokens"
        return f"ContextWindow({size}, agent {self._agent_id!r})"

    @property
    def agent_id(self) -> str:
        """Agent of the window."""
        return self._agent_id

    @property
    def max_tokens(self) -> int:
        """Size of the window in tokens."""
        return self._max_tokens

    @property
    def current_tokens(self) -> int:
        """Sum of its items' token counts."""
        return self._store.tokens

    @property
    def available_tokens(self) -> int:
        """Tokens not in use; some of them only after compaction."""
        return self._max_tokens - self._store.tokens

    @property
    def free_tokens(self) -> int:
        """Tokens available to `try_add`: up to the threshold of compaction; never below 0."""
        return max(0, self._share(self._threshold) - self._store.tokens)

    @property
    def usage_percent(self) -> float:
        """current_tokens ÷ max_tokens · 100."""
        return self._store.tokens / self._max_tokens * 100

    @property
    def compaction_threshold(self) -> int:
        """Per cent of the window above which `add` compacts."""
        return self._threshold

    @property
    def compaction_strategy(self) -> CompactionStrategy:
        """Eviction order of compaction in `add`."""
        return self._strategy

    @property
    def item_count(self) -> int:
        """Number of items, at most 1000."""
        return len(self._store)

    def __len__(self) -> int:
        return len(self._store)

    def __bool__(self) -> bool:
        return True  # an empty window is true, too

    def add(
        self,
        item: ContextItem | str,
        /,
        type: ContextItemType | None = None,  # noqa: A002 - the field's name
        **fields: Unpack[ItemFields],
    ) -> ContextItem:
        """Add an item; compact first if the threshold would be exceeded.

        Compaction reduces the present items to 15 per cent points below the threshold, or further
        if the item would not fit beside them. Items with the same `source_ref` are all kept.

        Args:
            item: An item, or a content.
            type: With a content: its type.
            **fields: With a content: other fields of `ContextItem`.

        Returns:
            The item as stored: with its id, its time and its token count.

        Raises:
            ContextWindowFullError: If it does not fit even without all removable items; nothing was
                changed.
            InvalidArgumentError: If a field is invalid, or its id is in the window already.
        """
        return self._add(self._counted(self._timed(given_item(item, type, fields))))

    def add_many(self, items: Iterable[ContextItem], /) -> int:
        """Add items one after the other as `add` does; those that do not fit are skipped.

        Args:
            items: The items.

        Returns:
            Number of added items. Later ones may have evicted earlier ones.

        Raises:
            InvalidArgumentError: If an item is invalid, or its id is present or given twice;
                nothing was added.
        """
        listed = validation.items("items", items, ContextItem, "a ContextItem")
        given = [self._counted(self._timed(item)) for item in listed]
        ids = Counter(item.id for item in given)
        for item in given:
            if ids[item.id] > 1 or self._store.get(item.id):
                raise known_id(item)
        added = 0
        for item in given:
            with suppress(ContextWindowFullError):
                self._add(item)
                added += 1
        return added

    def try_add(
        self,
        item: ContextItem | str,
        /,
        type: ContextItemType | None = None,  # noqa: A002 - the field's name
        **fields: Unpack[ItemFields],
    ) -> AddResult:
        """Add an item if it fits into the free tokens; nothing is ever removed for it.

        Free are the tokens below the threshold. An item with the `source_ref` or the id of a
        present item is not added again; a higher priority is transferred to the present item, of
        several to the first in order.

        Args:
            item: As in `add`.
            type: As in `add`.
            **fields: As in `add`.

        Returns:
            The outcome; true if it was added.

        Raises:
            InvalidArgumentError: If a field is invalid.
        """
        timed = self._timed(given_item(item, type, fields))
        with self._lock:
            present = self._store.refreshed(timed)
        if present is not None:
            return present
        counted = self._counted(timed)
        with self._lock:
            present = self._store.refreshed(counted)
            if present is not None:
                return present
            if counted.token_count > self.free_tokens or len(self._store) >= MAX_ITEMS:
                return AddResult(AddOutcome.DOES_NOT_FIT, None, 0)
            self._store.put(counted)
        return AddResult(AddOutcome.ADDED, counted, counted.token_count)

    def remove(self, item_id: str) -> bool:
        """Remove an item, also a pinned one, and return whether it was present.

        Args:
            item_id: Its id.
        """
        validation.text("item_id", item_id)
        with self._lock:
            return self._store.remove(item_id) is not None

    def get(self, item_id: str) -> ContextItem | None:
        """Return the item with an id, None if there is none.

        Args:
            item_id: The id.
        """
        return self._store.get(validation.text("item_id", item_id))

    def update_priority(self, item_id: str, priority: int) -> ContextItem:
        """Set an item's priority, from 0 to 100, and return the item.

        Args:
            item_id: Its id.
            priority: The new priority.

        Raises:
            UnknownIdError: If there is no such item.
            InvalidArgumentError: If the priority is out of range.
        """
        return self._change(item_id, priority=percent("priority", priority))

    def pin(self, item_id: str) -> ContextItem:
        """Protect an item from compaction and `clear`, and return it.

        Args:
            item_id: Its id.

        Raises:
            UnknownIdError: If there is no such item.
        """
        return self._change(item_id, pinned=True)

    def unpin(self, item_id: str) -> ContextItem:
        """Make an item removable by compaction and `clear` again, and return it.

        Args:
            item_id: Its id.

        Raises:
            UnknownIdError: If there is no such item.
        """
        return self._change(item_id, pinned=False)

    def build(self, options: BuildContextOptions | None = None) -> BuiltContext:
        """Join the contents to one text, within the window less its reserve.

        The text has the window's order, but turns of the conversation by time. If not all items
        fit, pinned items and the system prompt are chosen first, then instructions, then the
        highest priority, then the newest; items that do not fit are skipped. The window is not
        changed.

        Args:
            options: Options; the defaults are those of `BuildContextOptions`.

        Raises:
            InvalidArgumentError: If the reserve is not smaller than the window.
        """
        options = BuildContextOptions() if options is None else options
        if not isinstance(options, BuildContextOptions):
            raise must_be("options", "BuildContextOptions", options)
        with self._lock:
            items = self._store.in_insertion_order()
        return render(items, options, self._max_tokens, self._count)

    def build_structured(self, options: BuildContextOptions | None = None) -> list[dict[str, str]]:
        """Return the items chosen by `build` as messages with `role` and `content`, in its order.

        An item without a role of its own is "system" if it is a system prompt or an instruction,
        "assistant" if it is the assistant's, else "user".

        Args:
            options: Which items, and their order; the defaults unless given.

        Raises:
            InvalidArgumentError: If the reserve is not smaller than the window.
        """
        items = self.build(options).items
        return [{"role": item.role or item.type.role, "content": item.content} for item in items]

    def compact(
        self,
        strategy: CompactionStrategy | None = None,
        *,
        target_percent: int = COMPACTION_TARGET,
    ) -> list[ContextItem]:
        """Remove items until at most a part of the window is used, or nothing removable is left.

        Args:
            strategy: Eviction order; the window's own unless given.
            target_percent: Per cent of the window, from 0 to 100.

        Returns:
            The items removed or, by SUMMARIZE, replaced; in that order.

        Raises:
            InvalidArgumentError: If an argument is invalid, or a summariser is missing.
            LicenseRestrictionError: If the license does not include the strategy.
        """
        chosen = self._strategy if strategy is None else self._allowed(strategy)
        target = self._share(percent("target_percent", target_percent))
        return self._compact_to(target, chosen)

    def clear(self, *, include_pinned: bool = False) -> int:
        """Remove all items, pinned ones only if requested, and return their number.

        The system prompt is removed too unless it is pinned.

        Args:
            include_pinned: Whether pinned items go too.
        """
        validation.flag("include_pinned", include_pinned)
        with self._lock:
            before = self._store.in_insertion_order()
            kept = [] if include_pinned else [item for item in before if item.pinned]
            self._store = ItemStore(kept, self._store.peak)
        return len(before) - len(kept)

    def items(
        self,
        type: ContextItemType | None = None,  # noqa: A002 - the field's name
    ) -> list[ContextItem]:
        """Return all items, or those of a type, in order.

        Args:
            type: Only items of this type; None is all.
        """
        wanted = None if type is None else ContextItemType.parse(type)
        with self._lock:
            items = self._store.in_insertion_order()
        return in_order(item for item in items if wanted is None or item.type is wanted)

    def pinned_items(self) -> list[ContextItem]:
        """Return the pinned items, in order."""
        return [item for item in self.items() if item.pinned]

    def snapshot(self) -> ContextSnapshot:
        """Return the current state of the window, for `restore`."""
        with self._lock:
            items = self._store.in_insertion_order()
        return ContextSnapshot(
            agent_id=self._agent_id,
            max_tokens=self._max_tokens,
            items=tuple(items),
            taken_at=self._clock(),
        )

    def restore(self, snapshot: ContextSnapshot, /) -> None:
        """Replace all items by those of a snapshot.

        Args:
            snapshot: A result of `snapshot`.

        Raises:
            InvalidArgumentError: If it is another agent's or has more than 1000 items; nothing was
                changed.
            ContextWindowFullError: If its items do not fit; nothing was changed.
        """
        check_snapshot(snapshot, self._agent_id)
        items = list(map(self._counted, snapshot.items))
        tokens = sum(item.token_count for item in items)
        if tokens > self._max_tokens:
            raise ContextWindowFullError(0, self._max_tokens, tokens)
        with self._lock:
            self._store = ItemStore(items, self._store.peak)

    def stats(self) -> ContextWindowStats:
        """Return statistics of the window."""
        with self._lock:
            items, tokens = self._store.in_insertion_order(), self._store.tokens
            peak = self._store.peak
            compactions, compacted = self._compactions, self._compacted
        items_by_type, tokens_by_type = sums_by_type(items)
        return ContextWindowStats(
            agent_id=self._agent_id,
            max_tokens=self._max_tokens,
            current_tokens=tokens,
            peak_tokens=peak,
            usage_percent=tokens / self._max_tokens * 100,
            item_count=len(items),
            pinned_count=sum(item.pinned for item in items),
            items_by_type=items_by_type,
            tokens_by_type=tokens_by_type,
            compactions=compactions,
            items_compacted=compacted,
        )

    def _share(self, of_hundred: int) -> int:
        return self._max_tokens * of_hundred // 100

    def _allowed(self, given: object) -> CompactionStrategy:
        strategy = CompactionStrategy.parse(given)
        name = strategy.name.lower()
        if strategy.is_advanced and self._license is not None:
            message = f"Compaction by {name} requires a {{tier}} license"
            self._license.require(Need(CONTEXT_WINDOW_ADVANCED, message))
        if strategy is CompactionStrategy.SUMMARIZE and self._summarizer is None:
            raise InvalidArgumentError(
                f"strategy {name} needs a summarizer, got None; give ContextWindow one"
            )
        return strategy

    def _timed(self, item: ContextItem) -> ContextItem:
        """Return an item with its time and its id."""
        if item.id and item.added_at:
            return item
        now = self._clock()
        return item.with_changes(
            id=item.id or str(self._id_factory(now)), added_at=item.added_at or now
        )

    def _counted(self, item: ContextItem) -> ContextItem:
        """Return an item with its token count; a given count is used unchanged."""
        if item.token_count:
            return item
        return item.with_changes(token_count=self._count(item.content))

    def _add(self, item: ContextItem) -> ContextItem:
        try:
            target = self._share(max(0, self._threshold - COMPACTION_STEP))
            self._compact_to(target, self._strategy, item)
        except ContextWindowFullError as error:
            _log.warning(
                "Context window full for agent %s: current=%d, max=%d, requested=%d",
                self._agent_id,
                error.current_tokens,
                error.max_tokens,
                error.requested_tokens,
            )
            raise
        return item

    def _compact_to(
        self, target: int, strategy: CompactionStrategy, new: ContextItem | None = None
    ) -> list[ContextItem]:
        """Compact to a number of tokens, or make space for a new item, which is then added.

        Returns:
            The items removed or replaced.
        """
        removed: list[ContextItem] = []
        while True:
            with self._lock:
                capacity = self._capacity(target, new)
                is_within = self._store.is_within(capacity)
                if is_within or strategy is not CompactionStrategy.SUMMARIZE:
                    if not is_within:
                        removed += self._evict(capacity, strategy)
                    if new is not None:
                        self._store.put(new)
                    return removed
            removed += self._summarise(capacity)

    def _capacity(self, target: int, new: ContextItem | None) -> Capacity:
        """Return the capacity beside a new item; that of the window if all items may stay.

        Raises:
            ContextWindowFullError: If the protected items exceed it.
            InvalidArgumentError: If the item's id is present already.
        """
        store = self._store
        if new is None:
            return Capacity(max(target, store.protected().tokens), MAX_ITEMS)
        wanted = new.token_count
        if store.get(new.id):
            raise known_id(new)
        if wanted <= self.free_tokens and len(store) < MAX_ITEMS:
            return Capacity(self._max_tokens, MAX_ITEMS)
        protected = store.protected()
        if protected.tokens + wanted > self._max_tokens or protected.items >= MAX_ITEMS:
            error = ContextWindowFullError(store.tokens, self._max_tokens, wanted)
            if protected.items >= MAX_ITEMS:
                error.add_note(f"it holds {MAX_ITEMS} items that must stay, the most it may")
            raise error
        tokens = min(target, self._max_tokens - wanted)
        return Capacity(max(tokens, protected.tokens), MAX_ITEMS - 1)

    def _evict(self, capacity: Capacity, strategy: CompactionStrategy) -> list[ContextItem]:
        """Remove items until the rest is within a capacity, and return the removed ones."""
        return self._remove_all(items_to_evict(strategy, self._store, capacity))

    def _remove_all(self, items: list[ContextItem]) -> list[ContextItem]:
        for item in items:
            self._store.remove(item.id)
        self._compactions += bool(items)
        self._compacted += len(items)
        return items

    def _summarise(self, capacity: Capacity) -> list[ContextItem]:
        """Replace old items by one summary, so that all are within a capacity, and return them.

        The summariser runs without the lock. If another thread removed or pinned one of the items
        meanwhile, nothing is done: the summary would not agree with the items.
        """
        with self._lock:
            replaced = to_summarise(self._store, capacity)
        if not replaced:
            return []
        summary = self._summary(replaced)
        with self._lock:
            current = [self._store.get(item.id) for item in replaced]
            if any(item is None or item.pinned for item in current):
                return []
            self._remove_all(replaced)
            beside = Capacity(capacity.tokens - summary.token_count, capacity.items - 1)
            protected = self._store.protected()
            if protected.tokens <= beside.tokens and protected.items <= beside.items:
                replaced += self._evict(beside, CompactionStrategy.REMOVE_OLDEST)
                self._store.put(summary)
                return replaced
        _log.warning(
            "Summary left out for agent %s: %d tokens do not fit",
            self._agent_id,
            summary.token_count,
        )
        return replaced

    def _summary(self, items: list[ContextItem]) -> ContextItem:
        """Return an item with the summary of others, at the place of the newest of them.

        Raises:
            InvalidArgumentError: If the summariser returns no text.
        """
        from mnemic.threads.calling import called  # noqa: PLC0415 - seldom used; imports inspect

        assert self._summarizer is not None  # noqa: S101 - `_allowed` saw to it
        text = run_sync(called(self._summarizer, [item.content for item in items]))
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgumentError(f"summarizer must return a text, got {described(text)}")
        summary = ContextItem(
            content=text,
            type=ContextItemType.WORKING_MEMORY,
            priority=max(item.priority for item in items),
            added_at=time_of(items[-1]),
            metadata={"summary_of": len(items)},
        )
        return self._counted(self._timed(summary))

    def _change(self, item_id: str, **changes: object) -> ContextItem:
        with self._lock:
            item = self._store.get(validation.text("item_id", item_id))
            if item is None:
                raise UnknownIdError(
                    f"no item {named(item_id)} is in the window of {self._agent_id!r}"
                )
            changed = item.with_changes(**changes)
            self._store.put(changed)
        return changed
