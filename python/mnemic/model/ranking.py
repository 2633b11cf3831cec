"""Rankings: shares and weights of the parts of a score, and named presets."""

import enum
import math
from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias, get_args

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import Range, flag, is_number, of_kind
from mnemic.records import NamedFields, Record
from mnemic.reporting.description import must_be, quoted
from mnemic.reporting.near_names import unknown_name

SearchType: TypeAlias = Literal["hybrid", "semantic", "keyword"]
"""Ranking by meaning and keywords, by meaning alone, or by keywords alone."""
SEARCH_TYPES: tuple[str, ...] = get_args(SearchType)

MAX_FULL_WORDS = 1000
"""Largest `Ranking.full_words`: chunks of an embedder are shorter."""

OnQueryError: TypeAlias = Literal["keywords", "raise"]
"""Treatment of a hybrid search whose query cannot be embedded."""
ON_QUERY_ERROR: tuple[str, ...] = get_args(OnQueryError)


_FRACTION = Range(0, 1)
_FULL_WORDS = Range(0, MAX_FULL_WORDS, is_whole=True)


def _check_fractions(struct: msgspec.Struct) -> None:
    for name in struct.__struct_fields__:
        _FRACTION.checked(name, getattr(struct, name))


def _check_positive(name: str, given: object) -> None:
    """Check that the value of a field is a number above 0, and not infinite."""
    if not (is_number(given) and 0 < given < math.inf):
        raise must_be(name, "a positive number", given, show=quoted)


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


class Recency(Record, frozen=True, metaclass=NamedFields):
    """A curve and its scale in days.

    Attributes:
        curve: The curve.
        days: Its scale: the days in which it falls to 0, or by half; see `RecencyCurve`.

    Raises:
        InvalidArgumentError: If days is not a positive number.
    """

    curve: RecencyCurve = RecencyCurve.CREATED_LINEAR
    days: float = 365.0

    def __post_init__(self) -> None:
        """Check the curve and its scale."""
        of_kind("curve", RecencyCurve, "a RecencyCurve", self.curve)
        _check_positive("days", self.days)


class Salience(Record, frozen=True, metaclass=NamedFields):
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
            _FRACTION.checked(name, getattr(self, name))
        for name in ("half_life_days", "frequency_max_count"):
            _check_positive(name, getattr(self, name))


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


_RANGES = {
    "exponent": Range(0.1, 10),
    "unspaced_exponent": Range(0.1, 10),
    "k1": Range(0, 10),
}
"""Smallest and largest value of the options of a keyword match that are no fractions."""

_MAY_BE_NONE = frozenset({"b", "unspaced_exponent"})
"""Options of a keyword match that may be None."""


