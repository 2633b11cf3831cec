"""Rankings: shares and weights of the parts of a score, and named presets."""

import enum
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args
from uuid import UUID

import msgspec

from mnemic.description import described, quoted
from mnemic.errors import InvalidArgumentError
from mnemic.model.filter import Expression, references
from mnemic.model.redacted import Redacted
from mnemic.model.rows import State
from mnemic.model.validation import flag

SearchType: TypeAlias = Literal["hybrid", "semantic", "keyword"]
SEARCH_TYPES: tuple[str, ...] = get_args(SearchType)

MAX_FULL_WORDS = 1000

OnQueryError: TypeAlias = Literal["keywords", "raise"]
"""Treatment of a hybrid search whose query cannot be embedded."""
_ON_QUERY_ERROR: tuple[str, ...] = get_args(OnQueryError)


def falls_back(on_embed_error: object) -> bool:
    """Return whether a hybrid search is answered by keywords if the embedder fails."""
    if on_embed_error not in _ON_QUERY_ERROR:
        raise InvalidArgumentError(
            f"on_embed_error must be one of {', '.join(_ON_QUERY_ERROR)}, "
            f"got {quoted(on_embed_error)}"
        )
    return on_embed_error == "keywords"


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _check_fractions(struct: msgspec.Struct) -> None:
    for name in struct.__struct_fields__:
        _check_fraction(name, getattr(struct, name))


def _check_fraction(name: str, given: Any) -> None:
    if not (_is_number(given) and 0 <= given <= 1):
        raise InvalidArgumentError(f"{name} must be a number from 0 to 1, got {quoted(given)}")


def _check_words(name: str, given: Any) -> None:
    if type(given) is not int or not 0 <= given <= MAX_FULL_WORDS:
        raise InvalidArgumentError(
            f"{name} must be a whole number from 0 to {MAX_FULL_WORDS}, got {quoted(given)}"
        )


def _check_up_to_ten(name: str, given: Any, least: float) -> None:
    if not (_is_number(given) and least <= given <= 10):  # noqa: PLR2004
        raise InvalidArgumentError(
            f"{name} must be a number from {least} to 10, got {quoted(given)}"
        )


class RecencyCurve(enum.Enum):
    """Function of age with values from 0 to 1. Future timestamps count as age 0."""

    CREATED_LINEAR = "created_linear"
    """Falls linearly from creation to 0 after `days` (365 by default in retrieval)."""
    CREATED_HALF_LIFE = "created_half_life"
    """Halves every `days` after creation."""
    ACCESSED_HALF_LIFE = "accessed_half_life"
    """Halves every `days` after the last access, or creation (7 by default in recall)."""
    NEWEST_RANK = "newest_rank"
    """1 for the newest memory in play, 0 for the oldest, even steps between."""


class Recency(msgspec.Struct, frozen=True):
    """A curve and its scale in days.

    Raises:
        InvalidArgumentError: If days is not a positive number.
    """

    curve: RecencyCurve = RecencyCurve.CREATED_LINEAR
    days: float = 365.0

    def __post_init__(self) -> None:
        """Check the curve and its scale."""
        if not isinstance(self.curve, RecencyCurve):
            raise InvalidArgumentError(f"curve must be a RecencyCurve, got {described(self.curve)}")
        if not (_is_number(self.days) and 0 < self.days < math.inf):
            raise InvalidArgumentError(f"days must be a positive number, got {quoted(self.days)}")


class Salience(msgspec.Struct, frozen=True):
    """Weights of the static score of a memory, which does not depend on the query.

    The score is the weighted mean, so the weights need not have a particular sum.

    Attributes:
        recency: Weight of recency since the last access, or since creation without any.
        frequency: Weight of the number of accesses n: min(1, ln(n + 1) / ln(max + 1)).
        importance: Weight of the importance.
        half_life_days: Half-life of recency.
        frequency_max_count: The `max` of frequency: more accesses do not count.

    Raises:
        InvalidArgumentError: If a weight is not from 0 to 1, or a scale is not positive.
    """

    recency: float = 0.25
    frequency: float = 0.20
    importance: float = 0.25
    half_life_days: float = 7.0
    frequency_max_count: int = 100

    def __post_init__(self) -> None:
        """Check the weights and the scales."""
        for name in ("recency", "frequency", "importance"):
            _check_fraction(name, getattr(self, name))
        for name in ("half_life_days", "frequency_max_count"):
            given = getattr(self, name)
            if not (_is_number(given) and 0 < given < math.inf):
                raise InvalidArgumentError(f"{name} must be a positive number, got {quoted(given)}")


