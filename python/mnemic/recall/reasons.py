"""Scores and reasons of recalled memories."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from mnemic.index import RankedRow
from mnemic.model import LinkType, RecallMode

Reason: TypeAlias = Callable[[RankedRow], tuple[float, str]]
"""The score of a hit, and its reason in words."""


def relevant_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of relevant recall."""
    similarity, salience = hit.components.get("similarity"), hit.components["salience"]
    topic = "" if similarity is None else f"Similarity: {similarity:.2f}, "  # as without a vector
    return hit.shown_score, f"{topic}Salience: {salience:.2f}"


def recent_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of recent recall."""
    recency = hit.components["recency"]
    return recency, f"Recency: {recency:.2f}, Salience: {hit.components['salience']:.2f}"


def important_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of important recall."""
    salience = hit.components["salience"]
    return salience, f"Salience: {salience:.2f}"


def frequent_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of frequent recall."""
    frequency = hit.components["access"]
    return frequency, f"Frequency: {frequency:.2f}, Salience: {hit.components['salience']:.2f}"


@lru_cache(maxsize=1024)  # there are few kinds, and hundreds of hits
def linked_reason(kinds: tuple[int, ...]) -> str:
    """Return the reason of a memory that links of these types lead to."""
    names = (LinkType.numbered(kind).name.title().replace("_", "") for kind in kinds)
    return f"Linked via {', '.join(names)}"


def temporal_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of recall from a time range, with or without a topic."""
    similarity = hit.components.get("similarity")
    topic = "" if similarity is None else f", Similarity: {similarity:.2f}"
    return hit.components["salience"], f"Temporal match{topic}"


REASONS: dict[RecallMode, Reason] = {
    RecallMode.RELEVANT: relevant_reason,
    RecallMode.RECENT: recent_reason,
    RecallMode.IMPORTANT: important_reason,
    RecallMode.FREQUENT: frequent_reason,
    RecallMode.TEMPORAL: temporal_reason,
}
