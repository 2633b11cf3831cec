"""Memories for an agent's context by hypothetical document embeddings (HyDE), once per turn."""

from mnemic.hyde.config import HydeConfig, IgnoredOptionWarning, InjectionForm
from mnemic.hyde.engine import HydeEngine, SyncHydeEngine
from mnemic.hyde.hypotheses import (
    HYPOTHESIS_SYSTEM_PROMPT,
    Completes,
    generate_hypotheses,
    hypothesis_prompt,
    hypothesis_system_prompt,
    parse_hypotheses,
)
from mnemic.hyde.injection import format_injection
from mnemic.hyde.ranked_memory import RankedMemory, TurnMemories
from mnemic.hyde.telemetry import HydeStats
from mnemic.hyde.turn import HydeTurn, SyncHydeTurn
from mnemic.hyde.window import build_conversation_window

__all__ = [
    "HYPOTHESIS_SYSTEM_PROMPT",
    "Completes",
    "HydeConfig",
    "HydeEngine",
    "HydeStats",
    "HydeTurn",
    "IgnoredOptionWarning",
    "InjectionForm",
    "RankedMemory",
    "SyncHydeEngine",
    "SyncHydeTurn",
    "TurnMemories",
    "build_conversation_window",
    "format_injection",
    "generate_hypotheses",
    "hypothesis_prompt",
    "hypothesis_system_prompt",
    "parse_hypotheses",
]
