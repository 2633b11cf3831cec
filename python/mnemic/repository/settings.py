"""The settings of a memory, checked before anything is opened."""

import os
from collections.abc import Sequence
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeVar, get_args

from mnemic.crypto import Encryption
from mnemic.embed.adapting import KNOWN_FORMS
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import InvalidArgumentError
from mnemic.index import SourceFactory
from mnemic.index.choice import IndexChoice, checked_index
from mnemic.licensing import LicensePolicy, Quota, checked_policy
from mnemic.model import OnRecalled, Scope, SearchIn, validation
from mnemic.model.ids import UuidFactory
from mnemic.model.search import SEARCH_INS
from mnemic.model.time_zones import checked_time_zone
from mnemic.model.timestamps import checked_clock
from mnemic.model.validation import flag, is_number
from mnemic.protocols import Clock, IdFactory, UserLimit, system_clock
from mnemic.reporting.description import described, failure, quoted
from mnemic.reporting.progress import Progress, checked_progress
from mnemic.repository.arguments import RETENTION, WhenFull, checked_language
from mnemic.repository.index_pool import IndexPool
from mnemic.repository.proposals import EXACT_LIMIT
from mnemic.store import MAX_STALE
from mnemic.store.values import EntryLimits

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder, Embedder

QUERY_CACHE = 1024
"""Queries whose vectors are kept, unless a memory is opened with another number."""

_AN_ENCRYPTION = "an Encryption, such as Encryption(key=...)"

Given = TypeVar("Given")


def chosen_embedder(
    given: "AnyEmbedder | str | None", model: str | None
) -> ValidatedEmbedder | None:
    """Return the embedder with its results checked; None without one.

    Raises:
        InvalidArgumentError: If it has no known form, or a model is named for one that has its own.
    """
    if given is None:
        return None
    if not isinstance(given, str):
        return ValidatedEmbedder(given, model=model)
    named = _named_embedder(given)
    if model is not None:
        raise InvalidArgumentError(
            "embedding_model names the model of given vectors or of an embedder of your own; "
            f"leave it out, or give embedder=, which is {quoted(given)}"
        )
    return ValidatedEmbedder(named)


def _named_embedder(name: str) -> "Embedder":
    from mnemic.embed.local import LOCAL_EMBEDDERS  # noqa: PLC0415 - an optional extra

    if name not in LOCAL_EMBEDDERS:
        raise InvalidArgumentError(f"embedder must be {KNOWN_FORMS}; got {quoted(name)}")
    return LOCAL_EMBEDDERS[name]()


MAX_RETENTION = timedelta(days=365_000)
"""About a thousand years; what is longer was meant otherwise."""


def checked_retention(given: object) -> timedelta | None:
    """Return a retention, given as a timedelta or as a number of days; None is without end.

    Raises:
        InvalidArgumentError: If it is neither, negative, or longer than `MAX_RETENTION`.
    """
    if given is None:
        return None
    days = given / timedelta(days=1) if isinstance(given, timedelta) else given
    if not (is_number(days) and 0 <= days <= MAX_RETENTION.days):
        raise InvalidArgumentError(
            "retention must be a timedelta or a number of days, from 0 to "
            f"{MAX_RETENTION.days:,} days, or None to keep deleted memories until they are deleted "
            f"permanently; got {described(given)}"
        )
    return given if isinstance(given, timedelta) else timedelta(days=float(days))


