"""A context window: items for a language model's prompt, within a budget of tokens."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Unpack

from mnemic.context.compaction import (
    Compaction,
    ItemMaker,
    ItemStore,
    in_order,
    known_id,
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
from mnemic.errors import ContextWindowFullError, InvalidArgumentError
from mnemic.licensing import CONTEXT_WINDOW_ADVANCED, LicensePolicy, Need, checked_policy
from mnemic.model import validation
from mnemic.model.ids import UuidFactory
from mnemic.model.timestamps import checked_clock
from mnemic.protocols import Clock, IdFactory, Summarizer, TokenCounter, system_clock
from mnemic.reporting.description import must_be
from mnemic.reporting.near_names import names_arguments
from mnemic.threads.locks import Lock


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


def check_snapshot(snapshot: object, agent_id: str) -> None:
    """Raise if it is no snapshot, another agent's, or has too many items."""
    snapshot = validation.of_kind("snapshot", ContextSnapshot, "a ContextSnapshot", snapshot)
    if snapshot.agent_id != agent_id:
        raise InvalidArgumentError(
            f"snapshot is of agent {snapshot.agent_id!r}, the window of {agent_id!r}"
        )
    if len(snapshot.items) > MAX_ITEMS:
        raise InvalidArgumentError(
            f"snapshot must hold at most {MAX_ITEMS} items, got {len(snapshot.items)}"
        )


