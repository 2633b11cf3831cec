"""The steps of one retrieval: search, boost, candidates, packing."""

from functools import partial
from typing import NamedTuple

import msgspec

from mnemic.context.budget import PackingPlan, candidates_within
from mnemic.context.packing import pack
from mnemic.context.prompt_block import PromptBlock, PromptForm, completed
from mnemic.index import RankedRow
from mnemic.model import MemoryEntry, Scope, SearchType
from mnemic.model.payload import PayloadMemory
from mnemic.model.ranking import BY_SEARCH_TYPE
from mnemic.model.search import Search
from mnemic.model.timestamps import to_microseconds
from mnemic.policy.config import AUTO, RetrievalConfig
from mnemic.policy.payload import RetrievalMetadata, RetrievalPayload
from mnemic.policy.request import MET, RetrievalRequest
from mnemic.protocols import TokenCounter
from mnemic.repository import Find, Repository, SearchOutcome, Service

MAX_RANKED = 256
"""Memories that are ranked at most before those of the session are ranked by themselves."""

DEEPER = 16
"""Factor of the memories that are ranked next."""


class SessionBoost(NamedTuple):
    """The factor of a session's scores: memories of the request's session have a higher one.

    A boost lifts memories from further down, so a page of the best by plain scores is not enough.
    More are ranked, until no memory further down can rise into the page. After `MAX_RANKED`
    memories the best of the session join those ranked so far, with their scores among the session's
    own memories: a score depends a little on the memories beside it, as docs/explain/search.md
    describes.

    Attributes:
        session_id: The session.
        factor: At least 1; 1 changes nothing.
    """

    session_id: str | None
    factor: float

    def found(self, find: Find, scope: Scope, search: Search) -> SearchOutcome:
        """Return enough memories for the best ones by their boosted scores to be among them."""
        deep = search
        while True:
            found = find(scope, deep)
            if len(found.hits) < deep.limit or found.marks.partial:
                return found
            if not self._can_rise(found, search.limit):
                return found
            if deep.limit >= MAX_RANKED:
                return self._with_session(found, find, scope, search)
            limit = min(MAX_RANKED, DEEPER * deep.limit)
            deep = msgspec.structs.replace(search, limit=limit)

    def candidates(self, found: SearchOutcome, limit: int) -> list[tuple[MemoryEntry, float]]:
        """Return the best memories by their boosted scores.

        Order: score, then newest, then smallest id. Scores are from 0 to 1.
        """
        hits = found.hits
        if self.factor != 1:
            hits = sorted(hits, key=lambda hit: self._key(hit, found))
        return [
            (found.entries[hit.row], min(1.0, max(0.0, self._score(hit, found))))
            for hit in hits[:limit]
        ]

    def _can_rise(self, found: SearchOutcome, limit: int) -> bool:
        """Return whether a memory after all that were found may be among the best ones.

        It would have at most the last one's score, and come after it in a tie.
        """
        last = found.hits[-1]
        if last.score <= 0:
            return False
        keys = sorted(self._key(hit, found) for hit in found.hits)
        highest = (-self.factor * last.score, *self._key(last, found)[1:])
        return highest < keys[limit - 1]

    def _with_session(
        self, found: SearchOutcome, find: Find, scope: Scope, search: Search
    ) -> SearchOutcome:
        narrowed = scope.narrowed(session_id=self.session_id)
        best = find(narrowed, msgspec.structs.replace(search, needs_evidence=False))
        if best.marks.degraded != found.marks.degraded:  # their scores cannot be compared
            return found
        return found.joined(best)

    def _score(self, hit: RankedRow, found: SearchOutcome) -> float:
        is_of_session = found.entries[hit.row].session_id == self.session_id
        return hit.score * self.factor if is_of_session and hit.score > 0 else hit.score

    def _key(self, hit: RankedRow, found: SearchOutcome) -> tuple[float, int, bytes]:
        entry = found.entries[hit.row]
        return -self._score(hit, found), -to_microseconds(entry.created_at), entry.id.bytes


