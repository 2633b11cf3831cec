"""NewEntry, a memory to store, and its construction from a caller's fields."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.arrays import Float32Array, np
from mnemic.errors import CountMismatchError, InvalidArgumentError, InvalidEntryError
from mnemic.model import validation
from mnemic.model.entry import MEMORY_FIELDS, NO_ID, NO_TIME, MemoryEntry
from mnemic.model.fields import GIVEN
from mnemic.model.ids import is_same_agent
from mnemic.model.scope import Scope
from mnemic.reporting.description import quoted
from mnemic.reporting.near_names import suggestion

OnDuplicate: TypeAlias = Literal["keep", "skip", "merge"]
"""Treatment of a memory whose text the same user already has: stored, not stored, or its tags,
metadata and importance merged into the existing one. Texts are equal if their fingerprints are."""

OnConflict: TypeAlias = Literal["raise", "replace", "skip"]
"""Treatment of a memory whose id the same user already has: an error, stored in place of the old
one, or not stored."""

OnRecalled: TypeAlias = Literal["store", "flag", "refuse"]
"""Treatment of a new memory that repeats one of the same user that was returned lately: stored like
any other, stored and flagged, or refused."""

OnEmbedError: TypeAlias = Literal["raise", "pending"]
"""Whether a failing embedder fails the write, or the memory is stored and embedded later."""

ON_EMBED_ERROR: tuple[str, ...] = get_args(OnEmbedError)

FIELDS = (
    *(field.name for field in MEMORY_FIELDS if field.has(GIVEN)),
    "idempotency_key",
    "embedding",
    "embed",
)
"""Fields that a caller may give a new memory."""


class OwnVectors(NamedTuple):
    """Vectors of a program's own for a memory.

    Attributes:
        embedding: Shape (d,) or (chunks, d); None for none.
        embed: Texts to embed in place of the content; None for none.
    """

    embedding: Float32Array | None = None
    embed: tuple[str, ...] | None = None

    @classmethod
    def of(cls, embedding: object, embed: object) -> "OwnVectors":
        """Return what a caller gave.

        Raises:
            InvalidArgumentError: If both are given, or one of them is invalid.
        """
        texts = checked_embed(embed, {"embedding": embedding})
        vectors = None if embedding is None else validation.directed("embedding", embedding)
        return cls(vectors, texts)

    @property
    def are_given(self) -> bool:
        """Whether there is any."""
        return self.embedding is not None or self.embed is not None


NO_VECTORS = OwnVectors()


class NewEntry(NamedTuple):
    """A memory to store, with its idempotency key.

    Attributes:
        entry: The memory.
        key: Unique for its agent and user; None for no key.
        more: Vectors of the chunks after the first; the first chunk's vector is the entry's own.
        embed: Texts to embed in place of the content; None embeds the content, and nothing is
            embedded for an entry with an embedding.
    """

    entry: MemoryEntry
    key: str | None = None
    more: tuple[Float32Array, ...] = ()
    embed: tuple[str, ...] | None = None

    @classmethod
    def of_record(
        cls, entry: MemoryEntry, key: str | None = None, embed: tuple[str, ...] | None = None
    ) -> "NewEntry":
        """Make an entry of a record, whose embedding may have several chunks."""
        vectors = entry.embedding
        if vectors is None or vectors.ndim == 1:
            return cls(entry, key, (), embed)
        return cls(entry.with_first_vector(), key, tuple(vectors[1:]), embed)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its vectors, as they were given; (0,) without any."""
        first = self.entry.embedding
        size = 0 if first is None else first.size
        return (1 + len(self.more), size) if self.more else (size,)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts to embed for a vector that it lacks; none for an empty content."""
        if self.embed is not None:
            return self.embed
        return (self.entry.content,) if self.entry.content else ()

    @property
    def returned(self) -> MemoryEntry:
        """The entry with all its vectors in its embedding; None if it has none but zeros."""
        first, model = self.entry.embedding, self.entry.embedding_model
        if first is None or model is None:
            return self.entry
        if not self.more:
            # The first number decides for nearly all, twenty times as fast.
            return self.entry if first[0] or first.any() else self.entry.without_embedding()
        return self.entry.with_embedding(np.stack([first, *self.more]), model)

    @classmethod
    def of_fields(
        cls,
        fields: object,
        scope: Scope,
        now: datetime,
        id_factory: Callable[[datetime], UUID],
    ) -> "NewEntry":
        """Make an entry of a caller's fields; fields that are None are omitted.

        Raises:
            InvalidEntryError: If there is no content, or a field is unknown, of the wrong type, out
                of range, or outside the scope.
        """
        if not isinstance(fields, Mapping):
            raise InvalidEntryError(
                f"a memory is a str, a dict or a MemoryEntry, got {type(fields).__name__}"
            )
        if unknown := [name for name in fields if name not in FIELDS]:
            raise _unknown_fields(unknown)
        if fields.get("content") is None:
            raise InvalidEntryError("content is missing")
        given: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        key, embed = given.pop("idempotency_key", None), given.pop("embed", None)
        if key is not None:
            key = checked_key(key)
        if embed is not None:
            embed = checked_embed(embed, given)
        make = MemoryEntry.empty if embed and given["content"] == "" else MemoryEntry
        record = _filled(make(**given), scope, now, id_factory)
        if record.embedding is None:
            return cls(record, key, (), embed)
        return cls.of_record(record, key, embed)

    @classmethod
    def of_entry(
        cls,
        entry: object,
        scope: Scope,
        now: datetime,
        id_factory: Callable[[datetime], UUID],
        key: object = None,
    ) -> "NewEntry":
        """Make an entry of a caller's: a new one, or a record of this scope.

        Raises:
            InvalidEntryError: If it is no entry, or may not be stored within the scope; or if the
                idempotency key is invalid.
        """
        if isinstance(entry, MemoryEntry) and entry.is_new:
            record = _filled(entry.detached(), scope, now, id_factory)
        else:
            record = checked_record(entry, scope)
        return cls.of_record(record, checked_key(key))


def with_embedding(fields: object, embedding: object) -> object:
    """Return a caller's fields with an embedding given beside them.

    Raises:
        InvalidEntryError: If they hold an embedding of their own, or texts to embed.
    """
    if not isinstance(fields, Mapping):
        return fields
    if fields.get("embedding") is not None or fields.get("embed") is not None:
        raise InvalidEntryError(
            "its embedding stands among embeddings, and it has embedding or embed too; leave one "
            "of them out"
        )
    return {**fields, "embedding": embedding}


def checked_embeddings(embeddings: object, number: int) -> list[object]:
    """Return one embedding, or None, for each of a number of memories.

    Raises:
        CountMismatchError: If there are more or fewer.
    """
    if embeddings is None:
        return [None] * number
    given = validation.items("embeddings", embeddings)
    if len(given) != number:
        shape = getattr(embeddings, "shape", None)
        found = f"{len(given)}" if shape is None else f"{len(given)} (shape {shape})"
        raise CountMismatchError(
            f"{number} memories come with {found} embeddings; give one row for each, or a list "
            "with None where there is none"
        )
    return given


def checked_embed(given: object, fields: Mapping[str, object]) -> tuple[str, ...] | None:
    """Return the texts to embed in place of a content; None for the content.

    Raises:
        InvalidArgumentError: If they are no texts, or there are too many, or if the fields hold an
            embedding too.
    """
    if given is None:
        return None
    if fields.get("embedding") is not None:
        raise InvalidEntryError("embed and embedding are both given; leave one of them out")
    texts = (given,) if isinstance(given, str) else tuple(validation.items("embed", given))
    if len(texts) > validation.MAX_VECTORS:
        raise InvalidEntryError(
            f"embed has {len(texts)} texts; at most {validation.MAX_VECTORS} vectors fit"
        )
    return tuple(_embedded_text(text) for text in texts)


def _embedded_text(text: object) -> str:
    if not validation.text("a text of embed", text).strip():
        raise InvalidEntryError("a text of embed is empty; embed=() stores no vector")
    return str(text)


def checked_keys(keys: object, number: int) -> list[object]:
    """Return one idempotency key, or None, for each of a number of entries.

    Raises:
        InvalidArgumentError: If there are more or fewer.
    """
    if keys is None:
        return [None] * number
    given = validation.items("idempotency_keys", keys)
    if len(given) != number:
        raise InvalidArgumentError(
            f"{number} entries come with {len(given)} idempotency keys; give one for "
            "each, None where there is none"
        )
    return given


def _filled(
    record: MemoryEntry, scope: Scope, now: datetime, id_factory: Callable[[datetime], UUID]
) -> MemoryEntry:
    """Make a new entry that nobody else has a record of a scope, with all that it leaves open."""
    narrowed = scope.narrowed(record.user_id, record.project_id, record.session_id)
    if record.embedding is not None:
        validation.check_directions("embedding", record.embedding)
    for name in ("agent_id", "user_id", "project_id", "session_id"):
        force_setattr(record, name, getattr(narrowed, name))
    if record.created_at == NO_TIME:
        force_setattr(record, "created_at", now)
        if record.updated_at == NO_TIME:
            force_setattr(record, "updated_at", now)
    if record.id == NO_ID:
        force_setattr(record, "id", id_factory(now))
    if record.supersedes is not None:
        check_supersedes(record)
    return record


def checked_record(entry: object, scope: Scope) -> MemoryEntry:
    """Return a record that may be stored within a scope."""
    if not isinstance(entry, MemoryEntry):
        raise InvalidEntryError(f"entry must be a MemoryEntry, got {type(entry).__name__}")
    if entry.agent_id != scope.agent_id:
        if not is_same_agent(entry.agent_id, scope.agent_id):
            raise InvalidEntryError(f"its agent is {entry.agent_id!r}, not {scope.agent_id!r}")
        entry = msgspec.structs.replace(entry, agent_id=scope.agent_id)
    own = (entry.user_id, entry.project_id, entry.session_id)
    if (scope.user_id, scope.project_id, scope.session_id) != (None, None, None):
        named = scope.narrowed(*own)
        if (named.user_id, named.project_id, named.session_id) != own:
            raise InvalidEntryError(f"a record is stored in its own scope, which is not {named}")
    check_supersedes(entry)
    return entry


def check_supersedes(entry: MemoryEntry) -> None:
    """Raise InvalidEntryError if an entry supersedes itself."""
    if entry.supersedes == entry.id:
        raise InvalidEntryError("a memory cannot supersede itself")


checked_key = partial(validation.optional_name, "idempotency_key")
"""Return a valid idempotency key, or None."""


def _unknown_fields(unknown: list[Any]) -> InvalidEntryError:
    near = suggestion(unknown[0], FIELDS)
    names = ", ".join(sorted(quoted(name) for name in unknown))
    return InvalidEntryError(
        f"unknown fields [{names}]{near}{' The' if near else '; the'} fields are "
        f"{', '.join(FIELDS)}; "
        "anything else belongs in metadata"
    )
