"""The language model of an engine: plain functions of it run in threads that may hang."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

from mnemic.description import described
from mnemic.errors import InvalidArgumentError
from mnemic.hyde.threads import CallThreads

Complete = Callable[..., object]


class ThreadedModel:
    """Calls a language model without blocking an event loop.

    Args:
        given: An object with `complete`, which may be a coroutine function or a plain one.
        threads: Has threads for a plain one.

    Attributes:
        model: Name of the model; "" if it has none.
    """

    def __init__(self, given: object, threads: CallThreads) -> None:
        complete = getattr(given, "complete", None)
        if not callable(complete):
            raise InvalidArgumentError(
                "llm must have complete(prompt, *, system=None), or be None for no retrieval; got "
                f"{described(given)}"
            )
        self._complete: Complete = complete
        self._awaits = iscoroutinefunction(complete)
        self._threads = threads
        self.model = str(getattr(given, "model", ""))

    async def complete(self, prompt: str, *, system: str | None = None) -> str:
        """Return the answer to a prompt; whether it is a text is for the caller to check."""
        if self._awaits:
            made = self._complete(prompt, system=system)
        else:
            made = await self._threads.run(lambda: self._complete(prompt, system=system))
        if isinstance(made, Awaitable):
            made = await made
        return made  # type: ignore[return-value]
