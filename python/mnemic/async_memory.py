"""The front door for programs with an event loop: a memory in one file, used with awaited calls.

`mnemic.memory` has the same verbs as plain calls, made of these.
"""

import os
import sys
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, Unpack
from uuid import UUID

import msgspec

from mnemic.description import described, quoted
from mnemic.errors import EntryNotFoundError, InvalidArgumentError, InvalidEntryError
from mnemic.model import (
    BY_SEARCH_TYPE,
    IS_NOT_SENSITIVE,
    KEYWORD,
    MOST_IMPORTANT,
    NEWEST,
    SEARCH_TYPES,
    SEMANTIC,
    All,
    CheckedEntry,
    DeleteResult,
    Expression,
    ImportResult,
    LinkType,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryKind,
    MemoryLink,
    MemoryPage,
    MemoryQuery,
    MemoryRecallResult,
    MemoryRetrievalResult,
    MemoryRetrieverOptions,
    MemoryStatus,
    MemoryType,
    NewEntry,
    OnDuplicate,
    OnEmbedError,
    OnQueryError,
    Ranking,
    RecallMode,
    RecallOptions,
    Scope,
    ScoredMemory,
    Search,
    SearchResults,
    SearchType,
    VerifyReport,
    Weights,
    falls_back,
    parse_filter,
    parse_times,
)
from mnemic.model.new_entry import checked_record
from mnemic.model.validation import bounded, flag, items, lone_surrogate, whole
from mnemic.observability.events import Events
from mnemic.protocols import Progress, Source, Target, TokenCounter
from mnemic.repository import Options, Repository, required_uuid, required_uuids
from mnemic.store import Direction
from mnemic.sync_bridge import run_blocking

if TYPE_CHECKING:
    from mnemic.context import ContextWindow, MemoryContext
    from mnemic.embed.base import Embedder
    from mnemic.recall import RecallEngine
    from mnemic.retrieval import RetrievalEngine

NewMemory: TypeAlias = str | Mapping[str, Any] | MemoryEntry
"""What `add_many` takes: a text, a dict with the arguments of `add`, or a whole record."""

Entries: TypeAlias = list[MemoryEntry]
Links: TypeAlias = list[MemoryLink]

# Checking one takes about 50 µs; more of them at once go to a thread.
_FEW_MEMORIES = 16


