"""Digests of recalled texts, and whether another text mostly consists of them.

A digest keeps no word of its text: words are hashed with a key that is drawn for each process.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from mnemic._core import fold
from mnemic.context.prompt_block import HEADER, HEADINGS, PREAMBLE

MAX_CHARACTERS: Final = 100_000
"""Longer texts are not compared: hashing each of their words would take tens of milliseconds."""

MIN_PART: Final = 20
"""Characters that a recalled text needs to count as a part of another one; a name or a date stands
in many texts."""

ONE_TEXT: Final = 0.9
"""Share of a text's characters that one recalled text must make up. A recalled sentence that was
extended by a clause is a new one."""

SEVERAL_TEXTS: Final = 0.5
"""The same for several recalled texts, as in a list with a heading, dates and scores."""

_KEY: Final = os.urandom(32)
_DIGEST_BYTES: Final = 16
_OPENING: Final = "\"'`([{\u2018\u201c\u00ab\u300c\u300e"
_CLOSING: Final = ".,;:!?\"'`)]}\u2019\u201d\u00bb\u300d\u300f\u3001\u3002"
_BULLETS: Final = frozenset(("", "-", "*", "|", "#", "##", "###", "\u2022", "\u2013", "\u2014"))

_FRAME: Final = re.compile(
    r"^\[\d+\] \d{4}-\d\d-\d\d |^\[\d{4}-\d\d-\d\dT[\d:.]+Z\] (?:\S+: )?"
    r"| \((?:confidence|relevance): \d\.\d+\)$|^_Retrieved \d+ memor.*_$|^"
    + "$|^".join(map(re.escape, (HEADER, PREAMBLE, *HEADINGS.values())))
    + "$",
    re.MULTILINE,
)
"""The parts of a block for a prompt that are of no memory."""


class TextDigest(NamedTuple):
    """The digest of a text.

    Attributes:
        words: Digest of its words, in order.
        first: Digest of its first word.
        length: Number of its words.
        characters: Characters of its words.
    """

    words: bytes
    first: bytes
    length: int
    characters: int


def digest_of(text: str) -> TextDigest | None:
    """Return the digest of a text; None for one that is not compared."""
    words = words_of(text)
    if not words:
        return None
    return TextDigest(_digest(words), _digest(words[:1]), len(words), _characters(words))


def words_of(text: str) -> list[str]:
    """Return the words of a text, without case, width and the punctuation around them.

    Empty for a text that is not compared.
    """
    if len(text) > MAX_CHARACTERS:
        return []
    words = (word.lstrip(_OPENING).rstrip(_CLOSING) for word in fold(text).split())
    return [word for word in words if word not in _BULLETS]


class RecalledTexts:
    """Finds recalled texts in others.

    Args:
        digests: Digests of the recalled texts, by row.
    """

    def __init__(self, digests: Mapping[int, TextDigest]) -> None:
        self._rows: defaultdict[bytes, list[int]] = defaultdict(list)
        self._counts: defaultdict[bytes, set[int]] = defaultdict(set)
        for row, digest in sorted(digests.items()):
            self._rows[digest.words].append(row)
            if digest.characters >= MIN_PART:
                self._counts[digest.first].add(digest.length)

    def repeated_by(self, text: str) -> tuple[int, ...]:
        """Return the rows with the recalled text that a text repeats, or mostly consists of.

        That is one with the same words; else one that makes up `ONE_TEXT` of the characters of its
        words, or the longest of several that make up `SEVERAL_TEXTS` of them together. Numbers,
        times, scores and headings of a block for a prompt do not count. Rows ascend; none if it
        repeats nothing.
        """
        words = words_of(text)
        if not words or not self._rows:
            return ()
        whole = _digest(words)
        if whole in self._rows:
            return tuple(self._rows[whole])
        words = words_of(_FRAME.sub("", text))
        parts = self._parts(words)
        if not parts:
            return ()
        least = ONE_TEXT if len(parts) == 1 else SEVERAL_TEXTS
        if sum(parts.values()) < least * _characters(words):
            return ()
        longest = max(parts, key=parts.__getitem__)
        return tuple(self._rows[longest])

    def _parts(self, words: Sequence[str]) -> dict[bytes, int]:
        """Return the characters of each recalled text among words, the longest at each place."""
        parts: dict[bytes, int] = {}
        place = 0
        while place < len(words):
            count = self._part_at(words, place, parts)
            place += max(1, count)
        return parts

    def _part_at(self, words: Sequence[str], place: int, parts: dict[bytes, int]) -> int:
        """Add the longest recalled text at a place; return the number of its words."""
        counts = self._counts.get(_digest(words[place : place + 1]), ())
        for count in sorted(counts, reverse=True):
            some = words[place : place + count]
            digest = _digest(some)
            if len(some) == count and digest in self._rows:
                parts[digest] = parts.get(digest, 0) + _characters(some)
                return count
        return 0


def _digest(words: Sequence[str]) -> bytes:
    # No word has white space, so that other words give another text.
    return blake2b(" ".join(words).encode(), digest_size=_DIGEST_BYTES, key=_KEY).digest()


def _characters(words: Iterable[str]) -> int:
    return sum(map(len, words))
