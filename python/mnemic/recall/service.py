"""MemoryRetriever: memories recalled in modes, by time, by type and by links."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from mnemic.contradictions import ContradictionJudge, RuleJudge
from mnemic.description import described, quoted
from mnemic.errors import InvalidArgumentError
from mnemic.model import (
    LinkType,
    MemoryEntry,
    MemoryKind,
    MemoryRecallResult,
    MemoryRetrieverOptions,
    MemoryType,
    RecallMode,
    RecallOptions,
    ReinforcementReason,
    SalienceBreakdown,
    SalienceOptions,
    SalienceWeights,
    Scope,
)
from mnemic.model.recall import parse_types
from mnemic.model.validation import capable, items, time
from mnemic.recall.engine import CONTRADICTION_CONFIDENCE, RecallEngine
from mnemic.repository import Searchable, checked_memory, required_uuid, required_uuids
from mnemic.store import Direction

Options = TypeVar("Options", SalienceWeights, SalienceOptions)


class MemoryRetriever:
    """Recalls one agent's memories in several ways.

    Example:
        >>> retriever = MemoryRetriever(memory)  # doctest: +SKIP
        >>> await retriever.recall("database performance", user_id="alice")  # doctest: +SKIP

    Whose memories is always named: `user_id` has no default, and None is those stored without a
    user. Every memory of the scope is ranked, exactly; salience is derived from times,
    accesses and importance at the moment it is asked for. What is recalled counts as
    accessed, after the answer is made and without holding it up.

    Args:
        memory: A `LongTermMemory`, an `AsyncMemory` or a `Memory`, or a view of one; what a view
            names of the scope holds for every call.
        options: How to rank.
        judge: Tells which memories contradict a text; rules over English, without a network, unless
            given.
        log_queries: Whether logs show queries, cut to 50 characters, where the memory was opened
            with `log_content=True`; otherwise only how long they are.
    """

    def __init__(
        self,
        memory: Searchable,
        options: MemoryRetrieverOptions | None = None,
        *,
        judge: ContradictionJudge | None = None,
        log_queries: bool = True,
    ) -> None:
        memory = checked_memory(memory)
        self._scope = memory.scope
        self._engine = RecallEngine(
            memory.repository,
            MemoryRetrieverOptions() if options is None else options,
            judge=RuleJudge() if judge is None else capable("judge", judge, "judge"),
            log_queries=log_queries,
        )

    @property
    def options(self) -> MemoryRetrieverOptions:
        """How it ranks."""
        return self._engine.options

    async def recall(
        self, query: str, options: RecallOptions | None = None, **fields: Any
    ) -> MemoryRecallResult:
        """Return memories in the order of a mode.

        Relevant: by similarity and salience; score is their weighted mean. Recent, Important and
        Frequent: by last access, salience and number of accesses, whatever the query says, and the
        score is that on a scale from 0 to 1; ties go to the more salient memory, then to the newer
        one, then to the smaller id.

        Args:
            query: What to look for; only relevant recall needs one.
            options: Whose memories, and how.
            **fields: Those of `RecallOptions`, in its place.

        Raises:
            InvalidArgumentError: If relevant recall has no query, if the mode is TEMPORAL,
                or an option is outside its range.
            LicenseRestrictionError: If the tier does not include recall.
            EmbedderRequiredError: If relevant recall has no embedder.
            EmbeddingError: If the embedder fails.
        """
        given = checked_options(options, fields)
        return await self._engine.recall(self._part(given), query, given)

    async def recall_temporal(
        self,
        from_: datetime,
        to: datetime,
        topic_filter: str | None = None,
        *,
        user_id: str | None,
        half_open: bool = False,
        limit: int = 100,
        **fields: Any,
    ) -> MemoryRecallResult:
        """Return memories that came to be in a time range, newest first.

        The score is the salience; with a topic, only memories whose similarity with it reaches the
        floor are returned, and the reason tells how near they are.

        Args:
            from_: From this moment on.
            to: Up to this moment, itself included.
            topic_filter: What they are about; None is anything.
            user_id: Whose; None is those stored without a user.
            half_open: Leave the last moment out.
            limit: How many at most, 1 to 1,000.
            **fields: Others of `RecallOptions`.

        Raises:
            InvalidArgumentError: If the range ends before it begins, or as for `recall`.
        """
        given = checked_options(None, {"user_id": user_id, "max_results": limit, **fields})
        times = time("from_", from_), time("to", to)
        return await self._engine.temporal(
            self._part(given), given, *times, topic_filter, half_open=half_open
        )

    async def recall_by_type(
        self,
        type: MemoryType | MemoryKind | str,  # noqa: A002 - the document's name
        user_id: str | None,
        limit: int = 10,
        **fields: Any,
    ) -> MemoryRecallResult:
        """Return the most salient memories of a type or kind.

        Args:
            type: Such as "preference", or a kind such as "semantic".
            user_id: Whose; None is those stored without a user.
            limit: How many at most, 1 to 1,000.
            **fields: Others of `RecallOptions`.

        Raises:
            InvalidArgumentError: If there is no such type: working memory is never stored.
        """
        parse_types(type)
        given = checked_options(
            None,
            {
                "user_id": user_id,
                "max_results": limit,
                "type_filter": type,
                "mode": RecallMode.IMPORTANT,
                **fields,
            },
        )
        return await self._engine.recall(self._part(given), "", given)

    async def recall_linked(
        self,
        memory_id: UUID | str,
        link_types: Collection[LinkType | str] | None = None,
        *,
        user_id: str | None,
        direction: Direction = "out",
        depth: int = 1,
        limit: int = 100,
        **fields: Any,
    ) -> MemoryRecallResult:
        """Return the memories that links lead to from one, without itself.

        The score is the largest product of the strengths of the links on a path to it; the reason
        names their types. Order: score, then fewest links, then newest, then smallest id. Links to
        other users' memories lead nowhere.

        Args:
            memory_id: Where to begin.
            link_types: Only links of these types; None and an empty list follow all.
            user_id: Whose; None is those stored without a user.
            direction: "out" from it, "in" to it, or "both".
            depth: Most links on a path, 1 to 3.
            limit: How many memories at most, 1 to 1,000.
            **fields: Others of `RecallOptions`; what they leave out is not walked through either.

        Raises:
            EntryNotFoundError: If the user has no such memory.
            InvalidArgumentError: If an argument is outside its range.
        """
        given = checked_options(None, {"user_id": user_id, "max_results": limit, **fields})
        named = [] if link_types is None else items("link_types", link_types)
        kinds = {LinkType.parse(kind) for kind in named} or None
        entry_id = required_uuid(memory_id)
        return await self._engine.linked(
            self._part(given),
            entry_id,
            kinds,
            given,
            direction=checked_direction(direction),
            depth=depth,
        )

    async def find_contradictions(
        self,
        content: str,
        user_id: str | None,
        *,
        limit: int = 10,
        min_confidence: float = CONTRADICTION_CONFIDENCE,
        **fields: Any,
    ) -> MemoryRecallResult:
        """Return memories that a text contradicts, the surest first.

        The memories nearest to the text are judged one by one; the score is the judge's confidence,
        the reason what it goes by. Both ends of links of contradiction at these memories are always
        among them, by how near the memory is and how strong the link.

        Args:
            content: A statement, stored already or not.
            user_id: Whose memories; None is those stored without a user.
            limit: How many at most, 1 to 1,000.
            min_confidence: Judgements below it are left out, 0 to 1.
            **fields: Others of `RecallOptions`.
        """
        given = checked_options(None, {"user_id": user_id, "max_results": limit, **fields})
        return await self._engine.contradictions(
            self._part(given), content, given, min_confidence=min_confidence
        )

    async def salience(
        self,
        memory_id: UUID | str,
        user_id: str | None,
        *,
        query: str | None = None,
        weights: SalienceWeights | None = None,
        options: SalienceOptions | None = None,
    ) -> SalienceBreakdown:
        """Return what a memory's salience is made of now.

        Args:
            memory_id: Which.
            user_id: Whose; None is those stored without a user.
            query: What relevance is measured by; without one, and for a memory that lacks a vector,
                the default counts.
            weights: Of the parts; those of the retriever's `Salience`, with .30 for the relevance,
                unless given.
            options: The scales; those of the retriever's `Salience` unless given.

        Raises:
            EntryNotFoundError: If the user has no such memory.
        """
        return await self._engine.salience(
            self._scope.narrowed(user_id),
            required_uuid(memory_id),
            query,
            _optional("weights", weights, SalienceWeights),
            _optional("options", options, SalienceOptions),
        )

    async def reinforce(
        self,
        memory_id: UUID | str,
        reason: ReinforcementReason | str,
        user_id: str | None,
        *,
        options: SalienceOptions | None = None,
    ) -> MemoryEntry:
        """Raise a memory's importance by what the reason adds, to 1 at most; return it as it is.

        Args:
            memory_id: Which.
            reason: Why; its boost is that of `SalienceOptions.boosts`.
            user_id: Whose; None is those stored without a user.
            options: Other boosts.

        Raises:
            EntryNotFoundError: If the user has no such memory.
        """
        boosts = (_optional("options", options, SalienceOptions) or SalienceOptions()).boosts
        return await self._engine.reinforce(
            self._scope.narrowed(user_id),
            required_uuid(memory_id),
            ReinforcementReason.parse(reason),
            boosts,
        )

    async def record_use(self, memory_ids: Iterable[UUID | str], user_id: str | None) -> None:
        """Count an access of memories that were really used, where recall does not.

        Args:
            memory_ids: Which; unknown ones are passed over.
            user_id: Whose; None is those stored without a user.
        """
        ids = required_uuids("memory_ids", memory_ids)
        await self._engine.record_use(self._scope.narrowed(user_id), ids)

    def _part(self, options: RecallOptions) -> Scope:
        return part_of(self._scope, options)


def _optional(field: str, given: Options | None, kind: type[Options]) -> Options | None:
    if given is not None and not isinstance(given, kind):
        raise InvalidArgumentError(f"{field} must be {kind.__name__}, got {quoted(given)}")
    return given


def part_of(scope: Scope, options: RecallOptions) -> Scope:
    """Return the part of a scope that options name."""
    narrowed = scope.narrowed(options.user_id)
    return narrowed.widened() if options.all_users else narrowed


def checked_options(options: RecallOptions | None, fields: dict[str, Any]) -> RecallOptions:
    """Return the options that were given whole or by their fields."""
    unknown = [name for name in fields if name not in RecallOptions.__struct_fields__]
    if unknown:
        known = ", ".join(RecallOptions.__struct_fields__)
        raise InvalidArgumentError(f"there is no option {quoted(unknown[0])}; there are {known}")
    if options is not None:
        if not isinstance(options, RecallOptions):
            raise InvalidArgumentError(f"options must be RecallOptions, got {described(options)}")
        return msgspec.structs.replace(options, **fields) if fields else options
    if "user_id" not in fields and not fields.get("all_users"):
        raise InvalidArgumentError(
            "user_id must be named: whose memories to recall, None for those stored without a user "
            "(or all_users=True, on purpose)"
        )
    named: dict[str, Any] = {"user_id": None, **fields}
    return RecallOptions(**named)


def checked_direction(given: object) -> Direction:
    """Return a direction that links can be followed in."""
    if given == "out":
        return "out"
    if given == "in":
        return "in"
    if given == "both":
        return "both"
    raise InvalidArgumentError(f"direction must be one of out, in, both, got {quoted(given)}")
