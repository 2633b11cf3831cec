"""MemoryFile, a memory as a Markdown file with front matter."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import InvalidEntryError
from mnemic_files.ids import checked_id, entry_id, new_memory_id
from mnemic_files.inside import NamedFields, Record, Redacted, described, quoted, validation

FileScope: TypeAlias = Literal["repo", "user"]
"""The directory that a file belongs to: that of a repository, or that of the user."""

SCOPES: Final = ("repo", "user")

CATEGORIES: Final = (
    "coding-preferences",
    "project-conventions",
    "architectural-decisions",
    "user-facts",
    "corrections",
    "patterns",
)
"""The known categories; a file may have any other text."""

RELATIONSHIPS: Final = ("supersedes", "refines", "contradicts", "relates-to")
"""The known relationships; an edge may have any other text, which leads to no link."""

MAX_RELATED: Final = 1000

_AS_CREATED: Final = datetime.min.replace(tzinfo=UTC)


class RelatedFile(Record, frozen=True, metaclass=NamedFields):
    """An edge from a memory file to another.

    Attributes:
        id: Id of the other file.
        relationship: "supersedes", "refines", "contradicts" or "relates-to".

    Raises:
        InvalidEntryError: If a field is empty or no text.
    """

    id: str
    relationship: str

    def __post_init__(self) -> None:
        """Check both texts."""
        validation.name("related.id", self.id)
        validation.name("related.relationship", self.relationship)


class MemoryFile(Redacted, frozen=True, kw_only=True, metaclass=NamedFields):
    """A memory as a Markdown file with front matter. Construction checks every field.

    Attributes:
        id: Its name without `.md`: `mem_` and a UUID.
        created_at: Aware and in UTC; a naive time is of the system's zone.
        updated_at: The same; `created_at` unless given.
        version: From 1.
        scope: "repo" or "user". A file of a directory has the directory's.
        category: One of `CATEGORIES`, or any other text.
        supersedes: Id of the file that this one replaces.
        related: Edges to other files.
        session_id: Session in which it was written.
        trigger: Occasion on which it was written, such as "cadence" or "compaction".
        content: Markdown.
        keys: Further keys of the front matter, which are written back as they are.

    Raises:
        InvalidEntryError: If a field is missing, of the wrong type or out of range.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"content", "keys"})

    id: str
    created_at: datetime
    updated_at: datetime = _AS_CREATED
    version: int = 1
    scope: FileScope
    category: str
    supersedes: str | None = None
    related: tuple[RelatedFile, ...] = ()
    session_id: str
    trigger: str
    content: str
    keys: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every field and convert it to its stored form."""
        if self.updated_at is _AS_CREATED:
            force_setattr(self, "updated_at", self.created_at)
        for field, check in _CHECKS:
            given = getattr(self, field)
            checked = check(given)
            if checked is not given:
                force_setattr(self, field, checked)

    @property
    def entry_id(self) -> UUID:
        """The id of the memory that is made of this file."""
        return entry_id(self.id)

    def as_of_scope(self, scope: str) -> "MemoryFile":
        """Return the file with another scope; itself if it has that one.

        Args:
            scope: "repo" or "user".
        """
        return self if self.scope == scope else msgspec.structs.replace(self, scope=scope)

    def next_version(
        self,
        content: str,
        *,
        now: datetime,
        session_id: str | None = None,
        trigger: str | None = None,
        category: str | None = None,
        id: str | None = None,  # noqa: A002 - the field's name everywhere
    ) -> "MemoryFile":
        """Return a new file that replaces this one, which stays as it is.

        Scope, related edges and further keys are copied; the version is one more.

        Args:
            content: The new text.
            now: Its time of creation.
            session_id: That of this file if None.
            trigger: That of this file if None.
            category: That of this file if None.
            id: A new one if None.
        """
        return MemoryFile(
            id=new_memory_id() if id is None else id,
            created_at=now,
            updated_at=now,
            version=self.version + 1,
            scope=self.scope,
            category=self.category if category is None else category,
            supersedes=self.id,
            related=self.related,
            session_id=self.session_id if session_id is None else session_id,
            trigger=self.trigger if trigger is None else trigger,
            content=content,
            keys=self.keys,
        )


def _required(field: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if isinstance(value, str) and not value.strip():
            raise InvalidEntryError(f"{field} is empty; a memory file needs one")
        return validation.name(field, value)

    return check


def _id(value: object) -> str:
    return checked_id(value)


def checked_scope(value: object) -> str:
    """Return a scope of files.

    Raises:
        InvalidEntryError: If it is unknown.
    """
    if not isinstance(value, str) or value not in SCOPES:
        raise InvalidEntryError(f"scope must be one of {', '.join(SCOPES)}, got {quoted(value)}")
    return str(value)


def _version(value: object) -> int:
    return validation.whole("version", value, minimum=1)


def _supersedes(value: object) -> str | None:
    return validation.optional_name("supersedes", value)


def _related(value: object) -> tuple[RelatedFile, ...]:
    edges = tuple(_edge(edge) for edge in validation.items("related", value))
    if len(edges) > MAX_RELATED:
        raise InvalidEntryError(f"related has {len(edges)} edges; at most {MAX_RELATED} fit")
    return edges


def _edge(value: object) -> RelatedFile:
    if isinstance(value, RelatedFile):
        return value
    if isinstance(value, Mapping):
        edge: dict[Any, Any] = dict(value)
        if edge.keys() == {"id", "relationship"}:
            return RelatedFile(edge["id"], edge["relationship"])
    if isinstance(value, tuple) and len(value) == 2:  # noqa: PLR2004 - a pair
        return RelatedFile(*value)
    raise InvalidEntryError(
        "an edge of related must be a RelatedFile, a dict of id and relationship, or a pair, got "
        f"{described(value)}"
    )


def _content(value: object) -> str:
    return validation.content_or_none(value)


def _keys(value: object) -> dict[str, Any]:
    return validation.metadata(value, field="keys")


_CHECKS = (
    ("id", _id),
    ("created_at", partial(validation.given_time, "created_at")),
    ("updated_at", partial(validation.given_time, "updated_at")),
    ("version", _version),
    ("scope", checked_scope),
    ("category", _required("category")),
    ("supersedes", _supersedes),
    ("related", _related),
    ("session_id", _required("session_id")),
    ("trigger", _required("trigger")),
    ("content", _content),
    ("keys", _keys),
)
