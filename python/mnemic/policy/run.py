"""The steps of one retrieval: search, boost, candidates, packing."""

from typing import NamedTuple

from mnemic.context.packing import PackedBlock, PackingPlan, pack
from mnemic.embed.floors import score_floors
from mnemic.licensing import SEARCHING_BY_MEANING
from mnemic.model import Scope, SearchType
from mnemic.model.payload import PayloadMemory
from mnemic.model.ranking import BY_SEARCH_TYPE
from mnemic.model.search import Search
from mnemic.policy.boost import SessionBoost
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.ranges import AUTO
from mnemic.policy.request import RetrievalRequest
from mnemic.protocols import TokenCounter
from mnemic.repository import Repository, SearchOutcome

OVER_FETCH = 2
"""Candidates for each place in a payload: duplicates and weak ones leave space for others."""

DOCUMENTED_MIN_SCORE = 0.3
"""Minimum score of a search by the vectors of an embedder without floors of its own."""


class RetrievalOutcome(NamedTuple):
    """The outcome of a search and of all steps after it.

    Attributes:
        packed: The memories of the payload, and those left out.
        config: The active configuration.
        total: Memories found.
        search_type: The search that was really made.
        found: The search's marks: `degraded`, `partial`, `approximate`, `stale_since`.
    """

    packed: PackedBlock
    config: RetrievalConfig
    total: int
    search_type: SearchType
    found: SearchOutcome


class Retriever:
    """Finds the memories for a request and packs them; runs in the caller's thread.

    Args:
        repository: The agent's memories.
        config: The configuration, with the administrator's settings.
        counter: Token counter; an estimate by script unless given.
    """

    def __init__(
        self, repository: Repository, config: RetrievalConfig, counter: TokenCounter | None
    ) -> None:
        self._repository = repository
        self._config = config
        self._counter = counter

    def has_memories(self, scope: Scope, deadline: float | None) -> bool:
        """Return whether a scope's user has any active memory in its project.

        A session that the scope is bound to counts too.
        """
        return self._repository.finder.has_memories(scope, deadline)

    def retrieve(
        self, scope: Scope, request: RetrievalRequest, deadline: float | None
    ) -> RetrievalOutcome:
        """Return the memories for a request.

        Args:
            scope: The request's scope.
            request: A valid one.
            deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.

        Raises:
            DeadlineExceededError: If the deadline passes.
            StoreError: If the store cannot be read.
        """
        config = self.active_config()
        boost = SessionBoost(request.session_id, config.session_boost)
        found = self._found(scope, self._search(config, request, deadline), boost)
        if config.min_score != self._config.min_score and _is_by_keywords(found):
            # The floor of similarity does not fit a search that compared none.
            config = self._config
            by_keywords = config.overridden(search_type="keyword")
            again = self._found(scope, self._search(by_keywords, request, deadline), boost)
            found = again._replace(degraded=found.degraded, degraded_reason=found.degraded_reason)
        search_type: SearchType = "keyword" if _is_by_keywords(found) else self._search_type(config)
        candidates = boost.candidates(found, OVER_FETCH * config.top_k)
        memories = PayloadMemory.of(candidates, search_type)
        packed = pack(memories, self._plan(config))
        return RetrievalOutcome(packed, config, len(memories), search_type, found)

    def active_config(self) -> RetrievalConfig:
        """Return the configuration with the minimum score of an embedder without floors."""
        config, embedder = self._config, self._repository.embedder
        search_type = self._search_type(config)
        if config.min_score != AUTO or embedder is None or search_type == "keyword":
            return config
        if score_floors(embedder)[search_type] is not None:
            return config
        return config.overridden(min_score=DOCUMENTED_MIN_SCORE)

    def _search_type(self, config: RetrievalConfig) -> SearchType:
        has_embedder = self._repository.embedder is not None
        return config.search_type if has_embedder or config.search_type != "hybrid" else "keyword"

    def _search(
        self, config: RetrievalConfig, request: RetrievalRequest, deadline: float | None
    ) -> Search:
        return Search(
            text=request.message,
            limit=OVER_FETCH * config.top_k,
            ranking=BY_SEARCH_TYPE[self._search_type(config)],
            filters=request.expression(include_sensitive=config.include_sensitive),
            needs_evidence=config.min_score == AUTO,
            falls_back=True,
            deadline=deadline,
        )

    def _found(self, scope: Scope, search: Search, boost: SessionBoost) -> SearchOutcome:
        def find(scope: Scope, search: Search) -> SearchOutcome:
            return self._repository.find(scope, search, SEARCHING_BY_MEANING)

        return boost.found(find, scope, search)

    def _plan(self, config: RetrievalConfig) -> PackingPlan:
        floor = config.min_score if isinstance(config.min_score, float) else None
        return PackingPlan(
            redaction=config.redaction,
            near=config.near_duplicates,
            limit=config.top_k,
            strategy=config.strategy,
            ratio=config.ratio,
            clip_sentences=config.clip_sentences,
            max_tokens=config.max_tokens,
            counter=self._counter,
            block=config.block,
            min_score=floor or None,  # no score is below 0
        )


def _is_by_keywords(found: SearchOutcome) -> bool:
    return found.degraded or found.share == 0