class Settings(NamedTuple):
    """The place of a memory, its agent, and its options; see `Options`."""

    url: str
    named: Scope
    embedder: ValidatedEmbedder | None
    query_cache: int
    language: str | None
    license: LicensePolicy | None
    quota: Quota | None
    user_quota: UserLimit | None
    entry_limits: EntryLimits
    retention: timedelta | None
    clock: Clock
    time_zone: str | None
    id_factory: IdFactory
    log_content: bool
    track_access: bool
    read_only: bool
    embedding_model: str | None
    progress: Progress | None
    max_stale: float
    index_pool: IndexPool | None
    search_in: SearchIn
    exact_limit: int
    chosen_index: IndexChoice
    snapshots: bool
    encryption: Encryption | None
    row_security: bool
    on_recalled: OnRecalled
    slow_embedding: float
    reembed: bool
    make_source: SourceFactory | None

    @classmethod
    def of(
        cls,
        url: str | os.PathLike[str],
        agent_id: str,
        *,
        embedder: "AnyEmbedder | Literal['minilm', 'multilingual'] | None" = "minilm",
        query_cache: int = QUERY_CACHE,
        language: str | None = "auto",
        license: LicensePolicy | None = None,  # noqa: A002 - the field's name everywhere
        quota: int | None = None,
        user_quota: UserLimit | None = None,
        max_entries: int | None = None,
        user_max_entries: UserLimit | None = None,
        when_full: WhenFull = "refuse",
        retention: timedelta | float | None = RETENTION,
        clock: Clock = system_clock,
        time_zone: str | tzinfo | None = None,
        id_factory: IdFactory | None = None,
        log_content: bool = False,
        track_access: bool = True,
        read_only: bool = False,
        embedding_model: str | None = None,
        progress: Progress | None = None,
        max_stale: float = MAX_STALE,
        index_pool: IndexPool | None = None,
        search_in: SearchIn = "auto",
        exact_limit: int = EXACT_LIMIT,
        index: IndexChoice = "exact",
        snapshots: bool = True,
        encryption: Encryption | None = None,
        row_security: bool = False,
        on_recalled: OnRecalled = "store",
        slow_embedding: float = 0.5,
        reembed: bool = False,
        make_source: SourceFactory | None = None,
    ) -> Self:
        """Return the settings that options make; `make_source` takes the place of the chosen index.

        Raises:
            InvalidArgumentError: If one of them is of the wrong type or out of range.
            MissingExtraError: If the local embedder is wanted and not installed.
        """
        validation.optional_function("id_factory", id_factory)
        checked_progress(progress)
        whole = validation.whole
        return cls(
            progress=progress,
            language=checked_language(language),
            retention=checked_retention(retention),
            entry_limits=_checked_entry_limits(max_entries, user_max_entries, when_full),
            named=Scope(agent_id),
            log_content=flag("log_content", log_content),
            read_only=flag("read_only", read_only),
            search_in=_checked_word("search_in", search_in, SEARCH_INS),
            chosen_index=checked_index(index),
            on_recalled=_checked_word("on_recalled", on_recalled, get_args(OnRecalled)),
            exact_limit=whole("exact_limit", exact_limit),
            embedder=chosen_embedder(embedder, embedding_model),
            reembed=_checked_reembed(reembed, may_store=embedder is not None and not read_only),
            url=validation.path("path", url),
            query_cache=whole("query_cache", query_cache),
            license=checked_policy(license),
            quota=None if quota is None else Quota(whole("quota", quota)),
            user_quota=_checked_user_limit("user_quota", user_quota),
            clock=clock if clock is system_clock else checked_clock(clock),
            time_zone=checked_time_zone(time_zone),
            id_factory=UuidFactory() if id_factory is None else _checked_ids(id_factory),
            track_access=flag("track_access", track_access) and not read_only,
            embedding_model=validation.optional_name("embedding_model", embedding_model),
            max_stale=validation.positive("max_stale", max_stale),
            index_pool=_optional("index_pool", IndexPool, "an IndexPool", index_pool),
            snapshots=flag("snapshots", snapshots),
            encryption=_optional("encryption", Encryption, _AN_ENCRYPTION, encryption),
            row_security=flag("row_security", row_security),
            slow_embedding=validation.positive("slow_embedding", slow_embedding),
            make_source=make_source,
        )


def _checked_word(field: str, given: Given, known: Sequence[str]) -> Given:
    validation.word(field, given, known)
    return given


def _optional(field: str, kind: type[Given], wanted: str, given: object) -> Given | None:
    return None if given is None else validation.of_kind(field, kind, wanted, given)


def _checked_reembed(reembed: bool, *, may_store: bool) -> bool:  # noqa: FBT001 - as given
    if flag("reembed", reembed) and not may_store:
        raise InvalidArgumentError(
            "reembed=True stores the vectors of an embedder; give one, and open the memory for "
            "writing"
        )
    return reembed


def _checked_entry_limits(
    max_entries: int | None, user_max_entries: UserLimit | None, when_full: WhenFull
) -> EntryLimits:
    """Return budgets of entries and what becomes of a write that exceeds a limit.

    Raises:
        InvalidArgumentError: If a budget is no int from 0 on, or the choice is unknown.
    """
    validation.word("when_full", when_full, get_args(WhenFull))
    return EntryLimits(
        validation.optional_whole("max_entries", max_entries),
        _checked_user_limit("user_max_entries", user_max_entries),
        evicts=when_full == "evict",
    )


def _checked_ids(given: IdFactory) -> IdFactory:
    """Return a factory whose ids are checked."""
    return lambda now: validation.uuid("id", given(now))


def _checked_user_limit(field: str, given: UserLimit | None) -> UserLimit | None:
    """Return a limit of each user, or a function whose errors and results are checked.

    It runs inside a write, which must end with an error of that write whatever is raised.

    Raises:
        InvalidArgumentError: If it is neither a function nor an int from 0 on.
    """
    if not callable(given):
        return validation.optional_whole(field, given)

    def limit(user_id: str | None) -> int | None:
        try:
            found = given(user_id)
        except BaseException as error:  # noqa: BLE001 - nothing may end the thread that writes
            kind = failure(error)
        else:
            return validation.optional_whole(f"the result of {field}", found)
        raise InvalidArgumentError(f"{field} failed: {kind}; it returns an int, or None")

    return limit
