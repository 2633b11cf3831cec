"""What a judge of contradictions says, and what it must be able to do."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from mnemic.description import described
from mnemic.errors import InvalidArgumentError
from mnemic.model.redacted import Redacted
from mnemic.model.validation import items


class Judgement(Redacted, frozen=True):
    """How sure a judge is that two memories contradict each other, and why.

    Attributes:
        confidence: From 0, nothing speaks for it, to 1; from 0.5 on it is worth reporting.
        reason: A few words for a reader; empty if nothing speaks for it.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"reason"})

    confidence: float
    reason: str = ""


def check_texts(statement: object, others: object) -> None:
    """Refuse what a judge cannot read."""
    for field, given in (
        ("statement", statement),
        *(("others", each) for each in items("others", others)),
    ):
        if not isinstance(given, str):
            raise InvalidArgumentError(f"{field} must be a text, got {described(given)}")


class ContradictionJudge(Protocol):
    """Judges a new statement beside older memories."""

    async def judge(self, statement: str, others: Sequence[str]) -> list[Judgement]:
        """Return one judgement for each of the older memories, in their order."""
        ...
