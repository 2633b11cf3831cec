"""Options that a memory is opened with, and arguments of verbs: ids, filters, cursors of pages."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta, tzinfo
from typing import Any, Literal, TypeAlias, TypedDict
from uuid import UUID

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic._core import tokens
from mnemic.errors import FilterError, InvalidArgumentError
from mnemic.model import Expression, MemoryEntry, MemoryFilter, OnRecalled, Scope, validation
from mnemic.model.filter import Criteria, parse_filter
from mnemic.model.results import PageCursor
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.model.validation import items, optional_uuid
from mnemic.protocols import Clock, IdFactory, UserLimit
from mnemic.reporting.description import must_be, quoted

RETENTION = timedelta(days=90)
"""Time for which a deleted memory can be restored, unless a memory is opened with another one."""

WhenFull: TypeAlias = Literal["refuse", "evict"]
"""What becomes of a write that exceeds a quota or a budget; see `Options`."""


class Options(TypedDict, total=False):
    """The options that a memory is opened with.

    Attributes:
        embedder: An embedder in any of the forms of `mnemic.as_embedder`: a function, a coroutine
            function, or an object with `embed`, `encode`, or `embed_documents` and `embed_query`;
            the local MiniLM unless given. With None nothing is embedded: memories have the vectors
            that a program gives them, and searching by meaning needs the vector of its query.
        embedding_model: Name of the embedder's model, which is stored with every vector; needed
            where the embedder does not name it, as a function. With `embedder=None`, the name of
            the model of given vectors, "own" unless given.
        query_cache: Number of queries whose vectors are kept in memory, 1,024 unless given; 0
            keeps none.
        language: The language of memories and queries, by its ISO 639-1 code: their words are
            stemmed by its rules, and its stop words count less. "auto", the default, detects the
            language of each memory and each query; where it is not sure, as of a few words, it is
            that of most of the user's memories. With None words stay as they are written. Nothing
            of it is stored: a file may be opened with another language each time.
        license: The host's license policy, such as `DocumentedLicenses(tier)`. What it does not
            include is refused with `LicenseRestrictionError`, and what its quota leaves no space
            for with `StorageQuotaExceededError`. With None nothing is checked.
        quota: How many bytes of content an agent may store; of two limits the smaller one holds.
            None is no limit beside the license's.
        user_quota: How many bytes of content each user may store, and the memories without a user
            together; deleted ones count until purged. None is no limit. A function of the user id
            gives each user one of their own, by class for instance; it is called by every write
            that adds to a user, has to answer at once, and must not use the memory.
        max_entries: How many memories an agent may store, in any state; deleted ones count until
            purged. None is no limit.
        user_max_entries: How many memories each user may store, and how many there may be without
            a user. None is no limit. A function of the user id as for `user_quota`.
        when_full: What becomes of a write that exceeds one of these four limits or the license's.
            "refuse", the default, raises `StorageQuotaExceededError`. "evict" permanently deletes
            memories of the same users for it, in the same transaction: deleted and expired ones,
            the longest ago first; then superseded ones and then all others, the least important
            first, of equal ones the least accessed, and then the one whose last access or creation
            is the longest ago. What is more important than the new memory stays, and so does
            everything of importance 1; if that leaves too little space, the write is refused. Ids
            of what went are in the result (`evicted`), in a `MemoryForgottenEvent` each, and in the
            log.
        retention: Time for which a deleted memory can be restored, as a timedelta or a number of
            days; 90 days unless given. `purge` deletes permanently what was deleted or expired
            longer ago; nothing does so by itself. With None deleted memories can be restored until
            they are deleted permanently, and `purge` alone deletes none.
        clock: Gives the time, aware and in UTC.
        time_zone: The zone in which days begin that a query names, such as "yesterday", in which
            times are read that name no zone, and whose dates prompts have: its name, as in
            "Europe/Berlin", "+02:00" or "local", the system's, or a `ZoneInfo`. It is stored with
            the agent's first memory, and unless given it is the stored one, or else the system's. A
            view may have another: `scoped(time_zone=…)`. Stored times are in UTC.
        id_factory: Makes an id for a time.
        log_content: Show queries in logs and events, cut to 50 characters; otherwise only how long
            they are. Nothing else of a memory is shown, and nothing at all of a sensitive one.
        track_access: Count reading a memory by its id as an access. True unless given.
        read_only: Change nothing of the file, which must be there: writes are refused with
            `ReadOnlyError`, and accesses are not counted.
        progress: Called with the number of memories loaded into the index so far, and of all;
            or True for a bar. With an embedder the index is loaded on opening, without one by the
            first search. See `mnemic.annotations.Progress`.
        max_stale: Seconds for which searches of a loaded memory are answered from this process
            while its PostgreSQL server cannot be reached, 60 unless given. Such answers say
            `stale_since`; after it, searches raise `StoreUnavailableError`.
        index_pool: Bounds the memory that the indexes of all memories opened with it take: see
            `IndexPool`. Memories in PostgreSQL that are given none share one of 1 GiB; those in a
            file have none.
        search_in: Where searches of a memory in PostgreSQL run. In "memory" every search uses the
            agent's index, loaded on opening; in the "database" the server selects the memories
            that may be found, and this process ranks them. "auto", the default, loads agents of up
            to 2,000 memories, and others once their searches in the database have taken as long as
            loading takes. The answers are the same; `SearchResults.searched_in` says where they
            come from. A file is always searched in memory.
        exact_limit: Number of active memories in the scope of a search up to which all of them are
            compared, 200,000 unless given; in larger scopes an approximate index may choose some,
            which `SearchResults.approximate` says.
        index: How the nearest vectors are found. "exact", the default, compares all memories of a
            scope. "faiss" takes candidates from an approximate index (extra `faiss`) where more
            than `exact_limit` memories are selected, and more than 2 % of the agent's;
            `FaissOptions` chooses its kind. "auto" does so for agents of more than 2,000,000
            memories. Such results are `approximate`: a better memory may be missing, and every
            score is exact.
        snapshots: Keep snapshots of the agent's index beside the file, from which it is opened in
            a fraction of the time. They take as much space as the vectors and texts. True unless
            given; with False none is read or written, and those that are there stay.
        encryption: Seal sensitive memories where they are stored, and read those that are sealed:
            an `Encryption`. With None nothing is sealed; memories that are sealed are not found,
            and `stats` counts them.
        row_security: Keep agents apart in PostgreSQL by policies of the database too, which show a
            transaction the rows of the agents alone that it names. Put in force by the first memory
            that is opened with it, for all processes and permanently; the role must own the tables
            then, and be no superuser.
        on_recalled: Treatment of a new memory that repeats what this memory returned for the same
            user within the last hour, by search, retrieval, recall, context, a policy or HyDE: the
            same text apart from case, white space and punctuation, or one that mostly consists of
            such texts, as a block for a prompt. "store", the default, looks at nothing. "flag"
            stores it, returns it as a `CheckedEntry` with `repeats`, and publishes a
            `MemoryRepeatedEvent`; "refuse" raises `RecalledTextError`. The last 512 results of a
            user are remembered, as keyed hashes of their texts.
        slow_embedding: Seconds of a memory's embedding above which a warning names the memory, .5
            unless given.
        reembed: Where the agent has vectors of another model than the embedder's, embed all of its
            memories again in the background, in place of an error. Until that is complete the
            memory searches by keywords alone, and new memories wait for their vectors;
            `memory.reembed()` waits for it. A process that ends meanwhile loses nothing: the next
            one goes on.
    """

    embedder: "mnemic.embed.AnyEmbedder | Literal['minilm', 'multilingual'] | None"
    embedding_model: str | None
    query_cache: int
    language: str | None
    license: "mnemic.annotations.LicensePolicy | None"
    quota: int | None
    user_quota: UserLimit | None
    max_entries: int | None
    user_max_entries: UserLimit | None
    when_full: WhenFull
    retention: timedelta | float | None
    clock: Clock
    time_zone: str | tzinfo | None
    id_factory: IdFactory | None
    log_content: bool
    track_access: bool
    read_only: bool
    progress: "mnemic.annotations.Progress | None"
    max_stale: float
    index_pool: "mnemic.vectors.IndexPool | None"
    search_in: "mnemic.model.SearchIn"
    exact_limit: int
    index: "mnemic.annotations.IndexChoice"
    snapshots: bool
    encryption: "mnemic.Encryption | None"
    row_security: bool
    on_recalled: OnRecalled
    slow_embedding: float
    reembed: bool


def required_uuid(value: UUID | str) -> UUID:
    """Return an id that a caller gave as a UUID or as its text."""
    entry_id = optional_uuid("id", value)
    if entry_id is None:
        raise InvalidArgumentError("id must be a UUID or its text, got None")
    return entry_id


def required_uuids(field: str, values: Iterable[UUID | str]) -> list[UUID]:
    """Return a list of ids that a caller gave."""
    return [required_uuid(value) for value in items(field, values)]


def criteria(
    ids: Iterable[UUID | str] | None,
    filters: MemoryFilter | Mapping[str, Any] | None,
    *,
    otherwise: str,
) -> Criteria:
    """Return the memories that a call for many names by ids, by a filter, or by both.

    Args:
        ids: The ids; None is any.
        filters: The filter; None is any memory.
        otherwise: Advice for a call with neither.

    Raises:
        InvalidArgumentError: If both are None, or an id is none.
        FilterError: If the filter cannot be understood, or limits the number of memories.
    """
    if ids is None and filters is None:
        raise InvalidArgumentError(f"ids and filters are both None; {otherwise}")
    named = None if ids is None else list(dict.fromkeys(required_uuids("ids", ids)))
    return Criteria(named, None if filters is None else unlimited(filters))


def unlimited(filters: MemoryFilter | Mapping[str, Any]) -> Expression:
    """Return the expression of a filter for all of its matches.

    Raises:
        FilterError: If it limits their number, which a call for all of them would pass over.
    """
    if isinstance(filters, MemoryFilter) and (filters.limit, filters.offset) != _WHOLE_LIST:
        raise FilterError(
            f"a MemoryFilter with limit={filters.limit} and offset={filters.offset} names a part "
            "of its matches, and this call is for all of them; leave both out, or list that part "
            "and name its ids"
        )
    return parse_filter(filters)


_WHOLE_LIST = (MemoryFilter().limit, MemoryFilter().offset)


_LONGEST_LANGUAGE = 20  # a longer text is not repeated in an error


def checked_language(language: object) -> str | None:
    """Return the language of a memory's texts.

    Raises:
        InvalidArgumentError: If it is no code of a language that can be stemmed; the error lists
            those that there are.
    """
    if language is None:
        return None
    is_short = isinstance(language, str) and len(language) <= _LONGEST_LANGUAGE
    if not isinstance(language, str) or not is_short or not language.isascii():
        raise must_be("language", 'a code such as "de", "auto" or None', language)
    tokens("", language)
    return language


def encoded_cursor(scope: Scope, entry: MemoryEntry) -> str:
    """Return the cursor of the page that follows an entry."""
    place = to_microseconds(entry.created_at).to_bytes(8, "big", signed=True) + entry.id.bytes
    if scope.all_users and entry.user_id is not None:  # who may have given the same id as others
        place += entry.user_id.encode()
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - of pages alone

    return urlsafe_b64encode(place).decode()


def decoded_cursor(cursor: object) -> PageCursor:
    """Return where a page begins.

    Raises:
        InvalidArgumentError: If it is no cursor of an earlier page.
    """
    from base64 import b64decode  # noqa: PLC0415 - as above

    with suppress(ValueError, OverflowError):
        if isinstance(cursor, str):
            place = b64decode(cursor, altchars=b"-_", validate=True)
            created_at = from_microseconds(int.from_bytes(place[:8], "big", signed=True))
            user_id = validation.optional_name("user_id", place[24:].decode() or None)
            return PageCursor(created_at, UUID(bytes=place[8:24]), user_id)
    raise InvalidArgumentError(
        f"cursor must be one that an earlier page gave, or None; got {quoted(cursor)}"
    )
