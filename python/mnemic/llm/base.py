"""The contract of every language model."""

from typing import Protocol


class LanguageModel(Protocol):
    """Answers a prompt. Safe to ask from several tasks at once."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def complete(self, prompt: str, *, system: str | None = None) -> str:
        """Return the answer to a prompt.

        Args:
            prompt: What is asked.
            system: Standing instructions, or None.
        """
        ...
