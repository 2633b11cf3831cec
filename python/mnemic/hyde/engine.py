"""The HyDE engine: `HydeEngine`, and its awaited form `AsyncHydeEngine`."""

from collections.abc import Iterable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast
from uuid import UUID, uuid4

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.embed.base import AnyEmbedder
from mnemic.errors import InvalidArgumentError
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.flow import HydeStats
from mnemic.hyde.injection import format_injection
from mnemic.hyde.service import MAX_WAIT, Closable, HydeService
from mnemic.hyde.turn_memory import TurnMemories, TurnMemory
from mnemic.hyde.window import build_conversation_window
from mnemic.llm.adapting import AnyLanguageModel
from mnemic.model import Scope, validation
from mnemic.model.timestamps import checked_clock
from mnemic.protocols import Clock, TokenCounter
from mnemic.reporting.description import failure, must_be
from mnemic.reporting.logs import logger
from mnemic.reporting.near_names import names_arguments
from mnemic.repository import Repository, Searchable, checked_memory
from mnemic.threads.sync_bridge import EnteredAwaited, EnteredPlainly, Twin, sync_method

if TYPE_CHECKING:
    from datetime import datetime

_log = logger("mnemic.hyde")
_SEGMENT_BREAK = "\n\n"


class TurnBase:
    """The memories of a turn, and their block of text; for the arguments see `HydeTurn`."""

    def __init__(
        self,
        engine: "mnemic.hyde.HydeEngine | mnemic.hyde.AsyncHydeEngine",
        message: object,
        history: Iterable[object] | None = (),
        *,
        last_summarization_index: int = 0,
        turn_id: str | UUID | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        window = _window(message, history, last_summarization_index, engine.config)
        if counter is not None:
            validation.capable("counter", counter, "count")
        self._config = engine.config
        self._service = engine._service  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - its engine's
        self._counter = counter
        self.id = _checked_id(turn_id)
        self.window = window
        self.memories: list[TurnMemory] = []
        self.text = ""
        self.stale_since: datetime | None = None

    def system_prompt(self, base: str | Sequence[str] = "") -> str:
        """Return a system prompt with the block after its own segments.

        Args:
            base: The prompt, or its segments in their order.
        """
        segments = [base] if isinstance(base, str) else validation.items("base", base)
        return _SEGMENT_BREAK.join([each for each in (*segments, self.text) if each])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        count = len(self.memories)
        return f"{type(self).__name__}(id={self.id!r}, <{count} memories>)"

    def _take(self, memories: TurnMemories) -> None:
        """Keep the memories, and render their block if they are others than before."""
        are_known = len(memories) == len(self.memories) and all(map(is_, memories, self.memories))
        if not are_known:
            self.text = self._rendered(memories)
        self.memories, self.stale_since = memories, memories.stale_since

    def _rendered(self, memories: Sequence[TurnMemory]) -> str:
        config = self._config
        try:
            return format_injection(
                memories,
                config.injection_token_budget,
                form=config.injection_form,
                counter=self._counter,
                max_versions=config.max_versions,
                time_zone=self._service.time_zone,
            )
        except Exception as error:  # noqa: BLE001 - a counter's; never in the agent's way
            _log.debug("The block of a turn was not rendered: %s", failure(error))
            return ""


class AsyncHydeTurn(EnteredAwaited, TurnBase):
    """The awaited form of `HydeTurn`, made by `AsyncHydeEngine.turn`; see there."""

    async def retrieve(self) -> list[TurnMemory]:
        """Return the memories of the turn, for a sub-turn; those that the engine has kept.

        `memories` and `text` are brought up to date: a memory that was deleted meanwhile is in
        neither.
        """
        self._take(await self._service.retrieve(self.id, self.window))
        return list(self.memories)

    async def __aenter__(self) -> Self:
        await self.retrieve()
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None


class HydeTurn(EnteredPlainly, TurnBase):
    """One message of a user, made by `HydeEngine.turn`; `with` retrieves its memories.

    Leaving the block ends nothing: errors pass through it, and the engine keeps the result for
    further calls of the turn.

    Args:
        engine: The engine, whose `turn` takes the other arguments.

    Attributes:
        id: Id of the turn, the same for all its sub-turns.
        window: The lines of the conversation that hypotheses are written from.
        memories: The memories, the best first.
        text: The block of memories; "" without memories.
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
    """

    retrieve = sync_method(AsyncHydeTurn.retrieve)

    def __enter__(self) -> Self:
        self.retrieve()
        return self

    def __exit__(self, *exception: object) -> None:
        return None


def _checked_id(given: object) -> str:
    if given is None:
        return str(uuid4())
    if isinstance(given, str | UUID):
        return str(given)
    raise must_be("turn_id", "a str, a UUID or None", given)


def _window(
    message: object,
    history: Iterable[object] | None,
    last_summarization_index: int,
    config: HydeConfig,
) -> list[str]:
    """Return the window; an empty one if a message of the program cannot be read."""
    try:
        return build_conversation_window(
            history,
            last_summarization_index,
            message=message,
            max_characters=config.max_window_characters,
        )
    except InvalidArgumentError:
        raise
    except Exception as error:  # noqa: BLE001 - of a message's own class; never in the agent's way
        _log.debug("The conversation of a turn was not read: %s", failure(error))
        return []


def _parts(
    repository: Repository,
    config: HydeConfig,
    embedder: AnyEmbedder | None,
    llm: AnyLanguageModel | None,
    made: list[Closable],
) -> tuple[AnyEmbedder | None, AnyLanguageModel | None]:
    """Return the given embedder and model, else those that the configuration names.

    Nothing is made unless there are both; one alone is named by a warning in the log.

    Args:
        repository: Has an embedder of its own.
        config: Names them.
        embedder: The given one.
        llm: The given one.
        made: Gets those that are made here, and are to be closed.
    """
    has_embedder = embedder is not None or bool(config.embedding_model)
    has_llm = llm is not None or bool(config.hypothesis_model)
    if not (has_embedder and has_llm):
        if has_embedder or has_llm:
            _log.warning(
                "Retrieval by hypotheses is disabled: hypothesis_model and embedding_model must "
                "both be set, and %s is not",
                "hypothesis_model" if has_embedder else "embedding_model",
            )
        return None, None
    if embedder is None:
        embedder = _embedder(repository, config, made)
    if llm is None:
        from mnemic.llm.http import HttpLanguageModel  # noqa: PLC0415 - httpx is optional

        llm = client = HttpLanguageModel(config.hypothesis_model)
        made.append(client)
    return embedder, llm


def _embedder(repository: Repository, config: HydeConfig, made: list[Closable]) -> "AnyEmbedder":
    """Return the memory's own embedder, or for a memory without one a client of a service.

    Raises:
        EmbeddingModelMismatchError: If the memory's vectors are of another model.
    """
    repository.readiness.check_model(config.embedding_model)
    own = repository.readiness.embedder
    if own is not None:
        return own.embedder
    from mnemic.embed.http import HttpEmbedder  # noqa: PLC0415 - httpx is optional

    client = HttpEmbedder(
        config.embedding_model,
        base_url=config.embedding_base_url or None,
        api_key=config.embedding_api_key or None,
    )
    made.append(client)
    return client


Turn = TypeVar("Turn", bound=TurnBase)


@names_arguments
class HydeBase(Twin, Generic[Turn]):
    """The parts of both forms; for the arguments see `HydeEngine`."""

    _turn_kind: type[Turn]  # pyright: ignore[reportUninitializedInstanceVariable] - of each form

    def __init__(
        self,
        memory: Searchable,
        embedder: AnyEmbedder | None,
        llm: AnyLanguageModel | None,
        config: HydeConfig = HydeConfig(),  # noqa: B008 # pyright: ignore[reportCallInDefaultInitializer] - it is immutable
        *,
        clock: Clock | None = None,
        include_sensitive: bool = False,
    ) -> None:
        memory = checked_memory(memory)
        self._service = HydeService(
            memory,
            validation.of_kind("config", HydeConfig, "a HydeConfig", config),
            embedder=embedder,
            llm=llm,
            clock=memory.repository.now if clock is None else checked_clock(clock),
            include_sensitive=validation.flag("include_sensitive", include_sensitive),
        )

    @classmethod
    def from_config(
        cls,
        memory: Searchable,
        config: HydeConfig,
        *,
        embedder: AnyEmbedder | None = None,
        llm: AnyLanguageModel | None = None,
        clock: Clock | None = None,
        include_sensitive: bool = False,
    ) -> Self | None:
        """Return the engine that a configuration describes; None if it is not enabled.

        An embedder that is not given is the memory's own, whose model `embedding_model` must name,
        or for a memory without one an `HttpEmbedder`; a language model that is not given is an
        `HttpLanguageModel` of `hypothesis_model`. The engine closes the clients that it makes. If
        one of the two is neither given nor named, the engine is disabled, with a warning in the
        log.

        Args:
            embedder: Used in place of `embedding_model`.
            llm: Used in place of `hypothesis_model`.

        Raises:
            EmbeddingModelMismatchError: If the embedder's vectors are not those of the memory.
            InvalidArgumentError: If an argument is of the wrong type.
            LicenseRestrictionError: If the license policy does not allow searching by meaning.
            MissingExtraError: If a client is to be made, and the extra `http` is not installed.
        """
        checked = validation.of_kind("config", HydeConfig, "a HydeConfig", config)
        if not checked.enabled:
            return None
        made: list[Closable] = []
        repository = checked_memory(memory).repository
        parts = _parts(repository, checked, embedder, llm, made)
        engine = cls(memory, *parts, checked, clock=clock, include_sensitive=include_sensitive)
        engine._service.owned += made
        return engine

    @property
    def config(self) -> HydeConfig:
        """The configuration."""
        return self._service.config

    @property
    def scope(self) -> Scope:
        """The scope of the memories that are found."""
        return self._service.scope

    @property
    def is_enabled(self) -> bool:
        """Whether there are both an embedder and a language model."""
        return self._service.is_enabled

    def start(self) -> None:
        """Begin the first build in the background, and return at once.

        A further call has no effect, and neither has one without an embedder. Without any, the
        first retrieval begins the build.
        """
        self._service.start()

    def trigger_rebuild(self) -> None:
        """Begin a build in the background, and return at once; from any thread.

        It embeds the memories that lack a vector; the index has every other write at once.
        Triggers during a build are one further build after it. After a failed build the next one
        waits for a while.
        """
        self._service.trigger_rebuild()

    def stats(self) -> HydeStats:
        """Return the statistics so far."""
        return self._service.stats()

    def turn(
        self,
        message: object,
        history: Iterable[object] | None = (),
        *,
        last_summarization_index: int = 0,
        turn_id: str | UUID | None = None,
        counter: TokenCounter | None = None,
    ) -> Turn:
        """Return a turn of the user; entering it retrieves its memories.

        Args:
            message: The current message; it may be the last one of the history too.
            history: The conversation, as `build_conversation_window` takes it.
            last_summarization_index: Index of the first message after the last summary.
            turn_id: Id of the turn; a new UUID unless given.
            counter: Token counter of the block's budget; an estimate by script unless given.

        Raises:
            InvalidArgumentError: If an argument is of the wrong type.
        """
        return self._turn_kind(
            cast("HydeEngine | AsyncHydeEngine", self),
            message,
            history,
            last_summarization_index=last_summarization_index,
            turn_id=turn_id,
            counter=counter,
        )

    def __repr__(self) -> str:
        model, embedder = self._service.model, self._service.embedder
        return (
            f"{type(self).__name__}({self.scope}, "
            f"{'no model' if model is None else f'model {model.model!r}'}, "
            f"{'no embedder' if embedder is None else f'embedder {embedder.model!r}'})"
        )


@names_arguments
class AsyncHydeEngine(EnteredAwaited, HydeBase[AsyncHydeTurn]):
    """The awaited form of `HydeEngine`, for any event loop; for the arguments see there."""

    _turn_kind = AsyncHydeTurn

    @property
    def sync(self) -> "HydeEngine":
        """The same engine with plain methods; the same object each time."""
        return self._other_form(HydeEngine)

    async def ready(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - the name of time limits everywhere
        """Wait until the first build has succeeded, or the builds under way have failed.

        Args:
            timeout: Most seconds to wait; None waits up to an hour.

        Returns:
            Whether one has succeeded; False without an embedder.
        """
        return await self._service.ready(MAX_WAIT if timeout is None else timeout)

    async def retrieve(self, turn_id: str | UUID, window: Sequence[str]) -> TurnMemories:
        """Return the memories of a turn, best first.

        The result of a turn is kept until the next one, so that further calls for it cost nothing.
        Concurrent calls for a turn share one retrieval. A memory that is deleted or expires leaves
        the kept result, and one that is changed is shown as it is then.

        Args:
            turn_id: Names the turn, and all its calls; a new one for each message of the user. With
                a blank one nothing is kept.
            window: The lines of the conversation, such as `build_conversation_window` returns.

        Returns:
            The memories by descending score; empty where there are none, where the engine is
            disabled or closed, and where a stage failed before the search was complete. While the
            server of a store is away they have `stale_since`, and are kept no longer than that.

        Raises:
            InvalidArgumentError: If an argument is of the wrong type.
        """
        return await self._service.retrieve(turn_id, window)

    async def close(self) -> None:
        """Cancel what is under way, and wait for its end for a bounded time.

        The memory stays open. Calls that wait, and later ones, return no memories. Repeated calls
        have no effect.
        """
        await self._service.close()

    aclose = close

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


class HydeEngine(EnteredPlainly, HydeBase[HydeTurn]):
    """Finds the memories that belong in an agent's context, once per turn.

    A small language model writes hypotheses: sentences that a relevant memory might contain. They
    are embedded by one call, and the memories nearest to any of them are found, with those that
    links lead to and their earlier versions (Gao et al., "Precise Zero-Shot Dense Retrieval without
    Relevance Labels", 2022). No failure of a stage raises: the turn gets fewer memories or none.

    Methods may be called from several threads at once. A coroutine language model runs on one event
    loop in a thread of the engine, which the first retrieval begins and `close` ends. As with
    `Memory.context`, a turn counts no access of its memories, and sensitive memories are left out
    unless `include_sensitive` is true.

    Args:
        memory: A memory, by any interface, or a scoped one, whose scope limits what is found.
        embedder: Embeds the hypotheses as memories are embedded, in any of the forms that a memory
            takes: the memory's own, or another one of its model. None disables the engine.
        llm: The language model, in any of the forms of `as_language_model`: an object with
            `complete(prompt, *, system=None)`, or a function. A plain one runs in a thread of its
            own, as a coroutine function it runs in the caller's event loop. None disables the
            engine.
        config: The configuration. A constructed engine is on, whatever its `enabled`.
        clock: Gives the time at which kept memories may have expired; the memory's own unless
            given.
        include_sensitive: Whether sensitive memories are found.

    Raises:
        EmbeddingModelMismatchError: If the embedder is of another model than the memory's vectors;
            `Memory.reembed` embeds all memories again by it.
        InvalidArgumentError: If an argument is of the wrong type.
        LicenseRestrictionError: If the license policy does not allow searching by meaning.
    """

    _turn_kind = HydeTurn

    @property
    def aio(self) -> AsyncHydeEngine:
        """The same engine with coroutine methods; the same object each time."""
        return self._other_form(AsyncHydeEngine)

    ready = sync_method(AsyncHydeEngine.ready)
    retrieve = sync_method(AsyncHydeEngine.retrieve)
    close = sync_method(AsyncHydeEngine.close)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
