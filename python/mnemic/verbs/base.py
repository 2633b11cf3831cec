"""The parts that all views of a memory share: scope, services, and how a search is built."""

import sys
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import msgspec

import mnemic.repository  # noqa: TC001 - annotations name its classes
from mnemic.arrays import Float32Array
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.model import (
    Expression,
    MemoryEntry,
    MemoryFilter,
    MemoryRecallResult,
    MemoryRetrieverOptions,
    OnQueryError,
    OnTimeout,
    Ranking,
    RecallOptions,
    Scope,
    SearchResults,
    SearchType,
    Weights,
    validation,
)
from mnemic.model.deadline import TimeLimit
from mnemic.model.filter import All, parse_filter, parse_times
from mnemic.model.new_entry import NewEntry, checked_record, with_embedding
from mnemic.model.ranking import BY_SEARCH_TYPE, SEARCH_TYPES, falls_back
from mnemic.model.recall import CONTRADICTION_CONFIDENCE
from mnemic.model.search import Search
from mnemic.model.validation import bounded, flag, lone_surrogate
from mnemic.records.secrets import without_passwords
from mnemic.reporting.description import described, quoted
from mnemic.threads.twins import Twin
from mnemic.verbs.habits import MemoryHabits
from mnemic.verbs.paging import WHOLE, Paging, minimum_score, minimum_similarity

if TYPE_CHECKING:
    from mnemic.recall import RecallEngine
    from mnemic.retrieval import RetrievalEngine, Suggester

NewMemory: TypeAlias = str | Mapping[str, Any] | MemoryEntry
"""A memory as `add_many` takes it: a text, a dict with the arguments of `add`, or a record."""


class Services:
    """The services of one memory, built on first use and shared by all its views.

    Attributes:
        repository: The repository.
    """

    def __init__(
        self,
        repository: "mnemic.repository.Repository",
        expander: "mnemic.annotations.AnyExpander | None" = None,
    ) -> None:
        self.repository = repository
        self._expander = expander
        self._lock = threading.Lock()
        self._retrieval_engine: RetrievalEngine | None = None
        self._suggester: Suggester | None = None
        self._recall_engine: RecallEngine | None = None

    @property
    def retrieval_engine(self) -> "RetrievalEngine":
        """The engine of structured retrieval."""
        with self._lock:
            if self._retrieval_engine is None:
                from mnemic.retrieval import RetrievalEngine, expander_of  # noqa: PLC0415 - loaded on first use

                self._retrieval_engine = RetrievalEngine(
                    self.repository,
                    expander=expander_of(self._expander),
                    log_queries=self.repository.logs_content,
                )
            return self._retrieval_engine

    @property
    def suggester(self) -> "Suggester":
        """The suggester of queries."""
        with self._lock:
            if self._suggester is None:
                from mnemic.retrieval import CorpusSuggester  # noqa: PLC0415 - as above

                self._suggester = CorpusSuggester()
            return self._suggester

    @property
    def recall_engine(self) -> "RecallEngine":
        """The engine of recall."""
        with self._lock:
            if self._recall_engine is None:
                # Imported on first use: most programs use neither engine.
                from mnemic.contradictions import RuleJudge  # noqa: PLC0415
                from mnemic.recall import RecallEngine  # noqa: PLC0415

                self._recall_engine = RecallEngine(
                    self.repository,
                    MemoryRetrieverOptions(),
                    judge=RuleJudge(),
                    log_queries=self.repository.logs_content,
                )
            return self._recall_engine


