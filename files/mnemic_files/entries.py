"""Turns memory files into memories, and memories into memory files."""

from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from mnemic import MemoryEntry, MemoryStatus, MemoryType
from mnemic.errors import InvalidArgumentError
from mnemic.model import LinkType, Scope
from mnemic_files.ids import entry_id, file_id_of, id_problem
from mnemic_files.inside import FILE_VERSION
from mnemic_files.memory_file import MemoryFile, RelatedFile
from mnemic_files.named_fields import named_fields

ID_KEY: Final = "memory_file"
TRIGGER_KEY: Final = "trigger"
_HASH_KEY: Final = "memory_file_hash"
_RELATED_KEY: Final = "memory_file_related"
_SUPERSEDES_KEY: Final = "memory_file_supersedes"
_KEYS_KEY: Final = "memory_file_keys"

OWN_METADATA: Final = frozenset(
    {ID_KEY, TRIGGER_KEY, _HASH_KEY, FILE_VERSION, _RELATED_KEY, _SUPERSEDES_KEY, _KEYS_KEY}
)
"""Keys of a memory's metadata that come from its file."""

LINKS: Final = {
    "refines": LinkType.REFINES,
    "contradicts": LinkType.CONTRADICTS,
    "relates-to": LinkType.RELATED,
}
"""Types of links by the relationships of edges."""

RELATIONSHIPS: Final = {kind: name for name, kind in LINKS.items()}
"""Relationships of edges by types of links; links of other types are written as relates-to."""

SUPERSEDES: Final = "supersedes"

TYPES: Final = {
    "coding-preferences": MemoryType.PREFERENCE,
    "corrections": MemoryType.CORRECTION,
    "patterns": MemoryType.INSIGHT,
}
"""Types by category; of any other one a memory is a fact."""

DEFAULT_CATEGORIES: Final = {
    MemoryType.PREFERENCE: "coding-preferences",
    MemoryType.CORRECTION: "corrections",
    MemoryType.INSIGHT: "patterns",
    MemoryType.PROCEDURAL: "project-conventions",
}
"""Categories by type, for memories without one; of any other type it is user-facts."""

NO_SESSION: Final = "none"
"""The session in the file of a memory without one."""

EXPORT_TRIGGER: Final = "export"
"""The trigger of a memory that was not made of a file."""

_DIGEST_BYTES: Final = 16


class Wanted(NamedTuple):
    """A memory as the files want it, apart from its content.

    Attributes:
        file: Its file; the content may be left out.
        digest: Hash of the file.
        source: Path of the file.
        supersedes: The memory that it replaces.
        is_superseded: Whether another file replaces it.
        edges: Links from it, by type and target.
    """

    file: MemoryFile
    digest: str
    source: str
    supersedes: UUID | None
    is_superseded: bool
    edges: tuple[tuple[LinkType, UUID], ...]

    @property
    def id(self) -> UUID:
        """Its id."""
        return self.file.entry_id

    @property
    def state(self) -> tuple[object, ...]:
        """What a memory must be rewritten for if it changes."""
        return self.digest, self.source, self.supersedes, self.is_superseded, self.edges


def digest_of(file: MemoryFile) -> str:
    """Return the hash of what a file holds, however it is written."""
    return blake2b(msgspec.json.encode(file), digest_size=_DIGEST_BYTES).hexdigest()


def is_of_file(entry: MemoryEntry, file_id: str) -> bool:
    """Return whether a memory was made of the file with an id."""
    return made_of(entry) == file_id


def made_of(entry: MemoryEntry) -> str | None:
    """Return the id of the file that a memory was made of, if it was.

    Metadata of a program may have the same keys, but not the memory's own id.
    """
    known = entry.metadata.get(ID_KEY)
    if not isinstance(known, str) or _HASH_KEY not in entry.metadata or id_problem(known):
        return None
    return known if entry_id(known) == entry.id else None


def file_id_in(entry: MemoryEntry) -> str:
    """Return the id of the file that a memory was made of, or would be written to."""
    return made_of(entry) or file_id_of(entry.id)


def declared_edges(entry: MemoryEntry) -> tuple[RelatedFile, ...]:
    """Return the related edges that the file of a memory had, as far as they can be read."""
    listed = entry.metadata.get(_RELATED_KEY) if made_of(entry) else None
    return tuple(_edges(listed)) if isinstance(listed, list) else ()


def further_keys(entry: MemoryEntry) -> dict[str, Any]:
    """Return the further keys that the file of a memory had."""
    keys = entry.metadata.get(_KEYS_KEY) if made_of(entry) else None
    return dict(keys) if isinstance(keys, dict) else {}


def _edges(listed: Iterable[Any]) -> Iterable[RelatedFile]:
    for edge in listed:
        with suppress(InvalidArgumentError, KeyError, TypeError):
            yield RelatedFile(edge["id"], edge["relationship"])


def is_current(entry: MemoryEntry, wanted: Wanted) -> bool:
    """Return whether a stored memory holds what its file does, apart from its status and links."""
    return (
        entry.metadata.get(_HASH_KEY) == wanted.digest
        and entry.supersedes == wanted.supersedes
        and entry.source == wanted.source
        and entry.scope == wanted.file.scope
    )


def record_of(
    wanted: Wanted, content: str, scope: Scope, stored: MemoryEntry | None
) -> MemoryEntry:
    """Return a memory to store.

    Args:
        wanted: The memory.
        content: Its content.
        scope: Has its agent, user and project.
        stored: The memory as it is stored; its tags, importance, type and own metadata stay.
    """
    file = wanted.file
    status = MemoryStatus.SUPERSEDED if wanted.is_superseded else MemoryStatus.ACTIVE
    if stored is not None and stored.status is MemoryStatus.ARCHIVED and not wanted.is_superseded:
        status = MemoryStatus.ARCHIVED
    return MemoryEntry(
        **_kept(file, stored),
        id=wanted.id,
        agent_id=scope.agent_id,
        user_id=scope.user_id,
        project_id=scope.project_id,
        session_id=None if file.session_id == NO_SESSION else file.session_id,
        content=content,
        created_at=file.created_at,
        updated_at=max(file.updated_at, file.created_at),
        category=file.category,
        scope=file.scope,
        version=file.version,
        supersedes=wanted.supersedes,
        status=status,
        source=wanted.source,
        metadata=_own_metadata(file, wanted) | _other_metadata(stored),
    )


def _kept(file: MemoryFile, stored: MemoryEntry | None) -> dict[str, Any]:
    """Return the fields that a file may name by further keys, and a program may change."""
    fields: dict[str, Any] = {"type": TYPES.get(file.category, MemoryType.FACT)}
    if stored is not None:
        names = ("type", "tags", "importance", "sensitive", "role", "speaker", "expires_at")
        fields |= {name: getattr(stored, name) for name in names}
    return fields | named_fields(file.keys)[0]


def _own_metadata(file: MemoryFile, wanted: Wanted) -> dict[str, Any]:
    found: dict[str, Any] = {
        ID_KEY: file.id,
        TRIGGER_KEY: file.trigger,
        _HASH_KEY: wanted.digest,
        FILE_VERSION: file.version,
    }
    if file.related:
        found[_RELATED_KEY] = [msgspec.structs.asdict(edge) for edge in file.related]
    if file.supersedes is not None:
        found[_SUPERSEDES_KEY] = file.supersedes
    if file.keys:
        found[_KEYS_KEY] = file.keys
    return found


def _other_metadata(stored: MemoryEntry | None) -> dict[str, Any]:
    if stored is None:
        return {}
    return {key: value for key, value in stored.metadata.items() if key not in OWN_METADATA}
