"""The verbs of a memory over one store, one embedder and one index."""

from mnemic.repository.repository import (
    RETENTION,
    FoundPage,
    LinkedPage,
    Options,
    Repository,
    Searchable,
    check_limit,
    checked_memory,
    required_uuid,
    required_uuids,
)

__all__ = [
    "RETENTION",
    "FoundPage",
    "LinkedPage",
    "Options",
    "Repository",
    "Searchable",
    "check_limit",
    "checked_memory",
    "required_uuid",
    "required_uuids",
]
