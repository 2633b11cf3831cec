"""The parts that all views of a memory share: scope, services, and how a search is built."""

import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import msgspec

import mnemic.repository  # noqa: TC001 - annotations name its classes
from mnemic.arrays import Float32Array
from mnemic.errors import InvalidArgumentError, UnsupportedUseError
from mnemic.model import (
    Expression,
    MemoryEntry,
    MemoryFilter,
    MemoryRetrieverOptions,
    OnTimeout,
    Ranking,
    RecallOptions,
    Scope,
    ScoredMemory,
    SearchType,
    Weights,
    validation,
)
from mnemic.model.deadline import TimeLimit
from mnemic.model.filter import All, parse_filter, parse_times
from mnemic.model.new_entry import NewEntry, with_embedding
from mnemic.model.ranking import BY_SEARCH_TYPE, SEARCH_TYPES
from mnemic.model.search import Search
from mnemic.model.time_zones import naive_times_in
from mnemic.model.validation import flag, is_number
from mnemic.records.secrets import without_passwords
from mnemic.reporting.description import must_be, quoted
from mnemic.reporting.habits import MEMORY, AnswersHabits, NotPickled, missing
from mnemic.threads.locks import Lock
from mnemic.threads.sync_bridge import Twin

if TYPE_CHECKING:
    from mnemic.recall import RecallEngine
    from mnemic.retrieval import RetrievalEngine


class _OfMemories(type):
    """Classes of memories, which answer the names of other libraries' ways to open one."""

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name != "__class__"]  # it is no help

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(cls, name: str) -> object:
            if name.startswith("_") or any(name in vars(each) for each in cls.__mro__):
                return type.__getattribute__(cls, name)  # raises what was raised before
            raise missing(cls, name, dir(cls), MEMORY)


class MemoryHabits(AnswersHabits, NotPickled, metaclass=_OfMemories):
    """A view of a memory, which is always true, and neither a sequence nor a dict."""

    _habits: ClassVar[Mapping[str, str]] = MEMORY
    _not_pickled: ClassVar[str] = (
        "{name} cannot be pickled or copied deeply, as it is open; give the other process the "
        "path, and open a memory there"
    )

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> Self:
        view = type(self).__new__(type(self))
        vars(view).update(vars(self))
        return view

    if not TYPE_CHECKING:  # which would let these through

        def __len__(self) -> int:
            raise UnsupportedUseError(
                f"{type(self).__name__} has no length; memory.count(user_id=…) counts a user's "
                "memories"
            )

        def __getitem__(self, key: object) -> object:
            raise UnsupportedUseError(
                f"{type(self).__name__} has no items; memory.get(id) returns one memory, and "
                "memory.list(user_id=…) a page of them"
            )


MinScore: TypeAlias = float | Literal["auto", "relative"] | None
"""Least score of a hit; "auto" for a floor by the evidence, "relative" for one by the best hit too;
None is no floor."""

_WORDS: tuple[Literal["auto", "relative"], ...] = ("auto", "relative")


def minimum_score(given: object) -> MinScore:
    """Return a floor of scores; 0 is none.

    Raises:
        InvalidArgumentError: If it is neither a number from 0 to 1, nor a word, nor None.
    """
    if given is None:
        return None
    for word in _WORDS:
        if isinstance(given, str) and given == word:
            return word
    if not (is_number(given) and 0 <= given <= 1):
        raise InvalidArgumentError(
            'min_score must be a number from 0 to 1, "auto", "relative", or None for no floor, '
            f"got {quoted(given)}"
        )
    return float(given) or None


NewMemory: TypeAlias = str | MemoryEntry | Mapping[str, Any]
"""A memory as `add` takes it: a text, an entry, or a dict of the fields of one."""


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
        self._lock = Lock()
        self._retrieval_engine: RetrievalEngine | None = None
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
                    log_queries=self.repository.shared.settings.log_content,
                )
            return self._retrieval_engine

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
                    log_queries=self.repository.shared.settings.log_content,
                )
            return self._recall_engine