class KeywordFields(Record, frozen=True, metaclass=NamedFields):
    """Parts of a keyword match, from 0 to 1 where no other range is named; 0 turns a part off.

    Attributes:
        words: Share of BM25 over stemmed words.
        char_ngrams: Share of BM25 over words that share runs of four characters with those of the
            query.
        bigrams: Share of BM25 over pairs of adjacent words.
        previous: Weight of a word of the session's previous turn that is not in this one.
        second: Weight of a word of the turn before that.
        stop_words: Weight of a stop word beside other words; 1 makes it a word like others. The
            stop words are those of the query's language if that is plainly not the index's. In
            scripts without spaces, whose words are pairs of characters, they are pairs of function
            words ("什么", "です"). A pair that no memory has weighs as little: most are the seam of
            two words.
        max_df: Largest document frequency: words in more than this share of the memories, and in
            more than 100 of them, are left out unless there are no others; 1 leaves none out.
        fuzziness: Smallest Dice coefficient of character pairs at which the most similar known word
            stands for a word that no memory has.
        exponent: The power that a match is raised to, from 0.1 to 10; above 1, weak matches count
            less, and 1 leaves the match as it is.
        unspaced_exponent: The power in place of `exponent` for a query in a script without spaces,
            from 0.1 to 10, and between the two for a mixed one by the weights of its words; None is
            the same power. Every second pair of characters is a seam, so even good matches are
            small, and a power above 1 would take most of them away.
        k1: BM25's k1, from 0 to 10: the larger, the longer repeats of a word add to the match; 0
            counts presence alone.
        b: BM25's b, from 0 to 1: how far longer memories count less, 0 is not at all and 1 in
            proportion to their length. None is .3 and the share of the memories' words that repeat
            another word of the same memory: length counts where it comes from repetition
            (verbosity; Na, Kang and Lee 2008), and little among short turns.

    Raises:
        InvalidArgumentError: If an option is not a number in its range.
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
    unspaced_exponent: float | None = None
    k1: float = 0.9
    b: float | None = 0.4

    def __post_init__(self) -> None:
        """Check every option."""
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if given is None and name in _MAY_BE_NONE:
                continue
            _RANGES.get(name, _FRACTION).checked(name, given)


class SessionTerms(Record, frozen=True, metaclass=NamedFields):
    """What a session, a time, a speaker and a role add to a match, from 0 to 1; 0 turns one off.

    They count only where memories have what they need. A match is from 0 to 1, so a term of .05 is
    a twentieth of the best match.

    Attributes:
        previous: Share of the previous turn's match.
        next: Share of the next turn's match.
        answer: Share of the previous turn's match where that turn is a question. The largest of
            these three counts.
        second_neighbour: Share of the better match of the turns two before and two after.
        question: Subtracted from a turn that ends in a question.
        date: For a memory near the time that the query names, falling with e^(-days / 7).
        date_inside: For a memory inside the time that the query names, beside `date`, which hardly
            separates a day from the one before it.
        speaker: For a turn of a speaker that the query names, times the share of the turns that are
            not by those it names: the name of one of two rules out half of the turns.
        answer_type: For a memory that holds the type of answer to an English question: a time for
            "when", a number for "how many", a name for "who" and "where".
        isolated: Share of its own match for a memory without neighbours, where others have some.
        min_lift: Smallest lift by neighbours, as a share of the memory's own match, where some have
            neighbours: a lone statement between other topics gets no lift from them.
        role: Where an assistant speaks in any of the memories that a search is over, subtracted
            from its turns, or from the user's if the query is about an earlier answer ("What did
            you suggest?"). A turn of the assistant loses half of it without a word, and all of it
            from 200 words on: short ones hold commands, settings and fixes, long ones advice. Above
            0, `question` is not subtracted from the user's turns, because they hold the facts, and
            `answer` lifts an assistant's turn only for queries about earlier answers.

    Raises:
        InvalidArgumentError: If a term is not a number from 0 to 1.
    """

    previous: float = 0.0
    next: float = 0.0
    answer: float = 0.0
    second_neighbour: float = 0.0
    question: float = 0.0
    date: float = 0.0
    date_inside: float = 0.0
    speaker: float = 0.0
    answer_type: float = 0.0
    isolated: float = 0.0
    min_lift: float = 0.0
    role: float = 0.0

    def __post_init__(self) -> None:
        """Check the shares."""
        _check_fractions(self)


class Weights(Record, frozen=True, metaclass=NamedFields):
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
            raise must_be("weights", "Weights or a dict", given, show=quoted)
        unknown = [name for name in given if name not in cls.__struct_fields__]
        if unknown:
            raise InvalidArgumentError(unknown_name("weight", unknown[0], cls.__struct_fields__))
        named: dict[str, Any] = {"relevance": 0.0, **given}
        return cls(**named)


class AdaptiveShare(Record, frozen=True, metaclass=NamedFields):
    """A share of the similarity that grows with the mean length L of memories.

    It is short + (long - short) · L³ / (L³ + length³): the longer a text, the more words of a query
    it holds by chance, while the vector of a chunk means as much as that of a short text. Lengths
    are in words as BM25 counts them, pairs of characters in scripts without spaces; L is the mean
    over all memories of the user, or of all users where all are searched. The presets' limits and
    length are chosen by measurement; see docs/project/lab/quality.md.

    Where none of the memories that a search is over has a session, the share also grows with how
    common the words of the query are that any memory has, because many notes have them: to `long`,
    in a straight line as their mean idf falls from .48 to .38 of that of a word of one memory.

    Attributes:
        short: Limit for short memories, from 0 to 1.
        long: Limit for long memories, from 0 to 1.
        length: The mean length in words at which the share is halfway between both, above 0.

    Raises:
        InvalidArgumentError: If a limit is not from 0 to 1, or the length not a positive number.
    """

    short: float = 0.25
    long: float = 0.55
    length: float = 50.0

    def __post_init__(self) -> None:
        """Check the limits and the length."""
        _FRACTION.checked("short", self.short)
        _FRACTION.checked("long", self.long)
        _check_positive("length", self.length)


class Ranking(Record, frozen=True, kw_only=True, metaclass=NamedFields):
    """All that a score is made of. The defaults are those of a semantic search.

    Attributes:
        similarity: Share of the similarity in a match, from 0 to 1, the rest is the keywords': 1 is
            a semantic search, 0 one by keywords. An `AdaptiveShare` depends on the memories.
        covered_only: Whether similarity has its share only where the embedder covers the language
            of query and memory; see `Embedder.languages`. For a query or a memory in another
            language of the same script it is at most .1, in Han and Kana .05, and in other scripts
            keywords alone count. A memory in another language of the same script keeps up to .4
            where that makes the larger match: it may have no word of the query. Ignored where
            similarity is 0 or 1.
        chunk_penalty: Subtracted from the cosine of a memory of n chunks, times ln(n), from 0 to 1:
            the nearest of many chunks is near by chance. 0 turns it off.
        full_words: Number of words, from 0 to 1000, from which on the similarity has its whole
            share in the match of a memory with a session; one of fewer words has a share in
            proportion to them, and keywords have more: the vector of a name alone is near to every
            query that names it. A memory without a session, as a title, or with an empty content
            has the whole share. 0 turns it off. Ignored where similarity is 0 or 1.
        keywords: The parts of a keyword match.
        session: The terms of sessions, times, speakers and roles.
        strip_speaker_names: Whether names of speakers are left out of the keywords, and put into
            the first person before the query is embedded: speakers do not call themselves by name.
            A speaker is named by the whole name, by the first name or a near spelling of it if no
            other speaker's is like it, and by a name that other turns address the speaker by.
        max_speaker_share: Keywords keep the names of speakers with at most this share of the turns,
            from 0 to 1: the name of one of six picks a sixth of the turns, of one of two half of
            them. 1 keeps all names, 0 none.
        weights: Weights of the match and of the parts that do not depend on the query.
        recency: The curve of age.
        salience: Weights of the static score.
        min_similarity: Only memories with at least this cosine, from -1 to 1; memories without a
            vector have none. Where a search falls back to keywords, it does not apply. None is no
            floor.

    Raises:
        InvalidArgumentError: If an option is not in its range, or not of its type; or if there is a
            least cosine, and no similarity has a share.
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
    min_similarity: float | None = None

    def __post_init__(self) -> None:
        """Check every part."""
        if not isinstance(self.similarity, AdaptiveShare):
            _FRACTION.checked("similarity", self.similarity)
        flag("covered_only", self.covered_only)
        _FRACTION.checked("chunk_penalty", self.chunk_penalty)
        _FULL_WORDS.checked("full_words", self.full_words)
        flag("strip_speaker_names", self.strip_speaker_names)
        _FRACTION.checked("max_speaker_share", self.max_speaker_share)
        for name, kind in _PARTS.items():
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise must_be(name, f"a mnemic.{kind.__name__}", given)
        if self.min_similarity is not None:
            self._check_min_similarity()

    def _check_min_similarity(self) -> None:
        given = self.min_similarity
        if not (is_number(given) and -1 <= given <= 1):
            raise must_be("min_similarity", "a cosine from -1 to 1, or None", given, show=quoted)
        if not self.has_similarity:
            raise InvalidArgumentError(
                "min_similarity is a cosine, and a search by keywords compares no vectors; use "
                "min_score, or search by meaning"
            )
        force_setattr(self, "min_similarity", float(given))

    @property
    def has_similarity(self) -> bool:
        """Whether similarity may have a share."""
        return isinstance(self.similarity, AdaptiveShare) or self.similarity > 0

    @property
    def has_keywords(self) -> bool:
        """Whether keywords may have a share."""
        return isinstance(self.similarity, AdaptiveShare) or self.similarity < 1


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
"""Between the half of the turns that one of two speakers has and the sixth of one of six."""

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
"""The default of `Memory`, chosen by measurement; see docs/project/lab/quality.md."""

SEMANTIC = Ranking()
"""Cosine alone."""

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
"""Without vectors; see docs/project/lab/quality.md."""

NEWEST = Ranking(
    weights=Weights(relevance=0.0, recency=1.0), recency=Recency(RecencyCurve.NEWEST_RANK)
)
"""By creation alone."""

MOST_IMPORTANT = Ranking(weights=Weights(relevance=0.0, importance=1.0))
"""By importance alone."""

BY_SEARCH_TYPE: dict[str, Ranking] = {"hybrid": HYBRID, "semantic": SEMANTIC, "keyword": KEYWORD}

DOCUMENTED_SIMILARITY = 0.3
"""Minimum cosine of retrieval and recall where neither embedder nor memories have a scale."""
