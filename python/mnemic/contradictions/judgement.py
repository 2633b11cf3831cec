"""What a judge of contradictions says, and what it must be able to do."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Judgement(msgspec.Struct, frozen=True):
    """How sure a judge is that two memories contradict each other, and why.

    Attributes:
        confidence: From 0, nothing speaks for it, to 1; from 0.5 on it is worth reporting.
        reason: A few words for a reader; empty if nothing speaks for it.
    """

    confidence: float
    reason: str = ""


class ContradictionJudge(Protocol):
    """Judges a new statement beside older memories (C072)."""

    async def judge(self, statement: str, others: Sequence[str]) -> list[Judgement]:
        """Return one judgement for each of the older memories, in their order."""
        ...