class Order(enum.Enum):
    """The order of memories where it is not that of the score: largest first, but for OLDEST.

    Ties go to the more salient memory, then to the newer one, then to the smaller id.
    """

    NEWEST = "newest"
    OLDEST = "oldest"
    ACCESSED = "accessed"
    """The last access, or the creation where there was none."""
    ACCESS_COUNT = "access_count"
    IMPORTANCE = "importance"
    SALIENCE = "salience"


_LEAST_OF_TEN = {"exponent": 0.1, "unspaced_exponent": 0.1, "k1": 0}
"""Smallest values of the parts of a keyword match that reach up to 10."""

_MAY_BE_NONE = frozenset({"b", "unspaced_exponent"})
"""Parts of a keyword match that may be None."""


class KeywordFields(msgspec.Struct, frozen=True):
    """Parts of a keyword match, from 0 to 1 where no other range is named.

    Attributes:
        words: Share of BM25 over stemmed words.
        char_ngrams: Share of BM25 over words that share runs of four characters with those of the
            query.
        bigrams: Share of BM25 over pairs of adjacent words.
        previous: Weight of a word of the session's previous turn that is not in this one.
        second: Weight of a word of the turn before that.
        stop_words: Weight of a stop word beside other words. Among the pairs of characters of a
            script without spaces, those of grammar are stop words ("什么", "です"), and pairs that
            no memory has weigh as little, as most are the seam of two words.
        max_df: Largest document frequency: words in more than this share of the memories, and in
            more than 100 of them, are left out unless there are no others.
        fuzziness: Smallest Dice coefficient of character pairs at which the most similar known word
            stands for a word that no memory has; 0 turns that off.
        exponent: The power that a match is raised to; above 1, weak matches count less.
        k1: How slowly repeats of a word stop counting, from 0 (presence alone) to 10.
        b: How far longer memories count less, from 0 (not at all) to 1 (in proportion to their
            length). None is .3 and the share of the memories' words that repeat another word of the
            same memory: length counts where it comes from repetition (verbosity; Na, Kang and Lee
            2008), and little among short turns.
        unspaced_exponent: The power in place of `exponent` for a query in a script without spaces,
            and between the two for a mixed one by the weights of its words; None is the same power.
            Of pairs of characters every second one is a seam, so that good matches are small.

    Raises:
        InvalidArgumentError: If a part is not a number from 0 to 1, an exponent is not from 0.1 to
            10, or k1 is not from 0 to 10.
    """

    words: float = 1.0
    char_ngrams: float = 0.0
    bigrams: float = 0.0
    previous: float = 0.0
    second: float = 0.0
    stop_words: float = 1.0
    max_df: float = 1.0
    fuzziness: float = 0.0
    exponent: float = 1.0
    k1: float = 0.9
    b: float | None = 0.4
    unspaced_exponent: float | None = None

    def __post_init__(self) -> None:
        """Check the shares and the constants of BM25."""
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if given is None and name in _MAY_BE_NONE:
                continue
            if name in _LEAST_OF_TEN:
                _check_up_to_ten(name, given, _LEAST_OF_TEN[name])
            else:
                _check_fraction(name, given)


