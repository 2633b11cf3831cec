"""The verbs of a memory over one store, one embedder and one index."""

from mnemic.repository.repository import (
    RETENTION,
    Answered,
    LinkedAnswer,
    Options,
    Repository,
    Searched,
    check_limit,
    checked_memory,
    required_uuid,
    required_uuids,
)

__all__ = [
    "RETENTION",
    "Answered",
    "LinkedAnswer",
    "Options",
    "Repository",
    "Searched",
    "check_limit",
    "checked_memory",
    "required_uuid",
    "required_uuids",
]
