"""The verbs of a memory over one store, one embedder and one index."""

from mnemic.repository.arguments import criteria, required_uuid, required_uuids, unlimited
from mnemic.repository.found import Expansion, Found, FoundLinked
from mnemic.repository.options import Options
from mnemic.repository.repository import Repository, check_limit
from mnemic.repository.retention import RETENTION
from mnemic.repository.searchable import Searchable, checked_memory
from mnemic.repository.stored_model import stored_model

__all__ = [
    "RETENTION",
    "Expansion",
    "Found",
    "FoundLinked",
    "Options",
    "Repository",
    "Searchable",
    "check_limit",
    "checked_memory",
    "criteria",
    "required_uuid",
    "required_uuids",
    "stored_model",
    "unlimited",
]
