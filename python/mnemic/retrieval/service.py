"""RetrievalService: memories retrieved by structured queries."""

from collections.abc import Sequence
from uuid import UUID

from mnemic.context import ContextWindow
from mnemic.description import described
from mnemic.errors import EntryNotFoundError, InvalidArgumentError
from mnemic.model import (
    ExpandedQuery,
    MemoryQuery,
    MemoryRetrievalResult,
    MemorySearchResult,
    RetrievalStats,
    Scope,
    Suggestions,
    validation,
)
from mnemic.repository import Searchable, checked_memory, required_uuid, required_uuids
from mnemic.retrieval.engine import RetrievalEngine
from mnemic.retrieval.expansion import MIN_CONFIDENCE, CorpusExpander, Expander
from mnemic.retrieval.suggestions import CorpusSuggester, Suggester


class RetrievalService:
    """Retrieves one agent's memories with weighted relevance.

    Example:
        >>> service = RetrievalService(memory)  # doctest: +SKIP
        >>> query = MemoryQuery.semantic("user preferences")  # doctest: +SKIP
        >>> result = await service.retrieve(query)  # doctest: +SKIP

    Every memory of the scope is ranked by its whole score, exactly. Answers are kept for a time, as
    ids and scores, until anything of the user changes; a forgotten memory never comes back from
    there. A failing expander or suggester fails no call: the query is answered as it was asked, or
    nothing is suggested, and the result says so. Methods may be called from any event loop, and
    from several at once.

    Args:
        memory: A `LongTermMemory`, an `AsyncMemory` or a `Memory`, or a view of one; what a view
            names of the scope holds for every call.
        expander: Adds related terms to queries; what the memories say of them unless given.
        suggester: Suggests queries; by what the memories know unless given.
        log_queries: Whether logs and events show queries, cut to 50 characters, where the memory
            was opened with `log_content=True`; otherwise logs tell how long they are, events None.
        similarity_floor: The least cosine of a semantic answer; None is the embedder's own, and 0.3
            where it has none.
        min_confidence: An expansion below it is not used.
        cache_size: How many answers are kept at most for one user.
        cache_bytes: How many bytes all kept answers take at most, by estimate; those of one user an
            eighth of it. An answer that takes more than a quarter of that is not kept, so 0 keeps
            none.
        track_access: Whether being returned counts as an access, cached or not; never where the
            memory was opened with `track_access=False`.
    """

    def __init__(
        self,
        memory: Searchable,
        *,
        expander: Expander | None = None,
        suggester: Suggester | None = None,
        log_queries: bool = True,
        similarity_floor: float | None = None,
        min_confidence: float = MIN_CONFIDENCE,
        cache_size: int = 1024,
        cache_bytes: int = 64 * 1024 * 1024,
        track_access: bool = True,
    ) -> None:
        memory = checked_memory(memory)
        self._scope = memory.scope
        self._suggester = (
            CorpusSuggester()
            if suggester is None
            else validation.capable("suggester", suggester, "suggest")
        )
        self._engine = RetrievalEngine(
            memory.repository,
            expander=CorpusExpander()
            if expander is None
            else validation.capable("expander", expander, "expand"),
            log_queries=log_queries,
            similarity_floor=similarity_floor,
            min_confidence=min_confidence,
            cache_size=cache_size,
            cache_bytes=cache_bytes,
            track_access=track_access,
        )

    @property
    def agent_id(self) -> str:
        """Whose memories are retrieved."""
        return self._scope.agent_id

    async def retrieve(
        self, query: MemoryQuery, *, user_id: str | None = None, all_users: bool = False
    ) -> MemoryRetrievalResult:
        """Return the memories that answer a query, best first.

        Args:
            query: What to retrieve.
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.

        Raises:
            InvalidArgumentError: If it is no query, or the scope cannot be so.
            LicenseRestrictionError: If the tier does not include it: queries by meaning need Teams,
                by filters WriterPro.
            EmbedderRequiredError: If it needs vectors and there is no embedder.
            EmbeddingError: If the embedder fails.
        """
        return await self._engine.retrieve(self._part(user_id, all_users=all_users), query)

    async def retrieve_to_context(
        self,
        query: MemoryQuery,
        window: ContextWindow,
        *,
        user_id: str | None = None,
        all_users: bool = False,
        include_sensitive: bool = False,
    ) -> int:
        """Add the answer to a context window, as far as it has room; return how many items.

         Only free tokens below the window's compaction threshold are used, so nothing is evicted
        ; what does not fit is passed over, and a memory that is there already is not
         added again, but gets the higher priority. Items are of type RETRIEVED_DOCUMENT, with
         a priority from 50 to 90 by relevance, the memory's id as `source_ref` (with its user where,
         for all users, another memory of that id is there), and `relevance` and `memory_type` in
         their metadata.

        Args:
             query: What to retrieve.
             window: Where to.
             user_id: Whose memories; None is those stored without a user.
             all_users: Everybody's.
             include_sensitive: Whether sensitive memories are added too.

        Raises:
             As `retrieve`.
        """
        scope = self._part(user_id, all_users=all_users)
        return await self._engine.to_context(
            scope, query, window, include_sensitive=include_sensitive
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
        """Return the memories nearest to one of them, without itself.

        Its stored vectors are the query.

        Args:
            reference_id: Nearest to what.
            limit: How many at most, 1 to 1,000.
            exclude_ids: Never these.
            strict: Raise where the scope has no such memory; otherwise nothing is similar to it.
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.

        Raises:
            EntryNotFoundError: If the scope has no such memory, and `strict`.
            As `retrieve`.
        """
        scope, entry_id = self._part(user_id, all_users=all_users), required_uuid(reference_id)
        excluded = tuple(required_uuids("exclude_ids", () if exclude_ids is None else exclude_ids))
        validation.flag("strict", strict)
        found = await self._engine.similar(scope, entry_id, limit, excluded)
        if found is None and strict:
            raise EntryNotFoundError(f"no memory with id {entry_id} for {scope}")
        return found or []

    async def suggest_queries(
        self,
        conversation_context: str,
        *,
        limit: int = 10,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> Suggestions:
        """Return queries that a conversation makes worth asking, the most promising first.

        Where the suggester fails there are none, and `failed` is true.

        Args:
            conversation_context: Its recent text; of a longer one the last 10,000 characters count.
            limit: How many at most, 1 to 1,000.
            user_id: Whose memories decide what is known and rare; None is those stored without a
                user.
            all_users: Everybody's.
        """
        scope = self._part(user_id, all_users=all_users)
        return await self._engine.suggest(self._suggester, scope, conversation_context, limit)

    async def expand_query(
        self, query: str, *, user_id: str | None = None, all_users: bool = False
    ) -> ExpandedQuery:
        """Return a query with terms that belong to it; as it is where confidence is low.

        Where the expander fails it is as it was asked too, and `failed` is true.

        Args:
            query: What was asked.
            user_id: Whose memories tell which terms; None is those stored without a user.
            all_users: Everybody's.

        Raises:
            InvalidArgumentError: If it is no text, empty, or longer than 10,000 characters.
            LicenseRestrictionError: If the tier does not include it: Teams where vectors are used,
                WriterPro where only words are.
        """
        if not isinstance(query, str) or not query.strip():
            raise InvalidArgumentError(
                f"query must be a text that is not empty, got {described(query)}"
            )
        MemoryQuery.semantic(query)  # its checks hold here too
        return await self._engine.expand(self._part(user_id, all_users=all_users), query)

    async def get_stats(self) -> RetrievalStats:
        """Return what the service did since it was made."""
        return self._engine.stats()

    def _part(self, user_id: str | None, *, all_users: bool) -> Scope:
        scope = self._scope.narrowed(user_id)
        return scope.widened() if validation.flag("all_users", all_users) else scope
