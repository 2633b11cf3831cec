"""The verbs that find memories; each builds a `Search` for `Repository.find`."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model import (
    IS_NOT_SENSITIVE,
    KEYWORD,
    MOST_IMPORTANT,
    NEWEST,
    SEMANTIC,
    All,
    MemoryFilter,
    MemoryKind,
    MemoryQuery,
    MemoryRecallResult,
    MemoryRetrievalResult,
    MemoryType,
    OnQueryError,
    OnTimeout,
    Ranking,
    RecallMode,
    RecallOptions,
    SearchResults,
    SearchType,
    TimeLimit,
    Weights,
)
from mnemic.model.scope import not_found
from mnemic.model.validation import flag, whole
from mnemic.protocols import TokenCounter
from mnemic.repository import required_uuid
from mnemic.sync_bridge import run_blocking
from mnemic.verbs.base import ScopedBase, built_search, parsed_filters

if TYPE_CHECKING:
    from mnemic.context import ContextWindow, MemoryContext


class AsyncSearchVerbs(ScopedBase):
    """Finds memories by meaning, keywords, time, importance and recall."""

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        search_type: SearchType = "hybrid",
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        weights: Weights | Mapping[str, float] | None = None,
        ranking: Ranking | None = None,
        explain: bool = False,
        on_embed_error: OnQueryError = "keywords",
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Find the memories that match a query best.

        Every memory of the scope is ranked by its final score, exactly. Order: score, then newest,
        then smallest id; the hits of a smaller limit are the first ones of a larger limit.
        There is no floor: the best hits are returned, however low their scores.

        Args:
            query: What to look for, not empty, at most 10,000 characters.
            limit: How many at most; 0 gives none.
            search_type: By meaning and keywords together ("hybrid"), by the meaning alone
                ("semantic": cosine), or by "keyword" alone. Without an embedder, hybrid is keyword.
            filters: Only memories that match, in the grammar of docs/filters.md; the limit, offset
                and order of a `MemoryFilter` are ignored, and deleted memories are never found.
            since: Only memories created then or later; a text is read as ISO 8601, in UTC.
            until: Only memories created before.
            weights: The weights of relevance, recency, importance, access and salience, by name;
                the others are 0. By default relevance alone.
            ranking: All parts of a score, in place of `search_type` and `weights`; see
                `mnemic.Ranking`.
            explain: Return every part of each score in `components`, not only similarity and
                keyword.
            on_embed_error: Whether a hybrid search whose query cannot be embedded falls back to
                keywords ("keywords": the results are marked as `degraded`) or raises ("raise"). A
                semantic search always raises.
            timeout: The seconds that the search may take; None is no limit. It is checked between
                the steps of the search and, in the ranking, between groups of memories.
            on_timeout: Whether a search that is not done in time raises ("raise"), or returns the
                hits that are complete ("partial": the results are marked as `partial`): each has
                its full score and passed all filters, and better ones may be missing.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            min(limit, memories that match) hits, best first. By keywords a memory matches if it, or
            a neighbour in its session, has a word of the query; otherwise every memory does that
            filters let through.

        Raises:
            InvalidArgumentError: If the query is empty, or an argument out of range.
            FilterError: If the filter cannot be understood; the message names the place.
            DeadlineExceededError: If the timeout passes, unless `on_timeout` is "partial".
            EmbedderRequiredError: If a semantic search is wanted without an embedder.
            EmbeddingError: If the embedder fails, and the search does not fall back.
        """
        search = self._search(
            query,
            limit,
            parsed_filters(filters, since, until),
            ranking=self._ranking(search_type, weights, ranking),
            explain=explain,
            on_embed_error=on_embed_error,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        return await self._repository.search(
            self._scope.narrowed(user_id, project_id, session_id, all_users=all_users), search
        )

    async def retrieve(
        self,
        query: MemoryQuery,
        *,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryRetrievalResult:
        """Answer a `MemoryQuery`: weighted relevance, expansion, and answers kept for a time.

        See `mnemic.RetrievalService`, which has more of the same; queries are shown in logs and
        events only with `log_content`.

        Args:
            query: The query, its filters and its weights.
            timeout: As for `search`; it holds for the expansion and all rankings. An expander that
                is not mnemic's own is not interrupted.
            on_timeout: As for `search`; a partial answer is not kept.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            InvalidArgumentError: If it is no query.
            EmbedderRequiredError: If it needs vectors and there is no embedder.
            EmbeddingError: If the embedder fails.
        """
        time_limit = TimeLimit.after(timeout, on_timeout)
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._services.retrieval_engine.retrieve(scope, query, time_limit)

    async def retrieve_to_context(
        self,
        query: MemoryQuery,
        window: "ContextWindow",
        *,
        include_sensitive: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Add the answers to a query to a context window, as far as it has room.

        See `mnemic.RetrievalService.retrieve_to_context`.

        Args:
            query: What to retrieve.
            window: Where to.
            include_sensitive: Whether sensitive memories are added too.
            timeout: As for `retrieve`.
            on_timeout: As for `retrieve`; the results that are complete are added.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            How many items were added.
        """
        time_limit = TimeLimit.after(timeout, on_timeout)
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._services.retrieval_engine.to_context(
            scope, query, window, include_sensitive=include_sensitive, time_limit=time_limit
        )

    async def recall(
        self,
        query: str = "",
        *,
        mode: RecallMode | str = RecallMode.RELEVANT,
        limit: int = 10,
        type: MemoryType | MemoryKind | str | None = None,  # noqa: A002 - as above
        min_salience: float = 0.0,
        include_archived: bool = False,
        include_superseded: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryRecallResult:
        """Return memories by similarity and salience, or by how recent, salient or used they are.

        See `mnemic.MemoryRetriever`, which has more of the same. What is recalled counts as
        accessed.

        Args:
            query: What to look for, at most 10,000 characters; only mode "relevant" needs one.
            mode: Which come first: "relevant", "recent" (last access), "important" (salience) or
                "frequent" (number of accesses).
            limit: Maximum number of results, 1 to 1,000.
            type: Only of this type, or of a kind such as "episodic".
            min_salience: The least salience, 0 to 1.
            include_archived: Archived ones too.
            include_superseded: Superseded ones too.
            timeout: As for `search`.
            on_timeout: As for `search`.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            InvalidArgumentError: If an argument is outside its range.
            EmbedderRequiredError: If relevant recall has no embedder.
            EmbeddingError: If the embedder fails.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        options = RecallOptions(
            user_id=scope.user_id,
            max_results=limit,
            type_filter=type,
            min_salience=min_salience,
            mode=RecallMode.parse(mode),
            include_archived=include_archived,
            include_superseded=include_superseded,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        return await self._services.recall_engine.recall(scope, query, options)

    async def contradictions(
        self,
        content: str,
        *,
        limit: int = 10,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryRecallResult:
        """Return memories that a text contradicts, the surest first.

        See `mnemic.MemoryRetriever.find_contradictions`; the judge knows English alone.

        Args:
            content: A statement.
            limit: Maximum number of results, 1 to 1,000.
            timeout: As for `search`.
            on_timeout: As for `search`.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._contradictions(
            scope, content, limit, timeout=timeout, on_timeout=on_timeout
        )

    async def context(
        self,
        query: str,
        *,
        max_tokens: int = 1000,
        limit: int = 50,
        counter: TokenCounter | None = None,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        include_sensitive: bool = False,
        on_embed_error: OnQueryError = "keywords",
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> "MemoryContext":
        """Return the memories that match a query best as one text, for a prompt.

        Each is one line with its number, its date and its speaker. Equal texts come once, and
        memories that do not fit are passed over. The whole text takes at most `max_tokens`.

        Args:
            query: What the prompt is about, not empty, at most 10,000 characters.
            max_tokens: The most that the text takes, at least 1.
            limit: How many memories at most.
            counter: Counts tokens; an estimate by script unless given.
            filters: As for `search`.
            since: As for `search`.
            until: As for `search`.
            include_sensitive: Whether sensitive memories are among them.
            on_embed_error: As for `search`; the text is marked as `degraded` too.
            timeout: As for `search`.
            on_timeout: As for `search`; the text is marked as `partial` too.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            The text, with the memories it cites; "" if nothing fits.

        Raises:
            As `search`.
        """
        from mnemic.context import packed  # noqa: PLC0415 - not every program uses it

        whole("max_tokens", max_tokens, minimum=1)
        flag("include_sensitive", include_sensitive)
        expression = parsed_filters(filters, since, until)
        if not include_sensitive:  # before the limit, so that they take no other's place
            expression = All((IS_NOT_SENSITIVE, *([] if expression is None else [expression])))
        search = self._search(
            query,
            limit,
            expression,
            on_embed_error=on_embed_error,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        found = await self._repository.search(scope, search)
        entries = [hit.entry for hit in found]
        return await run_blocking(
            lambda: packed(
                entries,
                max_tokens,
                counter,
                degraded=found.degraded,
                partial=found.partial,
                approximate=found.approximate,
            ),
            self._repository,
        )

    async def similar(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        limit: int = 10,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        explain: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Find the memories nearest in meaning to one of them, without itself.

        Its stored vectors are the query, so nothing is embedded, and looking it up is no access.
        Without an embedder, the memories that share most of its keywords. For all else
        see `search`.

        Args:
            id: Which memory.
            limit: Maximum number of results.
            filters: As for `search`.
            since: As for `search`.
            until: As for `search`.
            explain: As for `search`.
            timeout: As for `search`.
            on_timeout: As for `search`.
            user_id: Whose memories, that of the id included.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope, entry_id = (
            self._scope.narrowed(user_id, project_id, session_id, all_users=all_users),
            required_uuid(id),
        )
        chosen = KEYWORD if self._repository.embedder is None else SEMANTIC
        expression = parsed_filters(filters, since, until)
        search = built_search(
            None, limit, chosen, expression, explain=explain, timeout=timeout, on_timeout=on_timeout
        )
        found = await self._repository.similar(scope, entry_id, search)
        if found is None:
            raise not_found(entry_id, scope)
        return found

    async def recent(
        self,
        *,
        limit: int = 10,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Return the newest memories; the score is 1 for the newest and 0 for the oldest in play.

        For the arguments see `search`. Order: creation, newest first, then smallest id.
        """
        expression = parsed_filters(filters, since, until)
        search = built_search(
            None, limit, NEWEST, expression, explain=True, timeout=timeout, on_timeout=on_timeout
        )
        return await self._repository.search(
            self._scope.narrowed(user_id, project_id, session_id, all_users=all_users), search
        )

    async def important(
        self,
        *,
        limit: int = 10,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Return the most important memories; the score is the importance.

        For the arguments see `search`. Order: importance, then newest, then smallest id.
        """
        expression = parsed_filters(filters, since, until)
        search = built_search(
            None,
            limit,
            MOST_IMPORTANT,
            expression,
            explain=True,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        return await self._repository.search(
            self._scope.narrowed(user_id, project_id, session_id, all_users=all_users), search
        )
