"""RetrievalService, the public interface of retrieval by structured queries."""

from collections.abc import Sequence
from typing import Unpack
from uuid import UUID

from mnemic.context import ContextWindow
from mnemic.model import (
    ExpandedQuery,
    MemoryQuery,
    MemoryRetrievalResult,
    MemorySearchResult,
    OnTimeout,
    RetrievalStats,
    Suggestions,
    validation,
)
from mnemic.model.deadline import TimeLimit
from mnemic.model.query import RetrieveFields, query_of
from mnemic.model.scope import not_found
from mnemic.reporting.near_names import names_arguments
from mnemic.repository import Searchable, checked_memory, required_uuid, required_uuids
from mnemic.retrieval.engine import RetrievalEngine
from mnemic.retrieval.expansion import (
    MIN_CONFIDENCE,
    AnyExpander,
    CorpusSuggester,
    Suggester,
    expander_of,
)
from mnemic.threads.sync_bridge import Twin, sync_method


@names_arguments
class RetrievalBase(Twin):
    """The parts of both forms; for the arguments see `RetrievalService`."""

    def __init__(
        self,
        memory: Searchable,
        *,
        expander: AnyExpander | None = None,
        suggester: Suggester | None = None,
        log_queries: bool = True,
        similarity_floor: float | None = None,
        min_confidence: float = MIN_CONFIDENCE,
        cache_size: int = 1024,
        cache_bytes: int = 64 * 1024 * 1024,
        track_access: bool = True,
    ) -> None:
        memory = checked_memory(memory)
        self._suggester: Suggester = (
            CorpusSuggester()
            if suggester is None
            else validation.capable("suggester", suggester, "suggest")
        )
        self._engine = RetrievalEngine(
            memory.repository,
            expander=expander_of(expander),
            log_queries=log_queries,
            similarity_floor=similarity_floor,
            min_confidence=min_confidence,
            cache_size=cache_size,
            cache_bytes=cache_bytes,
            track_access=track_access,
        )
        self._scope, self._time_zone = memory.scope, memory.time_zone

    @property
    def agent_id(self) -> str:
        """The agent."""
        return self._scope.agent_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._scope})"

    def _query(self, query: object, fields: RetrieveFields) -> MemoryQuery:
        by_words = self._engine.repository.embedder is None
        return query_of(query, fields, by_words=by_words, time_zone=self._time_zone)