class ScopedBase(Twin, MemoryHabits):
    """A view of one memory: a call cannot name otherwise the parts of the scope that it names."""

    def __init__(
        self,
        repository: "mnemic.repository.Repository",
        scope: Scope,
        services: Services | None = None,
    ) -> None:
        self._repository = repository
        self._scope = scope
        self._services = Services(repository) if services is None else services

    @property
    def agent_id(self) -> str:
        """The agent of this memory."""
        return self._scope.agent_id

    @property
    def scope(self) -> Scope:
        """The scope of this view."""
        return self._scope

    @property
    def repository(self) -> "mnemic.repository.Repository":
        """The repository, for services."""
        return self._repository

    def __repr__(self) -> str:
        """Return path, scope and embedder, from what is in memory, without any URL's password."""
        model = self._repository.embedder_model
        embedder = "no embedder" if model is None else f"embedder {model!r}"
        shown = f"{type(self).__name__}({self._repository.path!r}, {self._scope}, {embedder})"
        return without_passwords(shown)

    async def _with_vectors(self, found: SearchResults, *, embeddings: bool) -> SearchResults:
        """Return results whose memories have their embeddings if wanted."""
        if not embeddings or not found:
            return found
        entries = [hit.entry for hit in found]
        return found.with_entries(await self._repository.vectors.attached(entries))

    def _new(self, fields: object, scope: Scope, now: datetime) -> NewEntry:
        return NewEntry.of_fields(fields, scope, now, self._repository.id_factory)

    def _ranking(
        self,
        search_type: SearchType,
        weights: Weights | Mapping[str, float] | None,
        ranking: Ranking | None,
        *,
        has_text: bool = True,
        has_vector: bool = False,
    ) -> Ranking:
        chosen = self._chosen_ranking(
            search_type, weights, ranking, has_text=has_text, has_vector=has_vector
        )
        if has_vector and not chosen.has_similarity:
            raise InvalidArgumentError(
                "a search by keywords compares no vectors; leave vector out, or search by meaning "
                "with search_type='semantic' or 'hybrid'"
            )
        return chosen

    def _chosen_ranking(
        self,
        search_type: SearchType,
        weights: Weights | Mapping[str, float] | None,
        ranking: Ranking | None,
        *,
        has_text: bool,
        has_vector: bool,
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
                    "ranking takes the place of search_type and weights; leave them out"
                )
            return ranking
        if search_type == "hybrid" and not has_text:
            search_type = "semantic"
        if search_type == "hybrid" and self._repository.embedder is None and not has_vector:
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
        vector: object = None,
        search_type: SearchType = "hybrid",
        weights: Weights | Mapping[str, float] | None = None,
        ranking: Ranking | None = None,
        paging: Paging = WHOLE,
        explain: bool = False,
        on_embed_error: OnQueryError = "keywords",
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
    ) -> Search:
        vectors = None if vector is None else validation.directed("vector", vector)
        text = None if query is None and vectors is not None else validation.query(query)
        chosen = self._ranking(
            search_type,
            weights,
            ranking,
            has_text=text is not None,
            has_vector=vectors is not None,
        )
        return built_search(
            text,
            limit,
            chosen,
            expression,
            vectors=vectors,
            paging=paging,
            explain=explain,
            with_reasons=explain,
            on_embed_error=on_embed_error,
            timeout=timeout,
            on_timeout=on_timeout,
        )

    async def _contradictions(
        self,
        scope: Scope,
        content: str,
        limit: int,
        exclude: tuple[UUID, ...] = (),
        *,
        min_confidence: float = CONTRADICTION_CONFIDENCE,
        is_sensitive: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
    ) -> MemoryRecallResult:
        options = RecallOptions(
            user_id=scope.user_id, max_results=limit, timeout=timeout, on_timeout=on_timeout
        )
        return await self._services.recall_engine.contradictions(
            scope,
            content,
            options,
            min_confidence=min_confidence,
            exclude=exclude,
            is_sensitive=is_sensitive,
        )

    def _any_new(
        self, at: int, memory: NewMemory, scope: Scope, now: datetime, embedding: object = None
    ) -> NewEntry:
        try:
            return self._of_any(memory, scope, now, embedding)
        except InvalidArgumentError as error:
            raise InvalidEntryError(f"memory {at} of the list: {error}") from error

    def _of_any(
        self, memory: NewMemory, scope: Scope, now: datetime, embedding: object
    ) -> NewEntry:
        if isinstance(memory, MemoryEntry):
            record = memory if embedding is None else memory.with_own_embedding(embedding)
            return NewEntry.of_record(checked_record(record, scope))
        fields: object = {"content": memory} if isinstance(memory, str) else memory
        if embedding is not None:
            fields = with_embedding(fields, embedding)
        return self._new(fields, scope, now)


def built_search(
    text: str | None,
    limit: int,
    ranking: Ranking,
    filters: Expression | None,
    *,
    vectors: Float32Array | None = None,
    paging: Paging = WHOLE,
    explain: bool,
    with_reasons: bool = False,
    on_embed_error: OnQueryError = "raise",
    timeout: float | None = None,
    on_timeout: OnTimeout = "raise",
) -> Search:
    """Return the search that a caller's arguments describe.

    Raises:
        InvalidArgumentError: If one of them is outside its range.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise InvalidArgumentError(f"limit must be an int of at least 0, got {quoted(limit)}")
    if text is not None:
        _check_encodable(bounded("query", text))
    time_limit = TimeLimit.after(timeout, on_timeout)
    score = minimum_score(paging.min_score)
    return Search(
        text=text,
        vectors=vectors,
        limit=min(limit, sys.maxsize),
        offset=min(validation.whole("offset", paging.offset), sys.maxsize // 2),
        ranking=ranking,
        filters=filters,
        min_similarity=minimum_similarity(paging.min_similarity, ranking),
        min_score=None if isinstance(score, str) else score,
        needs_evidence=score == "auto",
        with_total=flag("total", paging.total),
        explain=flag("explain", explain),
        with_reasons=with_reasons,
        falls_back=falls_back(on_embed_error),
        deadline=time_limit.deadline,
        takes_partial=time_limit.takes_partial,
    )


def _check_encodable(text: str) -> None:
    at = lone_surrogate(text)
    if at is not None:
        raise InvalidArgumentError(
            f"query holds a lone surrogate at {at}, which is no text; encode it with "
            "errors='replace' first"
        )


def parsed_filters(
    filters: MemoryFilter | Mapping[str, Any] | None,
    since: datetime | str | None,
    until: datetime | str | None,
) -> Expression | None:
    """Return the filters and the range of creation times as one expression; None is no filter."""
    parts = parse_times(since, until)
    if filters is not None:
        parts.append(parse_filter(filters))
    return All(tuple(parts)) if parts else None
