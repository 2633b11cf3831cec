"""Every error mnemic raises. Each is also the built-in error a caller would expect."""

from typing import Any, Literal
from uuid import UUID


class MnemicError(Exception):
    """Base of all mnemic errors."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Preserve the fields in pickles; arguments that make a message are not called again."""
        if not vars(self):
            return super().__reduce__()
        return _restored, (type(self), self.args), vars(self)


def _restored(kind: type[MnemicError], args: tuple[object, ...]) -> MnemicError:
    built_in: Any = kind  # the one whose memory layout it has, such as OSError
    while issubclass(built_in, MnemicError):
        built_in = built_in.__base__
    error: MnemicError = built_in.__new__(kind)
    error.args = args
    return error


class InvalidArgumentError(MnemicError, ValueError):
    """An argument is outside its documented range; nothing was changed."""


class ArgumentMismatchError(InvalidArgumentError, TypeError):
    """The arguments of a call do not fit its signature; the message suggests the nearest name."""


class WrongFormError(MnemicError, TypeError, AttributeError):
    """A plain class was used as one to be awaited, or the other way round."""


class MissingAttributeError(MnemicError, AttributeError):
    """An object has no such attribute; the message says what to write, or the nearest name."""


class UnsupportedUseError(MnemicError, TypeError):
    """An object has no length, no such item or no pickle; the message says what to write."""


class DimensionMismatchError(InvalidArgumentError):
    """A vector's length is not the map's dimension, or not that of a memory's vectors.

    Attributes:
        stored: Number of dimensions of the memory's vectors; None where a map raised it.
        given: That of the vector given; None likewise.
    """

    stored: int | None = None
    given: int | None = None


class CountMismatchError(InvalidArgumentError):
    """Two arguments that belong together differ in length, such as ids and vectors."""


class NonFiniteVectorError(InvalidArgumentError):
    """A vector holds NaN or infinity."""


class DuplicateIdError(InvalidArgumentError):
    """One call names the same id twice."""


class ArrayTypeError(MnemicError, TypeError):
    """An array's dtype or number of axes cannot be used."""


class KernelUnavailableError(MnemicError, RuntimeError):
    """`MNEMIC_KERNEL` names a kernel that is unknown or that this CPU cannot run."""


class OutOfMemoryError(MnemicError, MemoryError):
    """Memory that a call needs cannot be had; nothing was changed."""


class VectorFileError(MnemicError, OSError):
    """A file of vectors or of an index cannot be read or written.

    Attributes:
        errno: The system's number, such as `errno.ENOENT` or `errno.ENOSPC`; None without one, as
            when a directory or a pipe is to be read.
    """

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno

    def __reduce__(self) -> tuple[type, tuple[str, int | None]]:
        """Preserve the number in pickles."""
        return type(self), (str(self.args[0]), self.errno)


class VectorFileDamagedError(MnemicError, ValueError):
    """A file of vectors or of an index is damaged, or of another kind or version.

    Files of a `VectorMap` are found out when they are opened or, where the damage is in codes or
    vectors, by the first call that reads them; no call returns what it read of a damaged part.
    """


class UnknownIdError(MnemicError, KeyError):
    """An id is not in the map, or not in the context window."""

    def __str__(self) -> str:
        """Return the message as written; KeyError would quote it."""
        return str(self.args[0]) if self.args else ""


class MissingExtraError(MnemicError, ImportError):
    """An optional dependency is not installed; the message has the pip line."""


class EmbeddingError(MnemicError, RuntimeError):
    """An embedder failed or returned an invalid result.

    The embedder's own error is neither quoted nor chained: its message may contain the text.

    Attributes:
        kind: Type and place of the embedder's error.
    """

    kind: str = "EmbeddingError"


class ExpanderError(MnemicError, TypeError):
    """An expander given as a function returned something else than a list of texts."""


class LinkAcrossUsersError(InvalidArgumentError):
    """A link between memories of two users, or of a user and of none, was to be written."""