class SessionTerms(msgspec.Struct, frozen=True):
    """Shares that the turns of a session, their times and speakers add to a match.

    They count only where memories have what they need: a session, a time, a speaker.

    Attributes:
        previous: Share of the previous turn's match.
        next: Share of the next turn's match.
        answer: Share of the previous turn's match where that turn is a question. The largest of
            these three counts.
        second_neighbour: Share of the better match of the turns two before and two after.
        question: Subtracted from a turn that ends in a question.
        date: For a memory near the time that the query names, falling with e^(-days / 7).
        speaker: For a turn of a speaker that the query names, times the share of the turns that are
            not by those it names.
        answer_type: For a memory that holds the type of answer to an English question: a time for
            "when", a number for "how many", a name for "who" and "where".
        isolated: Share of its own match for a memory without neighbours, where others have some.
        date_inside: For a memory inside the time that the query names, beside `date`: e^(-days / 7)
            hardly separates a day from the one before it.
        min_lift: Smallest share of its own match for any memory, where some have neighbours.
        role: In a chat with an assistant, subtracted from the assistant's turns, or from the user's
            if the query is about an earlier answer ("What did you suggest?"). Above 0, the user's
            questions are not taken for questions, because they hold the facts.
    """

    previous: float = 0.0
    next: float = 0.0
    answer: float = 0.0
    second_neighbour: float = 0.0
    question: float = 0.0
    date: float = 0.0
    speaker: float = 0.0
    answer_type: float = 0.0
    isolated: float = 0.0
    date_inside: float = 0.0
    min_lift: float = 0.0
    role: float = 0.0

    def __post_init__(self) -> None:
        """Check the shares."""
        _check_fractions(self)


