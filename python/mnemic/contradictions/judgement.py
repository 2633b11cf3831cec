"""The contract of a judge of contradictions, and its judgements."""

from collections.abc import Awaitable, Sequence
from typing import ClassVar, Protocol

from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import items
from mnemic.records import Redacted
from mnemic.reporting.description import described


class Judgement(Redacted, frozen=True):
    """Confidence that two memories contradict each other, with the reason.

    Attributes:
        confidence: From 0, no evidence, to 1; from 0.6 on it is reported by default.
        reason: A few words for a reader; empty without evidence.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"reason"})

    confidence: float
    reason: str = ""


def check_texts(statement: object, others: object) -> None:
    """Refuse invalid texts."""
    for field, given in (
        ("statement", statement),
        *(("others", each) for each in items("others", others)),
    ):
        if not isinstance(given, str):
            raise InvalidArgumentError(f"{field} must be a text, got {described(given)}")


class ContradictionJudge(Protocol):
    """Judges whether a statement contradicts memories; its method may be plain or a coroutine."""

    def judge(
        self, statement: str, others: Sequence[str]
    ) -> Sequence[Judgement] | Awaitable[Sequence[Judgement]]:
        """Return one judgement for each of the older memories, in their order.

        Args:
            statement: The new statement.
            others: The older memories.
        """
        ...
