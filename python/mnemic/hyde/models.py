"""The language model of an engine: plain functions of it run in threads that may hang."""

from mnemic.hyde.threads import CallThreads
from mnemic.llm.adapting import AdaptedLanguageModel, adapted_language_model
from mnemic.llm.base import AnyLanguageModel


class ThreadedModel:
    """Calls a language model without blocking an event loop, and without waiting for a hanging one.

    Args:
        given: In any of the forms of `as_language_model`.
        threads: Has threads for a plain function.

    Attributes:
        model: Name of the model.
    """

    def __init__(self, given: AnyLanguageModel, threads: CallThreads) -> None:
        self._adapted: AdaptedLanguageModel = adapted_language_model(given)
        self._threads = threads
        self.model = self._adapted.model

    async def complete(self, prompt: str, *, system: str | None = None) -> str:
        """Return the answer to a prompt.

        Raises:
            LanguageModelResultError: If the model returns something other than a text.
        """
        return await self._adapted.completed(prompt, system, self._threads.run)
