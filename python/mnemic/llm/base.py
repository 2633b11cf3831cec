"""The contract of every language model."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias


class LanguageModel(Protocol):
    """Answers prompts. Must allow concurrent calls from several tasks."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def complete(self, prompt: str, *, system: str | None = None) -> str:
        """Return the answer to a prompt.

        Args:
            prompt: The prompt.
            system: System prompt, or None.
        """
        ...


class HasComplete(Protocol):
    """Answers prompts by `complete`, plain or awaited, with or without a system prompt."""

    def complete(self, prompt: Any, /) -> Any:
        """Return the answer to a prompt.

        Args:
            prompt: The prompt.
        """
        ...


AnyLanguageModel: TypeAlias = (
    LanguageModel
    | HasComplete
    | Callable[[str], Any]
    | Callable[[str, str], Any]
    | Callable[..., Any]  # one with `system` as a keyword
)
"""The forms of a language model; see `mnemic.llm.as_language_model`."""
