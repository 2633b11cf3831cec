"""One message of a user in an agent's loop: its memories, and their block in the system prompt."""

from collections.abc import Iterable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Self
from uuid import UUID, uuid4

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.errors import InvalidArgumentError
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.injection import format_injection
from mnemic.hyde.turn_memory import TurnMemories, TurnMemory
from mnemic.hyde.window import build_conversation_window
from mnemic.model import validation
from mnemic.protocols import TokenCounter
from mnemic.reporting.description import failure, must_be
from mnemic.reporting.logs import logger
from mnemic.threads.sync_bridge import sync_method
from mnemic.threads.twins import EnteredAwaited, EnteredPlainly

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
