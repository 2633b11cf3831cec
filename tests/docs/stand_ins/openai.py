"""What the pages use of OpenAI's client: a model that repeats its messages."""

from types import SimpleNamespace
from typing import Any


class OpenAI:
    chat: Any

    def __init__(self, **_: str) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(self, messages: list[dict[str, str]], **_: str) -> Any:
        said = "\n".join(message["content"] for message in messages)
        message = SimpleNamespace(content=said)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])