class ScopedBase(Twin, MemoryHabits):
    """A view of one memory: a call cannot name otherwise the parts of the scope that it names."""

    _own_time_zone: str | None = None

    def __init__(
        self,
        repository: "mnemic.repository.Repository",
        scope: Scope,
        services: Services | None = None,
        time_zone: str | None = None,
    ) -> None:
        self._repository = repository
        self._scope = scope
        self._services = Services(repository) if services is None else services
        self._own_time_zone = time_zone

    @property
    def agent_id(self) -> str:
        """The agent of this memory."""
        return self._scope.agent_id

    @property
    def scope(self) -> Scope:
        """The scope of this view."""
        return self._scope

    @property
    def time_zone(self) -> str:
        """The zone of named days, of times that name none, and of dates in prompts, by its name."""
        return self._own_time_zone or self._repository.shared.time_zone

    @property
    def repository(self) -> "mnemic.repository.Repository":
        """The repository, for services."""
        return self._repository

    def __repr__(self) -> str:
        """Return path, scope and embedder, from what is in memory, without any URL's password."""
        shared = self._repository.shared
        own = shared.models.embedder
        embedder = "no embedder" if own is None else f"embedder {own.model!r}"
        path = shared.store.path
        shown = f"{type(self).__name__}({path!r}, {self._scope}, {embedder})"
        return without_passwords(shown)

    def _ranking(
        self,
        search_type: SearchType,
        ranking: Ranking | Weights | Mapping[str, float] | None,
        *,
        has_text: bool,
        has_vector: bool,
    ) -> Ranking:
        validation.word("search_type", search_type, SEARCH_TYPES)
        if isinstance(ranking, Ranking):
            if search_type != "hybrid":
                raise InvalidArgumentError(
                    "a Ranking takes the place of search_type; leave one of them out"
                )
            return ranking
        if not (ranking is None or isinstance(ranking, Weights | Mapping)):
            raise must_be(
                "ranking", "a mnemic.Ranking, mnemic.Weights or a dict of weights", ranking
            )
        if search_type == "hybrid" and not has_text:
            search_type = "semantic"
        has_embedder = self._repository.shared.models.embedder is not None
        if search_type == "hybrid" and not (has_embedder or has_vector):
            search_type = "keyword"
        chosen = BY_SEARCH_TYPE[search_type]
        if ranking is None:
            return chosen
        return msgspec.structs.replace(chosen, weights=Weights.parse(ranking))

    def _search(
        self,
        query: object,
        limit: int,
        expression: Expression | None,
        *,
        vector: object = None,
        offset: int = 0,
        search_type: SearchType = "hybrid",
        ranking: Ranking | Weights | Mapping[str, float] | None = None,
        min_score: MinScore = None,
        explain: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
    ) -> Search:
        vectors = None if vector is None else validation.directed("vector", vector)
        text = None if query is None and vectors is not None else validation.query(query)
        chosen = self._ranking(
            search_type, ranking, has_text=text is not None, has_vector=vectors is not None
        )
        if vectors is not None and not chosen.has_similarity:
            raise InvalidArgumentError(
                "a search by keywords compares no vectors; leave vector out, or search by meaning "
                "with search_type='semantic' or 'hybrid'"
            )
        return built_search(
            text,
            limit,
            chosen,
            expression,
            vectors=vectors,
            offset=offset,
            min_score=min_score,
            explain=explain,
            with_reasons=explain,
            timeout=timeout,
            on_timeout=on_timeout,
            time_zone=self.time_zone,
        )

    async def _contradicted(self, new: MemoryEntry) -> Sequence[ScoredMemory]:
        """Return the memories of its scope that a memory contradicts, which is to be stored."""
        scope = self._scope.narrowed(new.user_id, new.project_id, new.session_id)
        contradicted = await self._services.recall_engine.contradictions(
            scope, new.content, RecallOptions(user_id=scope.user_id), new=new
        )
        return contradicted.memories

    def _new(
        self,
        memory: object,
        scope: Scope,
        now: datetime,
        embedding: object = None,
        *,
        key: object = None,
    ) -> NewEntry:
        """Return a memory to store.

        Args:
            memory: As `add` takes it.
            scope: That of the call.
            now: Its time, unless it has one.
            embedding: Its vectors, given beside it.
            key: Its idempotency key, given beside it.
        """
        if isinstance(memory, MemoryEntry):
            entry = memory if embedding is None else memory.with_own_embedding(embedding)
            return self._new_entry(entry, scope, now, key)
        fields: object = {"content": memory} if isinstance(memory, str) else memory
        if embedding is not None:
            fields = with_embedding(fields, embedding)
        if key is not None and isinstance(fields, Mapping):
            fields = {**fields, "idempotency_key": key}
        with naive_times_in(self.time_zone):
            return NewEntry.of_fields(
                fields, scope, now, self._repository.shared.settings.id_factory
            )

    def _new_entry(self, entry: object, scope: Scope, now: datetime, key: object) -> NewEntry:
        return NewEntry.of_entry(
            entry, scope, now, self._repository.shared.settings.id_factory, key
        )


def built_search(
    text: str | None,
    limit: int,
    ranking: Ranking,
    filters: Expression | None,
    *,
    vectors: Float32Array | None = None,
    offset: int = 0,
    min_score: MinScore = None,
    explain: bool,
    with_reasons: bool = False,
    timeout: float | None = None,
    on_timeout: OnTimeout = "raise",
    time_zone: str | None = None,
) -> Search:
    """Return the search that a caller's arguments describe.

    Raises:
        InvalidArgumentError: If one of them is outside its range.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise must_be("limit", "an int of at least 0", limit, show=quoted)
    time_limit = TimeLimit.after(timeout, on_timeout)
    score = minimum_score(min_score)
    return Search(
        text=text,
        vectors=vectors,
        limit=min(limit, sys.maxsize),
        offset=min(validation.whole("offset", offset), sys.maxsize // 2),
        ranking=ranking,
        filters=filters,
        min_similarity=ranking.min_similarity,
        min_score=None if isinstance(score, str) else score,
        needs_evidence=isinstance(score, str),
        is_near_best=score == "relative",
        explain=flag("explain", explain),
        with_reasons=with_reasons,
        falls_back=True,
        deadline=time_limit.deadline,
        takes_partial=time_limit.takes_partial,
        time_zone=time_zone,
    )


def parsed_filters(
    filters: MemoryFilter | Mapping[str, Any] | None,
    since: date | str | None,
    until: date | str | None,
    time_zone: str,
) -> Expression | None:
    """Return the filters and the range of creation times as one expression; None is no filter."""
    if filters is None and since is None and until is None:
        return None
    with naive_times_in(time_zone):
        parts = parse_times(since, until)
        if filters is not None:
            parts.append(parse_filter(filters))
    return All(tuple(parts)) if parts else None
