"""The judge without a model: adds up weighted evidence for and against a contradiction.

Features of a pair of texts are the evidence, as numbers.
"""

import math
from collections.abc import Awaitable, Sequence
from decimal import localcontext
from typing import ClassVar, Protocol

from mnemic._core import Coverage, detect_language
from mnemic.contradictions import vocabulary
from mnemic.contradictions.parse import parse
from mnemic.contradictions.quantity import EXACT
from mnemic.contradictions.reading import Reading
from mnemic.contradictions.signals import Pair, Signal, have_equal_amounts
from mnemic.contradictions.vocabulary import stem
from mnemic.model.validation import items
from mnemic.records import Redacted
from mnemic.reporting.description import must_be
from mnemic.reporting.near_names import names_arguments
from mnemic.threads.sync_bridge import run_blocking


class Judgement(Redacted, frozen=True):
    """Confidence that two memories contradict each other, with the reason.

    Attributes:
        confidence: From 0, no evidence, to 1; from 0.6 on it is reported by default.
        reason: A few words for a reader; empty without evidence.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"reason"})

    confidence: float
    reason: str = ""


def check_texts(statement: object, others: object) -> None:
    """Refuse invalid texts."""
    for field, given in (
        ("statement", statement),
        *(("others", each) for each in items("others", others)),
    ):
        if not isinstance(given, str):
            raise must_be(field, "a text", given)


class ContradictionJudge(Protocol):
    """Judges whether a statement contradicts memories; its method may be plain or a coroutine."""

    def judge(
        self, statement: str, others: Sequence[str]
    ) -> Sequence[Judgement] | Awaitable[Sequence[Judgement]]:
        """Return one judgement for each of the older memories, in their order.

        Args:
            statement: The new statement.
            others: The older memories.
        """
        ...


_APART = frozenset({"label", "qualifier"})
_OPPOSITES = frozenset({"attitude", "opposite", "weak"})
_DENIALS = _OPPOSITES | {"denial", "negation"}
_FAMILIES = dict.fromkeys(("attribute", "change"), "value") | dict.fromkeys(
    _DENIALS - {"weak"}, "opposite"
)
_TIMES = frozenset({"number", "time"})
_MAX_WORDS = 8  # more words of its own add no information
_NOT_NOW = frozenset({"past", "plan"})
_OPPOSED = frozenset({"attitude", "negation", "value"})

WEIGHTS = {name: float(weight) for name, [weight] in vocabulary.entries("weights")}
"""Weights of the features."""


def evidence(pair: Pair) -> tuple[dict[str, float], str]:
    """Return the features by name, and the reason; empty if the two cannot be compared.

    Names that begin with "silent" are of pairs without a signal: for them the same features have
    other weights.
    """
    older, newer = pair.older, pair.newer
    if (
        not pair.shared  # nor is anything shared with a question
        or pair.has_other_people()
        or _texts(older) == _texts(newer)
    ):
        return {}, ""
    signals = pair.signals()
    if any(signal.kind in _APART for signal in signals) or not (signals or pair.topics):
        return {}, ""
    if signals and _is_of_two_things(pair, signals):
        return {}, ""
    if not signals:
        return _silent(pair), "one may deny or replace the other"
    return _signalled(pair, signals), _reason(signals)


def _reason(signals: list[Signal]) -> str:
    """Return the words that disagree, each once; without such, what is denied or has changed."""
    told: set[str] = set()
    reasons = []
    for signal in signals:
        words = {stem(word) for word in signal.reason.partition(": ")[2].split()}
        if "/" in words and told.isdisjoint(words - {"/"}):
            reasons.append(signal.reason)
            told |= words - {"/"}
    return "; ".join(reasons or [signals[0].reason])


def _texts(reading: Reading) -> list[str]:
    return [token.text for token in reading.tokens if token.kind != "mark"]


def _signalled(pair: Pair, signals: list[Signal]) -> dict[str, float]:
    older, newer = pair.older, pair.newer
    kinds = {signal.kind for signal in signals}
    words = frozenset[str]().union(*(signal.words for signal in signals))
    cues = older.cues | newer.cues
    return {
        "told": 1.0,
        "own words": _own_words(older, newer, words),
        "weak": float("weak" in kinds),
        "several": float(_count_disagreements(signals) > 1),
        "apart": float(
            (kinds <= _DENIALS and pair.has_narrower_denial())
            + pair.has_other_subject(words)
            + pair.has_other_qualifiers(words)
            + pair.has_other_object(words)
        ),
        "over": float(_is_over(older, newer, kinds)),
        "not now": float(_not_now(older, newer) != _not_now(newer, older)),
        "exception": float("exception" in cues and not kinds <= _TIMES),
        "many values": float("value" in kinds and (older.is_many_valued or newer.is_many_valued)),
    }


def _silent(pair: Pair) -> dict[str, float]:
    older, newer = pair.older, pair.newer
    return {
        "silent": 1.0,
        "silent same verb": float(
            bool(older.predicate.verb) and older.predicate.verb == newer.predicate.verb
        ),
        "silent same amount": float(have_equal_amounts(older, newer)),
        "silent change": float("change" in newer.cues and "change" not in older.cues),
        "silent denial": float((not older.polarity.negations) != (not newer.polarity.negations)),
        "silent names": float(_has_other_values(older, newer)),
    }


def _is_of_two_things(pair: Pair, signals: list[Signal]) -> bool:
    """Return whether nothing is shared but the subject and what is opposed: likes, dislikes."""
    if not all(signal.kind in _OPPOSED for signal in signals):
        return False
    words = frozenset[str]().union(*(signal.words for signal in signals))
    own = _own(pair.older, pair.newer, words), _own(pair.newer, pair.older, words)
    return all(own) and not pair.topics - words


def _count_disagreements(signals: list[Signal]) -> int:
    """Return the number of differences: one value may show as an opposite and as an attribute."""
    opposed = frozenset[str]().union(
        *(signal.words for signal in signals if signal.kind in _OPPOSITES)
    )
    return len(
        {
            _FAMILIES.get(signal.kind, signal.kind)
            for signal in signals
            if signal.kind != "value" or not signal.words <= opposed
        }
    )


def _own_words(older: Reading, newer: Reading, words: frozenset[str]) -> float:
    """Return the number of words that only one text has, from 0 to 1 for many."""
    most = max(len(_own(older, newer, words)), len(_own(newer, older, words)))
    return min(most, _MAX_WORDS) / _MAX_WORDS


def _own(one: Reading, other: Reading, words: frozenset[str]) -> list[str]:
    return [
        key
        for key, place in one.keys.items()
        if key not in other.keys and key not in words and not one.tokens[place].lexeme.is_stop
    ]


def _is_over(older: Reading, newer: Reading, kinds: set[str]) -> bool:
    is_past = older.predicate.is_past and not newer.predicate.is_past
    is_gone = "gone" in older.cues and "gone" not in newer.cues
    return is_gone or (
        is_past and "change" not in older.cues and bool(kinds & {"attribute", "value"})
    )


def _not_now(one: Reading, other: Reading) -> set[str]:
    """Return why a text says nothing of what is: it is over, wished, or only so in a case."""
    return one.cues & _NOT_NOW | ({"case"} if one.case - other.keys.keys() else set())


def _has_other_values(older: Reading, newer: Reading) -> bool:
    """Return whether each text has a name of its own, beside a shared word that has one value."""
    mine = older.entities.names.keys() - newer.keys.keys() - older.entities.people
    theirs = newer.entities.names.keys() - older.keys.keys() - newer.entities.people
    return bool(mine and theirs) and any(
        older.tokens[place].lexeme.is_functional
        for key, place in older.keys.items()
        if key in newer.keys
    )


_SHORT = 4096  # characters of all texts; reading more would hold up an event loop
_NONE = Judgement(0.0)
_ENGLISH = Coverage(["en"])


def _is_english(text: str) -> bool:
    return _ENGLISH.covers(text) and detect_language(text[:_SHORT]) in {None, "en"}


def _against(newer: Reading, other: str) -> Judgement:
    if not _is_english(other):
        return _NONE
    found, reason = evidence(Pair(parse(other), newer))
    if not found:
        return _NONE
    score = sum(WEIGHTS.get(name, 0.0) * value for name, value in found.items() if value)
    return Judgement(round(1 / (1 + math.exp(-score)), 3), reason)


@names_arguments
class RuleJudge:
    """Judges English statements by tables and fitted weights: no network, no model, deterministic.

    It abstains, with a confidence of 0, where one of two texts is in another language: in another
    script, or detected as another. Texts of a few Latin words count as English.

    Of each text the first 4,096 characters are read, and of these the first 64 numbers, dates and
    times. A number of more than 30 digits is ignored.
    """

    async def judge(self, statement: str, others: Sequence[str]) -> list[Judgement]:
        """Return one judgement for each of the older memories, in their order."""
        check_texts(statement, others)
        length = len(statement) + sum(len(other) for other in others)
        if length <= _SHORT:
            return self._judged(statement, others)
        return await run_blocking(lambda: self._judged(statement, others))

    def _judged(self, statement: str, others: Sequence[str]) -> list[Judgement]:
        with localcontext(EXACT):
            if not _is_english(statement):
                return [_NONE] * len(others)
            newer = parse(statement)
            return [_against(newer, other) for other in others]
