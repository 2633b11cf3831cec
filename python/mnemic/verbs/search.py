"""The verbs that find memories; each builds a `Search` for `Finder.find`."""

from collections.abc import Mapping
from datetime import date
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
from mnemic.verbs.base import MinScore, ScopedBase, built_search, minimum_score, parsed_filters

MOST_TOKENS = 1000
"""Tokens of a context at most, if no other number is named."""


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
        since: date | str | None = None,
        until: date | str | None = None,
        ranking: Ranking | Weights | Mapping[str, float] | None = None,
        min_score: MinScore = None,
        explain: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Find the memories that match a query best, exactly: by score, then newest, then id.

        A query that cannot be embedded is answered by keywords, and the results are `degraded`. If
        nothing is found because a user is missing, `hint` says so.

        Args:
            query: What to look for, at most 10,000 characters; optional with a vector.
            vector: The query's vector, shape (d,), in place of an embedding; or several, shape
                (m, d): the nearest counts, and beside a text the first, with the others as guesses.
            search_type: By meaning and words together ("hybrid"), by "semantic" cosine alone, or by
                "keyword" alone, as without an embedder.
            ranking: Weights of relevance, recency, importance, access and salience, others 0; or
                all parts of a score, `search_type` among them, as a `mnemic.Ranking`.
            min_score: Only hits with at least this score, 0 to 1; None returns the best at any
                score, "auto" nothing unless an answer is likely, "relative" then only what scores
                not far below the best: docs/tune/scores.md.
            explain: Return every part of each score in `components`, and reasons in `why`.
        """
        search = self._search(
            query,
            limit,
            parsed_filters(filters, since, until, self.time_zone),
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
        return await self._repository.searcher.search(scope, search)

    async def context(
        self,
        query: str | None = None,
        *,
        vector: ArrayLike | None = None,
        max_tokens: int | None = None,
        limit: int | None = None,
        counter: TokenCounter | None = None,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        min_score: MinScore = "auto",
        explain: bool = False,
        include_sensitive: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> "mnemic.MemoryContext":
        """Return the memories that match a query best as one text, for a prompt; "" if none does.

        Each is one line with its number, date and speaker, and can begin no line, heading, tag,
        fence or role of its own. Equal texts come once; of a memory longer than its share of the
        tokens the sentences stay that match best. `dropped` has those that were read and left out.

        Args:
            max_tokens: The most that the text takes; it is filled. None: 1,000, not filled.
            limit: The most memories in it; None is as many as the tokens allow.
            counter: Counts tokens; an estimate by script unless given.
            min_score: See `search`. "auto" is "relative" unless `max_tokens` is named.
            explain: Whether `table()` has the parts of each score, and dropped contents.
            include_sensitive: Whether sensitive memories are among them.
        """
        # Not every program uses them.
        from mnemic.context.budget import candidates_within  # noqa: PLC0415
        from mnemic.verbs.packing import context_of  # noqa: PLC0415

        if max_tokens is None:
            max_tokens = MOST_TOKENS
            min_score = "relative" if minimum_score(min_score) == "auto" else min_score
        whole("max_tokens", max_tokens, minimum=1, error=InvalidArgumentError)
        flag("include_sensitive", include_sensitive)
        expression = parsed_filters(filters, since, until, self.time_zone)
        if not include_sensitive:  # before the limit, so that they take no other's place
            expression = All((IS_NOT_SENSITIVE, *([] if expression is None else [expression])))
        search = self._search(
            query,
            candidates_within(max_tokens) if limit is None else limit,
            expression,
            vector=vector,
            min_score=min_score,
            explain=explain,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        if search.text is not None and counter is None and not explain:
            search = msgspec.structs.replace(search, max_tokens=max_tokens)
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        # Few of so many are cited, and the text has their passages.
        found = await self._repository.searcher.search(scope, search, with_passages=False)
        return await run_blocking(
            lambda: context_of(
                found,
                max_tokens,
                counter,
                time_zone=self.time_zone,
                explain=explain,
                query=search.text,
            ),
            self._repository,
        )

    async def similar(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        limit: int = 10,
        offset: int = 0,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        min_score: MinScore = None,
        min_similarity: float | None = None,
        explain: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Find the memories nearest in meaning to one of them, without itself; see `search`.

        Args:
            min_similarity: Only hits with at least this cosine, -1 to 1.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        entry_id = required_uuid(id)
        search = built_search(
            None,
            limit,
            msgspec.structs.replace(SEMANTIC, min_similarity=min_similarity),
            parsed_filters(filters, since, until, self.time_zone),
            offset=offset,
            min_score=min_score,
            explain=explain,
            with_reasons=explain,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        found = await self._repository.searcher.similar(scope, entry_id, search)
        if found is None:
            raise not_found(entry_id, scope)
        return found

    async def recent(
        self,
        *,
        limit: int = 10,
        offset: int = 0,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Return the newest memories; the score falls from 1 to 0, for the oldest in play."""
        search = built_search(
            None,
            limit,
            NEWEST,
            parsed_filters(filters, since, until, self.time_zone),
            offset=offset,
            explain=True,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.searcher.search(scope, search)

    async def important(
        self,
        *,
        limit: int = 10,
        offset: int = 0,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Return the most important memories, newer ones first; the score is the importance."""
        search = built_search(
            None,
            limit,
            MOST_IMPORTANT,
            parsed_filters(filters, since, until, self.time_zone),
            offset=offset,
            explain=True,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.searcher.search(scope, search)