class EmbedderResultError(EmbeddingError):
    """An embedder returned something other than one vector of its dimensions for each text."""


class _ServiceFailure(MnemicError):  # noqa: N818 - a part of errors
    """A model service returned an error, or cannot be reached."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        body: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.retry_after = retry_after
        self.kind = type(self).__name__ if status is None else f"status {status}"


class EmbeddingServiceError(_ServiceFailure, EmbeddingError):
    """A service of embeddings returned an error, or cannot be reached.

    Attributes:
        status: Status of its response; None without one.
        body: Beginning of the response's body, without keys and texts of the request.
        retry_after: Seconds after which it takes the next request; None if it names none.
    """


class EmbeddingTimeoutError(EmbeddingServiceError, TimeoutError):
    """A service of embeddings did not respond in time."""


class LanguageModelError(MnemicError, RuntimeError):
    """A language model failed, or returned something other than a text."""


class LanguageModelResultError(LanguageModelError):
    """A language model returned no text: nothing, a refusal, or something else."""


class LanguageModelServiceError(_ServiceFailure, LanguageModelError):
    """A service of language models returned an error, or cannot be reached.

    Attributes:
        status: Status of its response; None without one.
        body: Beginning of the response's body, without keys and texts of the request.
        retry_after: Seconds after which it takes the next request; None if it names none.
    """


class LanguageModelTimeoutError(LanguageModelServiceError, TimeoutError):
    """A service of language models did not respond in time."""


class FilterError(InvalidArgumentError):
    """A filter is invalid; the message names the place, such as `OR[1].role.gte`."""


class InvalidEntryError(InvalidArgumentError):
    """A field of a memory or of another record is missing, of the wrong type or out of range."""


class RecalledTextError(InvalidEntryError):
    """A new memory repeats one that was returned to the program lately; nothing was stored.

    Attributes:
        memory_id: Id of the memory that it repeats.
        place: Its place in the list of new memories; None for a single one.
    """

    def __init__(self, memory_id: UUID, place: int | None = None) -> None:
        which = "the text" if place is None else f"memory {place} of the list: its text"
        super().__init__(
            f"{which} repeats memory {memory_id}, which a search returned lately; update that "
            "memory, store a new one that supersedes it, or open the memory with "
            "on_recalled='flag' or 'store'"
        )
        self.memory_id = memory_id
        self.place = place


class ExportFormatError(InvalidArgumentError):
    """A line of an export cannot be read; the message names the value found and the one expected.

    Attributes:
        line: Its number, from 1.
    """

    def __init__(self, line: int, problem: str) -> None:
        readable = problem if problem.isprintable() else ascii(problem)
        shown = (
            readable
            if len(readable) <= _MAX_PROBLEM_LENGTH
            else f"{readable[:_MAX_PROBLEM_LENGTH]}…"
        )
        super().__init__(f"line {line}: {shown}")
        self.line = line


_MAX_PROBLEM_LENGTH = 500


class EntryNotFoundError(MnemicError, KeyError):
    """No memory with this id exists in the scope that was searched."""

    def __str__(self) -> str:
        """Return the message as written; KeyError would quote it."""
        return str(self.args[0]) if self.args else ""


class VersionConflictError(MnemicError, RuntimeError):
    """A memory has another version than the one that a change was made for; nothing was changed.

    Attributes:
        stored: The version that is stored.
        given: The version that the caller gave.
    """

    def __init__(self, entry_id: object, stored: int, given: int) -> None:
        super().__init__(
            f"memory {entry_id} has version {stored}, not {given}: it was changed meanwhile; get "
            "it again, and repeat the change with its new version"
        )
        self.stored = stored
        self.given = given


class AmbiguousIdError(MnemicError, LookupError):
    """Several users have a memory with this id, and the call is for all users; name one."""


class DuplicateEntryError(MnemicError, ValueError):
    """A memory with this id is already stored for this agent and user."""


class StoreError(MnemicError, RuntimeError):
    """The store could not complete an operation."""


class StoreClosedError(StoreError):
    """The store was used after it was closed."""


class SchemaVersionError(StoreError):
    """Another version wrote the file or tables; for an earlier one, the message says what to do."""


class EmbeddingModelMismatchError(StoreError):
    """The stored vectors come from another embedding model or have another dimension.

    Attributes:
        stored: Number of dimensions of the stored vectors; None where the names alone differ.
        given: That of the vectors given; None likewise.
    """

    stored: int | None = None
    given: int | None = None


class StoreBusyError(StoreError):
    """Another process kept the file locked for longer than the busy timeout; try again."""


class BusyThreadError(StoreError):
    """A signal handler or a finalizer used a memory in the midst of a call of its own thread."""


class StoreUnavailableError(StoreError, ConnectionError):
    """The database server cannot be reached; try again. Nothing of this call was stored."""


class OutcomeUnknownError(StoreError):
    """The connection was lost while a write was committed: it is stored whole, or not at all.

    Writing it again is safe with an id or an idempotency key.
    """


class StoreFileError(StoreError):
    """The file cannot be opened, or is not one of mnemic's; it was left unchanged."""


