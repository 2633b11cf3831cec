"""The checked request of a search."""

from typing import ClassVar, Final, Literal, TypeAlias, get_args
from uuid import UUID

import msgspec

from mnemic.arrays import Float32Array
from mnemic.model.filter import Expression, references
from mnemic.model.ranking import HYBRID, KEYWORD, Order, Ranking, RecencyCurve
from mnemic.model.rows import State
from mnemic.records import Record, Redacted

SearchIn: TypeAlias = Literal["auto", "memory", "database"]
"""In the index in memory, in the database, or wherever it costs less."""
SEARCH_INS: Final[tuple[str, ...]] = get_args(SearchIn)


class EvidenceFloor(Record, frozen=True):
    """The evidence without which a search returns nothing; see docs/tune/scores.md.

    Attributes:
        similarity: The cosine that is evidence enough without any keyword; None where too few
            memories are compared to know one.
        is_learned: Whether it is placed on the scale of the memories; a floor that was given is a
            cosine.
    """

    similarity: float | None = None
    is_learned: bool = False


class DefaultFloors(Record, frozen=True):
    """The floors of a search where neither the embedder nor the memories say any.

    Attributes:
        similarity: Minimum cosine, where one is needed; None is no floor.
        score: Minimum score, where none is given; None is no floor.
    """

    similarity: float | None = None
    score: float | None = None


class CosineScale(Record, frozen=True):
    """How similar two memories of a user are that have nothing to do with each other.

    Attributes:
        mean: The mean cosine of two memories.
        spread: The standard deviation of these cosines.
        floor: The cosine below which a text and a memory are most likely unrelated.
        lower_limit: The cosine that even unrelated texts reach: if no memory does, memories are all
            alike, and the mean says nothing of other texts.
    """

    mean: float
    spread: float
    floor: float
    lower_limit: float


