"""Statistics of a scope, of what a store's statements return."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from mnemic.model import LongTermMemoryStats, MemoryEntry, MemoryStatus, MemoryType, TagUsage
from mnemic.model.timestamps import from_microseconds
from mnemic.store.readable_entries import Rows
from mnemic.store.row_codec import RowCodec

STATE: Final = (
    "CASE WHEN forgotten_at IS NOT NULL THEN -2 WHEN expires_at <= {now} THEN -1 ELSE status END"
)
"""The one state that an entry is in, in SQL."""

_FORGOTTEN, _EXPIRED = -2, -1
_TOP_TAGS: Final = 10


class SealedCounts(NamedTuple):
    """Figures of the sealed entries of a scope, in any state.

    Attributes:
        entries: Their number.
        unreadable: Number of those that cannot be opened.
        hidden_bytes: Bytes that those count which a codec cannot read for lack of a key.
        active: Those that searches find.
    """

    entries: int
    unreadable: int
    hidden_bytes: int
    active: list[MemoryEntry]


def sealed_stats(
    batches: Iterable[Rows], readable: Callable[[Rows], Mapping[int, MemoryEntry]], now: int
) -> SealedCounts:
    """Return figures of sealed rows, each of which is opened."""
    number, opened, active = 0, 0, list[MemoryEntry]()
    moment = from_microseconds(now)
    for batch in batches:
        found = readable(batch)
        number, opened = number + len(batch), opened + len(found)
        active += [entry for entry in found.values() if entry.is_active(moment)]
    return SealedCounts(number, number - opened, 0, active)


def statistics(
    codec: RowCodec, states: Rows, *, types: Rows, tags: Rows, times: Rows, sealed: SealedCounts
) -> LongTermMemoryStats:
    """Return statistics, without figures of embedder and quota, which are not stored.

    Args:
        codec: Codec of the entries.
        states: Each `STATE` with the number of its entries and their bytes.
        types: Each type with the number of its active entries.
        tags: Each list of tags, as it is stored, with the number of its active entries.
        times: One row, when the first and the last active entry were created.
        sealed: Figures of the sealed entries.
    """
    number: dict[Any, int] = {state: entries for state, entries, _ in states}
    ((oldest, newest),) = times
    return LongTermMemoryStats(
        active_entries=number.get(MemoryStatus.ACTIVE, 0),
        archived_entries=number.get(MemoryStatus.ARCHIVED, 0),
        superseded_entries=number.get(MemoryStatus.SUPERSEDED, 0),
        forgotten_entries=number.get(_FORGOTTEN, 0),
        expired_entries=number.get(_EXPIRED, 0),
        sealed_entries=sealed.entries,
        unreadable_entries=sealed.unreadable,
        storage_bytes_used=sum(size for *_, size in states) + sealed.hidden_bytes,
        entries_by_type={MemoryType.numbered(kind): used for kind, used in types},
        top_tags=_top_tags(
            [
                *((codec.decode_tags(stored), entries) for stored, entries in tags),
                *((entry.tags, 1) for entry in sealed.active),
            ]
        ),
        oldest_entry=None if oldest is None else from_microseconds(oldest),
        newest_entry=None if newest is None else from_microseconds(newest),
    )


def _top_tags(found: Iterable[tuple[tuple[str, ...], int]]) -> tuple[TagUsage, ...]:
    """Return the most used tags, of lists of tags and the number of their entries."""
    used: Counter[str] = Counter()
    for tags, entries in found:
        for tag in set(tags):
            used[tag] += entries
    top = sorted(used.items(), key=lambda each: (-each[1], each[0]))[:_TOP_TAGS]
    return tuple(TagUsage(tag, entries) for tag, entries in top)