class Services:
    """What is built on one memory; all its views share them, and each is made when it is used."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._lock = threading.Lock()
        self._retrieval_engine: RetrievalEngine | None = None
        self._recall_engine: RecallEngine | None = None

    @property
    def retrieval_engine(self) -> "RetrievalEngine":
        """Answers queries."""
        with self._lock:
            if self._retrieval_engine is None:
                from mnemic.retrieval import CorpusExpander, RetrievalEngine  # noqa: PLC0415 - loaded on first use

                self._retrieval_engine = RetrievalEngine(
                    self._repository,
                    expander=CorpusExpander(),
                    log_queries=self._repository.logs_content,
                )
            return self._retrieval_engine

    @property
    def recall_engine(self) -> "RecallEngine":
        """Recalls."""
        with self._lock:
            if self._recall_engine is None:
                # Imported on first use: most programs use neither engine.
                from mnemic.contradictions import RuleJudge  # noqa: PLC0415
                from mnemic.recall import RecallEngine  # noqa: PLC0415

                self._recall_engine = RecallEngine(
                    self._repository,
                    MemoryRetrieverOptions(),
                    judge=RuleJudge(),
                    log_queries=self._repository.logs_content,
                )
            return self._recall_engine


class ScopedBase:
    """A part of one memory: what it names of the scope cannot be named otherwise in a call."""

    def __init__(
        self, repository: Repository, scope: Scope, services: Services | None = None
    ) -> None:
        self._repository = repository
        self._scope = scope
        self._services = Services(repository) if services is None else services

    @property
    def agent_id(self) -> str:
        """Whose memory this is."""
        return self._scope.agent_id

    @property
    def scope(self) -> Scope:
        """What this view names."""
        return self._scope

    @property
    def repository(self) -> Repository:
        """What joins store and index; for services."""
        return self._repository

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._repository.path!r}, {self._scope})"

    def _new(self, fields: object, scope: Scope, now: datetime) -> NewEntry:
        return NewEntry.of_fields(fields, scope, now, self._repository.id_factory)

    def _part(
        self,
        user_id: str | None,
        project_id: str | None,
        session_id: str | None,
        all_users: bool = False,  # noqa: FBT001, FBT002 - handed on as it was given
    ) -> Scope:
        scope = self._scope.narrowed(user_id, project_id, session_id)
        if not flag("all_users", all_users):
            return scope
        if self._scope.user_id is not None:
            raise InvalidArgumentError(
                f"a view of {self._scope} is not widened to all users; ask the memory itself"
            )
        return scope.widened()

    def _ranking(
        self,
        search_type: SearchType,
        weights: Weights | Mapping[str, float] | None,
        ranking: Ranking | None,
    ) -> Ranking:
        if search_type not in SEARCH_TYPES:
            known = ", ".join(SEARCH_TYPES)
            raise InvalidArgumentError(
                f"search_type must be one of {known}, got {quoted(search_type)}"
            )
        if ranking is not None:
            if not isinstance(ranking, Ranking):
                raise InvalidArgumentError(
                    f"ranking must be a mnemic.Ranking, got {described(ranking)}"
                )
            if weights is not None or search_type != "hybrid":
                raise InvalidArgumentError(
                    "ranking says all that search_type and weights do; leave them out"
                )
            return ranking
        if search_type == "hybrid" and self._repository.embedder is None:
            search_type = "keyword"
        chosen = BY_SEARCH_TYPE[search_type]
        if weights is None:
            return chosen
        return msgspec.structs.replace(chosen, weights=Weights.parse(weights))

    def _search(
        self,
        query: object,
        limit: int,
        expression: Expression | None,
        *,
        ranking: Ranking | None = None,
        explain: bool = False,
        on_embed_error: OnQueryError = "keywords",
    ) -> Search:
        if not isinstance(query, str) or not query.strip():
            raise InvalidArgumentError(
                f"query must be a text that is not empty, got {described(query)}"
            )
        chosen = self._ranking("hybrid", None, None) if ranking is None else ranking
        search = _search(query, limit, chosen, expression, explain=explain)
        return msgspec.structs.replace(search, falls_back=falls_back(on_embed_error))

    async def _contradictions(
        self,
        scope: Scope,
        content: str,
        limit: int,
        exclude: tuple[UUID, ...] = (),
        *,
        is_sensitive: bool = False,
    ) -> MemoryRecallResult:
        options = RecallOptions(user_id=scope.user_id, max_results=limit)
        return await self._services.recall_engine.contradictions(
            scope, content, options, exclude=exclude, is_sensitive=is_sensitive
        )

    def _any_new(self, at: int, memory: NewMemory, scope: Scope, now: datetime) -> NewEntry:
        try:
            if isinstance(memory, MemoryEntry):
                return NewEntry(checked_record(memory, scope))
            return self._new({"content": memory} if isinstance(memory, str) else memory, scope, now)
        except InvalidArgumentError as error:
            raise InvalidEntryError(f"memory {at} of the list: {error}") from error


class MemoryHandle(ScopedBase):
    """The view in which only the agent is named; for the arguments see `Memory`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        agent_id: str = "default",
        **options: Unpack[Options],
    ) -> None:
        repository = Repository(path, agent_id, **options)
        super().__init__(repository, repository.agent)

    @property
    def embedder(self) -> "Embedder | None":
        """What turns texts into vectors."""
        return self._repository.embedder

    @property
    def events(self) -> Events:
        """Tells listeners what happens to memories; see `mnemic.observability.events`."""
        return self._repository.events


