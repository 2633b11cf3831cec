"""Records of a context window: items, options and results."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.records import NamedFields, NumberedEnum, Record, Redacted
from mnemic.reporting.description import must_be

MAX_ITEMS = 1000
SEPARATOR = "\n\n---\n\n"
RESERVE_TOKENS = 1000
MAX_RESERVE_SHARE = 4  # a quarter, so that a small window is not all reserve


class ContextItemType(NumberedEnum, noun="type"):
    """Type of an item and its place: lower numbers come first."""

    SYSTEM_PROMPT = "system_prompt", 0
    INSTRUCTION = "instruction", 1
    RETRIEVED_DOCUMENT = "retrieved_document", 2
    WORKING_MEMORY = "working_memory", 3
    TOOL_RESULT = "tool_result", 4
    USER_MESSAGE = "user_message", 5
    ASSISTANT_MESSAGE = "assistant_message", 6
    OTHER = "other", 99

    @property
    def is_history(self) -> bool:
        """Whether it is a turn of the conversation."""
        return self in (ContextItemType.USER_MESSAGE, ContextItemType.ASSISTANT_MESSAGE)

    @property
    def role(self) -> str:
        """Role of the item's message if the item has none.

        Only the system prompt and instructions have the role "system"; text from elsewhere, such as
        documents and results of tools, does not get that authority by being retrieved.
        """
        if self <= ContextItemType.INSTRUCTION:
            return "system"
        return "assistant" if self is ContextItemType.ASSISTANT_MESSAGE else "user"


class CompactionStrategy(NumberedEnum, noun="strategy"):
    """Eviction order of a compaction; docs/explain/context.md has the order of each strategy.

    A license policy may restrict SUMMARIZE and SELECTIVE.
    """

    REMOVE_OLDEST = "remove_oldest", 0
    REMOVE_LOW_PRIORITY = "remove_low_priority", 1
    SUMMARIZE = "summarize", 2
    SELECTIVE = "selective", 3

    @property
    def is_advanced(self) -> bool:
        """Whether a license must include it."""
        return self >= CompactionStrategy.SUMMARIZE


def percent(field: str, value: object, *, minimum: int = 0) -> int:
    """Return `value` if it is an int from `minimum` to 100."""
    checked = validation.whole(field, value, minimum=minimum)
    if checked > 100:  # noqa: PLR2004 - per cent
        raise InvalidArgumentError(f"{field} must be from {minimum} to 100, got {checked}")
    return checked


class ContextItem(Redacted, frozen=True, kw_only=True, metaclass=NamedFields):
    """One piece of a context. Construction checks every field.

    Attributes:
        content: The text, not blank, at most 10 MB of UTF-8.
        type: Type of the item; a name or number of `ContextItemType` is accepted too.
        id: Unique in its window; empty if the window is to assign one.
        priority: From 0 to 100; a higher one is evicted later and stands earlier among its type.
        token_count: Number of tokens; 0 if the window is to count.
        pinned: Whether compaction and `clear` keep it.
        added_at: Time of addition, in UTC (a naive time is of the system's zone); None if the
            window is to set it.
        source_ref: Source of the item, such as a memory's id.
        role: Role of its message; None for that of its type.
        metadata: JSON values.

    Raises:
        InvalidEntryError: If a field is missing, of the wrong type or out of range.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"content", "metadata"})

    content: str
    type: ContextItemType
    id: str = ""
    priority: int = 50
    token_count: int = 0
    pinned: bool = False
    added_at: datetime | None = None
    source_ref: str | None = None
    role: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every field and convert it to its stored form."""
        for field, default, check in _ITEM_RULES:
            given = getattr(self, field)
            if given is not default:
                checked = check(given)
                if checked is not given:
                    force_setattr(self, field, checked)

    def with_changes(self, **changes: object) -> Self:
        """Return this item with other values of fields, given in their stored form."""
        changed: Self = _copied(self)
        for field, value in changes.items():
            force_setattr(changed, field, value)
        return changed

    @property
    def is_protected(self) -> bool:
        """Whether compaction keeps it: pinned items and the system prompt."""
        return self.pinned or self.type is ContextItemType.SYSTEM_PROMPT


_copied = methodcaller("__copy__")  # copy.copy() takes twice as long to find it
_REQUIRED = object()
_ITEM_RULES: tuple[tuple[str, object, Callable[[object], object]], ...] = (
    ("content", _REQUIRED, validation.content),
    ("type", _REQUIRED, ContextItemType.parse),
    ("id", "", partial(validation.name, "id")),
    ("priority", 50, partial(percent, "priority")),
    ("token_count", 0, partial(validation.whole, "token_count")),
    ("pinned", False, partial(validation.flag, "pinned")),
    ("added_at", None, partial(validation.time, "added_at")),
    ("source_ref", None, partial(validation.name, "source_ref")),
    ("role", None, partial(validation.name, "role")),
    ("metadata", _REQUIRED, validation.metadata),
)
"""Each field with its default, which needs no check, and its check."""


class ItemFields(TypedDict, total=False):
    """Fields of an item besides its content and type."""

    id: str
    priority: int
    token_count: int
    pinned: bool
    added_at: datetime | None
    source_ref: str | None
    role: str | None
    metadata: dict[str, Any]


class AddOutcome(Enum):
    """Outcome of `ContextWindow.try_add`."""

    ADDED = "added"
    """The item was added."""
    REFRESHED = "refreshed"
    """Its source or id was present; the priority of the present item was raised to the new one."""
    PRESENT = "present"
    """Its source or id was present, with that priority or a higher one."""
    DOES_NOT_FIT = "does not fit"
    """There are too few free tokens for it, or 1000 items; a smaller one may still fit."""


class AddResult(Record, frozen=True):
    """Result of `ContextWindow.try_add`; true if the item was added.

    Attributes:
        outcome: The outcome.
        item: The item in the window, new or present before; None if it does not fit.
        tokens_added: Increase of the window's tokens.
    """

    outcome: AddOutcome
    item: ContextItem | None
    tokens_added: int

    def __bool__(self) -> bool:
        return self.outcome is AddOutcome.ADDED


class BuildContextOptions(Record, frozen=True, kw_only=True, metaclass=NamedFields):
    """Options of building a context.

    Attributes:
        max_history: Maximum number of turns of the conversation, the newest; pinned ones are not
            counted.
        limit: The same, under the name that it has everywhere; one of both can be given.
        separator: Text between two items.
        reserve_tokens: Tokens of the window kept free for the answer, fewer than the window has;
            None is 1000, but at most a quarter of the window.
        types: Only items of these types; None is all.

    Raises:
        InvalidEntryError: If a field is of the wrong type or out of range.
    """

    _aliases: ClassVar[Mapping[str, str]] = {"limit": "max_history"}

    max_history: int = 10
    if TYPE_CHECKING:
        limit: int = 10
    else:

        @property
        def limit(self) -> int:
            """The maximum number of turns of the conversation."""
            return self.max_history

    separator: str = SEPARATOR
    reserve_tokens: int | None = None
    types: tuple[ContextItemType, ...] | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        validation.whole("max_history", self.max_history)
        validation.text("separator", self.separator)
        validation.optional_whole("reserve_tokens", self.reserve_tokens)
        if self.types is not None:
            types = tuple(map(ContextItemType.parse, validation.items("types", self.types)))
            force_setattr(self, "types", types)

    def budget(self, max_tokens: int) -> int:
        """Return the number of tokens available to a built context.

        Raises:
            InvalidArgumentError: If the reserve leaves none.
        """
        reserve = self.reserve_tokens
        if reserve is None:
            reserve = min(RESERVE_TOKENS, max_tokens // MAX_RESERVE_SHARE)
        if reserve >= max_tokens:
            raise InvalidArgumentError(
                f"reserve_tokens must be less than the window's {max_tokens}, got {reserve}"
            )
        return max_tokens - reserve


class BuiltContext(Redacted, frozen=True, kw_only=True):
    """A context as one text; `str()` of it is the text.

    Attributes:
        text: The contents with separators between them.
        items: The used items, in the order of the text.
        left_out: Items that did not fit or were too old, in the window's order.
        token_count: Tokens of the text, separators included.
        budget: Tokens available. Protected items alone may exceed it.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"text"})

    text: str
    items: tuple[ContextItem, ...]
    left_out: tuple[ContextItem, ...]
    token_count: int
    budget: int

    def __str__(self) -> str:
        return self.text