class Weights(msgspec.Struct, frozen=True):
    """Weights of the parts of a score, from 0 to 1; the score is their weighted mean.

    Attributes:
        relevance: The match with the query.
        recency: Recency.
        importance: Importance.
        access: Number of accesses n: min(1, log10(n + 1) / 3).
        salience: The static score; see `Salience`.
        context: Similarity with a context, if one is given.

    Raises:
        InvalidArgumentError: If a weight is not a number from 0 to 1, or all are 0.
    """

    relevance: float = 1.0
    recency: float = 0.0
    importance: float = 0.0
    access: float = 0.0
    salience: float = 0.0
    context: float = 0.0

    def __post_init__(self) -> None:
        """Check the weights."""
        _check_fractions(self)
        if not any(getattr(self, name) for name in self.__struct_fields__):
            raise InvalidArgumentError("the weights add up to 0; at least one must be above it")

    @classmethod
    def parse(cls, given: object) -> Self:
        """Return the weights given by name; missing ones are 0."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise InvalidArgumentError(f"weights must be Weights or a dict, got {quoted(given)}")
        unknown = [name for name in given if name not in cls.__struct_fields__]
        if unknown:
            known = ", ".join(cls.__struct_fields__)
            raise InvalidArgumentError(
                f"there is no weight {quoted(unknown[0])}; there are {known}"
            )
        named: dict[str, Any] = {"relevance": 0.0, **given}
        return cls(**named)


class AdaptiveShare(msgspec.Struct, frozen=True):
    """A share of the similarity that grows with the mean length L of memories, in tokens.

    It is short + (long - short) · L³ / (L³ + length³): the longer a text, the more words of a query
    it holds by chance, while the vector of a chunk means as much as that of a short text. L is the
    mean over all memories of the user, or of all users where all are searched, that BM25 divides
    lengths by.

    Attributes:
        short: Limit for short memories, from 0 to 1.
        long: Limit for long memories, from 0 to 1.
        length: The mean length at which the share is halfway between both.

    Raises:
        InvalidArgumentError: If a limit is not from 0 to 1, or the length not a positive number.
    """

    short: float = 0.25
    long: float = 0.55
    length: float = 50.0

    def __post_init__(self) -> None:
        """Check the limits and the length."""
        _check_fraction("short", self.short)
        _check_fraction("long", self.long)
        if not (_is_number(self.length) and 0 < self.length < math.inf):
            raise InvalidArgumentError(
                f"length must be a positive number, got {quoted(self.length)}"
            )


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """All that a score is made of.

    Attributes:
        similarity: Share of the similarity in a match, the rest is the keywords': 1 is a semantic
            search, 0 one by keywords. An `AdaptiveShare` depends on the memories.
        covered_only: Whether similarity has a share only where the embedder covers the language of
            query and memory; see `Embedder.languages`. A query in another language is answered by
            keywords alone, a memory in another is matched by keywords alone. Ignored where
            similarity is 0 or 1.
        chunk_penalty: Subtracted from the cosine of a memory of n chunks, times ln(n): the nearest
            of many chunks is near by chance.
        full_words: Number of words from which on the similarity has its whole share in the match of
            a memory; one of fewer words has a share in proportion to them, and keywords have more.
            The vector of a name alone is near to every query that names it. 0 changes nothing.
            Ignored where similarity is 0 or 1.
        keywords: The parts of a keyword match.
        session: What sessions add to a match.
        strip_speaker_names: Whether names of speakers are passed over by keywords, and put into the
            first person before the query is embedded: speakers do not call themselves by name. A
            speaker is named by the whole name, by the first name or a near spelling of it if no
            other speaker's is like it, and by a name that other turns address the speaker by.
        max_speaker_share: Keywords keep the names of speakers with at most this share of the turns:
            the name of one of six picks a sixth of the turns, of one of two half of them.
        weights: Of the match and of what a memory is worth by itself.
        recency: The curve of age.
        salience: What salience is made of.
    """

    similarity: float | AdaptiveShare = 1.0
    covered_only: bool = False
    chunk_penalty: float = 0.0
    full_words: int = 0
    keywords: KeywordFields = KeywordFields()
    session: SessionTerms = SessionTerms()
    strip_speaker_names: bool = False
    max_speaker_share: float = 0.0
    weights: Weights = Weights()
    recency: Recency = Recency()
    salience: Salience = Salience()

    def __post_init__(self) -> None:
        """Check every part."""
        if not isinstance(self.similarity, AdaptiveShare):
            _check_fraction("similarity", self.similarity)
        flag("covered_only", self.covered_only)
        _check_fraction("chunk_penalty", self.chunk_penalty)
        _check_words("full_words", self.full_words)
        flag("strip_speaker_names", self.strip_speaker_names)
        _check_fraction("max_speaker_share", self.max_speaker_share)
        for name, kind in _PARTS.items():
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise InvalidArgumentError(
                    f"{name} must be a mnemic.{kind.__name__}, got {described(given)}"
                )

    @property
    def has_similarity(self) -> bool:
        """Whether similarity may have a share."""
        return isinstance(self.similarity, AdaptiveShare) or self.similarity > 0

    @property
    def has_keywords(self) -> bool:
        """Whether keywords may have a share."""
        return isinstance(self.similarity, AdaptiveShare) or self.similarity < 1

    @property
    def uses_accesses(self) -> bool:
        """Whether scores depend on when or how often memories were read."""
        weights = self.weights
        if weights.recency > 0 and self.recency.curve is RecencyCurve.ACCESSED_HALF_LIFE:
            return True
        return weights.access > 0 or weights.salience > 0


_PARTS = {
    "keywords": KeywordFields,
    "session": SessionTerms,
    "weights": Weights,
    "recency": Recency,
    "salience": Salience,
}

_SPOKEN = KeywordFields(
    previous=0.8,
    second=0.5,
    stop_words=0.25,
    max_df=0.2,
    fuzziness=0.5,
    exponent=1.5,
    unspaced_exponent=1.0,
    b=None,
)
_SESSION = SessionTerms(
    next=0.4,
    answer=0.5,
    second_neighbour=0.2,
    question=0.05,
    date=0.2,
    date_inside=0.05,
    speaker=0.06,
    answer_type=0.05,
    isolated=0.5,
    min_lift=0.4,
    role=0.1,
)

_MAX_SPEAKER_SHARE = 1 / 3

HYBRID = Ranking(
    similarity=AdaptiveShare(),
    covered_only=True,
    chunk_penalty=0.04,
    full_words=5,
    keywords=_SPOKEN,
    session=_SESSION,
    strip_speaker_names=True,
    max_speaker_share=_MAX_SPEAKER_SHARE,
)
"""The front door's default, chosen by measurement; see docs/quality.md."""

SEMANTIC = Ranking()
"""Cosine alone."""

DOCUMENTED_SIMILARITY = 0.3
"""Minimum cosine of retrieval and recall if the embedder has no floor of its own."""

KEYWORD = Ranking(
    similarity=0.0,
    keywords=msgspec.structs.replace(_SPOKEN, words=0.8, char_ngrams=0.2, exponent=1.0),
    session=msgspec.structs.replace(
        _SESSION,
        question=0.075,
        date=0.3,
        date_inside=0.075,
        speaker=0.09,
        answer_type=0.075,
        min_lift=0.0,
        role=0.09,
    ),
    strip_speaker_names=True,
    max_speaker_share=_MAX_SPEAKER_SHARE,
)
"""Without vectors; see docs/quality.md."""

