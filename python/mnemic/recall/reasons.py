"""Scores and reasons of recalled memories."""

from functools import lru_cache

from mnemic.index import RankedRow
from mnemic.model import LinkType, RecallMode

_SHOWN: dict[RecallMode, tuple[str | None, str]] = {
    RecallMode.RELEVANT: (None, "Similarity: {similarity:.2f}, Salience: {salience:.2f}"),
    RecallMode.RECENT: ("recency", "Recency: {recency:.2f}, Salience: {salience:.2f}"),
    RecallMode.IMPORTANT: ("salience", "Salience: {salience:.2f}"),
    RecallMode.FREQUENT: ("access", "Frequency: {access:.2f}, Salience: {salience:.2f}"),
    RecallMode.TEMPORAL: ("salience", "Temporal match"),
}
"""The part of the score that is shown as the score, None for the whole one; and the reason."""

_ON_TOPIC = "Temporal match, Similarity: {similarity:.2f}"


def scored(mode: RecallMode, hit: RankedRow) -> tuple[float, str]:
    """Return the score of a hit of a mode, and its reason in words."""
    part, reason = _SHOWN[mode]
    if mode is RecallMode.TEMPORAL and "similarity" in hit.components:
        reason = _ON_TOPIC
    score = hit.shown_score if part is None else hit.components[part]
    return score, reason.format_map(hit.components)


@lru_cache(maxsize=1024)  # there are few kinds, and hundreds of hits
def linked_reason(kinds: tuple[int, ...]) -> str:
    """Return the reason of a memory that links of these types lead to."""
    names = (LinkType.numbered(kind).name.title().replace("_", "") for kind in kinds)
    return f"Linked via {', '.join(names)}"
