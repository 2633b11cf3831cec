"""The contract of every language model."""

from typing import Protocol


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
