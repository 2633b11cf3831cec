"""SyncHydeEngine: a HyDE engine with plain methods."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import UUID

from mnemic.hyde.config import HydeConfig
from mnemic.hyde.engine import MAX_WAIT, HydeEngine
from mnemic.hyde.ranked_memory import RankedMemory
from mnemic.hyde.telemetry import HydeStats
from mnemic.near_names import names_arguments
from mnemic.protocols import Clock
from mnemic.repository import Searchable

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder
    from mnemic.llm.base import LanguageModel


@names_arguments
class SyncHydeEngine:
    """A `HydeEngine` with plain methods, for programs without an event loop.

    They may be called from several threads at once. A coroutine language model runs on one event
    loop in a thread of the engine, which the first retrieval begins and `close` ends.

    Args:
        memory: As for `HydeEngine`, and so are the other arguments and the errors.
        embedder: As above.
        llm: As above.
        config: As above.
        clock: As above.
        include_sensitive: As above.
    """

    def __init__(
        self,
        memory: Searchable,
        embedder: "AnyEmbedder | None",
        llm: "LanguageModel | None",
        config: HydeConfig = HydeConfig(),  # noqa: B008 # pyright: ignore[reportCallInDefaultInitializer] - it is immutable
        *,
        clock: Clock | None = None,
        include_sensitive: bool = False,
    ) -> None:
        engine = HydeEngine(
            memory, embedder, llm, config, clock=clock, include_sensitive=include_sensitive
        )
        self._engine = engine
        engine.made_by(self)

    @classmethod
    def of(cls, engine: HydeEngine) -> Self:
        """Return an engine's plain methods; `HydeEngine.sync` gives the same object each time."""
        made = cls.__new__(cls)
        made._engine = engine  # noqa: SLF001 - its own
        return made

    @property
    def aio(self) -> HydeEngine:
        """The same engine with coroutine methods; the same object each time."""
        return self._engine

    @property
    def config(self) -> HydeConfig:
        """The configuration."""
        return self._engine.config

    @property
    def is_enabled(self) -> bool:
        """Whether there are both an embedder and a language model."""
        return self._engine.is_enabled

    def start(self) -> None:
        """Begin the first build in the background; see `HydeEngine.start`."""
        self._engine.start()

    def trigger_rebuild(self) -> None:
        """Begin a build in the background; see `HydeEngine.trigger_rebuild`."""
        self._engine.trigger_rebuild()

    def ready(self, timeout: float | None = None) -> bool:
        """Wait until the first build has succeeded; see `HydeEngine.ready`."""
        return self._engine.wait_ready(MAX_WAIT if timeout is None else timeout)

    def retrieve(self, turn_id: str | UUID, window: Sequence[str]) -> list[RankedMemory]:
        """Return the memories of a turn, best first; see `HydeEngine.retrieve`."""
        return self._engine.retrieve_here(turn_id, window)

    def stats(self) -> HydeStats:
        """Return the statistics so far."""
        return self._engine.stats()

    def close(self) -> None:
        """Cancel what is under way, and wait for its end; see `HydeEngine.aclose`."""
        self._engine.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sync{self._engine!r}"
