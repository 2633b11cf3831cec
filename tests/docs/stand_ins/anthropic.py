"""What the pages use of Anthropic's client: a model that repeats its system prompt."""

from types import SimpleNamespace
from typing import Any


class Anthropic:
    messages: Any

    def __init__(self) -> None:
        self.messages = self

    def create(self, *, system: str, messages: list[dict[str, str]], **_: object) -> Any:
        said = "\n".join([system, *(message["content"] for message in messages)])
        return SimpleNamespace(content=[SimpleNamespace(type="text", text=said)])