NEWEST = Ranking(
    weights=Weights(relevance=0.0, recency=1.0), recency=Recency(RecencyCurve.NEWEST_RANK)
)
"""By creation alone."""

MOST_IMPORTANT = Ranking(weights=Weights(relevance=0.0, importance=1.0))
"""By importance alone."""

BY_SEARCH_TYPE: dict[str, Ranking] = {"hybrid": HYBRID, "semantic": SEMANTIC, "keyword": KEYWORD}


class Search(Redacted, frozen=True, kw_only=True):
    """A checked search request.

    Attributes:
        text: The query; None ranks without one.
        also: Other texts of the same meaning.
        blend: Share of their vectors in the query's, 0 to 1; with None each vector is compared by
            itself, and the best match counts.
        context: Text whose similar memories get a higher score, by the weight of the context.
        limit: Maximum number of results.
        ranking: Parts of the score.
        filters: Only memories that match.
        exclude: Ids of memories to exclude.
        min_similarity: Minimum cosine, where negative ones count as 0; None is no floor.
        min_score: Minimum score; None is no floor.
        with_total: Whether to count all matches.
        order: Order in place of the score's.
        min_salience: Minimum static score; None is no floor.
        is_relative: Whether matches are divided by the best match of the scope before other parts
            of the score are added; ignored if there is an order.
        states: States of the memories; ACTIVE is always included.
        explain: Whether to return every part of a score, not only similarity and keyword.
        falls_back: Whether a hybrid search is answered by keywords if the embedder fails.
        like: Row of a memory whose stored vectors are the query, in place of the text's.
        deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.
        takes_partial: Whether hits that are complete at the deadline are returned in place of an
            error. Each has its full score and passed all filters; better ones may be missing.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"text", "also", "context", "filters"})

    text: str | None
    also: tuple[str, ...] = ()
    blend: float | None = None
    context: str | None = None
    limit: int
    ranking: Ranking
    filters: Expression | None = None
    exclude: tuple[UUID, ...] = ()
    min_similarity: float | None = None
    min_score: float | None = None
    with_total: bool = False
    order: Order | None = None
    min_salience: float | None = None
    is_relative: bool = False
    states: tuple[State, ...] = (State.ACTIVE,)
    explain: bool = False
    falls_back: bool = False
    like: int | None = None
    deadline: float | None = None
    takes_partial: bool = False

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
        by_keywords = msgspec.structs.replace(self.ranking, similarity=0.0)
        if (by_keywords.keywords, by_keywords.session) == (HYBRID.keywords, HYBRID.session):
            # What a memory without an embedder answers.
            by_keywords = msgspec.structs.replace(
                by_keywords, keywords=KEYWORD.keywords, session=KEYWORD.session
            )
        return msgspec.structs.replace(self, ranking=by_keywords, also=(), min_similarity=None)

    @property
    def is_hybrid(self) -> bool:
        """Whether similarity and keywords both have a share."""
        ranking = self.ranking
        has_relevance = self.text is not None and ranking.weights.relevance > 0
        return has_relevance and ranking.has_similarity and ranking.has_keywords

    @property
    def needs_coverage(self) -> bool:
        """Whether similarity has a share only where the embedder covers the query's language."""
        return self.is_hybrid and self.ranking.covered_only

    @property
    def search_type(self) -> str:
        """Name of the search type in events, log lines and metrics."""
        if self.text is None:
            return "recent" if self.ranking.weights.recency > 0 else "important"
        if not self.ranking.has_similarity:
            return "keyword"
        return "hybrid" if self.ranking.has_keywords else "semantic"

    @property
    def uses_accesses(self) -> bool:
        """Whether the result depends on accesses."""
        filters = self.filters
        filters_by_them = filters is not None and references(
            filters, "access_count", "last_accessed_at"
        )
        orders_by_them = self.order is not None or self.min_salience is not None
        return filters_by_them or orders_by_them or self.ranking.uses_accesses

    @property
    def uses_meaning(self) -> bool:
        """Whether the search needs an embedding."""
        compares_query = self.text is not None and self.ranking.has_similarity
        return compares_query or (self.context is not None and self.ranking.weights.context > 0)
