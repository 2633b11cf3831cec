"""Features of a pair of texts: evidence for and against a contradiction, as numbers."""

from mnemic.contradictions import vocabulary
from mnemic.contradictions.reading import Reading
from mnemic.contradictions.signals import Pair, Signal, have_equal_amounts

_APART = frozenset({"label", "qualifier"})
_FAMILIES = {"attribute": "value", "change": "value", "negation": "opposite"}
_TIMES = frozenset({"number", "time"})
_MAX_WORDS = 8  # more words of its own add no information
_FEW = 2

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
    if not signals:
        return _silent(pair), "one may deny or replace the other"
    return _signalled(pair, signals), _reason(signals)


def _reason(signals: list[Signal]) -> str:
    """Return the reasons, without those that only add words to another one."""
    words = {signal.reason: {*signal.reason.split()} for signal in signals}
    told = [
        reason for reason, own in words.items() if not any(own > other for other in words.values())
    ]
    return "; ".join(told)


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
        "denied": float("negation" in kinds),
        "several": float(_count_disagreements(signals) > 1),
        "apart": float(
            pair.has_other_subject()
            + pair.has_other_qualifiers(words)
            + pair.has_other_object(words)
            + pair.has_other_names(words)
        ),
        "over": float(_is_over(older, newer)),
        "plan": float(("plan" in older.cues) != ("plan" in newer.cues)),
        "exception": float("exception" in cues and not kinds <= _TIMES),
        "many values": float("value" in kinds and (older.is_many_valued or newer.is_many_valued)),
        "many negations": float(_has_many_negations(older, newer)),
        "other action": float(bool(kinds & _TIMES) and _has_other_verbs(pair, words)),
    }


def _silent(pair: Pair) -> dict[str, float]:
    older, newer = pair.older, pair.newer
    own_words = _own_words(older, newer, frozenset())
    return {
        "silent": 1.0,
        "silent own words": own_words,
        "silent same words": float(not own_words),
        "silent same verb": float(
            bool(older.predicate.verb) and older.predicate.verb == newer.predicate.verb
        ),
        "silent same amount": float(have_equal_amounts(older, newer)),
        "silent same people": float(not older.entities.people.isdisjoint(newer.entities.people)),
        "silent few": float(len(pair.shared) < _FEW),
        "silent change": float("change" in newer.cues and "change" not in older.cues),
        "silent denial": float((not older.polarity.negations) != (not newer.polarity.negations)),
        "silent many negations": float(_has_many_negations(older, newer)),
        "silent names": float(_has_other_values(older, newer)),
    }


def _count_disagreements(signals: list[Signal]) -> int:
    """Return the number of differences: one value may show as an opposite and as an attribute."""
    opposed = frozenset[str]().union(
        *(signal.words for signal in signals if signal.kind in {"opposite", "weak"})
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
    most = max(
        sum(
            key not in other.keys and key not in words and not one.tokens[place].lexeme.is_stop
            for key, place in one.keys.items()
        )
        for one, other in ((older, newer), (newer, older))
    )
    return min(most, _MAX_WORDS) / _MAX_WORDS


def _has_many_negations(older: Reading, newer: Reading) -> bool:
    return max(len(older.polarity.negations), len(newer.polarity.negations)) > 1


def _is_over(older: Reading, newer: Reading) -> bool:
    return (
        ("past" in older.cues) != ("past" in newer.cues)
        or ("gone" in older.cues and "gone" not in newer.cues)
        or (older.predicate.is_past and not newer.predicate.is_past)
    )


def _has_other_verbs(pair: Pair, words: frozenset[str]) -> bool:
    """Return whether each text has an action that the other does not."""
    return bool(
        _own_verbs(pair.older, pair.newer, words) and _own_verbs(pair.newer, pair.older, words)
    )


def _own_verbs(one: Reading, other: Reading, words: frozenset[str]) -> list[str]:
    return [
        key
        for key, place in one.keys.items()
        if one.tokens[place].lexeme.is_verb
        and key not in other.keys
        and key not in words
        and key not in vocabulary.LIGHT_VERBS
    ]


def _has_other_values(older: Reading, newer: Reading) -> bool:
    """Return whether each text has a name of its own, beside a shared word that has one value."""
    mine = older.entities.names.keys() - newer.keys.keys() - older.entities.people
    theirs = newer.entities.names.keys() - older.keys.keys() - newer.entities.people
    return bool(mine and theirs) and any(
        older.tokens[place].lexeme.is_functional
        for key, place in older.keys.items()
        if key in newer.keys
    )
