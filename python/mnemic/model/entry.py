"""MemoryEntry, the record of one memory."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.arrays import ArrayLike, Float32Array
from mnemic.errors import InvalidEntryError
from mnemic.model import validation
from mnemic.model.fields import (
    ACCESS,
    CHANGED,
    FILLED,
    FILTERED,
    GIVEN,
    HIDDEN,
    INDEXED,
    Kind,
    MemoryField,
    declared_fields,
)
from mnemic.model.payload import PayloadType
from mnemic.records import ContentFirst, NumberedEnum, Record
from mnemic.records.lines import HIDDEN as HIDDEN_VALUE
from mnemic.records.lines import memory_line
from mnemic.records.secrets import RedactedStr, without_passwords
from mnemic.reporting import habits


class MemoryType(NumberedEnum, noun="type"):
    """Sort of statement a memory makes. The numbers are stored."""

    FACT = "fact", 0
    EVENT = "event", 1
    INSIGHT = "insight", 2
    PREFERENCE = "preference", 3
    CORRECTION = "correction", 4
    CONVERSATION = "conversation", 5
    PROCEDURAL = "procedural", 6

    @property
    def kind(self) -> str:
        """The kind of the type: SEMANTIC, EPISODIC or PROCEDURAL."""
        return _KINDS.get(self, "SEMANTIC")

    @property
    def payload_type(self) -> PayloadType:
        """The payload type: message, fact or summary."""
        return _PAYLOAD_TYPES.get(self, "fact")


_KINDS = {
    MemoryType.EVENT: "EPISODIC",
    MemoryType.CONVERSATION: "EPISODIC",
    MemoryType.PROCEDURAL: "PROCEDURAL",
}
_PAYLOAD_TYPES: dict[MemoryType, PayloadType] = {
    MemoryType.EVENT: "summary",
    MemoryType.CONVERSATION: "message",
}


class MemoryStatus(NumberedEnum, noun="status"):
    """Validity of a memory. The numbers are stored; deletion is separate."""

    ACTIVE = "active", 0
    ARCHIVED = "archived", 1
    SUPERSEDED = "superseded", 2


NO_ID: Final = UUID("6d6e656d-6963-8000-8000-000000000000")
"""The id of a new entry that names none, of version 8: programs give the nil UUID themselves."""

NO_TIME: Final = datetime(1, 1, 1, microsecond=1, tzinfo=UTC)
"""The time of creation of a new entry that names none. The first moment of all may be meant."""

_AS_CREATED = datetime.min.replace(tzinfo=UTC)


class MemoryEntry(Record, frozen=True, kw_only=True, eq=False, metaclass=ContentFirst):
    """One memory: a new one to store, or as it is stored. Construction checks every field.

    A new one needs its content alone. Until a memory stores it, its agent is "", and id and time of
    creation are placeholders unless it names its own; `add` and the like return it with the
    memory's agent, an id and the time, and with the scope of the call for what it leaves open.

    Times are aware and in UTC; a text is read as ISO 8601. One without a zone is of the system's;
    what `add` gets as a dict or beside a text is of the memory's `time_zone`.
    Sequences are stored as tuples, and metadata as a copy. Two entries are equal if all fields are,
    except the embedding, its model, and the accesses, which are written with a delay.

    Attributes:
        content: The text, at most 10 MB of UTF-8; empty only with metadata or an embedding.
        id: Version 7 unless the caller gave one.
        agent_id: The agent; agents never see each other's memories. "" for a new entry.
        created_at: Time of creation; never changes.
        user_id: The user whom the memory is about. None is a scope of its own, not "everyone".
        project_id: Filter.
        session_id: Filter.
        type: Sort of statement.
        type_name: Name of the type that the content was made from.
        role: Role of the speaker, such as "user" or "assistant".
        speaker: Name of the speaker.
        message_id: Id of the source message.
        position: Order inside the session.
        importance: From 0 to 1.
        tags: Without control characters, in the given order.
        metadata: JSON values; ints within ±2⁵³.
        embedding: float32, shape (d,), or (chunks, d) with several chunks, read-only; None if it
            was not requested, and for a memory without a vector.
        embedding_model: Model of the embedding; None for the model of the memory that stores it.
        updated_at: Time of the last change; `created_at` unless given.
        last_accessed_at: Time of the last access; None without any.
        access_count: Number of accesses.
        status: Validity.
        forgotten_at: Time of deletion; None if not deleted.
        expires_at: Time from which on searches do not find it; None is never.
        category: Free text.
        scope: Free text.
        version: From 1; it grows by one with each change of the memory, and with each replacement.
            Accesses, embedding, deletion and restoring are no changes.
        supersedes: Id of the entry that this one replaces.
        sensitive: `repr`, HTML and rich hide content, tags, metadata, speaker, role, category,
            scope and source; no log line, event or error contains them either.
        is_encrypted: Whether the memory is sealed where it is stored; see `mnemic.Encryption`.
            `repr` and the like hide the same of it as of a sensitive one.
        source: Where the memory came from, such as a file's name or a URL.

    Raises:
        InvalidEntryError: If a field is of the wrong type or out of range, or if it names an agent,
            and no id or no time.
        ArgumentMismatchError: If there is no content, or no such field.
    """

    _left_out: ClassVar[frozenset[str]] = frozenset({"embedding"})

    id: Annotated[UUID, MemoryField(Kind.UUID, GIVEN | FILTERED | FILLED)] = NO_ID
    agent_id: Annotated[str, MemoryField(Kind.NAME, FILLED)] = ""
    content: Annotated[str, MemoryField(Kind.CONTENT, GIVEN | CHANGED | FILTERED | HIDDEN)]
    created_at: Annotated[
        datetime, MemoryField(Kind.TIME, GIVEN | FILTERED | FILLED, sort_key="created")
    ] = NO_TIME
    user_id: Annotated[str | None, MemoryField(Kind.NAME, GIVEN | INDEXED)] = None
    project_id: Annotated[str | None, MemoryField(Kind.NAME, GIVEN | FILTERED)] = None
    session_id: Annotated[str | None, MemoryField(Kind.NAME, GIVEN | FILTERED)] = None
    type: Annotated[
        MemoryType, MemoryField(Kind.TYPE, GIVEN | CHANGED | FILTERED, column="memory_type")
    ] = MemoryType.FACT
    type_name: Annotated[str, MemoryField(Kind.TYPE_NAME)] = "str"
    role: Annotated[str | None, MemoryField(Kind.NAME, GIVEN | FILTERED | HIDDEN)] = None
    speaker: Annotated[str | None, MemoryField(Kind.NAME, GIVEN | FILTERED | HIDDEN)] = None
    message_id: Annotated[str | None, MemoryField(Kind.NAME, GIVEN | FILTERED)] = None
    position: Annotated[int | None, MemoryField(Kind.WHOLE, GIVEN | FILTERED)] = None
    importance: Annotated[
        float, MemoryField(Kind.FRACTION, GIVEN | CHANGED | FILTERED, sort_key="importance")
    ] = 0.5
    tags: Annotated[
        tuple[str, ...], MemoryField(Kind.TAGS, GIVEN | CHANGED | FILTERED | HIDDEN)
    ] = ()
    metadata: Annotated[
        dict[str, Any], MemoryField(Kind.METADATA, GIVEN | CHANGED | FILTERED | HIDDEN)
    ] = msgspec.field(default_factory=dict)
    embedding: Annotated[Float32Array | None, MemoryField(Kind.VECTOR, column=None)] = None
    embedding_model: Annotated[str | None, MemoryField(Kind.NAME, column=None)] = None
    updated_at: Annotated[datetime, MemoryField(Kind.TIME, CHANGED | FILTERED)] = _AS_CREATED
    last_accessed_at: Annotated[
        datetime | None, MemoryField(Kind.TIME, FILTERED | ACCESS, sort_key="accessed")
    ] = None
    access_count: Annotated[
        int, MemoryField(Kind.WHOLE, FILTERED | ACCESS, sort_key="access_count")
    ] = 0
    status: Annotated[MemoryStatus, MemoryField(Kind.STATUS, CHANGED | FILTERED)] = (
        MemoryStatus.ACTIVE
    )
    forgotten_at: Annotated[datetime | None, MemoryField(Kind.TIME)] = None
    expires_at: Annotated[datetime | None, MemoryField(Kind.TIME, GIVEN | CHANGED | FILTERED)] = (
        None
    )
    category: Annotated[str | None, MemoryField(Kind.NAME, GIVEN | FILTERED | HIDDEN)] = None
    scope: Annotated[str | None, MemoryField(Kind.NAME, GIVEN | FILTERED | HIDDEN)] = None
    version: Annotated[int, MemoryField(Kind.WHOLE, CHANGED | FILTERED, minimum=1)] = 1
    supersedes: Annotated[UUID | None, MemoryField(Kind.UUID, GIVEN)] = None
    sensitive: Annotated[bool, MemoryField(Kind.FLAG, GIVEN | FILTERED, column="is_sensitive")] = (
        False
    )
    is_encrypted: Annotated[bool, MemoryField(Kind.FLAG)] = False
    source: Annotated[
        str | None, MemoryField(Kind.NAME, GIVEN | FILTERED | HIDDEN, export_version=4)
    ] = None

    if TYPE_CHECKING:  # what construction takes, and what it makes of it, are of different types

        def __init__(
            self,
            content: str,
            *,
            id: UUID | str | None = None,  # noqa: A002 - the field's name everywhere
            agent_id: str = "",
            created_at: date | str | None = None,
            user_id: str | None = None,
            project_id: str | None = None,
            session_id: str | None = None,
            type: MemoryType | str = MemoryType.FACT,  # noqa: A002 - the field's name everywhere
            type_name: str = "str",
            role: str | None = None,
            speaker: str | None = None,
            message_id: str | None = None,
            position: int | None = None,
            importance: float = 0.5,
            tags: Sequence[str] = (),
            metadata: Mapping[str, Any] = ...,
            embedding: ArrayLike | None = None,
            embedding_model: str | None = None,
            updated_at: date | str | None = None,
            last_accessed_at: date | str | None = None,
            access_count: int = 0,
            status: MemoryStatus | str = MemoryStatus.ACTIVE,
            forgotten_at: date | str | None = None,
            expires_at: date | str | None = None,
            category: str | None = None,
            scope: str | None = None,
            version: int = 1,
            supersedes: UUID | str | None = None,
            sensitive: bool = False,
            is_encrypted: bool = False,
            source: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check every field and convert it to its stored form."""
        for field, default, check in _RULES:
            given = getattr(self, field)
            if given is not default:
                checked = check(given)
                if checked is not given:
                    force_setattr(self, field, checked)
        if self.updated_at is _AS_CREATED:
            force_setattr(self, "updated_at", self.created_at)
        if self.agent_id and not (self.names_id and self.names_time):
            raise InvalidEntryError(
                "an entry with an agent_id is the record of a stored memory, which has an id and a "
                "created_at; leave agent_id out of a new one"
            )
        if not self.content and not self.metadata and self.embedding is None:
            raise validation.empty_content()

    @classmethod
    def empty(cls, **fields: Any) -> Self:
        """Return a memory with an empty content, also without metadata and embedding."""
        fields.pop("content", None)
        entry = cls(content="-", **fields)
        force_setattr(entry, "content", "")
        return entry

    @property
    def is_new(self) -> bool:
        """Whether it has no agent, because no memory has stored it."""
        return not self.agent_id

    @property
    def names_id(self) -> bool:
        """Whether it has an id, which only a new one may lack."""
        return self.id != NO_ID

    @property
    def names_time(self) -> bool:
        """Whether it has a time of creation, which only a new one may lack."""
        return self.created_at != NO_TIME

    @property
    def is_forgotten(self) -> bool:
        """Whether the memory was deleted and can still be restored."""
        return self.forgotten_at is not None

    @property
    def evicted(self) -> tuple[UUID, ...]:
        """Ids of the memories that the call that returned this one deleted to make space for it."""
        return ()

    def is_active(self, now: datetime) -> bool:
        """Return whether searches find it: not deleted, not expired, status ACTIVE."""
        return self.status is MemoryStatus.ACTIVE and self.is_present(now)

    def is_present(self, now: datetime) -> bool:
        """Return whether it is neither deleted nor expired, whatever its status."""
        return self.forgotten_at is None and (self.expires_at is None or self.expires_at > now)

    def detached(self) -> Self:
        """Return a copy with its own metadata, which the caller may change."""
        entry: Self = _copy(self)
        metadata = self.metadata
        force_setattr(entry, "metadata", _json_copy(metadata) if metadata else {})
        return entry

    def record_accesses(self, last: datetime | None, count: int) -> None:
        """Set last access and access count; only before the entry is shared."""
        force_setattr(self, "last_accessed_at", last)
        force_setattr(self, "access_count", count)

    def with_accesses(self, last: datetime | None, count: int) -> Self:
        """Return a copy with this last access and access count, which shares the metadata."""
        entry: Self = _copy(self)
        entry.record_accesses(last, validation.whole("access_count", count, minimum=0))
        return entry

    def with_embedding(self, embedding: Float32Array, model: str) -> Self:
        """Return a copy with this vector, or these vectors, of this model."""
        checked = validation.name("embedding_model", model)
        return self.with_vectors(validation.embedding(embedding), checked)

    def with_own_embedding(self, embedding: object) -> Self:
        """Return a copy with given vectors, which count as those of the memory's model."""
        return self.with_vectors(validation.directed("embedding", embedding), None)

    def without_embedding(self) -> Self:
        """Return a copy without its vectors."""
        return self.with_vectors(None, None)

    def with_first_vector(self) -> Self:
        """Return a copy with the first of several vectors alone."""
        vectors = self.embedding
        return self.with_vectors(None if vectors is None else vectors[0], self.embedding_model)

    def with_vectors(self, embedding: Float32Array | None, model: str | None) -> Self:
        """Return a copy with a checked, read-only vector or several, and their model."""
        entry: Self = _copy(self)
        force_setattr(entry, "embedding", embedding)
        force_setattr(entry, "embedding_model", model)
        return entry

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemoryEntry):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in _COMPARED)

    def __ne__(self, other: object) -> bool:  # msgspec's own compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash(self.content if self.is_new else (self.agent_id, self.id))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain JSON types, without what a new entry leaves open."""
        made = super().to_dict()
        if self.is_new:
            for name in _FILLED:
                if getattr(self, name) == _DEFAULTS[name]:
                    del made[name]
        return made

    @property
    def hides_content(self) -> bool:
        """Whether `repr`, logs, events and errors hide the content: of sensitive or sealed ones."""
        return self.sensitive or self.is_encrypted

    if not TYPE_CHECKING:  # which would let items through

        def __getitem__(self, key: object) -> object:
            raise habits.item_of_record(self, key, "memory", {})

    def __repr__(self) -> str:
        return memory_line(self)

    def _repr_html_(self) -> str:
        """Return a table of the fields for notebooks; as in `repr`, some are hidden."""
        from mnemic.records.display import entry_html  # noqa: PLC0415 - loaded where it is used

        return entry_html(type(self).__name__, self)

    def _is_shown(self, field: str) -> bool:
        value: object = getattr(self, field)
        return bool(value != (self.created_at if field == "updated_at" else _DEFAULTS[field]))

    def _shown(self, field: str) -> str:
        if self.hides_content and field in _HIDDEN:
            return HIDDEN_VALUE
        return without_passwords(repr(getattr(self, field)))

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the fields that are not as by default, for the package rich."""
        return [
            (field, RedactedStr(self._shown(field))) for field in _SHOWN if self._is_shown(field)
        ]


_copy = methodcaller("__copy__")  # copy.copy() takes twice as long to find it


def _json_copy(value: Any) -> Any:
    """Return a deep copy of checked metadata; copy.deepcopy() takes four times as long."""
    if value.__class__ is dict:
        return {
            key: _json_copy(item) if item.__class__ in _CONTAINERS else item
            for key, item in value.items()
        }
    if value.__class__ is list:
        return [_json_copy(item) for item in value]
    return value


_CONTAINERS = (dict, list)


_NAMED_CHECKS: dict[Kind, Callable[..., object]] = {
    Kind.NAME: validation.name,
    Kind.UUID: validation.uuid,
    Kind.TIME: validation.given_time,
    Kind.WHOLE: validation.whole,
    Kind.FRACTION: validation.fraction,
    Kind.FLAG: validation.flag,
}
_CHECKS: dict[Kind, Callable[[object], object]] = {
    Kind.CONTENT: validation.content_or_none,
    Kind.TYPE_NAME: validation.type_name,
    Kind.TYPE: MemoryType.parse,
    Kind.STATUS: MemoryStatus.parse,
    Kind.TAGS: validation.tags,
    Kind.METADATA: validation.metadata,
    Kind.VECTOR: validation.embedding,
}
"""Checks of the kinds of which a memory has one field."""


def _check_of(field: MemoryField) -> Callable[[object], object]:
    if field.kind in _CHECKS:
        return _CHECKS[field.kind]
    limits = {"minimum": field.minimum} if field.minimum else {}
    named = _NAMED_CHECKS[field.kind]
    if field.kind is Kind.NAME and field.is_optional:
        named = validation.optional_name
    check = partial(named, field.name, **limits)
    if field.default in (NO_ID, NO_TIME, _AS_CREATED):
        return lambda given: field.default if given is None else check(given)
    return check


MEMORY_FIELDS = declared_fields(MemoryEntry)
"""The fields of a memory, in order."""

_RULES = tuple((field.name, field.default, _check_of(field)) for field in MEMORY_FIELDS)
_STORED = tuple(field for field in MEMORY_FIELDS if field.column is not None)
_SHOWN = tuple(field.name for field in _STORED)
_COMPARED = tuple(field.name for field in _STORED if not field.has(ACCESS))
_FILLED = frozenset(field.name for field in MEMORY_FIELDS if field.has(FILLED))
_HIDDEN = frozenset(field.name for field in MEMORY_FIELDS if field.has(HIDDEN))
_DEFAULTS = {field.name: field.default for field in MEMORY_FIELDS}
