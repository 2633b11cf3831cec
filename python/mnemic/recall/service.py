"""MemoryRetriever, the public interface of recall."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Unpack
from uuid import UUID

import msgspec

from mnemic.contradictions import ContradictionJudge, RuleJudge
from mnemic.errors import ArgumentMismatchError, InvalidArgumentError
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
from mnemic.model.link import Direction
from mnemic.model.recall import (
    CONTRADICTION_CONFIDENCE,
    AllRecallFields,
    RecallFields,
    RecallTypeFields,
    TimeRange,
    parse_types,
)
from mnemic.model.time_zones import naive_times_in
from mnemic.model.validation import capable, flag, of_kind, time
from mnemic.recall.engine import RecallEngine
from mnemic.records import without_aliases
from mnemic.reporting.near_names import names_arguments, unknown_name
from mnemic.repository import Searchable, checked_memory, required_uuid, required_uuids
from mnemic.threads.sync_bridge import Twin, sync_method


@names_arguments
class RetrieverBase(Twin):
    """The parts of both forms; for the arguments see `MemoryRetriever`."""

    def __init__(
        self,
        memory: Searchable,
        options: MemoryRetrieverOptions | None = None,
        *,
        judge: ContradictionJudge | None = None,
        log_queries: bool = True,
    ) -> None:
        memory = checked_memory(memory)
        self._engine = RecallEngine(
            memory.repository,
            MemoryRetrieverOptions() if options is None else options,
            judge=RuleJudge() if judge is None else capable("judge", judge, "judge"),
            log_queries=log_queries,
        )
        self._scope, self._time_zone = memory.scope, memory.time_zone

    @property
    def options(self) -> MemoryRetrieverOptions:
        """The ranking options."""
        return self._engine.options

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._scope})"

    def _scope_of(self, options: RecallOptions) -> Scope:
        return self._scope.narrowed(options.user_id, all_users=options.all_users)


@names_arguments
class AsyncMemoryRetriever(RetrieverBase):
    """The awaited form of `MemoryRetriever`, for any event loop; for the arguments see there."""

    @property
    def sync(self) -> "MemoryRetriever":
        """The same retriever with plain methods; the same object each time."""
        return self._other_form(MemoryRetriever)

    async def recall(
        self,
        query: str,
        options: RecallOptions | None = None,
        **fields: Unpack[AllRecallFields],
    ) -> MemoryRecallResult:
        """Return memories in the order of a mode.

        Relevant: by similarity and salience; score is their weighted mean. Recent, Important and
        Frequent: by last access, salience and number of accesses, whatever the query, and the score
        is that value on a scale from 0 to 1. Ties: more salient first, then newer, then smaller id.

        Args:
            query: The query; only relevant recall needs one.
            options: User and options.
            **fields: Fields of `RecallOptions`, in place of `options`.

        Raises:
            InvalidArgumentError: If relevant recall has no query, if the mode is TEMPORAL, or an
                option is out of range.
            LicenseRestrictionError: If the license policy does not include recall.
            EmbedderRequiredError: If relevant recall has no embedder.
            EmbeddingError: If the embedder fails.
        """
        given = checked_options(options, fields)
        return await self._engine.recall(self._scope_of(given), query, given)

    async def recall_temporal(
        self,
        from_: datetime,
        to: datetime,
        topic_filter: str | None = None,
        *,
        user_id: str | None,
        half_open: bool = False,
        limit: int = 100,
        **fields: Unpack[RecallFields],
    ) -> MemoryRecallResult:
        """Return memories created in a time range, newest first.

        The score is the salience; with a topic, only memories with at least the minimum similarity
        to it are returned, and the reason contains the similarity.

        Args:
            from_: Begin of the range.
            to: End of the range, inclusive.
            topic_filter: Topic of the memories; None is any.
            user_id: The user; None is the memories without a user.
            half_open: Whether to exclude the end.
            limit: Maximum number of results, 1 to 1,000.
            **fields: Other fields of `RecallOptions`.

        Raises:
            InvalidArgumentError: If the range ends before it begins, or an option is out of range.
        """
        given = _options(user_id, limit, fields)
        given = msgspec.structs.replace(given, mode=RecallMode.TEMPORAL)
        topic = "" if topic_filter is None else topic_filter
        with naive_times_in(self._time_zone):
            begin, end = time("from_", from_), time("to", to)
        times = TimeRange(begin, end, includes_end=not flag("half_open", half_open))
        return await self._engine.recall(self._scope_of(given), topic, given, times)

    async def recall_by_type(
        self,
        type: MemoryType | MemoryKind | str,  # noqa: A002 - the document's name
        user_id: str | None,
        limit: int = 10,
        **fields: Unpack[RecallTypeFields],
    ) -> MemoryRecallResult:
        """Return the most salient memories of a type or kind.

        Args:
            type: A type such as "preference", or a kind such as "semantic".
            user_id: The user; None is the memories without a user.
            limit: Maximum number of results, 1 to 1,000.
            **fields: Other fields of `RecallOptions`.

        Raises:
            InvalidArgumentError: If there is no such type: working memory is never stored.
        """
        parse_types(type)
        named = {"type_filter": type, "mode": RecallMode.IMPORTANT, **fields}
        given = _options(user_id, limit, named)
        return await self._engine.recall(self._scope_of(given), "", given)

    async def recall_linked(
        self,
        memory_id: UUID | str,
        link_types: Collection[LinkType | str] | None = None,
        *,
        user_id: str | None,
        direction: Direction = "out",
        depth: int = 1,
        limit: int = 100,
        **fields: Unpack[RecallFields],
    ) -> MemoryRecallResult:
        """Return the memories reached by links from one, without itself.

        The score is the largest product of the strengths of the links on a path; the reason names
        their types. Order: score, then fewest links, then newest, then smallest id. Links to other
        users' memories are not followed.

        Args:
            memory_id: Id of the first memory.
            link_types: Only links of these types; None and an empty list follow all.
            user_id: The user; None is the memories without a user.
            direction: "out" from it, "in" to it, or "both".
            depth: Maximum number of links on a path, 1 to 3.
            limit: Maximum number of results, 1 to 1,000.
            **fields: Other fields of `RecallOptions`; memories that they exclude are not traversed
                either.

        Raises:
            EntryNotFoundError: If the user has no such memory.
            InvalidArgumentError: If an argument is out of range.
        """
        given = _options(user_id, limit, fields)
        entry_id = required_uuid(memory_id)
        return await self._engine.linked(
            self._scope_of(given), entry_id, link_types, given, direction=direction, depth=depth
        )

    async def find_contradictions(
        self,
        content: str,
        user_id: str | None,
        *,
        limit: int = 10,
        min_confidence: float = CONTRADICTION_CONFIDENCE,
        **fields: Unpack[RecallFields],
    ) -> MemoryRecallResult:
        """Return memories that a text contradicts, highest confidence first.

        The memories most similar to the text are judged one by one; the score is the judge's
        confidence, the reason its evidence. Both ends of links of contradiction at these memories
        are always included, scored by the memory's similarity and the strength of the link.

        Args:
            content: A statement, stored already or not.
            user_id: The user; None is the memories without a user.
            limit: Maximum number of results, 1 to 1,000.
            min_confidence: Judgements with a lower confidence are omitted, 0 to 1.
            **fields: Other fields of `RecallOptions`.
        """
        given = _options(user_id, limit, fields)
        return await self._engine.contradictions(
            self._scope_of(given), content, given, min_confidence=min_confidence
        )

    async def salience(
        self,
        memory_id: UUID | str,
        user_id: str | None,
        *,
        query: str | None = None,
        weights: SalienceWeights | None = None,
        options: SalienceOptions | None = None,
        all_users: bool = False,
    ) -> SalienceBreakdown:
        """Return the parts of a memory's current salience.

        Args:
            memory_id: Id of the memory.
            user_id: The user; None is the memories without a user.
            query: The query of the relevance; without one, and for a memory without a vector, the
                default relevance is used.
            weights: Weights of the parts; those of the retriever's `Salience`, with .30 for the
                relevance, unless given.
            options: The scales; those of the retriever's `Salience` unless given.
            all_users: Whether to find it among all users; then `user_id` is None.

        Raises:
            EntryNotFoundError: If the user has no such memory.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        return await self._engine.salience(scope, required_uuid(memory_id), query, weights, options)

    async def reinforce(
        self,
        memory_id: UUID | str,
        reason: ReinforcementReason | str,
        user_id: str | None,
        *,
        options: SalienceOptions | None = None,
        all_users: bool = False,
    ) -> MemoryEntry:
        """Raise a memory's importance by the boost of a reason, to at most 1; return the memory.

        Args:
            memory_id: Id of the memory.
            reason: The reason; its boost is that of `SalienceOptions.boosts`.
            user_id: The user; None is the memories without a user.
            options: Other boosts.
            all_users: Whether to find it among all users; then `user_id` is None.

        Raises:
            EntryNotFoundError: If the user has no such memory.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        return await self._engine.reinforce(scope, required_uuid(memory_id), reason, options)

    async def record_use(
        self,
        memory_ids: Iterable[UUID | str],
        user_id: str | None,
        *,
        all_users: bool = False,
    ) -> None:
        """Count an access of memories that were used, if recall does not count them.

        Args:
            memory_ids: Ids of the memories; unknown ones are skipped.
            user_id: The user; None is the memories without a user.
            all_users: Whether to find them among all users; then `user_id` is None.
        """
        ids = required_uuids("memory_ids", memory_ids)
        await self._engine.record_use(self._scope.narrowed(user_id, all_users=all_users), ids)


class MemoryRetriever(RetrieverBase):
    """Recalls one agent's memories in several ways.

    Example:
        >>> retriever = MemoryRetriever(memory)  # doctest: +SKIP
        >>> retriever.recall("database performance", user_id="alice")  # doctest: +SKIP

    The user is always named: `user_id` has no default, and None is the memories without a user.
    Every memory of the scope is ranked, exactly; salience is computed from times, accesses and
    importance at the time of the call. Recalled memories count as accessed; this is recorded after
    the result is computed and does not delay it.

    Args:
        memory: A memory, by any interface, or a scoped one; its scope applies to every call.
        options: Ranking options.
        judge: Judges contradictions; rules over English, without a network, unless given.
        log_queries: Whether logs show queries, cut to 50 characters, if the memory was opened with
            `log_content=True`; otherwise their length.
    """

    @property
    def aio(self) -> AsyncMemoryRetriever:
        """The same retriever with coroutine methods; the same object each time."""
        return self._other_form(AsyncMemoryRetriever)

    recall = sync_method(AsyncMemoryRetriever.recall)
    recall_temporal = sync_method(AsyncMemoryRetriever.recall_temporal)
    recall_by_type = sync_method(AsyncMemoryRetriever.recall_by_type)
    recall_linked = sync_method(AsyncMemoryRetriever.recall_linked)
    find_contradictions = sync_method(AsyncMemoryRetriever.find_contradictions)
    salience = sync_method(AsyncMemoryRetriever.salience)
    reinforce = sync_method(AsyncMemoryRetriever.reinforce)
    record_use = sync_method(AsyncMemoryRetriever.record_use)


def _options(user_id: str | None, limit: int, fields: Mapping[str, Any]) -> RecallOptions:
    return checked_options(None, {"user_id": user_id, "max_results": limit, **fields})


def checked_options(options: RecallOptions | None, fields: Mapping[str, Any]) -> RecallOptions:
    """Return options given as an object or by their fields."""
    fields = without_aliases(fields, {"limit": "max_results"})
    unknown = [name for name in fields if name not in RecallOptions.__struct_fields__]
    if unknown:
        known = RecallOptions.__struct_fields__
        raise ArgumentMismatchError(unknown_name("option", unknown[0], known))
    if options is not None:
        of_kind("options", RecallOptions, "RecallOptions", options)
        return msgspec.structs.replace(options, **fields) if fields else options
    if "user_id" not in fields and fields.get("all_users", False) is False:
        raise InvalidArgumentError(
            "user_id must be named: whose memories to recall, None for those stored without a user "
            "(or all_users=True, on purpose)"
        )
    named: dict[str, Any] = {"user_id": None, **fields}
    return RecallOptions(**named)
