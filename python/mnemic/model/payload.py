"""Records of a prompt block: the memories in it, where each came from, and those left out."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Literal, Self, TypeAlias

from msgspec import to_builtins
from msgspec.structs import replace

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import items
from mnemic.records import Record, Redacted
from mnemic.reporting.tracebacks import end_at_verb

PayloadType: TypeAlias = Literal["message", "fact", "summary"]
"""Sort of a memory in a prompt block; `MemoryType.payload_type` gives it."""

Step: TypeAlias = Literal["threshold", "redact", "deduplicate", "interleave", "clip", "budget"]
"""A step that may leave a memory out."""


class Provenance(Record, frozen=True, kw_only=True, gc=False):
    """Where the text of a memory came from, and the changes that the steps made to it.

    Attributes:
        collection: "user:alice", or "agent:aide" for a memory without a user.
        search_type: The kind of search that found it: hybrid, semantic or keyword.
        original_length: Characters of the stored content, before redaction and clipping.
        was_redacted: Whether at least one substitution was made.
        was_clipped: Whether sentences were left out, or the budget cut the text.
        duplicate_ids: Memories with the same text that were left out in its favour, the best first.
        position: Place in the interleaved order, from 0; None before that step.
    """

    collection: str = ""
    search_type: str = ""
    original_length: int = 0
    was_redacted: bool = False
    was_clipped: bool = False
    duplicate_ids: tuple[str, ...] = ()
    position: int | None = None


class PayloadMemory(Redacted, frozen=True, kw_only=True, gc=False):
    """A memory on its way into a prompt. It never holds the stored entry.

    Attributes:
        id: The memory's id.
        content: The text, as the steps left it; `repr` hides it, and the speaker and the role.
        timestamp: Time of creation; a naive one is taken as UTC.
        score: From 0 to 1, higher is better.
        session_id: The memory's session.
        message_id: Id of the source message.
        type: A message, a fact or a summary.
        role: Role of the speaker, such as "user" or "assistant".
        speaker: Name of the speaker.
        confidence: The fact's own confidence, 0 to 1; None without one.
        provenance: Where the text came from.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"content", "role", "speaker"})

    id: str
    content: str
    timestamp: datetime
    score: float = 0.0
    session_id: str | None = None
    message_id: str | None = None
    type: PayloadType = "fact"
    role: str | None = None
    speaker: str | None = None
    confidence: float | None = None
    provenance: Provenance = Provenance()

    @classmethod
    def of(
        cls, found: Sequence[tuple["mnemic.MemoryEntry", float]], search_type: str = ""
    ) -> list[Self]:
        """Return the forms of found memories for a prompt, in their order.

        The confidence of a fact is the number from 0 to 1 in its metadata under "confidence".

        Args:
            found: Memories, each with its score.
            search_type: The kind of search that found them.
        """
        # msgspec takes a tenth of the time of str() for these.
        ids: list[str] = to_builtins([entry.id for entry, _ in found])
        return [
            cls(
                id=identity,
                content=entry.content,
                timestamp=entry.created_at,
                score=score,
                session_id=entry.session_id,
                message_id=entry.message_id,
                type=entry.type.payload_type,
                role=entry.role,
                speaker=entry.speaker,
                confidence=_confidence(entry) if entry.metadata else None,
                provenance=_provenance(entry, search_type),
            )
            for (entry, score), identity in zip(found, ids, strict=True)
        ]

    def with_content(self, content: str, **provenance: bool) -> Self:
        """Return a copy with another content.

        Args:
            content: The text after a step.
            **provenance: Marks of the step in the provenance.
        """
        length = self.provenance.original_length or len(self.content)
        noted = replace(self.provenance, original_length=length, **provenance)
        return replace(self, content=content, provenance=noted)


class DroppedMemory(Record, frozen=True, kw_only=True, gc=False):
    """A memory that was found and is not in the prompt.

    Attributes:
        id: The memory's id.
        step: The step that left it out.
        reason: A sentence, without content.
        score: Its score.
    """

    id: str
    step: Step
    reason: str
    score: float


def _confidence(entry: "mnemic.MemoryEntry") -> float | None:
    given = entry.metadata.get("confidence")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if 0 <= given <= 1 else None


def _provenance(entry: "mnemic.MemoryEntry", search_type: str) -> Provenance:
    owner = f"agent:{entry.agent_id}" if entry.user_id is None else f"user:{entry.user_id}"
    length = len(entry.content)
    return Provenance(collection=owner, search_type=search_type, original_length=length)


def payload_memories(given: object) -> list[PayloadMemory]:
    """Return memories on their way into a prompt as a list.

    Raises:
        InvalidArgumentError: If it is no list of them.
    """
    try:
        return items("memories", given, PayloadMemory, "a PayloadMemory")
    except InvalidArgumentError as error:
        end_at_verb(error)
        raise