OVER_FETCH = 2
"""Candidates for each place in a payload: duplicates and weak ones leave space for others."""


class Retriever(Service):
    """Finds the memories for a request and packs them; runs in the caller's thread.

    Args:
        repository: The agent's memories.
        config: The configuration, with the administrator's settings.
        counter: Token counter; an estimate by script unless given.
    """

    def __init__(
        self, repository: Repository, config: RetrievalConfig, counter: TokenCounter | None
    ) -> None:
        super().__init__(repository)
        self._config = config
        self._counter = counter
        self._candidates = (
            candidates_within(config.max_tokens)
            if config.top_k is None
            else OVER_FETCH * config.top_k
        )
        self._max_tokens = _max_tokens_of(config, counter)

    def retrieve(
        self, scope: Scope, request: RetrievalRequest, deadline: float | None
    ) -> RetrievalPayload:
        """Return the payload of a request, without the figures of its run.

        Args:
            scope: The request's scope.
            request: A valid one.
            deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.

        Raises:
            DeadlineExceededError: If the deadline passes.
            StoreError: If the store cannot be read.
        """
        config = self._config
        boost = SessionBoost(request.session_id, config.session_boost)
        find = self._find if boost.factor == 1 else partial(boost.found, self._find)
        found = find(scope, self._search(request, deadline))
        by_keywords = found.marks.degraded or found.share == 0
        search_type: SearchType = "keyword" if by_keywords else self._search_type
        candidates = boost.candidates(found, self._candidates)
        memories = PayloadMemory.of(candidates, search_type)
        zone, by_another = request.time_zone, found.marks.by_another
        block = completed(config.block, time_zone=zone, by_another=by_another)
        packed = pack(memories, self._plan(request, block))
        metadata = RetrievalMetadata(
            trigger=MET,
            config=config,
            total_results=len(memories),
            included_results=len(packed.kept),
            total_tokens=packed.tokens,
            applied_filters=packed.applied,
            dropped=packed.dropped,
            search_type=search_type,
            time_zone=zone,
            **found.marks.of(RetrievalMetadata),
        )
        return RetrievalPayload(memories=packed.kept, metadata=metadata)

    @property
    def _search_type(self) -> SearchType:
        has_embedder = self.repository.shared.models.embedder is not None
        chosen = self._config.search_type
        return chosen if has_embedder or chosen != "hybrid" else "keyword"

    def _search(self, request: RetrievalRequest, deadline: float | None) -> Search:
        config = self._config
        return Search(
            text=request.message,
            limit=self._candidates,
            max_tokens=self._max_tokens,
            ranking=BY_SEARCH_TYPE[self._search_type],
            filters=request.expression(include_sensitive=config.include_sensitive),
            needs_evidence=config.min_score == AUTO,
            falls_back=True,
            deadline=deadline,
            time_zone=request.time_zone,
        )

    def _plan(self, request: RetrievalRequest, block: PromptForm) -> PackingPlan:
        config = self._config
        floor = config.min_score if isinstance(config.min_score, float) else None
        return PackingPlan(
            redaction=config.redaction,
            near=config.near_duplicates,
            limit=config.top_k,
            strategy=config.strategy,
            ratio=config.ratio,
            query=request.message if config.clip_sentences is None else None,
            clip_sentences=config.clip_sentences,
            max_tokens=config.max_tokens,
            counter=self._counter,
            block=block,
            min_score=floor or None,  # no score is below 0
        )


def _max_tokens_of(config: RetrievalConfig, counter: TokenCounter | None) -> int | None:
    """Return for how many tokens candidates may be too long; None where others decide that."""
    steps = config.top_k, config.clip_sentences, config.near_duplicates, config.ratio
    is_estimate = counter is None and type(config.block) is PromptBlock
    is_by_score = config.strategy == "score_first" and config.session_boost == 1
    is_plain = is_estimate and is_by_score and not config.redaction.enabled
    return config.max_tokens if is_plain and steps == (None,) * len(steps) else None
