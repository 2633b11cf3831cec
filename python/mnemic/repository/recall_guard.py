"""Guard against recall loops: recalled text that is stored again as a new memory."""

import os
import re
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple
from uuid import UUID

from mnemic._core import fold
from mnemic.context.prompt_block import BY_ANOTHER, HEADER, HEADINGS, PREAMBLE
from mnemic.errors import RecalledTextError
from mnemic.model import MemoryEntry, MemoryStatus, OnDuplicate, Scope
from mnemic.model.new_entry import NewEntry
from mnemic.repository.parts import Part, Shared
from mnemic.store.operations import EntriesByRow, StoredEntries
from mnemic.store.row_codec import fingerprints
from mnemic.threads.locks import Lock
from mnemic.threads.sync_bridge import run_blocking

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
    r"^\[\d+\] \d{4}-\d\d-\d\d |^\[\d{4}-\d\d-\d\dT[\d:.]+Z\] (?:[^:\n]+: )?"
    r"| \((?:confidence|relevance): \d\.\d+\)$|^_Retrieved \d+ memor.*_$|^"
    + "$|^".join(map(re.escape, (HEADER, PREAMBLE, BY_ANOTHER, *HEADINGS.values())))
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

    A digest keeps no word of its text: words are hashed with a key that is drawn for each process.

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


SECONDS: Final = 3600.0
"""How long a returned memory is remembered: about the length of a session of an agent."""

MAX_RESULTS: Final = 512
"""Results that are remembered for each user, the last ones; a memory returned twice counts twice.
"""

MAX_USERS: Final = 256
"""Users whose memories are remembered, those to whom some were returned last."""


class _Window:
    """The memories of one user that were returned lately.

    Attributes:
        results: Row, version and time of each memory that was returned, the last ones.
        digests: Version and digest of their texts, by row; None for a text that is not compared.
        texts: What finds these texts in others.
    """

    def __init__(self) -> None:
        self.results: deque[tuple[int, int, float]] = deque(maxlen=MAX_RESULTS)
        self.digests: dict[int, tuple[int, TextDigest | None]] = {}
        self.texts = RecalledTexts({})

    def replace(self, digests: dict[int, tuple[int, TextDigest | None]]) -> None:
        """Take the digests of all memories that were returned lately."""
        self.digests = digests
        found = {row: digest for row, (_, digest) in digests.items()}
        self.texts = RecalledTexts({row: one for row, one in found.items() if one is not None})


class RecallGuard(Part):
    """Remembers which memories were returned, and finds them in new ones of the same user.

    A search only notes rows. Their texts are read and hashed when the next memory of the user is
    added; nothing but keyed hashes is kept of them. May be used from any thread.

    Args:
        shared: What it shares with the others.
        clock: Returns seconds that never go back.
    """

    def __init__(self, shared: Shared, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(shared)
        self._refuses = shared.settings.on_recalled == "refuse"
        self._clock = clock
        self._lock = Lock()
        self._windows: OrderedDict[str | None, _Window] = OrderedDict()

    def note(self, entries: Mapping[int, MemoryEntry]) -> None:
        """Note memories that are returned, each for its own user."""
        at, window, user_id = self._clock(), None, None
        with self._lock:
            for row, entry in entries.items():  # every search pays for this
                if window is None or entry.user_id != user_id:
                    user_id = entry.user_id
                    window = self._window_of(user_id)
                window.results.append((row, entry.version, at))

    def _window_of(self, user_id: str | None) -> _Window:
        window = self._windows.get(user_id)
        if window is None:
            window = self._windows[user_id] = _Window()
            if len(self._windows) > MAX_USERS:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(user_id)
        return window

    async def repeated(
        self, entries: Sequence[NewEntry], on_duplicate: OnDuplicate
    ) -> dict[int, UUID]:
        """Return by place the ids of recalled memories that new ones repeat.

        A new memory may repeat the one that it supersedes or replaces, and one that was stored with
        its idempotency key. With `on_duplicate` other than "keep" it may have the same text too,
        because it is not stored then.

        Raises:
            RecalledTextError: If one does, and the guard refuses it.
        """
        if not any(new.entry.user_id in self._windows for new in entries):
            return {}
        return await run_blocking(lambda: self._repeated(entries, on_duplicate), self._store)

    def _repeated(self, entries: Sequence[NewEntry], on_duplicate: OnDuplicate) -> dict[int, UUID]:
        texts: dict[str | None, RecalledTexts | None] = {}
        found: dict[int, UUID] = {}
        for place, new in enumerate(entries):
            user_id = new.entry.user_id
            if user_id not in texts:
                texts[user_id] = self._texts(user_id)
            recalled = texts[user_id]
            rows = () if recalled is None else recalled.repeated_by(new.entry.content)
            memory_id = self._repeated_id(new, rows, on_duplicate) if rows else None
            if memory_id is not None:
                found[place] = memory_id
                if self._refuses:
                    raise RecalledTextError(memory_id, place if len(entries) > 1 else None)
        return found

    def _texts(self, user_id: str | None) -> RecalledTexts | None:
        """Return the texts of a user that were returned lately; None without any."""
        with self._lock:
            window = self._windows.get(user_id)
            if window is None:
                return None
            since, known = self._clock() - SECONDS, window.digests
            versions = {row: version for row, version, at in window.results if at >= since}
            missing = {
                row: version
                for row, version in versions.items()
                if row not in known or known[row][0] != version
            }
            if not missing and len(known) == len(versions):
                return window.texts
        made = self._digests(user_id, missing) if missing else {}
        with self._lock:
            window.replace({row: made.get(row) or known[row] for row in versions})
            return window.texts

    def _digests(
        self, user_id: str | None, versions: Mapping[int, int]
    ) -> dict[int, tuple[int, TextDigest | None]]:
        """Return versions and digests of memories; None for one that is gone."""
        entries = self._present(Scope(self._agent_id, user_id), list(versions))
        return {
            row: (version, digest_of(entries[row].content) if row in entries else None)
            for row, version in versions.items()
        }

    def _repeated_id(
        self, new: NewEntry, rows: Sequence[int], on_duplicate: OnDuplicate
    ) -> UUID | None:
        """Return the id of the first of some memories that is there.

        None if there is none, and if the new memory may repeat one of them.
        """
        scope = Scope(self._agent_id, new.entry.user_id)
        present = self._present(scope, rows)
        for row, entry in present.items():
            is_meant = entry.id in (new.entry.id, new.entry.supersedes)
            if is_meant or self._has_key(scope, row, new.key):
                return None
            one, other = fingerprints([new.entry.content, entry.content])
            is_equal = one == other and entry.status is MemoryStatus.ACTIVE
            if on_duplicate != "keep" and is_equal:  # it is not stored
                return None
        return next((entry.id for entry in present.values()), None)

    def _present(self, scope: Scope, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        """Return the memories of rows that are neither deleted nor expired, in this order."""
        now = self._now()
        found = self._store.read(EntriesByRow(scope, rows, now=now, include_deleted=True))
        return {row: found[row] for row in rows if row in found and found[row].is_present(now)}

    def _has_key(self, scope: Scope, row: int, key: str | None) -> bool:
        """Return whether a memory was stored with an idempotency key: the new one is a retry."""
        if key is None:
            return False
        stored = self._store.read(
            StoredEntries(scope, row - 1, 1, now=self._now(), include_deleted=True, model=None)
        )
        return any(one.row == row and one.key == key for one in stored)