class AsyncScopedMemory(ScopedBase):
    """A view of one memory in which part of the scope is already named.

    It has the methods of `AsyncMemory`, which is itself the view in which only the agent is named.
    What a view names cannot be named otherwise in a call.

    A call that names no user, neither here nor itself, sees only memories stored without one. An id
    opens nothing by itself: outside the scope it is like an id that does not exist.

    All methods may be called from any event loop, and from several at once.
    """

    def scoped(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> "AsyncScopedMemory":
        """Return a view in which more of the scope is named.

        Raises:
            InvalidArgumentError: If something already named is named otherwise.
        """
        narrowed = self._scope.narrowed(user_id, project_id, session_id)
        return AsyncScopedMemory(self._repository, narrowed, self._services)

    async def add(
        self,
        content: str,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        role: str | None = None,
        speaker: str | None = None,
        message_id: str | None = None,
        position: int | None = None,
        created_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        type: MemoryType | str | None = MemoryType.FACT,  # noqa: A002 - the field's name everywhere
        tags: Sequence[str] | None = (),
        importance: float | None = 0.5,
        metadata: Mapping[str, Any] | None = None,
        category: str | None = None,
        sensitive: bool | None = False,
        supersedes: UUID | str | None = None,
        id: UUID | str | None = None,  # noqa: A002 - the field's name everywhere
        idempotency_key: str | None = None,
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
        check: Literal["contradictions"] | None = None,
    ) -> MemoryEntry:
        """Store one memory. When this returns it is on disk, and the next search can find it.

        Args:
            content: The text, not empty, at most 10 MB of UTF-8.
            user_id: Whom it is about; only calls that name the same user will see it.
            project_id: Can be filtered by.
            session_id: Can be filtered by.
            role: Who spoke, such as "user" or "assistant".
            speaker: The speaker's name.
            message_id: The message's id where it came from.
            position: Order inside the session.
            created_at: Now if None. A text is read as ISO 8601; without a zone it is UTC.
            expires_at: From then on it is like a deleted one; None is never.
            type: What sort of thing it states; a name such as "preference" will do.
            tags: Without control characters.
            importance: From 0 to 1.
            metadata: What JSON can hold; ints within ±2⁵³.
            category: Free.
            sensitive: Hide the content from `repr`, and from logs, events and errors even with
                `log_content=True`. Nothing is encrypted yet.
            supersedes: The memory that this one replaces; it is marked as superseded, is no longer
                found, and a link leads to it.
            id: A new one of version 7 if None. With an id of your own a retry cannot store twice.
            idempotency_key: Unique for agent and user. A second call with it stores nothing and
                returns the first one's memory, whatever became of that.
            on_duplicate: What to do if the user has a memory with the same text, whatever its case
                and white space: "keep" both, "skip" the new one, or "merge" its tags, metadata and
                importance into the older, which is returned then.
            on_embed_error: "pending" stores the memory without a vector if the embedder fails; it
                gets one before a later search.
            check: "contradictions" returns a `mnemic.CheckedEntry`, which tells the memories of the
                same scope that the new one contradicts; it is stored whatever they are. They are
                judged before it is stored: if that fails, nothing is stored.

        Returns:
            The memory as it was stored.

        Raises:
            InvalidEntryError: If an argument is of the wrong type or out of range.
            DuplicateEntryError: If the user already has a memory with this id, or the key was used
                for another content.
            EntryNotFoundError: If the user has no memory of the id that it supersedes.
            EmbeddingError: If the embedder fails; nothing is stored then.
            StoreError: If the file cannot be written; nothing is stored then.
        """
        fields = {
            "content": content,
            "user_id": user_id,
            "project_id": project_id,
            "session_id": session_id,
            "role": role,
            "speaker": speaker,
            "message_id": message_id,
            "position": position,
            "created_at": created_at,
            "expires_at": expires_at,
            "type": type,
            "tags": tags,
            "importance": importance,
            "metadata": metadata,
            "category": category,
            "sensitive": sensitive,
            "supersedes": supersedes,
            "id": id,
            "idempotency_key": idempotency_key,
        }
        if not isinstance(content, str):
            raise InvalidEntryError(
                f"content must be a str, got {content.__class__.__name__}; "
                "add_many takes lists, dicts and MemoryEntry"
            )
        if check not in (None, "contradictions"):
            raise InvalidArgumentError(
                f"check must be 'contradictions' or None, got {quoted(check)}"
            )
        new = self._new(fields, self._scope, self._repository.now())
        found: Sequence[ScoredMemory] = ()
        if check is not None:  # before storing, so that a judge that fails leaves nothing stored
            scope = self._scope.narrowed(user_id, project_id, session_id)
            replaced = () if new.entry.supersedes is None else (new.entry.supersedes,)
            contradicted = await self._contradictions(
                scope, content, 10, replaced, is_sensitive=bool(sensitive)
            )
            found = contradicted.memories
        (stored,) = await self._repository.add(
            [new], on_duplicate=on_duplicate, on_embed_error=on_embed_error
        )
        if check is None:
            return stored
        return CheckedEntry.of(stored, tuple(one for one in found if one.memory.id != stored.id))

    async def add_many(
        self,
        memories: Iterable[NewMemory],
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
    ) -> Entries:
        """Store several memories, all or none; far faster than one by one.

        Args:
            memories: Texts, dicts with the arguments of `add`, or `MemoryEntry` records, which keep
                their id and times.
            user_id: The user of those that name none.
            project_id: The project of those that name none.
            session_id: The session of those that name none.
            on_duplicate: As for `add`; earlier ones of the list count as stored.
            on_embed_error: As for `add`.

        Returns:
            The memories as they were stored, in the given order.

        Raises:
            InvalidEntryError: If one of them cannot be stored; the message says which.
            DuplicateEntryError: If a user has one of the ids already, or the list names it twice
                for the user.
            EntryNotFoundError: If one supersedes a memory that its user has not.
            EmbeddingError: If the embedder fails; nothing is stored then.
            StoreError: If the file cannot be written; nothing is stored then.
        """
        if isinstance(memories, str | Mapping | MemoryEntry):
            raise InvalidEntryError("add_many takes a list of memories; add takes a single one")
        scope = self._scope.narrowed(user_id, project_id, session_id)
        now = self._repository.now()
        given = items("memories", memories)

        def checked() -> list[NewEntry]:
            return [self._any_new(at, memory, scope, now) for at, memory in enumerate(given)]

        entries = checked() if len(given) <= _FEW_MEMORIES else await run_blocking(checked)
        return await self._repository.add(
            entries, on_duplicate=on_duplicate, on_embed_error=on_embed_error
        )

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
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Find the memories that match a query best.

        Every memory of the scope is ranked by its final score, exactly. Order: score, then newest,
        then smallest id; a smaller limit always gives the head of what a larger one gives (C193).
        There is no floor: the best are returned however far they are.

        Args:
            query: What to look for, not empty, at most 10,000 characters.
            limit: How many at most; 0 gives none.
            search_type: By meaning and keywords together ("hybrid"), by the meaning alone
                ("semantic": cosine), or by "keyword" alone. Without an embedder, hybrid is keyword.
            filters: Only memories that match, in the grammar of docs/filters.md; the limit, offset
                and order of a `MemoryFilter` are not used, and what is forgotten is never found.
            since: Only memories created then or later; a text is read as ISO 8601, in UTC.
            until: Only memories created before.
            weights: How much relevance, recency, importance, access and salience weigh, by name;
                what is not named weighs nothing. The relevance alone unless given.
            ranking: Everything a score is made of, in place of `search_type` and `weights`; see
                `mnemic.Ranking`.
            explain: Return every part of each score in `components`, not only similarity and
                keyword.
            on_embed_error: What a hybrid search does where its query cannot be embedded: "keywords"
                answers it as a memory without an embedder would, and marks the results as
                `degraded`; "raise" does not. A semantic search always raises.
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.

        Returns:
            min(limit, memories that match) hits, best first. By keywords a memory matches if it, or
            a neighbour in its session, has a word of the query; otherwise every memory does that
            filters let through.

        Raises:
            InvalidArgumentError: If the query is empty, or an argument out of range.
            FilterError: If the filter cannot be understood; the message names the place.
            EmbedderRequiredError: If a semantic search is wanted without an embedder.
            EmbeddingError: If the embedder fails, and the search does not fall back.
        """
        search = self._search(
            query,
            limit,
            _parsed_filters(filters, since, until),
            ranking=self._ranking(search_type, weights, ranking),
            explain=explain,
            on_embed_error=on_embed_error,
        )
        return await self._repository.search(
            self._part(user_id, project_id, session_id, all_users), search
        )

    async def retrieve(
        self,
        query: MemoryQuery,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryRetrievalResult:
        """Answer a `MemoryQuery`: weighted relevance, expansion, and answers kept for a time.

        See `mnemic.RetrievalService`, which has more of the same; queries are shown in logs and
        events only with `log_content`.

        Args:
            query: What to retrieve, and by what to rank.
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.

        Raises:
            InvalidArgumentError: If it is no query.
            EmbedderRequiredError: If it needs vectors and there is no embedder.
            EmbeddingError: If the embedder fails.
        """
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._services.retrieval_engine.retrieve(scope, query)

    async def retrieve_to_context(
        self,
        query: MemoryQuery,
        window: "ContextWindow",
        *,
        include_sensitive: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Add what answers a query to a context window, as far as it has room.

        See `mnemic.RetrievalService.retrieve_to_context`.

        Args:
            query: What to retrieve.
            window: Where to.
            include_sensitive: Whether sensitive memories are added too.
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.

        Returns:
            How many items were added.
        """
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._services.retrieval_engine.to_context(
            scope, query, window, include_sensitive=include_sensitive
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
            limit: How many at most, 1 to 1,000.
            type: Only of this type, or of a kind such as "episodic".
            min_salience: The least salience, 0 to 1.
            include_archived: Archived ones too.
            include_superseded: Superseded ones too.
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.

        Raises:
            InvalidArgumentError: If an argument is outside its range.
            EmbedderRequiredError: If relevant recall has no embedder.
            EmbeddingError: If the embedder fails.
        """
        scope = self._part(user_id, project_id, session_id, all_users)
        options = RecallOptions(
            user_id=scope.user_id,
            max_results=limit,
            type_filter=type,
            min_salience=min_salience,
            mode=RecallMode.parse(mode),
            include_archived=include_archived,
            include_superseded=include_superseded,
        )
        return await self._services.recall_engine.recall(scope, query, options)

    async def contradictions(
        self,
        content: str,
        *,
        limit: int = 10,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryRecallResult:
        """Return memories that a text contradicts, the surest first.

        See `mnemic.MemoryRetriever.find_contradictions`; the judge knows English alone.

        Args:
            content: A statement.
            limit: How many at most, 1 to 1,000.
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.
        """
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._contradictions(scope, content, limit)

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
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> "MemoryContext":
        """Return the memories that match a query best as one text, for a prompt.

        Each is one line that cites its number, its date and who spoke; the same text comes once,
        and what does not fit is passed over. The whole text, rendered, takes at most `max_tokens`.

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
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.

        Returns:
            The text, "" if nothing fits; it knows what it cites.

        Raises:
            As `search`.
        """
        from mnemic.context import packed  # noqa: PLC0415 - not every program uses it

        whole("max_tokens", max_tokens, minimum=1)
        flag("include_sensitive", include_sensitive)
        expression = _parsed_filters(filters, since, until)
        if not include_sensitive:  # before the limit, so that they take no other's place
            expression = All((IS_NOT_SENSITIVE, *([] if expression is None else [expression])))
        search = self._search(query, limit, expression, on_embed_error=on_embed_error)
        scope = self._part(user_id, project_id, session_id, all_users)
        found = await self._repository.search(scope, search)
        entries = [hit.entry for hit in found]
        return await run_blocking(
            lambda: packed(entries, max_tokens, counter, degraded=found.degraded)
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
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Find the memories whose meaning is nearest to that of a memory, without itself.

        Its stored vectors are the query, so nothing is embedded, and looking it up is no access.
        Without an embedder those that share most of its keywords. For what is not described here,
        see `search`.

        Args:
            id: Which memory.
            limit: How many at most.
            filters: As for `search`.
            since: As for `search`.
            until: As for `search`.
            explain: As for `search`.
            user_id: Whose memories, that of the id included.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope, entry_id = self._part(user_id, project_id, session_id, all_users), required_uuid(id)
        chosen = KEYWORD if self._repository.embedder is None else SEMANTIC
        search = _search(
            None, limit, chosen, _parsed_filters(filters, since, until), explain=explain
        )
        found = await self._repository.similar(scope, entry_id, search)
        if found is None:
            raise _not_found(entry_id, scope)
        return found

    async def recent(
        self,
        *,
        limit: int = 10,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Return the newest memories; the score is 1 for the newest and 0 for the oldest in play.

        For the arguments see `search`. Order: creation, newest first, then smallest id.
        """
        search = _search(None, limit, NEWEST, _parsed_filters(filters, since, until), explain=True)
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._repository.search(scope, search)

    async def important(
        self,
        *,
        limit: int = 10,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SearchResults:
        """Return the most important memories; the score is the importance.

        For the arguments see `search`. Order: importance, then newest, then smallest id.
        """
        expression = _parsed_filters(filters, since, until)
        search = _search(None, limit, MOST_IMPORTANT, expression, explain=True)
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._repository.search(scope, search)

    async def get(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryEntry:
        """Return a memory by its id, without its embedding.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        entry_id = required_uuid(id)
        found = await self._repository.get(scope, [entry_id])
        if entry_id not in found:
            raise _not_found(entry_id, scope)
        return found[entry_id]

    async def update(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        content: str | None = None,
        importance: float | None = None,
        add_tags: Sequence[str] | None = (),
        remove_tags: Sequence[str] | None = (),
        type: MemoryType | str | None = None,  # noqa: A002 - the field's name everywhere
        metadata: Mapping[str, Any] | None = None,
        status: MemoryStatus | str | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryEntry:
        """Change a memory; what is left out stays as it is. A new content is embedded.

        Args:
            id: Which one.
            content: The new text.
            importance: From 0 to 1.
            add_tags: Added after the others, unless there already.
            remove_tags: Removed before tags are added.
            type: What sort of thing it states.
            metadata: Merged into the old: its keys replace keys of the same name.
            status: "archived" leaves it out of searches; "active" brings it back.
            user_id: Whose it is; None is those stored without a user.
            project_id: Only if it is of this project.
            session_id: Only if it is of this session.

        Returns:
            The memory as it is now, without its embedding.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
            InvalidEntryError: If an argument is of the wrong type or out of range.
            EmbeddingError: If the embedder fails; nothing is changed then.
            StoreError: If the file cannot be written; nothing is changed then.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        given: dict[str, Any] = {
            "content": content,
            "importance": importance,
            "add_tags": add_tags,
            "remove_tags": remove_tags,
            "type": type,
            "metadata": metadata,
            "status": status,
        }
        update = MemoryEntryUpdate(**given)
        entry_id = required_uuid(id)
        entry = await self._repository.update(scope, entry_id, update)
        if entry is None:
            raise _not_found(entry_id, scope)
        return entry

    async def delete(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        permanent: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> DeleteResult:
        """Delete a memory: from now on it is not found. Deleting it again changes nothing.

        Args:
            id: Which one.
            permanent: Delete its record, vectors and links too; it cannot be restored. Otherwise
                the record stays, marked as forgotten, and can be restored for 90 days.
            user_id: Whose it is; None is those stored without a user.
            project_id: Only if it is of this project.
            session_id: Only if it is of this session.

        Returns:
            1; its `erased` tells whether the deleted bytes are gone from the file already.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope, entry_id = self._scope.narrowed(user_id, project_id, session_id), required_uuid(id)
        deleted = await self._repository.delete(scope, entry_id, permanent=permanent)
        if not deleted:
            raise _not_found(entry_id, scope)
        return deleted

    async def delete_all(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        permanent: bool = False,
    ) -> DeleteResult:
        """Delete all memories of a scope: of a user, of nobody, or of a part of theirs.

        Args:
            user_id: Whose; None is those stored without a user.
            project_id: Only those of this project.
            session_id: Only those of this session.
            permanent: Delete records, vectors and links too, also of memories deleted before; they
                cannot be restored.

        Returns:
            How many memories that were.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return await self._repository.delete_all(scope, permanent=permanent)

    async def restore(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> bool:
        """Take a memory back that was deleted within the last 90 days, and not permanently.

        Returns:
            False if the scope has no such memory, if it is not deleted, or was so too long ago.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return await self._repository.restore(scope, required_uuid(id))

    async def count(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Return how many memories of the scope a search can find.

        Args:
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.
        """
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._repository.count(scope)

    async def stats(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> LongTermMemoryStats:
        """Return what the memories of the scope amount to.

        Two figures are of the whole agent: the storage limit, and, where there is one, the bytes
        used. What the embedder did is told with `all_users` alone.

        Args:
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.
        """
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._repository.stats(scope)

    async def purge(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete for good the scope's memories that were deleted or expired over 90 days ago.

        Args:
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view of a user.

        Returns:
            How many memories that were; its `erased` tells whether their bytes are gone already.
        """
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._repository.purge(scope)

    async def touch(
        self,
        ids: Iterable[UUID | str],
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> None:
        """Count an access of memories; unknown ids are passed over.

        Reading a memory by its id counts by itself. Accesses are written down together, within
        about a second; a crash may lose the last ones (C090).
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        await self._repository.touch(scope, required_uuids("ids", ids))

    async def link(
        self,
        from_id: UUID | str,
        to_id: UUID | str,
        type: LinkType | str = LinkType.RELATED,  # noqa: A002 - the field's name everywhere
        strength: float = 1.0,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryLink:
        """Link two memories, from the newer to the older (C147).

        Linking them again with the same type changes the strength.

        Args:
            from_id: The memory that says something of the other.
            to_id: The other one.
            type: What it says. SUPERSEDES comes from `add(..., supersedes=…)` alone (C161).
            strength: From 0 to 1.
            user_id: Whose they are; None is those stored without a user.
            project_id: Only if they are of this project.
            session_id: Only if they are of this session.

        Raises:
            EntryNotFoundError: If one of them is not there.
            InvalidArgumentError: If both are the same, the type is SUPERSEDES or unknown, or the
                strength outside its range.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        ends = required_uuid(from_id), required_uuid(to_id)
        return await self._repository.link(scope, *ends, type, strength)

    async def unlink(
        self,
        from_id: UUID | str,
        to_id: UUID | str,
        type: LinkType | str | None = None,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> int:
        """Delete links from one memory to another, of one type or of all but SUPERSEDES.

        Returns:
            How many.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        ends = required_uuid(from_id), required_uuid(to_id)
        return await self._repository.unlink(scope, *ends, type)

    async def links(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        direction: Direction = "both",
        types: Collection[LinkType | str] | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> Links:
        """Return the links of a memory whose other ends are there: not deleted, not expired.

        Args:
            id: Which memory; one that is not there has none.
            direction: "out" from it, "in" to it, or "both".
            types: Only these.
            user_id: Whose it is; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.

        Returns:
            Oldest first, then by the ids, then by type.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return await self._repository.links(scope, required_uuid(id), direction, types)

    async def export(
        self,
        target: Target,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
        include_deleted: bool = True,
        embeddings: bool = False,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Write memories, and the links between them, as JSON Lines; see docs/export.md.

        What is written while others write is each memory as it was at some moment meanwhile; a
        `backup` is all of one moment.

        Args:
            target: A path, which is complete or not there at all, of mode 0600; or a text file.
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Everybody's; not in a view.
            include_deleted: Those that can be restored, and expired ones, too.
            embeddings: Their vectors too, which take about 2 KB each.
            overwrite: Whether a file at this path may be replaced.
            progress: Called now and then with the number of memories written so far.

        Returns:
            How many memories.

        Raises:
            InvalidArgumentError: If there is a file at this path already.
            EmbedderRequiredError: If vectors are wanted of a memory opened with `embedder=None`.
            StoreFullError: If the disk is full or failing.
            StoreError: If it cannot be written.
        """
        scope = self._part(user_id, project_id, session_id, all_users)
        return await self._repository.export(
            scope,
            target,
            include_deleted=flag("include_deleted", include_deleted),
            embeddings=embeddings,
            overwrite=overwrite,
            progress=progress,
        )

    async def import_(self, source: Source, *, progress: Progress | None = None) -> ImportResult:
        """Store the memories of an export, of whatever agent, with their ids, users and times.

        The whole file is checked first; memories outside what this view names are refused. Then
        they are stored in batches; those that their users have already are passed over, so an
        import that was interrupted can be repeated. Memories without a vector of this embedder are
        embedded.

        Args:
            source: A path, or an open file.
            progress: Called now and then with the number of memories done so far.

        Raises:
            ExportFormatError: At the first line that is not right; nothing is stored then.
            DuplicateEntryError: If a key was used for another content. With this and what follows,
                the batches of 1,000 memories before are stored; repeat it when the cause is gone.
            StorageQuotaExceededError: If a batch would pass the quota.
            EmbeddingError: If the embedder fails.
            StoreError: If the file cannot be written.
        """
        return await self._repository.import_(self._scope, source, progress=progress)

    async def list(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        include_deleted: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryPage:
        """Return a page of the memories, newest first.

        Memories that are there all the while are on exactly one page, whatever is written between.

        Args:
            limit: How many on a page, 1 to 1,000.
            cursor: From the page before; None begins.
            filters: Only those that match, in the grammar of docs/filters.md; the limit, offset and
                order of a `MemoryFilter` are not used.
            include_deleted: Those that can be restored, and expired ones, too.
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.

        Raises:
            InvalidArgumentError: If the limit is out of range, or no page gave the cursor.
            FilterError: If the filter cannot be understood.
        """
        return await self._repository.page(
            self._scope.narrowed(user_id, project_id, session_id),
            limit=limit,
            cursor=cursor,
            wanted=filters,
            include_deleted=flag("include_deleted", include_deleted),
        )


class AsyncMemory(MemoryHandle, AsyncScopedMemory):
    """A long-term memory in one file, with awaited calls; `Memory` has the same without.

    Example:
        >>> async with await AsyncMemory.open("agent.db") as memory:  # doctest: +SKIP
        ...     await memory.add("Prefers metric units", user_id="alice")
        ...     hits = await memory.search("which units?", user_id="alice")

    Several memories, in one process or in many, may have the same file open; each sees the others'
    writes in its next call.

    Args:
        path: A file, made if there is none and readable by its owner alone, or ":memory:".
        agent_id: Whose memory it is. Agents in one file never see each other's memories.
        options: See `mnemic.repository.Options`.

    Raises:
        MissingExtraError: If the local embedder is wanted and not installed.
        StoreFileError: If the path cannot be used or holds something else.
        SchemaVersionError: If a newer mnemic wrote the file.
        StoreCorruptError: If the file is damaged.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
    """

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        agent_id: str = "default",
        **options: Unpack[Options],
    ) -> Self:
        """Open a memory without holding up the event loop; for the arguments see the class."""
        return await run_blocking(lambda: cls(path, agent_id, **options))

    async def erase_pending(self) -> bool:
        """Erase the bytes that deletions for good could not erase at once, in the whole file.

        A deletion cannot erase them while a reader or a backup needs the old state, and says so
        (`DeleteResult.erased`). Each call tries again, and waits a moment for those who read.

        Returns:
            Whether nothing of what was deleted for good is left in the file and its log.

        Raises:
            ReadOnlyError: If the memory was opened for reading alone.
        """
        return await self._repository.erase_pending()

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole file, all agents' memories, as of one moment, while others go on writing.

        Args:
            path: A new file; it gets mode 0600, and is complete or not there at all.

        Raises:
            StoreFileError: If there is something already, or it cannot be written.
        """
        await self._repository.backup(path)

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Walk through the whole file, all agents' memories, and compare it with its checksums.

        Rows, vectors and links are read and compared, the number of each agent's memories too, and
        SQLite checks its own structures. Nothing is written unless `repair` asks for it. Where an
        embedder cannot load a damaged file, open it with `embedder=None`.

        Args:
            repair: Give checksums to memories that earlier versions of mnemic wrote, and write each
                agent's number and sum of memories anew, after they were compared. What is damaged
                stays as it is: it is reported each time, and refused where it is read.
            progress: Called now and then with the number of memories so far.

        Returns:
            What was counted and found; its `ok` says whether all is as it was stored.

        Raises:
            ReadOnlyError: If a file opened for reading alone is to be repaired.
        """
        return await self._repository.verify(repair=repair, progress=progress)

    async def close(self) -> None:
        """Finish writing and let go of the file. Harmless if repeated."""
        await self._repository.close()

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _search(
    text: str | None, limit: int, ranking: Ranking, expression: Expression | None, *, explain: bool
) -> Search:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise InvalidArgumentError(f"limit must be an int of at least 0, got {quoted(limit)}")
    if text is not None:
        _check_encodable(bounded("query", text))
    return Search(
        text=text,
        limit=min(limit, sys.maxsize),
        ranking=ranking,
        filters=expression,
        explain=flag("explain", explain),
    )


def _check_encodable(text: str) -> None:
    at = lone_surrogate(text)
    if at is not None:
        raise InvalidArgumentError(
            f"query holds a lone surrogate at {at}, which is no text; encode it with "
            "errors='replace' first"
        )


def _parsed_filters(
    filters: MemoryFilter | Mapping[str, Any] | None,
    since: datetime | str | None,
    until: datetime | str | None,
) -> Expression | None:
    parts = parse_times(since, until)
    if filters is not None:
        parts.append(parse_filter(filters))
    return All(tuple(parts)) if parts else None


def _not_found(entry_id: UUID, scope: Scope) -> EntryNotFoundError:
    return EntryNotFoundError(f"no memory with id {entry_id} for {scope}")