class StoreReplacedError(StoreError):
    """The file or its log was moved, deleted or replaced while open; nothing more is written.

    Close the memory, put the file back together with its `-wal`, or open what is there now.
    """


class ReadOnlyError(StoreError):
    """The memory was opened read-only and cannot be written; nothing was changed."""


class StoreCorruptError(StoreError):
    """The file is damaged. Keep it, and restore a backup or export what can still be read.

    A backup takes the place of the file alone: move `-wal` and `-shm` away, which are not its own.
    """


class StoreFullError(StoreError):
    """The disk is full or failing; nothing of this write was kept, earlier memories are intact."""


_WHEN_FULL = {
    "refuse": "",
    "evict": ". Too few memories of the same users are deleted, expired, or no more important than "
    "the new one; delete some, or raise the limit",
}


class StorageQuotaExceededError(MnemicError, RuntimeError):
    """A write would exceed the quota; nothing was written.

    Attributes:
        current_usage: Bytes or memories before the write, of the agent or of the user.
        limit: Bytes or memories allowed.
        license_tier: Name of the license tier that sets the limit; None without one.
        quota: "agent" or "user": whose limit it is.
        user_id: With a user's limit the user; None is the memories without a user.
        added: Bytes or memories that the write would have added; None if that is not known.
        unit: "bytes" of contents or "entries": what is limited.
        when_full: "evict" if memories could have been deleted for the new ones, but not enough of
            the same users are deleted, expired, or at most as important as these and below 1.
    """

    def __init__(
        self,
        current_usage: int,
        limit: int,
        license_tier: str | None = None,
        quota: Literal["agent", "user"] = "agent",
        user_id: str | None = None,
        *,
        added: int | None = None,
        unit: Literal["bytes", "entries"] = "bytes",
        when_full: Literal["refuse", "evict"] = "refuse",
    ) -> None:
        tier = "" if license_tier is None else f" ({license_tier} tier)"
        if added is not None and not tier:  # a specification has the whole text with a tier
            tier = f", To be added: {added} {unit}"
        whose = ""
        if quota == "user":
            whose = " of memories without a user" if user_id is None else f" of user {user_id!r}"
        super().__init__(
            f"Storage quota{whose} exceeded. Current: {current_usage} {unit}, "
            f"Limit: {limit} {unit}{tier}{_WHEN_FULL[when_full]}"
        )
        self.current_usage = current_usage
        self.limit = limit
        self.license_tier = license_tier
        self.quota = quota
        self.user_id = user_id
        self.added = added
        self.unit: Literal["bytes", "entries"] = unit
        self.when_full: Literal["refuse", "evict"] = when_full


