"""What the pages use of Ollama's client: a model that repeats its messages."""

from types import SimpleNamespace
from typing import Any


def chat(model: str, messages: list[dict[str, str]]) -> Any:  # noqa: ARG001 - its signature
    said = "\n".join(message["content"] for message in messages)
    return SimpleNamespace(message=SimpleNamespace(content=said))
