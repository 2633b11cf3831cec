"""The verbs that find memories; each builds a `Search` for `Repository.find`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.arrays import ArrayLike
from mnemic.errors import InvalidArgumentError
from mnemic.model import (
    SEMANTIC,
    MemoryFilter,
    OnTimeout,
    Ranking,
    SearchResults,
    SearchType,
    Weights,
)
from mnemic.model.filter import IS_NOT_SENSITIVE, All
from mnemic.model.ranking import MOST_IMPORTANT, NEWEST
from mnemic.model.scope import not_found
from mnemic.model.validation import flag, whole
from mnemic.protocols import TokenCounter
from mnemic.repository import required_uuid
from mnemic.threads.sync_bridge import run_blocking
from mnemic.verbs.base import ScopedBase, built_search, parsed_filters
from mnemic.verbs.floors import MinScore


class AsyncSearchVerbs(ScopedBase):
    """Finds memories by meaning, keywords, time and importance."""

    async def search(
        self,
        query: str | None = None,
        *,
        vector: ArrayLike | None = None,
        limit: int = 10,
        offset: int = 0,
        search_type: SearchType = "hybrid",
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        ranking: Ranking | Weights | Mapping[str, float] | None = None,
        min_score: MinScore = None,
        explain: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Find the memories that match a query best.

        Every memory of the scope is ranked by its final score, exactly. Order: score, then newest,
        then smallest id; the hits of a smaller limit are the first ones of a larger limit.
        Without `min_score` there is no floor: the best hits are returned, however low their scores.
        If the query of a hybrid search cannot be embedded, it is answered by keywords, and the
        results are marked as `degraded`.

        Args:
            query: What to look for, not empty, at most 10,000 characters; optional with a vector.
            vector: The query's vector, shape (d,), or several, shape (m, d), of which the nearest
                counts for each memory: any array or list of finite numbers. Nothing is embedded
                then. Alone it searches by meaning; with a query it stands for the query's vector,
                whatever the query's language.
            limit: How many at most; 0 gives none.
            offset: How many of the best to skip before them, for the next page. Pages of one query
                joined are the result of one limit, unless memories are stored or changed between.
            search_type: By meaning and keywords together ("hybrid"), by the meaning alone
                ("semantic": cosine), or by "keyword" alone. Without an embedder and a vector,
                hybrid is keyword.
            filters: Only memories that match, in the grammar of docs/concepts/filters.md; the
                limit, offset and order of a `MemoryFilter` are ignored, and deleted memories are
                never found.
            since: Only memories created then or later; a text is read as ISO 8601, in UTC.
            until: Only memories created before.
            ranking: Weights of relevance, recency, importance, access and salience, as a dict in
                which missing ones are 0, or as `mnemic.Weights`; by default relevance alone. Or all
                parts of a score, in place of `search_type` too, as a `mnemic.Ranking`, which may
                have a least cosine (`min_similarity`).
            min_score: Only hits with at least this score, 0 to 1. "auto" is a floor by the
                evidence: nothing is returned unless the best cosine and the best keyword match
                together make an answer likely, by the embedder's `score_floors`; see
                docs/concepts/scores.md. A score of 0 excludes nothing.
            explain: Return every part of each score in `components`, not only similarity and
                keyword, and the reasons for it in `why`; the results print as a table.
            timeout: The seconds that the search may take; None is no limit. It is checked between
                the steps of the search and, in the ranking, between groups of memories.
            on_timeout: Whether a search that is not done in time raises ("raise"), or returns the
                hits that are complete ("partial": the results are marked as `partial`): each has
                its full score and passed all filters, and better ones may be missing.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            min(limit, memories that match - offset) hits, best first. By keywords a memory matches
            if it, or a neighbour in its session, has a word of the query; otherwise every memory
            does that filters let through. Of these, those match that reach the floors. If nothing
            is found because a user is missing, `hint` says so.

        Raises:
            InvalidArgumentError: If the query is empty, or an argument out of range; if a vector is
                zero, not finite, or given to a search by keywords.
            DimensionMismatchError: If the vector has another dimension than those of the memories.
            EmbeddingModelMismatchError: If a vector is given to a memory without an embedder whose
                vectors come from another model than its `embedding_model`.
            FilterError: If the filter cannot be understood; the message names the place.
            DeadlineExceededError: If the timeout passes, unless `on_timeout` is "partial".
            EmbedderRequiredError: If a text is searched by meaning without an embedder.
            EmbeddingError: If the embedder fails, and the search is not hybrid.
        """
        search = self._search(
            query,
            limit,
            parsed_filters(filters, since, until),
            vector=vector,
            offset=offset,
            search_type=search_type,
            ranking=ranking,
            min_score=min_score,
            explain=explain,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.search(scope, search)

    async def context(
        self,
        query: str | None = None,
        *,
        vector: ArrayLike | None = None,
        max_tokens: int = 1000,
        limit: int = 50,
        counter: TokenCounter | None = None,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        min_score: MinScore = "auto",
        explain: bool = False,
        include_sensitive: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> "mnemic.MemoryContext":
        """Return the memories that match a query best as one text, for a prompt.

        Each is one line with its number, its date and its speaker, and can begin no line, heading,
        tag, fence or role of its own. Equal texts come once, the best of them; memories that do not
        fit, or have no text, are passed over. The whole text takes at most `max_tokens`.

        The steps are those of `mnemic.policy.RetrievalPolicy` with other options: the order is the
        search's, contents are neither clipped, cut nor redacted, and there are no conditions and no
        limit of calls.

        Args:
            query: What the prompt is about, not empty, at most 10,000 characters; optional with a
                vector.
            vector: As for `search`.
            max_tokens: The most that the text takes, at least 1.
            limit: How many memories at most.
            counter: Counts tokens; an estimate by script unless given.
            filters: As for `search`.
            since: As for `search`.
            until: As for `search`.
            min_score: As for `search`; "auto" returns "" for a query that nothing stored is about.
                None takes the best memories, however low their scores.
            explain: Whether `table()` has the parts of each score, and the dropped memories'
                contents.
            include_sensitive: Whether sensitive memories are among them.
            timeout: As for `search`.
            on_timeout: As for `search`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            The text; "" if nothing fits, or nothing is found. Its attributes are the cited memories
            with their scores (`hits`), those that were found and left out, each with the step and
            the reason (`dropped`), and its number of tokens; `table()` shows both.

        Errors are those of `search`.
        """
        from mnemic.verbs.packing import context_of  # noqa: PLC0415 - not every program uses it

        whole("max_tokens", max_tokens, minimum=1, error=InvalidArgumentError)
        flag("include_sensitive", include_sensitive)
        expression = parsed_filters(filters, since, until)
        if not include_sensitive:  # before the limit, so that they take no other's place
            expression = All((IS_NOT_SENSITIVE, *([] if expression is None else [expression])))
        search = self._search(
            query,
            limit,
            expression,
            vector=vector,
            min_score=min_score,
            explain=explain,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        found = await self._repository.search(scope, search)
        return await run_blocking(
            lambda: context_of(found, max_tokens, counter, explain=explain), self._repository
        )

    async def similar(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        limit: int = 10,
        offset: int = 0,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        min_score: MinScore = None,
        min_similarity: float | None = None,
        explain: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Find the memories nearest in meaning to one of them, without itself.

        Its stored vectors are the query, so nothing is embedded, and looking it up is no access.
        For a memory without a vector, those that share most of its keywords. For all else see
        `search`.

        Args:
            id: Which memory.
            limit: Maximum number of results.
            offset: As for `search`.
            filters: As for `search`.
            since: As for `search`.
            until: As for `search`.
            min_score: As for `search`.
            min_similarity: Only hits with at least this cosine, -1 to 1.
            explain: As for `search`.
            timeout: As for `search`.
            on_timeout: As for `search`.
            user_id: Whose memories, that of the id included.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        entry_id = required_uuid(id)
        search = built_search(
            None,
            limit,
            msgspec.structs.replace(SEMANTIC, min_similarity=min_similarity),
            parsed_filters(filters, since, until),
            offset=offset,
            min_score=min_score,
            explain=explain,
            with_reasons=explain,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        found = await self._repository.similar(scope, entry_id, search)
        if found is None:
            raise not_found(entry_id, scope)
        return found

    async def recent(
        self,
        *,
        limit: int = 10,
        offset: int = 0,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Return the newest memories; the score is 1 for the newest and 0 for the oldest in play.

        For the arguments see `search`. Order: creation, newest first, then smallest id.
        """
        search = built_search(
            None,
            limit,
            NEWEST,
            parsed_filters(filters, since, until),
            offset=offset,
            explain=True,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.search(scope, search)

    async def important(
        self,
        *,
        limit: int = 10,
        offset: int = 0,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Return the most important memories; the score is the importance.

        For the arguments see `search`. Order: importance, then newest, then smallest id.
        """
        search = built_search(
            None,
            limit,
            MOST_IMPORTANT,
            parsed_filters(filters, since, until),
            offset=offset,
            explain=True,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.search(scope, search)
