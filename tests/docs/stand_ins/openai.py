"""What the pages use of OpenAI's client: a model that repeats its messages, or answers in JSON."""

from types import SimpleNamespace
from typing import Any

answers: dict[str, str] = {}
"""What the model answers to a message where JSON is asked for."""


class OpenAI:
    chat: Any

    def __init__(self, **_: str) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(
        self,
        messages: list[dict[str, str]],
        response_format: dict[str, str] | None = None,
        **_: str,
    ) -> Any:
        said = "\n".join(message["content"] for message in messages)
        content = answers[messages[-1]["content"]] if response_format else said
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=content))])