class KeyUnavailableError(MnemicError, RuntimeError):
    """A master key cannot be had: a key provider failed, or has no key of this name.

    The provider's own error is neither quoted nor chained: its message may contain a key.

    Attributes:
        kind: Type and place of the provider's error.
    """

    kind: str = "KeyUnavailableError"


class WrongKeyError(StoreError, PermissionError):
    """The memories of an agent are sealed under another master key; nothing was changed.

    Attributes:
        agent_id: The agent.
        stored: Id of the key under which they are sealed, in hexadecimal digits.
        given: Id of the key that was given.
    """

    def __init__(self, agent_id: str, stored: str, given: str) -> None:
        super().__init__(
            f"agent {agent_id!r}: its memories are sealed under key {stored}, and the key given is "
            f"{given}; open them with the former key, or with a KeyProvider that has both"
        )
        self.agent_id = agent_id
        self.stored = stored
        self.given = given


class SealBrokenError(StoreCorruptError, ValueError):
    """A sealed field is damaged, was changed, or was sealed for another memory.

    Attributes:
        entry_id: Id of the memory; None if what is damaged belongs to no memory.
        report: The whole `VerifyReport`, if `verify` raised it; otherwise None.
    """

    report: object = None

    def __init__(self, message: str, entry_id: UUID | None = None) -> None:
        super().__init__(message)
        self.entry_id = entry_id


class DetectorError(MnemicError, RuntimeError):
    """A detector of sensitive texts failed; nothing was stored.

    Its own error is neither quoted nor chained: its message may contain the text.

    Attributes:
        kind: Type and place of the detector's error.
    """

    kind: str = "DetectorError"


class ContextWindowFullError(MnemicError, RuntimeError):
    """An item does not fit in the context window, even without all removable items.

    Nothing was removed for it.

    Attributes:
        current_tokens: Tokens in the window.
        max_tokens: Size of the window.
        requested_tokens: Tokens of the item.
    """

    def __init__(self, current_tokens: int, max_tokens: int, requested_tokens: int) -> None:
        super().__init__(
            f"The context window is full: {current_tokens} of {max_tokens} tokens are taken, "
            f"{requested_tokens} more were asked for, and too little of it may be removed"
        )
        self.current_tokens = current_tokens
        self.max_tokens = max_tokens
        self.requested_tokens = requested_tokens


class RedactionBudgetError(MnemicError, RuntimeError):
    """A pattern of a redaction read a text too many times; the text was not redacted.

    The message names the pattern.
    """


class DeadlineExceededError(MnemicError, TimeoutError):
    """A call was not done by the deadline that its caller set."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            "the search was not done in time: its deadline passed; allow more time, or make the "
            "search smaller by filters or a limit"
            if message is None
            else message
        )


class HypothesisError(MnemicError, RuntimeError):
    """A language model did not answer the prompt for hypotheses; `__cause__` is its error."""


class LicenseRestrictionError(MnemicError, PermissionError):
    """The license does not include a feature.

    Attributes:
        feature_key: Key of the feature.
        required_tier: Name of the lowest tier that includes it.
        current_tier: Name of the current tier.
    """

    def __init__(
        self, message: str, feature_key: str, required_tier: str, current_tier: str
    ) -> None:
        super().__init__(message)
        self.feature_key = feature_key
        self.required_tier = required_tier
        self.current_tier = current_tier


StorageQuotaExceededException = StorageQuotaExceededError
ContextWindowFullException = ContextWindowFullError
LicenseRestrictionException = LicenseRestrictionError
LicenseException = LicenseRestrictionError
FeatureNotLicensedException = LicenseRestrictionError
"""Further names of these errors."""


class EmbedderRequiredError(MnemicError, RuntimeError):
    """This search needs an embedder, and the memory was opened without one."""


class SourceError(MnemicError, ValueError):
    """A source of memories cannot be read; the message names the file, the place and what to do."""
