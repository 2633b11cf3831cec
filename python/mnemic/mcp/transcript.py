"""Reads the last turn of a conversation from the file that a client keeps of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mnemic.mcp.told import without_told

LONGEST: Final = 4000
"""Characters of a message that are kept."""
_READ_BYTES: Final = 1 << 20
_KINDS: Final = {"user", "assistant", "response_item"}
"""Of lines that are messages, in Claude Code and in Codex; others repeat them."""
_UNSAID: Final = ("isMeta", "isSidechain", "isCompactSummary")
_PARTS: Final = {"text", "input_text", "output_text"}


def last_turn(said: dict[str, Any]) -> list[dict[str, str]]:
    """Return the user's last message and the last answer to it, each with role and text.

    Args:
        said: What the client says: `transcript_path`, a file of JSON lines as Claude Code and
            Codex write them, and `last_assistant_message`, which the file may not have yet.
    """
    found: dict[str, str] = {}
    last = said.get("last_assistant_message")
    if isinstance(last, str) and without_told(last):
        found["assistant"] = without_told(last)
    path = said.get("transcript_path")
    for role, text in _messages_backwards(Path(path).expanduser()) if path else ():
        found.setdefault(role, text)
        if role == "user":
            break
    return [
        {"role": role, "text": found[role][:LONGEST]}
        for role in ("user", "assistant")
        if role in found
    ]


def _messages_backwards(path: Path) -> Iterator[tuple[str, str]]:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _READ_BYTES))
        lines = file.read().splitlines()
    for line in reversed(lines):
        try:
            said = json.loads(line)
        except ValueError:  # the first line may be cut
            continue
        message = _message(said)
        if message is not None:
            yield message


def _message(said: Any) -> tuple[str, str] | None:
    """Return role and text of what a person or the model said; None of all else."""
    if not isinstance(said, dict) or said.get("type") not in _KINDS:
        return None
    if any(map(said.get, _UNSAID)):
        return None
    message = said.get("message") or said.get("payload")
    if not isinstance(message, dict) or message.get("role") not in {"user", "assistant"}:
        return None
    text = without_told(_text(message.get("content")))
    if not text or text.startswith("<"):  # what the client itself put in
        return None
    return message["role"], text


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part.get("text", ""))
        for part in parts
        if isinstance(part, dict) and part.get("type") in _PARTS
    )