COMPACTION_THRESHOLD = 85
COMPACTION_TARGET = 70
"""Per cent of the window: start of compaction, and the target of `compact`."""


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
        size = validation.whole("max_tokens", max_tokens, minimum=1)
        agent = validation.name("agent_id", agent_id)
        count = count_of(counter)
        threshold = percent("compaction_threshold", compaction_threshold, minimum=1)
        policy, now = checked_policy(license), checked_clock(clock)
        maker = ItemMaker(now, UuidFactory() if id_factory is None else id_factory, count)
        if summarizer is not None and not callable(summarizer):
            raise must_be("summarizer", "callable", summarizer)
        self._allowed = partial(_allowed, policy, has_summarizer=summarizer is not None)
        self._strategy = self._allowed(compaction_strategy)
        self._lock = Lock()
        self._items = Compaction(agent, size, threshold, maker, summarizer, self._lock)

    def __repr__(self) -> str:
        items, tokens = len(self._items.store), self._items.store.tokens
        noun = "item" if items == 1 else "items"
        size = f"{items} {noun}, {tokens} of {self._items.max_tokens} tokens"
        return f"ContextWindow({size}, agent {self._items.agent_id!r})"

    @property
    def agent_id(self) -> str:
        """Agent of the window."""
        return self._items.agent_id

    @property
    def max_tokens(self) -> int:
        """Size of the window in tokens."""
        return self._items.max_tokens

    @property
    def current_tokens(self) -> int:
        """Sum of its items' token counts."""
        return self._items.store.tokens

    @property
    def available_tokens(self) -> int:
        """Tokens not in use; some of them only after compaction."""
        return self._items.max_tokens - self._items.store.tokens

    @property
    def free_tokens(self) -> int:
        """Tokens available to `try_add`: up to the threshold of compaction; never below 0."""
        return self._items.free_tokens

    @property
    def usage_percent(self) -> float:
        """current_tokens ÷ max_tokens · 100."""
        return self._items.store.tokens / self._items.max_tokens * 100

    @property
    def compaction_threshold(self) -> int:
        """Per cent of the window above which `add` compacts."""
        return self._items.threshold

    @property
    def compaction_strategy(self) -> CompactionStrategy:
        """Eviction order of compaction in `add`."""
        return self._strategy

    @property
    def item_count(self) -> int:
        """Number of items, at most 1000."""
        return len(self._items.store)

    def __len__(self) -> int:
        return len(self._items.store)

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
        timed = self._items.maker.timed(given_item(item, type, fields))
        return self._items.add(self._items.maker.counted(timed), self._strategy)

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
        given = [self._items.maker.counted(self._items.maker.timed(item)) for item in listed]
        ids = Counter(item.id for item in given)
        for item in given:
            if ids[item.id] > 1 or self._items.store.get(item.id):
                raise known_id(item)
        added = 0
        for item in given:
            with suppress(ContextWindowFullError):
                self._items.add(item, self._strategy)
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
        timed = self._items.maker.timed(given_item(item, type, fields))
        with self._lock:
            present = self._items.store.refreshed(timed)
        if present is not None:
            return present
        counted = self._items.maker.counted(timed)
        with self._lock:
            present = self._items.store.refreshed(counted)
            if present is not None:
                return present
            if counted.token_count > self.free_tokens or len(self._items.store) >= MAX_ITEMS:
                return AddResult(AddOutcome.DOES_NOT_FIT, None, 0)
            self._items.store.put(counted)
        return AddResult(AddOutcome.ADDED, counted, counted.token_count)

    def remove(self, item_id: str) -> bool:
        """Remove an item, also a pinned one, and return whether it was present.

        Args:
            item_id: Its id.
        """
        validation.text("item_id", item_id)
        with self._lock:
            return self._items.store.remove(item_id) is not None

    def get(self, item_id: str) -> ContextItem | None:
        """Return the item with an id, None if there is none.

        Args:
            item_id: The id.
        """
        return self._items.store.get(validation.text("item_id", item_id))

    def update_priority(self, item_id: str, priority: int) -> ContextItem:
        """Set an item's priority, from 0 to 100, and return the item.

        Args:
            item_id: Its id.
            priority: The new priority.

        Raises:
            UnknownIdError: If there is no such item.
            InvalidArgumentError: If the priority is out of range.
        """
        return self._items.change(item_id, priority=percent("priority", priority))

    def pin(self, item_id: str) -> ContextItem:
        """Protect an item from compaction and `clear`, and return it.

        Args:
            item_id: Its id.

        Raises:
            UnknownIdError: If there is no such item.
        """
        return self._items.change(item_id, pinned=True)

    def unpin(self, item_id: str) -> ContextItem:
        """Make an item removable by compaction and `clear` again, and return it.

        Args:
            item_id: Its id.

        Raises:
            UnknownIdError: If there is no such item.
        """
        return self._items.change(item_id, pinned=False)

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
        validation.of_kind("options", BuildContextOptions, "BuildContextOptions", options)
        with self._lock:
            items = self._items.store.in_insertion_order()
        return render(items, options, self._items.max_tokens, self._items.maker.tokens_of)

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
        target = self._items.share(percent("target_percent", target_percent))
        return self._items.to(target, chosen)

    def clear(self, *, include_pinned: bool = False) -> int:
        """Remove all items, pinned ones only if requested, and return their number.

        The system prompt is removed too unless it is pinned.

        Args:
            include_pinned: Whether pinned items go too.
        """
        validation.flag("include_pinned", include_pinned)
        with self._lock:
            before = self._items.store.in_insertion_order()
            kept = [] if include_pinned else [item for item in before if item.pinned]
            self._items.store = ItemStore(kept, self._items.store.peak)
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
            items = self._items.store.in_insertion_order()
        return in_order(item for item in items if wanted is None or item.type is wanted)

    def pinned_items(self) -> list[ContextItem]:
        """Return the pinned items, in order."""
        return [item for item in self.items() if item.pinned]

    def snapshot(self) -> ContextSnapshot:
        """Return the current state of the window, for `restore`."""
        with self._lock:
            items = self._items.store.in_insertion_order()
        return ContextSnapshot(
            agent_id=self._items.agent_id,
            max_tokens=self._items.max_tokens,
            items=tuple(items),
            taken_at=self._items.maker.clock(),
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
        check_snapshot(snapshot, self._items.agent_id)
        items = list(map(self._items.maker.counted, snapshot.items))
        tokens = sum(item.token_count for item in items)
        if tokens > self._items.max_tokens:
            raise ContextWindowFullError(0, self._items.max_tokens, tokens)
        with self._lock:
            self._items.store = ItemStore(items, self._items.store.peak)

    def stats(self) -> ContextWindowStats:
        """Return statistics of the window."""
        with self._lock:
            items, tokens = self._items.store.in_insertion_order(), self._items.store.tokens
            peak = self._items.store.peak
            compactions, compacted = self._items.number, self._items.removed
        items_by_type, tokens_by_type = sums_by_type(items)
        return ContextWindowStats(
            agent_id=self._items.agent_id,
            max_tokens=self._items.max_tokens,
            current_tokens=tokens,
            peak_tokens=peak,
            usage_percent=tokens / self._items.max_tokens * 100,
            item_count=len(items),
            pinned_count=sum(item.pinned for item in items),
            items_by_type=items_by_type,
            tokens_by_type=tokens_by_type,
            compactions=compactions,
            items_compacted=compacted,
        )


def _allowed(
    policy: LicensePolicy | None, given: object, *, has_summarizer: bool
) -> CompactionStrategy:
    """Return a strategy that the license includes, and that the window can follow."""
    strategy = CompactionStrategy.parse(given)
    name = strategy.name.lower()
    if strategy.is_advanced and policy is not None:
        message = f"Compaction by {name} requires a {{tier}} license"
        policy.require(Need(CONTEXT_WINDOW_ADVANCED, message))
    if strategy is CompactionStrategy.SUMMARIZE and not has_summarizer:
        raise InvalidArgumentError(
            f"strategy {name} needs a summarizer, got None; give ContextWindow one"
        )
    return strategy
