"""Scan of memories for secrets: texts in which a pattern of redaction matches."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mnemic.context.redaction import Redaction, RedactionPattern, redact_batch
from mnemic.errors import RedactionBudgetError
from mnemic.model import MemoryEntry


class ScanResult(NamedTuple):
    """The patterns that match in a memory, and whether a text of it could not be scanned."""

    patterns: tuple[str, ...]
    is_unscanned: bool


_NOTHING = ScanResult((), is_unscanned=False)


class SecretScan:
    """Names the patterns that match in memories; matches themselves are not returned.

    Args:
        patterns: Names of known ones, regular expressions, or `RedactionPattern`s.

    Raises:
        InvalidArgumentError: If a pattern is invalid.
    """

    def __init__(self, patterns: Sequence[str | RedactionPattern]) -> None:
        self._all = Redaction(enabled=True, patterns=tuple(patterns))
        self._each = {
            _name(pattern): Redaction(enabled=True, patterns=(pattern,))
            for pattern in self._all.patterns
        }

    def scan(self, entries: Sequence[MemoryEntry]) -> list[ScanResult]:
        """Scan the content, the tags, the metadata, category and source of each memory."""
        if not self._each:
            return [_NOTHING] * len(entries)
        texts = [list(_texts_of(entry)) for entry in entries]
        try:
            found = redact_batch([text for of_one in texts for text in of_one], self._all)
        except RedactionBudgetError:
            return [self._scanned(of_one) for of_one in texts]
        counts = iter(found)
        suspects = [sum(next(counts)[1] for _ in of_one) > 0 for of_one in texts]
        return [
            self._scanned(of_one) if is_suspect else _NOTHING
            for of_one, is_suspect in zip(texts, suspects, strict=True)
        ]

    def _scanned(self, texts: Sequence[str]) -> ScanResult:
        matching: list[str] = []
        is_unscanned = False
        for name, redaction in self._each.items():
            try:
                if any(count for _, count in redact_batch(texts, redaction)):
                    matching.append(name)
            except RedactionBudgetError:
                is_unscanned = True
        return ScanResult(tuple(matching), is_unscanned)


def _name(pattern: str | RedactionPattern) -> str:
    return pattern.name if isinstance(pattern, RedactionPattern) else pattern


def _texts_of(entry: MemoryEntry) -> Iterator[str]:
    yield entry.content
    yield from entry.tags
    yield from _texts_in(entry.metadata)
    yield from (text for text in (entry.category, entry.source) if text is not None)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value, keys included, and its numbers as they are written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
