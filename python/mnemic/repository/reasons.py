"""The reasons for a hit's score, in the words of its memory and its query."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from mnemic.index import NativeIndex, RankedRow
from mnemic.model import MemoryEntry, Why, WordMatch

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Tokens: TypeAlias = Sequence[tuple[str, str]]


def why_of(hit: RankedRow, entry: MemoryEntry, query: str | None, index: NativeIndex) -> Why | None:
    """Return the reasons for a hit's score; None if the index gave none.

    Args:
        hit: The ranked row.
        entry: Its memory.
        query: The query's text.
        index: Cuts texts into words as the ranking does.
    """
    if hit.reasons is None:
        return None
    parts, words, neighbour, date, role, speaker = hit.reasons
    beyond = hit.shown_score - hit.score
    if beyond:
        parts["clamped"] = parts.get("clamped", 0.0) + beyond
    return Why(
        parts=parts,
        words=_word_matches(words, entry, query or "", index),
        neighbour=None if neighbour is None else UUID(bytes=neighbour),
        date=None if date is None else (_time(date[0]), _time(date[1])),
        role=role,
        speaker=speaker,
        sensitive=entry.hides_content,
    )


def _time(microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:  # the end of the year 9999
        return datetime.max.replace(tzinfo=UTC)


def _word_matches(
    words: list[tuple[str, str, int]], entry: MemoryEntry, query: str, index: NativeIndex
) -> tuple[WordMatch, ...]:
    own = [(token, term) for token, term, turn in words if turn == 0]
    matches = _own_matches(own, entry, query, index)
    for turn in sorted({turn for _, _, turn in words if turn}):
        tokens = [token for token, _, at in words if at == turn]
        found = index.core.surface_forms(query, tokens)
        matches += [WordMatch(text, text, turn, entry.hides_content) for text, _ in found]
    return tuple(matches)


def _own_matches(
    own: _Tokens, entry: MemoryEntry, query: str, index: NativeIndex
) -> list[WordMatch]:
    """Return the words that the memory itself has, the weightiest first."""
    written = index.core.surface_forms(entry.content, [term for _, term in own])
    chosen = _covering(written)
    missing = set(range(len(own))).difference(*(places for _, places in chosen))
    chosen += [(own[at][1], [at]) for at in missing]
    chosen.sort(key=lambda one: min(one[1]))
    queried = index.core.surface_forms(query, [token for token, _ in own])
    return [
        WordMatch(_spelled(queried, places, own), text, 0, entry.hides_content)
        for text, places in chosen
    ]


def _covering(written: list[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
    """Return the longest stretches, without those whose tokens others have."""
    covered: set[int] = set()
    chosen = []
    for text, places in sorted(written, key=lambda one: -len(one[1])):
        if not covered.issuperset(places):
            covered.update(places)
            chosen.append((text, places))
    return chosen


def _spelled(queried: list[tuple[str, list[int]]], places: list[int], own: _Tokens) -> str:
    """Return how the query writes some tokens."""
    wanted = set(places)
    texts = [text for text, found in _covering(queried) if wanted.intersection(found)]
    return " ".join(texts) or own[places[0]][0]