class Search(Redacted, frozen=True, kw_only=True):
    """A checked search request.

    Attributes:
        text: The query; None ranks without one.
        vectors: float32, shape (d,) or (m, d), in place of the text's; of several the first is the
            text's, and the others are those of hypotheses. Without a text the best match counts. No
            language limits their share.
        vectors_model: Model of these vectors, which must be that of the memories; None is that of
            the memories, whatever it is.
        also: Other texts of the same meaning.
        blend: Share of their vectors in the query's, 0 to 1; with None each vector is compared by
            itself, and the best match counts.
        context: Text whose similar memories get a higher score, by the weight of the context.
        limit: Maximum number of results.
        offset: Number of best memories to skip before them.
        max_tokens: Estimated tokens of the text that they are for: those that are too long for what
            better ones leave of it are no results. None leaves none out.
        ranking: Parts of the score.
        filters: Only memories that match.
        exclude: Ids of memories to exclude.
        min_similarity: Minimum cosine, which a memory without a vector never reaches; None is no
            floor.
        min_score: Minimum score; None is no floor.
        uses_similarity_floor: Whether the minimum cosine is that of similar texts, which the
            embedder names or its scale has.
        default_floors: The floors where neither the embedder nor its scale says what similar texts
            are.
        scale: The scale that cosines are put on before other parts of the score are added, once it
            is learned; None is an embedder with score floors of its own, or too few memories.
        is_near_best: Whether hits are left out whose score is far below the best one's.
        needs_evidence: Whether nothing is returned without evidence that any memory matches.
        evidence: The floor of that evidence, once the embedder and the query's language are known.
        with_total: Whether to count all matches.
        order: Order in place of the score's.
        min_salience: Minimum static score; None is no floor.
        is_relative: Whether matches are divided by the best match of the scope before other parts
            of the score are added; ignored if there is an order.
        states: States of the memories; ACTIVE is always included.
        explain: Whether to return every part of a score, not only similarity and keyword.
        with_reasons: Whether hits get their reasons.
        falls_back: Whether a hybrid search is answered by keywords if the embedder fails.
        keeps_vectors: Whether the vectors of the texts may be kept for later searches. A text that
            is a memory's content, which may be sensitive, is no query that comes again.
        like: Row of a memory whose stored vectors are the query, in place of the text's.
        deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.
        time_zone: Name of the zone of days that the text names; None is the memory's.
        takes_partial: Whether hits that are complete at the deadline are returned in place of an
            error. Each has its full score and passed all filters; better ones may be missing.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"text", "vectors", "also", "context", "filters"})

    text: str | None
    vectors: Float32Array | None = None
    vectors_model: str | None = None
    also: tuple[str, ...] = ()
    blend: float | None = None
    context: str | None = None
    limit: int
    offset: int = 0
    max_tokens: int | None = None
    ranking: Ranking
    filters: Expression | None = None
    exclude: tuple[UUID, ...] = ()
    min_similarity: float | None = None
    min_score: float | None = None
    uses_similarity_floor: bool = False
    default_floors: DefaultFloors = DefaultFloors()
    scale: CosineScale | None = None
    is_near_best: bool = False
    needs_evidence: bool = False
    evidence: EvidenceFloor | None = None
    with_total: bool = False
    order: Order | None = None
    min_salience: float | None = None
    is_relative: bool = False
    states: tuple[State, ...] = (State.ACTIVE,)
    explain: bool = False
    with_reasons: bool = False
    falls_back: bool = False
    keeps_vectors: bool = True
    like: int | None = None
    deadline: float | None = None
    takes_partial: bool = False
    time_zone: str | None = None

    @property
    def fallback(self) -> "Search | None":
        """The same search by keywords alone; None if it is not hybrid or must not fall back."""
        if not (self.is_hybrid and self.falls_back):
            return None
        search = self.by_keywords
        weights = msgspec.structs.replace(search.ranking.weights, context=0.0)
        ranking = msgspec.structs.replace(search.ranking, weights=weights)
        return msgspec.structs.replace(search, ranking=ranking, context=None)

    @property
    def by_keywords(self) -> "Search":
        """The same search without similarity to the query."""
        by_keywords = msgspec.structs.replace(self.ranking, similarity=0.0, min_similarity=None)
        if (by_keywords.keywords, by_keywords.session) == (HYBRID.keywords, HYBRID.session):
            # What a memory without an embedder answers.
            by_keywords = msgspec.structs.replace(
                by_keywords, keywords=KEYWORD.keywords, session=KEYWORD.session
            )
        return msgspec.structs.replace(
            self,
            ranking=by_keywords,
            vectors=None,
            also=(),
            min_similarity=None,
            uses_similarity_floor=False,
        )

    @property
    def hint(self) -> str | None:
        """What a document's default became on the scale, for the result; None if it is unused."""
        if self.scale is None or not self.uses_similarity_floor:
            return None
        return (
            f"the least cosine is {self.min_similarity:.2f}, learned from these memories because "
            "the embedder names none; a similarity floor that is named takes its place"
        )

    @property
    def is_hybrid(self) -> bool:
        """Whether similarity and keywords both have a share."""
        ranking = self.ranking
        has_relevance = self.text is not None and ranking.weights.relevance > 0
        return has_relevance and ranking.has_similarity and ranking.has_keywords

    @property
    def needs_coverage(self) -> bool:
        """Whether similarity has a share only where the embedder covers the query's language.

        A given vector has no language.
        """
        return self.vectors is None and self.is_hybrid and self.ranking.covered_only

    @property
    def has_hypotheses(self) -> bool:
        """Whether vectors of hypotheses stand beside that of the text."""
        several = self.vectors is not None and self.vectors.ndim > 1 and len(self.vectors) > 1
        return several and self.text is not None

    @property
    def search_type(self) -> str:
        """Name of the search type in events, log lines and metrics."""
        if self.text is None and self.vectors is not None:
            return "semantic"
        if self.text is None:
            return "recent" if self.ranking.weights.recency > 0 else "important"
        if not self.ranking.has_similarity:
            return "keyword"
        return "hybrid" if self.ranking.has_keywords else "semantic"

    @property
    def uses_accesses(self) -> bool:
        """Whether the result depends on accesses."""
        filters, ranking, weights = self.filters, self.ranking, self.ranking.weights
        if filters is not None and references(filters, "access_count", "last_accessed_at"):
            return True
        by_last_access = ranking.recency.curve is RecencyCurve.ACCESSED_HALF_LIFE
        scores_by_them = weights.access > 0 or weights.salience > 0
        orders_by_them = self.order is not None or self.min_salience is not None
        return orders_by_them or scores_by_them or (by_last_access and weights.recency > 0)

    @property
    def uses_meaning(self) -> bool:
        """Whether the search compares vectors."""
        has_query = self.text is not None or self.vectors is not None
        return (has_query and self.ranking.has_similarity) or self.compares_context

    @property
    def needs_embedder(self) -> bool:
        """Whether the search embeds texts."""
        return self.compares_context or (self.vectors is None and self.uses_meaning)

    @property
    def compares_context(self) -> bool:
        """Whether the search compares memories with a context."""
        return self.context is not None and self.ranking.weights.context > 0