@names_arguments
class AsyncRetrievalService(RetrievalBase):
    """The awaited form of `RetrievalService`, for any event loop; for the arguments see there."""

    @property
    def sync(self) -> "RetrievalService":
        """The same service with plain methods; the same object each time."""
        return self._other_form(RetrievalService)

    async def retrieve(
        self,
        query: MemoryQuery | str,
        *,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        all_users: bool = False,
        **fields: Unpack[RetrieveFields],
    ) -> MemoryRetrievalResult:
        """Return the memories that match a query, best first.

        Args:
            query: A text, which is searched by meaning and keywords together, or a `MemoryQuery`.
            timeout: The seconds that the retrieval may take; None is no limit. It holds for the
                expansion and all rankings. An expander that is not mnemic's own is not interrupted.
            on_timeout: Whether a retrieval that is not done in time raises ("raise"), or returns
                the results that are complete, marked as `partial`, which are not cached
                ("partial").
            user_id: The user; None is the memories without a user.
            all_users: Whether to search the memories of all users.
            **fields: With a text alone: the fields of the query, such as `limit`, `filters`,
                `weights` and `expand`; see docs/reference/retrieval.md.

        Raises:
            InvalidArgumentError: If it is not a query, or the scope or a field is invalid.
            DeadlineExceededError: If the timeout passes, unless `on_timeout` is "partial".
            LicenseRestrictionError: If the license policy does not include it.
            EmbedderRequiredError: If it needs vectors and there is no embedder.
            EmbeddingError: If the embedder fails.
        """
        time_limit = TimeLimit.after(timeout, on_timeout)
        scope = self._scope.narrowed(user_id, all_users=all_users)
        return await self._engine.retrieve(scope, self._query(query, fields), time_limit)

    async def retrieve_to_context(
        self,
        query: MemoryQuery | str,
        window: ContextWindow,
        *,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        all_users: bool = False,
        include_sensitive: bool = False,
        **fields: Unpack[RetrieveFields],
    ) -> int:
        """Add the results to a context window, as far as they fit; return the number of items.

        Only free tokens below the window's compaction threshold are used, so nothing is evicted; a
        memory that does not fit is skipped, and a memory that is present already is not added
        again, but gets the higher priority. Items are of type RETRIEVED_DOCUMENT, with a priority
        from 50 to 90 by relevance, the memory's id as `source_ref` (with its user if, for all
        users, another memory with that id is present), and `relevance` and `memory_type` in their
        metadata.

        Args:
            window: The window.
            on_timeout: With "partial" the results that are complete are added.
            user_id: The user; None is the memories without a user.
            all_users: Whether to search the memories of all users.
            include_sensitive: Whether to add sensitive memories too.

        Errors are those of `retrieve`.
        """
        time_limit = TimeLimit.after(timeout, on_timeout)
        scope = self._scope.narrowed(user_id, all_users=all_users)
        asked = self._query(query, fields)
        return await self._engine.to_context(
            scope, asked, window, include_sensitive=include_sensitive, time_limit=time_limit
        )

    async def find_similar(
        self,
        reference_id: UUID | str,
        limit: int = 10,
        *,
        exclude_ids: Sequence[UUID | str] | None = (),
        strict: bool = True,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> list[MemorySearchResult]:
        """Return the memories most similar to one of them, without itself.

        The stored vectors of the reference are the query.

        Args:
            reference_id: Id of the reference.
            limit: Maximum number of results, 1 to 1,000.
            exclude_ids: Ids of memories to exclude.
            strict: Whether to raise if the scope has no such memory; otherwise the result is empty.
            user_id: The user; None is the memories without a user.
            all_users: Whether to search the memories of all users.

        Raises:
            EntryNotFoundError: If the scope has no such memory, and `strict`.

        Other errors are those of `retrieve`.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        entry_id = required_uuid(reference_id)
        excluded = tuple(required_uuids("exclude_ids", () if exclude_ids is None else exclude_ids))
        validation.flag("strict", strict)
        found = await self._engine.similar(scope, entry_id, limit, excluded)
        if found is None and strict:
            raise not_found(entry_id, scope)
        return found or []

    async def suggest_queries(
        self,
        conversation_context: str,
        *,
        limit: int = 10,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> Suggestions:
        """Return queries that fit a conversation, most promising first.

        If the suggester fails the list is empty, and `failed` is true.

        Args:
            conversation_context: Recent text of the conversation; the last 10,000 characters are
                used.
            limit: Maximum number of suggestions, 1 to 1,000.
            user_id: The user whose memories give the phrases and their rarity; None is the memories
                without a user.
            all_users: Whether to use the memories of all users.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        return await self._engine.suggest(self._suggester, scope, conversation_context, limit)

    async def expand_query(
        self, query: str, *, user_id: str | None = None, all_users: bool = False
    ) -> ExpandedQuery:
        """Return a query with related terms; unchanged if the confidence is low.

        If the expander fails it is unchanged too, and `failed` is true.

        Args:
            query: The query.
            user_id: The user whose memories give the terms; None is the memories without a user.
            all_users: Whether to use the memories of all users.

        Raises:
            InvalidArgumentError: If it is not a text, empty, or longer than 10,000 characters.
            LicenseRestrictionError: If the license policy does not include it.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        return await self._engine.expand(scope, validation.query(query))

    async def get_stats(self) -> RetrievalStats:
        """Return statistics since construction."""
        return self._engine.stats()


class RetrievalService(RetrievalBase):
    """Retrieves one agent's memories with weighted relevance.

    Example:
        >>> service = RetrievalService(memory)  # doctest: +SKIP
        >>> result = service.retrieve(MemoryQuery.semantic("preferences"))  # doctest: +SKIP

    Every memory of the scope is ranked by its whole score, exactly. Results are cached for a time,
    as ids and scores, until any memory of the user changes; the cache never returns a deleted
    memory. A failing expander or suggester fails no call: the original query is answered, or
    nothing is suggested, and the result reports the failure. Only a function that returns something
    else than a list of texts raises ExpanderError. Methods may be called from several threads at
    once.

    Args:
        memory: A memory, by any interface, or a scoped one; its scope applies to every call.
        expander: Adds related terms to queries: a function or a coroutine function from a text to a
            list of texts, a dict of synonyms, or an object with `expand`; by default from the
            memories themselves.
        suggester: Suggests queries; by default from the memories themselves.
        log_queries: Whether logs and events show queries, cut to 50 characters, if the memory was
            opened with `log_content=True`; otherwise logs show their length, and events None.
        similarity_floor: Minimum cosine of a semantic result; None is the embedder's own floor, or
            the one that is learned from the memories.
        min_confidence: Expansions with a lower confidence are not used.
        cache_size: Maximum number of cached results of one user.
        cache_bytes: Maximum bytes of all cached results, by estimate; one user may take an eighth
            of it. A result larger than a quarter of that is not cached, so 0 disables the cache.
        track_access: Whether returned memories count as accessed, cached or not; never if the
            memory was opened with `track_access=False`.
    """

    @property
    def aio(self) -> AsyncRetrievalService:
        """The same service with coroutine methods; the same object each time."""
        return self._other_form(AsyncRetrievalService)

    retrieve = sync_method(AsyncRetrievalService.retrieve)
    retrieve_to_context = sync_method(AsyncRetrievalService.retrieve_to_context)
    find_similar = sync_method(AsyncRetrievalService.find_similar)
    suggest_queries = sync_method(AsyncRetrievalService.suggest_queries)
    expand_query = sync_method(AsyncRetrievalService.expand_query)
    get_stats = sync_method(AsyncRetrievalService.get_stats)