class ContextSnapshot(Record, frozen=True, kw_only=True, metaclass=NamedFields):
    """State of a window at one moment. `msgspec.json` converts it to JSON and back.

    Attributes:
        agent_id: Agent of the window.
        max_tokens: Size of the window.
        items: As stored, in the order they were added.
        taken_at: Time of the snapshot.

    Raises:
        InvalidEntryError: If a field is of the wrong type or out of range.
        InvalidArgumentError: If an item is not in its stored form, or two have one id.
    """

    agent_id: str
    max_tokens: int
    items: tuple[ContextItem, ...]
    taken_at: datetime

    def __post_init__(self) -> None:
        """Check every field, so that one from a file can be trusted."""
        validation.name("agent_id", self.agent_id)
        validation.whole("max_tokens", self.max_tokens, minimum=1)
        force_setattr(self, "taken_at", validation.time("taken_at", self.taken_at))
        items = tuple(validation.items("items", self.items))
        force_setattr(self, "items", items)
        for at, item in enumerate(items):
            if not isinstance(item, ContextItem) or not item.id or item.added_at is None:
                raise must_be(f"items[{at}]", "a ContextItem with id and added_at", item)
        if len({item.id for item in items}) < len(items):
            raise InvalidArgumentError("items must have ids of their own, got one twice")

    @property
    def token_count(self) -> int:
        """Sum of the tokens of all items."""
        return sum(item.token_count for item in self.items)


class ContextWindowStats(Record, frozen=True, kw_only=True):
    """Statistics of a window.

    Attributes:
        agent_id: Agent of the window.
        max_tokens: Size of the window.
        current_tokens: Tokens of its items.
        peak_tokens: Maximum of `current_tokens` so far.
        usage_percent: current_tokens ÷ max_tokens · 100.
        item_count: Number of items.
        pinned_count: Number of pinned items.
        items_by_type: Number of items of each type, by the type's number.
        tokens_by_type: The same for tokens.
        compactions: Number of compactions that removed items.
        items_compacted: Number of items removed or summarised.
    """

    agent_id: str
    max_tokens: int
    current_tokens: int
    peak_tokens: int
    usage_percent: float
    item_count: int
    pinned_count: int
    items_by_type: dict[ContextItemType, int]
    tokens_by_type: dict[ContextItemType, int]
    compactions: int
    items_compacted: int
